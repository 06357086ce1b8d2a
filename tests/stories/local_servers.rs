//! Model servers of this machine on their usual ports. Each test has a network of its own, where these ports are free.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;

use crate::pty::Terminal;
use crate::server::Gate;
use crate::shell::{Shell, skip};

/// Set in the child that a test starts: itself, in a network of its own.
const IS_CHILD: &str = "PIXIR_TEST_HAS_OWN_NETWORK";

/// Runs the test with this name once more, in a network of its own. False in that run.
fn is_delegated(name: &str) -> bool {
    if std::env::var_os(IS_CHILD).is_some() {
        return false;
    }
    let own = std::env::current_exe().expect("this test is a program");
    for unshare in ["-n", "-Urn"] {
        let mut command = Command::new("unshare");
        command.args([unshare, "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
        if !command.arg("true").output().is_ok_and(|it| it.status.success()) {
            continue;
        }
        let mut command = Command::new("unshare");
        command.args([unshare, "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]).arg(own);
        let name = format!("stories::local_servers::{name}");
        let output = command.args(["--exact", &name, "--nocapture"]).env(IS_CHILD, "1").output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return true;
    }
    skip("this user may not have a network of their own");
    true
}

/// A server on ollama's port that accepts every request, and lists its models when the gate opens.
fn slow_server(gate: &Gate) {
    let listener = TcpListener::bind("127.0.0.1:11434").expect("the port is free");
    let gate = gate.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let gate = gate.clone();
            std::thread::spawn(move || {
                let mut start = [0; 1_024];
                let _ = stream.read(&mut start);
                gate.wait();
                let body = r#"{"data": [{"id": "small"}]}"#;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
                let _ = write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len());
            });
        }
    });
}

/// The interface is there while a slow server makes pixir wait, says that it connects, and then what came of it.
///
/// Broken builds: the interface opens when the server has answered; a server that says nothing is not named; the error names
/// a setting that does not help.
#[test]
fn a_slow_local_server_is_waited_for_in_sight_of_the_user() {
    if is_delegated("a_slow_local_server_is_waited_for_in_sight_of_the_user") {
        return;
    }
    let gate = Gate::default();
    slow_server(&gate);
    // It never answers.
    let shell = Shell::new(&[]);
    let mut terminal = Terminal::start(&shell, &[], 100, 30);
    terminal.wait_for("connecting to a model");
    terminal.send("typed meanwhile");
    terminal.wait_for("❯ typed meanwhile");
    terminal.wait_for("ollama on port 11434 did not list its models within 2 s");
    terminal.send("\x03\x03\x03\x03");
    terminal.end().assert_sane();
    let ran = shell.run(["--headless", "hi"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("waiting for a model's server"), "{}", ran.stderr);
    assert!(ran.stderr.contains("ollama on port 11434 did not list its models within 2 s"), "{}", ran.stderr);
    // What it is asked for by name needs no list.
    assert!(ran.stderr.contains("--model ollama/NAME"), "{}", ran.stderr);
    let named = shell.run(["--headless", "--provider", "ollama", "hi"]);
    assert!(named.stderr.contains("did not list its models within 5 s"), "{}", named.stderr);
    assert!(named.stderr.contains("--model ollama/NAME"), "{}", named.stderr);
    let json = shell.run(["--headless", "--json", "hi"]);
    assert_eq!(json.error()["code"], "AUTH_REQUIRED", "nothing but the error is on stderr");
    // It answers while the user waits.
    let mut terminal = Terminal::start(&shell, &[], 100, 30);
    terminal.wait_for("connecting to a model");
    gate.open();
    terminal.wait_for("ollama answers on port");
    terminal.send("\x04");
    terminal.end().assert_sane();
}
