//! Child processes: groups that are stopped together, and background jobs.
#![forbid(unsafe_code)]

mod deaths; // when a server died, and when it may start again
pub mod ending; // signals that end the program
mod environment; // the variables that commands get
pub mod group; // process groups, strays
pub mod jobs; // background jobs of a Session
pub mod ports; // where a job listens
mod sweep; // processes that a killed pixir has left

pub use deaths::Deaths;
pub use ending::EndSignals;
pub use environment::{environment, names_code};
pub use group::children;
pub use group::{Ended, Group, Stopping, Stream, drain, joined, program};
pub use group::{OfThePerson, Printed, adopt_orphans, between_starts};
pub use jobs::Leader;
pub use sweep::sweep;
