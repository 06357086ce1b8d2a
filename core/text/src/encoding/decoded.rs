//! A text with the bytes that it came from: parts of it are replaced, and every other byte stays as it is.

use std::ops::Range;

use super::Encoding;
use crate::edits::{DiffOp, edits_of_texts};
use crate::media::{Guard, REPLACEMENT};
use protocol::error::{Code, Error};

/// The text of a file, and the bytes that it came from.
#[derive(Debug, Clone)]
pub struct Decoded {
    encoding: Encoding,
    bytes: Vec<u8>,
    text: String,
    /// Each byte is part of a character.
    is_whole: bool,
}

impl Default for Decoded {
    /// An empty file.
    fn default() -> Decoded {
        Decoded { encoding: Encoding::UTF_8, bytes: Vec::new(), text: String::new(), is_whole: true }
    }
}

/// A part of a changed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// This range of the text before, which keeps its bytes.
    Kept(Range<usize>),
    New(String),
}

/// Why a text has no bytes in an encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// The encoding does not have this character.
    Character { character: char, encoding: Encoding },
    /// The new text has U+FFFD, which replaces faulty bytes in the text that was read.
    Replacement,
    /// The change would tear a sequence of bytes that belongs together.
    Torn,
}

impl Unfit {
    /// The error that says so, about a file of this name.
    pub fn error(self, shown: &str) -> Error {
        let (message, fix) = match self {
            Unfit::Character { character, encoding } => (
                format!(
                    "`{shown}` is {encoding}, which does not have the character {character} (U+{:04X}); nothing was changed",
                    u32::from(character)
                ),
                "characters that it has, or write the whole file with encoding=utf-8",
            ),
            Unfit::Replacement => (
                format!(
                    "the new text of `{shown}` has U+FFFD, which replaces faulty bytes in what was read; nothing was changed"
                ),
                "an edit that leaves those bytes out of old_text and new_text",
            ),
            Unfit::Torn => (
                format!("the change of `{shown}` would split the bytes of one character; nothing was changed"),
                "an edit that includes the characters before and after it",
            ),
        };
        Error::new(Code::InvalidArgs, message, fix).with("input", shown)
    }
}

impl Decoded {
    /// The text of a file; `None` if it is binary.
    pub fn of(bytes: Vec<u8>) -> Option<Decoded> {
        let encoding = Encoding::of(&bytes);
        Decoded::with(encoding, bytes)
    }

    /// Another version of this file; `None` if it is binary or in another encoding.
    pub fn version(&self, bytes: Vec<u8>) -> Option<Decoded> {
        let own = self.encoding;
        let of = super::encodings(&self.bytes, &bytes).1;
        let is_same = of == own || (of.is_utf8() && own.is_utf8()) || (bytes.is_ascii() && own.has_ascii());
        if is_same { Decoded::with(own, bytes) } else { None }
    }

