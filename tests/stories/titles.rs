//! The window title, the bell and the progress report.

use serde_json::json;

use crate::connected::{start, terminal};
use crate::server::{Act, Dialect, Gate, Reply, Server, call, text};
use crate::shell::Shell;
use crate::wait;

/// Every title that was set, in order.
fn titles(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let titles = text.split("\x1b]2;").skip(1).filter_map(|rest| rest.split_once("\x1b\\"));
    titles.map(|(title, _)| title.to_owned()).collect()
}

#[test]
fn the_title_is_written_only_when_it_changes() {
    let shell = Shell::new(&[]);
    let wait = json!({"command": "until [ -e go ]; do sleep 0.02; done"});
    let server = Server::start(vec![call("c1", "bash", wait), text("Rested.")]);
    let mut terminal = terminal(&shell, &server, &["--mode", "auto"], (80, 24));
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    // Long enough that the spinner has gone round.
    for turned in ["⠋", "⠼", "⠇"] {
        terminal.wait_for_bytes(turned);
    }
    shell.write("go", "");
    terminal.wait_for("Rested.");
    terminal.wait_for("/ commands");
    terminal.send("\x04");
    assert_eq!(titles(&terminal.end().bytes), ["pixir · app", "● pixir · app", "pixir · app"]);
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
    assert!(
        !String::from_utf8_lossy(&bytes).contains("\x1b]9;"),
        "a terminal without progress would show this as a notification"
    );
}

#[test]
fn the_title_shows_the_state_and_the_bell_rings_once() {
    let shell = Shell::new(&[]);
    let gates = [Gate::default(), Gate::default()];
    let slowly = |words: &str, gate: &Gate| {
        let mut acts = vec![Act::Send(crate::server::HEAD.into()), Act::Until(gate.clone())];
        let answer = crate::server::answer(Dialect::Chat, &[crate::server::Part::Text(words)]);
        acts.push(Act::Send(answer.concat().into_bytes()));
        Reply::Raw(acts)
    };
    let server = Server::start(vec![slowly("One.", &gates[0]), slowly("Two.", &gates[1])]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
    terminal.wait_for("Ask pixir");
    // Without focus on the window, the end of the Turn is announced.
    terminal.send("\x1b[O");
    terminal.send("go\r");
    wait::until("the title says that a turn runs", || titles(&terminal.bytes()).len() == 2);
    gates[0].open();
    terminal.wait_for("One.");
    terminal.wait_for("/ commands");
    terminal.send("\x1b[I");
    terminal.send("again\r");
    wait::until("the title says that the next turn runs", || titles(&terminal.bytes()).len() == 4);
    gates[1].open();
    terminal.wait_for("Two.");
    terminal.wait_for("/ commands");
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    let bytes = String::from_utf8_lossy(&left.bytes).into_owned();
    assert_eq!(titles(&left.bytes), ["pixir · app", "● pixir · app", "pixir · app", "● pixir · app", "pixir · app"]);
    assert_eq!(bytes.matches('\x07').count(), 1, "one bell, for the turn that ended unseen");
    assert!(!bytes.contains("\x1b]9;4"), "no progress where it is not known to be shown");
}
