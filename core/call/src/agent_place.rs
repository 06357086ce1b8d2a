//! The place of an agent among those of its tree that run at the same time.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The place of one agent. Clones are the same place.
#[derive(Debug, Clone)]
pub struct AgentPlace(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The places of the tree.
    all: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    permit: Option<OwnedSemaphorePermit>,
    /// What waits meanwhile for the user or for other agents.
    waits: usize,
    /// It was given away for such a wait, so the Turn takes one again before it goes on.
    is_owed: bool,
}

/// The agent waits, and others may run in its place. Dropped when the wait is over.
#[derive(Debug)]
pub struct Aside(AgentPlace);

impl Drop for Aside {
    fn drop(&mut self) {
        self.0.0.state.lock().waits -= 1;
    }
}

impl AgentPlace {
    /// A place among these, not taken yet.
    pub fn among(all: Arc<Semaphore>) -> AgentPlace {
        AgentPlace(Arc::new(Shared { all, state: Mutex::default() }))
    }

    /// Returns when it is taken.
    pub async fn take(&self) {
        // The places of a tree are never closed.
        let permit = Arc::clone(&self.0.all).acquire_owned().await.ok();
        let mut state = self.0.state.lock();
        (state.permit, state.is_owed) = (permit, false);
    }

    /// Gives it to an agent that can run, as long as the wait lasts. A Turn that runs without a place gives none.
    pub fn step_aside(&self) -> Aside {
        let mut state = self.0.state.lock();
        state.waits += 1;
        state.is_owed |= state.permit.take().is_some();
        drop(state);
        Aside(self.clone())
    }

    /// Whether one was given away that the Turn needs again, because nothing of it waits any more.
    pub fn is_owed(&self) -> bool {
        let state = self.0.state.lock();
        state.is_owed && state.waits == 0
    }

    /// The Turn is over.
    pub fn leave(&self) {
        let mut state = self.0.state.lock();
        (state.permit, state.is_owed) = (None, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    /// Broken builds: the end of one of two waits takes the place again; a Turn that never had a place takes one.
    #[test]
    fn a_place_is_free_while_anything_of_its_turn_waits_and_is_owed_afterwards() {
        let all = Arc::new(Semaphore::new(1));
        let (one, other) = (AgentPlace::among(Arc::clone(&all)), AgentPlace::among(Arc::clone(&all)));
        assert!(one.take().now_or_never().is_some());
        assert!(other.take().now_or_never().is_none(), "it is taken");
        let (first, second) = (one.step_aside(), one.step_aside());
        assert!(other.take().now_or_never().is_some());
        drop(first);
        assert!(!one.is_owed(), "the second wait lasts");
        drop(second);
        assert!(one.is_owed() && one.take().now_or_never().is_none(), "the other has it");
        other.leave();
        assert!(one.take().now_or_never().is_some() && !one.is_owed());
        // The user's own Turn of an agent began without one.
        drop(other.step_aside());
        assert!(!other.is_owed());
    }
}
