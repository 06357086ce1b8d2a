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

/// The text without such characters, joiners and variants included: for a model, which reads what a person does not see.
pub fn without_hidden(text: &str) -> String {
    text.chars().filter(|c| !is_hidden(*c)).collect()
}

/// Whether [`without_hidden`] leaves something out.
pub fn hides(text: &str) -> bool {
    text.chars().any(is_hidden)
}

fn is_hidden(c: char) -> bool {
    is_control(c) || is_deceptive(c) || is_joiner(c) || is_variant(c)
}

/// Longer runs of blanks could push the rest of a command out of sight.
const MOST_BLANKS: usize = 32;

/// A command as [`visible`] shows it, with variants of characters and blanks of other kinds than space and tab as escapes,
/// and with long runs of spaces counted.
pub fn visible_command(command: &str) -> String {
    let mut shown = String::with_capacity(command.len());
    let mut blanks = 0;
    // The end of the text ends a run as well.
    for c in command.chars().map(Some).chain([None]) {
        if c == Some(' ') {
            blanks += 1;
            continue;
        }
        match blanks {
            0..=MOST_BLANKS => shown.extend(std::iter::repeat_n(' ', blanks)),
            more => shown.push_str(&format!(" [{more} blanks] ")),
        }
        blanks = 0;
        match c {
            Some(c) if is_variant(c) || (c.is_whitespace() && !is_control(c) && !c.is_ascii()) => {
                shown.extend(c.escape_unicode());
            }
            Some(c) => shown.push_str(&visible(c.encode_utf8(&mut [0; 4]))),
            None => {}
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
pub fn is_deceptive(c: char) -> bool {
    matches!(
        c,
        '\u{00ad}'
            | '\u{034f}'
            | '\u{061c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Joins letters of Persian and Indic scripts, and the parts of an emoji.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// Chooses another form of the character before it.
fn is_variant(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
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
        assert_eq!(visible_command("a\u{a0}b\u{2003}\n\tc"), "a\\u{a0}b\\u{2003}\n\tc");
        assert_eq!(visible_command(&format!("ls  -l{};rm", " ".repeat(300))), "ls  -l [300 blanks] ;rm");
        assert_eq!(visible_command("ls "), "ls ");
        assert_eq!(without_hidden("a\u{202e}b\u{200b}\u{fe0f}c\u{e0041}\x1b[2K\n\td"), "abc[2K\n\td");
        let json = "{\"a\":\"\u{202e}\u{e0041}\u{9b}中\"}";
        assert_eq!(clean_json(json), "{\"a\":\"\\u202e\\udb40\\udc41\\u009b中\"}");
        let same: serde_json::Value = serde_json::from_str(&clean_json(json)).expect("JSON");
        assert_eq!(same, serde_json::from_str::<serde_json::Value>(json).expect("JSON"));
    }
}
