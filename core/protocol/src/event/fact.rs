//! The payloads of Entries, one struct per `type`. They are a contract with every other build: fields are only added.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::headline::Headline;
use super::open::{self, Understood};
use super::skill::{SkillActivation, SkillIndex};
use super::window::PartKind;

mod agent; // child Sessions
mod arguments; // the arguments of a call
mod branch; // moves of the head, and branches in the trash
mod call; // what was to run, who decided, and what came of it
mod context; // documents, surroundings, what the editor shows
mod files; // changes of files, and restores
mod label; // the user's marks on Entries
mod message; // what the model says
mod parent; // the Session that started another one
mod review; // what the user thinks of a change
mod rule; // the rules of the user
mod servers; // tools of MCP servers
mod settings; // what a Session starts with, and changes of it
mod summary; // what takes the place of a part of the conversation
mod turn; // how a Turn ended
mod usage; // tokens and cost
mod workflow; // runs of workflows

pub use agent::{
    Adoption, AgentContext, AgentEvent, AgentResult, AgentStatus, Denial, Evidence, Isolation, Ran, Spawned, Telling,
    ToldBy,
};
pub use arguments::Arguments;
pub use branch::{BranchRemoved, HeadMoved};
pub use call::{
    Attachment, Colouring, DecidedBy, PermissionDecision, Preview, ToolCall, ToolResult, Truncated, UserCommand,
    Verdict,
};
pub use context::{
    ContextChanged, ContextDocument, EditorDocument, EditorDocumentKind, GitState, LineRange, Surroundings, UserMessage,
};
pub use files::{ChangeKind, FileChange, FilesRestored, LeftFile, RestoreReason};
pub use label::Label;
pub use message::{AssistantMessage, Delivery, Reasoning};
pub use parent::ParentSession;
pub use review::HunkReviewed;
pub use rule::{Rule, Scope};
pub use servers::{Exposure, OfferedServer, OfferedTool, ResultOrigin, ToolsOffered};
pub use settings::{Mode, SessionStarted, SettingsChanged, Toolset};
pub use summary::{BranchSummary, HistoryCompaction, Notes, Trigger, TurnDigest};
pub use turn::{TurnEnded, TurnStatus};
pub use usage::{Cost, ProviderUsage, Usage};
pub use workflow::{
    Ask, ChangedSince, CheckRan, Held, LeftBehind, Planned, Resumed, StepEnded, StepOutcome, StepStarted, WorkflowEvent,
};

