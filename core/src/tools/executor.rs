//! One path for every call: check, prepare, and afterwards present what happened to the model.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::Value;

use crate::call::present::{self, footer};
use crate::protocol::error::{Code, Error, ErrorKind, Result};
use crate::protocol::event::{Fact, Plan, ToolResult};

use super::{Context, Output, Prepared, Registry, beside, broke, schema};

/// A finished call: its record, and what is recorded with it.
#[derive(Debug)]
pub struct Done {
    /// What is recorded.
    pub result: ToolResult,
    /// What it found out: a new plan, a memory.
    pub facts: Vec<Fact>,
}

/// Checks a call against the tool's schema and works out what it would do, on a thread where that holds up nothing.
///
/// # Errors
/// Whatever makes the call impossible: an unknown tool, arguments that do not fit, a path that leads outside.
pub async fn prepare(registry: &Registry, name: &str, args: Value, ctx: &Context) -> Result<Prepared> {
    let (registry, name, ctx) = (registry.clone(), name.to_owned(), ctx.clone());
    beside(move || {
        let (spec, tool) = registry.find(&name, ctx.toolset)?;
        if args.get("_raw").is_some() {
            let fix = "send one complete JSON object without text around it";
            return Err(Error::new(Code::InvalidArgs, "the arguments are not a JSON object", fix));
        }
        schema::check(spec, &args)?;
        tool.prepare(args, &ctx)
    })
    .await
}

/// Does what was prepared. A tool that panics has an outcome like any other.
///
/// # Errors
/// Whatever the tool could not do.
pub async fn perform(prepared: Prepared, ctx: Context) -> Result<Output> {
    // It was only planned when the call that begins it panics.
    let run = AssertUnwindSafe(async move { (prepared.run)(ctx).await });
    run.catch_unwind().await.unwrap_or_else(|_| Err(broke("it panicked")))
}

/// Presents what a tool did, or why it could not.
pub fn finish(call_id: &str, tool: &str, outcome: Result<Output, Error>, took: Duration) -> Done {
    match outcome {
        Ok(output) => finish_output(call_id, tool, output, took),
        Err(error) => Done { result: failed(call_id, tool, &error, took), facts: Vec::new() },
    }
}

fn finish_output(call_id: &str, tool: &str, output: Output, took: Duration) -> Done {
    let ok = output.exit == 0;
    let stdout = output.stdout.finish(ok);
    let stderr = output.stderr.finish(false);
    let told: String = output.errors.iter().map(|(name, error)| error.for_model(name) + "\n").collect();
    let tells = !ok || output.tell_stderr;
    let result = ToolResult {
        call_id: call_id.to_owned(),
        ok,
        output: present::compose(&stdout.text, &told, &stderr.text, tells, output.exit, took),
        exit_code: Some(output.exit),
        duration_ms: millis(took),
        colours: stdout.colours,
        truncated: stdout.truncated,
        overflow_path: stdout.overflow_path,
        stderr_bytes: stderr.bytes,
        pipestatus: output.pipestatus,
        attachments: output.attachments,
        changes: output.changes,
        plan: None,
        error: output.errors.last().filter(|_| !ok).map(|(_, error)| error.body()),
    };
    // What was read is no text: a failure of the reading, not of the command.
    let result = match stdout.binary {
        Some(error) => {
            let name = if tool == super::run::NAME { "cat" } else { tool };
            ToolResult { truncated: result.truncated, ..failed(call_id, name, &error, took) }
        }
        None => result,
    };
    Done { result, facts: output.facts }
}

/// A call that could not run: the model reads what went wrong and what to do instead.
pub fn failed(call_id: &str, tool: &str, error: &Error, took: Duration) -> ToolResult {
    // Of a chain, the command that it is about.
    let name = error.details.get("command").and_then(Value::as_str).unwrap_or(tool);
    ToolResult {
        call_id: call_id.to_owned(),
        ok: false,
        output: format!("{}\n{}", error.for_model(name), footer(in_run_exit(error), took)),
        duration_ms: millis(took),
        error: Some(error.body()),
        ..ToolResult::default()
    }
}

/// A call that was only planned.
pub fn planned(call_id: &str, plan: Plan) -> ToolResult {
    let mut text = "[dry run] would ".to_owned();
    tell_plan(&mut text, &plan, "");
    text.push_str(&footer(0, Duration::ZERO));
    ToolResult {
        call_id: call_id.to_owned(),
        ok: true,
        output: text,
        exit_code: Some(0),
        plan: Some(Box::new(plan)),
        ..ToolResult::default()
    }
}

fn tell_plan(text: &mut String, plan: &Plan, mark: &str) {
    let size = plan.bytes.map_or(String::new(), |bytes| format!(" ({})", present::human_size(bytes)));
    text.push_str(&format!("{mark}{} {}{size}\n", plan.would, plan.target));
    text.push_str(plan.diff.as_deref().unwrap_or_default());
    plan.steps.iter().for_each(|step| tell_plan(text, step, "• "));
    plan.notes.iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
}

/// Shell-like codes for the footer: 124 timeout, 126 not allowed, 127 unknown, 2 usage, else 1.
pub fn in_run_exit(error: &Error) -> i32 {
    match (error.code, error.kind()) {
        (Code::UnknownCommand, _) => 127,
        (_, ErrorKind::Timeout) => 124,
        (_, ErrorKind::PermissionDenied | ErrorKind::OutsideWorkspace | ErrorKind::CommandFailed) => 126,
        (_, ErrorKind::UnknownTool) => 127,
        (_, ErrorKind::InvalidArgs) => 2,
        _ => 1,
    }
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
