//! Versions in other encodings than UTF-8, as text that is compared and shown.

use std::borrow::Cow;

use text::encoding::{Encoding, encodings, plain};

/// Longer versions are shown by their bytes: to see that the text hides nothing, all of it is encoded again. Bytes.
const MOST: usize = 16 << 20;

/// Two versions of a file as UTF-8. `None` is a file that does not exist.
pub(super) struct Other<'a> {
    old: Option<Cow<'a, str>>,
    new: Option<Cow<'a, str>>,
    /// The name of the encoding, or of both with an arrow; `None` if ASCII replaces an empty file.
    pub(super) name: Option<String>,
}

impl<'a> Other<'a> {
    /// The versions as text, if one of them has another encoding than UTF-8 and its text hides none of its bytes.
    pub(super) fn of(before: Option<&'a [u8]>, after: Option<&'a [u8]>) -> Option<Other<'a>> {
        let is_plain = |side: Option<&[u8]>| side.is_none_or(|bytes| plain(bytes).is_some());
        let is_long = |side: Option<&[u8]>| side.is_some_and(|bytes| bytes.len() > MOST);
        if (is_plain(before) && is_plain(after)) || is_long(before) || is_long(after) {
            return None;
        }
        let (of_old, of_new) = encodings(before.unwrap_or_default(), after.unwrap_or_default());
        let name = match (named(before, of_old, of_new), named(after, of_new, of_old)) {
            (Some(old), Some(new)) if old != new => Some(format!("{old} → {new}")),
            (Some(one), _) | (None, Some(one)) => Some(one.to_string()),
            (None, None) => None,
        };
        let side = |bytes: Option<&'a [u8]>, encoding: Encoding| match bytes {
            Some(bytes) => text(bytes, encoding).map(Some),
            None => Some(None),
        };
        Some(Other { old: side(before, of_old)?, new: side(after, of_new)?, name })
    }

    /// The versions as bytes of UTF-8.
    pub(super) fn sides(&self) -> (Option<&[u8]>, Option<&[u8]>) {
        (self.old.as_ref().map(|text| text.as_bytes()), self.new.as_ref().map(|text| text.as_bytes()))
    }

    /// The encodings, as a line in brackets.
    pub(super) fn note(&self) -> String {
        self.name.as_ref().map_or_else(String::new, |name| format!("[encoding: {name}]\n"))
    }
}

/// The text of a version, if no other bytes give it.
fn text(bytes: &[u8], encoding: Encoding) -> Option<Cow<'_, str>> {
    if encoding.is_utf8() { plain(bytes).map(Cow::Borrowed) } else { encoding.decode_exactly(bytes) }
}

/// The encoding of a version, beside one in the other. ASCII alone is the same in most.
fn named(bytes: Option<&[u8]>, encoding: Encoding, other: Encoding) -> Option<Encoding> {
    let bytes = bytes.filter(|bytes| !bytes.is_empty())?;
    let is_same = encoding.is_utf8() && bytes.is_ascii() && other.has_ascii();
    (!is_same).then_some(encoding)
}
