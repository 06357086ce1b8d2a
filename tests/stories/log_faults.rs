//! System calls on the Log that fail in the real process.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::server::{Dialect, Server, text};
use crate::shell::{Shell, entries, figures, skip};

/// Whether this machine lets strace inject faults.
fn can_inject() -> bool {
    let tried =
        Command::new("strace").args(["-f", "-o", "/dev/null", "-e", "inject=getpid:error=EIO", "/bin/true"]).output();
    tried.is_ok_and(|ran| ran.status.success())
}

#[test]
fn a_failed_system_call_on_the_log_stops_the_turn() {
    if !can_inject() {
        return skip("strace cannot inject faults");
    }
    let all = std::env::var_os("PIXIR_INJECT").is_some();
    let script = r#"{ "steps": [
        { "text": "One.", "calls": [ { "name": "bash", "args": { "command": "echo 1 > ran1" } } ] },
        { "text": "Two.", "calls": [ { "name": "write", "args": { "path": "ran2", "content": "2" } } ] },
        { "text": "Done." } ] }"#;
    let calls: &[(&str, &[&str], u32)] = &[
        ("fdatasync", &["EIO", "ENOSPC"], 12),
        ("write", &["ENOSPC", "EIO", "EDQUOT"], 20),
        ("ftruncate", &["EIO"], 1),
        ("openat", &["EMFILE", "EACCES"], 3),
        ("flock", &["ENOLCK"], 1),
        ("pread64", &["EIO"], 2),
    ];
    let (mut cells, mut stopped) = (0, 0);
    for (call, errors, upto) in calls {
        for error in *errors {
            for sticky in ["", "+"] {
                // In CI a sample, spread over the whole run.
                let step = if all { 1 } else { (upto / 4).max(1) };
                for at in (1..=*upto).step_by(step as usize) {
                    cells += 1;
                    stopped += u32::from(one_injection(script, call, error, &format!("{at}{sticky}")));
                }
            }
        }
    }
    figures(&format!("{cells} injected failures; {stopped} stopped the turn, the rest came after it or were survived"));
    assert!(stopped * 3 > cells, "the faults arrive");
}

/// Whether the fault stopped the Turn.
fn one_injection(script: &str, call: &str, error: &str, when: &str) -> bool {
    let shell = Shell::new(&[]);
    let path = shell.aside("script.json", script);
    let provider = format!("script:{}", path.display());
    let greeting = shell.aside("greeting.json", r#"{ "steps": [ { "text": "Hello." } ] }"#);
    let first = format!("script:{}", greeting.display());
    assert_eq!(shell.run(["--provider", &first, "--headless", "hi"]).code, 0);
    let log = shell.logs().remove(0);
    let id = log.file_stem().expect("a name").to_string_lossy().into_owned();
    let resume = ["resume", &id, "x", "--provider", &provider, "--headless", "--write", "--format", "jsonl"];
    let plain = shell.command(resume);
    let mut command = Command::new("strace");
    // Only system calls on the Log fail, in every thread.
    let inject = format!("inject={call}:error={error}:when={when}");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject, "-P"]).arg(&log);
    command.arg(plain.get_program()).args(plain.get_args()).env_clear();
    command.envs(plain.get_envs().filter_map(|(k, v)| Some((k, v?)))).current_dir(shell.workspace());
    command.stdin(Stdio::null());
    let ran = crate::shell::ran(command.output().expect("strace runs"));
    let what = format!("{call} {error} {when}\n{}\n{}", ran.stdout, ran.stderr);
    let acknowledged: Vec<Value> = ran
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|line: &Value| line["seq"].is_u64())
        .collect();
    let recorded = entries(&log);
    for line in &acknowledged {
        let seq = usize::try_from(line["seq"].as_u64().expect("a number")).expect("small");
        assert_eq!(recorded.get(seq).map(|e| &e["id"]), Some(&line["id"]), "acknowledged and not there: {what}");
    }
    // No tool ran whose call is not in the Log.
    for (file, name) in [("ran1", "bash"), ("ran2", "write")] {
        let is_recorded = recorded.iter().any(|e| e["type"] == "tool_call" && e["data"]["name"] == name);
        assert!(is_recorded || !shell.workspace().join(file).exists(), "{name} ran unrecorded: {what}");
    }
    let ended = recorded.iter().filter(|e| e["type"] == "turn_ended").count();
    assert!(ended == 2 || ran.code != 0, "a turn without its end, and success: {what}");
    let server = Server::start(vec![text("On again.")]);
    let mut args = vec!["resume".to_owned(), id, "go on".into(), "--headless".into(), "--json".into()];
    args.extend(server.flags(Dialect::Chat));
    let again = shell.run(args);
    assert_eq!(again.code, 0, "it does not open again: {what}\n{}", again.stderr);
    let balanced = entries(&log);
    let count = |kind: &str| balanced.iter().filter(|e| e["type"] == kind).count();
    assert_eq!((count("tool_call"), count("user_message")), (count("tool_result"), count("turn_ended")), "{what}");
    ran.code != 0
}
