//! Protected files around a command: what the command did to them is found, and taken back.
//!
//! In namespaces the kernel keeps the ones that exist; nothing keeps those that a command creates, and Landlock keeps none.
//! A guard looks at them before the command and after all of its processes have ended.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _, PermissionsExt as _};

use super::protected::{FILES, FOLDERS, PLACES};
use super::workspace::Workspace;
use storage::blobs::Blobs;

/// The most files and folders that are looked at in one protected folder.
const MOST: usize = 2_000;
/// How often a folder that a command has filled is looked at again, once what was found there has been taken back.
const MOST_LOOKS: usize = 100;
/// The largest file whose bytes are kept, and the most bytes of all.
const LARGEST: u64 = 1 << 20;
const MOST_BYTES: u64 = 16 << 20;
/// How deep the folders of submodules may lie in `.git/modules`.
const DEEPEST: usize = 4;

/// What stood there before a command.
#[derive(Debug)]
pub struct Guard {
    places: Vec<Place>,
    /// How many protected files pixir itself had written by then.
    own_writes: usize,
}

/// A folder and the protected files in it: the workspace, or a folder of its repository elsewhere.
#[derive(Debug)]
struct Place {
    dir: Dir,
    /// Its path, for a folder outside the workspace.
    outside: Option<PathBuf>,
    /// What the kernel keeps from the command here.
    kept: Vec<PathBuf>,
    /// Repositories below it: each `.git`, and folders that look like one without a work tree.
    below: BTreeSet<PathBuf>,
    /// Its path.
    at: PathBuf,
    /// Where git keeps what it knows of work trees and submodules here.
    records: Vec<PathBuf>,
    before: Listed,
}

#[derive(Debug, Default)]
struct Listed {
    items: BTreeMap<PathBuf, Item>,
    /// Folders of repositories.
    repositories: BTreeSet<PathBuf>,
    /// Protected folders with more in them than is looked at.
    cut: BTreeSet<PathBuf>,
}

#[derive(Debug, Clone)]
struct Item {
    kind: Kind,
    mode: u32,
    /// Inode, size, times: while they are equal, the file is unchanged.
    stamp: [i64; 6],
    /// The bytes of a file that is not too large.
    bytes: Option<Arc<[u8]>>,
    /// A folder on the way to protected files, which is not protected itself.
    on_the_way: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
    Link(PathBuf),
    Other,
}

/// What a command did to a protected file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    Wrote,
    Changed,
    Removed,
}

/// A protected file that a command wrote or removed.
#[derive(Debug, Clone)]
pub struct Taken {
    /// Relative to the workspace; absolute outside it.
    pub path: String,
    pub did: Did,
    /// It is again as it was.
    pub is_back: bool,
    /// The bytes and permission bits that the command gave it, if it is a file of the workspace.
    pub written: Option<(Arc<[u8]>, u32)>,
    /// Its bytes before, if it was a file.
    pub before: Option<Arc<[u8]>>,
}

impl Taken {
    /// What the command did, and what became of it, as a clause.
    pub fn told(&self) -> String {
        self.told_of("the command")
    }

    /// The same about another writer.
    pub fn told_of(&self, writer: &str) -> String {
        let (verb, end) = match (self.did, self.is_back) {
            (Did::Wrote, true) => ("wrote", "was removed"),
            (Did::Wrote, false) => ("wrote", "could not be removed"),
            (Did::Changed, true) => ("changed", "was put back"),
            (Did::Changed, false) => ("changed", "could not be put back"),
            (Did::Removed, true) => ("removed", "was put back"),
            (Did::Removed, false) => ("removed", "could not be put back"),
        };
        format!("{writer} {verb} {}, which is protected; it {end}", self.path)
    }
}

