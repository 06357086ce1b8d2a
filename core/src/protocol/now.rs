//! The present of a Session: what a watcher that joins in the middle has to know to see and answer everything.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::event::{Approval, Form, JobState, Live, Printed, Status};

/// How a Session stands at the moment when a watch begins. Nothing of it is repeated by the live events that follow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Now {
    /// What the Session is doing.
    pub status: Status,
    /// The running Turn.
    pub turn: Option<u32>,
    /// Nothing can be recorded in this Session here.
    pub read_only: bool,
    /// Calls that wait for the user's decision, oldest first.
    pub approvals: Vec<Approval>,
    /// Forms that wait for the user's answers, oldest first.
    pub forms: Vec<Form>,
    /// Messages that wait.
    pub queue: Queue,
    /// Background jobs, oldest first.
    pub jobs: Vec<JobState>,
    /// The answer that the model is writing.
    pub draft: Draft,
    /// What running calls have printed, by call id; of a long output, the last 8 KiB or more.
    pub printed: BTreeMap<String, Printed>,
    /// Child Sessions that run. Empty as long as Sessions cannot have children.
    pub children: Vec<Child>,
}

/// Messages that wait for the running Turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// They join the running Turn.
    pub steer: Vec<String>,
    /// They start the next Turns.
    pub follow_up: Vec<String>,
}

/// The part of an answer that has arrived and is not recorded yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// The reasoning so far.
    pub reasoning: String,
    /// The text so far.
    pub text: String,
}

/// A child Session that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// Its id.
    pub session_id: String,
    /// Its name, unique in the tree.
    pub name: String,
    /// What it is doing.
    pub status: Status,
}

impl Now {
    /// The same as live events, for a Presenter that folds nothing but events.
    pub fn as_live(&self) -> Vec<Live> {
        let mut all = Vec::new();
        if self.status != Status::Idle {
            all.push(Live::Status { status: self.status });
        }
        if !self.draft.reasoning.is_empty() {
            all.push(Live::ReasoningDelta { text: self.draft.reasoning.clone() });
        }
        if !self.draft.text.is_empty() {
            all.push(Live::TextDelta { text: self.draft.text.clone() });
        }
        let outputs = self.printed.iter();
        all.extend(
            outputs.map(|(id, printed)| Live::ToolOutputDelta { call_id: id.clone(), printed: printed.clone() }),
        );
        if self.queue != Queue::default() {
            let Queue { steer, follow_up } = self.queue.clone();
            all.push(Live::QueueChanged { steer, follow_up });
        }
        if !self.jobs.is_empty() {
            all.push(Live::JobsChanged { jobs: self.jobs.clone() });
        }
        all.extend(self.approvals.iter().cloned().map(Live::ApprovalRequested));
        all.extend(self.forms.iter().cloned().map(Live::FormOpened));
        all
    }
}
