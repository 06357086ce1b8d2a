//! What the requests so far have told the model, and what the Provider reported about the last one.

use super::History;
use protocol::event::{SessionStarted, Surroundings};

impl History {
    /// The surroundings that the next request tells of. What a Log of an older build does not tell counts as told, as it
    /// is now.
    pub fn told_surroundings(&self, now: &Surroundings) -> Surroundings {
        let SessionStarted { mode, toolset, surroundings, .. } = &self.started;
        let at_start =
            || surroundings.clone().unwrap_or(Surroundings { mode: *mode, toolset: *toolset, ..now.clone() });
        self.told.clone().unwrap_or_else(at_start)
    }

    /// Whether a user could answer when the last request was sent, as far as the Log tells.
    pub fn is_attended(&self) -> bool {
        self.told.as_ref().or(self.started.surroundings.as_ref()).is_none_or(|it| it.attended)
    }

    /// Input tokens of the last request, and the bytes of the items that it sent, where the Provider reported them.
    pub fn measured(&self) -> Option<(u64, usize)> {
        self.measured
    }
}
