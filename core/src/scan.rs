//! What a command changed in the workspace, found by looking before and after.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::blobs::Blobs;
use crate::changes;
use crate::event::{ChangeKind, FileChange};
use crate::workspace::Workspace;

/// More files than this are not watched.
const MAX_FILES: usize = 20_000;
/// Files above this size are watched, but their bytes are not kept beforehand.
const MAX_KEPT: u64 = 4 << 20;
/// The most that is kept beforehand in all, bytes before compression.
const MAX_KEPT_TOTAL: u64 = 256 << 20;
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
    pack: Option<File>,
    end: u64,
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
    pub(crate) fn look(&self, call_id: &str, workspace: &Workspace, blobs: &Blobs) {
        let mut seen = lock(&self.seen);
        seen.looked = Some(file_clock());
        let now = list(workspace.root());
        (seen.cut, seen.folders) = (now.cut, now.folders);
        let mut before = std::mem::take(&mut seen.files);
        for (path, mut file) in now.files {
            match before.remove(&path) {
                Some(old) if old.stamp == file.stamp && !old.fresh => file = old,
                _ => file.kept = seen.keep(workspace, blobs, &path, &file),
            }
            seen.files.insert(path, file);
        }
        *lock(&self.running) = Some(call_id.to_owned());
    }

    /// What the command changed.
    pub(crate) fn changes(&self, workspace: &Workspace, blobs: &Blobs) -> Found {
        *lock(&self.running) = None;
        let mut seen = lock(&self.seen);
        let now = list(workspace.root());
        let mut found = Found::default();
        if now.cut || seen.cut {
            found.notes.push("this workspace has too many files to watch; not every change of this command is known");
        }
        let inodes: HashSet<u64> = seen.files.values().map(|file| file.stamp.inode).collect();
        let touched = now
            .files
            .iter()
            .filter(|(path, file)| seen.files.get(*path).is_none_or(|old| old.stamp != file.stamp || old.fresh));
        let touched: Vec<(PathBuf, SeenFile)> = touched.map(|(path, file)| (path.clone(), *file)).collect();
        // What is not found may also be ignored now, or beyond the bound; only what is really gone was deleted.
        let gone: Vec<PathBuf> = seen
            .files
            .keys()
            .filter(|path| !now.files.contains_key(*path) && is_gone(&workspace.root().join(path)))
            .cloned()
            .collect();
        if touched.iter().map(|(path, _)| path).chain(&gone).any(|path| path.to_str().is_none()) {
            found.notes.push("a file whose name is no text was changed; that cannot be undone");
        }
        for (path, file) in touched {
            let is_new = seen.looked.is_none_or(|looked| file.born.is_some_and(|born| born >= looked));
            let is_known = is_new || inodes.contains(&file.stamp.inode);
            found.changes.extend(seen.change(workspace, blobs, &path, Some(file), is_known));
        }
        for path in gone {
            found.changes.extend(seen.change(workspace, blobs, &path, None, true));
        }
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

    /// What calls that were cut off have changed. Waits for a write that is being done.
    pub(crate) fn unrecorded(&self, workspace: &Workspace, blobs: &Blobs) -> Vec<(String, FileChange)> {
        let mut all = std::mem::take(&mut *lock(&self.made));
        let running = lock(&self.running).take();
        if let Some(call_id) = running {
            all.extend(self.changes(workspace, blobs).changes.into_iter().map(|change| (call_id.clone(), change)));
        }
        all
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
            self.total += bytes.len() as u64;
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

/// No file is there any more; what took its place, a symlink or a folder, is not watched.
fn is_gone(path: &Path) -> bool {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) => !metadata.is_file(),
        Err(e) => matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    }
}

/// What is in a workspace.
struct Listed {
    files: BTreeMap<PathBuf, SeenFile>,
    folders: HashSet<PathBuf>,
    /// There was more than is watched.
    cut: bool,
}

/// Every file and folder of the workspace that is not ignored.
fn list(root: &Path) -> Listed {
    let now = SystemTime::now();
    let mut listed = Listed { files: BTreeMap::new(), folders: HashSet::new(), cut: false };
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
