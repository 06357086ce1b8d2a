//! Waiting for a state: the only place of the tests that polls.

use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits for a state.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// The time between two checks of a state.
const POLL: Duration = Duration::from_millis(2);

/// Waits until `holds`; panics with `what` when it takes longer than [`PATIENCE`].
pub(crate) fn until(what: &str, holds: impl FnMut() -> bool) {
    assert!(within(PATIENCE, holds), "waited in vain until {what}");
}

/// Whether `holds` becomes true within `most`.
pub(crate) fn within(most: Duration, mut holds: impl FnMut() -> bool) -> bool {
    found(most, || holds().then_some(())).is_some()
}

/// The first value that `look` returns within `most`.
pub(crate) fn found<T>(most: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        if let Some(it) = look() {
            return Some(it);
        }
        if began.elapsed() >= most {
            return None;
        }
        thread::park_timeout(POLL);
    }
}

/// Lets time pass where time itself is the input: the pause between two keys, a slow server, a slow reader.
/// Nothing may be assumed to have happened meanwhile.
pub(crate) fn lapse(time: Duration) {
    let began = Instant::now();
    while let Some(left) = time.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
        thread::park_timeout(left);
    }
}
