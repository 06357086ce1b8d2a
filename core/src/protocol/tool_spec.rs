//! How a tool is offered to a model.

use std::sync::Arc;

use serde_json::Value;

/// How a tool is offered to a model. It owns its text, so a tool of an embedder or a server can describe itself at run time.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name that the model calls it by.
    pub name: Arc<str>,
    /// What it does, for a model that has never seen it.
    pub description: Arc<str>,
    /// A JSON Schema of its arguments.
    pub parameters: Value,
    /// Whether it never changes anything, whatever its arguments are.
    pub reads_only: bool,
    /// What it reads from stdin and writes to stdout and stderr.
    pub streams: Arc<str>,
}
