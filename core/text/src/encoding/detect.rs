//! Which encoding bytes have.
//!
//! UTF-8 comes first and is never doubted. UTF-16 is known by its byte order mark, or by where its NULs stand. Among the
//! legacy encodings, what the file says about itself comes before a guess. An answer must decode the sample without a
//! fault into something that looks like text; otherwise the bytes are taken as UTF-8 with faults, as which they may be
//! shown, or be binary.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{DecoderResult, GB18030, GBK, KOI8_R, KOI8_U, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::{Charset, Encoding, UTF8_BOM, labelled, plain, short};

/// How many bytes decide, from the first one on that is not ASCII.
pub(super) const WINDOW: usize = 64 << 10;
/// How far into a file the first such byte is looked for, bytes.
const FARTHEST: usize = 64 << 20;
/// How many first bytes may name the encoding.
pub(super) const HEAD: usize = 1 << 10;

impl Encoding {
    /// The encoding of a whole file. UTF-8 is also the answer for binary bytes.
    pub fn of(bytes: &[u8]) -> Encoding {
        let Some(odd) = first_odd(&bytes[..bytes.len().min(FARTHEST)]) else { return Encoding::UTF_8 };
        if plain(bytes).is_some() {
            return Encoding { charset: Charset::Utf8, has_bom: bytes.starts_with(UTF8_BOM) };
        }
        let from = if odd < WINDOW { 0 } else { odd };
        let end = bytes.len().min(odd + WINDOW);
        let sample = Sample { bytes: &bytes[from..end], is_start: from == 0, is_end: end == bytes.len() };
        sample.encoding(&bytes[..bytes.len().min(HEAD)])
    }

    /// Whether all of a file is text in this encoding.
    pub(super) fn reads(self, bytes: &[u8]) -> bool {
        let sample = Sample { bytes: self.body(bytes), is_start: true, is_end: true };
        match self.charset.table() {
            None => plain(bytes).is_some(),
            Some(_) if matches!(self.charset, Charset::Utf16Le | Charset::Utf16Be) => {
                bytes.starts_with(self.bom()) && sample.utf16(sample.bytes, self.charset).is_some()
            }
            Some(table) => sample.reads_as(table),
        }
    }

    /// The encoding of a stream, by its bytes from the first one on that is not plain ASCII. `head` is the start of the
    /// stream.
    pub(super) fn of_sample(bytes: &[u8], is_start: bool, is_end: bool, head: &[u8]) -> Encoding {
        Sample { bytes, is_start, is_end }.encoding(head)
    }
}

/// The place of the first byte that is NUL or not ASCII.
pub(super) fn first_odd(bytes: &[u8]) -> Option<usize> {
    const STEP: usize = 4 << 10;
    let is_odd = |byte: &u8| !byte.is_ascii() || *byte == 0;
    let plain = |step: &&[u8]| step.is_ascii() && memchr::memchr(0, step).is_none();
    let from = bytes.chunks(STEP).take_while(plain).map(<[u8]>::len).sum::<usize>();
    bytes[from..].iter().position(is_odd).map(|at| from + at)
}

/// The part of a file that decides.
struct Sample<'a> {
    bytes: &'a [u8],
    is_start: bool,
    is_end: bool,
}

