//! Exit codes: each one that `pixir schema` lists is produced by a run.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::sessions::session;
use crate::server::{Dialect, Reply, Server};
use crate::shell::{Ran, Shell, entries, ran};
use crate::wait;

/// A run whose model's server answers with this status.
fn answered_with(shell: &Shell, status: u16) -> Ran {
    let body = r#"{"error":{"message":"later"}}"#.to_owned();
    let server = Server::start(vec![Reply::Refuse { status, headers: String::new(), body }]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["-p", "--json", "--patience", "0", "go"].map(str::to_owned));
    shell.run(args)
}

/// A run that a signal ends while its command runs.
fn signalled(shell: &Shell, signal: Signal) -> Ran {
    let here = shell.workspace().join("here");
    let args = r#"{"command": "touch here; sleep 60"}"#;
    let child = shell.command(["tools", "run", "bash", args, "--write", "--json"]).spawn().expect("it starts");
    wait::until("the command runs", || here.exists());
    fs::remove_file(&here).expect("remove");
    let id = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
    kill_process(id, signal).expect("the signal is sent");
    ran(child.wait_with_output().expect("it ends"))
}

/// Replaces a byte in the middle of a Log.
fn damage(log: &std::path::Path) {
    let text = fs::read_to_string(log).expect("read");
    fs::write(log, text.replacen("alpha", "alphA", 1)).expect("write");
}

/// Broken builds: a code is in the table and nothing ends with it; a fault ends with another code than the table says.
#[test]
fn every_exit_code_of_the_table_is_that_of_a_run() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let id = session(&shell);
    let other = session(&shell);
    let script = shell.aside(
        "loop.json",
        r#"{ "steps": [ { "calls": [ { "name": "read", "args": { "path": "a.txt" } } ] }, { "text": "x" } ] }"#,
    );
    let looping = format!("script:{}", script.display());
    let mut seen: BTreeMap<String, (i32, Value)> = BTreeMap::new();
    let mut ends = |name: &str, expected: i32, ran: Ran| {
        assert_eq!(ran.code, expected, "{name}: {}{}", ran.stdout, ran.stderr);
        let at = ran.stderr.find("{\n");
        let error: Value = at.map_or(Value::Null, |at| serde_json::from_str(&ran.stderr[at..]).expect("a document"));
        assert!(error.is_null() || error["exit_code"] == expected, "{name}: the envelope says {}", error["exit_code"]);
        seen.insert(expected.to_string(), (expected, error));
    };
    ends("a command that works", 0, shell.run(["status", "--json"]));
    ends("arguments", 2, shell.run(["status", "--nonesuch", "--json"]));
    ends("nothing to do", 3, shell.run(["redo", &id, "--json"]));
    ends("no credentials", 4, shell.run(["-p", "--json", "go"]));
    ends("no such session", 5, shell.run(["sessions", "show", "nonesuch", "--json"]));
    ends("outside", 6, shell.run(["tools", "run", "read", r#"{"path": "../../etc/passwd"}"#, "--json"]));
    ends("a rate limit", 7, answered_with(&shell, 429));
    ends("a busy server", 8, answered_with(&shell, 503));
    ends("configuration", 10, shell.run(["status", "--config", "nonesuch=1", "--json"]));
    ends(
        "a session to look at",
        11,
        shell.run(["resume", &id, "--read-only", "-p", "--json", "--provider", &looping, "go on"]),
    );
    ends("a change without --write", 12, shell.run(["run", "write b.txt x", "--json"]));
    ends("no prompt", 13, shell.run(["-p", "--json"]));
    ends("a limit", 14, shell.run(["-p", "--json", "--max-rounds", "1", "--provider", &looping, "go"]));
    for (signal, code) in [(Signal::HUP, 129), (Signal::INT, 130), (Signal::TERM, 143)] {
        ends("a signal", code, signalled(&shell, signal));
    }
    let logs = shell.logs();
    let log = logs.iter().find(|log| log.to_string_lossy().contains(&other)).expect("its log");
    assert!(entries(log).len() > 3);
    damage(log);
    ends("a damaged log", 1, shell.run(["sessions", "verify", &other, "--json"]));
    ends("one of two damaged", 9, shell.run(["sessions", "verify", "--all", "--json"]));
    let table = shell.run(["schema", "exit_codes"]).document();
    let listed: Vec<&String> = table["part"].as_object().expect("a table").keys().collect();
    let mut produced: Vec<&String> = seen.keys().collect();
    produced.sort_by(|a, b| listed.iter().position(|it| it == a).cmp(&listed.iter().position(|it| it == b)));
    assert_eq!(produced, listed);
}

/// Broken builds: a file that is missing is a mistake in the arguments of one command, and not found by another; a theme that
/// does not exist is written to the configuration.
#[test]
fn one_kind_of_fault_has_one_exit_code_in_every_command() {
    let shell = Shell::new(&[]);
    let ends = |args: &[&str], expected: i32, input: &str| {
        let ran = shell.run(args.iter().copied().chain(["--json"]));
        let error = ran.error();
        assert_eq!((ran.code, &error["exit_code"]), (expected, &Value::from(expected)), "{args:?}: {error}");
        assert_eq!(error["error"]["details"]["input"], input, "{args:?}: {error}");
    };
    let demo = ["-p", "x", "--provider", "demo"];
    for flags in [["--attach", "gone"], ["--output-schema", "gone"], ["--add-dir", "gone"], ["-C", "gone"]] {
        ends(&[&demo[..], &flags].concat(), 5, "gone");
    }
    for words in [&["sessions", "import", "gone"][..], &["skills", "validate", "gone"], &["agents", "validate", "gone"]]
    {
        ends(words, 5, "gone");
    }
    ends(&["workflow", "validate", "./gone.toml"], 5, "./gone.toml");
    let script = shell.run(["tui", "--script", "gone", "--screen", "text"]);
    assert!(script.code == 5 && script.stderr.contains("code: NOT_FOUND"), "{script:?}");
    // A value that its setting cannot have.
    for (key, value) in [("effort", "hihg"), ("mode", "aks"), ("theme", "drak")] {
        ends(&["config", "set", key, value], 10, value);
    }
    let themes = shell.run(["config", "set", "theme", "drak"]);
    assert!(themes.stderr.contains("dark"), "what would fit is named: {}", themes.stderr);
    assert_eq!(shell.run(["config", "set", "theme", "dark"]).code, 0);
}
