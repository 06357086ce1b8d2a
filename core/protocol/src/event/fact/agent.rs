//! What happens to the child Sessions of a Session, as its own Log tells it.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Cost, DecidedBy, FileChange, LeftFile, PermissionDecision, Rule, Usage};
use crate::error::{Code, ErrorBody};
use crate::event::headline::Headline;
use crate::event::open::{self, Understood};

/// One step in the life of a child Session. The child's own Log has everything that it said and did.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AgentEvent {
    /// The Session starts a child. This is on the disk before the child's Log exists, so nothing is spent without a link.
    Spawned(Box<Spawned>),
    /// The child was told something after its task.
    Told {
        /// The child.
        name: String,
        /// Who told it.
        by: ToldBy,
        /// When it reads the text.
        how: Telling,
        /// The text; empty for a stop.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
    },
    /// A call of the child, or of one below it, changed files of the workspace. It is recorded before anybody else may
    /// change them, so the Log has all changes in their order.
    Changed {
        /// The child.
        name: String,
        /// The call, in the Log of the child that made it.
        call_id: String,
        /// The files.
        changes: Vec<FileChange>,
    },
    /// A Turn of the child ended.
    Ended(Box<AgentResult>),
    /// The model of this Session reads the end of a child that no call waited for.
    Reported {
        /// The child.
        name: String,
        /// What the model reads.
        text: String,
    },
    /// A child that had ended goes on: its next Turn begins.
    Resumed {
        /// The child.
        name: String,
    },
    /// Files of the child's copy are about to be written to the workspace. After a crash, the next open of the Session
    /// writes the rest.
    Adopting(Box<Adoption>),
    /// Files of the child's copy are in the workspace.
    Adopted(Box<Adoption>),
}

/// Files that a child changed in its copy, and what became of them in the workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Adoption {
    /// The child.
    pub name: String,
    /// The last Entry of the child's Log that was looked at.
    pub to_seq: u64,
    /// The changes of the workspace.
    pub changes: Vec<FileChange>,
    /// Files that the user leaves as they are in the workspace, and files that were the same already: they wait no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// Files that still wait for the user, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<LeftFile>,
}

impl Adoption {
    /// What stands for a call where a Session above records these changes.
    pub fn as_call(&self) -> String {
        format!("adopted {} {}", self.name, self.to_seq)
    }
}

/// The files that a child works on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Those of its parent.
    #[default]
    Shared,
    /// A copy of its own. What it changed there is written to the parent's workspace when the user, or mode `auto`, adopts it.
    Copy,
    /// A copy of its own that is thrown away.
    Scratch,
}

impl Isolation {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Isolation::Shared => "shared",
            Isolation::Copy => "copy",
            Isolation::Scratch => "scratch",
        }
    }

    /// Whether this is the value that files leave out.
    pub fn is_shared(&self) -> bool {
        *self == Isolation::Shared
    }
}

/// What a child knows of its parent's conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentContext {
    /// Nothing: it begins with its task.
    #[default]
    None,
    /// All of it: it begins with a copy.
    Fork,
}

impl AgentContext {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            AgentContext::None => "none",
            AgentContext::Fork => "fork",
        }
    }

    /// Whether this is the value that files leave out.
    pub fn is_none(&self) -> bool {
        *self == AgentContext::None
    }
}

/// A child Session at its beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spawned {
    /// Its name, unique among all descendants of the root.
    pub name: String,
    /// The name of its role.
    pub role: String,
    /// Its Session id.
    pub session_id: String,
    /// The call that started it, if a call did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// What it is to do.
    pub task: String,
    /// Whether the call waits for its end.
    #[serde(default)]
    pub waits: bool,
    /// The hash of the role's file; absent for a role that pixir has by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_digest: Option<String>,
    /// The JSON Schema of its report, if it is to have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Globs of the files that it may change, of those that its role leaves to it; absent when the role alone decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<Vec<String>>,
    /// The files that it works on.
    #[serde(default, skip_serializing_if = "Isolation::is_shared")]
    pub isolation: Isolation,
    /// What it knows of the conversation.
    #[serde(default, skip_serializing_if = "AgentContext::is_none")]
    pub context: AgentContext,
    /// Why it works on these files, where neither the call nor the role says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// It is a run of a workflow, which a scheduler carries out in place of a model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_run: bool,
}

/// Who told a child something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToldBy {
    /// The model of the parent.
    Parent,
    /// The user.
    User,
}

/// When a child reads what it is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Telling {
    /// In its running Turn, after the call that runs now.
    #[default]
    Steer,
    /// In a Turn of its own, after the running one.
    Next,
    /// Not at all: its Turn is stopped.
    Stop,
}

