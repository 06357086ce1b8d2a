//! Changes of files as a model: which files changed and how, and on request the hunks and lines of one file.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use other::Other;
use protocol::event::{ChangeKind, Entry, FileChange};
use storage::blobs::{self, Blobs};
use text::encoding::plain;

mod across; // blocks of lines that stand in another file now
mod anchor; // a line that is found again after edits
mod compare; // two texts, line by line
mod compared; // two versions by what differs between them
mod escaped; // bytes that are not text, as text
pub(crate) mod exact; // a unified diff that programs can apply
mod excerpt; // long lines around what changed
mod generated; // files that a program writes, such as lock files
mod lines; // a text as numbered lines
mod hunks; // hunks and lines of one file
mod moved; // blocks of lines that stand elsewhere now
mod other; // versions in other encodings than UTF-8
mod rename; // deleted and added files that are one file
pub(crate) mod shown; // a change for the user who decides about it
mod start; // the start of a long file's change
mod words; // the words that differ between two lines

pub use across::{Across, Elsewhere};
pub use anchor::Anchor;
pub use hunks::{Hunk, TextPatch, with_edit};
pub use lines::{Line, Numbered, Tag};
pub use moved::Move;
pub use shown::Shown;
pub use start::Start;
pub use words::{Words, words};

/// Texts larger than this are not diffed, bytes.
const MAX_TEXT: usize = 32 << 20;
/// Files with more changed lines than this are folded at first.
const HUGE: u64 = 2_000;

/// How a file changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// It is new.
    Added,
    /// Its bytes or its mode changed.
    Modified,
    /// It is gone.
    Deleted,
    /// It had this path before.
    Renamed(String),
}

impl Kind {
    /// The letter for it, as git has it.
    pub const fn letter(&self) -> char {
        match self {
            Kind::Added => 'A',
            Kind::Modified => 'M',
            Kind::Deleted => 'D',
            Kind::Renamed(_) => 'R',
        }
    }
}

/// Where the bytes of a file's version are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// The file did not exist.
    Absent,
    /// In the blob store, under this name.
    Blob(String),
    /// An object of the repository, by its hexadecimal name.
    Object(String),
    /// The file of this path in the workspace, as it is now.
    Disk,
    /// The contents are not available, for this reason.
    Lost(String),
}

/// Why a file is folded at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folded {
    /// A program wrote it.
    Generated,
    /// It has very many changed lines.
    Huge,
}

/// One changed file, without its lines.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedFile {
    /// Relative to the workspace.
    pub path: String,
    /// How it changed.
    pub kind: Kind,
    /// Its permission bits before and after, if they are known and differ.
    pub modes: Option<(u32, u32)>,
    /// Lines added and removed, once they are counted.
    pub counts: Option<(u64, u64)>,
    /// Its sizes before and after in bytes, if it is not text.
    pub binary: Option<(u64, u64)>,
    /// Why it is folded at first.
    pub folded: Option<Folded>,
    pub old: Version,
    pub new: Version,
    /// The bits that a restored file gets.
    pub old_mode: Option<u32>,
}

impl ChangedFile {
    /// The path before, if it was another one.
    pub fn from(&self) -> Option<&str> {
        if let Kind::Renamed(from) = &self.kind { Some(from) } else { None }
    }

    /// Permission bits for the file if it is created again.
    pub const fn old_mode(&self) -> Option<u32> {
        self.old_mode
    }
}

/// The files that changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// Sorted by path.
    pub files: Vec<ChangedFile>,
    /// What could not be read, and why.
    pub note: Option<String>,
}

impl Changes {
    /// Lines added and removed in all files; false if some are not counted yet.
    pub fn totals(&self) -> (u64, u64, bool) {
        let counted = self.files.iter().filter_map(|file| file.counts);
        let (added, removed) = counted.fold((0, 0), |(added, removed), (a, r)| (added + a, removed + r));
        let whole = self.files.iter().all(|file| file.counts.is_some() || file.binary.is_some());
        (added, removed, whole)
    }
}

