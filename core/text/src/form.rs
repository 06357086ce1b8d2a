//! The form of a text file besides its words: encoding, byte order mark and ends of lines, kept when all of its text is replaced.

use std::borrow::Cow;

use crate::encoding::{self, Encoding, Unfit};

const BOM: &str = "\u{feff}";

/// How the lines of a text end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// It has one line at most.
    None,
    Lf,
    CrLf,
    Mixed,
}

impl Ends {
    fn of(text: &str) -> Ends {
        let all = text.matches('\n').count();
        match (all, text.matches("\r\n").count()) {
            (0, _) => Ends::None,
            (_, 0) => Ends::Lf,
            (all, with_return) if all == with_return => Ends::CrLf,
            (_, _) => Ends::Mixed,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Ends::None | Ends::Lf => "LF",
            Ends::CrLf => "CR LF",
            Ends::Mixed => "LF and CR LF mixed",
        }
    }
}

/// The bytes that replace all of a file, in the form of the file: models write neither byte order marks nor returns. Also what
/// was kept and what changes, as clauses about it. New bytes that are not UTF-8 text stay as they are, and so do all where the
/// file is not text.
///
/// # Errors
/// A character that the file's encoding does not have.
pub fn kept(before: &[u8], after: Vec<u8>) -> Result<(Vec<u8>, Vec<String>), Unfit> {
    let Some((encoding, old, new)) = texts(before, &after) else { return Ok((after, Vec::new())) };
    let (text, mut notes) = with_ends_of(&old, new);
    if !encoding.is_utf8() {
        notes.push(format!("its encoding is {encoding} as before"));
    } else if before.starts_with(BOM.as_bytes()) && !new.starts_with(BOM) {
        notes.push("it begins with a byte order mark as before".to_owned());
    }
    Ok((encoding.encode(&text)?, notes))
}

/// The bytes of a file with this text in this encoding, with the ends of lines that the file before has, and what was kept or
/// changes.
///
/// # Errors
/// A character that the encoding does not have.
pub fn converted(before: Option<&[u8]>, new: &str, to: Encoding) -> Result<(Vec<u8>, Vec<String>), Unfit> {
    let from = before.map(Encoding::of);
    let old = before.zip(from).and_then(|(bytes, from)| text_of(from, bytes));
    let (text, mut notes) = match &old {
        Some(old) => with_ends_of(old, new),
        None => (Cow::Borrowed(new), Vec::new()),
    };
    notes.push(match from {
        // ASCII is the same in nearly all of them.
        Some(from) if from != to && old.is_some() && !(from.is_utf8() && before.is_some_and(<[u8]>::is_ascii)) => {
            format!("its encoding changes from {from} to {to}")
        }
        Some(_) | None => format!("its encoding is {to}"),
    });
    Ok((to.encode(&text)?, notes))
}

/// A file with more text at its end, in the form of the file, and what was kept.
///
/// # Errors
/// A character that the file's encoding does not have.
pub fn appended(before: &[u8], more: Vec<u8>) -> Result<(Vec<u8>, Vec<String>), Unfit> {
    let Some((encoding, old, new)) = texts(before, &more) else { return Ok(([before, &more].concat(), Vec::new())) };
    let (text, notes) = match (Ends::of(&old), Ends::of(new)) {
        (Ends::CrLf, Ends::Lf) if !new.contains('\r') => {
            let notes = vec!["the new lines end in CR LF as the others do".to_owned()];
            (Cow::Owned(new.replace('\n', "\r\n")), notes)
        }
        (_, _) => (Cow::Borrowed(new), Vec::new()),
    };
    Ok(([before, &encoding.encode_part(&text)?].concat(), notes))
}

/// The new text with the ends of lines that the old one has.
fn with_ends_of<'a>(old: &str, new: &'a str) -> (Cow<'a, str>, Vec<String>) {
    match (Ends::of(old), Ends::of(new)) {
        (Ends::CrLf, Ends::Lf) if !new.contains('\r') => {
            (Cow::Owned(new.replace('\n', "\r\n")), vec!["its lines end in CR LF as before".to_owned()])
        }
        (was, is) if was != is && was != Ends::None && is != Ends::None => {
            let note = format!("the ends of its lines change from {} to {}", was.name(), is.name());
            (Cow::Borrowed(new), vec![note])
        }
        (_, _) => (Cow::Borrowed(new), Vec::new()),
    }
}