impl Guard {
    /// Looks at the protected files of a workspace, of these repositories below it, and of its repository's
    /// folders elsewhere. `kept` are the paths that the kernel keeps from the command.
    pub fn before(workspace: &Workspace, below: &BTreeSet<PathBuf>, git: &[PathBuf], kept: &[PathBuf]) -> Guard {
        let place = |dir: io::Result<Dir>, outside: Option<&PathBuf>| {
            let dir = dir.ok()?;
            let at = outside.map_or(workspace.root(), PathBuf::as_path);
            let kept = kept.iter().filter_map(|path| Some(path.strip_prefix(at).ok()?.to_owned())).collect();
            let below = if outside.is_some() { BTreeSet::new() } else { below.clone() };
            let before = Listed::read(&dir, outside.is_some(), &below, None);
            let own = workspace.root().join(".git");
            let records = git.iter().chain([&own]).flat_map(|git| ["worktrees", "modules"].map(|name| git.join(name)));
            let (records, at) = (records.collect(), at.to_owned());
            Some(Place { dir, outside: outside.cloned(), kept, below, at, records, before })
        };
        let own_writes = workspace.own_writes();
        let elsewhere =
            git.iter().filter_map(|path| place(Dir::open_ambient_dir(path, ambient_authority()), Some(path)));
        Guard { places: place(workspace.handle(), None).into_iter().chain(elsewhere).collect(), own_writes }
    }

    /// Takes back what the command did to protected files. A new repository may have the files that git gives it:
    /// `is_plain` tells whether its configuration runs and reads nothing else.
    /// What it takes back is stored.
    pub fn take_back(&self, workspace: &Workspace, blobs: &Blobs, is_plain: fn(&str) -> bool) -> Vec<Taken> {
        self.take_back_with(&BTreeSet::new(), workspace, blobs, is_plain)
    }

    /// The same, also in these repositories, which were made meanwhile below the workspace.
    pub fn take_back_with(
        &self,
        made: &BTreeSet<PathBuf>,
        workspace: &Workspace,
        blobs: &Blobs,
        is_plain: fn(&str) -> bool,
    ) -> Vec<Taken> {
        let own = workspace.own_writes_since(self.own_writes);
        let mut all: Vec<Taken> = Vec::new();
        let mut known = BTreeSet::new();
        for place in &self.places {
            for _ in 0..MOST_LOOKS {
                let (taken, is_cut) = place.take_back(made, &own, blobs, is_plain);
                let new: Vec<Taken> = taken.into_iter().filter(|it| known.insert(it.path.clone())).collect();
                let goes_on = is_cut && new.iter().any(|it| it.is_back);
                all.extend(new);
                if !goes_on {
                    break;
                }
            }
        }
        all
    }

    /// What happened to protected files since, without taking anything back.
    pub fn found(&self, workspace: &Workspace, is_plain: fn(&str) -> bool) -> Vec<Taken> {
        let own = workspace.own_writes_since(self.own_writes);
        let none = BTreeSet::new();
        self.places.iter().flat_map(|place| place.told(&place.found(&none, &own, is_plain))).collect()
    }

    /// Those of these repositories that were not there at the look before.
    pub fn new_among(&self, below: BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        below.into_iter().filter(|it| self.places.iter().all(|place| !place.below.contains(it))).collect()
    }

    /// Whether pixir itself has written this path of the workspace since.
    pub fn is_own(&self, workspace: &Workspace, path: &Path) -> bool {
        workspace.own_writes_since(self.own_writes).contains(path)
    }
}

