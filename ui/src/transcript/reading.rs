//! Reading the transcript beyond scrolling: search, copy labels, selection.

pub(crate) mod find; // search in the whole conversation
pub(crate) mod labels; // letters that copy what they mark
pub(crate) mod select; // selection with the mouse
