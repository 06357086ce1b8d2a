//! A simulated disk in memory: what processes see, what survives a power cut, and operations that fail on request.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::log::disk::{Disk, DiskFile};
use parking_lot::{Mutex, MutexGuard};

/// The unit in which a disk writes.
const BLOCK: usize = 512;

pub(super) struct Rng(pub(super) u64);

impl Rng {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() >> 11).expect("53 bits") % n.max(1)
    }

    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// A file's bytes in the page cache, where every process sees them, and on the platter.
#[derive(Debug, Default, Clone)]
pub(super) struct Inode {
    pub(super) cache: Vec<u8>,
    platter: Vec<u8>,
    dirty: Vec<bool>,
    locked: Option<u64>,
}

impl Inode {
    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        if self.cache.len() < end {
            self.cache.resize(end, 0);
            self.dirty.resize(end, true);
        }
        self.cache[at..end].copy_from_slice(bytes);
        self.dirty[at..end].fill(true);
    }

    /// Writes the dirty bytes of a block to the platter.
    fn flush(&mut self, from: usize, to: usize) {
        if self.platter.len() < to {
            self.platter.resize(to, 0);
        }
        for at in from..to {
            if self.dirty[at] {
                self.platter[at] = self.cache[at];
                self.dirty[at] = false;
            }
        }
    }
}

#[derive(Debug, Clone)]
enum NameChange {
    Set(PathBuf, usize),
    Remove(PathBuf),
}

#[derive(Debug)]
pub(super) struct Sim {
    pub(super) inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    /// Changes of names that no sync has made durable yet, in order.
    journal: Vec<NameChange>,
    rng: u64,
    boot: u64,
    next_handle: u64,
    pub(super) operations: u64,
    /// Which operation fails, whether all later ones fail too, and with which `errno`.
    pub(super) fail_at: Option<(u64, bool, i32)>,
}

#[derive(Debug, Clone)]
pub(super) struct SimDisk(Arc<Mutex<Sim>>);

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: usize,
    handle: u64,
    boot: u64,
}

