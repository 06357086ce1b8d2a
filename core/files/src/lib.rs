//! The workspace and its file versions.
#![forbid(unsafe_code)]

pub mod changes; // files before and after, as diffs
pub mod copy; // copies of the workspace for agents
pub mod diff; // changed files, hunks and lines as a model
pub mod guard; // protected files around a command
pub mod images; // images for the model, checked and bounded
pub mod names; // patterns for names of files
pub mod new_file; // a file of the user outside of any workspace
pub mod near_miss; // the place in a file that a text nearly matches
pub mod patch; // patches of several files: what they say, and where they fit
pub mod private; // who may open the user's private files, around a command
mod protected; // the names of protected files
pub mod restore; // undo, redo, rewind
pub mod size; // how much a folder holds
pub mod snapshot; // what a command changed
pub mod walk; // the files below a folder
pub mod workspace; // the root that no path may leave
