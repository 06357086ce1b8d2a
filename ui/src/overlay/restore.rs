//! The preview of a restore: its files, how each changes, and what changed in them outside of pixir meanwhile.

use std::collections::BTreeMap;

use crate::terminal::canvas::{Canvas, RegionState};
use pixir_core::event::{ChangeKind, FilePreview, RestorePreview, RestoreReason, Standing};
use pixir_core::input::{OnConflict, RestoreOptions};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::{Outcome, Page, Paint, Request, panel};
use crate::input::action::Action;
use crate::render::diff;
use crate::render::text::{fit, plain, wrap_lines};
use crate::theme::Theme;

#[derive(Debug)]
pub(crate) struct RestoreView {
    preview: RestorePreview,
    choices: BTreeMap<String, OnConflict>,
    chosen: usize,
    page: Page,
}

impl RestoreView {
    pub(crate) fn new(preview: RestorePreview) -> RestoreView {
        RestoreView { preview, choices: BTreeMap::new(), chosen: 0, page: Page::default() }
    }

    fn is_rewind(&self) -> bool {
        self.preview.reason == RestoreReason::Rewind
    }

    fn choose(&mut self, choice: OnConflict) {
        if let Some(file) = self.preview.files.get(self.chosen).filter(|f| f.standing == Standing::ChangedSince)
            && (choice != OnConflict::Merge || file.merged.is_some())
        {
            self.choices.insert(file.path.clone(), choice);
            self.page = Page::default();
        }
    }

    /// The options to apply exactly this preview. If the files have changed since the preview, the Session applies
    /// nothing.
    fn options(&self) -> RestoreOptions {
        RestoreOptions {
            choices: self.choices.clone(),
            seen: Some(self.preview.token.clone()),
            // The preview marks them, and it is the question.
            protected: self.preview.files.iter().any(|file| file.protected),
            ..RestoreOptions::default()
        }
    }

    fn choice_of(&self, file: &FilePreview) -> OnConflict {
        self.choices.get(&file.path).copied().unwrap_or_default()
    }

    fn draw_list(&self, canvas: &mut Canvas, list: Rect, theme: &Theme) {
        let columns = usize::from(list.width);
        let top = (self.chosen + 1).saturating_sub(usize::from(list.height));
        for (row, (at, file)) in (list.y..list.bottom()).zip(self.preview.files.iter().enumerate().skip(top)) {
            let area = Rect { y: row, height: 1, ..list };
            let (what, style) = match (file.standing, self.choice_of(file)) {
                (Standing::ChangedSince, OnConflict::Keep) => ("changed since: kept", theme.warning),
                (Standing::ChangedSince, OnConflict::Merge) => ("changed since: merged", theme.warning),
                (Standing::ChangedSince, OnConflict::Overwrite) => ("changed since: overwritten", theme.error),
                (Standing::Impossible, _) => ("cannot be restored", theme.error),
                (Standing::Ready | Standing::AlreadyThere, _) => match file.kind {
                    ChangeKind::Created => ("created", theme.added),
                    ChangeKind::Deleted => ("deleted", theme.removed),
                    ChangeKind::Modified => ("restored", theme.text),
                },
            };
            let mark = if file.protected { "  protected" } else { "" };
            let numbers = format!("+{} −{}{mark}", file.added, file.removed);
            let room = columns.saturating_sub(what.chars().count() + numbers.chars().count() + 6);
            if at == self.chosen {
                canvas.tint(area, theme.selected());
            }
            let line = Line::from(vec![
                Span::styled(if at == self.chosen { "▸ " } else { "  " }, theme.fg(theme.accent)),
                Span::styled(fit(&plain(&file.path), room), theme.bold()),
                Span::raw("  "),
                Span::styled(what, theme.fg(style)),
                Span::styled(format!("  {numbers}"), theme.dim()),
            ]);
            canvas.region("option", area, || line.to_string());
            canvas.region_state(RegionState { focused: false, selected: at == self.chosen });
            canvas.line(line, area);
        }
    }

