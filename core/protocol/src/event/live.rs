//! What happens in a Session at this moment, and is never stored.

use serde::{Deserialize, Serialize};

use super::{Approval, CompactionPreview, ContextReport, Form, JobState, Preview, Printed, RestorePreview};
use crate::agent::{AgentState, Asker};
use crate::call_info::CallInfo;
use crate::error::ErrorBody;
use crate::remedy::Remedy;
use crate::trust::Contributions;

/// The payload of a live event: what happens in a Session at this moment. It is never stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Live {
    /// More text of the answer.
    TextDelta {
        /// The new text.
        text: String,
    },
    /// More of the model's reasoning.
    ReasoningDelta {
        /// The new text.
        text: String,
    },
    /// More of the notes that a model writes for a summary, as JSON.
    SummaryDelta {
        /// The new text.
        text: String,
    },
    /// The model is writing a call.
    ToolCallDelta {
        /// The position of the call in the answer, from 0.
        index: usize,
        /// The tool's name.
        name: String,
        /// How many bytes of arguments were added.
        bytes: u64,
    },
    /// More output of a running command.
    ToolOutputDelta {
        /// The call.
        call_id: String,
        /// The new output.
        #[serde(flatten)]
        printed: Printed,
    },
    /// The Session's status changed.
    Status {
        /// The new status.
        status: Status,
    },
    /// The preview of a call is ready; the gate judges the call next.
    CallPrepared {
        /// The call.
        call_id: String,
        /// What the call is about, with resolved paths.
        info: Box<CallInfo>,
        /// What the call would do.
        #[serde(rename = "plan")]
        preview: Box<Preview>,
    },
    /// How MCP servers are: something changed, or the user requested it.
    McpChanged {
        /// All of them, by name.
        servers: Vec<crate::servers::ServerState>,
    },
    /// The rules that hold in this Session, as the user requested.
    RulesListed {
        /// In the order in which they were made.
        rules: Vec<crate::rule::SavedRule>,
        /// What could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
    },
    /// The user is asked whether what the workspace brings along is to be in force, or wants to see it.
    TrustAsked(Contributions),
    /// A call waits for the user's decision.
    ApprovalRequested(Approval),
    /// A form with the model's questions waits for the user's answers.
    #[serde(rename = "question_asked")]
    FormOpened(Form),
    /// A child Session changed: at most ten times a second for each, and at once when it begins, asks or ends.
    AgentChanged(Box<AgentState>),
    /// Something that a child asked the user is no longer open.
    AnswerTaken {
        /// The child's call that asked.
        call_id: String,
        /// The child.
        agent: Asker,
    },
    /// A background job began or ended.
    JobsChanged {
        /// All jobs of the Session, oldest first.
        jobs: Vec<JobState>,
    },
    /// The queue changed.
    QueueChanged {
        /// Messages that join the running Turn.
        steer: Vec<String>,
        /// Messages that start the next Turns, one each.
        follow_up: Vec<String>,
    },
    /// A message has left the queue.
    QueueLeft {
        /// Its number, as the answer to its Input gave it.
        id: u64,
        /// What became of it.
        #[serde(flatten)]
        to: QueueExit,
    },
    /// The Turn of an agent waits for something that no user is asked about.
    TurnWaits {
        /// What it waits for; absent when it goes on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<WaitsOn>,
    },
    /// A request failed and is sent again.
    RetryScheduled {
        /// The next attempt, from 2.
        attempt: u32,
        /// The most attempts; absent where only the time limits them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<u32>,
        /// Milliseconds until the next attempt.
        wait_ms: u64,
        /// Milliseconds of patience that are left after the wait; absent where the number of attempts is the limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_ms: Option<u64>,
        /// Why the last attempt failed.
        reason: String,
    },
    /// The preview of a compaction; nothing was written.
    #[serde(rename = "compaction_planned")]
    CompactionPreviewed(Box<CompactionPreview>),
    /// What fills the window of the next request, as the user requested.
    ContextListed(Box<ContextReport>),
    /// The preview of a restore; no file was touched.
    #[serde(rename = "restore_planned")]
    RestorePreviewed(RestorePreview),
    /// The Session was forked.
    SessionForked {
        /// The id of the new Session.
        session_id: String,
    },
    /// The Session refused an Input, or could not complete an accepted one.
    Refused(Refusal),
    /// A Turn is over, and the Log has no `turn_ended` of it, because the Log could not be written. The next start of the
    /// Session, or its next Turn, records the end.
    TurnAbandoned {
        /// The Turn.
        turn: u32,
        /// Why the Log could not be written.
        error: Box<ErrorBody>,
    },
    /// Information for the user that needs no answer.
    Notice {
        /// How important it is.
        severity: Severity,
        /// The code of the notice, for programs.
        code: String,
        /// The text, for the user.
        message: String,
        /// What to do about it, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<Remedy>,
    },
}

