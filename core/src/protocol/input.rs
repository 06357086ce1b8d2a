//! What a Presenter may ask of a Session: every action of a person, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{Attachment, SettingsChanged};

/// One request to a Session. What it leads to comes back as Events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Input {
    /// Start a Turn with this text; while one runs, it waits like a follow-up.
    Prompt(Message),
    /// Say something to the running Turn, after the current tool call.
    Steer(Message),
    /// Start the next Turn with this text when the running one ends.
    FollowUp(Message),
    /// Run a command in the workspace; while a Turn runs, when that has ended. Whoever typed it has allowed it; what the
    /// mode refuses is still refused.
    RunUserCommand {
        /// The command line.
        command: String,
        /// The model reads it, and what comes of it.
        send_to_model: bool,
    },
    /// Take everything back that waits; it is published as an emptied queue.
    Dequeue,
    /// Stop the running Turn.
    Interrupt,
    /// Answer an approval.
    Decide {
        /// The call that asked.
        call_id: String,
        /// The answer.
        decision: Decision,
    },
    /// Answer a form; for each question what was chosen or said, or nothing at all when the person does not want to.
    Answer {
        /// The call that asked.
        call_id: String,
        /// The answers, in the order of the questions.
        #[serde(default)]
        answers: Option<Vec<Vec<String>>>,
    },
    /// Stop a background job.
    StopJob {
        /// Its number.
        job: u32,
    },
    /// Replace older history by a summary; a dry run only says what it would do.
    Compact {
        /// What the summary should keep in mind.
        #[serde(default)]
        instructions: Option<String>,
        /// Write nothing.
        #[serde(default)]
        dry_run: bool,
    },
    /// Continue from another entry; null is the empty conversation.
    MoveHead {
        /// The new head.
        to_seq: Option<u64>,
        /// Whether the model is told what was done on the branch that is left.
        #[serde(default)]
        summarize: Summarize,
        /// Whether the files go along, and how; without, they stay as they are.
        #[serde(default)]
        files: Option<Wish>,
    },
    /// Take back what a Turn changed in files.
    Undo {
        /// The Turn; without, the last that changed anything.
        #[serde(default)]
        turn: Option<u32>,
        /// How.
        #[serde(flatten)]
        wish: Wish,
    },
    /// Do again what the last undo took back.
    Redo {
        /// How.
        #[serde(flatten)]
        wish: Wish,
    },
    /// Make a new Session that continues from this entry.
    Fork {
        /// The last entry that it shares.
        seq: u64,
    },
    /// Name an entry.
    Label {
        /// The entry.
        seq: u64,
        /// Its name; empty takes the name away.
        text: String,
    },
    /// Keep an entry through every compaction, word for word.
    Pin {
        /// The entry.
        seq: u64,
        /// Whether it is pinned from now on.
        pinned: bool,
    },
    /// Change model, effort, mode or name.
    Set(SettingsChanged),
    /// Put a skill's text into the conversation.
    ActivateSkill {
        /// Its name.
        name: String,
        /// What it should work on.
        #[serde(default)]
        args: String,
        /// Images that go with that.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
}

/// What a person says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The words.
    pub text: String,
    /// Images that go with them; the harness keeps them first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

impl<T: Into<String>> From<T> for Message {
    fn from(text: T) -> Message {
        Message { text: text.into(), attachments: Vec::new() }
    }
}

/// Whether and how a branch that is left is summed up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Summarize {
    /// It is not.
    #[default]
    No,
    /// From what was recorded.
    Deterministic,
    /// By the model; from what was recorded, when it cannot.
    Model,
}

/// A person's answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Decision {
    /// Run it this once.
    Allow,
    /// Run it, and what the offered rule covers for the rest of the Session.
    AllowAlways,
    /// Do not run it.
    Deny {
        /// What the model should do instead.
        #[serde(default)]
        feedback: Option<String>,
    },
}

/// What a person wants done with a file that changed since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Leave it as it is.
    #[default]
    Keep,
    /// Keep what was changed since, and restore around it.
    Merge,
    /// Restore it; what was changed since is lost from the file, and kept in the blob store.
    Overwrite,
}

impl Choice {
    /// The choice with this name.
    ///
    /// # Errors
    /// `INVALID_ARGS`, with the names that exist.
    pub fn parse(name: &str) -> Result<Choice> {
        match name {
            "keep" => Ok(Choice::Keep),
            "merge" => Ok(Choice::Merge),
            "overwrite" => Ok(Choice::Overwrite),
            _ => Err(Error::new(
                Code::InvalidArgs,
                format!("there is no choice `{}`", name.escape_debug()),
                "use keep, merge or overwrite",
            )),
        }
    }
}

/// How a restore is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// Only say what it would do.
    #[serde(default)]
    pub dry_run: bool,
    /// For files that changed since, unless they are named below.
    #[serde(default)]
    pub changed_since: Choice,
    /// For single files that changed since, by path.
    #[serde(default)]
    pub choices: BTreeMap<String, Choice>,
    /// The plan that the person saw: when it is not what would be done now, nothing is.
    #[serde(default)]
    pub seen: Option<String>,
}
