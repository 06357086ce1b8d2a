//! The waits of a script, which a user can skip.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// The waits of one scripted Provider.
#[derive(Debug, Default)]
pub struct Pace {
    /// The rest of this answer comes without waiting.
    is_hurried: AtomicBool,
    hurried: Notify,
}

impl Pace {
    /// Skips the waits of the answer that is being written.
    pub fn hurry(&self) {
        self.is_hurried.store(true, Ordering::Relaxed);
        self.hurried.notify_waiters();
    }

    /// The next answer waits again.
    pub(super) fn begin(&self) {
        self.is_hurried.store(false, Ordering::Relaxed);
    }

    pub(super) async fn pause(&self, ms: u64) {
        let hurried = self.hurried.notified();
        if ms == 0 || self.is_hurried.load(Ordering::Relaxed) {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(ms)) => {}
            () = hurried => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::Instant;

    use super::*;

    /// Broken build: `hurry` wakes the wait that runs, and the next one waits again.
    #[tokio::test(start_paused = true)]
    async fn a_hurried_answer_waits_no_more_and_the_next_one_does() {
        let pace = Arc::new(Pace::default());
        let began = Instant::now();
        let waiting = tokio::spawn({
            let pace = Arc::clone(&pace);
            async move {
                for _ in 0..100 {
                    pace.pause(1_000).await;
                }
            }
        });
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        pace.hurry();
        waiting.await.expect("it ends");
        assert_eq!(began.elapsed(), Duration::from_millis(1_500));
        pace.begin();
        pace.pause(1_000).await;
        assert_eq!(began.elapsed(), Duration::from_millis(2_500));
    }
}
