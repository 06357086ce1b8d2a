//! How a tool is offered to a model.

use std::sync::Arc;

use serde_json::Value;

/// How a tool is offered to a model. The texts are owned, so a tool that an embedder or a server adds can build its
/// description at run time.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name by which the model calls the tool.
    pub name: Arc<str>,
    /// What the tool does, for a model that has never used it.
    pub description: Arc<str>,
    /// The JSON Schema of the arguments. Every request has it, so copies of the spec share it.
    pub parameters: Arc<Value>,
    /// Whether the tool changes nothing, whatever its arguments are.
    pub reads_only: bool,
    /// What the tool reads from stdin and writes to stdout and stderr.
    pub streams: Arc<str>,
}