impl SimDisk {
    pub(super) fn new(seed: u64) -> SimDisk {
        SimDisk(Arc::new(Mutex::new(Sim {
            inodes: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            journal: Vec::new(),
            rng: seed | 1,
            boot: 0,
            next_handle: 0,
            operations: 0,
            fail_at: None,
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Sim> {
        self.0.lock()
    }

    /// Adds bytes to a file, as another program would.
    pub(super) fn add(&self, path: &Path, bytes: &[u8]) {
        let mut sim = self.lock();
        let inode = sim.find(path).expect("it is there");
        let end = sim.inodes[inode].cache.len();
        sim.inodes[inode].put(end, bytes);
    }

    /// Kills every process. The machine continues, so the page cache survives.
    pub(super) fn kill(&self) {
        let mut sim = self.lock();
        sim.boot += 1;
        sim.inodes.iter_mut().for_each(|inode| inode.locked = None);
    }

    /// Cuts the power. Of data that was not synced, any set of blocks may survive; of name changes, any prefix of the
    /// journal.
    pub(super) fn lose_power(&self) {
        self.kill();
        let mut sim = self.lock();
        let mut rng = Rng(sim.rng);
        let kept = rng.below(sim.journal.len() + 1);
        let journal = std::mem::take(&mut sim.journal);
        for change in journal.into_iter().take(kept) {
            match change {
                NameChange::Set(path, inode) => drop(sim.durable_names.insert(path, inode)),
                NameChange::Remove(path) => drop(sim.durable_names.remove(&path)),
            }
        }
        sim.names = sim.durable_names.clone();
        for inode in &mut sim.inodes {
            let blocks = inode.cache.len().div_ceil(BLOCK);
            // A file system may record the new size before the data.
            let size_first = rng.one_in(3);
            let cut_first = rng.one_in(2);
            for block in 0..blocks {
                let (from, to) = (block * BLOCK, ((block + 1) * BLOCK).min(inode.cache.len()));
                if rng.one_in(2) {
                    inode.flush(from, to);
                }
            }
            if size_first && inode.platter.len() < inode.cache.len() {
                inode.platter.resize(inode.cache.len(), 0);
            }
            if cut_first && inode.platter.len() > inode.cache.len() {
                inode.platter.truncate(inode.cache.len());
            }
            inode.cache = inode.platter.clone();
            inode.dirty = vec![false; inode.cache.len()];
        }
        sim.rng = rng.next() | 1;
    }

    fn handle(&self, inode: usize) -> Arc<dyn DiskFile> {
        let mut sim = self.lock();
        sim.next_handle += 1;
        Arc::new(SimFile { disk: self.clone(), inode, handle: sim.next_handle, boot: sim.boot })
    }
}

impl Sim {
    fn tick(&mut self) -> io::Result<()> {
        self.operations += 1;
        match self.fail_at {
            Some((at, sticky, errno)) if self.operations == at || (sticky && self.operations > at) => {
                Err(io::Error::from_raw_os_error(errno))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change(&mut self, change: NameChange) {
        match change.clone() {
            NameChange::Set(path, inode) => drop(self.names.insert(path, inode)),
            NameChange::Remove(path) => drop(self.names.remove(&path)),
        }
        self.journal.push(change);
    }
}

impl Disk for SimDisk {
    fn patience(&self) -> Duration {
        Duration::ZERO
    }

    fn make_folder(&self, _: &Path) -> io::Result<()> {
        self.lock().tick()
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut sim = self.lock();
        sim.tick()?;
        if sim.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        sim.inodes.push(Inode::default());
        let inode = sim.inodes.len() - 1;
        sim.change(NameChange::Set(path.to_owned(), inode));
        drop(sim);
        Ok(self.handle(inode))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut sim = self.lock();
        sim.tick()?;
        let inode = sim.find(path)?;
        drop(sim);
        Ok(self.handle(inode))
    }

    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut sim = self.lock();
        sim.tick()?;
        let inode = sim.find(path)?;
        sim.inodes[inode].put(usize::try_from(offset).expect("small"), bytes);
        Ok(())
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.link(from, to)?;
        self.lock().change(NameChange::Remove(from.to_owned()));
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut sim = self.lock();
        sim.tick()?;
        if sim.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = sim.find(from)?;
        sim.change(NameChange::Set(to.to_owned(), inode));
        Ok(())
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut sim = self.lock();
        sim.tick()?;
        let inode = sim.find(from)?;
        sim.change(NameChange::Set(to.to_owned(), inode));
        sim.change(NameChange::Remove(from.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut sim = self.lock();
        sim.tick()?;
        sim.find(path)?;
        sim.change(NameChange::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        let mut sim = self.lock();
        sim.tick()?;
        sim.journal.clear();
        sim.durable_names = sim.names.clone();
        Ok(())
    }
}

impl SimFile {
    fn with<T>(&self, work: impl FnOnce(&mut Sim) -> io::Result<T>) -> io::Result<T> {
        let mut sim = self.disk.lock();
        if sim.boot != self.boot {
            return Err(io::Error::other("the process that opened it is dead"));
        }
        work(&mut sim)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.unlock();
    }
}

impl DiskFile for SimFile {
    fn unlock(&self) {
        let mut sim = self.disk.lock();
        if sim.boot == self.boot && sim.inodes[self.inode].locked == Some(self.handle) {
            sim.inodes[self.inode].locked = None;
        }
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|sim| {
            let mut rng = Rng(sim.rng);
            let failed = sim.tick();
            // A write may be short, and a failed write may have written part of the bytes.
            let n = if failed.is_err() || rng.one_in(20) { rng.below(bytes.len() + 1) } else { bytes.len() };
            sim.rng = rng.0 | 1;
            let inode = &mut sim.inodes[self.inode];
            let end = inode.cache.len();
            inode.put(end, &bytes[..n]);
            failed?;
            if n == 0 { Err(io::ErrorKind::Interrupted.into()) } else { Ok(n) }
        })
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.with(|sim| {
            let cache = &sim.inodes[self.inode].cache;
            let from = usize::try_from(offset).expect("small").min(cache.len());
            let n = buffer.len().min(cache.len() - from);
            buffer[..n].copy_from_slice(&cache[from..from + n]);
            Ok(n)
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.with(|sim| Ok(sim.inodes[self.inode].cache.len() as u64))
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.with(|sim| {
            sim.tick()?;
            let inode = &mut sim.inodes[self.inode];
            inode.cache.truncate(usize::try_from(len).expect("small"));
            inode.dirty.truncate(inode.cache.len());
            Ok(())
        })
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.with(|sim| Ok(sim.find(path).is_ok_and(|inode| inode == self.inode)))
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|sim| {
            let failed = sim.tick();
            let mut rng = Rng(sim.rng);
            let inode = &mut sim.inodes[self.inode];
            let len = inode.cache.len();
            for from in (0..len).step_by(BLOCK) {
                let to = (from + BLOCK).min(len);
                if failed.is_ok() || rng.one_in(2) {
                    inode.flush(from, to);
                }
                // After a failed sync the kernel marks the page as clean, even if it was not written.
                inode.dirty[from..to].fill(false);
            }
            if failed.is_ok() {
                inode.platter.truncate(len);
            }
            sim.rng = rng.0 | 1;
            failed
        })
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.with(|sim| {
            sim.tick()?;
            let inode = &mut sim.inodes[self.inode];
            let free = inode.locked.is_none_or(|handle| handle == self.handle);
            if free {
                inode.locked = Some(self.handle);
            }
            Ok(free)
        })
    }

    fn holder(&self) -> Option<u32> {
        None
    }
}