/// Why the Session refused an Input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// The Input, as [`Input::name`](crate::input::Input::name) gives it.
    pub input: String,
    /// Why.
    #[serde(flatten)]
    pub error: ErrorBody,
}

impl Live {
    /// The names of all live events.
    pub const KINDS: &'static [&'static str] = &[
        "text_delta",
        "reasoning_delta",
        "summary_delta",
        "tool_call_delta",
        "tool_output_delta",
        "status",
        "call_prepared",
        "mcp_changed",
        "rules_listed",
        "trust_asked",
        "approval_requested",
        "question_asked",
        "agent_changed",
        "answer_taken",
        "jobs_changed",
        "queue_changed",
        "queue_left",
        "turn_waits",
        "retry_scheduled",
        "compaction_planned",
        "context_listed",
        "restore_planned",
        "session_forked",
        "refused",
        "turn_abandoned",
        "notice",
    ];
}

/// How a message left the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum QueueExit {
    /// It has begun a Turn, or joined one.
    Delivered {
        /// That Turn.
        turn: u32,
    },
    /// The Session could not take it.
    Refused {
        /// As the user typed it.
        text: String,
        /// Why.
        error: Box<ErrorBody>,
    },
    /// The user took it back, or interrupted the Turn that it waited for.
    TakenBack,
}

/// What the Turn of an agent waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum WaitsOn {
    /// Another agent changes the same files.
    Lease {
        /// That agent, or the main session.
        holder: String,
    },
    /// The Provider asked for a pause.
    Rate {
        /// Milliseconds until it is over.
        wait_ms: u64,
    },
    /// As many requests of agents are on their way to the Provider as may be at the same time.
    Requests {
        /// The Provider.
        provider: String,
        /// The agents whose requests those are.
        holders: Vec<String>,
    },
    /// The tokens that the agents of the Turn share are used up, and the user is asked for more.
    Budget {
        /// The tokens that are used.
        used: u64,
        /// The most that may be used.
        most: u64,
    },
    /// As many agents run as may run at the same time.
    Place,
}

/// What the Session is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing runs; a prompt starts a Turn.
    #[default]
    Idle,
    /// The Session waits for the model, or receives its answer.
    Thinking,
    /// The model writes the summary of a compaction.
    Compacting,
    /// Tools run, or files are restored.
    Working,
    /// The Session waits for the user's decision or answers.
    Asking,
}

impl Status {
    /// Something runs that needs nothing from the user.
    pub fn is_busy(self) -> bool {
        matches!(self, Status::Thinking | Status::Compacting | Status::Working)
    }
}

/// The importance of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// For information.
    Info,
    /// The user may have to act.
    Warning,
}

#[cfg(test)]
mod tests {
    use super::Live;

    /// Broken build: an event that is missing in the list. `pixir schema` then does not name it.
    #[test]
    fn the_list_of_live_events_is_complete() {
        let error = serde_json::from_str::<Live>(r#"{"type":"hologram"}"#).expect_err("no such event").to_string();
        let expected = error.split_once("expected one of ").expect("the names that serde knows").1;
        let names: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
        assert_eq!(names, Live::KINDS);
    }
}
