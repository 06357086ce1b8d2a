//! The append-only truth of one Session: NDJSON, chained line by line, locked, repaired at its torn end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind as IoKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::error::{Code, Error, Result};
use crate::event::{Entry, Fact, SessionId, now};

mod holder; // which process holds a lock

/// The first 128 bits of BLAKE3(previous chain ‖ this line without its chain).
type Chain = [u8; 16];

const CHAIN_KEY: &str = ",\"chain\":\"";
/// `,"chain":"` + 32 hex + `"}`.
const CHAIN_SUFFIX: usize = CHAIN_KEY.len() + 32 + 2;

/// The open Log of a Session, held by its one writer.
#[derive(Debug)]
pub struct Log {
    file: File,
    path: PathBuf,
    session_id: SessionId,
    next_seq: u64,
    chain: Chain,
    /// Bytes of whole, acknowledged lines.
    len: u64,
    unsynced: bool,
    /// How things stood before the last append.
    before: (u64, Chain, u64),
    /// A write or sync failed and the file's end is not known to be good.
    doubtful: bool,
}

/// What a Log file holds, read without changing it.
#[derive(Debug, Default)]
pub struct Contents {
    /// The entries that could be read, in order.
    pub entries: Vec<Arc<Entry>>,
    /// What could not: line number from 1, and why.
    pub damage: Vec<Damage>,
    /// Bytes after the last whole line: a write that was cut off.
    pub torn: u64,
    valid_len: u64,
    chain: Chain,
    next_seq: u64,
    /// The last bytes are a whole entry that only lacks its newline.
    missing_newline: bool,
}

/// A line that could not be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// From 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
}

impl Damage {
    /// The failure that a person is told.
    pub fn error(&self, path: &Path) -> Error {
        Error::new(
            Code::CorruptLogLine,
            format!(
                "line {} of the session log is damaged ({}); the session is open for reading only",
                self.line, self.reason
            ),
            "start a new session with /new; nothing in this log was changed",
        )
        .with("line", self.line)
        .with("log", path.display().to_string())
    }
}

