//! Moves of the Head, and branches in the trash.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A move of the Head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeadMoved {
    /// The new Head; null is the empty conversation.
    pub to_seq: Option<u64>,
    /// Why it moved: `rewind`.
    pub reason: String,
}

/// A branch was moved to the trash, or taken back. Its Entries stay in the Log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchRemoved {
    /// The Entry that the branch begins with; everything after it belongs to the branch.
    pub seq: u64,
    /// The branch was taken back from the trash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restored: bool,
}
