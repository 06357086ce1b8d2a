//! The diff: opening it, reading what it shows, and what the user decides about hunks.

use pixir_core::{Fact, Input};

use crate::overlay::diff::DiffView;
use crate::overlay::{Layer as _, Overlay};
use crate::state::{Effect, State};
use crate::transcript::Cell;

/// Opens the diff: at this call's result, or at this file of the Session.
pub(super) fn open(state: &mut State, call: Option<u64>, path: Option<String>) -> Vec<Effect> {
    let review = std::mem::take(&mut state.pending.review);
    let view = DiffView::new(&state.history, call, path, review);
    state.open(view)
}

/// Opens the diff at what this Turn, or the restore that this Entry records, changed, and at this file of it.
pub(super) fn open_turn(state: &mut State, seq: u64, path: Option<String>) -> Vec<Effect> {
    let review = std::mem::take(&mut state.pending.review);
    let view = DiffView::of_turn(&state.history, seq, path, review);
    state.open(view)
}

/// The Entry of the result of this cell, if it changed files.
pub(super) fn result_of(state: &State, cell: usize) -> Option<u64> {
    let Some(Cell::Tool(it)) = state.transcript.cell(cell) else { return None };
    let result = it.result().filter(|result| !result.changes.is_empty())?;
    let is_it = |fact: &Fact| matches!(fact, Fact::ToolResult(other) if other.call_id == result.call_id);
    state.history.entries().iter().rev().find(|entry| is_it(&entry.fact)).map(|entry| entry.seq)
}

/// Files changed while the diff is open, or a hunk was reviewed elsewhere.
pub(super) fn read_again(state: &mut State) -> Vec<Effect> {
    let State { overlays, history, .. } = state;
    let Some(view) = overlays.iter_mut().find_map(DiffView::of) else { return Vec::new() };
    view.read_again(history);
    view.wants()
}

/// Sends the comments: they steer the running Turn, or begin one.
pub(super) fn send(state: &mut State, message: String) -> Vec<Effect> {
    if let Some(view) = state.overlays.iter_mut().find_map(DiffView::of) {
        view.sent();
    }
    state.overlays.retain(|overlay| !matches!(overlay, Overlay::Diff(_)));
    state.say("comments sent");
    state.viewport.follow();
    vec![Effect::Send(Input::Steer(message.into()))]
}
