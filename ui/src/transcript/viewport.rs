//! The visible part of the transcript. Its position is a cell and a row in it, so that rows above it can change.

use std::rc::Rc;

use crate::render::context::{LayoutKey, RenderContext};
use crate::render::text::Row;
use crate::transcript::{Cell, Transcript};

/// A row of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CellRow {
    pub(crate) cell: usize,
    pub(crate) row: usize,
}

/// The visible rows of one cell.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) cell: usize,
    pub(crate) rows: Rc<Vec<Row>>,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// The largest count of new cells, because every frame counts them anew.
const MOST_NEW: usize = 500;

/// The position of the viewport, and what it showed in the last frame.
#[derive(Debug, Default)]
pub(crate) struct Viewport {
    /// The first visible row. None follows the end.
    anchor: Option<CellRow>,
    /// The first visible row of the last frame.
    top: Option<CellRow>,
    pub(crate) height: usize,
    /// The number of cells when the user left the end. Later ones count as new.
    seen: usize,
    /// The end was visible.
    at_end: bool,
    /// The visible rows, from the top.
    shown: Vec<Shown>,
    /// The text at the anchor, to find it again in another layout.
    held: Option<Held>,
}

/// A position in a text, independent of the layout.
#[derive(Debug)]
struct Held {
    anchor: CellRow,
    rows: Rc<Vec<Row>>,
    /// The characters of the cell before the anchor, and the empty rows from the anchor to the next text.
    before: usize,
    lead: usize,
}

impl Held {
    fn new(anchor: CellRow, rows: Rc<Vec<Row>>) -> Held {
        let lead = rows.iter().skip(anchor.row).take_while(|row| weight(row) == 0).count();
        let before = rows.iter().take(anchor.row).map(weight).sum();
        Held { anchor, rows, before, lead }
    }

    /// The row of this text in another layout.
    fn row_in(&self, rows: &[Row]) -> usize {
        let mut sum = 0;
        let is_there = |row: &Row| {
            sum += weight(row);
            sum > self.before
        };
        let row = rows.iter().position(is_there).unwrap_or(rows.len().saturating_sub(1));
        row.saturating_sub(self.lead)
    }
}

/// The characters of a row that do not depend on the width: no blanks, frames, rules or bars.
fn letters(row: &Row) -> impl Iterator<Item = char> {
    let is_text = |c: &char| !c.is_whitespace() && !matches!(c, '\u{2500}'..='\u{257f}' | '▎');
    row.line.spans.iter().flat_map(|span| span.content.chars()).filter(is_text)
}

/// The number of these characters. It is 0 for an empty row and for a row of a frame.
fn weight(row: &Row) -> usize {
    letters(row).count()
}

/// Both rows have the same text, and are not empty.
fn is_same(before: Option<&Row>, now: Option<&Row>) -> bool {
    before.zip(now).is_some_and(|(before, now)| weight(now) > 0 && letters(before).eq(letters(now)))
}

impl Viewport {
    /// The number of new cells below the viewport. None if the end is visible.
    pub(crate) fn unseen(&self, transcript: &Transcript) -> Option<usize> {
        let new = || transcript.cells().iter().skip(self.seen).take(MOST_NEW);
        // The parts of one answer count once.
        let begins = |cell: &&Cell| match cell {
            Cell::Part(_, part) | Cell::Drafted(part) => part.range.start == 0,
            Cell::Tail => transcript.tail().range.start == 0,
            Cell::Gone => false,
            cell => !cell.is_footer(),
        };
        self.anchor.filter(|_| !self.at_end).map(|_| new().filter(begins).count())
    }

    /// The first visible row. None while the viewport follows the end.
    pub(crate) fn anchor(&self) -> Option<CellRow> {
        self.anchor
    }

    pub(crate) fn anchor_mut(&mut self) -> Option<&mut CellRow> {
        self.held = None;
        self.anchor.as_mut()
    }

    /// The first visible row of the last frame.
    pub(crate) fn top(&self) -> Option<CellRow> {
        self.top
    }

