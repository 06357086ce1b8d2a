//! A child's conversation as text, for the model of its parent.

use std::sync::Arc;

use super::own_entries;
use protocol::event::{Entry, Fact, WorkflowEvent};

/// The most bytes of one message or result.
const MAX_PART: usize = 2_000;

/// The conversation in these Entries, oldest first.
pub(super) fn transcript(entries: &[Arc<Entry>]) -> String {
    let mut text = String::new();
    for entry in own_entries(entries) {
        let (who, said) = match &entry.fact {
            Fact::UserMessage(it) => ("told", it.text.clone()),
            Fact::AssistantMessage(it) => ("said", it.text.clone()),
            Fact::ToolCall(it) => ("call", it.about().title.clone()),
            Fact::ToolResult(it) => ("result", it.output.clone()),
            Fact::WorkflowEvent(it) => match &**it {
                WorkflowEvent::Planned(it) => ("run", it.name.clone()),
                WorkflowEvent::Resumed(_) => ("run", "goes on".to_owned()),
                WorkflowEvent::StepStarted(it) => ("step", format!("{} begins", it.id)),
                WorkflowEvent::StepEnded(it) => {
                    let why = it.error.as_ref().map_or(String::new(), |error| format!(": {}", error.message));
                    ("step", format!("{} {}{why}", it.id, it.status.name()))
                }
                WorkflowEvent::Held(it) => ("step", format!("{} {}: {}", it.id, it.status.name(), it.why)),
                WorkflowEvent::ChangedSince(it) => ("run", format!("cut off: {}", it.steps.join(", "))),
                WorkflowEvent::GateAnswered { id, choice, .. } => ("step", format!("{id} is answered: {choice}")),
            },
            Fact::TurnEnded(it) => ("end", it.status.name().to_owned()),
            _ => continue,
        };
        let end = said.floor_char_boundary(MAX_PART);
        let cut = if end < said.len() { format!(" …[{} bytes cut]", said.len() - end) } else { String::new() };
        text.push_str(&format!("[{}] {who}: {}{cut}\n", entry.seq, said[..end].trim_end()));
    }
    text
}
