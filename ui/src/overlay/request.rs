//! What an overlay wants from outside of itself.

use pixir_core::agent::Asker;
use pixir_core::event::RestorePreview;
use pixir_core::input::RestoreOptions;
use pixir_core::{Decision, Input, Skill};

use super::connect::Order;
use super::diff::{Review, Want};
use super::save_for::SaveFor;
use super::sessions;
use super::tree::{PendingMove, Sides};
use crate::input::action::{Action, ActionSpec};

/// A change outside of the overlay, for `update` to carry out.
#[derive(Debug)]
pub(crate) enum Request {
    /// Run a slash command, as if the user had typed it.
    Command(String),
    /// Send these Inputs, in this order.
    Send(Vec<Input>),
    /// Carry out an action that the user has looked up, which counts as a use of it.
    Use(&'static ActionSpec),
    /// Read the text of a skill.
    ReadSkill(Box<Skill>),
    /// Use a prompt template with these arguments.
    UseTemplate { name: String, args: String },
    /// Read the end of a job's output.
    ReadJob { job: u32, path: String },
    /// Read the last messages and calls of the agent with this Session.
    ReadAgent(String),
    /// Show an agent's Session.
    EnterAgent(Vec<String>),
    /// Work on stored Sessions, in this order.
    Stored(Vec<sessions::Work>),
    /// Find files that match these letters.
    FindFiles(String),
    /// Mention a file in the draft.
    Mention(String),
    /// Carry out an action that is not the overlay's own.
    Perform(Action),
    /// Decide about the call that waits for it.
    Decide { agent: Option<Asker>, call_id: String, decision: Decision, word: Option<String> },
    /// Put a command into the composer for the user to complete, with a hint in the status line.
    Complete { draft: String, hint: Option<&'static str> },
    /// Use this theme without a word: a preview, or the end of one.
    RestoreTheme(String),
    /// Change this setting, and save it where the user wants it.
    Change { key: String, value: String, save: SaveFor },
    /// Take this setting out of the file, so that the layer below it decides.
    Unset { key: String, save: SaveFor },
    /// Let this model answer, and save it where the user wants it.
    ChooseModel { provider: String, model: String, effort: Option<String>, save: SaveFor },
    /// A step of connecting a model.
    Connect(Order),
    /// Show this cell of the transcript.
    ShowCell(usize),
    /// Compare the files of two conversations.
    CompareFiles(Sides),
    /// Show the cell of this entry.
    ShowEntry(u64),
    /// Move the head, once the user has decided about the files.
    MoveHead(PendingMove),
    /// Move the head, and leave the files as they are.
    MoveWithoutFiles,
    /// Cancel the pending move of the head.
    Stay,
    /// Read what the diff shows.
    ReadDiff(Vec<Want>),
    /// Send what the user decided about a hunk, and read on.
    Review { input: Input, wants: Vec<Want> },
    /// Send the comments on the diff as one message.
    SendReview(String),
    /// Show what the Turn that begins with this Entry changed, at this file.
    ShowTurnDiff { seq: u64, path: Option<String> },
    /// Keep the comments on the diff until it is opened again.
    KeepReview(Review),
    /// Put a text into the clipboard.
    Copy(String),
    /// Open a file of the workspace at a line in the user's own editor.
    EditFile { path: String, line: u32 },
    /// Let the user write this file of an agent's copy in their own editor, from this text.
    MergeByHand { path: String, text: String },
    /// Restore files as previewed. `RestoreOptions` has the user's choices.
    Restore(Box<RestorePreview>, RestoreOptions),
}
