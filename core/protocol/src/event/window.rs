//! What fills the window of the next request, and what a compaction would do to it.

use serde::{Deserialize, Serialize};

use super::HistoryCompaction;

/// What a part of the window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// The fixed text that every request begins with.
    Instructions,
    /// The specs of all tools.
    Tools,
    /// A context document: an instructions file, the environment.
    Document,
    /// The summary of a compaction or of a branch.
    Summary,
    /// The text of a skill.
    Skill,
    /// The index of skills.
    Skills,
    /// A change of mode, toolset or repository, or of files that the user restored.
    Change,
    /// The plan.
    Plan,
    /// A message of the user.
    Message,
    /// A command that the user ran, with its output.
    Command,
    /// A message of the model.
    Answer,
    /// Reasoning of the model.
    Thinking,
    /// A call that the model made.
    Call,
    /// The result of a call.
    Result,
    /// The JSON around all of it.
    Framing,
}

impl PartKind {
    /// The name on the screen.
    pub const fn name(self) -> &'static str {
        match self {
            PartKind::Instructions => "system prompt",
            PartKind::Tools => "tools",
            PartKind::Document => "document",
            PartKind::Summary => "summary",
            PartKind::Skill => "skill",
            PartKind::Skills => "skills index",
            PartKind::Change => "change",
            PartKind::Plan => "plan",
            PartKind::Message => "message",
            PartKind::Command => "command",
            PartKind::Answer => "answer",
            PartKind::Thinking => "thinking",
            PartKind::Call => "call",
            PartKind::Result => "result",
            PartKind::Framing => "JSON around it",
        }
    }
}

/// Where the tokens of a ledger come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokensFrom {
    /// Estimated at four bytes each.
    Estimate,
    /// The Provider reported those of the last request; they are spread over its parts by their bytes, and what is new
    /// since is estimated.
    Provider,
}

/// One part of the next request: a document, a message, a call, a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What it is.
    pub kind: PartKind,
    /// Its name: a path, a skill, the beginning of a message, what a call is about.
    pub title: String,
    /// Its Entry, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The size of its text, bytes.
    pub bytes: usize,
    /// Its share of the tokens.
    pub tokens: u64,
    /// The Turn that it belongs to; absent for what every request repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// How many Turns ago that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<u32>,
    /// The last request already had it, so a Provider can take it from its cache.
    pub in_prefix: bool,
    /// Images that are sent with it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub images: usize,
    /// Compactions keep it word for word.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// A short note stands for it, because the user dropped it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
    /// The user changed `dropped` while a request was under way; the next request has it so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// The beginning of its text, for a part that no Entry holds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub excerpt: String,
}

/// What fills the window of the next request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextReport {
    /// The parts, in the order in which they are sent. Their bytes and tokens add up to those of the request.
    pub parts: Vec<Part>,
    /// The size of the request, bytes.
    pub bytes: usize,
    /// The size of the request, tokens.
    pub tokens: u64,
    /// Where the tokens come from.
    pub tokens_from: TokensFrom,
    /// Tokens of the model's window, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// What a compaction does with an Entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum List {
    /// It stays word for word.
    Kept,
    /// The summary tells of it.
    SummedUp,
    /// It goes, and the summary does not tell of it.
    Dropped,
}

/// Entries that a compaction treats as one: a message, or a call with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Its first Entry; absent for the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// What it is.
    pub kind: PartKind,
    /// The beginning of its text, or what the call is about.
    pub title: String,
    /// Estimated tokens.
    pub tokens: u64,
    /// What the compaction does with it.
    pub list: List,
    /// The user pinned it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// The user cannot move it to another list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fixed: bool,
}

/// How far a model has got with the summary of a preview.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Draft {
    /// No model was asked.
    #[default]
    NotAsked,
    /// The model is writing; until then the preview has the summary that pixir made.
    Writing,
    /// The model wrote the summary.
    Written,
    /// The model could not write it; the limitations say why.
    Failed,
    /// The user stopped the model.
    Stopped,
}

/// The preview of a compaction; nothing of it is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompactionPreview {
    /// The compaction as it would be recorded.
    #[serde(flatten)]
    pub compaction: HistoryCompaction,
    /// What is kept, summed up and dropped, in the order of the conversation.
    pub segments: Vec<Segment>,
    /// The end of the summary, which pixir adds word for word and the user does not edit: pinned messages, the plan,
    /// skills, an unfinished request.
    pub appended: String,
    /// Estimated tokens of what every request repeats: instructions, tools and context documents.
    pub fixed_tokens: u64,
    /// The model that writes the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// What the model's summary costs at most, in US dollars, where the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How far the model has got.
    pub draft: Draft,
    /// Names this state of the conversation. Applying with it is refused if the conversation has changed since.
    pub token: String,
}

impl CompactionPreview {
    /// The part of the summary that the user can edit.
    pub fn body(&self) -> &str {
        self.compaction.summary.strip_suffix(self.appended.as_str()).unwrap_or(&self.compaction.summary)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_none(n: &usize) -> bool {
    *n == 0
}
