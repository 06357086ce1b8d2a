//! The terminal Presenter: turns each action into an Input, and draws the Events that come back.
//!
//! It keeps no fact about the conversation that it could not rebuild from the event stream.
#![warn(missing_docs)]

mod app; // the loop: wait, drain, update, draw; the Session, and the work beside the screen
pub mod script; // the same App without a terminal, its keys pressed by a script

mod remedy; // what to do about an error, in words
mod update; // State changes here: what the user did, what the Session reported
mod view; // State to frame

mod input; // what the user can do: actions, keys, slash commands
mod overlay; // layers over the transcript
mod state; // everything on the screen

mod composer; // the user's draft
mod transcript; // Events as cells, and what one does while reading them

mod render; // text and data to lines of a width
mod terminal; // modes, bytes in, frames out
pub mod theme; // colours by meaning

pub use app::clipboard::Clipboards;
pub use app::{
    ComposerKeys, ComposerOptions, ExitSummary, Launch, LookOptions, Motion, Opener, ScreenOptions, Start, run,
};
pub use input::action::reference;
pub use terminal::{MouseOwner, Screen, ScreenMode};
pub use transcript::replay::{Playback, ReplayOptions};
