//! The tools of MCP servers: which a Session offers, and which one answered a call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tools of MCP servers that requests offer from here on. It replaces an earlier offer of the Session. Servers may end,
/// start and change; requests do not change with them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolsOffered {
    /// The servers, by name.
    pub servers: Vec<OfferedServer>,
    /// What the model reads about the servers whose tools are found by search.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub index: String,
    /// Bytes of the definitions that requests hold directly.
    pub bytes: u64,
}

/// An MCP server whose tools are offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfferedServer {
    /// Its name.
    pub name: String,
    /// Who names it: a file, or the client.
    pub source: String,
    /// How its tools are offered.
    pub exposure: Exposure,
    /// The hash of its launch: program, arguments, environment, or URL.
    pub launch: String,
    /// The blob with the accepted definitions, for those that are offered directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definitions: Option<String>,
    /// The tools that are offered directly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<OfferedTool>,
    /// The tools whose definition a Provider has refused; they are found by search instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<OfferedTool>,
}

/// How the tools of a server are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exposure {
    /// Each with its definition.
    Direct,
    /// Found with `mcp_find`, called with `mcp_call`.
    Search,
    /// A way that only a newer build knows.
    #[schemars(skip)]
    Unknown,
}

/// A tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfferedTool {
    /// The name by which the model calls it.
    pub name: String,
    /// The server's name of it.
    pub raw: String,
    /// The hash of its definition, as the user accepted it.
    pub pin: String,
}

/// The tool of an MCP server that a result comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResultOrigin {
    /// The server.
    pub server: String,
    /// The server's name of the tool.
    pub tool: String,
    /// The hash of its definition, as the user accepted it.
    pub pin: String,
}
