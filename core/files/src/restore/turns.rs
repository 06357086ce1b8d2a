//! Which Turns are in effect, and what undoing, redoing and rewinding aim at.

use std::sync::Arc;

use super::{RestoreTarget, aimed};
use protocol::error::{Code, Error, Result};
use protocol::event::{Entry, Fact, FilesRestored, RestoreReason};
use protocol::remedy::Remedy;

/// What an undo takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undoable {
    /// The changes of a Turn.
    Turn(u32),
    /// The revert of a hunk, by its Entry.
    Revert(u64),
}

/// Returns what is in effect, newest first: what an undo without a number tries.
///
/// # Errors
/// `NOTHING_TO_DO` when there is no such Turn.
pub fn undoable(entries: &[Arc<Entry>]) -> Result<Vec<Undoable>> {
    let done = Done::fold(entries);
    let mut applied = done.applied;
    applied.reverse();
    match (applied.is_empty(), done.undone.is_empty()) {
        (false, _) => Ok(applied),
        (true, false) => Err(nothing("the changes of every turn are already undone", Remedy::Redo)),
        (true, true) => {
            Err(nothing("there is nothing to undo: no turn of this session changed a file", Remedy::ShowTree))
        }
    }
}

/// Returns the files that an undo of this has left as they were.
pub fn left_by_undo(entries: &[Arc<Entry>], of: Undoable) -> Vec<&str> {
    let restored =
        entries.iter().filter_map(|e| if let Fact::FilesRestored(it) = &e.fact { Some(&**it) } else { None });
    let is_of = |it: &&FilesRestored| match of {
        Undoable::Turn(turn) => it.of_turn == Some(turn),
        Undoable::Revert(seq) => it.of_seq == Some(seq),
    };
    let undone = restored.filter(|it| it.reason == RestoreReason::Undo && is_of(it));
    undone.flat_map(|it| it.left.iter().map(|left| left.path.as_str())).collect()
}

/// Undoes the revert of a hunk.
///
/// # Errors
/// `NOT_FOUND` when the Entry is none.
pub fn undo_revert(entries: &[Arc<Entry>], seq: u64) -> Result<RestoreTarget> {
    let entry = entries.iter().find(|entry| entry.seq == seq);
    let Some(Fact::FilesRestored(it)) = entry.map(|entry| &entry.fact) else {
        return Err(Error::new(Code::NotFound, format!("entry {seq} restored no file"), Remedy::ShowTree));
    };
    let files = aimed(it.changes.iter());
    Ok(RestoreTarget { reason: RestoreReason::Undo, of_turn: None, to_seq: None, of_seq: Some(seq), files })
}

/// Undoes what a Turn changed.
///
/// # Errors
/// `NOTHING_TO_DO` when the Turn changed nothing, `NOT_FOUND` when there is no such Turn.
pub fn undo(entries: &[Arc<Entry>], turn: u32) -> Result<RestoreTarget> {
    let mut of_turn = entries.iter().filter(|e| e.turn == Some(turn)).peekable();
    if of_turn.peek().is_none() {
        return Err(
            Error::new(Code::NotFound, format!("there is no turn {turn}"), Remedy::ShowTree).with("input", turn)
        );
    }
    let files = aimed(of_turn.flat_map(|entry| entry.fact.changes()));
    if files.is_empty() {
        return Err(nothing(&format!("turn {turn} changed no file"), Remedy::ShowTree));
    }
    Ok(RestoreTarget { reason: RestoreReason::Undo, of_turn: Some(turn), to_seq: None, of_seq: None, files })
}

/// Redoes what the last undo took back.
///
/// # Errors
/// `NOTHING_TO_DO` when there is no undo to redo.
pub fn redo(entries: &[Arc<Entry>]) -> Result<RestoreTarget> {
    let undone = Done::fold(entries).undone.pop();
    let entry = undone.and_then(|seq| entries.iter().find(|e| e.seq == seq));
    let Some(Fact::FilesRestored(it)) = entry.map(|e| &e.fact) else {
        return Err(nothing("there is nothing to redo: no turn is undone", Remedy::Undo));
    };
    Ok(RestoreTarget {
        reason: RestoreReason::Redo,
        of_turn: it.of_turn,
        to_seq: None,
        of_seq: it.of_seq,
        files: aimed(it.changes.iter()),
    })
}

/// Restores the files to their state when this entry was the newest. `None` means the state before the first entry.
pub fn rewind(entries: &[Arc<Entry>], to_seq: Option<u64>) -> RestoreTarget {
    let later = entries.iter().filter(|entry| to_seq.is_none_or(|seq| entry.seq > seq));
    let files = aimed(later.flat_map(|entry| entry.fact.all_changes()));
    RestoreTarget { reason: RestoreReason::Rewind, of_turn: None, to_seq, of_seq: None, files }
}

fn nothing(message: &str, fix: Remedy) -> Error {
    Error::new(Code::NothingToDo, message, fix)
}

/// What is in effect, in order, and which undos can be redone.
#[derive(Default)]
struct Done {
    applied: Vec<Undoable>,
    undone: Vec<u64>,
}

/// What a restore has undone or redone.
fn restored_work(restored: &FilesRestored) -> Option<Undoable> {
    restored.of_turn.map(Undoable::Turn).or(restored.of_seq.map(Undoable::Revert))
}

impl Done {
    fn apply(&mut self, it: Undoable) {
        self.applied.retain(|done| *done != it);
        self.applied.push(it);
    }

    fn fold(entries: &[Arc<Entry>]) -> Done {
        let mut it = Done::default();
        for entry in told_by_files(entries).into_iter().rev().flatten() {
            match (&entry.fact, entry.turn) {
                (fact, Some(turn)) if !fact.changes().is_empty() => {
                    it.apply(Undoable::Turn(turn));
                }
                (Fact::FilesRestored(restored), _) => match (restored.reason, restored_work(restored)) {
                    (RestoreReason::Undo, Some(of)) => {
                        // Files that the undo left as they were can still be undone.
                        if restored.left.is_empty() {
                            it.applied.retain(|done| *done != of);
                        }
                        it.undone.push(entry.seq);
                    }
                    (RestoreReason::Redo, Some(of)) => {
                        if restored.left.is_empty() {
                            it.undone.pop();
                        }
                        it.apply(of);
                    }
                    (RestoreReason::Hunk, _) if !restored.changes.is_empty() => it.apply(Undoable::Revert(entry.seq)),
                    _ => {}
                },
                _ => {}
            }
        }
        it
    }
}

/// Returns the runs of entries that determine the current files, newest first. A rewind of all files brings back an
/// earlier state, so the entries between that state and the rewind no longer count.
fn told_by_files(entries: &[Arc<Entry>]) -> Vec<&[Arc<Entry>]> {
    let mut runs = Vec::new();
    let mut rest = entries;
    let goes_to = |entry: &Arc<Entry>| match &entry.fact {
        Fact::FilesRestored(it) if it.reason == RestoreReason::Rewind && it.left.is_empty() => Some(it.to_seq),
        _ => None,
    };
    while let Some((at, to_seq)) = rest.iter().enumerate().rev().find_map(|(at, e)| Some((at, goes_to(e)?))) {
        runs.push(&rest[at + 1..]);
        rest = &rest[..at];
        rest = &rest[..to_seq.map_or(0, |seq| rest.partition_point(|e| e.seq <= seq))];
    }
    runs.push(rest);
    runs
}
