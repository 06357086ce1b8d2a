//! Slash commands: from the typed line to the action of the table.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use pixir_core::error::nearest;

use crate::input::action::{ACTIONS, Action, ActionSpec, Slash, of_slash};
use crate::input::offer::Offer;

/// How often the user has chosen each action, by its name.
pub(crate) type Uses = BTreeMap<String, u32>;

/// What people look for before they have habits.
const USUAL: [Action; 10] = [
    Action::OpenTree,
    Action::OpenDiff,
    Action::UndoTurn,
    Action::SetModel,
    Action::SetMode,
    Action::ResumeSession,
    Action::NewSession,
    Action::CompactHistory,
    Action::Find,
    Action::OpenHelp,
];

/// The place of an action in a list: the most used first, then what people look for most.
pub(crate) fn by_use(spec: &ActionSpec, uses: &Uses) -> (bool, Reverse<u32>, usize, bool) {
    // What ends something is never the first row, where a hasty Enter would choose it.
    let ends = matches!(spec.action, Action::Interrupt | Action::Quit | Action::StashOrQuit | Action::Escape);
    let usual = USUAL.iter().position(|it| *it == spec.action).unwrap_or(USUAL.len());
    (ends, Reverse(uses.get(spec.id).copied().unwrap_or(0)), usual, spec.slash.is_none())
}

/// All slash commands with their actions, sorted by name.
pub(crate) fn commands() -> Vec<(Slash, &'static ActionSpec)> {
    let mut all: Vec<_> = ACTIONS.iter().filter_map(|spec| Some((spec.slash?, spec))).collect();
    all.sort_by_key(|(slash, _)| slash.name);
    all
}

/// The commands that match these letters, best first. Without letters, the most used come first.
pub(crate) fn complete(letters: &str, uses: &Uses) -> Vec<(Slash, &'static ActionSpec)> {
    let mut all = commands();
    all.sort_by_key(|(_, spec)| by_use(spec, uses));
    let mut matches = fuzzy(letters, all, |(slash, _)| slash.name.to_owned());
    // A user who types a prefix means a command that begins with it, and a whole name means that one.
    matches.sort_by_key(|(slash, _)| (slash.name != letters, !slash.name.starts_with(letters)));
    matches
}

/// How letters find an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matching {
    /// Each typed word stands in its text.
    Words,
    /// The letters stand in its text, with others between them. In long texts that finds nearly anything.
    Letters,
}

/// The items that these letters find, best first.
pub(crate) fn found<T>(matching: Matching, letters: &str, items: Vec<T>, text: impl Fn(&T) -> String) -> Vec<T> {
    match matching {
        Matching::Letters => fuzzy(letters, items, text),
        Matching::Words => {
            let words = letters.to_lowercase();
            let has_words = |item: &T| {
                let text = text(item).to_lowercase();
                words.split_whitespace().all(|word| text.contains(word))
            };
            items.into_iter().filter(has_words).collect()
        }
    }
}

/// The items that match these letters, best first. Without letters, all items in their order.
pub(crate) fn fuzzy<T>(letters: &str, items: Vec<T>, text: impl Fn(&T) -> String) -> Vec<T> {
    if letters.is_empty() {
        return items;
    }
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::parse(letters, CaseMatching::Ignore, Normalization::Smart);
    let mut buffer = Vec::new();
    let mut scored: Vec<(u32, T)> = items
        .into_iter()
        .filter_map(|item| Some((pattern.score(Utf32Str::new(&text(&item), &mut buffer), &mut matcher)?, item)))
        .collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().map(|(_, item)| item).collect()
}

/// Splits `/name rest`.
pub(crate) fn split(text: &str) -> (&str, &str) {
    let body = text.strip_prefix('/').unwrap_or(text);
    let (name, rest) = body.split_once(char::is_whitespace).unwrap_or((body, ""));
    (name, rest.trim())
}

/// The command of the table that `/name rest` names, with the rest.
pub(crate) fn parse(text: &str) -> Option<(&'static ActionSpec, &str)> {
    let (name, rest) = split(text);
    Some((of_slash(name)?, rest))
}

/// The message about an unknown name, with the nearest one.
pub(crate) fn unknown(name: &str, offers: &[Offer]) -> String {
    let commands = commands();
    let known = commands.iter().map(|(slash, _)| slash.name).chain(offers.iter().map(|it| it.name.as_str()));
    let near = nearest(name, known)
        .map_or_else(|| "/help lists all commands".to_owned(), |near| format!("did you mean /{near}?"));
    format!("there is no command /{name}; {near}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_letters_find_a_command_and_a_wrong_one_gets_the_nearest() {
        assert_eq!(complete("comp", &Uses::new())[0].0.name, "compact");
        assert_eq!(complete("tr", &Uses::new())[0].0.name, "tree");
        assert_eq!(complete("", &Uses::new()).len(), commands().len());
        assert_eq!(
            parse("/skill review the diff").map(|(spec, rest)| (spec.action, rest)),
            Some((Action::ActivateSkill, "review the diff"))
        );
        assert!(parse("/compcat").is_none());
        assert_eq!(unknown("compcat", &[]), "there is no command /compcat; did you mean /compact?");
    }
}
