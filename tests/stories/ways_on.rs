//! Refusals of a run without a screen, and what they name as the way on: each way leads somewhere.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::mcp::{Scripted, result, turn};
use crate::server::{Dialect, Server, call, text};
use crate::shell::{Ran, Shell, ran, run_to_its_end};

/// One headless Turn in which a scripted model makes this call.
fn with_call(shell: &Shell, tool: &str, args: Value, flags: &[&str]) -> Ran {
    let steps = json!([{ "calls": [{ "name": tool, "args": args }] }, { "text": "Done." }]);
    scripted(shell, &steps, flags)
}

fn scripted(shell: &Shell, steps: &Value, flags: &[&str]) -> Ran {
    let script = shell.aside("steps.json", &json!({ "steps": steps }).to_string());
    let provider = format!("script:{}", script.display());
    shell.run(["-p", "go", "--json", "--provider", &provider].iter().chain(flags))
}

pub(super) fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

/// A line as it is printed, run by a shell.
pub(super) fn typed(shell: &Shell, line: &str) -> Ran {
    let program = env!("CARGO_BIN_EXE_pixir");
    let mut it = Command::new("sh");
    it.args(["-c", &format!("pixir() {{ '{program}' \"$@\"; }}\n{line}")]);
    it.env_clear().envs(shell.command([""; 0]).get_envs().filter_map(|(name, value)| Some((name, value?))));
    it.current_dir(shell.workspace()).stdin(Stdio::null());
    it.stdout(Stdio::piped()).stderr(Stdio::piped());
    ran(run_to_its_end(&mut it))
}

fn touch(name: &str) -> Value {
    json!({ "command": format!("touch {name}") })
}

