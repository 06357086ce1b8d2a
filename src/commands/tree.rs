//! `pixir tree`: turns and branches of a Session.

use pixir_core::Result;
use pixir_core::harness::Harness;
use pixir_core::history::History;
use pixir_core::store::{Place, Summary};
use pixir_core::tree;
use serde_json::{Value, json};

use crate::cli::entries;
use crate::output::{Output, chatter, count, safe};

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
