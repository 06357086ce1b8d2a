//! The Session that started another one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The Session that started a child Session. No build writes it yet; it is read so that later Logs are understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParentSession {
    /// The parent's Session id.
    pub session_id: String,
    /// The call of the parent that started the child, if a call did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}
