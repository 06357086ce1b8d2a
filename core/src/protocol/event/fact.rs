//! The payloads of Entries, one struct per `type`. They are a contract with every other build: fields are only added.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::open::{self, Understood};
use super::skill::{SkillActivation, SkillIndex};
use crate::protocol::call_info::{CallInfo, CallKind};
use crate::protocol::error::{Code, Error, ErrorBody, Result};

mod agent; // child Sessions
mod arguments; // the arguments of a call
mod branch; // moves of the head, and branches in the trash
mod context; // documents, surroundings, what the editor shows
mod label; // the user's marks on Entries
mod parent; // the Session that started another one
mod review; // what the user thinks of a change
mod servers; // tools of MCP servers
mod rule; // the rules of the user
mod summary; // what takes the place of a part of the conversation
mod workflow; // runs of workflows

pub use agent::{
    Adoption, AgentContext, AgentEvent, AgentResult, AgentStatus, Evidence, Isolation, Ran, Spawned, Telling, ToldBy,
};
pub use arguments::Arguments;
pub use branch::{BranchRemoved, HeadMoved};
pub use context::{
    ContextChanged, ContextDocument, EditorDocument, EditorDocumentKind, GitState, LineRange, Surroundings, UserMessage,
};
pub use label::Label;
pub use parent::ParentSession;
pub use review::HunkReviewed;
pub use rule::{Rule, Scope};
pub use servers::{Exposure, OfferedServer, OfferedTool, ResultOrigin, ToolsOffered};
pub use summary::{BranchSummary, HistoryCompaction, Notes, Trigger, TurnDigest};
pub use workflow::{
    Ask, CheckRan, Held, LeftBehind, Planned, Resumed, StepEnded, StepOutcome, StepStarted, WorkflowEvent,
};

