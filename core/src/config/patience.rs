//! Time limits of requests, and how often they are tried.

use std::time::Duration;

/// Time limits of requests, and how often they are tried. The user's `[requests]` section changes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// The number of tries, the first one included.
    pub attempts: u32,
    /// The wait before the second try; each further wait is twice as long.
    pub first_wait: Duration,
    /// The longest wait that a server may ask for; longer ones are not honoured.
    pub longest_wait: Duration,
    /// The longest time from the request to the head of the answer. A local server may have to load its model first.
    pub head: Duration,
    /// The same as `head`, for servers on loopback.
    pub local_head: Duration,
    /// The stream is abandoned after this long without a byte.
    pub idle: Duration,
    /// The stream is abandoned after this long with nothing but keep-alive events.
    pub progress: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            attempts: 4,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(120),
            head: Duration::from_secs(60),
            local_head: Duration::from_secs(600),
            idle: Duration::from_secs(180),
            progress: Duration::from_secs(30 * 60),
        }
    }
}