/// The change of one file, computed from both of its versions.
#[derive(Debug, Clone)]
pub struct Patch {
    /// What there is to show.
    pub body: Body,
    /// Why it is folded at first.
    pub folded: Option<Folded>,
    /// The name of the bytes after, as `Input::RevertHunk` wants it; `None` if the file is gone.
    pub seen: Option<String>,
    /// The name of the encoding, if it is not UTF-8 before and after; `A → B` if it changes.
    pub encoding: Option<String>,
    /// Only the start of the file was compared, so that there is something to look at. Nothing may be decided by it.
    pub is_start: bool,
}

/// What there is to show of a change.
#[derive(Debug, Clone)]
pub enum Body {
    /// Lines.
    Text(Arc<TextPatch>),
    /// Not text: the sizes before and after, bytes.
    Binary(u64, u64),
    /// Neither, for this reason.
    Nothing(String),
}

impl Patch {
    /// Compares two versions; `None` is a file that does not exist.
    pub fn new(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Patch {
        let seen = after.map(blobs::name_of);
        let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
        let sizes = (old.len() as u64, new.len() as u64);
        let other = Other::of(before, after);
        let encoding = other.as_ref().and_then(|it| it.name.clone());
        let texts = match other.as_ref().map(Other::sides) {
            Some((old, new)) => plain(old.unwrap_or_default()).zip(plain(new.unwrap_or_default())),
            None => plain(old).zip(plain(new)),
        };
        let Some((old, new)) = texts else {
            return Patch { seen, ..Patch::without_lines(Body::Binary(sizes.0, sizes.1)) };
        };
        if old.len().max(new.len()) > MAX_TEXT {
            let nothing = Patch::without_lines(Body::Nothing("too large to show".to_owned()));
            return Patch { folded: Some(Folded::Huge), seen, encoding, ..nothing };
        }
        let mut patch = TextPatch::new(old, new);
        patch.find_moves();
        let (added, removed) = patch.counts();
        let folded = if generated::by_path(path) || generated::by_text(if new.is_empty() { old } else { new }) {
            Some(Folded::Generated)
        } else {
            (added + removed > HUGE).then_some(Folded::Huge)
        };
        let body = match (before, after) {
            _ if !patch.hunks.is_empty() => Body::Text(Arc::new(patch)),
            (None, _) => Body::Nothing("a new file without a line".to_owned()),
            (_, None) => Body::Nothing("the file was empty".to_owned()),
            (Some(_), Some(_)) if encoding.is_some() => {
                Body::Nothing("the lines are the same, in another encoding".to_owned())
            }
            (Some(_), Some(_)) => Body::Nothing("the lines are the same".to_owned()),
        };
        Patch { body, folded, seen, encoding, is_start: false }
    }

    fn without_lines(body: Body) -> Patch {
        Patch { body, folded: None, seen: None, encoding: None, is_start: false }
    }

    /// The start of a long change; `None` if the starts of both versions do not tell.
    fn of_start(path: &str, before: &Start, after: &Start) -> Option<Patch> {
        let text = |bytes: &[u8]| {
            // A part may end within a character.
            let end = std::str::from_utf8(bytes).map_or_else(|e| e.valid_up_to(), str::len);
            (bytes.len() - end < 4).then(|| plain(&bytes[..end]).map(str::to_owned)).flatten()
        };
        let (old, new) = (text(&before.bytes)?, text(&after.bytes)?);
        let patch = start::compare_starts((&old, before.is_whole), (&new, after.is_whole))?;
        let is_generated = generated::by_path(path) || generated::by_text(if new.is_empty() { &old } else { &new });
        let folded = is_generated.then_some(Folded::Generated);
        Some(Patch { body: Body::Text(Arc::new(patch)), folded, seen: None, encoding: None, is_start: true })
    }
}

/// Reads the versions of files.
pub trait Versions {
    /// The bytes of a version; `None` if the file does not exist in it.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn read(&self, path: &str, version: &Version) -> Result<Option<Vec<u8>>, String>;

