//! Tells text from other bytes, as they arrive: more than a tenth control characters, or a third that is not text, is binary.

use std::borrow::Cow;

use crate::encoding::{Encoding, Source, Transcoder};

/// How many first bytes are held to recognise the file type.
const START: usize = 16;

/// The character that is shown in place of bytes that are not text.
pub const REPLACEMENT: &str = "\u{fffd}";

/// Checks a stream for binary data as it arrives, decodes it where it has another encoding than UTF-8, and replaces single bytes
/// that are not text.
#[derive(Debug)]
pub struct Guard {
    transcoder: Transcoder,
    nul: u64,
    invalid: u64,
    control: u64,
    /// The first bytes of a character whose remaining bytes have not arrived.
    partial: Vec<u8>,
    start: Vec<u8>,
}

impl Guard {
    /// A guard of a stream from this source.
    pub fn of(source: Source) -> Guard {
        Guard::with(Transcoder::new(source))
    }

    /// A guard that takes its stream for UTF-8.
    pub fn of_utf8() -> Guard {
        Guard::with(Transcoder::passing())
    }

    fn with(transcoder: Transcoder) -> Guard {
        Guard { transcoder, nul: 0, invalid: 0, control: 0, partial: Vec::new(), start: Vec::new() }
    }

    /// The encoding that the stream was decoded from, where that is not plain UTF-8.
    pub fn encoding(&self) -> Option<Encoding> {
        self.transcoder.encoding()
    }

    /// Checks the next bytes of the stream, and returns what is clear of them as text: whole characters, and [`REPLACEMENT`] for
    /// what is none.
    pub fn see<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, str> {
        let room = START.saturating_sub(self.start.len()).min(bytes.len());
        self.start.extend_from_slice(&bytes[..room]);
        match self.transcoder.push(bytes) {
            Cow::Borrowed(bytes) => self.see_utf8(bytes),
            Cow::Owned(bytes) => Cow::Owned(self.see_transcoded(&bytes)),
        }
    }

    fn see_transcoded(&mut self, bytes: &[u8]) -> String {
        if self.encoding().is_some() {
            // Bytes that no character has were replaced when they were decoded.
            self.invalid += memchr::memmem::find_iter(bytes, REPLACEMENT).count() as u64;
        }
        self.see_utf8(bytes).into_owned()
    }

    fn see_utf8<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, str> {
        let nul = memchr::memchr_iter(0, bytes).count() as u64;
        self.nul += nul;
        self.control += bytes.iter().filter(|b| is_control(**b)).count() as u64;
        if nul == 0
            && self.partial.is_empty()
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            return Cow::Borrowed(text);
        }
        let mut all = std::mem::take(&mut self.partial);
        all.extend_from_slice(bytes);
        let mut text = String::with_capacity(all.len() + 16);
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let (valid, bad) = match std::str::from_utf8(rest) {
                Ok(valid) => (valid, 0),
                Err(e) => {
                    let (valid, after) = rest.split_at(e.valid_up_to());
                    (std::str::from_utf8(valid).unwrap_or_default(), e.error_len().unwrap_or(after.len()))
                }
            };
            text.push_str(&valid.replace('\0', REPLACEMENT));
            rest = &rest[valid.len()..];
            let is_partial = bad > 0 && bad == rest.len() && is_beginning(rest);
            if is_partial {
                self.partial = rest.to_vec();
                break;
            }
            if bad > 0 {
                text.push_str(REPLACEMENT);
                self.invalid += bad as u64;
                rest = &rest[bad..];
            }
        }
        Cow::Owned(text)
    }

    /// The end of the text: what was held, and a replacement character for a last one that a cut of the stream left incomplete.
    pub fn end(&mut self) -> String {
        let held = self.transcoder.end();
        let mut last = self.see_transcoded(&held);
        if !std::mem::take(&mut self.partial).is_empty() {
            last.push_str(REPLACEMENT);
        }
        last
    }

    /// How many bytes were replaced.
    pub fn replaced(&self) -> u64 {
        self.nul + self.invalid
    }

    /// Whether the stream, of this length, is binary as a whole: single bytes that are not text do not make it so.
    pub fn is_binary(&self, bytes: u64) -> bool {
        self.control * 10 > bytes || (self.control + self.invalid) * 10 > 3 * bytes
    }

    /// The same for the bytes of a file, where one NUL decides.
    pub fn is_binary_file(&self, bytes: u64) -> bool {
        self.nul > 0 || self.is_binary(bytes)
    }

    /// The first bytes of the stream.
    pub fn start(&self) -> &[u8] {
        &self.start
    }
}

/// Whether these bytes are the beginning of a character.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
}

/// Whether a byte counts as binary. Terminal controls (ESC, backspace, bell, return) do not, because they are stripped.
fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t' | b'\r' | 0x07 | 0x08 | 0x0c | 0x1b)
}

/// The media type of an image that models accept, by its first bytes.
pub fn media_type(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Reads width and height from an image's header, where that is simple.
pub fn sides(bytes: &[u8]) -> Option<(u32, u32)> {
    let big = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let small = |at: usize| Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    match media_type(bytes)? {
        "image/png" => Some((big(16)?, big(20)?)),
        "image/gif" => Some((small(6)?, small(8)?)),
        "image/jpeg" => jpeg_sides(bytes),
        _ => None,
    }
}

/// The size stands in the first frame header; the segments before it name their lengths.
fn jpeg_sides(bytes: &[u8]) -> Option<(u32, u32)> {
    let two = |at: usize| Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let mut at = 2;
    loop {
        let marker = *bytes.get(at + 1).filter(|_| bytes.get(at) == Some(&0xff))?;
        match marker {
            0xff => at += 1,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => return Some((two(at + 7)?, two(at + 5)?)),
            0x01 | 0xd0..=0xd9 => at += 2,
            _ => at += 2 + usize::try_from(two(at + 2)?).ok()?.max(2),
        }
    }
}

/// Whether an image passes a Provider's basic checks. An image that the Provider refuses fails every later request.
pub fn is_whole_image(bytes: &[u8]) -> bool {
    let has_size = |at: usize, len: usize| bytes.get(at..at + len).is_some_and(|size| size.iter().any(|b| *b != 0));
    match media_type(bytes) {
        Some("image/png") => {
            let has_header = bytes.get(12..16) == Some(b"IHDR") && has_size(16, 4) && has_size(20, 4);
            has_header && memchr::memmem::rfind(bytes, b"IEND").is_some()
        }
        Some("image/gif") => has_size(6, 2) && has_size(8, 2) && bytes.len() > 14,
        Some("image/jpeg") => bytes.len() > 100 && memchr::memmem::rfind(bytes, &[0xff, 0xd9]).is_some(),
        Some("image/webp") => bytes.get(4..8).is_some_and(|size| {
            let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]);
            size > 12 && bytes.len() as u64 >= u64::from(size)
        }),
        Some(_) | None => false,
    }
}
