//! The tool `ls`: it lists one folder.

use serde::Deserialize;
use serde_json::{Value, json};

use call::arguments::{self, object};
use call::outcome::Outcome;
use call::{Context, Output, Prepared, Tool};
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::Result;
use protocol::tool_spec::ToolSpec;
use text::human::{human_size, on_one_line};

pub(super) struct Ls;

#[derive(Deserialize)]
struct Args {
    path: Option<String>,
}

impl Tool for Ls {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "ls".into(),
            description: "List a folder. Names of folders end in /, those of symlinks in @, and files have their size."
                .into(),
            parameters: object(json!({ "path": { "type": "string", "description": "Folder (default .)" } }), &[]),
            reads_only: true,
            streams: "reads nothing from stdin; prints one name per line".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let path = args["path"].as_str().unwrap_or(".");
        CallInfo::new(CallKind::Search, "list", path).on([path])
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { path } = arguments::parse(args)?;
        let at = ctx.workspace.locate_to_read(path.as_deref().unwrap_or("."))?;
        let touch = ctx.reading(&at);
        Ok(Prepared::reading("list", at.display(), move |ctx| {
            let mut text = String::new();
            for (name, size) in ctx.workspace.list(&at)? {
                let name = on_one_line(&name);
                if name.ends_with(['/', '@']) {
                    text.push_str(&format!("{name}\n"));
                } else {
                    text.push_str(&format!("{name}  {}\n", human_size(size)));
                }
            }
            let outcome = match text.lines().count() {
                0 => Outcome::Counted("empty".into()),
                names => Outcome::counted(names as u64, "entry", "entries"),
            };
            Ok(Output { outcome, ..Output::text(ctx, &text) })
        })
        .touching(touch))
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("ls")
    }
}
