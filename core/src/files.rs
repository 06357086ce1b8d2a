//! The workspace and its file versions.

pub mod changes; // files before and after, as diffs
pub(crate) mod copy; // copies of the workspace for agents
pub mod diff; // changed files, hunks and lines as a model
pub(crate) mod guard; // protected files around a command
pub(crate) mod images; // images for the model, checked and bounded
pub(crate) mod near_miss; // the place in a file that a text nearly matches
pub(crate) mod patch; // patches of several files: what they say, and where they fit
pub(crate) mod private; // who may open the user's private files, around a command
mod protected; // the names of protected files
pub(crate) mod restore; // undo, redo, rewind
pub(crate) mod size; // how much a folder holds
pub(crate) mod snapshot; // what a command changed
pub(crate) mod walk; // the files below a folder
pub(crate) mod workspace; // the root that no path may leave
