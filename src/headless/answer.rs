//! What a Turn answers and changes, collected from its entries.

use std::sync::Arc;

use pixir_core::changes::{self, FileDiff};
use pixir_core::event::{AgentEvent, TurnEnded, TurnStatus};
use pixir_core::{Blobs, Entry, Fact};

/// The answer of a Turn so far.
#[derive(Default)]
pub(crate) struct Answer {
    /// The model's text since the last tool call.
    pub(crate) text: String,
    /// The next text of the model goes on with it.
    is_open: bool,
    /// How the Turn ended.
    pub(crate) end: Option<TurnEnded>,
    /// Entries that say what changed: by the Turn's own calls, and by its agents.
    changed: Vec<Arc<Entry>>,
}

impl Answer {
    /// Takes what an entry says about the answer.
    pub(crate) fn take(&mut self, entry: &Arc<Entry>) {
        match &entry.fact {
            Fact::AssistantMessage(it) => {
                if self.is_open {
                    self.text = format!("{}\n\n{}", self.text, it.text);
                } else {
                    self.text.clone_from(&it.text);
                }
                // A partial text is the output only if no other follows.
                self.is_open = !it.partial;
            }
            Fact::ToolResult(_) | Fact::UserMessage(_) => self.is_open = false,
            // The output is what the model says after the report of the agent, not what it said before.
            Fact::AgentEvent(event) if matches!(**event, AgentEvent::Reported { .. }) => self.is_open = false,
            Fact::TurnEnded(it) => self.end = Some((**it).clone()),
            _ => {}
        }
        if !entry.fact.changes().is_empty() {
            self.changed.push(Arc::clone(entry));
        }
    }

    /// The Turn goes on with another answer.
    pub(crate) fn begin_again(&mut self) {
        (self.end, self.is_open) = (None, false);
    }

    /// Whether the Turn has come to its end by itself.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(&self.end, Some(TurnEnded { status: TurnStatus::Completed, .. }))
    }

    /// The files that changed, each with its difference.
    pub(crate) fn files(&self, blobs: &Blobs) -> Vec<FileDiff> {
        changes::between(self.changed.iter(), blobs)
    }
}