impl Place {
    /// What was done to protected files here since the look before.
    fn found(&self, made: &BTreeSet<PathBuf>, own: &BTreeSet<PathBuf>, is_plain: fn(&str) -> bool) -> Found {
        let none = BTreeSet::new();
        let made = if self.outside.is_some() { &none } else { made };
        let below: BTreeSet<PathBuf> = self.below.union(made).cloned().collect();
        let after = Listed::read(&self.dir, self.outside.is_some(), &below, Some(&self.before));
        let before = &self.before;
        // Only in repositories below the workspace: git may change their settings to others that start nothing, and a
        // repository may be moved, or removed with all that is in it.
        let is_below = |path: &Path| below.iter().any(|it| path.starts_with(it));
        let was_moved = |now: &Item| before.items.values().any(|old| old.kind == now.kind && old.stamp == now.stamp);
        let is_removed = |path: &Path| {
            let of = path.ancestors().filter(|it| before.repositories.contains(*it)).last();
            of.is_some_and(|it| !after.items.contains_key(it))
        };
        let starts_nothing = |path: &Path, now: &Item| {
            let text = now.bytes.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok());
            below.iter().any(|it| *path == it.join("config")) && now.kind == Kind::File && text.is_some_and(is_plain)
        };
        let is_exempt = |path: &Path| {
            path.ancestors().any(|it| self.outside.is_none() && own.contains(it)) || self.is_kept(path, &after)
        };
        let mut did_to: BTreeMap<PathBuf, Did> = BTreeMap::new();
        for (path, now) in &after.items {
            let did = match before.items.get(path) {
                None if now.on_the_way && now.kind == Kind::Folder => continue,
                None if before.is_cut(path) || after.is_plain(path, now, before, is_plain) => continue,
                None if is_of_git_worktree(path, now) => continue,
                None | Some(_) if is_below(path) && self.leads_to_records(path, now) => continue,
                None if is_below(path) && was_moved(now) => continue,
                Some(_) if is_below(path) && starts_nothing(path, now) => continue,
                None => Did::Wrote,
                Some(old) if old.is_same(now) => continue,
                Some(_) => Did::Changed,
            };
            if !is_exempt(path) {
                did_to.insert(path.clone(), did);
            }
        }
        for (path, old) in before.items.iter().filter(|(path, _)| !after.items.contains_key(*path)) {
            let is_way = old.on_the_way && old.kind == Kind::Folder;
            // Git has removed the work tree with all that it knew of it.
            let is_gone =
                is_in_worktrees(path) && path.parent().is_some_and(|it| self.dir.symlink_metadata(it).is_err());
            let is_gone = is_gone || (is_below(path) && is_removed(path));
            if !is_way && !is_gone && !after.is_cut(path) && !is_exempt(path) {
                did_to.insert(path.clone(), Did::Removed);
            }
        }
        Found { after, did_to }
    }

    /// Returns what was taken back, and whether a folder may hold more that was not seen.
    fn take_back(
        &self,
        made: &BTreeSet<PathBuf>,
        own: &BTreeSet<PathBuf>,
        blobs: &Blobs,
        is_plain: fn(&str) -> bool,
    ) -> (Vec<Taken>, bool) {
        let found = self.found(made, own, is_plain);
        let is_cut = found.after.cut.iter().any(|it| !self.before.cut.contains(it));
        let Found { after, did_to } = &found;
        let before = &self.before;
        let files = found.files();
        for (path, did) in did_to.iter().rev() {
            let now = after.items.get(path);
            if let Some(bytes) = now.and_then(|it| it.bytes.as_ref()) {
                // A store that is full or broken does not let a command keep what it wrote.
                let _ = blobs.put(bytes);
            }
            // Of a file that was too large to be kept, the new bytes are better than none.
            if before.items.get(path).is_some_and(|old| old.kind == Kind::File && old.bytes.is_none()) {
                continue;
            }
            match now.map(|it| &it.kind) {
                Some(Kind::Folder) if *did == Did::Wrote && !files.iter().any(|file| file.starts_with(path)) => {}
                Some(Kind::Folder) => drop(self.dir.remove_dir(path)),
                Some(Kind::File | Kind::Link(_) | Kind::Other) => drop(self.dir.remove_file(path)),
                None => {}
            }
        }
        for path in did_to.keys() {
            if let Some(old) = before.items.get(path) {
                // A failure is seen below.
                let _ = self.put_back(path, old);
            }
        }
        (self.told(&found), is_cut)
    }

    /// What was found, as it stands now.
    fn told(&self, found: &Found) -> Vec<Taken> {
        let told = found.files().into_iter().map(|path| {
            let now = found.after.items.get(path).filter(|it| it.kind == Kind::File && self.outside.is_none());
            Taken {
                path: self.outside.as_ref().map_or(path.to_owned(), |it| it.join(path)).display().to_string(),
                did: found.did_to[path],
                is_back: self.is_as_before(path),
                written: now.and_then(|it| Some((it.bytes.clone()?, it.mode))),
                before: self.before.items.get(path).and_then(|it| it.bytes.clone()),
            }
        });
        told.collect()
    }

    /// Whether a file `.git` leads to what git itself knows of a work tree or submodule.
    fn leads_to_records(&self, path: &Path, now: &Item) -> bool {
        let text = now.bytes.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok());
        let Some(target) = text.and_then(|text| text.strip_prefix("gitdir:")).map(str::trim) else { return false };
        let mut to = PathBuf::new();
        for part in self.at.join(path.parent().unwrap_or(Path::new(""))).join(target).components() {
            match part {
                Component::ParentDir => drop(to.pop()),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => to.push(part),
            }
        }
        path.ends_with(".git") && self.records.iter().any(|it| to.starts_with(it))
    }

    /// Whether the kernel has kept this path from the command: it stands below a kept one, and no folder above that has been
    /// exchanged.
    fn is_kept(&self, path: &Path, after: &Listed) -> bool {
        self.kept.iter().filter(|kept| path.starts_with(kept)).any(|kept| {
            let inode = |listed: &Listed, path: &Path| listed.items.get(path).map(|it| it.stamp[0]);
            let mut above = kept.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty());
            above.all(|it| inode(&self.before, it) == inode(after, it))
        })
    }

    fn is_as_before(&self, path: &Path) -> bool {
        let now = Listed::read_one(&self.dir, path);
        match (self.before.items.get(path), now) {
            (None, now) => now.is_none(),
            (Some(old), Some(now)) => old.is_same(&now),
            (Some(_), None) => false,
        }
    }

    fn put_back(&self, path: &Path, old: &Item) -> io::Result<()> {
        let parent = path.parent().unwrap_or(Path::new(""));
        if !parent.as_os_str().is_empty() {
            self.dir.create_dir_all(parent)?;
        }
        match &old.kind {
            Kind::Folder => self.dir.create_dir_with(path, &DirBuilder::new()),
            Kind::Link(target) => self.dir.symlink_contents(target, path),
            Kind::Other => Ok(()),
            Kind::File => {
                let Some(bytes) = &old.bytes else { return Ok(()) };
                let mut options = OpenOptions::new();
                let mut file = self.dir.open_with(path, options.write(true).create_new(true).mode(old.mode))?;
                file.write_all(bytes)?;
                file.set_permissions(cap_std::fs::Permissions::from_mode(old.mode))
            }
        }
    }
}

