//! The most of one answer that is accepted.

use std::collections::BTreeMap;

use super::{Answer, AnswerPart, Chunk};
use protocol::error::{Code, Error, Result};

/// The longest text of an answer, and the longest reasoning, bytes.
pub(super) const MAX_TEXT: usize = 8 << 20;
/// The longest arguments of one call, bytes.
pub(super) const MAX_ARGS: usize = 1 << 20;
/// The most calls of an answer.
pub(super) const MAX_CALLS: usize = 128;
/// The most bytes of events that add nothing to the answer: they repeat finished parts, up to four times.
const MAX_SILENT: usize = 64 << 20;

/// The size of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Extent {
    text: usize,
    reasoning: usize,
    args: BTreeMap<usize, usize>,
    silent: usize,
}

impl Extent {
    /// Adds a chunk.
    ///
    /// # Errors
    /// `ANSWER_TOO_LARGE`.
    pub(super) fn add(&mut self, chunk: &Chunk) -> Result<()> {
        match chunk {
            Chunk::Text(text) => {
                self.text += text.len();
                within(self.text, MAX_TEXT, || text_is(MAX_TEXT))
            }
            Chunk::Reasoning(text) => {
                self.reasoning += text.len();
                within(self.reasoning, MAX_TEXT, || format!("has more than {} MiB of reasoning", MAX_TEXT >> 20))
            }
            Chunk::Call { index, args, .. } => {
                let size = self.args.entry(*index).or_default();
                *size += args.len();
                within(*size, MAX_ARGS, args_are)?;
                within(self.args.len(), MAX_CALLS, calls_are)
            }
        }
    }

    /// Adds an event that had no chunk.
    ///
    /// # Errors
    /// `ANSWER_TOO_LARGE`.
    pub(super) fn add_silent(&mut self, bytes: usize) -> Result<()> {
        self.silent += bytes;
        within(self.silent, MAX_SILENT, || format!("is longer than {} MiB", MAX_SILENT >> 20))
    }
}

/// Checks a whole answer: some servers send parts that they never streamed.
///
/// # Errors
/// `ANSWER_TOO_LARGE`.
pub(super) fn check(answer: &Answer) -> Result<()> {
    let (mut text, mut calls) = (0, 0);
    for part in &answer.parts {
        match part {
            AnswerPart::Text { text: more, .. } => {
                text += more.len();
                within(text, MAX_TEXT, || text_is(MAX_TEXT))?;
            }
            AnswerPart::Reasoning { text, .. } => within(text.len(), MAX_TEXT, || text_is(MAX_TEXT))?,
            AnswerPart::Call(call) => {
                calls += 1;
                within(calls, MAX_CALLS, calls_are)?;
                within(length(&call.args), MAX_ARGS, args_are)?;
            }
        }
    }
    Ok(())
}

/// Bytes of the texts of some arguments.
fn length(args: &serde_json::Value) -> usize {
    use serde_json::Value;
    match args {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(length).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + length(value)).sum(),
    }
}

fn text_is(most: usize) -> String {
    format!("has more than {} MiB of text", most >> 20)
}

fn args_are() -> String {
    format!("has a call with more than {} MiB of arguments", MAX_ARGS >> 20)
}

fn calls_are() -> String {
    format!("has more than {MAX_CALLS} calls")
}

fn within(size: usize, most: usize, what: impl FnOnce() -> String) -> Result<()> {
    if size <= most {
        return Ok(());
    }
    let message = format!("the answer {}; pixir ended it and ran none of its calls", what());
    Err(Error::new(Code::AnswerTooLarge, message, "request less at once, for example one file or one part"))
}
