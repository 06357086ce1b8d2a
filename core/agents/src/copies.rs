//! The copies in which children work: where they are, when they are made, and when they go.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::child::Child;
use super::{Position, own_entries};
use files::copy::{self, CopiedRepository, GitFolders};
use files::restore::{RestoreTarget, of_copy};
use files::snapshot::SessionSnapshot;
use files::workspace::Workspace;
use permissions::repository::Repository;
use protocol::error::{Code, Result};
use protocol::event::{Isolation, SessionId};
use session::Services;
use storage::log;

/// The folder of a child's copy.
pub(super) fn folder(services: &Services, root: &SessionId, child: &Child) -> PathBuf {
    services.store.copies(root).join(child.name())
}

/// What a child that works in a copy begins with; `None` for one that works on its parent's files.
///
/// # Errors
/// `NOT_FOUND` when the copy cannot be opened.
pub(super) fn services(base: &Services, at: &Position) -> Result<Option<Services>> {
    let Some(child) = at.child.as_ref().filter(|child| child.isolation != Isolation::Shared) else { return Ok(None) };
    let workspace = Workspace::open(&folder(base, &at.tree.root, child))?;
    let started_in = base.started_in.as_ref().and_then(|folder| {
        let below = folder.strip_prefix(base.workspace.root()).ok()?;
        Some(workspace.root().join(below))
    });
    Ok(Some(Services {
        workspace: Arc::new(workspace),
        project: Some(Arc::clone(base.project())),
        // What is changed here is changed nowhere else.
        snapshot: SessionSnapshot::default(),
        started_in,
        ..base.clone()
    }))
}

/// The workspace that a child of these services works on.
///
/// # Errors
/// `NOT_FOUND` when it cannot be opened.
pub(super) fn workspace(base: &Services, root: &SessionId, child: &Child) -> Result<Arc<Workspace>> {
    match child.isolation {
        Isolation::Shared => Ok(Arc::clone(&base.workspace)),
        Isolation::Copy | Isolation::Scratch => Workspace::open(&folder(base, root, child)).map(Arc::new),
    }
}

/// Makes the child's copy again if it has gone. Files that wait for the user's decision are in it as the child left them, so that
/// it goes on from its own work.
///
/// # Errors
/// `COPY_FAILED`; those of the child's Log.
pub(super) fn make_again(base: &Services, root: &SessionId, child: &Child) -> Result<()> {
    if child.isolation == Isolation::Shared || folder(base, root, child).is_dir() {
        return Ok(());
    }
    make(base, root, child)?;
    if child.isolation == Isolation::Copy {
        let copy = workspace(base, root, child)?;
        for left in waiting(base, child)?.0.bring_back(&copy, &base.blobs)? {
            child.note(&format!("its copy was removed, and {} is not in the new one: {}", left.path, left.why));
        }
    }
    Ok(())
}

/// What of a child's copy is not settled, and the last Entry of its Log.
///
/// # Errors
/// Those of the child's Log.
pub(super) fn waiting(base: &Services, child: &Child) -> Result<(RestoreTarget, u64)> {
    let entries = match log::read(&base.place(&child.session).log()) {
        Ok(contents) => contents.entries,
        // It ended before it could begin.
        Err(error) if error.code == Code::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let last = entries.last().map_or(0, |entry| entry.seq);
    let settled = child.adoptions.settled.lock().clone();
    Ok((of_copy(own_entries(&entries).iter().map(|entry| &**entry), &settled), last))
}

/// Makes the child's copy of the workspace as it is now, unless it is there. What the copy is missing is noted for the result.
///
/// # Errors
/// `COPY_FAILED`.
pub(super) fn make(base: &Services, root: &SessionId, child: &Child) -> Result<()> {
    let to = folder(base, root, child);
    if child.isolation == Isolation::Shared || to.is_dir() {
        return Ok(());
    }
    let from = base.workspace.root();
    let found = Repository::find(from).ok().flatten();
    let is_part = found.as_ref().is_some_and(|it| it.top != from);
    // A repository around the workspace has more in it than the copy.
    let git = found.filter(|it| it.top == from).map(|it| GitFolders { own: it.git, common: it.common });
    let why = match copy::copy(from, git.as_ref(), &base.copy_ignored, &to)? {
        Some(CopiedRepository::Whole) => return Ok(()),
        Some(CopiedRepository::TooLarge) => "it has more than 512 MiB",
        Some(CopiedRepository::Elsewhere) => "its objects are in another repository",
        None if is_part => "the workspace is only a part of it",
        None => return Ok(()),
    };
    child.note(&format!("its copy has no repository: {why}"));
    Ok(())
}

/// Whether a workspace is a repository of its own that may be copied, and why not: as a clause.
pub(super) fn check(workspace: &Path) -> std::result::Result<(), String> {
    match Repository::find(workspace) {
        Ok(Some(it)) if it.top == workspace => copy::check(workspace).map_err(|error| error.message),
        Ok(_) => Err("the workspace is not a repository of its own".to_owned()),
        Err(why) => Err(why),
    }
}

/// Symlinks that the child made or changed in its copy: an adoption writes files alone.
pub(super) fn new_links(base: &Services, root: &SessionId, child: &Child) -> Vec<String> {
    copy::new_links(&folder(base, root, child), base.workspace.root())
}

/// Removes the child's copy. What it changed there is in its Log, and in the blobs.
pub(super) fn remove(base: &Services, root: &SessionId, child: &Child) {
    if child.isolation == Isolation::Shared {
        return;
    }
    remove_folder(&folder(base, root, child));
}

fn remove_folder(folder: &Path) {
    if let Err(e) = copy::remove(folder) {
        tracing::warn!(copy = %folder.display(), "the copy of an agent was not removed: {e}");
    }
}

/// Removes the child's copy on a thread that may block, if it is there.
pub(super) fn remove_later(base: &Services, root: &SessionId, child: &Child) {
    let folder = folder(base, root, child);
    if !folder.is_dir() {
        return;
    }
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn_blocking(move || remove_folder(&folder));
    }
}
