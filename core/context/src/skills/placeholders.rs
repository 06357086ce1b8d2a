//! Placeholders in the text of a skill or a template. They are filled in one pass: what fills one is never read again as
//! another.

use crate::arguments;

/// What fills the placeholders.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filling<'a> {
    /// What the user typed after the name; `None` leaves the placeholders of arguments as they are.
    pub args: Option<&'a str>,
    /// Whether `$1` to `$9` and `$@` are placeholders too. In a skill they are mostly a part of shell code.
    pub(crate) by_position: bool,
    /// The folder of the skill.
    pub folder: Option<&'a str>,
    /// Names of arguments, in the order of the words that fill them: `{{name}}` is a placeholder too.
    pub names: &'a [String],
}

/// A text with its placeholders filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filled {
    pub text: String,
    /// At least one placeholder of arguments was filled.
    pub(crate) used_args: bool,
}

impl Filling<'_> {
    /// Fills the placeholders of this text.
    pub(crate) fn fill(&self, text: &str) -> Filled {
        let words = self.args.map(arguments::split).unwrap_or_default();
        let mut filled = Filled { text: String::with_capacity(text.len()), used_args: false };
        let mut rest = text;
        while let Some(at) = rest.find(['$', '{']) {
            filled.text.push_str(&rest[..at]);
            rest = &rest[at..];
            let (value, len) = match self.placeholder(rest, &words) {
                Some(Placeholder::Argument(value, len)) => {
                    filled.used_args = true;
                    (value, len)
                }
                Some(Placeholder::Folder(value, len)) => (value, len),
                // What follows a `$`, as in `${{ it }}`, belongs to another language.
                None if rest.starts_with("${{") => ("${{".to_owned(), 3),
                None => (rest[..1].to_owned(), 1),
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
        if text.starts_with('{') {
            let (name, len) = named(text)?;
            let at = self.names.iter().position(|it| it == name)?;
            return Some(Placeholder::Argument(words.get(at).cloned().unwrap_or_default(), len));
        }
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

/// The name in `{{name}}` at the start of a text, and the length of the placeholder.
fn named(text: &str) -> Option<(&str, usize)> {
    let inner = text.strip_prefix("{{")?;
    let end = inner.find("}}")?;
    let name = inner[..end].trim();
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_inner);
    (is_name && name.len() <= 40).then_some((name, end + 4))
}

/// The names of the arguments that a text has a place for, in the order of the words that fill them: those that are declared,
/// then `$1` to `$9` as far as they are used, then each `{{name}}` by its first use.
pub fn parameters(text: &str, declared: &[String]) -> Vec<String> {
    let mut names = declared.to_vec();
    let (mut highest, mut found) = (0, Vec::new());
    let mut rest = text;
    while let Some(at) = rest.find(['$', '{']) {
        rest = &rest[at..];
        let digits =
            rest.strip_prefix('$').map(|it| it.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
        let mut len = 1;
        match (digits, named(rest)) {
            (Some(digits), _) if digits.len() == 1 && digits != "0" => {
                highest = highest.max(digits.parse::<usize>().unwrap_or(0));
            }
            (Some(_), _) if rest.starts_with("${{") => len = 3,
            (Some(_), _) => {}
            (None, Some((name, whole))) => {
                found.push(name.to_owned());
                len = whole;
            }
            (None, None) => {}
        }
        rest = &rest[len..];
    }
    names.extend((names.len() + 1..=highest).map(|at| format!("${at}")));
    for name in found {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The value of a placeholder, and the length of the placeholder.
enum Placeholder {
    Argument(String, usize),
    Folder(String, usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_once_and_everything_else_stays() {
        let template = Filling { args: Some("'a b' $2 it's"), by_position: true, ..Filling::default() };
        let fill = |text: &str| template.fill(text).text;
        assert_eq!(fill("1=$1 2=$2 3=$3 4=$4."), "1=a b 2=$2 3=it's 4=.", "what fills one is not read again");
        assert_eq!(fill("$ARGUMENTS|$@|${ARGUMENTS}"), ["'a b' $2 it's"; 3].join("|"));
        assert_eq!(fill("$ARGUMENTS_2 $10 $0 $HOME $ 5$"), "$ARGUMENTS_2 $10 $0 $HOME $ 5$");
        let skill = Filling { args: Some("x"), by_position: false, folder: Some("/s"), names: &[] };
        let filled = skill.fill("awk '{print $1}' ${CLAUDE_SKILL_DIR}/a ${SKILL_DIR}/b");
        assert_eq!((filled.text.as_str(), filled.used_args), ("awk '{print $1}' /s/a /s/b", false));
        assert_eq!(
            Filling::default().fill("$ARGUMENTS $1").text,
            "$ARGUMENTS $1",
            "without arguments a placeholder stays"
        );
    }

    #[test]
    fn a_named_placeholder_is_filled_by_its_place_among_the_parameters() {
        let text = "{{what}} in {{ file }} for $2, ${{ github.ref }}, {{ }} and {{what}}; {{a b}}";
        let names = parameters(text, &["file".to_owned()]);
        assert_eq!(names, ["file", "$2", "what"]);
        let filling =
            Filling { args: Some("a.rs me 'a fault'"), by_position: true, names: &names, ..Filling::default() };
        let filled = filling.fill(text);
        assert_eq!(filled.text, "a fault in a.rs for me, ${{ github.ref }}, {{ }} and a fault; {{a b}}");
        assert!(filled.used_args);
        assert_eq!(parameters("costs $10 and $HOME", &[]), [""; 0]);
    }
}
