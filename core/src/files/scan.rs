//! What a command changed in the workspace, found by looking before and after.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::files::changes;
use crate::files::workspace::Workspace;
use crate::protocol::event::{ChangeKind, FileChange};
use crate::storage::blobs::Blobs;
use crate::tools::Cancel;

/// More files than this are not watched.
const MAX_FILES: usize = 20_000;
/// Files above this size are watched, but their bytes are not kept beforehand.
const MAX_KEPT: u64 = 4 << 20;
/// The most that is kept beforehand in all, bytes before compression.
const MAX_KEPT_TOTAL: u64 = 256 << 20;
/// Bytes of the pack that may be of no use before it is begun anew.
const SLACK: u64 = 64 << 20;
/// File times are coarse: what was changed so shortly before it was looked at may change again unseen.
const COARSE: Duration = Duration::from_millis(50);

/// The files of a workspace as they were last seen, with their bytes in a file that has no name and ends with the Session;
/// and what was changed and is in no recorded result yet.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    seen: Mutex<Seen>,
    /// The command that runs.
    running: Mutex<Option<String>>,
    made: Mutex<Vec<(String, FileChange)>>,
}

/// What is different, and what has to be said about that.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) changes: Vec<FileChange>,
    pub(crate) notes: Vec<&'static str>,
}

#[derive(Debug, Default)]
struct Seen {
    files: BTreeMap<PathBuf, SeenFile>,
    folders: HashSet<PathBuf>,
    /// There were more files than are watched.
    cut: bool,
    /// When it was looked at.
    looked: Option<SystemTime>,
    /// Names of what is neither a file nor a folder.
    others: HashSet<PathBuf>,
    pack: Option<File>,
    end: u64,
    /// Bytes of the pack that are still needed, and what they are unpacked.
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
    /// When it was made, where the file system knows.
    born: Option<SystemTime>,
    /// Its stamp alone does not prove that it is unchanged.
    fresh: bool,
    /// Where its bytes are in the pack.
    kept: Option<(u64, usize)>,
}

impl Shadow {
    /// Looks at the workspace before a command runs, and keeps the bytes of what is new or has changed. Work per call follows that.
    pub(crate) fn look(&self, call_id: &str, workspace: &Workspace, blobs: &Blobs, cancel: &Cancel) {
        let mut seen = lock(&self.seen);
        seen.looked = Some(file_clock());
        seen.tidy();
        let now = list(workspace.root());
        (seen.cut, seen.folders, seen.others) = (now.cut, now.folders, now.others);
        let mut before = std::mem::take(&mut seen.files);
        for (path, mut file) in now.files {
            match before.remove(&path) {
                Some(old) if old.stamp == file.stamp && !old.fresh && old.kept.is_some() => file = old,
                old => {
                    seen.forget(old);
                    file.kept = seen.keep(workspace, blobs, &path, &file);
                }
            }
            seen.files.insert(path, file);
        }
        before.into_values().for_each(|old| seen.forget(Some(old)));
        // When nobody waits for it any more, no command follows.
        if !cancel.is_cancelled() {
            *lock(&self.running) = Some(call_id.to_owned());
        }
    }

    /// What the command changed. It is noted before anyone hears of it.
    pub(crate) fn changes(&self, call_id: &str, workspace: &Workspace, blobs: &Blobs) -> Found {
        let mut seen = lock(&self.seen);
        let found = seen.compare(workspace, blobs);
        lock(&self.made).extend(found.changes.iter().map(|change| (call_id.to_owned(), change.clone())));
        *lock(&self.running) = None;
        found
    }

    /// Holds off whoever wants to know what was changed, until a write is done and noted.
    pub(crate) fn writing(&self) -> MutexGuard<'_, Vec<(String, FileChange)>> {
        lock(&self.made)
    }

    /// The result of this call is recorded, and its changes with it.
    pub(crate) fn recorded(&self, call_id: &str) {
        lock(&self.made).retain(|(id, _)| id != call_id);
    }

    /// What calls without a recorded result have changed. Waits for a write or a look that is being done.
    pub(crate) fn unrecorded(&self, workspace: &Workspace, blobs: &Blobs) -> Vec<(String, FileChange)> {
        drop(lock(&self.seen));
        let running = lock(&self.running).clone();
        if let Some(call_id) = running {
            self.changes(&call_id, workspace, blobs);
        }
        lock(&self.made).clone()
    }
}

