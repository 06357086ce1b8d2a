//! The compaction before it is applied: its lists, its summary, and what the next request is made of.

use serde_json::{Value, json};

use super::turns::run;
use crate::driver::{Pixir, says};
use crate::pty::Terminal;
use crate::server::{Act, Dialect, Gate, HEAD, Part, Reply, Server, begin, call, end, part, text};
use crate::shell::{Shell, entries};

/// The notes that a model writes.
const NOTES: &str =
    r#"{"goal": "Rename the parser.", "state": "Half of the files are renamed.", "findings": ["The port is 8421."]}"#;

/// A conversation whose older part is long, and a terminal in it.
fn in_a_long_talk(shell: &Shell, server: &Server, columns: u16, rows: u16) -> Terminal {
    let terminal = after_a_long_talk(shell, server, &[], columns, rows);
    terminal.wait_for("/ commands");
    terminal
}

fn after_a_long_talk(shell: &Shell, server: &Server, set: &[(&str, &str)], columns: u16, rows: u16) -> Terminal {
    shell.configure("[models.\"custom/m\"]\nwindow = 65536\n");
    let flags = server.flags(Dialect::Chat);
    run(shell, server, Dialect::Chat, &["--headless", "--json", "first request: the colour is turquoise"]);
    for prompt in ["second request", "third request"] {
        let mut args: Vec<&str> = vec!["resume", "--last", prompt, "--headless", "--json"];
        args.extend(flags.iter().map(String::as_str));
        assert_eq!(shell.run(args).code, 0);
    }
    let mut args: Vec<&str> = vec!["resume", "--last"];
    args.extend(flags.iter().map(String::as_str));
    args.extend(["--config", "models.\"custom/m\".window=65536"]);
    Terminal::of(shell, env!("CARGO_BIN_EXE_pixir").as_ref(), &args, set, columns, rows)
}

fn talk() -> Vec<Reply> {
    vec![
        call("c1", "read", json!({ "path": "notes.txt" })),
        text(&format!("{} The port is 8421.", "word ".repeat(8_000))),
        text(&format!("{} That was the second answer.", "more ".repeat(6_000))),
        text("The third answer."),
    ]
}

/// An answer that comes in two parts.
fn in_two_parts(first: &str, gate: &Gate, second: &str) -> Reply {
    let dialect = Dialect::Chat;
    let opening = format!("{HEAD}{}{}", begin(dialect).concat(), part(dialect, 0, Part::Text(first)).concat());
    let rest = format!("{}{}", part(dialect, 0, Part::Text(second)).concat(), end(dialect, false).concat());
    Reply::Raw(vec![Act::Send(opening.into_bytes()), Act::Until(gate.clone()), Act::Send(rest.into_bytes())])
}

fn compaction(shell: &Shell) -> Option<Value> {
    let log = entries(&shell.logs()[0]);
    log.into_iter().find(|it| it["type"] == "history_compaction").map(|it| it["data"].clone())
}

