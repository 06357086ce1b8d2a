//! The requests of a Presenter to a Session and the Session's answers: every action of the user, as data.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::Asker;
use crate::event::{Attachment, Delivery, HunkReviewed, Mode, Resumed, Rule, SettingsChanged, Toolset};
use crate::servers::ServerAct;
use crate::trust::TrustAnswer;

mod folder; // what a Session may do in a folder outside the workspace
mod compact; // what the user changed in the preview of a compaction
mod hunk; // a part of a change that is taken back
mod message; // a message of the user
mod restore; // how files are restored

pub use compact::CompactOptions;
pub use folder::FolderAccess;
pub use hunk::{HunkEdit, HunkRevert};
pub use message::{MAX_CONTEXT, MAX_DOCUMENT, Message};
pub use restore::{OnConflict, RestoreOptions, has_marks};

/// One request of a Presenter to a Session. Events report its effects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Input {
    /// Start a Turn with this message. While a Turn runs, the message waits like a follow-up.
    Prompt(Message),
    /// Add a message to the running Turn after the current tool call.
    Steer(Message),
    /// Start a Turn with this text when the running one ends.
    FollowUp(Message),
    /// Run a command in the workspace, after the running Turn if there is one. The user typed the command, so it needs
    /// no approval, but the mode can still refuse it.
    RunUserCommand {
        /// The command line.
        command: String,
        /// The model reads the command and its output.
        send_to_model: bool,
    },
    /// Empty the queue.
    Dequeue,
    /// Stop the running Turn, or the restore or move of the head that is under way.
    Interrupt,
    /// Decide on a call that waits for approval.
    Decide {
        /// The call.
        call_id: String,
        /// The decision.
        decision: Decision,
        /// The word of the approval's [`Confirmation`](crate::event::Confirmation), as the user typed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        word: Option<String>,
    },
    /// Answer a form: for each question the chosen or written answers, or null when the user declines to answer.
    Answer {
        /// The call that opened the form.
        call_id: String,
        /// For each question, in order, the chosen options or the user's own words; null when the user declines to
        /// answer.
        #[serde(default)]
        answers: Option<Vec<Vec<String>>>,
    },
    /// No user answers from now on. What waits for a decision or an answer is refused, and so is every later call that needs
    /// one, as in a run without a user.
    StopAsking,
    /// Publish the rules in force, as [`Live::RulesListed`](crate::event::Live::RulesListed).
    ListRules,
    /// Do something about MCP servers. What comes of it is published as
    /// [`Live::McpChanged`](crate::event::Live::McpChanged).
    Mcp {
        /// The server; none for what is about all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        /// What to do.
        #[serde(flatten)]
        act: ServerAct,
    },
    /// Remove a rule, and publish those that are left.
    RevokeRule {
        /// The rule's id.
        id: String,
    },
    /// Let this Session read a folder outside the workspace, or work on it as on the workspace, and publish the rules in force.
    AddFolder {
        /// The folder: absolute, or relative to the workspace.
        path: String,
        /// What the Session may do there.
        #[serde(default)]
        access: FolderAccess,
        /// Where that holds from now on.
        #[serde(default)]
        holds: RuleReach,
    },
    /// Publish what the workspace brings along, as
    /// [`Live::TrustAsked`](crate::event::Live::TrustAsked).
    ShowTrust,
    /// Record the user's answer about what the workspace brings along.
    AnswerTrust {
        /// The answer.
        answer: TrustAnswer,
        /// The content that the user saw, by path: [`Contributions::seen`](crate::trust::Contributions::seen).
        #[serde(default)]
        seen: BTreeMap<String, String>,
        /// The folder beside the workspace that the answer is about: [`Contributions::folder`](crate::trust::Contributions::folder).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
    },
    /// Stop a background job.
    StopJob {
        /// The job's number.
        job: u32,
    },
    /// Look on which ports the background jobs listen, and publish all jobs, as
    /// [`Live::JobsChanged`](crate::event::Live::JobsChanged).
    ListJobs,
    /// Replace older History by a summary; a dry run publishes the preview.
    Compact {
        /// What the summary should focus on.
        #[serde(default)]
        instructions: Option<String>,
        /// Publish the preview and write nothing.
        #[serde(default)]
        dry_run: bool,
        /// What the user changed in the preview.
        #[serde(flatten)]
        options: CompactOptions,
    },
    /// Publish what fills the window of the next request, as
    /// [`Live::ContextListed`](crate::event::Live::ContextListed).
    ShowContext,
    /// Move the Head to another Entry.
    MoveHead {
        /// The new Head; null is the empty conversation.
        to_seq: Option<u64>,
        /// Whether and how the branch that the Head leaves is summarised for the model.
        #[serde(default)]
        summarize: Summarize,
        /// How files are restored to that entry; null leaves them as they are.
        #[serde(default)]
        files: Option<RestoreOptions>,
    },
    /// Undo a Turn's changes to files.
    Undo {
        /// The Turn; null is the last one with changes left to undo.
        #[serde(default)]
        turn: Option<u32>,
        /// How to restore.
        #[serde(flatten)]
        options: RestoreOptions,
    },
    /// Redo the changes that the last undo took back.
    Redo {
        /// How to restore.
        #[serde(flatten)]
        options: RestoreOptions,
    },
    /// Take back one hunk of a change. It is restored like an undo, and can be undone.
    RevertHunk {
        /// The hunk.
        #[serde(flatten)]
        hunk: HunkRevert,
        /// How to restore.
        #[serde(flatten)]
        options: RestoreOptions,
    },
    /// Mark a hunk as reviewed, or take the mark back.
    KeepHunk(HunkReviewed),
    /// Fork the Session.
    Fork {
        /// The last Entry that both Sessions share.
        seq: u64,
    },
    /// Name an Entry.
    Label {
        /// The Entry.
        seq: u64,
        /// Its name; empty removes it.
        text: String,
    },
    /// Pin an Entry, so that compactions keep it word for word, or remove the pin.
    Pin {
        /// The Entry.
        seq: u64,
        /// Whether it is pinned from now on.
        pinned: bool,
    },
    /// Move a branch to the trash. Nothing is erased: it can be restored at any time.
    RemoveBranch {
        /// The request that the branch begins with.
        seq: u64,
    },
    /// Take a branch back from the trash.
    RestoreBranch {
        /// The request that the branch begins with.
        seq: u64,
    },
    /// Put a short note in place of an Entry's text in every request from now on, or send the text again. While a Turn runs,
    /// it is recorded before the next request, when every call has its result. The Provider
    /// cannot use its cache for what follows the Entry, once.
    Drop {
        /// The Entry.
        seq: u64,
        /// Whether the note stands for it from now on.
        dropped: bool,
    },
    /// Send an Input to a child Session, or to a child of a child. Its Events come from that Session.
    ToAgent {
        /// The names from this Session's child down.
        path: Vec<String>,
        /// The Input.
        input: Box<Input>,
    },
    /// Start a child Session. Its end becomes a message that the model of this Session reads.
    SpawnAgent {
        /// What it is to do.
        task: String,
        /// The name of its role; null is `worker`.
        #[serde(default)]
        role: Option<String>,
        /// Its name; null takes one made of the role's.
        #[serde(default)]
        name: Option<String>,
    },
    /// Stop child Sessions with all that they run. What they did stays, and each can be told to go on.
    StopAgents {
        /// The names from this Session's child down to the one to stop; empty stops all.
        #[serde(default)]
        path: Vec<String>,
    },
    /// Write what a child changed in a copy of its own to the workspace. Files that changed there since the copy was made are
    /// merged where both changes fit, unless the options say otherwise; others wait. A file whose choice is `keep` stays as
    /// it is in the workspace, and waits no more.
    Adopt {
        /// The names from this Session's child down to the one whose files are meant.
        path: Vec<String>,
        /// What is written; a dry run only publishes the preview.
        #[serde(default)]
        options: RestoreOptions,
        /// Decide later: a call that waits for the decision ends.
        #[serde(default)]
        later: bool,
    },
    /// Start a Turn in which the model writes or improves AGENTS.md, from a sketch that the Session makes of the
    /// repository.
    Init,
    /// Run a workflow in this Session: its Turn is carried out by a scheduler in place of a model.
    RunWorkflow(WorkflowOrder),
    /// Go on with the run of this Session. What is completed is not done again.
    ResumeWorkflow {
        /// What the user decided about single steps.
        #[serde(flatten)]
        decisions: Resumed,
        /// The edited workflow; null keeps the graph that the run has. Steps that are the same keep their results.
        #[serde(default)]
        graph: Option<Value>,
    },
    /// Change model, effort, mode, role or name.
    Set(SettingsChange),
    /// Activate a skill: its text joins the conversation.
    ActivateSkill {
        /// The skill's name.
        name: String,
        /// What the model should work on with the skill. If present, a Turn starts.
        #[serde(default)]
        args: String,
        /// Images for that text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// Send the message that a prompt template makes. While a Turn runs, it waits like a follow-up.
    UseTemplate {
        /// The template's name.
        name: String,
        /// What fills its placeholders.
        #[serde(default)]
        args: String,
        /// Images for the message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
}

/// A workflow that is to be run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowOrder {
    /// The name of a workflow that is listed here; with a graph, the name of the run.
    #[serde(default)]
    pub name: Option<String>,
    /// The workflow itself, as its file has it.
    #[serde(default)]
    pub graph: Option<Value>,
    /// The values of its parameters.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// The last step that is wanted: only it and what it waits for run.
    #[serde(default)]
    pub until: Option<String>,
    /// The `hash` of the plan that the user approved. A run that would be another one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
}

