//! Reads a Log line by line and judges each line: proven by its chain, readable, damaged, or torn.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::error::Category;

use super::chain::{self, Chain};
use super::disk::DiskFile;
use super::{read_failed, unreadable};
use crate::regular;
use protocol::error::{Code, Error, Result};
use protocol::event::{Entry, SessionId};
use protocol::remedy::Remedy;

/// The longest line that is read or written, bytes.
pub(super) const MAX_LINE: usize = 64 << 20;
/// Bytes per read.
const CHUNK: usize = 256 << 10;
/// The length of the shortest possible line, bytes. It bounds how many lines a stretch of damage can hide.
const SHORTEST: u64 = 150;
/// The largest gap in the numbers that is taken for missing lines. A larger one means that the number is damaged.
const MAX_GAP: u64 = 100_000;

/// The contents of a Log, read without changing it.
#[derive(Debug, Default)]
pub struct Contents {
    /// The readable Entries in order.
    pub entries: Vec<Arc<Entry>>,
    /// The lines that are damaged or unproven.
    pub damage: Vec<Damage>,
    /// Bytes after the last whole line, left by an interrupted write.
    pub torn: u64,
    /// The number of lines that repeat the line before; they are read once.
    pub duplicates: u64,
    /// Bytes of whole lines.
    pub(super) valid_len: u64,
    pub(super) chain: Chain,
    pub(super) next_seq: u64,
    /// The last line is a whole Entry without its newline.
    pub(super) missing_newline: bool,
}

/// A damaged line.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Damage {
    /// The line number, from 1.
    pub line: u64,
    /// What is wrong with the line.
    pub reason: String,
}

impl Damage {
    /// Returns the error for the user.
    pub fn error(&self, path: &Path) -> Error {
        let id = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Error::new(
            Code::CorruptLogLine,
            format!(
                "line {} of the session log is damaged ({}); the session is open read-only",
                self.line, self.reason
            ),
            Remedy::Repair { id },
        )
        .with("line", self.line)
        .with("log", path.display().to_string())
    }
}

/// The verdict on a line, once the next line is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its chain follows from the line before.
    Proven,
    /// Readable, but the line before is damaged, so its chain cannot be checked.
    Unproven,
    /// Readable, but lines before it are missing, it is out of order, or its end was changed.
    AfterGap(String),
    /// The line was changed, or is not an Entry.
    Damaged(String),
    /// Only the line's chain was changed; the next line proves the rest.
    ChainDamaged,
    /// A repetition of the line before.
    Duplicate,
    /// An unfinished line at the end.
    Torn,
}

/// A line and its verdict.
pub(super) struct Line<'a> {
    pub(super) number: u64,
    pub(super) bytes: &'a [u8],
    pub(super) entry: Option<Entry>,
    pub(super) verdict: Verdict,
    /// Whether it ends in a newline.
    pub(super) whole: bool,
}

/// Reads a Log without locking or changing it. Unreadable lines are reported as damage.
///
/// # Errors
/// `LOG_READ_FAILED` when the file cannot be read at all.
pub fn read(path: &Path) -> Result<Contents> {
    let file = regular::open_to_read(path).map_err(|e| read_failed(path, &e))?;
    let named = path.file_stem().and_then(|name| SessionId::parse(name.to_str()?).ok());
    contents(&file, named.as_ref()).map(Contents::judged).map_err(|e| unreadable(path, &e))
}

/// Reads a Log as [`read`] does, and passes each readable Entry to `visit` instead of collecting them. The returned
/// contents have no Entries, so the memory in use does not grow with the Log.
///
/// # Errors
/// `LOG_READ_FAILED` when the file cannot be read at all.
pub fn scan(path: &Path, visit: &mut dyn FnMut(Entry)) -> Result<Contents> {
    let file = regular::open_to_read(path).map_err(|e| read_failed(path, &e))?;
    let named = path.file_stem().and_then(|name| SessionId::parse(name.to_str()?).ok());
    let mut count = 0_u64;
    let mut counted = |entry| {
        count += 1;
        visit(entry);
    };
    let (mut contents, _) = part(&file, Reader::of(named.as_ref()), &mut counted).map_err(|e| unreadable(path, &e))?;
    if count == 0 && contents.damage.is_empty() {
        contents.damage.push(no_line());
    }
    Ok(contents)
}

