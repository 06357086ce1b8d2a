//! The ledger: what takes up the window, and that it adds up.

use serde_json::{Value, json};

use super::turns::run;
use crate::server::{Dialect, Server, call, text};
use crate::shell::Shell;

fn ledger(shell: &Shell, seq: Option<u64>) -> Value {
    let seq = seq.map(|seq| format!("--seq={seq}"));
    shell.run(["inspect", "last", "--ledger", "--json"].into_iter().chain(seq.as_deref())).document()
}

fn sum(ledger: &Value, key: &str) -> u64 {
    ledger["segments"].as_array().expect("segments").iter().map(|it| it[key].as_u64().expect("a number")).sum()
}

/// Broken build: one that leaves a segment out, rounds each by itself, or estimates where the Provider has counted.
#[test]
fn the_segments_add_up_to_the_request_and_to_what_the_provider_counted() {
    let shell = Shell::new(&[("a.txt", "alpha\n"), ("AGENTS.md", "Be brief.\n")]);
    let server = Server::start(vec![
        call("c1", "read", json!({ "path": "a.txt" })),
        text("It says alpha."),
        text("Still alpha."),
        text("Bye."),
    ]);
    run(&shell, &server, Dialect::Responses, &["--headless", "--json", "what does it say"]);
    run(&shell, &server, Dialect::Responses, &["--headless", "--json", "--write", "resume", "last", "and now"]);
    let args = ["inspect", "last", "--json"];
    let inspected = shell.run(args).document();
    let ledger = ledger(&shell, None);
    assert_eq!(ledger["bytes"], inspected["bytes"]);
    assert_eq!(sum(&ledger, "bytes"), ledger["bytes"].as_u64().expect("a number"));
    assert_eq!(sum(&ledger, "tokens"), ledger["tokens"].as_u64().expect("a number"));
    let segments = ledger["segments"].as_array().expect("segments");
    let shown: Vec<(&str, &str, Option<u64>, bool)> = segments
        .iter()
        .map(|it| {
            let text = |key: &str| it[key].as_str().expect("a text");
            (text("kind"), text("name"), it["age"].as_u64(), it["in_prefix"].as_bool().expect("a bool"))
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("instructions", "instructions", None, true),
            ("tools", "tools", None, true),
            ("document", "environment", None, true),
            ("document", "AGENTS.md", None, true),
            ("turn", "turn 1", Some(1), true),
            ("turn", "turn 2", Some(0), true),
            ("change", "mode", Some(0), true),
            ("turn", "turn 2", Some(0), false),
            ("framing", "JSON around it", None, true),
        ]
    );
    let contents: Vec<&str> = segments[4]["contents"]
        .as_array()
        .expect("contents")
        .iter()
        .map(|it| it["kind"].as_str().expect("a text"))
        .collect();
    assert_eq!(contents, ["the user", "tool calls", "tool results", "answers"]);
    assert_eq!(ledger["tokens_from"], "provider");
    let reported = inspected["tokens_last_reported"].as_u64().expect("a number");
    let cached: u64 =
        segments.iter().filter(|it| it["in_prefix"] == true).map(|it| it["tokens"].as_u64().expect("n")).sum();
    assert!(cached <= reported && cached > 0, "{cached} of {reported}");
    // Before the first answer nothing is counted yet.
    let first = self::ledger(&shell, Some(1));
    assert_eq!(first["tokens_from"], "estimate");
    assert_eq!(sum(&first, "tokens"), first["tokens"].as_u64().expect("a number"));
    // The JSON around the texts is no text that a model reads.
    let most = first["bytes"].as_u64().expect("a number") / 4;
    assert!((most / 2..most).contains(&sum(&first, "tokens")), "{first}");
    assert_eq!(sum(&first, "bytes"), first["bytes"].as_u64().expect("a number"));
    let plain = shell.run(["inspect", "last", "--ledger"]);
    assert!(plain.stdout.contains("AGENTS.md") && plain.stdout.contains("whole request"), "{}", plain.stdout);
}
