//! Drawing the draft.

use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use unicode_width::UnicodeWidthChar as _;

use super::Composer;
use crate::render::text::width;
use crate::terminal::canvas::Canvas;
use crate::theme::Theme;

/// The most rows of the draft.
pub(super) const MAX_ROWS: u16 = 12;

impl Composer {
    /// The rows that the draft needs at this width.
    pub(crate) fn rows(&mut self, columns: u16) -> u16 {
        self.wrapped().measure(columns).preferred_rows.clamp(1, MAX_ROWS)
    }

    /// Draws the draft and returns where the caret is.
    pub(crate) fn draw(
        &mut self,
        canvas: &mut Canvas,
        area: Rect,
        theme: &Theme,
        placeholder: &str,
    ) -> Option<Position> {
        self.wrapped().set_style(theme.base());
        self.area.set_selection_style(theme.selected());
        self.area.set_placeholder_text(placeholder);
        self.area.set_placeholder_style(theme.dim());
        self.area.clear_custom_highlight();
        let marker = Style::new().fg(theme.tool).add_modifier(Modifier::BOLD);
        for (row, columns) in self.atoms() {
            // The text area counts highlights in bytes.
            let line = &self.area.lines()[row];
            let byte = |column: usize| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
            let (from, to) = (byte(columns.start), byte(columns.end));
            self.area.custom_highlight(((row, from), (row, to)), marker, 1);
        }
        canvas.render_widget(&self.area, area);
        let mut caret = self.area.rendered_cursor_position()?;
        // The text area counts each code point of a grapheme.
        let counted = usize::from(caret.x.saturating_sub(area.x));
        let shown = u16::try_from(width(self.before_caret(counted))).unwrap_or(u16::MAX);
        caret.x = area.x.saturating_add(shown).min(area.right().saturating_sub(1));
        Some(caret)
    }

    /// The end of the text before the caret that has this many columns, counted by code point.
    fn before_caret(&self, columns: usize) -> &str {
        let (row, column) = self.area.cursor();
        let line = &self.area.lines()[row];
        let end = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
        let mut left = columns;
        let start = line[..end].char_indices().rev().take_while(|(_, c)| {
            let fits = left > 0;
            left = left.saturating_sub(c.width().unwrap_or(0));
            fits
        });
        let start = start.last().map_or(end, |(at, _)| at);
        &line[start..end]
    }
}
