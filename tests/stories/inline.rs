//! The inline interface: the scrollback, and the text for screen readers.

use rustix::process::Signal;
use serde_json::json;

use crate::connected::terminal;
use crate::pty::{Left, Terminal, foreign_sequences, scrollback};
use crate::server::{Dialect, Reply, Server, call, text};
use crate::shell::Shell;
use crate::wait;

fn start(shell: &Shell, server: &Server, size: (u16, u16)) -> Terminal {
    let mut args = server.flags(Dialect::Responses);
    args.push("--inline".into());
    Terminal::start(shell, &args.iter().map(String::as_str).collect::<Vec<_>>(), size.0, size.1)
}

fn lines(from: usize, to: usize) -> String {
    (from..to).map(|n| format!("- point {n}\n")).collect()
}

/// Each of these points appears in the terminal once, in order.
fn assert_once(left: &Left, size: (u16, u16), points: usize) {
    let lines = scrollback(&left.bytes, size.0, size.1);
    let found: Vec<&String> = lines.iter().filter(|line| line.contains("• point ")).collect();
    let expected: Vec<String> = (0..points).map(|n| format!("   • point {n}")).collect();
    assert_eq!(found, expected.iter().collect::<Vec<_>>(), "{lines:#?}");
}

#[test]
fn inline_scrollback_holds_every_cell_once_in_order() {
    let size = (80, 24);
    let shell = Shell::new(&[]);
    let server = Server::start(vec![
        text(&lines(0, 60)),
        call("c1", "write", json!({"path": "b.txt", "content": "one\ntwo\n"})),
        text(&lines(60, 65)),
    ]);
    let mut terminal = start(&shell, &server, size);
    terminal.wait_for("Ask pixir");
    terminal.send("/mode auto\r");
    terminal.wait_for("mode: auto");
    terminal.send("list them\r");
    terminal.wait_for("point 59");
    // An overlay uses the alternate screen and leaves no trace.
    terminal.send("\x14");
    terminal.wait_for("Tree");
    terminal.send("\x1b");
    terminal.wait_that("the tree is gone", |screen| !screen.contains("Tree") && screen.contains("point 59"));
    terminal.send("\x1b[5~");
    terminal.wait_for("point 30");
    terminal.send("\x1b[1;5F");
    terminal.wait_that("is at the end again", |screen| screen.contains("point 59") && screen.contains("Ask pixir"));
    terminal.send("more\r");
    terminal.wait_for("point 64");
    terminal.wait_for("1 + one");
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    assert_once(&left, size, 65);
    assert!(foreign_sequences(&left.bytes).is_empty(), "{:?}", foreign_sequences(&left.bytes));
    let lines = scrollback(&left.bytes, size.0, size.1);
    let at = |text: &str| lines.iter().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}"));
    assert!(at("❯ list them") < at("point 0") && at("❯ more") < at("✓ Write b.txt"), "{lines:#?}");
    assert!(at("1 + one") < at("point 60"), "a change is printed when it is known: {lines:#?}");
    // The shell prompt follows directly; the composer is gone.
    assert!(!lines.iter().any(|line| line.contains("Ask pixir") || line.contains('╭')), "{lines:#?}");
    assert!(lines.last().is_some_and(|line| line.contains("pixir resume 2")), "{lines:#?}");
}

#[test]
fn inline_approval_is_shown_and_decided() {
    let size = (80, 24);
    let shell = Shell::new(&[]);
    let server = Server::start(vec![call("c1", "bash", json!({"command": "touch made"})), text("Made.")]);
    let mut terminal = start(&shell, &server, size);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("Alt+Y Allow");
    terminal.press_until("\x1by", "the command is allowed", || shell.workspace().join("made").exists());
    terminal.wait_for("Made.");
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    assert!(!left.screen.contains("Alt+Y Allow"), "{}", left.screen);
}

#[test]
fn a_long_answer_enters_the_scrollback_while_it_streams() {
    let size = (80, 24);
    let shell = Shell::new(&[]);
    let filling = "It says what it says, in as many words as it takes.";
    let paragraphs: String = (0..60).map(|n| format!("Paragraph {n} of it. {filling}\n\n")).collect();
    let server = Server::start(vec![Reply::Stall { text: paragraphs }]);
    let mut terminal = start(&shell, &server, size);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("Paragraph 59 ");
    let stand_once = |bytes: &[u8], until: usize| {
        let lines = scrollback(bytes, size.0, size.1);
        (0..until).all(|n| lines.iter().filter(|line| line.contains(&format!("Paragraph {n} of it."))).count() == 1)
    };
    // All but its last part, which may still change, is printed.
    wait::until("it can be scrolled back to", || stand_once(&terminal.bytes(), 40));
    terminal.send("\x1b");
    terminal.wait_for("the answer was cut off here");
    terminal.wait_for("interrupted");
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    assert!(stand_once(&left.bytes, 60), "{:#?}", scrollback(&left.bytes, size.0, size.1));
}

