//! An approval in full: everything that the call would do.

use pixir_core::agent::Asker;
use pixir_core::event::Approval;
use ratatui::layout::Rect;

use super::{Outcome, Page, Paint, Request, View, panel};
use crate::input::action::{Action, Scope};
use crate::render::context::RenderContext;
use crate::render::preview;
use crate::render::text::visible;
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
    /// The call, if the user has seen its preview to the end.
    pub(crate) fn call_read_to_end(&self) -> Option<&str> {
        (self.is_drawn && self.page.is_at_end()).then_some(&self.approval.call_id)
    }
}

impl View for ApprovalView {
    fn title(&self) -> &'static str {
        "Approval"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::ApprovalFocus, Scope::Overlay]
    }

    fn act(&mut self, action: Action) -> Outcome {
        match action {
            Action::CloseOverlay | Action::Choose | Action::ExpandApproval => return Outcome::Close,
            // What is not read to its end cannot be allowed: the view stays, and the status line says why.
            Action::FocusedAllowOnce | Action::FocusedAllowAlways if self.call_read_to_end().is_none() => {
                return Outcome::Ask(Request::Perform(action));
            }
            Action::FocusedAllowOnce
            | Action::FocusedAllowAlways
            | Action::FocusedDeny
            | Action::FocusedDenyWithFeedback => return Outcome::CloseAndAsk(Request::Perform(action)),
            other => self.page.act(other),
        }
        Outcome::Stay
    }

    fn scroll(&mut self, by: isize) {
        self.page.scroll(by);
    }

    /// The agent that asks; `None` if the Session itself does.
    fn asker(&self) -> Option<&Asker> {
        self.approval.agent.as_ref()
    }

    fn call_id(&self) -> Option<&str> {
        Some(&self.approval.call_id)
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let answers = [
            (Action::FocusedAllowOnce, "Allow"),
            (Action::FocusedAllowAlways, "Always…"),
            (Action::FocusedDeny, "Refuse"),
            (Action::FocusedDenyWithFeedback, "Refuse and say why"),
            (Action::CloseOverlay, "back"),
        ];
        let read = [(Action::OverlayPageDown, "page down"), (Action::OverlayEnd, "to the end")];
        let keys = if self.is_drawn && self.page.is_at_end() {
            paint.hints(&answers)
        } else {
            format!("{} · {}", paint.hints(&read), paint.hints(&answers[2..]))
        };
        let would = &self.approval.preview.would;
        let first = would.chars().next().map_or(0, char::len_utf8);
        let title = format!("{}{}", would[..first].to_uppercase(), visible(&would[first..]));
        let inner = panel(canvas, area, &title, &keys, paint.theme);
        let preview = &self.approval.preview;
        self.page.draw(canvas, inner, paint, |columns| {
            preview::lines(preview, &RenderContext::new(paint.theme, paint.highlighter, columns))
        });
        self.is_drawn = true;
    }
}
