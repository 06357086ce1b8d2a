//! What an overlay wants from outside of itself.

use pixir_core::agent::Asker;
use pixir_core::event::RestorePreview;
use pixir_core::input::RestoreOptions;
use pixir_core::{Decision, Input};

use super::Effect;
use super::diff::Review;
use super::save_for::SaveFor;
use super::tree::PendingMove;
use crate::input::action::{Action, ActionSpec};

/// A change outside of the overlay, for `update` to carry out.
#[derive(Debug)]
pub(crate) enum Request {
    /// Work outside of the State, carried out as it is.
    Do(Vec<Effect>),
    /// Run a slash command, as if the user had typed it.
    Command(String),
    /// Send these Inputs, in this order.
    Send(Vec<Input>),
    /// Carry out an action that the user has looked up, which counts as a use of it.
    Use(&'static ActionSpec),
    /// Use a prompt template with these arguments.
    UseTemplate { name: String, args: String },
    /// Mention a file in the draft.
    Mention(String),
    /// Carry out an action that is not the overlay's own.
    Perform(Action),
    /// Decide about the call that waits for it.
    Decide { agent: Option<Asker>, call_id: String, decision: Decision, word: Option<String> },
    /// Put a command into the composer for the user to complete, with a hint in the status line.
    Complete { draft: String, hint: Option<&'static str> },
    /// Change this setting, and save it where the user wants it.
    Change { key: String, value: String, save: SaveFor },
    /// Take this setting out of the file, so that the layer below it decides.
    Unset { key: String, save: SaveFor },
    /// Let this model answer, and save it where the user wants it.
    ChooseModel { provider: String, model: String, effort: Option<String>, save: SaveFor },
    /// Show this cell of the transcript.
    ShowCell(usize),
    /// Show the cell of this entry.
    ShowEntry(u64),
    /// Move the head, once the user has decided about the files.
    MoveHead(PendingMove),
    /// Move the head, and leave the files as they are.
    MoveWithoutFiles,
    /// Cancel the pending move of the head.
    Stay,
    /// Send the comments on the diff as one message.
    SendReview(String),
    /// Show what the Turn that begins with this Entry changed, at this file.
    ShowTurnDiff { seq: u64, path: Option<String> },
    /// Keep the comments on the diff until it is opened again.
    KeepReview(Review),
    /// Restore files as previewed. `RestoreOptions` has the user's choices.
    Restore(Box<RestorePreview>, RestoreOptions),
}
