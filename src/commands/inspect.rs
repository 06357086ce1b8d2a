//! `pixir inspect`: the exact request of a Session, and what each part of it costs.

use pixir_core::harness::Harness;
use pixir_core::inspect::{Inspection, inspect};
use pixir_core::provider::choose::Providers;
use pixir_core::store::Place;
use pixir_core::{Code, Error, Result};
use serde_json::json;

use crate::cli::entries;
use crate::output::{Output, chatter, safe};

/// The request that would be sent after this entry.
pub(crate) fn show_request(
    harness: &Harness,
    providers: &Providers,
    place: &Place,
    seq: Option<u64>,
    output: &Output,
) -> Result<()> {
    let mut entries = entries(place, output)?;
    if let Some(seq) = seq {
        let last = entries.last().map_or(0, |entry| entry.seq);
        if seq > last {
            return Err(no_entry(seq, last, place));
        }
        entries.retain(|entry| entry.seq <= seq);
    }
    let it = inspect(&entries, place.id.as_str(), harness.registry(), harness.blobs(), providers);
    if output.is_json() {
        let mut document = json!({ "schemaVersion": 1, "session_id": place.id });
        let fields = serde_json::to_value(&it).expect("an inspection is JSON");
        if let (Some(document), Some(fields)) = (document.as_object_mut(), fields.as_object()) {
            document.extend(fields.clone());
        }
        output.document(&document);
        return Ok(());
    }
    tell_request(&it, output);
    Ok(())
}

pub(super) fn no_entry(seq: u64, last: u64, place: &Place) -> Error {
    let message = format!("there is no entry {seq}; the last is {last}");
    Error::new(Code::NotFound, message, format!("pixir replay {}", place.id)).with("input", seq)
}

fn tell_request(it: &Inspection, output: &Output) {
    let at = it.seq.map_or("nothing recorded yet".into(), |seq| format!("after entry {seq}"));
    output.line(&safe(&format!("{}/{} ({}), {at}", it.provider, it.model, it.server)));
    if let Some(note) = &it.note {
        chatter(note);
    }
    output.line(&format!("\n{:<16} {:>6} {:>12} {:>9}", "part", "count", "bytes", "~tokens"));
    for part in it.parts.iter().filter(|part| part.bytes > 0) {
        output.line(&format!("{:<16} {:>6} {:>12} {:>9}", part.name, part.count, part.bytes, part.tokens));
    }
    output.line(&format!("{:<16} {:>6} {:>12} {:>9}", "the request", "", it.bytes, it.tokens_estimated));
    if let Some(window) = it.window {
        let used = it.tokens_last_reported.unwrap_or(it.tokens_estimated as u64);
        let whose = if it.tokens_last_reported.is_some() { "as the provider counted last" } else { "estimated" };
        output.line(&format!("\n{used} of {window} tokens ({}%), {whose}", used * 100 / window.max(1)));
    }
    output.line("\nlargest pieces");
    for piece in &it.largest {
        output.line(&safe(&format!(
            "  {:>9} bytes  #{:<4} {:<13} {}",
            piece.bytes, piece.index, piece.kind, piece.begins
        )));
    }
    chatter("--json prints the request itself");
}
