//! `pixir inspect`, `replay`, `diagnose`, `gc`: what a Session is made of, and what is wrong with it.

use std::time::Duration;

use pixir_core::diagnose::{Finding, Level, diagnose};
use pixir_core::harness::Harness;
use pixir_core::inspect::{Inspection, inspect};
use pixir_core::present::human_size;
use pixir_core::provider::choose::Providers;
use pixir_core::store::{Place, Store};
use pixir_core::{Code, Error, Fact, Result};
use serde_json::{Value, json};

use super::travel::entries;
use crate::args::Format;
use crate::narrate::{self, Narrator};
use crate::output::{Output, chatter, count, safe};
use crate::remedies;

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

/// The Log, told again.
pub(crate) fn replay(place: &Place, from: u64, output: &Output) -> Result<()> {
    let entries = entries(place, output)?;
    let last = entries.last().map_or(0, |entry| entry.seq);
    if from > last {
        return Err(no_entry(from, last, place));
    }
    let mut narrator = Narrator::default();
    let mut told = 0;
    for entry in &entries {
        if output.is_closed() {
            return Ok(());
        }
        // What came before is only needed to understand what follows.
        let text = narrator.entry(&entry.fact).or_else(|| narrate::broke(&entry.fact));
        if entry.seq < from {
            continue;
        }
        told += 1;
        match output.format {
            Format::Jsonl => output.line(&entry.encode()?),
            Format::Json => {}
            Format::Plain | Format::Tsv => {
                if let Some(text) = text {
                    output.line(&safe(&text));
                }
            }
        }
    }
    let mut result = json!({ "schemaVersion": 1, "ok": true, "session_id": place.id, "entries": told, "exit_code": 0 });
    match output.format {
        Format::Json => {
            let lines: Result<Vec<serde_json::Value>> = entries
                .iter()
                .filter(|entry| entry.seq >= from)
                .map(|entry| Ok(serde_json::from_str(&entry.encode()?).unwrap_or_default()))
                .collect();
            result["events"] = json!(lines?);
            output.document(&result);
        }
        Format::Jsonl => {
            result["type"] = json!("result");
            output.line(&result.to_string());
        }
        Format::Plain | Format::Tsv => {
            if entries.iter().all(|e| !matches!(e.fact, Fact::UserMessage(_))) {
                chatter("nothing was said in this session");
            }
        }
    }
    Ok(())
}

/// What is wrong, and the next thing to do. Ends with 1 when something is in the way.
pub(crate) fn show_diagnosis(store: &Store, providers: &Providers, place: &Place, output: &Output) -> Result<u8> {
    let it = diagnose(place, &store.blobs(), providers)?;
    let failed = it.findings.iter().any(|finding| finding.level == Level::Fail);
    if output.is_json() {
        output.document(&json!({
            "schemaVersion": 1, "ok": !failed, "session_id": it.session_id, "findings": it.findings.iter().map(finding_json).collect::<Vec<_>>(), "next_actions": [remedies::word(&it.next_action)],
        }));
    } else {
        for finding in &it.findings {
            let level = match finding.level {
                Level::Ok => "ok  ",
                Level::Warn => "warn",
                Level::Fail => "FAIL",
            };
            let fix = finding.fix.as_ref().map_or(String::new(), |fix| format!("\n      fix: {}", remedies::word(fix)));
            output.line(&safe(&format!("{level}  {}: {}{fix}", finding.about, finding.what)));
        }
        output.line(&safe(&format!("\nnext: {}", remedies::word(&it.next_action))));
    }
    Ok(u8::from(failed))
}

fn finding_json(it: &Finding) -> Value {
    let mut document = json!({ "level": it.level, "about": it.about, "what": it.what });
    if let Some(fix) = &it.fix {
        document["fix"] = remedies::word(fix).into();
    }
    document
}

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
