//! One file per command.

pub(crate) mod auth; // keep, show and forget keys
pub(crate) mod demo; // the embedded task in a temporary workspace
pub(crate) mod doctor; // check this machine
pub(crate) mod look; // inspect, replay as text, diagnose, clean up
pub(crate) mod models; // which models there are
pub(crate) mod replay; // a session told again on the screen, or in a cast
pub(crate) mod run; // a line of commands
pub(crate) mod schema; // the machine-readable contract
pub(crate) mod sessions; // Sessions at rest
pub(crate) mod themes; // colours, and how well they can be read
pub(crate) mod tools; // list, show, run
pub(crate) mod travel; // tree, fork, undo, redo
pub(crate) mod tui; // the interface without a terminal
