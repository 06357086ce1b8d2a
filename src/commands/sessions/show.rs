//! `pixir sessions show`: show one Session.

use pixir_core::history::History;
use pixir_core::store::{Place, Summary};
use pixir_core::text::human::human_size;
use pixir_core::{Harness, Result, changes, log};
use serde_json::{Value, json};

use super::summary_of;
use crate::cli::Cli;

pub(super) fn run(cli: &Cli, harness: &Harness, place: &Place) -> Result<()> {
    let output = &cli.output;
    let contents = log::read(&place.log())?;
    let summary = Summary { damaged: !contents.damage.is_empty(), ..summary_of(place)? };
    let history = History::fold(contents.entries);
    let files = changes::between(history.entries().iter(), harness.blobs());
    let branches = pixir_core::tree::nodes(&history).iter().filter(|node| !node.on_path).count();
    if output.is_json() {
        let files: Vec<Value> = files
            .iter()
            .map(|f| json!({ "path": f.path, "kind": f.kind, "added": f.added, "removed": f.removed }))
            .collect();
        output.document(json!({
            "session": summary, "log": place.log(), "files_changed": files,
            "turns_on_other_branches": branches, "mode": history.settings.mode, "plan": history.plan,
            "usage": pixir_core::usage::sums(&history),
            "resume_command": format!("pixir resume {}", place.id),
        }));
        return Ok(());
    }
    let row = |name: &str, value: String| output.line(&format!("{name:<14} {value}"));
    row("session", place.id.to_string());
    row("title", summary.title().to_owned());
    row("workspace", summary.workspace.clone());
    row("model", summary.model.clone());
    row("began", summary.created.to_string());
    row("last activity", summary.last_activity.to_string());
    let other = if branches > 0 { format!(", {branches} on other branches") } else { String::new() };
    row("turns", format!("{}{other}", summary.turns));
    row("tool calls", summary.tool_calls.to_string());
    let sums = pixir_core::usage::sums(&history);
    row("tokens", sums.session.to_string());
    if sums.branch != sums.session {
        row("on this branch", sums.branch.to_string());
    }
    if sums.models.len() > 1 {
        sums.models.iter().for_each(|(model, total)| row("", format!("{model}: {total}")));
    }
    if let Some(parent) = &summary.forked_from {
        row("forked from", format!("{parent} at {}", summary.forked_at.unwrap_or_default()));
    }
    row("log", format!("{} ({}, {} entries)", place.log().display(), human_size(summary.bytes), summary.entries));
    if place.outputs().is_dir() {
        row("outputs", place.outputs().display().to_string());
    }
    if summary.damaged {
        row("damaged", format!("pixir sessions repair {} --dry-run", place.id));
    }
    for file in &files {
        row("changed", format!("{}  +{} −{}", file.path, file.added, file.removed));
    }
    Ok(())
}
