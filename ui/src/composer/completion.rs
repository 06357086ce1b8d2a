//! What can complete the word at the caret.

use super::Composer;
use crate::input::action::{ActionSpec, Slash};
use crate::input::argument::{Argument, Candidate};
use crate::input::offer::Offer;
use crate::input::slash::{self, Uses};

/// The most candidates of an argument that are offered.
const OFFERED: usize = 50;

/// A completion of the word at the caret.
#[derive(Debug, Clone)]
pub(crate) enum Completion {
    Command(Slash, &'static ActionSpec),
    /// A template or a skill.
    Offer(Offer),
    /// A path of the workspace.
    File(String),
    /// An argument of the command that the draft begins with.
    Argument(Candidate),
}

/// The argument of a slash command that the user is typing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Typed {
    pub(crate) argument: Argument,
    /// What is typed of it.
    pub(crate) letters: String,
}

impl Completion {
    /// The completions of a slash command of which these letters are typed. Names that begin with the letters come first, and
    /// pixir's own commands before templates and skills.
    fn of_slash(letters: &str, offers: &[Offer], uses: &Uses) -> Vec<Completion> {
        let commands = slash::complete(letters, uses).into_iter().map(|(slash, spec)| Completion::Command(slash, spec));
        let offers = slash::fuzzy(letters, offers.iter().collect(), |it| it.name.clone());
        let offers = offers.into_iter().cloned().map(Completion::Offer);
        let (mut first, rest): (Vec<_>, Vec<_>) = commands.chain(offers).partition(|it| it.begins_with(letters));
        first.extend(rest);
        first
    }

    fn begins_with(&self, letters: &str) -> bool {
        match self {
            Completion::Command(slash, _) => slash.name.starts_with(letters),
            Completion::Offer(offer) => offer.name.starts_with(letters),
            Completion::File(path) => path.starts_with(letters),
            Completion::Argument(candidate) => candidate.value.starts_with(letters),
        }
    }

    /// The candidates that match what is typed of an argument, best first.
    fn of_argument(typed: &Typed, candidates: &[Candidate]) -> Vec<Completion> {
        let words: Vec<Candidate> = match typed.argument {
            Argument::Words(words) => words.iter().map(|word| Candidate::new(*word, "")).collect(),
            Argument::Command => {
                let commands = slash::commands();
                commands.into_iter().map(|(slash, spec)| Candidate::new(slash.name, spec.about)).collect()
            }
            Argument::Session | Argument::Turn | Argument::Model | Argument::Theme | Argument::Skill => {
                candidates.to_vec()
            }
            Argument::Text | Argument::File | Argument::Folder => Vec::new(),
        };
        let text = |it: &Candidate| match typed.argument {
            // The user knows a Session by its title, and a Turn by its prompt.
            Argument::Session | Argument::Turn => format!("{} {}", it.value, it.about),
            Argument::Text
            | Argument::Words(_)
            | Argument::Model
            | Argument::Theme
            | Argument::Skill
            | Argument::File
            | Argument::Folder
            | Argument::Command => it.value.clone(),
        };
        let mut matches = slash::fuzzy(&typed.letters, words, text);
        matches.sort_by_key(|it| (it.value != typed.letters, !it.value.starts_with(&typed.letters)));
        matches.into_iter().take(OFFERED).map(Completion::Argument).collect()
    }
}

impl Composer {
    /// The argument that the user is typing, if the draft is one line with a command of the table.
    pub(crate) fn typed_argument(&self) -> Option<Typed> {
        let text = self.shown();
        if text.contains('\n') || !text.starts_with('/') || !text.contains(char::is_whitespace) {
            return None;
        }
        let (spec, _) = slash::parse(&text)?;
        let argument = spec.slash?.argument;
        let (_, letters) = text.split_once(char::is_whitespace)?;
        let letters = letters.trim_start().to_owned();
        // Only the first word is one of them; a path may hold blanks.
        let is_past = matches!(argument, Argument::Words(_) | Argument::Command | Argument::Skill)
            && letters.contains(char::is_whitespace);
        (argument != Argument::Text && !is_past).then_some(Typed { argument, letters })
    }

    /// The letters of the path that the user is typing: after an `@`, or after a command that takes a file or a folder.
    pub(crate) fn path_letters(&self) -> Option<String> {
        let is_path = |it: &Typed| matches!(it.argument, Argument::File | Argument::Folder);
        let of_argument = || self.typed_argument().filter(is_path).map(|it| it.letters);
        of_argument().or_else(|| Some(self.mention()?.letters))
    }

    /// The completions of the word at the caret, best first.
    pub(crate) fn completions(&self, uses: &Uses) -> Vec<Completion> {
        if self.past.is_browsing() {
            return Vec::new();
        }
        let text = self.shown();
        if self.dismissed.as_deref() == Some(text.as_str()) {
            return Vec::new();
        }
        if let Some(letters) = self.path_letters().filter(|_| self.runs().is_none()) {
            let found = self.files.iter().filter(|(of, _)| *of == letters);
            return found.flat_map(|(_, files)| files.iter().cloned().map(Completion::File)).collect();
        }
        if let Some(typed) = self.typed_argument() {
            let known = self.candidates.as_ref().filter(|(of, _)| *of == typed.argument);
            return Completion::of_argument(&typed, known.map_or(&[], |(_, candidates)| candidates));
        }
        match text.strip_prefix('/') {
            Some(word) if !word.contains([' ', '\n']) => {
                Completion::of_slash(word, self.offers.as_deref().unwrap_or_default(), uses)
            }
            _ => Vec::new(),
        }
    }

    /// The completion that Tab and Enter take. Where nothing of an argument is typed, Enter runs the command without one.
    pub(crate) fn selected(&self, completions: &[Completion]) -> Option<usize> {
        let is_bare = || self.typed_argument().is_some_and(|it| it.letters.is_empty());
        let last = completions.len().checked_sub(1)?;
        match self.chosen {
            Some(at) => Some(at.min(last)),
            None if is_bare() => None,
            None => Some(0),
        }
    }

    /// Replaces what is typed of an argument.
    pub(crate) fn accept_argument(&mut self, value: &str) {
        let text = self.shown();
        let command = text.split_once(char::is_whitespace).map_or(text.as_str(), |(command, _)| command);
        let line = format!("{command} {value}");
        self.set(&line);
    }
}
