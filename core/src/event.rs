//! What a Session says: entries that are in the Log, and live news that never is.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::{Code, Error, ErrorBody, Result};

/// The version of the envelope that this build writes.
pub const VERSION: u8 = 1;

/// One thing that a Session tells whoever watches it.
#[derive(Debug, Clone)]
pub enum Event {
    /// It is in the Log, and will be there tomorrow.
    Recorded(Arc<Entry>),
    /// It is true now and never stored; a recorded entry follows when it mattered.
    Live(Live),
}

/// One line of a Log.
#[derive(Debug, Clone)]
pub struct Entry {
    /// UUID version 7, unique over all Sessions.
    pub id: Uuid,
    /// The Session whose Log holds it.
    pub session_id: SessionId,
    /// 0-based and gap-free within the Log.
    pub seq: u64,
    /// When it was recorded, UTC, to the millisecond. Informational: order is `seq`.
    pub ts: Timestamp,
    /// The 1-based Turn that it belongs to, if any.
    pub turn: Option<u32>,
    /// What happened.
    pub fact: Fact,
}

/// `YYYYMMDDTHHMMSS-<6 hex>`: sortable, safe as a file name, validated before it touches a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// A new id for a Session that starts now.
    pub fn now() -> SessionId {
        let stamp = Timestamp::now().strftime("%Y%m%dT%H%M%S");
        let random = Uuid::now_v7().as_u128() & 0xff_ffff;
        SessionId(format!("{stamp}-{random:06x}").into())
    }

    /// Reads an id that a person or a file gave.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND` when it has another form; the text itself is not echoed.
    pub fn parse(text: &str) -> Result<SessionId> {
        let shaped = text.len() == 22
            && text.bytes().enumerate().all(|(i, b)| match i {
                8 => b == b'T',
                15 => b == b'-',
                16.. => b.is_ascii_digit() || (b'a'..=b'f').contains(&b),
                0..16 => b.is_ascii_digit(),
            });
        if shaped {
            Ok(SessionId(text.into()))
        } else {
            Err(Error::new(
                Code::SessionNotFound,
                "that is not a session id (they look like 20261121T203012-0a1b2c)",
                "pixir sessions list",
            ))
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! facts {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal, $conversation:literal);* $(;)?) => {
        /// What happened, one struct per kind; these are the lines of the Log.
        #[derive(Debug, Clone)]
        pub enum Fact {
            $($(#[doc = $doc])* $variant($variant),)*
            /// A kind that this build does not know: kept byte for byte, shown as such, never an error.
            Unknown {
                /// The `type` on the wire.
                kind: String,
                /// Its `data`, untouched.
                data: Box<RawValue>,
            },
        }

        impl Fact {
            /// Names of every kind that this build writes.
            pub const KINDS: &'static [&'static str] = &[$($name),*];

            /// The `type` on the wire.
            pub fn kind(&self) -> &str {
                match self {
                    $(Fact::$variant(_) => $name,)*
                    Fact::Unknown { kind, .. } => kind,
                }
            }

            /// Whether it is part of the conversation and so moves the head.
            pub fn is_conversation(&self) -> bool {
                match self {
                    $(Fact::$variant(_) => $conversation,)*
                    Fact::Unknown { .. } => false,
                }
            }

            pub(crate) fn to_data(&self) -> serde_json::Result<Box<RawValue>> {
                match self {
                    $(Fact::$variant(it) => serde_json::value::to_raw_value(it),)*
                    Fact::Unknown { data, .. } => Ok(data.clone()),
                }
            }

            pub(crate) fn from_data(kind: &str, data: &RawValue) -> serde_json::Result<Fact> {
                match kind {
                    $($name => serde_json::from_str(data.get()).map(Fact::$variant),)*
                    _ => Ok(Fact::Unknown { kind: kind.to_owned(), data: data.to_owned() }),
                }
            }

            /// The JSON Schema of each kind's `data`, by kind.
            pub fn schemas() -> Map<String, Value> {
                let mut all = Map::new();
                $(all.insert($name.to_owned(), schemars::schema_for!($variant).to_value());)*
                all
            }
        }

        $(impl From<$variant> for Fact {
            fn from(it: $variant) -> Fact {
                Fact::$variant(it)
            }
        })*
    };
}

facts! {
    /// The first line of every Log.
    SessionStarted = "session_started", false;
    /// Anything that changes future requests, permissions or tools.
    SettingsChanged = "settings_changed", false;
    /// What the person said.
    UserMessage = "user_message", true;
    /// What the model said.
    AssistantMessage = "assistant_message", true;
    /// What the model thought, as far as the Provider lets it be seen and replayed.
    Reasoning = "reasoning", true;
    /// A tool that the model asked for.
    ToolCall = "tool_call", true;
    /// What came of it; every call gets exactly one.
    ToolResult = "tool_result", true;
    /// Who or what allowed or refused a call, and by which rule.
    PermissionDecision = "permission_decision", false;
    /// A skill's text that joined the conversation.
    SkillActivation = "skill_activation", true;
    /// The whole plan, each time that it changed.
    PlanUpdated = "plan_updated", false;
    /// What one request cost.
    ProviderUsage = "provider_usage", false;
    /// Older history, replaced by a summary from here on; nothing is deleted.
    HistoryCompaction = "history_compaction", true;
    /// Where this Session came from, when it is a fork.
    SessionFork = "session_fork", false;
    /// The conversation continues from an earlier entry.
    HeadMoved = "head_moved", false;
    /// A name or a pin that a person put on an entry.
    Label = "label", false;
    /// The one end of a Turn.
    TurnEnded = "turn_ended", false;
}

/// The first line of every Log: what the Session began with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStarted {
    /// The canonical root that no path may leave.
    pub workspace: String,
    /// The model's name at its Provider.
    pub model: String,
    /// The Provider's name in the configuration.
    pub provider: String,
    /// Which tools the model is offered.
    pub toolset: String,
    /// What may run without asking.
    pub mode: Mode,
    /// How hard the model should think, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Instructions of the workspace and the user (`AGENTS.md`), as they were at the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextDocument>,
    /// The build that wrote it.
    pub pixir_version: String,
}

