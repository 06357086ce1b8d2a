//! How many requests go to a Provider at the same time, and the pause that all of them keep when it asks for one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The most requests to one Provider at the same time.
const AT_ONCE: usize = 8;

/// One gate for each Provider. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gates(Arc<Mutex<HashMap<String, Arc<Gate>>>>);

#[derive(Debug)]
struct Gate {
    places: Arc<Semaphore>,
    /// No request is sent before this moment.
    opens: Mutex<Option<Instant>>,
}

/// A place in a gate, until the answer is there.
#[derive(Debug)]
pub(crate) struct Pass(#[expect(dead_code, reason = "held, never read")] Option<OwnedSemaphorePermit>);

/// On whose behalf a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    User,
    Agent,
}

impl Gates {
    fn of(&self, provider: &str) -> Arc<Gate> {
        let mut all = self.0.lock();
        let new = || Arc::new(Gate { places: Arc::new(Semaphore::new(AT_ONCE)), opens: Mutex::default() });
        Arc::clone(all.entry(provider.to_owned()).or_insert_with(new))
    }

    /// Returns when a request may be sent. `jitter` from 0 to 1 spreads those that wait for the same moment. A user who
    /// asks again while a pause lasts does not keep it: only agents do.
    pub(crate) async fn enter(&self, provider: &str, sender: Sender, jitter: f64) -> Pass {
        let gate = self.of(provider);
        let place = Arc::clone(&gate.places).acquire_owned().await.ok();
        loop {
            let opens = *gate.opens.lock();
            match opens.filter(|at| sender == Sender::Agent && *at > Instant::now()) {
                None => return Pass(place),
                Some(at) => tokio::time::sleep_until(at + SPREAD.mul_f64(jitter.clamp(0.0, 1.0))).await,
            }
        }
    }

    /// How long a pause of the Provider lasts still; `None` where there is none.
    pub(crate) fn pause(&self, provider: &str) -> Option<Duration> {
        let opens = *self.of(provider).opens.lock();
        opens.map(|at| at.saturating_duration_since(Instant::now())).filter(|wait| !wait.is_zero())
    }

    /// The Provider asked for a pause: every request to it waits, not only the one that was refused.
    pub(crate) fn hold(&self, provider: &str, wait: Duration) {
        let gate = self.of(provider);
        let mut opens = gate.opens.lock();
        let at = Instant::now() + wait;
        *opens = Some(opens.map_or(at, |before| before.max(at)));
    }
}

/// How far requests that waited for the same moment are spread.
const SPREAD: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: `hold` keeps the pause for the Session that was refused; a place is not given back.
    #[tokio::test(start_paused = true)]
    async fn eight_requests_go_at_once_and_a_pause_holds_all() {
        let gates = Gates::default();
        let mut passes = Vec::new();
        for _ in 0..AT_ONCE {
            passes.push(gates.enter("one", Sender::Agent, 0.0).await);
        }
        let other = tokio::time::timeout(Duration::from_secs(1), gates.enter("other", Sender::Agent, 0.0)).await;
        assert!(other.is_ok(), "another provider has its own gate");
        let ninth = tokio::time::timeout(Duration::from_secs(1), gates.enter("one", Sender::Agent, 0.0)).await;
        assert!(ninth.is_err(), "the ninth waits");
        passes.clear();
        gates.hold("one", Duration::from_secs(10));
        gates.hold("one", Duration::from_secs(1));
        let before = Instant::now();
        gates.enter("one", Sender::User, 0.5).await;
        assert_eq!(before.elapsed(), Duration::ZERO, "the user asked again");
        gates.enter("one", Sender::Agent, 0.5).await;
        assert_eq!(before.elapsed(), Duration::from_millis(10_250), "the longer pause counts");
    }
}
