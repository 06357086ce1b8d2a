//! The terminal Presenter: turns the user's actions into Inputs, and draws the Events that come back.
//!
//! Everything it knows about the conversation can be rebuilt from the event stream.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod app; // the event loop, the Session, and background tasks
pub mod script; // the App without a terminal, driven by a script

mod remedy; // the text of an error's remedy
mod update; // all changes of State: user actions, Events of the Session
mod view; // the State as a frame

mod input; // actions, keys, slash commands
mod overlay; // layers over the transcript
mod state; // everything on the screen

mod composer; // the user's draft
mod transcript; // Events as cells; viewport, search, selection

mod render; // text and data as lines of a given width
mod terminal; // terminal modes, input decoding, frame output
pub mod theme; // colours by meaning

pub use app::clipboard::Clipboards;
pub use app::{
    ComposerKeys, ComposerOptions, Connect, Demo, Examine, ExitAnswer, ExitSummary, Export, Launch, LookOptions,
    Motion, Opener, Program, ScreenOptions, SettingsStore, Start, run,
};
pub use input::action::reference;
pub use input::argument::ExportFormat;
pub use overlay::save_for::SavePlace;
pub use render::report::{Check, Grade};
pub use terminal::{MouseOwner, Screen, ScreenMode, print_after};
pub use transcript::replay::{Playback, ReplayOptions};
