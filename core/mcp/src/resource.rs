//! The tool that reads the resources of servers.

use serde::Deserialize;
use serde_json::{Value, json};

use super::server_call::{here, may_repeat};
use super::{Servers, result};
use call::arguments::{self, object, text};
use call::{Context, Prepared, Tool};
use permissions::Touch;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::Result;
use protocol::event::{Preview, ResultOrigin};
use protocol::tool_spec::ToolSpec;

/// Reads a resource of a server.
pub(super) struct Reader {
    pub(super) servers: Option<Servers>,
}

#[derive(Deserialize)]
struct Resource {
    server: String,
    uri: String,
}

impl Tool for Reader {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "mcp_read".into(),
            description:
                "Read a resource of an MCP server by its URI; messages name one as @SERVER:URI. The URI \"\" lists all resources of the server."
                    .into(),
            parameters: object(
                json!({ "server": { "type": "string" }, "uri": { "type": "string" } }),
                &["server", "uri"],
            ),
            reads_only: false,
            streams: "reads nothing from stdin; prints the resource".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        CallInfo::new(CallKind::Read, "read", format!("{}: {}", text(args, "server"), text(args, "uri")))
    }

    fn prepare(&self, args: Value, _ctx: &Context) -> Result<Prepared> {
        let servers = here(self.servers.as_ref())?;
        let Resource { server, uri } = arguments::parse(args)?;
        reading(servers, &server, uri)
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("mcp read SERVER URI")
    }
}

pub(super) fn reading(servers: Servers, server: &str, uri: String) -> Result<Prepared> {
    let server = servers.find(server)?;
    let tool = "resources/read".to_owned();
    let preview = Preview { would: "read".to_owned(), target: format!("{}: {uri}", server.name), ..Preview::default() };
    let word = server.word(&tool);
    let touch =
        Touch::Mcp { server: server.name.clone(), tool: tool.clone(), pin: String::new(), word, is_destructive: false };
    Ok(Prepared::new(preview, touch, move |ctx| async move {
        let mut contact = servers.contact_for(&server, &ctx).await?;
        let limit = server.server.call_limit();
        let answer = match contact.server.read(&contact.running, &uri, limit, ctx.forms.clone()).await {
            Err(e) if may_repeat(&e, word, &contact).await => {
                contact = servers.contact_for(&server, &ctx).await?;
                contact.server.read(&contact.running, &uri, limit, ctx.forms.clone()).await?
            }
            answer => answer?,
        };
        let mut output = result::output(answer, &server.name, &tool, contact.server.secrets(), &ctx);
        output.origin = Some(ResultOrigin { server: server.name.clone(), tool, pin: String::new() });
        Ok(output)
    }))
}
