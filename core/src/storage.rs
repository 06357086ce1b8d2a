//! Logs, and what is stored beside them.

pub(crate) mod blobs; // file versions by content
pub mod log; // append, chain, lock, repair
pub(crate) mod outputs; // saved outputs
pub(crate) mod regular; // files that are safe to open
pub mod rules; // rules that the user made
pub(crate) mod running; // what a killed pixir leaves behind
pub mod store; // Sessions at rest: index, moves, cleaning up
pub(crate) mod trust; // what the user trusts of workspaces
