//! Keys and commands, from the action table. Typing narrows the list.

use crate::terminal::key::{KeyCode, KeyEvent};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{Outcome, Page, Paint, dialog, panel};
use crate::input::action::{ACTIONS, Action, Scope, SessionKind};
use crate::input::keymap::Keymap;
use crate::input::slash::{commands, fuzzy};
use crate::render::text::{width, wrap_lines};
use crate::terminal::canvas::Canvas;
use crate::theme::Theme;

#[derive(Debug)]
pub(crate) struct HelpView {
    page: Page,
    letters: String,
    /// Shows the name of every action, for `[keys]`.
    names: bool,
    /// The keys of each action, in the order of the table.
    keys: Vec<String>,
    /// The scope that comes first: the one where the user is.
    first: Option<Scope>,
    session: SessionKind,
}

/// What the composer understands besides keys.
const PREFIXES: [(&str, &str); 4] = [
    ("!command", "run a command here; the model reads its output"),
    ("!!command", "run a command here; the model does not see it"),
    ("@file", "mention a file of the workspace; an image is attached"),
    ("/command", "run a slash command, see below"),
];

impl HelpView {
    /// Keys and commands, with the keys of `first` on top.
    pub(crate) fn new(keymap: &Keymap, first: Option<Scope>, session: SessionKind) -> HelpView {
        let keys = ACTIONS.iter().map(|spec| keymap.keys_of(spec.action).join(", ")).collect();
        HelpView { page: Page::default(), letters: String::new(), names: false, keys, first, session }
    }

    /// Every action, with the name by which the configuration binds it.
    pub(crate) fn of_keys(keymap: &Keymap, first: Option<Scope>, session: SessionKind) -> HelpView {
        HelpView { names: true, ..HelpView::new(keymap, first, session) }
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
        let mut scopes = Scope::ALL;
        scopes.sort_by_key(|scope| Some(*scope) != self.first);
        for scope in scopes {
            // A replay has neither a composer nor approvals.
            let is_elsewhere = match scope {
                Scope::Composer | Scope::Approval | Scope::ApprovalFocus => self.session == SessionKind::Replay,
                Scope::Replay => self.session == SessionKind::Live,
                Scope::Rule | Scope::Jobs | Scope::Permissions | Scope::Restore | Scope::Form | Scope::Context => {
                    self.session == SessionKind::Replay
                }
                Scope::Compaction
                | Scope::Anywhere
                | Scope::Transcript
                | Scope::Side
                | Scope::Overlay
                | Scope::Tree
                | Scope::Diff => false,
            };
            if is_elsewhere && !self.names {
                continue;
            }
            let here: Vec<_> = ACTIONS
                .iter()
                .zip(&self.keys)
                .filter(|(spec, _)| spec.scope == scope && (self.names || spec.applies(self.session)))
                .filter(|(_, keys)| self.names || !keys.is_empty())
                .collect();
            let here = fuzzy(&self.letters, here, |(spec, keys)| format!("{} {keys} {}", spec.id, spec.about));
            let prefixes = PREFIXES.iter().filter(|_| scope == Scope::Composer && !self.names).collect();
            let prefixes = fuzzy(&self.letters, prefixes, |(prefix, about)| format!("{prefix} {about}"));
            if here.is_empty() && prefixes.is_empty() {
                continue;
            }
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            lines.push(Line::styled(scope.heading(), theme.bold()));
            for (prefix, about) in prefixes {
                lines.extend(row((*prefix).to_owned(), (*about).to_owned(), theme.fg(theme.text)));
            }
            for (spec, keys) in here {
                let name = if self.names { format!("{} · ", spec.id) } else { String::new() };
                lines.extend(row(keys.clone(), format!("{name}{}", spec.about), theme.fg(theme.text)));
            }
        }
        let commands = fuzzy(&self.letters, commands(), |(slash, spec)| format!("/{} {}", slash.name, spec.about));
        if !commands.is_empty() && !self.names && self.session == SessionKind::Live {
            lines.push(Line::default());
            lines.push(Line::styled("Commands", theme.bold()));
            for (slash, spec) in commands {
                let args = if slash.args.is_empty() { String::new() } else { format!(" {}", slash.args) };
                let name = format!("/{}{args}", slash.name);
                lines.extend(row(name, spec.about.to_owned(), theme.fg(theme.text)));
                lines.extend(row(String::new(), format!("does: {}", slash.does), theme.dim()));
            }
        }
        if lines.is_empty() {
            lines.push(Line::styled("no matches", theme.dim()));
        }
        lines
    }
}

impl HelpView {
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        match key.code {
            KeyCode::F(1) => return Some(Outcome::Close),
            KeyCode::Char('?') if self.letters.is_empty() => return Some(Outcome::Close),
            KeyCode::Backspace => drop(self.letters.pop()),
            KeyCode::Char(c) if key.modifiers.is_typing() => self.letters.push(c),
            _ => return None,
        }
        self.page = Page::default();
        Some(Outcome::Stay)
    }

    pub(crate) fn act(&mut self, action: Action) -> Outcome {
        if matches!(action, Action::CloseOverlay | Action::Choose) {
            return Outcome::Close;
        }
        self.page.act(action);
        Outcome::Stay
    }

    pub(crate) fn scroll(&mut self, by: isize) {
        self.page.scroll(by);
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let title = if self.letters.is_empty() { "Help".to_owned() } else { format!("Help: {}", self.letters) };
        let keys = format!("type to narrow · {}", paint.hints(&[(Action::CloseOverlay, "close")]));
        let inner = panel(canvas, dialog(area, 90, 44), &title, &keys, paint.theme);
        let mut page = std::mem::take(&mut self.page);
        page.draw(canvas, inner, paint, |columns| self.lines(columns, paint.theme));
        self.page = page;
    }
}
