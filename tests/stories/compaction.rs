//! Compaction: on demand, at the threshold, and after a refused request.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use super::turns::{assert_balanced, run};
use crate::driver::{Pixir, says};
use crate::server::{Dialect, Reply, Server, call, event, raw, text};
use crate::shell::{Shell, entries, ran};

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
    assert!(screen.contains("Summed up") && screen.contains("mind the tests"), "{screen}");
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

/// The notes that a model writes.
fn notes() -> String {
    json!({
        "goal": "Rename the parser.", "state": "Half of the files are renamed.",
        "findings": ["The port is 8421."], "open_tasks": ["rename src/lex.rs"], "next_step": "rename src/lex.rs",
    })
    .to_string()
}

/// A conversation of two Turns, the second of which is long.
fn long_talk(shell: &Shell, server: &Server, dialect: Dialect) {
    run(shell, server, dialect, &["--headless", "--json", "first request"]);
    again(shell, server, dialect, "second request");
}

fn again(shell: &Shell, server: &Server, dialect: Dialect, prompt: &str) -> crate::shell::Ran {
    let mut args = vec!["resume".to_owned(), "--last".into(), prompt.into(), "--headless".into(), "--json".into()];
    args.extend(server.flags(dialect));
    shell.run(args)
}

/// Half of a window of 32,768 tokens is filled by 17,000 words, and the model can still read them at once.
const SMALL: &str = "[compaction]\nthreshold = 0.5\n[models.\"custom/m\"]\nwindow = 32768\n";

/// Broken build: one that makes every summary from the Log, or forgets what the model's request cost.
#[test]
fn the_model_writes_the_summary_when_the_window_fills() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        shell.configure(SMALL);
        let server = Server::start(vec![
            text("A short answer."),
            text(&format!("{} The port is 8421.", "word ".repeat(14_000))),
            text(&format!("Here are my notes:\n```json\n{}\n```", notes())),
            text("It fits."),
        ]);
        long_talk(&shell, &server, dialect);
        let ran = again(&shell, &server, dialect, "third request");
        assert_eq!((ran.code, ran.document()["output"].as_str()), (0, Some("It fits.")), "{}", ran.stderr);
        let log = entries(&shell.logs()[0]);
        let compaction = &log.iter().find(|e| e["type"] == "history_compaction").expect("it was compacted")["data"];
        assert_eq!((&compaction["strategy"], &compaction["model"]), (&json!("model"), &json!("m")));
        assert_eq!(compaction["trigger"], "threshold");
        assert_eq!(compaction["notes"]["findings"], json!(["The port is 8421."]));
        // What the request for the summary used counts in its Turn.
        let usage = log.iter().filter(|e| e["type"] == "provider_usage").count();
        assert_eq!(usage, 4, "one for each request");
        let bodies = server.bodies();
        assert!(bodies[2].to_string().contains("Answer with one JSON object"), "the third request asks for the notes");
        let sent = bodies[3].to_string();
        assert!(sent.contains("Half of the files are renamed.") && sent.contains("third request"), "{sent}");
        assert!(sent.len() < bodies[2].to_string().len() / 2);
        assert_balanced(dialect, &bodies[2]);
        assert_balanced(dialect, &bodies[3]);
    }
}

/// Broken builds: one that leaves the earlier summary out of the request for the next one; one that keeps the parts of the
/// notes to itself until they are complete.
#[test]
fn a_second_summary_is_written_from_the_first_and_its_parts_can_be_watched() {
    let shell = Shell::new(&[]);
    shell.configure(SMALL);
    let second = notes().replace("Half of the files", "All files").replace("8421", "8422");
    let server = Server::start(vec![
        text("A short answer."),
        text(&"word ".repeat(14_000)),
        text(&notes()),
        text(&"word ".repeat(14_000)),
        text(&second),
        text("It fits again."),
    ]);
    long_talk(&shell, &server, Dialect::Chat);
    again(&shell, &server, Dialect::Chat, "third request");
    let flags = server.flags(Dialect::Chat);
    let args = ["resume", "--last", "fourth request", "--headless", "--format", "jsonl"];
    let ran = shell.run(args.into_iter().chain(flags.iter().map(String::as_str)));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let deltas = ran.lines().into_iter().filter(|line| line["type"] == "summary_delta");
    let heard: String = deltas.map(|line| line["data"]["text"].as_str().expect("text").to_owned()).collect();
    assert_eq!(heard, second, "the parts are the notes");
    let bodies = server.bodies();
    assert!(bodies[4].to_string().contains("The port is 8421."), "the model reads its first notes: {}", bodies[4]);
    let sent = bodies[5].to_string();
    assert!(sent.contains("All files are renamed.") && sent.contains("The port is 8422."), "{sent}");
    assert!(!sent.contains("Half of the files"), "the first summary is replaced: {sent}");
    let log = entries(&shell.logs()[0]);
    let models = log.iter().filter(|e| e["type"] == "history_compaction" && e["data"]["strategy"] == "model");
    assert_eq!(models.count(), 2);
}

