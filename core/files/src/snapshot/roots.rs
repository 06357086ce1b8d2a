//! The roots that commands write: the workspace, and the folders that are written as it is. A change in a folder has its
//! absolute path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::seen::Seen;
use super::{CommandChanges, FoundRules};
use crate::workspace::Workspace;
use storage::blobs::Blobs;

/// The files of each root as they were last seen.
#[derive(Debug, Default)]
pub(super) struct Roots {
    workspace: Seen,
    folders: BTreeMap<PathBuf, Seen>,
}

impl Roots {
    /// Reads the workspace and these folders as they are now, and forgets other folders. `rules` are the workspace's.
    pub(super) fn refresh(
        &mut self,
        workspace: &Workspace,
        folders: &[Arc<Workspace>],
        blobs: &Blobs,
        rules: FoundRules<'_>,
    ) {
        self.workspace.refresh(workspace, blobs, rules);
        self.folders.retain(|root, _| folders.iter().any(|it| it.root() == root));
        for folder in distinct(folders) {
            self.folders.entry(folder.root().to_owned()).or_default().refresh(folder, blobs, None);
        }
    }

    /// Everything that differs from the last refresh in the workspace and in these folders.
    pub(super) fn compare(
        &mut self,
        workspace: &Workspace,
        folders: &[Arc<Workspace>],
        blobs: &Blobs,
        rules: FoundRules<'_>,
    ) -> CommandChanges {
        let mut all = self.workspace.compare(workspace, blobs, rules);
        for folder in distinct(folders) {
            let Some(seen) = self.folders.get_mut(folder.root()) else { continue };
            let found = seen.compare(folder, blobs, None);
            all.changes.extend(found.changes.into_iter().map(|mut change| {
                change.path = folder.root().join(&change.path).display().to_string();
                change.moved_from = change.moved_from.map(|from| folder.root().join(from).display().to_string());
                change
            }));
            all.notes.extend(found.notes.into_iter().map(|note| format!("{}: {note}", folder.root().display())));
        }
        all
    }

    /// Reads one file as it is now.
    pub(super) fn refresh_one(&mut self, workspace: &Workspace, blobs: &Blobs, path: &Path) {
        match self.folder_of(workspace, path) {
            None => self.workspace.refresh_one(workspace, blobs, path),
            Some((folder, path)) => {
                if let Some(seen) = self.folders.get_mut(folder.root()) {
                    seen.refresh_one(&folder, blobs, &path);
                }
            }
        }
    }

    /// Whether the file is certainly unchanged since it was last read.
    pub(super) fn is_as_seen(&self, workspace: &Workspace, path: &Path) -> bool {
        match self.folder_of(workspace, path) {
            None => self.workspace.is_as_seen(workspace.root(), path),
            // No running command writes a folder that was not read.
            Some((folder, path)) => {
                self.folders.get(folder.root()).is_none_or(|seen| seen.is_as_seen(folder.root(), &path))
            }
        }
    }

    /// The folder that an absolute path lies in, and the path in it.
    fn folder_of(&self, workspace: &Workspace, path: &Path) -> Option<(Arc<Workspace>, PathBuf)> {
        let folders = if path.is_absolute() { workspace.folders() } else { return None };
        folders.into_iter().find_map(|it| {
            let below = path.strip_prefix(it.root()).ok()?.to_owned();
            Some((it, below))
        })
    }
}

/// Each root once: several commands may write the same folder.
fn distinct(folders: &[Arc<Workspace>]) -> impl Iterator<Item = &Arc<Workspace>> {
    folders
        .iter()
        .enumerate()
        .filter(|(at, it)| folders[..*at].iter().all(|other| other.root() != it.root()))
        .map(|it| it.1)
}
