//! Which row of a list stands where on the screen, for clicks.

use ratatui::layout::{Position, Rect};

use super::Press;

/// The rows of the last frame, by their place.
#[derive(Debug, Default)]
pub(crate) struct RowMap(Vec<(Rect, usize)>);

impl RowMap {
    /// A new frame begins.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// This row stands here.
    pub(crate) fn put(&mut self, area: Rect, row: usize) {
        self.0.push((area, row));
    }

    pub(crate) fn at(&self, at: Position) -> Option<usize> {
        self.0.iter().find(|(area, _)| area.contains(at)).map(|(_, row)| *row)
    }

    /// Moves the cursor of a list to the row under a click.
    pub(crate) fn press(&self, at: Position, cursor: &mut usize) -> Press {
        match self.at(at) {
            Some(row) => {
                *cursor = row;
                Press::OnRow(row)
            }
            None => Press::Nowhere,
        }
    }
}