macro_rules! facts {
    (@headline none $it:ident) => {
        None
    };
    (@read AgentEvent $text:expr) => {
        AgentEvent::read($text)
    };
    (@read WorkflowEvent $text:expr) => {
        WorkflowEvent::read($text)
    };
    (@read $variant:ident $text:expr) => {
        open::from_str::<$variant>($text)
    };
    (@headline own $it:ident) => {
        $it.headline().into()
    };
    ($($(#[doc = $doc:literal])* $variant:ident: $stored:ty = $name:literal,
        conversation: $conversation:literal, synced: $synced:literal, part: $part:ident, headline: $headline:ident;)*) => {
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

            fn kind_is_synced(&self) -> bool {
                match self {
                    $(Fact::$variant(_) => $synced,)*
                    Fact::Unknown(_) => false,
                }
            }

            /// What a list of the window's parts calls the Entry.
            pub fn part(&self) -> PartKind {
                match self {
                    $(Fact::$variant(_) => PartKind::$part,)*
                    // A result of a newer build keeps its place.
                    Fact::Unknown(_) => PartKind::Result,
                }
            }

            /// The Fact in one line, if Presenters tell the user of it.
            pub fn headline(&self) -> Option<Headline> {
                match self {
                    $(Fact::$variant(_it) => facts!(@headline $headline _it),)*
                    Fact::Unknown(_) => None,
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
                    $($name => facts!(@read $variant data.get()).ok().map(|(it, part)| (Fact::$variant(it.into()), part)),)*
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

// The columns are all that a new Fact needs besides its struct; elsewhere a match names only the Facts it acts on.
// - `conversation`: whether the Entry moves the Head and the fold of History may make an item of it.
// - `synced`: whether it is on the disk before anything else happens, so that it survives a power cut.
// - `part`: what lists of the window's parts call it.
// - `headline`: `own` if every Presenter shows it, by the `headline` of its struct unless it has a view of its own.
facts! {
    /// The first line of every Log.
    SessionStarted: Box<SessionStarted> = "session_started",
        conversation: false, synced: true, part: Change, headline: none;
    /// A change of settings, which affects future requests, permissions or tools.
    SettingsChanged: Box<SettingsChanged> = "settings_changed",
        conversation: false, synced: false, part: Change, headline: none;
    /// A message of the user.
    UserMessage: Box<UserMessage> = "user_message",
        conversation: true, synced: true, part: Message, headline: none;
    /// A command that the user ran (`!cmd`). Its result follows as a `tool_result`.
    UserCommand: Box<UserCommand> = "user_command",
        conversation: true, synced: true, part: Command, headline: none;
    /// A message of the model.
    AssistantMessage: Box<AssistantMessage> = "assistant_message",
        conversation: true, synced: true, part: Answer, headline: none;
    /// The model's reasoning, as far as the Provider returns it.
    Reasoning: Box<Reasoning> = "reasoning",
        conversation: true, synced: false, part: Thinking, headline: none;
    /// A call that the model made.
    ToolCall: Box<ToolCall> = "tool_call",
        conversation: true, synced: false, part: Call, headline: none;
    /// The result of a call. Every call has exactly one.
    ToolResult: Box<ToolResult> = "tool_result",
        conversation: true, synced: true, part: Result, headline: none;
    /// A verdict on a call: who decided, and by which rule.
    PermissionDecision: Box<PermissionDecision> = "permission_decision",
        conversation: false, synced: true, part: Change, headline: none;
    /// The mode, the toolset, the repository or who can answer changed; the model reads it where it stands.
    ContextChanged: Box<ContextChanged> = "context_changed",
        conversation: true, synced: false, part: Change, headline: none;
    /// A skill was activated: its text joined the conversation.
    SkillActivation: Box<SkillActivation> = "skill_activation",
        conversation: true, synced: false, part: Skill, headline: own;
    /// The skills that the model may use, as far as the list changed.
    SkillIndex: Box<SkillIndex> = "skill_index",
        conversation: true, synced: false, part: Skills, headline: none;
    /// The tools of MCP servers that requests offer from here on.
    ToolsOffered: Box<ToolsOffered> = "tools_offered",
        conversation: false, synced: false, part: Change, headline: none;
    /// The whole plan after a change.
    PlanUpdated: Box<PlanUpdated> = "plan_updated",
        conversation: false, synced: false, part: Plan, headline: none;
    /// A child Session was started, was told something, or ended.
    AgentEvent: Box<AgentEvent> = "subagent_event",
        conversation: false, synced: false, part: Result, headline: own;
    /// A run of a workflow began, a step of it began or ended, or it went on.
    WorkflowEvent: Box<WorkflowEvent> = "workflow_event",
        conversation: false, synced: true, part: Change, headline: own;
    /// Tokens and cost of one request.
    ProviderUsage: Box<ProviderUsage> = "provider_usage",
        conversation: false, synced: false, part: Change, headline: none;
    /// A summary replaces older History from here on; nothing is deleted.
    HistoryCompaction: Box<HistoryCompaction> = "history_compaction",
        conversation: true, synced: true, part: Summary, headline: own;
    /// The Session that this fork was made from.
    SessionFork: Box<SessionFork> = "session_fork",
        conversation: false, synced: true, part: Change, headline: none;
    /// The Head moved to an earlier Entry.
    HeadMoved: Box<HeadMoved> = "head_moved",
        conversation: false, synced: true, part: Change, headline: none;
    /// The user moved a branch to the trash, or took it back. Nothing is erased.
    BranchRemoved: Box<BranchRemoved> = "branch_removed",
        conversation: false, synced: false, part: Change, headline: none;
    /// A summary of a branch that the Head left; the model reads it where the conversation continues.
    BranchSummary: Box<BranchSummary> = "branch_summary",
        conversation: true, synced: true, part: Summary, headline: own;
    /// A restore set files back.
    FilesRestored: Box<FilesRestored> = "files_restored",
        conversation: true, synced: true, part: Change, headline: own;
    /// The user reviewed a hunk of a diff.
    HunkReviewed: Box<HunkReviewed> = "hunk_reviewed",
        conversation: false, synced: false, part: Change, headline: none;
    /// The user named or pinned an Entry.
    Label: Box<Label> = "label",
        conversation: false, synced: false, part: Change, headline: none;
    /// A memory for later Sessions was added or removed.
    MemoryFact: Box<MemoryFact> = "memory_fact",
        conversation: false, synced: false, part: Change, headline: none;
    /// The end of a Turn. Every Turn has exactly one.
    TurnEnded: Box<TurnEnded> = "turn_ended",
        conversation: false, synced: true, part: Change, headline: none;
    /// A placeholder for a damaged line that a repair moved to the quarantine file.
    LogRepaired: Box<LogRepaired> = "log_repaired",
        conversation: false, synced: false, part: Change, headline: own;
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

    /// Whether the Entry must survive a power cut before anything else happens.
    pub fn is_sync_point(&self) -> bool {
        match self {
            Fact::AgentEvent(it) => it.is_sync_point(),
            _ => self.kind_is_synced(),
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

    /// The same, and the files that a restore changed.
    pub fn all_changes(&self) -> &[FileChange] {
        match self {
            Fact::FilesRestored(it) => &it.changes,
            fact => fact.changes(),
        }
    }

    /// Whether the type is known and the `data` does not fit this build.
    pub fn is_misfit(&self) -> bool {
        matches!(self, Fact::Unknown(it) if Fact::KINDS.contains(&it.kind.as_str()))
    }
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

/// A placeholder for a damaged line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogRepaired {
    /// The damage, as a sentence.
    pub reason: String,
    /// The file next to the Log with the Log as it was before the repair.
    pub quarantine: String,
}

impl LogRepaired {
    fn headline(&self) -> Headline {
        let detail = format!("{}; it is kept in {}", self.reason, self.quarantine);
        Headline::new("a damaged line of the session log was here").with(detail)
    }
}

#[cfg(test)]
mod tests {
    use super::Fact;
    use crate::event::Entry;

    /// Broken build: a type that is in no box. Every Entry is then as large as it: with results of calls, 240 bytes.
    #[test]
    fn no_type_makes_every_entry_large() {
        assert_eq!((size_of::<Fact>(), size_of::<Entry>()), (16, 88));
    }
}
