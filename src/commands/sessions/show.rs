//! `pixir sessions show`: one Session.

use pixir_core::harness::Harness;
use pixir_core::history::History;
use pixir_core::store::{Place, Summary};
use pixir_core::text::human::human_size;
use pixir_core::{Result, changes, log};
use serde_json::{Value, json};

use super::summary_of;
use crate::output::{Output, safe};

pub(super) fn show(harness: &Harness, place: &Place, output: &Output) -> Result<()> {
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
        output.document(&json!({
            "schemaVersion": 1, "session": summary, "log": place.log(), "files_changed": files,
            "turns_on_other_branches": branches, "mode": history.settings.mode, "plan": history.plan,
            "usage": pixir_core::usage::sums(&history),
            "resume_command": format!("pixir resume {}", place.id),
        }));
        return Ok(());
    }
    let say = |name: &str, value: String| output.line(&safe(&format!("{name:<14} {value}")));
    say("session", place.id.to_string());
    say("title", summary.title().to_owned());
    say("workspace", summary.workspace.clone());
    say("model", summary.model.clone());
    say("began", summary.created.to_string());
    say("last activity", summary.last_activity.to_string());
    let other = if branches > 0 { format!(", {branches} on other branches") } else { String::new() };
    say("turns", format!("{}{other}", summary.turns));
    say("tool calls", summary.tool_calls.to_string());
    let sums = pixir_core::usage::sums(&history);
    say("tokens", sums.session.to_string());
    if sums.branch != sums.session {
        say("on this branch", sums.branch.to_string());
    }
    if sums.models.len() > 1 {
        sums.models.iter().for_each(|(model, total)| say("", format!("{model}: {total}")));
    }
    if let Some(parent) = &summary.forked_from {
        say("forked from", format!("{parent} at {}", summary.forked_at.unwrap_or_default()));
    }
    say("log", format!("{} ({}, {} entries)", place.log().display(), human_size(summary.bytes), summary.entries));
    if place.outputs().is_dir() {
        say("outputs", place.outputs().display().to_string());
    }
    if summary.damaged {
        say("damaged", format!("pixir sessions repair {} --dry-run", place.id));
    }
    for file in &files {
        say("changed", format!("{}  +{} −{}", file.path, file.added, file.removed));
    }
    Ok(())
}
