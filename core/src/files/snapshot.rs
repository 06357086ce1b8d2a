//! Finds what commands change in the workspace by comparing its files before and after.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::files::changes;
use crate::files::protected::is_protected;
use crate::files::workspace::Workspace;
use crate::protocol::event::{ChangeKind, FileChange, SessionId};
use crate::storage::blobs::Blobs;
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio_util::sync::CancellationToken;

/// The most files that are watched.
const MAX_FILES: usize = 20_000;
/// The most files among which protected ones are looked for when a command has made more than are watched.
const MOST_AFTER_A_COMMAND: usize = 500_000;
/// The bytes of files larger than this are not stored; the files are still watched.
pub(super) const MAX_KEPT: u64 = 4 << 20;
/// The most bytes stored in all, before compression.
const MAX_KEPT_TOTAL: u64 = 256 << 20;
/// Unused bytes that the pack may hold before a new one is begun.
const SLACK: u64 = 64 << 20;
/// File times are coarse: a file that changed less than this before it was read may change again with the same time.
const COARSE: Duration = Duration::from_millis(50);

/// The files of a workspace as they were last seen, and the commands that run in it. The Sessions of a workspace share
/// one snapshot, so that a change is attributed once, to the call that made it.
///
/// A change between two comparisons is attributed to the command that ran. If several ran, pixir cannot know which one
/// made it: no call gets the change, and each gets a note. File tools and restores report their own writes.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceSnapshot {
    /// File tools hold it shared, because they write in parallel. A comparison holds it exclusively, so that it sees no
    /// write that is not reported yet.
    writes: RwLock<()>,
    /// The number of running commands. It changes only while `writes` is held exclusively.
    commands: AtomicUsize,
    state: Mutex<State>,
    /// Separate from `state`: the runtime must not wait for a comparison.
    ledger: Mutex<Ledger>,
}

#[derive(Debug, Default)]
struct State {
    seen: Seen,
    running: Vec<Running>,
}

/// A running command, and what it changed so far.
#[derive(Debug)]
struct Running {
    key: CallKey,
    found: CommandChanges,
}

#[derive(Debug, Default)]
struct Ledger {
    /// Changes of calls whose result is not recorded yet.
    unrecorded: Vec<(CallKey, FileChange)>,
    /// Calls whose result was recorded while commands were running.
    ended: Vec<CallKey>,
}

/// A call among those of all Sessions. A call id is unique only within its Session.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CallKey {
    session: Option<SessionId>,
    call_id: String,
}

/// What a command changed, and notes for its caller about that.
#[derive(Debug, Default)]
pub(crate) struct CommandChanges {
    pub(crate) changes: Vec<FileChange>,
    pub(crate) notes: Vec<String>,
}

impl CommandChanges {
    fn note(&mut self, note: &str) {
        if !self.notes.iter().any(|it| it == note) {
            self.notes.push(note.to_owned());
        }
    }
}

/// One Session's access to the snapshot of its workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionSnapshot {
    shared: Arc<WorkspaceSnapshot>,
    /// `None` for calls outside a Session.
    session: Option<SessionId>,
}

impl SessionSnapshot {
    /// Returns the same snapshot for another Session.
    pub(crate) fn for_session(&self, session: SessionId) -> SessionSnapshot {
        SessionSnapshot { shared: Arc::clone(&self.shared), session: Some(session) }
    }

    fn key(&self, call_id: &str) -> CallKey {
        CallKey { session: self.session.clone(), call_id: call_id.to_owned() }
    }

    /// Reads the workspace before a command runs, and stores the bytes of new and changed files.
    pub(crate) fn before(&self, call_id: &str, workspace: &Workspace, blobs: &Blobs, cancel: &CancellationToken) {
        let _alone = self.shared.writes.write();
        let mut state = self.shared.state();
        state.settle(None, &self.shared, workspace, blobs);
        state.seen.refresh(workspace, blobs);
        // A call that was cancelled in the meantime runs no command.
        if !cancel.is_cancelled() {
            state.running.push(Running { key: self.key(call_id), found: CommandChanges::default() });
        }
        self.shared.commands.store(state.running.len(), Ordering::Relaxed);
    }

