//! Inline mode: which rows of the terminal are printed history, and where the open part below them begins.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::{Duration, Instant};

use super::canvas::Canvas;
use super::to_printed;

/// How long the terminal may take to report its cursor. After that, the cursor is assumed to be in the last row.
const PATIENCE: Duration = Duration::from_millis(150);
/// Queries the cursor position.
const ASK_CURSOR: &str = "\x1b[6n";

/// The alternate screen is on. This and the next two are statics, because the panic hook reads them.
pub(super) static WHOLE: AtomicBool = AtomicBool::new(true);
/// pixir also draws on the main screen.
pub(super) static IS_INLINE: AtomicBool = AtomicBool::new(false);
/// The row at which the open part begins.
pub(super) static BEHIND: AtomicU16 = AtomicU16::new(UNKNOWN);
/// pixir has drawn nothing on the main screen.
pub(super) const UNKNOWN: u16 = u16::MAX;

/// What a terminal does with a row that is longer than its new width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reflow {
    /// It cuts the row.
    Never,
    /// It wraps the row, and its cursor stays on the same character.
    KeepsCursor,
    /// It wraps every row but that of the cursor, and moves the cursor by the rows that it has added anywhere.
    ShiftsCursor,
}

/// Where the open part was.
#[derive(Debug, Clone, Copy)]
struct BeforeResize {
    above: u16,
    size: (u16, u16),
}

/// Where things are on the terminal's own screen.
#[derive(Debug)]
pub(super) struct Inline {
    /// Rows above the open part. None until the terminal has reported its cursor.
    above: Option<u16>,
    /// The height of the open part, and the number of its rows above the cursor, as the terminal shows them now.
    height: u16,
    before_cursor: u16,
    /// The place in the open part where the cursor was left, as row and column.
    cursor: (u16, u16),
    /// The columns that each row of the open part fills.
    lengths: Vec<u16>,
    /// The place of the open part before the resize that the terminal has not been asked about yet.
    before_resize: Option<BeforeResize>,
    /// Cursor queries without an answer yet. Only the answer to the last one counts.
    asked: u32,
    size: (u16, u16),
    since: Instant,
    /// The rows below `above` may have been overwritten.
    is_lost: bool,
}

impl Inline {
    pub(super) fn new() -> Inline {
        WHOLE.store(false, Ordering::SeqCst);
        BEHIND.store(UNKNOWN, Ordering::SeqCst);
        IS_INLINE.store(true, Ordering::SeqCst);
        Inline {
            above: None,
            height: 0,
            before_cursor: 0,
            cursor: (0, 0),
            lengths: Vec::new(),
            before_resize: None,
            asked: 0,
            size: (0, 0),
            since: Instant::now(),
            is_lost: true,
        }
    }

    /// Forgets all positions: another program has used the terminal, and the cursor can be anywhere.
    pub(super) fn forget(&mut self) {
        *self = Inline { size: self.size, ..Inline::new() };
    }

    /// Handles a cursor report; rows count from 1.
    pub(super) fn on_cursor_report(&mut self, row: u16, reflow: Reflow) {
        self.asked = self.asked.saturating_sub(1);
        if self.asked == 0 && self.above.is_none() {
            let row = row.saturating_sub(1);
            let added = self.before_resize.take().map_or(0, |before| self.added_rows(row, before, reflow));
            self.above = Some(row.saturating_sub(self.before_cursor).saturating_sub(added));
        }
    }

