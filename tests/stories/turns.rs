//! Turns over HTTP, in every dialect.

use serde_json::{Value, json};

use crate::connected::ask;
use crate::server::{Dialect, Reply, Server, call, said, text};
use crate::shell::{Ran, Shell, entries, ran};

pub(super) fn run(shell: &Shell, server: &Server, dialect: Dialect, args: &[&str]) -> Ran {
    let mut all = server.flags(dialect);
    all.extend(args.iter().map(|a| (*a).to_owned()));
    shell.run(all)
}

/// The messages of a request, without the cache marks.
pub(super) fn conversation(dialect: Dialect, body: &Value) -> Vec<Value> {
    let key = if dialect == Dialect::Responses { "input" } else { "messages" };
    let mut items = body[key].as_array().expect("a conversation").clone();
    for item in &mut items {
        for block in item["content"].as_array_mut().into_iter().flatten() {
            block.as_object_mut().map(|block| block.remove("cache_control"));
        }
    }
    items
}

/// Checks that every call has its result, directly after the calls of its answer.
pub(super) fn assert_balanced(dialect: Dialect, body: &Value) {
    let mut open: Vec<Value> = Vec::new();
    for item in conversation(dialect, body) {
        match dialect {
            Dialect::Responses => match item["type"].as_str() {
                Some("function_call") => open.push(item["call_id"].clone()),
                Some("function_call_output") => {
                    let at = open.iter().position(|id| *id == item["call_id"]).expect("a result has its call");
                    open.remove(at);
                }
                _ => assert!(open.is_empty(), "something between a call and its result"),
            },
            Dialect::Chat => match item["role"].as_str() {
                Some("tool") => {
                    let at = open.iter().position(|id| *id == item["tool_call_id"]).expect("a result has its call");
                    open.remove(at);
                }
                _ => {
                    assert!(open.is_empty(), "something between a call and its result");
                    open.extend(item["tool_calls"].as_array().into_iter().flatten().map(|c| c["id"].clone()));
                }
            },
            // All results of an answer come first in the message right after it.
            Dialect::Anthropic => {
                for block in item["content"].as_array().expect("blocks") {
                    match block["type"].as_str() {
                        Some("tool_use") => open.push(block["id"].clone()),
                        Some("tool_result") => {
                            assert_eq!(item["role"], "user");
                            let at =
                                open.iter().position(|id| *id == block["tool_use_id"]).expect("a result has its call");
                            open.remove(at);
                        }
                        _ if item["role"] == "user" => {
                            assert!(open.is_empty(), "something between a call and its result")
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    assert!(open.is_empty(), "calls without a result: {open:?}");
}

#[test]
fn a_turn_with_parallel_calls_a_failure_and_an_edit() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("a.txt", "alpha\n"), ("b.txt", "beta\n")]);
        let both = Reply::Answer {
            text: "Let me look — 見る. ".into(),
            calls: vec![
                ("c1".into(), "read".into(), json!({"path": "a.txt"})),
                ("c2".into(), "read".into(), json!({"path": "b.txt"})),
            ],
        };
        let server = Server::start(vec![
            both,
            call("c3", "bash", json!({"command": "echo out; echo why >&2; exit 3"})),
            call("c4", "edit", json!({"path": "a.txt", "old_text": "alpha", "new_text": "omega"})),
            text("Done: **omega**."),
        ]);
        let ran = run(&shell, &server, dialect, &["--headless", "--json", "--write", "change it"]);
        let document = ran.document();
        assert_eq!(
            (ran.code, document["output"].as_str()),
            (0, Some("Done: **omega**.")),
            "{dialect:?}: {}",
            ran.stderr
        );
        assert_eq!(document["tool_calls"], 4);
        assert_eq!(
            document["usage"],
            json!({"input": 400, "cached": 160, "cache_written": 0, "output": 28, "reasoning": 8})
        );
        assert_eq!(shell.read("a.txt"), "omega\n");

        let log = entries(&shell.logs()[0]);
        let results: Vec<_> = log.iter().filter(|e| e["type"] == "tool_result").map(|e| &e["data"]).collect();
        assert_eq!(
            results.iter().map(|r| r["call_id"].as_str().expect("an id")).collect::<Vec<_>>(),
            ["c1", "c2", "c3", "c4"]
        );
        // A command that fails is information, not an error.
        assert_eq!(
            (results[2]["ok"].as_bool(), results[2]["exit_code"].as_i64(), results[2].get("error")),
            (Some(false), Some(3), None)
        );
        assert!(results[2]["output"].as_str().expect("text").starts_with("out\nwhy\n[exit:3 | "));
        assert!(log.iter().any(|e| e["type"] == "assistant_message" && e["data"]["text"] == "Let me look — 見る. "));

        let bodies = server.bodies();
        assert_eq!(bodies.len(), 4);
        for pair in bodies.windows(2) {
            assert_balanced(dialect, &pair[1]);
            let (before, after) = (conversation(dialect, &pair[0]), conversation(dialect, &pair[1]));
            assert_eq!(before, after[..before.len()], "{dialect:?}: each request begins with the previous one");
            assert_eq!(pair[0]["tools"], pair[1]["tools"]);
        }
    }
}

#[test]
fn without_write_a_change_is_refused_with_exit_12() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let server = Server::start(vec![
            call("c1", "edit", json!({"path": "a.txt", "old_text": "alpha", "new_text": "omega"})),
            text("I may not."),
        ]);
        let ran = run(&shell, &server, dialect, &["--headless", "--json", "change it"]);
        let document = ran.document();
        assert_eq!(
            (ran.code, document["status"].as_str(), document["output"].as_str()),
            (12, Some("completed"), Some("I may not."))
        );
        assert_eq!(document["denials"].as_array().expect("denials").len(), 1);
        assert_eq!(
            (ran.error()["code"].as_str(), document["code"].as_str()),
            (Some("MUTATION_BLOCKED"), Some("MUTATION_BLOCKED"))
        );
        assert_eq!(shell.read("a.txt"), "alpha\n");
        let asked = run(
            &shell,
            &Server::start(vec![call("c1", "bash", json!({"command": "touch x"})), text("No.")]),
            dialect,
            &["--headless", "--json", "--mode", "ask", "x"],
        );
        assert_eq!((asked.code, asked.document()["code"].as_str()), (13, Some("INPUT_REQUIRED")));
    }
}

