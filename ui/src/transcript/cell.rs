//! Cells: one entry, or a part of one, as the user reads it.

use std::sync::Arc;

use pixir_core::RunView;
use pixir_core::call_info::CallKind;
use pixir_core::error::ErrorBody;
use pixir_core::event::{Severity, ToolCall, ToolResult, TurnStatus};
use pixir_core::{Entry, Fact};

use crate::render::split::Part;
use crate::render::thinking::Growing;

/// One entry of the conversation, or a part of it.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    /// An entry of the Log, shared, so that a long Session is in memory once.
    Recorded(Arc<Entry>),
    /// A part of a long message.
    Part(Arc<Entry>, Box<Part>),
    /// A finished part of the streaming answer.
    Drafted(Box<Part>),
    /// The part of the streaming answer that still grows.
    Tail,
    /// Reasoning that was recorded in several entries.
    Thoughts(Vec<Arc<Entry>>),
    /// Reasoning that is streaming in, or that no entry repeats.
    Thinking(Box<Thinking>),
    Tool(Box<Tool>),
    /// A run of a workflow, from where it began or went on.
    Workflow(Box<WorkflowCard>),
    Error(Box<ErrorBody>),
    Notice(Severity, Box<str>),
    /// The content was withdrawn. The cell stays, so that no index moves.
    Gone,
}

impl Cell {
    /// The number of the answer's entry, if the cell shows one, whole or in part.
    pub(super) fn answer(&self) -> Option<u64> {
        match self {
            Cell::Recorded(entry) | Cell::Part(entry, _) => {
                matches!(entry.fact, Fact::AssistantMessage(_)).then_some(entry.seq)
            }
            Cell::Drafted(_)
            | Cell::Tail
            | Cell::Thoughts(_)
            | Cell::Thinking(_)
            | Cell::Tool(_)
            | Cell::Workflow(_)
            | Cell::Error(_)
            | Cell::Notice(..)
            | Cell::Gone => None,
        }
    }

    /// It is the line below a Turn that has completed.
    pub(crate) fn is_footer(&self) -> bool {
        match self {
            Cell::Recorded(entry) => {
                matches!(&entry.fact, Fact::TurnEnded(it) if it.status == TurnStatus::Completed)
            }
            Cell::Part(..)
            | Cell::Drafted(_)
            | Cell::Tail
            | Cell::Thoughts(_)
            | Cell::Thinking(_)
            | Cell::Tool(_)
            | Cell::Workflow(_)
            | Cell::Error(_)
            | Cell::Notice(..)
            | Cell::Gone => false,
        }
    }

    /// The text of the message that the cell shows, whole or in part, and whether the message starts in this cell.
    pub(crate) fn message(&self) -> Option<(&str, bool)> {
        let (entry, is_begin) = match self {
            Cell::Recorded(entry) => (entry, true),
            Cell::Part(entry, part) => (entry, part.range.start == 0),
            _ => return None,
        };
        match &entry.fact {
            Fact::UserMessage(it) => Some((&it.text, is_begin)),
            Fact::AssistantMessage(it) => Some((&it.text, is_begin)),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Thinking {
    pub(crate) text: String,
    pub(crate) is_live: bool,
    pub(super) in_full: Growing,
}

/// A run of a workflow as far as it is known.
#[derive(Debug, Clone)]
pub(crate) struct WorkflowCard {
    /// Where it began or went on.
    pub(super) entry: Arc<Entry>,
    pub(super) view: RunView,
    /// It was begun further up.
    pub(super) goes_on: bool,
}

/// A tool call with its result.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(super) call: Arc<Entry>,
    /// For a command of the user: its call, under the name `!`, or `!!` if the model does not see it.
    by_user: Option<Box<ToolCall>>,
    pub(super) result: Option<Arc<Entry>>,
    /// When the user allowed it, in milliseconds since 1970.
    pub(super) allowed: Option<i64>,
    pub(crate) refused: bool,
    /// Who refused it, and with what words.
    pub(super) refusal: Option<Box<str>>,
    /// The user's decision, if there was an approval.
    pub(crate) answer: Option<&'static str>,
    /// What it waits for before it can run.
    pub(crate) waits: Option<WaitsFor>,
}

/// What a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// The user's decision.
    User,
    /// A call of the same answer that comes before it.
    Call,
}

impl Tool {
    pub(super) fn new(entry: &Arc<Entry>) -> Tool {
        let by_user = match &entry.fact {
            Fact::UserCommand(it) => Some(Box::new(it.as_call())),
            _ => None,
        };
        Tool {
            call: Arc::clone(entry),
            by_user,
            result: None,
            allowed: None,
            refused: false,
            refusal: None,
            answer: None,
            waits: None,
        }
    }

    pub(crate) fn call(&self) -> &ToolCall {
        match (&self.by_user, &self.call.fact) {
            (Some(it), _) => it,
            (None, Fact::ToolCall(it)) => it,
            (None, other) => unreachable!("a tool's cell is made of a call, not of {}", other.kind()),
        }
    }

    /// It is a command of the user, and not of the model.
    pub(crate) fn is_by_user(&self) -> bool {
        self.by_user.is_some()
    }

    pub(crate) fn result(&self) -> Option<&ToolResult> {
        match &self.result.as_ref()?.fact {
            Fact::ToolResult(it) => Some(it),
            _ => None,
        }
    }

    /// It is a command line, and not a tool with arguments.
    pub(crate) fn is_command(&self) -> bool {
        self.call().about().kind == CallKind::Execute
    }

    /// It updates the plan, and has not failed.
    pub(crate) fn is_plan_without_fault(&self) -> bool {
        self.call().about().kind == CallKind::Plan && !self.refused && self.result().is_none_or(|it| it.ok)
    }

    /// Who refused it, and with what words, for the user.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// The entries of the call and its result.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        std::iter::once(&self.call).chain(&self.result)
    }

    /// The number of the result's entry.
    pub(crate) fn result_seq(&self) -> Option<u64> {
        self.result.as_ref().map(|entry| entry.seq)
    }

    /// When it began to run, in milliseconds since 1970. The wait for an approval does not count.
    pub(crate) fn began(&self) -> i64 {
        self.allowed.unwrap_or_else(|| self.call.ts.as_millisecond())
    }
}

/// A kind of cell that the user can jump to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Prompt,
    Error,
    Change,
    Compaction,
}

pub(crate) const MARKS: [Mark; 4] = [Mark::Prompt, Mark::Error, Mark::Change, Mark::Compaction];

/// Which way to look for the next cell or hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Back,
    Forward,
}
