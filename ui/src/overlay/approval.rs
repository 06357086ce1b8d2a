//! A question in full: everything that would be done.

use pixir_core::event::Approval;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Rect;

use super::{Overlay, Page, Paint, Reply, Told, panel};
use crate::terminal::canvas::Canvas;
use crate::view::dock;

/// The layer.
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

impl Overlay for ApprovalView {
    fn title(&self) -> &'static str {
        "Question"
    }

    fn key(&mut self, key: KeyEvent) -> Reply {
        if matches!(key.code, KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q')) {
            return Reply::Close;
        }
        self.page.key(key);
        Reply::Stay
    }

    fn scroll(&mut self, by: isize) {
        self.page.scroll(by);
    }

    fn is_over(&self, told: Told<'_>) -> bool {
        match told {
            Told::CallEnded(call) => self.approval.call_id == call,
            Told::TurnEnded => true,
            _ => false,
        }
    }

    fn has_shown(&self) -> Option<&str> {
        (self.is_drawn && self.page.is_at_end()).then_some(&self.approval.call_id)
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let keys = "↑↓ read to the end · Enter or Esc back to the question";
        let title = format!("{}: {}", self.approval.tool, self.approval.plan.would);
        let inner = panel(canvas, area, &title, keys, paint.theme);
        let plan = &self.approval.plan;
        self.page.draw(canvas, inner, paint, |columns| dock::plan_lines(plan, columns, paint.theme));
        self.is_drawn = true;
    }
}
