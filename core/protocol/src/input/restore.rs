//! How files are restored.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, Result};

/// What a restore does with a file that changed since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// Leave the file as it is.
    #[default]
    Keep,
    /// Merge the restore with the changes since, which stay in the file.
    Merge,
    /// Restore the file completely. The changes since remain only in the blob store.
    Overwrite,
}

impl OnConflict {
    /// Parses a name.
    ///
    /// # Errors
    /// `INVALID_ARGS`, with the valid names.
    pub fn parse(name: &str) -> Result<OnConflict> {
        match name {
            "keep" => Ok(OnConflict::Keep),
            "merge" => Ok(OnConflict::Merge),
            "overwrite" => Ok(OnConflict::Overwrite),
            _ => Err(Error::new(
                Code::InvalidArgs,
                format!("there is no choice `{}`", name.escape_debug()),
                "choose keep, merge or overwrite",
            )),
        }
    }
}

/// Whether a text still has the marks of a conflict.
pub fn has_marks(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> "))
}

/// How files are restored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestoreOptions {
    /// Publish the preview and touch nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// What to do with files that changed since, unless `choices` names them.
    #[serde(default)]
    pub changed_since: OnConflict,
    /// What to do with single files that changed since, by path.
    #[serde(default)]
    pub choices: BTreeMap<String, OnConflict>,
    /// Files as the user wrote them, by path, in place of both versions. Only files of an agent's copy can be written so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub written: BTreeMap<String, String>,
    /// The user agreed that protected files are written. Without that, a restore that would write one is refused.
    #[serde(default)]
    pub protected: bool,
    /// The token of the preview that the user approved. If a file changed since that preview, nothing is restored.
    #[serde(default)]
    pub seen: Option<String>,
}
