//! A Session as a readable document: the messages and calls of the branch that ends at its head.

use pixir_core::changes::FileDiff;
use pixir_core::event::{
    Delivery, HistoryCompaction, PlanItem, RestoreReason, ToolCall, ToolResult, TurnEnded, TurnStatus, Verdict,
};
use pixir_core::history::History;
use pixir_core::store::Summary;
use pixir_core::{Blobs, Entry, Fact, changes};

/// A Session as a list of blocks, for the Markdown and HTML exports.
pub(crate) struct Document {
    pub(crate) summary: Summary,
    pub(crate) blocks: Vec<Block>,
    /// The number of messages on other branches.
    pub(crate) elsewhere: usize,
}

/// One part of the document.
pub(crate) enum Block {
    User {
        seq: u64,
        text: String,
        delivery: Delivery,
        at: String,
    },
    Assistant {
        text: String,
        partial: bool,
    },
    Thinking(String),
    Tool(Box<Tool>),
    Plan(Vec<PlanItem>),
    /// The summary of older messages, or of an abandoned branch.
    Summary {
        title: String,
        text: String,
    },
    Note(String),
    Ended(Box<TurnEnded>),
}

/// A call and its result.
pub(crate) struct Tool {
    pub(crate) call: ToolCall,
    pub(crate) result: Option<ToolResult>,
    pub(crate) refused: Option<String>,
    pub(crate) diffs: Vec<FileDiff>,
}

impl Tool {
    fn called(call: ToolCall) -> Tool {
        Tool { call, result: None, refused: None, diffs: Vec::new() }
    }

    /// The target of the call, on one line.
    pub(crate) fn target(&self) -> String {
        self.call.about().target.lines().next().unwrap_or_default().to_owned()
    }
}

impl Document {
    /// The document of the branch from the root to the head.
    pub(crate) fn new(summary: Summary, history: &History, blobs: &Blobs) -> Document {
        let mut document = Document { summary, blocks: Vec::new(), elsewhere: 0 };
        for entry in history.told() {
            document.take(entry, blobs);
        }
        let spoken = history.entries().iter().filter(|entry| entry.fact.is_conversation()).count();
        document.elsewhere = spoken - history.path().len();
        document
    }

    fn take(&mut self, entry: &std::sync::Arc<Entry>, blobs: &Blobs) {
        let block = match &entry.fact {
            Fact::UserMessage(it) => {
                Block::User { seq: entry.seq, text: it.text.clone(), delivery: it.delivery, at: entry.ts.to_string() }
            }
            Fact::AssistantMessage(it) => Block::Assistant { text: it.text.clone(), partial: it.partial },
            Fact::Reasoning(it) if !it.text.trim().is_empty() => Block::Thinking(it.text.clone()),
            Fact::ToolCall(it) => Block::Tool(Box::new(Tool::called(it.clone()))),
            Fact::UserCommand(it) => Block::Tool(Box::new(Tool::called(it.as_call()))),
            Fact::ToolResult(it) => {
                if let Some(tool) = self.tool(&it.call_id) {
                    tool.diffs = changes::between(std::iter::once(entry), blobs);
                    tool.result = Some(it.clone());
                }
                return;
            }
            Fact::PermissionDecision(it) => {
                if let Some(tool) = self.tool(&it.call_id).filter(|_| it.verdict == Verdict::Deny) {
                    tool.refused = Some(it.reason.clone());
                }
                return;
            }
            Fact::PlanUpdated(it) => Block::Plan(it.items.clone()),
            Fact::MemoryFact(it) => match &it.text {
                Some(text) => Block::Note(format!("remembered: {text}")),
                None => return,
            },
            Fact::SkillActivation(it) => Block::Note(format!("skill {} joined the conversation", it.name)),
            Fact::HistoryCompaction(it) => compaction(it),
            Fact::BranchSummary(it) => {
                Block::Summary { title: "Summary of the abandoned branch".into(), text: it.summary.clone() }
            }
            Fact::FilesRestored(it) => {
                let paths: Vec<&str> = it.changes.iter().map(|c| c.path.as_str()).collect();
                let left: Vec<&str> = it.left.iter().map(|left| left.path.as_str()).collect();
                let paths = if it.reason == RestoreReason::Stayed { left } else { paths };
                let what = match (it.reason, it.of_turn) {
                    (RestoreReason::Stayed, _) => "files stayed as they were".into(),
                    (RestoreReason::Undo, Some(turn)) => format!("turn {turn} was undone"),
                    (RestoreReason::Redo, Some(turn)) => format!("turn {turn} was redone"),
                    _ => "files were set back".into(),
                };
                Block::Note(format!("{what}: {}", paths.join(", ")))
            }
            Fact::SettingsChanged(it) => match (&it.provider, &it.model) {
                (Some(provider), Some(model)) => Block::Note(format!("from here on {provider}/{model} answers")),
                _ => return,
            },
            Fact::SessionFork(it) => {
                Block::Note(format!("forked from {} at {}", it.parent_session_id, it.forked_to_seq))
            }
            Fact::LogRepaired(it) => Block::Note(format!("a damaged line was here: {}", it.reason)),
            Fact::TurnEnded(it) if it.status != TurnStatus::Completed => Block::Ended(Box::new(it.clone())),
            Fact::SessionStarted(_)
            | Fact::Reasoning(_)
            | Fact::ProviderUsage(_)
            | Fact::HeadMoved(_)
            | Fact::Label(_)
            | Fact::TurnEnded(_)
            | Fact::Unknown { .. } => return,
        };
        self.blocks.push(block);
    }

    fn tool(&mut self, call_id: &str) -> Option<&mut Tool> {
        self.blocks.iter_mut().rev().find_map(|block| match block {
            Block::Tool(tool) if tool.call.call_id == call_id => Some(&mut **tool),
            _ => None,
        })
    }
}

fn compaction(it: &HistoryCompaction) -> Block {
    let title = format!("Compacted: {} → {} tokens", it.tokens_before, it.tokens_after);
    Block::Summary { title, text: it.summary.clone() }
}
