//! The window title, the bell and the progress report.

use serde_json::json;

use crate::pty::{start, terminal};
use crate::server::{Act, Dialect, Reply, Server, call, text};
use crate::shell::Shell;

#[test]
fn the_title_is_written_only_when_it_changes() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![call("c1", "bash", json!({"command": "sleep 1.5"})), text("Rested.")]);
    let mut terminal = terminal(&shell, &server, &["--mode", "auto"], (80, 24));
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("Rested.");
    terminal.send("\x04");
    let left = terminal.end();
    let titles = String::from_utf8_lossy(&left.bytes).matches("\x1b]2;").count();
    assert!((2..=4).contains(&titles), "{titles} titles");
}

#[test]
fn no_progress_report_on_a_terminal_that_shows_none() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![call("c1", "bash", json!({"command": "true"})), text("Done.")]);
    let mut terminal = terminal(&shell, &server, &["--mode", "auto"], (80, 24));
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("Done.");
    terminal.send("\x04");
    let bytes = terminal.end().bytes;
    assert!(!String::from_utf8_lossy(&bytes).contains("\x1b]9;"), "a notification that says 4;0;");
}

#[test]
fn the_title_shows_the_state_and_the_bell_rings_once() {
    let shell = Shell::new(&[]);
    let slowly = |words: &str| {
        let mut acts = vec![Act::Send(crate::server::HEAD.into()), Act::Pause(1_000_000)];
        let answer = crate::server::answer(Dialect::Chat, &[crate::server::Part::Text(words)]);
        acts.push(Act::Send(answer.concat().into_bytes()));
        Reply::Raw(acts)
    };
    let server = Server::start(vec![slowly("One."), slowly("Two.")]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
    terminal.wait_for("Ask pixir");
    // The window loses the focus; the end of the Turn is worth a word then.
    terminal.send("\x1b[O");
    terminal.send("go\r");
    terminal.wait_for("One.");
    terminal.wait_for("/ commands");
    terminal.send("\x1b[I");
    terminal.send("again\r");
    terminal.wait_for("Two.");
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    let bytes = String::from_utf8_lossy(&left.bytes).into_owned();
    let titles = bytes.matches("\x1b]2;").count();
    assert!((3..=5).contains(&titles), "{titles} titles");
    assert!(bytes.contains("\x1b]2;● pixir · ") && bytes.contains("\x1b]2;pixir · "), "{bytes:?}");
    assert_eq!(bytes.matches('\x07').count(), 1, "one bell, for the turn that ended unseen");
    assert!(!bytes.contains("\x1b]9;4"), "no progress where it is not known to be shown");
}
