//! What a command changed in the workspace, found by looking before and after.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::changes;
use crate::event::{ChangeKind, FileChange};
use crate::tools::Context;

/// More files than this are not watched.
const MAX_FILES: usize = 20_000;
/// More changes than this are not captured.
const MAX_CHANGES: usize = 500;

type Stamp = (u64, Option<SystemTime>);

/// Size and time of every file of the workspace that is not ignored.
#[derive(Debug, Clone)]
pub(crate) struct Scan {
    files: BTreeMap<PathBuf, Stamp>,
}

impl Scan {
    /// Looks at the workspace as it is now.
    pub(crate) async fn take(root: &Path) -> Scan {
        let root = root.to_owned();
        let files = tokio::task::spawn_blocking(move || look(&root)).await.unwrap_or_default();
        Scan { files }
    }

    /// What is different now. Bytes before are known only for files that were not there.
    pub(crate) async fn changes_since(&self, ctx: &Context) -> Vec<FileChange> {
        let (before, ctx) = (self.clone(), ctx.clone());
        tokio::task::spawn_blocking(move || before.compare(&ctx)).await.unwrap_or_default()
    }

    /// There were more files than are watched.
    pub(crate) fn is_cut(&self) -> bool {
        self.files.len() >= MAX_FILES
    }

    fn compare(&self, ctx: &Context) -> Vec<FileChange> {
        let after = look(ctx.workspace.root());
        let touched = after.iter().filter(|(path, stamp)| self.files.get(*path) != Some(stamp)).map(|(path, _)| path);
        // What is not found may also be ignored now, or beyond the bound; only what is really gone was deleted.
        let gone = self.files.keys().filter(|path| !after.contains_key(*path) && is_gone(ctx, path));
        touched
            .chain(gone)
            .take(MAX_CHANGES)
            .filter_map(|path| self.change(path, after.contains_key(path), ctx))
            .collect()
    }

    fn change(&self, path: &Path, is_there: bool, ctx: &Context) -> Option<FileChange> {
        let shown = path.to_str()?;
        let was_there = self.files.contains_key(path);
        if !is_there {
            return Some(FileChange {
                path: shown.into(),
                kind: ChangeKind::Deleted,
                before_blob: None,
                after_blob: None,
                added: 0,
                removed: 0,
            });
        }
        let contents = ctx.workspace.locate(shown).and_then(|at| ctx.workspace.read(&at)).ok()?;
        if was_there {
            let after_blob = ctx.blobs.put(&contents.bytes).ok().flatten();
            return Some(FileChange {
                path: shown.into(),
                kind: ChangeKind::Modified,
                before_blob: None,
                after_blob,
                added: 0,
                removed: 0,
            });
        }
        changes::record(&ctx.blobs, shown, None, Some(&contents.bytes)).ok()
    }
}

fn is_gone(ctx: &Context, path: &Path) -> bool {
    std::fs::symlink_metadata(ctx.workspace.root().join(path)).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
}

fn look(root: &Path) -> BTreeMap<PathBuf, Stamp> {
    crate::tools::walk(root)
        .flatten()
        .filter(|entry| entry.file_type().is_some_and(|t| t.is_file()))
        .take(MAX_FILES)
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            let path = entry.path().strip_prefix(root).ok()?.to_owned();
            Some((path, (metadata.len(), metadata.modified().ok())))
        })
        .collect()
}