/// A change of settings that a Presenter requests; only the changed settings are present. It is recorded as
/// [`SettingsChanged`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingsChange {
    /// The Provider's name in the configuration; always together with `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model's name at its Provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How much the model is asked to reason; empty leaves it to the model.
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
    /// The root of the workspace from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The role of the Session; empty removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

impl From<SettingsChange> for SettingsChanged {
    fn from(it: SettingsChange) -> SettingsChanged {
        let SettingsChange { provider, model, effort, mode, toolset, name, workspace, role } = it;
        SettingsChanged { provider, model, effort, mode, toolset, name, workspace, role, reason: None }
    }
}

impl Input {
    /// The same Input for the agent that asked something; for the Session itself if none did.
    #[must_use]
    pub fn for_asker(self, asker: Option<&Asker>) -> Input {
        match asker {
            Some(asker) => Input::ToAgent { path: asker.path.clone(), input: Box::new(self) },
            None => self,
        }
    }

    /// The JSON Schema of every Input.
    pub fn schema() -> Value {
        schemars::schema_for!(Input).to_value()
    }

    /// The names of all Inputs, as in their `type` fields.
    pub fn names() -> Vec<String> {
        let schema = Input::schema();
        let kinds = schema["oneOf"].as_array().into_iter().flatten();
        kinds.filter_map(|it| Some(it["properties"]["type"]["const"].as_str()?.to_owned())).collect()
    }

