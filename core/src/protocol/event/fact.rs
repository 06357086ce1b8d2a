//! What happened: one struct per kind of entry. These are the lines of the Log, and a contract: fields are only added.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::protocol::error::{Code, Error, ErrorBody, Result};

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

            fn kind_is_conversation(&self) -> bool {
                match self {
                    $(Fact::$variant(_) => $conversation,)*
                    Fact::Unknown { .. } => false,
                }
            }

            pub(crate) fn write_data(&self, line: &mut Vec<u8>) -> serde_json::Result<()> {
                match self {
                    $(Fact::$variant(it) => serde_json::to_writer(line, it),)*
                    Fact::Unknown { data, .. } => {
                        line.extend_from_slice(data.get().as_bytes());
                        Ok(())
                    }
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
    /// A command that the person ran; its result follows, as a tool's does.
    UserCommand = "user_command", true;
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
    /// What was done on a branch that the conversation has left, told to the model where it goes on.
    BranchSummary = "branch_summary", true;
    /// Files that were set to how they had been.
    FilesRestored = "files_restored", true;
    /// A name or a pin that a person put on an entry.
    Label = "label", false;
    /// Something worth knowing in later Sessions, or that it is not true any more.
    MemoryFact = "memory_fact", false;
    /// The one end of a Turn.
    TurnEnded = "turn_ended", false;
    /// It stands where a damaged line was, which a repair has put aside.
    LogRepaired = "log_repaired", false;
}

impl Fact {
    /// Whether it is part of the conversation and so moves the head.
    pub fn is_conversation(&self) -> bool {
        match self {
            // A rewind goes to where the conversation knows the files as they are then; there is nothing to tell.
            Fact::FilesRestored(it) => it.reason != RestoreReason::Rewind,
            _ => self.kind_is_conversation(),
        }
    }
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
    pub toolset: Toolset,
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

/// Which tools a model is offered.
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
    /// All of them.
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
            Error::new(Code::ConfigInvalid, message, "use typed, run or both").with("input", name)
        })
    }
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
                "use read-only, ask or auto",
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
    /// Which tools the model is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolset: Option<Toolset>,
    /// The Session's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The canonical root that it works in from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
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
    /// Images that the model sees with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

/// A command that the person ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserCommand {
    /// What its result names; unique in the Session.
    pub call_id: String,
    /// The command line.
    pub command: String,
    /// The model reads it, and what came of it.
    pub send_to_model: bool,
}

impl UserCommand {
    /// What stands before it: `!`, or `!!` when no model reads it.
    pub const fn mark(&self) -> &'static str {
        if self.send_to_model { "!" } else { "!!" }
    }

    /// As the person types it.
    pub fn typed(&self) -> String {
        format!("{}{}", self.mark(), self.command)
    }
}

/// What the model said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage {
    /// Markdown.
    pub text: String,
    /// The stream broke off: shown and kept, never replayed to a model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// What it was said for, where the Provider told comment from answer; given back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// What the model thought.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reasoning {
    /// What may be shown.
    pub text: String,
    /// The Provider that it may be replayed to, and to no other.
    #[serde(default)]
    pub provider: String,
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
    /// Colours that the program gave its output, for people; the model reads none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub colours: Vec<Colouring>,
    /// What was left out of `output`, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncated>,
    /// The file that holds everything that was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow_path: Option<String>,
    /// Bytes that the child wrote to its stderr.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stderr_bytes: u64,
    /// The exit code of each command of the last pipeline, when it had several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pipestatus: Vec<i32>,
    /// Images that the model sees with `output`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Files that it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// It was a dry run: this is what would have been done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<Plan>>,
    /// Why it could not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_none_new(n: &u32) -> bool {
    *n == 0
}

/// An image, kept in the blob store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// The file that it was read from, relative to the workspace where it lies in it; or what it is called.
    pub path: String,
    /// Its type, like `image/png`.
    pub media_type: String,
    /// The blob of its bytes.
    pub blob: String,
    /// Its size, bytes.
    pub bytes: u64,
}

