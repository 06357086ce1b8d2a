//! Files as the model last saw them: what changed since then is not changed by it unread.

use std::collections::HashMap;
use std::path::PathBuf;

use parking_lot::Mutex;

use crate::files::workspace::{Inside, Workspace};
use crate::protocol::error::{Code, Error, Result};

/// What a Session's model has read and written, by content. It begins empty when a Session is opened.
#[derive(Debug, Default)]
pub(crate) struct ReadSet(Mutex<HashMap<PathBuf, blake3::Hash>>);

impl ReadSet {
    /// The model knows the file like this.
    pub(crate) fn note(&self, workspace: &Workspace, at: &Inside, hash: blake3::Hash) {
        self.0.lock().insert(workspace.real(at), hash);
    }

    /// Whether a file that the model knows is still as it knows it. One that it never saw is no surprise.
    ///
    /// # Errors
    /// `FILE_CHANGED`.
    pub(crate) fn check(&self, workspace: &Workspace, at: &Inside, now: Option<&[u8]>) -> Result<()> {
        let Some(known) = self.0.lock().get(&workspace.real(at)).copied() else { return Ok(()) };
        if now.map(blake3::hash) == Some(known) {
            return Ok(());
        }
        let shown = at.display();
        let what = if now.is_some() { "changed" } else { "was deleted" };
        Err(Error::new(
            Code::FileChanged,
            format!("`{shown}` {what} since you read it"),
            format!("read {shown} again, then repeat the change"),
        )
        .with("input", shown))
    }

    /// It is not there any more, and the model has been told.
    pub(crate) fn forget(&self, workspace: &Workspace, at: &Inside) {
        self.0.lock().remove(&workspace.real(at));
    }
}
