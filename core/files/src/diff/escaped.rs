//! The bytes of a file's version as text that a person can read.

/// What the bytes of a version are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nature {
    /// UTF-8 without a NUL.
    Text,
    /// Lines in another encoding.
    OtherText,
    /// Bytes without lines, such as those of an image.
    Binary,
}

impl Nature {
    pub(crate) fn of(bytes: &[u8]) -> Nature {
        let has_nul = memchr::memchr(0, bytes).is_some();
        let is_utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        match (has_nul, std::str::from_utf8(bytes)) {
            (false, Ok(_)) => Nature::Text,
            (false, Err(_)) => Nature::OtherText,
            (true, _) if is_utf16 => Nature::OtherText,
            (true, _) => Nature::Binary,
        }
    }
}

/// The bytes as text, with each byte that is not text as `\xHH`. Different bytes give different texts, and lines stay lines.
pub(super) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 2);
    for chunk in bytes.utf8_chunks() {
        let mut chars = chunk.valid().chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\n' | '\r' | '\t' => text.push(c),
                // What the file itself spells as an escape stays apart from one.
                '\\' if chars.peek() == Some(&'x') => text.push_str("\\x5c"),
                c if c.is_ascii_control() => push_byte(&mut text, c as u8),
                c => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| push_byte(&mut text, *byte));
    }
    text
}

fn push_byte(text: &mut String, byte: u8) {
    use std::fmt::Write as _;
    write!(text, "\\x{byte:02x}").expect("a String takes everything");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_escapes_and_the_rest_stays() {
        assert_eq!(escaped(b"na\xefve\n\x00\x1b[2K\tC:\\temp\n"), "na\\xefve\n\\x00\\x1b[2K\tC:\\temp\n");
        assert_eq!(escaped(b"\\xef \xef"), "\\x5cxef \\xef");
        assert_eq!(Nature::of("naïve".as_bytes()), Nature::Text);
        assert_eq!(Nature::of(b"na\xefve"), Nature::OtherText);
        assert_eq!(Nature::of(b"\xff\xfea\0"), Nature::OtherText);
        assert_eq!(Nature::of(b"\x89PNG\0"), Nature::Binary);
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let part = prop::sample::select(vec![&b"\\"[..], b"x", b"e9", b"\xe9", b"\0", b"\n"]);
        prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        /// Broken build: one that leaves every backslash as it is.
        #[test]
        fn different_bytes_are_different_texts(a in bytes(), b in bytes()) {
            prop_assert_eq!(a == b, escaped(&a) == escaped(&b));
        }
    }
}
