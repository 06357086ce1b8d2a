//! The files of a workspace as they were last seen, with the bytes of those that may have to be told apart.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::rules::{Matcher, Rules};
use super::tracked::{index_of, tracked};
use super::{COARSE, CommandChanges, FoundRules, MAX_FILES, MAX_KEPT, MAX_KEPT_TOTAL, SLACK, file_clock};
use crate::changes;
use crate::workspace::Workspace;
use protocol::event::{ChangeKind, FileChange};
use storage::blobs::Blobs;
use storage::file_system::{Devices, without_files_at};

#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) files: BTreeMap<PathBuf, SeenFile>,
    pub(super) folders: HashSet<PathBuf>,
    /// The workspace has more files than are watched.
    cut: bool,
    /// When the workspace was last read.
    looked: Option<SystemTime>,
    /// Paths of symlinks, sockets, files of the kernel and other special files.
    others: HashSet<PathBuf>,
    /// The ignore rules then.
    rules: Rules,
    /// Tracked files that rules ignored then.
    tracked: Vec<PathBuf>,
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
pub(super) struct SeenFile {
    stamp: Stamp,
    mode: u32,
    /// The birth time, where the file system records it.
    pub(super) born: Option<SystemTime>,
    /// The file was read so soon after a change that an equal time stamp does not prove it unchanged.
    fresh: bool,
    /// Offset and length of the file's bytes in the pack.
    kept: Option<(u64, usize)>,
}

impl Seen {
    /// Reads the workspace as it is now, and stores the bytes of new and changed files. `rules` are the paths of the files of
    /// ignore rules, if they have just been found.
    pub(super) fn refresh(&mut self, workspace: &Workspace, blobs: &Blobs, rules: FoundRules<'_>) {
        self.looked = Some(file_clock());
        self.tidy();
        self.rules = Rules::read(workspace, paths(workspace, rules), std::mem::take(&mut self.rules));
        let mut now = list(workspace.root(), MAX_FILES, None);
        self.tracked = now.add_tracked(workspace.root());
        (self.cut, self.folders, self.others) = (now.cut, now.folders, now.others);
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
    pub(super) fn refresh_one(&mut self, workspace: &Workspace, blobs: &Blobs, path: &Path) {
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
    pub(super) fn is_as_seen(&self, root: &Path, path: &Path) -> bool {
        match (self.files.get(path), stat(root, path)) {
            (Some(old), Some(now)) => old.stamp == now.stamp && !old.fresh,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Returns everything that differs from the last refresh.
    pub(super) fn compare(&mut self, workspace: &Workspace, blobs: &Blobs, rules: FoundRules<'_>) -> CommandChanges {
        // By the rules from before: a command that writes rules hides nothing by them, and shows nothing that was ignored.
        let are_current = self.rules.are_current(workspace, paths(workspace, rules));
        let old_rules = (!are_current).then(|| Arc::new(self.rules.matcher(workspace.root())));
        let mut now = list(workspace.root(), MAX_FILES, old_rules);
        now.add(workspace.root(), self.tracked.iter());
        let unlisted: Vec<&PathBuf> = self.files.keys().filter(|path| !now.files.contains_key(*path)).collect();
        now.add(workspace.root(), unlisted.into_iter());
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
        // One that was read so soon after a change that it may have changed again has not, as far as is known.
        let differs =
            |(path, file): &&(PathBuf, SeenFile)| self.files.get(path).is_none_or(|old| old.stamp != file.stamp);
        let differing = touched.iter().filter(differs).map(|(path, _)| path);
        if differing.chain(&gone).any(|path| path.to_str().is_none()) {
            found.note("a file whose name is not valid UTF-8 was changed; that cannot be undone");
        }
        // A new file may reuse the inode of a deleted one; the birth time tells them apart.
        let known: HashSet<(u64, SystemTime)> =
            self.files.values().filter_map(|file| Some((file.stamp.inode, file.born?))).collect();
        for (path, file) in touched {
            let was_made = self.looked.is_none_or(|looked| file.born.is_some_and(|born| born >= looked));
            let was_moved = file.born.is_some_and(|born| known.contains(&(file.stamp.inode, born)));
            let was_there = self.others.contains(&path) || self.cut;
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
        let bytes = workspace.read_at_most(&at, MAX_KEPT).ok()?.bytes;
        // It has changed since, or its size is not honest.
        if bytes.len() as u64 != file.stamp.size {
            return None;
        }
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

/// The paths of the files of ignore rules: those that have just been found, or else those that a walk finds.
fn paths(workspace: &Workspace, found: FoundRules<'_>) -> Vec<PathBuf> {
    found.map_or_else(|| workspace.files_of_rules(), <[PathBuf]>::to_vec)
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
/// during the walk. A file whose name is not UTF-8 is counted, and its change cannot be undone. What pixir itself writes does not count as a change of a command.
fn is_inside(workspace: &Workspace, path: &Path) -> bool {
    !workspace.is_own(path)
        && path.to_str().is_none_or(|path| workspace.locate(path).is_ok_and(|at| workspace.is_there(&at)))
}

/// Reads the metadata of one file.
fn stat(root: &Path, path: &Path) -> Option<SeenFile> {
    let metadata = std::fs::symlink_metadata(root.join(path)).ok().filter(Metadata::is_file)?;
    Some(seen(&metadata, SystemTime::now()))
}

/// The files and folders of a workspace.
#[derive(Default)]
pub(super) struct Listed {
    pub(super) files: BTreeMap<PathBuf, SeenFile>,
    pub(super) folders: HashSet<PathBuf>,
    others: HashSet<PathBuf>,
    /// The workspace has more files than are watched.
    cut: bool,
}

impl Listed {
    /// Adds these files, as far as they are there and are not behind a symlink.
    fn add<'a>(&mut self, root: &Path, paths: impl Iterator<Item = &'a PathBuf>) {
        for path in paths {
            if !self.files.contains_key(path)
                && !self.others.contains(path)
                && !is_gone(root, path)
                && let Some(file) = stat(root, path)
            {
                self.files.insert(path.clone(), file);
            }
        }
    }

    /// Adds the files that git tracks although rules ignore them, and returns these.
    fn add_tracked(&mut self, root: &Path) -> Vec<PathBuf> {
        let Some((index, below)) = index_of(root).filter(|_| !self.cut) else { return Vec::new() };
        let all = tracked(&index, &below);
        let hidden: Vec<PathBuf> = all.into_iter().filter(|path| !self.files.contains_key(path)).collect();
        self.add(root, hidden.iter());
        hidden
    }
}

/// Lists every file and folder of the workspace that is not ignored, by these rules or by those that stand there.
pub(super) fn list(root: &Path, most: usize, rules: Option<Arc<Matcher>>) -> Listed {
    let now = SystemTime::now();
    let mut listed = Listed::default();
    let devices = Devices::default();
    let walk = match rules {
        None => crate::walk::walk(root),
        Some(rules) => crate::walk::walk_by(root, rules),
    };
    for entry in walk.flatten() {
        let Ok(path) = entry.path().strip_prefix(root) else { continue };
        if entry.file_type().is_some_and(|t| t.is_dir()) {
            listed.folders.insert(path.to_owned());
        } else if entry.file_type().is_some_and(|t| t.is_file()) {
            if listed.files.len() >= most {
                listed.cut = true;
                break;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            // The kernel gives its own files the time at which it last made up their metadata.
            if !devices.hold_files(metadata.dev(), || without_files_at(entry.path())) {
                listed.others.insert(path.to_owned());
                continue;
            }
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
