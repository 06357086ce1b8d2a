//! The one writer to stdout, and the three renderings of an error.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::sync::OnceLock;

pub(crate) use pixir_core::text::clean::clean;
use pixir_core::text::clean::clean_json;
use pixir_core::{Code, Error};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{ErrorFormat, Format, OutputOptions};
use crate::cli::{Asked, asked_to_end};
use crate::{next_actions, remedies, start};

mod list; // rows in every format
mod outlet; // stdout and stderr, which a signal can give up

pub(crate) use list::{List, ListOptions};
use outlet::Outlet;

/// Where results go. After the first write that fails, nothing more is written. A reader may close the pipe early, which
/// is no error; see [`Output::failure`] for every other one.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) format: Format,
    error_format: ErrorFormat,
    stopped: OnceLock<io::Error>,
}

impl Output {
    pub(crate) fn new(options: &OutputOptions) -> Output {
        Output { format: options.format(), error_format: options.error_format, stopped: OnceLock::new() }
    }

    /// Whether stdout takes no more: the reader has closed the pipe, or a write has failed.
    pub(crate) fn is_closed(&self) -> bool {
        self.stopped.get().is_some()
    }

    /// The error of a command whose result could not be printed in full. None if a reader, such as `head`, closed the
    /// pipe because it had enough.
    pub(crate) fn failure(&self) -> Option<Error> {
        let e = self.stopped.get().filter(|e| e.kind() != ErrorKind::BrokenPipe)?;
        let fix = "make room, or write to another place";
        Some(Error::new(Code::WriteFailed, format!("write the output: {e}"), fix))
    }

    /// Prints one JSON document with its `schemaVersion`.
    pub(crate) fn document(&self, value: Value) {
        self.stream(&versioned(value));
    }

    /// Prints a document that has its `schemaVersion` already, piece by piece.
    pub(crate) fn stream(&self, document: &impl Serialize) {
        self.write(|out| {
            let mut out = CleanJson(BufWriter::new(out));
            match self.format {
                Format::Jsonl => serde_json::to_writer(&mut out, document)?,
                Format::Plain | Format::Json | Format::Tsv => serde_json::to_writer_pretty(&mut out, document)?,
            }
            out.write_all(b"\n")?;
            out.flush()
        });
    }

    /// Prints one line, or several. Text that others wrote may be in it: nothing of it reaches the terminal as anything but
    /// text.
    pub(crate) fn line(&self, text: &str) {
        self.raw_line(&if self.is_json() { clean_json(text) } else { clean(text) });
    }

    /// Prints one line, or several, as they are: documents in formats of their own, and colours.
    pub(crate) fn raw_line(&self, text: &str) {
        self.write(|out| out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")));
    }

    /// Prints bytes as they are. False if stdout takes no more.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> bool {
        self.write(|out| out.write_all(bytes));
        !self.is_closed()
    }

    /// Lets `print` write to stdout, and remembers its error.
    pub(crate) fn write(&self, print: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        if self.is_closed() {
            return;
        }
        // Other threads wait for their turn.
        let _turn = io::stdout().lock();
        let mut out = BufWriter::new(Outlet::stdout());
        // Writing to `/dev/null` would succeed.
        let is_open = if start::stdout_was_closed() { Err(rustix::io::Errno::BADF.into()) } else { Ok(()) };
        let printed = is_open.and_then(|()| print(&mut out)).and_then(|()| out.flush());
        if let Err(e) = printed {
            // Dropping the writer would try once more to write what it holds.
            drop(out.into_parts());
            // Only the first error matters, and this is the only place that sets it, under the lock of stdout.
            let _ = self.stopped.set(e);
        }
    }

    /// Prints a note beside a plain result. A JSON document has the same information in its fields.
    pub(crate) fn aside(&self, text: &str) {
        if !self.is_json() {
            chatter(text);
        }
    }

    /// Prints the document if the format is JSON, else the text.
    pub(crate) fn either(&self, document: Value, text: &str) {
        if self.is_json() { self.document(document) } else { self.line(text) }
    }

