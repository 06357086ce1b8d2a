//! Files that are to be set back: which, how they change, and what somebody changed in them since.

use std::collections::BTreeMap;

use crate::terminal::canvas::Canvas;
use pixir_core::event::{ChangeKind, PlannedFile, RestorePlan, RestoreReason, Standing};
use pixir_core::input::{Choice, Wish};
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::{Overlay, Page, Paint, Reply, panel};
use crate::render::diff;
use crate::render::text::{fit, plain, wrap_lines};
use crate::theme::Theme;
use crate::update::travel;

/// The layer.
#[derive(Debug)]
pub(crate) struct RestoreView {
    plan: RestorePlan,
    choices: BTreeMap<String, Choice>,
    chosen: usize,
    page: Page,
}

impl RestoreView {
    pub(crate) fn new(plan: RestorePlan) -> RestoreView {
        RestoreView { plan, choices: BTreeMap::new(), chosen: 0, page: Page::default() }
    }

    fn is_rewind(&self) -> bool {
        self.plan.reason == RestoreReason::Rewind
    }

    fn choose(&mut self, choice: Choice) {
        if let Some(file) = self.plan.files.get(self.chosen).filter(|f| f.standing == Standing::ChangedSince)
            && (choice != Choice::Merge || file.merged.is_some())
        {
            self.choices.insert(file.path.clone(), choice);
            self.page = Page::default();
        }
    }

    /// Applies exactly this plan; when it is not what would be done any more, nothing is.
    fn wish(&self) -> Wish {
        Wish { choices: self.choices.clone(), seen: Some(self.plan.token.clone()), ..Wish::default() }
    }

    fn choice_of(&self, file: &PlannedFile) -> Choice {
        self.choices.get(&file.path).copied().unwrap_or_default()
    }

    fn draw_list(&self, canvas: &mut Canvas, list: Rect, theme: &Theme) {
        let columns = usize::from(list.width);
        let top = (self.chosen + 1).saturating_sub(usize::from(list.height));
        for (row, (at, file)) in (list.y..list.bottom()).zip(self.plan.files.iter().enumerate().skip(top)) {
            let area = Rect { y: row, height: 1, ..list };
            let (told, style) = match (file.standing, self.choice_of(file)) {
                (Standing::ChangedSince, Choice::Keep) => ("changed since: stays", theme.warning),
                (Standing::ChangedSince, Choice::Merge) => ("changed since: merged", theme.warning),
                (Standing::ChangedSince, Choice::Overwrite) => ("changed since: overwritten", theme.error),
                (Standing::Impossible, _) => ("cannot be restored", theme.error),
                (Standing::Ready | Standing::AlreadyThere, _) => match file.kind {
                    ChangeKind::Created => ("comes back", theme.added),
                    ChangeKind::Deleted => ("goes", theme.removed),
                    ChangeKind::Modified => ("set back", theme.text),
                },
            };
            let numbers = format!("+{} −{}", file.added, file.removed);
            let room = columns.saturating_sub(told.chars().count() + numbers.chars().count() + 6);
            if at == self.chosen {
                canvas.tint(area, theme.selected());
            }
            let line = Line::from(vec![
                Span::styled(if at == self.chosen { "▸ " } else { "  " }, theme.fg(theme.accent)),
                Span::styled(fit(&plain(&file.path), room), theme.bold()),
                Span::raw("  "),
                Span::styled(told, theme.fg(style)),
                Span::styled(format!("  {numbers}"), theme.dim()),
            ]);
            canvas.line(line, area);
        }
    }

