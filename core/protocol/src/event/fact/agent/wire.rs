//! How a step in the life of a child is read. serde reads a tagged enum through a buffer, and fields that a newer build has
//! added are not noticed behind it; this struct with the fields of all steps is read without one.

use serde::Deserialize;
use serde_json::Value;

use super::{
    Adoption, AgentContext, AgentEvent, AgentResult, AgentStatus, Evidence, Isolation, Spawned, Telling, ToldBy,
};
use crate::error::ErrorBody;
use crate::event::fact::{Cost, FileChange, LeftFile, Usage};

/// All fields that steps have.
#[derive(Deserialize)]
pub(super) struct Wire {
    /// Which step it is; it decides which of the other fields are there.
    event: Step,
    /// The child.
    name: String,
    /// `spawned`: the name of its role.
    #[serde(default)]
    role: String,
    /// `spawned`, `ended`: its Session id.
    #[serde(default)]
    session_id: String,
    /// `spawned`: the call that started it. `changed`: the call that changed files, in the Log of the child that made it.
    #[serde(default)]
    call_id: Option<String>,
    /// `spawned`: what it is to do.
    #[serde(default)]
    task: String,
    /// `spawned`: whether the call waits for its end.
    #[serde(default)]
    waits: bool,
    /// `spawned`: the hash of the role's file.
    #[serde(default)]
    role_digest: Option<String>,
    /// `spawned`: the JSON Schema of its report.
    #[serde(default)]
    schema: Option<Value>,
    /// `spawned`: globs of the files that it may change.
    #[serde(default)]
    writes: Option<Vec<String>>,
    /// `told`: who told it.
    #[serde(default)]
    by: Option<ToldBy>,
    /// `told`: when it reads the text.
    #[serde(default)]
    how: Telling,
    /// `told`: the text. `ended`: the last text of its answer. `reported`: what the model reads.
    #[serde(default)]
    text: String,
    /// `spawned`, `ended`: the files that it works on.
    #[serde(default)]
    isolation: Isolation,
    /// `spawned`: what it knows of the conversation.
    #[serde(default)]
    context: AgentContext,
    /// `spawned`: it is a run of a workflow.
    #[serde(default)]
    is_run: bool,
    /// `adopting`, `adopted`: the last Entry of the child's Log that was looked at.
    #[serde(default)]
    to_seq: u64,
    /// `adopting`, `adopted`: files that wait no more, and were not written.
    #[serde(default)]
    kept: Vec<String>,
    /// `adopting`, `adopted`: files that still wait for the user.
    #[serde(default)]
    left: Vec<LeftFile>,
    /// `ended`: what became of the files of its copy.
    #[serde(default)]
    adoption: Option<Box<Adoption>>,
    /// `spawned`, `ended`: what pixir has to say about the files that it works on.
    #[serde(default)]
    note: Option<String>,
    /// `changed`, `adopting`, `adopted`: the files. `ended`: what its changes come to.
    #[serde(default)]
    changes: Vec<FileChange>,
    /// `ended`: how the Turn ended.
    #[serde(default)]
    status: AgentStatus,
    /// `ended`: what it reported by the schema that it was given.
    #[serde(default)]
    data: Option<Value>,
    /// `ended`: the file with every text of the Turn.
    #[serde(default)]
    handle: Option<String>,
    /// `ended`: what it did.
    #[serde(default)]
    evidence: Evidence,
    /// `ended`: tokens of its requests.
    #[serde(default)]
    usage: Usage,
    /// `ended`: cost of its requests.
    #[serde(default)]
    cost: Cost,
    /// `ended`: wall-clock milliseconds.
    #[serde(default)]
    duration_ms: u64,
    /// `ended`: why it did not complete.
    #[serde(default)]
    error: Option<ErrorBody>,
    /// `ended`: found in its Log after pixir was killed.
    #[serde(default)]
    late: bool,
}

/// A step. One that only a newer build knows makes the whole Entry unknown.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    Spawned,
    Told,
    Changed,
    Ended,
    Reported,
    Resumed,
    Adopting,
    Adopted,
}

impl<'de> Deserialize<'de> for AgentEvent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<AgentEvent, D::Error> {
        Wire::deserialize(deserializer).map(AgentEvent::from)
    }
}

impl From<Wire> for AgentEvent {
    fn from(it: Wire) -> AgentEvent {
        let Wire { name, role, session_id, call_id, text, .. } = it;
        let adoption = |name, changes| Adoption { name, to_seq: it.to_seq, changes, kept: it.kept, left: it.left };
        match it.event {
            Step::Spawned => AgentEvent::Spawned(Box::new(Spawned {
                name,
                role,
                session_id,
                call_id,
                task: it.task,
                waits: it.waits,
                role_digest: it.role_digest,
                schema: it.schema,
                writes: it.writes,
                isolation: it.isolation,
                context: it.context,
                note: it.note,
                is_run: it.is_run,
            })),
            Step::Told => AgentEvent::Told { name, by: it.by.unwrap_or(ToldBy::Parent), how: it.how, text },
            Step::Changed => AgentEvent::Changed { name, call_id: call_id.unwrap_or_default(), changes: it.changes },
            Step::Ended => AgentEvent::Ended(Box::new(AgentResult {
                name,
                session_id,
                status: it.status,
                text,
                data: it.data,
                handle: it.handle,
                evidence: it.evidence,
                changes: it.changes,
                usage: it.usage,
                cost: it.cost,
                duration_ms: it.duration_ms,
                error: it.error,
                late: it.late,
                isolation: it.isolation,
                note: it.note,
                adoption: it.adoption,
            })),
            Step::Reported => AgentEvent::Reported { name, text },
            Step::Resumed => AgentEvent::Resumed { name },
            Step::Adopting => AgentEvent::Adopting(Box::new(adoption(name, it.changes))),
            Step::Adopted => AgentEvent::Adopted(Box::new(adoption(name, it.changes))),
        }
    }
}
