//! A call that waits for the user's decision.

use std::time::Instant;

use pixir_core::event::Approval;

use ratatui::text::Line;

use crate::overlay::Laid;

#[derive(Debug)]
pub(crate) struct PendingApproval {
    pub(crate) approval: Approval,
    /// When it was first painted. Keys pressed before that moment decide nothing.
    pub(crate) painted: Option<Instant>,
    /// The end of its preview has been on the screen. Until then it cannot be allowed.
    pub(crate) is_read: bool,
    /// While the user writes feedback for a denial in the composer: the draft that it replaced.
    pub(crate) draft_before_feedback: Option<String>,
    /// The preview of the call as lines: with all lines around the changes, with some, and with none.
    pub(crate) preview: [Laid<(Vec<Line<'static>>, usize)>; 3],
}

impl PendingApproval {
    pub(crate) fn new(approval: Approval) -> PendingApproval {
        PendingApproval {
            approval,
            painted: None,
            is_read: false,
            draft_before_feedback: None,
            preview: Default::default(),
        }
    }

    /// The composer holds what the model should do instead.
    pub(crate) fn is_in_feedback(&self) -> bool {
        self.draft_before_feedback.is_some()
    }
}
