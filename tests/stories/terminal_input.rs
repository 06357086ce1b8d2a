//! Bytes from the terminal: pastes, sequences cut in two, and the return of the focus.

use std::time::Duration;

use serde_json::json;

use crate::connected::{start, terminal};
use crate::pty::{ANSWERS, Terminal};
use crate::server::{Dialect, Server, call, text};
use crate::shell::Shell;
use crate::wait;

#[test]
fn a_paste_during_startup_becomes_a_draft() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("never")]);
    let mut terminal = terminal(&shell, &server, &[], (80, 24));
    terminal.send("\x1b[200~early\nbird\n\x1b[201~");
    // In the composer, and not only the echo of the terminal before pixir reads its keys.
    terminal.wait_that("it is in the line", |screen| screen.contains("❯ early") && screen.contains("bird"));
    terminal.settle();
    terminal.send("\x03");
    terminal.wait_for("put aside");
    terminal.send("\x04");
    terminal.end().assert_sane();
    assert!(server.bodies().is_empty());
}

#[test]
fn a_paste_in_pieces_is_one_placeholder() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("never")]);
    let mut terminal = terminal(&shell, &server, &[], (80, 24));
    terminal.wait_for("Ask pixir");
    let pasted: String = (0..300).map(|n| format!("line {n} of it\n")).collect();
    let bytes = format!("\x1b[200~{pasted}\x1b[201~");
    let mut rest = bytes.as_str();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(701));
        terminal.send(piece);
        rest = after;
    }
    let screen = terminal.wait_for("[paste 1: 300 lines]");
    assert!(!screen.contains("of it") && !screen.contains("201~"), "{screen}");
    terminal.settle();
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
    assert!(server.bodies().is_empty());
}

#[test]
fn a_mouse_report_in_two_halves_is_not_text() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("never")]);
    let mut terminal = terminal(&shell, &server, &[], (80, 24));
    terminal.wait_for("Ask pixir");
    for halves in [["\x1b[<35;62", ";19M"], ["\x1b[<0;3;", "9M\x1b[<0;3;9m"], ["\x1b[<6", "4;10;10M"]] {
        terminal.send(halves[0]);
        terminal.wait_until_read();
        // Longer than pixir waits for the rest of a sequence after a lone Esc.
        wait::lapse(Duration::from_millis(50));
        terminal.send(halves[1]);
    }
    terminal.send("ok");
    let screen = terminal.wait_for("❯ ok");
    assert!(!screen.contains(";19M") && !screen.contains("<35"), "{screen}");
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
}

#[test]
fn approval_ignores_the_click_and_key_that_return_the_focus() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![call("c1", "bash", json!({"command": "touch made"})), text("Not made.")]);
    let mut terminal = terminal(&shell, &server, &[], (80, 24));
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    let screen = terminal.wait_for("Alt+Y Allow");
    let row = screen.lines().position(|line| line.contains("Alt+Y")).expect("a row") + 1;
    terminal.send(&format!("\x1b[O\x1b[I\x1b[<0;10;{row}M\x1b[<0;10;{row}m"));
    terminal.wait_for(" y Allow");
    terminal.send("\x1b[O\x1b[Iy");
    terminal.send("\x1b[O\x1b[I\x1by");
    // Esc leaves the question, then stops the turn: it was still open.
    terminal.settle();
    terminal.send("\x1b");
    terminal.wait_for("Alt+Y Allow");
    terminal.send("\x1b");
    terminal.wait_for("interrupted");
    terminal.send("\x04");
    terminal.end().assert_sane();
    assert!(!shell.workspace().join("made").exists());
}

