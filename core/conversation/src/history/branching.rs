//! Moves of the Head, and branches in the trash.

use super::History;
use protocol::event::{BranchRemoved, Label};

/// A move of the Head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Jump {
    /// The Entry that recorded it.
    pub seq: u64,
    /// The Head before.
    pub from: Option<u64>,
    /// The Head after.
    pub to: Option<u64>,
}

impl History {
    /// The first Entry of each branch in the trash, in the order of the Log. No such branch has the Head.
    pub fn trash(&self) -> impl Iterator<Item = u64> {
        self.trash.iter().copied()
    }

    /// The names and pins of Entries, in the order of the Log.
    pub fn marks(&self) -> impl Iterator<Item = &Label> {
        let mut marks: Vec<&Label> = self.marks.values().collect();
        marks.sort_unstable_by_key(|mark| mark.seq);
        marks.into_iter()
    }

    /// A branch in the trash begins with this Entry.
    pub fn begins_trash(&self, seq: u64) -> bool {
        self.trash.contains(&seq)
    }

    /// Whether the Entry is on the path to the Head.
    pub fn is_on_path(&self, seq: u64) -> bool {
        self.index_of(seq).is_some_and(|index| self.path.binary_search(&index).is_ok())
    }

    /// A Log that says that the branch with the Head was removed, says nothing: the Head cannot be in the trash.
    pub(super) fn take_removal(&mut self, it: &BranchRemoved) {
        let is_conversation = self.entry(it.seq).is_some_and(|entry| entry.fact.is_conversation());
        if it.restored {
            self.trash.remove(&it.seq);
        } else if is_conversation && !self.is_on_path(it.seq) {
            self.trash.insert(it.seq);
        }
    }

    /// A branch that the Head goes to is in the trash no longer.
    pub(super) fn take_path_from_trash(&mut self) {
        let mut trash = std::mem::take(&mut self.trash);
        trash.retain(|seq| !self.is_on_path(*seq));
        self.trash = trash;
    }
}