/// Reads what was appended to a Log since `from`.
/// `None` when the Log was replaced, or when a new line is not whole and proven.
///
/// # Errors
/// Errors of the file system.
pub fn read_on(path: &Path, from: Position) -> io::Result<Option<(Vec<Entry>, Position)>> {
    let file = regular::open_to_read(path)?;
    if from.bytes > DiskFile::len(&file)? {
        return Ok(None);
    }
    let mut entries = Vec::new();
    let mut reader = Reader { chain: from.chain, seq: from.next_seq, bytes: from.bytes, ..Reader::default() };
    let mut proven = true;
    reader.run(&file, &mut |line| match (line.verdict, line.entry) {
        (Verdict::Proven, Some(entry)) if line.whole => entries.push(entry),
        (Verdict::Torn | Verdict::Duplicate, _) | (Verdict::Proven, _) => {}
        _ => proven = false,
    })?;
    Ok(proven.then_some((entries, Position { bytes: reader.bytes, chain: reader.chain, next_seq: reader.seq })))
}

/// A position in a Log from which reading can continue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Position {
    /// Bytes of whole lines before it.
    pub bytes: u64,
    chain: Chain,
    next_seq: u64,
}

impl Position {
    pub(super) fn new(bytes: u64, chain: Chain, next_seq: u64) -> Position {
        Position { bytes, chain, next_seq }
    }

    pub(super) fn chain(&self) -> Chain {
        self.chain
    }

    pub(super) fn next_seq(&self) -> u64 {
        self.next_seq
    }
}

fn no_line() -> Damage {
    Damage { line: 1, reason: "no line is readable".into() }
}

/// What is wrong with a line that is not an Entry, in words that need no knowledge of the types behind it.
fn misfit(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        Category::Syntax => "it is not JSON",
        Category::Eof => "its end is missing",
        Category::Data | Category::Io => "it is not an entry: a field is missing, or its value does not fit",
    }
}

impl Contents {
    /// Marks a Log without any Entry as damaged, because a Log gets its name only after its first line.
    pub(super) fn judged(mut self) -> Contents {
        if self.entries.is_empty() && self.damage.is_empty() {
            self.damage.push(no_line());
        }
        self
    }

    /// The end of the whole lines.
    pub fn position(&self) -> Position {
        Position { bytes: self.valid_len, chain: self.chain, next_seq: self.next_seq }
    }
}

/// A Log of this size or more is read in two halves at the same time, bytes.
const HALVED: u64 = 1 << 20;

pub(super) fn contents(file: &dyn DiskFile, named: Option<&SessionId>) -> io::Result<Contents> {
    match second_half(file)? {
        Some(second) => halves(file, named, second),
        None => collected(file, Reader::of(named)).map(|(contents, _)| contents),
    }
}

/// Reads a part of a Log with its Entries.
fn collected(file: &dyn DiskFile, reader: Reader) -> io::Result<(Contents, Reader)> {
    let mut entries = Vec::new();
    let (contents, end) = part(file, reader, &mut |entry| entries.push(Arc::new(entry)))?;
    Ok((Contents { entries, ..contents }, end))
}

