//! Walks over the files of a folder. They skip `.git` and ignored files, and follow no symlinks.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use ignore::{DirEntry, WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;

use crate::snapshot::Matcher;
use storage::regular;

/// Visits each file below a folder, on several threads with one visitor each. Stops when cancelled.
pub fn walk_files<'a>(
    root: &Path,
    cancel: &CancellationToken,
    visitor: &(dyn Fn() -> Box<dyn FnMut(&DirEntry) + Send + 'a> + Sync),
) {
    builder(root).build_parallel().run(|| {
        let mut visit = visitor();
        Box::new(move |entry| {
            if cancel.is_cancelled() {
                return WalkState::Quit;
            }
            if let Ok(entry) = entry
                && entry.file_type().is_some_and(|t| !t.is_dir())
            {
                visit(&entry);
            }
            WalkState::Continue
        })
    });
}

/// Walks everything below a folder, sorted by name.
pub fn walk(root: &Path) -> ignore::Walk {
    builder(root).sort_by_file_name(std::cmp::Ord::cmp).build()
}

/// The same by other rules than those that stand there.
pub(crate) fn walk_by(root: &Path, rules: Arc<Matcher>) -> ignore::Walk {
    let top = root.to_owned();
    let mut builder = WalkBuilder::new(root);
    builder.standard_filters(false).follow_links(false).sort_by_file_name(std::cmp::Ord::cmp).filter_entry(
        move |entry| {
            let path = entry.path().strip_prefix(&top).unwrap_or(entry.path());
            let is_folder = entry.file_type().is_some_and(|it| it.is_dir());
            entry.file_name() != ".git" && (path.as_os_str().is_empty() || !rules.ignores(&top, path, is_folder))
        },
    );
    builder.build()
}

fn builder(root: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    // Inside a repository, ignore files apply up to its root; elsewhere only those below `root` do.
    let in_repository = root.ancestors().any(|folder| folder.join(".git").exists());
    builder
        .hidden(false)
        .require_git(in_repository)
        .parents(in_repository)
        .follow_links(false)
        .filter_entry(|entry| entry.file_name() != ".git" && is_readable(entry));
    // The walk would read those of its root before it could skip them.
    let above = root.ancestors().take(if in_repository { usize::MAX } else { 1 });
    if above.into_iter().any(has_blocking_rules) {
        builder.ignore(false).git_ignore(false).git_exclude(false).parents(false);
    }
    builder
}

fn is_readable(entry: &DirEntry) -> bool {
    !entry.file_type().is_some_and(|it| it.is_dir()) || !has_blocking_rules(entry.path())
}

/// Whether a walk that reads the ignore rules of this folder waits for another process: a FIFO or a device has the name of
/// a file of rules, or stands where git's own files lead.
pub fn has_blocking_rules(folder: &Path) -> bool {
    let of_git = match regular::read_to_string(&folder.join(".git")) {
        // The file of a work tree or a submodule.
        Ok(text) => text.strip_prefix("gitdir:").map(|to| folder.join(to.trim()).join("commondir")),
        Err(_) => Some(folder.join(".git/info/exclude")),
    };
    let mut all = [".gitignore", ".ignore"].map(|name| folder.join(name)).into_iter().chain(of_git);
    all.any(|path| fs::metadata(path).is_ok_and(|it| !it.is_file() && !it.is_dir()))
}
