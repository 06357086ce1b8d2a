//! Files as the model last saw them. A call does not overwrite a file that changed since then.

use std::collections::HashMap;
use std::path::PathBuf;

use parking_lot::Mutex;

use files::workspace::{Inside, Workspace};
use protocol::error::{Code, Error, Result};

/// The content hashes of the files that the model has read or written. It is empty when a Session opens.
#[derive(Debug, Default)]
pub struct ReadSet(Mutex<HashMap<PathBuf, blake3::Hash>>);

impl ReadSet {
    /// Records that the model has seen the file with this content.
    pub fn note(&self, workspace: &Workspace, at: &Inside, hash: blake3::Hash) {
        self.0.lock().insert(workspace.real(at), hash);
    }

    /// Checks that a file still has the content that the model last saw. A file that it never saw passes.
    ///
    /// # Errors
    /// `FILE_CHANGED` if the file changed or was deleted.
    pub fn check(&self, workspace: &Workspace, at: &Inside, now: Option<&[u8]>) -> Result<()> {
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

    /// Whether the model has seen the file in this Session.
    pub fn knows(&self, workspace: &Workspace, at: &Inside) -> bool {
        self.0.lock().contains_key(&workspace.real(at))
    }

    /// Removes a file whose change or deletion the model already knows about.
    pub fn forget(&self, workspace: &Workspace, at: &Inside) {
        self.0.lock().remove(&workspace.real(at));
    }
}
