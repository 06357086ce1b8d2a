//! A whole file.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Context, Output, Prepared, Tool, ToolSpec, parse_args, schema};
use crate::changes;
use crate::error::{Code, Error, Result};
use crate::event::Plan;
use crate::permissions::Action;
use crate::workspace::Inside;

pub(super) struct Write;

#[derive(Deserialize)]
struct Args {
    path: String,
    content: String,
}

impl Tool for Write {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "write",
            description: "Create a file or replace all of it, parent folders included. For a change inside an existing file use edit.",
            parameters: schema(
                json!({
                    "path": { "type": "string", "description": "File, relative to the workspace" },
                    "content": { "type": "string", "description": "The whole new text" },
                }),
                &["path", "content"],
            ),
            reads_only: false,
            streams: "reads nothing from stdin; says what it wrote",
        }
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { path, content } = parse_args(&self.spec(), args)?;
        let at = ctx.workspace.locate(&path)?;
        replacing("write", ctx, &at, content.into_bytes())
    }
}

/// A call that replaces a file by these bytes; it refuses when the file is no longer what the plan was made from.
pub(super) fn replacing(would: &str, ctx: &Context, at: &Inside, after: Vec<u8>) -> Result<Prepared> {
    ctx.workspace.check_writable(at)?;
    let before = ctx.workspace.read_if_there(at)?;
    let shown = at.display();
    let (diff, _, _) = changes::unified(&shown, before.as_ref().map(|b| b.bytes.as_slice()), Some(&after));
    let plan = Plan {
        would: would.to_owned(),
        target: shown.clone(),
        paths: vec![shown.clone()],
        diff: Some(diff),
        bytes: Some(after.len() as u64),
    };
    let action = Action::Files { protected: ctx.workspace.is_protected(at).then(|| shown.clone()) };
    let at = at.clone();
    Ok(Prepared::new(plan, action, move |ctx| async move {
        let work = move || -> Result<Output> {
            // Whoever interrupts this waits for it, and records what it did.
            let mut made = ctx.shadow.writing();
            if ctx.cancel.is_cancelled() {
                return Err(Error::new(Code::CommandFailed, "it was interrupted before it began", "repeat it"));
            }
            let now = ctx.workspace.read_if_there(&at)?;
            if now.as_ref().map(|n| &n.bytes) != before.as_ref().map(|b| &b.bytes) {
                return Err(Error::new(
                    Code::FileChanged,
                    format!("`{shown}` changed since the change was planned"),
                    "read it again, then repeat the change",
                )
                .with("input", shown));
            }
            // The earlier version is safe before it is replaced.
            let unkept = |why: String| {
                Error::new(
                    Code::WriteFailed,
                    format!("{shown} was left as it is, because its earlier version cannot be kept: {why}"),
                    "check the state folder (pixir doctor)",
                )
            };
            let old = before.as_ref().map(|b| (b.bytes.as_slice(), b.mode));
            let mut change =
                changes::record(&ctx.blobs, &shown, old, Some((&after, 0))).map_err(|e| unkept(e.to_string()))?;
            if before.is_some() && change.before_blob.is_none() {
                return Err(unkept("it is too large".into()));
            }
            let replaced = ctx.workspace.replace(&at, &after, before.as_ref().map(|b| b.mode))?;
            (change.after_mode, change.new_folders) = (Some(replaced.mode), replaced.new_folders);
            made.push((ctx.call_id.clone(), change.clone()));
            let verb = if before.is_some() { "Replaced" } else { "Created" };
            let mut output = Output::text(
                &ctx,
                &format!("{verb} {shown} ({} bytes, +{} −{} lines)", after.len(), change.added, change.removed),
            );
            output.changes.push(change);
            Ok(output)
        };
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| {
            Err(Error::new(Code::WriteFailed, format!("the tool broke: {e}"), "report this as a bug"))
        })
    }))
}
