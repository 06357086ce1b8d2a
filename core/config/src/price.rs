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
    /// What a long request costs more.
    pub step: Option<Step>,
}

/// A request with more input than this costs more as a whole.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[schemars(rename = "PriceStep")]
pub struct Step {
    /// Tokens of input, cached ones too.
    pub above: u64,
    /// How many times as much all input costs.
    pub input: f64,
    /// How many times as much the output costs.
    pub output: f64,
}

impl Price {
    /// Returns the cost of a request, US dollars.
    pub fn of(&self, usage: &Usage) -> f64 {
        let step = self.step.filter(|step| usage.input > step.above);
        let (more, more_output) = step.map_or((1.0, 1.0), |step| (step.input, step.output));
        let fresh = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_written);
        let parts = [
            (fresh, self.input * more),
            (usage.cached, self.cached * more),
            (usage.cache_written, self.cache_written * more),
            (usage.output, self.output * more_output),
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
            step: it.step,
        }
    }
}
