//! A change as the user sees it who decides about it: every changed line, whatever the size of the file, the length of its
//! lines or their bytes.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::compared::Compared;
use super::escaped::Nature;
use super::exact::header;
use super::excerpt::{LONG, excerpts, likeness, start};
use super::hunks::Hunk;
use super::lines::{Line, Tag};
use super::other::Other;
use text::human::human_size;

/// The longest text of one file's change, bytes. A reader needs hours for more.
const MOST: usize = 1 << 20;
/// The same for a file that is deleted: all of it goes, whichever lines are listed.
const MOST_DELETED: usize = 64 << 10;
/// Among more long lines in one place than this, the first replaces the first, and so on.
const MOST_PAIRED: usize = 32;

/// The change of one file for the user who decides about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// A unified diff in which long lines are excerpts around what changed and bytes that are not text are escapes. Lines
    /// above its header tell about the file as a whole. Empty if nothing changes.
    pub text: String,
    /// Lines added and removed; `None` for bytes without lines.
    pub counts: Option<(u64, u64)>,
    /// How much of the change the text leaves out, as a noun: `37120 changed lines (2.1MB)`.
    pub unseen: Option<String>,
}

impl Shown {
    /// The change from one version to another; `None` is a file that does not exist.
    pub fn of(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Shown {
        let Some(other) = Other::of(before, after).filter(|_| before != after) else {
            return Shown::of_bytes(path, before, after);
        };
        let (old, new) = other.sides();
        let mut shown = Shown::of_bytes(path, old, new);
        shown.text.insert_str(0, &other.note());
        shown
    }

    fn of_bytes(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Shown {
        let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
        let mut compared = Compared::new(old, new);
        let all = compared.patch.counts();
        let counts = Some(all).filter(|_| has_lines(before, after));
        if old == new && before.is_some() == after.is_some() {
            return Shown { counts, ..Shown::default() };
        }
        let mut text = notes(before, after);
        let ends = line_ends(before, after);
        if matches!(&ends, LineEnds::Crlf | LineEnds::New(_) | LineEnds::Change(_)) {
            compared = Compared::new(&with_plain_ends(old), &with_plain_ends(new));
        }
        match ends {
            LineEnds::Change(told) => {
                let only_ends = all.0.saturating_sub(compared.patch.counts().0);
                text.push_str(&format!("[line ends: {told}; lines of which nothing else changes: {only_ends}]\n"));
            }
            LineEnds::New(told) => text.push_str(&format!("[line ends: {told}]\n")),
            LineEnds::Crlf | LineEnds::Shown => {}
        }
        if compared.patch.hunks.is_empty() {
            return Shown { text, counts, unseen: None };
        }
        text.push_str(&header(path, before.is_some(), after.is_some()));
        let most = if after.is_some() { MOST } else { MOST_DELETED };
        // A last line end that both versions lack does not change.
        let names_last_end = before.is_none() || after.is_none() || old.ends_with(b"\n") != new.ends_with(b"\n");
        let mut writer = Writer { text, most, names_last_end, is_full: false, lines: 0, bytes: 0 };
        for hunk in &compared.patch.hunks {
            writer.hunk(&compared, hunk);
        }
        let (text, unseen) = writer.finished();
        Shown { text, counts, unseen: unseen.filter(|_| after.is_some()) }
    }
}

impl Shown {
    /// Adds a line about permission bits that change; `None` for a file that does not exist, or bits that are not known.
    pub fn tell_modes(&mut self, before: Option<u32>, after: Option<u32>) {
        if let (Some(old), Some(new)) = (before, after)
            && old != new
        {
            self.text.insert_str(0, &format!("mode {old:o} → {new:o}\n"));
        }
    }
}

/// Lines added and removed; `None` if no version has lines.
pub(crate) fn counts(before: Option<&[u8]>, after: Option<&[u8]>) -> Option<(u64, u64)> {
    let other = Other::of(before, after);
    let (before, after) = other.as_ref().map_or((before, after), Other::sides);
    let compared = || Compared::new(before.unwrap_or_default(), after.unwrap_or_default());
    has_lines(before, after).then(|| compared().patch.counts())
}

/// Whether a version has lines.
pub(super) fn has_lines(before: Option<&[u8]>, after: Option<&[u8]>) -> bool {
    let mut versions = [before, after].into_iter().flatten().peekable();
    versions.peek().is_none() || versions.any(|bytes| Nature::of(bytes) != Nature::Binary)
}

/// What concerns a file as a whole: bytes that are not text, and a byte order mark.
fn notes(before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    let mut text = String::new();
    let told = |bytes: &[u8]| {
        let nature = match Nature::of(bytes) {
            Nature::Text => "text",
            Nature::OtherText => "not UTF-8",
            Nature::Binary => "not text",
        };
        format!("{nature}, {}", human_size(bytes.len() as u64))
    };
    let is_text = |side: Option<&[u8]>| side.is_none_or(|bytes| Nature::of(bytes) == Nature::Text);
    if !is_text(before) || !is_text(after) {
        let sides = match (before, after) {
            (Some(old), Some(new)) => format!("{} → {}", told(old), told(new)),
            (Some(one), None) | (None, Some(one)) => told(one),
            (None, None) => String::new(),
        };
        text.push_str(&format!("[{sides}: bytes that are not text are shown as \\xHH]\n"));
    }
    let has_mark = |side: Option<&[u8]>| side.is_some_and(|bytes| bytes.starts_with("\u{feff}".as_bytes()));
    match (has_mark(before), has_mark(after)) {
        (true, false) if after.is_some() => text.push_str("[the byte order mark at the start goes]\n"),
        (false, true) => text.push_str("[a byte order mark comes to the start]\n"),
        (true, false) | (true, true) | (false, false) => {}
    }
    text
}

enum LineEnds {
    /// The lines of both versions are compared and shown with their ends.
    Shown,
    /// Both versions have CRLF alone, so the lines are shown without.
    Crlf,
    /// A new text has CRLF.
    New(String),
    /// Lines get other ends all over the file.
    Change(String),
}

/// What happens to the line ends of a text as a whole.
fn line_ends(before: Option<&[u8]>, after: Option<&[u8]>) -> LineEnds {
    let is_text = |side: Option<&[u8]>| side.is_none_or(|bytes| Nature::of(bytes) == Nature::Text);
    if !is_text(before) || !is_text(after) {
        return LineEnds::Shown;
    }
    let counts = |side: Option<&[u8]>| {
        let bytes = side.unwrap_or_default();
        let crlf = memchr::memmem::find_iter(bytes, b"\r\n").count();
        (crlf, memchr::memchr_iter(b'\n', bytes).count() - crlf)
    };
    let told = |ends: (usize, usize)| match ends {
        (_, 0) => "CRLF".to_owned(),
        (0, _) => "LF".to_owned(),
        (crlf, lf) => format!("{crlf} CRLF and {lf} LF"),
    };
    let (old, new) = (counts(before), counts(after));
    match ((old.0 > 0, old.1 > 0), (new.0 > 0, new.1 > 0)) {
        ((false, false), (true, _)) => LineEnds::New(told(new)),
        ((true, false), (true, false) | (false, false)) => LineEnds::Crlf,
        ((false, false), _) | (_, (false, false)) => LineEnds::Shown,
        (of_old, of_new) if of_old != of_new => LineEnds::Change(format!("{} → {}", told(old), told(new))),
        _ => LineEnds::Shown,
    }
}

fn with_plain_ends(bytes: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memmem::find(bytes, b"\r\n").is_none() {
        return Cow::Borrowed(bytes);
    }
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memchr::memmem::find(rest, b"\r\n") {
        plain.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
    }
    plain.extend_from_slice(rest);
    Cow::Owned(plain)
}

/// Writes hunks up to a length, and counts what it leaves out.
struct Writer {
    text: String,
    most: usize,
    /// Says where the last line of a version has no end.
    names_last_end: bool,
    is_full: bool,
    /// Changed lines that were left out, and their bytes.
    lines: u64,
    bytes: u64,
}

impl Writer {
    fn hunk(&mut self, of: &Compared, hunk: &Hunk) {
        let (patch, lines) = (&of.patch, &of.patch.lines[hunk.lines.clone()]);
        if !self.is_full {
            self.text.push_str(&hunk.head(of.above));
        }
        // Lines that were removed together, and those in their place.
        let is_change = |line: &Line| line.tag != Tag::Same;
        for block in lines.chunk_by(|a, b| is_change(a) == is_change(b) && (a.tag, b.tag) != (Tag::Added, Tag::Removed))
        {
            let mut shortened = shortened(of, block);
            for line in block {
                let whole = patch.text(*line);
                match (line.tag, whole.len() > LONG) {
                    (Tag::Same, true) => self.line(' ', &start(content(whole)), self.end(whole)),
                    (Tag::Same, false) => self.line(' ', content(whole), self.end(whole)),
                    (Tag::Removed | Tag::Added, _) => {
                        let mark = if line.tag == Tag::Removed { '-' } else { '+' };
                        match shortened.front().filter(|(at, _)| at == line) {
                            Some((_, short)) => {
                                self.line(mark, short, self.end(whole));
                                shortened.pop_front();
                            }
                            None => self.line(mark, content(whole), self.end(whole)),
                        }
                    }
                }
            }
        }
    }

    fn end(&self, line: &str) -> &'static str {
        if line.ends_with('\n') || !self.names_last_end { "\n" } else { "\n\\ No newline at end of file\n" }
    }

    fn line(&mut self, mark: char, content: &str, end: &str) {
        let room = self.most.saturating_sub(self.text.len());
        if !self.is_full && content.len() <= room {
            self.put(mark, content, end);
            return;
        }
        // The start of the first line that does not fit is better than nothing of it.
        let shown = if self.is_full || mark == ' ' { "" } else { &content[..content.floor_char_boundary(room)] };
        if !shown.is_empty() {
            self.put(mark, shown, "\n");
        }
        self.is_full = true;
        if mark != ' ' {
            (self.lines, self.bytes) = (self.lines + 1, self.bytes + (content.len() - shown.len()) as u64);
        }
    }

    fn put(&mut self, mark: char, content: &str, end: &str) {
        self.text.push(mark);
        self.text.extend([content, end]);
    }

    /// The text, and how much is missing from it.
    fn finished(mut self) -> (String, Option<String>) {
        if self.lines == 0 {
            return (self.text, None);
        }
        let lines = if self.lines == 1 { "changed line" } else { "changed lines" };
        let unseen = format!("{} {lines} ({})", self.lines, human_size(self.bytes));
        self.text.push_str(&format!("[not shown: {unseen}]\n"));
        (self.text, Some(unseen))
    }
}

fn content(line: &str) -> &str {
    line.strip_suffix('\n').unwrap_or(line)
}

/// The excerpts of the long lines of a block that replace each other, in the order of the block.
fn shortened(of: &Compared, block: &[Line]) -> VecDeque<(Line, String)> {
    let long = |tag| -> Vec<Line> {
        let is_long = |line: &&Line| line.tag == tag && of.patch.text(**line).len() > LONG;
        block.iter().filter(is_long).copied().collect()
    };
    let (removed, mut added) = (long(Tag::Removed), long(Tag::Added));
    let (mut of_removed, mut of_added) = (VecDeque::new(), Vec::new());
    let in_order = removed.len().max(added.len()) > MOST_PAIRED;
    for old in removed {
        let alike = |new: &Line| likeness(content(of.patch.text(old)), content(of.patch.text(*new)));
        let best = if in_order { 0..added.len().min(1) } else { 0..added.len() };
        let Some(at) = best.max_by_key(|at| (alike(&added[*at]), std::cmp::Reverse(*at))) else { break };
        if alike(&added[at]) == 0 {
            continue;
        }
        let new = added.remove(at);
        let (old_text, new_text) = excerpts(content(of.patch.text(old)), content(of.patch.text(new)));
        of_removed.push_back((old, old_text));
        of_added.push((new, new_text));
    }
    of_added.sort_by_key(|(line, _)| line.new);
    of_removed.extend(of_added);
    of_removed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &[u8], after: &[u8]) -> Shown {
        Shown::of("x", Some(before), Some(after))
    }

