//! What a Log means: its Entries folded into History, branches and usage.
#![forbid(unsafe_code)]

pub mod history; // Entries folded into what the model sees
pub mod scale; // how a Provider counts tokens, beside pixir's estimate
pub mod tree; // branches, read from a History
pub mod usage; // tokens and cost: per Turn, branch, Session and model
