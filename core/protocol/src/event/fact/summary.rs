//! Summaries that take the place of a part of the conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::headline::Headline;

/// What started a compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The user asked for it.
    #[default]
    Manual,
    /// The request came close to the model's window.
    Threshold,
    /// The Provider refused the request as too long.
    Overflow,
}

/// A summary that replaces older History.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryCompaction {
    /// How the summary was made; `deterministic` needs no model.
    pub strategy: String,
    /// What started the compaction.
    pub trigger: Trigger,
    /// The first Entry of the path that is kept; the summary replaces those before it.
    pub kept_from_seq: u64,
    /// The summary, as the model reads it.
    pub summary: String,
    /// Files read in the replaced part, over all compactions.
    #[serde(default)]
    pub files_read: Vec<String>,
    /// Files changed in the replaced part, over all compactions.
    #[serde(default)]
    pub files_modified: Vec<String>,
    /// Estimated tokens of the History before.
    pub tokens_before: u64,
    /// Estimated tokens of the History after.
    pub tokens_after: u64,
    /// Entries of the path that the summary replaces.
    pub entries_dropped: u64,
    /// Entries before `kept_from_seq` that the user kept word for word; they follow the summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<u64>,
    /// Entries from `kept_from_seq` on that are replaced all the same, because the user moved them, in this compaction or
    /// an earlier one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<u64>,
    /// Replaced Entries that the user kept out of the summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<u64>,
    /// The user edited the summary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// Tokens of the model's window, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Pinned Entries of the replaced part; the summary contains them word for word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<u64>,
    /// Skill activations of the replaced part, the last one of each skill; the summary contains their instructions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<u64>,
    /// The replaced Turns that the summary tells of, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<TurnDigest>,
    /// Replaced Turns that the summary does not tell of, over all compactions.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub turns_left_out: u64,
    /// What the model wrote about the replaced part, in this compaction or an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Box<Notes>>,
    /// The model that wrote the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Steps of the plan that are not completed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_tasks: Vec<String>,
    /// What the summary lacks, for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limitations: Vec<String>,
}

impl HistoryCompaction {
    pub(super) fn headline(&self) -> Headline {
        Headline::new(format!("compacted: {} → {} tokens", self.tokens_before, self.tokens_after))
    }

    /// The summary stands in place of the Entry with this number.
    pub fn has_replaced(&self, seq: u64) -> bool {
        let is_before = seq < self.kept_from_seq;
        (is_before && !self.kept.contains(&seq)) || (!is_before && self.removed.contains(&seq))
    }
}

/// A Turn in a summary. Long texts are shortened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnDigest {
    /// The number of the Turn.
    pub turn: u32,
    /// The beginning of the user's request.
    pub request: String,
    /// The end of the model's last message; empty if there was none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// Files that the Turn changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Calls that failed, as the user sees them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

/// What a model wrote down about a conversation, so that it can continue without it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notes {
    /// What the user wants.
    pub goal: String,
    /// How far the work is.
    pub state: String,
    /// Decisions, with their reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// Facts that were found out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Files, and what matters about each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Commands that matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// What is left to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_tasks: Vec<String>,
    /// The next step; empty if nothing is left to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next_step: String,
    /// What did not work, or is easily done wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pitfalls: Vec<String>,
}

/// A summary of a branch that the Head left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BranchSummary {
    /// `deterministic` or `model`.
    pub strategy: String,
    /// The Head before the move.
    pub from_seq: u64,
    /// The last Entry that both branches share; null when they share none.
    pub common_seq: Option<u64>,
    /// The summary, as the model reads it.
    pub summary: String,
    /// Files changed on the branch.
    #[serde(default)]
    pub files_modified: Vec<String>,
    /// What the model wrote down, if it wrote the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Box<Notes>>,
    /// The model that wrote the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl BranchSummary {
    pub(super) fn headline(&self) -> Headline {
        let author = if self.strategy == "model" { "by the model" } else { "from the log" };
        Headline::new(format!("summary of the abandoned branch, {author}"))
    }
}
