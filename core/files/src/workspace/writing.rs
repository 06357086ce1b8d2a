//! Changes of files: each holds its old bytes or the new ones, and a killed write leaves nothing behind.

use std::cell::Cell;
use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::Path;

use cap_std::fs::{Dir, Metadata, OpenOptions, OpenOptionsExt as _};
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;

use super::attributes::Old;
use super::{Destination, Inside, Workspace, not_regular};
use protocol::error::{Code, Error, Result};
use storage::running::{Left, Subject, path_text};

/// The start of the name of a file that is being written.
const TEMPORARY: &str = ".pixir-";

/// A file as it is to be.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    /// All bytes of it.
    pub bytes: &'a [u8],
    /// Its permission bits; `None` for those that it has, or that a new file gets.
    pub mode: Option<u32>,
    /// The bytes that it replaces, and no others; `None` where no file may be.
    pub before: Option<&'a [u8]>,
    /// Where it replaces none: a file whose owner and attributes it gets.
    pub like: Option<&'a Destination>,
}

/// The result of replacing or creating a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The file's permission bits.
    pub mode: u32,
    /// How many parent folders were created with the file.
    pub new_folders: u32,
    /// What the file before had and this one has not, as sentences.
    pub lost: Vec<String>,
}

impl Workspace {
    /// Replaces or creates a file atomically, whatever is there: it holds the old bytes or the new ones, never a mix. Folders
    /// of the path may not be symlinks.
    ///
    /// # Errors
    /// As [`Workspace::lock`] and [`Workspace::replace_at`].
    pub fn replace(&self, at: &Inside, bytes: &[u8], mode: Option<u32>) -> Result<Replaced> {
        self.check_writable(at)?;
        let to = self.exact(at);
        let _locked = self.lock(&[&to], &|| false)?;
        let before = self.read_at(&to)?;
        let before = before.as_ref().map(|before| before.bytes.as_slice());
        self.replace_at(&to, &New { bytes, mode, before, like: None })
    }

    /// Replaces or creates the file at a destination, through the folder that was judged. The caller holds the lock of the
    /// folder.
    ///
    /// # Errors
    /// `WORKSPACE_GONE`; `FILE_CHANGED` when another program has put other folders or other bytes there meanwhile,
    /// `WRITE_FAILED` when the target is a symlink, is not a regular file or the disk refuses.
    pub fn replace_at(&self, to: &Destination, new: &New<'_>) -> Result<Replaced> {
        let at = to.at();
        let name = at.path.file_name().ok_or_else(|| not_regular(at, true))?;
        self.check_there()?;
        self.note_own_write(to);
        let way = self.hold(to, true)?;
        let folder = way.folder();
        let temporary = temporary_name();
        let parent = at.path.parent().unwrap_or(Path::new(""));
        let _note = self.notes.note(Subject::File, path_text(&self.root.join(parent).join(&temporary)));
        let written = || -> io::Result<(u32, Vec<String>)> {
            let mut options = OpenOptions::new();
            // Its owner may write it until it has its mode.
            options.write(true).create_new(true).mode(new.mode.map_or(0o666, |mode| mode | 0o200));
            let mut file = folder.open_with(&temporary, &options)?.into_std();
            file.write_all(new.bytes)?;
            let old = match new.like {
                Some(like) => self.hold(like, false).ok().zip(like.at().path.file_name()),
                None => None,
            };
            let old = match &old {
                Some((way, name)) => Old::of(way.folder(), name),
                None => Old::of(folder, name),
            };
            let mut lost = Vec::new();
            if let Some(mode) = new.mode.or(old.as_ref().map(Old::mode)) {
                match &old {
                    Some(old) => lost.extend(old.carry_to(&file, mode, &at.display())?),
                    None => file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?,
                }
            }
            // The old name of a file that is moved is removed, so it has as many names as before.
            lost.extend(old.filter(|_| new.like.is_none()).into_iter().flat_map(|old| old.other_names(&at.display())));
            file.sync_all()?;
            Ok((std::os::unix::fs::MetadataExt::mode(&file.metadata()?) & 0o777, lost))
        };
        let is_swapped = Cell::new(false);
        let done = written().map_err(|e| self.io("write", at, &e)).and_then(|(mode, lost)| {
            // Writing may have taken long.
            check_kind(at, folder.symlink_metadata(name))?;
            self.check_held(to, &way)?;
            self.put(at, (folder, OsStr::new(&temporary), name), new.before, &is_swapped)?;
            Ok(Replaced { mode, new_folders: way.made, lost })
        });
        done.inspect_err(|_| {
            // Else it is the file of another program.
            if !is_swapped.get() {
                let _ = folder.remove_file(&temporary);
            }
            way.remove_made();
        })
    }

