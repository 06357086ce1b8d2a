//! Compaction: on demand, at the threshold, and after a refused request.

use serde_json::json;

use super::turns::{assert_balanced, run};
use crate::driver::{Pixir, says};
use crate::server::{Dialect, Reply, Server, call, event, raw, text};
use crate::shell::{Shell, entries};

/// A window that the user believes to be large; only the server's refusal shows that it is not.
const ROOMY: &str = "[models.\"custom/m\"]\nwindow = 200000\n";

#[tokio::test]
async fn compact_shows_a_preview_and_enter_applies_it() {
    let long = "word ".repeat(10_000);
    let steps = vec![says(&long), says("Two."), says("Three."), says("Four.")];
    let mut pixir = Pixir::new(steps, &[]);
    for prompt in ["first request<Enter>", "second request<Enter>", "third request<Enter>"] {
        pixir.does(prompt).await;
    }
    let screen = pixir.does("/compact mind the tests<Enter>").await;
    assert!(screen.contains("Compact: ") && screen.contains("mind the tests"), "{screen}");
    assert!(!pixir.kinds().contains(&"history_compaction".to_owned()), "a dry run writes nothing");
    pixir.does("<Enter>").await;
    let log = pixir.log();
    let compaction = &log.iter().find(|e| e["type"] == "history_compaction").expect("applied")["data"];
    assert!(compaction["summary"].as_str().expect("text").contains("first request"));
    assert!(compaction["tokens_after"].as_u64() < compaction["tokens_before"].as_u64());
    let screen = pixir.does("fourth<Enter>").await;
    assert!(screen.contains("Four."), "{screen}");

    // A fork renumbers its Entries, and the compaction still keeps the same messages verbatim.
    let kept = |log: &[serde_json::Value]| {
        let compaction = log.iter().find(|e| e["type"] == "history_compaction").expect("there");
        let seq = compaction["data"]["kept_from_seq"].as_u64().expect("a number");
        log.iter().find(|e| e["seq"] == seq).expect("there")["data"]["text"].clone()
    };
    let before = kept(&pixir.log());
    pixir.does("/fork<Enter>").await;
    assert_eq!(kept(&pixir.log()), before);
}

#[test]
fn a_local_server_reports_its_window_and_compaction_uses_it() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    // `other` was started with 4,096 tokens: a long conversation is compacted before it is refused.
    let say = |words: &str| {
        raw(&event(&json!({ "choices": [{ "index": 0, "delta": { "content": words }, "finish_reason": "stop" }] })))
    };
    let server = Server::start(vec![say(&"word ".repeat(3_000)), say("short"), say("It fits.")]);
    let flags = ["--base-url", &server.url, "--dialect", "chat", "--model", "other", "--headless", "--json"];
    for words in [["one"].as_slice(), &["resume", "--last", "two"], &["resume", "--last", "three"]] {
        assert_eq!(shell.run([words, &flags].concat()).code, 0);
    }
    let log = entries(&shell.logs()[0]);
    let compaction = log.iter().find(|e| e["type"] == "history_compaction");
    assert_eq!(compaction.map(|e| &e["data"]["trigger"]), Some(&json!("threshold")));
}

#[test]
fn a_refused_request_is_compacted_and_sent_again() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        shell.configure(ROOMY);
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

/// Broken build: one that collects the facts of a summary by tool names and raw arguments. It knows `read`, `edit` and
/// `bash`, finds none of them here, and the summary forgets every file and command.
#[test]
fn a_compaction_of_the_run_toolset_keeps_the_files_read_and_the_commands() {
    let shell = Shell::new(&[("notes.txt", "alpha\n"), ("src/lib.rs", "fn one() {}\n"), ("old.txt", "x\n")]);
    shell.configure(ROOMY);
    let refused = json!({"error": {"code": "context_length_exceeded", "message": "too long"}}).to_string();
    let server = Server::start(vec![
        call("c1", "run", json!({ "command": "cat notes.txt | wc -l; grep fn src/lib.rs" })),
        call("c2", "run", json!({ "command": "cp old.txt new.txt && missing-program test" })),
        text(&"word ".repeat(10_000)),
        text("short"),
        Reply::Refuse { status: 400, headers: String::new(), body: refused },
        text("It fits now."),
    ]);
    let go_on = |args: &[&str]| {
        let mut all: Vec<String> = args.iter().map(|it| (*it).to_owned()).collect();
        all.extend(["--headless", "--json", "--toolset", "run", "--mode", "auto"].map(str::to_owned));
        all.extend(server.flags(Dialect::Chat));
        shell.run(all)
    };
    for args in [["first request"].as_slice(), &["resume", "--last", "second"], &["resume", "--last", "third"]] {
        let ran = go_on(args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let log = entries(&shell.logs()[0]);
    let compaction = log.iter().find(|e| e["type"] == "history_compaction").expect("it was compacted");
    let summary = compaction["data"]["summary"].as_str().expect("text");
    let section = |title: &str| {
        let (_, rest) = summary.split_once(&format!("\n## {title}\n")).unwrap_or_else(|| panic!("{title}:\n{summary}"));
        rest.split("\n\n## ").next().expect("a section").to_owned()
    };
    let read = section("Files read");
    assert!(read.contains("notes.txt") && read.contains("src/lib.rs"), "{summary}");
    assert!(section("Files changed").contains("new.txt"), "{summary}");
    let commands = section("Commands run, newest last");
    assert!(commands.contains("cp old.txt new.txt && missing-program test"), "{summary}");
    assert!(commands.contains("exit 127"), "{summary}");
    let sent = server.bodies().pop().expect("a request").to_string();
    assert!(sent.contains("src/lib.rs") && sent.contains("missing-program test"), "the model reads it");
}
