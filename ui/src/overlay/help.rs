//! Keys and commands, from the action table; narrowed by typing.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{Overlay, Page, Paint, Reply, centred, panel};
use crate::input::action::{Scope, VERBS};
use crate::input::slash::{commands, fuzzy};
use crate::render::text::{width, wrap_lines};
use crate::state::State;
use crate::terminal::canvas::Canvas;
use crate::theme::Theme;

/// The layer.
#[derive(Debug, Default)]
pub(crate) struct HelpView {
    page: Page,
    letters: String,
    /// With every verb's name, for `[keys]`.
    names: bool,
    keys: Vec<(String, Vec<String>)>,
    /// Where the person is comes first.
    first: Option<Scope>,
    /// There is no line, and nothing can be changed.
    in_replay: bool,
}

/// What the line understands besides keys.
const LINE: [(&str, &str); 4] = [
    ("!command", "run it here; the model reads what comes of it"),
    ("!!command", "run it here; the model is not told"),
    ("@file", "name a file of the workspace; an image goes with the message"),
    ("/command", "see below"),
];

impl HelpView {
    /// Every verb, with the name by which the configuration binds it.
    pub(crate) fn keys() -> HelpView {
        HelpView { names: true, ..HelpView::default() }
    }

    /// With the keys that hold now.
    pub(crate) fn with(mut self, state: &State) -> HelpView {
        self.first = state.scopes().first().copied();
        self.in_replay = state.replay.is_some();
        self.keys = VERBS.iter().map(|verb| (verb.id.to_owned(), state.keymap.keys_of(verb.id))).collect();
        self
    }

    fn keys_of(&self, id: &str) -> String {
        self.keys.iter().find(|(verb, _)| verb == id).map_or(String::new(), |(_, keys)| keys.join(", "))
    }

    fn lines(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let wide: usize = if columns < 70 { 18 } else { 27 };
        let row = |left: String, about: String, style: Style| {
            let left = format!("  {left}");
            let gap = " ".repeat(wide.saturating_sub(width(&left)).max(1));
            let first = [Span::styled(format!("{left}{gap}"), theme.fg(theme.accent))];
            wrap_lines(&[Span::styled(about, style)], columns, &first, &[Span::raw(" ".repeat(wide))])
        };
        let mut parts = [
            (Scope::Composer, "In the line"),
            (Scope::Anywhere, "Everywhere"),
            (Scope::Approval, "While a question is open"),
            (Scope::Question, "With the question in focus (Tab)"),
            (Scope::Transcript, "With the transcript in focus (Tab)"),
            (Scope::Side, "With the side panel in focus (Tab)"),
            (Scope::Replay, "In a replay"),
        ];
        parts.sort_by_key(|(scope, _)| Some(*scope) != self.first);
        for (scope, title) in parts {
            // A replay has no line, and nothing asks in it.
            let is_elsewhere = match scope {
                Scope::Composer | Scope::Approval | Scope::Question => self.in_replay,
                Scope::Replay => !self.in_replay,
                Scope::Anywhere | Scope::Transcript | Scope::Side => false,
            };
            if is_elsewhere && !self.names {
                continue;
            }
            let here =
                VERBS.iter().filter(|verb| verb.scope == scope && (self.names || verb.is_of_use(self.in_replay)));
            let here: Vec<_> = here
                .map(|verb| (verb, self.keys_of(verb.id)))
                .filter(|(_, keys)| self.names || !keys.is_empty())
                .collect();
            let here = fuzzy(&self.letters, here, |(verb, keys)| format!("{} {keys} {}", verb.id, verb.about));
            let line = LINE.iter().filter(|_| scope == Scope::Composer && !self.names).collect();
            let line = fuzzy(&self.letters, line, |(what, about)| format!("{what} {about}"));
            if here.is_empty() && line.is_empty() {
                continue;
            }
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            lines.push(Line::styled(title, theme.bold()));
            for (what, about) in line {
                lines.extend(row((*what).to_owned(), (*about).to_owned(), theme.fg(theme.text)));
            }
            for (verb, keys) in here {
                let name = if self.names { format!("{} · ", verb.id) } else { String::new() };
                lines.extend(row(keys, format!("{name}{}", verb.about), theme.fg(theme.text)));
            }
        }
        let found = fuzzy(&self.letters, commands(), |(slash, verb)| format!("/{} {}", slash.name, verb.about));
        if !found.is_empty() && !self.names && !self.in_replay {
            lines.push(Line::default());
            lines.push(Line::styled("Commands", theme.bold()));
            for (slash, verb) in found {
                let args = if slash.args.is_empty() { String::new() } else { format!(" {}", slash.args) };
                let name = format!("/{}{args}", slash.name);
                lines.extend(row(name, verb.about.to_owned(), theme.fg(theme.text)));
                lines.extend(row(String::new(), format!("does: {}", slash.does), theme.dim()));
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
            KeyCode::Backspace => {
                self.letters.pop();
                self.page = Page::default();
            }
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
        let mut page = std::mem::take(&mut self.page);
        page.draw(canvas, inner, paint, |columns| self.lines(columns, paint.theme));
        self.page = page;
    }
}
