//! Every process that a command starts ends with it, however it hides.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::shell::{Shell, is_running, mark};
use crate::wait;

/// The long tier is `PIXIR_TREES=500 cargo test --test pixir -- processes`.
fn trees() -> u64 {
    std::env::var("PIXIR_TREES").ok().and_then(|n| n.parse().ok()).unwrap_or(50)
}

/// A command line that leaves processes behind in random ways. All of them sleep for a unique time, which identifies
/// them.
fn tree(random: &mut u64, marker: &str, depth: u32) -> String {
    let mut next = |n: u64| {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        (*random >> 11) % n
    };
    let leaf = format!("sleep {marker}");
    let kind = next(8);
    let inner = if depth > 0 && next(2) == 0 { tree(random, marker, depth - 1) } else { leaf };
    let quoted = inner.replace('\'', "'\\''");
    match kind {
        0 => format!("bash -c '{quoted}' &"),
        1 => format!("setsid bash -c '{quoted}' &"),
        2 => format!("( ( bash -c '{quoted}' & ) & )"),
        3 => format!("nohup setsid bash -c '{quoted}' >/dev/null 2>&1 &"),
        4 => format!("setsid -f bash -c '{quoted}'"),
        5 => format!("bash -c 'trap \"\" TERM HUP INT; {quoted}' &"),
        6 => format!("env -i PATH=\"$PATH\" setsid -f bash -c '{quoted}' </dev/null >/dev/null 2>&1"),
        _ => format!("bash -c '{quoted}' & setsid -f bash -c '{quoted}'"),
    }
}

fn until_gone(marker: &str) -> bool {
    wait::within(Duration::from_secs(1), || !is_running(marker))
}

fn script(shell: &Shell, commands: &[String]) -> String {
    let mut steps: Vec<Value> = commands
        .iter()
        .map(|command| json!({ "text": "", "calls": [ { "name": "bash", "args": { "command": command } } ] }))
        .collect();
    steps.push(json!({ "text": "Done." }));
    format!("script:{}", shell.aside("trees.json", &json!({ "steps": steps }).to_string()).display())
}

#[test]
fn no_process_outlives_its_command() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let marker = mark();
    let commands: Vec<String> = (0..trees()).map(|_| tree(&mut random, &marker, 3)).collect();
    let shell = Shell::new(&[]);
    let provider = script(&shell, &commands);
    let ran = shell.run(["--provider", &provider, "--headless", "--json", "--write", "go"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(until_gone(&marker), "survivors of {commands:#?}");
    let log = crate::shell::entries(&shell.logs()[0]);
    let results = log.iter().filter(|e| e["type"] == "tool_result");
    let slow = results.filter(|e| e["data"]["duration_ms"].as_u64().expect("a number") > 5_000).count();
    assert_eq!(slow, 0, "a call ends with its command, even when another process holds its pipes");
}

#[test]
fn no_process_outlives_an_interrupt_or_a_signal() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for signal in [Signal::INT, Signal::TERM, Signal::HUP].into_iter().cycle().take(9) {
        let marker = mark();
        let command = format!("{} touch started; sleep {marker}", tree(&mut random, &marker, 2) + "\n");
        let shell = Shell::new(&[]);
        let provider = script(&shell, std::slice::from_ref(&command));
        let mut child = shell
            .command(["--provider", &provider, "--headless", "--json", "--write", "go"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        wait::until(&format!("it has started: {command}"), || shell.workspace().join("started").exists());
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        child.wait().expect("it ends");
        assert!(until_gone(&marker), "{signal:?}: survivors of {command}");
    }
}
