//! What agents cost: from the call to the first request, memory, rounds, a copy, and keys on the screen meanwhile:
//! `cargo bench --bench agents`.
//!
//! The model is a script, so all of it is pixir's own work and the disk's.

#[path = "../tests/driver.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod driver;
#[path = "../tests/shell.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod shell;
#[path = "../tests/wait.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod wait;

use std::time::Instant;

use driver::Pixir;
use pixir_core::provider::script::{Script, Step};
use serde_json::{Value, json};
use shell::{Shell, entries, peak};

const SIZES: [usize; 3] = [1, 10, 100];
/// Rounds of each agent: a call, and the answer.
const ROUNDS: usize = 2;
/// Runs of each row; the median counts.
const RUNS: usize = 7;

fn main() {
    together();
    copies();
    screen();
}

fn spawn(n: usize, isolation: &str) -> Value {
    let mut args = json!({ "task": format!("Task {n:03}."), "name": format!("a{n:03}") });
    if isolation != "shared" {
        args["isolation"] = json!(isolation);
    }
    json!({ "name": "spawn_agent", "args": args })
}

fn steps(agents: usize, isolation: &str) -> Vec<Value> {
    let mut steps = Vec::new();
    // An answer without text and without calls is an error.
    if agents > 0 {
        steps.push(json!({ "calls": (0..agents).map(|n| spawn(n, isolation)).collect::<Vec<_>>() }));
    }
    for n in 0..agents {
        let of = format!("Task {n:03}.");
        steps.push(json!({ "of": of, "calls": [{ "name": "read", "args": { "path": "a.txt" } }] }));
        steps.push(json!({ "of": of, "text": "It says alpha." }));
    }
    steps.push(json!({ "text": "All have answered." }));
    steps
}

/// Runs a Turn that starts so many agents. Returns its milliseconds, and its peak of memory in KB.
fn run(shell: &Shell, agents: usize, isolation: &str) -> (f64, u64) {
    let path = shell.aside("script.json", &json!({ "steps": steps(agents, isolation) }).to_string());
    let provider = format!("script:{}", path.display());
    let numbers = ["--config", "agents.running=100", "--config", "agents.per_turn=1000"];
    let mut args = vec!["go", "--headless", "--json", "--mode", "auto", "--provider", &provider];
    args.extend(numbers);
    let began = Instant::now();
    let (kb, ran) = peak(shell, &args);
    let ms = began.elapsed().as_secs_f64() * 1e3;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    (ms, kb)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Milliseconds from the link in the parent's Log to the Entry of this type in the child's.
fn until(shell: &Shell, kind: &str) -> Vec<f64> {
    let logs: Vec<Vec<Value>> = shell.logs().iter().map(|path| entries(path)).collect();
    let at = |entry: &Value| {
        let ts = entry["ts"].as_str().expect("a time");
        ts.parse::<jiff::Timestamp>().expect("a time").as_millisecond() as f64
    };
    let links = logs.iter().flatten().filter(|it| it["data"]["event"] == "spawned");
    links
        .filter_map(|link| {
            let child = logs.iter().find(|log| log[0]["session_id"] == link["data"]["session_id"])?;
            let first = child.iter().find(|it| it["type"] == kind)?;
            Some(at(first) - at(link))
        })
        .collect()
}

#[expect(clippy::print_stdout, reason = "a table for the user")]
fn together() {
    println!(
        "| agents | turn, ms | – without agents | each round, ms | call to first request, ms | peak, MB | each, MB |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let measured = |agents| {
        let all: Vec<(f64, u64, f64)> = (0..RUNS)
            .map(|_| {
                let shell = Shell::new(&[("a.txt", "alpha\n")]);
                let (ms, kb) = run(&shell, agents, "shared");
                // The task is recorded just before the first request is sent.
                let first = until(&shell, "user_message");
                (ms, kb, if first.is_empty() { 0.0 } else { median(first) })
            })
            .collect();
        let of = |which: fn(&(f64, u64, f64)) -> f64| median(all.iter().map(which).collect());
        (of(|it| it.0), of(|it| it.1 as f64), of(|it| it.2))
    };
    let (none, memory, _) = measured(0);
    for agents in SIZES {
        let (ms, kb, first) = measured(agents);
        let round = (ms - none) / (agents * ROUNDS) as f64;
        let (peak, each) = (kb / 1024.0, (kb - memory) / 1024.0 / agents as f64);
        println!("| {agents} | {ms:.0} | {none:.0} | {round:.2} | {first:.0} | {peak:.0} | {each:.2} |");
    }
}

/// One agent in a copy of a workspace, without a repository and with one.
#[expect(clippy::print_stdout, reason = "a table for the user")]
fn copies() {
    println!("\n| a copy of | from the call to the beginning of the agent's log, ms |\n| --- | --- |");
    for (files, is_repository) in [(2_000, false), (2_000, true), (10_000, true)] {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        for n in 1..files {
            shell.write(&format!("src/{:02}/{n}.rs", n % 40), &format!("fn number_{n}() {{}}\n").repeat(60));
        }
        if is_repository {
            for args in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "all"], &["gc", "-q"]] {
                let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
                let mut git = std::process::Command::new("git");
                git.args(identity).args(args).current_dir(shell.workspace());
                assert!(git.status().expect("git").success());
            }
        }
        let times = (0..RUNS).map(|_| {
            shell.logs().iter().for_each(|log| std::fs::remove_file(log).expect("it can be removed"));
            run(&shell, 1, "copy");
            until(&shell, "session_started").into_iter().next().unwrap_or_default()
        });
        let with = if is_repository { "in a repository" } else { "without one" };
        println!("| {files} files {with} | {:.0} |", median(times.collect()));
    }
}

/// Keys while agents run.
#[expect(clippy::print_stdout, reason = "a table for the user")]
fn screen() {
    println!("\n| agents that run | key with its frame, 160x50: p50, ms | p99, ms |\n| --- | --- | --- |");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for agents in [0, 8, 64] {
        let mut steps =
            vec![json!({ "calls": (0..agents).map(|n| spawn(n, "shared")).collect::<Vec<_>>(), "text": "I begin." })];
        steps.extend((0..agents).map(|n| json!({ "of": format!("Task {n:03}."), "text": "I look.", "hang": true })));
        let steps: Vec<Step> = serde_json::from_value(Value::Array(steps)).expect("steps");
        let mut all = runtime.block_on(async {
            let mut pixir = Pixir::scripted(Script { steps, ..Script::default() }, &[("a.txt", "alpha\n")], 160, 50);
            pixir.screen.until_idle().await;
            pixir.screen.keys("go<Enter>").await;
            match agents {
                0 => pixir.screen.until_idle().await,
                _ => pixir.screen.until(&format!("{agents} agents")).await,
            }
            let mut all = Vec::new();
            for _ in 0..400 {
                let began = Instant::now();
                pixir.screen.keys("a").await;
                pixir.screen.paint();
                all.push(began.elapsed().as_secs_f64() * 1e3);
            }
            all
        });
        all.sort_by(f64::total_cmp);
        println!("| {agents} | {:.2} | {:.2} |", all[all.len() / 2], all[all.len() * 99 / 100]);
    }
}
