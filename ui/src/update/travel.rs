//! Going elsewhere in the conversation, with or without the files; undo and redo.

use pixir_core::Input;
use pixir_core::event::{RestorePlan, RestoreReason};
use pixir_core::input::{Summarize, Wish};

use crate::overlay::restore::RestoreView;
use crate::state::{Effect, State};
use crate::update::replay;

/// Where the person wants to go, until it is known whether files are to go along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Going {
    pub(crate) to_seq: Option<u64>,
    pub(crate) summarize: Summarize,
    /// The prompt that returns to the composer there.
    pub(crate) edit: Option<String>,
}

/// First it is asked what would become of the files.
pub(crate) fn go(state: &mut State, going: Going) -> Vec<Effect> {
    let to_seq = going.to_seq;
    // What is told again goes there without changing anything.
    if state.replay.is_some() {
        return replay::to_seq(state, to_seq);
    }
    state.going = Some(going);
    let files = Some(Wish { dry_run: true, ..Wish::default() });
    vec![Effect::Send(Input::MoveHead { to_seq, summarize: Summarize::No, files })]
}

/// The plan has come: a move without files is made at once, everything else is shown.
pub(super) fn planned(state: &mut State, plan: RestorePlan) -> Vec<Effect> {
    if plan.reason == RestoreReason::Rewind && plan.files.is_empty() {
        return arrive(state, None);
    }
    if plan.files.is_empty() {
        state.say("all files are as they should be already");
        return Vec::new();
    }
    state.open(RestoreView::new(plan))
}

/// Makes the move that was asked for.
pub(crate) fn arrive(state: &mut State, files: Option<Wish>) -> Vec<Effect> {
    // It is kept until the head has moved: what is refused can be asked for again.
    let Some(Going { to_seq, summarize, .. }) = state.going.clone() else { return Vec::new() };
    vec![Effect::Send(Input::MoveHead { to_seq, summarize, files })]
}

/// The head has moved; a prompt that is to be edited comes back.
pub(super) fn arrived(state: &mut State) {
    if let Some(text) = state.going.take().and_then(|going| going.edit) {
        // A draft that is replaced can be brought back with Up.
        state.composer.take();
        state.composer.set(&text);
    }
}

/// The person has seen the plan and wants it.
pub(crate) fn restore(state: &mut State, plan: &RestorePlan, wish: Wish) -> Vec<Effect> {
    match plan.reason {
        RestoreReason::Rewind | RestoreReason::Stayed | RestoreReason::Unknown => arrive(state, Some(wish)),
        RestoreReason::Undo => vec![Effect::Send(Input::Undo { turn: plan.of_turn, wish })],
        RestoreReason::Redo => vec![Effect::Send(Input::Redo { wish })],
    }
}

pub(crate) fn undo(state: &mut State, turn: &str) -> Vec<Effect> {
    let turn = match turn.parse() {
        _ if turn.is_empty() => None,
        Ok(turn) => Some(turn),
        Err(_) => {
            state.say("give it the number of a turn, or none for the last: /undo 3");
            return Vec::new();
        }
    };
    vec![Effect::Send(Input::Undo { turn, wish: Wish { dry_run: true, ..Wish::default() } })]
}

pub(crate) fn redo(_: &mut State, _: &str) -> Vec<Effect> {
    vec![Effect::Send(Input::Redo { wish: Wish { dry_run: true, ..Wish::default() } })]
}

pub(crate) fn fork(state: &mut State, _: &str) -> Vec<Effect> {
    match state.history.head() {
        Some(seq) => vec![Effect::Send(Input::Fork { seq })],
        None => {
            state.say("there is nothing to fork yet");
            Vec::new()
        }
    }
}
