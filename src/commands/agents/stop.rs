//! `pixir agents stop`: agents of a session that another process may have open.

use clap::Args;
use pixir_core::log::Log;
use pixir_core::store::Place;
use pixir_core::{Code, Error, Result};
use serde_json::json;

use super::tree::{Agent, agents_of};
use crate::cli::{Cli, block_on};
use crate::commands::elsewhere::{ask_to_stop, process_of};
use crate::output::count;

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Session id, a unique prefix of one, a name, or last
    id: String,
}

/// Only the process that has a Session open can stop its agents: a run without a terminal is told to. Where none has it open, those without an end died with their
/// process, and their ends are recorded.
pub(super) fn run(cli: &Cli, args: &StopArgs) -> Result<u8> {
    let (harness, place) = cli.locate(&args.id)?;
    let (root, _) = place.lineage()?;
    let agents = agents_of(&root)?;
    let mut left: Vec<String> = Vec::new();
    unfinished(&agents, &mut left);
    let locked = Log::open(&root.log(), root.id.clone()).err().filter(|e| e.code == Code::SessionLocked);
    let dry_run = cli.options.dry_run;
    if let Some(locked) = locked.filter(|_| !left.is_empty()) {
        let pid = process_of(&locked, &["--headless", "workflow"]).ok_or_else(|| elsewhere(&locked, &root, &left))?;
        let verb = if dry_run { "would be" } else { "is" };
        if !dry_run {
            ask_to_stop(pid)?;
        }
        let text = format!(
            "the run without a terminal {verb} told to stop, and {} with it: {}; pixir resume {} goes on",
            count(left.len(), "agent"),
            left.join(", "),
            root.id
        );
        let document = json!({
            "ok": true, "dry_run": dry_run, "session_id": root.id, "ended": [], "told_to_stop": left,
        });
        cli.output.either(document, &text);
        return Ok(0);
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
    let message = format!("{} of {} may be running: {}", count(left.len(), "agent"), root.id, locked.message);
    let fix =
        "stop them there: /agents and x in its terminal, the Input stop_agents from its host, or end that process";
    Error::new(Code::SessionLocked, message, fix).with("agents", left.to_vec())
}
