//! Child processes: groups that are stopped together, and background jobs.

pub(crate) mod ending; // signals that end the program
mod environment; // the variables that commands get
pub(crate) mod group; // process groups, strays
pub(crate) mod jobs; // background jobs of a Session
pub(crate) mod ports; // where a job listens
mod sweep; // processes that a killed pixir has left

pub use ending::EndSignals;
pub(crate) use environment::{environment, names_code};
pub(crate) use group::children;
pub(crate) use group::{Ended, Group, Stopping, Stream, drain, joined, program};
pub use group::{OfThePerson, adopt_orphans, between_starts};
pub(crate) use jobs::Leader;
pub(crate) use sweep::sweep;