/// Broken builds: the mode stays read-only, so no rule allows anything; the mode becomes `auto`, so everything runs; a refusal
/// asks for an answer (13) that no user of the run can give; `--write` is the only way on.
#[test]
fn a_rule_of_the_command_line_allows_what_it_names_and_nothing_else() {
    let shell = Shell::new(&[("notes.txt", "one\n")]);
    let edit = || json!({ "path": "notes.txt", "old_text": "one", "new_text": "two" });
    let write = |path: &str| json!({ "path": path, "content": "x\n" });
    let allowed: &[(&str, &str, Value, &str)] = &[
        ("bash(touch *)", "bash", touch("a"), "a"),
        ("bash(touch b)", "bash", touch("b"), "b"),
        ("files(docs/**)", "write", write("docs/c"), "docs/c"),
        ("files(notes.txt)", "edit", edit(), "notes.txt"),
        ("files()", "write", write("d"), "d"),
        ("bash(touch *)", "run", touch("e"), "e"),
    ];
    for (rule, tool, args, made) in allowed {
        let toolset = if *tool == "run" { "run" } else { "typed" };
        let done = with_call(&shell, tool, args.clone(), &["--allow", rule, "--toolset", toolset]);
        assert_eq!(done.code, 0, "{rule}: {done:?}");
        assert!(shell.workspace().join(made).exists(), "{rule}");
    }
    assert_eq!(shell.read("notes.txt"), "two\n");
    for (rule, tool, args, kept) in [
        ("bash(touch *)", "bash", json!({ "command": "mkdir f" }), "f"),
        ("bash(touch g)", "bash", touch("h"), "h"),
        ("files(docs/**)", "write", write("i"), "i"),
        ("files(docs/**)", "bash", touch("docs/j"), "docs/j"),
        ("network", "bash", touch("k"), "k"),
        ("bash(touch *)", "bash", json!({ "command": "touch l && rm -rf docs" }), "l"),
    ] {
        let refused = with_call(&shell, tool, args, &["--allow", rule]);
        let document = refused.document();
        assert_eq!((refused.code, &document["code"]), (12, &json!("MUTATION_BLOCKED")), "{rule}: {refused:?}");
        assert!(!shell.workspace().join(kept).exists() && shell.workspace().join("docs/c").exists(), "{rule}");
        assert_eq!(document["denials"].as_array().map(Vec::len), Some(1), "{rule}: {document}");
    }
    // What only reads needs no rule, and a mode that the user names stays as it is.
    let read = with_call(&shell, "bash", json!({ "command": "cat notes.txt" }), &["--allow", "bash(touch *)"]);
    assert_eq!(read.code, 0, "{read:?}");
    for (mode, code) in [("read-only", 12), ("ask", 0)] {
        let done = with_call(&shell, "bash", touch("m"), &["--allow", "bash(touch *)", "--mode", mode]);
        assert_eq!(done.code, code, "{mode}: {done:?}");
    }
    let asked = with_call(&shell, "bash", touch("n"), &["--mode", "ask"]);
    assert_eq!(asked.code, 13, "without a rule of the command line, an answer is missing: {asked:?}");
    // Beside a model: the same for one line, and for one tool.
    assert_eq!(shell.run(["run", "touch o", "--allow", "bash(touch *)"]).code, 0);
    assert!(shell.workspace().join("o").exists());
    for line in
        [&["run", "mkdir p"][..], &["run", "mkdir p", "--raw"], &["tools", "run", "bash", r#"{"command": "mkdir p"}"#]]
    {
        let refused = shell.run(line.iter().chain(&["--allow", "bash(touch *)"]));
        assert!(refused.code == 12 && !shell.workspace().join("p").exists(), "{line:?}: {refused:?}");
    }
    // An agent has the rules of its run.
    let spawn = json!({ "calls": [{ "name": "spawn_agent", "args": { "task": "Make it", "name": "maker" } }] });
    let steps = json!([spawn, { "of": "Make it", "calls": [{ "name": "bash", "args": touch("q") }] },
                       { "of": "Make it", "text": "Made." }, { "text": "Done." }]);
    let done = scripted(&shell, &steps, &["--allow", "bash(touch *)"]);
    assert!(done.code == 0 && shell.workspace().join("q").exists(), "{done:?}");
}

/// Broken build: the remedy names a flag and not the rule, or one that refuses again.
#[test]
fn what_a_refused_run_names_lets_the_call_run() {
    for (tool, args, rule) in [
        ("bash", touch("./made"), "--allow 'bash(touch *)'"),
        ("bash", json!({ "command": "mkdir -p made" }), "--allow 'bash(mkdir *)'"),
        ("write", json!({ "path": "docs/made.md", "content": "x" }), "--allow 'files(docs/made.md)'"),
        ("bash", json!({ "command": "mkdir ./made 2>&1 | tail -1" }), "--allow 'bash(mkdir *)'"),
        ("bash", json!({ "command": "touch x; mkdir made" }), "--write"),
    ] {
        for flags in [&[][..], &["--allow", "bash(echo *)"]] {
            let shell = Shell::new(&[("a.txt", "a\n")]);
            let refused = with_call(&shell, tool, args.clone(), flags);
            let next = strings(&refused.document()["next_actions"]);
            assert_eq!(refused.code, 12, "{refused:?}");
            let way = next.iter().find(|it| it.ends_with(rule)).unwrap_or_else(|| panic!("{rule}: {next:?}"));
            let done = typed(&shell, way);
            assert!(done.code == 0 && !shell.workspace().join("RULE").exists(), "{way}: {done:?}");
            assert!(
                shell.workspace().join("made").exists() || shell.workspace().join("docs/made.md").exists(),
                "{way}"
            );
        }
    }
    // A role and a deny rule are not opened by a flag, so none is named.
    let shell = Shell::new(&[]);
    let planned = with_call(&shell, "bash", touch("x"), &["--agent", "plan", "--write"]);
    let fix = planned.document()["remediation"].as_str().expect("a remedy").to_owned();
    assert!(fix.contains("have a role do it that may") && !fix.contains("--write"), "{planned:?}");
    assert_eq!(typed(&shell, "pixir agents show plan").code, 0);
    assert_eq!(shell.run(["permissions", "add", "bash(touch *)", "--deny"]).code, 0);
    let denied = with_call(&shell, "bash", touch("x"), &["--write"]);
    let fix = denied.document()["remediation"].as_str().expect("a remedy").to_owned();
    assert!(denied.code == 6 && fix.contains("pixir permissions list") && !fix.contains("--allow"), "{denied:?}");
}

/// Broken builds: a skill's name is text for a model; an unknown command is; a path is a command; a template is sent with holes.
#[test]
fn a_slash_is_a_command_or_text_by_its_first_word() {
    let skill = "---\nname: rn2\ndescription: Writes release notes\n---\nWrite RELEASE NOTES.\n";
    let files = [
        (".pixir/skills/rn2/SKILL.md", skill),
        (".pixir/prompts/review.md", "Review $1. Look for $2."),
        (".pixir/prompts/all.md", "Look at $ARGUMENTS now."),
        (".pixir/prompts/named.md", "Fix {{file}}, because {{reason}}."),
    ];
    let shell = Shell::new(&files);
    let server = Server::start((0..40).map(|_| text("Done.")).collect());
    let ask = |prompt: &str| {
        let before = server.bodies().len();
        let done = turn(&shell, &server, &["--trust-workspace", prompt]);
        let sent = server.bodies().get(before).map(Value::to_string);
        (done, sent)
    };
    for (prompt, wanted) in [
        ("/rn2 go", &["RELEASE NOTES", "go"][..]),
        ("/rn2", &["RELEASE NOTES", "Apply the skill rn2."]),
        ("/skill rn2 go", &["RELEASE NOTES", "go"]),
        ("/review a.rs bugs", &["Review a.rs. Look for bugs."]),
        ("/all", &["Look at  now."]),
        ("/all of it", &["Look at of it now."]),
        ("/tmp/x is broken", &["/tmp/x is broken"]),
        ("/tmp is full", &["/tmp is full"]),
        ("/etc/hosts", &["/etc/hosts"]),
        ("/usr", &["/usr"]),
        ("/* a comment */ what is it?", &["/* a comment */"]),
        ("/ what?", &["/ what?"]),
        ("//server/share is gone", &["//server/share"]),
        (" /nosuch is a route", &["/nosuch is a route"]),
        ("what is /nosuch?", &["what is /nosuch?"]),
    ] {
        let (done, sent) = ask(prompt);
        let sent = sent.unwrap_or_else(|| panic!("{prompt}: no request: {done:?}"));
        assert!(done.code == 0 && wanted.iter().all(|it| sent.contains(it)), "{prompt}: {wanted:?}: {sent}");
    }
    for (prompt, fix) in [
        ("/nosuch x", "a space before it"),
        ("/reveiw a.rs bugs", "did you mean /review?"),
        ("/rn3 go", "did you mean /rn2?"),
        ("/undoo", "did you mean /undo?"),
        ("/clear", "a space before it"),
        ("/review", "WORD1 WORD2"),
        ("/review a.rs", "WORD1 WORD2"),
        ("/named x", "WORD1 WORD2"),
        ("/settings", "pixir config show"),
        ("/agents", "pixir agents tree"),
        ("/mcp", "pixir mcp list"),
        ("/diff", "pixir sessions show last"),
    ] {
        let (done, sent) = ask(prompt);
        assert_eq!((done.code, sent), (2, None), "{prompt}: {done:?}");
        assert!(done.error()["remediation"].as_str().expect("a fix").contains(fix), "{prompt}: {done:?}");
    }
    let wrong = turn(&shell, &server, &["--trust-workspace", "/reveiw a.rs bugs"]).error();
    let again = strings(&wrong["error"]["details"]["next_actions"]);
    assert!(again.iter().any(|it| it.contains("'/review a.rs bugs'")), "{wrong}");
}

/// The address of a server of HTTP that answers everything in this way.
fn answering(status: &'static str, kind: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(&stream);
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).is_ok_and(|read| read > 0) && !line.trim().is_empty() {
                let value = line.to_lowercase().strip_prefix("content-length:").and_then(|it| it.trim().parse().ok());
                length = value.unwrap_or(length);
                line.clear();
            }
            let _ = reader.read_exact(&mut vec![0; length]);
            let size = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n"
            );
            let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
        }
    });
    address.to_string()
}

