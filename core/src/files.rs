//! The workspace and its file versions.

pub mod changes; // files before and after, as diffs
pub(crate) mod guard; // protected files around a command
pub(crate) mod images; // images for the model, checked and bounded
mod protected; // the names of protected files
pub(crate) mod restore; // undo, redo, rewind
pub(crate) mod snapshot; // what a command changed
pub(crate) mod walk; // the files below a folder
pub(crate) mod workspace; // the root that no path may leave
