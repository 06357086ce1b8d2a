//! Children that may change a workspace which they share: a second one gets a copy, unless the call or the role says what it
//! works on.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Role;
use super::child::Child;
use super::copies;
use call::off_loop;
use context::tool_names::MAY_CHANGE_FILES;
use protocol::event::{Isolation, Mode};

/// The writers of a tree.
#[derive(Debug, Default)]
pub(super) struct Writers {
    /// Each with the workspace that it works on.
    all: Mutex<Vec<(PathBuf, Weak<Child>)>>,
    /// One child at a time chooses its files, so that two which start together see each other.
    pub(super) choosing: tokio::sync::Mutex<()>,
}

impl Writers {
    /// Adds a child, if it may change the workspace.
    pub(super) fn add(&self, workspace: &Path, child: &Arc<Child>) {
        if child.isolation == Isolation::Shared && may_write(&child.role, child.writes.as_deref(), Mode::Auto) {
            self.all.lock().push((workspace.to_owned(), Arc::downgrade(child)));
        }
    }

    /// The name of one that runs or is about to. Those above the child only wait for it.
    fn running(&self, workspace: &Path, waiting: &[String]) -> Option<String> {
        let mut all = self.all.lock();
        all.retain(|(_, child)| child.strong_count() > 0);
        let here = all.iter().filter(|(place, _)| place == workspace).filter_map(|(_, child)| child.upgrade());
        here.filter(|child| child.is_open() && !waiting.starts_with(&child.path))
            .map(|child| child.name().to_owned())
            .next()
    }

    /// The files of a child for which nothing else is said, and why, where that is not as usual. `waiting` is the path of the Session
    /// that waits for the child, if one does.
    pub(super) async fn choose(
        &self,
        workspace: &Path,
        may_write: bool,
        waiting: &[String],
    ) -> (Isolation, Option<String>) {
        let Some(other) = self.running(workspace, waiting).filter(|_| may_write) else {
            return (Isolation::Shared, None);
        };
        let root = workspace.to_owned();
        match off_loop(move || Ok(copies::check(&root))).await {
            Ok(Ok(())) => {
                let note = format!("it works in a copy, because {other} may change the same files");
                (Isolation::Copy, Some(note))
            }
            Ok(Err(why)) => {
                let note = format!("it shares the files with {other}, which may change them too: no copy, {why}");
                (Isolation::Shared, Some(note))
            }
            Err(error) => (Isolation::Shared, Some(error.message)),
        }
    }
}

/// Whether an agent of this role may change files of its workspace at all.
pub(super) fn may_write(role: &Role, writes: Option<&[String]>, above: Mode) -> bool {
    let mode = role.mode.map_or(above, |mode| mode.stricter(above));
    let has_files = |globs: Option<&[String]>| globs.is_none_or(|globs| !globs.is_empty());
    mode != Mode::ReadOnly
        && role.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| MAY_CHANGE_FILES.contains(&tool.as_str())))
        && has_files(role.writes.as_deref())
        && has_files(writes)
}