/// How a Turn of a child ended, or what the child is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// It waits for one of the places of running agents.
    #[default]
    Queued,
    /// It runs.
    Running,
    /// It waits: for the user, for files that another agent changes, for a pause of the Provider, or for a place.
    Waiting,
    /// It finished its answer, and none of its calls was refused.
    Completed,
    /// It finished its answer, and one of its calls, or of the agents below it, was refused for want of permission.
    Held,
    /// A limit ended it before it finished.
    Incomplete,
    /// An error ended it.
    Failed,
    /// It took longer than its time limit.
    TimedOut,
    /// It was stopped.
    Interrupted,
    /// Its process died while it ran.
    Detached,
}

impl AgentStatus {
    /// The name on the wire, and in what the model reads.
    pub const fn name(self) -> &'static str {
        match self {
            AgentStatus::Queued => "queued",
            AgentStatus::Running => "running",
            AgentStatus::Waiting => "waiting",
            AgentStatus::Completed => "completed",
            AgentStatus::Held => "held",
            AgentStatus::Incomplete => "incomplete",
            AgentStatus::Failed => "failed",
            AgentStatus::TimedOut => "timed_out",
            AgentStatus::Interrupted => "interrupted",
            AgentStatus::Detached => "detached",
        }
    }

    /// Whether it still runs, or is about to.
    pub const fn is_open(self) -> bool {
        matches!(self, AgentStatus::Queued | AgentStatus::Running | AgentStatus::Waiting)
    }
}

/// The end of a Turn of a child, with what pixir counted while it ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentResult {
    /// The child.
    pub name: String,
    /// Its Session id.
    pub session_id: String,
    /// How the Turn ended.
    pub status: AgentStatus,
    /// The last text of its answer, at most 4,000 bytes.
    pub text: String,
    /// What it reported by the schema that it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The file with every text of the Turn, as tools accept it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// What it did.
    pub evidence: Evidence,
    /// What its changes come to: each file once, from its version before the Turn to its version after it. For an agent that works
    /// in a copy these are changes of the copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// Tokens of its requests.
    pub usage: Usage,
    /// Cost of its requests.
    pub cost: Cost,
    /// Wall-clock milliseconds.
    pub duration_ms: u64,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// Its end was found in its Log after pixir was killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// Whose files it worked on.
    #[serde(default, skip_serializing_if = "Isolation::is_shared")]
    pub isolation: Isolation,
    /// What pixir has to say about the files that it worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What became of the files that it changed in its copy, where this is known when its end is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption: Option<Box<Adoption>>,
    /// Files of its copy wait, and no user was asked about them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
}

/// What a child did in a Turn, counted from its Log and never from its words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Calls of tools.
    pub calls: u64,
    /// Calls that failed.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub failures: u64,
    /// Calls that were refused.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub denials: u64,
    /// The first twenty of its calls, and of those of agents below it, that were not permitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Denial>,
    /// Calls that were allowed to do more than read; absent in Logs of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acted: Option<u64>,
    /// The last ten commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Ran>,
    /// Files that it read, relative to its workspace; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Files that it changed, relative to its workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// A call that was not permitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denial {
    /// The names of the agents down to the one whose call it was, where it was not the Session's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent: Vec<String>,
    /// The call.
    pub call_id: String,
    /// What it was about, in a few words: `write a.txt`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// Who or what refused it.
    pub by: DecidedBy,
    /// Why, as a sentence.
    pub reason: String,
    /// The rule that refused it, or the one that would have allowed it where no user could be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// The user said what to do instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_feedback: bool,
}

impl Denial {
    /// The refusal of this call by a decision.
    pub fn of(decision: &PermissionDecision, call: String) -> Denial {
        Denial {
            agent: Vec::new(),
            call_id: decision.call_id.clone(),
            call,
            by: decision.by,
            reason: decision.reason.clone(),
            rule: decision.rule.clone(),
            has_feedback: decision.feedback.is_some(),
        }
    }

    /// The same as the parent of this agent tells it.
    pub fn below(self, name: &str) -> Denial {
        let agent = std::iter::once(name.to_owned()).chain(self.agent).collect();
        Denial { agent, ..self }
    }

    /// Whether work is missing for want of permission. The user who refuses knows what is missing, and a task that leaves less
    /// to an agent than its role does wants nothing beyond that.
    pub fn wants_permission(&self) -> bool {
        match self.by {
            DecidedBy::Mode | DecidedBy::Rule | DecidedBy::Role | DecidedBy::NoAsker | DecidedBy::Unknown => true,
            DecidedBy::User | DecidedBy::Task => false,
        }
    }