#[test]
fn inline_resize_then_every_way_out() {
    let shell = Shell::new(&[]);
    for signal in [None, Some(Signal::TERM), Some(Signal::HUP), Some(Signal::INT), Some(Signal::QUIT)] {
        for busy in [false, true] {
            let reply = if busy { Reply::Stall { text: lines(0, 40) } } else { text(&lines(0, 40)) };
            let server = Server::start(vec![reply]);
            let mut terminal = start(&shell, &server, (80, 24));
            terminal.wait_for("Ask pixir");
            terminal.send("go\r");
            terminal.wait_for("point 39");
            terminal.resize(60, 20);
            // A frame for the old width may still come. Its lower edge is wrapped, and so longer.
            let is_edge = |line: &str| line.ends_with('╯') && line.chars().count() == 60;
            terminal.wait_that("was drawn anew", |screen| screen.contains("point 39") && screen.lines().any(is_edge));
            match signal {
                Some(signal) => terminal.signal(signal),
                None if busy => {
                    terminal.send("\x1b");
                    terminal.wait_for("interrupted");
                    terminal.send("\x04");
                }
                None => terminal.send("\x04"),
            }
            let left = terminal.end();
            left.assert_sane();
            assert!(left.screen.contains("pixir resume") && !left.screen.contains('╭'), "{}", left.screen);
        }
    }
}

#[test]
fn inline_resize_while_scrolled_back_loses_no_line() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text(&lines(0, 40))]);
    let mut terminal = start(&shell, &server, (80, 24));
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("point 39");
    let above = |screen: &str| screen.lines().filter(|line| line.contains("• point")).count();
    terminal.wait_that("the turn is over", |screen| screen.contains("? help") && above(screen) > 15);
    let before = above(&terminal.screen());
    terminal.send("\x1b[5~");
    terminal.wait_for("point 8");
    terminal.resize(80, 30);
    terminal.wait_that("is drawn at the new size", |screen| screen.lines().count() == 30);
    // Esc returns to the lines of the terminal.
    terminal.send("\x1b");
    terminal.wait_that("the same lines stand there", |screen| {
        above(screen) >= before && screen.contains("point 39") && screen.contains("Ask pixir")
    });
    // The keyboard protocol is set per screen: on the alternate screen, and again on the main one.
    let bytes = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    let (at, back) = (bytes.find("\x1b[?1049h").expect("there"), bytes.rfind("\x1b[?1049l").expect("and back"));
    assert!(bytes[at..].starts_with("\x1b[?1049h") && bytes[at..].contains("\x1b[>1u"), "{bytes:?}");
    assert!(bytes[..back].ends_with("\x1b[<1u\x1b[r"), "{:?}", &bytes[back - 40..]);
    terminal.send("\x04");
    terminal.end().assert_sane();
}

#[test]
fn inline_new_session_keeps_the_printed_half_answer() {
    let size = (80, 24);
    let shell = Shell::new(&[]);
    let server = Server::start(vec![Reply::Stall { text: lines(0, 12) }]);
    let mut terminal = start(&shell, &server, size);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("point 11");
    terminal.send("/new\r");
    terminal.wait_that("a new one is open", |screen| screen.contains("Ask pixir") && screen.contains("point 11"));
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    assert_once(&left, size, 12);
}

#[test]
fn inline_quit_from_the_tree_prints_the_rest() {
    let size = (80, 24);
    let shell = Shell::new(&[]);
    let long = format!("{}\n\n{}", lines(0, 600), "The end of it.");
    let wait = json!({"command": "until [ -e go ]; do sleep 0.02; done"});
    let server = Server::start(vec![call("c1", "bash", wait), text(&long)]);
    let mut terminal = start(&shell, &server, size);
    terminal.wait_for("Ask pixir");
    terminal.send("/mode auto\r");
    terminal.wait_for("mode: auto");
    terminal.send("go\r");
    terminal.wait_for("● $");
    terminal.send("\x14");
    terminal.wait_for("Tree");
    shell.write("go", "");
    wait::until("all of it was said", || {
        shell.logs().first().is_some_and(|log| crate::shell::entries(log).iter().any(|e| e["type"] == "turn_ended"))
    });
    terminal.signal(Signal::TERM);
    let left = terminal.end();
    left.assert_sane();
    assert_once(&left, size, 600);
}

