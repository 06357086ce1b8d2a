//! The Log of a Session: an append-only NDJSON file, chained line by line and locked, with its torn end repaired.
use std::io::{self, ErrorKind as IoKind};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use uuid::Uuid;

use protocol::error::{Code, Error, Result};
use protocol::event::{Beyond, Entry, Fact, SessionId, now};
use protocol::remedy::{Remedy, Sessions};

mod chain; // the checksum that ties a line to the one before it
mod disk; // the disk operations that a Log needs
#[cfg(test)]
mod faults; // tests on disks that fail, tear writes and lose data
mod holder; // the process that holds a lock
mod read; // reading and verifying lines
mod repair; // rewriting a damaged Log
mod writer; // appends that do not block the runtime

use chain::Chain;
use disk::append_all;
pub use disk::{Disk, DiskFile, RealDisk, rename_new};
pub use read::{Contents, Damage, Position, read, read_on, scan};
pub use repair::{Repair, repair};
pub use writer::{Durability, LogWriter};

/// The open Log of a Session. Its owner is the only writer.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    name: Name,
    session_id: SessionId,
    next_seq: u64,
    chain: Chain,
    /// Bytes of whole, acknowledged lines.
    len: u64,
    /// Lines written since the last sync. One can have megabytes, so none is copied.
    unsynced: Vec<String>,
    /// The position before the last append.
    before: Position,
    /// A write or a sync failed, so the end of the file may be damaged.
    doubtful: bool,
    ids: Ids,
}

/// How far the name of a Log has got.
#[derive(Debug)]
enum Name {
    /// The file of a new Log has a temporary name until its first lines are on the disk.
    Temporary,
    /// Another thread makes it durable.
    Syncing(JoinHandle<io::Result<()>>),
    /// It could not be made durable.
    Unsynced,
    /// A power cut does not lose it.
    Durable,
}

/// Creates the ids of Entries from the time and a hash of a random seed and a counter. Reading the seed once saves a
/// system call per Entry.
#[derive(Debug)]
struct Ids {
    seed: [u8; 32],
    next: u64,
}

impl Ids {
    fn new() -> Ids {
        let mut seed = [0; 32];
        seed[..16].copy_from_slice(Uuid::now_v7().as_bytes());
        seed[16..].copy_from_slice(Uuid::now_v7().as_bytes());
        Ids { seed, next: 0 }
    }

    fn next(&mut self, millis: i64) -> Uuid {
        self.next += 1;
        let hash = blake3::keyed_hash(&self.seed, &self.next.to_le_bytes());
        let mut bits = [0; 10];
        bits.copy_from_slice(&hash.as_bytes()[..10]);
        uuid::Builder::from_unix_timestamp_millis(u64::try_from(millis).unwrap_or(0), &bits).into_uuid()
    }
}

impl Log {
    /// Creates the file of a new Session and its folder, both accessible to the owner only.
    /// Other processes cannot find the file before it is [established](Log::establish).
    ///
    /// # Errors
    /// `LOG_WRITE_FAILED` when the state folder cannot be written.
    pub fn create(path: &Path, session_id: SessionId) -> Result<Log> {
        Log::create_on(Arc::new(RealDisk), path, session_id)
    }

    pub fn create_on(disk: Arc<dyn Disk>, path: &Path, session_id: SessionId) -> Result<Log> {
        let temporary = temporary(path);
        let make = || -> io::Result<Arc<dyn DiskFile>> {
            disk.make_folder(path.parent().expect("a log lies in a folder"))?;
            let file = disk.create(&temporary)?;
            file.try_lock()?;
            Ok(file)
        };
        let file = make().map_err(|e| write_failed(path, &e))?;
        Ok(Log {
            disk,
            file,
            path: path.to_owned(),
            name: Name::Temporary,
            session_id,
            next_seq: 0,
            chain: Chain::default(),
            len: 0,
            unsynced: Vec::new(),
            before: Position::default(),
            doubtful: false,
            ids: Ids::new(),
        })
    }

    /// Gives a new Log its name, once its first lines are on the disk, and makes the name durable.
    ///
    /// # Errors
    /// `LOG_WRITE_FAILED`.
    pub fn establish(&mut self) -> Result<()> {
        self.appear()?;
        self.sync()
    }

