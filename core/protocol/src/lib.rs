//! What crosses the boundary between a Session and its Presenters. It imports nothing of ours.
#![forbid(unsafe_code)]

pub mod agent; // child Sessions, as a Presenter shows them
pub mod call_info; // what a tool call is about
pub mod effort; // reasoning effort
pub mod error; // what can go wrong, and what to do instead
pub mod event; // Entries and live events
pub mod input; // requests of a Presenter, and their answers
pub mod now; // the state of a Session when a watch begins
pub mod protected; // groups of protected files
pub mod remedy; // what to do about an error, as data
pub mod rule; // rules that the user made
pub mod sandbox; // the means by which programs are confined
pub mod tool_spec; // how a tool is offered to a model
pub mod servers; // how MCP servers are
pub mod trust; // what a workspace brings along, and the user's answer about it
pub mod verbs; // orders that a user types, and the Inputs that they become

/// Whether a number need not be written.
pub fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}
