//! The few operations that a Log needs from a disk. Tests use a simulated disk that fails, tears writes, loses data or
//! is slow.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::holder;
use crate::regular;

/// A disk that holds Logs.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Creates a folder and its parents, accessible to the owner only.
    fn make_folder(&self, folder: &Path) -> io::Result<()>;
    /// How long to wait for a lock.
    fn patience(&self) -> Duration;
    /// Creates a file; fails if it exists.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a file for reading and appending.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Overwrites the bytes of a file from this offset on.
    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Renames a file; fails if the new name is taken.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Adds a hard link; fails if its name is taken.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Renames a file over another one.
    fn replace(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable, so that they survive a power cut.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// One open file.
#[expect(clippy::len_without_is_empty, reason = "no caller asks whether a Log is empty")]
pub trait DiskFile: fmt::Debug + Send + Sync {
    /// Appends bytes and returns how many. Like `write`, it may write only some of them.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    fn len(&self) -> io::Result<u64>;
    fn truncate(&self, len: u64) -> io::Result<()>;
    /// Whether this file has this name.
    fn is_at(&self, path: &Path) -> io::Result<bool>;
    /// Makes the bytes durable, so that they survive a power cut.
    fn sync(&self) -> io::Result<()>;
    /// Takes the lock; returns false if another process holds it.
    fn try_lock(&self) -> io::Result<bool>;
    /// Releases the lock, even if a child process that is being started still has the file open.
    fn unlock(&self);
    /// Returns the process that holds the lock, if the system reports it.
    fn holder(&self) -> Option<u32>;
}

/// Appends all bytes, in as many writes as necessary.
pub(super) fn append_all(file: &dyn DiskFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.append(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Renames a file or a folder; fails if the new name is taken. File systems without an atomic call for it get the
/// closest equivalent.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if from.is_dir() => {
            if fs::symlink_metadata(to).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(from, to)
        }
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        Err(e) => Err(e.into()),
    }
}

/// The disk of the machine.
#[derive(Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    /// A quarter of a second: a killed writer may leave a child that holds the lock until it executes its program.
    fn patience(&self) -> Duration {
        Duration::from_millis(250)
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(regular::open(path, OpenOptions::new().read(true).append(true))?))
    }

    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        OpenOptions::new().write(true).open(path)?.write_all_at(bytes, offset)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        rename_new(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

impl DiskFile for File {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut file: &File = self;
        file.write(bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let own = self.metadata()?;
        match fs::metadata(path) {
            Ok(there) => Ok((there.dev(), there.ino()) == (own.dev(), own.ino())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn try_lock(&self) -> io::Result<bool> {
        match File::try_lock(self) {
            Ok(()) => Ok(true),
            Err(fs::TryLockError::WouldBlock) => Ok(false),
            Err(fs::TryLockError::Error(e)) => Err(e),
        }
    }

    fn unlock(&self) {
        // If unlocking fails, closing the file releases the lock.
        let _ = File::unlock(self);
    }

    fn holder(&self) -> Option<u32> {
        holder::of(self)
    }
}