/// Broken builds: an error shows names of Rust types; a host that is not reached "does not speak the protocol"; `mcp add` and
/// `mcp test` end in silence on stderr.
#[test]
fn a_server_that_is_not_reached_is_named_with_its_cause() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let gone = answering("404 Not Found", "application/json", "{}");
    let broken = answering("503 Service Unavailable", "application/json", "{}");
    let page = answering("200 OK", "text/html", "<html>");
    for (url, code, says) in [
        (format!("http://{closed}/mcp"), 8, "could not be reached: Connection refused"),
        ("https://no-such-host.invalid/mcp".to_owned(), 8, "no-such-host.invalid could not be reached"),
        (format!("https://{gone}/mcp"), 8, "does not speak TLS"),
        (format!("http://{gone}/mcp"), 1, "it answered HTTP 404"),
        (format!("http://{broken}/mcp"), 1, "it answered HTTP 503"),
        (format!("http://{page}/mcp"), 1, "does not speak the protocol"),
    ] {
        for words in [&["mcp", "add", "far", &url][..], &["mcp", "test", "far"]] {
            let shell = Shell::new(&[]);
            if words[1] == "test" {
                shell.configure(&format!("[mcp.far]\nurl = \"{url}\"\n"));
            }
            let failed = shell.run(words.iter().chain(&["--json"]));
            let error = failed.error();
            let message = error["error"]["message"].as_str().expect("a message");
            assert!(failed.code == code && message.contains(says), "{words:?}: {failed:?}");
            assert_eq!(message.contains("speak the protocol"), says.contains("speak the protocol"), "{message}");
            let is_rust = ["::", "rmcp", "reqwest", "hyper", "Error {", "Some("].iter().any(|it| message.contains(it));
            assert!(!is_rust && error["remediation"] != "", "{error}");
            let plain = if words[1] == "test" { shell.run(words) } else { failed };
            assert!(!plain.stderr.is_empty(), "{plain:?}");
        }
    }
    let shell = Shell::new(&[]);
    for words in [&["auth", "status"][..], &["auth", "status", "--json"], &["auth", "status", "openai"]] {
        let status = shell.run(words);
        assert!(status.code == 4 && status.stderr.contains("pixir auth login"), "{status:?}");
    }
}

