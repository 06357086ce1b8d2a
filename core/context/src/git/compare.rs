//! The work tree against the commit of the head: which files changed, and the bytes of the commit's files.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::objects::{Id, Objects};
use super::{Git, index, sha1};
use files::diff::{ChangedFile, Changes, Kind, Version};
use files::walk::walk;
use permissions::repository;

/// The most files of a commit or a workspace that are compared.
const MOST: usize = 50_000;
/// The largest file that is read, bytes.
const LARGEST: u64 = 32 << 20;
/// The deepest folder of a tree.
const DEEPEST: usize = 64;

/// A file of the commit.
#[derive(Clone, Copy)]
struct Committed {
    id: Id,
    mode: u32,
}

impl Git {
    /// The files of the workspace that differ from the commit, and those that git neither knows nor ignores.
    pub fn changes(&self, workspace: &Path) -> Changes {
        let cannot = |why: &str| Changes { files: Vec::new(), note: Some(why.to_owned()) };
        let objects = Objects::of(&self.repository);
        let mut committed = BTreeMap::new();
        if let Some(head) = self.head {
            let Some(commit) = objects.commit(head) else { return cannot("the commit of HEAD cannot be read here") };
            if read_tree(&objects, commit.tree, &PathBuf::new(), 0, &mut committed).is_none() {
                return cannot("the tree of HEAD cannot be read here, or has too many files");
            }
        }
        let Some(clean) = index::unchanged(&self.repository) else {
            return cannot("the index of the repository cannot be read here, or has too many files");
        };
        let mut files = Vec::new();
        let mut unread = 0;
        for (path, was) in &committed {
            let at = self.repository.top.join(path);
            let Ok(shown) = at.strip_prefix(workspace) else { continue };
            // What the index knows as unchanged, under the same name, needs no reading.
            if clean.get(path).is_some_and(|id| *id == was.id) {
                continue;
            }
            let Some(shown) = shown.to_str() else { continue };
            match now(&self.repository.top, path) {
                Now::Gone => files.push(changed(shown, Kind::Deleted, Some(*was), None)),
                Now::Is(id, mode) if id == was.id && mode == was.mode => {}
                Now::Is(id, mode) => {
                    let mut file = changed(shown, Kind::Modified, Some(*was), Some(mode));
                    if id == was.id {
                        file.counts = Some((0, 0));
                    }
                    files.push(file);
                }
                Now::Unread => unread += 1,
            }
        }
        let mut seen = 0;
        for entry in walk(workspace).flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file())) {
            seen += 1;
            if seen > MOST {
                return cannot("the workspace has too many files to compare them all");
            }
            let Ok(path) = entry.path().strip_prefix(&self.repository.top) else { continue };
            let shown = entry.path().strip_prefix(workspace).ok().and_then(Path::to_str);
            if let Some(shown) = shown.filter(|_| !committed.contains_key(path)) {
                files.push(changed(shown, Kind::Added, None, None));
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let note = (unread > 0).then(|| format!("{unread} files are too large to be compared, or cannot be read"));
        Changes { files, note }
    }

    /// The bytes of an object.
    pub fn blob(&self, name: &str) -> Option<Vec<u8>> {
        Objects::of(&self.repository).blob(Id::parse(name)?)
    }
}

fn changed(path: &str, kind: Kind, was: Option<Committed>, mode: Option<u32>) -> ChangedFile {
    let bits = |mode: u32| if mode & 0o111 == 0 { 0o644 } else { 0o755 };
    let is_link = |mode: u32| mode & 0o170_000 == 0o120_000;
    let new = if kind == Kind::Deleted { Version::Absent } else { Version::Disk };
    let modes = was.zip(mode).filter(|(was, now)| was.mode != *now && !is_link(*now) && !is_link(was.mode));
    ChangedFile {
        path: path.to_owned(),
        kind,
        modes: modes.map(|(was, now)| (bits(was.mode), bits(now))),
        counts: None,
        binary: None,
        folded: None,
        old: was.map_or(Version::Absent, |was| Version::Object(was.id.hex())),
        new,
        old_mode: was.map(|was| bits(was.mode)),
    }
}

/// Reads a tree and the trees in it; `None` if one cannot be read, or there are too many files.
fn read_tree(
    objects: &Objects,
    tree: Id,
    folder: &Path,
    depth: usize,
    files: &mut BTreeMap<PathBuf, Committed>,
) -> Option<()> {
    if depth > DEEPEST {
        return None;
    }
    let bytes = objects.tree(tree)?;
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == 0)?;
        let head = rest.get(..end)?;
        let blank = head.iter().position(|byte| *byte == b' ')?;
        let mode = u32::from_str_radix(std::str::from_utf8(&head[..blank]).ok()?, 8).ok()?;
        let name = &head[blank + 1..];
        let id = Id(rest.get(end + 1..end + 21)?.try_into().ok()?);
        rest = &rest[end + 21..];
        if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') {
            return None;
        }
        let path = folder.join(std::ffi::OsStr::from_bytes(name));
        match mode & 0o170_000 {
            0o040_000 => read_tree(objects, id, &path, depth + 1, files)?,
            0o100_000 | 0o120_000 => {
                files.insert(path, Committed { id, mode });
                (files.len() <= MOST).then_some(())?;
            }
            // A submodule is another repository.
            _ => {}
        }
    }
    Some(())
}

/// What stands at a path now.
enum Now {
    Gone,
    Is(Id, u32),
    Unread,
}

fn now(top: &Path, path: &Path) -> Now {
    // A folder that became a symlink has none of the commit's files in it.
    let mut folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    if folders.any(|folder| fs::symlink_metadata(top.join(folder)).is_ok_and(|it| it.is_symlink())) {
        return Now::Gone;
    }
    let path = &top.join(path);
    let Ok(metadata) = fs::symlink_metadata(path) else { return Now::Gone };
    let (content, mode) = if metadata.is_symlink() {
        let Ok(target) = fs::read_link(path) else { return Now::Unread };
        (target.into_os_string().as_bytes().to_vec(), 0o120_000)
    } else if metadata.is_file() {
        let mut content = Vec::new();
        let read = repository::open(path).filter(|(_, len)| *len <= LARGEST);
        let read = read.and_then(|(file, _)| file.take(LARGEST).read_to_end(&mut content).ok());
        if read.is_none() {
            return Now::Unread;
        }
        (content, if metadata.mode() & 0o100 == 0 { 0o100_644 } else { 0o100_755 })
    } else {
        return Now::Gone;
    };
    let head = format!("blob {}\0", content.len());
    Now::Is(Id(sha1::digest(&[head.as_bytes(), &content])), mode)
}
