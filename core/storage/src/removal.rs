//! Removing folders in which programs have written.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Removes a folder with everything in it, also folders that their owner may not write or read: toolchains close those of
/// packages, and the kernel those in which it prepares files of a cover.
///
/// # Errors
/// Those of the file system.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            open_folders(folder)?;
            fs::remove_dir_all(folder)
        }
        removed => removed,
    }
}

fn open_folders(top: &Path) -> io::Result<()> {
    let mut left = vec![top.to_owned()];
    while let Some(folder) = left.pop() {
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                left.push(entry.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: one that gives up at a folder that its owner may not write. As root every folder can be written, so there
    /// only the second part counts.
    #[test]
    fn a_closed_folder_is_removed_with_what_is_in_it() {
        let temp = tempfile::tempdir().expect("a folder");
        let top = temp.path().join("top");
        fs::create_dir_all(top.join("closed/unreadable")).expect("mkdir");
        fs::write(top.join("closed/file"), "x").expect("write");
        fs::create_dir(temp.path().join("kept")).expect("mkdir");
        fs::write(temp.path().join("kept/file"), "x").expect("write");
        std::os::unix::fs::symlink(temp.path().join("kept"), top.join("link")).expect("a link");
        let close = |path: &str, mode: u32| fs::set_permissions(top.join(path), Permissions::from_mode(mode));
        close("closed/unreadable", 0).and_then(|()| close("closed", 0o500)).expect("chmod");
        open_folders(&top).expect("they can be opened");
        assert_eq!(fs::metadata(top.join("closed/unreadable")).expect("it exists").permissions().mode() & 0o777, 0o700);
        close("closed/unreadable", 0).and_then(|()| close("closed", 0o500)).expect("chmod");
        remove_folder(&top).expect("it can be removed");
        assert!(!top.exists() && temp.path().join("kept/file").exists(), "nothing behind a link is removed");
    }
}
