//! The user's marks on Entries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change of an Entry's name, of its pin, or of whether requests have it; only the changed one is present.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Label {
    /// The Entry.
    pub seq: u64,
    /// The name; empty removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether the Entry is pinned. A compaction keeps pinned Entries word for word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// Whether requests have a short note in place of the Entry's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<bool>,
}
