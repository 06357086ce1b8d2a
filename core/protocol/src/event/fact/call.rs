//! Calls: what was to run, who decided, and what came of it.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arguments, FileChange, ResultOrigin, Rule};
use crate::call_info::{CallInfo, CallKind};
use crate::error::ErrorBody;

/// A command that the user ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserCommand {
    /// The id that its result names; unique in the Session.
    pub call_id: String,
    /// The command line.
    pub command: String,
    /// Whether the model reads the command and its output.
    pub send_to_model: bool,
}

impl UserCommand {
    /// The prefix that the user typed: `!`, or `!!` when the model does not read it.
    pub const fn mark(&self) -> &'static str {
        if self.send_to_model { "!" } else { "!!" }
    }

    /// Returns the command as a call, for code that shows calls. The typed prefix takes the place of the tool's name.
    pub fn as_call(&self) -> ToolCall {
        ToolCall {
            call_id: self.call_id.clone(),
            name: self.mark().to_owned(),
            args: serde_json::json!({ "command": self.command }).into(),
            info: Some(Box::new(CallInfo::new(CallKind::Execute, "run", &*self.command))),
        }
    }

    /// The command with its prefix, as typed.
    pub fn typed(&self) -> String {
        format!("{}{}", self.mark(), self.command)
    }
}

/// A call that the model made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The call's id; unique in the Session.
    pub call_id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments, a JSON object. Arguments that are not an object are stored under `_raw`.
    pub args: Arguments,
    /// What the call is about; absent in Entries of old builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<Box<CallInfo>>,
}

impl ToolCall {
    /// What the call is about.
    pub fn about(&self) -> Cow<'_, CallInfo> {
        match &self.info {
            Some(info) => Cow::Borrowed(info),
            None => Cow::Owned(CallInfo::unknown(&self.name, &self.args.value())),
        }
    }
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: String,
    /// False for an error and for a command that exited with a non-zero code.
    pub ok: bool,
    /// The text that the model reads.
    pub output: String,
    /// What came of the call, in a few words for the user: `120 lines`, `550 passed`. Absent if nothing was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The exit code of the process; 128 + n for a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Wall-clock milliseconds.
    pub duration_ms: u64,
    /// Colours of the output, for the user; the model reads plain text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub colours: Vec<Colouring>,
    /// How much of the output was cut; absent if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncated>,
    /// The file with the complete output, if the output was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow_path: Option<String>,
    /// Bytes that the process wrote to stderr.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub stderr_bytes: u64,
    /// The exit code of each command of the last pipeline, if it had several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pipestatus: Vec<i32>,
    /// The tool of an MCP server that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Box<ResultOrigin>>,
    /// Images that the model sees with the output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Files that the call changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// The preview, if the call was a dry run.
    #[serde(default, rename = "plan", skip_serializing_if = "Option::is_none")]
    pub preview: Option<Box<Preview>>,
    /// Why the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<ErrorBody>>,
}

/// An image in the blob store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// The path of the file relative to the workspace, if the file is inside it; otherwise a name.
    pub path: String,
    /// The media type, like `image/png`.
    pub media_type: String,
    /// The name of the blob with its bytes.
    pub blob: String,
    /// The size in bytes.
    pub bytes: u64,
}

/// A change of colour in an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Colouring {
    /// The offset in `output`, in bytes, from which the colour applies.
    pub at: u64,
    /// The parameters of the SGR escape sequence at this offset, such as `1;31`.
    pub sgr: String,
}

/// How much of an output was cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Truncated {
    /// Lines of the whole output.
    pub lines_total: u64,
    /// Lines that were cut.
    pub lines_omitted: u64,
    /// Bytes of the whole output.
    pub bytes_total: u64,
}

/// The preview of a call: what a dry run returns and an approval shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Preview {
    /// The verb: `read`, `write`, `edit`, `run`, …
    pub would: String,
    /// One line for the user: the path or the command.
    pub target: String,
    /// Paths that the call would touch, relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The change as a unified diff. Long lines are excerpts around what changed, bytes that are not text are written as
    /// `\xHH`, and lines in brackets tell what concerns the file as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Lines that the change adds; absent for bytes without lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// Lines that the change removes; absent for bytes without lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
    /// How much of the change `diff` leaves out, because it is too long: `37120 changed lines (2.1MB)`. A decision to
    /// allow the call has to confirm it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// Bytes that the call would write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Bytes that the file has now; absent for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_before: Option<u64>,
    /// For a line of the run language, the preview of each command that does more than read; for a patch, of each file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Preview>,
    /// What may differ when the call runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What the call would destroy, counted: `deletes 214 files, 31MB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub danger: Option<String>,
}

/// Whether a call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The call runs.
    Allow,
    /// The call does not run.
    Deny,
}

/// Who or what decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// The user.
    User,
    /// The mode.
    Mode,
    /// A rule that the user made.
    Rule,
    /// The role of the agent.
    Role,
    /// The call, or the step of a workflow, that started the agent and left less to it than its role does.
    Task,
    /// The call needed the user's approval, but no user was available.
    NoAsker,
    /// A decider that only a newer build knows.
    #[schemars(skip)]
    Unknown,
}

/// A verdict on a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionDecision {
    /// The call.
    pub call_id: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Who or what decided.
    pub by: DecidedBy,
    /// Why the call needed a decision, as a sentence.
    pub reason: String,
    /// The rule that decided, or that the user made by answering "always". Where no user could be asked: the one that would have
    /// allowed the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// The user's message to the model with a deny.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
}