    /// Gives a new file its name, if the old one still holds the bytes that it replaces. An editor does not take the lock, so the
    /// two files are exchanged at once, and what comes out is compared: another program's bytes go back to their place.
    fn put(
        &self,
        at: &Inside,
        (folder, temporary, name): (&Dir, &OsStr, &OsStr),
        before: Option<&[u8]>,
        is_swapped: &Cell<bool>,
    ) -> Result<()> {
        self.check_holds(at, folder, name, before)?;
        let failed = |e: Errno| self.io("write", at, &e.into());
        let flags = if before.is_some() { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        let swap = || renameat_with(folder, temporary, folder, name, flags);
        match swap() {
            Ok(()) if before.is_none() => Ok(()),
            Ok(()) => {
                is_swapped.set(true);
                if let Err(error) = self.check_holds(at, folder, temporary, before) {
                    swap().map_err(failed)?;
                    is_swapped.set(false);
                    return Err(error);
                }
                let _ = folder.remove_file(temporary);
                Ok(())
            }
            // Some file systems only rename.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                folder.rename(temporary, folder, name).map_err(|e| self.io("write", at, &e))
            }
            Err(Errno::EXIST | Errno::NOENT) => Err(changed(at)),
            Err(e) => Err(failed(e)),
        }
    }

    /// Fails unless the file with this name holds these bytes, or is missing where there are none.
    fn check_holds(&self, at: &Inside, folder: &Dir, name: &OsStr, before: Option<&[u8]>) -> Result<()> {
        let now = self.read_in(at, folder, name)?;
        if now.as_ref().map(|now| now.bytes.as_slice()) == before { Ok(()) } else { Err(changed(at)) }
    }

    /// Removes a regular file that holds these bytes, and up to `folders` parent folders that are then empty, through the
    /// folder that was judged. The caller holds the lock of the folder.
    ///
    /// # Errors
    /// As [`Workspace::replace_at`].
    pub fn remove_at(&self, to: &Destination, folders: u32, before: Option<&[u8]>) -> Result<()> {
        let at = to.at();
        let name = at.path.file_name().ok_or_else(|| not_regular(at, true))?;
        self.check_there()?;
        self.note_own_write(to);
        let way = self.hold(to, false)?;
        check_kind(at, way.folder().symlink_metadata(name))?;
        self.check_holds(at, way.folder(), name, before)?;
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
        let (root, path) = self.held(at);
        match root.dir.symlink_metadata(path) {
            Err(e) if !is_absent(&e) => Err(self.io("write", at, &e)),
            found => check_kind(at, found),
        }
    }
}

fn changed(at: &Inside) -> Error {
    let shown = at.display();
    let message = format!("another program changed `{shown}` meanwhile; nothing was written");
    Error::new(Code::FileChanged, message, "read it again, then repeat the change").with("input", shown)
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

/// The name of a file that is being written.
pub(crate) fn temporary_name() -> String {
    format!("{TEMPORARY}{:032x}.tmp", uuid::Uuid::now_v7().as_u128())
}

/// Removes the temporary files that a killed pixir has left: files that it has noted before it made them, and whose names
/// only pixir gives.
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
