//! `pixir sessions list`: the Sessions of a workspace, of every workspace, or in the trash.

use pixir_core::harness::Harness;
use pixir_core::store::Summary;
use pixir_core::{Code, Error, Result};
use serde_json::{Value, json};

use crate::args::Format;
use crate::output::{Output, chatter, count, safe};

/// Which Sessions are listed, and how much of each.
pub(super) struct Wanted {
    pub(super) all: bool,
    pub(super) limit: usize,
    pub(super) cursor: Option<String>,
    pub(super) select: Vec<String>,
}

/// The latest first; bounded, and it says when it was cut and how to go on.
pub(super) fn list(harness: &Harness, wanted: &Wanted, output: &Output) -> Result<()> {
    let mut sessions = if wanted.all { harness.store().list_all() } else { harness.sessions() };
    let total = sessions.len();
    if let Some(cursor) = &wanted.cursor {
        let at = sessions
            .iter()
            .position(|it| it.id == *cursor)
            .ok_or_else(|| Error::new(Code::NotFound, "there is no such session in this list", "leave --cursor out"))?;
        sessions.drain(..=at);
    }
    let rest = sessions.len();
    sessions.truncate(wanted.limit);
    let next = if rest > sessions.len() { sessions.last().map(|it| it.id.clone()) } else { None };
    match output.format {
        Format::Jsonl => {
            for it in &sessions {
                output.line(&project(&json!(it), &wanted.select)?.to_string());
            }
        }
        Format::Json => {
            let rows: Vec<Value> = sessions.iter().map(|it| json!(it)).collect();
            let rows = rows.iter().map(|row| project(row, &wanted.select)).collect::<Result<Vec<_>>>()?;
            output.document(&json!({
                "schemaVersion": 1, "sessions": rows, "total": total, "truncated": next.is_some(), "nextCursor": next,
            }));
        }
        Format::Tsv | Format::Plain if !wanted.select.is_empty() => {
            for it in &sessions {
                let row = project(&json!(it), &wanted.select)?;
                let cells: Vec<String> = wanted.select.iter().map(|field| tsv(&row[field])).collect();
                output.line(&cells.join("\t"));
            }
        }
        Format::Tsv => sessions.iter().for_each(|it| {
            output.line(
                &[&it.id, &it.last_activity.to_string(), &it.model, it.title()].map(|f| tsv(&json!(f))).join("\t"),
            )
        }),
        Format::Plain => plain(&sessions, total, wanted, next.as_deref(), output),
    }
    Ok(())
}

fn tsv(value: &Value) -> String {
    let text =
        value.as_str().map_or_else(|| if value.is_null() { String::new() } else { value.to_string() }, str::to_owned);
    safe(&text).replace(['\t', '\n'], " ")
}

/// Only these fields, by their paths.
fn project(row: &Value, fields: &[String]) -> Result<Value> {
    if fields.is_empty() {
        return Ok(row.clone());
    }
    let mut picked = serde_json::Map::new();
    for field in fields {
        let found = field.split('.').try_fold(row, |at, key| at.get(key)).ok_or_else(|| {
            let known: Vec<&str> = row.as_object().map(|o| o.keys().map(String::as_str).collect()).unwrap_or_default();
            Error::new(
                Code::InvalidArgs,
                format!("there is no field `{}`", field.escape_debug()),
                format!("fields: {}", known.join(", ")),
            )
            .with("input", field.clone())
        });
        // Some fields are only there where they say something.
        let value = match found {
            Ok(value) => value.clone(),
            Err(_) if ["forked_from", "forked_at", "family", "damaged"].contains(&field.as_str()) => Value::Null,
            Err(e) => return Err(e),
        };
        picked.insert(field.clone(), value);
    }
    Ok(Value::Object(picked))
}

fn plain(sessions: &[Summary], total: usize, wanted: &Wanted, next: Option<&str>, output: &Output) {
    for it in sessions {
        let title: String = it.title().chars().take(60).collect();
        let place = if wanted.all { format!("  {}", it.workspace) } else { String::new() };
        let damaged = if it.damaged { "  (damaged)" } else { "" };
        let when = it.last_minute();
        output.line(&safe(&format!(
            "{}  {when}  {:>9}  {title}{place}{damaged}",
            it.id,
            count(it.turns as usize, "turn")
        )));
    }
    match (total, next) {
        (0, _) if wanted.all => chatter("no sessions yet: pixir \"your first prompt\""),
        (0, _) => {
            chatter("no sessions in this workspace yet: pixir \"your first prompt\" (--all lists every workspace's)")
        }
        (_, Some(id)) => chatter(&format!("{} of {total}; --cursor {id} shows the next", sessions.len())),
        _ => chatter("pixir resume ID goes on with one, pixir resume --last with the first"),
    }
}

pub(super) fn list_trash(harness: &Harness, output: &Output) {
    let trash = harness.store().trash();
    if output.is_json() {
        output.document(&json!({ "schemaVersion": 1, "trash": trash }));
        return;
    }
    for it in &trash {
        let when = it.deleted.strftime("%Y-%m-%d %H:%M");
        output.line(&safe(&format!("{}  deleted {when}  {}", it.summary.id, it.summary.title())));
    }
    chatter(if trash.is_empty() { "the trash is empty" } else { "pixir sessions delete ID --undo gets one back" });
}
