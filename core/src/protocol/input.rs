//! What a Presenter may ask of a Session, and what the Session answers: every action of the user, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{Attachment, Delivery, Mode, SettingsChanged, Toolset};

/// One request of a Presenter to a Session. Events report what it leads to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Input {
    /// Start a Turn with this message. While a Turn runs, the message waits like a follow-up.
    Prompt(Message),
    /// Add a message to the running Turn after the current tool call.
    Steer(Message),
    /// Start a Turn with this text when the running one ends.
    FollowUp(Message),
    /// Run a command in the workspace; while a Turn runs, it waits until that has ended. The user who typed it has allowed it,
    /// but the mode can still refuse it.
    RunUserCommand {
        /// The command line.
        command: String,
        /// The model reads the command and its output.
        send_to_model: bool,
    },
    /// Empty the queue.
    Dequeue,
    /// Stop the running Turn, or the restore or move of the head that is under way.
    Interrupt,
    /// Decide about a call that waits for it.
    Decide {
        /// The call.
        call_id: String,
        /// The decision.
        decision: Decision,
    },
    /// Answer a form: for each question the chosen or written answers, or null when the user declines to answer.
    Answer {
        /// The call that opened the form.
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
    /// Replace older History by a summary; a dry run publishes the preview.
    Compact {
        /// What the summary should pay attention to.
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
        /// Whether the branch that is left is summed up for the model.
        #[serde(default)]
        summarize: Summarize,
        /// How files are restored to that entry; null leaves them as they are.
        #[serde(default)]
        files: Option<RestoreOptions>,
    },
    /// Undo a Turn's changes to files.
    Undo {
        /// The Turn; null is the last one with changes left to undo.
        #[serde(default)]
        turn: Option<u32>,
        /// How to restore.
        #[serde(flatten)]
        options: RestoreOptions,
    },
    /// Redo the changes that the last undo took back.
    Redo {
        /// How to restore.
        #[serde(flatten)]
        options: RestoreOptions,
    },
    /// Fork the Session.
    Fork {
        /// The last entry that both share.
        seq: u64,
    },
    /// Name an Entry.
    Label {
        /// The Entry.
        seq: u64,
        /// Its name; empty removes it.
        text: String,
    },
    /// Pin an entry, so that compactions keep it word for word, or remove the pin.
    Pin {
        /// The Entry.
        seq: u64,
        /// Whether it is pinned from now on.
        pinned: bool,
    },
    /// Change model, effort, mode or name.
    Set(SettingsChange),
    /// Activate a skill: its text joins the conversation.
    ActivateSkill {
        /// The skill's name.
        name: String,
        /// What it should work on; with text, a Turn starts.
        #[serde(default)]
        args: String,
        /// Images for that text.
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

impl Input {
    /// The name of the request, as its `type` field has it. A refusal names its Input by it.
    pub const fn name(&self) -> &'static str {
        match self {
            Input::Prompt(_) => "prompt",
            Input::Steer(_) => "steer",
            Input::FollowUp(_) => "follow_up",
            Input::RunUserCommand { .. } => "run_user_command",
            Input::Dequeue => "dequeue",
            Input::Interrupt => "interrupt",
            Input::Decide { .. } => "decide",
            Input::Answer { .. } => "answer",
            Input::StopJob { .. } => "stop_job",
            Input::Compact { .. } => "compact",
            Input::MoveHead { .. } => "move_head",
            Input::Undo { .. } => "undo",
            Input::Redo { .. } => "redo",
            Input::Fork { .. } => "fork",
            Input::Label { .. } => "label",
            Input::Pin { .. } => "pin",
            Input::Set(_) => "set",
            Input::ActivateSkill { .. } => "activate_skill",
        }
    }
}

/// What an accepted Input led to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The Turn that the Input began, joins or stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The Input waits in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<Queued>,
    /// The id of the Session that a fork made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<String>,
}

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// Whether it joins the running Turn or starts a later one.
    pub delivery: Delivery,
    /// Its position among those that are delivered the same way, from 1.
    pub position: usize,
}

/// A message of the user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The text.
    pub text: String,
    /// Images; the Harness stores them first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

impl<T: Into<String>> From<T> for Message {
    fn from(text: T) -> Message {
        Message { text: text.into(), attachments: Vec::new() }
    }
}

/// How a branch that is left is summed up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Summarize {
    /// Not at all.
    #[default]
    No,
    /// Without the model, from the entries.
    Deterministic,
    /// By the model; without it when that fails.
    Model,
}

/// The user's decision about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Decision {
    /// Run the call once.
    Allow,
    /// Run the call, and add the offered rule for the rest of the Session.
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
pub enum OnConflict {
    /// Leave the file as it is.
    #[default]
    Keep,
    /// Restore around the changes since.
    Merge,
    /// Restore it. The changes since are lost from the file; the blob store keeps them.
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
                "use keep, merge or overwrite",
            )),
        }
    }
}

/// How files are restored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreOptions {
    /// Publish the preview and touch nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// For files that changed since, unless `choices` names them.
    #[serde(default)]
    pub changed_since: OnConflict,
    /// For single files that changed since, by path.
    #[serde(default)]
    pub choices: BTreeMap<String, OnConflict>,
    /// The token of the preview that the user approved. If files changed since, nothing is restored.
    #[serde(default)]
    pub seen: Option<String>,
}