    /// The text in this encoding. In UTF-8, a byte order mark is a part of the text.
    pub(super) fn with(encoding: Encoding, bytes: Vec<u8>) -> Option<Decoded> {
        if !encoding.is_utf8() {
            let (text, is_whole) = encoding.decode(&bytes);
            let text = text.into_owned();
            return Some(Decoded { encoding, bytes, text, is_whole });
        }
        match String::from_utf8(bytes) {
            Ok(text) => Some(Decoded { encoding, bytes: text.clone().into_bytes(), text, is_whole: true }),
            Err(e) => {
                let bytes = e.into_bytes();
                let mut guard = Guard::of_utf8();
                guard.see(&bytes);
                let is_text = !guard.is_binary_file(bytes.len() as u64);
                is_text.then(|| Decoded {
                    encoding,
                    text: String::from_utf8_lossy(&bytes).into_owned(),
                    bytes,
                    is_whole: false,
                })
            }
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether its bytes are its text: UTF-8 without a fault.
    pub fn is_plain(&self) -> bool {
        self.encoding.is_utf8() && self.is_whole
    }

    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The file with this text. Lines that both texts have keep their bytes.
    ///
    /// # Errors
    /// As [`Decoded::changed`].
    pub fn rewritten(&self, new: &str) -> Result<Decoded, Unfit> {
        if self.is_plain() {
            return Ok(Decoded { text: new.to_owned(), bytes: new.as_bytes().to_vec(), ..*self });
        }
        let old: Vec<&str> = self.text.split_inclusive('\n').collect();
        let lines: Vec<&str> = new.split_inclusive('\n').collect();
        let starts: Vec<usize> = old.iter().scan(0, |at, line| Some(std::mem::replace(at, *at + line.len()))).collect();
        let start = |line: usize| starts.get(line).copied().unwrap_or(self.text.len());
        // Lines of one text may have several bytes, so what stands before and behind all changes is not compared with them.
        let above = old.iter().zip(&lines).take_while(|(old, new)| old == new).count();
        let (changed_old, changed) = (&old[above..], &lines[above..]);
        let below = changed_old.iter().rev().zip(changed.iter().rev()).take_while(|(old, new)| old == new).count();
        let (changed_old, changed) = (&changed_old[..changed_old.len() - below], &changed[..changed.len() - below]);
        let parts = edits_of_texts(changed_old, changed).into_iter().map(|edit| match edit {
            DiffOp::Equal { old_index, len, .. } => {
                Part::Kept(start(above + old_index)..start(above + old_index + len))
            }
            DiffOp::Delete { .. } => Part::New(String::new()),
            DiffOp::Insert { new_index, new_len, .. } | DiffOp::Replace { new_index, new_len, .. } => {
                Part::New(changed[new_index..new_index + new_len].concat())
            }
        });
        let parts = std::iter::once(Part::Kept(0..start(above))).chain(parts);
        let parts = parts.chain([Part::Kept(start(old.len() - below)..self.text.len())]);
        self.changed(&parts.collect::<Vec<_>>())
    }

    /// The file that is made of these parts, in this order. What a new part has in common with the start and the end of what it
    /// replaces keeps its bytes too. The result decodes into exactly the parts, or the change is refused.
    ///
    /// # Errors
    /// A character that the encoding does not have; a part that begins or ends within a sequence of bytes.
    pub fn changed(&self, parts: &[Part]) -> Result<Decoded, Unfit> {
        let parts = self.narrowed(parts);
        let is_new = |part: &Part| matches!(part, Part::New(new) if new.contains(REPLACEMENT));
        if !self.is_whole && parts.iter().any(is_new) {
            return Err(Unfit::Replacement);
        }
        let mut walk = Walk { of: self, text: 0, byte: self.start() };
        let (mut bytes, mut text) = (self.bytes[..self.start()].to_vec(), String::with_capacity(self.text.len()));
        for part in &parts {
            match part {
                Part::Kept(range) => {
                    let (from, to) = (walk.byte_at(range.start), walk.byte_at(range.end));
                    bytes.extend_from_slice(&self.bytes[from..to]);
                    text.push_str(&self.text[range.clone()]);
                }
                Part::New(new) => {
                    bytes.extend(self.encoding.encode_part(new)?);
                    text.push_str(new);
                }
            }
        }
        let changed = Decoded { text, bytes, ..*self };
        // Decoding says whether the parts fit together.
        let again = self.encoding.decode_body(&changed.bytes);
        if again == changed.text { Ok(changed) } else { Err(Unfit::Torn) }
    }

    /// Where the text begins in the bytes.
    fn start(&self) -> usize {
        if self.encoding.is_utf8() { 0 } else { self.bytes.len() - self.encoding.body(&self.bytes).len() }
    }

    /// The same parts, where each new one is as short as it can be.
    fn narrowed(&self, parts: &[Part]) -> Vec<Part> {
        let mut narrow = Vec::with_capacity(parts.len() + 2);
        let mut kept_to = 0;
        let mut new = String::new();
        let end_gap = |new: &mut String, from: usize, to: usize, narrow: &mut Vec<Part>| {
            let old = &self.text[from..to];
            let start = common(old.chars().zip(new.chars()));
            let end = common(old[start..].chars().rev().zip(new[start..].chars().rev()));
            let middle = new[start..new.len() - end].to_owned();
            new.clear();
            narrow.push(Part::Kept(from..from + start));
            narrow.push(Part::New(middle));
            narrow.push(Part::Kept(to - end..to));
        };
        for part in parts {
            match part {
                Part::New(text) => new.push_str(text),
                Part::Kept(range) => {
                    end_gap(&mut new, kept_to, range.start, &mut narrow);
                    narrow.push(Part::Kept(range.clone()));
                    kept_to = range.end;
                }
            }
        }
        end_gap(&mut new, kept_to, self.text.len(), &mut narrow);
        narrow.retain(|part| match part {
            Part::Kept(range) => !range.is_empty(),
            Part::New(text) => !text.is_empty(),
        });
        narrow
    }
}

/// How many bytes of the characters are the same, from the start.
fn common(pairs: impl Iterator<Item = (char, char)>) -> usize {
    pairs.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}

impl Encoding {
    /// The bytes behind the byte order mark.
    pub(super) fn body(self, bytes: &[u8]) -> &[u8] {
        bytes.strip_prefix(self.bom()).unwrap_or(bytes)
    }

    /// The text of a file as [`Decoded`] has it.
    fn decode_body(self, bytes: &[u8]) -> std::borrow::Cow<'_, str> {
        if self.is_utf8() { String::from_utf8_lossy(bytes) } else { self.decode(bytes).0 }
    }
}

/// Goes through a text and its bytes side by side, forward.
struct Walk<'a> {
    of: &'a Decoded,
    /// Where it is in the text, and in the bytes.
    text: usize,
    byte: usize,
}