/// A document that is put before the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextDocument {
    /// Where it came from: a path, or `environment`.
    pub source: String,
    /// Its text.
    pub text: String,
}

/// What may run without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing that changes anything runs.
    ReadOnly,
    /// What is proven to only read runs; the rest asks.
    #[default]
    Ask,
    /// Everything runs, except what is protected.
    Auto,
}

impl Mode {
    /// All of them, from the safest to the freest.
    pub const ALL: [Mode; 3] = [Mode::ReadOnly, Mode::Ask, Mode::Auto];

    /// The name on the command line and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::ReadOnly => "read-only",
            Mode::Ask => "ask",
            Mode::Auto => "auto",
        }
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
                "read-only, ask or auto",
            )
            .with("input", name)
        })
    }
}

/// Only what changed is present.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingsChanged {
    /// The Provider's name in the configuration; always together with `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model's name at its Provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How hard the model should think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// What may run without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The Session's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// How a user message came to be delivered.
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

/// What the person said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    /// The text, as typed.
    pub text: String,
    /// How it was delivered.
    #[serde(default)]
    pub delivery: Delivery,
}

/// What the model said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage {
    /// Markdown.
    pub text: String,
    /// The stream broke off: shown and kept, never replayed to a model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// What the model thought.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reasoning {
    /// What may be shown.
    pub text: String,
    /// The model that it may be replayed to, and to no other.
    pub model: String,
    /// The Provider's own item, replayed verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Value>,
}

/// A tool that the model asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Unique in the Session.
    pub call_id: String,
    /// The tool's name, as the model gave it.
    pub name: String,
    /// Its arguments, a JSON object; what was no object is under `_raw`.
    pub args: Value,
}

