//! What a Presenter may ask of a Session: every action of a person, as data.

use serde::{Deserialize, Serialize};

use crate::event::SettingsChanged;

/// One request to a Session. What it leads to comes back as Events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Input {
    /// Start a Turn with this text; while one runs, it waits like a follow-up.
    Prompt {
        /// What the person wants.
        text: String,
    },
    /// Say something to the running Turn, after the current tool call.
    Steer {
        /// What the person says.
        text: String,
    },
    /// Start the next Turn with this text when the running one ends.
    FollowUp {
        /// What the person wants then.
        text: String,
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
    /// Replace older history by a summary; a dry run only says what it would do.
    Compact {
        /// What the summary should keep in mind.
        #[serde(default)]
        instructions: Option<String>,
        /// Write nothing.
        #[serde(default)]
        dry_run: bool,
    },
    /// Continue from an earlier entry; null is the empty conversation.
    MoveHead {
        /// The new head.
        to_seq: Option<u64>,
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
    /// Change model, effort, mode or name.
    Set(SettingsChanged),
    /// Put a skill's text into the conversation.
    ActivateSkill {
        /// Its name.
        name: String,
        /// What it should work on.
        #[serde(default)]
        args: String,
    },
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
