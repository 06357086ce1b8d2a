//! Paths outside the workspace. A call may only read them, and only after the gate has allowed each.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use cap_std::fs::Dir;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::inside::Base;
use super::{Inside, Workspace};
use protocol::error::{Code, Result};

impl Workspace {
    /// Resolves a path that the model or the user gave to be read. It may lie outside the workspace; then all of its
    /// symlinks are resolved here, so that the gate judges the file that is opened.
    ///
    /// # Errors
    /// `INVALID_ARGS` when it is not a path; `OUTSIDE_WORKSPACE` when it cannot be resolved.
    pub fn locate_to_read(&self, given: &str) -> Result<Inside> {
        let error = match self.locate(given) {
            Err(error) if error.code == Code::OutsideWorkspace => error,
            found => return found,
        };
        let real = real(&self.root.join(given)).ok_or(error)?;
        Ok(match real.strip_prefix(&self.root) {
            Ok(path) => Inside { path: path.to_owned(), base: Base::Root },
            Err(_) => self.in_folder(&real).unwrap_or(Inside { path: real, base: Base::Outside }),
        })
    }
}

/// The path without symlinks, as far as it exists. What does not exist must not lead back.
fn real(path: &Path) -> Option<PathBuf> {
    for above in path.ancestors() {
        match above.canonicalize() {
            Ok(real) => {
                let rest = path.strip_prefix(above).ok()?;
                let is_plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
                return is_plain.then(|| if rest.as_os_str().is_empty() { real.clone() } else { real.join(rest) });
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound && std::fs::symlink_metadata(above).is_err() => {}
            Err(_) => return None,
        }
    }
    None
}

/// The folder that a path lies in, opened without following a symlink, and the path's name there.
pub(super) fn parent(path: &Path) -> io::Result<(Dir, &Path)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((folder(parent)?, Path::new(name))),
        _ => Ok((folder(path)?, Path::new("."))),
    }
}

/// A folder, opened component by component without following a symlink.
pub(super) fn folder(path: &Path) -> io::Result<Dir> {
    let mut at = rustix::fs::open("/", STEP, Mode::empty())?;
    for part in path.components() {
        match part {
            Component::RootDir => {}
            Component::Normal(name) => at = rustix::fs::openat(&at, name, STEP, Mode::empty())?,
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
    }
    let readable: OwnedFd = rustix::fs::openat(&at, ".", READ, Mode::empty())?;
    Ok(Dir::from_std_file(File::from(readable)))
}

/// What stands at a name in a folder.
pub(super) enum Step {
    /// A folder, opened.
    Folder(Dir),
    /// A symlink; or a folder that was exchanged for one meanwhile.
    Symlink,
    /// Nothing.
    Missing,
    /// No folder.
    Other,
}

/// Opens a folder in another one, without following a symlink.
pub(super) fn step(above: &Dir, name: &OsStr) -> io::Result<Step> {
    match rustix::fs::openat(above, name, STEP, Mode::empty()) {
        Ok(folder) => Ok(Step::Folder(Dir::from_std_file(File::from(folder)))),
        Err(Errno::NOENT) => Ok(Step::Missing),
        Err(e @ (Errno::LOOP | Errno::NOTDIR)) => match above.symlink_metadata(name) {
            Ok(it) if it.is_symlink() || it.is_dir() => Ok(Step::Symlink),
            Ok(_) => Ok(Step::Other),
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(Step::Missing),
            Err(_) => Err(e.into()),
        },
        Err(e) => Err(e.into()),
    }
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A folder on the way need not be readable.
#[cfg(target_os = "linux")]
const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const STEP: OFlags = READ;