    /// Gives a new Log its name, once its first lines are on the disk. Another thread makes the name durable; the next
    /// [`Log::sync`] waits for it, so nothing is acknowledged before.
    ///
    /// # Errors
    /// `LOG_WRITE_FAILED`.
    pub fn appear(&mut self) -> Result<()> {
        self.sync()?;
        if matches!(self.name, Name::Temporary) {
            let renamed = self.disk.rename_new(&temporary(&self.path), &self.path);
            renamed.map_err(|e| write_failed(&self.path, &e))?;
            let (disk, folder) = (Arc::clone(&self.disk), self.folder().to_owned());
            let syncing = thread::Builder::new().name("sync-name".into()).spawn(move || disk.sync_folder(&folder));
            self.name = syncing.map_or(Name::Unsynced, Name::Syncing);
        }
        Ok(())
    }

    /// Waits until the name is durable. A name that could not be made durable is tried again.
    fn sync_name(&mut self) -> io::Result<()> {
        let synced = match mem::replace(&mut self.name, Name::Unsynced) {
            is_new @ Name::Temporary => {
                self.name = is_new;
                return Ok(());
            }
            Name::Syncing(syncing) => syncing.join().unwrap_or_else(|_| self.disk.sync_folder(self.folder())),
            Name::Unsynced => self.disk.sync_folder(self.folder()),
            Name::Durable => Ok(()),
        };
        if synced.is_ok() {
            self.name = Name::Durable;
        }
        synced
    }

    fn folder(&self) -> &Path {
        self.path.parent().expect("a log lies in a folder")
    }

    /// The path at which the file is now.
    fn current_path(&self) -> PathBuf {
        if matches!(self.name, Name::Temporary) { temporary(&self.path) } else { self.path.clone() }
    }

    /// Opens a Log for writing: takes the lock, moves a torn end aside, reads all Entries.
    ///
    /// # Errors
    /// `SESSION_LOCKED` when another process writes it, `CORRUPT_LOG_LINE` when a line before the end is damaged
    /// (then the Log can only be read), `SESSION_READ_ONLY` when it may not be written, `LOG_READ_FAILED` or `LOG_WRITE_FAILED`.
    pub fn open(path: &Path, session_id: SessionId) -> Result<(Log, Contents)> {
        Log::open_on(Arc::new(RealDisk), path, session_id)
    }

    pub fn open_on(disk: Arc<dyn Disk>, path: &Path, session_id: SessionId) -> Result<(Log, Contents)> {
        let file = open_locked(&*disk, path, &session_id)?;
        let contents = read::contents(&*file, Some(&session_id)).map_err(|e| unreadable(path, &e))?.judged();
        if let Some(damage) = contents.damage.first() {
            return Err(damage.error(path));
        }
        let mut log = Log {
            disk,
            file,
            path: path.to_owned(),
            name: Name::Durable,
            session_id,
            next_seq: contents.next_seq,
            chain: contents.chain,
            len: contents.valid_len,
            unsynced: Vec::new(),
            before: Position::default(),
            doubtful: false,
            ids: Ids::new(),
        };
        log.mend_end(&contents).map_err(|e| unwritable(&e).unwrap_or_else(|| write_failed(path, &e)))?;
        Ok((log, contents))
    }

    fn mend_end(&mut self, contents: &Contents) -> io::Result<()> {
        if contents.missing_newline {
            append_all(&*self.file, b"\n")?;
            self.len += 1;
        } else if contents.torn > 0 {
            self.put_aside()?;
            self.file.truncate(self.len)?;
        }
        // A killed writer may have acknowledged lines that it never synced. New lines depend on them.
        self.file.sync()
    }

    /// Moves the torn end into a file beside the Log. An interrupted earlier attempt may have left part of that file.
    fn put_aside(&self) -> io::Result<()> {
        let aside = self.path.with_extension(format!("torn-{}", self.len));
        if let Err(e) = self.disk.remove(&aside)
            && e.kind() != IoKind::NotFound
        {
            return Err(e);
        }
        let file = self.disk.create(&aside)?;
        let mut piece = vec![0; 1 << 20];
        let mut at = self.len;
        loop {
            match self.file.read_at(at, &mut piece)? {
                0 => break,
                n => append_all(&*file, &piece[..n])?,
            }
            at = self.len + file.len()?;
        }
        file.sync()?;
        self.disk.sync_folder(self.folder())
    }

    /// Records a fact: one whole line, written before the entry is returned, and so before it can be published.
    ///
    /// # Errors
    /// `LOG_ENCODE_FAILED` or `LOG_WRITE_FAILED`. Then nothing is acknowledged, and a later append may succeed.
    pub fn append(&mut self, turn: Option<u32>, fact: Fact) -> Result<Arc<Entry>> {
        self.write(turn, fact, None)
    }

