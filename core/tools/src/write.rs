//! The tool `write`: it writes a whole file.

use serde::Deserialize;
use serde_json::{Value, json};

use call::arguments::{self, object, text};
use call::replacement::Replacement;
use call::{Context, Prepared, Tool};
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result};
use protocol::tool_spec::ToolSpec;
use text::encoding::Encoding;

pub(super) struct Write;

#[derive(Deserialize)]
struct Args {
    path: String,
    content: String,
    encoding: Option<String>,
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
                    "encoding": { "type": "string", "description": "Default: the file's own, else utf-8" },
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
        let Args { path, content, encoding } = arguments::parse(args)?;
        let at = ctx.workspace.locate(&path)?;
        let replacement = match encoding {
            None => Replacement::preview("write", ctx, at, content.into_bytes())?,
            Some(name) => Replacement::encoded("write", ctx, at, &content, encoding_named(&name)?)?,
        };
        Ok(replacement.prepared())
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("write")
    }

    fn example(&self) -> Value {
        json!({ "path": "README.md", "content": "text" })
    }
}

/// The encoding of this name.
///
/// # Errors
/// `INVALID_ARGS` for a name that no encoding has.
pub fn encoding_named(name: &str) -> Result<Encoding> {
    Encoding::named(name).ok_or_else(|| {
        let fix = "utf-8, utf-8-bom, utf-16le, utf-16le-bom, utf-16be, latin-1, windows-1252, windows-1251, shift_jis, euc-jp, gbk, gb18030, big5, euc-kr or the like";
        Error::new(Code::InvalidArgs, format!("the encoding `{name}` is unknown"), fix).with("input", name)
    })
}
