//! An approval in full: everything that the call would do.

use pixir_core::event::Approval;
use ratatui::layout::Rect;

use super::{Outcome, Page, Paint, panel};
use crate::input::action::Action;
use crate::render::context::RenderContext;
use crate::render::preview;
use crate::terminal::canvas::Canvas;

#[derive(Debug)]
pub(crate) struct ApprovalView {
    approval: Approval,
    page: Page,
    is_drawn: bool,
}

impl ApprovalView {
    pub(crate) fn new(approval: Approval) -> ApprovalView {
        ApprovalView { approval, page: Page::default(), is_drawn: false }
    }
}

impl ApprovalView {
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

    pub(crate) fn call_id(&self) -> &str {
        &self.approval.call_id
    }

    /// The call, if the user has seen its preview to the end.
    pub(crate) fn call_read_to_end(&self) -> Option<&str> {
        (self.is_drawn && self.page.is_at_end()).then_some(&self.approval.call_id)
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let keys =
            paint.hints(&[(Action::OverlayDown, "read to the end"), (Action::CloseOverlay, "back to the approval")]);
        let title = format!("{}: {}", self.approval.tool, self.approval.preview.would);
        let inner = panel(canvas, area, &title, &keys, paint.theme);
        let preview = &self.approval.preview;
        self.page.draw(canvas, inner, paint, |columns| {
            preview::lines(preview, &RenderContext::new(paint.theme, paint.highlighter, columns))
        });
        self.is_drawn = true;
    }
}
