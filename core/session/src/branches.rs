//! Branches of the conversation that the user removes and restores.

use super::Session;
use conversation::tree;
use protocol::error::{Code, Error, Result};
use protocol::event::BranchRemoved;
use protocol::input::Accepted;
use protocol::remedy::Remedy;

impl Session {
    /// Moves the branch that begins with this Entry to the trash.
    pub(super) async fn remove_branch(&mut self, seq: u64) -> Result<Accepted> {
        let entry = self.history.entry(seq).filter(|entry| entry.fact.is_conversation());
        let Some(entry) = entry.filter(|entry| tree::begins_node(&entry.fact) || self.history.parent(seq).is_none())
        else {
            return Err(Error::new(Code::NotFound, format!("no branch begins with entry {seq}"), Remedy::ShowTree)
                .with("input", seq));
        };
        if self.history.is_on_path(entry.seq) {
            let message = "the current branch cannot be removed";
            return Err(Error::new(Code::InvalidArgs, message, "go to another branch first").with("input", seq));
        }
        if self.history.begins_trash(seq) {
            return Err(Error::new(Code::NothingToDo, "that branch is in the trash already", Remedy::ShowTree));
        }
        self.record(None, BranchRemoved { seq, restored: false }.into()).await?;
        Ok(Accepted::default())
    }

    /// Takes the branch that begins with this Entry back from the trash.
    pub(super) async fn restore_branch(&mut self, seq: u64) -> Result<Accepted> {
        if !self.history.begins_trash(seq) {
            return Err(Error::new(
                Code::NotFound,
                format!("no branch in the trash begins with entry {seq}"),
                Remedy::ShowTree,
            )
            .with("input", seq));
        }
        self.record(None, BranchRemoved { seq, restored: true }.into()).await?;
        Ok(Accepted::default())
    }
}
