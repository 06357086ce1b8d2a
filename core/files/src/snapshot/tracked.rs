//! The files that git tracks, as its index names them. They are watched also where rules ignore them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use storage::regular;

/// The largest index that is read, bytes.
const LARGEST: u64 = 64 << 20;

/// The index of the repository that a folder lies in, and the folder's place in it.
pub(super) fn index_of(root: &Path) -> Option<(PathBuf, PathBuf)> {
    let top = root.ancestors().find(|it| it.join(".git").symlink_metadata().is_ok())?;
    let git = top.join(".git");
    let git = match regular::read_to_string(&git) {
        // The file of a work tree or a submodule.
        Ok(text) => top.join(text.strip_prefix("gitdir:")?.trim()),
        Err(_) => git,
    };
    Some((git.join("index"), root.strip_prefix(top).ok()?.to_owned()))
}

/// The tracked files below a folder, relative to it. An index that is not understood has none.
pub(super) fn tracked(index: &Path, below: &Path) -> BTreeSet<PathBuf> {
    let bytes = regular::read(index, LARGEST).unwrap_or_default();
    let mut all = BTreeSet::new();
    // What was read before an entry that is damaged is still tracked.
    let _ = names(&bytes, |name| {
        if let Ok(path) = Path::new(OsStr::from_bytes(name)).strip_prefix(below) {
            all.insert(path.to_owned());
        }
    });
    all
}

/// Calls `found` with the path of each entry. The format is that of gitformat-index(5), versions 2 to 4.
fn names(index: &[u8], mut found: impl FnMut(&[u8])) -> Option<()> {
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    let (version, entries) = (number(4)?, number(8)?);
    if index.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    // The names are longer where the repository's hashes are.
    let hash = hash_len(index, version)?;
    let mut at = 12;
    let mut name: Vec<u8> = Vec::new();
    for _ in 0..entries {
        let flags = at + 40 + hash;
        let is_extended = version >= 3 && index.get(flags)? & 0x40 != 0;
        let mut start = flags + if is_extended { 4 } else { 2 };
        if version == 4 {
            let cut = variable(index, &mut start)?;
            name.truncate(name.len().checked_sub(cut)?);
        } else {
            name.clear();
        }
        let len = index.get(start..)?.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(index.get(start..start + len)?);
        found(&name);
        at = if version == 4 { start + len + 1 } else { at + (start + len - at) / 8 * 8 + 8 };
    }
    Some(())
}

/// The bytes of a hash: 20, or 32 if only these make the first entry whole.
fn hash_len(index: &[u8], version: u32) -> Option<usize> {
    let is_whole = |hash: usize| {
        let flags = 12 + 40 + hash;
        let length = usize::from(u16::from_be_bytes(index.get(flags..flags + 2)?.try_into().ok()?) & 0xfff);
        let start = flags + 2 + if version == 4 { 1 } else { 0 };
        let found = index.get(start..)?.iter().position(|byte| *byte == 0)?;
        Some(length == found)
    };
    [20, 32].into_iter().find(|hash| is_whole(*hash) == Some(true)).or(Some(20))
}

/// A number of variable length, as git writes them.
fn variable(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut next = || {
        *at += 1;
        bytes.get(*at - 1).copied()
    };
    let mut byte = next()?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = next()?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Broken builds: an entry's padding is counted wrong; version 4 shares names with the entry before.
    #[test]
    fn the_index_of_each_version_names_the_tracked_files() {
        for version in ["2", "4"] {
            let folder = tempfile::tempdir().expect("a folder");
            let git = |args: &[&str]| {
                let ran = Command::new("git").args(args).current_dir(folder.path()).output().expect("git starts");
                assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
            };
            git(&["init", "-q"]);
            git(&["config", "index.version", version]);
            let names = ["a", "sub/ab.txt", "sub/abc.txt", "sub/deep/x", "z with a blank"];
            for name in names {
                let path = folder.path().join(name);
                std::fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
                std::fs::write(path, name).expect("write");
            }
            git(&["add", "-A"]);
            let (index, below) = index_of(folder.path()).expect("a repository");
            assert_eq!(tracked(&index, &below), names.map(PathBuf::from).into(), "version {version}");
            let (index, below) = index_of(&folder.path().join("sub")).expect("a repository");
            assert_eq!(tracked(&index, &below), ["ab.txt", "abc.txt", "deep/x"].map(PathBuf::from).into());
        }
    }
}
