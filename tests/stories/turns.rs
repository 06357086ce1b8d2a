use std::os::unix::process::CommandExt as _;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::server::{Dialect, Reply, Server, call, text};
use crate::shell::{Ran, Shell, entries, is_running, ran, wait_until};

fn run(shell: &Shell, server: &Server, dialect: Dialect, args: &[&str]) -> Ran {
    let mut all = server.flags(dialect);
    all.extend(args.iter().map(|a| (*a).to_owned()));
    shell.run(all)
}

/// The conversation of a request, without the marks that say what to cache.
fn conversation(dialect: Dialect, body: &Value) -> Vec<Value> {
    let key = if dialect == Dialect::Responses { "input" } else { "messages" };
    let mut items = body[key].as_array().expect("a conversation").clone();
    for item in &mut items {
        for block in item["content"].as_array_mut().into_iter().flatten() {
            block.as_object_mut().map(|block| block.remove("cache_control"));
        }
    }
    items
}

/// Every call has its result, right behind the calls of its answer.
fn assert_balanced(dialect: Dialect, body: &Value) {
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
fn a_turn_with_parallel_calls_a_failing_command_and_an_edit_is_done_with_write() {
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
        assert!(results[2]["output"].as_str().expect("text").starts_with("out\n[stderr] why\n[exit:3 | "));
        assert!(log.iter().any(|e| e["type"] == "assistant_message" && e["data"]["text"] == "Let me look — 見る. "));

        let bodies = server.bodies();
        assert_eq!(bodies.len(), 4);
        for pair in bodies.windows(2) {
            assert_balanced(dialect, &pair[1]);
            let (before, after) = (conversation(dialect, &pair[0]), conversation(dialect, &pair[1]));
            assert_eq!(before, after[..before.len()], "{dialect:?}: what was sent stays a prefix of what is sent next");
            assert_eq!(pair[0]["tools"], pair[1]["tools"]);
        }
    }
}

#[test]
fn without_write_a_change_is_refused_the_turn_goes_on_and_the_exit_code_says_so() {
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
fn a_resumed_session_goes_on_with_the_same_prefix() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let server = Server::start(vec![
            call("c1", "read", json!({"path": "a.txt"})),
            text("It says alpha."),
            text("Still alpha."),
        ]);
        run(&shell, &server, dialect, &["--headless", "--json", "what does it say"]);
        let mut args = vec!["resume".to_owned(), "--last".to_owned(), "and now?".to_owned()];
        args.extend(server.flags(dialect));
        args.extend(["--headless".into(), "--json".into()]);
        let ran = shell.run(args);
        assert_eq!(ran.document()["output"], "Still alpha.", "{}", ran.stderr);
        let bodies = server.bodies();
        let (before, after) = (conversation(dialect, &bodies[1]), conversation(dialect, &bodies[2]));
        assert_eq!(before, after[..before.len()]);
        assert_balanced(dialect, &bodies[2]);
        assert_eq!(shell.logs().len(), 1, "it is one session");
        let sessions = shell.run(["sessions", "list", "--json"]).document();
        assert_eq!(sessions["sessions"][0]["first_prompt"], "what does it say");
    }
}

#[test]
fn a_stream_that_breaks_off_keeps_what_came_and_never_ends_with_success() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![Reply::Cut { text: "Half an ans".into() }]);
        let ran = run(&shell, &server, dialect, &["--headless", "--json", "x"]);
        let document = ran.document();
        assert_eq!(
            (ran.code, document["status"].as_str(), document["output"].as_str()),
            (8, Some("partial_failed"), Some("Half an ans"))
        );
        assert_eq!(server.bodies().len(), 1, "what was shown is not asked for again");
        let log = entries(&shell.logs()[0]);
        assert!(log.iter().any(|e| e["type"] == "assistant_message" && e["data"]["partial"] == true));
    }
}

