//! How a Provider counts tokens, beside pixir's estimate of four bytes each.

/// The ratio of the two counts. Another alphabet, another tokenizer or a template of the server changes it by a multiple, so
/// whatever is planned for a window is planned in the Provider's count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale(f64);

/// A ratio beyond these is no way to count text: a server that reports something else must not stop or empty a conversation.
const LEAST: f64 = 0.5;
const MOST: f64 = 8.0;

impl Default for Scale {
    fn default() -> Scale {
        Scale(1.0)
    }
}

impl Scale {
    /// The ratio of a request of which both counts are known.
    pub fn of(counted: u64, estimated: u64) -> Scale {
        let ratio = counted as f64 / estimated as f64;
        if (LEAST..=MOST).contains(&ratio) { Scale(ratio) } else { Scale::default() }
    }

    /// What the Provider is expected to count for what pixir estimates.
    pub fn count(self, estimated: u64) -> u64 {
        (estimated as f64 * self.0).round() as u64
    }

    /// What pixir estimates for what the Provider counts.
    pub fn estimate(self, counted: u64) -> u64 {
        (counted as f64 / self.0) as u64
    }
}