    /// Returns the message of the user, if the Input is one.
    pub const fn message(&self) -> Option<&Message> {
        match self {
            Input::Prompt(message) | Input::Steer(message) | Input::FollowUp(message) => Some(message),
            _ => None,
        }
    }

    /// Returns the name of the request, as in its `type` field. A refusal refers to its Input by this name.
    pub const fn name(&self) -> &'static str {
        match self {
            Input::Prompt(_) => "prompt",
            Input::Steer(_) => "steer",
            Input::FollowUp(_) => "follow_up",
            Input::RunUserCommand { .. } => "run_user_command",
            Input::Dequeue => "dequeue",
            Input::Interrupt => "interrupt",
            Input::Decide { .. } => "decide",
            Input::Answer { .. } => "answer",
            Input::StopAsking => "stop_asking",
            Input::ListRules => "list_rules",
            Input::Mcp { .. } => "mcp",
            Input::RevokeRule { .. } => "revoke_rule",
            Input::AddFolder { .. } => "add_folder",
            Input::ShowTrust => "show_trust",
            Input::AnswerTrust { .. } => "answer_trust",
            Input::StopJob { .. } => "stop_job",
            Input::ListJobs => "list_jobs",
            Input::Compact { .. } => "compact",
            Input::ShowContext => "show_context",
            Input::MoveHead { .. } => "move_head",
            Input::Undo { .. } => "undo",
            Input::Redo { .. } => "redo",
            Input::RevertHunk { .. } => "revert_hunk",
            Input::KeepHunk(_) => "keep_hunk",
            Input::Fork { .. } => "fork",
            Input::Label { .. } => "label",
            Input::Pin { .. } => "pin",
            Input::RemoveBranch { .. } => "remove_branch",
            Input::RestoreBranch { .. } => "restore_branch",
            Input::Drop { .. } => "drop",
            Input::ToAgent { .. } => "to_agent",
            Input::SpawnAgent { .. } => "spawn_agent",
            Input::StopAgents { .. } => "stop_agents",
            Input::Adopt { .. } => "adopt",
            Input::RunWorkflow(_) => "run_workflow",
            Input::ResumeWorkflow { .. } => "resume_workflow",
            Input::Init => "init",
            Input::Set(_) => "set",
            Input::ActivateSkill { .. } => "activate_skill",
            Input::UseTemplate { .. } => "use_template",
        }
    }
}

