//! The window over the transcript: where it stands is a cell and a line of it, never a count of rows from the top.

use std::rc::Rc;

use ratatui::text::Line;

use crate::render::cell;
use crate::render::markdown::Look;
use crate::transcript::{LayoutKey, Transcript};

/// Cells around the window whose lines are kept.
const KEPT: usize = 200;

/// A place in the transcript: a cell (the draft counts as the last) and a line of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) struct Place {
    pub(crate) slot: usize,
    pub(crate) line: usize,
}

/// Where the window stands, and what it showed last.
#[derive(Debug, Default)]
pub(crate) struct Viewport {
    /// The first line that is shown; `None` follows the end.
    anchor: Option<Place>,
    /// The first line that was shown last.
    top: Option<Place>,
    pub(crate) height: usize,
    /// Cells when the end was left; what came since is new.
    seen: usize,
    /// The end was in sight.
    at_end: bool,
}

impl Viewport {
    /// New cells below the window, when it does not follow.
    pub(crate) fn unseen(&self, transcript: &Transcript) -> Option<usize> {
        self.anchor.filter(|_| !self.at_end).map(|_| transcript.slots.len().saturating_sub(self.seen))
    }

    /// The thinking at the start of the draft has become a cell of its own: what is read in the text behind it stays.
    pub(crate) fn draft_was_split(&mut self, draft: usize, thinking_rows: usize) {
        if let Some(anchor) = self.anchor.as_mut().filter(|a| a.slot == draft && a.line >= thinking_rows) {
            *anchor = Place { slot: draft + 1, line: anchor.line - thinking_rows };
        }
    }

    /// The first line that is shown; none when the end is followed.
    pub(crate) fn anchor(&self) -> Option<Place> {
        self.anchor
    }

    /// Shows this place again, if it is still there.
    pub(crate) fn stand_at(&mut self, place: Place, transcript: &Transcript) {
        if place.slot < transcript.slots.len() {
            self.leave_end(transcript);
            self.anchor = Some(place);
        }
    }

    /// Follows the end from now on.
    pub(crate) fn follow(&mut self) {
        self.anchor = None;
    }

    /// Shows the start.
    pub(crate) fn show_start(&mut self, transcript: &Transcript) {
        self.leave_end(transcript);
        self.anchor = Some(Place { slot: 0, line: 0 });
    }

    fn leave_end(&mut self, transcript: &Transcript) {
        if self.anchor.is_none() {
            self.seen = transcript.slots.len();
        }
    }

    /// Moves by lines; upwards is negative. The end is followed again only when that is asked for.
    pub(crate) fn scroll(&mut self, by: isize, transcript: &mut Transcript, look: &Look<'_>, key: LayoutKey) {
        let Some(mut place) = self.anchor.or(self.top) else { return };
        if by < 0 {
            self.leave_end(transcript);
            let mut left = by.unsigned_abs();
            while left > place.line {
                if place.slot == 0 {
                    (place.line, left) = (0, 0);
                    break;
                }
                left -= place.line;
                place.slot -= 1;
                place.line = lines_of(transcript, place.slot, look, key).len();
            }
            place.line -= left.min(place.line);
        } else {
            if self.anchor.is_none() {
                return;
            }
            let mut left = by.unsigned_abs();
            while left > 0 {
                let there = lines_of(transcript, place.slot, look, key).len();
                if place.line + left < there || place.slot + 1 >= count(transcript) {
                    place.line = (place.line + left).min(there);
                    break;
                }
                left -= there.saturating_sub(place.line);
                place = Place { slot: place.slot + 1, line: 0 };
            }
            let last = self.last_top(transcript, look, key);
            place = place.min(last);
        }
        self.anchor = Some(place);
    }

    /// The first line of the last windowful.
    fn last_top(&self, transcript: &mut Transcript, look: &Look<'_>, key: LayoutKey) -> Place {
        let mut left = self.height;
        for slot in (0..count(transcript)).rev() {
            let there = lines_of(transcript, slot, look, key).len();
            if there >= left {
                return Place { slot, line: there - left };
            }
            left -= there;
        }
        Place { slot: 0, line: 0 }
    }

    /// The lines to show, from the top, with the cell that each belongs to. Only cells in sight are laid out.
    pub(crate) fn window(
        &mut self,
        height: usize,
        transcript: &mut Transcript,
        look: &Look<'_>,
        key: LayoutKey,
    ) -> Vec<(usize, Line<'static>)> {
        self.height = height;
        let last = self.last_top(transcript, look, key);
        // A cell that was folded has fewer lines than it had when the window was put there.
        if let Some(anchor) = &mut self.anchor
            && anchor.slot < count(transcript)
        {
            anchor.line = anchor.line.min(lines_of(transcript, anchor.slot, look, key).len().saturating_sub(1));
        }
        let top = self.anchor.map_or(last, |anchor| anchor.min(last));
        self.top = Some(top);
        self.at_end = top >= last;
        let mut shown = Vec::with_capacity(height);
        let mut place = top;
        while shown.len() < height && place.slot < count(transcript) {
            let lines = lines_of(transcript, place.slot, look, key);
            shown.extend(
                lines.iter().skip(place.line).take(height - shown.len()).map(|line| (place.slot, line.clone())),
            );
            place = Place { slot: place.slot + 1, line: 0 };
        }
        forget_far(transcript, top.slot, place.slot);
        shown
    }

    /// How far down the window stands, from 0 to 1, by cells: honest enough, and nothing unseen is laid out for it.
    pub(crate) fn position(&self, transcript: &Transcript) -> f64 {
        match (self.anchor, self.top) {
            (Some(_), Some(top)) if !self.at_end => top.slot as f64 / count(transcript).max(1) as f64,
            _ => 1.0,
        }
    }

    /// Nothing is in sight any more, as after a rewind.
    pub(crate) fn reset(&mut self) {
        *self = Viewport { height: self.height, ..Viewport::default() };
    }
}

fn count(transcript: &Transcript) -> usize {
    transcript.slots.len() + usize::from(!transcript.draft.is_empty())
}

fn lines_of(transcript: &mut Transcript, at: usize, look: &Look<'_>, key: LayoutKey) -> Rc<Vec<Line<'static>>> {
    if at >= transcript.slots.len() {
        return cell::draft_lines(&mut transcript.draft, look, key);
    }
    let after_tool = at > 0 && cell::joins_next(&transcript.slots[at - 1].cell, &transcript.slots[at].cell);
    let slot = &mut transcript.slots[at];
    match &slot.lines {
        Some((known, lines)) if *known == key => Rc::clone(lines),
        _ => {
            let mut lines = cell::lines(&slot.cell, look);
            if !after_tool && at > 0 {
                lines.insert(0, Line::default());
            }
            let lines = Rc::new(lines);
            slot.lines = Some((key, Rc::clone(&lines)));
            lines
        }
    }
}

/// Lines far from the window are laid out again when they come near.
fn forget_far(transcript: &mut Transcript, from: usize, to: usize) {
    let far = |at: usize| at + KEPT < from || at > to + KEPT;
    // A window moves by little, so what has just become far lies at the edge.
    let edges = [from.saturating_sub(2 * KEPT)..from.saturating_sub(KEPT), (to + KEPT + 1)..(to + 2 * KEPT)];
    for at in edges.into_iter().flatten() {
        if let Some(slot) = transcript.slots.get_mut(at).filter(|_| far(at)) {
            slot.lines = None;
        }
    }
}
