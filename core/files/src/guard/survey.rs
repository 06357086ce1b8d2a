//! Where protected files and repositories are in a folder: a walk of its own, which obeys no rule that a command can write.
//!
//! It remembers the names in each folder, and reads a folder again only when it has changed. The time at which names were made
//! or removed is set by the kernel, and no program can set it back. So a look costs one system call for each folder.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};

use super::git_folder::{Entry, Name, Part, is_log, is_reference};
use crate::protected::{is_protected, may_be_protected};
use crate::snapshot::file_clock;
use storage::file_system::{Devices, without_files};

/// The most folders that are walked. Behind them nothing is guarded.
const MOST: usize = 200_000;
/// File times are coarse: a folder that changed less than this before it was read may change again with the same time.
const COARSE: Duration = Duration::from_millis(50);
/// The most bytes that are read of a file whose text says what it is.
const MOST_TEXT: usize = 4_096;

/// Folders of packages that others made. Many have settings for editors and agents in them, which nothing reads there, so only
/// repositories are guarded in them.
const DEPENDENCIES: [&str; 9] =
    ["node_modules", "site-packages", ".venv", "venv", ".tox", ".nox", "bower_components", "jspm_packages", "Pods"];

/// The rules for the names in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Source,
    Dependencies,
    Git(Part),
}

/// The folders of a place as they were last read.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    folders: HashMap<PathBuf, Folder>,
}

#[derive(Debug)]
struct Folder {
    role: Role,
    /// Device, inode, and when its names last changed.
    stamp: [i64; 4],
    /// It was read so soon after a change that an equal time does not prove it unchanged.
    is_fresh: bool,
    below: Vec<(OsString, Role)>,
    marks: Vec<OsString>,
    repositories: Vec<OsString>,
    /// Files of ignore rules.
    rules: Vec<OsString>,
    is_bare: bool,
}

/// Where protected files are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sight {
    /// Protected names, and what git has not written into its folder. Each means everything below it, too.
    pub(super) marks: Vec<PathBuf>,
    /// Each `.git`, and each folder that looks like a repository without a work tree; `.` for the place itself.
    pub(super) repositories: BTreeSet<PathBuf>,
    /// Files of ignore rules.
    pub(crate) rules: Vec<PathBuf>,
    /// There are more folders than are walked.
    pub(super) is_cut: bool,
}

impl Survey {
    /// Looks at a place. `git` is the part of git's folder that the place is, if it is one.
    pub(crate) fn look(&mut self, place: impl AsFd, git: Option<Part>) -> Sight {
        let mut old = std::mem::take(&mut self.folders);
        let mut sight = Sight::default();
        // Anew for each look: what is mounted later may get the number of a device that is gone.
        let devices = Devices::default();
        let mut left = vec![(PathBuf::new(), git.map_or(Role::Source, Role::Git))];
        let place = place.as_fd();
        while let Some((path, role)) = left.pop() {
            if self.folders.len() >= MOST {
                sight.is_cut = true;
                break;
            }
            let Some(stat) = stat(place, &path) else { continue };
            if !devices.hold_files(stat.st_dev, || kind_of(place, &path)) {
                continue;
            }
            let stamp = stamp(&stat);
            let known = old.remove(&path).filter(|it| it.role == role && it.stamp == stamp && !it.is_fresh);
            let Some(folder) = known.or_else(|| Folder::read(place, &path, role, &stat)) else { continue };
            sight.marks.extend(folder.marks.iter().map(|name| path.join(name)));
            sight.rules.extend(folder.rules.iter().map(|name| path.join(name)));
            sight.repositories.extend(folder.repositories.iter().map(|name| path.join(name)));
            if folder.is_bare {
                sight.repositories.insert(if path.as_os_str().is_empty() { ".".into() } else { path.clone() });
            }
            left.extend(folder.below.iter().map(|(name, role)| (path.join(name), *role)));
            self.folders.insert(path, folder);
        }
        sight
    }
}