#[test]
fn a_server_that_is_busy_is_asked_again_and_one_that_refuses_is_not() {
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
        let told: String = folder.flatten().map(|f| std::fs::read_to_string(f.path()).expect("text")).collect();
        assert!(told.contains(code), "diagnostics are in the log file: {told}");
    }
    let nobody = shell.run([
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--model",
        "m",
        "--headless",
        "--json",
        "--deadline",
        "2",
        "x",
    ]);
    assert!(matches!(nobody.code, 8 | 14), "{}", nobody.code);
}

fn started(shell: &Shell, server: &Server, dialect: Dialect, args: &[&str]) -> Child {
    let mut all = server.flags(dialect);
    all.extend(args.iter().map(|a| (*a).to_owned()));
    shell.command(all).process_group(0).spawn().expect("it starts")
}

fn signalled(child: Child, signal: Signal) -> Ran {
    let id = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
    kill_process(id, signal).expect("the signal is sent");
    ran(child.wait_with_output().expect("it ends"))
}

#[test]
fn a_signal_in_mid_stream_ends_with_exactly_one_result() {
    for (signal, exit) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        for dialect in Dialect::ALL {
            let shell = Shell::new(&[]);
            let server = Server::start(vec![Reply::Stall { text: "So far".into() }]);
            let child = started(&shell, &server, dialect, &["--headless", "--format", "jsonl", "x"]);
            server.wait_for(1);
            wait_until("the turn is on record", || !shell.logs().is_empty());
            let ran = signalled(child, signal);
            let lines = ran.lines();
            assert_eq!((ran.code, lines.iter().filter(|l| l["type"] == "result").count()), (exit, 1), "{}", ran.stderr);
            let last = lines.last().expect("lines");
            assert_eq!(
                (last["type"].as_str(), last["status"].as_str(), last["exit_code"].as_i64()),
                (Some("result"), Some("interrupted"), Some(i64::from(exit)))
            );
        }
    }
}

#[test]
fn an_interrupt_in_mid_command_leaves_no_process_and_a_log_that_goes_on() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        let mark = format!("86{:04}", std::process::id() % 10_000 + u32::from(dialect as u8) * 7);
        // Children that ignore the polite signal, and one in the background.
        let command = format!("trap '' TERM; sleep {mark}1 & sleep {mark}2; sleep {mark}3");
        let server =
            Server::start(vec![call("c1", "bash", json!({"command": command, "timeout": 600})), text("On again.")]);
        let child = started(&shell, &server, dialect, &["--headless", "--json", "--write", "x"]);
        wait_until("the command runs", || is_running(&format!("sleep {mark}2")) || is_running(&format!("{mark}2")));
        let ran = signalled(child, Signal::INT);
        assert_eq!((ran.code, ran.document()["status"].as_str()), (130, Some("interrupted")), "{}", ran.stderr);
        wait_until("no process of the command is left", || !is_running(&mark));

        let mut args =
            vec!["resume".to_owned(), "--last".to_owned(), "go on".to_owned(), "--headless".into(), "--json".into()];
        args.extend(server.flags(dialect));
        assert_eq!(shell.run(args).document()["output"], "On again.");
        assert_balanced(dialect, &server.bodies()[1]);
    }
}

#[test]
fn an_interrupt_while_a_command_is_being_started_leaves_no_process_either() {
    let shell = Shell::new(&[]);
    let mark = format!("89{:04}", std::process::id() % 10_000);
    for round in 0..40 {
        let command = format!("trap '' TERM; sleep {mark}1 & sleep {mark}2");
        let server = Server::start(vec![call("c1", "bash", json!({"command": command}))]);
        let child = started(&shell, &server, Dialect::Responses, &["--headless", "--json", "--write", "x"]);
        server.wait_for(1);
        // From before the command is started to well after.
        std::thread::park_timeout(std::time::Duration::from_micros(300 * round));
        let ran = signalled(child, Signal::INT);
        assert_eq!(ran.code, 130, "{}", ran.stderr);
        wait_until("no process of the command is left", || !is_running(&mark));
    }
}

