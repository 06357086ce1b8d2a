//! What a restore would do to files.

use serde::{Deserialize, Serialize};

use super::{ChangeKind, RestoreReason};

/// How a file compares with the version that pixir last wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The file is unchanged since and can be restored.
    Ready,
    /// The file already has the content that the restore would write.
    AlreadyThere,
    /// The user or another program changed the file since.
    ChangedSince,
    /// The file cannot be restored: its old bytes were not stored, or a folder or a symlink has its path.
    Impossible,
}

/// One file in the preview of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePreview {
    /// The path, relative to the workspace.
    pub path: String,
    /// How the file compares with the version that pixir last wrote.
    pub standing: Standing,
    /// What the restore does to the file.
    pub kind: ChangeKind,
    /// The unified diff from the current file to the restored file.
    pub diff: String,
    /// Lines that the restore adds.
    pub added: u64,
    /// Lines that the restore removes.
    pub removed: u64,
    /// The path is protected: it can run code or widen permissions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
    /// The changes since: the unified diff from pixir's version to the current file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The unified diff from the current file to the merged file, which keeps the changes since; absent if they
    /// conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<String>,
    /// A file of an agent's copy whose lines changed on both sides: both versions in one text, with conflict marks around
    /// these lines, for the user to edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked: Option<String>,
    /// Why the file cannot be restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The preview of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestorePreview {
    /// What the restore is for.
    pub reason: RestoreReason,
    /// The Turn whose changes are undone or redone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_turn: Option<u32>,
    /// The Entry whose state of the files is restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_seq: Option<u64>,
    /// The Entry of the restore that is undone or redone, if it is not a Turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_seq: Option<u64>,
    /// The agent whose files would be adopted: the names from the root's child down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent: Vec<String>,
    /// A call waits for the user's decision about them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
    /// The files that the restore covers, without those that need no change.
    pub files: Vec<FilePreview>,
    /// A token that identifies exactly this preview, for the Input that performs the restore.
    pub token: String,
}