/// Broken build: one whose Turn fails with its summary, or that says nothing of it.
#[test]
fn a_summary_that_the_model_cannot_write_is_made_from_the_log() {
    let down = Reply::Refuse { status: 500, headers: String::new(), body: "{\"error\":{\"message\":\"down\"}}".into() };
    for (answer, why) in [(text("Sure, go on!"), "not as asked"), (down, "down")] {
        let shell = Shell::new(&[]);
        shell.configure(SMALL);
        let server = Server::start(vec![
            text("A short answer."),
            text(&format!("{} The port is 8421.", "word ".repeat(14_000))),
            answer,
            text("It fits."),
        ]);
        long_talk(&shell, &server, Dialect::Chat);
        let ran = again(&shell, &server, Dialect::Chat, "third request");
        assert_eq!((ran.code, ran.document()["output"].as_str()), (0, Some("It fits.")), "{}", ran.stderr);
        let log = entries(&shell.logs()[0]);
        let compaction = &log.iter().find(|e| e["type"] == "history_compaction").expect("it was compacted")["data"];
        assert_eq!(compaction["strategy"], "deterministic");
        assert!(compaction["limitations"][0].as_str().expect("said").contains(why), "{compaction}");
        let summary = compaction["summary"].as_str().expect("text");
        assert!(summary.contains("first request") && summary.contains("The port is 8421."), "{summary}");
    }
}

/// Broken build: one that writes on a dry run, or needs a terminal.
#[test]
fn pixir_compact_shows_what_it_would_do_and_does_it() {
    let shell = Shell::new(&[]);
    shell.configure(SMALL);
    let server = Server::start(vec![text(&"word ".repeat(10_000)), text("short"), text(&notes())]);
    long_talk(&shell, &server, Dialect::Chat);
    let before = std::fs::read(&shell.logs()[0]).expect("the log");
    let dry = shell.run(["compact", "last", "--dry-run", "--json"]);
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    let preview = &dry.document()["compaction"];
    assert_eq!(preview["strategy"], "deterministic");
    assert!(preview["tokens_after"].as_u64() < preview["tokens_before"].as_u64());
    assert_eq!(std::fs::read(&shell.logs()[0]).expect("the log"), before, "a dry run writes nothing");
    assert_eq!(server.bodies().len(), 2, "and asks no model");
    let mut args = vec!["compact".to_owned(), "last".into(), "--focus".into(), "the port".into()];
    args.extend(server.flags(Dialect::Chat));
    let ran = shell.run(args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("Half of the files are renamed."), "{}", ran.stdout);
    assert!(server.bodies()[2].to_string().contains("mind this in the notes: the port"));
    let nothing = shell.run(["compact", "last", "--dry-run", "--json"]);
    assert_eq!(nothing.error()["code"], "NOTHING_TO_DO", "{}", nothing.stderr);
}

/// Broken build: one whose `recall` leaves out the Session that it runs in.
#[test]
fn recall_finds_what_a_compaction_has_replaced() {
    let shell = Shell::new(&[]);
    shell.configure(&SMALL.replace("[compaction]", "[compaction]\nsummary = \"pixir\""));
    let server = Server::start(vec![
        text(&format!("The secret colour is turquoise. {}", "more ".repeat(1_000))),
        text(&"word ".repeat(14_000)),
        call("c1", "recall", json!({ "query": "secret colour" })),
        text("It is turquoise."),
    ]);
    long_talk(&shell, &server, Dialect::Chat);
    let ran = again(&shell, &server, Dialect::Chat, "which colour was it?");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let log = entries(&shell.logs()[0]);
    let summary = log.iter().find(|e| e["type"] == "history_compaction").expect("compacted")["data"]["summary"].clone();
    assert!(!summary.as_str().expect("text").contains("turquoise"), "only recall can find it");
    let result = log.iter().find(|e| e["type"] == "tool_result").expect("a result");
    assert!(result["data"]["output"].as_str().expect("text").contains("turquoise"), "{result}");
}

/// Broken builds: one whose `recall` leaves out what a compaction replaced; one whose second summary forgets the first.
#[test]
fn ten_facts_of_early_answers_are_known_after_many_compactions() {
    let shell = Shell::new(&[]);
    let names = ["ada", "bell", "cobol", "dart", "erlang", "forth", "go", "haskell", "idris", "julia"];
    let name = |n: usize| names.get(n).map_or_else(|| format!("other-{n}"), |name| (*name).to_owned());
    let port = |n: usize| 20_000 + n * 7;
    let tasks = 60;
    let mut replies: Vec<Reply> =
        (0..tasks).map(|n| text(&format!("{} listens on {}. {}", name(n), port(n), "filler ".repeat(700)))).collect();
    let calls =
        (0..10).map(|n| (format!("c{n}"), "recall".to_owned(), json!({ "query": format!("{} listens", name(n)) })));
    replies.push(Reply::Answer { text: String::new(), calls: calls.collect() });
    replies.push(text("I know them all."));
    let server = Server::counting(replies, 8_192);
    let flags =
        ["--base-url", &server.url, "--dialect", "chat", "--model", "other", "--config", "compaction.summary=pixir"];
    let args = flags.into_iter().chain(["--headless", "--input", "jsonl"]);
    let mut child = shell.command(args).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    for n in 0..=tasks {
        writeln!(stdin, "{}", json!({ "id": n, "type": "prompt", "text": format!("which port has {}?", name(n)) }))
            .expect("it reads");
    }
    drop(stdin);
    let ran = ran(child.wait_with_output().expect("it ends"));
    assert_eq!((ran.code, ran.lines().last().expect("a result")["output"].as_str()), (0, Some("I know them all.")));
    let log = entries(&shell.logs()[0]);
    let compactions = log.iter().filter(|e| e["type"] == "history_compaction").count();
    assert!(compactions >= 10, "{compactions}");
    let results: Vec<&serde_json::Value> = log.iter().filter(|e| e["type"] == "tool_result").collect();
    let sent = server.bodies().pop().expect("a request").to_string();
    for (n, result) in results.iter().enumerate() {
        let output = result["data"]["output"].as_str().expect("text");
        let fact = format!("{} listens on {}", name(n), port(n));
        assert!(output.contains(&fact) && sent.contains(&port(n).to_string()), "{fact}: {output}");
    }
    assert_eq!(results.len(), 10);
}
