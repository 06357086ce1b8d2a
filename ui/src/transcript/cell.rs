//! One thing that happened, as it is read.

use std::sync::Arc;

use pixir_core::error::ErrorBody;
use pixir_core::event::{Entry, Fact, Severity, ToolCall, ToolResult};

use crate::render::split::Part;
use crate::render::thinking::Growing;

/// One thing that happened.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    /// What is in the Log, by reference: a long Session is in memory once.
    Recorded(Arc<Entry>),
    /// A part of a long message.
    Part(Arc<Entry>, Box<Part>),
    /// A part of the draft.
    Drafted(Box<Part>),
    /// What is not settled of the draft.
    Tail,
    /// Thinking that was recorded in several entries.
    Thoughts(Vec<Arc<Entry>>),
    /// Thinking that no entry repeats, or that is still going on.
    Thinking(Box<Thinking>),
    Tool(Tool),
    Error(Box<ErrorBody>),
    Notice(Severity, Box<str>),
    /// What stood here was taken back.
    Gone,
}

impl Cell {
    /// The message of which it is all or a part, and whether that is its begin.
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

/// A tool call and what came of it.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(super) call: Arc<Entry>,
    /// It is a command of the person, as a call of the tool `!`, or of `!!` when no model reads it.
    by_user: Option<Box<ToolCall>>,
    pub(super) result: Option<Arc<Entry>>,
    /// When it was allowed, milliseconds since 1970, where somebody was asked.
    pub(super) allowed: Option<i64>,
    pub(crate) refused: bool,
    /// What the person answered, where somebody was asked.
    pub(crate) answer: Option<&'static str>,
}

impl Tool {
    pub(super) fn new(entry: &Arc<Entry>) -> Tool {
        let by_user = match &entry.fact {
            Fact::UserCommand(it) => Some(Box::new(it.as_call())),
            _ => None,
        };
        Tool { call: Arc::clone(entry), by_user, result: None, allowed: None, refused: false, answer: None }
    }

    pub(crate) fn call(&self) -> &ToolCall {
        match (&self.by_user, &self.call.fact) {
            (Some(it), _) => it,
            (None, Fact::ToolCall(it)) => it,
            (None, other) => unreachable!("a tool's cell is made of a call, not of {}", other.kind()),
        }
    }

    /// A command of the person, and not the model's.
    pub(crate) fn is_by_user(&self) -> bool {
        self.by_user.is_some()
    }

    pub(crate) fn result(&self) -> Option<&ToolResult> {
        match &self.result.as_ref()?.fact {
            Fact::ToolResult(it) => Some(it),
            _ => None,
        }
    }

    /// A command line, and not a tool with arguments.
    pub(crate) fn is_command(&self) -> bool {
        self.is_by_user() || matches!(self.call().name.as_str(), "bash" | "run")
    }

    /// The call, and its result.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        std::iter::once(&self.call).chain(&self.result)
    }

    /// The number of its result's entry.
    pub(crate) fn result_seq(&self) -> Option<u64> {
        self.result.as_ref().map(|entry| entry.seq)
    }

    /// Since when it runs, milliseconds since 1970: waiting for an answer is none of that.
    pub(crate) fn began(&self) -> i64 {
        self.allowed.unwrap_or_else(|| self.call.ts.as_millisecond())
    }
}

/// What a cell is worth finding for.
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