/// From here on an output looks otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Colouring {
    /// Where in `output`, bytes.
    pub at: u64,
    /// Parameters of the SGR sequence that stood there: `1;31`.
    pub sgr: String,
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
    /// Permission bits before, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_mode: Option<u32>,
    /// Permission bits after, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_mode: Option<u32>,
    /// For a new file: folders above it that were new as well.
    #[serde(default, skip_serializing_if = "is_none_new")]
    pub new_folders: u32,
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
    /// Bytes that the file holds now; absent for a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_before: Option<u64>,
    /// Of a chain: what each of its commands would do that does more than read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Plan>,
    /// What is not certain about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Something worth knowing in later Sessions, or that it is not true any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryFact {
    /// What it is known by: six hex digits.
    pub id: String,
    /// What is worth knowing; absent when it is to be forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
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
    /// Of those, written to the Provider's cache, where that is counted.
    #[serde(default)]
    pub cache_written: u64,
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
        self.cache_written = self.cache_written.saturating_add(other.cache_written);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// What one request or several cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// US dollars, as far as they are known.
    pub usd: f64,
    /// Some of it was worked out from the model's price, and not said by the Provider.
    #[serde(default)]
    pub estimated: bool,
    /// Requests whose price is not known.
    #[serde(default)]
    pub unpriced: u64,
}

impl Cost {
    /// Of one request whose price is not known.
    pub const UNKNOWN: Cost = Cost { usd: 0.0, estimated: false, unpriced: 1 };

    fn unknown() -> Cost {
        Cost::UNKNOWN
    }
}

impl std::fmt::Display for Cost {
    /// `$1.23`; `~` before what was worked out, `≥` where some of it is not known. Nothing when nothing is known.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.usd <= 0.0 {
            return Ok(());
        }
        let mark = match (self.unpriced > 0, self.estimated) {
            (true, _) => "≥",
            (false, true) => "~",
            (false, false) => "",
        };
        // Cents, and as much below them as it takes to be more than nothing.
        let digits = if self.usd >= 0.1 { 2 } else { 4 };
        write!(f, "{mark}${:.digits$}", self.usd)
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.usd += other.usd;
        self.estimated |= other.estimated;
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
    }
}

/// What one request took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderUsage {
    /// The Provider that answered.
    #[serde(default)]
    pub provider: String,
    /// The model that answered.
    pub model: String,
    /// What it counted.
    pub usage: Usage,
    /// What that cost.
    #[serde(default = "Cost::unknown")]
    pub cost: Cost,
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
    /// Pinned entries of the dropped part, which stand in the summary word for word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<u64>,
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
    /// The last entry of this Log that was copied from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_to_seq: Option<u64>,
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

/// What was done on a branch that the conversation has left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BranchSummary {
    /// How it was made: `deterministic`, or `model`.
    pub strategy: String,
    /// The head that was left.
    pub from_seq: u64,
    /// The last entry that both branches share; null when they share none.
    pub common_seq: Option<u64>,
    /// What the model reads.
    pub summary: String,
    /// Files that were changed on the branch.
    #[serde(default)]
    pub files_modified: Vec<String>,
    /// The model that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Why files were set to how they had been.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestoreReason {
    /// A Turn's changes were taken back.
    Undo,
    /// What an undo took back was done again.
    Redo,
    /// The conversation goes on from an earlier entry, and the files with it.
    Rewind,
    /// The conversation goes on from an earlier entry, and these files are not as they were there.
    Stayed,
}

/// Files that were set to how they had been.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilesRestored {
    /// Why.
    pub reason: RestoreReason,
    /// The Turn whose changes were taken back or done again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_turn: Option<u32>,
    /// The entry whose files they are now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_seq: Option<u64>,
    /// What was done to each.
    pub changes: Vec<FileChange>,
    /// Files that were left as they are, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<LeftFile>,
}

/// A file that a restore did not touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftFile {
    /// Relative to the workspace.
    pub path: String,
    /// Why.
    pub why: String,
}

/// It stands where a damaged line was, which a repair has put aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogRepaired {
    /// What was wrong with the line.
    pub reason: String,
    /// The file beside the Log that holds it as it was before the repair.
    pub quarantine: String,
}

/// A name or a pin that a person put on an entry; only what changed is present.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Label {
    /// The entry.
    pub seq: u64,
    /// Its name; empty takes the name away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether it is pinned: a pinned entry survives every compaction word for word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
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
    /// What all its requests took.
    #[serde(default)]
    pub usage: Usage,
    /// What they cost.
    #[serde(default)]
    pub cost: Cost,
    /// Wall-clock milliseconds.
    pub duration_ms: u64,
    /// Tools that it called.
    pub tool_calls: u64,
    /// Facts for a program: `output_truncation`, `reason`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}
