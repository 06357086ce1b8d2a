//! Tells text from other bytes, as they arrive: more than a tenth control characters, or a third that is no text, is binary.

use std::borrow::Cow;

use crate::encoding::{Decoder, Encoding};

/// How many first bytes are held to recognise the file type.
const START: usize = 16;

/// What stands for bytes that are no text.
pub const REPLACEMENT: &str = "\u{fffd}";

/// How many bytes of a stream are held until its encoding is clear, from the first one on that is not plain UTF-8.
const HELD: usize = 4 << 10;
/// The same for the bytes of a file, which no user waits for.
const HELD_OF_FILE: usize = 64 << 10;

/// Checks a stream for binary data as it arrives, decodes it where it has another encoding than UTF-8, and replaces single bytes
/// that are no text.
#[derive(Debug, Default)]
pub struct Guard {
    nul: u64,
    invalid: u64,
    control: u64,
    /// The first bytes of a character whose remaining bytes have not arrived.
    partial: Vec<u8>,
    start: Vec<u8>,
    /// Text was returned, and some of it was not ASCII.
    has_passed: bool,
    has_passed_utf8: bool,
    is_of_file: bool,
    decoding: Decoding,
}

#[derive(Debug, Default)]
enum Decoding {
    /// All bytes so far are plain UTF-8.
    #[default]
    Open,
    /// Bytes that are not, until there are enough of them to tell what they are.
    Held {
        bytes: Vec<u8>,
        is_start: bool,
    },
    /// UTF-8, whatever comes.
    Utf8,
    Known(Encoding, Decoder),
}

impl Guard {
    /// A guard that takes its stream for UTF-8.
    pub fn of_utf8() -> Guard {
        Guard { decoding: Decoding::Utf8, ..Guard::default() }
    }

    /// A guard whose stream has this encoding.
    pub fn of(encoding: Encoding) -> Guard {
        if encoding == Encoding::UTF_8 {
            return Guard::of_utf8();
        }
        Guard { decoding: Decoding::Known(encoding, Decoder::new(encoding)), ..Guard::default() }
    }

    /// States that the stream is a file, whose encoding is worth a longer look.
    pub fn is_of_file(&mut self) {
        self.is_of_file = true;
    }

    /// The encoding that the stream was decoded from, where that is not plain UTF-8.
    pub fn encoding(&self) -> Option<Encoding> {
        match &self.decoding {
            Decoding::Known(encoding, _) => Some(*encoding),
            Decoding::Open | Decoding::Held { .. } | Decoding::Utf8 => None,
        }
    }

    /// Checks the next bytes of the stream, and returns what is clear of them as text: whole characters, and [`REPLACEMENT`] for
    /// what is none.
    pub fn see<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, str> {
        let room = START.saturating_sub(self.start.len()).min(bytes.len());
        self.start.extend_from_slice(&bytes[..room]);
        match &mut self.decoding {
            Decoding::Utf8 => self.see_utf8(bytes),
            Decoding::Open if self.partial.is_empty() && is_plain(bytes) => self.see_utf8(bytes),
            Decoding::Open => {
                let all = [std::mem::take(&mut self.partial).as_slice(), bytes].concat();
                if is_plain(&all) {
                    return Cow::Owned(self.see_utf8(&all).into_owned());
                }
                // What stands before the first odd byte is text in any case; only UTF-16 begins before it.
                let is_start = !self.has_passed;
                let odd = all.iter().position(|byte| !byte.is_ascii() || *byte == 0).unwrap_or(0);
                let (plain, held) = all.split_at(if is_start { 0 } else { odd });
                let text = self.see_utf8(plain).into_owned();
                self.decoding = Decoding::Held { bytes: Vec::new(), is_start };
                Cow::Owned(text + &self.hold(held))
            }
            Decoding::Held { .. } => Cow::Owned(self.hold(bytes)),
            Decoding::Known(_, decoder) => {
                let text = decoder.text_of(bytes, false);
                Cow::Owned(self.see_decoded(text))
            }
        }
    }

    /// Holds these bytes; returns the text of all that are held once there are enough.
    fn hold(&mut self, more: &[u8]) -> String {
        let most = if self.is_of_file { HELD_OF_FILE } else { HELD };
        let Decoding::Held { bytes, .. } = &mut self.decoding else { return String::new() };
        bytes.extend_from_slice(more);
        if bytes.len() < most { String::new() } else { self.settle(false) }
    }

    /// Decides what the held bytes are; returns their text.
    fn settle(&mut self, is_end: bool) -> String {
        let Decoding::Held { bytes, is_start } = std::mem::take(&mut self.decoding) else { return String::new() };
        // A stream that had characters of UTF-8 stays UTF-8.
        let encoding =
            if self.has_passed_utf8 { Encoding::UTF_8 } else { Encoding::of_stream(&bytes, is_start, is_end) };
        if encoding.is_utf8() {
            self.decoding = Decoding::Utf8;
            return self.see_utf8(&bytes).into_owned();
        }
        let mut decoder = Decoder::new(encoding);
        let text = decoder.text_of(&bytes, false);
        self.decoding = Decoding::Known(encoding, decoder);
        self.see_decoded(text)
    }

    fn see_decoded(&mut self, text: String) -> String {
        self.control += text.bytes().filter(|b| is_control(*b)).count() as u64;
        self.invalid += text.matches(REPLACEMENT).count() as u64;
        if !text.contains('\0') {
            return text;
        }
        self.nul += text.matches('\0').count() as u64;
        text.replace('\0', REPLACEMENT)
    }

    fn see_utf8<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, str> {
        let nul = memchr::memchr_iter(0, bytes).count() as u64;
        self.nul += nul;
        self.control += bytes.iter().filter(|b| is_control(**b)).count() as u64;
        self.has_passed |= !bytes.is_empty();
        self.has_passed_utf8 |= !bytes.is_ascii();
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

    /// The end of the text: what was held, and what stands for a last character that is not whole, because the stream was cut.
    pub fn end(&mut self) -> String {
        let held = self.settle_at_end();
        let last = match &mut self.decoding {
            Decoding::Known(_, decoder) => {
                let text = decoder.text_of(&[], true);
                self.see_decoded(text)
            }
            Decoding::Open | Decoding::Held { .. } | Decoding::Utf8 if self.partial.is_empty() => String::new(),
            Decoding::Open | Decoding::Held { .. } | Decoding::Utf8 => {
                self.partial.clear();
                REPLACEMENT.to_owned()
            }
        };
        held + &last
    }

    fn settle_at_end(&mut self) -> String {
        if matches!(self.decoding, Decoding::Held { .. }) { self.settle(true) } else { String::new() }
    }

    /// How many bytes were replaced.
    pub fn replaced(&self) -> u64 {
        self.nul + self.invalid
    }

    /// Whether the stream, of this length, is binary as a whole: single bytes that are no text do not make it so.
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

/// Whether these bytes are UTF-8 as far as they go, without a NUL.
fn is_plain(bytes: &[u8]) -> bool {
    memchr::memchr(0, bytes).is_none() && std::str::from_utf8(bytes).map_or_else(|e| e.error_len().is_none(), |_| true)
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
