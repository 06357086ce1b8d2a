//! Behaviour that needs a real terminal.

use std::time::Duration;

use serde_json::json;

use crate::connected::start;
use crate::pty::Terminal;
use crate::server::{Act, Dialect, Reply, Server, call, text};
use crate::shell::Shell;
use crate::wait;

#[test]
fn a_first_start_says_what_is_missing_and_how_to_get_it() {
    let shell = Shell::new(&[]);
    for (columns, rows) in [(60, 20), (80, 24), (120, 40)] {
        let mut terminal = Terminal::start(&shell, &[], columns, rows);
        terminal.wait_for("Ask pixir");
        terminal.wait_that("says what is missing", |screen| {
            ["No model is connected", "ANTHROPIC_API_KEY", "Paste a key", "Watch the demo"]
                .iter()
                .all(|text| screen.contains(text))
        });
        terminal.send("\x03\x03");
        let left = terminal.end();
        left.assert_sane();
        assert_eq!(left.code, 0);
    }
    assert!(shell.logs().is_empty());
}

#[test]
fn an_edit_is_approved_and_the_answer_stays_on_the_main_screen() {
    for dialect in [Dialect::Responses, Dialect::Chat] {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let server = Server::start(vec![
            call("c1", "edit", json!({"path": "a.txt", "old_text": "alpha", "new_text": "omega"})),
            text("Changed to omega."),
        ]);
        let mut terminal = start(&shell, &server, dialect, 80, 24);
        terminal.wait_for("Ask pixir");
        terminal.send("change it\r");
        let screen = terminal.wait_for("Alt+Y Allow");
        assert!(screen.contains("- alpha") && screen.contains("+ omega"), "{screen}");
        // A key that comes before the approval was visible for a quarter of a second decides nothing.
        terminal.press_until("\x1by", "the edit is allowed", || shell.read("a.txt") != "alpha\n");
        // Quitting right after the answer leaves it on the main screen too.
        terminal.wait_for("Changed to omega.");
        assert_eq!(shell.read("a.txt"), "omega\n");
        terminal.send("\x04");
        let left = terminal.end();
        left.assert_sane();
        assert!(left.screen.contains("Changed to omega.") && left.screen.contains("pixir resume 2"), "{}", left.screen);
    }
}

