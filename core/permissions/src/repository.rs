//! The repository of git that the workspace belongs to, and whether git may run there unasked.

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

mod leads; // where it leads

pub use leads::Leads;

/// The longest index that is read, bytes.
const MOST: u64 = 64 << 20;
/// The longest text file of a repository, bytes.
const LONGEST_CONFIG: u64 = 1 << 20;

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The top folder of the work tree.
    pub top: PathBuf,
    /// The folder of this work tree: `HEAD`, `index`.
    pub git: PathBuf,
    /// The folder that all work trees share: `config`, `objects`, `refs`.
    pub common: PathBuf,
}

impl Repository {
    /// The repository that a folder belongs to, found in the folder or above it; `None` where there is none.
    ///
    /// # Errors
    /// There is a `.git` that leads somewhere else, or that another user owns: as a clause.
    pub fn find(folder: &Path) -> Result<Option<Repository>, String> {
        for top in folder.ancestors() {
            let git = top.join(".git");
            let metadata = match fs::symlink_metadata(&git) {
                Ok(metadata) => metadata,
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                Err(_) => return Err("the repository cannot be read here".into()),
            };
            // Above the folder, others may have put one: git itself refuses it then.
            if top != folder && metadata.uid() != rustix::process::geteuid().as_raw() {
                return Err("the repository belongs to another user".into());
            }
            if metadata.is_dir() {
                if fs::symlink_metadata(git.join("commondir")).is_ok() {
                    return Err("the repository has submodules or shares another's configuration".into());
                }
                return Ok(Some(Repository { top: top.to_owned(), common: git.clone(), git }));
            }
            if !metadata.is_file() {
                return Err("`.git` is a symlink or a special file".into());
            }
            return linked(top, &git)
                .or_else(|| submodule(top, &git))
                .map(Some)
                .ok_or_else(|| "`.git` names a repository that does not name this folder".into());
        }
        Ok(None)
    }

    /// The same, and where the user trusts what `.git` leads to, the repository that git finds there.
    ///
    /// # Errors
    /// As [`Repository::find`].
    pub fn find_trusted(folder: &Path, trusts_leads: bool) -> Result<Option<Repository>, String> {
        Repository::find(folder).or_else(|why| match Repository::as_named(folder).filter(|_| trusts_leads) {
            Some(named) => Ok(Some(named)),
            None => Err(why),
        })
    }

    /// Whether programs of a workspace may see it: it is not that of the whole home folder.
    pub fn may_be_shown(&self, workspace: &Path) -> bool {
        self.top == workspace || !is_home(&self.top)
    }

    /// The folders outside a workspace that git needs: to change, and to read.
    pub fn beside(&self, workspace: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let is_outside = |path: &&PathBuf| !path.starts_with(workspace);
        let top = Some(&self.top).filter(is_outside);
        let mut git: Vec<PathBuf> = [&self.common, &self.git].into_iter().filter(is_outside).cloned().collect();
        git.dedup();
        (git, top.into_iter().cloned().collect())
    }
}

/// A linked work tree: its `.git` file names a folder of the repository, and that folder names the file.
fn linked(top: &Path, file: &Path) -> Option<Repository> {
    let git = named_by(file, top)?;
    let back = read(&git.join("gitdir"))?;
    if git.join(back.trim_end_matches(['\n', '\r'])).canonicalize().ok()? != *file {
        return None;
    }
    let common = read(&git.join("commondir"))?;
    let common = git.join(common.trim_end_matches(['\n', '\r'])).canonicalize().ok()?;
    // Anything else could name a repository that has never heard of this work tree.
    let is_its_own = git.parent()? == common.join("worktrees");
    is_its_own.then(|| Repository { top: top.to_owned(), git, common })
}

/// The folder that a `.git` file in a folder names.
fn named_by(file: &Path, folder: &Path) -> Option<PathBuf> {
    let text = read(file)?;
    let named = Path::new(text.strip_prefix("gitdir:")?.trim_matches([' ', '\n', '\r']));
    folder.join(named).canonicalize().ok()
}

