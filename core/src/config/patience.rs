//! How long a request may take, and how often it is tried.

use std::time::Duration;

/// How long is waited for what, and how often something is tried. A person's `[requests]` changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Tries in all.
    pub attempts: u32,
    /// Before the second try; each further wait is twice as long.
    pub first_wait: Duration,
    /// The longest that a server's wish to wait is honoured.
    pub longest_wait: Duration,
    /// From the request to the head of the answer. A server of one's own may have to load its model first.
    pub head: Duration,
    /// See `head`; for servers on loopback.
    pub local_head: Duration,
    /// Without a byte for so long, the stream is given up.
    pub idle: Duration,
    /// With nothing but signs of life for so long, the stream is given up.
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
