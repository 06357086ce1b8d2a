//! One file per command.

pub(crate) mod auth; // keep, show and forget keys
pub(crate) mod demo; // the embedded task in a temporary workspace
pub(crate) mod diagnose; // what is wrong with a Session
pub(crate) mod doctor; // check this machine
pub(crate) mod fork; // a new Session from an entry of another
pub(crate) mod gc; // clean up
pub(crate) mod inspect; // the exact request
pub(crate) mod models; // which models there are
pub(crate) mod replay; // a Session told again
pub(crate) mod restore; // undo, redo
pub(crate) mod run; // a line of commands
pub(crate) mod schema; // the machine-readable contract
pub(crate) mod sessions; // Sessions at rest
pub(crate) mod themes; // colours, and how well they can be read
pub(crate) mod tools; // list, show, run
pub(crate) mod tree; // turns and branches
pub(crate) mod tui; // the interface without a terminal
