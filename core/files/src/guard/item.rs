//! One protected file or folder, as a look found it.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::{Dir, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _};

use super::survey::Sight;
use storage::file_system::{Devices, without_files};

/// The most files and folders that one look reads below a protected name.
const MOST: usize = 2_000;
/// The largest file whose bytes are kept, and the most bytes of all.
const LARGEST: u64 = 1 << 20;
const MOST_BYTES: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File,
    Link(PathBuf),
    /// A FIFO, a socket, a device, or a folder in which the kernel shows its state.
    Other,
}

#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    /// Inode, size, times: while they are equal, the file is unchanged.
    pub(super) stamp: [i64; 6],
    /// How many names the file has.
    pub(super) links: u64,
    /// The bytes of a file that is not too large.
    pub(super) bytes: Option<Arc<[u8]>>,
}

impl Item {
    pub(super) fn is_same(&self, now: &Item) -> bool {
        self.kind == now.kind
            && (self.kind != Kind::File
                || self.stamp == now.stamp
                || (self.mode == now.mode && self.bytes.is_some() && self.bytes == now.bytes))
    }

    /// The text of a file, if it is text and not too long.
    pub(super) fn text(&self) -> Option<&str> {
        std::str::from_utf8(self.bytes.as_deref()?).ok()
    }
}

/// The protected files and folders that a look found.
#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) all: BTreeMap<PathBuf, Item>,
    /// Protected folders with more in them than one look reads.
    pub(super) cut: Vec<PathBuf>,
}

impl Items {
    /// What a survey has in sight. Files that have not changed since `old` are not read again.
    pub(super) fn read(dir: &Dir, sight: &Sight, old: Option<&Items>) -> Items {
        let mut look = Look {
            dir,
            old,
            bytes: 0,
            top: PathBuf::new(),
            seen: 0,
            devices: Devices::default(),
            items: Items::default(),
        };
        for repository in &sight.repositories {
            look.begin(repository);
            look.one(repository);
        }
        for marked in &sight.marks {
            look.begin(marked);
            look.whole(marked);
        }
        look.items
    }

    pub(super) fn read_one(dir: &Dir, path: &Path) -> Option<Item> {
        let mut look = Look {
            dir,
            old: None,
            bytes: 0,
            top: PathBuf::new(),
            seen: 0,
            devices: Devices::default(),
            items: Items::default(),
        };
        look.one(path);
        look.items.all.remove(path)
    }

    /// Whether this path lies in a folder with more than one look reads.
    pub(super) fn is_cut(&self, path: &Path) -> bool {
        self.cut.iter().any(|it| path.starts_with(it))
    }
}

struct Look<'a> {
    dir: &'a Dir,
    old: Option<&'a Items>,
    /// Bytes that were kept.
    bytes: u64,
    /// The protected name whose files are read, and how many they are.
    top: PathBuf,
    seen: usize,
    devices: Devices,
    items: Items,
}

impl Look<'_> {
    fn begin(&mut self, top: &Path) {
        (self.top, self.seen) = (top.to_owned(), 0);
    }

    /// A file, or a folder with everything in it.
    fn whole(&mut self, path: &Path) {
        if self.one(path) != Some(Kind::Folder) {
            return;
        }
        let mut names: Vec<_> =
            self.dir.read_dir(path).into_iter().flatten().flatten().map(|it| it.file_name()).collect();
        names.sort();
        // Git never runs the samples of hooks, and a workspace may have many repositories.
        let is_hooks = path.file_name().is_some_and(|it| it == "hooks");
        names.retain(|name| !is_hooks || !name.as_encoded_bytes().ends_with(b".sample"));
        for name in names {
            self.whole(&path.join(name));
        }
    }

    fn one(&mut self, path: &Path) -> Option<Kind> {
        let metadata = self.dir.symlink_metadata(path).ok()?;
        if self.seen >= MOST {
            if self.items.cut.last() != Some(&self.top) {
                self.items.cut.push(self.top.clone());
            }
            return None;
        }
        self.seen += 1;
        let kind = if metadata.is_dir() {
            let kind_of = || self.dir.open_dir(path).ok().and_then(without_files);
            if self.devices.hold_files(metadata.dev(), kind_of) { Kind::Folder } else { Kind::Other }
        } else if metadata.is_file() {
            Kind::File
        } else if metadata.is_symlink() {
            Kind::Link(self.dir.read_link_contents(path).unwrap_or_default())
        } else {
            Kind::Other
        };
        let stamp = stamp(&metadata);
        let known = self.old.and_then(|old| old.all.get(path)).filter(|old| old.stamp == stamp);
        let bytes = match known {
            Some(old) => old.bytes.clone(),
            None if kind == Kind::File => self.bytes_of(path, metadata.len()),
            None => None,
        };
        let (mode, links) = (metadata.mode() & 0o7777, metadata.nlink());
        self.items.all.insert(path.to_owned(), Item { kind: kind.clone(), mode, stamp, links, bytes });
        Some(kind)
    }

    fn bytes_of(&mut self, path: &Path, len: u64) -> Option<Arc<[u8]>> {
        if len > LARGEST || self.bytes + len > MOST_BYTES {
            return None;
        }
        let mut options = OpenOptions::new();
        // It may have become a FIFO.
        let flags = (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW).bits();
        let file = self.dir.open_with(path, options.read(true).custom_flags(i32::try_from(flags).ok()?)).ok()?;
        let mut bytes = Vec::new();
        // Its size may not be honest.
        let most = LARGEST.min(MOST_BYTES - self.bytes);
        file.take(most + 1).read_to_end(&mut bytes).ok()?;
        self.bytes += (bytes.len() as u64).min(most);
        if bytes.len() as u64 > most {
            return None;
        }
        Some(bytes.into())
    }
}

fn stamp(it: &Metadata) -> [i64; 6] {
    let number = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
    [number(it.ino()), number(it.len()), it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()]
}
