//! What the user types after a name: words, joined by quotes.

/// A value as one word of a line.
pub fn quoted(value: &str) -> String {
    let is_plain =
        !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || c == '"') && !value.starts_with('\'');
    match value {
        plain if is_plain => plain.to_owned(),
        value if !value.contains('\'') => format!("'{value}'"),
        value => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// The words of a line. Quotes of both kinds join words; an open quote ends with the line. In double quotes, `\"` and `\\` stand
/// for one character.
pub fn split(line: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = line.chars().peekable();
    while let Some(c) = letters.next() {
        match (quote, c) {
            (Some('"'), '\\') if letters.peek().is_some_and(|next| matches!(next, '"' | '\\')) => {
                word.get_or_insert_default().extend(letters.next());
            }
            (Some(open), c) if c == open => quote = None,
            // An apostrophe inside a word is a letter.
            (None, '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\'') if word.is_none() => {
                quote = Some(c);
                word = Some(String::new());
            }
            (None, c) if c.is_whitespace() => all.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_words_and_every_value_can_be_one() {
        assert_eq!(split("a  \"b c\"d 'e f"), ["a", "b cd", "e f"]);
        for value in ["", "a", "a b", "it's", "say \"hi\" and it's", "'", "\\ it's \\\" ", "a\nb"] {
            assert_eq!(split(&format!("x {} y", quoted(value))), ["x", value, "y"], "{value:?}");
        }
    }
}
