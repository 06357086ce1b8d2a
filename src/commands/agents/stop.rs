//! `pixir agents stop`: agents of a session that another process may have open.

use clap::Args;
use pixir_core::log::Log;
use pixir_core::store::Place;
use pixir_core::{Code, Error, Result};
use rustix::process::Pid;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

use super::tree::{Agent, agents_of};
use crate::cli::{Cli, block_on};
use crate::commands::elsewhere::{ask_to_stop, process_of};
use crate::output::count;

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Session id, a unique prefix of one, a name, or last
    id: String,
}

/// Only the process that has a Session open can stop its agents, so it is asked to: a run without a terminal ends with them, a
/// terminal and a host go on. Where none has it open, those without an end died with their process, and their ends are
/// recorded.
pub(super) fn run(cli: &Cli, args: &StopArgs) -> Result<u8> {
    let (harness, place) = cli.locate(&args.id)?;
    let (root, _) = place.lineage()?;
    let agents = agents_of(&root)?;
    let mut left: Vec<String> = Vec::new();
    unfinished(&agents, &mut left);
    let locked = Log::open(&root.log(), root.id.clone()).err().filter(|e| e.code == Code::SessionLocked);
    let dry_run = cli.options.dry_run;
    if let Some(locked) = locked.filter(|_| !left.is_empty()) {
        return match process_of(&locked, &["--headless", "workflow"]) {
            Some(pid) => stop_run(cli, &root, &left, pid),
            None => stop_in(cli, &root, &left, &locked),
        };
    }
    if !dry_run && !left.is_empty() {
        block_on(async {
            let handle = harness.open_for_maintenance(&root.id)?;
            handle.close().await;
            Ok::<(), Error>(())
        })?;
    }
    let verb = if dry_run { "would be recorded" } else { "is recorded" };
    let text = match left.len() {
        0 => "no agent of this session runs".to_owned(),
        n => format!("no agent of this session runs; the end of {} whose pixir was killed {verb}", count(n, "agent")),
    };
    cli.output.either(json!({ "ok": true, "dry_run": dry_run, "session_id": root.id, "ended": left }), &text);
    Ok(0)
}

/// A run without a terminal has nothing to do without its agents.
fn stop_run(cli: &Cli, root: &Place, left: &[String], pid: Pid) -> Result<u8> {
    let verb = if cli.options.dry_run { "would be" } else { "is" };
    if !cli.options.dry_run {
        ask_to_stop(pid)?;
    }
    let text = format!(
        "the run without a terminal {verb} told to stop, and {} with it: {}; pixir resume {} goes on",
        count(left.len(), "agent"),
        left.join(", "),
        root.id
    );
    let document = json!({
        "ok": true, "dry_run": cli.options.dry_run, "session_id": root.id, "ended": [], "told_to_stop": left,
    });
    cli.output.either(document, &text);
    Ok(0)
}

/// A terminal or a host stops the agents and goes on.
fn stop_in(cli: &Cli, root: &Place, left: &[String], locked: &Error) -> Result<u8> {
    let names = left.join(", ");
    let told = |document: Value, text: &str| {
        let mut fields = json!({ "ok": true, "dry_run": cli.options.dry_run, "session_id": root.id });
        fields.as_object_mut().into_iter().for_each(|it| it.extend(document.as_object().cloned().unwrap_or_default()));
        cli.output.either(fields, text);
        Ok(0)
    };
    let agents = count(left.len(), "agent");
    if cli.options.dry_run {
        let text = format!("the process that has the session open would be asked to stop {agents}: {names}");
        return told(json!({ "ended": [], "told_to_stop": left }), &text);
    }
    root.ask_for_end_of_agents()
        .map_err(|e| Error::new(Code::CommandFailed, format!("ask for the end of the agents: {e}"), "/agents and x"))?;
    let mut open = left.to_vec();
    let began = Instant::now();
    block_on(async {
        while !open.is_empty() && began.elapsed() < PATIENCE {
            tokio::time::sleep(LOOK_AGAIN).await;
            open.clear();
            unfinished(&agents_of(root)?, &mut open);
        }
        Ok::<(), Error>(())
    })?;
    if root.take_back_end_of_agents() {
        return Err(elsewhere(locked, root, left));
    }
    if open.is_empty() {
        return told(json!({ "ended": left }), &format!("{agents} stopped: {names}; the session goes on"));
    }
    let text = format!("asked to stop, and not ended yet: {}", open.join(", "));
    let ended: Vec<&String> = left.iter().filter(|name| !open.contains(name)).collect();
    told(json!({ "ended": ended, "told_to_stop": open }), &text)
}

/// How long the process that has the Session open may take to stop its agents.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the Logs are read meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

fn unfinished(agents: &[Agent], names: &mut Vec<String>) {
    for agent in agents {
        if agent.end.is_none() {
            names.push(agent.spawned.name.clone());
        }
        unfinished(&agent.below, names);
    }
}

/// The message of the lock names the process.
fn elsewhere(locked: &Error, root: &Place, left: &[String]) -> Error {
    let agents = count(left.len(), "agent");
    let message =
        format!("{agents} of {} may be running, and its process does not answer: {}", root.id, locked.message);
    let fix =
        "stop them there: /agents and x in its terminal, the Input stop_agents from its host, or end that process";
    Error::new(Code::SessionLocked, message, fix).with("agents", left.to_vec())
}