#[test]
fn calls_that_cannot_be_are_answered_and_never_run() {
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
fn a_deadline_holds_while_a_command_runs_too() {
    let shell = Shell::new(&[]);
    let mark = format!("88{:04}", std::process::id() % 10_000);
    let server = Server::start(vec![call("c1", "bash", json!({"command": format!("sleep {mark}")}))]);
    let ran = run(&shell, &server, Dialect::Chat, &["--headless", "--json", "--write", "--deadline", "1", "x"]);
    let document = ran.document();
    assert_eq!(
        (ran.code, document["status"].as_str(), document["code"].as_str()),
        (14, Some("incomplete"), Some("DEADLINE_REACHED"))
    );
    wait_until("no process of the command is left", || !is_running(&mark));
}

#[test]
fn who_answers_is_found_in_flags_then_configuration_then_the_environment() {
    let shell = Shell::new(&[]);
    let by_key = Server::start(vec![text("by key"), text("by config"), text("by variable")]);
    let ask = |variables: &[(&str, &str)]| {
        let mut command = shell.command(["--headless", "--json", "x"]);
        command
            .env("OPENAI_API_KEY", "sk-canary-test")
            .env("OPENAI_BASE_URL", &by_key.url)
            .envs(variables.iter().copied());
        ran(command.output().expect("it runs"))
    };
    assert_eq!(ask(&[]).document()["output"], "by key");
    let folder = shell.home().parent().expect("a folder").join(".config/pixir");
    std::fs::create_dir_all(&folder).expect("mkdir");
    let config = format!(
        "model = \"mine/small\"\n[providers.mine]\ndialect = \"chat\"\nbase_url = \"{}\"\napi_key_env = \"MY_KEY\"\n",
        by_key.url
    );
    std::fs::write(folder.join("config.toml"), config).expect("write");
    assert_eq!(ask(&[("MY_KEY", "k2")]).document()["output"], "by config");
    assert_eq!(ask(&[("PIXIR_MODEL", "openai/large")]).document()["output"], "by variable");
    assert_eq!(by_key.keys(), ["Bearer sk-canary-test", "Bearer k2", "Bearer sk-canary-test"]);
    let models: Vec<_> = by_key.bodies().iter().map(|b| b["model"].as_str().expect("a model").to_owned()).collect();
    assert_eq!(models, ["gpt-6.2-sol", "small", "large"]);
    let clear = shell.run(["--base-url", "http://10.0.0.1/v1", "--model", "m", "--headless", "--json", "x"]);
    assert_eq!(
        (clear.code, clear.error()["code"].as_str()),
        (10, Some("CONFIG_INVALID")),
        "a key never goes out in the clear"
    );
}

#[test]
fn a_conversation_that_is_too_long_is_compacted_and_the_same_request_is_sent_again() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        let refused = json!({"error": {"code": "context_length_exceeded", "message": "too long"}}).to_string();
        let too_long = Reply::Refuse { status: 400, headers: String::new(), body: refused };
        let server = Server::start(vec![text(&"word ".repeat(10_000)), text("short"), too_long, text("It fits now.")]);
        run(&shell, &server, dialect, &["--headless", "--json", "first request"]);
        let again = |prompt: &str| {
            let mut args =
                vec!["resume".to_owned(), "--last".into(), prompt.into(), "--headless".into(), "--json".into()];
            args.extend(server.flags(dialect));
            shell.run(args)
        };
        again("second request");
        let ran = again("third request");
        assert_eq!((ran.code, ran.document()["output"].as_str()), (0, Some("It fits now.")), "{}", ran.stderr);
        let log = entries(&shell.logs()[0]);
        let compaction = log.iter().find(|e| e["type"] == "history_compaction").expect("it was compacted");
        assert_eq!(compaction["data"]["trigger"], "overflow");
        let bodies = server.bodies();
        let sent = bodies[3].to_string();
        assert!(sent.len() < bodies[2].to_string().len() / 2);
        assert!(sent.contains("first request") && sent.contains("third request"));
        assert_balanced(dialect, &bodies[3]);
    }
}
