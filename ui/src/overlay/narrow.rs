//! A list that typing narrows, and the cursor in it.

use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::list::ListView;
use crate::render::text::width;
use crate::terminal::canvas::Canvas;
use crate::theme::Theme;

/// The letters that the user has typed, and the list of the rows that match them.
#[derive(Debug, Default)]
pub(crate) struct Narrow {
    pub(crate) letters: String,
    pub(crate) list: ListView,
}

impl Narrow {
    /// Types a letter. False if the key has no meaning here.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => {
                self.letters.clear();
                self.list.chosen = 0;
            }
            KeyCode::Char('w') if key.modifiers == KeyModifiers::CONTROL => {
                cut_word(&mut self.letters);
                self.list.chosen = 0;
            }
            KeyCode::Backspace => {
                self.letters.pop();
                self.list.chosen = 0;
            }
            KeyCode::Char(c) if key.modifiers.is_typing() => {
                self.letters.push(c);
                self.list.chosen = 0;
            }
            _ => return false,
        }
        true
    }

    /// Draws the letters and the caret at the top of a panel. Returns the area below, for the rows.
    pub(crate) fn draw(&self, canvas: &mut Canvas, inner: Rect, theme: &Theme) -> Rect {
        let typed = Line::from(vec![
            Span::styled("› ", theme.fg(theme.accent)),
            Span::styled(self.letters.clone(), theme.fg(theme.text)),
        ]);
        canvas.line(typed, Rect { height: 1.min(inner.height), ..inner });
        let column = u16::try_from(width(&self.letters)).unwrap_or(u16::MAX).min(inner.width.saturating_sub(3));
        canvas.set_cursor_position((inner.x + 2 + column, inner.y));
        Rect { y: inner.y + 2.min(inner.height), height: inner.height.saturating_sub(2), ..inner }
    }

    /// Draws the place in the list at the right of the letters, where not all of its rows are visible: `3 of 49`.
    pub(crate) fn draw_place(&self, canvas: &mut Canvas, inner: Rect, rows: usize, visible: u16, theme: &Theme) {
        if rows <= usize::from(visible) {
            return;
        }
        let place = format!("{} of {rows}", self.list.chosen.min(rows - 1) + 1);
        let wide = u16::try_from(width(&place)).unwrap_or(u16::MAX);
        let typed = u16::try_from(width(&self.letters)).unwrap_or(u16::MAX).saturating_add(4);
        if inner.height > 0 && inner.width > wide.saturating_add(typed) {
            let at = Rect { x: inner.right() - wide, width: wide, height: 1, ..inner };
            canvas.line(Line::styled(place, theme.dim()), at);
        }
    }
}

/// Removes the last word.
pub(crate) fn cut_word(text: &mut String) {
    let rest = text.trim_end();
    let end = rest.rfind(char::is_whitespace).map_or(0, |at| at + rest[at..].chars().next().map_or(0, char::len_utf8));
    text.truncate(end);
}