macro_rules! facts {
    ($($(#[doc = $doc:literal])* $variant:ident: $stored:ty = $name:literal, $conversation:literal);* $(;)?) => {
        /// The payload of an Entry, one struct per `type`. A Session keeps all its Entries in memory, so each type is in a box,
        /// and no type makes every Entry as large as itself.
        #[derive(Debug, Clone)]
        pub enum Fact {
            $($(#[doc = $doc])* $variant($stored),)*
            /// An Entry of a newer build: its `type` is unknown here, or its `data` does not fit. It is kept byte for
            /// byte and skipped; it is never damage.
            Unknown(Box<UnknownFact>),
        }

        impl Fact {
            /// The names of all types that this build writes.
            pub const KINDS: &'static [&'static str] = &[$($name),*];

            /// The `type` on the wire.
            pub fn kind(&self) -> &str {
                match self {
                    $(Fact::$variant(_) => $name,)*
                    Fact::Unknown(it) => &it.kind,
                }
            }

            fn kind_is_conversation(&self) -> bool {
                match self.kind() {
                    $($name => $conversation,)*
                    // An unreadable Entry of a known type keeps its place in the conversation.
                    _ => false,
                }
            }

            pub(crate) fn write_data(&self, line: &mut Vec<u8>) -> serde_json::Result<()> {
                match self {
                    $(Fact::$variant(it) => serde_json::to_writer(line, it),)*
                    Fact::Unknown(it) => {
                        line.extend_from_slice(it.data.get().as_bytes());
                        Ok(())
                    }
                }
            }

            /// Reads the `data` of a line. [`Understood`] tells whether it skipped parts that a newer build added.
            pub(super) fn from_data(kind: &str, data: &RawValue) -> (Fact, Understood) {
                let read = match kind {
                    $($name => open::from_str::<$variant>(data.get()).ok().map(|(it, part)| (Fact::$variant(it.into()), part)),)*
                    _ => None,
                };
                read.unwrap_or_else(|| {
                    (UnknownFact { kind: kind.to_owned(), data: data.to_owned() }.into(), Understood::Whole)
                })
            }

            /// The JSON Schema of each type's `data`, by type.
            pub fn schemas() -> Map<String, Value> {
                let mut all = Map::new();
                $(all.insert($name.to_owned(), schemars::schema_for!($variant).to_value());)*
                all
            }
        }

        $(impl From<$variant> for Fact {
            fn from(it: $variant) -> Fact {
                Fact::$variant(it.into())
            }
        })*
    };
}

/// The payload of an Entry that this build does not understand.
#[derive(Debug, Clone)]
pub struct UnknownFact {
    /// The `type` on the wire.
    pub kind: String,
    /// Its `data`, as it was written.
    pub data: Box<RawValue>,
}

impl From<UnknownFact> for Fact {
    fn from(it: UnknownFact) -> Fact {
        Fact::Unknown(it.into())
    }
}

facts! {
    /// The first line of every Log.
    SessionStarted: Box<SessionStarted> = "session_started", false;
    /// A change of settings, which affects future requests, permissions or tools.
    SettingsChanged: Box<SettingsChanged> = "settings_changed", false;
    /// A message of the user.
    UserMessage: Box<UserMessage> = "user_message", true;
    /// A command that the user ran (`!cmd`). Its result follows as a `tool_result`.
    UserCommand: Box<UserCommand> = "user_command", true;
    /// A message of the model.
    AssistantMessage: Box<AssistantMessage> = "assistant_message", true;
    /// The model's reasoning, as far as the Provider returns it.
    Reasoning: Box<Reasoning> = "reasoning", true;
    /// A call that the model made.
    ToolCall: Box<ToolCall> = "tool_call", true;
    /// The result of a call. Every call has exactly one.
    ToolResult: Box<ToolResult> = "tool_result", true;
    /// A verdict on a call: who decided, and by which rule.
    PermissionDecision: Box<PermissionDecision> = "permission_decision", false;
    /// The mode, the toolset, the repository or who can answer changed; the model reads it where it stands.
    ContextChanged: Box<ContextChanged> = "context_changed", true;
    /// A skill was activated: its text joined the conversation.
    SkillActivation: Box<SkillActivation> = "skill_activation", true;
    /// The skills that the model may use, as far as the list changed.
    SkillIndex: Box<SkillIndex> = "skill_index", true;
    /// The tools of MCP servers that requests offer from here on.
    ToolsOffered: Box<ToolsOffered> = "tools_offered", false;
    /// The whole plan after a change.
    PlanUpdated: Box<PlanUpdated> = "plan_updated", false;
    /// A child Session was started, was told something, or ended.
    AgentEvent: Box<AgentEvent> = "subagent_event", false;
    /// A run of a workflow began, a step of it began or ended, or it went on.
    WorkflowEvent: Box<WorkflowEvent> = "workflow_event", false;
    /// Tokens and cost of one request.
    ProviderUsage: Box<ProviderUsage> = "provider_usage", false;
    /// A summary replaces older History from here on; nothing is deleted.
    HistoryCompaction: Box<HistoryCompaction> = "history_compaction", true;
    /// The Session that this fork was made from.
    SessionFork: Box<SessionFork> = "session_fork", false;
    /// The Head moved to an earlier Entry.
    HeadMoved: Box<HeadMoved> = "head_moved", false;
    /// The user moved a branch to the trash, or took it back. Nothing is erased.
    BranchRemoved: Box<BranchRemoved> = "branch_removed", false;
    /// A summary of a branch that the Head left; the model reads it where the conversation continues.
    BranchSummary: Box<BranchSummary> = "branch_summary", true;
    /// A restore set files back.
    FilesRestored: Box<FilesRestored> = "files_restored", true;
    /// The user reviewed a hunk of a diff.
    HunkReviewed: Box<HunkReviewed> = "hunk_reviewed", false;
    /// The user named or pinned an Entry.
    Label: Box<Label> = "label", false;
    /// A memory for later Sessions was added or removed.
    MemoryFact: Box<MemoryFact> = "memory_fact", false;
    /// The end of a Turn. Every Turn has exactly one.
    TurnEnded: Box<TurnEnded> = "turn_ended", false;
    /// A placeholder for a damaged line that a repair moved to the quarantine file.
    LogRepaired: Box<LogRepaired> = "log_repaired", false;
}

impl Fact {
    /// Whether the Entry belongs to the conversation and so moves the Head.
    pub fn is_conversation(&self) -> bool {
        match self {
            // After a rewind the conversation already shows the files as they are, so the model need not read about it.
            Fact::FilesRestored(it) => it.reason != RestoreReason::Rewind,
            // The model reads nothing else of its children outside of calls.
            Fact::AgentEvent(it) => matches!(**it, AgentEvent::Reported { .. }),
            // Where a run begins is a place of its own in the tree.
            Fact::WorkflowEvent(it) => it.begins(),
            _ => self.kind_is_conversation(),
        }
    }

    /// The files of the workspace that a call or a child Session changed.
    pub fn changes(&self) -> &[FileChange] {
        match self {
            Fact::ToolResult(it) => &it.changes,
            Fact::AgentEvent(event) if let AgentEvent::Changed { changes, .. } = &**event => changes,
            Fact::AgentEvent(event) if let AgentEvent::Adopted(it) = &**event => &it.changes,
            _ => &[],
        }
    }

    /// Whether the type is known and the `data` does not fit this build.
    pub(crate) fn is_misfit(&self) -> bool {
        matches!(self, Fact::Unknown(it) if Fact::KINDS.contains(&it.kind.as_str()))
    }
}

/// The first line of every Log: the settings at the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStarted {
    /// The canonical root of the workspace.
    pub workspace: String,
    /// The model's name at its Provider.
    pub model: String,
    /// The Provider's name in the configuration.
    pub provider: String,
    /// Which tools the model is offered.
    pub toolset: Toolset,
    /// What may run without asking.
    pub mode: Mode,
    /// How much the model is asked to reason, if it was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Context documents (`AGENTS.md` of the workspace and the user) as they were at the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextDocument>,
    /// The surroundings that those documents tell of; absent in Logs of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Surroundings>,
    /// The role that the user gave to the Session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The parent, if another Session started this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Box<ParentSession>>,
    /// The means by which programs were confined at the start: `ns`, `ll` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The version of the build that wrote the Log.
    pub pixir_version: String,
}

/// Which tools the model is offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Toolset {
    /// Each tool with its own schema.
    #[default]
    Typed,
    /// One tool, `run`, whose commands are the same tools.
    Run,
    /// Both.
    Both,
}

impl Toolset {
    /// All toolsets.
    pub const ALL: [Toolset; 3] = [Toolset::Typed, Toolset::Run, Toolset::Both];

    /// The name on the command line and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Toolset::Typed => "typed",
            Toolset::Run => "run",
            Toolset::Both => "both",
        }
    }

    /// The toolset with this name.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, with the names that exist.
    pub fn parse(name: &str) -> Result<Toolset> {
        Toolset::ALL.into_iter().find(|toolset| toolset.name() == name).ok_or_else(|| {
            let message = format!("there is no toolset `{}`", name.escape_debug());
            Error::new(Code::ConfigInvalid, message, "choose typed, run or both").with("input", name)
        })
    }
}

