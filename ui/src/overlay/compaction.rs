//! What a compaction would make of the conversation, before it is applied.

use pixir_core::Input;
use pixir_core::event::HistoryCompaction;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Overlay, Page, Paint, Reply, centred, panel, send};
use crate::render::markdown::{self, Look};
use crate::render::text::{lines_of, wrap_lines};
use crate::terminal::canvas::Canvas;

/// The layer.
#[derive(Debug)]
pub(crate) struct CompactionView {
    plan: HistoryCompaction,
    instructions: Option<String>,
    page: Page,
}

impl CompactionView {
    pub(crate) fn new(plan: HistoryCompaction, instructions: Option<String>) -> CompactionView {
        CompactionView { plan, instructions, page: Page::default() }
    }
}

impl Overlay for CompactionView {
    fn title(&self) -> &'static str {
        "Compact"
    }

    fn key(&mut self, key: KeyEvent) -> Reply {
        match key.code {
            KeyCode::Enter => {
                Reply::CloseAndAct(send(Input::Compact { instructions: self.instructions.clone(), dry_run: false }))
            }
            KeyCode::Esc | KeyCode::Char('q') => Reply::Close,
            _ => {
                self.page.key(key);
                Reply::Stay
            }
        }
    }

    fn scroll(&mut self, by: isize) {
        self.page.scroll(by);
    }

    fn must_be_seen(&self) -> bool {
        true
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let Paint { theme, highlighter, .. } = paint;
        let title = format!("Compact: {} → {} tokens (estimated)", self.plan.tokens_before, self.plan.tokens_after);
        let keys = "Enter apply · ↑↓ scroll · Esc leave as it is";
        let inner = panel(canvas, centred(area, 100, 60), &title, keys, theme);
        let plan = &self.plan;
        let told = format!(
            "{} entries leave the model's context; the newest part of the conversation stays as it is. Nothing is deleted: /tree goes back to before it. The model will read this instead:",
            plan.entries_dropped
        );
        self.page.draw(canvas, inner, paint, |columns| {
            let mut lines = wrap_lines(&[Span::styled(told, theme.dim())], columns, &[], &[]);
            lines.push(Line::default());
            let look = Look::new(theme, highlighter, columns);
            lines.extend(lines_of(markdown::rows(&plan.summary, &look)));
            lines
        });
    }
}