    #[test]
    fn one_line_of_a_large_file_is_one_hunk_with_its_numbers() {
        let lines = |changed: &str| -> String {
            (1..=60_000).map(|n| if n == 50_000 { format!("{changed}\n") } else { format!("INSERT {n};\n") }).collect()
        };
        let it = shown(lines("old").as_bytes(), lines("new").as_bytes());
        let around = "INSERT 49997;\n INSERT 49998;\n INSERT 49999;\n-old\n+new\n INSERT 50001;\n INSERT 50002;";
        let text = format!("--- a/x\n+++ b/x\n@@ -49997,7 +49997,7 @@\n {around}\n INSERT 50003;\n");
        assert_eq!(it, Shown { text, counts: Some((1, 1)), unseen: None });
    }

    #[test]
    fn a_long_line_is_an_excerpt_also_beside_a_new_line() {
        let long = |word: &str| format!("{}{word}{}\n", "f(1);".repeat(2_000), "g(2);".repeat(2_000));
        let it = shown(long("old").as_bytes(), format!("// new\n{}", long("new")).as_bytes());
        let (side, end) = ("f(1);".repeat(8), "g(2);".repeat(8));
        let of = |word: &str| format!("⟨9960 unchanged characters⟩{side}{word}{end}⟨9960 unchanged characters⟩");
        let text = format!("--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-{}\n+// new\n+{}\n", of("old"), of("new"));
        assert_eq!(it, Shown { text, counts: Some((2, 1)), unseen: None });
    }