/// Each line is judged by the chain of the line before. The second half is therefore judged on the assumption that the
/// line before it is right. The result counts only if the first half is proven and ends exactly there.
fn halves(file: &dyn DiskFile, named: Option<&SessionId>, second: Reader) -> io::Result<Contents> {
    let supposed = (second.chain, second.seq, second.bytes, second.session.clone());
    let first = Reader { limit: Some(second.bytes), ..Reader::of(named) };
    let (first, second) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| collected(file, second));
        (collected(file, first), beside.join())
    });
    let ((mut it, end), (rest, rest_end)) =
        (first?, second.map_err(|_| io::Error::other("a reader thread panicked"))??);
    let is_whole = it.damage.is_empty() && it.duplicates == 0 && it.torn == 0;
    if !is_whole || (end.chain, end.seq, end.bytes, end.session) != supposed {
        return collected(file, Reader::of(named)).map(|(contents, _)| contents);
    }
    it.entries.extend(rest.entries);
    it.damage = rest.damage;
    it.damage.iter_mut().for_each(|damage| damage.line += end.number);
    (it.torn, it.duplicates, it.missing_newline) = (rest.torn, rest.duplicates, rest.missing_newline);
    (it.valid_len, it.chain, it.next_seq) = (rest_end.bytes, rest_end.chain, rest_end.seq);
    Ok(it)
}

/// A reader that begins in the middle of the file, if there is a whole line to begin after.
fn second_half(file: &dyn DiskFile) -> io::Result<Option<Reader>> {
    let len = file.len()?;
    if len < HALVED {
        return Ok(None);
    }
    let mut around = vec![0; CHUNK];
    let n = file.read_at(len / 2, &mut around)?;
    let mut lines = around[..n].split_inclusive(|b| *b == b'\n');
    let skipped = lines.next().map_or(0, <[u8]>::len) as u64;
    let Some(line) = lines.next().and_then(|line| line.strip_suffix(b"\n")) else { return Ok(None) };
    let text = std::str::from_utf8(line).unwrap_or_default();
    let parsed = chain::split(text).and_then(|(_, chain)| Some((chain, Entry::decode(text).ok()?)));
    let bytes = len / 2 + skipped + line.len() as u64 + 1;
    Ok(parsed.map(|(chain, entry)| Reader {
        chain,
        seq: entry.seq + 1,
        bytes,
        session: Some(entry.session_id),
        last: line.to_vec(),
        ..Reader::default()
    }))
}

fn part(file: &dyn DiskFile, mut reader: Reader, take: &mut dyn FnMut(Entry)) -> io::Result<(Contents, Reader)> {
    let mut it = Contents::default();
    let mut last: Option<u64> = None;
    reader.run(file, &mut |line| {
        match &line.verdict {
            Verdict::Proven | Verdict::Unproven => {}
            Verdict::AfterGap(reason) | Verdict::Damaged(reason) => {
                it.damage.push(Damage { line: line.number, reason: reason.clone() });
            }
            Verdict::ChainDamaged => {
                it.damage.push(Damage { line: line.number, reason: "its chain value was changed".into() });
            }
            Verdict::Duplicate => it.duplicates += 1,
            Verdict::Torn => {}
        }
        if line.verdict == Verdict::Proven {
            it.missing_newline = !line.whole;
        }
        // Numbers only grow, even if a damaged line claims otherwise.
        if let Some(entry) = line.entry
            && last.is_none_or(|last| last < entry.seq)
        {
            last = Some(entry.seq);
            take(entry);
        }
    })?;
    (it.valid_len, it.chain, it.next_seq) = (reader.bytes, reader.chain, reader.seq);
    let len = file.len()?;
    if reader.limit.is_none() {
        it.torn = len.saturating_sub(reader.bytes);
    }
    Ok((it, reader))
}

