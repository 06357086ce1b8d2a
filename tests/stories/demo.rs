//! `pixir demo`: as text, as a document, on a terminal.

use serde_json::Value;

use crate::pty::Terminal;
use crate::shell::Shell;

#[test]
fn demo_without_a_terminal_is_plain_text() {
    let shell = Shell::new(&[]);
    let ran = shell.run(["demo"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for part in [
        "> The average is wrong.",
        "FAIL  average of three: expected 4, got 6",
        "ok    average of one",
        "-    echo $(($(sum \"$@\") / ($# - 1)))",
        "+    echo $(($(sum \"$@\") / $#))",
    ] {
        assert!(ran.stdout.contains(part), "no {part:?} in:\n{}", ran.stdout);
    }
    assert!(shell.logs().is_empty(), "the demo leaves nothing behind");
}

#[test]
fn demo_json_ends_with_passing_tests_and_the_edit() {
    let shell = Shell::new(&[]);
    let ran = shell.run(["demo", "--headless", "--json"]);
    let document = ran.document();
    assert_eq!((ran.code, document["ok"].as_bool(), document["status"].as_str()), (0, Some(true), Some("completed")));
    let files: Vec<_> = document["files_changed"]
        .as_array()
        .expect("files")
        .iter()
        .map(|f| f["path"].as_str().expect("a path"))
        .collect();
    assert_eq!(files, ["stats.sh", "tests/run.sh"]);
    assert!(
        document["files_changed"][0]["diff"].as_str().expect("a diff").contains("+    echo $(($(sum \"$@\") / $#))")
    );
    assert_eq!(ran.stderr, "", "a successful run prints nothing on stderr");
}

#[test]
fn demo_gives_the_same_entries_each_time() {
    let output = || {
        let shell = Shell::new(&[]);
        let ran = shell.run(["demo", "--format", "jsonl"]);
        let mut lines = ran.lines();
        let results = lines.iter().filter(|l| l["type"] == "result").count();
        assert_eq!((results, lines.last().expect("lines")["type"].as_str()), (1, Some("result")));
        // The number of live events depends on the machine; recorded Entries do not.
        lines.retain(|l| l["seq"].is_u64());
        assert_eq!(
            lines.iter().map(|l| l["seq"].as_u64().expect("a number")).collect::<Vec<_>>(),
            (0..lines.len() as u64).collect::<Vec<_>>()
        );
        lines.iter().map(timeless).collect::<Vec<_>>()
    };
    let (first, second) = (output(), output());
    assert!(first.len() > 20);
    assert_eq!(first, second);
}

/// The line without ids, times, durations and the folder.
fn timeless(line: &Value) -> Value {
    let mut line = line.clone();
    for key in ["id", "ts", "session_id"] {
        line.as_object_mut().expect("an object").remove(key);
    }
    if let Some(data) = line["data"].as_object_mut() {
        // Each run has a new sample folder.
        for key in ["duration_ms", "workspace", "context"] {
            data.remove(key);
        }
        if let Some(output) = data
            .get("output")
            .and_then(Value::as_str)
            .and_then(|o| o.rsplit_once('\n'))
            .map(|(text, _)| text.to_owned())
        {
            data.insert("output".into(), output.into());
        }
    }
    line
}

/// Broken build: the demo edits without asking.
#[test]
fn demo_on_a_terminal_asks_before_its_edits_and_a_key_skips_its_waits() {
    let shell = Shell::new(&[]);
    let mut terminal = Terminal::start(&shell, &["demo"], 100, 40);
    // Ctrl+End only scrolls, so what it does is to skip the wait.
    let wait_for = |terminal: &mut Terminal, text: &str| {
        let reader = terminal.reader();
        terminal.press_until("\x1b[1;5F", text, || reader.shows(text));
    };
    let edits = [
        ("+     echo $(($(sum", "With one number the old code"),
        ("+ check \"average of one\"", "Now the tests again"),
    ];
    for (hunk, next) in edits {
        wait_for(&mut terminal, hunk);
        wait_for(&mut terminal, "Alt+Y");
        let header = terminal.screen().lines().next().expect("a header").trim_end().to_owned();
        assert!(
            header.contains(" demo ") && !header.contains("pixir-demo") && header.contains(" · ask · "),
            "{header}"
        );
        let reader = terminal.reader();
        terminal.press_until("\x1by", "the edit is allowed", || reader.shows(next));
    }
    wait_for(&mut terminal, "all three tests pass");
    terminal.send("/diff\r");
    terminal.wait_for("Diff · this turn");
    terminal.wait_for("hunk 1/1");
    terminal.send("]");
    terminal.wait_for("average of one");
    terminal.send("\x1b");
    terminal.wait_for("Ask pixir");
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    assert_eq!(left.code, 0);
}
