//! The end of every call: what happened becomes what the model reads.

use std::time::Duration;

use crate::error::Error;
use crate::event::{Plan, PlanItem, ToolResult};
use crate::present::{self, footer};

use super::Output;

/// A finished call: its record, and the plan when the call made a new one.
#[derive(Debug)]
pub struct Done {
    /// What is recorded.
    pub result: ToolResult,
    /// The new plan.
    pub plan: Option<Vec<PlanItem>>,
}

/// Presents what a tool did, or why it could not.
pub fn finish(call_id: &str, tool: &str, outcome: Result<Output, Error>, took: Duration) -> Done {
    match outcome {
        Ok(output) => finish_output(call_id, output, took),
        Err(error) => Done { result: failed(call_id, tool, &error, took), plan: None },
    }
}

fn finish_output(call_id: &str, output: Output, took: Duration) -> Done {
    let ok = output.exit == 0;
    let stdout = output.stdout.finish(ok);
    let stderr = output.stderr.finish(false);
    let result = ToolResult {
        call_id: call_id.to_owned(),
        ok,
        output: present::compose(&stdout.text, &stderr.text, output.exit, took),
        exit_code: Some(output.exit),
        duration_ms: millis(took),
        truncated: stdout.truncated,
        overflow_path: stdout.overflow_path.map(|path| path.display().to_string()),
        stderr_bytes: stderr.bytes,
        changes: output.changes,
        plan: None,
        error: None,
    };
    Done { result, plan: output.plan }
}

/// A call that could not run: the model reads what went wrong and what to do instead.
pub fn failed(call_id: &str, tool: &str, error: &Error, took: Duration) -> ToolResult {
    ToolResult {
        call_id: call_id.to_owned(),
        ok: false,
        output: format!("{}\n{}", error.for_model(tool), footer(in_run_exit(error), took)),
        duration_ms: millis(took),
        error: Some(error.body()),
        ..ToolResult::default()
    }
}

/// A call that was only planned.
pub fn planned(call_id: &str, plan: Plan) -> ToolResult {
    let diff = plan.diff.as_deref().unwrap_or_default();
    ToolResult {
        call_id: call_id.to_owned(),
        ok: true,
        output: format!("[dry run] would {} {}\n{diff}{}", plan.would, plan.target, footer(0, Duration::ZERO)),
        exit_code: Some(0),
        plan: Some(plan),
        ..ToolResult::default()
    }
}

/// Shell-like codes for the footer: 124 timeout, 126 not allowed, 127 unknown, 2 usage, else 1.
fn in_run_exit(error: &Error) -> i32 {
    use crate::error::ErrorKind;
    match error.kind() {
        ErrorKind::Timeout => 124,
        ErrorKind::PermissionDenied | ErrorKind::OutsideWorkspace | ErrorKind::CommandFailed => 126,
        ErrorKind::UnknownTool => 127,
        ErrorKind::InvalidArgs => 2,
        _ => 1,
    }
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