/// The encoding and the text of a file, and the text that replaces it, if both are text.
fn texts<'a>(before: &'a [u8], after: &'a [u8]) -> Option<(Encoding, Cow<'a, str>, &'a str)> {
    let new = encoding::plain(after)?;
    let encoding = Encoding::of(before);
    Some((encoding, text_of(encoding, before)?, new))
}

/// The text of a file. Single faults in another encoding than UTF-8 leave it one.
fn text_of(encoding: Encoding, bytes: &[u8]) -> Option<Cow<'_, str>> {
    if encoding.is_utf8() { encoding::plain(bytes).map(Cow::Borrowed) } else { Some(encoding.decode(bytes).0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(before: &str, after: &str) -> (String, usize) {
        let (bytes, notes) = super::kept(before.as_bytes(), after.as_bytes().to_vec()).expect("it fits");
        (String::from_utf8(bytes).expect("text"), notes.len())
    }

    /// Broken build: one that adds a return where the model wrote one, or a mark to a file without.
    #[test]
    fn a_replaced_text_keeps_its_form() {
        for (before, after, wanted, notes) in [
            ("a\r\nb\r\n", "c\nd\n", "c\r\nd\r\n", 1),
            ("a\r\nb\r\n", "c\r\nd\r\n", "c\r\nd\r\n", 0),
            ("a\r\nb\r\n", "c\r\nd\n", "c\r\nd\n", 1),
            ("a\r\nb\r\n", "c\rd\n", "c\rd\n", 1),
            ("a\r\nb\n", "c\nd\n", "c\nd\n", 1),
            ("a\nb\n", "c\r\n", "c\r\n", 1),
            ("a\nb\n", "c\nd\n", "c\nd\n", 0),
            ("a", "c\nd\n", "c\nd\n", 0),
            ("", "c\r\n", "c\r\n", 0),
            ("a\r\n", "", "", 0),
            ("\u{feff}a\r\n", "c\n", "\u{feff}c\r\n", 2),
            ("\u{feff}a\n", "\u{feff}c\n", "\u{feff}c\n", 0),
            ("a\r\n\0", "c\n", "c\n", 0),
        ] {
            assert_eq!(kept(before, after), (wanted.to_owned(), notes), "{before:?} {after:?}");
        }
        let appended = |before: &[u8]| super::appended(before, b"b\n".to_vec()).expect("it fits").0;
        assert_eq!(super::kept(b"\xff\0\r\n", b"c\n".to_vec()).expect("it fits").0, b"c\n");
        assert_eq!(appended(b"a\r\n"), b"a\r\nb\r\n");
        assert_eq!(appended(b"a\n"), b"a\nb\n");
        assert_eq!(appended(b"\xff\xfea\0\r\0\n\0"), b"\xff\xfea\0\r\0\n\0b\0\r\0\n\0");
        assert_eq!(appended(b"\x7fELF\0"), b"\x7fELF\0b\n");
    }

    /// Broken build: one that writes UTF-8 over a file in another encoding, or loses a character.
    #[test]
    fn a_replaced_text_keeps_its_encoding_and_one_that_does_not_fit_is_refused() {
        let kept = |after: &str| super::kept(b"\xff\xfea\0\r\0\n\0", after.as_bytes().to_vec());
        let (bytes, notes) = kept("\u{f6}\n").expect("it fits");
        assert_eq!((bytes.as_slice(), notes.len()), (b"\xff\xfe\xf6\0\r\0\n\0".as_slice(), 2));
        let latin = b"na\xefve caf\xe9\n";
        assert_eq!(super::kept(latin, "na\u{ef}f\n".into()).expect("it fits").0, b"na\xeff\n");
        assert!(super::kept(latin, "\u{20ac}\n".into()).is_err());
        assert!(super::appended(latin, "\u{20ac}\n".into()).is_err());
        let (bytes, notes) = converted(Some(latin), "\u{20ac}\n", Encoding::UTF_8).expect("it fits");
        assert_eq!(bytes, "\u{20ac}\n".as_bytes());
        assert_eq!(notes, ["its encoding changes from Latin-1 (ISO-8859-1) to UTF-8"]);
        assert_eq!(converted(None, "a", Encoding::UTF_8).expect("it fits").1, ["its encoding is UTF-8"]);
    }
}
