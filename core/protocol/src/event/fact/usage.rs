//! Tokens and cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens of one or more requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens sent, including cached ones.
    pub input: u64,
    /// Tokens of `input` that the Provider read from its cache.
    #[serde(default)]
    pub cached: u64,
    /// Tokens of `input` that the Provider wrote to its cache, where it reports them.
    #[serde(default)]
    pub cache_written: u64,
    /// Tokens returned, including reasoning.
    pub output: u64,
    /// Tokens of `output` that are reasoning.
    #[serde(default)]
    pub reasoning: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.cache_written = self.cache_written.saturating_add(other.cache_written);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// The price of one or more requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// US dollars, without requests whose price is unknown.
    pub usd: f64,
    /// Part of the cost was computed from the model's prices and not reported by the Provider.
    #[serde(default)]
    pub estimated: bool,
    /// Requests whose price is unknown.
    #[serde(default)]
    pub unpriced: u64,
}

impl Cost {
    /// The cost of one request whose price is unknown.
    pub const UNKNOWN: Cost = Cost { usd: 0.0, estimated: false, unpriced: 1 };

    fn unknown() -> Cost {
        Cost::UNKNOWN
    }
}

impl std::fmt::Display for Cost {
    /// `$1.23`, with `~` before a computed cost and `≥` where some prices are unknown; `<$0.01` for less than half a cent.
    /// Empty when the cost is zero.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.usd <= 0.0 {
            return Ok(());
        }
        let mark = match (self.unpriced > 0, self.estimated) {
            (true, _) => "≥",
            (false, true) => "~",
            (false, false) => "",
        };
        match (self.usd < 0.005, self.unpriced > 0) {
            (true, false) => f.write_str("<$0.01"),
            (true, true) | (false, _) => write!(f, "{mark}${:.2}", self.usd),
        }
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.usd += other.usd;
        self.estimated |= other.estimated;
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
    }
}

/// Tokens and cost of one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderUsage {
    /// The Provider that answered.
    #[serde(default)]
    pub provider: String,
    /// The model that answered.
    pub model: String,
    /// The tokens.
    pub usage: Usage,
    /// pixir estimated the tokens, because the server reports none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Their cost.
    #[serde(default = "Cost::unknown")]
    pub cost: Cost,
}