    /// What happens to the chosen file. If it changed outside of pixir, the outcome of the user's choice.
    fn detail(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let Some(file) = self.preview.files.get(self.chosen) else { return Vec::new() };
        let mut lines = Vec::new();
        if file.protected {
            let text = "A protected file: it can run code or widen permissions. Look at it before you restore it.";
            lines.extend(wrap_lines(&[Span::styled(text, theme.fg(theme.warning))], columns, &[], &[]));
        }
        let mut say = |text: &str| {
            lines.extend(wrap_lines(&[Span::styled(text.to_owned(), theme.dim())], columns, &[], &[]));
        };
        match (file.standing, self.choice_of(file)) {
            (Standing::Impossible, _) => {
                say(&format!("Not restored: {}.", file.why.as_deref().unwrap_or("it cannot be restored")));
            }
            (Standing::Ready | Standing::AlreadyThere, _) => lines.extend(diff::lines(&file.diff, columns, theme)),
            (Standing::ChangedSince, choice) => {
                let keys = if file.merged.is_some() {
                    "It has changed since. k keep it · m merge: keep that change, restore the rest · o overwrite it"
                } else {
                    "It has changed since, in the same lines. k keep it · o overwrite it"
                };
                say(keys);
                lines.push(Line::default());
                let (title, text) = match choice {
                    OnConflict::Keep => ("Kept. It has changed since as follows:", file.since.as_deref()),
                    OnConflict::Merge => {
                        ("Merged: the later change stays, the rest is restored:", file.merged.as_deref())
                    }
                    OnConflict::Overwrite => ("Overwritten: the later change is lost:", Some(file.diff.as_str())),
                };
                lines.push(Line::styled(title, theme.bold()));
                lines.extend(diff::lines(text.unwrap_or_default(), columns, theme));
                if choice == OnConflict::Keep {
                    lines.push(Line::default());
                    lines.push(Line::styled("Restoring it would do this:", theme.bold()));
                    lines.extend(diff::lines(&file.diff, columns, theme));
                }
            }
        }
        lines
    }
}

impl RestoreView {
    pub(crate) fn scroll(&mut self, by: isize) {
        self.chosen = self.chosen.saturating_add_signed(by).min(self.preview.files.len().saturating_sub(1));
        self.page = Page::default();
    }

    pub(crate) fn act(&mut self, action: Action) -> Outcome {
        match action {
            Action::CloseOverlay => return Outcome::Close,
            Action::Choose => {
                return Outcome::CloseAndAsk(Request::Restore(Box::new(self.preview.clone()), self.options()));
            }
            Action::MoveWithoutFiles if self.is_rewind() => return Outcome::CloseAndAsk(Request::MoveWithoutFiles),
            Action::OverlayUp => self.scroll(-1),
            Action::OverlayDown => self.scroll(1),
            Action::KeepFile => self.choose(OnConflict::Keep),
            Action::MergeFile => self.choose(OnConflict::Merge),
            Action::OverwriteFile => self.choose(OnConflict::Overwrite),
            _ => self.page.act(action),
        }
        Outcome::Stay
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let count = self.preview.files.len();
        let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
        let title = match (self.preview.reason, self.preview.of_turn) {
            (RestoreReason::Undo, Some(turn)) => format!("Undo turn {turn}: {files}"),
            (RestoreReason::Redo, Some(turn)) => format!("Redo turn {turn}: {files}"),
            _ => format!("Continue from there, and restore {files} as well?"),
        };
        let keys = if self.is_rewind() {
            paint.hints(&[
                (Action::Choose, "go, restore files"),
                (Action::MoveWithoutFiles, "go, keep files"),
                (Action::CloseOverlay, "stay here"),
                (Action::OverlayDown, "next file"),
                (Action::OverlayPageDown, "scroll"),
            ])
        } else {
            paint.hints(&[
                (Action::Choose, "restore"),
                (Action::CloseOverlay, "cancel"),
                (Action::OverlayDown, "next file"),
                (Action::OverlayPageDown, "scroll"),
            ])
        };
        let inner = panel(canvas, area, &title, &keys, theme);
        let rows = u16::try_from(count).unwrap_or(u16::MAX).min(inner.height / 3).max(1);
        let [list, _, below] =
            Layout::vertical([Constraint::Length(rows), Constraint::Length(1), Constraint::Fill(1)]).areas(inner);
        self.draw_list(canvas, list, theme);
        let mut page = std::mem::take(&mut self.page);
        page.draw(canvas, below, paint, |columns| self.detail(columns, theme));
        self.page = page;
    }
}
