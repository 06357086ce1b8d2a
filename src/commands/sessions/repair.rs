//! `pixir sessions repair`: repair a damaged Log.

use pixir_core::store::Place;
use pixir_core::{Result, log};
use serde_json::{Value, json};

use crate::cli::Cli;

pub(super) fn run(cli: &Cli, place: &Place) -> Result<()> {
    let dry_run = cli.options.dry_run;
    let it = log::repair(&place.log(), &place.id, dry_run)?;
    let mut document = json!({
        "ok": true, "dry_run": dry_run, "session_id": place.id, "needed": it.is_needed(), "repair": it,
    });
    if !it.is_needed() {
        document["repair"]["quarantine"] = Value::Null;
        cli.output.either(document, &format!("{} is not damaged: {} entries", place.id, it.kept));
        return Ok(());
    }
    let mut text: Vec<String> = it.damage.iter().map(|d| format!("line {}: {}", d.line, d.reason)).collect();
    if it.torn > 0 {
        text.push(format!("an incomplete write at the end ({} bytes)", it.torn));
    }
    if it.duplicates > 0 {
        text.push(format!("{} duplicate lines", it.duplicates));
    }
    let (stay, holds) = if dry_run { ("would stay", "would hold") } else { ("stay", "holds") };
    text.push(format!("{} entries {stay}; {} {holds} the damaged log", it.kept, it.quarantine.display()));
    cli.output.either(document, &text.join("\n"));
    Ok(())
}
