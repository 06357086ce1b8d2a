//! The tools of servers as tools of a Session.

use std::sync::Arc;

use serde_json::Value;

use super::Servers;
use super::catalog::Definition;
use super::resource::{Reader, reading};
use super::search::{Finder, Trampoline, finding, prepared_by_name};
use super::server_call::{here, info, prepared};
use call::{Context, Others, Prepared, Tool};
use protocol::call_info::CallInfo;
use protocol::error::{Code, Error, Result};
use protocol::tool_spec::ToolSpec;

/// A tool of a server that is offered with its definition.
pub(super) struct ServerTool {
    pub(super) spec: ToolSpec,
    pub(super) server: String,
    /// The launch that the definition belongs to.
    pub(super) launch: String,
    pub(super) definition: Definition,
    pub(super) pin: String,
    pub(super) servers: Option<Servers>,
}

impl Tool for ServerTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn is_of_others(&self) -> bool {
        true
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let only_reads = self
            .servers
            .as_ref()
            .and_then(|it| it.find(&self.server).ok())
            .is_some_and(|it| it.launch == self.launch && it.server.only_reads(&self.definition.name));
        info(&self.server, &self.definition.name, args, only_reads)
    }

    fn prepare(&self, args: Value, _ctx: &Context) -> Result<Prepared> {
        let servers = here(self.servers.as_ref())?;
        let server = servers.find(&self.server)?;
        if server.launch != self.launch {
            let message =
                format!("the MCP server {} is started in another way than when its tools were offered", self.server);
            let fix = "go on in a new session, which offers the tools of the server as it is now";
            return Err(Error::new(Code::McpDefinitionChanged, message, fix));
        }
        prepared(servers, server, self.definition.clone(), self.pin.clone(), args)
    }
}

impl Others for Servers {
    fn prepare(&self, words: &[&str]) -> Result<Prepared> {
        match words {
            ["find", words @ ..] => finding(self.clone(), words.join(" "), None),
            ["call", tool, rest @ ..] => {
                let text = rest.join(" ");
                let text = if text.trim().is_empty() { "{}" } else { text.as_str() };
                let args = serde_json::from_str(text).map_err(|e| {
                    let message = format!("the arguments are not one JSON object: {e}");
                    Error::new(Code::InvalidArgs, message, "mcp call TOOL '{\"name\": value}', in single quotes")
                })?;
                prepared_by_name(self, tool, args)
            }
            ["read", server] => reading(self.clone(), server, String::new()),
            ["read", server, uri] => reading(self.clone(), server, (*uri).to_owned()),
            _ => Err(Error::new(Code::Usage, "usage: mcp find|call|read", "help mcp")),
        }
    }
}

/// The tools that find, call and read what any server has.
pub fn general(servers: Option<&Servers>) -> [Arc<dyn Tool>; 3] {
    [
        Arc::new(Finder { index: String::new(), servers: servers.cloned() }),
        Arc::new(Trampoline { servers: servers.cloned() }),
        Arc::new(Reader { servers: servers.cloned() }),
    ]
}
