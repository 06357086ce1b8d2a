//! Who may open the user's private files, around a command under Landlock, which restricts no change of a mode.

use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The most files and folders that are looked at.
const MOST: usize = 500;
/// How many folders deep.
const DEEPEST: u8 = 2;

/// The modes of private files before a command.
#[derive(Debug, Default)]
pub struct Modes(Vec<(PathBuf, Identity, u32)>);

/// Device and inode.
type Identity = (u64, u64);

impl Modes {
    /// Looks at these files and folders, and at what is in the folders.
    pub fn of<'a>(private: impl Iterator<Item = &'a Path>) -> Modes {
        let mut modes = Modes::default();
        private.for_each(|path| modes.look(path, DEEPEST));
        modes
    }

    fn look(&mut self, path: &Path, deepest: u8) {
        if self.0.len() >= MOST {
            return;
        }
        let Ok(metadata) = fs::symlink_metadata(path) else { return };
        if metadata.is_symlink() {
            return;
        }
        self.0.push((path.to_owned(), identity(&metadata), metadata.mode() & 0o7777));
        if metadata.is_dir() && deepest > 0 {
            fs::read_dir(path).into_iter().flatten().flatten().for_each(|child| self.look(&child.path(), deepest - 1));
        }
    }

    /// Takes away what the modes now allow and did not before. Returns the files.
    pub fn close_again(&self) -> Vec<PathBuf> {
        let opened = self.0.iter().filter(|(path, before, mode)| {
            let now = fs::symlink_metadata(path).ok().filter(|now| !now.is_symlink() && identity(now) == *before);
            let more = now.as_ref().map_or(0, |now| now.mode() & 0o7777 & !mode);
            // What the user made stricter meanwhile stays so.
            more != 0 && now.is_some_and(|now| chmod(path, now.mode() & mode))
        });
        opened.map(|(path, ..)| path.clone()).collect()
    }
}

fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

fn chmod(path: &Path, mode: u32) -> bool {
    fs::set_permissions(path, Permissions::from_mode(mode & 0o7777)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_opened_is_closed_again_and_what_was_closed_stays_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, mode: u32| {
            let path = folder.path().join(name);
            fs::write(&path, name).expect("write");
            assert!(chmod(&path, mode));
            path
        };
        let (key, script, link) = (file("key", 0o600), file("script", 0o744), folder.path().join("link"));
        std::os::unix::fs::symlink("script", &link).expect("a link");
        let before = Modes::of([folder.path()].into_iter());
        assert!(chmod(&key, 0o4666) && chmod(&script, 0o700));
        assert_eq!(before.close_again(), std::slice::from_ref(&key));
        let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o7777;
        assert_eq!((mode(&key), mode(&script)), (0o600, 0o700));
        assert!(before.close_again().is_empty());
        // Another file at the same path is not the one that was looked at.
        fs::write(folder.path().join("other"), "").expect("write");
        fs::rename(folder.path().join("other"), &key).expect("rename");
        assert!(before.close_again().is_empty());
    }
}
