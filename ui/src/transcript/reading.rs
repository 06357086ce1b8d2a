//! What a reader does with the transcript besides scrolling.

pub(crate) mod find; // a text, in the whole conversation
pub(crate) mod labels; // letters on what can be copied
pub(crate) mod select; // with the mouse