    /// The folders below the workspace's root that had a `.git` at the last look, relative to it. Those in folders that git
    /// ignores are not among them.
    pub(crate) fn repositories(&self) -> BTreeSet<PathBuf> {
        self.shared.state().seen.repositories.clone()
    }

    /// Returns what this call's command changed. The changes are noted first, so that they survive a caller that is
    /// dropped.
    pub(crate) fn after(&self, call_id: &str, workspace: &Workspace, blobs: &Blobs) -> CommandChanges {
        let _alone = self.shared.writes.write();
        let mut state = self.shared.state();
        let key = self.key(call_id);
        state.settle(Some(&key), &self.shared, workspace, blobs);
        let ended = state.running.extract_if(.., |it| it.key == key).last();
        self.shared.commands.store(state.running.len(), Ordering::Relaxed);
        // The commands that still run must not find these changes again.
        if !state.running.is_empty() {
            state.seen.refresh(workspace, blobs);
        }
        ended.map(|it| it.found).unwrap_or_default()
    }

    /// Lets the caller write this file. No comparison runs until the guard is dropped.
    pub(crate) fn write<'a>(&'a self, path: &'a str, workspace: &'a Workspace, blobs: &'a Blobs) -> Writing<'a> {
        self.write_all(vec![path], workspace, blobs)
    }

    /// Lets the caller write these files. No comparison sees only some of the writes.
    pub(crate) fn write_all<'a>(
        &'a self,
        paths: Vec<&'a str>,
        workspace: &'a Workspace,
        blobs: &'a Blobs,
    ) -> Writing<'a> {
        let shared = &*self.shared;
        let beside_others = shared.writes.read();
        if shared.commands.load(Ordering::Relaxed) == 0 {
            return Writing { owner: self, paths, workspace, blobs, _no_comparison: beside_others };
        }
        drop(beside_others);
        let alone = shared.writes.write();
        let mut state = shared.state();
        let is_as_seen = |path: &&str| state.seen.is_as_seen(workspace.root(), Path::new(path));
        // A command may have changed a file already; that change is attributed to the command.
        if !state.running.is_empty() && !paths.iter().all(is_as_seen) {
            state.settle(None, shared, workspace, blobs);
            state.seen.refresh(workspace, blobs);
        }
        drop(state);
        Writing { owner: self, paths, workspace, blobs, _no_comparison: RwLockWriteGuard::downgrade(alone) }
    }

    /// Reports that the result of this call is recorded, together with its changes.
    pub(crate) fn recorded(&self, call_id: &str) {
        let key = self.key(call_id);
        let mut ledger = lock(&self.shared.ledger);
        ledger.unrecorded.retain(|(of, _)| *of != key);
        if self.shared.commands.load(Ordering::Relaxed) > 0 {
            ledger.ended.push(key);
        }
    }

    /// Returns the changes of this Session's calls whose result is not recorded, with their call ids. Waits for a write
    /// or a comparison in progress. Commands of the Session that still count as running are settled first.
    pub(crate) fn unrecorded(&self, workspace: &Workspace, blobs: &Blobs) -> Vec<(String, FileChange)> {
        let running: Vec<String> = {
            let _alone = self.shared.writes.write();
            let state = self.shared.state();
            let own = state.running.iter().filter(|it| it.key.session == self.session);
            own.map(|it| it.key.call_id.clone()).collect()
        };
        for call_id in running {
            self.after(&call_id, workspace, blobs);
        }
        let ledger = lock(&self.shared.ledger);
        let own = ledger.unrecorded.iter().filter(|(key, _)| key.session == self.session);
        own.map(|(key, change)| (key.call_id.clone(), change.clone())).collect()
    }

    /// Ends the Session's use of the snapshot. Nothing is attributed to it after this.
    pub(crate) fn leave(&self) {
        let _alone = self.shared.writes.write();
        let mut state = self.shared.state();
        state.running.retain(|it| it.key.session != self.session);
        self.shared.commands.store(state.running.len(), Ordering::Relaxed);
        lock(&self.shared.ledger).unrecorded.retain(|(key, _)| key.session != self.session);
    }
}