/// Broken build: only the name that the search shows reaches the tool, and any other costs the model a request.
#[test]
fn a_tool_under_search_is_called_by_the_name_that_the_model_uses() {
    let shell = Shell::new(&[]);
    let scripted = Scripted::new(&shell);
    let found = scripted.section("test", &["tools=echo,look"], "expose = \"search\"");
    let direct = scripted.section("near", &["tools=echo"], "expose = \"direct\"");
    shell.configure(&format!("{found}{direct}"));
    for server in ["test", "near"] {
        assert_eq!(shell.run(["mcp", "test", server]).code, 0);
    }
    for name in ["test__echo", "test.echo", "mcp__test__echo", "look", "near__echo", "near.echo", "mcp__near__echo"] {
        let argument = if name == "look" { "what" } else { "text" };
        let server = Server::start(vec![call("c1", name, json!({ argument: "hi" })), text("Done.")]);
        let done = turn(&shell, &server, &["--allow", "mcp(test)", "--allow", "mcp(near)", "go"]);
        let output = result(&shell)["output"].as_str().expect("text").to_owned();
        assert!(done.code == 0 && output.contains("hi"), "{name}: {output}");
    }
    // Without a rule it is refused as any other call of a tool of a server.
    let server = Server::start(vec![call("c1", "test__echo", json!({ "text": "hi" })), text("Done.")]);
    assert_eq!(turn(&shell, &server, &["go"]).code, 12);
    for (name, says) in [
        ("test__ecoh", "test__echo"),
        ("test__nothing", "search with mcp_find"),
        ("nowhere__echo", "is not offered"),
        ("echo", "is not offered"),
    ] {
        let server = Server::start(vec![call("c1", name, json!({ "text": "hi" })), text("Done.")]);
        turn(&shell, &server, &["--allow", "mcp(test)", "go"]);
        let output = result(&shell)["output"].as_str().expect("text").to_owned();
        assert!(output.contains(says), "{name}: {output}");
    }
    let server = Server::start(vec![call("c1", "test__echo", json!({ "text": "hi" })), text("Done.")]);
    turn(&shell, &server, &["--toolset", "run", "--allow", "mcp(test)", "go"]);
    let output = result(&shell)["output"].as_str().expect("text").to_owned();
    assert!(output.contains("mcp call test__echo JSON"), "{output}");
}

