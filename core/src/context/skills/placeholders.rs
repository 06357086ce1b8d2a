//! Placeholders in the text of a skill or a template. They are filled in one pass: what fills one is never read again as
//! another.

/// What fills the placeholders.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filling<'a> {
    /// What the user typed after the name; `None` leaves the placeholders of arguments as they are.
    pub(crate) args: Option<&'a str>,
    /// Whether `$1` to `$9` and `$@` are placeholders too. In a skill they are mostly a part of shell code.
    pub(crate) by_position: bool,
    /// The folder of the skill.
    pub(crate) folder: Option<&'a str>,
}

/// A text with its placeholders filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filled {
    pub(crate) text: String,
    /// At least one placeholder of arguments was filled.
    pub(crate) used_args: bool,
}

impl Filling<'_> {
    /// Fills the placeholders of this text.
    pub(crate) fn fill(&self, text: &str) -> Filled {
        let words = self.args.map(words).unwrap_or_default();
        let mut filled = Filled { text: String::with_capacity(text.len()), used_args: false };
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            filled.text.push_str(&rest[..at]);
            rest = &rest[at..];
            let (value, len) = match self.placeholder(rest, &words) {
                Some(Placeholder::Argument(value, len)) => {
                    filled.used_args = true;
                    (value, len)
                }
                Some(Placeholder::Folder(value, len)) => (value, len),
                None => ("$".to_owned(), 1),
            };
            filled.text.push_str(&value);
            rest = &rest[len..];
        }
        filled.text.push_str(rest);
        filled
    }

    /// The placeholder that this text begins with.
    fn placeholder(&self, text: &str, words: &[String]) -> Option<Placeholder> {
        for name in ["${CLAUDE_SKILL_DIR}", "${SKILL_DIR}"] {
            if let Some(folder) = self.folder.filter(|_| text.starts_with(name)) {
                return Some(Placeholder::Folder(folder.to_owned(), name.len()));
            }
        }
        let args = self.args?;
        for name in ["${ARGUMENTS}", "$ARGUMENTS"] {
            let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if let Some(after) = text.strip_prefix(name)
                && !(name == "$ARGUMENTS" && after.starts_with(goes_on))
            {
                return Some(Placeholder::Argument(args.to_owned(), name.len()));
            }
        }
        if !self.by_position {
            return None;
        }
        if text.starts_with("$@") {
            return Some(Placeholder::Argument(args.to_owned(), 2));
        }
        let mut after = text[1..].chars();
        let number = after.next()?.to_digit(10).filter(|number| *number > 0)?;
        // `$10` is a price, and no argument.
        if after.next().is_some_and(|c| c.is_ascii_digit()) {
            return None;
        }
        let word = words.get(number as usize - 1).cloned().unwrap_or_default();
        Some(Placeholder::Argument(word, 2))
    }
}

/// The value of a placeholder, and the length of the placeholder.
enum Placeholder {
    Argument(String, usize),
    Folder(String, usize),
}

/// The words of a line. Quotes of both kinds join words; an open quote ends with the line.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in line.chars() {
        match (quote, c) {
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
    fn placeholders_are_filled_once_and_everything_else_stays() {
        let template = Filling { args: Some("'a b' $2 it's"), by_position: true, folder: None };
        let fill = |text: &str| template.fill(text).text;
        assert_eq!(fill("1=$1 2=$2 3=$3 4=$4."), "1=a b 2=$2 3=it's 4=.", "what fills one is not read again");
        assert_eq!(fill("$ARGUMENTS|$@|${ARGUMENTS}"), ["'a b' $2 it's"; 3].join("|"));
        assert_eq!(fill("$ARGUMENTS_2 $10 $0 $HOME $ 5$"), "$ARGUMENTS_2 $10 $0 $HOME $ 5$");
        let skill = Filling { args: Some("x"), by_position: false, folder: Some("/s") };
        let filled = skill.fill("awk '{print $1}' ${CLAUDE_SKILL_DIR}/a ${SKILL_DIR}/b");
        assert_eq!((filled.text.as_str(), filled.used_args), ("awk '{print $1}' /s/a /s/b", false));
        assert_eq!(
            Filling::default().fill("$ARGUMENTS $1").text,
            "$ARGUMENTS $1",
            "without arguments a placeholder stays"
        );
        assert_eq!(words("a  \"b c\"d 'e f"), ["a", "b cd", "e f"]);
    }
}
