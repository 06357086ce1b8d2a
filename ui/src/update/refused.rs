//! Slash commands that cannot be carried out as they were typed. The reason stands beside the composer, and the command
//! in it, so that the user corrects it.

use pixir_core::Error;
use pixir_core::error::ErrorBody;

use crate::input::slash;
use crate::state::{Effect, SlashCommand, State};

/// Remembers the slash command that has just run, and what it asks for, because that can be refused later.
pub(super) fn note(state: &mut State, text: &str, effects: &[Effect]) {
    let asks = effects.iter().filter_map(Effect::asks).collect();
    state.pending.command = Some(SlashCommand { text: text.to_owned(), asks });
}

/// Forgets an earlier command where something else asks for the same.
pub(super) fn forget_asked(state: &mut State, earlier: Option<SlashCommand>, effects: &[Effect]) {
    if state.pending.command.is_none() {
        let is_same = |it: &SlashCommand| effects.iter().filter_map(Effect::asks).any(|asked| it.asks.contains(&asked));
        state.pending.command = earlier.filter(|it| !is_same(it));
    }
}

/// The last slash command asked for this.
pub(crate) fn is_asked(state: &State, asked: &str) -> bool {
    state.pending.command.as_ref().is_some_and(|it| it.asks.contains(&asked))
}

/// Says why the slash command that runs is not carried out, and puts it back, unless the user has begun something else.
pub(crate) fn refuse(state: &mut State, why: impl Into<String>) -> Vec<Effect> {
    let command = state.pending.command.take();
    if let Some(SlashCommand { text, .. }) = command.filter(|_| state.composer.is_empty() && state.replay.is_none()) {
        // What is missing is typed behind the blank.
        let takes_more = slash::parse(&text)
            .is_some_and(|(spec, rest)| rest.is_empty() && spec.slash.is_some_and(|it| !it.args.is_empty()));
        state.composer.set(&if takes_more { format!("{} ", text.trim_end()) } else { text });
    }
    state.say(why);
    Vec::new()
}

/// The same, for what came too late to be part of the command: it is put back if it asked for this.
pub(crate) fn refuse_late(state: &mut State, asked: &str, why: impl Into<String>) -> Vec<Effect> {
    if is_asked(state, asked) {
        return refuse(state, why);
    }
    state.say(why);
    Vec::new()
}

/// An error with its remedy, in one sentence.
pub(crate) fn because(state: &State, error: &Error) -> String {
    format!("{}; {}", error.message, state.look.more.remedies.word(&error.remedy))
}

/// The same, for an error of the Session.
pub(super) fn because_of(state: &State, error: &ErrorBody) -> String {
    format!("{}; {}", error.message, state.look.more.remedies.of(error))
}
