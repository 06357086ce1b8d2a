//! Inline mode: finished cells are printed into the terminal's own history, once.

use std::time::Instant;

use crate::render::text::Row;

#[derive(Debug, Default)]
pub(crate) struct Printing {
    /// The conversation is printed into the terminal's history.
    pub(crate) inline: bool,
    /// Cells that are printed. None until the first frame, and again when another conversation begins.
    pub(crate) printed: Option<usize>,
    /// Rows of a Session that was left before they were printed.
    pub(crate) left_over: Vec<Row>,
    /// What a screen reader has announced of the running Turn.
    pub(crate) announced: Option<Announced>,
}

impl Printing {
    /// What is printed stays in the terminal, and cannot be counted for another Session. Only a welcome serves both.
    pub(crate) fn forget_session(&mut self) {
        self.printed = self.printed.filter(|printed| *printed == 0);
    }
}

/// A screen reader has announced that a Turn runs: in how many rows, and whether these have moved since.
#[derive(Debug)]
pub(crate) struct Announced {
    pub(crate) turn: Instant,
    pub(crate) rows: u16,
    pub(crate) has_moved: bool,
}
