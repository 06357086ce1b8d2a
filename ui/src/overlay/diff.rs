//! What was changed: by this Turn, or by the whole Session.

use crate::canvas::Canvas;
use pixir_core::changes::FileDiff;
use pixir_core::event::ChangeKind;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Overlay, Page, Paint, Reply, Told, panel};
use crate::render::diff;
use crate::render::text::fit;
use crate::state::{Effect, State};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Scope {
    #[default]
    Turn,
    Session,
}

/// The layer.
#[derive(Debug, Default)]
pub(crate) struct DiffView {
    scope: Scope,
    /// Changes of the Turn and of the Session, once they are loaded.
    files: Option<(Vec<FileDiff>, Vec<FileDiff>)>,
    page: Page,
    /// Lines at which a file or a hunk begins, as they were last drawn.
    starts: Vec<usize>,
}

impl DiffView {
    fn loaded(&mut self, turn: Vec<FileDiff>, session: Vec<FileDiff>) {
        // An empty Turn is of no interest when the Session has changes.
        if turn.is_empty() && !session.is_empty() {
            self.scope = Scope::Session;
        }
        self.files = Some((turn, session));
    }

    fn shown(&self) -> &[FileDiff] {
        match (&self.files, self.scope) {
            (None, _) => &[],
            (Some((turn, _)), Scope::Turn) => turn,
            (Some((_, session)), Scope::Session) => session,
        }
    }
}

impl Overlay for DiffView {
    fn title(&self) -> &'static str {
        "Changes"
    }

    fn wants(&self, _: &State) -> Vec<Effect> {
        vec![Effect::LoadDiffs]
    }

    fn hear(&mut self, told: Told<'_>) {
        if let Told::Diffs { turn, session } = told {
            self.loaded(turn.to_vec(), session.to_vec());
        }
    }

    fn scroll(&mut self, by: isize) {
        self.page.scroll(by);
    }

    fn key(&mut self, key: KeyEvent) -> Reply {
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Reply::Close,
            KeyCode::Tab | KeyCode::Char('s') => {
                self.scope = if self.scope == Scope::Turn { Scope::Session } else { Scope::Turn };
                self.page = Page::default();
            }
            KeyCode::Char(']' | 'n') => {
                let next = self.starts.iter().find(|at| **at > self.page.top).copied();
                self.page.top = next.unwrap_or(self.page.top).min(self.page.most);
            }
            KeyCode::Char('[' | 'p') => {
                self.page.top = self.starts.iter().rev().find(|at| **at < self.page.top).copied().unwrap_or(0)
            }
            _ => {
                self.page.key(key);
            }
        }
        Reply::Stay
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let title = match self.scope {
            Scope::Turn => "Changes of this turn",
            Scope::Session => "Changes of this session",
        };
        let inner = panel(canvas, area, title, "Tab turn/session · [ ] files · ↑↓ scroll · Esc close", theme);
        let columns = usize::from(inner.width);
        let mut lines = Vec::new();
        self.starts.clear();
        let files = self.shown().to_vec();
        if files.is_empty() {
            let text = if self.files.is_none() { "loading…" } else { "no file was changed" };
            lines.push(Line::styled(text, theme.dim()));
        }
        for file in &files {
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            self.starts.push(lines.len());
            let (mark, style) = match file.kind {
                ChangeKind::Created => ("new  ", theme.fg(theme.added)),
                ChangeKind::Modified => ("     ", theme.dim()),
                ChangeKind::Deleted => ("gone ", theme.fg(theme.removed)),
            };
            lines.push(Line::from(vec![
                Span::styled(mark, style),
                Span::styled(fit(&file.path, columns.saturating_sub(20)), theme.bold()),
                Span::styled(format!("  +{}", file.added), theme.fg(theme.added)),
                Span::styled(format!(" −{}", file.removed), theme.fg(theme.removed)),
            ]));
            lines.extend(diff::lines(&file.text, columns, theme));
        }
        self.page.draw(canvas, inner, &lines);
    }
}
