//! Every process that a command starts ends with it, however it hides.

use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::shell::{Shell, is_running, mark};
use crate::tier;
use crate::wait;

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
    let commands: Vec<String> = (0..tier::cases("processes")).map(|_| tree(&mut random, &marker, 3)).collect();
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

/// Starts a headless Turn that prints nowhere.
fn start(shell: &Shell, provider: &str) -> Child {
    start_with(shell, provider, &[])
}

fn start_with(shell: &Shell, provider: &str, flags: &[&str]) -> Child {
    let mut command = shell.command(["--provider", provider, "--headless", "--json", "--write", "go"]);
    command.args(flags);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
}

#[test]
fn no_process_outlives_an_interrupt_or_a_signal() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for signal in [Signal::INT, Signal::TERM, Signal::HUP].into_iter().cycle().take(9) {
        let marker = mark();
        let command = format!("{} touch started; sleep {marker}", tree(&mut random, &marker, 2) + "\n");
        let shell = Shell::new(&[]);
        let provider = script(&shell, std::slice::from_ref(&command));
        let mut child = start(&shell, &provider);
        wait::until(&format!("it has started: {command}"), || shell.workspace().join("started").exists());
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        child.wait().expect("it ends");
        assert!(until_gone(&marker), "{signal:?}: survivors of {command}");
    }
}

/// Kinds of processes that a command leaves running. `MARK` sleeps for a unique time.
const KINDS: [(&str, &str); 8] = [
    ("plain", "sleep MARK"),
    ("background", "sleep MARK & wait"),
    ("ignores signals", "trap '' TERM HUP INT QUIT; sleep MARK; sleep MARK"),
    ("own session", "setsid sleep MARK & wait"),
    ("double fork", "( ( sleep MARK & ) & ); sleep MARK"),
    ("own session without parent", "setsid -f sleep MARK; sleep MARK"),
    ("pipes kept open", "sleep MARK | cat | cat"),
    ("no environment", "env -i PATH=\"$PATH\" sleep MARK & wait"),
];

/// Those that hold nothing but programs: rules allow these, and not what the shell itself does.
const ALLOWED_BY_RULES: [&str; 3] = ["plain", "own session without parent", "pipes kept open"];

/// With a sandbox, what a killed pixir leaves running ends within a second, by itself. Without one, the user has allowed each
/// program, and what they leave ends before the next pixir in the workspace does anything.
///
/// Broken builds: the launcher does not end with pixir; `Harness::new` sweeps nothing; `Group::start` notes nothing; a sweep
/// only sends SIGTERM, or looks for the leader alone.
#[test]
fn no_process_outlives_the_next_pixir_after_a_kill() {
    let (mut tried, mut failed) = (0, Vec::new());
    let all = [Signal::KILL, Signal::QUIT, Signal::ABORT].map(|signal| ("ns", signal));
    for (tier, signal) in all.into_iter().chain([("ll", Signal::KILL), ("none", Signal::KILL)]) {
        let kinds = KINDS.iter().filter(|(kind, _)| tier != "none" || ALLOWED_BY_RULES.contains(kind));
        for (kind, command) in kinds {
            let marker = mark();
            let shell = Shell::new(&[]);
            let command = format!("touch started; {}", command.replace("MARK", &marker));
            let provider = script(&shell, std::slice::from_ref(&command));
            let rules = ["touch", "sleep", "setsid", "cat"].map(|it| format!("bash({it} *)"));
            let mut flags = vec!["--sandbox", tier];
            if tier == "none" {
                flags.extend(rules.iter().flat_map(|rule| ["--allow", rule]));
            }
            let mut child = start_with(&shell, &provider, &flags);
            wait::until(&format!("its process runs: {tier}, {kind}"), || {
                shell.workspace().join("started").exists() && is_running(&format!("sleep\0{marker}"))
            });
            kill_process(Pid::from_child(&child), signal).expect("it runs");
            child.wait().expect("it ends");
            tried += 1;
            if tier != "none" && !until_gone(&marker) {
                failed.push(format!("{tier}, {signal:?}, {kind}: not gone by itself"));
            }
            // Any command that opens the workspace; the survivors are gone when it ends.
            let listed = shell.run(["sessions", "list", "--json"]);
            if listed.code != 0 || !wait::within(Duration::from_secs(1), || !is_running(&marker)) {
                failed.push(format!("{tier}, {signal:?}, {kind}"));
            }
            let notes = std::fs::read_dir(shell.home().join("running")).map_or(0, Iterator::count);
            assert_eq!(notes, 0, "{signal:?}, {kind}: notes are left");
            if signal != Signal::KILL {
                let ends = crate::shell::entries(&shell.logs()[0]);
                let last = ends.last().expect("entries");
                assert_eq!((&last["type"], &last["data"]["status"]), (&json!("turn_ended"), &json!("interrupted")));
            }
        }
    }
    assert!(failed.is_empty(), "{} of {tried} left processes: {failed:?}", failed.len());
    crate::shell::figures(&format!("QR1: {tried} kinds of death and child tried, {} failed", failed.len()));
}

/// A sweep ends what the dead process started, and nothing that a living one runs.
///
/// Broken build: notes are not compared with the process that wrote them.
#[test]
fn a_sweep_leaves_the_processes_of_a_living_pixir_alone() {
    let marker = mark();
    let shell = Shell::new(&[]);
    let provider = script(&shell, &[format!("touch started; sleep {marker}")]);
    let mut child = shell
        .command(["--provider", &provider, "--headless", "--json", "--write", "go"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    wait::until("its process runs", || is_running(&format!("sleep\0{marker}")));
    assert_eq!(shell.run(["sessions", "list"]).code, 0);
    assert_eq!(shell.run(["run", "ls", "--json"]).code, 0);
    assert!(is_running(&marker), "it still runs");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    child.wait().expect("it ends");
    assert!(until_gone(&marker));
}