    /// The visible rows, from the top.
    pub(crate) fn shown(&self) -> &[Shown] {
        &self.shown
    }

    /// The cell row that is drawn in this row of the viewport.
    pub(crate) fn row_at(&self, mut row: usize) -> Option<CellRow> {
        for it in &self.shown {
            let rows = it.to - it.from;
            if row < rows {
                return Some(CellRow { cell: it.cell, row: it.from + row });
            }
            row -= rows;
        }
        None
    }

    /// Scrolls so that this row is the first, if it exists.
    pub(crate) fn stand_at(&mut self, place: CellRow, transcript: &Transcript) {
        if place.cell < transcript.len() {
            self.leave_end(transcript);
            (self.anchor, self.held) = (Some(place), None);
        }
    }

    /// Goes back to an earlier position; None is the end.
    pub(crate) fn return_to(&mut self, place: Option<CellRow>, transcript: &Transcript) {
        match place {
            Some(place) => self.stand_at(place, transcript),
            None => self.follow(),
        }
    }

    /// Stays at the current rows, even if cells are added below.
    pub(crate) fn stay(&mut self, transcript: &Transcript) {
        if let Some(top) = self.top {
            self.stand_at(top, transcript);
        }
    }

    /// Follows the end.
    pub(crate) fn follow(&mut self) {
        self.anchor = None;
    }

    /// Scrolls to the start.
    pub(crate) fn show_start(&mut self, transcript: &Transcript) {
        self.stand_at(CellRow { cell: 0, row: 0 }, transcript);
    }

    fn leave_end(&mut self, transcript: &Transcript) {
        if self.anchor.is_none() {
            self.seen = transcript.len();
        }
    }

    /// Scrolls by rows; up is negative. Scrolling down to the end does not follow it; that takes an action of its own.
    pub(crate) fn scroll(
        &mut self,
        by: isize,
        transcript: &mut Transcript,
        context: &RenderContext<'_>,
        key: LayoutKey,
    ) {
        let place = self.anchor.or(self.top).unwrap_or_else(|| last_top(self.height, transcript, context, key));
        if by < 0 {
            self.leave_end(transcript);
        } else if self.anchor.is_none() {
            return;
        }
        let last = last_top(self.height, transcript, context, key);
        self.anchor = Some(moved(place, by, transcript, context, key).min(last));
    }

    /// Computes the visible rows. Only visible cells are laid out.
    pub(crate) fn window(
        &mut self,
        height: usize,
        transcript: &mut Transcript,
        context: &RenderContext<'_>,
        key: LayoutKey,
    ) -> &[Shown] {
        self.height = height;
        let last = last_top(height, transcript, context, key);
        if let Some(mut anchor) = self.anchor {
            anchor.cell = anchor.cell.min(transcript.len().saturating_sub(1));
            let rows = transcript.rows(anchor.cell, context, key);
            match &mut self.held {
                // The layout has changed around the anchor: find the same text again.
                Some(held) if held.anchor == anchor => {
                    if Rc::ptr_eq(&held.rows, &rows) {
                        // The same rows as in the last frame.
                    } else if is_same(held.rows.get(anchor.row), rows.get(anchor.row)) {
                        *held = Held::new(anchor, rows);
                    } else {
                        anchor.row = held.row_in(&rows);
                        (held.anchor, held.rows) = (anchor, rows);
                    }
                }
                _ => {
                    // A folded cell has fewer rows than it had when the anchor was set.
                    anchor.row = anchor.row.min(rows.len().saturating_sub(1));
                    self.held = Some(Held::new(anchor, rows));
                }
            }
            self.anchor = Some(anchor);
        }
        // Only the drawn position is limited, not the anchor: if cells below grow again, the reader's position returns.
        let top = self.anchor.map_or(last, |anchor| anchor.min(last));
        self.top = Some(top);
        self.at_end = top >= last;
        if self.at_end {
            self.seen = transcript.len();
        }
        self.shown.clear();
        let (mut place, mut left) = (top, height);
        while left > 0 && place.cell < transcript.len() {
            let rows = transcript.rows(place.cell, context, key);
            let to = (place.row + left).min(rows.len());
            if place.row < to {
                left -= to - place.row;
                self.shown.push(Shown { cell: place.cell, from: place.row, to, rows });
            }
            place = CellRow { cell: place.cell + 1, row: 0 };
        }
        &self.shown
    }