    #[test]
    fn a_version_that_is_not_text_is_shown_as_escapes_beside_one_that_is() {
        let it = shown(b"gr\xc3\xb6\xc3\x9fer caf\xe9\nsame\n", "größer café\nsame\n".as_bytes());
        assert_eq!(
            it.text,
            "[not UTF-8, 19B → text, 20B: bytes that are not text are shown as \\xHH]\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-größer caf\\xe9\n+größer café\n same\n"
        );
        assert_eq!((it.counts, it.unseen), (Some((1, 1)), None));
        // Where the encoding is known, the text is shown, and the encoding where that changes.
        let it = shown(b"caf\xe9\nsame\n", b"caf\xe9s\nsame\n");
        assert_eq!(
            it.text,
            "[encoding: Latin-1 (ISO-8859-1)]\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-café\n+cafés\n same\n"
        );
        let it = shown(b"caf\xe9\nsame\n", "café\nsame\n".as_bytes());
        assert_eq!(it.text, "[encoding: Latin-1 (ISO-8859-1) → UTF-8]\n");
        let it = shown(b"\x89PNG\0\n", b"\x89PNG\x01\n\0");
        assert!(it.text.contains("-\\x89PNG\\x00\n+\\x89PNG\\x01\n") && it.counts.is_none(), "{}", it.text);
    }

