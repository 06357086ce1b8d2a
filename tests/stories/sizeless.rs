//! A terminal of which the kernel does not know the size: a container's exec, a serial line.

use rustix::process::Signal;

use crate::pty::Terminal;
use crate::shell::Shell;

/// Whether the frame of the composer ends in this column, and the status line is in this row.
fn is_drawn(rows: &[String], (columns, last): (u16, u16)) -> bool {
    let ends_there = |row: &String| row.ends_with('╮') && row.chars().count() == usize::from(columns);
    rows.iter().any(ends_there) && rows.iter().rposition(|row| !row.is_empty()) == Some(usize::from(last) - 1)
}

/// Broken builds: ce783d9e draws nothing for ever at 0x0, 0x24 and 80x0; one that takes the guess for the size after the
/// kernel has told one.
#[test]
fn a_terminal_without_a_size_is_drawn_and_the_next_size_corrects_it() {
    let none: &[(&str, &str)] = &[];
    let told = [("COLUMNS", "100"), ("LINES", "30")];
    let nonsense = [("COLUMNS", "0"), ("LINES", "many")];
    // What the kernel knows, what the environment says, what the terminal reports, and what is drawn.
    let cases = [
        ((0, 0), none, "", (80, 24)),
        ((0, 24), none, "", (80, 24)),
        ((0, 40), none, "", (80, 40)),
        ((80, 0), none, "", (80, 24)),
        ((0, 0), &told[..], "", (100, 30)),
        ((0, 0), &told[..], "\x1b[8;33;90t", (100, 30)),
        ((0, 0), &told[..1], "\x1b[8;33;90t", (100, 33)),
        ((0, 0), &nonsense[..], "", (80, 24)),
        ((0, 0), none, "\x1b[8;33;90t", (90, 33)),
        // An older terminal reports only where its cursor is in the far corner.
        ((0, 0), none, "\x1b[33;90R", (90, 33)),
        ((0, 0), none, "\x1b[8;0;0t", (80, 24)),
    ];
    for (known, environment, report, drawn) in cases {
        let shell = Shell::new(&[]);
        let terminal = Terminal::unknown(&shell, environment, known, (120, 50), report);
        let what = format!("{known:?} {environment:?} {report:?}");
        terminal.wait_that_rows(&format!("{what} is drawn as {drawn:?}"), |rows| is_drawn(rows, drawn));
        terminal.resize(60, 20);
        terminal.wait_that_rows(&format!("{what}: the next size counts"), |rows| is_drawn(rows, (60, 20)));
        terminal.signal(Signal::TERM);
        terminal.end().assert_settings_restored();
    }
}

/// Broken build: a size that is known is asked for, so that the reply of a slow terminal reaches the shell.
#[test]
fn a_terminal_with_a_size_is_not_asked_for_it() {
    let shell = Shell::new(&[]);
    let terminal = Terminal::start(&shell, &[], 80, 24);
    terminal.wait_that_rows("it is drawn", |rows| is_drawn(rows, (80, 24)));
    assert!(!String::from_utf8_lossy(&terminal.bytes()).contains("\x1b[18t"));
    terminal.signal(Signal::TERM);
    terminal.end().assert_settings_restored();
}
