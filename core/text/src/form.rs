//! The form of a text file besides its words: byte order mark and ends of lines, kept when all of its text is replaced.

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
/// was kept and what changes, as sentences about it. What is not UTF-8 text on both sides stays as it is.
pub fn kept(before: &[u8], after: Vec<u8>) -> (Vec<u8>, Vec<String>) {
    let (Some(old), Some(new)) = (text_of(before), text_of(&after)) else { return (after, Vec::new()) };
    let mut notes = Vec::new();
    let mut text = new.to_owned();
    match (Ends::of(old), Ends::of(new)) {
        (Ends::CrLf, Ends::Lf) if !new.contains('\r') => {
            text = new.replace('\n', "\r\n");
            notes.push("its lines end in CR LF as before".to_owned());
        }
        (was, is) if was != is && was != Ends::None && is != Ends::None => {
            notes.push(format!("the ends of its lines change from {} to {}", was.name(), is.name()));
        }
        (_, _) => {}
    }
    if old.starts_with(BOM) && !text.starts_with(BOM) {
        text.insert_str(0, BOM);
        notes.push("it begins with a byte order mark as before".to_owned());
    }
    (text.into_bytes(), notes)
}

/// The bytes that are appended to a file, with lines that end as its own do.
pub fn appended(before: &[u8], more: Vec<u8>) -> (Vec<u8>, Vec<String>) {
    let (Some(old), Some(new)) = (text_of(before), text_of(&more)) else { return (more, Vec::new()) };
    if Ends::of(old) != Ends::CrLf || Ends::of(new) != Ends::Lf || new.contains('\r') {
        return (more, Vec::new());
    }
    (new.replace('\n', "\r\n").into_bytes(), vec!["the new lines end in CR LF as the others do".to_owned()])
}

fn text_of(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(before: &str, after: &str) -> (String, usize) {
        let (bytes, notes) = super::kept(before.as_bytes(), after.as_bytes().to_vec());
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
        assert_eq!(super::kept(b"\xff\r\n", b"c\n".to_vec()).0, b"c\n");
        assert_eq!(appended(b"a\r\n", b"b\n".to_vec()).0, b"b\r\n");
        assert_eq!(appended(b"a\n", b"b\n".to_vec()).0, b"b\n");
    }
}