/// The immediate effect of an accepted Input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The Turn that the Input began, joins or stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The Input waits in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<Queued>,
    /// The id of the Session that a fork made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<String>,
}

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// Whether the message joins the running Turn or starts a later one.
    pub delivery: Delivery,
    /// The position among the messages with the same delivery, from 1.
    pub position: usize,
    /// The number of the message in its Session; `queue_left` names it. Absent while the agent that gets it has not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
}

/// How a branch that the Head leaves is summarised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Summarize {
    /// No summary.
    #[default]
    No,
    /// A summary computed from the Entries, without a model.
    Deterministic,
    /// A summary by the model; if that fails, one without a model.
    Model,
}

/// The user's decision on a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Decision {
    /// Run the call once.
    Allow,
    /// Run the call, and save a rule.
    AllowAlways {
        /// An allow rule; null is the one that the approval offers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<Rule>,
        /// Where it holds from now on.
        #[serde(default)]
        holds: RuleReach,
        /// How long it holds, in seconds; null is until the user revokes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seconds: Option<u64>,
    },
    /// Do not run the call.
    Deny {
        /// The user's message to the model.
        #[serde(default)]
        feedback: Option<String>,
    },
    /// Do not run the call, and save a rule that denies such calls.
    DenyAlways {
        /// A deny rule; null denies what the approval offers to allow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<Rule>,
        /// Where it holds from now on.
        #[serde(default)]
        holds: RuleReach,
        /// How long it holds, in seconds; null is until the user revokes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seconds: Option<u64>,
        /// The user's message to the model.
        #[serde(default)]
        feedback: Option<String>,
    },
}

/// Where a rule of the user holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleReach {
    /// In this Session, and in the agents below it.
    #[default]
    Session,
    /// In the Session that the user started, and in all agents below it. For a call of that Session this is the same.
    Tree,
    /// In this workspace.
    Project,
    /// Everywhere.
    User,
}
