//! A message of the user, with what comes with it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, Result};
use crate::event::{Attachment, EditorDocument, TemplateUse};

/// A message of the user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// The text.
    pub text: String,
    /// Images; the Harness stores them before the Session records the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// What the user's editor shows; at most 32 documents, 64 KiB of text each and 256 KiB in all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<EditorDocument>,
    /// The template that made the text. Only the Session sets it.
    #[serde(skip)]
    pub template: Option<Box<TemplateUse>>,
}

impl<T: Into<String>> From<T> for Message {
    fn from(text: T) -> Message {
        Message { text: text.into(), ..Message::default() }
    }
}

/// The most editor documents of one message.
const MAX_DOCUMENTS: usize = 32;
/// The most text of an editor document, bytes.
pub const MAX_DOCUMENT: usize = 64 << 10;
/// The most text of all editor documents of a message, bytes.
pub const MAX_CONTEXT: usize = 256 << 10;
/// The longest path of an editor document, bytes.
const MAX_PATH: usize = 4_096;

impl Message {
    /// Checks what the user's editor shows.
    ///
    /// # Errors
    /// `INVALID_ARGS` for too many or too long documents, a path with control characters, or lines in the wrong order.
    pub fn check_context(&self) -> Result<()> {
        let invalid = |message: String, fix: &str| Err(Error::new(Code::InvalidArgs, message, fix));
        if self.context.len() > MAX_DOCUMENTS {
            let message =
                format!("the context has {} documents; at most {MAX_DOCUMENTS} are taken", self.context.len());
            return invalid(message, "send those that matter for the prompt");
        }
        let text: usize = self.context.iter().map(|it| it.text.len()).sum();
        let lines_that_matter = "send the lines that matter; the model reads files by itself";
        if text > MAX_CONTEXT {
            let most = MAX_CONTEXT >> 10;
            let message = format!("the context has {} KB of text; at most {most} KB are taken", text >> 10);
            return invalid(message, lines_that_matter);
        }
        for (at, document) in self.context.iter().enumerate() {
            let EditorDocument { path, lines, text, .. } = document;
            if text.len() > MAX_DOCUMENT {
                let most = MAX_DOCUMENT >> 10;
                let message =
                    format!("`context[{at}]` has {} KB of text; at most {most} KB are taken", text.len() >> 10);
                return invalid(message, lines_that_matter);
            }
            if path.is_empty() || path.len() > MAX_PATH || path.chars().any(char::is_control) {
                let message = format!("`context[{at}].path` is empty, too long or holds a control character");
                return invalid(message, "a path relative to the workspace, or an absolute one");
            }
            if lines.is_some_and(|it| it.from == 0 || it.to < it.from) {
                return invalid(format!("`context[{at}].lines` has no line"), "lines from 1 on, `from` before `to`");
            }
        }
        Ok(())
    }
}
