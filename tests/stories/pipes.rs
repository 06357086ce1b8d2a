//! Standard input and output as pipes: slow, closed, left open.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::pty::Terminal;
use crate::server::{Dialect, Server, text};
use crate::shell::{Shell, ran};

#[test]
fn a_closed_stdout_ends_the_program_quietly() {
    let shell = Shell::new(&[]);
    let mut child = shell.command(["demo", "--format", "jsonl"]).spawn().expect("it starts");
    drop(child.stdout.take());
    let ran = ran(child.wait_with_output().expect("it ends"));
    assert!(!ran.stderr.contains("panic"), "{}", ran.stderr);
}

#[test]
fn a_slow_reader_gets_the_whole_answer() {
    let shell = Shell::new(&[]);
    let long: String = (0..40_000).map(|n| format!("line {n} of a long answer\n")).collect();
    let server = Server::start(vec![text(&long)]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["--headless", "go"].map(str::to_owned));
    let mut child = shell.command(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut out = child.stdout.take().expect("stdout");
    let mut read = Vec::new();
    let mut piece = [0; 4_096];
    // Reads nothing until the whole answer was sent, then small pieces.
    server.wait_for(1);
    server.wait_until_alone();
    loop {
        let n = out.read(&mut piece).expect("read");
        if n == 0 {
            break;
        }
        read.extend_from_slice(&piece[..n]);
        std::thread::yield_now();
    }
    assert!(child.wait().expect("it ends").success());
    assert_eq!(String::from_utf8(read).expect("text").trim_end(), long.trim_end());
}

#[test]
fn an_open_stdin_is_not_waited_for() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Hello.")]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["--headless", "hi"].map(str::to_owned));
    let mut child = shell.command(args).stdin(Stdio::piped()).spawn().expect("it starts");
    let open = child.stdin.take();
    let output = child.wait_with_output().expect("it ends");
    drop(open);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("Hello."));
}

#[test]
fn a_closed_stdout_of_replay_is_no_error() {
    let shell = Shell::new(&[]);
    let long: String = (0..20_000).map(|n| format!("line {n} of a long answer\n")).collect();
    let server = Server::start(vec![text(&long)]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["--headless", "go"].map(str::to_owned));
    assert_eq!(shell.run(args).code, 0);
    let mut child = shell.command(["replay", "last"]).spawn().expect("it starts");
    let mut out = child.stdout.take().expect("stdout");
    out.read_exact(&mut [0; 64]).expect("read");
    drop(out);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panic") && !said.contains("error"), "{said}");
}

/// A stdout that the user sends to `/dev/null` is open, also where it is opened as Rust's runtime would open it.
///
/// Broken build: `Output` looks at the file behind stdout.
#[test]
fn a_result_that_is_thrown_away_on_purpose_is_no_error() {
    let shell = Shell::new(&[]);
    for for_reading in [false, true] {
        let null = OpenOptions::new().read(for_reading).write(true).open("/dev/null").expect("there is /dev/null");
        let ran = ran(shell.command(["schema"]).stdout(null).output().expect("it runs"));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    }
}

/// The terminal interface without a stdout is an error in words, and leaves the terminal as it was.
///
/// Broken build: `present` asks for a prompt, as if there were no terminal.
#[test]
fn the_interface_without_stdout_is_an_error() {
    for command in ["", " resume --last"] {
        let shell = Shell::new(&[]);
        let line = format!("{}{command} >&-; echo \"exit $?\" >&2", env!("CARGO_BIN_EXE_pixir"));
        let terminal = Terminal::of(&shell, "bash".as_ref(), &["-c", &line], &[], 80, 24);
        let left = terminal.end();
        left.assert_sane();
        assert!(left.screen.contains("stdout is closed") && left.screen.contains("exit 1"), "{}", left.screen);
    }
}

/// A disk that is full in the middle of a result is an error too.
///
/// Broken builds: only the first write is checked; the signal that announces the limit ends a command without a runtime.
#[test]
fn a_result_that_is_cut_by_a_full_disk_is_an_error() {
    let shell = Shell::new(&[]);
    let path = shell.aside("schema.json", "");
    // A file of at most 2 blocks of 1,024 bytes.
    let line = format!("ulimit -f 2; exec {} schema > {}", env!("CARGO_BIN_EXE_pixir"), path.display());
    let mut command = Command::new("bash");
    command.args(["-c", &line]).current_dir(shell.workspace()).env("PIXIR_HOME", shell.home());
    let ran = ran(command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("it runs"));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("WRITE_FAILED"), "{}", ran.stderr);
    let written = std::fs::read_to_string(&path).expect("a part");
    assert!(!written.is_empty() && serde_json::from_str::<Value>(&written).is_err());
}
