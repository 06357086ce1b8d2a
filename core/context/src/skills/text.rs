//! The bytes of a file as text: without a byte order mark, with plain line ends, without invisible characters.

use super::finding::Finding;
use text::clean::clean;
use text::encoding;

/// A file's text, and what had to be changed in it.
pub struct Text {
    pub text: String,
    pub findings: Vec<Finding>,
}

impl Text {
    pub fn read(bytes: &[u8]) -> Text {
        let mut findings = Vec::new();
        let line_at = |at: usize| bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        let (decoded, encoding) = encoding::legible(bytes);
        if let Some(encoding) = encoding {
            let message = format!("the file is {encoding}; it was decoded");
            findings.push(Finding::fault(
                1,
                message,
                "save the file as UTF-8, because other programs that use skills may not decode it",
            ));
        } else if let Err(e) = std::str::from_utf8(bytes) {
            let line = line_at(e.valid_up_to());
            let message = "the file is not UTF-8; the odd bytes were replaced";
            findings.push(Finding::fault(line, message, "save it as UTF-8"));
        }
        let mut text = match decoded.strip_prefix('\u{feff}') {
            Some(rest) => {
                findings.push(Finding::fault(
                    1,
                    "the file begins with a byte order mark",
                    "save it without one: other agents find no front matter",
                ));
                rest.to_owned()
            }
            None => decoded.into_owned(),
        };
        if text.contains('\r') {
            text = text.replace("\r\n", "\n").replace('\r', "\n");
            findings.push(Finding::note(1, "lines end in CR", "save it with Unix line ends"));
        }
        if let Some(at) = text.find(is_hidden) {
            let line = text[..at].matches('\n').count() + 1;
            let fix = "remove them";
            findings.push(Finding::fault(line, "control or invisible characters were left out", fix));
            text.retain(|c| !is_hidden(c));
        }
        Text { text, findings }
    }
}

/// Control characters, and Unicode tags, which carry text that the user does not see.
fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || ('\u{e0000}'..='\u{e007f}').contains(&c)
}

/// A text as one line that any terminal can show, of at most so many characters.
pub fn one_line(text: &str, most: usize) -> String {
    let line = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}