#[test]
fn screen_reader_mode_prints_each_line_once() {
    let size = (80, 24);
    let shell = Shell::new(&[]);
    let server = Server::start(vec![
        call("c1", "bash", json!({"command": "sleep 1; printf fin%s ished"})),
        text(&format!("Here they are:\n\n{}", lines(0, 5))),
    ]);
    let args = server.flags(Dialect::Responses);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let pixir = env!("CARGO_BIN_EXE_pixir").as_ref();
    let mut terminal = Terminal::of(&shell, pixir, &args, &[("PIXIR_SCREEN_READER", "1")], size.0, size.1);
    terminal.wait_for("Ask pixir");
    terminal.send("/mode auto\r");
    terminal.wait_for("mode: auto");
    terminal.send("go\r");
    terminal.wait_for("point 4");
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    assert_once(&left, size, 5);
    let bytes = String::from_utf8_lossy(&left.bytes);
    for said in ["Here they are:", "point 3", "finished", "❯ go"] {
        assert_eq!(bytes.matches(said).count(), 1, "{said} is said once: {bytes:?}");
    }
    assert!(!bytes.contains(['⠋', '⠙', '⠹', '⠸', '⠼', '╭', '╯']), "{bytes:?}");
    assert!(bytes.matches("working").count() == 1 && !bytes.contains("\x1b[?1049h"), "{bytes:?}");
}

#[test]
fn motion_off_shows_no_spinner() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![
        call("c1", "bash", json!({"command": "until [ -e go ]; do sleep 0.02; done"})),
        text("Rested."),
    ]);
    let mut args = server.flags(Dialect::Responses);
    args.extend(["--mode", "auto"].map(str::to_owned));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let pixir = env!("CARGO_BIN_EXE_pixir").as_ref();
    let folder = shell.aside("config.toml", "[screen]\nmotion = false\n");
    let folder = folder.parent().and_then(std::path::Path::to_str).expect("a folder");
    let mut terminal = Terminal::of(&shell, pixir, &args, &[("PIXIR_CONFIG_HOME", folder)], 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("rest\r");
    terminal.wait_for("● working");
    shell.write("go", "");
    terminal.wait_for("Rested.");
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    assert!(!String::from_utf8_lossy(&left.bytes).contains(['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠇']));
}

#[test]
fn inline_first_start_says_what_is_missing() {
    let shell = Shell::new(&[]);
    let mut first = Terminal::start(&shell, &["--inline"], 80, 24);
    first.wait_for("No model is connected");
    first.wait_for("Ask pixir");
    first.send("\x04");
    let left = first.end();
    left.assert_sane();
    assert_eq!(left.screen.matches("No model is connected").count(), 1, "{}", left.screen);
    let server = Server::start(vec![text(&lines(0, 60))]);
    let mut terminal = start(&shell, &server, (80, 24));
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("point 59");
    terminal.wait_for("/ commands");
    terminal.send("\x1b[5~");
    terminal.wait_that("shows what was before", |screen| screen.contains("point 30") && !screen.contains("point 59"));
    terminal.send("\x1b[1;5F");
    terminal.wait_for("point 59");
    terminal.send("\x04");
    let id =
        terminal.end().screen.lines().last().and_then(|line| line.split(' ').nth(2).map(str::to_owned)).expect("an id");
    // A resumed Session prints the end of the transcript, not all of it.
    let mut args = server.flags(Dialect::Responses);
    args.extend(["--inline", "resume", &id].map(str::to_owned));
    let mut again = Terminal::start(&shell, &args.iter().map(String::as_str).collect::<Vec<_>>(), 80, 24);
    let screen = again.wait_for("point 59");
    assert!(!screen.contains("No model"), "{screen}");
    again.send("\x04");
    again.end().assert_sane();
}

#[test]
fn inline_redraw_prints_no_line_twice() {
    let size = (80, 24);
    let shell = Shell::new(&[]);
    let lines: String = (0..50).map(|n| format!("- point {n}\n")).collect();
    let server = Server::start(vec![text(&lines)]);
    let mut terminal = terminal(&shell, &server, &["--inline"], size);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_that("is idle", |screen| screen.contains("point 49") && screen.contains("/ commands"));
    for _ in 0..3 {
        let written = terminal.written();
        terminal.send("\x0c");
        terminal.wait_that_written("a frame", written + 50);
    }
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    let lines = scrollback(&left.bytes, size.0, size.1);
    assert_eq!(lines.iter().filter(|line| line.contains("• point ")).count(), 50, "{lines:#?}");
}