    /// The rows that the terminal has added to the open part by wrapping, as far as they are above the cursor in `row`.
    fn added_rows(&self, row: u16, before: BeforeResize, reflow: Reflow) -> u16 {
        let columns = self.size.0.max(1);
        let (cursor, column) = self.cursor;
        let added = |lengths: &[u16]| lengths.iter().map(|length| length.saturating_sub(1) / columns).sum::<u16>();
        let at = usize::from(cursor).min(self.lengths.len());
        let above = added(&self.lengths[..at]);
        // A terminal that becomes lower first drops rows below its cursor.
        let below_frame = before.size.1.saturating_sub(before.above.saturating_add(self.height));
        let dropped = before.size.1.saturating_sub(self.size.1).saturating_sub(below_frame);
        let end = self.lengths.len().saturating_sub(usize::from(dropped));
        let below = added(self.lengths.get(at + 1..end).unwrap_or_default());
        let was = before.above.saturating_add(cursor);
        let is_at_bottom = before.above.saturating_add(self.height) >= before.size.1;
        match reflow {
            Reflow::Never => 0,
            // A cursor that has not moved, or just into sight, means that nothing was wrapped.
            Reflow::KeepsCursor if row == was.min(self.size.1.saturating_sub(1)) => 0,
            // At the bottom only a terminal that keeps its cursor on its character moves it up.
            Reflow::ShiftsCursor if !is_at_bottom || row >= was => above + below,
            Reflow::KeepsCursor | Reflow::ShiftsCursor => above + column / columns,
        }
    }

    /// The query for the cursor. It has to be sent.
    pub(super) fn ask(&mut self) -> &'static str {
        self.asked += 1;
        ASK_CURSOR
    }

    /// The open part is painted now.
    pub(super) fn is_painted(&mut self, open: &Canvas) {
        let last = open.area().height.saturating_sub(1);
        self.cursor = open.caret.map_or((last, 0), |at| (at.y, at.x));
        self.lengths = (0..=last).map(|y| open.filled(y)).collect();
    }

    /// Assumes a position, because no answer can arrive any more.
    pub(super) fn assume(&mut self) {
        self.above.get_or_insert(self.size.1.saturating_sub(self.height.max(1)));
    }

    /// Notes the size; true if it has changed. The terminal has then wrapped its lines anew, and its cursor has to be
    /// queried again. The cursor is still in the same row of the open part, but some rows may have become several.
    pub(super) fn resized(&mut self, size: (u16, u16)) -> bool {
        let before = std::mem::replace(&mut self.size, size);
        if before == size || self.height == 0 {
            return false;
        }
        if let Some(above) = self.above {
            self.before_resize = Some(BeforeResize { above, size: before });
        }
        self.before_cursor = self.cursor.0;
        (self.above, self.since, self.is_lost) = (None, Instant::now(), true);
        true
    }

    /// The first row of the open part is known.
    pub(super) fn has_place(&mut self) -> bool {
        if self.above.is_none() && self.since.elapsed() >= PATIENCE {
            self.assume();
        }
        self.above.is_some()
    }

    /// Prints rows into the history, and makes room for `height` rows below. True when these have to be painted again.
    pub(super) fn make_room(&mut self, settled: &Canvas, height: u16, out: &mut String) -> bool {
        let (above, printed) = (self.above.unwrap_or(0), settled.area().height);
        if printed == 0 && height == self.height && !self.is_lost {
            return false;
        }
        let rows = self.size.1;
        let _ = write!(out, "\x1b[?25l\x1b[m{}", cleared_from(above));
        if printed > 0 {
            out.push_str(&to_printed(settled));
        }
        let below = u32::from(above) + u32::from(printed);
        // Line feeds make room: at the bottom of the screen they scroll the printed rows into the history.
        let needed = height.saturating_sub(1);
        (0..needed).for_each(|_| out.push_str("\r\n"));
        let above = u16::try_from(below).unwrap_or(u16::MAX).min(rows.saturating_sub(height));
        (self.above, self.height, self.is_lost) = (Some(above), height, false);
        self.before_cursor = 0;
        BEHIND.store(above, Ordering::SeqCst);
        true
    }

    pub(super) fn above(&self) -> u16 {
        self.above.unwrap_or(0)
    }
}

/// Clears everything from this row on, and leaves the cursor at the start of the row. Some terminals, such as tmux,
/// move the screen into their history when it is cleared from its first cell, so the first row is cleared by itself.
pub(super) fn cleared_from(row: u16) -> String {
    let begin = row + 1;
    format!("\x1b[{begin};1H\x1b[K\x1b[{begin};2H\x1b[J\x1b[{begin};1H")
}