/// The state between two lines.
#[derive(Default)]
pub(super) struct Reader {
    /// The chain of the last accepted line; `seq` is the number after it.
    chain: Chain,
    seq: u64,
    /// Lines and bytes of damage since then.
    damaged: (u64, u64),
    /// The chain that the damaged line right before states.
    claimed: Option<Chain>,
    /// The chain that the damaged line right before should have.
    computed: Option<Chain>,
    /// A line since the last accepted one has no readable chain.
    lost: bool,
    /// Bytes of whole lines.
    bytes: u64,
    /// The offset at which to stop reading.
    limit: Option<u64>,
    session: Option<SessionId>,
    /// The Session that the file is named after, until a line is proven.
    named: Option<SessionId>,
    number: u64,
    /// The last accepted line.
    last: Vec<u8>,
    /// A line whose verdict depends on the next line.
    suspect: Option<Suspect>,
}

struct Suspect {
    number: u64,
    bytes: Vec<u8>,
    entry: Entry,
    claimed: Chain,
    reason: String,
}

/// What the next line proves about the line before it.
struct Next {
    follows_claimed: bool,
    follows_computed: bool,
    seq: u64,
}

impl Reader {
    /// A reader at the start of a Log that is named after this Session.
    pub(super) fn of(named: Option<&SessionId>) -> Reader {
        Reader { named: named.cloned(), ..Reader::default() }
    }

    /// Bytes of whole lines that were read.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Visits every line in order. A line whose verdict depends on the next one is visited before that one.
    pub(super) fn run(&mut self, file: &dyn DiskFile, visit: &mut dyn FnMut(Line<'_>)) -> io::Result<()> {
        let mut buffer: Vec<u8> = Vec::with_capacity(2 * CHUNK);
        let (mut offset, mut searched, mut skipping) = (self.bytes, 0, 0_u64);
        loop {
            let filled = buffer.len();
            let room = self.limit.map_or(CHUNK as u64, |limit| limit.saturating_sub(offset).min(CHUNK as u64));
            buffer.resize(filled + usize::try_from(room).unwrap_or(CHUNK), 0);
            let n = loop {
                match file.read_at(offset, &mut buffer[filled..]) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    other => break other?,
                }
            };
            buffer.truncate(filled + n);
            offset += n as u64;
            let mut start = 0;
            while let Some(end) = memchr::memchr(b'\n', &buffer[searched.max(start)..]) {
                let end = searched.max(start) + end;
                if skipping > 0 {
                    self.too_long(skipping + (end - start) as u64 + 1, visit);
                    skipping = 0;
                } else {
                    self.line(&buffer[start..end], true, visit);
                }
                start = end + 1;
                searched = start;
            }
            buffer.drain(..start);
            searched = buffer.len();
            if searched > MAX_LINE {
                skipping += searched as u64;
                buffer.clear();
                searched = 0;
            }
            if n == 0 {
                break;
            }
        }
        if skipping > 0 {
            self.number += 1;
            visit(Line { number: self.number, bytes: &buffer, entry: None, verdict: Verdict::Torn, whole: false });
        } else if !buffer.is_empty() {
            self.line(&buffer, false, visit);
        }
        self.settle(None, visit);
        Ok(())
    }

