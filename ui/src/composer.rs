//! The draft: a text area that grows, a history of what was sent, completion of slash commands.

use crate::canvas::Canvas;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use tui_textarea::{CursorMove, CursorRenderMode, TextArea, WrapMode};

use crate::action::{Slash, Verb};
use crate::slash;
use crate::theme::Theme;

/// Most rows that the draft takes.
const MAX_ROWS: u16 = 12;

/// The text that is being written.
pub(crate) struct Composer {
    area: TextArea<'static>,
    /// What was sent before, oldest first.
    sent: Vec<String>,
    /// Where in `sent` the person is looking, and the draft that was left for it.
    browsing: Option<(usize, String)>,
    /// The completion that is chosen.
    pub(crate) chosen: usize,
    /// The list of completions was closed for this text.
    dismissed: Option<String>,
}

impl std::fmt::Debug for Composer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Composer").field("text", &self.text()).finish_non_exhaustive()
    }
}

impl Default for Composer {
    fn default() -> Composer {
        let mut area = TextArea::default();
        area.set_cursor_line_style(Style::default());
        area.set_cursor_render_mode(CursorRenderMode::Hidden);
        area.set_wrap_mode(WrapMode::WordOrGlyph);
        area.set_min_rows(1);
        area.set_max_rows(MAX_ROWS);
        Composer { area, sent: Vec::new(), browsing: None, chosen: 0, dismissed: None }
    }
}

impl Composer {
    pub(crate) fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Replaces the draft; the caret goes to its end.
    pub(crate) fn set(&mut self, text: &str) {
        let lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        let end = (lines.len() - 1, lines.last().map_or(0, |l| l.chars().count()));
        self.area.set_lines(lines, end);
        self.chosen = 0;
    }

    /// Takes the draft to send it.
    pub(crate) fn take(&mut self) -> String {
        let text = self.text();
        self.remember(&text);
        self.set("");
        text
    }

    /// Puts a text where Up finds it again.
    pub(crate) fn remember(&mut self, text: &str) {
        if !text.trim().is_empty() && self.sent.last().map(String::as_str) != Some(text) {
            self.sent.push(text.to_owned());
        }
        self.browsing = None;
    }

    /// Text that was typed or pasted.
    pub(crate) fn insert(&mut self, text: &str) {
        self.area.insert_str(text.replace("\r\n", "\n").replace('\r', "\n"));
        self.edited();
    }

    /// A key that edits or moves.
    pub(crate) fn key(&mut self, key: ratatui::crossterm::event::KeyEvent) {
        if self.area.input(key) {
            self.edited();
        }
    }

    fn edited(&mut self) {
        self.chosen = 0;
        // Whoever edits what was recalled still finds the draft that was left for it.
        if let Some((_, kept)) = self.browsing.take() {
            self.remember(&kept);
        }
        if self.dismissed.as_deref() != Some(self.text().as_str()) {
            self.dismissed = None;
        }
    }

    pub(crate) fn newline(&mut self) {
        self.area.insert_newline();
        self.edited();
    }

    /// The draft ends with a backslash: Enter makes a line of it.
    pub(crate) fn continue_line(&mut self) -> bool {
        let (row, column) = self.area.cursor();
        let line = &self.area.lines()[row];
        if column == line.chars().count() && line.ends_with('\\') {
            self.area.delete_char();
            self.area.insert_newline();
            return true;
        }
        false
    }

    pub(crate) fn on_first_line(&self) -> bool {
        self.area.cursor().0 == 0
    }

    pub(crate) fn on_last_line(&self) -> bool {
        self.area.cursor().0 + 1 == self.area.lines().len()
    }

    /// What was sent before this.
    pub(crate) fn older(&mut self) {
        let (at, kept) = match self.browsing.take() {
            Some((at, kept)) => (at, kept),
            None => (self.sent.len(), self.text()),
        };
        let next = at.saturating_sub(1);
        if let Some(text) = self.sent.get(next).cloned() {
            self.set(&text);
            self.area.move_cursor(CursorMove::Top);
            self.area.move_cursor(CursorMove::End);
        }
        self.browsing = Some((if self.sent.is_empty() { at } else { next }, kept));
    }

    /// What was sent after this; at last the draft that was left.
    pub(crate) fn newer(&mut self) {
        let Some((at, kept)) = self.browsing.take() else { return };
        match self.sent.get(at + 1).cloned() {
            Some(text) => {
                self.set(&text);
                self.browsing = Some((at + 1, kept));
            }
            None => self.set(&kept),
        }
    }

    /// Completions of a slash command that is being typed, best first.
    pub(crate) fn completions(&self) -> Vec<(Slash, &'static Verb)> {
        let text = self.text();
        if self.dismissed.as_deref() == Some(text.as_str()) || self.browsing.is_some() {
            return Vec::new();
        }
        match text.strip_prefix('/') {
            Some(word) if !word.contains([' ', '\n']) => slash::complete(word),
            _ => Vec::new(),
        }
    }

    pub(crate) fn dismiss(&mut self) {
        self.dismissed = Some(self.text());
    }

    /// Rows that the draft wants at this width.
    pub(crate) fn rows(&mut self, columns: u16) -> u16 {
        self.area.measure(columns).preferred_rows.clamp(1, MAX_ROWS)
    }

    /// Draws the draft and returns where the caret is.
    pub(crate) fn draw(
        &mut self,
        canvas: &mut Canvas,
        area: Rect,
        theme: &Theme,
        placeholder: &str,
    ) -> Option<Position> {
        self.area.set_style(theme.base());
        self.area.set_placeholder_text(placeholder);
        self.area.set_placeholder_style(theme.dim());
        canvas.render_widget(&self.area, area);
        self.area.rendered_cursor_position()
    }
}
