//! Keys and commands, from the action table; narrowed by typing.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Overlay, Page, Paint, Reply, centred, panel};
use crate::action::{Scope, VERBS};
use crate::canvas::Canvas;
use crate::keymap::Keymap;
use crate::render::text::wrap_lines;
use crate::slash::{commands, fuzzy};
use crate::theme::Theme;

/// The layer.
#[derive(Debug, Default)]
pub(crate) struct HelpView {
    page: Page,
    letters: String,
    /// With every verb's name, for `[keys]`.
    names: bool,
    keys: Vec<(String, Vec<String>)>,
}

impl HelpView {
    /// Every verb, with the name by which the configuration binds it.
    pub(crate) fn keys() -> HelpView {
        HelpView { names: true, ..HelpView::default() }
    }

    /// With the keys that hold now.
    pub(crate) fn with(mut self, keymap: &Keymap) -> HelpView {
        self.keys = VERBS.iter().map(|verb| (verb.id.to_owned(), keymap.keys_of(verb.id))).collect();
        self
    }

    fn keys_of(&self, id: &str) -> String {
        self.keys.iter().find(|(verb, _)| verb == id).map_or(String::new(), |(_, keys)| keys.join(", "))
    }

    fn lines(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let row = |left: String, about: String| {
            let first = [Span::styled(format!("  {left:<17} "), theme.fg(theme.accent))];
            let rest = [Span::raw(" ".repeat(20))];
            wrap_lines(&[Span::styled(about, theme.fg(theme.text))], columns, &first, &rest)
        };
        for (scope, title) in [
            (Scope::Anywhere, "Keys"),
            (Scope::Composer, "In the line"),
            (Scope::Approval, "While a question is open"),
            (Scope::Question, "With the question in focus (Tab)"),
            (Scope::Transcript, "With the transcript in focus (Tab)"),
            (Scope::Side, "With the side panel in focus (Tab)"),
            (Scope::Replay, "In a replay"),
        ] {
            let here = VERBS.iter().filter(|verb| verb.scope == scope);
            let here: Vec<_> = here
                .map(|verb| (verb, self.keys_of(verb.id)))
                .filter(|(_, keys)| self.names || !keys.is_empty())
                .collect();
            let here = fuzzy(&self.letters, here, |(verb, keys)| format!("{} {keys} {}", verb.id, verb.about));
            if here.is_empty() {
                continue;
            }
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            lines.push(Line::styled(title, theme.bold()));
            for (verb, keys) in here {
                let name = if self.names { format!("{} · ", verb.id) } else { String::new() };
                lines.extend(row(keys, format!("{name}{}", verb.about)));
            }
        }
        let found = fuzzy(&self.letters, commands(), |(slash, verb)| format!("/{} {}", slash.name, verb.about));
        if !found.is_empty() && !self.names {
            lines.push(Line::default());
            lines.push(Line::styled("Commands", theme.bold()));
            for (slash, verb) in found {
                let args = if slash.args.is_empty() { String::new() } else { format!(" {}", slash.args) };
                lines.extend(row(format!("/{}{args}", slash.name), verb.about.to_owned()));
                lines.push(Line::from(vec![
                    Span::raw(" ".repeat(20)),
                    Span::styled(format!("does: {}", slash.does), theme.dim()),
                ]));
            }
        }
        if lines.is_empty() {
            lines.push(Line::styled("nothing fits", theme.dim()));
        }
        lines
    }
}

impl Overlay for HelpView {
    fn title(&self) -> &'static str {
        "Help"
    }

    fn key(&mut self, key: KeyEvent) -> Reply {
        match key.code {
            KeyCode::Esc | KeyCode::F(1) | KeyCode::Enter => return Reply::Close,
            KeyCode::Char('?') if self.letters.is_empty() => return Reply::Close,
            KeyCode::Backspace => drop(self.letters.pop()),
            KeyCode::Char(c) if key.modifiers.difference(KeyModifiers::SHIFT).is_empty() => {
                self.letters.push(c);
                self.page = Page::default();
            }
            _ => {
                self.page.key(key);
            }
        }
        Reply::Stay
    }

    fn scroll(&mut self, by: isize) {
        self.page.scroll(by);
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let title = if self.letters.is_empty() { "Help".to_owned() } else { format!("Help: {}", self.letters) };
        let keys = "type to narrow · ↑↓ scroll · Esc close";
        let inner = panel(canvas, centred(area, 90, 44), &title, keys, paint.theme);
        let lines = self.lines(usize::from(inner.width), paint.theme);
        self.page.draw(canvas, inner, &lines);
    }
}
