//! The state folder and the workspace on file systems that are mounted read-only, or really full.

use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde_json::json;

use super::sessions::session;
use crate::pty::{Left, Terminal, foreign_sequences};
use crate::server::{Dialect, Server, call, text};
use crate::shell::{Ran, Shell, entries, figures, ran, skip};
use crate::wait;

/// The words before a command that may mount: for the superuser, and for a user who becomes one in a namespace.
const MOUNTING: [&[&str]; 2] = [&["unshare", "-m"], &["unshare", "-Urm"]];

/// The first of them that this machine allows. None skips the test.
pub(super) fn mounting() -> Option<&'static [&'static str]> {
    static WORDS: LazyLock<Option<&'static [&'static str]>> = LazyLock::new(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let may = |words: &&&[&str]| {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).args(["mount", "-t", "tmpfs", "-o", "size=1m", "none"]).arg(folder.path());
            command.output().is_ok_and(|it| it.status.success())
        };
        MOUNTING.iter().find(may).copied()
    });
    if WORDS.is_none() {
        skip("this user may not mount, not even in a namespace");
    }
    *WORDS
}

/// What is mounted in place of a folder, with the files that it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    ReadOnly,
    /// One megabyte, of which no byte is free.
    Full,
}

/// A line of bash that mounts in place of `$PLACE`, and then works in the workspace.
fn mount(state: State) -> &'static str {
    match state {
        State::ReadOnly => {
            "set -e; cp -a \"$PLACE\" \"$PLACE.saved\"; mount -t tmpfs none \"$PLACE\"
             cp -a \"$PLACE.saved/.\" \"$PLACE\"; mount -o remount,ro \"$PLACE\"; set +e; cd \"$WORKSPACE\""
        }
        State::Full => {
            "set -e; cp -a \"$PLACE\" \"$PLACE.saved\"; mount -t tmpfs -o size=1m none \"$PLACE\"
             cp -a \"$PLACE.saved/.\" \"$PLACE\"; set +e; cat /dev/zero > \"$PLACE/filling\" 2>/dev/null; cd \"$WORKSPACE\""
        }
    }
}

const NAMES: [&str; 4] = ["PIXIR", "PIXIR_HOME", "WORKSPACE", "PLACE"];

fn values(shell: &Shell, place: &str) -> [String; 4] {
    let home = shell.home().display().to_string();
    let workspace = shell.workspace().display().to_string();
    let place = if place == "home" { home.clone() } else { workspace.clone() };
    [env!("CARGO_BIN_EXE_pixir").to_owned(), home, workspace, place]
}

/// Runs a line of bash in which `$PIXIR` is the binary. It must end at all.
fn bash(shell: &Shell, words: &[&str], place: &str, state: State, line: &str) -> Ran {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["bash", "-c", &format!("{}; {line}", mount(state))]);
    command.envs(NAMES.into_iter().zip(values(shell, place))).env("HOME", shell.home());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let ended = wait::within(wait::PATIENCE, || child.try_wait().expect("it can be asked").is_some());
    if !ended {
        let _ = child.kill();
    }
    let ran = ran(child.wait_with_output().expect("it ends"));
    let _ = std::fs::remove_dir_all(format!("{}.saved", values(shell, place)[3]));
    assert!(ended, "it hangs: {line}\n{}", ran.stderr);
    ran
}

/// The interface in a terminal, with these arguments.
fn interface(shell: &Shell, words: &[&str], place: &str, state: State, args: &str) -> Terminal {
    let line = format!("{}; exec \"$PIXIR\" {args}", mount(state));
    let mut all = words[1..].to_vec();
    all.extend(["bash", "-c", &line]);
    let values = values(shell, place);
    let environment: Vec<(&str, &str)> = NAMES.into_iter().zip(values.iter().map(String::as_str)).collect();
    Terminal::of(shell, words[0].as_ref(), &all, &environment, 100, 30)
}

/// Nothing but pixir has drawn on the screen, and the terminal is as before.
fn check(shell: &Shell, place: &str, left: &Left) {
    left.assert_sane();
    let foreign = foreign_sequences(&left.bytes);
    assert!(foreign.is_empty(), "{foreign:?}");
    let _ = std::fs::remove_dir_all(format!("{}.saved", values(shell, place)[3]));
}