/// What was done to protected files.
struct Found {
    after: Listed,
    did_to: BTreeMap<PathBuf, Did>,
}

impl Found {
    /// Without new folders: a new folder is not a file, and is removed if it is empty once its files are gone.
    fn files(&self) -> Vec<&Path> {
        let is_new_folder = |path: &Path, did: Did| {
            did == Did::Wrote && self.after.items.get(path).is_some_and(|it| it.kind == Kind::Folder)
        };
        self.did_to.iter().filter(|(path, did)| !is_new_folder(path, **did)).map(|it| it.0.as_path()).collect()
    }
}

impl Item {
    fn is_same(&self, now: &Item) -> bool {
        if self.kind != now.kind {
            return false;
        }
        let is_file = self.kind == Kind::File;
        !is_file
            || self.stamp == now.stamp
            || (self.mode == now.mode && self.bytes.is_some() && self.bytes == now.bytes)
    }
}

impl Listed {
    fn read(dir: &Dir, is_git: bool, below: &BTreeSet<PathBuf>, old: Option<&Listed>) -> Listed {
        let mut look = Look::new(dir, old);
        if is_git {
            look.inside_git(Path::new(""), DEEPEST);
        } else {
            look.workspace();
            look.without_samples = true;
            for repository in below {
                look.begin(repository);
                look.git(repository, DEEPEST);
            }
        }
        look.listed
    }

