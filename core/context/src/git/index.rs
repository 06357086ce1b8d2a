//! Which tracked files differ from the index, by what the file system says about them. Format: gitformat-index(5).

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io::{ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use super::objects::Id;
use super::sha1;
use permissions::repository::{self, Repository};

/// An index with more files is not compared.
pub(super) const MOST: u32 = 1_000;
/// A longer index is not read, bytes.
const LONGEST: u64 = 1 << 20;
/// The most bytes of files that are read because only their times differ.
const MOST_READ: u64 = 1 << 20;

/// The same, for a comparison that the user asked for.
const MOST_REVIEWED: u32 = 50_000;
const LONGEST_REVIEWED: u64 = 32 << 20;

/// How the work tree stands.
pub(super) struct Comparison {
    /// The tracked files that differ from the index.
    pub(super) changed: u32,
    /// The index differs from the commit, or may differ.
    pub(super) staged: bool,
}

/// One tracked file.
struct Tracked<'a> {
    name: Vec<u8>,
    /// The fixed fields, 62 bytes.
    fields: &'a [u8],
    /// The file system is not asked about it: sparse, a submodule, or declared unchanged.
    is_skipped: bool,
}

impl Tracked<'_> {
    fn number(&self, at: usize) -> u32 {
        be(self.fields, at).unwrap_or_default()
    }
}

/// How far a comparison goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// All changed files are counted, in a repository that is not large.
    Counted,
    /// One difference is found.
    Different,
}

/// Compares the work tree with the index; `tree` is that of the commit. `None` if there are too many files, or pixir does
/// not understand the index.
pub(super) fn compare(repository: &Repository, tree: Option<Id>, until: Until) -> Option<Comparison> {
    let path = repository.git.join("index");
    if fs::symlink_metadata(&path).is_err_and(|e| e.kind() == ErrorKind::NotFound) {
        return Some(Comparison { changed: 0, staged: tree.is_some() });
    }
    let (longest, most) = match until {
        Until::Counted => (LONGEST, MOST),
        Until::Different => (LONGEST_REVIEWED, MOST_REVIEWED),
    };
    let index = repository::bytes(&path, longest)?;
    let (version, count) = (be(&index, 4)?, be(&index, 8)?);
    if index.get(..4)? != b"DIRC" || !matches!(version, 2..=4) || count > most {
        return None;
    }
    let mut at = 12;
    let mut changed = 0;
    let mut look = Look { top: repository.top.clone(), folders: HashMap::new(), read: 0 };
    let mut before: Vec<u8> = Vec::new();
    for _ in 0..count {
        let entry = tracked(&index, version, &mut at, &before)?;
        // A conflict has an entry for each side.
        if entry.name != before && !entry.is_skipped {
            let is_conflict = entry.fields[60] & 0x30 != 0;
            changed += u32::from(is_conflict || look.differs(&entry)?);
        }
        if changed > 0 && until == Until::Different {
            return Some(Comparison { changed, staged: false });
        }
        before = entry.name;
    }
    let written = written_tree(&index, at)?;
    let is_empty = count == 0 && tree.is_none();
    Some(Comparison { changed, staged: !is_empty && (written.is_none() || written != tree) })
}

/// The tracked files that are as the index has them, judged by size, mode and time alone. A file that was written after
/// the index may have changed without a trace, so it is not one of them. `None` as in [`compare`].
pub(super) fn unchanged(repository: &Repository) -> Option<HashMap<PathBuf, Id>> {
    let path = repository.git.join("index");
    let Ok(written) = fs::symlink_metadata(&path) else { return Some(HashMap::new()) };
    let index = repository::bytes(&path, LONGEST_REVIEWED)?;
    let (version, count) = (be(&index, 4)?, be(&index, 8)?);
    if index.get(..4)? != b"DIRC" || !matches!(version, 2..=4) || count > MOST_REVIEWED {
        return None;
    }
    let mut at = 12;
    let mut all = HashMap::new();
    let mut before: Vec<u8> = Vec::new();
    for _ in 0..count {
        let entry = tracked(&index, version, &mut at, &before)?;
        let name = Path::new(std::ffi::OsStr::from_bytes(&entry.name));
        let is_plain = name.components().all(|it| matches!(it, Component::Normal(part) if part != ".git"));
        let metadata = if is_plain { fs::symlink_metadata(repository.top.join(name)).ok() } else { None };
        let is_same = metadata.is_some_and(|it| {
            it.is_file()
                && it.len() & 0xffff_ffff == u64::from(entry.number(36))
                && (it.mode() & 0o100 != 0) == (entry.number(24) & 0o100 != 0)
                && has_time_of(&it, &entry)
                && (it.mtime(), it.mtime_nsec()) < (written.mtime(), written.mtime_nsec())
        });
        if is_same && !entry.is_skipped {
            all.insert(name.to_owned(), Id(entry.fields[40..60].try_into().ok()?));
        }
        before = entry.name;
    }
    Some(all)
}