/// A state folder that takes nothing: what reads works, and what writes is an error with its reason.
///
/// Broken builds: a list or a `show` writes its index and fails when it cannot; `resume` returns the error of the open.
#[test]
fn a_state_folder_that_takes_nothing_is_still_read() {
    let Some(words) = mounting() else { return };
    let mut tried = 0;
    for (state, reason) in [(State::ReadOnly, "Read-only file system"), (State::Full, "No space left")] {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let id = session(&shell);
        for reads in ["list", "show last", "verify --all", "export last", "export last --to json"] {
            let ran = bash(&shell, words, "home", state, &format!("\"$PIXIR\" sessions {reads}"));
            assert_eq!(ran.code, 0, "{state:?}, {reads}: {}", ran.stderr);
            assert!(!ran.stdout.is_empty() && !ran.stderr.contains("error:"), "{state:?}, {reads}: {}", ran.stderr);
            tried += 1;
        }
        for reads in ["tree", "inspect", "replay", "run 'cat a.txt'", "themes list", "doctor"] {
            let ran = bash(&shell, words, "home", state, &format!("\"$PIXIR\" {reads}"));
            assert!(!ran.stdout.is_empty() && !ran.stderr.contains("panic"), "{state:?}, {reads}: {}", ran.stderr);
            tried += 1;
        }
        // The last page of a Log takes a few more lines on a full disk, so the answer is longer than a page.
        let long = "A long answer. ".repeat(1_000);
        let server = Server::start(vec![text(&long), text(&long)]);
        let flags = server.flags(Dialect::Chat).join(" ");
        let mut all = vec![
            format!("--headless {flags} hi"),
            format!("resume {id} --headless {flags} hi"),
            format!("fork {id} --at 1"),
            format!("sessions delete {id} --yes"),
        ];
        if state == State::ReadOnly {
            all.extend([format!("sessions rename {id} other"), format!("undo {id}")]);
        }
        for writes in all {
            let ran = bash(&shell, words, "home", state, &format!("\"$PIXIR\" {writes}"));
            assert!((1..128).contains(&ran.code), "{state:?}, {writes}: exit {}, {}", ran.code, ran.stderr);
            assert!(ran.stderr.contains(reason), "{state:?}, {writes}: {}", ran.stderr);
            tried += 1;
        }
        assert!(state == State::Full || server.bodies().is_empty(), "nothing was sent that could not be recorded");
        assert_eq!(shell.read("a.txt"), "omega\n");
        // The interface shows what there is, and says why it goes no further.
        let mut terminal = interface(&shell, words, "home", state, &format!("resume {id} {flags}"));
        terminal.wait_for("I change it.");
        terminal.wait_for("/ commands");
        terminal.send("go on\r");
        terminal.wait_for(reason);
        terminal.send("\x03\x03\x03\x03");
        check(&shell, "home", &terminal.end());
        tried += 1;
    }
    figures(&format!("a state folder that is read-only or full: {tried} tried, 0 failed"));
}

/// A workspace that takes nothing: each tool says why it changed nothing, and the Turn goes on to its end.
///
/// Broken build: a failed write ends the Turn.
#[test]
fn a_workspace_that_takes_nothing_fails_the_tools_and_not_the_turn() {
    let Some(words) = mounting() else { return };
    let mut tried = 0;
    for (state, reason) in [(State::ReadOnly, "Read-only file system"), (State::Full, "No space left")] {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let replies = || {
            vec![
                call("c1", "write", json!({"path": "new.txt", "content": "words\n"})),
                call("c2", "edit", json!({"path": "a.txt", "old_text": "alpha", "new_text": "omega"})),
                call("c3", "bash", json!({"command": "seq 1 3000 > numbers.txt"})),
                call("c4", "run", json!({"command": "write other.txt words"})),
                call("c5", "read", json!({"path": "a.txt"})),
                text("I could not."),
            ]
        };
        let check_log = |at: usize| {
            let mut logs = shell.logs();
            logs.sort();
            let log = entries(&logs[at]);
            let results: Vec<_> = log.iter().filter(|it| it["type"] == "tool_result").collect();
            let failed = results.iter().filter(|it| it["data"]["output"].to_string().contains(reason)).count();
            assert_eq!((results.len(), failed), (5, 4), "{state:?}: {results:#?}");
            assert_eq!(log.last().expect("entries")["data"]["status"], "completed");
        };
        let server = Server::start(replies());
        let flags = server.flags(Dialect::Chat).join(" ");
        let ran = bash(
            &shell,
            words,
            "workspace",
            state,
            &format!("\"$PIXIR\" --headless --write --toolset both {flags} go"),
        );
        assert_eq!((ran.code, ran.stdout.trim()), (0, "I could not."), "{state:?}: {}", ran.stderr);
        check_log(0);
        let server = Server::start(replies());
        let flags = server.flags(Dialect::Chat).join(" ");
        let mut terminal = interface(&shell, words, "workspace", state, &format!("--mode auto --toolset both {flags}"));
        terminal.wait_for("Ask pixir");
        terminal.send("go\r");
        terminal.wait_for("I could not.");
        // The line below the answer: the Turn has ended.
        terminal.wait_for("5 calls");
        terminal.send("\x04");
        check(&shell, "workspace", &terminal.end());
        check_log(1);
        assert_eq!(shell.read("a.txt"), "alpha\n");
        tried += 2;
    }
    figures(&format!("a workspace that is read-only or full: {tried} Turns tried, 0 failed"));
}
