//! Walks over the files of a folder. They skip `.git`, ignored files and what is mounted there without files of a user, and
//! follow no symlinks.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use ignore::DirEntry;
use ignore::{WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;

use crate::snapshot::Matcher;
use storage::file_system::{Devices, without_files_at};
use storage::regular;

/// The longest file of ignore rules, bytes.
const LONGEST_RULES: u64 = 1 << 20;

/// Visits each file below a folder, on several threads with one visitor each. Stops when cancelled.
pub fn walk_files<'a>(
    root: &Path,
    cancel: &CancellationToken,
    visitor: &(dyn Fn() -> Box<dyn FnMut(&DirEntry) + Send + 'a> + Sync),
) {
    visit(&builder(root), cancel, visitor);
}

fn visit<'a>(
    walk: &WalkBuilder,
    cancel: &CancellationToken,
    visitor: &(dyn Fn() -> Box<dyn FnMut(&DirEntry) + Send + 'a> + Sync),
) {
    walk.build_parallel().run(|| {
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

/// The most entries that a count of ignored files reads: the user waits for it.
const MOST_COUNTED: usize = 100_000;

/// Visits each file below a folder, also ignored ones.
pub fn walk_all_files<'a>(
    root: &Path,
    cancel: &CancellationToken,
    visitor: &(dyn Fn() -> Box<dyn FnMut(&DirEntry) + Send + 'a> + Sync),
) {
    visit(&unfiltered(root), cancel, visitor);
}

/// How many of the files below a folder that are wanted are ignored, `visible` being how many are not. `None` where there is too
/// much to count.
pub fn ignored(
    root: &Path,
    cancel: &CancellationToken,
    visible: usize,
    is_wanted: &(dyn Fn(&DirEntry) -> bool + Sync),
) -> Option<usize> {
    let (seen, wanted) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let enough = cancel.child_token();
    visit(&unfiltered(root), &enough, &|| {
        Box::new(|entry: &DirEntry| {
            if seen.fetch_add(1, Ordering::Relaxed) > MOST_COUNTED {
                enough.cancel();
            } else if is_wanted(entry) {
                wanted.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    (!enough.is_cancelled()).then(|| wanted.into_inner().saturating_sub(visible))
}

/// Whether rules ignore a file, or a folder that it lies in. It looks only at the folders on the way.
pub fn is_ignored(root: &Path, path: &Path) -> bool {
    let whole = root.join(path);
    let wanted = whole.clone();
    let mut builder = builder(root);
    builder.max_depth(Some(path.components().count()));
    let on_the_way = move |entry: &DirEntry| {
        let is_folder = entry.file_type().is_some_and(|it| it.is_dir());
        wanted.starts_with(entry.path()) && (!is_folder || is_readable(entry))
    };
    builder.filter_entry(on_the_way);
    !path.components().any(|part| part.as_os_str() == ".git")
        && !builder.build().flatten().any(|entry| entry.path() == whole)
}

fn unfiltered(root: &Path) -> WalkBuilder {
    let mut builder = builder(root);
    builder.ignore(false).git_ignore(false).git_exclude(false).git_global(false).parents(false);
    builder
}

/// Walks everything below a folder, sorted by name.
pub fn walk(root: &Path) -> ignore::Walk {
    builder(root).sort_by_file_name(std::cmp::Ord::cmp).build()
}

/// The same by other rules than those that stand there.
pub(crate) fn walk_by(root: &Path, rules: Arc<Matcher>) -> ignore::Walk {
    let (top, border) = (root.to_owned(), Border::default());
    let mut builder = WalkBuilder::new(root);
    builder.standard_filters(false).follow_links(false).sort_by_file_name(std::cmp::Ord::cmp).filter_entry(
        move |entry| {
            let path = entry.path().strip_prefix(&top).unwrap_or(entry.path());
            let is_folder = entry.file_type().is_some_and(|it| it.is_dir());
            entry.file_name() != ".git"
                && (path.as_os_str().is_empty() || !rules.ignores(&top, path, is_folder))
                && border.encloses(entry)
        },
    );
    if without_files_at(root).is_some() {
        builder.max_depth(Some(0));
    }
    builder.build()
}

fn builder(root: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    let border = Border::default();
    // Inside a repository, ignore files apply up to its root; elsewhere only those below `root` do.
    let in_repository = root.ancestors().any(|folder| folder.join(".git").exists());
    builder
        .hidden(false)
        .require_git(in_repository)
        .parents(in_repository)
        .follow_links(false)
        .filter_entry(move |entry| entry.file_name() != ".git" && is_readable(entry) && border.encloses(entry));
    if without_files_at(root).is_some() {
        builder.max_depth(Some(0));
    }
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

/// Where a walk ends: at file systems that hold no files of a user. A volume that is mounted in the folder, on a disk, in memory
/// or over a network, belongs to the folder.
#[derive(Debug, Default)]
pub struct Border(Devices);

impl Border {
    /// Whether a walk goes on with this entry, which a folder within the border has.
    pub fn encloses(&self, entry: &DirEntry) -> bool {
        let is_folder = entry.file_type().is_some_and(|it| it.is_dir());
        let device = if is_folder { entry.metadata().ok().map(|it| it.dev()) } else { None };
        device.is_none_or(|device| self.0.hold_files(device, || without_files_at(entry.path())))
    }
}

/// Whether a walk that reads the ignore rules of this folder waits for another process, or reads without an end: a FIFO, a
/// device, a file of the kernel or a huge one has the name of a file of rules, or stands where git's own files lead.
pub fn has_blocking_rules(folder: &Path) -> bool {
    let of_git = match regular::read_to_string(&folder.join(".git")) {
        // The file of a work tree or a submodule.
        Ok(text) => text.strip_prefix("gitdir:").map(|to| folder.join(to.trim()).join("commondir")),
        Err(_) => Some(folder.join(".git/info/exclude")),
    };
    let mut all = [".gitignore", ".ignore"].map(|name| folder.join(name)).into_iter().chain(of_git);
    all.any(|path| {
        fs::metadata(&path).is_ok_and(|it| {
            let is_plain =
                it.is_dir() || (it.is_file() && it.len() <= LONGEST_RULES && without_files_at(&path).is_none());
            !is_plain
        })
    })
}
