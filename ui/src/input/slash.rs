//! Slash commands: what is typed, to the verb of the action table that it means.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use pixir_core::error::nearest;

use crate::input::action::{Slash, VERBS, Verb, of_slash};

/// Verbs that have a slash command, with it, by name.
pub(crate) fn commands() -> Vec<(Slash, &'static Verb)> {
    let mut all: Vec<_> = VERBS.iter().filter_map(|verb| Some((verb.slash?, verb))).collect();
    all.sort_by_key(|(slash, _)| slash.name);
    all
}

/// Commands that fit these letters, best first.
pub(crate) fn complete(letters: &str) -> Vec<(Slash, &'static Verb)> {
    let mut found = fuzzy(letters, commands(), |(slash, _)| slash.name.to_owned());
    // What begins so is what is meant.
    found.sort_by_key(|(slash, _)| !slash.name.starts_with(letters));
    found
}

/// What fits these letters, best first; all in their order, without letters.
pub(crate) fn fuzzy<T>(letters: &str, items: Vec<T>, text: impl Fn(&T) -> String) -> Vec<T> {
    if letters.is_empty() {
        return items;
    }
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::parse(letters, CaseMatching::Ignore, Normalization::Smart);
    let mut buffer = Vec::new();
    let mut found: Vec<(u32, T)> = items
        .into_iter()
        .filter_map(|item| Some((pattern.score(Utf32Str::new(&text(&item), &mut buffer), &mut matcher)?, item)))
        .collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().map(|(_, item)| item).collect()
}

/// Splits `/name rest`; an unknown name comes back with the nearest.
pub(crate) fn parse(text: &str) -> Result<(&'static Verb, &str), String> {
    let body = text.strip_prefix('/').unwrap_or(text);
    let (name, rest) = body.split_once(char::is_whitespace).unwrap_or((body, ""));
    match of_slash(name) {
        Some(verb) => Ok((verb, rest.trim())),
        None => {
            let near = nearest(name, commands().iter().map(|(slash, _)| slash.name))
                .map_or_else(|| "/help lists all".to_owned(), |near| format!("did you mean /{near}?"));
            Err(format!("there is no command /{name}; {near}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_letters_find_a_command_and_a_wrong_one_gets_the_nearest() {
        assert_eq!(complete("comp")[0].0.name, "compact");
        assert_eq!(complete("tr")[0].0.name, "tree");
        assert_eq!(complete("").len(), commands().len());
        assert_eq!(
            parse("/skill review the diff").map(|(verb, rest)| (verb.id, rest)),
            Ok(("skill", "review the diff"))
        );
        assert_eq!(
            parse("/compcat").expect_err("no such command"),
            "there is no command /compcat; did you mean /compact?"
        );
    }
}