impl Folder {
    fn read(place: BorrowedFd<'_>, path: &Path, role: Role, stat: &Stat) -> Option<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(place, named(path), flags, Mode::empty()).ok()?;
        let mut entries: Vec<(OsString, Entry)> = Vec::new();
        for entry in rustix::fs::Dir::read_from(&opened).ok()?.flatten() {
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let found = rustix::fs::statat(&opened, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
                    found.map_or(FileType::Unknown, |it| FileType::from_raw_mode(it.st_mode))
                }
                kind => kind,
            };
            let kind = match kind {
                FileType::Directory => Entry::Folder,
                FileType::RegularFile => Entry::File,
                _ => Entry::Other,
            };
            entries.push((OsStr::from_bytes(name).to_owned(), kind));
        }
        let has = |wanted: &str, kind: Entry| entries.iter().any(|(name, it)| name == wanted && *it == kind);
        let looks_like_git =
            entries.iter().any(|it| it.0 == "HEAD") && has("objects", Entry::Folder) && has("refs", Entry::Folder);
        let now = match role {
            Role::Source | Role::Dependencies if looks_like_git => Role::Git(Part::Bare),
            // The folder of a submodule, and not one on the way to it.
            Role::Git(Part::Modules) if entries.iter().any(|it| it.0 == "HEAD") => Role::Git(Part::Top),
            role => role,
        };
        let is_repository = now != role;
        let latest = latest(stat);
        let mut folder = Folder {
            role,
            stamp: stamp(stat),
            is_fresh: latest + COARSE >= file_clock(),
            below: Vec::new(),
            marks: Vec::new(),
            repositories: Vec::new(),
            rules: Vec::new(),
            is_bare: is_repository,
        };
        for (name, kind) in entries {
            match now {
                Role::Git(part) => folder.add_of_git(path, &opened, part, name, kind),
                Role::Source | Role::Dependencies => folder.add(path, now, name, kind),
            }
        }
        Some(folder)
    }

    fn add(&mut self, above: &Path, role: Role, name: OsString, kind: Entry) {
        let lower = name.to_string_lossy().to_lowercase();
        if lower == ".git" {
            if kind == Entry::Folder {
                self.below.push((name.clone(), Role::Git(Part::Top)));
            }
            self.repositories.push(name);
            return;
        }
        if role == Role::Source && may_be_protected(&name, kind == Entry::Other) {
            // A symlink on the way would be a protected folder under another name.
            let is_marked = is_protected(&above.join(&name)) || kind == Entry::Other;
            if is_marked {
                self.marks.push(name);
                return;
            }
        }
        if kind == Entry::File && (lower == ".gitignore" || lower == ".ignore") {
            self.rules.push(name);
            return;
        }
        if kind == Entry::Folder {
            let below = if DEPENDENCIES.contains(&lower.as_str()) { Role::Dependencies } else { role };
            self.below.push((name, below));
        }
    }

    fn add_of_git(&mut self, path: &Path, opened: impl AsFd, part: Part, name: OsString, kind: Entry) {
        let text = name.to_string_lossy();
        let is_plain = match part.name(&text, kind) {
            // A command can make any folder of the workspace look like a repository, and hides nothing by that.
            Name::Plain if part == Part::Bare => return self.add(path, Role::Source, name, kind),
            Name::Folder(part) => {
                self.below.push((name, Role::Git(part)));
                return;
            }
            Name::Plain => true,
            Name::Guarded => false,
            Name::IfReference => begins(opened, &name, is_reference),
            Name::IfLog => begins(opened, &name, is_log),
        };
        if !is_plain {
            self.marks.push(name);
        }
    }
}

/// Whether the beginning of a file is so.
fn begins(folder: impl AsFd, name: &OsStr, is_so: impl Fn(&[u8]) -> bool) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(folder, name, flags, Mode::empty()) else { return false };
    let mut bytes = vec![0; MOST_TEXT];
    rustix::io::read(&file, &mut bytes).is_ok_and(|n| is_so(&bytes[..n]))
}

fn named(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Reads what the kernel knows of a folder; `None` if it is none.
fn stat(place: BorrowedFd<'_>, path: &Path) -> Option<Stat> {
    let stat = rustix::fs::statat(place, named(path), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::Directory).then_some(stat)
}

/// The file system of a folder, if it holds no files of a user.
fn kind_of(place: BorrowedFd<'_>, path: &Path) -> Option<&'static str> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    without_files(rustix::fs::openat(place, named(path), flags, Mode::empty()).ok()?)
}

fn stamp(it: &Stat) -> [i64; 4] {
    let number = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
    [number(it.st_dev), number(it.st_ino), it.st_ctime, i64::try_from(it.st_ctime_nsec).unwrap_or(0)]
}

fn latest(it: &Stat) -> SystemTime {
    let nanos = u32::try_from(it.st_ctime_nsec).unwrap_or(0);
    UNIX_EPOCH + Duration::new(u64::try_from(it.st_ctime).unwrap_or(0), nanos)
}