    fn read_one(dir: &Dir, path: &Path) -> Option<Item> {
        let mut look = Look::new(dir, None);
        look.item(path, false);
        look.listed.items.remove(path)
    }

    /// Whether this path lies in a folder with more than is looked at.
    fn is_cut(&self, path: &Path) -> bool {
        path.ancestors().any(|it| self.cut.contains(it))
    }

    /// Whether git gives such a file to each new repository.
    fn is_plain(&self, path: &Path, item: &Item, before: &Listed, is_plain: fn(&str) -> bool) -> bool {
        let of = path.ancestors().find(|it| self.repositories.contains(*it));
        let Some(repository) = of.filter(|it| !before.items.contains_key(*it)) else { return false };
        let name = path.strip_prefix(repository).unwrap_or(path).to_string_lossy().into_owned();
        match (&item.kind, name.as_str()) {
            (Kind::Folder, "" | "hooks") => true,
            (Kind::File, "config") => {
                item.bytes.as_ref().is_some_and(|bytes| std::str::from_utf8(bytes).is_ok_and(is_plain))
            }
            (Kind::File, name) => name.starts_with("hooks/") && name.ends_with(".sample"),
            (Kind::Folder | Kind::Link(_) | Kind::Other, _) => false,
        }
    }
}

/// A look at the protected files of a folder.
struct Look<'a> {
    dir: &'a Dir,
    /// An earlier one, so that unchanged files are not read again.
    old: Option<&'a Listed>,
    /// Bytes that were kept.
    bytes: u64,
    /// The protected folder that is looked at, and how much was seen there.
    folder: PathBuf,
    seen: usize,
    /// The samples of hooks, which git never runs, are left out: a workspace may have many repositories.
    without_samples: bool,
    listed: Listed,
}