    /// Appends a copy of an Entry of another Log, with `fact` in place of its own. The parts that this build does not
    /// understand are copied byte for byte. `changed` names the fields of `data` in which the copy differs.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn append_copy(&mut self, turn: Option<u32>, of: &Entry, fact: Fact, changed: &[&str]) -> Result<Arc<Entry>> {
        let beyond = of.beyond.as_ref().map(|beyond| beyond.of_copy(&fact, changed)).transpose()?;
        self.write(turn, fact, beyond.map(Box::new))
    }

    fn write(&mut self, turn: Option<u32>, fact: Fact, beyond: Option<Box<Beyond>>) -> Result<Arc<Entry>> {
        let ts = now();
        let entry = Entry {
            id: self.ids.next(ts.as_millisecond()),
            session_id: self.session_id.clone(),
            seq: self.next_seq,
            ts,
            turn,
            fact,
            beyond,
        };
        let mut line = entry.encode()?;
        if line.len() > read::MAX_LINE - 64 {
            return Err(Error::new(
                Code::LogEncodeFailed,
                format!("a {} of {} MB is too large for the session log", entry.fact.kind(), line.len() >> 20),
                "put it into a file, and refer to the file",
            ));
        }
        let chain = chain::seal(self.chain, &mut line);
        if self.doubtful {
            self.recover()?;
        }
        if let Err(e) = append_all(&*self.file, line.as_bytes()) {
            // Remove the part of the line that was written.
            self.doubtful = self.file.truncate(self.len).is_err();
            return Err(write_failed(&self.path, &e));
        }
        self.before = self.position();
        self.len += line.len() as u64;
        self.chain = chain;
        self.next_seq += 1;
        self.unsynced.push(line);
        Ok(Arc::new(entry))
    }

    /// Makes all lines durable, so that they survive a power cut. Costs nothing if no line is new.
    ///
    /// # Errors
    /// `LOG_WRITE_FAILED`. The next append first writes the unsynced lines again and verifies the file.
    pub fn sync(&mut self) -> Result<()> {
        // Needed even without new lines: a line that was taken back must be gone, and the others must be durable.
        if self.doubtful {
            return self.recover();
        }
        if self.unsynced.is_empty() {
            return self.sync_name().map_err(|e| write_failed(&self.path, &e));
        }
        let path = self.current_path();
        if !self.file.is_at(&path).map_err(|e| write_failed(&self.path, &e))? {
            return Err(moved_away(&path));
        }
        match self.file.sync().and_then(|()| self.sync_name()) {
            Ok(()) => {
                self.unsynced = Vec::new();
                Ok(())
            }
            Err(e) => {
                self.doubtful = true;
                Err(write_failed(&self.path, &e))
            }
        }
    }

    /// Takes back the last append, whose sync failed and which was not published. The next append removes it from the
    /// file.
    pub fn take_back(&mut self) {
        let before = self.before;
        if self.len > before.bytes {
            self.unsynced.pop();
        }
        (self.len, self.chain, self.next_seq) = (before.bytes, before.chain(), before.next_seq());
        self.doubtful = true;
    }

    /// Recovers from a failed write or sync. After a failed sync, the kernel may mark pages as clean that never reached
    /// the disk, and still return their bytes. So the lines since the last good sync are written again at their
    /// offsets, and the whole file is verified.
    fn recover(&mut self) -> Result<()> {
        let failed = |e: io::Error| write_failed(&self.path, &e);
        let path = self.current_path();
        // The same handle must stay open, because it holds the lock.
        let file = &self.file;
        if !file.is_at(&path).map_err(failed)? {
            return Err(moved_away(&path));
        }
        if file.len().map_err(failed)? > self.len {
            file.truncate(self.len).map_err(failed)?;
        }
        let again = self.unsynced.concat().into_bytes();
        self.disk.rewrite(&path, self.len - again.len() as u64, &again).map_err(failed)?;
        file.sync().map_err(failed)?;
        let contents = read::contents(&**file, Some(&self.session_id)).map_err(failed)?;
        if contents.position() != self.position() || !contents.damage.is_empty() {
            return Err(Error::new(
                Code::LogWriteFailed,
                format!("the session log lost entries after seq {}", contents.next_seq.saturating_sub(1)),
                Remedy::steps([
                    "free space or check the disk".into(),
                    Remedy::Resume { id: self.session_id.to_string() },
                ]),
            ));
        }
        self.unsynced = Vec::new();
        self.doubtful = false;
        self.sync_name().map_err(|e| write_failed(&self.path, &e))
    }

    /// Updates the path after the open file was renamed.
    pub fn moved(&mut self, to: &Path) {
        to.clone_into(&mut self.path);
    }

    /// Whether the end of the file may be damaged after a failed write or sync. The next append repairs it first.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    /// The path of the file, or its future path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the next Entry.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// The end of the acknowledged lines.
    pub fn position(&self) -> Position {
        Position::new(self.len, self.chain, self.next_seq)
    }
}

