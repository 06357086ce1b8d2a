//! Stepping through a replay.

use super::events;
use crate::state::State;
use crate::transcript::replay::Replay;

/// A step forward over more entries than this folds the History anew, which is faster than adding them one by one.
const MAX_SINGLE_STEPS: usize = 64;

/// Shows the first `count` entries.
fn show(state: &mut State, count: usize) {
    let Some(replay) = &mut state.replay else { return };
    let before = replay.shown();
    if count < before || count - before > MAX_SINGLE_STEPS {
        replay.show(count);
        rebuild(state);
        return;
    }
    for _ in before..count {
        step(state);
    }
    if let Some(replay) = &mut state.replay {
        replay.show(count);
    }
}

/// Shows the replayed entries from the start again.
pub(crate) fn rebuild(state: &mut State) {
    if let Some(replay) = &state.replay {
        let past = replay.history();
        events::show(state, past);
    }
}

/// Shows the next entry.
pub(crate) fn step(state: &mut State) {
    if let Some(entry) = state.replay.as_mut().and_then(Replay::advance) {
        events::on_entry(state, &entry);
        state.toast = None;
    }
}

/// Goes to the count of entries that `to` computes.
fn go(state: &mut State, to: impl FnOnce(&Replay) -> usize) {
    if let Some(count) = state.replay.as_ref().map(to) {
        state.viewport.follow();
        show(state, count);
    }
}

pub(super) fn play(state: &mut State) {
    let Some(replay) = &mut state.replay else { return };
    let restarts = !replay.is_playing() && replay.shown() == replay.len();
    if replay.is_playing() {
        replay.stop()
    } else {
        replay.play()
    }
    if restarts {
        rebuild(state);
    }
}

pub(super) fn forward(state: &mut State) {
    go(state, |it| it.next_stop(it.shown()))
}

pub(super) fn back(state: &mut State) {
    go(state, |it| it.previous_stop(it.shown()))
}

pub(super) fn next_turn(state: &mut State) {
    go(state, Replay::next_turn)
}

pub(super) fn previous_turn(state: &mut State) {
    go(state, Replay::previous_turn)
}

pub(super) fn to_start(state: &mut State) {
    go(state, |it| it.next_stop(0))
}

pub(super) fn to_end(state: &mut State) {
    go(state, Replay::len)
}

/// Goes to the entry with this number.
pub(super) fn to_seq(state: &mut State, seq: Option<u64>) {
    go(state, |it| it.count_to(seq))
}

/// Goes to a fraction of the whole, from a click on the bar.
pub(super) fn to_fraction(state: &mut State, fraction: f64) {
    go(state, |it| (fraction * it.len() as f64).round() as usize)
}

pub(super) fn faster(state: &mut State, by: f64) {
    if let Some(replay) = &mut state.replay {
        replay.faster(by);
    }
}
