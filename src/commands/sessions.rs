//! `pixir sessions`: list, show, rename, delete, move, export, import, verify, repair.

use std::io::Write as _;
use std::path::Path;

use pixir_core::archive;
use pixir_core::changes;
use pixir_core::event::SessionId;
use pixir_core::harness::Harness;
use pixir_core::history::History;
use pixir_core::present::human_size;
use pixir_core::store::{Place, Summary};
use pixir_core::{Code, Error, Result, log};
use serde_json::{Value, json};

use crate::args::{ExportForm, Format, SessionsCommand};
use crate::output::{Output, chatter, count, safe};

mod export; // a Session as a document

use export::Story;

/// One of them; the exit code.
pub(crate) fn run(command: SessionsCommand, harness: &Harness, dry_run: bool, output: &Output) -> Result<u8> {
    match command {
        SessionsCommand::List { all, trash, limit, cursor, select } => {
            let wanted = Wanted { all, limit, cursor, select };
            if trash { list_trash(harness, output) } else { list(harness, &wanted, output)? }
        }
        SessionsCommand::Show { id } => show(harness, &harness.find(&id)?, output)?,
        SessionsCommand::Rename { id, name } => rename(harness, &harness.find(&id)?, &name, dry_run, output)?,
        SessionsCommand::Delete { id, yes, undo } => {
            // What is destroyed is named in full.
            let id = SessionId::parse(&id)
                .map_err(|e| Error { message: format!("name it by its whole id; {}", e.message), ..e })?;
            if undo { undelete(harness, &id, dry_run, output)? } else { delete(harness, &id, yes, dry_run, output)? }
        }
        SessionsCommand::Export { id, to, output: file, no_files } => {
            let whole = if output.is_json() && file.is_none() { ExportForm::Json } else { ExportForm::Md };
            let to = to.unwrap_or(whole);
            write_export(harness, &harness.find(&id)?, to, file.as_deref(), no_files, dry_run, output)?;
        }
        SessionsCommand::Move { id } => relocate(harness, &harness.find(&id)?, dry_run, output)?,
        SessionsCommand::Import { file } => import(harness, &file, dry_run, output)?,
        SessionsCommand::Verify { id, all } => {
            let places = match id {
                Some(id) => vec![harness.find(&id)?],
                None if all => harness.store().places(),
                None => Vec::new(),
            };
            return verify(&places, output);
        }
        SessionsCommand::Repair { id } => repair(&harness.find(&id)?, dry_run, output)?,
    }
    Ok(0)
}

struct Wanted {
    all: bool,
    limit: usize,
    cursor: Option<String>,
    select: Vec<String>,
}