/// A write of one or several files that the snapshot is aware of.
pub(crate) struct Writing<'a> {
    owner: &'a SessionSnapshot,
    paths: Vec<&'a str>,
    workspace: &'a Workspace,
    blobs: &'a Blobs,
    _no_comparison: RwLockReadGuard<'a, ()>,
}

impl Writing<'_> {
    /// Notes the change for this call, so that it survives a caller that is dropped.
    pub(crate) fn made(&self, call_id: &str, change: FileChange) {
        lock(&self.owner.shared.ledger).unrecorded.push((self.owner.key(call_id), change));
    }
}

impl Drop for Writing<'_> {
    /// Updates the snapshot, so that running commands are not credited with this write.
    fn drop(&mut self) {
        if self.owner.shared.commands.load(Ordering::Relaxed) > 0 {
            let mut state = self.owner.shared.state();
            for path in &self.paths {
                state.seen.refresh_one(self.workspace, self.blobs, Path::new(path));
            }
        }
    }
}

impl WorkspaceSnapshot {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// Compares the workspace with the snapshot, and attributes the differences to the command that ran. Of several commands of
    /// one Session that is the one that ends now: a step of a workflow, say, that ran beside others.
    fn settle(&mut self, ends: Option<&CallKey>, shared: &WorkspaceSnapshot, workspace: &Workspace, blobs: &Blobs) {
        let ended = std::mem::take(&mut lock(&shared.ledger).ended);
        self.running.retain(|it| !ended.contains(&it.key));
        if self.running.is_empty() {
            // The user changed the files between two commands.
            return;
        }
        let found = self.seen.compare(workspace, blobs);
        let first = &self.running[0].key.session;
        let is_one_session = self.running.iter().all(|it| it.key.session == *first);
        let ending = self.running.iter().position(|it| Some(&it.key) == ends).unwrap_or(0);
        match self.running.as_mut_slice() {
            running if is_one_session => {
                let it = &mut running[ending];
                let changes = found.changes.iter().map(|change| (it.key.clone(), change.clone()));
                lock(&shared.ledger).unrecorded.extend(changes);
                it.found.changes.extend(found.changes);
                found.notes.iter().for_each(|note| it.found.note(note));
            }
            several => {
                let paths: Vec<&str> = found.changes.iter().map(|change| change.path.as_str()).collect();
                if !paths.is_empty() {
                    let note = format!(
                        "{} changed while a command of another session ran too; it is not known which of them did it, \
                         so undo leaves that as it is",
                        paths.join(", ")
                    );
                    several.iter_mut().for_each(|it| it.found.note(&note));
                }
            }
        }
    }
}

/// The protected files below the workspace's root that were made since, relative to it, with the times of their birth. Where the
/// file system notes none, there are none.
pub(crate) fn protected_since(workspace: &Workspace, since: SystemTime) -> Vec<(PathBuf, SystemTime)> {
    let files = list(workspace.root(), MAX_FILES).files.into_iter();
    let new = files.filter_map(|(path, file)| Some((path, file.born.filter(|born| *born >= since)?)));
    new.filter(|(path, _)| is_protected(path)).collect()
}

/// The folders below the workspace's root that have a `.git`, relative to it.
pub(crate) fn repositories_of(workspace: &Workspace) -> BTreeSet<PathBuf> {
    list(workspace.root(), MAX_FILES).repositories
}

/// Returns the current time of the clock that stamps files. It advances in steps and is never ahead of the system
/// clock.
pub(crate) fn file_clock() -> SystemTime {
    #[cfg(target_os = "linux")]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        let since = Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0));
        UNIX_EPOCH + since
    }
    #[cfg(not(target_os = "linux"))]
    SystemTime::now()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[derive(Debug, Default)]
struct Seen {
    files: BTreeMap<PathBuf, SeenFile>,
    folders: HashSet<PathBuf>,
    /// The workspace has more files than are watched.
    cut: bool,
    /// When the workspace was last read.
    looked: Option<SystemTime>,
    /// Paths of symlinks, sockets and other special files.
    others: HashSet<PathBuf>,
    /// Folders below the root that have a `.git`.
    repositories: BTreeSet<PathBuf>,
    pack: Option<File>,
    end: u64,
    /// Bytes of the pack that are still in use: packed (`live`) and unpacked (`total`).
    live: u64,
    total: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    inode: u64,
}

