//! What happens in a run of a workflow, as the Log of its Session tells it: the journal that a resume reads.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ChangeKind, Cost, Denial, FileChange, Usage};
use crate::error::ErrorBody;
use crate::event::headline::Headline;
use crate::event::open::{self, Understood};

/// One event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum WorkflowEvent {
    /// The run begins, or goes on with an edited graph. The file may change from here on; the run does not.
    Planned(Box<Planned>),
    /// A step, or one item of it, begins. This is on the disk before it has any effect.
    StepStarted(Box<StepStarted>),
    /// A step, or one item of it, has ended.
    StepEnded(Box<StepEnded>),
    /// The user has answered a gate.
    GateAnswered {
        /// The step.
        id: String,
        /// The key of the question.
        key: String,
        /// The answer.
        choice: String,
    },
    /// A step does not run, or waits for the user.
    Held(Box<Held>),
    /// The run goes on after it had ended.
    Resumed(Box<Resumed>),
    /// Files that are not as the steps left them that had ended, because others were cut off.
    ChangedSince(Box<ChangedSince>),
}

/// The graph of a run and its parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Planned {
    /// The name of the workflow.
    pub name: String,
    /// The workflow.
    pub graph: Value,
    /// The workflows that it uses, by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub uses: Map<String, Value>,
    /// 32 hex digits of the BLAKE3 hash of both.
    pub hash: String,
    /// The values of its parameters.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// Only this step and what it waits for run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The most US dollars that its agents can cost; absent where the price of a model is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_cost: Option<f64>,
}

/// A step that begins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepStarted {
    /// The step, with `.N` for the N-th item.
    pub id: String,
    /// What its result belongs to: a hash of what it does and of the results that it depends on.
    pub key: String,
    /// The item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Value>,
    /// Counts from 1.
    pub attempt: u32,
    /// The Session of its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The name of its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// It did what it was to do, its checks passed, and its changes are in the workspace.
    Completed,
    /// It did not.
    #[default]
    Failed,
    /// It took longer than its time limit.
    TimedOut,
    /// It was stopped.
    Interrupted,
    /// A limit ended it before it finished; what it put out is kept.
    Incomplete,
    /// It did not run, because something that it needs did not complete or because it may not.
    Held,
    /// Its condition does not hold, or the user skips it.
    Skipped,
    /// It waits for the user.
    Waiting,
}

impl StepOutcome {
    /// All of them.
    pub const ALL: [StepOutcome; 8] = [
        StepOutcome::Completed,
        StepOutcome::Failed,
        StepOutcome::TimedOut,
        StepOutcome::Interrupted,
        StepOutcome::Incomplete,
        StepOutcome::Held,
        StepOutcome::Skipped,
        StepOutcome::Waiting,
    ];

    /// The name on the wire and in lists.
    pub const fn name(self) -> &'static str {
        match self {
            StepOutcome::Completed => "completed",
            StepOutcome::Failed => "failed",
            StepOutcome::TimedOut => "timed_out",
            StepOutcome::Interrupted => "interrupted",
            StepOutcome::Incomplete => "incomplete",
            StepOutcome::Held => "held",
            StepOutcome::Skipped => "skipped",
            StepOutcome::Waiting => "waiting",
        }
    }

    /// Its sign in lists.
    const fn mark(self) -> &'static str {
        match self {
            StepOutcome::Completed => "✓",
            StepOutcome::Skipped => "–",
            StepOutcome::Waiting => "?",
            StepOutcome::Held => "‖",
            StepOutcome::Failed | StepOutcome::TimedOut | StepOutcome::Interrupted | StepOutcome::Incomplete => "✗",
        }
    }

    /// Whether it ran and did not do what it was to do.
    pub const fn is_failure(self) -> bool {
        matches!(self, StepOutcome::Failed | StepOutcome::TimedOut | StepOutcome::Incomplete)
    }

    /// How a step with items ended, whose items ended so; `None` where it has none.
    pub fn together(items: impl IntoIterator<Item = StepOutcome>) -> Option<StepOutcome> {
        let weight = |it: StepOutcome| match it {
            StepOutcome::Interrupted => 5,
            StepOutcome::Failed | StepOutcome::TimedOut | StepOutcome::Incomplete => 4,
            StepOutcome::Waiting => 3,
            StepOutcome::Held => 2,
            StepOutcome::Completed => 1,
            StepOutcome::Skipped => 0,
        };
        let worst = items.into_iter().max_by_key(|it| weight(*it))?;
        Some(if worst.is_failure() { StepOutcome::Failed } else { worst })
    }

    /// Whether what needs it may run.
    pub const fn is_done(self) -> bool {
        matches!(self, StepOutcome::Completed | StepOutcome::Skipped)
    }
}

/// The end of a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepEnded {
    /// The step, with `.N` for the N-th item.
    pub id: String,
    /// What the result belongs to.
    pub key: String,
    /// How it ended.
    pub status: StepOutcome,
    /// What it put out, if that is short.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
    /// The blob of what it put out, as JSON, if that is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_blob: Option<String>,
    /// The exit code of its command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The end of what its command wrote to stderr, if it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// The commands that checked it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckRan>,
    /// Tokens of its requests.
    #[serde(default)]
    pub usage: Usage,
    /// Cost of its requests.
    #[serde(default)]
    pub cost: Cost,
    /// Files of the workspace as it left them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<LeftBehind>,
    /// The Session of its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Wall-clock milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// Calls of its agent that were not permitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
}

