//! The record of a call: its result as the model reads it, and Facts from the tool.

use std::time::Duration;

use serde_json::Value;

use super::leases::Lease;
use super::present::{self, footer};
use super::{Call, Output};
use protocol::error::{Code, Error, ErrorKind, Result};
use protocol::event::{Fact, Preview, ToolResult};

/// A finished call.
#[derive(Debug)]
pub struct Done {
    /// The one result of the call.
    pub result: ToolResult,
    /// Facts that are recorded before it: a new preview, a memory.
    pub facts: Vec<Fact>,
    /// Keeps others from changing what the call changed, until its result is recorded.
    pub lease: Option<Lease>,
    /// Whether the tool ran; false if the call was refused, only previewed, or could not be prepared.
    pub ran: bool,
    /// Protected files that a program of the call wrote, and that are as they were before.
    pub put_back: Vec<String>,
}

impl Done {
    /// Builds the result from the tool's output or its error.
    pub fn of(call: &Call, outcome: Result<Output>, took: Duration) -> Done {
        match outcome {
            Ok(output) => presented(call, output, took),
            Err(error) => Done {
                result: failure(call, &error, took),
                facts: Vec::new(),
                lease: None,
                ran: true,
                put_back: Vec::new(),
            },
        }
    }

    /// The result of a call that did not run; the model reads the error and its remedy.
    pub fn failed(call: &Call, error: &Error) -> Done {
        Done {
            result: failure(call, error, Duration::ZERO),
            facts: Vec::new(),
            lease: None,
            ran: false,
            put_back: Vec::new(),
        }
    }

    /// The result of a dry run: the preview as text.
    pub fn previewed(call: &Call, preview: Preview) -> Done {
        let mut text = "[dry run] would ".to_owned();
        write_preview(&mut text, &preview, "");
        text.push_str(&footer(0, Duration::ZERO));
        let result = ToolResult {
            call_id: call.id.clone(),
            ok: true,
            output: text,
            exit_code: Some(0),
            preview: Some(Box::new(preview)),
            ..ToolResult::default()
        };
        Done { result, facts: Vec::new(), lease: None, ran: false, put_back: Vec::new() }
    }
}

fn presented(call: &Call, output: Output, took: Duration) -> Done {
    let ok = output.exit == 0;
    let stdout = output.stdout.finish();
    let stderr = output.stderr.finish();
    let errors: String = output.errors.iter().map(|(name, error)| error.for_model(name) + "\n").collect();
    let outcome = output.outcome.words(&stdout.text, &stderr.text, stdout.truncated.is_none());
    let result = ToolResult {
        call_id: call.id.clone(),
        ok,
        outcome,
        output: present::compose(&stdout.text, &errors, &stderr.text, &output.nothing, output.exit, took),
        exit_code: Some(output.exit),
        duration_ms: millis(took),
        colours: stdout.colours,
        truncated: stdout.truncated,
        overflow_path: stdout.overflow_path,
        stderr_bytes: stderr.bytes,
        pipestatus: output.pipestatus,
        origin: output.origin.map(Box::new),
        attachments: output.attachments,
        changes: output.changes,
        preview: None,
        error: output.errors.last().filter(|_| !ok).map(|(_, error)| error.body().into()),
    };
    // The output is a binary file. The result is an error, although the command itself succeeded.
    let result = match stdout.binary {
        Some(error) => {
            let name = output.reader.unwrap_or(&call.tool);
            ToolResult { truncated: result.truncated, ..failure_of(call, name, &error, took) }
        }
        None => result,
    };
    Done { result, facts: output.facts, lease: None, ran: true, put_back: output.put_back }
}

fn failure(call: &Call, error: &Error, took: Duration) -> ToolResult {
    failure_of(call, &call.tool, error, took)
}

fn failure_of(call: &Call, name: &str, error: &Error, took: Duration) -> ToolResult {
    // In a line of several commands, name the command that failed.
    let name = error.details.get("command").and_then(Value::as_str).unwrap_or(name);
    ToolResult {
        call_id: call.id.clone(),
        ok: false,
        output: format!("{}\n{}", error.for_model(name), footer(in_run_exit(error), took)),
        duration_ms: millis(took),
        error: Some(error.body().into()),
        ..ToolResult::default()
    }
}

fn write_preview(text: &mut String, preview: &Preview, mark: &str) {
    let size = preview.bytes.map_or(String::new(), |bytes| format!(" ({})", text::human::human_size(bytes)));
    text.push_str(&format!("{mark}{} {}{size}\n", preview.would, preview.target));
    text.push_str(preview.diff.as_deref().unwrap_or_default());
    preview.steps.iter().for_each(|step| write_preview(text, step, "• "));
    preview.notes.iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
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