/// What may run without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Calls that change something are refused.
    ReadOnly,
    /// Calls that provably only read run; all others need the user's approval.
    #[default]
    Ask,
    /// Every call runs; only changes of protected paths need the user's approval.
    Auto,
}

impl Mode {
    /// All modes, from the safest to the most permissive.
    pub const ALL: [Mode; 3] = [Mode::ReadOnly, Mode::Ask, Mode::Auto];

    /// The name on the command line and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::ReadOnly => "read-only",
            Mode::Ask => "ask",
            Mode::Auto => "auto",
        }
    }

    /// The one of two modes in which less runs without asking.
    #[must_use]
    pub fn stricter(self, other: Mode) -> Mode {
        let first = Mode::ALL.into_iter().find(|mode| *mode == self || *mode == other);
        first.unwrap_or(self)
    }

    /// The mode with this name.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, with the names that exist.
    pub fn parse(name: &str) -> Result<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
            Error::new(
                Code::ConfigInvalid,
                format!("there is no mode `{}`", name.escape_debug()),
                "choose read-only, ask or auto",
            )
            .with("input", name)
        })
    }
}

/// A change of settings; only the changed ones are present.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingsChanged {
    /// The Provider's name in the configuration; always together with `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model's name at its Provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How much the model is asked to reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// What may run without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Which tools the model is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolset: Option<Toolset>,
    /// The Session's name; empty removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The canonical root of the workspace from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The role of the Session; empty removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Why pixir made the change; absent where the user made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl SessionStarted {
    /// The fields that this build knows.
    pub(crate) const FIELDS: &'static [&'static str] = &[
        "workspace",
        "model",
        "provider",
        "toolset",
        "mode",
        "effort",
        "context",
        "surroundings",
        "role",
        "parent",
        "sandbox",
        "pixir_version",
    ];
}