impl Sample<'_> {
    fn encoding(&self, head: &[u8]) -> Encoding {
        let bytes = self.bytes;
        if self.is_start {
            if bytes.starts_with(UTF8_BOM) {
                return Encoding { charset: Charset::Utf8, has_bom: true };
            }
            for charset in [Charset::Utf16Le, Charset::Utf16Be] {
                let marked = Encoding { charset, has_bom: true };
                if let Some(body) = bytes.strip_prefix(marked.bom()) {
                    return if self.utf16(body, charset).is_some() { marked } else { Encoding::UTF_8 };
                }
            }
        }
        let has_nul = memchr::memchr(0, bytes).is_some();
        let charset = match std::str::from_utf8(bytes) {
            _ if has_nul => self.unmarked_utf16(),
            Ok(_) => None,
            Err(e) if e.error_len().is_none() && !self.is_end => None,
            Err(_) => self.legacy(head),
        };
        Encoding { charset: charset.unwrap_or(Charset::Utf8), has_bom: false }
    }

    /// These bytes as UTF-16, if they are text in it.
    fn utf16(&self, body: &[u8], charset: Charset) -> Option<String> {
        let even = if self.is_end { body } else { &body[..body.len() & !1] };
        let table = if charset == Charset::Utf16Le { UTF_16LE } else { UTF_16BE };
        let text = strictly(table, even, self.is_end)?;
        let odd = text.chars().filter(|c| is_odd(*c) && !is_private(*c)).count();
        (!text.contains('\0') && odd * 200 <= text.chars().count()).then_some(text)
    }

    /// UTF-16 without a byte order mark: its ASCII characters have their NULs on one side.
    fn unmarked_utf16(&self) -> Option<Charset> {
        if !self.is_start || (self.is_end && self.bytes.len() % 2 == 1) {
            return None;
        }
        let (mut even, mut odd) = (0_usize, 0_usize);
        for at in memchr::memchr_iter(0, self.bytes) {
            if at.is_multiple_of(2) { even += 1 } else { odd += 1 }
        }
        let charset = match (even, odd) {
            // Other characters may have a zero on the other side, such as U+4E00.
            (even, odd) if even * 3 <= odd => Charset::Utf16Le,
            (even, odd) if odd * 3 <= even => Charset::Utf16Be,
            _ => return None,
        };
        let text = self.utf16(self.bytes, charset)?;
        let (mut ascii, mut legible, mut alphabet, mut pairs, mut others) =
            (0_usize, 0_usize, 0_usize, 0_usize, 0_usize);
        for c in text.chars() {
            if c.is_ascii() {
                ascii += 1;
                continue;
            }
            others += 1;
            legible += usize::from(is_legible(c));
            // Alphabets lie within one or two blocks of 256; ideographs are spread, but not over pairs of ASCII characters alone.
            alphabet += usize::from(matches!(u32::from(c), 0x80..0x900 | 0xe00..0x1000 | 0x1e00..0x2000));
            // Names that are divided by NULs would be ideographs here, made of two ASCII characters each.
            let is_of_ascii = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
            pairs += usize::from(u16::try_from(u32::from(c)).is_ok_and(|c| c.to_be_bytes().iter().all(is_of_ascii)));
        }
        let is_text = ascii + others > 1
            // Three or four units can be anything.
            && (ascii >= others || (ascii + others >= 8 && legible * 20 >= others * 19))
            && (alphabet * 10 >= others * 8 || pairs * 5 <= others * 3);
        is_text.then_some(charset)
    }

    /// A legacy encoding: the one that the file names, or else the best guess.
    fn legacy(&self, head: &[u8]) -> Option<Charset> {
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(self.bytes, self.is_end);
        let guess = detector.guess(None, Utf8Detection::Deny);
        if self.is_broken_utf8(guess.is_single_byte()) {
            return None;
        }
        let best = short::best(self.bytes, self.is_end, guess);
        let table = declared(head).into_iter().chain(best).chain([guess]).find(|&table| self.reads_as(table))?;
        Some(match table {
            it if it == WINDOWS_1252 && !self.bytes.iter().any(|byte| (0x80..0xa0).contains(byte)) => Charset::Latin1,
            it if it == GBK && has_four_bytes(self.bytes) => Charset::Other(GB18030),
            // Both are the same but for ten Ukrainian and Belarusian letters.
            it if it == KOI8_U && !self.bytes.iter().any(is_ukrainian) => Charset::Other(KOI8_R),
            it => Charset::Other(it),
        })
    }

    /// Whether these are UTF-8 with a few faults: most sequences are whole. Two characters of EUC-JP can look like one of
    /// UTF-8, so where the guess has characters of several bytes, nearly all have to be whole.
    fn is_broken_utf8(&self, guess_is_single_byte: bool) -> bool {
        let (mut whole, mut faults) = (0_usize, 0_usize);
        for chunk in self.bytes.utf8_chunks() {
            whole += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
            faults += usize::from(!chunk.invalid().is_empty());
        }
        whole >= 8 * faults || (guess_is_single_byte && whole > 0 && whole >= faults)
    }

    /// Whether the sample decodes into something that looks like text.
    fn reads_as(&self, table: &'static encoding_rs::Encoding) -> bool {
        let Some(text) = strictly(table, self.bytes, self.is_end) else { return false };
        // DOS ends a file with ^Z.
        let text = text.strip_suffix('\u{1a}').unwrap_or(&text);
        let (mut all, mut others, mut legible, mut controls) = (0_usize, 0_usize, 0_usize, 0_usize);
        for c in text.chars() {
            all += 1;
            if c.is_ascii() {
                controls += usize::from(is_odd(c));
            } else if is_odd(c) {
                return false;
            } else {
                others += 1;
                legible += usize::from(is_legible(c));
            }
        }
        // Random bytes have a tenth of control characters, and as many signs as letters.
        controls * 200 <= all && (legible * 4 >= others * 3 || others * 10 <= all * 3)
    }
}

