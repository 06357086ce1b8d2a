//! The draft and the reading position, saved next to the Log shortly after each change, so that a crash loses nothing.

use serde::{Deserialize, Serialize};

use crate::composer::{Images, Pastes};
use crate::overlay::Overlay;
use crate::overlay::diff::{DiffView, Review, SavedComment};
use crate::render::context::Fold;
use crate::state::State;
use crate::transcript::viewport::CellRow;
use crate::update::send::to_draft;

/// The part of the State that the user made and that no Log has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SavedDraft {
    draft: String,
    /// The images of the draft and of the queued messages.
    images: Images,
    /// The folded pastes of the draft.
    pastes: Pastes,
    /// The queued messages.
    waiting: Vec<String>,
    /// The comments on the diff that were not sent.
    comments: Vec<SavedComment>,
    /// The top of the viewport: the number of an entry, the index of a cell of that entry, a row. None follows the end.
    reading: Option<(u64, usize, usize)>,
    details: Fold,
    thinking: Fold,
}

impl Default for SavedDraft {
    fn default() -> SavedDraft {
        SavedDraft {
            draft: String::new(),
            images: Images::default(),
            pastes: Pastes::default(),
            waiting: Vec::new(),
            comments: Vec::new(),
            reading: None,
            details: Fold::Some,
            thinking: Fold::Line,
        }
    }
}

impl SavedDraft {
    pub(crate) fn of(state: &State) -> SavedDraft {
        let waiting: Vec<String> =
            state.session.queue.steer.iter().chain(&state.session.queue.follow_up).cloned().collect();
        // While the user writes feedback for a denial, the draft is the text that the feedback has replaced plus the
        // feedback.
        let before =
            state.approvals.first().and_then(|approval| approval.draft_before_feedback.clone()).unwrap_or_default();
        let written = state.composer.text();
        let gap = if before.is_empty() || written.is_empty() { "" } else { "\n" };
        let draft = format!("{before}{gap}{written}");
        SavedDraft {
            images: state.composer.images.within(&format!("{draft}{}", waiting.concat())),
            pastes: state.composer.pastes.within(&draft),
            draft,
            waiting,
            comments: state
                .overlays
                .iter()
                .find_map(Overlay::diff)
                .map_or_else(|| state.pending.review.saved(), DiffView::saved_review),
            reading: state.viewport.anchor().and_then(|at| {
                let (seq, nth) = state.transcript.address(at.cell)?;
                Some((seq, nth, at.row))
            }),
            details: state.look.details,
            thinking: state.look.thinking,
        }
    }

    /// The text of the file; empty if there is nothing to save.
    pub(crate) fn to_text(&self) -> String {
        if *self == SavedDraft::default() {
            return String::new();
        }
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Restores it. Queued messages return as a draft, because the Turn that they waited for is over.
    pub(crate) fn restore(text: &str, state: &mut State) {
        let Some(saved) = SavedDraft::read(text) else { return };
        saved.back_in(state);
    }

    /// Reads a saved draft.
    pub(crate) fn read(text: &str) -> Option<SavedDraft> {
        serde_json::from_str(text).ok()
    }

    /// Puts it back into a Session that has stayed open: its queued messages still wait there.
    pub(crate) fn put_back(self, state: &mut State) {
        SavedDraft { waiting: Vec::new(), ..self }.back_in(state);
    }

    fn back_in(self, state: &mut State) {
        let saved = self;
        (state.look.details, state.look.thinking) = (saved.details, saved.thinking);
        let cell = saved.reading.and_then(|(seq, nth, row)| Some((state.transcript.at_address((seq, nth))?, row)));
        if let Some((cell, row)) = cell {
            state.viewport.stand_at(CellRow { cell, row }, &state.transcript);
        }
        state.composer.pastes.join(saved.pastes);
        let was_waiting = !saved.waiting.is_empty();
        let now = state.composer.text();
        let texts: Vec<String> =
            saved.waiting.into_iter().chain([saved.draft]).filter(|text| !text.is_empty() && *text != now).collect();
        state.pending.review = Review::restored(saved.comments);
        let comments = match state.pending.review.len() {
            0 => None,
            1 => Some("your comment on the diff is restored".to_owned()),
            n => Some(format!("{n} comments on the diff are restored")),
        };
        if texts.is_empty() {
            comments.into_iter().for_each(|it| state.say(it));
            return;
        }
        state.composer.images.join(saved.images);
        if !state.composer.is_empty() {
            // Joining two drafts would make one that the user did not write.
            texts.iter().for_each(|text| state.composer.remember(text));
            return state.say("Up brings back the draft that was saved in this session");
        }
        to_draft(state, texts);
        state.say(if was_waiting { "the queued messages are back in the composer" } else { "your draft is restored" });
    }
}
