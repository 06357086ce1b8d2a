//! What can complete the word at the caret.

use crate::input::action::{ActionSpec, Slash};
use crate::input::offer::Offer;
use crate::input::slash;

/// A completion of the word at the caret.
#[derive(Debug, Clone)]
pub(crate) enum Completion {
    Command(Slash, &'static ActionSpec),
    /// A template or a skill.
    Offer(Offer),
    /// A path of the workspace.
    File(String),
}

impl Completion {
    /// The completions of a slash command of which these letters are typed. Names that begin with the letters come first, and
    /// pixir's own commands before templates and skills.
    pub(crate) fn of_slash(letters: &str, offers: &[Offer]) -> Vec<Completion> {
        let commands = slash::complete(letters).into_iter().map(|(slash, spec)| Completion::Command(slash, spec));
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
        }
    }
}