fn tracked<'a>(index: &'a [u8], version: u32, at: &mut usize, before: &[u8]) -> Option<Tracked<'a>> {
    let fields = index.get(*at..*at + 62)?;
    let is_extended = version >= 3 && fields[60] & 0x40 != 0;
    let more = if is_extended { be16(index, *at + 62)? } else { 0 };
    let mut from = *at + 62 + if is_extended { 2 } else { 0 };
    let mut name = Vec::new();
    if version == 4 {
        // The name continues the one before, of which so many bytes at the end are dropped.
        let mut byte = *index.get(from)?;
        let mut dropped = usize::from(byte & 0x7f);
        from += 1;
        while byte & 0x80 != 0 {
            byte = *index.get(from)?;
            dropped = dropped.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
            from += 1;
        }
        name.extend_from_slice(before.get(..before.len().checked_sub(dropped)?)?);
    }
    let len = index.get(from..)?.iter().position(|byte| *byte == 0)?;
    name.extend_from_slice(&index[from..from + len]);
    // One to eight zero bytes make the length of an entry a multiple of eight, except in version 4.
    *at += if version == 4 { from + len + 1 - *at } else { (from + len - *at) / 8 * 8 + 8 };
    let kind = be(fields, 24)? & 0o170_000;
    let is_unchanged = fields[60] & 0x80 != 0;
    let is_file = matches!(kind, 0o100_000 | 0o120_000);
    Some(Tracked { name, fields, is_skipped: is_unchanged || !is_file || more & 0x4000 != 0 })
}

/// Looks at files of the work tree, without following a symlink.
struct Look {
    top: PathBuf,
    /// Whether a folder is one, and no symlink.
    folders: HashMap<PathBuf, bool>,
    read: u64,
}

impl Look {
    /// Whether a file differs; `None` if that would take too long to find out.
    fn differs(&mut self, entry: &Tracked<'_>) -> Option<bool> {
        let name = Path::new(std::ffi::OsStr::from_bytes(&entry.name));
        let is_plain = name.components().all(|it| matches!(it, Component::Normal(part) if part != ".git"));
        if !is_plain || !self.is_reached(name.parent()?) {
            return Some(true);
        }
        let path = self.top.join(name);
        let Ok(metadata) = fs::symlink_metadata(&path) else { return Some(true) };
        let is_link = entry.number(24) & 0o170_000 == 0o120_000;
        // git keeps the low 32 bits of a size.
        if metadata.is_symlink() != is_link
            || (!is_link && !metadata.is_file())
            || metadata.len() & 0xffff_ffff != u64::from(entry.number(36))
            || (!is_link && (metadata.mode() & 0o100 != 0) != (entry.number(24) & 0o100 != 0))
        {
            return Some(true);
        }
        if has_time_of(&metadata, entry) { Some(false) } else { self.has_other_content(&path, &metadata, entry) }
    }

    /// All folders above the file are folders.
    fn is_reached(&mut self, folder: &Path) -> bool {
        if folder.as_os_str().is_empty() {
            return true;
        }
        if let Some(known) = self.folders.get(folder) {
            return *known;
        }
        let is_folder = folder.parent().is_some_and(|above| self.is_reached(above))
            && fs::symlink_metadata(self.top.join(folder)).is_ok_and(|it| it.is_dir());
        self.folders.insert(folder.to_owned(), is_folder);
        is_folder
    }

    /// The time differs, so only the content can tell: a copied repository has new times everywhere.
    fn has_other_content(&mut self, path: &Path, metadata: &Metadata, entry: &Tracked<'_>) -> Option<bool> {
        self.read += metadata.len();
        if self.read > MOST_READ {
            return None;
        }
        let content = if metadata.is_symlink() {
            fs::read_link(path).ok()?.into_os_string().as_bytes().to_vec()
        } else {
            let mut content = Vec::new();
            let (file, len) = repository::open(path)?;
            file.take(len.min(MOST_READ)).read_to_end(&mut content).ok()?;
            content
        };
        let head = format!("blob {}\0", content.len());
        Some(sha1::digest(&[head.as_bytes(), &content]) != entry.fields[40..60])
    }
}

fn has_time_of(metadata: &Metadata, entry: &Tracked<'_>) -> bool {
    let seconds = metadata.mtime() & 0xffff_ffff == i64::from(entry.number(8));
    let nanoseconds = entry.number(12);
    seconds && (nanoseconds == 0 || metadata.mtime_nsec() == i64::from(nanoseconds))
}

/// The tree that the index was written as, if it was not changed since. `None` for an index in two files.
fn written_tree(index: &[u8], mut at: usize) -> Option<Option<Id>> {
    let mut written = None;
    // Behind the last extension is the checksum.
    while at + 8 + 20 <= index.len() {
        let len = usize::try_from(be(index, at + 4)?).ok()?;
        let data = index.get(at + 8..at.checked_add(8)?.checked_add(len)?)?;
        match &index[at..at + 4] {
            b"TREE" => written = root_of(data),
            b"link" => return None,
            _ => {}
        }
        at += 8 + len;
    }
    Some(written)
}

/// The first tree of the extension `TREE`; a negative count says that it is out of date.
fn root_of(data: &[u8]) -> Option<Id> {
    let rest = data.strip_prefix(b"\0")?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    if rest.starts_with(b"-") {
        return None;
    }
    rest.get(end + 1..end + 21)?.try_into().ok().map(Id)
}

fn be(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}
