//! `pixir inspect`: the exact request that a Session would send, and what each part of it costs.

use clap::Args;
use pixir_core::event::{SessionId, Spawned};
use pixir_core::inspect::{Inspection, inspect};
use pixir_core::ledger::{Ledger, Segment, TokensFrom};
use pixir_core::store::Place;
use pixir_core::{Code, Error, Remedy, Result};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::Cli;
use crate::commands::agents::tree::{Agent, agents_in};
use crate::output::{Output, SCHEMA_VERSION, chatter};

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Session id, a unique prefix of one, a name, or last
    #[arg(default_value = "last")]
    id: String,
    /// Inspect the request as it was when this entry was the newest
    #[arg(long, value_name = "SEQ")]
    seq: Option<u64>,
    /// Print what takes up the window instead: each document, skill, summary and turn with its tokens and age
    #[arg(long)]
    ledger: bool,
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
    let agents = agents_in(&entries, &place);
    let registry = harness.registry_of(&entries);
    let inspection = inspect(entries, place.id.as_str(), &registry, harness.blobs(), &providers);
    if args.ledger {
        let ledger = inspection.ledger();
        let document = LedgerDocument {
            schema_version: SCHEMA_VERSION,
            session_id: &place.id,
            seq: inspection.seq,
            model: &inspection.model,
            ledger: &ledger,
        };
        match cli.output.is_json() {
            true => cli.output.stream(&document),
            false => print_ledger(&ledger, &cli.output),
        }
    } else if cli.output.is_json() {
        cli.output.stream(&InspectDocument {
            schema_version: SCHEMA_VERSION,
            session_id: &place.id,
            inspection: &inspection,
            agents: agents.iter().map(about_agent).collect(),
        });
    } else {
        print(&inspection, &agents, &cli.output);
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
    /// The agents that the Session has started, and what their last Turns took.
    agents: Vec<Value>,
}

fn about_agent(it: &Agent) -> Value {
    let end = it.end.as_ref();
    json!({
        "name": it.spawned.name,
        "role": it.spawned.role,
        "status": it.status().name(),
        "session_id": it.spawned.session_id,
        "usage": end.map(|it| it.usage),
        "cost": end.map(|it| it.cost),
    })
}

/// The document of `--ledger --json`.
#[derive(Serialize)]
struct LedgerDocument<'a> {
    #[serde(rename = "schemaVersion")]
    schema_version: u32,
    session_id: &'a SessionId,
    seq: Option<u64>,
    model: &'a str,
    #[serde(flatten)]
    ledger: &'a Ledger,
}

/// The error for an entry number beyond the end of a Log.
pub(super) fn no_entry(seq: u64, last: u64, place: &Place) -> Error {
    let message = format!("there is no entry {seq}; the last one is {last}");
    Error::new(Code::NotFound, message, Remedy::command(format!("pixir replay {}", place.id)))
        .with("input", Value::from(seq))
}

fn print_ledger(it: &Ledger, output: &Output) {
    output.line(&format!(
        "{:<14} {:<40} {:>5} {:>10} {:>9}  {:<7} cached",
        "segment", "name", "count", "bytes", "~tokens", "age"
    ));
    for segment in &it.segments {
        let name: String = segment.name.chars().take(40).collect();
        let age = segment.age.map_or_else(|| "-".to_owned(), |turns| format!("{turns} turns"));
        let cached = if segment.in_prefix { "yes" } else { "no" };
        let Segment { kind, count, bytes, tokens, .. } = segment;
        output.line(&format!("{:<14} {name:<40} {count:>5} {bytes:>10} {tokens:>9}  {age:<7} {cached}", kind.name()));
    }
    let (bytes, tokens) = (it.bytes, it.tokens);
    output.line(&format!("{:<14} {:<40} {:>5} {bytes:>10} {tokens:>9}", "whole request", "", ""));
    if let Some(window) = it.window {
        output.line(&format!("\n{tokens} of {window} tokens ({} %)", tokens * 100 / window.max(1)));
    }
    chatter(match it.tokens_from {
        TokensFrom::Estimate => "tokens are estimated at four bytes each",
        TokensFrom::Provider => {
            "tokens are the provider's count of the last request, spread by bytes; what is new since is estimated"
        }
    });
}

fn print(it: &Inspection, agents: &[Agent], output: &Output) {
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
        output.line(&format!("\n{used} of {window} tokens ({} %), {source}", used * 100 / window.max(1)));
    }
    output.line("\nlargest items");
    for item in &it.largest {
        output.line(&format!("  {:>9} bytes  #{:<4} {:<13} {}", item.bytes, item.index, item.kind, item.begins));
    }
    if !agents.is_empty() {
        output.line(&format!("\n{:<20} {:<16} {:<12} {:>9}  session", "agent", "role", "status", "tokens"));
    }
    for agent in agents {
        let tokens = agent.end.as_ref().map_or(0, |end| end.usage.input + end.usage.output);
        let Spawned { name, role, session_id, .. } = &agent.spawned;
        output.line(&format!("{name:<20} {role:<16} {:<12} {tokens:>9}  {session_id}", agent.status().name()));
    }
    chatter("--json prints the request itself");
}