impl SettingsChanged {
    /// The fields that this build knows.
    pub(crate) const FIELDS: &'static [&'static str] =
        &["provider", "model", "effort", "mode", "toolset", "name", "workspace", "role"];
}

/// How a user message was delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// It started a Turn.
    #[default]
    Prompt,
    /// It joined a running Turn.
    Steer,
    /// It waited for the Turn to end and started the next.
    FollowUp,
}

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

/// A message of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage {
    /// The text, Markdown.
    pub text: String,
    /// The stream broke off. The text is shown and recorded, but never sent to a model again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The purpose of the message, such as `commentary`, if the Provider states one; sent back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// The model's reasoning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reasoning {
    /// The part that may be shown.
    pub text: String,
    /// The only Provider that it may be sent back to.
    #[serde(default)]
    pub provider: String,
    /// The only model that it may be sent back to.
    pub model: String,
    /// The Provider's own item, sent back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Value>,
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
    #[serde(default, skip_serializing_if = "is_zero")]
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_none_new(n: &u32) -> bool {
    *n == 0
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

/// A file that a call changed, with blobs of its bytes before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// The path, relative to the workspace.
    pub path: String,
    /// Created, modified or deleted.
    pub kind: ChangeKind,
    /// The blob of the bytes before. Absent for a new file, and if the bytes were not captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_blob: Option<String>,
    /// The blob of the bytes after. Absent for a deleted file, and if the bytes were not captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_blob: Option<String>,
    /// The permission bits before, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_mode: Option<u32>,
    /// The permission bits after, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_mode: Option<u32>,
    /// For a new file: the number of parent folders that were created with it.
    #[serde(default, skip_serializing_if = "is_none_new")]
    pub new_folders: u32,
    /// For a new file that is one which the same call deleted, under another path: that path. Its lines are counted against
    /// that file, and the deletion counts none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
    /// The number of added lines, if both versions are text.
    #[serde(default)]
    pub added: u64,
    /// The number of removed lines, if both versions are text.
    #[serde(default)]
    pub removed: u64,
}

/// How a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The file is new.
    Created,
    /// The bytes of the file changed.
    Modified,
    /// The file was deleted.
    Deleted,
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
    /// The change as a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
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

/// A memory for later Sessions, or its removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryFact {
    /// The id: six hex digits.
    pub id: String,
    /// The text; absent when the memory is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
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
    /// The role of the agent, or the call that started it and left less to it than its role does.
    Role,
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
    /// The rule that decided, or that the user made by answering "always".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// The user's message to the model with a deny.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
}

/// One step of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanItem {
    /// The work.
    pub step: String,
    /// How far the work is.
    pub status: StepStatus,
}

/// How far a step of the plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Work on it has not begun.
    Pending,
    /// The model works on it.
    InProgress,
    /// It is done.
    Completed,
}

/// The whole plan after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanUpdated {
    /// The steps in order.
    pub items: Vec<PlanItem>,
}

/// Tokens of one or more requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens sent, including cached ones.
    pub input: u64,
    /// Tokens of `input` that the Provider read from its cache.
    #[serde(default)]
    pub cached: u64,
    /// Tokens of `input` that the Provider wrote to its cache, where it reports them.
    #[serde(default)]
    pub cache_written: u64,
    /// Tokens returned, including reasoning.
    pub output: u64,
    /// Tokens of `output` that are reasoning.
    #[serde(default)]
    pub reasoning: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.cache_written = self.cache_written.saturating_add(other.cache_written);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// The price of one or more requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// US dollars, without requests whose price is unknown.
    pub usd: f64,
    /// Part of the cost was computed from the model's prices and not reported by the Provider.
    #[serde(default)]
    pub estimated: bool,
    /// Requests whose price is unknown.
    #[serde(default)]
    pub unpriced: u64,
}

impl Cost {
    /// The cost of one request whose price is unknown.
    pub const UNKNOWN: Cost = Cost { usd: 0.0, estimated: false, unpriced: 1 };

    fn unknown() -> Cost {
        Cost::UNKNOWN
    }
}

