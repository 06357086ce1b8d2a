//! `pixir workflow runs|stop`: runs as their Logs tell them.

use clap::Args;
use pixir_core::log::Log;
use pixir_core::store::{Place, Summary};
use pixir_core::{Code, Error, Fact, Result, log};
use serde_json::{Value, json};

use super::run::run_id;
use crate::cli::Cli;
use crate::commands::elsewhere::{ask_to_stop, process_of};
use crate::output::{List, ListOptions};

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Session id of the run, a unique prefix of one, a name, or last
    run: String,
}

pub(super) fn runs(cli: &Cli, options: &ListOptions) -> Result<u8> {
    let harness = cli.offline_harness()?;
    let all: Vec<(Summary, String)> = harness
        .sessions_and_agents()
        .into_iter()
        .filter(|it| it.workflow.is_some())
        .filter_map(|it| {
            let place = harness.find(&it.id).ok()?;
            let status = status_of(&place);
            Some((it, status))
        })
        .collect();
    let name = |it: &Summary| it.workflow.clone().unwrap_or_default();
    let document: Vec<Value> = all
        .iter()
        .map(|(it, status)| {
            json!({
                "session_id": it.id, "workflow": name(it), "status": status, "started": format!("{:.3}", it.created),
                "last_activity": format!("{:.3}", it.last_activity), "usage": it.usage, "cost": it.cost, "parent": it.parent,
                "resume_command": format!("pixir workflow resume {}", it.id),
            })
        })
        .collect();
    let columns = &["session_id", "workflow", "status", "last_activity"];
    let list = List { name: "runs", key: "session_id", columns, rows: document, beside: json!({}) };
    list.print(&cli.output, options, |at| {
        let (it, status) = &all[at];
        format!("{}  {:<14}  {}  {}", it.id, status, it.last_minute(), name(it))
    })?;
    if all.is_empty() {
        cli.output.aside("no workflow was run in this workspace");
    }
    Ok(0)
}

/// How a run ended last, or that it runs.
fn status_of(place: &Place) -> String {
    if place.is_open() {
        return "running".to_owned();
    }
    let Ok(contents) = log::read(&place.log()) else { return "unreadable".to_owned() };
    let last = contents.entries.iter().rev().find_map(|entry| match &entry.fact {
        Fact::TurnEnded(it) => {
            let word = it.details.get("workflow").and_then(|it| it["status"].as_str());
            Some(word.unwrap_or(it.status.name()).to_owned())
        }
        // The process died under it.
        Fact::WorkflowEvent(_) => Some("detached".to_owned()),
        _ => None,
    });
    last.unwrap_or_else(|| "detached".to_owned())
}

/// Only the process that has a run open can stop it; it is asked to.
pub(super) fn stop(cli: &Cli, args: &StopArgs) -> Result<u8> {
    let place = cli.session_here(&run_id(cli, &args.run)?)?;
    let done = |text: &str, stopped: bool| {
        let document =
            json!({ "ok": true, "dry_run": cli.options.dry_run, "session_id": place.id, "stopped": stopped });
        cli.output.either(document, text);
        Ok(0)
    };
    let Some(locked) = Log::open(&place.log(), place.id.clone()).err().filter(|e| e.code == Code::SessionLocked) else {
        return done("the run is not open in any process", false);
    };
    match process_of(&locked, &["workflow"]) {
        Some(_) if cli.options.dry_run => done("the run would be stopped", false),
        Some(pid) => {
            ask_to_stop(pid)?;
            done("the run is told to stop; pixir workflow resume goes on with it", true)
        }
        None => {
            let message = format!("the run is open elsewhere: {}", locked.message);
            Err(Error::new(Code::SessionLocked, message, "stop it there: /workflows and x, or Esc"))
        }
    }
}
