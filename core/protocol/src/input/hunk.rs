//! A part of a file's change that the user takes back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lines of a file, and what takes their place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HunkEdit {
    /// The index of the first line, from 0. A line ends after each `\n`.
    pub line: u32,
    /// The lines as they are now, with their ends; empty where lines were removed.
    pub now: String,
    /// The lines that take their place; empty where lines were added.
    pub then: String,
}

/// A hunk of a diff to take back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HunkRevert {
    /// The file, relative to the workspace.
    pub path: String,
    /// The version in which the hunk was seen: the first 32 hex digits of the BLAKE3 hash of its bytes; null if the file
    /// did not exist. If the file is not as it was seen, `changed_since` decides.
    #[serde(default)]
    pub seen: Option<String>,
    /// The lines.
    pub edit: HunkEdit,
    /// The file did not exist before the change, so it is removed with its last line.
    #[serde(default)]
    pub is_new: bool,
    /// Permission bits for a file that the change deleted.
    #[serde(default)]
    pub mode: Option<u32>,
}
