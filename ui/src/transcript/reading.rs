//! What the user does with the transcript besides scrolling.

pub(crate) mod find; // search in the whole conversation
pub(crate) mod labels; // letters on what can be copied
pub(crate) mod select; // selecting text with the mouse
