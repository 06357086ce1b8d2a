//! The way of a tool call.

pub mod present; // bytes → what the model reads
