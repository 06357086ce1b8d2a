//! The Session that started another one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The Session that started a child Session, and what the child is among the descendants of the root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParentSession {
    /// The parent's Session id.
    pub session_id: String,
    /// The id of the Session that the user talks to.
    #[serde(default)]
    pub root_id: String,
    /// The call of the parent that started the child, if a call did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The child's name, unique among all descendants of the root.
    #[serde(default)]
    pub name: String,
    /// The name of its role.
    #[serde(default)]
    pub role: String,
    /// The hash of the role's file; absent for a role that pixir has by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_digest: Option<String>,
    /// How far below the root it is, from 1.
    #[serde(default)]
    pub depth: u32,
}
