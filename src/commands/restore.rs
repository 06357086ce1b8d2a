//! `pixir undo`, `redo`: files that are set back.

use pixir_core::error::NoticeCode;
use pixir_core::event::{ChangeKind, FilesRestored, RestorePlan, RestoreReason, Standing};
use pixir_core::harness::Harness;
use pixir_core::input::{Choice, Wish};
use pixir_core::store::Place;
use pixir_core::{Event, Fact, Input, Live, Result};
use serde_json::json;

use crate::cli::entries;
use crate::headless::ask;
use crate::output::{Output, chatter, safe};

/// Plans or does what takes a Turn's changes back, or brings them back.
pub(crate) async fn restore(
    harness: &Harness,
    place: &Place,
    changed_since: &str,
    dry_run: bool,
    make: impl Fn(Wish) -> Input,
    output: &Output,
) -> Result<()> {
    let choice = Choice::parse(changed_since)?;
    let wish = Wish { dry_run, changed_since: choice, ..Wish::default() };
    output.aside(&format!("session {} in {}", place.id, harness.workspace().display()));
    if dry_run {
        // What is damaged is looked at all the same, and that is said.
        entries(place, output)?;
    }
    let handle = if dry_run { harness.open_read_only(&place.id)? } else { harness.open_for_maintenance(&place.id)? };
    let asked = ask(&handle, make(wish)).await;
    handle.close().await;
    for event in asked?.1 {
        match event {
            Event::Live(event) => match event.live {
                Live::RestorePlanned(plan) => tell_plan(&plan, choice, output),
                Live::Notice { message, code, .. } if code == NoticeCode::FileLeft.name() => output.aside(&message),
                _ => {}
            },
            Event::Recorded(entry) => {
                if let Fact::FilesRestored(it) = &entry.fact {
                    tell_restored(it, output);
                }
            }
        }
    }
    Ok(())
}

fn tell_plan(plan: &RestorePlan, choice: Choice, output: &Output) {
    if output.is_json() {
        output.document(&json!({ "schemaVersion": 1, "ok": true, "dry_run": true, "plan": plan }));
        return;
    }
    output.aside(&heading(plan.reason, plan.of_turn));
    for file in &plan.files {
        let diff = match (file.standing, choice) {
            (Standing::ChangedSince, Choice::Merge) => file.merged.as_deref().unwrap_or_default(),
            (Standing::ChangedSince, Choice::Keep) => file.since.as_deref().unwrap_or_default(),
            _ => file.diff.as_str(),
        };
        let how = match file.standing {
            Standing::Ready | Standing::AlreadyThere => match file.kind {
                ChangeKind::Created => "would come back",
                ChangeKind::Modified => "would be set back",
                ChangeKind::Deleted => "would go",
            },
            Standing::ChangedSince => match (choice, file.merged.is_some()) {
                (Choice::Keep, true) => {
                    "stays, because of what somebody changed since (--changed-since merge or overwrite)"
                }
                (Choice::Keep, false) => "stays, because of what somebody changed since (--changed-since overwrite)",
                (Choice::Merge, true) => "would be set back around what somebody changed since",
                (Choice::Merge, false) => "stays: somebody changed the same places since",
                (Choice::Overwrite, _) => "would be overwritten with what somebody changed since",
            },
            Standing::Impossible => file.why.as_deref().unwrap_or("cannot be restored"),
        };
        output.line(&safe(&format!("{}: {how}\n{diff}", file.path)));
    }
    if plan.files.is_empty() {
        chatter("all files are as they should be already");
    }
}

fn heading(reason: RestoreReason, of_turn: Option<u32>) -> String {
    match (reason, of_turn) {
        (RestoreReason::Undo, Some(turn)) => format!("undo of turn {turn}"),
        (RestoreReason::Redo, Some(turn)) => format!("redo of turn {turn}"),
        _ => "files".to_owned(),
    }
}

fn tell_restored(it: &FilesRestored, output: &Output) {
    let document = json!({ "schemaVersion": 1, "ok": true, "dry_run": false, "restored": it });
    let mut text: Vec<String> = it.changes.iter().map(|c| format!("{}  +{} −{}", c.path, c.added, c.removed)).collect();
    output.aside(&heading(it.reason, it.of_turn));
    text.extend(it.left.iter().map(|left| format!("{}  left: {}", left.path, left.why)));
    output.either(&document, &text.join("\n"));
}