impl Log {
    /// Makes the file of a new Session; the folder is made too, both for their owner alone.
    ///
    /// # Errors
    /// `LOG_WRITE_FAILED` when the state folder cannot be written.
    pub fn create(path: &Path, session_id: SessionId) -> Result<Log> {
        let make = || -> io::Result<File> {
            let folder = path.parent().expect("a log lies in a folder");
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)?;
            file.try_lock().map_err(io::Error::from)?;
            // The name is durable before anything that is recorded under it.
            File::open(folder)?.sync_all()?;
            Ok(file)
        };
        let file = make().map_err(|e| write_failed(path, &e))?;
        Ok(Log {
            file,
            path: path.to_owned(),
            session_id,
            next_seq: 0,
            chain: Chain::default(),
            len: 0,
            unsynced: false,
            before: Default::default(),
            doubtful: false,
        })
    }

    /// Opens a Log to continue it: takes the lock, moves a torn end aside, reads everything.
    ///
    /// # Errors
    /// `SESSION_LOCKED` when another process writes it, `CORRUPT_LOG_LINE` when a line before the end
    /// is damaged (then it can only be read), `LOG_READ_FAILED` or `LOG_WRITE_FAILED`.
    pub fn open(path: &Path, session_id: SessionId) -> Result<(Log, Contents)> {
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(|e| read_failed(path, &e))?;
        lock(&file, path)?;
        let contents = read(path)?;
        if let Some(damage) = contents.damage.first() {
            return Err(damage.error(path));
        }
        let mut log = Log {
            file,
            path: path.to_owned(),
            session_id,
            next_seq: contents.next_seq,
            chain: contents.chain,
            len: contents.valid_len,
            unsynced: false,
            before: Default::default(),
            doubtful: false,
        };
        log.mend_end(&contents).map_err(|e| write_failed(path, &e))?;
        Ok((log, contents))
    }

    fn mend_end(&mut self, contents: &Contents) -> io::Result<()> {
        if contents.missing_newline {
            self.file.write_all(b"\n")?;
        } else if contents.torn > 0 {
            let mut tail = vec![0; usize::try_from(contents.torn).unwrap_or(usize::MAX)];
            self.file.read_exact_at(&mut tail, contents.valid_len)?;
            let aside = self.path.with_extension(format!("torn-{}", contents.valid_len));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside) {
                Ok(mut file) => {
                    file.write_all(&tail)?;
                    file.sync_all()?;
                }
                // An earlier repair was cut off after it had saved the same bytes.
                Err(e) if e.kind() == IoKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
            self.file.set_len(contents.valid_len)?;
        } else {
            return Ok(());
        }
        self.file.sync_all()
    }

    /// Records a fact: one whole line, written before it is returned, and so before anyone hears of it.
    ///
    /// # Errors
    /// `LOG_ENCODE_FAILED`, or `LOG_WRITE_FAILED`; then nothing was acknowledged, and a later append may succeed.
    pub fn append(&mut self, turn: Option<u32>, fact: Fact) -> Result<Arc<Entry>> {
        let entry = Entry {
            id: Uuid::now_v7(),
            session_id: self.session_id.clone(),
            seq: self.next_seq,
            ts: now(),
            turn,
            fact,
        };
        let bare = entry.encode()?;
        let chain = link(self.chain, bare.as_bytes());
        let mut line = bare;
        line.truncate(line.len() - 1);
        line.push_str(CHAIN_KEY);
        push_hex(&mut line, chain);
        line.push_str("\"}\n");

        if self.doubtful {
            self.recover()?;
        }
        if let Err(e) = self.file.write_all(line.as_bytes()) {
            // Take the part back that was written, as if nothing had been.
            self.doubtful = self.file.set_len(self.len).is_err();
            return Err(write_failed(&self.path, &e));
        }
        self.before = (self.len, self.chain, self.next_seq);
        self.len += line.len() as u64;
        self.chain = chain;
        self.next_seq += 1;
        self.unsynced = true;
        Ok(Arc::new(entry))
    }

    /// Makes everything recorded so far survive a power cut. Free when nothing is new.
    ///
    /// # Errors
    /// `LOG_WRITE_FAILED`; the file is opened anew and its end checked before the next append.
    pub fn sync(&mut self) -> Result<()> {
        if !self.unsynced {
            return Ok(());
        }
        match self.file.sync_data() {
            Ok(()) => {
                self.unsynced = false;
                Ok(())
            }
            Err(e) => {
                self.doubtful = true;
                Err(write_failed(&self.path, &e))
            }
        }
    }

    /// Forgets the last append, of which nobody has heard: its sync failed. The file follows before the next.
    pub fn take_back(&mut self) {
        (self.len, self.chain, self.next_seq) = self.before;
        self.doubtful = true;
    }

    /// After a failed sync the kernel may have dropped what it could not write, so the file is read again.
    fn recover(&mut self) -> Result<()> {
        let failed = |e: std::io::Error| write_failed(&self.path, &e);
        let file = OpenOptions::new().read(true).append(true).open(&self.path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() > self.len {
            file.set_len(self.len).map_err(failed)?;
        }
        let contents = read(&self.path)?;
        if contents.next_seq < self.next_seq || contents.chain != self.chain {
            return Err(Error::new(
                Code::LogWriteFailed,
                format!("the session log lost entries after seq {}", contents.next_seq.saturating_sub(1)),
                format!("free space or check the disk, then: pixir resume {}", self.session_id),
            ));
        }
        // The old descriptor holds the lock; it is released as the new one takes its place.
        let _ = self.file.unlock();
        lock(&file, &self.path)?;
        self.file = file;
        self.doubtful = false;
        Ok(())
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The sequence number that the next entry gets.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }
}

/// Reads a Log without a lock and without changing it; what cannot be read is said, never hidden.
///
/// # Errors
/// `LOG_READ_FAILED` when the file cannot be read at all.
pub fn read(path: &Path) -> Result<Contents> {
    let bytes = fs::read(path).map_err(|e| read_failed(path, &e))?;
    Ok(parse(&bytes))
}