    /// It in one line: `write a.txt: it changes files, and the mode is read-only`.
    pub fn line(&self) -> String {
        let of = if self.agent.is_empty() { String::new() } else { format!("{}: ", self.agent.join("/")) };
        let call = if self.call.is_empty() { &self.call_id } else { &self.call };
        format!("{of}{call}: {}", self.reason)
    }
}

/// A command that ran, and its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ran {
    /// The command line, at most 200 characters.
    pub command: String,
    /// Its exit code; absent if it did not run to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

impl AgentResult {
    /// Whether the Turn came to its answer, whatever its calls and the agents below it came to.
    pub fn is_answered(&self) -> bool {
        let of_others = |code: &str| code == Code::AgentsPartial.name() || code == Code::AgentsFailed.name();
        match self.status {
            AgentStatus::Completed | AgentStatus::Held => true,
            AgentStatus::Failed => self.error.as_ref().is_some_and(|error| of_others(&error.code)),
            AgentStatus::Queued
            | AgentStatus::Running
            | AgentStatus::Waiting
            | AgentStatus::Incomplete
            | AgentStatus::TimedOut
            | AgentStatus::Interrupted
            | AgentStatus::Detached => false,
        }
    }
}

impl AgentEvent {
    /// Reads a step. One that only a newer build knows makes the whole Entry unknown.
    pub(super) fn read(text: &str) -> serde_json::Result<(AgentEvent, Understood)> {
        #[derive(Deserialize)]
        struct Told {
            name: String,
            by: ToldBy,
            how: Telling,
            #[serde(default)]
            text: String,
        }
        #[derive(Deserialize)]
        struct Changed {
            name: String,
            call_id: String,
            changes: Vec<FileChange>,
        }
        #[derive(Deserialize)]
        struct Reported {
            name: String,
            text: String,
        }
        #[derive(Deserialize)]
        struct Resumed {
            name: String,
        }
        match open::tag(text)?.as_str() {
            "spawned" => open::step(text, AgentEvent::Spawned),
            "told" => open::step(text, |Told { name, by, how, text }| AgentEvent::Told { name, by, how, text }),
            "changed" => open::step(text, |it: Changed| {
                let Changed { name, call_id, changes } = it;
                AgentEvent::Changed { name, call_id, changes }
            }),
            "ended" => open::step(text, AgentEvent::Ended),
            "reported" => open::step(text, |Reported { name, text }| AgentEvent::Reported { name, text }),
            "resumed" => open::step(text, |Resumed { name }| AgentEvent::Resumed { name }),
            "adopting" => open::step(text, AgentEvent::Adopting),
            "adopted" => open::step(text, AgentEvent::Adopted),
            _ => Err(serde_json::Error::custom("a step of a newer build")),
        }
    }

    /// Whether it must survive a power cut before anything else happens.
    pub(super) fn is_sync_point(&self) -> bool {
        match self {
            AgentEvent::Spawned(_) | AgentEvent::Ended(_) | AgentEvent::Adopting(_) | AgentEvent::Adopted(_) => true,
            // The child's own Log has it on the disk.
            AgentEvent::Changed { .. } => false,
            AgentEvent::Told { .. } | AgentEvent::Reported { .. } | AgentEvent::Resumed { .. } => false,
        }
    }

    pub(super) fn headline(&self) -> Option<Headline> {
        let first_line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        Some(match self {
            AgentEvent::Spawned(it) => {
                Headline::new(format!("agent {} ({})", it.name, it.role)).with(first_line(&it.task))
            }
            AgentEvent::Told { name, how: Telling::Stop, .. } => Headline::new(format!("stopped the agent {name}")),
            AgentEvent::Told { name, text, .. } => Headline::new(format!("to the agent {name}")).with(first_line(text)),
            AgentEvent::Ended(it) => Headline::new(format!("agent {}", it.name)).with(it.status.name()),
            AgentEvent::Resumed { name } => Headline::new(format!("agent {name} continues")),
            AgentEvent::Adopted(it) => {
                let paths: Vec<&str> = it.changes.iter().map(|change| change.path.as_str()).collect();
                Headline::new(format!("adopted files of the agent {}", it.name)).with(paths.join(", "))
            }
            // The headline of its end says as much.
            AgentEvent::Changed { .. } | AgentEvent::Reported { .. } | AgentEvent::Adopting(_) => return None,
        })
    }

    /// The child that it is about.
    pub fn name(&self) -> &str {
        match self {
            AgentEvent::Spawned(it) => &it.name,
            AgentEvent::Ended(it) => &it.name,
            AgentEvent::Told { name, .. }
            | AgentEvent::Changed { name, .. }
            | AgentEvent::Reported { name, .. }
            | AgentEvent::Resumed { name } => name,
            AgentEvent::Adopting(it) | AgentEvent::Adopted(it) => &it.name,
        }
    }
}
