//! The tool `write`: it writes a whole file.

use serde::Deserialize;
use serde_json::{Value, json};

use call::arguments::{self, object, text};
use call::replacement::Replacement;
use call::{Context, Prepared, Tool};
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::Result;
use protocol::tool_spec::ToolSpec;

pub(super) struct Write;

#[derive(Deserialize)]
struct Args {
    path: String,
    content: String,
}

impl Tool for Write {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "write".into(),
            description: "Create a file and its parent folders, or replace the whole content of a file.".into(),
            parameters: object(
                json!({
                    "path": { "type": "string" },
                    "content": { "type": "string" },
                }),
                &["path", "content"],
            ),
            reads_only: false,
            streams: "reads nothing from stdin; prints a summary of the change".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let path = text(args, "path");
        CallInfo::new(CallKind::Edit, "write", path).on([path])
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { path, content } = arguments::parse(args)?;
        let at = ctx.workspace.locate(&path)?;
        Ok(Replacement::preview("write", ctx, at, content.into_bytes())?.prepared())
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("write")
    }

    fn example(&self) -> Value {
        json!({ "path": "README.md", "content": "text" })
    }
}