impl std::fmt::Display for Cost {
    /// `$1.23`, with `~` before a computed cost and `≥` where some prices are unknown; `<$0.01` for less than half a cent.
    /// Empty when the cost is zero.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.usd <= 0.0 {
            return Ok(());
        }
        let mark = match (self.unpriced > 0, self.estimated) {
            (true, _) => "≥",
            (false, true) => "~",
            (false, false) => "",
        };
        match (self.usd < 0.005, self.unpriced > 0) {
            (true, false) => f.write_str("<$0.01"),
            (true, true) | (false, _) => write!(f, "{mark}${:.2}", self.usd),
        }
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.usd += other.usd;
        self.estimated |= other.estimated;
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
    }
}

/// Tokens and cost of one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderUsage {
    /// The Provider that answered.
    #[serde(default)]
    pub provider: String,
    /// The model that answered.
    pub model: String,
    /// The tokens.
    pub usage: Usage,
    /// pixir estimated the tokens, because the server reports none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Their cost.
    #[serde(default = "Cost::unknown")]
    pub cost: Cost,
}

/// The Session that a fork was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionFork {
    /// The id of that Session.
    pub parent_session_id: String,
    /// The id of the first Session of the family.
    pub fork_root_session_id: String,
    /// The last Entry that was copied, by its number in the parent.
    pub forked_to_seq: u64,
    /// The last Entry that was copied, by its number in this Log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_to_seq: Option<u64>,
    /// How the Entries were copied: `replay_v1` copies the parent's branch.
    pub strategy: String,
}

/// Why files were restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestoreReason {
    /// Undo: a Turn's changes were taken back.
    Undo,
    /// Redo: an undo was taken back.
    Redo,
    /// Rewind: the Head moved to an earlier Entry, and the files with it.
    Rewind,
    /// The Head moved to an earlier Entry, and these files stayed as they were.
    Stayed,
    /// One hunk of a change was taken back.
    Hunk,
    /// Files of an agent's copy are written to the workspace. No Entry of a restore has it.
    Adopt,
    /// A reason that only a newer build knows.
    #[schemars(skip)]
    Unknown,
}

/// Files that a restore set back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilesRestored {
    /// Why the files were restored.
    pub reason: RestoreReason,
    /// The Turn that was undone or redone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_turn: Option<u32>,
    /// The Entry that the files were set back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_seq: Option<u64>,
    /// The Entry of the restore that was undone or redone, if it was not a Turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_seq: Option<u64>,
    /// The changes that the restore made.
    pub changes: Vec<FileChange>,
    /// Files that the restore left as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<LeftFile>,
}

/// A file that a restore left as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftFile {
    /// The path, relative to the workspace.
    pub path: String,
    /// Why the restore left it.
    pub why: String,
}

/// A placeholder for a damaged line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogRepaired {
    /// The damage, as a sentence.
    pub reason: String,
    /// The file next to the Log with the Log as it was before the repair.
    pub quarantine: String,
}

/// How a Turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// The model finished its answer.
    Completed,
    /// A limit ended the Turn before the answer.
    Incomplete,
    /// The answer broke off; its beginning is kept.
    PartialFailed,
    /// An error ended the Turn.
    Failed,
    /// The user stopped the Turn.
    Interrupted,
    /// The Provider took too long.
    TimedOut,
}

impl TurnStatus {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            TurnStatus::Completed => "completed",
            TurnStatus::Incomplete => "incomplete",
            TurnStatus::PartialFailed => "partial_failed",
            TurnStatus::Failed => "failed",
            TurnStatus::Interrupted => "interrupted",
            TurnStatus::TimedOut => "timed_out",
        }
    }
}

/// The end of a Turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnded {
    /// How the Turn ended.
    pub status: TurnStatus,
    /// Why the Turn did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<ErrorBody>>,
    /// Tokens of all requests of the Turn.
    #[serde(default)]
    pub usage: Usage,
    /// pixir estimated a part of the tokens, because the server reports none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usage_estimated: bool,
    /// Cost of all requests of the Turn.
    #[serde(default)]
    pub cost: Cost,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Number of calls.
    pub tool_calls: u64,
    /// Further details for programs: `output_truncation`, `reason`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::Fact;
    use crate::protocol::event::Entry;

    /// Broken build: a type that is in no box. Every Entry is then as large as it: with results of calls, 240 bytes.
    #[test]
    fn no_type_makes_every_entry_large() {
        assert_eq!((size_of::<Fact>(), size_of::<Entry>()), (16, 88));
    }
}
