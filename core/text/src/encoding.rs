//! Text in other encodings than UTF-8: recognised, decoded, and changed without touching another byte.
//!
//! [`Encoding::of`] says which encoding the bytes of a file have, [`decoded()`] gives their text, and [`Decoded`] changes
//! parts of it: what a change does not name keeps its bytes, also where an encoding has two sequences for one character.
//! The tables are those of encoding_rs, the guess among legacy encodings is chardetng's; what both say is checked by
//! decoding again. Bytes that are valid UTF-8 are UTF-8, and binary bytes stay binary.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

use encoding_rs::{EncoderResult, UTF_16BE, UTF_16LE, WINDOWS_1252};

mod decoded; // a text with the bytes that it came from
mod detect; // which encoding bytes have
mod short; // the encoding of a few words
mod stream; // streams as UTF-8

pub use decoded::{Decoded, Part, Unfit};
use stream::Decoder;
pub use stream::{Source, Transcoder, Utf8Reader};

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

/// The encoding of a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    charset: Charset,
    has_bom: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charset {
    Utf8,
    Utf16Le,
    Utf16Be,
    /// encoding_rs reads Latin-1 as windows-1252, which has 27 characters more. They do not fit into a file that has none of them.
    Latin1,
    Other(&'static encoding_rs::Encoding),
}

impl Encoding {
    /// UTF-8 without a byte order mark.
    pub const UTF_8: Encoding = Encoding { charset: Charset::Utf8, has_bom: false };

    /// The encoding of this name, as people and programs write it: `latin-1`, `cp1251`, `Shift_JIS`, `UTF-16LE with BOM`.
    /// `UTF-16` alone is little-endian with a byte order mark, as Windows writes it.
    pub fn named(name: &str) -> Option<Encoding> {
        let folded: String = name.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
        let (folded, has_bom) = match ["withbom", "bom", "sig"].iter().find_map(|it| folded.strip_suffix(it)) {
            Some(rest) => (rest, true),
            None => (folded.as_str(), false),
        };
        let charset = match folded {
            "utf8" => Charset::Utf8,
            "utf16" => return Some(Encoding { charset: Charset::Utf16Le, has_bom: true }),
            "utf16le" => Charset::Utf16Le,
            "utf16be" => Charset::Utf16Be,
            _ if has_bom => return None,
            "latin1" | "l1" | "iso88591" | "latin1iso88591" => Charset::Latin1,
            "cp932" | "mskanji" => Charset::Other(encoding_rs::SHIFT_JIS),
            "cp936" => Charset::Other(encoding_rs::GBK),
            "cp949" | "uhc" => Charset::Other(encoding_rs::EUC_KR),
            "cp950" => Charset::Other(encoding_rs::BIG5),
            // The table of labels takes it for windows-1252; a text of ASCII is the same in UTF-8.
            "ascii" | "usascii" => return None,
            _ => match labelled(name.trim()).or_else(|| labelled(folded))? {
                it if it == encoding_rs::UTF_8 => Charset::Utf8,
                it => Charset::Other(it),
            },
        };
        Some(Encoding { charset, has_bom })
    }

    /// Whether it is UTF-8, with or without a byte order mark.
    pub fn is_utf8(self) -> bool {
        self.charset == Charset::Utf8
    }

    /// Whether a text of ASCII has the same bytes in it and in UTF-8.
    pub fn has_ascii(self) -> bool {
        !self.has_bom && !matches!(self.charset, Charset::Utf16Le | Charset::Utf16Be)
    }

    /// The bytes of the byte order mark that begins a file.
    fn bom(self) -> &'static [u8] {
        match (self.has_bom, self.charset) {
            (true, Charset::Utf8) => UTF8_BOM,
            (true, Charset::Utf16Le) => b"\xff\xfe",
            (true, Charset::Utf16Be) => b"\xfe\xff",
            _ => b"",
        }
    }

    /// Decodes a whole file; the byte order mark does not belong to the text. The flag says whether each byte is part of a character.
    pub fn decode(self, bytes: &[u8]) -> (Cow<'_, str>, bool) {
        let body = self.body(bytes);
        match self.charset.table() {
            None => {
                let text = String::from_utf8_lossy(body);
                let is_whole = matches!(text, Cow::Borrowed(_));
                (text, is_whole)
            }
            Some(table) => {
                let (text, has_faults) = table.decode_without_bom_handling(body);
                (text, !has_faults)
            }
        }
    }

    /// The text of a whole file, if this encoding writes it as exactly these bytes: then other bytes are another text.
    pub fn decode_exactly(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        let (text, is_whole) = self.decode(bytes);
        (is_whole && self.encode(&text).is_ok_and(|again| again == bytes)).then_some(text)
    }

    /// The bytes of a whole file with this text.
    ///
    /// # Errors
    /// The first character that the encoding does not have.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, Unfit> {
        let body = text.strip_prefix('\u{feff}').filter(|_| self.has_bom).unwrap_or(text);
        Ok([self.bom(), &self.encode_part(body)?].concat())
    }

    /// The bytes of a part of a text.
    pub(crate) fn encode_part(self, text: &str) -> Result<Vec<u8>, Unfit> {
        match self.charset {
            Charset::Utf8 => Ok(text.as_bytes().to_vec()),
            Charset::Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Charset::Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Charset::Latin1 => text.chars().map(|c| u8::try_from(c).map_err(|_| self.lacks(c))).collect(),
            Charset::Other(table) => {
                let bytes = encoded(table, text).map_err(|c| self.lacks(c))?;
                // Some tables write a character as a similar one: the yen of Shift_JIS becomes a backslash.
                let (again, _) = table.decode_without_bom_handling(&bytes);
                match text.chars().zip(again.chars()).find(|(wanted, written)| wanted != written) {
                    Some((wanted, _)) => Err(self.lacks(wanted)),
                    None if again == text => Ok(bytes),
                    None => Err(Unfit::Torn),
                }
            }
        }
    }

    fn lacks(self, character: char) -> Unfit {
        Unfit::Character { character, encoding: self }
    }
}

