//! Where the repository of a workspace leads: folders elsewhere that git uses, and that do not name the workspace in return.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Repository, is_home, named_by, read};

/// The most repositories whose objects lead to further ones, as in git.
const DEEPEST: usize = 5;
/// The parts of a repository that may be symlinks, as in a checkout of `repo` and in work trees that `git-new-workdir` made.
const CHANGED: [&str; 10] =
    ["HEAD", "index", "logs", "modules", "objects", "packed-refs", "refs", "rr-cache", "shallow", "worktrees"];
/// Those that name programs, or say how git works.
const READ: [&str; 4] = ["config", "description", "hooks", "info"];

/// Folders and files outside a workspace to which its `.git` leads. The author of that file chose them, so programs see them only
/// if the user trusts this.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leads {
    /// Git changes these: the repository, or parts of it.
    pub changes: Vec<PathBuf>,
    /// Git only reads these: objects that another repository lends.
    pub reads: Vec<PathBuf>,
}

impl Leads {
    /// Where the repository of a workspace leads.
    pub fn of(workspace: &Path) -> Leads {
        let known = Repository::find(workspace).ok().flatten();
        let Some(found) = known.clone().or_else(|| Repository::as_named(workspace)) else { return Leads::default() };
        let mut leads = Leads::default();
        let is_known = |path: &Path| {
            path.starts_with(workspace)
                || known.as_ref().is_some_and(|it| path.starts_with(&it.common) || path.starts_with(&it.git))
        };
        let folders = [&found.git, &found.common];
        leads.changes.extend(folders.into_iter().filter(|it| !is_known(it)).cloned());
        let links = |names: &'static [&'static str]| {
            let all = folders.into_iter().flat_map(move |it| names.iter().map(move |name| it.join(name)));
            all.filter(|it| it.is_symlink())
        };
        for link in links(&CHANGED) {
            // The parts of one repository often lie beside each other, some of them symlinks again.
            let beside = link.read_link().ok().and_then(|to| link.parent()?.join(to).parent()?.canonicalize().ok());
            leads.changes.extend(beside.filter(|it| has_parts(it)));
            leads.changes.extend(link.canonicalize());
        }
        leads.reads.extend(links(&READ).filter_map(|it| it.canonicalize().ok()));
        lent(&found.common.join("objects"), &mut leads.reads, DEEPEST);
        for paths in [&mut leads.changes, &mut leads.reads] {
            paths.retain(|it| !is_known(it));
            paths.sort();
            paths.dedup();
            let all = paths.clone();
            paths.retain(|it| !all.iter().any(|other| it != other && it.starts_with(other)));
        }
        let Leads { changes, reads } = &mut leads;
        reads.retain(|it| !changes.iter().any(|other| it.starts_with(other)));
        leads
    }

    /// Whether it leads nowhere.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.reads.is_empty()
    }

    /// All folders and files.
    pub fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.changes.iter().chain(&self.reads)
    }

    /// Whether it leads to more than a repository: a home folder, or a folder that has many in it.
    pub fn leads_too_far(&self) -> Option<&Path> {
        self.all().map(PathBuf::as_path).find(|it| it.is_dir() && is_home(it))
    }
}

impl Repository {
    /// The repository that git takes for that of a folder, whether it knows of the folder or not.
    pub(super) fn as_named(folder: &Path) -> Option<Repository> {
        let top = folder.ancestors().find(|it| it.join(".git").symlink_metadata().is_ok())?;
        let real = top.join(".git").canonicalize().ok()?;
        let git = if real.is_file() { named_by(&real, real.parent()?)? } else { real };
        if !is_repository(&git) {
            return None;
        }
        let common = match read(&git.join("commondir")) {
            Some(text) => git.join(text.trim_end_matches(['\n', '\r'])).canonicalize().ok()?,
            None => git.clone(),
        };
        Some(Repository { top: top.to_owned(), git, common })
    }
}

/// Whether a folder is one of git.
fn is_repository(folder: &Path) -> bool {
    folder.join("HEAD").symlink_metadata().is_ok()
        && ["objects", "commondir", "refs"].iter().any(|name| folder.join(name).exists())
}

/// Whether a folder has what a repository is made of.
fn has_parts(folder: &Path) -> bool {
    ["config", "objects", "refs"].iter().all(|name| folder.join(name).symlink_metadata().is_ok())
}

/// Adds the folders of objects that a repository borrows from.
fn lent(objects: &Path, all: &mut Vec<PathBuf>, deepest: usize) {
    let Some(objects) = objects.canonicalize().ok().filter(|_| deepest > 0) else { return };
    let text = read(&objects.join("info/alternates")).unwrap_or_default();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Ok(real) = objects.join(line).canonicalize() else { continue };
        if fs::metadata(&real).is_ok_and(|it| it.is_dir()) && !all.contains(&real) {
            all.push(real.clone());
            lent(&real, all, deepest - 1);
        }
    }
}
