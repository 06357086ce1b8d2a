//! The screen that stays in the terminal's own history: what is settled is printed once, above what is still open.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::{Duration, Instant};

use super::canvas::Canvas;
use super::paint::to_printed;

/// A terminal that does not say by then where its cursor stands is taken to be at its end.
const PATIENCE: Duration = Duration::from_millis(150);
/// Where is the cursor?
const ASK_CURSOR: &str = "\x1b[6n";

/// Whether the alternate screen is on, whether there is another below it that is ours, and behind which row what is open begins; whoever gives the terminal back asks.
pub(super) static WHOLE: AtomicBool = AtomicBool::new(true);
pub(super) static IS_INLINE: AtomicBool = AtomicBool::new(false);
pub(super) static BEHIND: AtomicU16 = AtomicU16::new(UNKNOWN);
/// Nothing was drawn there that is ours.
pub(super) const UNKNOWN: u16 = u16::MAX;

/// What stands where on the terminal's own screen.
#[derive(Debug)]
pub(super) struct Inline {
    /// Rows above what is open; not known before the terminal has said it.
    above: Option<u16>,
    /// Rows of what is open, and of it those above the cursor, as the terminal shows them now.
    height: u16,
    before_cursor: u16,
    /// The row of what is open in which the cursor was left.
    cursor: u16,
    /// Questions for the cursor that were not answered yet: only the answer to the last one is of use.
    asked: u32,
    size: (u16, u16),
    since: Instant,
    /// What is behind `above` is not ours.
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

    /// The terminal was somebody else's meanwhile, who left the cursor anywhere.
    pub(super) fn forget(&mut self) {
        *self = Inline { size: self.size, ..Inline::new() };
    }

    /// The terminal says where its cursor stands, rows from 1.
    pub(super) fn on_cursor_report(&mut self, row: u16) {
        self.asked = self.asked.saturating_sub(1);
        if self.asked == 0 {
            self.above.get_or_insert(row.saturating_sub(1).saturating_sub(self.before_cursor));
        }
    }

    /// The terminal is asked where its cursor stands.
    pub(super) fn ask(&mut self) -> &'static str {
        self.asked += 1;
        ASK_CURSOR
    }

    /// What is open was painted, and the cursor left in this row of it.
    pub(super) fn was_painted(&mut self, cursor: u16) {
        self.cursor = cursor;
    }

    /// Nobody can wait for an answer any more.
    pub(super) fn assume(&mut self) {
        self.above.get_or_insert(self.size.1.saturating_sub(self.height.max(1)));
    }

    /// Whether the size is another than it was. Terminals wrap anew what they show then, so the cursor has to be asked for;
    /// it still stands where it stood in what is open.
    pub(super) fn resized(&mut self, size: (u16, u16)) -> bool {
        let before = std::mem::replace(&mut self.size, size);
        if before == size || self.height == 0 {
            return false;
        }
        // Where rows became several, a piece of a frame may stay; where they did not, nothing that was said is lost.
        self.before_cursor = self.cursor;
        (self.above, self.since, self.is_lost) = (None, Instant::now(), true);
        true
    }

    /// It is known where what is open begins.
    pub(super) fn has_place(&mut self) -> bool {
        if self.above.is_none() && self.since.elapsed() >= PATIENCE {
            self.assume();
        }
        self.above.is_some()
    }

    /// Prints what is settled, and makes room for so many rows below it. True when these have to be painted anew.
    pub(super) fn make_room(&mut self, settled: &mut Canvas, height: u16, out: &mut String) -> bool {
        let (above, printed) = (self.above.unwrap_or(0), settled.area().height);
        if printed == 0 && height == self.height && !self.is_lost {
            return false;
        }
        let rows = self.size.1;
        let _ = write!(out, "\x1b[?25l\x1b[m{}", cleared_from(above));
        // What does not fit moves up into the terminal's history, line by line.
        if printed > 0 {
            out.push_str(&to_printed(settled));
        }
        let below = u32::from(above) + u32::from(printed);
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

/// Everything from this row on is blank, and the cursor at its begin. Some terminals, such as tmux, put the whole screen into
/// their history when it is cleared from its first cell on, so the first row is cleared by itself.
pub(super) fn cleared_from(row: u16) -> String {
    let begin = row + 1;
    format!("\x1b[{begin};1H\x1b[K\x1b[{begin};2H\x1b[J\x1b[{begin};1H")
}
