//! Text that others wrote, made harmless for a terminal and for a reader.

use std::borrow::Cow;

use super::strip::Stripper;

/// The text as it can be printed: without terminal sequences, and with every other control character and every character
/// that hides or reorders others as a visible escape. Tabs and line ends stay; a carriage return before a line end goes.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| is_control(c) || is_deceptive(c)) {
        return Cow::Borrowed(text);
    }
    // A sequence is removed as a whole, and not only its first character.
    let text = String::from_utf8_lossy(&Stripper::default().strip(text.as_bytes())).replace("\r\n", "\n");
    Cow::Owned(escaped(&text))
}

/// The text with each such character as a visible escape, terminal sequences included. For text that the user decides
/// about: nothing in it is left out.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_deceptive(c) || is_joiner(c) => shown.extend(c.escape_unicode()),
            c if is_control(c) => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// JSON text in which no such character stands as itself. It means the same.
pub fn clean_json(json: &str) -> Cow<'_, str> {
    if !json.chars().any(|c| is_deceptive(c) || ('\u{7f}'..='\u{9f}').contains(&c)) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_deceptive(c) || ('\u{7f}'..='\u{9f}').contains(&c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_deceptive(c) => shown.extend(c.escape_unicode()),
            c if is_control(c) => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

fn is_control(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

/// Whether a character is invisible or changes the order of others.
fn is_deceptive(c: char) -> bool {
    matches!(
        c,
        '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{00ad}'
            | '\u{061c}'
            | '\u{180e}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Joins letters of Persian and Indic scripts, and the parts of an emoji.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides_reorders_or_overwrites_and_other_text_stays() {
        assert_eq!(clean("all tests pass\rFAILED \u{202e}esrever"), "all tests pass\\rFAILED \\u{202e}esrever");
        assert_eq!(clean("a\x1b[31mb\x1b]52;c;eA==\x07c\u{9b}\r\nd\te"), "abc\nd\te");
        assert_eq!(clean("zero\u{200b}width\u{e0041}"), "zero\\u{200b}width\\u{e0041}");
        for text in ["plain", "naïve 中文 עברית", "👩\u{200d}💻 می\u{200c}خواهم"] {
            assert!(matches!(clean(text), Cow::Borrowed(it) if it == text), "{text}");
        }
        assert_eq!(visible("rm \u{202e}x\u{200d}\x1b[2K"), "rm \\u{202e}x\\u{200d}\\u{1b}[2K");
        let json = "{\"a\":\"\u{202e}\u{e0041}\u{9b}中\"}";
        assert_eq!(clean_json(json), "{\"a\":\"\\u202e\\udb40\\udc41\\u009b中\"}");
        let same: serde_json::Value = serde_json::from_str(&clean_json(json)).expect("JSON");
        assert_eq!(same, serde_json::from_str::<serde_json::Value>(json).expect("JSON"));
    }
}
