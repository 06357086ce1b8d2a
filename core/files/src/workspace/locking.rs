//! A lock around the changes of files, so that two pixir in one workspace do not write over each other.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cap_std::fs::{Dir, MetadataExt as _};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::{Destination, Workspace};
use protocol::error::{Code, Error, Result};

/// How long a change waits for another program's lock.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it tries.
const PAUSE: Duration = Duration::from_millis(2);

/// The locked folders of files, until it is dropped.
#[derive(Debug)]
pub struct Locked(Vec<File>);

impl Drop for Locked {
    fn drop(&mut self) {
        // A program that is being started may hold a copy of the descriptor for a moment.
        for folder in &self.0 {
            let _ = rustix::fs::flock(folder, FlockOperation::Unlock);
        }
    }
}

impl Workspace {
    /// Locks the folders of these files (`flock`), for a look at the files and their replacement. Every pixir does that;
    /// editors do not. Where a file system has no such locks, or the folder may not be read, nothing is locked.
    ///
    /// # Errors
    /// `LEASE_HELD` where another program has locked a folder for longer than ten seconds; `COMMAND_FAILED` when the call is
    /// interrupted.
    pub fn lock(&self, files: &[&Destination], is_cancelled: &dyn Fn() -> bool) -> Result<Locked> {
        // In one order everywhere, so that no two wait for each other.
        let mut folders: BTreeMap<(u64, u64), (PathBuf, File)> = BTreeMap::new();
        for to in files {
            // A folder that is missing yet is made in the last one that is there.
            let (root, path) = self.held(to.at());
            let Ok((way, _)) = root.way(path) else { continue };
            if let Some((identity, folder)) = readable(way.folder()) {
                folders.entry(identity).or_insert((self.named(to.at(), way.path()), folder));
            }
        }
        let until = Instant::now() + PATIENCE;
        let mut locked = Locked(Vec::new());
        for (path, folder) in folders.into_values() {
            while let Err(error) = rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                match error {
                    Errno::WOULDBLOCK if is_cancelled() => return Err(interrupted()),
                    Errno::WOULDBLOCK if Instant::now() > until => return Err(held(&path)),
                    Errno::WOULDBLOCK => std::thread::park_timeout(PAUSE),
                    Errno::INTR => {}
                    _ => break,
                }
            }
            locked.0.push(folder);
        }
        Ok(locked)
    }
}

/// The folder, opened so that it can be locked, and what tells it from others.
fn readable(folder: &Dir) -> Option<((u64, u64), File)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let metadata = folder.dir_metadata().ok()?;
    let opened = rustix::fs::openat(folder, ".", flags, Mode::empty()).ok()?;
    Some(((metadata.dev(), metadata.ino()), File::from(opened)))
}

fn interrupted() -> Error {
    Error::new(Code::CommandFailed, "the call was interrupted before it began", "repeat it")
}

fn held(folder: &std::path::Path) -> Error {
    let shown = if folder.as_os_str().is_empty() { ".".into() } else { folder.display().to_string() };
    let message = format!(
        "another program has locked the folder `{shown}` (flock) for more than {} seconds; nothing was written",
        PATIENCE.as_secs()
    );
    Error::new(Code::LeaseHeld, message, "repeat the change once that program has ended").with("input", shown)
}
