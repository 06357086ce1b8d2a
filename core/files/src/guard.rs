//! Protected files around a command: what the command did to them is found, and taken back.
//!
//! In namespaces the kernel keeps the ones that exist; nothing keeps those that a command creates, and Landlock keeps none.
//! A guard looks at them before the command and after all of its processes have ended. It looks everywhere: at protected names,
//! at every repository and all that git did not write in it, and at what protected files name.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, OpenOptions, OpenOptionsExt as _, PermissionsExt as _};
use parking_lot::Mutex;

use super::workspace::Workspace;
use storage::blobs::Blobs;

mod git_folder; // what git writes below its folder
mod item; // one protected file or folder
pub mod left; // looks on the disk, for a pixir that is killed
pub(crate) mod named; // files that protected files name
mod records; // files `.git` that lead to what git knows of a work tree
pub(crate) mod survey; // where protected files and repositories are

use git_folder::{Part, is_instruction, is_record, starts_nothing};
use item::{Item, Items, Kind};
use survey::Sight;

/// The most looks at a place: each that takes something back needs another one.
const MOST_LOOKS: usize = 100;

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
    /// Its path.
    at: PathBuf,
    /// It is a folder of a repository outside the workspace.
    is_outside: bool,
    /// What the kernel keeps from the command here.
    kept: Vec<PathBuf>,
    /// Paths in it that protected files named before the command.
    named: Vec<PathBuf>,
    /// Folders of git elsewhere that this workspace belongs to.
    git: Vec<PathBuf>,
    /// A look found more folders than are walked.
    is_cut: AtomicBool,
    /// Files of ignore rules, as the last look found them.
    rules: Mutex<Vec<PathBuf>>,
    before: Listed,
}

/// What a look found.
#[derive(Debug, Default)]
struct Listed {
    items: Items,
    /// Folders of repositories, and files that lead to one.
    repositories: BTreeSet<PathBuf>,
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
    /// Its bytes and permission bits before, if it was a file.
    pub before: Option<(Arc<[u8]>, u32)>,
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

/// Tells whether the text of a repository's configuration runs and reads nothing else.
pub type IsPlain = fn(&str) -> bool;

impl Guard {
    /// Looks at the protected files of a workspace, and of its repository's folders elsewhere. `kept` are the paths that the
    /// kernel keeps from the command, `settings` the user's own settings of git.
    pub fn before(workspace: &Workspace, git: &[PathBuf], kept: &[PathBuf], settings: &[PathBuf]) -> Guard {
        let place = |dir: io::Result<Dir>, outside: Option<&PathBuf>| {
            let dir = dir.ok()?;
            let at = outside.map_or(workspace.root(), PathBuf::as_path).to_owned();
            let kept = kept.iter().filter_map(|path| Some(path.strip_prefix(&at).ok()?.to_owned())).collect();
            let is_outside = outside.is_some();
            let git = git.to_vec();
            let (named, before) = (Vec::new(), Listed::default());
            let (is_cut, rules) = (AtomicBool::new(false), Mutex::default());
            let mut place = Place { dir, at, is_outside, kept, named, git, is_cut, rules, before };
            let sight = place.survey(workspace);
            place.before = place.read(sight.clone(), None);
            if !is_outside {
                place.named = named::by_settings(&place.at, &place.repositories(), settings);
                place.named.extend(named::by_instructions(&place.at, &place.before.items));
            }
            if !place.named.is_empty() {
                place.before = place.read(sight, Some(&place.before.items));
            }
            Some(place)
        };
        let own_writes = workspace.own_writes();
        let elsewhere =
            git.iter().filter_map(|path| place(Dir::open_ambient_dir(path, ambient_authority()), Some(path)));
        Guard { places: place(workspace.handle(), None).into_iter().chain(elsewhere).collect(), own_writes }
    }

