//! The words of a command with `*` and `?` among them.

use super::{UNKNOWN, word};
use crate::shell::{LineEnd, Part, PartKind, Script};

/// The words of one command, with `*` and `?` for any text in a word. A last word `*` stands for any further words.
pub(super) struct Pattern {
    pub(super) words: Vec<Glob>,
}

/// One word of a pattern.
pub(super) struct Glob(Vec<Piece>);

enum Piece {
    Text(String),
    /// `*`
    Any,
    /// `?`
    One,
}

impl Pattern {
    /// # Errors
    /// Why it is none, and what to write instead.
    pub(super) fn parse(text: &str) -> std::result::Result<Pattern, (String, &'static str)> {
        let text = text.trim();
        let script = Script::parse(text, LineEnd::Newline);
        let mut words = Vec::new();
        for token in &script.tokens {
            let Some(word) = word(token) else {
                let why = format!("`{}` joins or redirects commands", token.span.source.trim().escape_debug());
                return Err((why, "make one rule for each command: bash(cargo build *) and bash(cargo test *)"));
            };
            let piece = |part: &Part<'_>| match (&part.kind, part.span.source) {
                (PartKind::Glob, "*") => Some(Piece::Any),
                (PartKind::Glob, "?") => Some(Piece::One),
                _ => part.text().map(|text| Piece::Text(text.into_owned())),
            };
            let pieces: Option<Vec<Piece>> = word.parts.iter().map(piece).collect();
            let Some(pieces) = pieces.filter(|_| word.brace.is_none()) else {
                let why = format!("`{}` holds an expansion", word.span.source.escape_debug());
                return Err((why, "use plain words, with * for any text: bash(cargo test *)"));
            };
            words.push(Glob(pieces));
        }
        let pattern = Pattern { words };
        match pattern.words.first().map(Glob::literal) {
            None => Err(("the rule names no command".into(), "write one like bash(cargo test *)")),
            // A rule for any program would be the mode `auto` by another name.
            Some(None) => {
                Err(("the program of a rule cannot be a pattern".into(), "name the program: bash(cargo test *)"))
            }
            Some(Some(program)) if program.contains('=') => {
                Err((format!("`{program}` sets a variable"), "name the program first: bash(cargo test *)"))
            }
            Some(Some(_)) => Ok(pattern),
        }
    }

    pub(super) fn matches(&self, words: &[&str]) -> bool {
        words.split_first().is_some_and(|(program, rest)| self.words[0].matches(program) && self.matches_rest(rest))
    }

    /// Whether the words after the program match.
    pub(super) fn matches_rest(&self, words: &[&str]) -> bool {
        let wanted = &self.words[1..];
        let (wanted, is_open) = match wanted.split_last() {
            Some((last, before)) if matches!(last.0.as_slice(), [Piece::Any]) => (before, true),
            _ => (wanted, false),
        };
        let fits = if is_open { words.len() >= wanted.len() } else { words.len() == wanted.len() };
        fits && wanted.iter().zip(words).all(|(glob, word)| *word == UNKNOWN || glob.matches(word))
    }
}

impl Glob {
    /// The text, where it has no `*` or `?`.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    pub(super) fn matches(&self, word: &str) -> bool {
        fn fits(pieces: &[Piece], word: &str) -> bool {
            match pieces.split_first() {
                None => word.is_empty(),
                Some((Piece::Text(text), rest)) => {
                    word.strip_prefix(text.as_str()).is_some_and(|word| fits(rest, word))
                }
                Some((Piece::One, rest)) => {
                    let mut chars = word.chars();
                    chars.next().is_some() && fits(rest, chars.as_str())
                }
                Some((Piece::Any, rest)) => {
                    let ends = word.char_indices().map(|(at, _)| at).chain([word.len()]);
                    ends.into_iter().any(|at| fits(rest, &word[at..]))
                }
            }
        }
        fits(&self.0, word)
    }
}
