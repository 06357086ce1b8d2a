//! The terminal Presenter: turns each action into an Input, and draws the Events that come back.
//!
//! It keeps no fact about the conversation that it could not rebuild from the event stream.
#![warn(missing_docs)]

mod app; // state, session and work beside them; in it the loop: wait, drain, update, draw
mod canvas; // what a frame is drawn on
mod clipboard; // where what is copied goes
mod editor; // the person's own
mod presence; // title, progress, notifications
pub mod script; // the same without a terminal
mod terminal; // the terminal, taken and given back

mod action; // every verb once: its keys, its words, what it does
mod kept; // what a crash must not lose
mod keymap; // which keys mean which verb, where
mod keys; // keys as people write them
mod remedy; // what to do about an error, in words
mod slash; // slash commands
mod state; // everything on the screen
mod update; // its two doors: what the person did, what the Session said

mod composer; // the draft of the person
mod overlay; // layers over the transcript
mod reading; // find, select, copy
mod replay; // a Session told again
mod side; // what stands beside them
mod transcript; // events as cells, and the draft that grows
mod viewport; // the window over them

mod render; // text and data → lines
pub mod theme; // colours by meaning
mod view; // state → frame

pub use action::reference;
pub use app::{Farewell, Launch, Opener, run};
pub use clipboard::Ways;
pub use replay::Telling;
pub use terminal::Screen;