    /// What happens to the chosen file; where somebody changed it, the three sides of that.
    fn detail(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let Some(file) = self.plan.files.get(self.chosen) else { return Vec::new() };
        let mut lines = Vec::new();
        let mut say = |text: &str| {
            lines.extend(wrap_lines(&[Span::styled(text.to_owned(), theme.dim())], columns, &[], &[]));
        };
        match (file.standing, self.choice_of(file)) {
            (Standing::Impossible, _) => {
                say(&format!("It is left as it is: {}.", file.why.as_deref().unwrap_or("it cannot be restored")));
            }
            (Standing::Ready | Standing::AlreadyThere, _) => lines.extend(diff::lines(&file.diff, columns, theme)),
            (Standing::ChangedSince, choice) => {
                let keys = if file.merged.is_some() {
                    "Somebody changed it since. k keep it · m keep their change, restore around it · o overwrite it"
                } else {
                    "Somebody changed it since, in the same places. k keep it · o overwrite it"
                };
                say(keys);
                lines.push(Line::default());
                let (title, text) = match choice {
                    Choice::Keep => ("It stays. What they changed:", file.since.as_deref()),
                    Choice::Merge => ("Merged; theirs stays, the rest is set back:", file.merged.as_deref()),
                    Choice::Overwrite => ("Overwritten; what they changed goes:", Some(file.diff.as_str())),
                };
                lines.push(Line::styled(title, theme.bold()));
                lines.extend(diff::lines(text.unwrap_or_default(), columns, theme));
                if choice == Choice::Keep {
                    lines.push(Line::default());
                    lines.push(Line::styled("Setting it back would do this:", theme.bold()));
                    lines.extend(diff::lines(&file.diff, columns, theme));
                }
            }
        }
        lines
    }
}

impl Overlay for RestoreView {
    fn title(&self) -> &'static str {
        "Files to set back"
    }

    fn must_be_seen(&self) -> bool {
        true
    }

    /// The person stays here.
    fn on_close(&mut self) -> Option<super::Act> {
        Some(Box::new(|state| {
            state.going = None;
            Vec::new()
        }))
    }

    fn scroll(&mut self, by: isize) {
        self.chosen = self.chosen.saturating_add_signed(by).min(self.plan.files.len().saturating_sub(1));
        self.page = Page::default();
    }

    fn key(&mut self, key: KeyEvent) -> Reply {
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Reply::Close,
            KeyCode::Enter => {
                let (plan, wish) = (self.plan.clone(), self.wish());
                return Reply::CloseAndAct(Box::new(move |state| travel::restore(state, &plan, wish)));
            }
            KeyCode::Char('n') if self.is_rewind() => {
                return Reply::CloseAndAct(Box::new(|state| travel::arrive(state, None)));
            }
            KeyCode::Up | KeyCode::Char('p') => self.scroll(-1),
            KeyCode::Down => self.scroll(1),
            KeyCode::Char('k') => self.choose(Choice::Keep),
            KeyCode::Char('m') => self.choose(Choice::Merge),
            KeyCode::Char('o') => self.choose(Choice::Overwrite),
            _ => {
                self.page.key(key);
            }
        }
        Reply::Stay
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let count = self.plan.files.len();
        let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
        let title = match (self.plan.reason, self.plan.of_turn) {
            (RestoreReason::Undo, Some(turn)) => format!("Undo turn {turn}: {files}"),
            (RestoreReason::Redo, Some(turn)) => format!("Redo turn {turn}: {files}"),
            _ => format!("Go on from there, and set {files} back as well?"),
        };
        let keys = if self.is_rewind() {
            "Enter go, files too · n files stay · Esc stay here · ↑↓ file · PgDn scroll"
        } else {
            "Enter do it · Esc leave as it is · ↑↓ file · PgDn scroll"
        };
        let inner = panel(canvas, area, &title, keys, theme);
        let rows = u16::try_from(count).unwrap_or(u16::MAX).min(inner.height / 3).max(1);
        let [list, _, below] =
            Layout::vertical([Constraint::Length(rows), Constraint::Length(1), Constraint::Fill(1)]).areas(inner);
        self.draw_list(canvas, list, theme);
        let mut page = std::mem::take(&mut self.page);
        page.draw(canvas, below, paint, |columns| self.detail(columns, theme));
        self.page = page;
    }
}
