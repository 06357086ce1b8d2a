//! A list with a cursor: its keys, its clicks, and its rows on the screen.

use std::cell::RefCell;

use ratatui::layout::{Position, Rect};
use ratatui::text::Line;

use super::Press;
use crate::input::action::LayerAction;
use crate::terminal::canvas::{Canvas, RegionState};
use crate::theme::Theme;

/// Rows that a page is.
const PAGE: isize = 10;

/// The cursor of a list, and where its rows stand.
#[derive(Debug, Default)]
pub(crate) struct ListView {
    pub(crate) chosen: usize,
    /// The rows of the last frame, for clicks. A view draws its rows while it is borrowed, so they are in a cell.
    places: RefCell<Vec<(Rect, usize)>>,
}

impl ListView {
    pub(crate) fn at(chosen: usize) -> ListView {
        ListView { chosen, ..ListView::default() }
    }

    /// Moves in a list of `rows` rows. False if the action has no meaning here.
    pub(crate) fn act(&mut self, action: LayerAction, rows: usize) -> bool {
        match action {
            LayerAction::OverlayUp => self.scroll(-1, rows),
            LayerAction::OverlayDown => self.scroll(1, rows),
            LayerAction::OverlayPageUp => self.scroll(-PAGE, rows),
            LayerAction::OverlayPageDown => self.scroll(PAGE, rows),
            LayerAction::OverlayStart => self.chosen = 0,
            LayerAction::OverlayEnd => self.chosen = rows.saturating_sub(1),
            _ => return false,
        }
        true
    }

    pub(crate) fn scroll(&mut self, by: isize, rows: usize) {
        self.chosen = self.chosen.saturating_add_signed(by).min(rows.saturating_sub(1));
    }

    /// The row that stands there.
    pub(crate) fn row_at(&self, at: Position) -> Option<usize> {
        self.places.borrow().iter().find(|(area, _)| area.contains(at)).map(|(_, row)| *row)
    }

    /// Moves the cursor to the row under a click.
    pub(crate) fn press(&mut self, at: Position) -> Press {
        match self.row_at(at) {
            Some(row) => {
                self.chosen = row;
                Press::OnRow(row)
            }
            None => Press::Nowhere,
        }
    }

    /// The first row to draw, so that the chosen one is visible.
    pub(crate) fn top(&self, height: u16) -> usize {
        (self.chosen + 1).saturating_sub(usize::from(height))
    }

    /// A new frame begins, which has no rows yet.
    pub(crate) fn begin(&self) {
        self.places.borrow_mut().clear();
    }

    /// Draws as many of the `rows` rows as fit, so that the chosen one is among them. `name` is how a screen reader and
    /// scripts name a row.
    pub(crate) fn draw(
        &self,
        canvas: &mut Canvas,
        area: Rect,
        rows: usize,
        theme: &Theme,
        name: &dyn Fn(usize) -> String,
        line: &dyn Fn(usize) -> Line<'static>,
    ) {
        self.begin();
        // The list may have got shorter since the cursor moved.
        let shown = ListView::at(self.chosen.min(rows.saturating_sub(1)));
        for (y, row) in (area.y..area.bottom()).zip(shown.top(area.height)..rows) {
            let here = Rect { y, height: 1, ..area };
            shown.row(canvas, here, row, theme, || name(row), line(row));
            if row == shown.chosen {
                canvas.follow(here);
            }
        }
        self.places.swap(&shown.places);
    }

    /// Draws one row, with the bar if it is the chosen one.
    pub(crate) fn row(
        &self,
        canvas: &mut Canvas,
        here: Rect,
        row: usize,
        theme: &Theme,
        name: impl FnOnce() -> String,
        line: Line<'static>,
    ) {
        canvas.tint(here, if row == self.chosen { theme.selected() } else { theme.base() });
        self.option(canvas, here, row, name);
        canvas.line(line, here);
    }

    /// This row stands here, and the view draws it.
    pub(crate) fn option(&self, canvas: &mut Canvas, here: Rect, row: usize, name: impl FnOnce() -> String) {
        canvas.region("option", here, name);
        canvas.region_state(RegionState { focused: false, selected: row == self.chosen });
        self.put(here, row);
    }

    /// A click here means this row.
    pub(crate) fn put(&self, here: Rect, row: usize) {
        self.places.borrow_mut().push((here, row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Background, Depth};

    /// Broken build: the chosen row is off the screen, or a click means the row that stood there a frame before.
    #[test]
    fn the_chosen_row_is_on_the_screen_and_a_click_means_the_row_that_is_drawn_there() {
        let theme = Theme::load("auto", None, Depth::Named, Background::Dark).expect("a built-in theme");
        let area = Rect { x: 0, y: 0, width: 20, height: 3 };
        let mut canvas = Canvas::with_regions();
        let mut draw = |list: &ListView, rows: usize| {
            canvas.begin((area.width, area.height), theme.base());
            list.draw(&mut canvas, area, rows, &theme, &|row| row.to_string(), &|row| Line::raw(row.to_string()));
            let shown = canvas.regions.iter().flatten();
            let names = shown.map(|it| if it.state.selected { format!("[{}]", it.label) } else { it.label.clone() });
            names.collect::<Vec<_>>().join(" ")
        };
        let mut list = ListView::default();
        assert_eq!(draw(&list, 10), "[0] 1 2");
        assert!(list.act(LayerAction::OverlayEnd, 10));
        assert_eq!(draw(&list, 10), "7 8 [9]");
        let at = |y: u16| Position { x: 3, y };
        assert_eq!(draw(&list, 2), "0 [1]", "the list got shorter");
        assert!(matches!(list.press(at(2)), Press::Nowhere), "no row stands there any more");
        assert!(matches!(list.press(at(0)), Press::OnRow(0)));
        assert_eq!(list.chosen, 0);
        assert!(list.act(LayerAction::OverlayPageDown, 10) && !list.act(LayerAction::Choose, 10));
        assert_eq!(draw(&list, 10), "7 8 [9]");
    }
}
