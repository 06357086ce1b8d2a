//! The whole way of a new user, without reading the guide: from a first start without a key to a session that is resumed.

use std::path::Path;

use serde_json::json;

use crate::pty::Terminal;
use crate::server::{Reply, Server, text};
use crate::shell::Shell;

const NOTES: &str = r#"{"goal": "The checks pass.", "state": "Line 2 is fixed.", "findings": ["Line 2 was wrong."]}"#;

/// A file whose lines 2 and 18 a model will change.
fn numbers() -> String {
    (1..=20).map(|n| format!("line {n}\n")).collect()
}

fn talk() -> Vec<Reply> {
    let says_and_calls = |says: &str, tool: &str, args| Reply::Answer {
        text: says.into(),
        calls: vec![(format!("call-{tool}"), tool.into(), args)],
    };
    let edits = [("line 2\n", "line two\n"), ("line 18\n", "line eighteen\n")];
    let edits = edits.map(|(old, new)| json!({ "old_text": old, "new_text": new }));
    vec![
        says_and_calls("Line 2 is wrong.", "edit", json!({ "path": "numbers.txt", "edits": edits })),
        says_and_calls("Now the check.", "bash", json!({ "command": "sh check.sh" })),
        text("The check passes now."),
        text("A cache would only cost memory."),
        text(&format!("Then it stays simple. {}", "word ".repeat(3_000))),
        text(&format!("{}\n\nThe changelog is left.", "word ".repeat(3_000))),
        text(NOTES),
        text("The changelog is written."),
    ]
}

fn start(shell: &Shell, args: &[&str], (columns, rows): (u16, u16)) -> Terminal {
    let binary: &Path = env!("CARGO_BIN_EXE_pixir").as_ref();
    Terminal::of(shell, binary.as_ref(), args, &[], columns, rows)
}

/// Waits until this answer is there and its turn has ended.
fn ended(terminal: &Terminal, answer: &str) {
    terminal.wait_that(answer, |screen| screen.contains(answer) && screen.contains("Ask pixir"));
}

/// Broken builds: a hunk that is reverted takes the other one with it; the fork changes the session that it came from; the
/// connected server is forgotten when the session is resumed.
#[test]
fn i_connect_a_server_fix_a_bug_rewind_fork_compact_revert_half_export_quit_and_come_back() {
    for size in [(80, 24), (200, 60)] {
        the_whole_way(size);
    }
}

fn the_whole_way(size: (u16, u16)) {
    let shell =
        Shell::new(&[("numbers.txt", &numbers()), ("check.sh", "grep -q two numbers.txt && echo 1 check passed\n")]);
    let server = Server::start(talk());
    let folder = shell.home().join(".config/pixir");
    std::fs::create_dir_all(&folder).expect("mkdir");
    // The usual port may be taken on the machine of the test.
    let settings = format!("[providers.ollama]\nbase_url = \"{}\"\n", server.url);
    std::fs::write(folder.join("config.toml"), settings).expect("write");

    let mut terminal = start(&shell, &[], size);
    let reader = terminal.reader();
    terminal.wait_for("No model is connected");
    terminal.send("3");
    terminal.wait_for("ollama, 2 models");
    terminal.send("\r");
    terminal.wait_for("● ollama/m");
    terminal.send("\x1b");
    terminal.wait_that("the dialog is closed", |screen| !screen.contains("● ollama/m"));

    // A bug is fixed, with two approvals.
    terminal.send("The check fails. Fix it.\r");
    terminal.wait_for("Edit numbers.txt");
    terminal.press_until("\x1by", "the edit is allowed", || reader.shows("Run sh check.sh"));
    terminal.press_until("\x1by", "the check runs", || reader.shows("The check passes now."));
    ended(&terminal, "The check passes now.");
    let fixed = numbers().replace("line 2\n", "line two\n").replace("line 18\n", "line eighteen\n");
    assert_eq!(shell.read("numbers.txt"), fixed);

    // Back by one turn, and on from there.
    terminal.send("Should there be a cache?\r");
    ended(&terminal, "only cost memory");
    terminal.send("/rewind\r");
    terminal.wait_for("Tree · 2 turns");
    terminal.send("\x1b[A");
    terminal.wait_for("1/2");
    terminal.send("\r");
    terminal.wait_for("continuing from here");
    terminal.wait_that("the turn is gone", |screen| !screen.contains("only cost memory"));
    terminal.send("And without one?\r");
    ended(&terminal, "word word");

    // A copy, and less of it.
    terminal.send("/fork\r");
    terminal.wait_for("this is the fork");
    terminal.send("What is left?\r");
    ended(&terminal, "The changelog is left.");
    terminal.send("/compact\r");
    terminal.wait_for("written by the model");
    // Enter applies nothing until the preview has been on the screen for a moment.
    terminal.press_until("\r", "it is applied", || reader.shows("Compacted"));

    // Half of the change is taken back.
    terminal.send("/diff\r");
    terminal.wait_for("hunk 1/2");
    terminal.send("n");
    terminal.wait_for("hunk 2/2");
    terminal.send("r");
    terminal.wait_for("hunk 1/1");
    assert_eq!(shell.read("numbers.txt"), numbers().replace("line 2\n", "line two\n"));
    terminal.send("\x1b");
    terminal.wait_for("reverted a hunk");

    terminal.send("/export md kept.md\r");
    terminal.wait_for("wrote kept.md");
    let kept = shell.read("kept.md");
    assert!(kept.contains("And without one?") && kept.contains("The changelog is left."), "{kept}");
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    let printed = String::from_utf8_lossy(&left.bytes).into_owned();
    assert!(printed.contains("pixir resume "), "how to come back is on the screen:\n{printed}");
    assert_eq!(shell.logs().len(), 2, "the fork, and the session that it came from");

    let mut terminal = start(&shell, &["resume", "--last"], size);
    terminal.wait_for("reverted a hunk");
    terminal.send("Write it.\r");
    ended(&terminal, "The changelog is written.");
    let heard = server.bodies().last().expect("a request").to_string();
    assert!(heard.contains("Line 2 was wrong.") && !heard.contains("Should there be a cache?"), "{heard}");
    terminal.send("\x04");
    terminal.end().assert_sane();
}