#[test]
fn a_cut_stream_keeps_its_text_and_is_no_success() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        shell.configure("[requests]\nattempts = 1\n");
        let server = Server::start(vec![Reply::Cut { text: "Half an ans".into() }]);
        let ran = run(&shell, &server, dialect, &["--headless", "--json", "x"]);
        let document = ran.document();
        assert_eq!(
            (ran.code, document["status"].as_str(), document["output"].as_str()),
            (8, Some("partial_failed"), Some("Half an ans"))
        );
        assert_eq!(server.bodies().len(), 1, "one attempt is one request");
        let log = entries(&shell.logs()[0]);
        assert!(log.iter().any(|e| e["type"] == "assistant_message" && e["data"]["partial"] == true));
    }
}

#[test]
fn a_busy_server_is_retried_and_a_refusal_is_not() {
    let shell = Shell::new(&[]);
    let busy = Reply::Refuse {
        status: 429,
        headers: "retry-after-ms: 5\r\n".into(),
        body: json!({"error": {"message": "slow down"}}).to_string(),
    };
    let server = Server::start(vec![busy.clone(), busy, text("now")]);
    let ran = run(&shell, &server, Dialect::Chat, &["--headless", "--format", "jsonl", "x"]);
    assert_eq!((ran.code, server.bodies().len()), (0, 3), "{}", ran.stderr);
    let retries: Vec<_> = ran
        .lines()
        .into_iter()
        .filter(|l| l["type"] == "retry_scheduled")
        .map(|l| l["data"]["attempt"].clone())
        .collect();
    assert_eq!(retries, [json!(2), json!(3)]);

    for (status, code, exit) in
        [(401, "AUTH_REQUIRED", 4), (404, "MODEL_NOT_SUPPORTED", 10), (400, "PROVIDER_HTTP_ERROR", 1)]
    {
        let server = Server::start(vec![Reply::Refuse {
            status,
            headers: String::new(),
            body: json!({"error": {"message": "no \u{1b}[31m way"}}).to_string(),
        }]);
        let ran = run(&shell, &server, Dialect::Responses, &["--headless", "--json", "x"]);
        assert_eq!((ran.code, ran.error()["code"].as_str(), server.bodies().len()), (exit, Some(code), 1));
        assert!(!ran.stderr.contains('\u{1b}'));
        let folder = std::fs::read_dir(shell.home().join("log")).expect("there is a log folder");
        let output: String = folder.flatten().map(|f| std::fs::read_to_string(f.path()).expect("text")).collect();
        assert!(output.contains(code), "the log file contains the diagnostics: {output}");
    }
    // Where no server listens, the attempts end it, or the deadline when it comes first.
    let nowhere =
        ["--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--headless", "--json", "--deadline", "1", "x"];
    for (config, exit, code) in
        [("attempts = 1", 8, "NETWORK"), ("attempts = 2\nfirst_wait = 30.0", 14, "DEADLINE_REACHED")]
    {
        shell.configure(&format!("[requests]\n{config}\n"));
        let ran = shell.run(nowhere);
        assert_eq!((ran.code, ran.error()["code"].as_str()), (exit, Some(code)), "{config}");
    }
}

