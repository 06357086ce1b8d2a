//! `pixir tree`, `fork`, `undo`, `redo`: the conversation's branches, and files that follow it.

use std::sync::Arc;

use pixir_core::error::NoticeCode;
use pixir_core::event::{ChangeKind, FilesRestored, RestorePlan, RestoreReason, Standing};
use pixir_core::harness::Harness;
use pixir_core::history::History;
use pixir_core::input::{Choice, Wish};
use pixir_core::session::Handle;
use pixir_core::store::{Place, Summary};
use pixir_core::tree;
use pixir_core::{Code, Error, Event, Fact, Input, Live, Result, log};
use serde_json::{Value, json};

use crate::output::{Output, chatter, count, safe};

/// Asks an open Session for something and returns what it said, or why it refused.
async fn ask(handle: &Handle, input: Input) -> Result<Vec<Event>> {
    let closed = || Error::new(Code::SessionStartFailed, "the session closed before it could answer", "try again");
    let mut watch = handle.watch().await.ok_or_else(closed)?;
    handle.send(input).await;
    handle.settle().await;
    let mut events = Vec::new();
    while let Some(event) = watch.try_next() {
        if let Event::Live(Live::Refused(body)) = &event {
            return Err(body.clone().into());
        }
        events.push(event);
    }
    Ok(events)
}

// ─── tree ───

/// Turns and branches of a Session; with its family when that is wished.
pub(crate) fn show_tree(harness: &Harness, place: &Place, all: bool, output: &Output) -> Result<()> {
    let history = History::fold(entries(place, output)?);
    let nodes = tree::nodes(&history);
    let family = if all { family_of(harness, place) } else { Vec::new() };
    if output.is_json() {
        let mut document = json!({
            "schemaVersion": 1, "session_id": place.id, "head": history.head(), "turns": nodes, "jumps": history.jumps(),
        });
        if all {
            document["family"] = family.iter().map(relative).collect();
        }
        output.document(&document);
        return Ok(());
    }
    for node in &nodes {
        let mark = match (node.is_head, node.on_path) {
            (true, _) => "◉",
            (false, true) => "●",
            (false, false) => "○",
        };
        let label = node.label.as_ref().map_or(String::new(), |label| format!("[{label}] "));
        let mut notes = Vec::new();
        if node.tool_calls > 0 {
            notes.push(count(node.tool_calls as usize, "call"));
        }
        if node.files > 0 {
            notes.push(count(node.files as usize, "change"));
        }
        if node.pinned {
            notes.push("pinned".into());
        }
        let notes = if notes.is_empty() { String::new() } else { format!("  ({})", notes.join(", ")) };
        let text: String = node.text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(90).collect();
        let indent = "  ".repeat(node.depth);
        let turn = node.turn.map_or(String::new(), |turn| format!("turn {turn}"));
        output
            .line(&safe(&format!("{turn:<8} {:>5}–{:<5} {indent}{mark} {label}{text}{notes}", node.seq, node.end_seq)));
    }
    for it in &family {
        let at = it.forked_at.map_or(String::new(), |seq| format!(" at {seq}"));
        let from = it.forked_from.as_ref().map_or("the first".into(), |id| format!("forked from {id}{at}"));
        output.line(&safe(&format!("⑂ {}  {from}  {}", it.id, it.title())));
    }
    if nodes.is_empty() {
        chatter("nothing was said in this session yet");
    }
    Ok(())
}

/// Every other Session that goes back to the same first one.
fn family_of(harness: &Harness, place: &Place) -> Vec<Summary> {
    let sessions = harness.store().list_all();
    let root = |it: &Summary| it.family.clone().unwrap_or_else(|| it.id.clone());
    let Some(own) = sessions.iter().find(|it| it.id == place.id.as_str()).map(root) else { return Vec::new() };
    sessions.into_iter().filter(|it| it.id != place.id.as_str() && root(it) == own).collect()
}

fn relative(it: &Summary) -> Value {
    json!({ "session_id": it.id, "name": it.name, "first_prompt": it.first_prompt, "forked_from": it.forked_from, "forked_at": it.forked_at, "head": it.head })
}

// ─── fork ───

/// A new Session from this entry on.
pub(crate) async fn fork(
    harness: &Harness,
    place: &Place,
    at: Option<u64>,
    dry_run: bool,
    output: &Output,
) -> Result<()> {
    let history = History::fold(entries(place, output)?);
    let nothing = || Error::new(Code::NothingToDo, "nothing was said in this session yet", "pixir sessions list");
    let at = at.or(history.head()).ok_or_else(nothing)?;
    let path = history.path_of(at);
    let is_said = history.entry(at).is_some_and(|e| e.fact.is_conversation());
    if !is_said {
        return Err(Error::new(
            Code::NotFound,
            format!("there is no message with number {at}"),
            format!("pixir tree {}", place.id),
        )
        .with("input", at));
    }
    let mut document = json!({
        "schemaVersion": 1, "ok": true, "dry_run": dry_run, "parent_session_id": place.id, "forked_to_seq": at, "entries": path.len(),
    });
    if dry_run {
        output.either(&document, &format!("would copy {} entries of {}, up to {at}", path.len(), place.id));
        return Ok(());
    }
    // The parent is only read: it may be open elsewhere.
    let handle = harness.look(&place.id)?;
    let events = ask(&handle, Input::Fork { seq: at }).await;
    handle.close().await;
    let forked = events?.into_iter().find_map(|event| match event {
        Event::Live(Live::SessionForked { session_id }) => Some(session_id),
        _ => None,
    });
    let id = forked.ok_or_else(|| Error::new(Code::CommandFailed, "no fork was made", "report this as a bug"))?;
    document["session_id"] = json!(id);
    document["resume_command"] = json!(format!("pixir resume {id}{}", elsewhere(harness)));
    output.either(&document, &id);
    if !output.is_json() {
        chatter(&format!("pixir resume {id}{}", elsewhere(harness)));
    }
    Ok(())
}