#[test]
fn a_command_cannot_reach_the_terminal() {
    let shell = Shell::new(&[]);
    let server =
        Server::start(vec![call("c1", "bash", json!({"command": "echo LEAKED > /dev/tty"})), text("It could not.")]);
    let mut terminal = start(&shell, &server, Dialect::Responses, 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("/mode auto\r");
    terminal.wait_for("mode: auto");
    terminal.send("go\r");
    let screen = terminal.wait_for("It could not.");
    assert!(screen.contains("No such device or address"), "{screen}");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

#[test]
fn a_blocked_terminal_does_not_stop_the_turn() {
    let shell = Shell::new(&[]);
    let making = call("c1", "bash", json!({"command": "echo made > made.txt"}));
    let server = Server::start(vec![text(&"A screen full of words. ".repeat(600)), making, text("Done.")]);
    let flags = server.flags(Dialect::Chat);
    let mut args: Vec<&str> = flags.iter().map(String::as_str).collect();
    args.extend(["--mode", "auto"]);
    let mut terminal = Terminal::start(&shell, &args, 200, 60);
    terminal.wait_for("Ask pixir");
    terminal.send("fill it\r");
    terminal.wait_that("is full", |screen| screen.contains("full of words") && screen.contains("/ commands"));
    terminal.hold(true);
    // The terminal's buffer is full once another whole screen is no longer written.
    let is_full = |terminal: &mut Terminal| {
        let before = terminal.handed_over();
        terminal.send("\x0c");
        !wait::within(Duration::from_millis(300), || terminal.handed_over() > before + 1_000)
    };
    wait::until("the terminal takes no more", || is_full(&mut terminal));
    terminal.send("go\r");
    server.wait_for(3);
    wait::until("the turn goes on without the terminal", || shell.read("made.txt") == "made\n");
    terminal.hold(false);
    terminal.wait_for("Done.");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

#[test]
fn a_streamed_answer_scrolls_repaints_what_changes_and_never_clears() {
    let words: String = (0..400).map(|n| format!("word{n} ")).collect();
    let paragraphs = words.replace("9 ", "9.\n\n");
    let deltas: Vec<Act> = paragraphs
        .split_inclusive(' ')
        .enumerate()
        .flat_map(|(at, word)| {
            let value = json!({ "choices": [{ "index": 0, "delta": { "content": word } }] });
            let pause = (at % 10 == 0).then_some(Act::Pause(5_000));
            [Act::Send(crate::server::event(&value).into_bytes())].into_iter().chain(pause)
        })
        .collect();
    let mut acts = vec![Act::Send(crate::server::HEAD.into())];
    acts.extend(deltas);
    acts.push(Act::Send(crate::server::end(Dialect::Chat, false).concat().into_bytes()));
    let shell = Shell::new(&[]);
    let server = Server::start(vec![Reply::Raw(acts)]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 120, 40);
    terminal.wait_for("Ask pixir");
    let before = terminal.written();
    terminal.send("go\r");
    terminal.wait_for("word399");
    terminal.wait_for("/ commands");
    let written = terminal.written() - before;
    let streamed = String::from_utf8_lossy(&terminal.bytes()[before..]).into_owned();
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    assert!(written < 12 * paragraphs.len(), "{written} bytes for {} of text", paragraphs.len());
    assert!(streamed.contains("S\x1b[r"), "it scrolls");
    assert!(!streamed.contains("\x1b[2J"), "it never clears the screen");
}

/// An input method and a braille line follow the terminal's own cursor, so it stands where the next letter goes.
/// Broken build: one that draws a caret of its own and parks the cursor.
#[test]
fn the_hardware_cursor_stands_at_the_caret() {
    let shell = Shell::new(&[]);
    let server = Server::start(Vec::new());
    let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("ab漢字c");
    let screen = terminal.wait_for("ab漢字c");
    let row = screen.lines().position(|line| line.contains("ab漢字c")).expect("a row of the composer");
    let before: String = screen.lines().nth(row).into_iter().flat_map(|line| line.split("ab漢字c").next()).collect();
    let column = before.chars().count() + "ab".len() + 4 + "c".len();
    assert_eq!(terminal.cursor(), Some((row, column)));
    terminal.send("\x1b[D\x1b[D");
    wait::until("the cursor is on the second wide character", || terminal.cursor() == Some((row, column - 3)));
    terminal.send("\x03\x04");
    terminal.end().assert_sane();
}

/// Broken build: one that prints the Markdown that the model wrote.
#[test]
fn the_last_answer_is_printed_as_it_was_on_the_screen() {
    let shell = Shell::new(&[]);
    let markdown = "# Done\n\nIt is **settled** with `pos`:\n\n- one\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";
    let server = Server::start(vec![text(markdown), text(markdown)]);
    let assert_plain = |text: &str| {
        assert!(text.contains("It is settled with pos:") && text.contains("• one"), "{text}");
        assert!(!text.contains("**") && !text.contains("# Done") && !text.contains("|---"), "{text}");
        assert!(text.contains("pixir resume 2"), "{text}");
    };
    let mut terminal = start(&shell, &server, Dialect::Responses, 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("settled");
    terminal.wait_for("/ commands");
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    assert_plain(&left.screen);
    let bytes = String::from_utf8_lossy(&left.bytes);
    let (_, printed) = bytes.rsplit_once("\x1b[?1049l").expect("the alternate screen was left");
    assert!(printed.contains("\x1b[1"), "with its styles: {printed:?}");

    // Where stderr is no terminal, it has no colours.
    let errors = shell.aside("errors", "");
    let words = server.flags(Dialect::Responses).join(" ");
    let line = format!("exec {} {words} 2>{}", env!("CARGO_BIN_EXE_pixir"), errors.display());
    let mut terminal = Terminal::of(&shell, "sh".as_ref(), &["-c", &line], &[], 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("settled");
    terminal.wait_for("/ commands");
    terminal.send("\x04");
    terminal.end().assert_sane();
    let errors = std::fs::read_to_string(errors).expect("read");
    assert_plain(&errors);
    assert!(!errors.contains('\x1b'), "{errors:?}");
}