    /// Prints the `result` line of a run that failed before its Turn began.
    pub(crate) fn failed_result(&self, error: &Error) {
        let mut result = envelope(error);
        result["type"] = "result".into();
        self.line(&result.to_string());
    }

    /// Whether results are JSON.
    pub(crate) fn is_json(&self) -> bool {
        match self.format {
            Format::Json | Format::Jsonl => true,
            Format::Plain | Format::Tsv => false,
        }
    }

    /// Prints an error on stderr: as JSON if results are JSON, else as three lines.
    pub(crate) fn error(&self, error: &Error) {
        self.error_with_exit(error, exit_code(error.code));
    }

    /// The same for a process that ends with another exit code, such as that of a signal.
    pub(crate) fn error_with_exit(&self, error: &Error, exit: u8) {
        let mut whole = envelope(error);
        whole["exit_code"] = exit.into();
        let text = match (self.is_json(), self.error_format) {
            (true, ErrorFormat::Envelope) => serde_json::to_string_pretty(&whole).expect("a value is JSON"),
            (true, ErrorFormat::Flat) => serde_json::to_string_pretty(&flat(error)).expect("a value is JSON"),
            (false, _) => plain(error),
        };
        chatter(&text);
    }
}

/// Passes JSON on as [`clean_json`] makes it. Each write holds whole characters, as serde writes them.
struct CleanJson<W>(W);