#[derive(Debug, Clone, Copy)]
struct SeenFile {
    stamp: Stamp,
    mode: u32,
    /// The birth time, where the file system records it.
    born: Option<SystemTime>,
    /// The file was read so soon after a change that an equal time stamp does not prove it unchanged.
    fresh: bool,
    /// Offset and length of the file's bytes in the pack.
    kept: Option<(u64, usize)>,
}

impl Seen {
    /// Reads the workspace as it is now, and stores the bytes of new and changed files.
    fn refresh(&mut self, workspace: &Workspace, blobs: &Blobs) {
        self.looked = Some(file_clock());
        self.tidy();
        let now = list(workspace.root(), MAX_FILES);
        (self.cut, self.folders, self.others) = (now.cut, now.folders, now.others);
        self.repositories = now.repositories;
        let mut before = std::mem::take(&mut self.files);
        for (path, mut file) in now.files {
            match before.remove(&path) {
                Some(old) if old.stamp == file.stamp && !old.fresh && old.kept.is_some() => file = old,
                None if !is_inside(workspace, &path) => continue,
                old => {
                    self.forget(old);
                    file.kept = self.keep(workspace, blobs, &path, &file);
                }
            }
            self.files.insert(path, file);
        }
        before.into_values().for_each(|old| self.forget(Some(old)));
    }

    /// Reads one file as it is now.
    fn refresh_one(&mut self, workspace: &Workspace, blobs: &Blobs, path: &Path) {
        let old = self.files.remove(path);
        self.forget(old);
        if let Some(mut file) = stat(workspace.root(), path) {
            file.kept = self.keep(workspace, blobs, path, &file);
            self.files.insert(path.to_owned(), file);
            let above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
            self.folders.extend(above.map(Path::to_owned));
        }
    }