/// A submodule: its `.git` file names a folder of git, whose configuration names the work tree.
fn submodule(top: &Path, file: &Path) -> Option<Repository> {
    let git = named_by(file, top)?;
    let tree = work_tree(&read(&git.join("config"))?)?;
    let is_its_own = git.join(tree).canonicalize().ok()? == top && fs::symlink_metadata(git.join("commondir")).is_err();
    is_its_own.then(|| Repository { top: top.to_owned(), common: git.clone(), git })
}

/// The work tree that a configuration names.
fn work_tree(text: &str) -> Option<PathBuf> {
    let mut section = "";
    text.lines().map(str::trim).find_map(|line| {
        if line.starts_with('[') {
            section = line;
            return None;
        }
        let (key, value) = line.split_once('=').filter(|_| section.eq_ignore_ascii_case("[core]"))?;
        let value = value.trim();
        let value = value.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(value);
        key.trim().eq_ignore_ascii_case("worktree").then(|| value.replace("\\\\", "\\").replace("\\\"", "\"").into())
    })
}

/// The text of a regular file that is not a symlink. It never waits for another process.
pub fn read(path: &Path) -> Option<String> {
    String::from_utf8(bytes(path, LONGEST_CONFIG)?).ok()
}

/// Opens a regular file that is not a symlink, and returns its length in bytes. It never waits for another process.
pub fn open(path: &Path) -> Option<(fs::File, u64)> {
    let flags = (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW).bits();
    let file = fs::OpenOptions::new().read(true).custom_flags(i32::try_from(flags).ok()?).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    metadata.is_file().then_some((file, metadata.len()))
}

/// The bytes of such a file, if it has at most so many.
pub fn bytes(path: &Path, most: u64) -> Option<Vec<u8>> {
    let (file, len) = open(path)?;
    if len > most {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Checks that git, started in this folder, runs nothing of the repository and reads no other one, but for what the user trusts.
///
/// # Errors
/// Why not, as a clause.
pub(super) fn check(workspace: &Path, folder: &Path, trusts_leads: bool) -> Result<(), String> {
    let missing = || "there is no repository".to_owned();
    let repository = Repository::find_trusted(workspace, trusts_leads)?.ok_or_else(missing)?;
    if Repository::find_trusted(folder, trusts_leads)?.as_ref() != Some(&repository) {
        return Err("the folder belongs to another repository".into());
    }
    let Repository { top, git, common } = &repository;
    // A user who keeps the home folder in a repository opened only a folder of it here, not the whole home.
    if !repository.may_be_shown(workspace) {
        return Err("the repository is that of the home folder".into());
    }
    for (folder, names) in [
        (git, &["HEAD", "index", "logs"][..]),
        (common, &["config", "objects", "refs", "packed-refs", "info", "logs", "shallow"]),
        (&common.join("objects"), &["info", "pack"]),
        (&common.join("refs"), &["heads", "tags", "remotes"]),
    ] {
        for name in names {
            match fs::symlink_metadata(folder.join(name)) {
                Ok(it) if it.is_file() || it.is_dir() || (trusts_leads && it.is_symlink()) => {}
                Ok(_) => return Err(format!("`{name}` of the repository is a symlink or a special file")),
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(_) => return Err("the repository cannot be read here".into()),
            }
        }
    }
    for path in ["objects/info/alternates", "objects/info/http-alternates", "modules", "config.worktree"] {
        // A submodule that was removed leaves the folder behind.
        let is_left_over = path == "modules" && is_empty_folder(&common.join(path));
        let is_trusted = trusts_leads && path == "objects/info/alternates";
        if !is_left_over && !is_trusted && fs::symlink_metadata(common.join(path)).is_ok() {
            return Err(format!("the repository has `{path}`, which may lead to another one"));
        }
    }
    if fs::symlink_metadata(git.join("config.worktree")).is_ok()
        || fs::symlink_metadata(top.join(".gitmodules")).is_ok()
    {
        return Err("the repository has submodules or shares another's configuration".into());
    }
    let real = |path: PathBuf| if trusts_leads { path.canonicalize().unwrap_or(path) } else { path };
    let text = read(&real(common.join("config"))).ok_or("the repository's configuration cannot be read here")?;
    // A submodule's names its own work tree.
    let names_itself = || work_tree(&text).and_then(|it| common.join(it).canonicalize().ok()).as_ref() == Some(top);
    let is_harmless = |key: &String| is_harmless_to_readers(key) || (key == "core.worktree" && names_itself());
    if let Some(key) = keys(&text).find(|key| !is_harmless(key)) {
        let key = key.escape_debug();
        return Err(format!("the repository's configuration sets `{key}`, which is not known to be harmless"));
    }
    check_objects(&common.join("objects"))?;
    match fs::symlink_metadata(git.join("index")) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(_) => Err("the repository's index cannot be read here".into()),
        Ok(_) => {
            check_index(&bytes(&real(git.join("index")), MOST).ok_or("the repository's index cannot be read here")?)
        }
    }
}

fn is_empty_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.is_dir())
        && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether a folder is a user's home folder, judged by the files in it, or the parent of home folders.