/// What came of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: String,
    /// False for an error and for a command that exited non-zero.
    pub ok: bool,
    /// What the model reads, recorded once.
    pub output: String,
    /// The child's exit code; 128 + n for a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Wall-clock milliseconds.
    pub duration_ms: u64,
    /// What was left out of `output`, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncated>,
    /// The file that holds everything that was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow_path: Option<String>,
    /// Bytes that the child wrote to its stderr.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stderr_bytes: u64,
    /// Files that it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// It was a dry run: this is what would have been done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Why it could not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// How much of an output was left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Truncated {
    /// Lines of the whole.
    pub lines_total: u64,
    /// Lines left out.
    pub lines_omitted: u64,
    /// Bytes of the whole.
    pub bytes_total: u64,
}

/// One file that a tool changed, with its bytes before and after in the blob store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Relative to the workspace.
    pub path: String,
    /// Created, modified or deleted.
    pub kind: ChangeKind,
    /// The blob of the bytes before; absent for a new file, and where they could not be captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_blob: Option<String>,
    /// The blob of the bytes after; absent for a deleted file, and where they could not be captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_blob: Option<String>,
    /// Lines added, where both sides are known text.
    #[serde(default)]
    pub added: u64,
    /// Lines removed, where both sides are known text.
    #[serde(default)]
    pub removed: u64,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// Its bytes changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// What a call would do: the answer of a dry run, and what an approval shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The verb: `read`, `write`, `edit`, `run`, …
    pub would: String,
    /// One line for a person: the path, the command.
    pub target: String,
    /// Files that it would touch, relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// A unified diff of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Bytes that it would write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Whether a call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It runs.
    Allow,
    /// It does not.
    Deny,
}

/// Who or what decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// The person, when asked.
    User,
    /// The mode.
    Mode,
    /// A rule that the person made.
    Rule,
    /// Nobody could be asked.
    NoAsker,
}

/// Who or what allowed or refused a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionDecision {
    /// The call that was judged.
    pub call_id: String,
    /// What was decided.
    pub verdict: Verdict,
    /// By whom.
    pub by: DecidedBy,
    /// Why it was judged at all, in words.
    pub reason: String,
    /// The rule that decided, or that the person made by answering "always".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// What the person said to the model with a "no".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
}

/// What "always" means; it holds for this Session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "allow", content = "what")]
pub enum Rule {
    /// Writing and editing files inside the workspace, protected ones excepted.
    FileChanges,
    /// Exactly this command.
    Command(String),
}

/// A skill's text that joined the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillActivation {
    /// The skill's name.
    pub name: String,
    /// Where its `SKILL.md` was.
    pub path: String,
    /// What the person gave it to work on.
    #[serde(default)]
    pub args: String,
    /// The text that the model reads.
    pub body: String,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanItem {
    /// What is to be done.
    pub step: String,
    /// How far it is.
    pub status: StepStatus,
}

/// How far a step of a plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
}

/// The whole plan, each time that it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanUpdated {
    /// Its steps, in order.
    pub items: Vec<PlanItem>,
}

/// Tokens of one request or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens sent, cached ones included.
    pub input: u64,
    /// Of those, read from the Provider's cache.
    #[serde(default)]
    pub cached: u64,
    /// Tokens answered, reasoning included.
    pub output: u64,
    /// Of those, reasoning.
    #[serde(default)]
    pub reasoning: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// What one request cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderUsage {
    /// The model that answered.
    pub model: String,
    /// What it counted.
    pub usage: Usage,
}

/// What started a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A person asked.
    Manual,
    /// The window was nearly full.
    Threshold,
    /// The Provider refused the request as too long.
    Overflow,
}

/// Older history, replaced by a summary from here on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryCompaction {
    /// How the summary was made; `deterministic` needs no model.
    pub strategy: String,
    /// What started it.
    pub trigger: Trigger,
    /// Everything on the path before this entry is replaced by the summary.
    pub kept_from_seq: u64,
    /// What the model reads instead.
    pub summary: String,
    /// Files that were read in the dropped part, over all compactions.
    #[serde(default)]
    pub files_read: Vec<String>,
    /// Files that were changed in the dropped part, over all compactions.
    #[serde(default)]
    pub files_modified: Vec<String>,
    /// Estimated tokens of the history before.
    pub tokens_before: u64,
    /// Estimated tokens of the history after.
    pub tokens_after: u64,
    /// Entries of the path that the model no longer reads.
    pub entries_dropped: u64,
}

