//! Versions in other encodings than UTF-8, as text that is compared and shown.

use std::borrow::Cow;

use text::encoding::Encoding;

/// Longer versions are shown by their bytes: to see that the text hides nothing, all of it is encoded again. Bytes.
const MOST: usize = 1 << 20;

/// Two versions of a file as UTF-8. `None` is a file that does not exist.
pub(super) struct Other<'a> {
    pub(super) old: Option<Cow<'a, str>>,
    pub(super) new: Option<Cow<'a, str>>,
    /// The encodings, as a line in brackets.
    pub(super) note: String,
}

impl<'a> Other<'a> {
    /// The versions as text, if one of them has another encoding than UTF-8 and its text hides none of its bytes.
    pub(super) fn of(before: Option<&'a [u8]>, after: Option<&'a [u8]>) -> Option<Other<'a>> {
        let is_plain = |side: Option<&[u8]>| side.is_none_or(|bytes| plain(bytes).is_some());
        let is_long = |side: Option<&[u8]>| side.is_some_and(|bytes| bytes.len() > MOST);
        if (is_plain(before) && is_plain(after)) || is_long(before) || is_long(after) {
            return None;
        }
        let of_old = before.map(Encoding::of);
        // The few characters of a short version may look like another encoding than the longer one has.
        let of_new = after.map(|bytes| match of_old {
            Some(old) if !old.is_utf8() && plain(bytes).is_none() && old.decode_exactly(bytes).is_some() => old,
            Some(_) | None => Encoding::of(bytes),
        });
        let note = match (named(before, of_old), named(after, of_new)) {
            (Some(old), Some(new)) if old != new => format!("[encoding: {old} → {new}]\n"),
            (Some(one), _) | (None, Some(one)) => format!("[encoding: {one}]\n"),
            (None, None) => String::new(),
        };
        let side = |bytes: Option<&'a [u8]>, encoding: Option<Encoding>| match (bytes, encoding) {
            (Some(bytes), Some(encoding)) => text(bytes, encoding).map(Some),
            _ => Some(None),
        };
        Some(Other { old: side(before, of_old)?, new: side(after, of_new)?, note })
    }

    /// The versions as bytes of UTF-8.
    pub(super) fn sides(&self) -> (Option<&[u8]>, Option<&[u8]>) {
        (self.old.as_ref().map(|text| text.as_bytes()), self.new.as_ref().map(|text| text.as_bytes()))
    }
}

/// The bytes as text, if they are UTF-8 without a NUL.
fn plain(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// The text of a version, if no other bytes give it.
fn text(bytes: &[u8], encoding: Encoding) -> Option<Cow<'_, str>> {
    if encoding.is_utf8() { plain(bytes).map(Cow::Borrowed) } else { encoding.decode_exactly(bytes) }
}

/// The encoding of a version; ASCII is the same in nearly all.
fn named(bytes: Option<&[u8]>, encoding: Option<Encoding>) -> Option<Encoding> {
    encoding.filter(|it| !it.is_utf8() || bytes.is_some_and(|bytes| !bytes.is_ascii()))
}