#[test]
fn a_paste_with_line_ends_is_not_sent() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Got both.")]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("\x1b[200~first line\rsecond line\r\x1b[201~");
    terminal.wait_for("second line");
    assert!(server.bodies().is_empty());
    terminal.settle();
    terminal.send("\r");
    terminal.wait_for("Got both.");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

#[test]
fn a_mute_terminal_works_and_a_burst_is_not_sent() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Got it.")]);
    let flags = server.flags(Dialect::Chat);
    let mut terminal = Terminal::mute(&shell, &flags.iter().map(String::as_str).collect::<Vec<_>>(), 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("first line\rsecond line\r");
    terminal.wait_for("second line");
    assert!(server.bodies().is_empty(), "a burst is a paste");
    terminal.settle();
    terminal.send("\r");
    terminal.wait_for("Got it.");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// Broken build: text with its Enter in one read is a paste until the terminal has marked one.
#[test]
fn text_and_enter_in_one_read_send() {
    for answers in [true, false] {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![text("Got it.")]);
        let flags = server.flags(Dialect::Chat);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let mut terminal =
            if answers { Terminal::start(&shell, &flags, 80, 24) } else { Terminal::mute(&shell, &flags, 80, 24) };
        terminal.wait_for("Ask pixir");
        terminal.send("hello there\r");
        terminal.wait_for("Got it.");
        terminal.send("\x04");
        terminal.end().assert_sane();
        assert_eq!(server.bodies().len(), 1, "answers: {answers}");
    }
}

/// Broken build: the lines of a burst are keys where the terminal marks its pastes.
#[test]
fn an_unmarked_burst_of_lines_is_one_message() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Got all."), text("never")]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.wait_for("✓ m");
    terminal.send("first line\rsecond line\rthird line\r");
    terminal.wait_for("third line");
    assert!(server.bodies().is_empty(), "a burst is a paste");
    terminal.settle();
    terminal.send("\r");
    terminal.wait_for("Got all.");
    terminal.send("\x04");
    terminal.end().assert_sane();
    let bodies = server.bodies();
    assert_eq!(bodies.len(), 1);
    assert!(bodies[0].to_string().contains("first line\\nsecond line\\nthird line"), "{}", bodies[0]);
}

/// Broken build: pixir waits 50 ms for the replies of the terminal, however late they are.
#[test]
fn late_replies_of_the_terminal_do_not_reach_the_shell() {
    let shell = Shell::new(&[]);
    let pixir = env!("CARGO_BIN_EXE_pixir");
    let script = format!("'{pixir}'; echo over; cat");
    let mut terminal = Terminal::mute_of(&shell, "sh", &["-c", &script], 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("\x04");
    // pixir has given the screen back, and is about to end.
    terminal.wait_for_bytes("\x1b[?1049l");
    wait::lapse(Duration::from_millis(200));
    terminal.send(ANSWERS);
    terminal.wait_for("over");
    terminal.send("typed\r");
    let screen = terminal.wait_for("typed\ntyped");
    assert!(!screen.contains("2026") && !screen.contains("story"), "{screen}");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// A program that writes lines to the terminal of pixir, as a script or a remote keyboard does, sends the first of them at
/// most: the others are in the composer, where the user sees them.
///
/// Broken build: on a terminal that marks its pastes, every line that arrives by itself is typed.
#[test]
fn lines_that_a_program_writes_send_one_message_at_most() {
    let in_composer = |screen: &str, line: &str| screen.lines().any(|it| it.starts_with('│') && it.contains(line));
    // On a busy machine pixir can read all lines at once: they are one paste then, and none is sent.
    for _ in 0..20 {
        let shell = Shell::new(&[]);
        let server = Server::start((0..6).map(|n| text(&format!("Answer {n}."))).collect());
        let mut terminal = terminal(&shell, &server, &[], (100, 30));
        terminal.wait_for("Ask pixir");
        for n in 1..=6 {
            terminal.send_at_once(&format!("line {n} of six\r"));
            wait::lapse(Duration::from_millis(1));
        }
        terminal.wait_that("the last line is in the composer", |it| in_composer(it, "line 6 of six"));
        let screen = terminal.screen();
        assert!(in_composer(&screen, "line 2 of six"), "{screen}");
        let is_sent = !in_composer(&screen, "line 1 of six");
        if is_sent {
            terminal.wait_for("Answer 0.");
        }
        assert_eq!(server.bodies().len(), usize::from(is_sent), "{screen}");
        terminal.send("\x15\x04");
        if is_sent {
            return;
        }
    }
    panic!("the first line was never read by itself");
}
