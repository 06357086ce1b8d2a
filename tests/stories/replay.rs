//! Replay: on the screen, and as a cast.

use std::fs;

use serde_json::{Value, json};

use crate::pty::Terminal;
use crate::shell::{Shell, entries};

/// A session of two turns; the second writes a file.
fn session() -> Shell {
    let shell = Shell::new(&[("main.rs", "fn main() {}\n")]);
    for (prompt, call, answer) in [
        ("what is in it?", json!({"name": "read", "args": {"path": "main.rs"}}), "It is **empty**."),
        ("write b", json!({"name": "write", "args": {"path": "b.rs", "content": "pub fn b() {}\n"}}), "Written."),
    ] {
        let script = shell.aside("talk.json", &json!({"steps": [{"calls": [call]}, {"text": answer}]}).to_string());
        let provider = format!("script:{}", script.display());
        let mut args = vec!["--provider", &provider, "--headless", "--write"];
        if prompt == "write b" {
            args.extend(["resume", "last"]);
        }
        args.push(prompt);
        let ran = shell.run(args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    shell
}

#[test]
fn replay_steps_forwards_and_back() {
    let shell = session();
    let log = fs::read_to_string(&shell.logs()[0]).expect("read");
    let mut terminal = Terminal::start(&shell, &["replay", "last", "--step"], 80, 24);
    let screen = terminal.wait_for("turn 1 of 2");
    assert!(screen.contains("❯ what is in it?") && !screen.contains("main.rs"), "{screen}");
    terminal.send("\x1b[C");
    terminal.wait_for("● Read main.rs");
    terminal.send("\x1b[F");
    let screen = terminal.wait_for("1 + pub fn b() {}");
    assert!(screen.contains("Written.") && screen.contains("turn 2 of 2"), "{screen}");
    terminal.send("{{");
    terminal.wait_that("is back at the first prompt", |screen| {
        screen.contains("turn 1 of 2") && !screen.contains("read main.rs")
    });
    // An action that would change the Session is refused with a notice.
    terminal.send("\x1b[Z");
    terminal.wait_for("this is a replay");
    // Nor is it offered.
    terminal.send("\x14");
    let screen = terminal.wait_for("Enter go here · / search · Esc close");
    assert!(!screen.contains("fork") && !screen.contains("pin"), "{screen}");
    terminal.send("\x1b");
    terminal.wait_that("the tree is closed", |screen| !screen.contains("Esc close"));
    terminal.send("\x10");
    let screen = terminal.wait_for("/outline");
    assert!(screen.contains("/diff") && !screen.contains("/model") && !screen.contains("take-back"), "{screen}");
    terminal.send("\x1b");
    terminal.wait_that("the palette is closed", |screen| !screen.contains("Palette"));
    terminal.send("\x1bOP");
    let screen = terminal.wait_for("In a replay");
    assert!(!screen.contains("Shift+Tab") && !screen.contains("In the composer"), "{screen}");
    terminal.send("\x1b");
    terminal.wait_that("the help is closed", |screen| !screen.contains("In a replay"));
    // A replay has no composer: typed and pasted text is ignored, and the Session gets no Input.
    terminal.send("\x1b[200~hello\x1b[201~");
    terminal.settle();
    terminal.send("zzz");
    terminal.send("\x1b[F");
    let screen = terminal.wait_for("Written.");
    assert!(!screen.contains("hello") && !screen.contains("zzz"), "{screen}");
    terminal.send("q");
    let left = terminal.end();
    assert_eq!(left.code, 0);
    left.assert_sane();
    assert_eq!(fs::read_to_string(&shell.logs()[0]).expect("read"), log, "a replay does not change the log");
}

#[test]
fn replay_plays_and_starts_at_the_given_entry() {
    let shell = session();
    let mut terminal = Terminal::start(&shell, &["replay", "last", "--speed", "64"], 80, 24);
    terminal.wait_that("has played to its end", |screen| screen.contains("Written.") && screen.contains("||"));
    terminal.send("q");
    assert_eq!(terminal.end().code, 0);
    let answer = entries(&shell.logs()[0])
        .iter()
        .find(|entry| entry["type"] == "assistant_message")
        .and_then(|entry| entry["seq"].as_u64())
        .expect("an answer");
    let mut terminal = Terminal::start(&shell, &["replay", "last", "--at", &answer.to_string()], 80, 24);
    let screen = terminal.wait_for("It is empty.");
    assert!(!screen.contains("write b"), "{screen}");
    // The bar is clicked at its end.
    terminal.send("\x1b[<0;66;22M\x1b[<0;66;22m");
    terminal.wait_for("Written.");
    terminal.send("q");
    assert_eq!(terminal.end().code, 0);
}

#[test]
fn a_cast_shows_the_session_from_start_to_end() {
    let shell = session();
    let cast = shell.workspace().join("talk.cast");
    let ran = shell.run(["replay", "last", "--cast", "talk.cast", "--size", "80x24"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = fs::read_to_string(&cast).expect("read");
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("every line is JSON"));
    let header = lines.next().expect("a header");
    assert_eq!((&header["version"], &header["width"], &header["height"]), (&json!(2), &json!(80), &json!(24)));
    let [rows, columns] = [24, 80].map(|n| std::num::NonZero::new(n).expect("a size"));
    let mut screen = vt100::Parser::new(rows, columns, 0);
    let mut at = 0.0;
    let mut first = None;
    for line in lines {
        let time = line[0].as_f64().expect("a time");
        assert!(time >= at && line[1] == "o", "{line}");
        at = time;
        screen.process(line[2].as_str().expect("output").as_bytes());
        first.get_or_insert_with(|| screen.screen().contents());
    }
    let first = first.expect("there are frames");
    assert!(first.contains("❯ what is in it?") && !first.contains("main.rs"), "{first}");
    let last = screen.screen().contents();
    assert!(last.contains("Written.") && last.contains("1 + pub fn b() {}"), "{last}");
    let again = shell.run(["replay", "last", "--cast", "talk.cast"]);
    assert!(again.code != 0 && fs::read_to_string(&cast).expect("read") == text, "an existing file is not overwritten");
    for wrong in [["--speed", "0"], ["--size", "big"]] {
        let ran = shell.run(["replay", "last", "--cast", "other.cast", wrong[0], wrong[1]]);
        assert_eq!((ran.code, shell.workspace().join("other.cast").exists()), (2, false), "{}", ran.stderr);
    }
    let output = shell.run(["replay", "last", "--cast", "-", "--size", "80x24"]);
    assert_eq!(output.stdout.lines().count(), text.lines().count(), "- is stdout: {}", output.stderr);
    assert!(!shell.workspace().join("-").exists());
    let beyond = shell.run(["replay", "last", "--at", "999"]);
    assert!(beyond.code != 0 && beyond.stderr.contains("999"), "{}", beyond.stderr);
    let blind = shell.run(["replay", "last", "--step"]);
    assert!(blind.code == 2 && blind.stderr.contains("no terminal"), "{}", blind.stderr);
    assert!(shell.run(["replay"]).stdout.contains("> what is in it?"), "without a terminal it is text");
}

#[test]
fn replay_shows_why_a_turn_failed() {
    let shell = Shell::new(&[]);
    let steps = json!({ "steps": [{ "error": { "code": "INVALID_RESPONSE", "message": "it is broken" } }] });
    let script = shell.aside("broken.json", &steps.to_string());
    let provider = format!("script:{}", script.display());
    assert_ne!(shell.run(["--provider", &provider, "--headless", "go"]).code, 0);
    let output = shell.run(["replay", "last"]);
    assert!(output.stdout.contains("> go") && output.stdout.contains("• failed: it is broken"), "{}", output.stdout);
}