fn parse(bytes: &[u8]) -> Contents {
    let mut it = Contents::default();
    let mut start = 0;
    let mut line_number = 0;
    while start < bytes.len() {
        let end = bytes[start..].iter().position(|b| *b == b'\n').map(|i| start + i);
        let line = &bytes[start..end.unwrap_or(bytes.len())];
        line_number += 1;
        match parse_line(line, it.chain, it.next_seq) {
            Ok((entry, chain)) => {
                it.missing_newline = end.is_none();
                it.next_seq = entry.seq + 1;
                it.chain = chain;
                it.entries.push(Arc::new(entry));
            }
            // Without its newline it was never acknowledged.
            Err(_) if end.is_none() => {
                it.torn = (bytes.len() - start) as u64;
                break;
            }
            Err(bad) => {
                it.damage.push(Damage { line: line_number, reason: bad.reason });
                // The chain is judged anew from the next line that can be read.
                it.chain = bad.chain.unwrap_or_default();
                it.next_seq += 1;
                if let Some(entry) = bad.entry {
                    it.next_seq = entry.seq + 1;
                    it.entries.push(Arc::from(entry));
                }
            }
        }
        start = end.map_or(bytes.len(), |end| end + 1);
        it.valid_len = start as u64;
    }
    it
}

struct BadLine {
    reason: String,
    chain: Option<Chain>,
    /// It can be read, but not trusted.
    entry: Option<Box<Entry>>,
}

fn parse_line(line: &[u8], previous: Chain, seq: u64) -> Result<(Entry, Chain), BadLine> {
    let bad = |reason: &str| BadLine { reason: reason.to_owned(), chain: None, entry: None };
    let text = std::str::from_utf8(line).map_err(|_| bad("not UTF-8"))?;
    let cut = text
        .len()
        .checked_sub(CHAIN_SUFFIX)
        .filter(|cut| text.is_char_boundary(*cut))
        .ok_or_else(|| bad("too short"))?;
    let (head, tail) = text.split_at(cut);
    let hex = tail.strip_prefix(CHAIN_KEY).and_then(|t| t.strip_suffix("\"}")).ok_or_else(|| bad("no chain"))?;
    let claimed = parse_hex(hex).ok_or_else(|| bad("no chain"))?;
    let bare = format!("{head}}}");
    let entry = Entry::decode(&bare).map_err(|e| bad(&format!("not an entry: {e}")))?;
    if link(previous, bare.as_bytes()) != claimed {
        return Err(BadLine {
            reason: "its chain does not follow from the line before".into(),
            chain: Some(claimed),
            entry: Some(Box::new(entry)),
        });
    }
    if entry.seq != seq {
        return Err(BadLine {
            reason: format!("seq {} where {seq} belongs", entry.seq),
            chain: Some(claimed),
            entry: Some(Box::new(entry)),
        });
    }
    Ok((entry, claimed))
}

fn link(previous: Chain, line: &[u8]) -> Chain {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&previous);
    hasher.update(line);
    let mut chain = Chain::default();
    chain.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    chain
}

fn push_hex(line: &mut String, chain: Chain) {
    for byte in chain {
        for digit in [byte >> 4, byte & 15] {
            line.push(char::from_digit(u32::from(digit), 16).expect("a digit below 16"));
        }
    }
}

fn parse_hex(text: &str) -> Option<Chain> {
    let mut chain = Chain::default();
    for (byte, pair) in chain.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(chain)
}

/// A writer that was killed while it started a command has left a child that holds the lock until it runs its program.
const LOCK_WAIT: Duration = Duration::from_millis(150);

fn lock(file: &File, path: &Path) -> Result<()> {
    let until = Instant::now() + LOCK_WAIT;
    while matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)) && Instant::now() < until {
        thread::park_timeout(Duration::from_millis(5));
    }
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(fs::TryLockError::WouldBlock) => {
            let holder = holder::of(file);
            let by = holder.map_or(String::new(), |pid| format!(" by process {pid}"));
            Err(Error::new(
                Code::SessionLocked,
                format!("this session is being written{by}"),
                "close it there, or read it here with: pixir resume --read-only ID",
            )
            .with("pid", holder))
        }
        Err(fs::TryLockError::Error(e)) => Err(write_failed(path, &e)),
    }
}

