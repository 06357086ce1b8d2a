//! What the model is told beside the conversation: documents, its surroundings, and what the user's editor shows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Attachment, Delivery, Mode, Toolset};
use crate::event::TemplateUse;

/// A text placed before the conversation, or appended to it when it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextDocument {
    /// A path, or `environment`, `mode`, `toolset`, `user`, `git`, `role`, `roles`, `report`.
    pub source: String,
    /// The text.
    pub text: String,
}

/// The part of the model's surroundings that can change while a Session lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Surroundings {
    /// What may run without asking.
    pub mode: Mode,
    /// Which tools the model is offered.
    pub toolset: Toolset,
    /// A user can answer approvals and questions.
    pub attended: bool,
    /// The repository of the workspace, if there is one that pixir reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitState>,
    /// The role that the user gave to the Session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Roles for agents besides those that pixir has, with what each is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<String>,
    /// Folders outside the workspace that the Session works on as on the workspace, one a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folders: Option<String>,
}

/// A repository as pixir reads it, without running git.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitState {
    /// The branch; `None` when the head is on none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The first digits of the commit; `None` before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// How many tracked files differ from the index; `None` when there are too many files to look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<u32>,
    /// The index differs from the commit, or pixir cannot tell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub staged: bool,
}

/// The model's surroundings changed. The documents are appended to the conversation as one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextChanged {
    /// The surroundings from here on.
    pub surroundings: Surroundings,
    /// What the model reads about the change.
    pub documents: Vec<ContextDocument>,
}

/// A message of the user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    /// The text as typed, or as a template made it.
    pub text: String,
    /// How it was delivered.
    #[serde(default)]
    pub delivery: Delivery,
    /// Images sent with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// What the user's editor showed when the message was sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<EditorDocument>,
    /// The prompt template that the text was expanded from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Box<TemplateUse>>,
}

/// Something that the user's editor shows. The model reads it after the message that it came with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditorDocument {
    /// What it is.
    #[serde(default)]
    pub kind: EditorDocumentKind,
    /// The file, relative to the workspace or absolute; at most 4,096 bytes, without control characters.
    pub path: String,
    /// The lines that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineRange>,
    /// The selected text, the visible part of the file, or the diagnostic; at most 64 KiB.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// What an editor shows of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EditorDocumentKind {
    /// A file that is open.
    #[default]
    OpenFile,
    /// The lines that are visible.
    Range,
    /// The text that the user selected.
    Selection,
    /// An error or a warning of a compiler, a linter or a language server.
    Diagnostic,
}

impl EditorDocumentKind {
    /// The words that the model reads.
    pub const fn words(self) -> &'static str {
        match self {
            EditorDocumentKind::OpenFile => "open file",
            EditorDocumentKind::Range => "visible lines",
            EditorDocumentKind::Selection => "selection",
            EditorDocumentKind::Diagnostic => "diagnostic",
        }
    }
}

/// Lines of a file, counted from 1; both ends belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineRange {
    /// The first line.
    pub from: u32,
    /// The last line.
    pub to: u32,
}
