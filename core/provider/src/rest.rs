//! The rest of a thread between two parts of an answer.
//!
//! A fast model sends hundreds of parts a second, and watchers hear of them thirty times a second. Where each part woke the
//! thread that reads it, half of what a streamed answer cost was waking.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

/// How long the thread rests: a part that ends an answer waits no longer for it to be read.
const REST: Duration = Duration::from_millis(5);

thread_local! {
    /// This thread has read a part of an answer since it last rested.
    static HAS_READ: Cell<bool> = const { Cell::new(false) };
}

/// A part of an answer was read. The next one may wait.
pub(super) fn part_was_read() {
    HAS_READ.set(true);
}

/// An answer has ended. What follows it does not wait.
pub(super) fn answer_has_ended() {
    HAS_READ.set(false);
}

/// Rests if this thread has read a part of an answer since it last rested. A runtime that has one thread calls it when that
/// thread parks, and then reads what has arrived meanwhile at once. Keys must not be read on such a thread.
pub fn rest_between_parts() {
    if HAS_READ.take() {
        thread::sleep(REST);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Broken builds: every part wakes the thread; a thread rests after the end of an answer.
    #[test]
    fn parts_that_arrive_during_a_rest_are_read_together_and_the_end_of_an_answer_is_not_rested_on() {
        let rests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&rests);
        let parks = move || {
            counted.fetch_add(usize::from(HAS_READ.get()), Ordering::Relaxed);
            rest_between_parts();
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .on_thread_park(parks)
            .build()
            .expect("a runtime");
        let (sender, mut parts) = tokio::sync::mpsc::unbounded_channel::<usize>();
        let reading = runtime.spawn(async move {
            let mut read = 0;
            while parts.recv().await.is_some() {
                part_was_read();
                read += 1;
            }
            answer_has_ended();
            read
        });
        sender.send(0).expect("it is read");
        while rests.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        for n in 1..1_000 {
            sender.send(n).expect("it is read");
            thread::yield_now();
        }
        drop(sender);
        assert_eq!(runtime.block_on(reading).expect("no panic"), 1_000);
        let rested = rests.load(Ordering::Relaxed);
        assert!(rested < 500, "{rested} rests for 1,000 parts");
        assert!(!runtime.block_on(runtime.spawn(async { HAS_READ.get() })).expect("no panic"), "after the end");
    }
}
