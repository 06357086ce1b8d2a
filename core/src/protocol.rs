//! What crosses the boundary between a Session and its Presenters. It imports nothing of ours.

pub mod error; // what can go wrong, and what to do instead
pub mod event; // Entries and live events
pub mod input; // what a Presenter may ask
pub mod remedy; // what to do about an error, as data
