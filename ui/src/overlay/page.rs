//! Text that scrolls in an overlay, laid out once for a width and a look.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::Paint;
use crate::input::action::LayerAction;
use crate::render::context::LayoutKey;
use crate::terminal::canvas::Canvas;

/// What stays laid out until its width or look changes.
#[derive(Debug, Default)]
pub(crate) struct Laid<T>(Option<(LayoutKey, T)>);

impl<T> Laid<T> {
    pub(crate) fn out(&mut self, key: LayoutKey, make: impl FnOnce(usize) -> T) -> &T {
        if self.0.as_ref().is_some_and(|(cached, _)| *cached != key) {
            self.0 = None;
        }
        &self.0.get_or_insert_with(|| (key, make(key.columns))).1
    }
}

/// Text that scrolls.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// The first line on the screen.
    pub(super) top: usize,
    /// The last value that `top` can have, and the lines of a page, since the last frame.
    pub(super) max_top: usize,
    height: usize,
    text: Laid<Vec<Line<'static>>>,
}

impl Page {
    pub(crate) fn scroll(&mut self, by: isize) {
        self.top = self.top.saturating_add_signed(by).min(self.max_top);
    }

    /// The text has changed; the place in it stays.
    pub(crate) fn forget(&mut self) {
        self.text = Laid::default();
    }

    /// The last line is on the screen.
    pub(crate) fn is_at_end(&self) -> bool {
        self.top >= self.max_top
    }

    /// Carries out the actions that scroll; others do nothing.
    pub(crate) fn act(&mut self, action: LayerAction) {
        match action {
            LayerAction::OverlayUp => self.scroll(-1),
            LayerAction::OverlayDown => self.scroll(1),
            LayerAction::OverlayPageUp => self.scroll(-self.page()),
            LayerAction::OverlayPageDown => self.scroll(self.page()),
            LayerAction::OverlayStart => self.top = 0,
            LayerAction::OverlayEnd => self.top = self.max_top,
            _ => {}
        }
    }

    /// One line of the previous page stays visible, so that the reader keeps the thread.
    pub(crate) fn page(&self) -> isize {
        isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1)
    }

    /// Lays the text out for this area. Afterwards it is known whether all of it fits.
    pub(crate) fn lay_out(&mut self, area: Rect, paint: Paint<'_>, make: impl FnOnce(usize) -> Vec<Line<'static>>) {
        let key = LayoutKey { columns: usize::from(area.width), generation: paint.generation };
        let lines = self.text.out(key, make);
        self.height = usize::from(area.height);
        self.max_top = lines.len().saturating_sub(usize::from(area.height));
        self.top = self.top.min(self.max_top);
    }

    /// Not all of it fits.
    pub(crate) fn scrolls(&self) -> bool {
        self.max_top > 0
    }

    /// Draws the visible lines. `make` lays the text out for a number of columns; it runs again only when the width,
    /// the look or the page changes.
    pub(crate) fn draw(
        &mut self,
        canvas: &mut Canvas,
        area: Rect,
        paint: Paint<'_>,
        make: impl FnOnce(usize) -> Vec<Line<'static>>,
    ) {
        self.lay_out(area, paint, make);
        let key = LayoutKey { columns: usize::from(area.width), generation: paint.generation };
        let lines = self.text.out(key, |_| Vec::new());
        for (row, line) in (area.y..area.bottom()).zip(lines.iter().skip(self.top)) {
            canvas.line(line, Rect { y: row, height: 1, ..area });
        }
    }
}