    /// At most so many bytes from the start of a version; `None` if the file does not exist in it. They are not checked
    /// against the name of the version.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn read_start(&self, path: &str, version: &Version, most: usize) -> Result<Option<Start>, String>;
}

/// What is read from blobs alone.
impl Versions for Blobs {
    fn read(&self, _: &str, version: &Version) -> Result<Option<Vec<u8>>, String> {
        match version {
            Version::Absent => Ok(None),
            Version::Blob(name) => {
                self.get(name).map(Some).map_err(|e| format!("a stored version cannot be read: {e}"))
            }
            Version::Object(_) | Version::Disk => Err("this version is not stored".to_owned()),
            Version::Lost(why) => Err(why.clone()),
        }
    }

    fn read_start(&self, path: &str, version: &Version, most: usize) -> Result<Option<Start>, String> {
        let Version::Blob(name) = version else {
            return self.read(path, version).map(|bytes| bytes.map(|bytes| Start::of(bytes, most)));
        };
        let start = self.get_start(name, most);
        start.map(|(bytes, is_whole)| Some(Start { bytes, is_whole })).map_err(|e| e.to_string())
    }
}

impl ChangedFile {
    /// Computes hunks and lines. It reads both versions, so it belongs on a thread that may block.
    pub fn patch(&self, versions: &impl Versions) -> Patch {
        let from = self.from().unwrap_or(&self.path);
        let both = versions.read(from, &self.old).and_then(|old| Ok((old, versions.read(&self.path, &self.new)?)));
        match both {
            Ok((old, new)) => Patch::new(&self.path, old.as_deref(), new.as_deref()),
            Err(why) => Patch::without_lines(Body::Nothing(why)),
        }
    }

    /// Compares the start of a long file; `None` if the file is not long, or does not differ for a long way.
    pub fn start(&self, versions: &impl Versions) -> Option<Patch> {
        const FARTHEST: usize = 16 << 20;
        let from = self.from().unwrap_or(&self.path);
        let mut most = start::FIRST;
        while most <= FARTHEST {
            let read = |path: &str, version: &Version| versions.read_start(path, version, most).ok();
            let nothing = || Start { bytes: Vec::new(), is_whole: true };
            let old = read(from, &self.old)?.unwrap_or_else(nothing);
            let new = read(&self.path, &self.new)?.unwrap_or_else(nothing);
            if old.is_whole && new.is_whole {
                return None;
            }
            if let Some(patch) = Patch::of_start(&self.path, &old, &new) {
                return Some(patch);
            }
            most *= 8;
        }
        None
    }

    /// Counts its lines, or finds that it is not text.
    pub fn count(&mut self, versions: &impl Versions) {
        match self.patch(versions).body {
            Body::Text(patch) => self.counts = Some(patch.counts()),
            Body::Binary(old, new) => self.binary = Some((old, new)),
            Body::Nothing(_) => self.counts = self.counts.or(Some((0, 0))),
        }
    }
}

/// The files that these entries changed, each from its first version to its last. Files that end as they began are left
/// out. Counts of files that changed more than once are still missing.
pub fn of_entries<'a>(entries: impl Iterator<Item = &'a Arc<Entry>>, versions: &impl Versions) -> Changes {
    let mut files: BTreeMap<&str, (&FileChange, &FileChange, bool)> = BTreeMap::new();
    for change in entries.flat_map(|entry| entry.fact.all_changes()) {
        let first = (change, change, true);
        files.entry(&change.path).and_modify(|(_, last, once)| (*last, *once) = (change, false)).or_insert(first);
    }
    let mut files: Vec<ChangedFile> =
        files.into_iter().filter_map(|(path, (first, last, once))| of_changes(path, first, last, once)).collect();
    rename::join(&mut files, versions);
    // A change without a line is one of the mode, of bytes that are not text, or of a file that was too long to be counted.
    for file in files.iter_mut().filter(|file| file.counts == Some((0, 0)) && file.old != file.new) {
        file.counts = None;
    }
    Changes { files, note: None }
}

/// Finds the files among the changes of one call that were moved: the new one names the old one, and its lines are counted
/// against that. It reads the versions, so it belongs on a thread that may block.
pub fn join_moves(changes: &mut [FileChange], blobs: &Blobs) {
    let has = |changes: &[FileChange], kind| changes.iter().any(|it| it.kind == kind);
    if !has(changes, ChangeKind::Created) || !has(changes, ChangeKind::Deleted) {
        return;
    }
    let mut files: Vec<ChangedFile> = changes.iter().filter_map(|it| of_changes(&it.path, it, it, true)).collect();
    rename::join(&mut files, blobs);
    for file in &files {
        let Some(from) = file.from() else { continue };
        for change in changes.iter_mut() {
            if change.path == file.path {
                (change.added, change.removed) = file.counts.unwrap_or_default();
                change.moved_from = Some(from.to_owned());
            } else if change.path == from {
                (change.added, change.removed) = (0, 0);
            }
        }
    }
}

