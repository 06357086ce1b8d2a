//! The summary of a branch that a move of the Head leaves.

use std::sync::Arc;

use super::digest::{Digest, end, start};
use super::summary::{rendered, section};
use super::{BY_MODEL, DETERMINISTIC};
use conversation::history::History;
use protocol::event::{BranchSummary, Entry, Notes};

/// The most of one request, characters.
const MAX_REQUEST: usize = 400;
/// The most of the last answer, characters.
const MAX_ANSWER: usize = 2_000;

/// Returns the entries that a move of the head leaves behind, and the last entry that both branches share.
pub fn left_behind(history: &History, to_seq: Option<u64>) -> (Vec<Arc<Entry>>, Option<u64>) {
    let there: Vec<u64> = to_seq.map_or_else(Vec::new, |seq| history.path_of(seq).iter().map(|e| e.seq).collect());
    let shared = history.path().zip(&there).take_while(|(entry, seq)| entry.seq == **seq).count();
    (history.path().skip(shared).cloned().collect(), shared.checked_sub(1).map(|at| there[at]))
}

/// Summarizes the branch that a move of the head leaves, without a model. `None` when there is nothing to summarize.
pub fn branch(history: &History, to_seq: Option<u64>) -> Option<BranchSummary> {
    let (left, common_seq) = left_behind(history, to_seq);
    let from_seq = left.last()?.seq;
    let mut it = Digest::default();
    left.iter().filter(|entry| !history.is_untold(&entry.fact)).for_each(|entry| it.take(entry));
    let mut text = String::from(
        "The user went back to before this part of the conversation and takes another way. pixir made this summary from the session log, without a model.\n",
    );
    let bullets = |lines: &[String]| lines.iter().map(|line| format!("- {line}")).collect::<Vec<_>>();
    let requests = it.turns.iter().filter(|turn| !turn.request.is_empty());
    section(&mut text, "Tried there", requests.map(|turn| format!("- {}", start(&turn.request, MAX_REQUEST))));
    section(&mut text, "Files changed there", bullets(&it.changed));
    section(&mut text, "Commands run there", bullets(&it.commands));
    let last = it.turns.iter().rev().find(|turn| !turn.answer.is_empty());
    section(&mut text, "The end of your last answer there", last.map(|turn| end(&turn.answer, MAX_ANSWER)));
    Some(BranchSummary {
        strategy: DETERMINISTIC.into(),
        from_seq,
        common_seq,
        summary: text,
        files_modified: it.changed,
        notes: None,
        model: None,
    })
}

/// The summary of a branch with what a model wrote about it.
pub fn with_notes(made: BranchSummary, notes: Notes, model: &str) -> BranchSummary {
    let mut text = String::from(
        "The user went back to before this and goes another way. Your own notes on what was tried there.\n",
    );
    section(&mut text, "Notes", [rendered(&notes)]);
    section(&mut text, "Files changed there", made.files_modified.iter().map(|path| format!("- {path}")));
    BranchSummary {
        strategy: BY_MODEL.into(),
        summary: text,
        notes: Some(Box::new(notes)),
        model: Some(model.to_owned()),
        ..made
    }
}
