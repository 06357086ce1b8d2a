//! How many requests of agents go to a Provider with one key at the same time, and the pause that all of them keep when it asks
//! for one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

/// The most requests of agents to one Provider with one key at the same time. The user's own request is sent beside them,
/// so that agents whose requests hang never keep it.
const AT_ONCE: usize = 8;

/// A Provider's name and the number of its key.
type Keyed = (String, u64);

/// One gate for each Provider and key. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Gates(Arc<Mutex<HashMap<Keyed, Arc<Gate>>>>);

/// The requests of agents to one Provider with one key.
#[derive(Debug)]
pub struct Gate {
    places: Arc<Semaphore>,
    /// The agents whose requests are under way, oldest first.
    inside: Mutex<Vec<String>>,
    /// No request is sent before this moment.
    opens: Mutex<Option<Instant>>,
    /// What those that wait are told of it has changed.
    changed: watch::Sender<()>,
}

/// The place of an agent in a gate, until the answer is there.
#[derive(Debug)]
pub struct Pass {
    gate: Arc<Gate>,
    agent: String,
    #[expect(dead_code, reason = "held, never read")]
    place: Option<OwnedSemaphorePermit>,
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut inside = self.gate.inside.lock();
        if let Some(at) = inside.iter().position(|it| *it == self.agent) {
            inside.remove(at);
        }
        drop(inside);
        self.gate.changed.send_replace(());
    }
}

impl Gates {
    /// The gate of this Provider with the key of this number.
    pub fn of(&self, provider: &str, key: u64) -> Arc<Gate> {
        let mut all = self.0.lock();
        let new = || {
            let places = Arc::new(Semaphore::new(AT_ONCE));
            Arc::new(Gate {
                places,
                inside: Mutex::default(),
                opens: Mutex::default(),
                changed: watch::Sender::default(),
            })
        };
        Arc::clone(all.entry((provider.to_owned(), key)).or_insert_with(new))
    }
}

impl Gate {
    /// Returns when the request of an agent may be sent. `jitter` from 0 to 1 spreads those that wait for the same moment.
    pub async fn enter(self: Arc<Gate>, agent: &str, jitter: f64) -> Pass {
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        loop {
            let opens = *self.opens.lock();
            let Some(at) = opens.filter(|at| *at > Instant::now()) else { break };
            tokio::time::sleep_until(at + SPREAD.mul_f64(jitter.clamp(0.0, 1.0))).await;
        }
        self.inside.lock().push(agent.to_owned());
        self.changed.send_replace(());
        Pass { gate: self, agent: agent.to_owned(), place }
    }

    /// Sees every change of the holders and of the pause from now on.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// The agents that have to get an answer before another request is sent; none where there is a place.
    pub fn holders(&self) -> Vec<String> {
        if self.places.available_permits() > 0 { Vec::new() } else { self.inside.lock().clone() }
    }

    /// How long a pause of the Provider lasts still; `None` where there is none.
    pub fn pause(&self) -> Option<Duration> {
        let opens = *self.opens.lock();
        opens.map(|at| at.saturating_duration_since(Instant::now())).filter(|wait| !wait.is_zero())
    }

    /// The Provider asked for a pause: every request of an agent to it waits, not only the one that was refused.
    pub fn hold(&self, wait: Duration) {
        let mut opens = self.opens.lock();
        let at = Instant::now() + wait;
        *opens = Some(opens.map_or(at, |before| before.max(at)));
        drop(opens);
        self.changed.send_replace(());
    }
}

/// How far requests that waited for the same moment are spread.
const SPREAD: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: `hold` keeps the pause for the Session that was refused; a place is not given back; keys of one
    /// Provider share their gate.
    #[tokio::test(start_paused = true)]
    async fn eight_requests_go_at_once_and_a_pause_holds_all() {
        let gates = Gates::default();
        let second = Duration::from_secs(1);
        let enter = |provider: &str, key: u64, agent: &str| {
            let entering = gates.of(provider, key);
            let agent = agent.to_owned();
            async move { entering.enter(&agent, 0.0).await }
        };
        let mut passes = Vec::new();
        for n in 0..AT_ONCE {
            assert_eq!(gates.of("one", 1).holders(), Vec::<String>::new());
            passes.push(enter("one", 1, &format!("a{n}")).await);
        }
        assert_eq!(gates.of("one", 1).holders(), ["a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"]);
        let other = tokio::time::timeout(second, enter("other", 1, "b")).await;
        assert!(other.is_ok(), "another provider has its own gate");
        let other = tokio::time::timeout(second, enter("one", 2, "b")).await;
        assert!(other.is_ok(), "another key has its own gate");
        let ninth = tokio::time::timeout(second, enter("one", 1, "b")).await;
        assert!(ninth.is_err(), "the ninth waits");
        passes.remove(3);
        assert!(gates.of("one", 1).holders().is_empty());
        passes.clear();
        gates.of("one", 1).hold(Duration::from_secs(10));
        gates.of("one", 1).hold(Duration::from_secs(1));
        assert_eq!(gates.of("one", 2).pause(), None, "the pause of one key is not that of another");
        let before = Instant::now();
        gates.of("one", 1).enter("b", 0.5).await;
        assert_eq!(before.elapsed(), Duration::from_millis(10_250), "the longer pause counts");
    }
}
