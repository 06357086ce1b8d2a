//! Selecting text with the mouse.

use std::ops::Range;

use crate::render::text::{End, Row, width};
use crate::transcript::viewport::CellRow;

/// The unit by which a selection grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Character,
    Word,
    Row,
}

/// A row of a cell, and a column in it.
type Spot = (CellRow, usize);

/// The selected text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection {
    from: Spot,
    to: Spot,
    unit: Unit,
}

impl Selection {
    /// One click selects by characters, two by words, three by rows.
    pub(crate) fn new(place: CellRow, column: usize, clicks: u8) -> Selection {
        let unit = match clicks {
            0 | 1 => Unit::Character,
            2 => Unit::Word,
            _ => Unit::Row,
        };
        Selection { from: (place, column), to: (place, column), unit }
    }

    pub(crate) fn drag_to(&mut self, place: CellRow, column: usize) {
        self.to = (place, column);
    }

    /// The mouse has not moved: this is only a click.
    pub(crate) fn is_click(&self) -> bool {
        self.unit == Unit::Character && self.from == self.to
    }

    pub(crate) fn ends(&self) -> (Spot, Spot) {
        if self.from <= self.to { (self.from, self.to) } else { (self.to, self.from) }
    }

    /// The rows where the selection begins and ends, to move them when a cell is split.
    pub(crate) fn positions_mut(&mut self) -> [&mut CellRow; 2] {
        [&mut self.from.0, &mut self.to.0]
    }

    /// The selected columns of a row.
    pub(crate) fn columns(&self, place: CellRow, row: &Row) -> Option<Range<usize>> {
        let ((first, left), (last, right)) = self.ends();
        if place < first || place > last || row.end == End::Skip {
            return None;
        }
        let text = row.line.to_string();
        let end = row.text_end();
        let mut columns = match (place == first, place == last) {
            (true, true) => left..right + 1,
            (true, false) => left..end,
            (false, true) => 0..right + 1,
            (false, false) => 0..end,
        };
        match self.unit {
            Unit::Character => {}
            Unit::Row => columns = 0..end,
            Unit::Word => {
                if place == first {
                    columns.start = word_at(&text, columns.start).start;
                }
                if place == last {
                    columns.end = word_at(&text, columns.end.saturating_sub(1)).end;
                }
            }
        }
        let begin = row.gutter - row.lead;
        let columns = columns.start.max(begin)..columns.end.min(end.max(begin));
        (columns.start < columns.end).then_some(columns)
    }
}

/// The columns of the word at a column.
fn word_at(text: &str, column: usize) -> Range<usize> {
    use unicode_segmentation::UnicodeSegmentation as _;
    let is_word =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '~' | ':' | '@' | '%' | '+' | '#');
    let (mut at, mut begin, mut end) = (0, None, column + 1);
    for grapheme in text.graphemes(true) {
        let wide = width(grapheme);
        let in_word = grapheme.chars().next().is_some_and(is_word);
        if at <= column {
            begin = if in_word { Some(begin.unwrap_or(at)) } else { None };
            if at + wide > column && !in_word {
                return column..column + 1;
            }
        }
        if at > column && !in_word {
            break;
        }
        at += wide;
        end = at;
    }
    begin.unwrap_or(column)..end.max(column + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_a_double_click_means() {
        let word = |text: &str, column| {
            let columns = word_at(text, column);
            text.get(columns).unwrap_or_default().to_owned()
        };
        assert_eq!(word("see src/main.rs:12 now", 8), "src/main.rs:12");
        assert_eq!(word("see src/main.rs:12 now", 0), "see");
        assert_eq!(word("a (b) c", 2), "(");
        assert_eq!(word_at("漢字 x", 1), 0..4);
    }
}
