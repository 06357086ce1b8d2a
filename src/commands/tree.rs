//! `pixir tree`: the turns and branches of a Session.

use clap::Args;
use pixir_core::history::History;
use pixir_core::store::{Place, Summary};
use pixir_core::tree::Node;
use pixir_core::{Harness, Result, tree};
use serde_json::{Value, json};

use crate::cli::Cli;
use crate::output::{chatter, count};

#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    /// Session id, a unique prefix of one, a name, or last
    #[arg(default_value = "last")]
    id: String,
    /// Also show the sessions that were forked from it, and the one it was forked from
    #[arg(long)]
    all: bool,
}

pub(super) fn run(cli: &Cli, args: &TreeArgs) -> Result<u8> {
    let (harness, place) = cli.locate(&args.id)?;
    let history = History::fold(cli.entries(&place)?);
    let nodes = tree::nodes(&history);
    let family = args.all.then(|| family_of(&harness, &place));
    let output = &cli.output;
    if output.is_json() {
        let mut document =
            json!({ "session_id": place.id, "head": history.head(), "turns": nodes, "jumps": history.jumps() });
        if let Some(family) = &family {
            document["family"] = family.iter().map(relative).collect();
        }
        output.document(document);
        return Ok(0);
    }
    for node in &nodes {
        output.line(&line(node));
    }
    for it in family.iter().flatten() {
        let at = it.forked_at.map_or(String::new(), |seq| format!(" at {seq}"));
        let from = it.forked_from.as_ref().map_or("the original".into(), |id| format!("forked from {id}{at}"));
        output.line(&format!("↱ {}  {from}  {}", it.id, it.title()));
    }
    if nodes.is_empty() {
        chatter("this session has no messages yet");
    }
    Ok(0)
}

/// A node of the tree in one line.
pub(crate) fn line(node: &Node) -> String {
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
    format!("{turn:<8} {:>5}–{:<5} {indent}{mark} {label}{text}{notes}", node.seq, node.end_seq)
}

/// The other Sessions that descend from the same original one.
fn family_of(harness: &Harness, place: &Place) -> Vec<Summary> {
    let sessions = harness.store().list_all();
    let root = |it: &Summary| it.family.clone().unwrap_or_else(|| it.id.clone());
    let Some(own) = sessions.iter().find(|it| it.id == place.id.as_str()).map(root) else { return Vec::new() };
    sessions.into_iter().filter(|it| it.id != place.id.as_str() && root(it) == own).collect()
}

fn relative(it: &Summary) -> Value {
    json!({ "session_id": it.id, "name": it.name, "first_prompt": it.first_prompt, "forked_from": it.forked_from, "forked_at": it.forked_at, "head": it.head })
}
