//! The prices of a model's tokens.

use super::PriceConfig;
use protocol::event::Usage;

/// Prices, US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Input tokens that are not cached.
    pub input: f64,
    /// Input tokens read from the cache.
    pub cached: f64,
    /// Input tokens written to the cache.
    pub cache_written: f64,
    /// Output tokens.
    pub output: f64,
}

impl Price {
    /// Returns the cost of a request at the base price, US dollars.
    pub fn of(&self, usage: &Usage) -> f64 {
        let fresh = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_written);
        let parts = [
            (fresh, self.input),
            (usage.cached, self.cached),
            (usage.cache_written, self.cache_written),
            (usage.output, self.output),
        ];
        let usd: f64 = parts.iter().map(|(tokens, price)| *tokens as f64 * price / 1e6).sum();
        // A billionth of a dollar is precise enough.
        (usd * 1e9).round() / 1e9
    }
}

impl From<PriceConfig> for Price {
    fn from(it: PriceConfig) -> Price {
        Price {
            input: it.input,
            cached: it.cached.unwrap_or(it.input),
            cache_written: it.cache_written.unwrap_or(it.input),
            output: it.output,
        }
    }
}