    /// Takes back what the command did to protected files. A new repository may have the files that git gives it. What is taken
    /// back is stored.
    pub fn take_back(&self, workspace: &Workspace, blobs: &Blobs, is_plain: IsPlain) -> Vec<Taken> {
        self.take_back_but(&workspace.own_writes_since(self.own_writes), workspace, blobs, is_plain)
    }

    /// The same, but for these paths of the workspace and what is below them.
    fn take_back_but(
        &self,
        own: &BTreeSet<PathBuf>,
        workspace: &Workspace,
        blobs: &Blobs,
        is_plain: IsPlain,
    ) -> Vec<Taken> {
        let mut all: Vec<Taken> = Vec::new();
        let mut known = BTreeSet::new();
        for place in &self.places {
            // What is taken back may be what another file led to, or may have kept a full folder from being read.
            for _ in 0..MOST_LOOKS {
                let taken = place.take_back(workspace, own, blobs, is_plain);
                let new: Vec<Taken> = taken.into_iter().filter(|it| known.insert(it.path.clone())).collect();
                let goes_on = new.iter().any(|it| it.is_back);
                all.extend(new);
                if !goes_on {
                    break;
                }
            }
        }
        all
    }

    /// What happened to protected files since, without taking anything back.
    pub fn found(&self, workspace: &Workspace, is_plain: IsPlain) -> Vec<Taken> {
        let own = workspace.own_writes_since(self.own_writes);
        self.places.iter().flat_map(|place| place.told(&place.found(workspace, &own, is_plain))).collect()
    }

    /// The files of ignore rules in the workspace, as the last look found them.
    pub fn rules(&self) -> Option<Vec<PathBuf>> {
        self.places.iter().find(|it| !it.is_outside).map(|it| it.rules.lock().clone())
    }

    /// Says where the guard cannot look, if it cannot.
    pub fn limits(&self) -> Option<&'static str> {
        self.places.iter().any(|it| it.is_cut.load(Ordering::Relaxed)).then_some(
            "this workspace has more than 200,000 folders; behind them no protected file is guarded from commands",
        )
    }
}

impl Place {
    /// The repositories in it, and the one that it belongs to.
    fn repositories(&self) -> Vec<named::Repository> {
        let of = |git: PathBuf, tree: &Path| named::Repository { git, tree: tree.to_owned() };
        let elsewhere = self.git.iter().map(|git| of(git.clone(), &self.at));
        let here = self.before.repositories.iter().map(|it| {
            let git = self.at.join(it);
            let tree = git.parent().filter(|_| it.ends_with(".git")).unwrap_or(&git).to_owned();
            of(git, &tree)
        });
        elsewhere.chain(here).collect()
    }

    fn look(&self, workspace: &Workspace, old: Option<&Items>) -> Listed {
        self.read(self.survey(workspace), old)
    }

    /// Walks the place.
    fn survey(&self, workspace: &Workspace) -> Sight {
        let part = if !self.is_outside {
            None
        } else if self.dir.symlink_metadata("commondir").is_ok() {
            Some(Part::Record)
        } else {
            Some(Part::Top)
        };
        let sight = workspace.survey(&self.at, |survey| survey.look(&self.dir, part));
        self.is_cut.fetch_or(sight.is_cut, Ordering::Relaxed);
        self.rules.lock().clone_from(&sight.rules);
        sight
    }

    /// Reads what a walk has in sight, and what is named.
    fn read(&self, mut sight: Sight, old: Option<&Items>) -> Listed {
        sight.marks.extend(self.named.iter().cloned());
        let items = Items::read(&self.dir, &sight, old);
        Listed { items, repositories: sight.repositories }
    }

