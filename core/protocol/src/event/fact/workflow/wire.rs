//! How an event of a run is read: a struct with the fields of all events, so that fields of a newer build are noticed.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Ask, CheckRan, Held, LeftBehind, Planned, Resumed, StepEnded, StepOutcome, StepStarted, WorkflowEvent};
use crate::error::ErrorBody;
use crate::event::fact::{Cost, Usage};

/// All fields that events have.
#[derive(Deserialize)]
pub(super) struct Wire {
    /// Which event it is; it decides which of the other fields are there.
    event: Kind,
    /// `planned`: the name of the workflow.
    #[serde(default)]
    name: String,
    /// `planned`: the workflow.
    #[serde(default)]
    graph: Value,
    /// `planned`: the workflows that it uses.
    #[serde(default)]
    uses: Map<String, Value>,
    /// `planned`: the hash of both.
    #[serde(default)]
    hash: String,
    /// `planned`: the values of its parameters.
    #[serde(default)]
    params: Map<String, Value>,
    /// `planned`: the last step that is wanted.
    #[serde(default)]
    until: Option<String>,
    /// `planned`: the most that its agents can cost.
    #[serde(default)]
    most_cost: Option<f64>,
    /// The step.
    #[serde(default)]
    id: String,
    /// What its result belongs to.
    #[serde(default)]
    key: Option<String>,
    /// `step_started`: the item.
    #[serde(default)]
    item: Option<Value>,
    /// `step_started`: counts from 1.
    #[serde(default)]
    attempt: u32,
    /// `step_started`, `step_ended`: the Session of its agent.
    #[serde(default)]
    session_id: Option<String>,
    /// `step_started`: the name of its agent.
    #[serde(default)]
    agent: Option<String>,
    /// `step_ended`, `held`: how it ended.
    #[serde(default)]
    status: StepOutcome,
    /// `step_ended`: what it put out.
    #[serde(default)]
    output: Value,
    /// `step_ended`: the blob of what it put out.
    #[serde(default)]
    output_blob: Option<String>,
    /// `step_ended`: the exit code of its command.
    #[serde(default)]
    exit_code: Option<i32>,
    /// `step_ended`: the end of what its command wrote to stderr.
    #[serde(default)]
    stderr: String,
    /// `step_ended`: the commands that checked it.
    #[serde(default)]
    checks: Vec<CheckRan>,
    /// `step_ended`: tokens of its requests.
    #[serde(default)]
    usage: Usage,
    /// `step_ended`: cost of its requests.
    #[serde(default)]
    cost: Cost,
    /// `step_ended`: files as it left them.
    #[serde(default)]
    changes: Vec<LeftBehind>,
    /// `step_ended`: wall-clock milliseconds.
    #[serde(default)]
    duration_ms: u64,
    /// `step_ended`: why it did not complete.
    #[serde(default)]
    error: Option<ErrorBody>,
    /// `gate_answered`: the answer.
    #[serde(default)]
    choice: String,
    /// `held`: what holds it.
    #[serde(default)]
    by: String,
    /// `held`: why.
    #[serde(default)]
    why: String,
    /// `held`: the question of a gate.
    #[serde(default)]
    ask: Option<Ask>,
    /// `held`: what its command did, where only its checks are left.
    #[serde(default)]
    unchecked: Option<Box<StepEnded>>,
    /// `resumed`: steps that run again.
    #[serde(default)]
    rerun: Vec<String>,
    /// `resumed`: steps that do not run.
    #[serde(default)]
    skip: Vec<String>,
    /// `resumed`: steps that count as done.
    #[serde(default)]
    done: Vec<String>,
    /// `resumed`: answers of gates.
    #[serde(default)]
    answers: Map<String, Value>,
}

/// An event. One that only a newer build knows makes the whole Entry unknown.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Planned,
    StepStarted,
    StepEnded,
    GateAnswered,
    Held,
    Resumed,
}

impl<'de> Deserialize<'de> for WorkflowEvent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<WorkflowEvent, D::Error> {
        Wire::deserialize(deserializer).map(WorkflowEvent::from)
    }
}

impl From<Wire> for WorkflowEvent {
    fn from(it: Wire) -> WorkflowEvent {
        let Wire { id, key, session_id, status, .. } = it;
        match it.event {
            Kind::Planned => WorkflowEvent::Planned(Box::new(Planned {
                name: it.name,
                graph: it.graph,
                uses: it.uses,
                hash: it.hash,
                params: it.params,
                until: it.until,
                most_cost: it.most_cost,
            })),
            Kind::StepStarted => WorkflowEvent::StepStarted(Box::new(StepStarted {
                id,
                key: key.unwrap_or_default(),
                item: it.item,
                attempt: it.attempt,
                session_id,
                agent: it.agent,
            })),
            Kind::StepEnded => WorkflowEvent::StepEnded(Box::new(StepEnded {
                id,
                key: key.unwrap_or_default(),
                status,
                output: it.output,
                output_blob: it.output_blob,
                exit_code: it.exit_code,
                stderr: it.stderr,
                checks: it.checks,
                usage: it.usage,
                cost: it.cost,
                changes: it.changes,
                session_id,
                duration_ms: it.duration_ms,
                error: it.error,
            })),
            Kind::GateAnswered => WorkflowEvent::GateAnswered { id, key: key.unwrap_or_default(), choice: it.choice },
            Kind::Held => WorkflowEvent::Held(Box::new(Held {
                id,
                status,
                by: it.by,
                why: it.why,
                key,
                ask: it.ask,
                unchecked: it.unchecked,
            })),
            Kind::Resumed => WorkflowEvent::Resumed(Box::new(Resumed {
                rerun: it.rerun,
                skip: it.skip,
                done: it.done,
                answers: it.answers,
            })),
        }
    }
}
