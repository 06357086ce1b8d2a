//! Inline mode: which rows of the terminal are printed history, and where the open part below them begins.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::{Duration, Instant};

use super::canvas::Canvas;
use super::paint::to_printed;

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

/// Where things are on the terminal's own screen.
#[derive(Debug)]
pub(super) struct Inline {
    /// Rows above the open part. None until the terminal has reported its cursor.
    above: Option<u16>,
    /// The height of the open part, and the number of its rows above the cursor, as the terminal shows them now.
    height: u16,
    before_cursor: u16,
    /// The row of the open part in which the cursor was left.
    cursor: u16,
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
            cursor: 0,
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
    pub(super) fn on_cursor_report(&mut self, row: u16) {
        self.asked = self.asked.saturating_sub(1);
        if self.asked == 0 {
            self.above.get_or_insert(row.saturating_sub(1).saturating_sub(self.before_cursor));
        }
    }

    /// The query for the cursor. It has to be sent.
    pub(super) fn ask(&mut self) -> &'static str {
        self.asked += 1;
        ASK_CURSOR
    }

    /// The open part was painted, with the cursor in this row of it.
    pub(super) fn was_painted(&mut self, cursor: u16) {
        self.cursor = cursor;
    }

    /// Assumes a position, because no answer can arrive any more.
    pub(super) fn assume(&mut self) {
        self.above.get_or_insert(self.size.1.saturating_sub(self.height.max(1)));
    }

    /// Notes the size; true if it has changed. The terminal has then wrapped its lines anew, and its cursor has to be
    /// queried again. The cursor is still in the same row of the open part.
    pub(super) fn resized(&mut self, size: (u16, u16)) -> bool {
        let before = std::mem::replace(&mut self.size, size);
        if before == size || self.height == 0 {
            return false;
        }
        // If a row of the open part now takes several, a part of the old frame remains in the history. Overwriting it
        // could destroy printed rows instead.
        self.before_cursor = self.cursor;
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
    pub(super) fn make_room(&mut self, settled: &mut Canvas, height: u16, out: &mut String) -> bool {
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
