//! What the user thinks of a change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The user has read a hunk of a diff and keeps it, or takes that back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HunkReviewed {
    /// The file, relative to the workspace.
    pub path: String,
    /// The hunk: the first 32 hex digits of the BLAKE3 hash of the path, the lines before and the lines after, each
    /// after a zero byte but the first.
    pub hunk: String,
    /// Whether it is reviewed from now on.
    pub kept: bool,
}
