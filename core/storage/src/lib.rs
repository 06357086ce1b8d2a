//! Logs, and what is stored beside them.
#![forbid(unsafe_code)]

pub mod blobs; // file versions by content
pub mod file_system; // which file systems hold files of a user
pub mod log; // append, chain, lock, repair
pub mod outputs; // saved outputs
pub mod regular; // files that are safe to open
pub mod removal; // folders in which programs have written
pub mod rules; // rules that the user made
pub mod running; // what a killed pixir leaves behind
pub mod store; // Sessions at rest: index, moves, cleaning up
pub mod trust; // what the user trusts of workspaces
