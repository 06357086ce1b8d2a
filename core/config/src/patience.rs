//! Time limits of requests, and how long failed ones are tried again.

use std::time::Duration;

/// Time limits of requests, and how long failed ones are tried again. The user's `[requests]` section changes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How long a request is tried again while the server is overloaded or unreachable. Zero means not at all.
    pub total: Duration,
    /// The most tries, the first one included; `None` means that only the time counts.
    pub attempts: Option<u32>,
    /// The wait before the second try; each further wait is twice as long.
    pub first_wait: Duration,
    /// The most that a server may ask to wait before it takes requests again, all its waits together.
    pub longest_wait: Duration,
    /// The longest time from the request to the head of the answer. A local server may have to load its model first.
    pub head: Duration,
    /// The same as `head`, for servers on loopback.
    pub local_head: Duration,
    /// The stream is abandoned after this long without a byte.
    pub idle: Duration,
    /// The stream is abandoned after this long with nothing but keep-alive events.
    pub progress: Duration,
    /// An answer that repeats itself without end is ended.
    pub ends_loops: bool,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            total: Duration::from_secs(180),
            attempts: None,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30 * 60),
            head: Duration::from_secs(60),
            local_head: Duration::from_secs(600),
            idle: Duration::from_secs(180),
            progress: Duration::from_secs(30 * 60),
            ends_loops: true,
        }
    }
}
