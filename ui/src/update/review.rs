//! The diff: opening it, reading what it shows, and what the user decides about hunks.

use std::sync::Arc;

use pixir_core::diff::{Across, ChangedFile, Changes};
use pixir_core::{Fact, Input};

use crate::overlay::diff::{DiffView, Loaded, Want};
use crate::overlay::{Notification, Overlay, View};
use crate::state::{Effect, State};
use crate::transcript::Cell;

/// Opens the diff: at this call's result, or at this file of the Session.
pub(super) fn open(state: &mut State, call: Option<u64>, path: Option<String>) -> Vec<Effect> {
    let review = std::mem::take(&mut state.pending.review);
    let view = DiffView::new(&state.history, call, path, review);
    show(state, view)
}

/// Opens the diff at what this Turn, or the restore that this Entry records, changed, and at this file of it.
pub(super) fn open_turn(state: &mut State, seq: u64, path: Option<String>) -> Vec<Effect> {
    let review = std::mem::take(&mut state.pending.review);
    let view = DiffView::of_turn(&state.history, seq, path, review);
    show(state, view)
}

fn show(state: &mut State, mut view: DiffView) -> Vec<Effect> {
    let wants = view.wants();
    let mut effects = state.open(Overlay::Diff(Box::new(view)));
    effects.extend(read(wants));
    effects
}

/// The Entry of the result of this cell, if it changed files.
pub(super) fn result_of(state: &State, cell: usize) -> Option<u64> {
    let Some(Cell::Tool(it)) = state.transcript.cell(cell) else { return None };
    let result = it.result().filter(|result| !result.changes.is_empty())?;
    let is_it = |fact: &Fact| matches!(fact, Fact::ToolResult(other) if other.call_id == result.call_id);
    state.history.entries().iter().rev().find(|entry| is_it(&entry.fact)).map(|entry| entry.seq)
}

pub(super) fn read(wants: Vec<Want>) -> Vec<Effect> {
    wants.into_iter().map(Effect::ReadDiff).collect()
}

/// Files changed while the diff is open, or a hunk was reviewed elsewhere.
pub(super) fn read_again(state: &mut State) -> Vec<Effect> {
    let State { overlays, history, .. } = state;
    let Some(view) = overlays.iter_mut().find_map(Overlay::diff_mut) else { return Vec::new() };
    view.read_again(history);
    read(view.wants())
}

/// Sends the comments: they steer the running Turn, or begin one.
pub(super) fn send(state: &mut State, message: String) -> Vec<Effect> {
    if let Some(view) = state.overlays.iter_mut().find_map(Overlay::diff_mut) {
        view.sent();
    }
    state.overlays.retain(|overlay| !matches!(overlay, Overlay::Diff(_)));
    state.say("comments sent");
    state.viewport.follow();
    vec![Effect::Send(Input::Steer(message.into()))]
}

fn notify(state: &mut State, notification: Notification<'_>) -> Vec<Effect> {
    let Some(view) = state.overlays.iter_mut().find_map(Overlay::diff_mut) else { return Vec::new() };
    view.notify(notification);
    read(view.wants())
}

pub(crate) fn on_changes(state: &mut State, number: u64, changes: &Changes) -> Vec<Effect> {
    notify(state, Notification::Changes { number, changes })
}

pub(crate) fn on_counts(state: &mut State, number: u64, files: &[(usize, ChangedFile)]) -> Vec<Effect> {
    notify(state, Notification::Counts { number, files })
}

pub(crate) fn on_moves(state: &mut State, number: u64, across: &Arc<Across>) -> Vec<Effect> {
    notify(state, Notification::Moves { number, across })
}

pub(crate) fn on_patch(state: &mut State, number: u64, at: usize, loaded: &Arc<Loaded>) -> Vec<Effect> {
    notify(state, Notification::Patch { number, at, loaded })
}