    /// Whether the file is certainly unchanged since it was last read.
    fn is_as_seen(&self, root: &Path, path: &Path) -> bool {
        match (self.files.get(path), stat(root, path)) {
            (Some(old), Some(now)) => old.stamp == now.stamp && !old.fresh,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Returns everything that differs from the last refresh.
    fn compare(&mut self, workspace: &Workspace, blobs: &Blobs) -> CommandChanges {
        let mut now = list(workspace.root(), MAX_FILES);
        if now.cut && !self.cut {
            // So many are new. Behind them a protected file may be.
            let all = list(workspace.root(), MOST_AFTER_A_COMMAND);
            now.files.extend(all.files.into_iter().filter(|(path, _)| is_protected(path)));
            now.repositories = all.repositories;
        }
        self.repositories.clone_from(&now.repositories);
        let mut found = CommandChanges::default();
        let cut = now.cut || self.cut;
        if cut {
            found.note("this workspace has too many files to watch; some changes of this command may be missing");
        }
        let last = self.files.last_key_value().map(|(path, _)| path.clone());
        // A path after the last watched one may have existed before the file limit moved.
        let in_sight = |path: &PathBuf| !self.cut || last.as_ref().is_none_or(|last| path <= last);
        let touched = now.files.iter().filter(|(path, file)| match self.files.get(*path) {
            Some(old) => old.stamp != file.stamp || old.fresh,
            None => in_sight(path),
        });
        let touched = touched.filter(|(path, _)| self.files.contains_key(*path) || is_inside(workspace, path));
        let touched: Vec<(PathBuf, SeenFile)> = touched.map(|(path, file)| (path.clone(), *file)).collect();
        // A path missing from the list may also be newly ignored or beyond the file limit. Only a missing file is
        // deleted.
        let gone: Vec<PathBuf> = self
            .files
            .keys()
            .filter(|path| !now.files.contains_key(*path) && is_gone(workspace.root(), path))
            .cloned()
            .collect();
        if touched.iter().map(|(path, _)| path).chain(&gone).any(|path| path.to_str().is_none()) {
            found.note("a file whose name is not valid UTF-8 was changed; that cannot be undone");
        }
        // When ignore rules change, a file that is new in the list may have existed before.
        let is_rules = |path: &Path| path.file_name().is_some_and(|name| name == ".gitignore" || name == ".ignore");
        let is_changed = |path: &Path, file: &SeenFile| {
            self.files.get(path).is_some_and(|old| {
                let same = || Some(workspace.locate(path.to_str()?).and_then(|at| workspace.read(&at)).ok()?.bytes);
                old.stamp != file.stamp || self.kept(old) != same()
            })
        };
        let rules_changed = gone.iter().any(|path| is_rules(path))
            || touched.iter().any(|(path, file)| is_rules(path) && is_changed(path, file));
        // A new file may reuse the inode of a deleted one; the birth time tells them apart.
        let known: HashSet<(u64, SystemTime)> =
            self.files.values().filter_map(|file| Some((file.stamp.inode, file.born?))).collect();
        for (path, file) in touched {
            let was_made = self.looked.is_none_or(|looked| file.born.is_some_and(|born| born >= looked));
            let was_moved = file.born.is_some_and(|born| known.contains(&(file.stamp.inode, born)));
            let was_there = self.others.contains(&path) || rules_changed || self.cut;
            let is_known = was_moved || (was_made && !was_there);
            found.changes.extend(self.change(workspace, blobs, &path, Some(file), is_known));
        }
        for path in gone {
            found.changes.extend(self.change(workspace, blobs, &path, None, true));
        }
        found
    }

    /// Releases the stored bytes of this file.
    fn forget(&mut self, old: Option<SeenFile>) {
        if let Some(SeenFile { stamp, kept: Some((_, len)), .. }) = old {
            self.total -= stamp.size.min(self.total);
            self.live -= (len as u64).min(self.live);
        }
    }

    /// Begins a new pack when most of the old one is unused; `refresh` then stores every file again.
    fn tidy(&mut self) {
        if self.end > 2 * self.live + SLACK {
            (self.pack, self.end, self.live, self.total) = (None, 0, 0, 0);
            self.files.values_mut().for_each(|file| file.kept = None);
        }
    }

    fn keep(&mut self, workspace: &Workspace, blobs: &Blobs, path: &Path, file: &SeenFile) -> Option<(u64, usize)> {
        if file.stamp.size > MAX_KEPT || self.total + file.stamp.size > MAX_KEPT_TOTAL {
            return None;
        }
        let at = workspace.locate(path.to_str()?).ok()?;
        let bytes = workspace.read(&at).ok()?.bytes;
        let mut write = || -> io::Result<(u64, usize)> {
            if self.pack.is_none() {
                self.pack = Some(blobs.nameless_file()?);
            }
            let packed = zstd::bulk::compress(&bytes, 1)?;
            if let Some(pack) = &self.pack {
                pack.write_all_at(&packed, self.end)?;
            }
            let place = (self.end, packed.len());
            self.end += packed.len() as u64;
            self.live += packed.len() as u64;
            self.total += file.stamp.size;
            Ok(place)
        };
        write().ok()
    }

    fn kept(&self, file: &SeenFile) -> Option<Vec<u8>> {
        let ((offset, len), pack) = (file.kept?, self.pack.as_ref()?);
        let mut packed = vec![0; len];
        pack.read_exact_at(&mut packed, offset).ok()?;
        zstd::decode_all(packed.as_slice()).ok()
    }

    /// `is_known`: a file without a previous version did not exist. Otherwise it may have been ignored, or moved here.
    fn change(
        &mut self,
        workspace: &Workspace,
        blobs: &Blobs,
        path: &Path,
        now: Option<SeenFile>,
        is_known: bool,
    ) -> Option<FileChange> {
        let shown = path.to_str()?;
        let old = self.files.remove(path);
        let before = old.and_then(|old| self.kept(&old));
        self.forget(old);
        let after = now.map(|_| workspace.locate(shown).and_then(|at| workspace.read(&at)).ok());
        if let Some(file) = now {
            let kept = self.keep(workspace, blobs, path, &file);
            self.files.insert(path.to_owned(), SeenFile { kept, ..file });
        }
        let old_side = before.as_deref().zip(old.map(|old| old.mode));
        match (&old, &old_side, after) {
            // The file's times changed, but its bytes did not.
            (Some(_), Some((bytes, mode)), Some(Some(now))) if now.bytes == *bytes && now.mode == *mode => None,
            (None, _, Some(Some(now))) if is_known => {
                let mut change = changes::record(blobs, shown, None, Some((&now.bytes, now.mode))).ok()?;
                let above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
                let new = above.take_while(|folder| !self.folders.contains(*folder)).count();
                change.new_folders = u32::try_from(new).unwrap_or(u32::MAX);
                Some(change)
            }
            (Some(_), Some(_), Some(Some(now))) => {
                changes::record(blobs, shown, old_side, Some((&now.bytes, now.mode))).ok()
            }
            (Some(_), Some(_), None) => changes::record(blobs, shown, old_side, None).ok(),
            // The bytes of one side are unknown: the file is too large, not watched or unreadable.
            (old, _, after) => Some(FileChange {
                path: shown.into(),
                kind: match (old, &after) {
                    (_, None) => ChangeKind::Deleted,
                    (None, Some(_)) if is_known => ChangeKind::Created,
                    (_, Some(_)) => ChangeKind::Modified,
                },
                before_blob: old_side.and_then(|(bytes, _)| blobs.put(bytes).ok().flatten()),
                after_blob: after.flatten().and_then(|now| blobs.put(&now.bytes).ok().flatten()),
                before_mode: old.map(|old| old.mode),
                after_mode: now.map(|now| now.mode),
                new_folders: 0,
                moved_from: None,
                added: 0,
                removed: 0,
            }),
        }
    }
}

/// Whether the file is gone. Symlinks and folders in its place, and files behind a symlinked folder, are not watched.
fn is_gone(root: &Path, path: &Path) -> bool {
    let above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let is_link = |folder: &Path| std::fs::symlink_metadata(root.join(folder)).is_ok_and(|m| m.is_symlink());
    match std::fs::symlink_metadata(root.join(path)) {
        Ok(metadata) => !metadata.is_file() || above.into_iter().any(is_link),
        Err(e) => matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    }
}

/// Whether a path that a walk found lies in the workspace: a folder on the way may have been exchanged for a symlink
/// during the walk. A name that is no text is only counted.
fn is_inside(workspace: &Workspace, path: &Path) -> bool {
    path.to_str().is_none_or(|path| workspace.locate(path).is_ok_and(|at| workspace.is_there(&at)))
}

/// Reads the metadata of one file.
fn stat(root: &Path, path: &Path) -> Option<SeenFile> {
    let metadata = std::fs::symlink_metadata(root.join(path)).ok().filter(Metadata::is_file)?;
    Some(seen(&metadata, SystemTime::now()))
}

/// The files and folders of a workspace.
#[derive(Default)]
struct Listed {
    files: BTreeMap<PathBuf, SeenFile>,
    folders: HashSet<PathBuf>,
    others: HashSet<PathBuf>,
    repositories: BTreeSet<PathBuf>,
    /// The workspace has more files than are watched.
    cut: bool,
}

/// Lists every file and folder of the workspace that is not ignored.
fn list(root: &Path, most: usize) -> Listed {
    let now = SystemTime::now();
    let mut listed = Listed::default();
    let repositories = Arc::default();
    for entry in crate::files::walk::walk_noting_repositories(root, &repositories).flatten() {
        let Ok(path) = entry.path().strip_prefix(root) else { continue };
        if entry.file_type().is_some_and(|t| t.is_dir()) {
            listed.folders.insert(path.to_owned());
        } else if entry.file_type().is_some_and(|t| t.is_file()) {
            if listed.files.len() >= most {
                listed.cut = true;
                break;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            listed.files.insert(path.to_owned(), seen(&metadata, now));
        } else {
            listed.others.insert(path.to_owned());
        }
    }
    listed.repositories = std::mem::take(&mut *repositories.lock());
    listed
}

fn seen(metadata: &Metadata, now: SystemTime) -> SeenFile {
    let stamp = Stamp {
        size: metadata.len(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino(),
    };
    let latest = stamp.modified.max(stamp.changed);
    let latest = UNIX_EPOCH + Duration::new(u64::try_from(latest.0).unwrap_or(0), u32::try_from(latest.1).unwrap_or(0));
    SeenFile {
        stamp,
        mode: metadata.mode() & 0o777,
        born: metadata.created().ok(),
        fresh: latest + COARSE >= now,
        kept: None,
    }
}