/// Broken build: one that shows the form as a box on the alternate screen. A screen reader hears two half screens, and
/// no number before the options that it can type.
#[test]
fn screen_reader_reads_a_question_as_lines_and_takes_a_number() {
    let size = (80, 24);
    let shell = Shell::new(&[]);
    let server = Server::start(vec![
        call("c1", "bash", json!({"command": "until [ -e go ]; do sleep 0.02; done"})),
        call(
            "c2",
            "ask_user",
            json!({"questions": [
                {"question": "Which database?", "options": ["SQLite", "Postgres"]},
                {"question": "Which of these too?", "options": ["tests", "docs", "CI"], "multiple": true},
                {"question": "What should it be called?"},
            ]}),
        ),
        text("Good."),
    ]);
    let mut args = server.flags(Dialect::Responses);
    args.extend(["--mode", "auto"].map(str::to_owned));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let pixir = env!("CARGO_BIN_EXE_pixir").as_ref();
    let mut terminal = Terminal::of(&shell, pixir, &args, &[("PIXIR_SCREEN_READER", "1")], size.0, size.1);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("working");
    // The question comes while the user is writing, so the keys stay with the draft until Tab.
    terminal.send("still writing");
    terminal.wait_for("> still writing");
    shell.write("go", "");
    terminal.wait_for("Tab answers the question");
    let screen = terminal.screen();
    let lines = "Question 1 of 3: Which database?\n 1. SQLite\n 2. Postgres\n Type a number or your own words";
    assert!(screen.contains(lines), "{screen}");
    // A Tab counts once the question was on the screen for a moment.
    let reader = terminal.reader();
    terminal.press_until("\t", "the question has the keys", || reader.shows("waiting for you"));
    terminal.send("2\r");
    terminal.wait_for("Question 2 of 3: Which of these too?");
    terminal.send("1, 3\r");
    terminal.wait_for("Question 3 of 3: What should it be called?");
    terminal.send("quill\r");
    terminal.wait_for("Good.");
    terminal.wait_for("> still writing");
    terminal.send("\x03");
    terminal.wait_for("draft put aside");
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    let log = crate::shell::entries(&shell.logs()[0]);
    let output = log.iter().rfind(|e| e["type"] == "tool_result").expect("a result")["data"]["output"].clone();
    let answers = "Which database?\n→ Postgres\nWhich of these too?\n→ tests, CI\nWhat should it be called?\n→ quill\n";
    assert!(output.as_str().is_some_and(|it| it.starts_with(answers)), "{output}");
    let bytes = String::from_utf8_lossy(&left.bytes);
    for said in ["Question 1 of 3", "1. SQLite", "Question 2 of 3", "3. CI", "Question 3 of 3", "press Enter. Esc"] {
        let times = if said.starts_with("press") { 3 } else { 1 };
        assert_eq!(bytes.matches(said).count(), times, "{said}: {bytes:?}");
    }
    assert!(!bytes.contains("\x1b[?1049h") && !bytes.contains(['╭', '›']), "{bytes:?}");
}

/// Broken build: one that takes the rows of the open part for as many as before. A terminal that wraps long rows has
/// more of them then, and the top of the old frame stays above the new one.
#[test]
fn inline_open_card_stands_once_after_the_terminal_narrows() {
    let shell = Shell::new(&[]);
    let command = "touch made && echo one two three four five six seven eight nine ten eleven twelve thirteen";
    let server = Server::start(vec![
        text(&lines(0, 12)),
        text(&lines(12, 24)),
        call("c1", "bash", json!({"command": command})),
        text("Made."),
    ]);
    let mut terminal = start(&shell, &server, (100, 24));
    terminal.wait_for("Ask pixir");
    terminal.send("first\r");
    terminal.wait_for("point 11");
    terminal.wait_for("/ commands");
    terminal.send("second\r");
    terminal.wait_for("point 23");
    terminal.wait_for("/ commands");
    terminal.send("go\r");
    terminal.wait_for("Alt+Y Allow");
    for columns in [80, 100, 60, 50] {
        terminal.resize_wrapping(columns, 24);
        terminal.wait_that("the card stands once, at the new width", |screen| {
            let border = screen.lines().rfind(|line| line.contains('╯')).unwrap_or_default();
            border.chars().count() == usize::from(columns)
                && screen.matches("? $").count() == 1
                && screen.matches("Alt+Y Allow").count() == 1
                && screen.matches('╭').count() == 1
        });
    }
    terminal.press_until("\x1by", "the command is allowed", || shell.workspace().join("made").exists());
    terminal.wait_for("Made.");
    terminal.send("\x04");
    terminal.end().assert_sane();
}
