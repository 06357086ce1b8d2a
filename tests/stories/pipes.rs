//! Standard input and output as pipes: slow, closed, left open.

use std::io::Read as _;
use std::process::Stdio;

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
