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
    /// The question that a screen reader has read: its call, and its place in the form.
    pub(crate) question: Option<(String, usize)>,
    /// The part of the running Turn that a screen reader has announced.
    pub(crate) announced: Option<Announced>,
}

impl Printing {
    /// Printed rows stay in the terminal and belong to the old Session, so the new one starts its own count. Only a
    /// printed welcome also counts for the new one.
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
