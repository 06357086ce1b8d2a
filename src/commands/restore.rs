//! `pixir undo` and `pixir redo`: set files back to an earlier state.

use clap::Args;
use pixir_core::error::NoticeCode;
use pixir_core::event::{ChangeKind, FilePreview, FilesRestored, RestorePreview, RestoreReason, Standing};
use pixir_core::input::{OnConflict, RestoreOptions};
use pixir_core::{Event, Fact, Input, Live, Result};
use serde_json::json;

use crate::cli::{Cli, block_on};
use crate::headless::request;
use crate::output::{Output, chatter};

#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// Session id, a unique prefix of one, a name, or last
    #[arg(default_value = "last")]
    id: String,
    /// Turn to undo. Default: the last one that changed files
    #[arg(long, value_name = "N")]
    turn: Option<u32>,
    #[command(flatten)]
    restore: RestoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RedoArgs {
    /// Session id, a unique prefix of one, a name, or last
    #[arg(default_value = "last")]
    id: String,
    #[command(flatten)]
    restore: RestoreArgs,
}

#[derive(Debug, Args)]
struct RestoreArgs {
    /// What to do with files that changed since: keep, merge or overwrite
    #[arg(long, value_name = "CHOICE", default_value = "keep")]
    changed_since: String,
    /// Also restore protected files, such as .git/hooks: they can run code or widen permissions
    #[arg(long)]
    allow_protected: bool,
}

pub(super) fn undo(cli: &Cli, args: &UndoArgs) -> Result<u8> {
    restore(cli, &args.id, &args.restore, |options| Input::Undo { turn: args.turn, options })
}

pub(super) fn redo(cli: &Cli, args: &RedoArgs) -> Result<u8> {
    restore(cli, &args.id, &args.restore, |options| Input::Redo { options })
}

fn restore(cli: &Cli, id: &str, options: &RestoreArgs, input: impl Fn(RestoreOptions) -> Input) -> Result<u8> {
    let (harness, place) = cli.locate(id)?;
    let choice = OnConflict::parse(&options.changed_since)?;
    let dry_run = cli.options.dry_run;
    let output = &cli.output;
    output.aside(&format!("session {} in {}", place.id, harness.workspace().display()));
    if dry_run {
        // A read-only Session opens a damaged Log without an error; reading its entries reports the damage.
        cli.entries(&place)?;
    }
    let (_, events) = block_on(async {
        let handle =
            if dry_run { harness.open_read_only(&place.id)? } else { harness.open_for_maintenance(&place.id)? };
        let answer = request(
            &handle,
            input(RestoreOptions {
                dry_run,
                changed_since: choice,
                protected: options.allow_protected,
                ..RestoreOptions::default()
            }),
        )
        .await;
        handle.close().await;
        answer
    })?;
    for event in events {
        match event {
            Event::Live(event) => match event.live {
                Live::RestorePreviewed(preview) => print_preview(&preview, choice, output),
                Live::Notice { message, code, .. } if code == NoticeCode::FileLeft.name() => output.aside(&message),
                _ => {}
            },
            Event::Recorded(entry) => {
                if let Fact::FilesRestored(it) = &entry.fact {
                    print_restored(it, output);
                }
            }
        }
    }
    Ok(0)
}

fn print_preview(preview: &RestorePreview, choice: OnConflict, output: &Output) {
    if output.is_json() {
        output.document(json!({ "ok": true, "dry_run": true, "plan": preview }));
        return;
    }
    output.aside(&heading(preview.reason, preview.of_turn));
    for file in &preview.files {
        let diff = match (file.standing, choice) {
            (Standing::ChangedSince, OnConflict::Merge) => file.merged.as_deref().unwrap_or_default(),
            (Standing::ChangedSince, OnConflict::Keep) => file.since.as_deref().unwrap_or_default(),
            (Standing::ChangedSince, OnConflict::Overwrite)
            | (Standing::Ready | Standing::AlreadyThere | Standing::Impossible, _) => file.diff.as_str(),
        };
        let mark = if file.protected { " (protected: needs --allow-protected)" } else { "" };
        output.line(&format!("{}: {}{mark}\n{diff}", file.path, outcome(file, choice)));
    }
    if preview.files.is_empty() {
        chatter("nothing to restore: every file already has its content");
    }
}

/// What a restore would do with a file.
fn outcome(file: &FilePreview, choice: OnConflict) -> &str {
    match file.standing {
        Standing::AlreadyThere => "is as it was already",
        Standing::Ready => match file.kind {
            ChangeKind::Created => "would be created again",
            ChangeKind::Modified => "would be restored",
            ChangeKind::Deleted => "would be deleted",
        },
        Standing::ChangedSince => match (choice, file.merged.is_some()) {
            (OnConflict::Keep, true) => "is kept: it changed since (--changed-since merge or overwrite restores it)",
            (OnConflict::Keep, false) => "is kept: it changed since (--changed-since overwrite restores it)",
            (OnConflict::Merge, true) => "would be restored, with the later changes merged in",
            (OnConflict::Merge, false) => "is kept: the same lines changed since",
            (OnConflict::Overwrite, _) => "would be restored, and the later changes overwritten",
        },
        Standing::Impossible => file.why.as_deref().unwrap_or("cannot be restored"),
    }
}

fn heading(reason: RestoreReason, of_turn: Option<u32>) -> String {
    match (reason, of_turn) {
        (RestoreReason::Undo, Some(turn)) => format!("undo of turn {turn}"),
        (RestoreReason::Redo, Some(turn)) => format!("redo of turn {turn}"),
        (RestoreReason::Undo, None) => "undo of a reverted hunk".to_owned(),
        (RestoreReason::Redo, None) => "redo of a reverted hunk".to_owned(),
        (RestoreReason::Hunk, _) => "revert of a hunk".to_owned(),
        (RestoreReason::Rewind | RestoreReason::Stayed | RestoreReason::Adopt | RestoreReason::Unknown, _) => {
            "files".to_owned()
        }
    }
}

fn print_restored(it: &FilesRestored, output: &Output) {
    let document = json!({ "ok": true, "dry_run": false, "restored": it });
    let mut lines: Vec<String> =
        it.changes.iter().map(|change| format!("{}  +{} −{}", change.path, change.added, change.removed)).collect();
    lines.extend(it.left.iter().map(|left| format!("{}  left: {}", left.path, left.why)));
    output.aside(&heading(it.reason, it.of_turn));
    output.either(document, &lines.join("\n"));
}