fn write_failed(path: &Path, e: &io::Error) -> Error {
    let fix = match e.kind() {
        IoKind::StorageFull | IoKind::QuotaExceeded => "free some space, then send the message again",
        IoKind::PermissionDenied | IoKind::ReadOnlyFilesystem => {
            "make the state folder writable (pixir doctor shows where it is)"
        }
        _ => "check the disk that holds the state folder (pixir doctor shows where it is)",
    };
    Error::new(Code::LogWriteFailed, format!("write the session log: {e}"), fix).with("log", path.display().to_string())
}

fn read_failed(path: &Path, e: &io::Error) -> Error {
    if e.kind() == IoKind::NotFound {
        return Error::new(
            Code::SessionNotFound,
            "there is no session with that id in this workspace",
            "pixir sessions list --all",
        );
    }
    Error::new(Code::LogReadFailed, format!("read the session log: {e}"), "check the file's owner and permissions")
        .with("log", path.display().to_string())
}

/// The start of a Log: as many whole entries as the first `limit` bytes hold.
///
/// # Errors
/// `LOG_READ_FAILED` when the file cannot be read at all.
pub fn read_start(path: &Path, limit: u64) -> Result<Vec<Arc<Entry>>> {
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)).map_err(|e| read_failed(path, &e))?;
    Ok(parse(&bytes).entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Delivery, UserMessage};

    fn said(text: &str) -> Fact {
        UserMessage { text: text.into(), delivery: Delivery::Prompt }.into()
    }

    fn three_lines(folder: &Path) -> PathBuf {
        let path = folder.join("s.ndjson");
        let mut log = Log::create(&path, SessionId::now()).expect("create");
        for text in ["one", "zwei — ünïcödé", "三"] {
            log.append(Some(1), said(text)).expect("append");
        }
        log.sync().expect("sync");
        path
    }

    #[test]
    fn a_log_torn_at_every_byte_keeps_exactly_its_whole_entries_and_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let whole = fs::read(three_lines(folder.path())).expect("read");
        let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i).collect();
        for cut in 0..=whole.len() {
            let path = folder.path().join(format!("cut-{cut}.ndjson"));
            fs::write(&path, &whole[..cut]).expect("write");
            let survivors = ends.iter().filter(|end| **end <= cut).count();
            let (mut log, contents) = Log::open(&path, SessionId::now()).expect("a torn end is no damage");
            assert_eq!(contents.entries.len(), survivors, "cut at {cut}");
            log.append(None, said("after")).expect("append works");
            drop(log);
            let again = read(&path).expect("read");
            assert_eq!((again.entries.len(), again.torn, again.damage.len()), (survivors + 1, 0, 0), "cut at {cut}");
        }
    }

    #[test]
    fn a_changed_byte_in_the_middle_is_noticed_and_the_rest_is_still_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = three_lines(folder.path());
        let text = fs::read_to_string(&path).expect("read").replacen("zwei", "drei", 1);
        fs::write(&path, text).expect("write");
        let contents = read(&path).expect("read");
        assert_eq!(contents.entries.len(), 3);
        assert_eq!(contents.damage.iter().map(|d| d.line).collect::<Vec<_>>(), [2]);
        let error = Log::open(&path, SessionId::now()).expect_err("no writing after damage");
        assert_eq!(error.code, Code::CorruptLogLine);
    }

    #[test]
    fn an_append_that_was_not_synchronised_is_taken_back_and_the_log_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s.ndjson");
        let mut log = Log::create(&path, SessionId::now()).expect("create");
        log.append(None, said("kept")).expect("append");
        log.append(None, said("not synchronised")).expect("append");
        log.take_back();
        let next = log.append(None, said("after")).expect("append works again");
        assert_eq!(next.seq, 1);
        let contents = read(&path).expect("read");
        assert_eq!((contents.entries.len(), contents.damage.len(), contents.torn), (2, 0, 0));
        Log::open(&path, SessionId::now()).expect_err("the lock is still held");
    }

    #[test]
    fn a_second_writer_is_told_who_the_first_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = three_lines(folder.path());
        let first = Log::open(&path, SessionId::now()).expect("open");
        let error = Log::open(&path, SessionId::now()).expect_err("locked");
        assert_eq!(error.code, Code::SessionLocked);
        assert_eq!(error.details["pid"], std::process::id());
        drop(first);
        Log::open(&path, SessionId::now()).expect("free again");
    }
}
