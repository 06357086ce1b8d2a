//! What a Presenter is shown of child Sessions.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{AgentStatus, Cost, Usage};

/// A child Session as its parents see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    /// The names from the root's child down to this one.
    pub path: Vec<String>,
    /// Its Session id.
    pub session_id: String,
    /// The name of its role.
    pub role: String,
    /// What it is to do: the first line of its task, at most 200 characters.
    pub task: String,
    /// Whether it runs, and how its last Turn ended.
    pub status: AgentStatus,
    /// What it waits for while its status is `waiting`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// What it does now: the title of its last call, or what it waits for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doing: String,
    /// When its last Turn began to run; while it is queued, when it was started.
    #[serde(serialize_with = "crate::event::to_the_millisecond")]
    pub since: Timestamp,
    /// When it last did something.
    #[serde(serialize_with = "crate::event::to_the_millisecond")]
    pub active: Timestamp,
    /// Wall-clock milliseconds of its last Turn, once that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// Calls of tools in all its Turns.
    pub calls: u64,
    /// Tokens of its requests, without those of its own children.
    pub usage: Usage,
    /// Cost of its requests, without those of its own children.
    pub cost: Cost,
    /// Lines that it added.
    pub added: u64,
    /// Lines that it removed.
    pub removed: u64,
    /// What it was told and has not read yet, in the order in which it reads it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued: Vec<String>,
    /// Files of its copy that are not in the workspace, and wait for the user.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub waiting_files: u32,
    /// It is a run of a workflow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_run: bool,
}

/// What an agent waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitingFor {
    /// The user's decision or answers.
    User,
    /// The right to change files that another agent changes now.
    Lease,
    /// The end of a pause that the Provider asked for, or of one of the requests of other agents to it.
    Rate,
    /// The user's decision whether the agents of the Turn may use more tokens, which another of them has asked for.
    Budget,
    /// A place among the agents that run: it gave its own away while it waited.
    Place,
}

impl AgentState {
    /// Whether it waits for the user.
    pub fn asks(&self) -> bool {
        self.status == AgentStatus::Waiting && self.waiting_for.is_none_or(|it| it == WaitingFor::User)
    }

    /// The child's own name.
    pub fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }
}

/// The agent that asks the user something, where it is not the Session itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asker {
    /// The names from the root's child down to the one that asks.
    pub path: Vec<String>,
    /// The name of its role.
    pub role: String,
}
