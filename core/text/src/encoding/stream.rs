//! Bytes of a known encoding, decoded as they arrive.

use super::Encoding;

/// Decodes a stream piece by piece; pieces may end within a character.
pub struct Decoder {
    table: encoding_rs::Decoder,
    bom: &'static [u8],
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("encoding", &self.table.encoding().name()).finish()
    }
}

impl Decoder {
    /// A decoder of this encoding.
    pub fn new(encoding: Encoding) -> Decoder {
        let table = encoding.charset.table().unwrap_or(encoding_rs::UTF_8);
        Decoder { table: table.new_decoder_without_bom_handling(), bom: encoding.bom() }
    }

    /// A decoder of bytes that do not begin the file.
    pub(super) fn of_part(encoding: Encoding) -> Decoder {
        Decoder { bom: &[], ..Decoder::new(encoding) }
    }

    /// The text of the next bytes. After the last ones, what is left of a torn character becomes a replacement.
    pub fn text_of(&mut self, mut bytes: &[u8], is_last: bool) -> String {
        // The mark may arrive in two pieces.
        while let (Some((mark, rest)), Some((first, after))) = (self.bom.split_first(), bytes.split_first()) {
            if mark == first {
                (self.bom, bytes) = (rest, after);
            } else {
                self.bom = &[];
            }
        }
        let most = self.table.max_utf8_buffer_length(bytes.len()).unwrap_or(0);
        let mut text = String::with_capacity(most);
        let _ = self.table.decode_to_string(bytes, &mut text, is_last);
        text
    }
}
