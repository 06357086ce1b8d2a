//! `pixir sessions list`: list the Sessions of a workspace, of every workspace, or in the trash.

use clap::Args;
use pixir_core::store::Summary;
use pixir_core::{Code, Error, Harness, Result};
use serde_json::{Value, json};

use crate::args::Format;
use crate::cli::Cli;
use crate::output::{Output, chatter, clean, count};

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// List the sessions of every workspace
    #[arg(long)]
    all: bool,
    /// List the sessions in the trash
    #[arg(long, conflicts_with = "all")]
    trash: bool,
    /// Also list the sessions of agents, each below the session that started it
    #[arg(long, conflicts_with = "trash")]
    children: bool,
    /// Maximum number of lines
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,
    /// Continue after this session; a truncated list names it
    #[arg(long, value_name = "ID")]
    cursor: Option<String>,
    /// Only these fields, such as id,usage.input
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    select: Vec<String>,
}

/// Exits with 1 if a folder of Sessions cannot be read; the others are listed all the same.
pub(super) fn run(cli: &Cli, harness: &Harness, args: &ListArgs) -> Result<u8> {
    let output = &cli.output;
    if args.trash {
        list_trash(harness, output);
        return Ok(0);
    }
    let mut sessions = if args.all { harness.store().list_all() } else { harness.sessions() };
    if args.children {
        sessions = with_children(harness, args.all, sessions);
    }
    let total = sessions.len();
    let special = if args.all { harness.store().all_special_files() } else { harness.special_files() };
    for path in &special {
        output.aside(&format!("note: {} is not a file, and was skipped; move it away", path.display()));
    }
    let unread = if args.all { harness.store().unreadable_folders() } else { Vec::new() };
    for e in &unread {
        output.aside(&format!("note: {}", e.message));
    }
    if let Some(cursor) = &args.cursor {
        let at = sessions.iter().position(|it| it.id == *cursor).ok_or_else(|| {
            Error::new(Code::NotFound, "the list does not contain the session of --cursor", "list without --cursor")
        })?;
        sessions.drain(..=at);
    }
    let rest = sessions.len();
    sessions.truncate(args.limit);
    let next = if rest > sessions.len() { sessions.last().map(|it| it.id.clone()) } else { None };
    match output.format {
        Format::Jsonl => {
            for it in &sessions {
                output.line(&project(&json!(it), &args.select)?.to_string());
            }
        }
        Format::Json => {
            let rows: Vec<Value> = sessions.iter().map(|it| json!(it)).collect();
            let rows = rows.iter().map(|row| project(row, &args.select)).collect::<Result<Vec<_>>>()?;
            output.document(json!({
                "sessions": rows, "total": total, "truncated": next.is_some(), "nextCursor": next,
                "skipped": special, "unreadable": unread.iter().map(|e| &e.message).collect::<Vec<_>>(),
            }));
        }
        Format::Tsv | Format::Plain if !args.select.is_empty() => {
            for it in &sessions {
                let row = project(&json!(it), &args.select)?;
                let cells: Vec<String> = args.select.iter().map(|field| tsv(&row[field])).collect();
                output.line(&cells.join("\t"));
            }
        }
        Format::Tsv => sessions.iter().for_each(|it| {
            output.line(
                &[&it.id, &it.last_activity.to_string(), &it.model, it.title()].map(|f| tsv(&json!(f))).join("\t"),
            )
        }),
        Format::Plain => print(&sessions, total, args, next.as_deref(), output),
    }
    Ok(u8::from(!unread.is_empty()))
}

/// The Sessions, each with those that it has started behind it. Those whose parent is gone come last.
fn with_children(harness: &Harness, all: bool, roots: Vec<Summary>) -> Vec<Summary> {
    let store = harness.store();
    let mut below = if all { store.agents_of_all() } else { store.agents(&store.folder_of(harness.workspace())) };
    below.reverse();
    let mut listed = Vec::new();
    let mut open: Vec<Summary> = roots.into_iter().rev().collect();
    while let Some(next) = open.pop() {
        let (own, others): (Vec<Summary>, Vec<Summary>) =
            below.into_iter().partition(|it| it.parent.as_deref() == Some(next.id.as_str()));
        below = others;
        open.extend(own.into_iter().rev());
        listed.push(next);
    }
    listed.extend(below);
    listed
}

fn tsv(value: &Value) -> String {
    let text =
        value.as_str().map_or_else(|| if value.is_null() { String::new() } else { value.to_string() }, str::to_owned);
    clean(&text).replace(['\t', '\n'], " ")
}

/// The selected fields of a row; a field may be a path.
fn project(row: &Value, fields: &[String]) -> Result<Value> {
    if fields.is_empty() {
        return Ok(row.clone());
    }
    let mut picked = serde_json::Map::new();
    for field in fields {
        let value = field.split('.').try_fold(row, |at, key| at.get(key)).ok_or_else(|| {
            let fields: Vec<&str> = row.as_object().map(|o| o.keys().map(String::as_str).collect()).unwrap_or_default();
            Error::new(
                Code::InvalidArgs,
                format!("there is no field `{}`", field.escape_debug()),
                format!("fields: {}", fields.join(", ")),
            )
            .with("input", field.clone())
        });
        // Absent optional fields are not unknown fields.
        let value = match value {
            Ok(value) => value.clone(),
            Err(_) if ["forked_from", "forked_at", "family", "parent", "damaged"].contains(&field.as_str()) => {
                Value::Null
            }
            Err(e) => return Err(e),
        };
        picked.insert(field.clone(), value);
    }
    Ok(Value::Object(picked))
}

fn print(sessions: &[Summary], total: usize, args: &ListArgs, next: Option<&str>, output: &Output) {
    for it in sessions {
        let title: String = it.title().chars().take(60).collect();
        let place = if args.all { format!("  {}", it.workspace) } else { String::new() };
        let damaged = if it.damaged { "  (damaged)" } else { "" };
        let when = it.last_minute();
        let mark = if it.parent.is_some() { "↳ " } else { "" };
        output.line(&format!(
            "{mark}{}  {when}  {:>9}  {title}{place}{damaged}",
            it.id,
            count(it.turns as usize, "turn")
        ));
    }
    match (total, next) {
        (0, _) if args.all => chatter("no sessions yet: pixir \"your first prompt\""),
        (0, _) => {
            chatter("no sessions in this workspace yet: pixir \"your first prompt\" (--all lists every workspace)")
        }
        (_, Some(id)) => chatter(&format!("{} of {total}; --cursor {id} shows the next ones", sessions.len())),
        _ => chatter("pixir resume ID continues a session, pixir resume --last the first of these"),
    }
}

fn list_trash(harness: &Harness, output: &Output) {
    let trash = harness.store().trash();
    if output.is_json() {
        output.document(json!({ "trash": trash }));
        return;
    }
    for it in &trash {
        let when = it.deleted.strftime("%Y-%m-%d %H:%M");
        output.line(&format!("{}  deleted {when}  {}", it.summary.id, it.summary.title()));
    }
    chatter(if trash.is_empty() { "the trash is empty" } else { "pixir sessions delete ID --undo restores one" });
}
