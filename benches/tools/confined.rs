//! What confining a command costs, and what judging one costs.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use pixir_core::call::explain;
use pixir_core::event::Mode;
use pixir_core::provider::Providers;
use pixir_core::provider::script::{Script, Scripted};
use pixir_core::{Environment, Harness, Options, SessionDefaults};
use serde_json::{Value, json};

use crate::shell::Shell;
use crate::wait;

const EVERYDAY: &str = include_str!("../../tests/commands/everyday.txt");
const RUNS: usize = 300;

/// A bare `bash -c true` beside the same through the launcher, under the plans that pixir makes here. They take turns, so that
/// a slow moment of the machine is in all of them.
#[expect(clippy::print_stdout, reason = "a bench prints its table")]
pub(crate) fn commands() {
    println!(
        "\n| `bash -c true`, {RUNS} times in turn | best, ms | median, ms | p99, ms | over bare, ms | times bare |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let plans: Vec<(String, Shell, String)> = ["ns", "ll"]
        .into_iter()
        .flat_map(|tier| ["look", "work"].map(|policy| (tier, policy)))
        .map(|(tier, policy)| {
            let (shell, plan) = plan(tier, policy);
            (format!("{tier}, {policy}"), shell, plan)
        })
        .collect();
    let bare = || {
        let mut bash = Command::new("bash");
        bash.args(["-c", "true"]);
        bash
    };
    let confined = |plan: &str| {
        let mut launcher = Command::new(env!("CARGO_BIN_EXE_pixir-sandbox"));
        launcher.arg0("pixir-sandbox").args([plan, "bash", "-c", "true"]);
        launcher
    };
    let mut all = vec![Vec::with_capacity(RUNS); plans.len() + 1];
    for _ in 0..RUNS {
        all[0].push(took(bare()));
        for (times, (_, _, plan)) in all[1..].iter_mut().zip(&plans) {
            times.push(took(confined(plan)));
        }
    }
    all.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    let median_of_bare = all[0][RUNS / 2];
    let names = std::iter::once("bare").chain(plans.iter().map(|(name, ..)| name.as_str()));
    for (name, times) in names.zip(&all) {
        let (best, median, p99) = (times[0], times[RUNS / 2], times[RUNS * 99 / 100]);
        let (over, ratio) = (median - median_of_bare, median / median_of_bare);
        println!("| {name} | {best:.2} | {median:.2} | {p99:.2} | {over:.2} | {ratio:.1} |");
    }
}

/// The plan that the launcher of a running command has in its arguments, for this process as its owner.
fn plan(tier: &str, policy: &str) -> (Shell, String) {
    let shell = Shell::new(&[("in", "text\n")]);
    Command::new("git").args(["init", "-q"]).current_dir(shell.workspace()).status().expect("git");
    // The first one is proven to only read.
    let command = if policy == "look" { "sleep 60" } else { "sleep 60; touch x" };
    let script =
        json!({ "steps": [{ "calls": [{ "name": "bash", "args": { "command": command } }] }, { "text": "x" }] });
    let provider = format!("script:{}", shell.aside("script.json", &script.to_string()).display());
    let flags = ["--headless", "--mode", "auto", "--sandbox", tier, "--provider", &provider, "go"];
    let mut pixir = shell.command(flags).spawn().expect("it starts");
    let children = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", pixir.id())).into_iter().flatten().flatten();
        let lists = tasks.filter_map(|it| std::fs::read_to_string(it.path().join("children")).ok());
        lists.flat_map(|it| it.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let found = wait::found(wait::PATIENCE, || {
        children().into_iter().find_map(|child| {
            let line = std::fs::read(format!("/proc/{child}/cmdline")).ok()?;
            let line = String::from_utf8(line).ok()?;
            let mut words = line.split('\0');
            // The launcher that only tries a tier shows nothing but /usr.
            let plan = words.nth(1).filter(|_| line.starts_with("pixir-sandbox\0"))?;
            plan.contains("/app").then(|| plan.to_owned())
        })
    });
    let _ = pixir.kill();
    let _ = pixir.wait();
    let mut plan: Value = serde_json::from_str(&found.expect("a launcher")).expect("a plan");
    plan["owner"] = json!(std::process::id());
    (shell, plan.to_string())
}

/// How long this command takes, ms.
fn took(mut command: Command) -> f64 {
    let began = Instant::now();
    let ended = command.stdin(Stdio::null()).status().expect("it starts");
    let took = began.elapsed().as_secs_f64() * 1e3;
    assert!(ended.success(), "{ended}");
    took
}

/// How long the gate takes to judge each of the everyday commands.
#[expect(clippy::print_stdout, reason = "a bench prints its table")]
pub(crate) fn judgements() {
    let shell = Shell::new(&[("src/main.rs", "fn main() {}\n"), ("Cargo.toml", "")]);
    Command::new("git").args(["init", "-q"]).current_dir(shell.workspace()).status().expect("git");
    pixir_core::launch_through(env!("CARGO_BIN_EXE_pixir").as_ref());
    let environment = std::env::vars().filter(|(name, _)| name == "PATH").collect();
    let around = Environment { home: shell.home(), environment, ..Environment::default() };
    let providers = Providers::only("script", "m", Arc::new(Scripted::new(Script::default())));
    let harness =
        Harness::new(&shell.workspace(), &around, Arc::new(providers), Options::default(), SessionDefaults::default())
            .expect("a harness");
    let ctx = harness.tool_context("bench");
    let lines: Vec<&str> = EVERYDAY.lines().filter_map(|line| line.split_once(' ')).map(|(_, line)| line).collect();
    let mut all: Vec<f64> = (0..10)
        .flat_map(|_| &lines)
        .map(|line| {
            let began = Instant::now();
            std::hint::black_box(explain(Mode::Ask, line, &[], &ctx));
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    all.sort_by(f64::total_cmp);
    let (p50, p99) = (all[all.len() / 2], all[all.len() * 99 / 100]);
    println!("\njudging {} everyday commands, 10 times: p50 {p50:.3} ms, p99 {p99:.3} ms", lines.len());
}
