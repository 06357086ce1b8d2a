//! `pixir gc`: delete data that no Session refers to.

use std::time::Duration;

use clap::Args;
use pixir_core::text::human::human_size;
use pixir_core::{Code, Error, Remedy, Result};
use serde_json::json;

use crate::cli::Cli;
use crate::output::count;

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Confirm the deletion
    #[arg(long)]
    yes: bool,
    /// Days that a deleted session stays in the trash
    #[arg(long, default_value_t = 30, value_name = "N")]
    trash_days: u32,
}

pub(super) fn run(cli: &Cli, args: &GcArgs) -> Result<u8> {
    let store = cli.store()?;
    let dry_run = cli.options.dry_run;
    let garbage = store.garbage(Duration::from_secs(u64::from(args.trash_days) * 86_400))?;
    let text = format!(
        "{}, {}, {}, {}: {}",
        count(garbage.trash.len(), "deleted session"),
        count(garbage.blobs.len(), "file version"),
        count(garbage.outputs.len(), "saved output"),
        count(garbage.leftovers.len(), "leftover"),
        human_size(garbage.bytes)
    );
    if !dry_run && !args.yes && !garbage.is_empty() {
        return Err(Error::new(
            Code::ConfirmationNeeded,
            format!("this would permanently delete {text}"),
            Remedy::command("pixir gc --yes")
                .and_text("  # ")
                .and_command("pixir gc --dry-run --json")
                .and_text(" lists every file"),
        ));
    }
    if !dry_run {
        store.clean(&garbage)?;
    }
    let verb = if dry_run { "would delete" } else { "deleted" };
    cli.output.either(json!({ "ok": true, "dry_run": dry_run, "garbage": garbage }), &format!("{verb} {text}"));
    Ok(0)
}