/// The latest first; bounded, and it says when it was cut and how to go on.
fn list(harness: &Harness, wanted: &Wanted, output: &Output) -> Result<()> {
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

fn list_trash(harness: &Harness, output: &Output) {
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

fn summary_of(place: &Place) -> Result<Summary> {
    place.summary().ok_or_else(|| {
        Error::new(Code::LogReadFailed, "the session log cannot be read", format!("pixir diagnose {}", place.id))
    })
}

fn show(harness: &Harness, place: &Place, output: &Output) -> Result<()> {
    let contents = log::read(&place.log())?;
    let summary = Summary { damaged: !contents.damage.is_empty(), ..summary_of(place)? };
    let history = History::fold(contents.entries);
    let files = changes::between(history.entries().iter(), harness.blobs());
    let branches = pixir_core::tree::nodes(&history).iter().filter(|node| !node.on_path).count();
    if output.is_json() {
        let files: Vec<Value> = files
            .iter()
            .map(|f| json!({ "path": f.path, "kind": f.kind, "added": f.added, "removed": f.removed }))
            .collect();
        output.document(&json!({
            "schemaVersion": 1, "session": summary, "log": place.log(), "files_changed": files,
            "turns_on_other_branches": branches, "mode": history.settings.mode, "plan": history.plan,
            "usage": pixir_core::usage::sums(&history),
            "resume_command": format!("pixir resume {}", place.id),
        }));
        return Ok(());
    }
    let say = |name: &str, value: String| output.line(&safe(&format!("{name:<14} {value}")));
    say("session", place.id.to_string());
    say("title", summary.title().to_owned());
    say("workspace", summary.workspace.clone());
    say("model", summary.model.clone());
    say("began", summary.created.to_string());
    say("last activity", summary.last_activity.to_string());
    let other = if branches > 0 { format!(", {branches} on other branches") } else { String::new() };
    say("turns", format!("{}{other}", summary.turns));
    say("tool calls", summary.tool_calls.to_string());
    let sums = pixir_core::usage::sums(&history);
    say("tokens", sums.session.to_string());
    if sums.branch != sums.session {
        say("on this branch", sums.branch.to_string());
    }
    if sums.models.len() > 1 {
        sums.models.iter().for_each(|(model, total)| say("", format!("{model}: {total}")));
    }
    if let Some(parent) = &summary.forked_from {
        say("forked from", format!("{parent} at {}", summary.forked_at.unwrap_or_default()));
    }
    say("log", format!("{} ({}, {} entries)", place.log().display(), human_size(summary.bytes), summary.entries));
    if place.outputs().is_dir() {
        say("outputs", place.outputs().display().to_string());
    }
    if summary.damaged {
        say("damaged", format!("pixir sessions repair {} --dry-run", place.id));
    }
    for file in &files {
        say("changed", format!("{}  +{} −{}", file.path, file.added, file.removed));
    }
    Ok(())
}

fn rename(harness: &Harness, place: &Place, name: &str, dry_run: bool, output: &Output) -> Result<()> {
    if name.chars().count() > 200 || name.chars().any(char::is_control) {
        let fix = "one line of at most 200 characters";
        return Err(Error::new(Code::InvalidArgs, "that is no name", fix).with("input", safe(name)));
    }
    if name == "last" || SessionId::parse(name).is_ok() {
        return Err(Error::new(Code::InvalidArgs, "that name would mean another session", "another name"));
    }
    if !dry_run {
        harness.store().rename(place, name)?;
    }
    let verb = match (dry_run, name.is_empty()) {
        (true, false) => "would be named",
        (false, false) => "is now named",
        (true, true) => "would have no name",
        (false, true) => "has no name any more",
    };
    output.either(
        &json!({ "schemaVersion": 1, "ok": true, "dry_run": dry_run, "session_id": place.id, "name": name }),
        &format!("{} {verb} {name}", place.id),
    );
    Ok(())
}

fn delete(harness: &Harness, id: &SessionId, yes: bool, dry_run: bool, output: &Output) -> Result<()> {
    let place = harness.find(id.as_str())?;
    let title = place.summary().map_or(String::new(), |it| it.title().to_owned());
    if !yes && !dry_run {
        return Err(Error::new(
            Code::ConfirmationNeeded,
            format!("this would move {id} to the trash: {title}"),
            format!("pixir sessions delete {id} --yes"),
        ));
    }
    if !dry_run {
        harness.store().delete(&place)?;
    }
    let undo = format!("pixir sessions delete {id} --undo");
    let verb = if dry_run { "would go to the trash" } else { "is in the trash" };
    output.either(
        &json!({ "schemaVersion": 1, "ok": true, "dry_run": dry_run, "session_id": id, "undo_command": undo }),
        &format!("{id} {verb}; {undo} gets it back"),
    );
    Ok(())
}

fn relocate(harness: &Harness, place: &Place, dry_run: bool, output: &Output) -> Result<()> {
    let folder = harness.workspace();
    if *place == harness.place(&place.id) {
        return Err(Error::new(
            Code::NothingToDo,
            format!("it works in {} already", folder.display()),
            "run it in another folder, or with --workspace DIR",
        ));
    }
    if !dry_run {
        harness.store().relocate(place, folder)?;
    }
    let verb = if dry_run { "would work" } else { "works" };
    output.either(
        &json!({ "schemaVersion": 1, "ok": true, "dry_run": dry_run, "session_id": place.id, "workspace": folder }),
        &format!("{} {verb} in {} from now on", place.id, folder.display()),
    );
    Ok(())
}

fn undelete(harness: &Harness, id: &SessionId, dry_run: bool, output: &Output) -> Result<()> {
    if dry_run && !harness.store().trash().iter().any(|it| it.summary.id == id.as_str()) {
        return Err(Error::new(
            Code::SessionNotFound,
            format!("{id} is not in the trash"),
            "pixir sessions list --trash",
        ));
    }
    if !dry_run {
        harness.store().undelete(id)?;
    }
    output.either(
        &json!({ "schemaVersion": 1, "ok": true, "dry_run": dry_run, "session_id": id }),
        &format!("{id} {}", if dry_run { "would be back" } else { "is back" }),
    );
    Ok(())
}

fn write_export(
    harness: &Harness,
    place: &Place,
    to: ExportForm,
    file: Option<&Path>,
    no_files: bool,
    dry_run: bool,
    output: &Output,
) -> Result<()> {
    let text = match to {
        ExportForm::Json => {
            super::travel::entries(place, output)?;
            archive::export(place, harness.blobs(), !no_files)?
        }
        ExportForm::Md | ExportForm::Html => {
            let history = History::fold(super::travel::entries(place, output)?);
            let story = Story::new(summary_of(place)?, &history, harness.blobs());
            if to == ExportForm::Html { export::html(&story) } else { export::markdown(&story) }
        }
    };
    let Some(file) = file else {
        output.line(text.trim_end());
        return Ok(());
    };
    if !dry_run {
        let new = std::fs::OpenOptions::new().write(true).create_new(true).open(file);
        new.and_then(|mut new| new.write_all(text.as_bytes())).map_err(|e| {
            let fix = if e.kind() == std::io::ErrorKind::AlreadyExists {
                "another name: it is there already"
            } else {
                "a folder that can be written"
            };
            Error::new(Code::WriteFailed, format!("write {}: {e}", file.display()), fix)
                .with("input", file.display().to_string())
        })?;
    }
    let verb = if dry_run { "would write" } else { "wrote" };
    output.either(
        &json!({ "schemaVersion": 1, "ok": true, "dry_run": dry_run, "session_id": place.id, "file": file, "bytes": text.len() }),
        &format!("{verb} {} ({})", file.display(), human_size(text.len() as u64)),
    );
    Ok(())
}

fn import(harness: &Harness, file: &Path, dry_run: bool, output: &Output) -> Result<()> {
    let text = std::fs::read_to_string(file).map_err(|e| {
        Error::new(Code::ReadFailed, format!("read {}: {e}", file.display()), "an existing file of exported JSON")
            .with("input", file.display().to_string())
    })?;
    let it = archive::import(&text, harness.store(), harness.workspace(), dry_run)?;
    let verb = match (it.already_there, dry_run) {
        (true, _) => "is there already",
        (false, true) => "would be made",
        (false, false) => "is there now",
    };
    output.either(
        &json!({ "schemaVersion": 1, "ok": true, "dry_run": dry_run, "imported": it, "resume_command": format!("pixir resume {}", it.session_id) }),
        &format!("{} {verb}: {} entries, {} file versions, {} outputs", it.session_id, it.entries, it.blobs, it.outputs),
    );
    Ok(())
}

/// Ends with 1 when any line cannot be trusted.
fn verify(places: &[Place], output: &Output) -> Result<u8> {
    let mut rows = Vec::new();
    let mut damaged = 0;
    for place in places {
        let it = log::read(&place.log())?;
        damaged += usize::from(!it.damage.is_empty());
        rows.push(json!({
            "session_id": place.id, "ok": it.damage.is_empty(), "entries": it.entries.len(), "damage": it.damage,
            "torn_bytes": it.torn, "duplicate_lines": it.duplicates,
        }));
        if !output.is_json() {
            let torn =
                if it.torn > 0 { format!(", {} bytes of a write that was cut off", it.torn) } else { String::new() };
            match it.damage.as_slice() {
                [] => output.line(&format!("ok       {}  {} entries{torn}", place.id, it.entries.len())),
                several => {
                    for damage in several {
                        output.line(&safe(&format!("DAMAGED  {}  line {}: {}", place.id, damage.line, damage.reason)));
                    }
                    chatter(&format!("pixir sessions repair {} --dry-run", place.id));
                }
            }
        }
    }
    if output.is_json() {
        output.document(&json!({ "schemaVersion": 1, "ok": damaged == 0, "sessions": rows }));
    }
    Ok(u8::from(damaged > 0))
}

fn repair(place: &Place, dry_run: bool, output: &Output) -> Result<()> {
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
