//! Changes of files: each holds its old bytes or the new ones, and a killed write leaves nothing behind.

use std::io::{self, Write as _};
use std::path::Path;

use cap_std::fs::{MetadataExt as _, OpenOptions, OpenOptionsExt as _, PermissionsExt as _};

use super::inside::Base;
use super::{Inside, Workspace, not_regular};
use protocol::error::{Code, Error, Result};
use storage::running::{Left, Subject, path_text};

/// The start of the name of a file that is being written.
const TEMPORARY: &str = ".pixir-";

/// The result of replacing or creating a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replaced {
    /// The file's permission bits.
    pub mode: u32,
    /// How many parent folders were created with the file.
    pub new_folders: u32,
}

impl Workspace {
    /// Replaces or creates a file atomically: it holds the old bytes or the new ones, never a mix.
    ///
    /// # Errors
    /// `WRITE_FAILED` when the target is a symlink, is not a regular file or the disk refuses; `OUTSIDE_WORKSPACE`.
    pub fn replace(&self, at: &Inside, bytes: &[u8], mode: Option<u32>) -> Result<Replaced> {
        self.check_writable(at)?;
        self.note_own_write(at);
        let new_folders = self.missing_folders(at);
        let failed = |e: &io::Error| self.io("write", at, e);
        let parent = at.path.parent().unwrap_or(Path::new(""));
        if !parent.as_os_str().is_empty() {
            self.dir.create_dir_all(parent).map_err(|e| failed(&e))?;
        }
        let folder = if parent.as_os_str().is_empty() { self.dir.try_clone() } else { self.dir.open_dir(parent) }
            .map_err(|e| failed(&e))?;
        let name = at.path.file_name().ok_or_else(|| not_regular(at, true))?;
        let temporary = format!("{TEMPORARY}{:032x}.tmp", uuid::Uuid::now_v7().as_u128());
        let _note = self.notes.note(Subject::File, path_text(&self.root.join(parent).join(&temporary)));
        let write = || -> io::Result<Replaced> {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(mode.unwrap_or(0o666));
            let mut file = folder.open_with(&temporary, &options)?;
            file.write_all(bytes)?;
            // Owner and special bits are preserved as far as the process may set them.
            let old = folder.symlink_metadata(name).ok();
            if let Some(old) = &old {
                let (uid, gid) = (rustix::fs::Uid::from_raw(old.uid()), rustix::fs::Gid::from_raw(old.gid()));
                let _ = rustix::fs::fchown(&file, Some(uid), Some(gid));
            }
            if let Some(mode) = mode {
                let special = old.map_or(0, |old| old.mode() & 0o7000);
                file.set_permissions(cap_std::fs::Permissions::from_mode(mode | special))?;
            }
            file.sync_all()?;
            let mode = file.metadata()?.mode() & 0o777;
            folder.rename(&temporary, &folder, name)?;
            Ok(Replaced { mode, new_folders })
        };
        write().map_err(|e| {
            let _ = folder.remove_file(&temporary);
            failed(&e)
        })
    }

    /// Counts the parent folders of this path that do not exist yet.
    fn missing_folders(&self, at: &Inside) -> u32 {
        let above = at.path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        let missing = above.take_while(|folder| self.dir.symlink_metadata(folder).is_err()).count();
        u32::try_from(missing).unwrap_or(u32::MAX)
    }

    /// Removes a regular file, and up to `folders` parent folders that are then empty.
    ///
    /// # Errors
    /// As [`Workspace::replace`].
    pub fn remove(&self, at: &Inside, folders: u32) -> Result<()> {
        self.check_writable(at)?;
        self.note_own_write(at);
        self.dir.remove_file(at.as_path()).map_err(|e| self.io("write", at, &e))?;
        let above = at.path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        for folder in above.take(folders as usize) {
            // A folder that is not empty cannot be removed.
            if self.dir.remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Fails where [`Workspace::replace`] would, so that the user is not asked to approve a write that cannot succeed.
    ///
    /// # Errors
    /// As [`Workspace::replace`].
    pub fn check_writable(&self, at: &Inside) -> Result<()> {
        match at.base {
            Base::Root => {}
            Base::Outputs => {
                let message = "saved outputs are read-only";
                return Err(
                    Error::new(Code::WriteFailed, message, "a path inside the workspace").with("input", at.display())
                );
            }
            Base::Outside => return Err(self.outside(&at.display())),
        }
        match self.dir.symlink_metadata(at.as_path()) {
            Ok(metadata) if metadata.is_symlink() => {
                Err(Error::new(Code::WriteFailed, format!("{} is a symlink", at.display()), "the path of its target")
                    .with("input", at.display()))
            }
            Ok(metadata) if !metadata.is_file() => {
                let mut error = not_regular(at, metadata.is_dir());
                error.code = Code::WriteFailed;
                Err(error)
            }
            Ok(_) => Ok(()),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
            Err(e) => Err(self.io("write", at, &e)),
        }
    }
}

/// Removes the temporary files that a killed pixir has left in a workspace: files that it has noted before it made them,
/// and whose names only pixir gives.
pub fn remove_left(left: &[Left]) {
    for it in left.iter().filter(|it| it.subject == Subject::File) {
        let path = it.as_path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let random = name.strip_prefix(TEMPORARY).and_then(|it| it.strip_suffix(".tmp"));
        let is_own = random.is_some_and(|it| it.len() == 32 && it.bytes().all(|b| b.is_ascii_hexdigit()));
        let is_there = std::fs::symlink_metadata(&path).is_ok_and(|it| it.is_file());
        if !is_own || !is_there || std::fs::remove_file(&path).is_ok() {
            it.settled();
        }
    }
}
