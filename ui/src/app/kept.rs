//! What the screen keeps beside the Log, so that a crash loses no draft: written shortly after it changed, and found again.

use serde::{Deserialize, Serialize};

use crate::composer::{Images, Pastes};
use crate::state::State;
use crate::transcript::Fold;
use crate::transcript::viewport::Place;
use crate::update::send::bring_back;

/// The part of the State that belongs to the person and is in no Log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Kept {
    draft: String,
    /// Images that stand in it, or in what waits.
    images: Images,
    /// Pastes that stand in it folded.
    pastes: Pastes,
    /// Messages that waited to be delivered.
    waiting: Vec<String>,
    /// Where the person was reading: an entry, the how many-th cell of it, and a row; none at the end.
    reading: Option<(u64, usize, usize)>,
    details: Fold,
    thinking: Fold,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept {
            draft: String::new(),
            images: Images::default(),
            pastes: Pastes::default(),
            waiting: Vec::new(),
            reading: None,
            details: Fold::Some,
            thinking: Fold::Line,
        }
    }
}

impl Kept {
    pub(crate) fn of(state: &State) -> Kept {
        let waiting: Vec<String> = state.queue.steer.iter().chain(&state.queue.follow_up).cloned().collect();
        // What should be done instead stands in the line; the draft that made room for it counts as well.
        let before = state.questions.first().and_then(|question| question.feedback.clone()).unwrap_or_default();
        let line = state.composer.text();
        let gap = if before.is_empty() || line.is_empty() { "" } else { "\n" };
        let draft = format!("{before}{gap}{line}");
        Kept {
            images: state.composer.images.within(&format!("{draft}{}", waiting.concat())),
            pastes: state.composer.pastes.within(&draft),
            draft,
            waiting,
            reading: state.viewport.anchor().and_then(|place| {
                let (seq, nth) = state.transcript.address(place.cell)?;
                Some((seq, nth, place.row))
            }),
            details: state.details,
            thinking: state.thinking,
        }
    }

    /// As it is stored; empty when there is nothing to keep.
    pub(crate) fn to_text(&self) -> String {
        if *self == Kept::default() {
            return String::new();
        }
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Puts it back. What waited comes back as a draft: the Turn that it waited for is over.
    pub(crate) fn restore(text: &str, state: &mut State) {
        let Ok(kept) = serde_json::from_str::<Kept>(text) else { return };
        (state.details, state.thinking) = (kept.details, kept.thinking);
        let cell = kept.reading.and_then(|(seq, nth, row)| Some((state.transcript.at_address((seq, nth))?, row)));
        if let Some((cell, row)) = cell {
            state.viewport.stand_at(Place { cell, row }, &state.transcript);
        }
        state.composer.pastes.join(kept.pastes);
        let was_waiting = !kept.waiting.is_empty();
        let now = state.composer.text();
        let texts: Vec<String> =
            kept.waiting.into_iter().chain([kept.draft]).filter(|text| !text.is_empty() && *text != now).collect();
        if texts.is_empty() {
            return;
        }
        state.composer.images.join(kept.images);
        if !state.composer.is_empty() {
            // Two drafts would be one that nobody wrote.
            texts.iter().for_each(|text| state.composer.remember(text));
            return state.say("the draft that was kept here is behind Up; the line is yours");
        }
        bring_back(state, texts);
        state.say(if was_waiting { "what waited to be sent is back in the line" } else { "your draft is back" });
    }
}
