//! The current state of a Session: what a new watcher needs besides the Log to show the Session and to answer it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agent::AgentState;
use crate::event::{Approval, Form, JobState, Live, Printed, Status};
use crate::sandbox::Tier;

/// The state of a Session at the moment when a watch begins. The live events that follow repeat none of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Now {
    /// What the Session is doing.
    pub status: Status,
    /// The number of the running Turn.
    pub turn: Option<u32>,
    /// The Session is read-only in this process: nothing can be recorded.
    pub read_only: bool,
    /// What confines the programs that the Session starts in this process; `None` for one that is read-only here.
    #[serde(default)]
    pub sandbox: Option<Tier>,
    /// Calls that wait for the user's decision, oldest first.
    pub approvals: Vec<Approval>,
    /// Forms that wait for the user's answers, oldest first.
    pub forms: Vec<Form>,
    /// Messages that wait in the queue.
    pub queue: Queue,
    /// Background jobs, oldest first.
    pub jobs: Vec<JobState>,
    /// The part of the answer that has arrived so far.
    pub draft: Draft,
    /// The output of running calls so far, by call id. Of a long output, at least the last 8 KiB.
    pub printed: BTreeMap<String, Printed>,
    /// Child Sessions, oldest first: the running ones, and those that ended in this process.
    #[serde(default)]
    pub children: Vec<AgentState>,
    /// A Turn is about to begin with what child Sessions reported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waking: bool,
}

/// Messages that wait in the queue, by how they will be delivered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Messages that join the running Turn.
    pub steer: Vec<String>,
    /// Messages that start the next Turns, one each.
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

impl Now {
    /// Returns the state as live events, for a Presenter that handles only events.
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
        all.extend(self.children.iter().cloned().map(|it| Live::AgentChanged(Box::new(it))));
        all.extend(self.approvals.iter().cloned().map(Live::ApprovalRequested));
        all.extend(self.forms.iter().cloned().map(Live::FormOpened));
        all
    }
}
