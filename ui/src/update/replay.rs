//! Going through a Session that is told again.

use super::news;
use crate::state::{Effect, State};
use crate::transcript::replay::Replay;

/// So many entries are taken in one by one; further away it is quicker to begin anew.
const NEAR: usize = 64;

/// Shows so many entries.
fn show(state: &mut State, count: usize) {
    let Some(replay) = &mut state.replay else { return };
    let before = replay.shown();
    if count < before || count - before > NEAR {
        replay.show(count);
        rewrite(state);
        return;
    }
    for _ in before..count {
        step(state);
    }
    if let Some(replay) = &mut state.replay {
        replay.show(count);
    }
}

/// What was told so far, told anew.
pub(crate) fn rewrite(state: &mut State) {
    if let Some(replay) = &state.replay {
        let past = replay.history();
        news::show(state, past);
    }
}

/// The next entry comes.
pub(crate) fn step(state: &mut State) {
    if let Some(entry) = state.replay.as_mut().and_then(Replay::advance) {
        news::on_entry(state, &entry);
        state.toast = None;
    }
}

fn go(state: &mut State, to: impl FnOnce(&Replay) -> usize) -> Vec<Effect> {
    if let Some(count) = state.replay.as_ref().map(to) {
        state.viewport.follow();
        show(state, count);
    }
    Vec::new()
}

pub(crate) fn play(state: &mut State, _: &str) -> Vec<Effect> {
    let Some(replay) = &mut state.replay else { return Vec::new() };
    let begins_anew = !replay.is_playing() && replay.shown() == replay.len();
    replay.play(!replay.is_playing());
    if begins_anew {
        rewrite(state);
    }
    Vec::new()
}

pub(crate) fn forward(state: &mut State, _: &str) -> Vec<Effect> {
    go(state, |it| it.next_stop(it.shown()))
}

pub(crate) fn back(state: &mut State, _: &str) -> Vec<Effect> {
    go(state, |it| it.stop_before(it.shown()))
}

pub(crate) fn next_turn(state: &mut State, _: &str) -> Vec<Effect> {
    go(state, Replay::next_turn)
}

pub(crate) fn turn_before(state: &mut State, _: &str) -> Vec<Effect> {
    go(state, Replay::turn_before)
}

pub(crate) fn to_start(state: &mut State, _: &str) -> Vec<Effect> {
    go(state, |it| it.next_stop(0))
}

pub(crate) fn to_end(state: &mut State, _: &str) -> Vec<Effect> {
    go(state, Replay::len)
}

/// Everything up to an entry.
pub(crate) fn to_seq(state: &mut State, seq: Option<u64>) -> Vec<Effect> {
    go(state, |it| it.count_to(seq))
}

/// Where the bar was clicked.
pub(crate) fn to_fraction(state: &mut State, fraction: f64) -> Vec<Effect> {
    go(state, |it| (fraction * it.len() as f64).round() as usize)
}

pub(crate) fn faster(state: &mut State, by: f64) -> Vec<Effect> {
    if let Some(replay) = &mut state.replay {
        replay.faster(by);
    }
    Vec::new()
}