    #[test]
    fn line_ends_alone_are_one_sentence_and_text_that_changes_with_them_is_shown() {
        let it = shown(b"a\r\nb\r\nc\r\n", b"a\nb\nc\n");
        assert_eq!(it.text, "[line ends: CRLF → LF; lines of which nothing else changes: 3]\n");
        assert_eq!(it.counts, Some((3, 3)));
        let it = shown(b"a\r\nb\r\n", b"a\nB\n");
        assert!(
            it.text.starts_with("[line ends: CRLF → LF; lines of which nothing else changes: 1]\n")
                && it.text.ends_with(" a\n-b\n+B\n"),
            "{it:?}"
        );
        let it = shown(b"a\r\nb\r\n", b"a\r\nB\r\n");
        assert_eq!(it.text, "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n");
        let it = shown(b"a\r\nb\n", b"a\nb\r\n");
        assert!(it.text.ends_with("-a\r\n-b\n+a\n+b\r\n"), "{it:?}");
        let it = shown("\u{feff}a\n".as_bytes(), b"a\n");
        assert!(it.text.starts_with("[the byte order mark at the start goes]\n---"), "{it:?}");
        assert_eq!(Shown::of("x", None, Some(b"a\r\n")).text.lines().next(), Some("[line ends: CRLF]"));
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let long = "z".repeat(3 << 20);
        let it = Shown::of("x", None, Some(format!("a\n{long}\nb\n").as_bytes()));
        assert_eq!((it.counts, it.unseen.as_deref()), (Some((3, 0)), Some("2 changed lines (2MB)")));
        assert!(it.text.len() < MOST + 200 && it.text.ends_with("\n[not shown: 2 changed lines (2MB)]\n"));
        let gone = Shown::of("x", Some(long.as_bytes()), None);
        assert_eq!(gone.unseen, None, "all of it goes");
        let hunks: String = (0..5_000).map(|n| format!("{n}\n")).collect();
        let it = shown(hunks.as_bytes(), hunks.replace("7\n", "seven\n").as_bytes());
        assert_eq!((it.text.matches("+").count(), it.counts, it.unseen), (1_003, Some((500, 500)), None));
    }
}
