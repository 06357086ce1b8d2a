//! A Session as a readable document: the messages and calls of the branch that ends at its head.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use pixir_core::changes::FileDiff;
use pixir_core::event::{
    AgentEvent, Delivery, HistoryCompaction, PlanItem, ToolCall, ToolResult, TurnEnded, TurnStatus, Verdict,
};
use pixir_core::history::History;
use pixir_core::store::{Place, Summary};
use pixir_core::{Blobs, Entry, Fact, changes, log};

/// A Session as a list of blocks, for the Markdown and HTML exports. Its texts are those of the History, not copies.
pub(crate) struct Document<'a> {
    pub(crate) summary: Summary,
    pub(crate) blocks: Vec<Block<'a>>,
    /// The number of messages on other branches.
    pub(crate) elsewhere: usize,
    blobs: &'a Blobs,
    /// The block of each call, by its id.
    calls: HashMap<&'a str, usize>,
}

/// One part of the document.
pub(crate) enum Block<'a> {
    User {
        seq: u64,
        text: &'a str,
        delivery: Delivery,
        at: jiff::Timestamp,
    },
    Assistant {
        text: &'a str,
        partial: bool,
    },
    Thinking(&'a str),
    Tool(Box<Tool<'a>>),
    Plan(&'a [PlanItem]),
    /// The summary of older messages, or of an abandoned branch.
    Summary {
        title: String,
        text: &'a str,
    },
    Note(String),
    /// An agent that the Session started, with everything that it said and did.
    Agent {
        title: String,
        task: &'a str,
        document: Option<Box<Document<'a>>>,
    },
    Ended(&'a TurnEnded),
}

/// A call and its result.
pub(crate) struct Tool<'a> {
    pub(crate) call: Cow<'a, ToolCall>,
    result: Option<&'a Arc<Entry>>,
    pub(crate) refused: Option<&'a str>,
    blobs: &'a Blobs,
}

impl Tool<'_> {
    /// The target of the call, on one line.
    pub(crate) fn target(&self) -> String {
        self.call.about().target.lines().next().unwrap_or_default().to_owned()
    }

    pub(crate) fn result(&self) -> Option<&ToolResult> {
        match &self.result?.fact {
            Fact::ToolResult(it) => Some(it),
            _ => None,
        }
    }

    /// What the call changed. It is computed when it is written, so that the document holds no diffs.
    pub(crate) fn diffs(&self) -> Vec<FileDiff> {
        changes::between(self.result.into_iter(), self.blobs)
    }
}

/// A Session that is read whole, and those that it has started.
pub(crate) struct Whole {
    summary: Summary,
    history: History,
    agents: Vec<Whole>,
}

impl Whole {
    /// Reads the Sessions below this one too. A Log below it that cannot be read is left out.
    pub(crate) fn new(place: &Place, summary: Summary, history: History) -> Whole {
        let agents = place.children().into_iter().filter_map(|it| {
            let entries = log::read(&it.log()).ok()?.entries;
            Some(Whole::new(&it, it.summary()?, History::fold(entries)))
        });
        Whole { summary, history, agents: agents.collect() }
    }
}

impl<'a> Document<'a> {
    /// The document of the branch from the root to the head, with those of agents where they were started.
    pub(crate) fn new(whole: &'a Whole, blobs: &'a Blobs) -> Document<'a> {
        let Whole { summary, history, agents } = whole;
        let mut document =
            Document { summary: summary.clone(), blocks: Vec::new(), elsewhere: 0, blobs, calls: HashMap::new() };
        for entry in history.told() {
            document.take(entry, agents);
        }
        let spoken = history.entries().iter().filter(|entry| entry.fact.is_conversation()).count();
        document.elsewhere = spoken - history.path().len();
        document
    }

    fn take(&mut self, entry: &'a Arc<Entry>, agents: &'a [Whole]) {
        let block = match &entry.fact {
            Fact::UserMessage(it) => {
                Block::User { seq: entry.seq, text: &it.text, delivery: it.delivery, at: entry.ts }
            }
            Fact::AssistantMessage(it) => Block::Assistant { text: &it.text, partial: it.partial },
            Fact::Reasoning(it) if !it.text.trim().is_empty() => Block::Thinking(&it.text),
            Fact::ToolCall(it) => self.called(&it.call_id, Cow::Borrowed(it)),
            Fact::UserCommand(it) => self.called(&it.call_id, Cow::Owned(it.as_call())),
            Fact::ToolResult(it) => {
                if let Some(tool) = self.tool(&it.call_id) {
                    tool.result = Some(entry);
                }
                return;
            }
            Fact::PermissionDecision(it) => {
                if let Some(tool) = self.tool(&it.call_id).filter(|_| it.verdict == Verdict::Deny) {
                    tool.refused = Some(&it.reason);
                }
                return;
            }
            Fact::PlanUpdated(it) => Block::Plan(&it.items),
            Fact::MemoryFact(it) => match &it.text {
                Some(text) => Block::Note(format!("remembered: {text}")),
                None => return,
            },
            Fact::HistoryCompaction(it) => compaction(it),
            Fact::BranchSummary(it) => {
                Block::Summary { title: "Summary of the abandoned branch".into(), text: &it.summary }
            }
            Fact::SettingsChanged(it) => match (&it.provider, &it.model) {
                (Some(provider), Some(model)) => Block::Note(format!("from here on {provider}/{model} answers")),
                _ => return,
            },
            Fact::SessionFork(it) => {
                Block::Note(format!("forked from {} at {}", it.parent_session_id, it.forked_to_seq))
            }
            Fact::AgentEvent(event) if let AgentEvent::Spawned(it) = &**event => {
                let own = agents.iter().find(|own| own.summary.id == it.session_id);
                let document = own.map(|own| Box::new(Document::new(own, self.blobs)));
                Block::Agent { title: format!("{} ({})", it.name, it.role), task: &it.task, document }
            }
            Fact::AgentEvent(event) if let AgentEvent::Ended(it) = &**event => {
                Block::Note(format!("the agent {} ended: {}\n\n{}", it.name, it.status.name(), it.text))
            }
            // The headline has the first line alone.
            Fact::AgentEvent(event)
                if let AgentEvent::Told { name, text, .. } = &**event
                    && !text.is_empty() =>
            {
                Block::Note(format!("to the agent {name}: {text}"))
            }
            Fact::TurnEnded(it) if it.status != TurnStatus::Completed => Block::Ended(it),
            fact => match fact.headline() {
                Some(it) => Block::Note(it.to_string()),
                None => return,
            },
        };
        self.blocks.push(block);
    }

    fn called(&mut self, call_id: &'a str, call: Cow<'a, ToolCall>) -> Block<'a> {
        self.calls.insert(call_id, self.blocks.len());
        Block::Tool(Box::new(Tool { call, result: None, refused: None, blobs: self.blobs }))
    }

    /// The newest call with this id.
    fn tool(&mut self, call_id: &str) -> Option<&mut Tool<'a>> {
        match self.blocks.get_mut(*self.calls.get(call_id)?)? {
            Block::Tool(tool) => Some(tool),
            _ => None,
        }
    }
}

fn compaction(it: &HistoryCompaction) -> Block<'_> {
    let title = format!("Compacted: {} → {} tokens", it.tokens_before, it.tokens_after);
    Block::Summary { title, text: &it.summary }
}