impl<'a> Look<'a> {
    fn new(dir: &'a Dir, old: Option<&'a Listed>) -> Look<'a> {
        let (folder, listed) = (PathBuf::new(), Listed::default());
        Look { dir, old, bytes: 0, folder, seen: 0, without_samples: false, listed }
    }

    /// The files first, and what may be large last: a command that fills one folder hides nothing elsewhere.
    fn workspace(&mut self) {
        let lower = |name: &std::ffi::OsString| name.to_string_lossy().to_lowercase();
        let names = self.names(Path::new("."));
        for name in names.iter().filter(|name| FILES.contains(&lower(name).as_str())) {
            self.whole(Path::new(name));
        }
        for name in names.iter().filter(|name| lower(name) == ".git") {
            self.git(Path::new(name), DEEPEST);
        }
        for place in PLACES.map(Path::new) {
            let above: Vec<&Path> = place.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty()).collect();
            // A symlink on the way would be a protected folder under another name.
            if above.iter().rev().all(|path| self.item(path, true) == Some(Kind::Folder)) {
                self.begin(place);
                self.whole(place);
            }
        }
        for name in names.iter().filter(|name| lower(name) != ".git" && FOLDERS.contains(&lower(name).as_str())) {
            self.begin(Path::new(name));
            self.whole(Path::new(name));
        }
    }

    /// What follows lies in this protected folder, as far as it can be told.
    fn begin(&mut self, folder: &Path) {
        (self.folder, self.seen) = (folder.to_owned(), 0);
    }

    /// The folder of a repository.
    fn git(&mut self, at: &Path, deepest: usize) {
        self.listed.repositories.insert(at.to_owned());
        if self.item(at, false) == Some(Kind::Folder) {
            self.inside_git(at, deepest);
        }
    }

    fn inside_git(&mut self, at: &Path, deepest: usize) {
        for name in ["config", "config.worktree", "commondir"] {
            self.whole(&at.join(name));
        }
        if self.item(&at.join("info"), true) == Some(Kind::Folder) {
            self.item(&at.join("info/attributes"), false);
        }
        self.begin(&at.join("hooks"));
        self.whole(&at.join("hooks"));
        if self.item(&at.join("modules"), true) == Some(Kind::Folder) {
            self.begin(&at.join("modules"));
            self.modules(&at.join("modules"), deepest);
        }
        let worktrees = at.join("worktrees");
        if self.item(&worktrees, true) == Some(Kind::Folder) {
            self.begin(&worktrees);
            for name in self.names(&worktrees) {
                for file in ["commondir", "config.worktree"] {
                    self.item(&worktrees.join(&name).join(file), false);
                }
            }
        }
        self.begin(at);
    }

    /// The repositories of submodules.
    fn modules(&mut self, folder: &Path, deepest: usize) {
        for name in self.names(folder) {
            let path = folder.join(name);
            if self.dir.symlink_metadata(path.join("HEAD")).is_ok() {
                self.git(&path, deepest.saturating_sub(1));
            } else if deepest > 0 && self.item(&path, true) == Some(Kind::Folder) {
                self.modules(&path, deepest - 1);
            }
        }
    }

    /// A file, or a folder with everything in it.
    fn whole(&mut self, path: &Path) {
        if self.item(path, false) == Some(Kind::Folder) {
            for name in self.names(path) {
                if !self.without_samples || !name.as_encoded_bytes().ends_with(b".sample") {
                    self.whole(&path.join(name));
                }
            }
        }
    }

    fn names(&mut self, folder: &Path) -> Vec<std::ffi::OsString> {
        let mut names: Vec<_> =
            self.dir.read_dir(folder).into_iter().flatten().flatten().map(|it| it.file_name()).collect();
        names.sort();
        names
    }

    fn item(&mut self, path: &Path, on_the_way: bool) -> Option<Kind> {
        let metadata = self.dir.symlink_metadata(path).ok()?;
        if self.seen >= MOST {
            self.listed.cut.insert(self.folder.clone());
            return None;
        }
        self.seen += 1;
        let kind = if metadata.is_dir() {
            Kind::Folder
        } else if metadata.is_file() {
            Kind::File
        } else if metadata.is_symlink() {
            Kind::Link(self.dir.read_link_contents(path).unwrap_or_default())
        } else {
            Kind::Other
        };
        let stamp = stamp(&metadata);
        let known = self.old.and_then(|old| old.items.get(path)).filter(|old| old.stamp == stamp);
        let bytes = match known {
            Some(old) => old.bytes.clone(),
            None if kind == Kind::File => self.bytes_of(path, metadata.len()),
            None => None,
        };
        let mode = metadata.mode() & 0o7777;
        self.listed.items.insert(path.to_owned(), Item { kind: kind.clone(), mode, stamp, bytes, on_the_way });
        Some(kind)
    }

    fn bytes_of(&mut self, path: &Path, len: u64) -> Option<Arc<[u8]>> {
        if len > LARGEST || self.bytes + len > MOST_BYTES {
            return None;
        }
        self.bytes += len;
        let mut options = OpenOptions::new();
        // It may have become a FIFO.
        let flags = (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW).bits();
        let file = self.dir.open_with(path, options.read(true).custom_flags(i32::try_from(flags).ok()?)).ok()?;
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes).ok()?;
        Some(bytes.into())
    }
}

/// Whether a path is a file of git about a linked work tree.
fn is_in_worktrees(path: &Path) -> bool {
    path.parent().and_then(Path::parent).is_some_and(|it| it.ends_with("worktrees"))
}

/// Whether a file says, as git writes it, that a linked work tree belongs to this repository.
fn is_of_git_worktree(path: &Path, item: &Item) -> bool {
    is_in_worktrees(path)
        && path.file_name().is_some_and(|name| name == "commondir")
        && item.bytes.as_deref() == Some(b"../..\n")
}

fn stamp(it: &Metadata) -> [i64; 6] {
    let number = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
    [number(it.ino()), number(it.len()), it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()]
}