impl Drop for Log {
    /// A Log that was never established leaves no file behind. Any other Log can be opened again immediately.
    fn drop(&mut self) {
        if matches!(self.name, Name::Temporary) {
            let _ = self.disk.remove(&temporary(&self.path));
        }
        self.file.unlock();
    }
}

/// The temporary name of a Log that is not established yet.
fn temporary(path: &Path) -> PathBuf {
    path.with_extension("begun")
}

fn lock(disk: &dyn Disk, file: &dyn DiskFile, path: &Path, id: &SessionId) -> Result<()> {
    let until = Instant::now() + disk.patience();
    loop {
        match file.try_lock() {
            Ok(true) => return Ok(()),
            Ok(false) if Instant::now() < until => thread::park_timeout(Duration::from_millis(4)),
            Ok(false) => break,
            Err(e) => return Err(write_failed(path, &e)),
        }
    }
    let holder = file.holder();
    let by = holder.map_or(String::new(), |pid| format!(" by process {pid}"));
    Err(Error::new(
        Code::SessionLocked,
        format!("this session is open for writing{by}"),
        Remedy::any_of(["close it there".into(), Remedy::OpenReadOnly { id: id.to_string() }]),
    )
    .with("pid", holder))
}

/// Opens and locks the file with this name. While this process waits for the lock, a repair may give the name to
/// another file.
fn open_locked(disk: &dyn Disk, path: &Path, id: &SessionId) -> Result<Arc<dyn DiskFile>> {
    for _ in 0..3 {
        let file = disk.open(path).map_err(|e| unwritable(&e).unwrap_or_else(|| read_failed(path, &e)))?;
        lock(disk, &*file, path, id)?;
        if file.is_at(path).map_err(|e| unreadable(path, &e))? {
            return Ok(file);
        }
    }
    Err(Error::new(Code::LogReadFailed, "another process keeps replacing the session log", "try again"))
}

fn moved_away(name: &Path) -> Error {
    Error::new(
        Code::LogWriteFailed,
        "the session log was moved or removed while it was open",
        format!("put {} back, then send the message again", name.display()),
    )
    .with("log", name.display().to_string())
}

fn write_failed(path: &Path, e: &io::Error) -> Error {
    let fix = match e.kind() {
        IoKind::StorageFull | IoKind::QuotaExceeded => "free some space, then send the message again".into(),
        IoKind::PermissionDenied | IoKind::ReadOnlyFilesystem => {
            Remedy::steps([Remedy::CheckStateFolder, "make it writable".into()])
        }
        _ => Remedy::steps([Remedy::CheckStateFolder, "check the disk that holds it".into()]),
    };
    Error::new(Code::LogWriteFailed, format!("write the session log: {e}"), fix).with("log", path.display().to_string())
}

/// The error of a Log that this user may not write, if that is what the system says. It can still be read.
fn unwritable(e: &io::Error) -> Option<Error> {
    let is_forbidden = matches!(e.kind(), IoKind::PermissionDenied | IoKind::ReadOnlyFilesystem);
    is_forbidden.then(|| {
        let fix = Remedy::steps([Remedy::CheckStateFolder, "make the session log and its folder writable".into()]);
        Error::new(Code::SessionReadOnly, format!("the session log cannot be written: {e}"), fix)
    })
}

fn read_failed(path: &Path, e: &io::Error) -> Error {
    if e.kind() == IoKind::NotFound {
        return Error::new(
            Code::SessionNotFound,
            "there is no session with that id in this workspace",
            Remedy::ListSessions { which: Sessions::All },
        );
    }
    unreadable(path, e)
}

fn unreadable(path: &Path, e: &io::Error) -> Error {
    let fix = match e.kind() {
        IoKind::InvalidInput => "move it to another folder",
        _ => "check the file's owner and permissions",
    };
    Error::new(Code::LogReadFailed, format!("read the session log: {e}"), fix).with("log", path.display().to_string())
}