#[test]
fn invalid_calls_get_a_result_and_never_run() {
    let shell = Shell::new(&[("a.txt", "x")]);
    let odd = Reply::Answer {
        text: String::new(),
        calls: vec![
            ("same".into(), "read".into(), json!({"path": "a.txt"})),
            ("same".into(), "raed".into(), json!({"path": "a.txt"})),
            ("c3".into(), "write".into(), json!(["not", "an", "object"])),
            ("c4".into(), "read".into(), json!({})),
        ],
    };
    let server = Server::start(vec![odd, text("I see.")]);
    let ran = run(&shell, &server, Dialect::Responses, &["--headless", "--json", "--write", "x"]);
    assert_eq!(ran.document()["output"], "I see.");
    let log = entries(&shell.logs()[0]);
    let codes: Vec<_> = log
        .iter()
        .filter(|e| e["type"] == "tool_result")
        .map(|e| {
            (
                e["data"]["call_id"].as_str().expect("id").to_owned(),
                e["data"]["error"]["code"].as_str().unwrap_or("-").to_owned(),
            )
        })
        .collect();
    let row = |id: &str, code: &str| (id.to_owned(), code.to_owned());
    assert_eq!(
        codes,
        [row("same", "-"), row("same_2", "UNKNOWN_TOOL"), row("c3", "INVALID_ARGS"), row("c4", "INVALID_ARGS")]
    );
    assert_balanced(Dialect::Responses, &server.bodies()[1]);
}

#[test]
fn loopback_bypasses_the_proxy_and_adjacent_prompts_merge() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![Reply::Cut { text: String::new() }, text("Directly."), text("Again.")]);
    shell.configure("[requests]\nattempts = 1\n");
    let go = |words: &[&str]| {
        let mut args: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
        args.extend(server.flags(Dialect::Chat));
        args.extend(["--headless", "--json"].map(str::to_owned));
        let mut command = shell.command(args);
        let nowhere = ["http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"].map(|name| (name, "http://127.0.0.1:9"));
        ran(command.envs(nowhere).output().expect("it runs"))
    };
    assert_ne!(go(&["first"]).code, 0);
    assert_eq!(go(&["resume", "--last", "second"]).document()["output"], "Directly.");
    let messages = server.bodies()[1]["messages"].clone();
    assert_eq!(messages[1], json!({ "role": "user", "content": "first\n\nsecond" }));
    assert_eq!(messages.as_array().expect("messages").len(), 2);
}

