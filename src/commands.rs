//! One file per command.

pub(crate) mod doctor; // check this machine
pub(crate) mod schema; // the machine-readable contract
pub(crate) mod sessions; // list them
pub(crate) mod tools; // list, show, run
