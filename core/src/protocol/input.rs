//! What a Presenter may ask of a Session, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{Attachment, Mode, SettingsChanged, Toolset};

/// One request of a Presenter to a Session. Events report what it leads to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Input {
    /// Start a Turn with this message. While a Turn runs, the message waits like a follow-up.
    Prompt(Message),
    /// Add this message to the running Turn, after the current call.
    Steer(Message),
    /// Start the next Turn with this message when the running Turn ends.
    FollowUp(Message),
    /// Run a command in the workspace, after the running Turn. The user typed it, so it needs no approval; what the mode
    /// or a deny rule refuses is still refused.
    RunUserCommand {
        /// The command line.
        command: String,
        /// Whether the model reads the command and its output.
        send_to_model: bool,
    },
    /// Empty the Queue. `QueueChanged` reports it.
    Dequeue,
    /// Stop the running Turn.
    Interrupt,
    /// Decide an approval.
    Decide {
        /// The call that waits.
        call_id: String,
        /// The decision.
        decision: Decision,
    },
    /// Answer a form.
    Answer {
        /// The call that asks.
        call_id: String,
        /// For each question, in order, the chosen options or the user's own words; null when the user declines to answer.
        #[serde(default)]
        answers: Option<Vec<Vec<String>>>,
    },
    /// Stop a background job.
    StopJob {
        /// The job's number.
        job: u32,
    },
    /// Replace older History by a summary; a dry run only returns the preview.
    Compact {
        /// What the summary should emphasise.
        #[serde(default)]
        instructions: Option<String>,
        /// Write nothing.
        #[serde(default)]
        dry_run: bool,
    },
    /// Move the Head to another Entry.
    MoveHead {
        /// The new Head; null is the empty conversation.
        to_seq: Option<u64>,
        /// Whether the model reads a summary of the branch that the Head leaves.
        #[serde(default)]
        summarize: Summarize,
        /// How to restore the files as they were there; without, the files stay as they are.
        #[serde(default)]
        files: Option<Wish>,
    },
    /// Take back a Turn's changes of files.
    Undo {
        /// The Turn; without, the last one that changed a file.
        #[serde(default)]
        turn: Option<u32>,
        /// How to restore.
        #[serde(flatten)]
        wish: Wish,
    },
    /// Take back the last undo.
    Redo {
        /// How to restore.
        #[serde(flatten)]
        wish: Wish,
    },
    /// Fork the Session.
    Fork {
        /// The last Entry that the fork shares.
        seq: u64,
    },
    /// Name an Entry.
    Label {
        /// The Entry.
        seq: u64,
        /// The name; empty removes it.
        text: String,
    },
    /// Pin an Entry: compactions keep it word for word.
    Pin {
        /// The Entry.
        seq: u64,
        /// Whether it is pinned from now on.
        pinned: bool,
    },
    /// Change settings.
    Set(SettingsChange),
    /// Activate a skill: its text joins the conversation.
    ActivateSkill {
        /// The skill's name.
        name: String,
        /// What the skill should work on.
        #[serde(default)]
        args: String,
        /// Images to send with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
}

/// A change of settings that a Presenter asks for; only what changes is present. It is recorded as [`SettingsChanged`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingsChange {
    /// The Provider's name in the configuration; always together with `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model's name at its Provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How much the model is asked to reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// What may run without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Which tools the model is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolset: Option<Toolset>,
    /// The Session's name; empty takes it away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The root of the workspace from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

impl From<SettingsChange> for SettingsChanged {
    fn from(it: SettingsChange) -> SettingsChanged {
        let SettingsChange { provider, model, effort, mode, toolset, name, workspace } = it;
        SettingsChanged { provider, model, effort, mode, toolset, name, workspace }
    }
}

/// A message of the user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The text.
    pub text: String,
    /// Images to send with it. The harness stores them first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

impl<T: Into<String>> From<T> for Message {
    fn from(text: T) -> Message {
        Message { text: text.into(), attachments: Vec::new() }
    }
}

/// Whether and how to sum up the branch that the Head leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Summarize {
    /// No summary.
    #[default]
    No,
    /// A summary computed from the Log.
    Deterministic,
    /// A summary by the model; if that fails, one computed from the Log.
    Model,
}

/// The user's decision about an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Decision {
    /// Run the call once.
    Allow,
    /// Run the call, and make the offered rule for the rest of the Session.
    AllowAlways,
    /// Do not run the call.
    Deny {
        /// What the user tells the model.
        #[serde(default)]
        feedback: Option<String>,
    },
}

/// What a restore does with a file that changed since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Leave the file as it is.
    #[default]
    Keep,
    /// Merge the restored version with the changes made since.
    Merge,
    /// Restore the file. The changes made since are kept only in the blob store.
    Overwrite,
}

impl Choice {
    /// Parses a name.
    ///
    /// # Errors
    /// `INVALID_ARGS`, with the valid names.
    pub fn parse(name: &str) -> Result<Choice> {
        match name {
            "keep" => Ok(Choice::Keep),
            "merge" => Ok(Choice::Merge),
            "overwrite" => Ok(Choice::Overwrite),
            _ => Err(Error::new(
                Code::InvalidArgs,
                format!("there is no choice `{}`", name.escape_debug()),
                "keep, merge or overwrite",
            )),
        }
    }
}

/// How to restore files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// Only return the preview.
    #[serde(default)]
    pub dry_run: bool,
    /// For files that changed since and are not named in `choices`.
    #[serde(default)]
    pub changed_since: Choice,
    /// For single files that changed since, by path.
    #[serde(default)]
    pub choices: BTreeMap<String, Choice>,
    /// The token of the preview that the user saw. If a restore would now do something else, it does nothing.
    #[serde(default)]
    pub seen: Option<String>,
}
