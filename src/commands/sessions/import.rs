//! `pixir sessions import`: import a Session from an exported JSON file.

use std::path::PathBuf;

use clap::Args;
use pixir_core::{Code, Error, Harness, Remedy, Result, archive};
use serde_json::json;

use crate::cli::Cli;
use crate::output::count;

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// File that `pixir sessions export --to json` wrote
    file: PathBuf,
}

pub(super) fn run(cli: &Cli, harness: &Harness, args: &ImportArgs) -> Result<()> {
    let dry_run = cli.options.dry_run;
    let file = &args.file;
    let text = std::fs::read_to_string(file).map_err(|e| {
        Error::new(
            if e.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::ReadFailed },
            format!("read {}: {e}", file.display()),
            Remedy::text("name a file that this wrote: ").and_command("pixir sessions export ID --to json"),
        )
        .with("input", file.display().to_string())
    })?;
    let it = archive::import(text, harness.store(), harness.workspace(), dry_run)?;
    let verb = match (it.already_there, dry_run) {
        (true, _) => "exists already",
        (false, true) => "would be imported",
        (false, false) => "is imported",
    };
    let with = if it.agents > 0 { format!(", {}", count(it.agents, "agent")) } else { String::new() };
    cli.output.either(
        json!({ "ok": true, "dry_run": dry_run, "imported": it, "resume_command": format!("pixir resume {}", it.session_id) }),
        &format!("{} {verb}: {} entries, {} file versions, {} outputs{with}", it.session_id, it.entries, it.blobs, it.outputs),
    );
    Ok(())
}