    /// The number of rows by which the content has moved up since the frame that showed `before`; down is negative.
    /// None if it has not moved, or if the frames have no first row in common.
    pub(crate) fn moved_since(&self, before: &[Shown]) -> Option<i32> {
        let offset = |of: &[Shown], place: CellRow| {
            let mut above = 0;
            for it in of {
                if it.cell == place.cell && (it.from..it.to).contains(&place.row) {
                    return i32::try_from(above + place.row - it.from).ok();
                }
                above += it.to - it.from;
            }
            None
        };
        let first = |of: &[Shown]| of.first().map(|it| CellRow { cell: it.cell, row: it.from });
        match (offset(before, first(&self.shown)?), offset(&self.shown, first(before)?)) {
            (Some(up), _) if up > 0 => Some(up),
            (_, Some(down)) if down > 0 => Some(-down),
            _ => None,
        }
    }

    /// The visible part in rows, partly estimated: from, to, of.
    pub(crate) fn extent(&self, transcript: &Transcript) -> (usize, usize, usize) {
        let all = transcript.rows_above(transcript.len());
        let from = self.top.map_or(0, |top| transcript.rows_above(top.cell) + top.row);
        let shown: usize = self.shown.iter().map(|it| it.to - it.from).sum();
        (from, from + shown, all.max(from + shown))
    }

    /// Scrolls to a fraction of the transcript, from 0 to 1.
    pub(crate) fn show_fraction(&mut self, fraction: f64, transcript: &Transcript) {
        let all = transcript.rows_above(transcript.len());
        if all <= self.height {
            return;
        }
        let row = (all.saturating_sub(self.height) as f64 * fraction.clamp(0.0, 1.0)).round() as usize;
        let (cell, row) = transcript.at_row(row);
        self.stand_at(CellRow { cell, row }, transcript);
    }

    /// Nothing is visible, as in inline mode. Scrolling back begins at the end, with this height.
    pub(crate) fn leave(&mut self, height: usize) {
        (self.height, self.top) = (height, None);
        self.shown.clear();
    }

    /// Forgets the position, because the cells are others now.
    pub(crate) fn reset(&mut self) {
        *self = Viewport { height: self.height, ..Viewport::default() };
    }
}

/// The row that is `by` rows away.
pub(crate) fn moved(
    mut place: CellRow,
    by: isize,
    transcript: &mut Transcript,
    context: &RenderContext<'_>,
    key: LayoutKey,
) -> CellRow {
    let mut left = by.unsigned_abs();
    if by < 0 {
        while left > place.row {
            if place.cell == 0 {
                return CellRow { cell: 0, row: 0 };
            }
            left -= place.row;
            place.cell -= 1;
            place.row = transcript.rows(place.cell, context, key).len();
        }
        place.row -= left;
        return place;
    }
    while left > 0 {
        let there = transcript.rows(place.cell, context, key).len();
        if place.row + left < there || place.cell + 1 >= transcript.len() {
            place.row = (place.row + left).min(there);
            return place;
        }
        left -= there.saturating_sub(place.row);
        place = CellRow { cell: place.cell + 1, row: 0 };
    }
    place
}

/// The first row of the last page. It lays out cells from the end backwards, so the cost does not grow with the
/// conversation.
fn last_top(height: usize, transcript: &mut Transcript, context: &RenderContext<'_>, key: LayoutKey) -> CellRow {
    let mut left = height;
    for cell in (0..transcript.len()).rev() {
        let there = transcript.rows(cell, context, key).len();
        if there >= left {
            return CellRow { cell, row: there - left };
        }
        left -= there;
    }
    CellRow { cell: 0, row: 0 }
}