/// Now, by the clock that files get their times from: it moves in steps, and is never ahead of the usual one.
fn file_clock() -> SystemTime {
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
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Seen {
    /// Everything that is different since it was looked at.
    fn compare(&mut self, workspace: &Workspace, blobs: &Blobs) -> Found {
        let now = list(workspace.root());
        let mut found = Found::default();
        let cut = now.cut || self.cut;
        if cut {
            found.notes.push("this workspace has too many files to watch; some changes of this command may be missing");
        }
        let last = self.files.last_key_value().map(|(path, _)| path.clone());
        // What came into sight behind the last one was there before, and is not known.
        let in_sight = |path: &PathBuf| !self.cut || last.as_ref().is_none_or(|last| path <= last);
        let touched = now.files.iter().filter(|(path, file)| match self.files.get(*path) {
            Some(old) => old.stamp != file.stamp || old.fresh,
            None => in_sight(path),
        });
        let touched: Vec<(PathBuf, SeenFile)> = touched.map(|(path, file)| (path.clone(), *file)).collect();
        // What is not found may also be ignored now, or beyond the bound; only what is really gone was deleted.
        let gone: Vec<PathBuf> = self
            .files
            .keys()
            .filter(|path| !now.files.contains_key(*path) && is_gone(workspace.root(), path))
            .cloned()
            .collect();
        if touched.iter().map(|(path, _)| path).chain(&gone).any(|path| path.to_str().is_none()) {
            found.notes.push("a file with a name that is not UTF-8 changed; that cannot be undone");
        }
        // With other rules for what is ignored, what comes into sight may have been there all the time.
        let is_rules = |path: &Path| path.file_name().is_some_and(|name| name == ".gitignore" || name == ".ignore");
        let is_changed = |path: &Path, file: &SeenFile| {
            self.files.get(path).is_some_and(|old| {
                let same = || Some(workspace.locate(path.to_str()?).and_then(|at| workspace.read(&at)).ok()?.bytes);
                old.stamp != file.stamp || self.kept(old) != same()
            })
        };
        let rules_changed = gone.iter().any(|path| is_rules(path))
            || touched.iter().any(|(path, file)| is_rules(path) && is_changed(path, file));
        // The number of a file that is gone may be given to a new one; the time when it was made tells them apart.
        let known: HashSet<(u64, SystemTime)> =
            self.files.values().filter_map(|file| Some((file.stamp.inode, file.born?))).collect();
        for (path, file) in touched {
            let was_made = self.looked.is_none_or(|looked| file.born.is_some_and(|born| born >= looked));
            let was_moved = file.born.is_some_and(|born| known.contains(&(file.stamp.inode, born)));
            let was_there = self.others.contains(&path) || rules_changed || cut;
            let is_known = was_moved || (was_made && !was_there);
            found.changes.extend(self.change(workspace, blobs, &path, Some(file), is_known));
        }
        for path in gone {
            found.changes.extend(self.change(workspace, blobs, &path, None, true));
        }
        found
    }

    /// These bytes are not needed any more.
    fn forget(&mut self, old: Option<SeenFile>) {
        if let Some(SeenFile { stamp, kept: Some((_, len)), .. }) = old {
            self.total -= stamp.size.min(self.total);
            self.live -= (len as u64).min(self.live);
        }
    }

    /// Begins a new pack when most of the old one is not needed any more; what is there is kept again.
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

    /// `is_known`: that it was not seen before means that it was not there. Else it may have been ignored, or come from elsewhere.
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
            // It was touched, and is as it was.
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
            // One side is not known: it was too large to be kept, was not watched, or cannot be read.
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
                added: 0,
                removed: 0,
            }),
        }
    }
}

/// No file is there any more; what took its place or its folder's, a symlink or something else, is not watched.
fn is_gone(root: &Path, path: &Path) -> bool {
    let above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let is_link = |folder: &Path| std::fs::symlink_metadata(root.join(folder)).is_ok_and(|m| m.is_symlink());
    match std::fs::symlink_metadata(root.join(path)) {
        Ok(metadata) => !metadata.is_file() || above.into_iter().any(is_link),
        Err(e) => matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    }
}

/// What is in a workspace.
struct Listed {
    files: BTreeMap<PathBuf, SeenFile>,
    folders: HashSet<PathBuf>,
    others: HashSet<PathBuf>,
    /// There was more than is watched.
    cut: bool,
}

/// Every file and folder of the workspace that is not ignored.
fn list(root: &Path) -> Listed {
    let now = SystemTime::now();
    let mut listed = Listed { files: BTreeMap::new(), folders: HashSet::new(), others: HashSet::new(), cut: false };
    for entry in crate::tools::walk(root).flatten() {
        let Ok(path) = entry.path().strip_prefix(root) else { continue };
        if entry.file_type().is_some_and(|t| t.is_dir()) {
            listed.folders.insert(path.to_owned());
        } else if entry.file_type().is_some_and(|t| t.is_file()) {
            if listed.files.len() >= MAX_FILES {
                listed.cut = true;
                break;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            listed.files.insert(path.to_owned(), seen(&metadata, now));
        } else {
            listed.others.insert(path.to_owned());
        }
    }
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
