//! A workflow that was read: its steps as they are declared.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::expression::Expression;
use super::template::{Path, Template};
use protocol::event::Isolation;

/// A workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    pub name: String,
    pub description: String,
    pub params: Vec<Param>,
    pub limits: RunLimits,
    pub steps: Vec<Step>,
    pub output: Option<Template>,
    /// The line of `output`.
    pub(crate) output_line: usize,
}

/// A value that the user gives to a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    pub name: String,
    pub kind: ParamKind,
    pub(crate) is_required: bool,
    pub default: Option<Value>,
    pub choices: Vec<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    Text,
    Number,
    Truth,
    List,
}

impl ParamKind {
    pub const ALL: [ParamKind; 4] = [ParamKind::Text, ParamKind::Number, ParamKind::Truth, ParamKind::List];

    pub const fn name(self) -> &'static str {
        match self {
            ParamKind::Text => "string",
            ParamKind::Number => "number",
            ParamKind::Truth => "boolean",
            ParamKind::List => "list",
        }
    }

    pub fn fits(self, value: &Value) -> bool {
        match self {
            ParamKind::Text => value.is_string(),
            ParamKind::Number => value.is_number(),
            ParamKind::Truth => value.is_boolean(),
            ParamKind::List => value.is_array(),
        }
    }
}

/// Limits of a run, as far as the file has any.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunLimits {
    /// The most steps that run at the same time.
    pub(crate) concurrency: Option<usize>,
    /// The longest time, in seconds.
    pub seconds: Option<u64>,
    /// The most tokens of all agents.
    pub tokens: Option<u64>,
    /// The most US dollars of all agents.
    pub cost: Option<f64>,
    /// After so many failed steps no other is started.
    pub failures: Option<usize>,
}

impl RunLimits {
    /// The most steps of a run that go on at the same time.
    pub fn places(&self) -> usize {
        self.concurrency.unwrap_or(8)
    }

    /// The longest time of a run, in seconds.
    pub fn most_seconds(&self) -> u64 {
        self.seconds.unwrap_or(3_600)
    }
}

/// A step as it is declared.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub id: String,
    /// The line of the file.
    pub line: usize,
    /// The lines of its keys.
    pub lines: BTreeMap<String, usize>,
    pub needs: Vec<String>,
    pub when: Option<Expression>,
    pub seconds: Option<u64>,
    pub work: Work,
    pub each: Option<Each>,
    /// The most items of `each`.
    pub max: usize,
    pub checks: Vec<Vec<Template>>,
    pub retry: Option<Retry>,
    pub repeat: Option<Repeat>,
    pub(crate) on_fail: OnFail,
    /// What the step was in the file: part of its key.
    pub source: Map<String, Value>,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    Agent(Agent),
    Command {
        argv: Vec<Template>,
        is_idempotent: bool,
    },
    Gate {
        ask: Template,
        choices: Vec<String>,
    },
    /// Another workflow, in place of the step.
    Workflow {
        name: String,
        params: Vec<(String, ParamValue)>,
    },
    /// The end of another workflow, whose steps it waits for.
    Join {
        output: Option<Template>,
    },
}

/// The value of a parameter of another workflow.
#[derive(Debug, Clone, PartialEq)]
pub enum ParamValue {
    Value(Value),
    Template(Template),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    pub task: Template,
    pub role: String,
    pub schema: Option<Value>,
    pub isolation: Option<Isolation>,
    /// Globs of the files that it reads; for the reader of the file only.
    pub reads: Vec<String>,
    /// Globs of the only files that it changes; none means that it changes nothing.
    pub writes: Option<Vec<String>>,
}

/// Where the items of a step come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Each {
    /// A list.
    List(Path),
    /// The items of another step, each as soon as it is done there.
    Follows(String),
}

/// When a step that failed is tried again.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    pub times: u32,
    /// Names of error codes.
    pub on: Vec<String>,
}

/// A step that runs until a condition holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeat {
    /// `None`: until a round completes.
    pub until: Option<Expression>,
    pub max: u32,
}

/// What happens to the rest when a step fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum OnFail {
    /// What needs it is held; the rest runs.
    #[default]
    Hold,
    /// What needs it runs as if it were done.
    Continue,
    /// No other step is started.
    Stop,
}

impl OnFail {
    pub(crate) const ALL: [OnFail; 3] = [OnFail::Hold, OnFail::Continue, OnFail::Stop];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            OnFail::Hold => "hold",
            OnFail::Continue => "continue",
            OnFail::Stop => "stop",
        }
    }
}

impl Step {
    /// The line of a key; that of the step where it has none of its own.
    pub fn line_of(&self, key: &str) -> usize {
        self.lines.get(key).copied().unwrap_or(self.line)
    }

    /// All templates of the step, each with its key.
    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let mut all: Vec<(&str, &Template)> = match &self.work {
            Work::Agent(agent) => vec![("task", &agent.task)],
            Work::Command { argv, .. } => argv.iter().map(|it| ("argv", it)).collect(),
            Work::Gate { ask, .. } => vec![("ask", ask)],
            Work::Workflow { params, .. } => params
                .iter()
                .filter_map(|(_, value)| match value {
                    ParamValue::Template(template) => Some(("params", template)),
                    ParamValue::Value(_) => None,
                })
                .collect(),
            Work::Join { output } => output.iter().map(|it| ("use", it)).collect(),
        };
        all.extend(self.checks.iter().flatten().map(|it| ("check", it)));
        all
    }

    /// All paths that the step reads, each with its key.
    pub fn paths(&self) -> Vec<(&'static str, &Path)> {
        let of = |key: &'static str| move |path| (key, path);
        let templates = self.templates().into_iter();
        let mut all: Vec<(&str, &Path)> = templates.flat_map(|(key, it)| it.paths().map(of(key))).collect();
        all.extend(self.when.iter().flat_map(Expression::paths).map(of("when")));
        all.extend(self.repeat.iter().filter_map(|it| it.until.as_ref()).flat_map(Expression::paths).map(of("repeat")));
        if let Some(Each::List(path)) = &self.each {
            all.push(("each", path));
        }
        all
    }

    /// The steps that it waits for: those it names, and the one whose items it follows.
    pub(crate) fn all_needs(&self) -> impl Iterator<Item = &str> {
        let followed = match &self.each {
            Some(Each::Follows(id)) => Some(id.as_str()),
            Some(Each::List(_)) | None => None,
        };
        self.needs.iter().map(String::as_str).chain(followed.filter(|id| !self.needs.iter().any(|it| it == id)))
    }

    pub const fn kind(&self) -> &'static str {
        match self.work {
            Work::Agent(_) => "agent",
            Work::Command { .. } => "command",
            Work::Gate { .. } => "gate",
            Work::Workflow { .. } | Work::Join { .. } => "workflow",
        }
    }
}