#[test]
fn a_loop_of_calls_is_stopped_and_an_empty_answer_is_an_error() {
    let shell = Shell::new(&[]);
    let same = || call("c", "read", json!({ "path": "not there" }));
    let server = Server::start((0..40).map(|_| same()).collect());
    let ran = ask(&shell, &server, Dialect::Chat, &["x"]);
    assert_eq!((ran.document()["code"].as_str(), server.bodies().len()), (Some("ITERATION_CAP"), 6), "{}", ran.stderr);
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let server =
            Server::start(vec![said(dialect, &[]), call("c", "read", json!({ "path": "a.txt" })), said(dialect, &[])]);
        let empty = ask(&shell, &server, dialect, &["x"]);
        assert_eq!((empty.code, empty.document()["code"].as_str()), (14, Some("EMPTY_ANSWER")));
        let worked = ask(&shell, &server, dialect, &["y"]);
        assert_eq!(worked.code, 0, "after work there may be nothing to add: {}", worked.stderr);
    }
}

/// Broken build: one whose flags do not reach the Session's limits. The Turn ends completed.
#[test]
fn a_turn_that_has_spent_the_tokens_that_it_was_given_ends_incomplete() {
    let shell = Shell::new(&[]);
    let script = json!({ "steps": [
        { "calls": [{ "name": "ls", "args": {} }], "usage": { "input": 60, "output": 50 } },
        { "text": "Again." },
    ] });
    let script = shell.aside("script.json", &script.to_string());
    let provider = format!("script:{}", script.display());
    let with =
        |tokens: &str| shell.run(["--provider", &provider, "--headless", "--json", "--max-tokens", tokens, "look"]);
    let ran = with("110");
    assert_eq!((ran.code, ran.error()["code"].as_str()), (14, Some("BUDGET_REACHED")), "{}", ran.stderr);
    let remediation = ran.error()["remediation"].as_str().expect("text").to_owned();
    assert_eq!(remediation, "send a message to continue, or more --max-tokens N");
    let ran = with("111");
    assert_eq!((ran.code, ran.document()["output"].as_str()), (0, Some("Again.")), "{}", ran.stderr);
    for amount in ["0", "-1", "nan", "much"] {
        let ran = shell.run(["--headless", "--json", &format!("--max-cost={amount}"), "look"]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("use an amount above 0, like 0.50"), "{}", ran.stderr);
    }
}

/// Broken build: one that tells stderr only after a failure, or after all of stdout.
#[test]
fn the_model_reads_both_outputs_of_a_command_in_their_order() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![
        call("c1", "bash", json!({ "command": "echo out1; echo err1 >&2; echo out2; no-such-runner; echo done" })),
        call(
            "c2",
            "bash",
            json!({ "command": "for i in $(seq 1 9000); do echo \"test $i ok\"; done; echo '9000 passed'" }),
        ),
        call("c3", "grep", json!({ "pattern": "nowhere" })),
        text("Done."),
    ]);
    let ran = run(&shell, &server, Dialect::Chat, &["--headless", "--json", "--write", "look"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let log = entries(&shell.logs()[0]);
    let outputs: Vec<&str> = log
        .iter()
        .filter(|e| e["type"] == "tool_result")
        .map(|e| e["data"]["output"].as_str().expect("text"))
        .collect();
    assert!(outputs[0].starts_with("out1\nerr1\nout2\n"), "{}", outputs[0]);
    assert!(outputs[0].contains("no-such-runner: command not found\ndone\n[exit:0 | "), "{}", outputs[0]);
    assert!(outputs[1].starts_with("test 1 ok\n") && outputs[1].contains("\n9000 passed\n"), "{}", outputs[1]);
    assert!(outputs[2].starts_with("no match in 0 files\n[exit:1 | "), "{}", outputs[2]);
}

/// Broken build: one that takes more than the first line of `.git/HEAD`, whose text the repository chooses.
#[test]
fn the_model_is_told_the_branch_and_what_usually_tests_the_project() {
    let shell =
        Shell::new(&[("Cargo.toml", ""), ("Makefile", "test:\n"), (".git/HEAD", "ref: refs/heads/fix\nmore\n")]);
    let server = Server::start(vec![text("Done.")]);
    assert_eq!(run(&shell, &server, Dialect::Chat, &["--headless", "--json", "look"]).code, 0);
    let sent = server.bodies()[0].to_string();
    assert!(sent.contains(r"git: branch fix, no commit found, clean but for untracked files\n"), "{sent}");
    assert!(
        sent.contains(r"usual tests: cargo test, make test (pixir concludes this from the names of files)\n"),
        "{sent}"
    );
}
