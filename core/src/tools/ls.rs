//! One folder.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Context, Output, Prepared, Tool, ToolSpec, object, parse_args};
use crate::call::present::{human_size, on_one_line};
use crate::protocol::error::Result;

pub(super) struct Ls;

#[derive(Deserialize)]
struct Args {
    path: Option<String>,
}

impl Tool for Ls {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "ls".into(),
            description: "List a folder: folders end in /, symlinks in @, files carry their size.".into(),
            parameters: object(json!({ "path": { "type": "string", "description": "Default: the workspace" } }), &[]),
            reads_only: true,
            streams: "reads nothing from stdin; one name a line".into(),
        }
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { path } = parse_args(&self.spec(), args)?;
        let at = ctx.workspace.locate(path.as_deref().unwrap_or("."))?;
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
            Ok(Output::text(ctx, &text))
        }))
    }
}
