//! The ignore rules of a workspace, so that a command is judged by those from before it: a rule that the command itself writes
//! hides nothing that it did.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::workspace::Workspace;
use storage::regular;

/// The longest file of rules that is kept, bytes.
const LONGEST: u64 = 1 << 20;

/// Inode, size, and the times of the last changes.
type Stamp = [i64; 4];

/// The files of rules in a workspace.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// By path: the stamp, and the text.
    files: BTreeMap<PathBuf, (Stamp, String)>,
}

impl Rules {
    /// Reads those at these paths. Those that have not changed since `old` are not read again.
    pub(super) fn read(workspace: &Workspace, paths: Vec<PathBuf>, mut old: Rules) -> Rules {
        let mut files = BTreeMap::new();
        for path in in_order(paths) {
            let Some(stamp) = stamp(&workspace.root().join(&path)) else { continue };
            let known = old.files.remove(&path).filter(|it| it.0 == stamp).map(|it| it.1);
            let text = known.or_else(|| regular::read_to_string(&workspace.root().join(&path)).ok());
            files.insert(path, (stamp, text.unwrap_or_default()));
        }
        Rules { files }
    }

    /// Whether they are still as they were, and the only ones. `paths` are those that stand there now.
    pub(super) fn are_current(&self, workspace: &Workspace, paths: Vec<PathBuf>) -> bool {
        let now = in_order(paths).into_iter().filter_map(|path| {
            let stamp = stamp(&workspace.root().join(&path))?;
            Some((path, stamp))
        });
        self.files.iter().map(|(path, it)| (path.clone(), it.0)).eq(now)
    }

    /// The rules as they were, for a walk of the workspace.
    pub(super) fn matcher(&self, root: &Path) -> Matcher {
        let of_file = |(path, (_, text)): (&PathBuf, &(Stamp, String))| {
            let is_exclude = path.starts_with(".git");
            let folder = if is_exclude { Path::new("") } else { path.parent().unwrap_or(Path::new("")) };
            let mut builder = GitignoreBuilder::new(root.join(folder));
            text.lines().for_each(|line| drop(builder.add_line(None, line)));
            Some((folder.to_owned(), is_exclude, builder.build().ok()?))
        };
        let mut matcher = Matcher { folders: BTreeMap::new(), last: vec![Gitignore::global().0] };
        for (folder, is_exclude, rules) in self.files.iter().filter_map(of_file) {
            if is_exclude {
                matcher.last.insert(0, rules);
            } else {
                matcher.folders.entry(folder).or_default().push(rules);
            }
        }
        matcher
    }
}

/// Tells what rules ignore.
pub(crate) struct Matcher {
    /// By folder; of two files of a folder the one for other tools first.
    folders: BTreeMap<PathBuf, Vec<Gitignore>>,
    /// Those for the whole workspace, which all others override.
    last: Vec<Gitignore>,
}

impl Matcher {
    /// Whether the path, relative to the root, is ignored by itself. A walk does not enter an ignored folder.
    pub(crate) fn ignores(&self, root: &Path, path: &Path, is_folder: bool) -> bool {
        let whole = root.join(path);
        let of_folders = path.ancestors().skip(1).filter_map(|folder| self.folders.get(folder)).flatten();
        for rules in of_folders.chain(&self.last) {
            match rules.matched(&whole, is_folder) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }
}

/// The files of rules, relative to the root, in order, with the one that git keeps for itself.
fn in_order(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.push(".git/info/exclude".into());
    paths.sort();
    paths
}

fn stamp(path: &Path) -> Option<Stamp> {
    let it = fs::symlink_metadata(path).ok().filter(|it| it.is_file() && it.len() <= LONGEST)?;
    let number = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
    Some([number(it.ino()), number(it.len()), it.ctime(), it.ctime_nsec()])
}