fn is_home(top: &Path) -> bool {
    const MARKS: [&str; 6] = [".ssh", ".gnupg", ".bashrc", ".zshrc", ".bash_history", ".local"];
    top.components().count() < 3 || MARKS.iter().any(|name| fs::symlink_metadata(top.join(name)).is_ok())
}

/// The folders and packs of objects are no symlinks.
fn check_objects(objects: &Path) -> Result<(), String> {
    for folder in [objects.to_owned(), objects.join("pack")] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| !kind.is_dir() && !kind.is_file()) {
                return Err("the objects of the repository lead somewhere else".into());
            }
        }
    }
    Ok(())
}

/// Checks that an index names no other repository and no `.gitmodules`.
fn check_index(index: &[u8]) -> Result<(), String> {
    const SUBMODULES: &str = "the repository's index has submodules";
    let unknown = || "the repository's index is not understood here".to_owned();
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    let (version, entries) = (number(4).ok_or_else(unknown)?, number(8).ok_or_else(unknown)?);
    if index.get(..4) != Some(b"DIRC") {
        return Err(unknown());
    }
    // In any version and place: `.gitmodules` at the start of a path.
    if find(index, b".gitmodules").is_some() {
        return Err(SUBMODULES.into());
    }
    // Version 4 and an index in two files are rare.
    if !matches!(version, 2 | 3) || find(index, b"link\0").is_some() {
        return Err(unknown());
    }
    let mut at = 12;
    for _ in 0..entries {
        let mode = number(at + 24).ok_or_else(unknown)?;
        if mode & 0o170_000 == 0o160_000 {
            return Err(SUBMODULES.into());
        }
        let flags =
            u16::from_be_bytes(index.get(at + 60..at + 62).and_then(|it| it.try_into().ok()).ok_or_else(unknown)?);
        let name = at + 62 + if version == 3 && flags & 0x4000 != 0 { 2 } else { 0 };
        let len = index.get(name..).and_then(|rest| rest.iter().position(|byte| *byte == 0)).ok_or_else(unknown)?;
        // One to eight zero bytes make the entry's length a multiple of eight.
        at += (name + len - at) / 8 * 8 + 8;
    }
    Ok(())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|it| it == wanted)
}

/// What a repository's own configuration may say without git running or reading anything for it.
const KEYS: [&str; 21] = [
    "core.repositoryformatversion",
    "core.filemode",
    "core.bare",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.quotepath",
    "remote.url",
    "remote.fetch",
    "branch.remote",
    "branch.merge",
    "branch.rebase",
    "user.name",
    "user.email",
    "init.defaultbranch",
    "pull.rebase",
    "push.default",
];

/// Sections of which no key matters to a command that only reads. Git never takes an alias for a command of its own, and it
/// signs, edits, connects and merges only in commands that change something.
const HARMLESS_SECTIONS: [&str; 20] = [
    "alias",
    "branch",
    "user",
    "color",
    "advice",
    "column",
    "commit",
    "tag",
    "init",
    "gc",
    "maintenance",
    "fetch",
    "pull",
    "push",
    "rerere",
    "rebase",
    "sequence",
    "mergetool",
    "difftool",
    "pack",
];