/// A file as a step left it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftBehind {
    /// The path, relative to the workspace.
    pub path: String,
    /// The blob of its bytes; absent for a deleted file, and if the bytes were not captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// It deleted the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

impl From<&FileChange> for LeftBehind {
    fn from(it: &FileChange) -> LeftBehind {
        let deleted = it.kind == ChangeKind::Deleted;
        LeftBehind { path: it.path.clone(), blob: it.after_blob.clone(), deleted }
    }
}

/// A command that checked a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckRan {
    /// The command.
    pub command: String,
    /// Its exit code; absent if it did not run to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The end of its output, if it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// A step that does not run now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    /// The step, with `.N` for the N-th item.
    pub id: String,
    /// `held`, or `waiting` for the user.
    pub status: StepOutcome,
    /// The step, or `permissions`, `limit`, `user`, that holds it.
    pub by: String,
    /// Why.
    pub why: String,
    /// What its result would belong to, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The question of a gate, and its choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
    /// What its command did, where only its checks are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<Box<StepEnded>>,
    /// What it came to, where some of its work was refused: its result if the user takes it as done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Box<StepEnded>>,
    /// Its calls that were not permitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
}

/// The question of a gate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ask {
    /// The question.
    pub question: String,
    /// The answers.
    pub choices: Vec<String>,
}

/// What the user decided when a run goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    /// Steps that run again, whatever is known of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rerun: Vec<String>,
    /// Steps that do not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<String>,
    /// Steps that count as done, as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
    /// Answers of gates, by step.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub answers: Map<String, Value>,
}

/// What a resume finds of steps that were cut off: it is unknown what they did, so these files count as the first of them left
/// them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedSince {
    /// The steps that were cut off, with `.N` for the N-th item.
    pub steps: Vec<String>,
    /// The files as they are now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<LeftBehind>,
}

impl WorkflowEvent {
    /// Reads an event. One that only a newer build knows makes the whole Entry unknown.
    pub(super) fn read(text: &str) -> serde_json::Result<(WorkflowEvent, Understood)> {
        #[derive(Deserialize)]
        struct GateAnswered {
            id: String,
            key: String,
            choice: String,
        }
        match open::tag(text)?.as_str() {
            "planned" => open::step(text, WorkflowEvent::Planned),
            "step_started" => open::step(text, WorkflowEvent::StepStarted),
            "step_ended" => open::step(text, WorkflowEvent::StepEnded),
            "gate_answered" => open::step(text, |it: GateAnswered| {
                let GateAnswered { id, key, choice } = it;
                WorkflowEvent::GateAnswered { id, key, choice }
            }),
            "held" => open::step(text, WorkflowEvent::Held),
            "resumed" => open::step(text, WorkflowEvent::Resumed),
            "changed_since" => open::step(text, WorkflowEvent::ChangedSince),
            _ => Err(serde_json::Error::custom("an event of a newer build")),
        }
    }

    /// The step that it is about.
    pub fn step(&self) -> Option<&str> {
        match self {
            WorkflowEvent::Planned(_) | WorkflowEvent::Resumed(_) | WorkflowEvent::ChangedSince(_) => None,
            WorkflowEvent::StepStarted(it) => Some(&it.id),
            WorkflowEvent::StepEnded(it) => Some(&it.id),
            WorkflowEvent::GateAnswered { id, .. } => Some(id),
            WorkflowEvent::Held(it) => Some(&it.id),
        }
    }

    /// It in one line.
    pub fn headline(&self) -> Headline {
        match self {
            WorkflowEvent::Planned(it) => Headline::new(format!("workflow {}", it.name)),
            WorkflowEvent::Resumed(_) => Headline::new("the workflow continues"),
            WorkflowEvent::ChangedSince(it) => {
                let paths: Vec<&str> = it.files.iter().map(|left| left.path.as_str()).collect();
                Headline::new(format!("cut off: {}", it.steps.join(", "))).with(paths.join(", "))
            }
            WorkflowEvent::StepStarted(it) => Headline::new(&it.id).marked("▸"),
            WorkflowEvent::StepEnded(it) => {
                let why = it.error.as_ref().map_or("", |error| error.message.as_str());
                Headline::new(format!("{} {}", it.id, it.status.name())).with(why).marked(it.status.mark())
            }
            WorkflowEvent::GateAnswered { id, choice, .. } => Headline::new(id).with(choice),
            WorkflowEvent::Held(it) => {
                let title = format!("{} {} by {}", it.id, it.status.name(), it.by);
                Headline::new(title).with(&it.why).marked(it.status.mark())
            }
        }
    }

    /// Whether the run begins or goes on with it.
    pub const fn begins(&self) -> bool {
        matches!(self, WorkflowEvent::Planned(_) | WorkflowEvent::Resumed(_))
    }
}