/// Broken builds: one that shows the summary only when it is complete; one that asks the model again when it is applied;
/// one whose edited summary, moved message or dropped call is not what the next request has.
#[test]
fn i_watch_the_summary_being_written_edit_it_move_entries_and_the_model_reads_exactly_that() {
    let shell = Shell::new(&[("notes.txt", "the secret is SESAME\n")]);
    let gate = Gate::default();
    let (first, second) = NOTES.split_at(NOTES.find("\"findings\"").expect("there"));
    let mut replies = talk();
    replies.push(in_two_parts(first, &gate, second));
    replies.push(text("The fourth answer."));
    let server = Server::start(replies);
    let mut terminal = in_a_long_talk(&shell, &server, 120, 40);
    terminal.send("/compact\r");
    // The lists, and what the model has written so far.
    let screen = terminal.wait_for("Half of the files");
    assert!(screen.contains("Kept word for word") && screen.contains("Summed up"), "{screen}");
    assert!(screen.contains("writing…") && !screen.contains("8421."), "{screen}");
    gate.open();
    terminal.wait_for("The port is 8421.");
    terminal.wait_for("written by the model");
    assert!(compaction(&shell).is_none(), "nothing is recorded before it is applied");
    // Two turns are kept: four entries. The fifth is the first request, which goes over "Dropped" to "Kept".
    terminal.send("jjjj  ");
    terminal.wait_that("five entries are kept", |screen| count(screen, "Kept word for word") == Some(5));
    // The first of the summed up is its call, which is dropped with its result.
    terminal.send("jjjjj ");
    terminal.wait_that("one entry is dropped", |screen| count(screen, "Dropped") == Some(1));
    terminal.wait_for("written before you moved entries");
    // Everything that is typed goes into the field: q does not close, r does not ask again.
    terminal.send("e");
    terminal.wait_for("you are editing it");
    terminal.send("query the registry first: ");
    terminal.send("\x1b");
    terminal.wait_for("edited by you");
    terminal.press_until("\r", "it is applied", || compaction(&shell).is_some());
    terminal.wait_for("goes back to before it");
    terminal.send("fourth request\r");
    terminal.wait_for("The fourth answer.");
    let bodies = server.bodies();
    assert_eq!(bodies.len(), 6, "the model was asked for one summary");
    let sent = bodies[5].to_string();
    assert!(sent.contains("query the registry first: ## Notes"), "{sent}");
    assert!(sent.contains("Half of the files are renamed.") && sent.contains("fourth request"), "{sent}");
    assert!(sent.contains("first request: the colour is turquoise"), "the moved message is kept: {sent}");
    assert!(!sent.contains("SESAME") && !sent.contains("word word"), "{sent}");
    assert!(sent.contains("That was the second answer.") && sent.contains("third request"), "{sent}");
    let recorded = compaction(&shell).expect("applied");
    assert_eq!(
        (&recorded["edited"], &recorded["strategy"], &recorded["model"]),
        (&json!(true), &json!("model"), &json!("m"))
    );

    // The card in the transcript opens the same view, which changes nothing.
    terminal.send("\t[c\r");
    let screen = terminal.wait_for("To undo it, go back to before it in the tree");
    assert!(screen.contains("edited by you") && screen.contains("query the registry first"), "{screen}");
    assert_eq!((count(&screen, "Kept word for word"), count(&screen, "Dropped")), (Some(5), Some(1)), "{screen}");
    terminal.send(" e\x1b");
    terminal.wait_that("it is closed", |screen| !screen.contains("To undo it"));
    terminal.send("\x1b");
    terminal.wait_for("/ commands");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// The number beside the head of a list.
fn count(screen: &str, list: &str) -> Option<usize> {
    let line = screen.lines().find(|line| line.contains(list))?;
    let rest = line.split(list).nth(1)?.trim_start();
    rest.split_whitespace().next()?.parse().ok()
}

/// Broken build: one whose Esc closes the preview while the model writes, or that records a compaction.
#[test]
fn escape_stops_the_model_and_leaves_me_with_the_summary_of_pixir() {
    let shell = Shell::new(&[("notes.txt", "x\n")]);
    let gate = Gate::default();
    let mut replies = talk();
    replies.push(in_two_parts("{\"goal\": \"Rename", &gate, " it.\"}"));
    replies.push(text("Still here."));
    let server = Server::start(replies);
    let mut terminal = in_a_long_talk(&shell, &server, 60, 20);
    terminal.send("/compact\r");
    // On a small screen the lists come first, the summary is one Tab away.
    terminal.wait_for("Kept word for word");
    terminal.send("\t");
    terminal.wait_for("Rename");
    terminal.send("\x1b");
    terminal.wait_for("you stopped the model");
    let screen = terminal.wait_for("Turns so far, oldest first");
    assert!(!screen.contains("not in your context"), "words for the model:\n{screen}");
    gate.open();
    terminal.send("\x1b");
    terminal.wait_that("it is closed", |screen| !screen.contains("you stopped the model"));
    assert!(compaction(&shell).is_none(), "nothing was compacted");
    terminal.send("fourth request\r");
    terminal.wait_for("Still here.");
    assert!(server.bodies()[5].to_string().contains("word word"), "the conversation is as it was");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// Broken build: one that shows an error.
#[tokio::test]
async fn nothing_to_compact_is_a_plain_notice() {
    let mut pixir = Pixir::new(vec![says("Short.")], &[]);
    pixir.does("hello<Enter>").await;
    let screen = pixir.does("/compact<Enter>").await;
    assert!(screen.contains("\n there is nothing to compact") && !screen.contains(['✗', '■']), "{screen}");
}

/// Broken builds: one whose numbers are not those of `pixir inspect --ledger`; one that still sends what was dropped; one
/// that cannot take it back.
#[test]
fn the_context_lists_what_the_next_request_has_and_i_drop_the_largest_part() {
    let shell = Shell::new(&[("notes.txt", "x\n")]);
    let mut replies = talk();
    replies.extend(["The fourth answer.", "The fifth answer."].map(text));
    let server = Server::start(replies);
    let mut terminal = in_a_long_talk(&shell, &server, 120, 40);
    terminal.send("fourth request\r");
    terminal.wait_for("The fourth answer.");
    terminal.wait_for("/ commands");
    terminal.send("/context\r");
    terminal.wait_for("system prompt");
    let args = ["inspect", "last", "--ledger", "--json"];
    let ledger = shell.run(args).document();
    let tokens = ledger["tokens"].as_u64().expect("a number");
    let screen = terminal.screen();
    assert!(screen.contains(&format!("{} of 65.5k tokens", short(tokens))), "{tokens}: {screen}");
    for kind in ["tools", "document", "message", "answer", "call", "result"] {
        assert!(screen.lines().any(|line| line.contains(kind)), "{kind}: {screen}");
    }
    // By size, the largest first; it is the first answer.
    terminal.send("sgd");
    terminal.wait_for("✗ answer");
    terminal.send("d");
    terminal.wait_that("it is sent again", |screen| !screen.contains("✗ answer"));
    terminal.send("d");
    terminal.wait_for("✗ answer");
    terminal.send("\x1b");
    terminal.wait_that("it is closed", |screen| !screen.contains("system prompt"));
    terminal.send("fifth request\r");
    terminal.wait_for("The fifth answer.");
    terminal.wait_for("/ commands");
    let sent = server.bodies()[5].to_string();
    assert!(!sent.contains("word word") && sent.contains("The user dropped this message"), "{sent}");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// Broken builds: one that shows an error; one that drops it only after the Turn; one that says nothing.
#[test]
fn what_i_drop_while_a_turn_runs_is_left_out_of_its_next_request() {
    let shell = Shell::new(&[("notes.txt", "x\n")]);
    let gate = Gate::default();
    let mut replies = talk();
    let dialect = Dialect::Chat;
    let args = json!({ "path": "notes.txt" });
    let held = Part::Call("c9", "read", &args);
    let opening = format!("{HEAD}{}", begin(dialect).concat());
    let rest = format!("{}{}", part(dialect, 0, held).concat(), end(dialect, true).concat());
    replies.push(Reply::Raw(vec![
        Act::Send(opening.into_bytes()),
        Act::Until(gate.clone()),
        Act::Send(rest.into_bytes()),
    ]));
    replies.push(text("The fourth answer."));
    let server = Server::start(replies);
    let mut terminal = in_a_long_talk(&shell, &server, 120, 40);
    terminal.send("fourth request\r");
    terminal.wait_that("the request is sent", |_| server.bodies().len() == 5);
    terminal.send("/context\r");
    terminal.wait_for("system prompt");
    terminal.send("sgd");
    terminal.wait_for("✗ answer");
    let screen = terminal.wait_for("holds from its next request on");
    assert!(!screen.contains("not possible"), "{screen}");
    gate.open();
    terminal.send("\x1b");
    terminal.wait_for("The fourth answer.");
    let bodies = server.bodies();
    assert!(bodies[4].to_string().contains("word word"), "that request was under way");
    assert!(!bodies[5].to_string().contains("word word"), "the next one of the same turn is without it");
    terminal.wait_for("/ commands");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// Broken builds: one that leaves the caret behind, so that a screen reader does not hear the chosen row; one that draws frames.
#[test]
fn a_screen_reader_reads_the_context_and_a_compaction_row_by_row() {
    let shell = Shell::new(&[("notes.txt", "x\n")]);
    let mut replies = talk();
    replies.push(text(NOTES));
    let server = Server::start(replies);
    let mut terminal = after_a_long_talk(&shell, &server, &[("PIXIR_SCREEN_READER", "1")], 100, 30);
    let is_plain = |screen: &str| !screen.contains(['│', '╭', '─', '┃']);
    terminal.wait_for("Ask pixir");
    terminal.send("/context\r");
    let screen = terminal.wait_for("system prompt");
    assert!(is_plain(&screen), "{screen}");
    terminal.wait_for_cursor_on("system prompt");
    terminal.send("sg");
    terminal.wait_for_cursor_on("answer");
    terminal.send("\x1b");
    terminal.wait_that("it is closed", |screen| !screen.contains("system prompt"));
    terminal.send("/compact\r");
    let screen = terminal.wait_for("written by the model");
    assert!(is_plain(&screen) && screen.contains("Kept word for word"), "{screen}");
    terminal.send("G");
    terminal.wait_for_cursor_on("request");
    terminal.send("\x1b");
    terminal.wait_that("it is closed", |screen| !screen.contains("Kept word for word"));
    assert!(compaction(&shell).is_none());
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// As the screen shortens a number.
fn short(n: u64) -> String {
    if n < 1_000 { n.to_string() } else { format!("{:.1}k", n as f64 / 1e3).replace(".0k", "k") }
}