impl Walk<'_> {
    /// The byte at which this position of the text begins.
    fn byte_at(&mut self, at: usize) -> usize {
        let Decoded { encoding, bytes, text, is_whole } = self.of;
        if encoding.is_utf8() && *is_whole {
            return at;
        }
        // One byte can end two characters. The second of them begins where it does.
        if at <= self.text {
            return self.byte;
        }
        // No sequence of these encodings has a newline in it, so whole lines are passed over.
        while let Some(end) = memchr::memchr(b'\n', &text.as_bytes()[self.text..at]) {
            let Some(newline) = encoding.newline(&bytes[self.byte..]) else { break };
            (self.text, self.byte) = (self.text + end + 1, self.byte + newline);
        }
        if encoding.is_utf8() {
            return self.byte_in_utf8(at);
        }
        let mut decoder = super::Decoder::of_part(*encoding);
        while self.text < at && self.byte < bytes.len() {
            self.byte += 1;
            self.text += decoder.text_of(&bytes[self.byte - 1..self.byte], self.byte == bytes.len()).len();
        }
        self.byte
    }

    /// The same in UTF-8 with faults, each of which is one sign in the text.
    fn byte_in_utf8(&mut self, at: usize) -> usize {
        for chunk in self.of.bytes[self.byte..].utf8_chunks() {
            let plain = chunk.valid().len().min(at - self.text);
            (self.text, self.byte) = (self.text + plain, self.byte + plain);
            if self.text == at {
                break;
            }
            (self.text, self.byte) = (self.text + REPLACEMENT.len(), self.byte + chunk.invalid().len());
        }
        self.byte
    }
}

impl Encoding {
    /// The end of the first newline in these bytes, which begin with a character.
    fn newline(self, bytes: &[u8]) -> Option<usize> {
        let unit = match self.charset {
            super::Charset::Utf16Le => [b'\n', 0],
            super::Charset::Utf16Be => [0, b'\n'],
            _ => return memchr::memchr(b'\n', bytes).map(|at| at + 1),
        };
        bytes.chunks_exact(2).position(|it| it == unit).map(|at| 2 * at + 2)
    }
}
