//! MCP servers that fail, and that mean harm: each fault is named, none reaches the requests.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::mcp::{Scripted, latest, result, tool_names, turn};
use crate::server::{Server, call, text};
use crate::shell::{Shell, entries, is_running, mark, peak};
use crate::wait;

/// A workspace whose configuration names a scripted server, with its tools known.
fn with_server(options: &[&str], more: &str) -> (Shell, Scripted) {
    let shell = Shell::new(&[]);
    let scripted = Scripted::new(&shell);
    shell.configure(&scripted.section("test", options, more));
    let tested = shell.run(["mcp", "test", "test"]);
    assert_eq!(tested.code, 0, "{tested:?}");
    (shell, scripted)
}

/// The result of one call of a tool of the server.
fn called(shell: &Shell, tool: &str, args: Value) -> Value {
    let server = Server::start(vec![call("c1", &format!("test__{tool}"), args), text("Done.")]);
    let ran = turn(shell, &server, &["--mode", "ask", "--allow", "mcp(test)", "go"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    result(shell)
}

fn output(result: &Value) -> &str {
    result["output"].as_str().expect("text")
}

/// Broken builds: one that waits for the timeout of a call whose server is gone; one that repeats the call.
#[test]
fn a_server_that_dies_in_a_call_fails_it_at_once_with_its_last_words_and_is_not_asked_again() {
    let (shell, scripted) = with_server(&[], "");
    let died = called(&shell, "die", json!({}));
    assert_eq!(died["error"]["code"], "MCP_SERVER_EXITED", "{died}");
    assert!(output(&died).contains("it exited with 3; last words: fatal: out of cheese"), "{died}");
    assert_eq!(scripted.journal().iter().filter(|it| it.starts_with("call die")).count(), 1);
    assert!(died["duration_ms"].as_u64().expect("a number") < 60_000);
}

/// Broken builds: one whose timeout kills the server, or does not tell it.
#[test]
fn a_server_that_does_not_answer_is_told_that_the_call_is_cancelled_and_lives_on() {
    let (shell, scripted) = with_server(&[], "call_timeout = 1");
    let calls = vec![
        call("c1", "test__hang", json!({})),
        call("c2", "test__echo", json!({ "text": "still here" })),
        text("Done."),
    ];
    let server = Server::start(calls);
    assert_eq!(turn(&shell, &server, &["--mode", "ask", "--allow", "mcp(test)", "go"]).code, 0);
    let log = entries(&latest(&shell));
    let results: Vec<&Value> = log.iter().filter(|it| it["type"] == "tool_result").map(|it| &it["data"]).collect();
    assert_eq!(results[0]["error"]["code"], "MCP_TIMEOUT");
    assert!(output(results[1]).contains("still here"));
    let journal = scripted.journal();
    assert!(journal.contains(&"notifications/cancelled".to_owned()), "{journal:?}");
    assert_eq!(scripted.starts(), 2, "once for the test, once for both calls: {journal:?}");
    let slow = called(&shell, "progress", json!({ "seconds": 2.5 }));
    assert!(output(&slow).contains("done at last"), "who says that it goes on gets more time: {slow}");
}

/// Broken builds: one that gives such lines to the reader of messages; one without a bound on a message.
#[test]
fn what_a_server_prints_besides_messages_does_no_harm() {
    let (shell, _) = with_server(&["noise=Starting…", "stderr=warming up"], "");
    let odd = called(&shell, "garbage", json!({}));
    assert!(output(&odd).contains("after garbage"), "{odd}");
    let failed = called(&shell, "fail", json!({}));
    assert_eq!((&failed["ok"], failed["error"].is_null()), (&false.into(), true));
    assert!(output(&failed).contains("no such repository"));
    assert!(output(&called(&shell, "structured", json!({}))).contains("\"n\": 42"));
    let image = called(&shell, "image", json!({}));
    assert_eq!(image["attachments"][0]["media_type"], "image/png", "{image}");
    let document = shell.run(["mcp", "test", "test", "--json"]).document();
    assert_eq!(document["server"]["dropped_lines"], 1, "{document}");
    assert!(document["server"]["stderr"].as_str().expect("text").contains("warming up"));
}

/// Broken build: one that holds a message of any length in memory.
#[test]
fn an_answer_of_a_gigabyte_fails_its_call_and_takes_no_memory() {
    let megabytes = if std::env::var_os("PIXIR_LONG").is_some() { 1024 } else { 64 };
    let (shell, _) = with_server(&["tools=big,echo"], "");
    let run = |megabytes: u64| {
        let args = json!({ "megabytes": megabytes });
        let server = Server::start(vec![call("c1", "test__big", args), text("Done.")]);
        let flags = server.flags(crate::server::Dialect::Responses);
        let usual = ["--headless", "--json", "--mode", "ask", "--allow", "mcp(test)", "go"];
        let args: Vec<&str> = flags.iter().map(String::as_str).chain(usual).collect();
        let (peak, ran) = peak(&shell, &args);
        assert_eq!(ran.code, 0, "{ran:?}");
        let log = entries(&latest(&shell));
        let found = log.iter().rfind(|it| it["type"] == "tool_result").expect("a result");
        (peak, found["data"].clone())
    };
    let (small, fine) = run(1);
    assert!(fine["error"].is_null(), "{fine}");
    let (large, refused) = run(megabytes);
    assert_eq!(refused["error"]["code"], "MCP_LIMIT", "{refused}");
    let more = large.saturating_sub(small);
    crate::shell::figures(&format!("{megabytes} MB from a server: {more} KB more than 1 MB"));
    assert!(more <= 32 << 10, "{more} KB more");
}

/// Broken builds: a failed start keeps the turn waiting; its error does not say what the server printed.
#[test]
fn a_server_that_does_not_start_is_an_error_of_its_own_call_only() {
    let (shell, scripted) = with_server(&[], "");
    for (options, more, wanted) in [
        (vec!["exit=1", "stderr=no license found"], "", "it exited with 1; its last words: no license found"),
        (vec!["slow=60"], "start_timeout = 1", "it was not ready within 1 s"),
    ] {
        shell.configure(&scripted.section("test", &options, more));
        let tested = shell.run(["mcp", "test", "test"]);
        assert_eq!(tested.code, 1, "{tested:?}");
        assert!(tested.stdout.contains(wanted), "{tested:?}");
    }
    shell.configure("[mcp.test]\ncommand = \"no-such-program-anywhere\"\n");
    let missing = shell.run(["mcp", "test", "test"]);
    assert!(missing.code == 1 && missing.stdout.contains("no-such-program-anywhere"), "{missing:?}");
    let server = Server::start(vec![call("c1", "mcp_find", json!({ "query": "echo" })), text("Done.")]);
    assert_eq!(turn(&shell, &server, &["go"]).code, 0);
    assert!(output(&result(&shell)).contains("did not start"));
}

/// Broken builds: one that calls a tool whose definition has changed; one that lets the change into the next request.
#[test]
fn a_changed_definition_is_not_called_before_the_user_has_seen_and_accepted_it() {
    let (shell, scripted) = with_server(&["tools=echo,change"], "");
    let calls = vec![
        call("c1", "test__change", json!({})),
        call("c2", "test__echo", json!({ "text": "secret" })),
        text("Done."),
    ];
    let server = Server::start(calls);
    assert_eq!(turn(&shell, &server, &["--mode", "ask", "--allow", "mcp(test)", "go"]).code, 0);
    let refused = result(&shell);
    assert_eq!(refused["error"]["code"], "MCP_DEFINITION_CHANGED", "{refused}");
    assert!(!scripted.journal().iter().any(|it| it.starts_with("call echo")));
    let bodies = server.bodies();
    assert!(bodies.iter().all(|it| it["tools"] == bodies[0]["tools"]), "the change moves no byte of the tools");

    shell.configure(&scripted.section("test", &["tools=echo,change", "about= and more"], ""));
    // Another launch of the user's own is a first contact; the same launch with another definition is not.
    let program = fs::read_to_string(&scripted.program).expect("the server");
    assert_eq!(shell.run(["mcp", "test", "test"]).code, 0);
    fs::write(&scripted.program, program.replace("Says the text again", "Says the text to somebody")).expect("write");
    let changed = shell.run(["mcp", "accept", "test", "--dry-run"]);
    assert!(
        changed.stdout.contains("echo is changed:")
            && changed.stdout.contains("+  \"description\": \"Says the text to somebody"),
        "{changed:?}"
    );
    assert_eq!(called(&shell, "echo", json!({}))["error"]["code"], "MCP_DEFINITION_CHANGED");
    assert!(shell.run(["mcp", "accept", "test"]).stdout.ends_with("accepted\n"));
    assert!(called(&shell, "echo", json!({ "text": "fine" }))["error"].is_null());
}

/// Broken builds: all definitions are offered; the matches are not bounded; the names of the tools cost a line each.
#[test]
fn five_hundred_tools_are_found_by_search_and_cost_a_kilobyte() {
    let (shell, _) = with_server(&["tools=echo", "many=500"], "");
    let found = call("c1", "mcp_find", json!({ "query": "thing number 77" }));
    let called = call("c2", "mcp_call", json!({ "tool": "test__tool_077", "arguments": { "value": "x" } }));
    let server = Server::start(vec![found, called, text("Done.")]);
    assert_eq!(turn(&shell, &server, &["--mode", "ask", "--allow", "mcp(test)", "go"]).code, 0);
    let bodies = server.bodies();
    let names = tool_names(&bodies[0]);
    assert!(!names.iter().any(|it| it.starts_with("test__")) && names.contains(&"mcp_find".to_owned()), "{names:?}");
    let of_mcp = bodies[0]["tools"].as_array().expect("tools").iter();
    let bytes: usize = of_mcp
        .filter(|it| it["name"].as_str().is_some_and(|it| it.starts_with("mcp_")))
        .map(|it| it.to_string().len())
        .sum();
    assert!(bytes <= 1_200 + 1_024, "{bytes} bytes");
    let log = entries(&shell.logs()[0]);
    let results: Vec<&Value> = log.iter().filter(|it| it["type"] == "tool_result").map(|it| &it["data"]).collect();
    assert!(output(results[0]).contains("test__tool_077") && output(results[0]).len() < 7_000, "{}", results[0]);
    assert!(output(results[1]).contains("tool_077 {\"value\": \"x\"}"), "{}", results[1]);
    assert!(bodies.iter().all(|it| it["tools"] == bodies[0]["tools"]));
}

/// Broken builds: a secret of `env_from` in a result, on stderr or in a file; a key of the user in the environment of a server.
#[test]
fn secrets_reach_the_server_and_no_file_or_output() {
    let shell = Shell::new(&[]);
    let scripted = Scripted::new(&shell);
    let (canary, key) = (format!("canary-{}", mark()), format!("key-{}", mark()));
    let more = "env_from = [\"CANARY_TOKEN\"]\nreads = [\"environment\"]";
    shell.configure(&scripted.section("test", &["tools=environment,echo"], more));
    let missing = shell.run(["mcp", "test", "test"]);
    assert!(missing.stdout.contains("pixir mcp secret test CANARY_TOKEN"), "{missing:?}");
    let mut store = shell.command(["mcp", "secret", "test", "CANARY_TOKEN"]);
    let mut child = store.stdin(std::process::Stdio::piped()).spawn().expect("it starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("stdin"), canary.as_bytes()).expect("it reads");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(shell.run(["mcp", "test", "test"]).code, 0);

    let server = Server::start(vec![call("c1", "test__environment", json!({})), text("Done.")]);
    let flags = server.flags(crate::server::Dialect::Responses);
    let args = flags.iter().map(String::as_str).chain(["--headless", "--json", "go"]);
    let ran = crate::shell::ran(crate::shell::run_to_its_end(shell.command(args).env("SOME_API_KEY", &key)));
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = result(&shell);
    assert!(output(&told).contains("[secret CANARY_TOKEN]"), "the server has it: {told}");
    let mut folders = vec![shell.home().parent().expect("a parent").to_owned()];
    while let Some(folder) = folders.pop() {
        for it in fs::read_dir(folder).into_iter().flatten().flatten() {
            if it.path().is_dir() {
                folders.push(it.path());
            } else if it.file_name() != "auth.json" {
                let bytes = fs::read(it.path()).unwrap_or_default();
                let holds = |text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
                assert!(!holds(&canary) && !holds(&key), "a secret is in {}", it.path().display());
            }
        }
    }
    assert!(!ran.stdout.contains(&canary) && !ran.stderr.contains(&canary) && !ran.stdout.contains(&key));
}

/// Broken build: one that starts what a repository names before the user has approved exactly that.
#[test]
fn a_repository_starts_nothing_before_its_launch_is_approved_and_one_changed_byte_asks_again() {
    let shell = Shell::new(&[]);
    let scripted = Scripted::new(&shell);
    let journal = scripted.program.with_file_name("journal").display().to_string();
    let file = |more: &str| {
        let args = [scripted.program.display().to_string(), format!("journal={journal}"), more.to_owned()];
        json!({ "mcpServers": { "Test": { "command": "python3", "args": args, "env": { "A": "${HOME}" } } } })
            .to_string()
    };
    shell.write(".mcp.json", &file("tools=echo"));
    shell.write(".pixir/config.toml", "[mcp.other]\ncommand = \"python3\"\nreads = [\"*\"]\n");
    let server = Server::start(vec![text("Nothing here.")]);
    assert_eq!(turn(&shell, &server, &["hello"]).code, 0);
    assert!(!tool_names(&server.bodies()[0]).iter().any(|it| it.contains("mcp") || it.contains("test")));
    let listed = shell.run(["mcp", "list"]);
    assert!(
        listed.stdout.contains("test   not approved") && listed.stdout.contains("other  not approved"),
        "{listed:?}"
    );
    let refused = shell.run(["mcp", "test", "test"]);
    assert!(refused.code != 0 && refused.stderr.contains("pixir mcp trust test"), "{refused:?}");
    assert_eq!(scripted.starts(), 0);

    let approved = shell.run(["mcp", "trust", "test"]);
    assert!(approved.stdout.contains("starts python3") && approved.stdout.contains("A='${HOME}'"), "{approved:?}");
    let tested = shell.run(["mcp", "test", "test"]);
    assert_eq!((tested.code, scripted.starts()), (0, 1), "{tested:?}");
    let server = Server::start(vec![call("c1", "mcp_call", json!({ "tool": "test__echo" })), text("Done.")]);
    assert_eq!(turn(&shell, &server, &["--mode", "ask", "--allow", "mcp(test)", "hello"]).code, 0);
    assert!(!result(&shell)["error"].is_null(), "its tools are not accepted yet");
    assert_eq!(shell.run(["mcp", "accept", "test"]).code, 0);
    assert!(called(&shell, "echo", json!({ "text": "x" }))["error"].is_null());

    let before = scripted.starts();
    shell.write(".mcp.json", &file("tools=echo,look"));
    assert!(shell.run(["mcp", "list"]).stdout.contains("test   not approved: changed"));
    let server = Server::start(vec![call("c1", "test__echo", json!({})), text("Done.")]);
    assert_eq!(turn(&shell, &server, &["--mode", "ask", "--allow", "mcp(test)", "hello"]).code, 0);
    assert_eq!(scripted.starts(), before, "a changed launch does not start");
}

/// Broken builds: a server, or what it started in a session of its own, outlives pixir; pixir waits for a stubborn one.
#[test]
fn nothing_of_a_server_outlives_pixir() {
    let orphan = mark();
    let (shell, scripted) = with_server(&["tools=echo,hang", "stubborn=1", &format!("orphan={orphan}")], "");
    assert!(!is_running(&orphan), "the test of the server has left something");
    called(&shell, "echo", json!({ "text": "x" }));
    assert!(!is_running(&orphan) && !is_running(&scripted.program.display().to_string()));

    let server = Server::start(vec![call("c1", "test__hang", json!({})), text("Done.")]);
    let flags = server.flags(crate::server::Dialect::Responses);
    let usual = ["--headless", "--json", "--mode", "ask", "--allow", "mcp(test)", "go"];
    let mut child = shell.command(flags.iter().map(String::as_str).chain(usual)).spawn().expect("it starts");
    let calls = || scripted.journal().iter().any(|it| it.starts_with("call hang")).then_some(());
    wait::found(Duration::from_secs(60), calls).expect("the call");
    child.kill().expect("kill -9");
    child.wait().expect("it ends");
    let program = scripted.program.display().to_string();
    wait::found(Duration::from_secs(10), || (!is_running(&program)).then_some(())).expect("the server ends with pixir");
}
