//! What a command changed in the workspace, found by looking before and after.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::changes;
use crate::event::{ChangeKind, FileChange};
use crate::tools::Context;

/// More files than this are not watched.
const MAX_FILES: usize = 20_000;
/// More changes than this are not captured.
const MAX_CHANGES: usize = 500;
/// Files above this size are watched, but their bytes are not kept beforehand.
const MAX_KEPT: u64 = 4 << 20;
/// The most that is kept beforehand in all, bytes before compression.
const MAX_KEPT_TOTAL: u64 = 256 << 20;
/// File times are coarse: what was changed so shortly before it was looked at may change again unseen.
const COARSE: Duration = Duration::from_millis(50);

/// The files of a workspace as they were last seen, with their bytes in a file that has no name and ends with the Session.
#[derive(Debug, Default)]
pub(crate) struct Shadow(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    files: BTreeMap<PathBuf, SeenFile>,
    /// There were more files than are watched.
    cut: bool,
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
    /// Its stamp alone does not prove that it is unchanged.
    fresh: bool,
    /// Where its bytes are in the pack.
    kept: Option<(u64, usize)>,
}

impl Shadow {
    /// Looks at the workspace as it is now, and keeps the bytes of what is new or has changed. Work per call follows that.
    pub(crate) fn look(&self, ctx: &Context) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, cut) = list(ctx.workspace.root());
        seen.cut = cut;
        let mut before = std::mem::take(&mut seen.files);
        for (path, mut file) in now {
            match before.remove(&path) {
                Some(old) if old.stamp == file.stamp && !old.fresh => file = old,
                _ => file.kept = seen.keep(ctx, &path, &file),
            }
            seen.files.insert(path, file);
        }
    }

    /// What is different since it was looked at last.
    pub(crate) fn changes(&self, ctx: &Context) -> Vec<FileChange> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, _) = list(ctx.workspace.root());
        let mut changes = Vec::new();
        let touched = now
            .iter()
            .filter(|(path, file)| seen.files.get(*path).is_none_or(|old| old.stamp != file.stamp || old.fresh));
        let touched: Vec<(PathBuf, SeenFile)> = touched.map(|(path, file)| (path.clone(), *file)).collect();
        // What is not found may also be ignored now, or beyond the bound; only what is really gone was deleted.
        let gone: Vec<PathBuf> = seen
            .files
            .keys()
            .filter(|path| !now.contains_key(*path) && is_gone(&ctx.workspace.root().join(path)))
            .cloned()
            .collect();
        for (path, file) in touched {
            if changes.len() >= MAX_CHANGES {
                break;
            }
            changes.extend(seen.change(ctx, &path, Some(file)));
        }
        for path in gone.into_iter().take(MAX_CHANGES - changes.len().min(MAX_CHANGES)) {
            changes.extend(seen.change(ctx, &path, None));
        }
        changes
    }

    /// There were more files than are watched.
    pub(crate) fn is_cut(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).cut
    }
}

impl Seen {
    fn keep(&mut self, ctx: &Context, path: &Path, file: &SeenFile) -> Option<(u64, usize)> {
        if file.stamp.size > MAX_KEPT || self.total + file.stamp.size > MAX_KEPT_TOTAL {
            return None;
        }
        let at = ctx.workspace.locate(path.to_str()?).ok()?;
        let bytes = ctx.workspace.read(&at).ok()?.bytes;
        let mut write = || -> io::Result<(u64, usize)> {
            if self.pack.is_none() {
                self.pack = Some(ctx.blobs.nameless_file()?);
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

    fn change(&mut self, ctx: &Context, path: &Path, now: Option<SeenFile>) -> Option<FileChange> {
        let shown = path.to_str()?;
        let old = self.files.remove(path);
        let before = old.and_then(|old| self.kept(&old));
        let after = now.map(|_| ctx.workspace.locate(shown).and_then(|at| ctx.workspace.read(&at)).ok());
        if let Some(file) = now {
            let kept = self.keep(ctx, path, &file);
            self.files.insert(path.to_owned(), SeenFile { kept, ..file });
        }
        let old_side = before.as_deref().zip(old.map(|old| old.mode));
        match (&old, &old_side, after) {
            // It was touched, and is as it was.
            (Some(_), Some((bytes, mode)), Some(Some(now))) if now.bytes == *bytes && now.mode == *mode => None,
            (None, _, Some(Some(now))) => changes::record(&ctx.blobs, shown, None, Some((&now.bytes, now.mode))).ok(),
            (Some(_), Some(_), Some(Some(now))) => {
                changes::record(&ctx.blobs, shown, old_side, Some((&now.bytes, now.mode))).ok()
            }
            (Some(_), Some(_), None) => changes::record(&ctx.blobs, shown, old_side, None).ok(),
            // One side is not known: it was too large to be kept, or cannot be read.
            (old, _, after) => Some(FileChange {
                path: shown.into(),
                kind: match (old, &after) {
                    (_, None) => ChangeKind::Deleted,
                    (None, Some(_)) => ChangeKind::Created,
                    (Some(_), Some(_)) => ChangeKind::Modified,
                },
                before_blob: old_side.and_then(|(bytes, _)| ctx.blobs.put(bytes).ok().flatten()),
                after_blob: after.flatten().and_then(|now| ctx.blobs.put(&now.bytes).ok().flatten()),
                before_mode: old.map(|old| old.mode),
                after_mode: now.map(|now| now.mode),
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

/// Every file of the workspace that is not ignored, and whether there were more than are watched.
fn list(root: &Path) -> (BTreeMap<PathBuf, SeenFile>, bool) {
    let now = SystemTime::now();
    let mut files = BTreeMap::new();
    for entry in crate::tools::walk(root).flatten().filter(|e| e.file_type().is_some_and(|t| t.is_file())) {
        if files.len() >= MAX_FILES {
            return (files, true);
        }
        let Ok(metadata) = entry.metadata() else { continue };
        let Ok(path) = entry.path().strip_prefix(root) else { continue };
        files.insert(path.to_owned(), seen(&metadata, now));
    }
    (files, false)
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
    SeenFile { stamp, mode: metadata.mode() & 0o777, fresh: latest + COARSE >= now, kept: None }
}