/// Where this Session came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionFork {
    /// The Session that it was forked from.
    pub parent_session_id: String,
    /// The first Session of the family.
    pub fork_root_session_id: String,
    /// The last entry of the parent that was copied.
    pub forked_to_seq: u64,
    /// How the past was carried over: `replay_v1` copies the parent's path.
    pub strategy: String,
}

/// The conversation continues from an earlier entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeadMoved {
    /// The new head; null is the empty conversation.
    pub to_seq: Option<u64>,
    /// Who wanted that: `rewind`.
    pub reason: String,
}

/// A name or a pin that a person put on an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Label {
    /// The entry.
    pub seq: u64,
    /// Its name; empty takes the name away.
    pub text: String,
}

/// How a Turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// The model gave its answer.
    Completed,
    /// A budget ended it before the answer.
    Incomplete,
    /// The answer broke off; what came is kept.
    PartialFailed,
    /// It could not go on.
    Failed,
    /// The person stopped it.
    Interrupted,
    /// It took too long.
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

/// The one end of a Turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnded {
    /// How.
    pub status: TurnStatus,
    /// Why, unless it completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// What all its requests cost.
    #[serde(default)]
    pub usage: Usage,
    /// Wall-clock milliseconds.
    pub duration_ms: u64,
    /// Tools that it called.
    pub tool_calls: u64,
    /// Facts for a program: `output_truncation`, `reason`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// News that is true now and never stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Live {
    /// More of the answer.
    TextDelta {
        /// What is new.
        text: String,
    },
    /// More of the thinking.
    ReasoningDelta {
        /// What is new.
        text: String,
    },
    /// More of a running command's output.
    ToolOutputDelta {
        /// The call that prints it.
        call_id: String,
        /// What is new, made safe to show.
        text: String,
    },
    /// What the Session is doing.
    Status {
        /// The new state.
        status: Status,
    },
    /// A call waits for the person.
    ApprovalRequested(Approval),
    /// What waits to be delivered.
    QueueChanged {
        /// Joins the running Turn.
        steer: Vec<String>,
        /// Starts the next Turn.
        follow_up: Vec<String>,
    },
    /// A request failed and is tried again.
    RetryScheduled {
        /// The attempt that comes next, from 2.
        attempt: u32,
        /// Attempts in all.
        of: u32,
        /// Milliseconds until then.
        wait_ms: u64,
        /// Why.
        reason: String,
    },
    /// What a compaction would do; nothing was written.
    CompactionPlanned(HistoryCompaction),
    /// A fork was made; it is a Session of its own.
    SessionForked {
        /// Its id.
        session_id: String,
    },
    /// An Input was refused; nothing was lost.
    Refused(ErrorBody),
    /// Something that a person should know.
    Notice {
        /// How grave.
        severity: Severity,
        /// What, for a program.
        code: String,
        /// What, for a person.
        message: String,
    },
}

impl Live {
    /// Names of every kind.
    pub const KINDS: &'static [&'static str] = &[
        "text_delta",
        "reasoning_delta",
        "tool_output_delta",
        "status",
        "approval_requested",
        "queue_changed",
        "retry_scheduled",
        "compaction_planned",
        "session_forked",
        "refused",
        "notice",
    ];
}

/// What the Session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing; a prompt starts a Turn.
    Idle,
    /// Waiting for the model, or listening to it.
    Thinking,
    /// Running tools.
    Working,
    /// Waiting for the person to answer.
    Asking,
}

/// How grave a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Worth acting on.
    Warning,
}

/// A call that waits for the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What would be done; exactly this is what runs.
    pub plan: Plan,
    /// Why it is asked.
    pub reason: String,
    /// What "always" would allow; absent where always is not to be had.
    pub rule: Option<Rule>,
}