/// Finds renames among files of the repository and the work tree.
pub fn join_renames(files: &mut Vec<ChangedFile>, versions: &impl Versions) {
    rename::join(files, versions);
}

fn of_changes(path: &str, first: &FileChange, last: &FileChange, once: bool) -> Option<ChangedFile> {
    let version = |there: bool, blob: &Option<String>, why: &str| match (there, blob) {
        (false, _) => Version::Absent,
        (true, Some(name)) => Version::Blob(name.clone()),
        (true, None) => Version::Lost(why.to_owned()),
    };
    let old = version(
        first.kind != ChangeKind::Created,
        &first.before_blob,
        "changed by a command; its earlier bytes were not captured",
    );
    let new = version(last.kind != ChangeKind::Deleted, &last.after_blob, "its bytes were too large to be stored");
    let kind = match (&old, &new) {
        (Version::Absent, Version::Absent) => return None,
        (Version::Absent, _) => Kind::Added,
        (_, Version::Absent) => Kind::Deleted,
        (_, _) => Kind::Modified,
    };
    let modes = first.before_mode.zip(last.after_mode).filter(|(old, new)| old != new && kind == Kind::Modified);
    if old == new && modes.is_none() && matches!(old, Version::Blob(_)) {
        return None;
    }
    Some(ChangedFile {
        path: path.to_owned(),
        kind,
        modes,
        counts: once.then_some((last.added, last.removed)),
        binary: None,
        folded: match generated::by_path(path) {
            true => Some(Folded::Generated),
            false => (once && last.added + last.removed > HUGE).then_some(Folded::Huge),
        },
        old,
        new,
        old_mode: first.before_mode,
    })
}

/// What is known about files from the Log alone, for a list that is made while the conversation is drawn: symbols and
/// counts, without reading a version. Files that end as they began are left out.
#[derive(Debug, Default)]
pub struct Tally {
    files: BTreeMap<String, (FileChange, FileChange)>,
    sums: HashMap<String, (u64, u64)>,
}

impl Tally {
    /// Takes in the changes that an entry records.
    pub fn take(&mut self, entry: &protocol::event::Fact) {
        for change in entry.all_changes() {
            let sum = self.sums.entry(change.path.clone()).or_default();
            *sum = (sum.0 + change.added, sum.1 + change.removed);
            self.files
                .entry(change.path.clone())
                .and_modify(|(_, last)| last.clone_from(change))
                .or_insert_with(|| (change.clone(), change.clone()));
        }
    }

    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The files in the order of the diff.
    pub fn files(&self) -> Vec<ChangedFile> {
        let mut files: Vec<ChangedFile> = Vec::new();
        for (path, (first, last)) in &self.files {
            files.extend(of_changes(path, first, last, true).map(|mut file| {
                file.counts = self.sums.get(path).copied();
                file
            }));
        }
        rename::join_known(&mut files, |path| self.origin(path));
        rename::join_exact(&mut files);
        files
    }

    /// The path that a file had at first, and the lines that changed on all its ways to this one.
    fn origin(&self, path: &str) -> Option<(&str, (u64, u64))> {
        let sum = |path: &str| self.sums.get(path).copied().unwrap_or_default();
        let before = |path: &str| {
            let (first, last) = self.files.get(path)?;
            last.moved_from.as_deref().or(first.moved_from.as_deref())
        };
        let (mut counts, mut from) = (sum(path), before(path)?);
        // Two files that moved to each other's place would lead around for ever.
        for _ in 0..self.files.len() {
            let Some(earlier) = before(from) else { break };
            let more = sum(from);
            (counts, from) = ((counts.0 + more.0, counts.1 + more.1), earlier);
        }
        Some((from, counts))
    }
}
