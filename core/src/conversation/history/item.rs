//! What a model is sent, piece by piece: the entries themselves, and what stands for several of them.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::protocol::event::{Attachment, BranchSummary, Entry, Fact, FilesRestored, RestoreReason};

/// What an image counts for in estimates, bytes of text: about a thousand tokens, however large its file is.
const IMAGE: usize = 4_000;

/// One piece of what a model is sent: an entry that says it, or what was made of several.
#[derive(Debug, Clone)]
pub enum Item {
    /// An entry that is in the Log.
    Recorded(Arc<Entry>),
    /// What stands for others, or closes a call that was cut off.
    Made(Box<Piece<'static>>),
}

/// What an [`Item`] says.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece<'a> {
    /// The person, or something put into the conversation on the person's behalf.
    User {
        /// What is said.
        text: Cow<'a, str>,
        /// What is shown with it.
        images: Cow<'a, [Attachment]>,
    },
    /// What the model told the person.
    Assistant {
        /// Markdown.
        text: Cow<'a, str>,
        /// What it was said for, where the server told.
        phase: Option<Cow<'a, str>>,
    },
    /// The model's thinking, for the same model only.
    Reasoning {
        /// Where it was thought.
        provider: Cow<'a, str>,
        /// The model that thought it.
        model: Cow<'a, str>,
        /// The Provider's own item.
        item: Cow<'a, Value>,
    },
    /// A tool that the model called.
    Call {
        /// Its id.
        id: Cow<'a, str>,
        /// The tool.
        name: Cow<'a, str>,
        /// A JSON object, as text.
        args: Cow<'a, str>,
    },
    /// What came of it.
    Result {
        /// The call that it answers.
        id: Cow<'a, str>,
        /// What the model reads.
        output: Cow<'a, str>,
        /// What it looks at.
        images: Cow<'a, [Attachment]>,
    },
}

impl Item {
    /// What stands in no entry.
    pub fn made(piece: Piece<'static>) -> Item {
        Item::Made(Box::new(piece))
    }

    /// What the person says, or what is said for them.
    pub fn user(text: String) -> Item {
        Item::made(Piece::said(text))
    }

    /// The id, when it is a call.
    pub fn call_id(&self) -> Option<&str> {
        match self {
            Item::Recorded(entry) => match &entry.fact {
                Fact::ToolCall(it) => Some(&it.call_id),
                _ => None,
            },
            Item::Made(piece) => match &**piece {
                Piece::Call { id, .. } => Some(id),
                _ => None,
            },
        }
    }

    /// What it says.
    pub fn piece(&self) -> Piece<'_> {
        match self {
            Item::Recorded(entry) => piece_of(&entry.fact).unwrap_or(Piece::said("")),
            Item::Made(piece) => piece.reborrow(),
        }
    }
}

impl<'a> Piece<'a> {
    /// What the person says, or what is said for them, without images.
    pub(crate) fn said(text: impl Into<Cow<'a, str>>) -> Piece<'a> {
        Piece::User { text: text.into(), images: (&[]).into() }
    }

    fn reborrow(&self) -> Piece<'_> {
        match self {
            Piece::User { text, images } => Piece::User { text: Cow::Borrowed(text), images: Cow::Borrowed(images) },
            Piece::Assistant { text, phase } => {
                Piece::Assistant { text: Cow::Borrowed(text), phase: phase.as_deref().map(Cow::Borrowed) }
            }
            Piece::Reasoning { provider, model, item } => Piece::Reasoning {
                provider: Cow::Borrowed(provider),
                model: Cow::Borrowed(model),
                item: Cow::Borrowed(item),
            },
            Piece::Call { id, name, args } => {
                Piece::Call { id: Cow::Borrowed(id), name: Cow::Borrowed(name), args: Cow::Borrowed(args) }
            }
            Piece::Result { id, output, images } => {
                Piece::Result { id: Cow::Borrowed(id), output: Cow::Borrowed(output), images: Cow::Borrowed(images) }
            }
        }
    }

    /// Bytes of text, for estimates.
    pub(crate) fn len(&self) -> usize {
        match self {
            Piece::User { text, images } => text.len() + images.len() * IMAGE,
            Piece::Assistant { text, .. } => text.len(),
            Piece::Reasoning { item, .. } => item.to_string().len(),
            Piece::Call { id, name, args } => id.len() + name.len() + args.len(),
            Piece::Result { id, output, images } => id.len() + output.len() + images.len() * IMAGE,
        }
    }
}

/// What a model reads of an entry, if anything.
pub(super) fn piece_of(fact: &Fact) -> Option<Piece<'_>> {
    Some(match fact {
        Fact::UserMessage(it) => Piece::User { text: Cow::Borrowed(&it.text), images: Cow::Borrowed(&it.attachments) },
        Fact::SkillActivation(it) => {
            Piece::said(format!("<skill name=\"{}\" path=\"{}\">\n{}\n</skill>", it.name, it.path, it.body))
        }
        Fact::BranchSummary(it) => Piece::said(branch_text(it)),
        Fact::FilesRestored(it) => Piece::said(restored_text(it)?),
        Fact::AssistantMessage(it) if !it.partial && !it.text.is_empty() => {
            Piece::Assistant { text: Cow::Borrowed(&it.text), phase: it.phase.as_deref().map(Cow::Borrowed) }
        }
        Fact::Reasoning(it) => Piece::Reasoning {
            provider: Cow::Borrowed(&it.provider),
            model: Cow::Borrowed(&it.model),
            item: Cow::Borrowed(it.item.as_ref()?),
        },
        Fact::ToolCall(it) => Piece::Call {
            id: Cow::Borrowed(&it.call_id),
            name: Cow::Borrowed(&it.name),
            args: Cow::Owned(it.args.to_string()),
        },
        Fact::ToolResult(it) => Piece::Result {
            id: Cow::Borrowed(&it.call_id),
            output: Cow::Borrowed(&it.output),
            images: Cow::Borrowed(&it.attachments),
        },
        _ => return None,
    })
}

fn branch_text(it: &BranchSummary) -> String {
    format!("<summary of=\"a branch of this conversation that was left\">\n{}\n</summary>", it.summary)
}

fn restored_text(it: &FilesRestored) -> Option<String> {
    let what = match it.reason {
        RestoreReason::Undo => "undid changes to these files",
        RestoreReason::Redo => "redid the changes to these files that had been undone",
        RestoreReason::Rewind => return None,
        RestoreReason::Stayed => {
            let paths: Vec<&str> = it.left.iter().map(|left| left.path.as_str()).collect();
            return Some(format!(
                "<note>The user went back to this point of the conversation; these files differ from what you read in it: {}. Read them before you rely on them.</note>",
                paths.join(", ")
            ));
        }
    };
    let paths: Vec<&str> = it.changes.iter().map(|change| change.path.as_str()).collect();
    Some(format!("<note>The user {what}: {}. Read them again before you rely on them.</note>", paths.join(", ")))
}

/// What a model reads of a command that the person ran.
pub(super) fn command_text(command: &str, output: &str) -> String {
    format!("<command by=\"the user\">\n{command}\n</command>\n<output>\n{}\n</output>", output.trim_end())
}
