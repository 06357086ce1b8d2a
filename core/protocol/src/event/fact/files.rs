//! Changes of files, and restores that took them back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::headline::Headline;

/// A file that a call changed, with blobs of its bytes before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// The path, relative to the workspace.
    pub path: String,
    /// Created, modified or deleted.
    pub kind: ChangeKind,
    /// The blob of the bytes before. Absent for a new file, and if the bytes were not captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_blob: Option<String>,
    /// The blob of the bytes after. Absent for a deleted file, and if the bytes were not captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_blob: Option<String>,
    /// The permission bits before, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_mode: Option<u32>,
    /// The permission bits after, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_mode: Option<u32>,
    /// For a new file: the number of parent folders that were created with it.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub new_folders: u32,
    /// For a new file that is one which the same call deleted, under another path: that path. Its lines are counted against
    /// that file, and the deletion counts none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
    /// The number of added lines, if both versions are text.
    #[serde(default)]
    pub added: u64,
    /// The number of removed lines, if both versions are text.
    #[serde(default)]
    pub removed: u64,
}

/// How a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The file is new.
    Created,
    /// The bytes of the file changed.
    Modified,
    /// The file was deleted.
    Deleted,
}

/// Why files were restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestoreReason {
    /// Undo: a Turn's changes were taken back.
    Undo,
    /// Redo: an undo was taken back.
    Redo,
    /// Rewind: the Head moved to an earlier Entry, and the files with it.
    Rewind,
    /// The Head moved to an earlier Entry, and these files stayed as they were.
    Stayed,
    /// One hunk of a change was taken back.
    Hunk,
    /// Files of an agent's copy are written to the workspace. No Entry of a restore has it.
    Adopt,
    /// A reason that only a newer build knows.
    #[schemars(skip)]
    Unknown,
}

/// Files that a restore set back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilesRestored {
    /// Why the files were restored.
    pub reason: RestoreReason,
    /// The Turn that was undone or redone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_turn: Option<u32>,
    /// The Entry that the files were set back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_seq: Option<u64>,
    /// The Entry of the restore that was undone or redone, if it was not a Turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_seq: Option<u64>,
    /// The changes that the restore made.
    pub changes: Vec<FileChange>,
    /// Files that the restore left as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<LeftFile>,
}

impl FilesRestored {
    pub(super) fn headline(&self) -> Headline {
        let title = match (self.reason, self.of_turn) {
            (RestoreReason::Undo, Some(turn)) => format!("undid turn {turn}"),
            (RestoreReason::Redo, Some(turn)) => format!("redid turn {turn}"),
            (RestoreReason::Hunk, _) => "reverted a hunk".to_owned(),
            (RestoreReason::Stayed, _) => "these files stayed as they are".to_owned(),
            _ => "restored files".to_owned(),
        };
        let changed = self.changes.iter().map(|it| it.path.as_str());
        let left = self.left.iter().map(|it| it.path.as_str());
        let paths: Vec<&str> = if self.reason == RestoreReason::Stayed { left.collect() } else { changed.collect() };
        Headline::new(title).with(paths.join(", "))
    }
}

/// A file that a restore left as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftFile {
    /// The path, relative to the workspace.
    pub path: String,
    /// Why the restore left it.
    pub why: String,
}
