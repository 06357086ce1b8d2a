//! `pixir inspect`: the exact request that a Session would send, and what each part of it costs.

use clap::Args;
use pixir_core::event::SessionId;
use pixir_core::inspect::{Inspection, inspect};
use pixir_core::store::Place;
use pixir_core::{Code, Error, Result};
use serde::Serialize;
use serde_json::Value;

use crate::cli::Cli;
use crate::output::{Output, SCHEMA_VERSION, chatter};

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Session id, a unique prefix of one, a name, or last
    #[arg(default_value = "last")]
    id: String,
    /// Inspect the request as it was when this entry was the newest
    #[arg(long, value_name = "SEQ")]
    seq: Option<u64>,
}

pub(super) fn run(cli: &Cli, args: &InspectArgs) -> Result<u8> {
    let harness = cli.offline_harness()?;
    let providers = cli.configured_providers()?;
    let place = harness.find(&args.id)?;
    let mut entries = cli.entries(&place)?;
    if let Some(seq) = args.seq {
        let last = entries.last().map_or(0, |entry| entry.seq);
        if seq > last {
            return Err(no_entry(seq, last, &place));
        }
        entries.retain(|entry| entry.seq <= seq);
    }
    let inspection = inspect(entries, place.id.as_str(), harness.registry(), harness.blobs(), &providers);
    if cli.output.is_json() {
        cli.output.stream(&InspectDocument {
            schema_version: SCHEMA_VERSION,
            session_id: &place.id,
            inspection: &inspection,
        });
    } else {
        print(&inspection, &cli.output);
    }
    Ok(0)
}

/// The document of `--json`. It is printed as it is made, because the request can be as large as the Log.
#[derive(Serialize)]
struct InspectDocument<'a> {
    #[serde(rename = "schemaVersion")]
    schema_version: u32,
    session_id: &'a SessionId,
    #[serde(flatten)]
    inspection: &'a Inspection,
}

/// The error for an entry number beyond the end of a Log.
pub(super) fn no_entry(seq: u64, last: u64, place: &Place) -> Error {
    let message = format!("there is no entry {seq}; the last one is {last}");
    Error::new(Code::NotFound, message, format!("pixir replay {}", place.id)).with("input", Value::from(seq))
}

fn print(it: &Inspection, output: &Output) {
    let at = it.seq.map_or("nothing recorded yet".into(), |seq| format!("after entry {seq}"));
    output.line(&format!("{}/{} ({}), {at}", it.provider, it.model, it.server));
    if let Some(note) = &it.note {
        chatter(note);
    }
    output.line(&format!("\n{:<16} {:>6} {:>12} {:>9}", "part", "count", "bytes", "~tokens"));
    for part in it.parts.iter().filter(|part| part.bytes > 0) {
        output.line(&format!("{:<16} {:>6} {:>12} {:>9}", part.name, part.count, part.bytes, part.tokens));
    }
    output.line(&format!("{:<16} {:>6} {:>12} {:>9}", "whole request", "", it.bytes, it.tokens_estimated));
    if let Some(window) = it.window {
        let used = it.tokens_last_reported.unwrap_or(it.tokens_estimated as u64);
        let source = if it.tokens_last_reported.is_some() { "as last reported by the provider" } else { "estimated" };
        output.line(&format!("\n{used} of {window} tokens ({}%), {source}", used * 100 / window.max(1)));
    }
    output.line("\nlargest items");
    for item in &it.largest {
        output.line(&format!("  {:>9} bytes  #{:<4} {:<13} {}", item.bytes, item.index, item.kind, item.begins));
    }
    chatter("--json prints the request itself");
}