#[derive(Serialize)]
struct Line<'a> {
    v: u8,
    id: Uuid,
    session_id: &'a SessionId,
    seq: Option<u64>,
    ts: Timestamp,
    turn: Option<u32>,
    #[serde(rename = "type")]
    kind: &'a str,
    data: &'a RawValue,
}

#[derive(Deserialize)]
struct LineRead<'a> {
    #[serde(default)]
    id: Uuid,
    session_id: &'a str,
    seq: u64,
    ts: Timestamp,
    turn: Option<u32>,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    data: &'a RawValue,
}

impl Entry {
    /// The line without its chain, one JSON object.
    ///
    /// # Errors
    /// `LOG_ENCODE_FAILED` when the fact holds what JSON cannot.
    pub fn encode(&self) -> Result<String> {
        let encode = || {
            let data = self.fact.to_data()?;
            serde_json::to_string(&Line {
                v: VERSION,
                id: self.id,
                session_id: &self.session_id,
                seq: Some(self.seq),
                ts: self.ts,
                turn: self.turn,
                kind: self.fact.kind(),
                data: &data,
            })
        };
        encode().map_err(|e| {
            Error::new(
                Code::LogEncodeFailed,
                format!("encode a {} entry: {e}", self.fact.kind()),
                "report this as a bug",
            )
        })
    }

    /// Reads a line, with or without its chain.
    ///
    /// # Errors
    /// What serde says of a line that is not an entry.
    pub fn decode(line: &str) -> serde_json::Result<Entry> {
        let it: LineRead<'_> = serde_json::from_str(line)?;
        Ok(Entry {
            id: it.id,
            session_id: SessionId(it.session_id.into()),
            seq: it.seq,
            ts: it.ts,
            turn: it.turn,
            fact: Fact::from_data(it.kind, it.data)?,
        })
    }
}

/// A live event as one JSON object in the same envelope, `seq` null.
///
/// # Errors
/// `LOG_ENCODE_FAILED` when it holds what JSON cannot.
pub fn encode_live(session_id: &SessionId, turn: Option<u32>, live: &Live) -> Result<String> {
    #[derive(Serialize)]
    struct LiveLine<'a> {
        v: u8,
        id: Uuid,
        session_id: &'a SessionId,
        seq: Option<u64>,
        ts: Timestamp,
        turn: Option<u32>,
        #[serde(flatten)]
        live: &'a Live,
    }
    serde_json::to_string(&LiveLine { v: VERSION, id: Uuid::now_v7(), session_id, seq: None, ts: now(), turn, live })
        .map_err(|e| Error::new(Code::LogEncodeFailed, format!("encode a live event: {e}"), "report this as a bug"))
}

/// The present moment, to the millisecond.
pub fn now() -> Timestamp {
    Timestamp::from_millisecond(Timestamp::now().as_millisecond()).expect("the present is in range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_session_id_is_refused_and_not_echoed() {
        for hostile in [
            "",
            "../../etc/passwd",
            "20261121T203012-0A1B2C",
            "20261121T203012_0a1b2c",
            "x\u{1b}[2J",
            "２０２６1121T203012-0a1b",
        ] {
            let error = SessionId::parse(hostile).expect_err(hostile);
            assert!(hostile.is_empty() || !error.message.contains(hostile));
        }
        assert!(SessionId::parse(SessionId::now().as_str()).is_ok());
    }

    #[test]
    fn an_event_of_a_newer_build_is_kept_byte_for_byte() {
        let line = r#"{"v":1,"id":"0190163d-8694-739b-aea5-966c26f8ad91","session_id":"20261121T203012-0a1b2c","seq":4,"ts":"2026-11-21T20:30:12.345Z","turn":null,"type":"hologram","data":{"b":1,"a":[1.50]}}"#;
        let entry = Entry::decode(line).expect("unknown kinds are read");
        assert!(!entry.fact.is_conversation());
        assert_eq!(entry.encode().expect("and written"), line);
    }
}
