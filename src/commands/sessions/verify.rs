//! `pixir sessions verify`: check each line of a Log against its hash chain.

use clap::Args;
use pixir_core::{Error, Harness, Result, log};
use serde_json::{Value, json};

use crate::cli::Cli;
use crate::output::chatter;

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Session id, a unique prefix of one, a name, or last
    #[arg(required_unless_present = "all")]
    id: Option<String>,
    /// Check the sessions of every workspace
    #[arg(long, conflicts_with = "id")]
    all: bool,
}

/// Exits with 1 if any line is damaged. Of several Logs all are checked, also when one cannot be read; if only some of them are
/// whole, it exits with 9.
pub(super) fn run(cli: &Cli, harness: &Harness, args: &VerifyArgs) -> Result<u8> {
    let output = &cli.output;
    let places = match &args.id {
        Some(id) => vec![harness.find(id)?],
        None if args.all => harness.store().places(),
        None => Vec::new(),
    };
    let mut rows = Vec::new();
    let (mut damaged, mut unread) = (0, 0);
    for place in &places {
        let it = match log::read(&place.log()) {
            Ok(it) => it,
            Err(e) if args.all => {
                unread += 1;
                rows.push(json!({ "session_id": place.id, "ok": false, "error": unreadable(&e) }));
                if !output.is_json() {
                    output.line(&format!("UNREAD   {}  {}", place.id, e.message));
                }
                continue;
            }
            Err(e) => return Err(e),
        };
        damaged += usize::from(!it.damage.is_empty());
        rows.push(json!({
            "session_id": place.id, "ok": it.damage.is_empty(), "entries": it.entries.len(), "damage": it.damage,
            "torn_bytes": it.torn, "duplicate_lines": it.duplicates,
        }));
        if !output.is_json() {
            let torn = if it.torn > 0 { format!(", {} bytes of an incomplete write", it.torn) } else { String::new() };
            match it.damage.as_slice() {
                [] => output.line(&format!("ok       {}  {} entries{torn}", place.id, it.entries.len())),
                several => {
                    for damage in several {
                        output.line(&format!("DAMAGED  {}  line {}: {}", place.id, damage.line, damage.reason));
                    }
                    chatter(&format!("pixir sessions repair {} --dry-run", place.id));
                }
            }
        }
    }
    let folders = if args.all { harness.store().unreadable_folders() } else { Vec::new() };
    for e in &folders {
        output.aside(&format!("note: {}", e.message));
    }
    let is_whole = damaged == 0 && unread == 0 && folders.is_empty();
    if output.is_json() {
        let folders: Vec<Value> = folders.iter().map(unreadable).collect();
        output.document(json!({ "ok": is_whole, "sessions": &rows, "unreadable_folders": folders }));
    }
    let is_part_whole = rows.iter().any(|row| row["ok"] == true);
    Ok(match (is_whole, args.all && is_part_whole) {
        (true, _) => 0,
        (false, true) => 9,
        (false, false) => 1,
    })
}

fn unreadable(e: &Error) -> Value {
    json!({ "code": e.code.name(), "message": e.message })
}
