//! The preview of a compaction: the summary that would replace older history.

use pixir_core::Input;
use pixir_core::event::HistoryCompaction;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Outcome, Page, Paint, dialog, panel};
use crate::input::action::Action;
use crate::render::context::RenderContext;
use crate::render::markdown;
use crate::render::text::{lines_of, wrap_lines};
use crate::terminal::canvas::Canvas;

#[derive(Debug)]
pub(crate) struct CompactionView {
    preview: HistoryCompaction,
    instructions: Option<String>,
    page: Page,
}

impl CompactionView {
    pub(crate) fn new(preview: HistoryCompaction, instructions: Option<String>) -> CompactionView {
        CompactionView { preview, instructions, page: Page::default() }
    }
}

impl CompactionView {
    pub(crate) fn act(&mut self, action: Action) -> Outcome {
        match action {
            Action::Choose => {
                Outcome::close_and_send(Input::Compact { instructions: self.instructions.clone(), dry_run: false })
            }
            Action::CloseOverlay => Outcome::Close,
            _ => {
                self.page.act(action);
                Outcome::Stay
            }
        }
    }

    pub(crate) fn scroll(&mut self, by: isize) {
        self.page.scroll(by);
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let Paint { theme, highlighter, .. } = paint;
        let title =
            format!("Compact: {} → {} tokens (estimated)", self.preview.tokens_before, self.preview.tokens_after);
        let keys = paint.hints(&[(Action::Choose, "apply"), (Action::CloseOverlay, "cancel")]);
        let inner = panel(canvas, dialog(area, 100, 60), &title, &keys, theme);
        let preview = &self.preview;
        let text = format!(
            "{} entries leave the model's context; the newest part of the conversation stays. Nothing is deleted: /tree goes back to before the compaction. Where a model is connected, it writes the summary when you apply this; else, or if it fails, this one is used:",
            preview.entries_dropped
        );
        self.page.draw(canvas, inner, paint, |columns| {
            let mut lines = wrap_lines(&[Span::styled(text, theme.dim())], columns, &[], &[]);
            lines.push(Line::default());
            let context = RenderContext::new(theme, highlighter, columns);
            lines.extend(lines_of(markdown::rows(&preview.summary, &context)));
            lines
        });
    }
}
