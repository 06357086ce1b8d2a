//! Logs, and what is stored beside them.

pub mod blobs; // file versions by content
pub mod log; // append, chain, lock, repair
pub mod outputs; // saved outputs
pub mod store; // Sessions at rest: index, moves, cleaning up
