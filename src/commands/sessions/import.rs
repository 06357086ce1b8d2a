//! `pixir sessions import`: a Session from an exported JSON file.

use std::path::Path;

use pixir_core::harness::Harness;
use pixir_core::{Code, Error, Result, archive};
use serde_json::json;

use crate::output::Output;

pub(super) fn import(harness: &Harness, file: &Path, dry_run: bool, output: &Output) -> Result<()> {
    let text = std::fs::read_to_string(file).map_err(|e| {
        Error::new(Code::ReadFailed, format!("read {}: {e}", file.display()), "an existing file of exported JSON")
            .with("input", file.display().to_string())
    })?;
    let it = archive::import(&text, harness.store(), harness.workspace(), dry_run)?;
    let verb = match (it.already_there, dry_run) {
        (true, _) => "is there already",
        (false, true) => "would be made",
        (false, false) => "is there now",
    };
    output.either(
        &json!({ "schemaVersion": 1, "ok": true, "dry_run": dry_run, "imported": it, "resume_command": format!("pixir resume {}", it.session_id) }),
        &format!("{} {verb}: {} entries, {} file versions, {} outputs", it.session_id, it.entries, it.blobs, it.outputs),
    );
    Ok(())
}