/// Broken builds: a flag that is given twice excludes itself; a number below zero is an unknown flag; a format that a command does
/// not print is replaced by another; a cast is written and nothing is said of it; a reading command refuses `--dry-run`.
#[test]
fn small_mistakes_are_answered_with_a_call_that_works() {
    let shell = Shell::new(&[("a.txt", "a\n")]);
    super::sessions::session(&shell);
    for (args, says) in [
        (&["-p", "-p", "x"][..], "pixir -p x"),
        (&["-p", "--print", "x"], "pixir -p x"),
        (&["-p", "x", "--model", "a", "--model", "b"], "pixir -p x --model a"),
        (&["-p", "x", "--json", "--format", "jsonl"], "pixir -p x --json"),
        (&["-p", "x", "--write", "--mode", "ask"], "pixir -p x --write"),
        (&["sessions", "list", "--limit", "-1"], "-1 is not in"),
        (&["sessions", "list", "--limit=-1"], "-1 is not in"),
        (&["-p", "x", "--max-rounds", "-3"], "--max-rounds"),
        (&["-p", "x", "--deadline", "-5"], "--deadline"),
        (&["run", "ls", "--timeout", "-5"], "it takes a whole number"),
        (&["trust", "--format", "tsv"], "pixir trust --list --format tsv"),
        (&["-p", "x", "--fallback-model", "y"], "fallback="),
        (&["-p", "x", "--oss"], "--provider ollama"),
        (&["-p", "x", "--search"], "pixir mcp add"),
        (&["-p", "x", "--mcp-config", "f"], "pixir mcp add"),
        (&["-p", "x", "--include-directories", "f"], "--add-dir FOLDER"),
        (&["-p", "x", "--skip-git-repo-check"], "without a repository"),
    ] {
        let ran = shell.run(args);
        assert!(ran.code == 2 && ran.stderr.contains(says), "{args:?}: {ran:?}");
        let has_number = args.iter().any(|it| it.parse::<i64>().is_ok());
        assert!(!(has_number && ran.stderr.contains("UNKNOWN_FLAG")), "{args:?}: {ran:?}");
    }
    for args in [&["sessions", "list"][..], &["tree", "last"], &["tools", "list"], &["skills", "list"], &["status"]] {
        let (plain, dry) = (shell.run(args), shell.run(args.iter().chain(&["--dry-run"])));
        assert_eq!((plain.code, dry.code, &dry.stderr), (0, 0, &plain.stderr), "{args:?}: {dry:?}");
    }
    let cast = shell.run(["replay", "last", "--cast", "talk.cast", "--json"]);
    assert_eq!((cast.code, &cast.document()["file"]), (0, &json!("talk.cast")), "{cast:?}");
    assert!(shell.workspace().join("talk.cast").exists());
    let adopt = shell.run(["agents", "adopt", "last", "--json"]);
    let next = strings(&adopt.error()["error"]["details"]["next_actions"]);
    assert!(adopt.code == 3 && next == ["pixir agents tree last"], "{adopt:?}");
    // A provider of this machine needs no key.
    let server = Server::start(Vec::new());
    let flags = server.flags(Dialect::Chat);
    let words: Vec<&str> = flags.iter().map(String::as_str).chain(["doctor", "--json"]).collect();
    let doctor = shell.command(words).env_remove("PIXIR_API_KEY").output().expect("it runs");
    let checks = ran(doctor).document()["checks"].clone();
    let of = |name: &str| checks.as_array().expect("checks").iter().find(|it| it["name"] == name).cloned();
    assert_eq!(of("credentials").expect("there")["status"], "pass", "{checks}");
}
