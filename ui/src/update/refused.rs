//! What cannot be carried out as the user asked for it. The reason stands where the user asked: beside the composer, with
//! the slash command in it, or in the overlay, which opens again if it has closed.

use pixir_core::Error;
use pixir_core::error::ErrorBody;

use crate::input::slash;
use crate::overlay::Overlay;
use crate::state::{Effect, OverlayRequest, SlashCommand, State};

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

/// Remembers what an overlay has asked for, because that can be refused later; and the overlay, if it has closed.
pub(super) fn note_request(state: &mut State, closed: Option<Overlay>, effects: &[Effect]) {
    let asks: Vec<&str> = effects.iter().filter_map(Effect::asks).collect();
    if !asks.is_empty() {
        state.pending.request = Some(OverlayRequest { asks, closed: closed.filter(Overlay::can_reopen) });
    }
}

/// Keeps what an overlay asked for before this key, as far as nothing else asks for the same now. An overlay that has closed
/// stays closed, because the user has gone on.
pub(super) fn forget_request(state: &mut State, earlier: Option<OverlayRequest>, effects: &[Effect]) {
    if let (None, Some(OverlayRequest { mut asks, .. })) = (&state.pending.request, earlier) {
        asks.retain(|earlier| effects.iter().filter_map(Effect::asks).all(|asked| asked != *earlier));
        state.pending.request = Some(OverlayRequest { asks, closed: None });
    }
}

/// An overlay asked for this last.
pub(crate) fn is_of_overlay(state: &State, asked: &str) -> bool {
    state.pending.request.as_ref().is_some_and(|it| it.asks.contains(&asked))
}

/// Says at the overlay that asked why it is refused. One that has closed opens again, with all that the user typed in it.
pub(crate) fn refuse_overlay(state: &mut State, why: impl Into<String>) -> Vec<Effect> {
    // It may have asked for several things, and each of them is refused.
    let closed = state.pending.request.as_mut().and_then(|it| it.closed.take());
    if let Some(overlay) = closed.filter(|_| state.overlays.is_empty()) {
        state.pending.command = None;
        state.overlays.push(overlay);
        state.guard.top_overlay_since = None;
    }
    beside(state, why);
    Vec::new()
}

/// Says why something was not done: in the overlay that has the keys, else in the status line.
pub(crate) fn beside(state: &mut State, why: impl Into<String>) {
    match state.overlays.last() {
        Some(overlay) if !overlay.is_form() => state.note = Some(why.into()),
        Some(_) | None => state.say(why),
    }
}

/// The last slash command asked for this.
pub(crate) fn is_asked(state: &State, asked: &str) -> bool {
    state.pending.command.as_ref().is_some_and(|it| it.asks.contains(&asked))
}

/// An overlay or the last slash command asked for this.
pub(crate) fn is_of_user(state: &State, asked: &str) -> bool {
    is_of_overlay(state, asked) || is_asked(state, asked)
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
    if is_of_overlay(state, asked) {
        return refuse_overlay(state, why);
    }
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