    /// What was done to protected files here since the look before.
    fn found(&self, workspace: &Workspace, own: &BTreeSet<PathBuf>, is_plain: IsPlain) -> Found {
        let after = self.look(workspace, Some(&self.before.items));
        let judge = Judge { place: self, before: &self.before, after: &after, is_plain };
        let is_own = |path: &Path| !self.is_outside && path.ancestors().any(|it| own.contains(it));
        let mut did_to: BTreeMap<PathBuf, Did> = BTreeMap::new();
        for (path, now) in &after.items.all {
            let old = self.before.items.all.get(path);
            if old.is_some_and(|old| old.is_same(now)) || judge.may_be(path, old, now) || is_own(path) {
                continue;
            }
            if !judge.is_kept(path, old.unwrap_or(now)) {
                did_to.insert(path.clone(), if old.is_none() { Did::Wrote } else { Did::Changed });
            }
        }
        for (path, old) in self.before.items.all.iter().filter(|(path, _)| !after.items.all.contains_key(*path)) {
            if !judge.may_be_gone(path) && !is_own(path) && !judge.is_kept(path, old) {
                did_to.insert(path.clone(), Did::Removed);
            }
        }
        Found { after, did_to }
    }

    fn take_back(
        &self,
        workspace: &Workspace,
        own: &BTreeSet<PathBuf>,
        blobs: &Blobs,
        is_plain: IsPlain,
    ) -> Vec<Taken> {
        let found = self.found(workspace, own, is_plain);
        let Found { after, did_to } = &found;
        let before = &self.before.items.all;
        let files = found.files();
        for (path, did) in did_to.iter().rev() {
            let now = after.items.all.get(path);
            if let Some(bytes) = now.and_then(|it| it.bytes.as_ref()) {
                // A store that is full or broken does not let a command keep what it wrote.
                let _ = blobs.put(bytes);
            }
            // Of a file that was too large to be kept, the new bytes are better than none.
            if before.get(path).is_some_and(|old| old.kind == Kind::File && old.bytes.is_none()) {
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
            if let Some(old) = before.get(path) {
                // A failure is seen below.
                let _ = self.put_back(path, old);
            }
        }
        self.told(&found)
    }

    /// What was found, as it stands now.
    fn told(&self, found: &Found) -> Vec<Taken> {
        let told = found.files().into_iter().map(|path| {
            let now = found.after.items.all.get(path).filter(|it| it.kind == Kind::File && !self.is_outside);
            let content = |it: &Item| Some((it.bytes.clone()?, it.mode & 0o777));
            let shown = if self.is_outside { self.at.join(path) } else { path.to_owned() };
            Taken {
                path: shown.display().to_string(),
                did: found.did_to[path],
                is_back: self.is_as_before(path),
                written: now.and_then(content),
                before: self.before.items.all.get(path).and_then(content),
            }
        });
        told.collect()
    }

    fn is_as_before(&self, path: &Path) -> bool {
        let now = Items::read_one(&self.dir, path);
        match (self.before.items.all.get(path), now) {
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

/// Judges what differs between two looks.
struct Judge<'a> {
    place: &'a Place,
    before: &'a Listed,
    after: &'a Listed,
    is_plain: IsPlain,
}

impl Judge<'_> {
    /// Whether such a file may appear, or change so.
    fn may_be(&self, path: &Path, old: Option<&Item>, now: &Item) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if old.is_none() && (self.before.items.is_cut(path) || self.is_new_as_git_makes_it(path, now)) {
            return true;
        }
        // A folder whose permissions or times changed.
        if old.is_some_and(|old| old.kind == Kind::Folder && now.kind == Kind::Folder) {
            return true;
        }
        if now.kind == Kind::File && name == ".git" && records::is_true(self.place, path, now, self.before, self.after)
        {
            return true;
        }
        if now.kind == Kind::File && is_of_worktree(path) && ["commondir", "gitdir"].contains(&&*name) {
            return now.bytes.as_deref().is_some_and(|bytes| is_record(&name, bytes));
        }
        if now.kind == Kind::File && self.is_of_state(path) && is_instruction(&name) {
            return now.text().is_some_and(|text| starts_nothing(&name, text));
        }
        if !self.is_below(path) {
            return false;
        }
        // Only in repositories below the workspace: git may change their settings to others that start nothing, and a
        // repository may be moved with all that is in it.
        match old {
            None => self.before.items.all.values().any(|old| old.kind == now.kind && old.stamp == now.stamp),
            Some(_) => name == "config" && self.is_plain_config(path, now),
        }
    }

    /// Whether such a file may be missing: git has removed the work tree with all that it knew of it, a repository was removed
    /// with all that is in it, or a rebase has ended.
    fn may_be_gone(&self, path: &Path) -> bool {
        let removed = path.ancestors().filter(|it| self.before.repositories.contains(*it)).last();
        let is_removed = |it: &Path| it != Path::new(".git") && !self.after.items.all.contains_key(it);
        let is_gone = |it: &Path| self.place.dir.symlink_metadata(it).is_err();
        self.after.items.is_cut(path)
            || removed.is_some_and(is_removed)
            || (is_of_worktree(path) && path.parent().is_some_and(is_gone))
            || (self.is_of_state(path) && path.file_name().is_some_and(|it| is_instruction(&it.to_string_lossy())))
    }

    /// Whether the path lies in a repository other than the workspace's own.
    fn is_below(&self, path: &Path) -> bool {
        let is_own = |it: &Path| it == Path::new(".git") || it == Path::new(".");
        let all = || self.before.repositories.iter().chain(&self.after.repositories);
        !self.place.is_outside && all().any(|it| !is_own(it) && path.starts_with(it))
    }

    /// Whether the path is that of a file of a merge, a rebase or a sequence.
    fn is_of_state(&self, path: &Path) -> bool {
        let parent = path.parent().and_then(Path::file_name);
        parent.is_some_and(|it| it == "rebase-merge" || it == "rebase-apply" || it == "sequencer")
    }

    /// Whether git gives such a file to each new repository.
    fn is_new_as_git_makes_it(&self, path: &Path, now: &Item) -> bool {
        let of = path.ancestors().find(|it| self.after.repositories.contains(*it));
        let Some(repository) = of.filter(|it| !self.before.items.all.contains_key(*it)) else { return false };
        let name = path.strip_prefix(repository).unwrap_or(path).to_string_lossy().into_owned();
        match (&now.kind, name.as_str()) {
            (Kind::Folder, "" | "hooks") => true,
            (Kind::File, "config") => self.is_plain_config(path, now),
            (Kind::Folder | Kind::File | Kind::Link(_) | Kind::Other, _) => false,
        }
    }

    fn is_plain_config(&self, path: &Path, now: &Item) -> bool {
        let Some(text) = now.text().filter(|_| now.kind == Kind::File) else { return false };
        (self.is_plain)(&records::without_work_tree(self.place, path, text))
    }

    /// Whether the kernel has kept this path from the command: it stands below a kept one, no folder above that has been
    /// exchanged, and the file has no other name through which it could be written.
    fn is_kept(&self, path: &Path, item: &Item) -> bool {
        let is_of_one_name = item.kind != Kind::File || item.links <= 1;
        is_of_one_name
            && self.place.kept.iter().filter(|kept| path.starts_with(kept)).any(|kept| {
                let inode = |listed: &Listed, path: &Path| listed.items.all.get(path).map(|it| it.stamp[0]);
                let mut above = kept.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty());
                above.all(|it| inode(self.before, it) == inode(self.after, it))
            })
    }
}

/// Whether a path is that of a file in git's record of a linked work tree.
fn is_of_worktree(path: &Path) -> bool {
    path.parent().and_then(Path::parent).is_some_and(|it| it.ends_with("worktrees"))
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
            did == Did::Wrote && self.after.items.all.get(path).is_some_and(|it| it.kind == Kind::Folder)
        };
        self.did_to.iter().filter(|(path, did)| !is_new_folder(path, **did)).map(|it| it.0.as_path()).collect()
    }
}