/// What a command needs when the Session works in another folder than this one.
fn elsewhere(harness: &Harness) -> String {
    let here = std::env::current_dir().and_then(|folder| folder.canonicalize()).unwrap_or_default();
    if here == harness.workspace() { String::new() } else { format!(" --workspace {}", harness.workspace().display()) }
}

// ─── undo, redo ───

/// Plans or does what takes a Turn's changes back, or brings them back.
pub(crate) async fn restore(
    harness: &Harness,
    place: &Place,
    changed_since: &str,
    dry_run: bool,
    make: impl Fn(Wish) -> Input,
    output: &Output,
) -> Result<()> {
    let choice = Choice::parse(changed_since)?;
    let wish = Wish { dry_run, changed_since: choice, ..Wish::default() };
    output.aside(&format!("session {} in {}", place.id, harness.workspace().display()));
    if dry_run {
        // What is damaged is looked at all the same, and that is said.
        entries(place, output)?;
    }
    let handle = if dry_run { harness.look(&place.id)? } else { harness.tend(&place.id)? };
    let events = ask(&handle, make(wish)).await;
    handle.close().await;
    for event in events? {
        match event {
            Event::Live(Live::RestorePlanned(plan)) => tell_plan(&plan, choice, output),
            Event::Live(Live::Notice { message, code, .. }) if code == NoticeCode::FileLeft.name() => {
                output.aside(&message)
            }
            Event::Recorded(entry) => {
                if let Fact::FilesRestored(it) = &entry.fact {
                    tell_restored(it, output);
                }
            }
            Event::Live(_) => {}
        }
    }
    Ok(())
}

fn tell_plan(plan: &RestorePlan, choice: Choice, output: &Output) {
    if output.is_json() {
        output.document(&json!({ "schemaVersion": 1, "ok": true, "dry_run": true, "plan": plan }));
        return;
    }
    output.aside(&heading(plan.reason, plan.of_turn));
    for file in &plan.files {
        let diff = match (file.standing, choice) {
            (Standing::ChangedSince, Choice::Merge) => file.merged.as_deref().unwrap_or_default(),
            (Standing::ChangedSince, Choice::Keep) => file.since.as_deref().unwrap_or_default(),
            _ => file.diff.as_str(),
        };
        let how = match file.standing {
            Standing::Ready | Standing::AlreadyThere => match file.kind {
                ChangeKind::Created => "would come back",
                ChangeKind::Modified => "would be set back",
                ChangeKind::Deleted => "would go",
            },
            Standing::ChangedSince => match (choice, file.merged.is_some()) {
                (Choice::Keep, true) => {
                    "stays, because of what somebody changed since (--changed-since merge or overwrite)"
                }
                (Choice::Keep, false) => "stays, because of what somebody changed since (--changed-since overwrite)",
                (Choice::Merge, true) => "would be set back around what somebody changed since",
                (Choice::Merge, false) => "stays: somebody changed the same places since",
                (Choice::Overwrite, _) => "would be overwritten with what somebody changed since",
            },
            Standing::Impossible => file.why.as_deref().unwrap_or("cannot be restored"),
        };
        output.line(&safe(&format!("{}: {how}\n{diff}", file.path)));
    }
    if plan.files.is_empty() {
        chatter("all files are as they should be already");
    }
}

fn heading(reason: RestoreReason, of_turn: Option<u32>) -> String {
    match (reason, of_turn) {
        (RestoreReason::Undo, Some(turn)) => format!("undo of turn {turn}"),
        (RestoreReason::Redo, Some(turn)) => format!("redo of turn {turn}"),
        _ => "files".to_owned(),
    }
}

fn tell_restored(it: &FilesRestored, output: &Output) {
    let document = json!({ "schemaVersion": 1, "ok": true, "dry_run": false, "restored": it });
    let mut text: Vec<String> = it.changes.iter().map(|c| format!("{}  +{} −{}", c.path, c.added, c.removed)).collect();
    output.aside(&heading(it.reason, it.of_turn));
    text.extend(it.left.iter().map(|left| format!("{}  left: {}", left.path, left.why)));
    output.either(&document, &text.join("\n"));
}

/// The entries of a Session's Log; when some are damaged, that is said beside whatever is made of the rest.
pub(crate) fn entries(place: &Place, output: &Output) -> Result<Vec<Arc<pixir_core::Entry>>> {
    let contents = log::read(&place.log())?;
    if let Some(damage) = contents.damage.first() {
        output.aside(&format!(
            "note: line {} of this session's log is damaged ({}); pixir sessions repair {} --dry-run",
            damage.line, damage.reason, place.id
        ));
    }
    Ok(contents.entries)
}
