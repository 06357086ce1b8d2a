//! `pixir sessions repair`: a damaged Log is made whole.

use pixir_core::store::Place;
use pixir_core::{Result, log};
use serde_json::{Value, json};

use crate::output::Output;

pub(super) fn repair(place: &Place, dry_run: bool, output: &Output) -> Result<()> {
    let it = log::repair(&place.log(), &place.id, dry_run)?;
    let mut document = json!({
        "schemaVersion": 1, "ok": true, "dry_run": dry_run, "session_id": place.id, "needed": it.is_needed(), "repair": it,
    });
    if !it.is_needed() {
        document["repair"]["quarantine"] = Value::Null;
        output.either(&document, &format!("{} is whole: {} entries", place.id, it.kept));
        return Ok(());
    }
    let mut text: Vec<String> = it.damage.iter().map(|d| format!("line {}: {}", d.line, d.reason)).collect();
    if it.torn > 0 {
        text.push(format!("a write that was cut off ({} bytes)", it.torn));
    }
    if it.duplicates > 0 {
        text.push(format!("{} lines that stood there twice", it.duplicates));
    }
    let (stays, keeps) = if dry_run { ("would stay", "would keep") } else { ("stay", "keeps") };
    text.push(format!("{} entries {stays}; {} {keeps} the log as it was", it.kept, it.quarantine.display()));
    output.either(&document, &text.join("\n"));
    Ok(())
}