/// Other keys that do not matter to a command that only reads: git reads them for a connection, an editor or a change, they
/// say how something is shown, or the environment of a command that runs unasked overrides them.
const HARMLESS_KEYS: &[&str] = &[
    // overridden
    "core.hookspath",
    "core.fsmonitor",
    "core.pager",
    "diff.ignoresubmodules",
    "status.submodulesummary",
    // for editors and connections
    "core.editor",
    "core.sshcommand",
    "remote.pushurl",
    "remote.tagopt",
    "remote.prune",
    "remote.mirror",
    "remote.skipdefaultupdate",
    "remote.skipfetchall",
    "remote.pushdefault",
    "remote.gh-resolved",
    "lfs.url",
    "lfs.access",
    "lfs.locksverify",
    "lfs.repositoryformatversion",
    // how files are read and shown
    "core.untrackedcache",
    "core.preloadindex",
    "core.trustctime",
    "core.checkstat",
    "core.whitespace",
    "core.abbrev",
    "core.commentchar",
    "core.compression",
    "core.bigfilethreshold",
    "core.sharedrepository",
    "core.hidedotfiles",
    "core.longpaths",
    "core.fscache",
    "core.protecthfs",
    "core.protectntfs",
    "core.commitgraph",
    "core.multipackindex",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "diff.algorithm",
    "diff.renames",
    "diff.renamelimit",
    "diff.colormoved",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.context",
    "diff.interhunkcontext",
    "diff.tool",
    "merge.ff",
    "merge.tool",
    "merge.conflictstyle",
    "log.date",
    "log.decorate",
    "log.abbrevcommit",
    "log.follow",
    "status.showuntrackedfiles",
    "status.short",
    // whether there is a configuration of the work tree, which is looked for
    "extensions.worktreeconfig",
];

fn is_harmless_to_readers(key: &str) -> bool {
    KEYS.contains(&key)
        || HARMLESS_KEYS.contains(&key)
        || key.split_once('.').is_some_and(|(section, _)| HARMLESS_SECTIONS.contains(&section))
}

/// Whether git runs and reads nothing because of a repository's configuration.
pub fn is_plain(text: &str) -> bool {
    keys(text).all(|key| KEYS.contains(&key.as_str()) || PLAIN_KEYS.contains(&key.as_str()))
}

/// Keys that start nothing and lead nowhere, although a command that only reads is not proven where they are set.
const PLAIN_KEYS: [&str; 6] =
    ["submodule.active", "submodule.url", "commit.gpgsign", "tag.gpgsign", "gc.auto", "remote.mirror"];

/// Whether git runs no program for a repository in any of its commands: there is no hook, and no key that could name one.
pub fn runs_nothing(repository: &Repository, home: Option<&Path>) -> bool {
    let hooks = fs::read_dir(repository.common.join("hooks")).into_iter().flatten().flatten();
    let has_hook = hooks.map(|it| it.file_name()).any(|name| !name.to_string_lossy().ends_with(".sample"));
    let settings = [".gitconfig", ".config/git/config"].map(|name| home.and_then(|home| read(&home.join(name))));
    let sets_hooks = settings.iter().flatten().any(|text| keys(text).any(|key| key == "core.hookspath"));
    let is_harmless =
        |text: String| keys(&text).all(|key| is_harmless_to_readers(&key) && !RUNS_IN_CHANGES.contains(&key.as_str()));
    !has_hook && !sets_hooks && read(&repository.common.join("config")).is_some_and(is_harmless)
}

/// Keys that do not matter to a command that only reads, and name a program for one that changes something.
const RUNS_IN_CHANGES: [&str; 5] =
    ["core.hookspath", "core.fsmonitor", "core.editor", "core.sshcommand", "sequence.editor"];

/// Every `section.key` of a configuration, without the section's name in quotes.
fn keys(text: &str) -> impl Iterator<Item = String> {
    let mut section = String::new();
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.trim().to_lowercase())
        .filter(|line| !line.is_empty() && !line.starts_with(['#', ';']))
        .collect();
    lines.into_iter().filter_map(move |line| match line.strip_prefix('[') {
        Some(rest) => {
            // A key on the line of its section, or a section that is spelt otherwise, is no key that is known.
            let whole = rest.ends_with(']') && rest.matches(']').count() == 1;
            section = rest.split([' ', ']', '.']).next().unwrap_or_default().to_owned();
            if whole { None } else { Some(line.clone()) }
        }
        None => Some(format!("{section}.{}", line.split(['=', ' ', '\t']).next().unwrap_or_default())),
    })
}