impl<W: Write> Write for CleanJson<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = str::from_utf8(bytes).map_err(|e| io::Error::new(ErrorKind::InvalidData, e))?;
        self.0.write_all(clean_json(text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The version of every JSON document that a command prints.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// Adds the version of its schema to a document.
pub(crate) fn versioned(mut document: Value) -> Value {
    document["schemaVersion"] = SCHEMA_VERSION.into();
    document
}

/// The document of a failed command:
/// `{schemaVersion, ok, error{kind, message, details}, code, remediation, exit_code}`.
pub(crate) fn envelope(error: &Error) -> Value {
    json!({
        "schemaVersion": SCHEMA_VERSION,
        "ok": false,
        "error": error_json(error),
        "code": error.code.name(),
        "remediation": remedies::word(&error.remedy),
        "exit_code": exit_code(error.code),
    })
}

/// An error in a document: `details` has what can be done next, each as one command.
pub(crate) fn error_json(error: &Error) -> Value {
    let mut details = error.details.clone();
    details.insert("next_actions".into(), json!(next_actions::after(error)));
    json!({ "kind": error.kind(), "message": error.message, "details": details })
}

/// The exit code of a process that fails with this code.
pub(crate) fn exit_code(code: Code) -> u8 {
    match code {
        Code::ReadFailed
        | Code::BinaryFile
        | Code::NotRegularFile
        | Code::WriteFailed
        | Code::FileChanged
        | Code::PreviewStale
        | Code::CommandFailed
        | Code::SandboxFailed
        | Code::McpStartFailed
        | Code::McpServerExited
        | Code::McpLimit
        | Code::McpProtocol
        | Code::OrphanToolCall
        | Code::NeverStarted
        | Code::CopyFailed
        | Code::AgentsFailed
        | Code::WorkflowFailed
        | Code::CheckFailed
        | Code::MergeConflict
        | Code::SkippedForSteer
        | Code::Detached
        | Code::ToolResultRecordFailed
        | Code::CorruptLogLine
        | Code::EphemeralNotLoggable
        | Code::LogEncodeFailed
        | Code::LogReadFailed
        | Code::LogWriteFailed
        | Code::ProviderHttpError
        | Code::ContextOverflow
        | Code::RequestTooLarge
        | Code::ImageRefused
        | Code::Refused
        | Code::ReasoningRejected
        | Code::InvalidResponse
        | Code::ResultInvalid
        | Code::ScriptMismatch
        | Code::SessionStartFailed
        | Code::StdinError => 1,
        Code::InvalidArgs
        | Code::UnsupportedSyntax
        | Code::Usage
        | Code::UnknownCommand
        | Code::UnknownFlag
        | Code::UnknownTool
        | Code::NotUnique => 2,
        Code::NothingToDo => 3,
        Code::AuthRequired
        | Code::McpAuthRequired
        | Code::AccessDenied
        | Code::TokenRequestFailed
        | Code::NoAccountId
        | Code::CorruptAuth
        | Code::AuthReadFailed
        | Code::AuthWriteFailed
        | Code::DeviceAuthFailed
        | Code::DeviceCodeUnsupported => 4,
        Code::NotFound
        | Code::SessionNotFound
        | Code::SkillNotFound
        | Code::TemplateNotFound
        | Code::WorkflowNotFound
        | Code::WorkspaceGone
        | Code::ResourceMissing
        | Code::NoMatch => 5,
        Code::OutsideWorkspace | Code::PermissionDenied | Code::McpDefinitionChanged => 6,
        Code::UsageLimitReached | Code::RateLimited => 7,
        Code::LeaseHeld
        | Code::SessionLocked
        | Code::Timeout
        | Code::McpTimeout
        | Code::StreamIdleTimeout
        | Code::ProviderUnavailable
        | Code::Network
        | Code::StreamClosed
        | Code::TlsFailed
        | Code::NetworkBlocked => 8,
        Code::AgentsPartial | Code::WorkflowPartial => 9,
        Code::ConfigInvalid
        | Code::ScriptInvalid
        | Code::ModelNotSupported
        | Code::VisionUnsupported
        | Code::ToolsUnsupported
        | Code::WorkflowInvalid
        | Code::TemplateMissing
        | Code::TooManyItems
        | Code::WorkspaceUntrusted
        | Code::McpUntrusted => 10,
        Code::SessionReadOnly => 11,
        Code::MutationBlocked | Code::ConfirmationNeeded | Code::WorkflowHeld => 12,
        Code::InputRequired | Code::NoPrompt => 13,
        Code::IterationCap
        | Code::DeadlineReached
        | Code::BudgetReached
        | Code::TooManyFailures
        | Code::OutputTruncated
        | Code::AnswerTooLarge
        | Code::EmptyAnswer
        | Code::TextLoop
        | Code::OutputInvalid
        | Code::ResultMissing => 14,
    }
}

/// Reports a result that could not be printed in full, and returns the exit code: never 0 then.
pub(crate) fn report_unprinted(output: &Output, exit: u8) -> u8 {
    let Some(error) = output.failure() else { return exit };
    output.error(&error);
    match asked_to_end() {
        Asked::Signal(number) if exit == 0 => 128 + number,
        Asked::NotCaught | Asked::No if exit == 0 => exit_code(error.code),
        Asked::NotCaught | Asked::No | Asked::Signal(_) => exit,
    }
}

fn flat(error: &Error) -> Value {
    let fix = remedies::word(&error.remedy);
    json!({ "error": error.message, "code": error.code.name(), "remediation": fix, "kind": error.kind() })
}

fn plain(error: &Error) -> String {
    let mut text = format!("error: {}\n  code: {}", error.message, error.code.name());
    if !error.remedy.is_empty() {
        text.push_str(&format!("\n  fix:  {}", remedies::word(&error.remedy)));
    }
    text
}

/// `1 file`, `2 files`.
pub(crate) fn count(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// Prints progress or a note on stderr; its text may change between versions.
pub(crate) fn chatter(text: &str) {
    let _turn = io::stderr().lock();
    let _ = Outlet::stderr().write_all(format!("{}\n", clean(text)).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_error_has_three_renderings() {
        let error =
            Error::new(Code::NotFound, "item 42 not found", "list items to find a valid id").with("input", "42");
        assert_eq!(plain(&error), "error: item 42 not found\n  code: NOT_FOUND\n  fix:  list items to find a valid id");
        assert_eq!(
            envelope(&error),
            json!({"schemaVersion": 1, "ok": false, "error": {"kind": "not_found", "message": "item 42 not found", "details": {"input": "42", "next_actions": next_actions::after(&error)}},
                   "code": "NOT_FOUND", "remediation": "list items to find a valid id", "exit_code": 5})
        );
        assert_eq!(flat(&error)["error"], "item 42 not found");
    }
}
