//! The folder of a Session's cover, in which what its commands write to caches is kept.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use storage::regular;
use storage::removal::remove_folder;
use storage::store::{make_private, write_whole};

/// The most that a cover holds when its Session is opened, bytes.
const MOST: u64 = 8 << 30;
/// The file that names the start of the machine.
const START: &str = "start";

/// The folders that are ready. They are measured once, before any command uses them.
#[derive(Debug, Default)]
pub(super) struct Folders(Mutex<BTreeSet<PathBuf>>);

impl Folders {
    /// Makes the folder. One that an earlier process has left too large begins anew, and one from before this start of the
    /// machine: nothing in it was synced, so after a crash its files may be empty.
    ///
    /// # Errors
    /// Those of the file system.
    pub(super) fn make(&self, folder: &Path) -> io::Result<()> {
        let start = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        self.make_within(folder, &start, MOST)
    }

    fn make_within(&self, folder: &Path, start: &str, most: u64) -> io::Result<()> {
        if !self.0.lock().insert(folder.to_owned()) {
            return make_private(folder);
        }
        let note = folder.join(START);
        let is_of_this_start = regular::read_to_string(&note).is_ok_and(|it| it == start);
        if folder.exists() && (!is_of_this_start || size(folder, most) > most) {
            remove_folder(folder)?;
        }
        make_private(folder)?;
        write_whole(&note, start.as_bytes())
    }
}

/// What the files of a folder take on the disk, counted until it is more than enough.
fn size(folder: &Path, enough: u64) -> u64 {
    let (mut size, mut left) = (0, vec![folder.to_owned()]);
    while let Some(folder) = left.pop().filter(|_| size <= enough) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(it) = entry.metadata() else { continue };
            if it.is_dir() {
                left.push(entry.path());
            }
            size += it.blocks() * 512;
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: one that removes what a command of this process wrote; one that keeps everything.
    #[test]
    fn a_cover_that_is_too_large_or_too_old_begins_anew_once() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = temp.path().join("caches");
        let file = folder.join("home/file");
        let write = || fs::create_dir_all(folder.join("home")).and_then(|()| fs::write(&file, vec![1; 64 << 10]));
        write().expect("write");
        Folders::default().make_within(&folder, "one", 1 << 20).expect("it is made");
        assert!(!file.exists(), "it is of no known start");
        write().expect("write");
        Folders::default().make_within(&folder, "one", 1 << 20).expect("it is made");
        assert!(file.exists(), "it is small");
        let folders = Folders::default();
        folders.make_within(&folder, "one", 32 << 10).expect("it is made");
        assert!(folder.is_dir() && !file.exists());
        write().expect("write");
        folders.make_within(&folder, "one", 32 << 10).expect("it is made");
        assert!(file.exists(), "it is measured once");
        Folders::default().make_within(&folder, "two", 1 << 20).expect("it is made");
        assert!(!file.exists(), "the machine was started again");
    }
}
