//! An approval in full: everything that the call would do.

use pixir_core::agent::Asker;
use pixir_core::event::Approval;
use ratatui::layout::Rect;

use super::{Outcome, Page, Paint, Request, View, panel};
use crate::input::action::{Action, LayerAction, Scope};
use crate::render::context::RenderContext;
use crate::render::figures::plus_minus;
use crate::render::preview::{self, Unchanged};
use crate::render::text::{visible, width};
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

    fn act(&mut self, action: LayerAction) -> Outcome {
        match action {
            LayerAction::CloseOverlay | LayerAction::Choose => return Outcome::Close,
            other => self.page.act(other),
        }
        Outcome::Stay
    }

    fn pass(&mut self, action: Action) -> Outcome {
        match action {
            Action::ExpandApproval => Outcome::Close,
            // What is not read to its end cannot be allowed: the view stays, and the status line says why.
            Action::FocusedAllowOnce | Action::FocusedAllowAlways if self.call_read_to_end().is_none() => {
                Outcome::Ask(Request::Perform(action))
            }
            Action::FocusedAllowOnce
            | Action::FocusedAllowAlways
            | Action::FocusedDeny
            | Action::FocusedDenyWithFeedback => Outcome::CloseAndAsk(Request::Perform(action)),
            _ => Outcome::Stay,
        }
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
        let answers: [(Action, &str); 5] = [
            (Action::FocusedAllowOnce, "Allow"),
            (Action::FocusedAllowAlways, "Always…"),
            (Action::FocusedDeny, "Refuse"),
            (Action::FocusedDenyWithFeedback, "Refuse and say why"),
            (LayerAction::CloseOverlay.into(), "back"),
        ];
        let read = [(LayerAction::OverlayPageDown, "page down"), (LayerAction::OverlayEnd, "to the end")];
        let keys = if self.is_drawn && self.page.is_at_end() {
            paint.hints(&answers)
        } else {
            format!("{} · {}", paint.hints(&read), paint.hints(&answers[2..]))
        };
        let would = &self.approval.preview.would;
        let first = would.chars().next().map_or(0, char::len_utf8);
        let mut title = format!("{}{}", would[..first].to_uppercase(), visible(&would[first..]));
        let preview = &self.approval.preview;
        // The target of a diff stands in the title where all of it fits there, as on the card.
        let room = usize::from(area.width).saturating_sub(6 + width(&title));
        let target = preview::target_in_one_line(preview).filter(|it| preview.diff.is_some() && width(it) < room);
        if let Some(target) = &target {
            title = format!("{title} {target}");
        }
        let (added, removed) = preview::changed_lines(preview);
        let changed = plus_minus(added, removed);
        if !changed.is_empty() && width(&title) + width(&changed) + 8 <= usize::from(area.width) {
            title = format!("{title}  {changed}");
        }
        let inner = panel(canvas, area, &title, &keys, paint.theme);
        self.page.draw(canvas, inner, paint, |columns| {
            let context = RenderContext::new(paint.theme, paint.highlighter, columns);
            preview::card(preview, &context, Unchanged::All, target.is_some(), usize::MAX).0
        });
        self.is_drawn = true;
    }
}
