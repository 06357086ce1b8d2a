//! How MCP servers are, for the user.

use serde::{Deserialize, Serialize};

use crate::error::ErrorBody;
use crate::trust::Standing;

/// What the user does about a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum ServerAct {
    /// Shows how all servers are, and starts none.
    Show,
    /// Starts the server, or starts it anew.
    Restart,
    /// Stops the server; the next call starts it again.
    Stop,
    /// Accepts the definitions that the server has now.
    Accept {
        /// The hash of the definitions that the user saw.
        seen: String,
    },
}

/// How a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerPhase {
    /// It does not run; its first call starts it.
    Cold,
    /// It is being started.
    Starting,
    /// It runs.
    Running,
    /// It ended too often, and is not started again unless the user says so.
    Failed,
}

impl ServerPhase {
    /// The name that lists show.
    pub const fn name(self) -> &'static str {
        match self {
            ServerPhase::Cold => "not running",
            ServerPhase::Starting => "starting",
            ServerPhase::Running => "running",
            ServerPhase::Failed => "failed",
        }
    }
}

/// A server with everything that the user may want to know of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerState {
    /// Its name.
    pub name: String,
    /// Who names it: `your configuration`, a file of the workspace, `the editor`.
    pub source: String,
    /// What is started, or where it is.
    pub launch: String,
    /// Whether it is in force.
    pub standing: Standing,
    /// It is switched on.
    pub enabled: bool,
    /// The user's own server of this name is used instead.
    pub shadowed: bool,
    /// Keys of a project's file that were ignored, because only the user's own file may have them.
    pub ignored: Vec<String>,
    /// How it is.
    pub phase: ServerPhase,
    /// Seconds until its start begins, where it waits because it died again and again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_s: Option<u64>,
    /// The version of the protocol that it speaks.
    pub version: String,
    /// The accepted tools; `None` before the first contact.
    pub tools: Option<Vec<ServerToolState>>,
    /// Bytes of their definitions.
    pub bytes: u64,
    /// What the server says about itself, as the user accepted it.
    pub instructions: String,
    /// Tools, and instructions of the server, that differ from the accepted ones.
    pub changes: Vec<DefinitionChange>,
    /// The hash of the definitions that it has now, to accept them; absent while it does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// Tools that cannot be offered, and why.
    pub left_out: Vec<String>,
    /// Lines on its stdout that were no messages.
    pub dropped_lines: u64,
    /// The last of what it printed on stderr.
    pub stderr: String,
    /// Why it did not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerToolState {
    /// The name by which a model calls it.
    pub name: String,
    /// The server's name of it.
    pub raw: String,
    /// What it does, by the server's word.
    pub description: String,
    /// What may happen without asking, by the user's word: `reads`, `allowed`, `asks`.
    pub runs: String,
    /// What the server claims about it.
    pub claims: Vec<String>,
}

/// A tool whose definition is not the accepted one, or the server's instructions if they are not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionChange {
    /// The server's name of the tool; null for the server's instructions.
    pub tool: Option<String>,
    /// `new`, `changed` or `gone`.
    pub what: String,
    /// The difference, as a unified diff.
    pub diff: String,
}

impl DefinitionChange {
    /// What is another one, for a user.
    pub fn subject(&self) -> &str {
        self.tool.as_deref().unwrap_or("what the server says about itself")
    }
}
