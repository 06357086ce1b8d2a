//! Slash commands: from the typed line to the action of the table.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use pixir_core::error::nearest;

use crate::input::action::{ACTIONS, ActionSpec, Slash, of_slash};
use crate::input::offer::Offer;

/// All slash commands with their actions, sorted by name.
pub(crate) fn commands() -> Vec<(Slash, &'static ActionSpec)> {
    let mut all: Vec<_> = ACTIONS.iter().filter_map(|spec| Some((spec.slash?, spec))).collect();
    all.sort_by_key(|(slash, _)| slash.name);
    all
}

/// The commands that match these letters, best first.
pub(crate) fn complete(letters: &str) -> Vec<(Slash, &'static ActionSpec)> {
    let mut matches = fuzzy(letters, commands(), |(slash, _)| slash.name.to_owned());
    // A user who types a prefix means a command that begins with it.
    matches.sort_by_key(|(slash, _)| !slash.name.starts_with(letters));
    matches
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
    use crate::input::action::Action;

    #[test]
    fn a_few_letters_find_a_command_and_a_wrong_one_gets_the_nearest() {
        assert_eq!(complete("comp")[0].0.name, "compact");
        assert_eq!(complete("tr")[0].0.name, "tree");
        assert_eq!(complete("").len(), commands().len());
        assert_eq!(
            parse("/skill review the diff").map(|(spec, rest)| (spec.action, rest)),
            Some((Action::ActivateSkill, "review the diff"))
        );
        assert!(parse("/compcat").is_none());
        assert_eq!(unknown("compcat", &[]), "there is no command /compcat; did you mean /compact?");
    }
}
