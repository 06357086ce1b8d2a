//! `pixir gc`: remove what no Session refers to.

use std::time::Duration;

use pixir_core::store::Store;
use pixir_core::text::human::human_size;
use pixir_core::{Code, Error, Result};
use serde_json::json;

use crate::output::{Output, count};

/// Removes what nothing refers to, or says what it would remove.
pub(crate) fn gc(store: &Store, trash_days: u32, yes: bool, dry_run: bool, output: &Output) -> Result<()> {
    let garbage = store.garbage(Duration::from_secs(u64::from(trash_days) * 86_400))?;
    let text = format!(
        "{}, {}, {}, {}: {}",
        count(garbage.trash.len(), "deleted session"),
        count(garbage.blobs.len(), "file version"),
        count(garbage.outputs.len(), "output"),
        count(garbage.leftovers.len(), "leftover"),
        human_size(garbage.bytes)
    );
    if !dry_run && !yes && !garbage.is_empty() {
        return Err(Error::new(
            Code::ConfirmationNeeded,
            format!("this would remove for good: {text}"),
            "pixir gc --yes  # pixir gc --dry-run --json lists every file",
        ));
    }
    if !dry_run {
        store.clean(&garbage)?;
    }
    let verb = if dry_run { "would remove" } else { "removed" };
    output.either(
        &json!({ "schemaVersion": 1, "ok": true, "dry_run": dry_run, "garbage": garbage }),
        &format!("{verb} {text}"),
    );
    Ok(())
}
