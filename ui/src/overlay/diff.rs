//! The files that this Turn, or the whole Session, changed.

use crate::terminal::canvas::Canvas;
use pixir_core::changes::FileDiff;
use pixir_core::event::ChangeKind;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Notification, Outcome, Page, Paint, panel};
use crate::input::action::Action;
use crate::render::diff;
use crate::render::text::fit;
use crate::theme::Theme;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Scope {
    #[default]
    Turn,
    Session,
}

#[derive(Debug, Default)]
pub(crate) struct DiffView {
    scope: Scope,
    /// The changes of the Turn and of the Session, once they are loaded.
    files: Option<(Vec<FileDiff>, Vec<FileDiff>)>,
    page: Page,
    /// The lines at which a file begins, since the last layout.
    starts: Vec<usize>,
}

impl DiffView {
    fn loaded(&mut self, turn: Vec<FileDiff>, session: Vec<FileDiff>) {
        // A Turn without changes is not worth a page while the Session has some.
        if turn.is_empty() && !session.is_empty() {
            self.scope = Scope::Session;
        }
        self.files = Some((turn, session));
        self.page = Page::default();
    }
}

impl DiffView {
    pub(crate) fn notify(&mut self, notification: Notification<'_>) {
        if let Notification::Diffs { turn, session } = notification {
            self.loaded(turn.to_vec(), session.to_vec());
        }
    }

    pub(crate) fn scroll(&mut self, by: isize) {
        self.page.scroll(by);
    }

    pub(crate) fn act(&mut self, action: Action) -> Outcome {
        match action {
            Action::CloseOverlay => return Outcome::Close,
            Action::SwitchSource => {
                self.scope = if self.scope == Scope::Turn { Scope::Session } else { Scope::Turn };
                self.page = Page::default();
            }
            Action::NextFile => {
                let next = self.starts.iter().find(|at| **at > self.page.top).copied();
                self.page.top = next.unwrap_or(self.page.top).min(self.page.max_top);
            }
            Action::PreviousFile => {
                self.page.top = self.starts.iter().rev().find(|at| **at < self.page.top).copied().unwrap_or(0)
            }
            _ => self.page.act(action),
        }
        Outcome::Stay
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let title = match self.scope {
            Scope::Turn => "Changes of this turn",
            Scope::Session => "Changes of this session",
        };
        let keys = paint.hints(&[
            (Action::SwitchSource, "turn/session"),
            (Action::NextFile, "next file"),
            (Action::PreviousFile, "previous file"),
            (Action::CloseOverlay, "close"),
        ]);
        let inner = panel(canvas, area, title, &keys, theme);
        let DiffView { scope, files, page, starts } = self;
        page.draw(canvas, inner, paint, |columns| {
            starts.clear();
            let Some((turn, session)) = files else { return vec![Line::styled("loading…", theme.dim())] };
            let shown = if *scope == Scope::Turn { turn } else { session };
            if shown.is_empty() {
                return vec![Line::styled("no file has changed", theme.dim())];
            }
            let mut lines = Vec::new();
            for file in shown {
                if !lines.is_empty() {
                    lines.push(Line::default());
                }
                starts.push(lines.len());
                lines.push(head(file, columns, theme));
                lines.extend(diff::lines(&file.text, columns, theme));
            }
            lines
        });
    }
}

/// The heading of a file: what happened to it, and its counts of lines.
fn head(file: &FileDiff, columns: usize, theme: &Theme) -> Line<'static> {
    let (mark, style) = match file.kind {
        ChangeKind::Created => ("new  ", theme.fg(theme.added)),
        ChangeKind::Modified => ("     ", theme.dim()),
        ChangeKind::Deleted => ("gone ", theme.fg(theme.removed)),
    };
    Line::from(vec![
        Span::styled(mark, style),
        Span::styled(fit(&file.path, columns.saturating_sub(20)), theme.bold()),
        Span::styled(format!("  +{}", file.added), theme.fg(theme.added)),
        Span::styled(format!(" −{}", file.removed), theme.fg(theme.removed)),
    ])
}