    fn too_long(&mut self, bytes: u64, visit: &mut dyn FnMut(Line<'_>)) {
        self.settle(None, visit);
        self.number += 1;
        self.bytes += bytes;
        self.refuse(b"", bytes, None, "longer than 64 MB".into(), visit);
    }

    /// A program that converts line ends adds a byte to every line. What is left of the line is judged as usual, and
    /// counts as damage, because the next line must not be appended to such a Log.
    fn line(&mut self, bytes: &[u8], whole: bool, visit: &mut dyn FnMut(Line<'_>)) {
        let Some(line) = bytes.strip_suffix(b"\r").filter(|_| whole) else {
            return self.bare_line(bytes, bytes.len() as u64 + u64::from(whole), whole, visit);
        };
        let mut visit = |mut line: Line<'_>| {
            if matches!(line.verdict, Verdict::Proven | Verdict::Unproven) {
                line.verdict = Verdict::AfterGap("it ends in CR LF instead of LF".into());
            }
            visit(line);
        };
        self.bare_line(line, bytes.len() as u64 + 1, whole, &mut visit);
    }

    /// Judges a line without its end; `len` is its length with it, in bytes.
    fn bare_line(&mut self, bytes: &[u8], len: u64, whole: bool, visit: &mut dyn FnMut(Line<'_>)) {
        if whole && !self.last.is_empty() && bytes == self.last {
            self.settle(None, visit);
            self.number += 1;
            self.bytes += len;
            return visit(Line { number: self.number, bytes, entry: None, verdict: Verdict::Duplicate, whole });
        }
        let text = std::str::from_utf8(bytes);
        let split = text.ok().and_then(chain::split);
        let parsed = match (text, split) {
            (Err(_), _) => Err("not UTF-8".to_owned()),
            (Ok(_), None) => Err("it has no chain value".to_owned()),
            (Ok(text), Some((open, claimed))) => match Entry::decode_next(text, self.session.as_ref()) {
                Ok(entry) => Ok((entry, open, claimed)),
                Err(e) => Err(misfit(&e).to_owned()),
            },
        };
        let (entry, open, claimed) = match parsed {
            Ok(parsed) => parsed,
            Err(_) if !whole => return self.torn(bytes, visit),
            Err(reason) => {
                self.settle(None, visit);
                self.number += 1;
                self.bytes += len;
                return self.refuse(bytes, len, split.map(|(_, claimed)| claimed), reason, visit);
            }
        };
        let follows = |chain: Option<Chain>| chain.is_some_and(|c| chain::link(c, open.as_bytes()) == claimed);
        let follows_chain = follows(Some(self.chain));
        let (follows_claimed, follows_computed) =
            if follows_chain { (false, false) } else { (follows(self.claimed), follows(self.computed)) };
        // The `data` fits no known Entry. If the chain follows, a newer build wrote it so; otherwise it is as likely
        // damage.
        if entry.fact.is_misfit() && !(follows_chain || follows_claimed || follows_computed) {
            let reason = format!("not an entry: the data does not fit the type {}", entry.fact.kind());
            if !whole {
                return self.torn(bytes, visit);
            }
            self.settle(None, visit);
            self.number += 1;
            self.bytes += len;
            return self.refuse(bytes, len, Some(claimed), reason, visit);
        }
        // Two lines were swapped: the line before was written after this one.
        let after_this = |it: &mut Suspect| {
            let open = std::str::from_utf8(&it.bytes).ok().and_then(chain::split).map(|(open, _)| open);
            it.entry.seq == entry.seq + 1 && open.is_some_and(|o| chain::link(claimed, o.as_bytes()) == it.claimed)
        };
        let swapped = if follows_chain { self.suspect.take_if(after_this) } else { None };
        self.settle(Some(Next { follows_claimed, follows_computed, seq: entry.seq }), visit);

        let known = self.session.as_ref().or(self.named.as_ref().filter(|_| !follows_chain));
        let own = known.is_none_or(|id| *id == entry.session_id);
        let missing = entry.seq.checked_sub(self.seq);
        let room = self.damaged.0.max(self.damaged.1 / SHORTEST);
        let verdict = match missing {
            _ if !own => None,
            Some(0) if follows_chain || follows_computed || (follows_claimed && self.damaged.0 == 0) => {
                Some(Verdict::Proven)
            }
            Some(missing) if (follows_claimed || self.lost) && missing <= room => Some(Verdict::Unproven),
            Some(_) | None => None,
        };
        match verdict {
            Some(verdict) if whole || verdict == Verdict::Proven => {
                self.number += 1;
                self.bytes += len;
                self.accept(&entry, claimed);
                self.last.clear();
                self.last.extend_from_slice(bytes);
                visit(Line { number: self.number, bytes, entry: Some(entry), verdict, whole });
                if let Some(Suspect { number, bytes, entry, claimed, .. }) = swapped {
                    self.accept(&entry, claimed);
                    let verdict = Verdict::AfterGap("it was swapped with the next line".into());
                    visit(Line { number, bytes: &bytes, entry: Some(entry), verdict, whole: true });
                    self.last = bytes;
                }
            }
            _ if !whole => self.torn(bytes, visit),
            _ => {
                self.number += 1;
                self.bytes += len;
                let reason = match missing {
                    _ if !own => "it belongs to another session".to_owned(),
                    Some(0) => "its chain does not follow from the line before".to_owned(),
                    Some(_) | None => format!("it has seq {} instead of {}", entry.seq, self.seq + self.damaged.0),
                };
                if own {
                    self.computed = Some(chain::link(self.chain, open.as_bytes())).filter(|_| !self.lost);
                    self.claimed = Some(claimed);
                    self.suspect = Some(Suspect { number: self.number, bytes: bytes.to_vec(), entry, claimed, reason });
                } else {
                    self.refuse(bytes, len, Some(claimed), reason, visit);
                }
            }
        }
    }

    fn accept(&mut self, entry: &Entry, chain: Chain) {
        self.chain = chain;
        self.seq = entry.seq + 1;
        self.damaged = (0, 0);
        (self.claimed, self.computed, self.lost) = (None, None, false);
        if self.session.is_none() {
            self.session = Some(entry.session_id.clone());
        }
    }

    /// Rejects a line that is not an Entry. It proves the next line only if at least its chain is readable.
    fn refuse(
        &mut self,
        bytes: &[u8],
        len: u64,
        claimed: Option<Chain>,
        reason: String,
        visit: &mut dyn FnMut(Line<'_>),
    ) {
        self.damaged = (self.damaged.0 + 1, self.damaged.1 + len);
        self.lost |= claimed.is_none();
        (self.claimed, self.computed) = (claimed, None);
        visit(Line { number: self.number, bytes, entry: None, verdict: Verdict::Damaged(reason), whole: true });
    }

    fn torn(&mut self, bytes: &[u8], visit: &mut dyn FnMut(Line<'_>)) {
        self.settle(None, visit);
        self.number += 1;
        visit(Line { number: self.number, bytes, entry: None, verdict: Verdict::Torn, whole: false });
    }

    /// Decides the verdict on the suspect line, now that the next line is known.
    fn settle(&mut self, next: Option<Next>, visit: &mut dyn FnMut(Line<'_>)) {
        let Some(Suspect { number, bytes, entry, claimed, reason }) = self.suspect.take() else { return };
        let gap = entry.seq.checked_sub(self.seq + self.damaged.0).filter(|gap| (1..=MAX_GAP).contains(gap));
        let verdict = match (next, gap) {
            // The next line's chain follows from this line's content, so only this line's own chain is damaged.
            (Some(Next { follows_computed: true, .. }), None) if entry.seq == self.seq => Verdict::ChainDamaged,
            // The next line follows this one, so both are intact and the lines before them are missing.
            (Some(Next { follows_claimed: true, seq, .. }), Some(gap)) if seq == entry.seq + 1 => {
                Verdict::AfterGap(missing_before(gap))
            }
            (None, Some(gap)) => Verdict::AfterGap(missing_before(gap)),
            _ => Verdict::Damaged(reason),
        };
        match &verdict {
            Verdict::ChainDamaged => {
                let chain = self.computed.unwrap_or(claimed);
                self.accept(&entry, chain);
            }
            Verdict::AfterGap(_) => self.accept(&entry, claimed),
            _ => self.damaged = (self.damaged.0 + 1, self.damaged.1 + bytes.len() as u64 + 1),
        }
        visit(Line { number, bytes: &bytes, entry: Some(entry), verdict, whole: true });
    }
}

fn missing_before(lines: u64) -> String {
    if lines == 1 { "the line before it is missing".into() } else { format!("{lines} lines before it are missing") }
}