/// The text, if each byte of it is part of a character. Without the end, the last character may be torn.
pub(super) fn strictly(table: &'static encoding_rs::Encoding, bytes: &[u8], is_end: bool) -> Option<String> {
    let mut decoder = table.new_decoder_without_bom_handling();
    let mut text = String::with_capacity(decoder.max_utf8_buffer_length_without_replacement(bytes.len())?);
    let (result, _) = decoder.decode_to_string_without_replacement(bytes, &mut text, is_end);
    matches!(result, DecoderResult::InputEmpty).then_some(text)
}

/// A character that text does not have.
fn is_odd(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' | '\u{7}' | '\u{8}' | '\u{c}' | '\u{1b}' => false,
        _ => c.is_control() || is_private(c) || (c as u32 & 0xfffe) == 0xfffe || c == '\u{fffd}',
    }
}

/// A character whose meaning is agreed in private.
fn is_private(c: char) -> bool {
    matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..)
}

/// A letter, or a sign that stands between letters.
fn is_legible(c: char) -> bool {
    c.is_alphanumeric()
        || matches!(c, '\u{a0}'..='\u{bf}' | '\u{300}'..='\u{36f}' | '\u{e31}'..='\u{e4e}' | '\u{2010}'..='\u{22ff}')
        || matches!(c, '\u{2500}'..='\u{25ff}' | '\u{3000}'..='\u{303f}' | '\u{30fb}' | '\u{fe30}'..='\u{fe4f}')
        || matches!(c, '\u{ff01}'..='\u{ffee}' | '\u{1f000}'..='\u{1faff}')
}

/// Whether this byte is a letter of KOI8-U that KOI8-R does not have.
fn is_ukrainian(byte: &u8) -> bool {
    matches!(byte, 0xa4 | 0xa6 | 0xa7 | 0xad | 0xae | 0xb4 | 0xb6 | 0xb7 | 0xbd | 0xbe)
}

/// Whether there are characters of four bytes, which GB18030 has and GBK has not.
fn has_four_bytes(bytes: &[u8]) -> bool {
    let mut at = 0;
    while let [first, rest @ ..] = &bytes[at..] {
        at += match (first, rest) {
            (0x81.., [0x30..=0x39, ..]) => return true,
            (0x81.., _) => 2,
            _ => 1,
        };
        if at > bytes.len() {
            return false;
        }
    }
    false
}

/// The encoding that a file names in its first bytes, as XML, HTML, CSS, Python and Emacs write it.
fn declared(head: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let folded = head.to_ascii_lowercase();
    ["coding", "charset"].iter().find_map(|word| {
        memchr::memmem::find_iter(&folded, word).find_map(|at| {
            let behind = &folded[at + word.len()..];
            let start = behind.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'=' | b':' | b'"' | b'\''))?;
            let is_label = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            let label: Vec<u8> = behind[start..].iter().copied().take_while(is_label).collect();
            labelled(std::str::from_utf8(&label).ok()?).filter(|it| *it != encoding_rs::UTF_8)
        })
    })
}