impl Charset {
    /// The table that decodes it; `None` for UTF-8.
    fn table(self) -> Option<&'static encoding_rs::Encoding> {
        match self {
            Charset::Utf8 => None,
            Charset::Utf16Le => Some(UTF_16LE),
            Charset::Utf16Be => Some(UTF_16BE),
            Charset::Latin1 => Some(WINDOWS_1252),
            Charset::Other(table) => Some(table),
        }
    }
}

impl Display for Encoding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = match self.charset {
            Charset::Utf8 => "UTF-8",
            Charset::Latin1 => "Latin-1 (ISO-8859-1)",
            Charset::Utf16Le => "UTF-16LE",
            Charset::Utf16Be => "UTF-16BE",
            Charset::Other(table) => table.name(),
        };
        f.write_str(name)?;
        if self.has_bom { f.write_str(" with BOM") } else { Ok(()) }
    }
}

/// The table of a label, where a part of a file can be decoded without what stands before it.
fn labelled(label: &str) -> Option<&'static encoding_rs::Encoding> {
    let table = encoding_rs::Encoding::for_label_no_replacement(label.as_bytes())?;
    let is_stateful = table == encoding_rs::ISO_2022_JP || table == encoding_rs::X_USER_DEFINED;
    (!is_stateful && table.output_encoding() == table).then_some(table)
}

/// The bytes of a text, or the first character that the table does not have.
fn encoded(table: &'static encoding_rs::Encoding, text: &str) -> Result<Vec<u8>, char> {
    let mut encoder = table.new_encoder();
    let most = encoder.max_buffer_length_from_utf8_without_replacement(text.len()).unwrap_or(0);
    let mut bytes = Vec::with_capacity(most);
    match encoder.encode_from_utf8_to_vec_without_replacement(text, &mut bytes, true) {
        (EncoderResult::InputEmpty, _) => Ok(bytes),
        (EncoderResult::Unmappable(character), _) => Err(character),
        (EncoderResult::OutputFull, _) => unreachable!("the buffer has room for the longest encoding of the text"),
    }
}

/// The text of a file, for showing and comparing; `None` where it is not text as a whole. In UTF-8, a byte order mark is a part
/// of the text.
pub fn decoded(bytes: &[u8]) -> Option<Cow<'_, str>> {
    decoded_from(Encoding::of(bytes), bytes)
}

fn decoded_from(encoding: Encoding, bytes: &[u8]) -> Option<Cow<'_, str>> {
    if encoding.is_utf8() {
        return plain(bytes).map(Cow::Borrowed);
    }
    let (text, is_whole) = encoding.decode(bytes);
    is_whole.then_some(text)
}

/// The encodings of two versions of a file. The later one is read as the earlier one is, where it can be: the few characters of a
/// short file may look like another encoding.
pub fn encodings(before: &[u8], after: &[u8]) -> (Encoding, Encoding) {
    let old = Encoding::of(before);
    let new = Encoding::of(after);
    let is_like_old = !old.is_utf8() && (!new.is_utf8() || plain(after).is_none()) && old.reads(after);
    (old, if is_like_old { old } else { new })
}

/// The texts of two versions of a file, for comparing them; `None` where one of them is not text as a whole.
pub fn both<'a>(before: &'a [u8], after: &'a [u8]) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
    let (old, new) = encodings(before, after);
    Some((decoded_from(old, before)?, decoded_from(new, after)?))
}

/// The bytes as text, if they are UTF-8 without a NUL.
pub fn plain(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// The text of any bytes, with the encoding that they were decoded from where that is not UTF-8. Other bytes become U+FFFD.
pub fn legible(bytes: &[u8]) -> (Cow<'_, str>, Option<Encoding>) {
    let encoding = Encoding::of(bytes);
    if encoding.is_utf8() {
        return (String::from_utf8_lossy(bytes), None);
    }
    (encoding.decode(bytes).0, Some(encoding))
}

#[cfg(test)]
mod tests;
