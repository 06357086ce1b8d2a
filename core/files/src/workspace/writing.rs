//! Changes of files: each holds its old bytes or the new ones, and a killed write leaves nothing behind.

use std::io::{self, Write as _};
use std::path::Path;

use cap_std::fs::{Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _, PermissionsExt as _};

use super::{Destination, Inside, Workspace, not_regular};
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
    /// Replaces or creates a file atomically: it holds the old bytes or the new ones, never a mix. Folders of the path may
    /// not be symlinks.
    ///
    /// # Errors
    /// As [`Workspace::replace_at`].
    pub fn replace(&self, at: &Inside, bytes: &[u8], mode: Option<u32>) -> Result<Replaced> {
        self.check_writable(at)?;
        self.replace_at(&self.exact(at), bytes, mode)
    }

    /// Replaces or creates the file at a destination, through the folder that was judged.
    ///
    /// # Errors
    /// `FILE_CHANGED` when another program has put other folders there meanwhile, `WRITE_FAILED` when the target is a symlink,
    /// is not a regular file or the disk refuses.
    pub fn replace_at(&self, to: &Destination, bytes: &[u8], mode: Option<u32>) -> Result<Replaced> {
        let at = to.at();
        let name = at.path.file_name().ok_or_else(|| not_regular(at, true))?;
        self.note_own_write(to);
        let way = self.hold(to, true)?;
        let folder = way.folder();
        let temporary = format!("{TEMPORARY}{:032x}.tmp", uuid::Uuid::now_v7().as_u128());
        let parent = at.path.parent().unwrap_or(Path::new(""));
        let _note = self.notes.note(Subject::File, path_text(&self.root.join(parent).join(&temporary)));
        let written = || -> io::Result<u32> {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(mode.unwrap_or(0o666));
            let mut file = folder.open_with(&temporary, &options)?;
            file.write_all(bytes)?;
            // Owner and special bits are preserved as far as the process may set them. Of a file with other names, which may
            // be a program outside, they are not: only this name gets the new bytes.
            let old = folder.symlink_metadata(name).ok().filter(|old| old.nlink() == 1);
            if let Some(old) = &old {
                let (uid, gid) = (rustix::fs::Uid::from_raw(old.uid()), rustix::fs::Gid::from_raw(old.gid()));
                let _ = rustix::fs::fchown(&file, Some(uid), Some(gid));
            }
            if let Some(mode) = mode {
                let special = old.map_or(0, |old| old.mode() & 0o7000);
                file.set_permissions(cap_std::fs::Permissions::from_mode(mode | special))?;
            }
            file.sync_all()?;
            Ok(file.metadata()?.mode() & 0o777)
        };
        let done = written().map_err(|e| self.io("write", at, &e)).and_then(|mode| {
            // Writing may have taken long.
            check_kind(at, folder.symlink_metadata(name))?;
            self.check_held(to, &way)?;
            folder.rename(&temporary, folder, name).map_err(|e| self.io("write", at, &e))?;
            Ok(Replaced { mode, new_folders: way.made })
        });
        done.inspect_err(|_| {
            let _ = folder.remove_file(&temporary);
            way.remove_made();
        })
    }

    /// Removes a regular file, and up to `folders` parent folders that are then empty. Folders of the path may not be
    /// symlinks.
    ///
    /// # Errors
    /// As [`Workspace::replace`].
    pub fn remove(&self, at: &Inside, folders: u32) -> Result<()> {
        self.check_writable(at)?;
        self.remove_at(&self.exact(at), folders)
    }

    /// The same at a destination, through the folder that was judged.
    ///
    /// # Errors
    /// As [`Workspace::replace_at`].
    pub fn remove_at(&self, to: &Destination, folders: u32) -> Result<()> {
        let at = to.at();
        let name = at.path.file_name().ok_or_else(|| not_regular(at, true))?;
        self.note_own_write(to);
        let way = self.hold(to, false)?;
        check_kind(at, way.folder().symlink_metadata(name))?;
        way.folder().remove_file(name).map_err(|e| self.io("write", at, &e))?;
        way.remove_folders(folders);
        Ok(())
    }

    /// Fails where [`Workspace::replace`] would, so that the user is not asked to approve a write that cannot succeed.
    ///
    /// # Errors
    /// As [`Workspace::replace`].
    pub fn check_writable(&self, at: &Inside) -> Result<()> {
        self.check_inside(at)?;
        match self.dir.symlink_metadata(at.as_path()) {
            Err(e) if !is_absent(&e) => Err(self.io("write", at, &e)),
            found => check_kind(at, found),
        }
    }
}

fn is_absent(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Refuses what is there and no regular file.
fn check_kind(at: &Inside, found: io::Result<Metadata>) -> Result<()> {
    match found {
        Ok(metadata) if metadata.is_symlink() => {
            Err(Error::new(Code::WriteFailed, format!("{} is a symlink", at.display()), "the path of its target")
                .with("input", at.display()))
        }
        Ok(metadata) if !metadata.is_file() => {
            let mut error = not_regular(at, metadata.is_dir());
            error.code = Code::WriteFailed;
            Err(error)
        }
        Ok(_) | Err(_) => Ok(()),
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
