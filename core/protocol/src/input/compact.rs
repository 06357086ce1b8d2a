//! What the user changed in the preview of a compaction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the user wants a compaction, beyond what pixir proposes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompactOptions {
    /// With `dry_run`: a model writes the summary of the preview as well. Its request costs what it costs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draft: bool,
    /// The token of the preview that the user approved. If the conversation changed since, nothing is compacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// The summary that the user saw or edited, without the part that pixir adds word for word. No model is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Entries to keep word for word. A call and its result move together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<u64>,
    /// Entries that the summary is to replace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sum_up: Vec<u64>,
    /// Entries that go, and that the summary is not about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<u64>,
}

impl CompactOptions {
    /// The user moved something.
    pub fn has_moves(&self) -> bool {
        !(self.keep.is_empty() && self.sum_up.is_empty() && self.drop.is_empty())
    }
}
