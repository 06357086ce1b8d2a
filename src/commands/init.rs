//! `pixir init`: a first AGENTS.md, sketched from the files of the repository.

use clap::Args;
use pixir_core::{Code, Error, Remedy, Result};
use serde_json::json;

use crate::cli::Cli;

/// What to do where there is a file already.
fn overwrite() -> Remedy {
    Remedy::command("pixir init --dry-run")
        .and_text(" to compare, or ")
        .and_flag("--force")
        .and_text(" to replace it; in a session, /init asks the model to improve it")
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
}

pub(super) fn run(cli: &Cli, args: &InitArgs) -> Result<u8> {
    let harness = cli.offline_harness()?;
    let sketch = harness.sketch();
    let dry_run = cli.options.dry_run;
    if !dry_run {
        harness.write_sketch(&sketch, args.force).map_err(|e| match e.code {
            Code::ConfirmationNeeded => Error { remedy: overwrite(), ..e },
            _ => e,
        })?;
    }
    let document = json!({
        "ok": true, "dry_run": dry_run, "path": sketch.path, "bytes": sketch.text.len(), "text": sketch.text,
    });
    if dry_run {
        cli.output.either(document, sketch.text.trim_end());
        cli.output.aside(&format!("nothing was changed; without --dry-run this becomes {}", sketch.path));
    } else {
        cli.output.either(document, &format!("wrote {} ({} bytes)", sketch.path, sketch.text.len()));
        cli.output.aside("read it and correct it; in a session, /init asks the model to improve it");
    }
    Ok(0)
}
