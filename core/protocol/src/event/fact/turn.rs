//! How a Turn ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Cost, Usage};
use crate::error::ErrorBody;

/// How a Turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// The model finished its answer.
    Completed,
    /// A limit ended the Turn before the answer.
    Incomplete,
    /// The answer broke off; its beginning is kept.
    PartialFailed,
    /// An error ended the Turn.
    Failed,
    /// The user stopped the Turn.
    Interrupted,
    /// The Provider took too long.
    TimedOut,
}

impl TurnStatus {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            TurnStatus::Completed => "completed",
            TurnStatus::Incomplete => "incomplete",
            TurnStatus::PartialFailed => "partial_failed",
            TurnStatus::Failed => "failed",
            TurnStatus::Interrupted => "interrupted",
            TurnStatus::TimedOut => "timed_out",
        }
    }
}

/// The end of a Turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnded {
    /// How the Turn ended.
    pub status: TurnStatus,
    /// Why the Turn did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<ErrorBody>>,
    /// Tokens of all requests of the Turn.
    #[serde(default)]
    pub usage: Usage,
    /// pixir estimated a part of the tokens, because the server reports none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usage_estimated: bool,
    /// Cost of all requests of the Turn.
    #[serde(default)]
    pub cost: Cost,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Number of calls.
    pub tool_calls: u64,
    /// Further details for programs: `output_truncation`, `reason`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}
