//! What a watcher of a Session receives: entries that are in the Log, and live events that never are.

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::protocol::agent::{AgentState, Asker};
use crate::protocol::call_info::CallInfo;
use crate::protocol::error::{Code, Error, ErrorBody, Result};
use crate::protocol::remedy::{Remedy, Sessions};
use crate::protocol::trust::Contributions;

mod fact; // the payloads of Entries, one struct per type
mod job; // background jobs
mod open; // reads lines of newer builds
mod printed; // the output of a running program
mod skill; // skills and prompt templates
mod window; // what fills the model's window, and what a compaction would do to it

pub use fact::*;
pub use job::{JobState, JobStatus};
use open::Understood;
pub use printed::Printed;
pub use skill::{ActivatedBy, Origin, SkillActivation, SkillIndex, TemplateUse};
pub use window::{CompactionPreview, ContextReport, Draft, List, Part, PartKind, Segment, TokensFrom};

/// The version of the envelope that this build writes.
pub const VERSION: u8 = 1;

/// What a watcher receives. The variant tells whether it is durable.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "most events are live ones")]
pub enum Event {
    /// The Entry is in the Log and survives the process.
    Recorded(Arc<Entry>),
    /// The event is current and never stored. If it has a lasting effect, an Entry records that later.
    Live(LiveEvent),
}

impl Event {
    /// Returns the payload of a live event.
    pub fn live(&self) -> Option<&Live> {
        match self {
            Event::Live(event) => Some(&event.live),
            Event::Recorded(_) => None,
        }
    }
}

/// A live event, with the Session and the Turn that it belongs to: many Sessions can share one connection.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveEvent {
    /// The Session that published it.
    pub session_id: SessionId,
    /// The Turn that was running; `None` between Turns.
    pub turn: Option<u32>,
    /// The agent that the event is about, as the names from the root's child down to it. Empty for the Session itself.
    pub agent_path: Vec<String>,
    /// The payload.
    pub live: Live,
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
    /// The time of recording: UTC, with milliseconds. `seq` orders Entries, not `ts`.
    pub ts: Timestamp,
    /// The 1-based number of its Turn, if it has one.
    pub turn: Option<u32>,
    /// The payload.
    pub fact: Fact,
    /// The parts of the line that `fact` does not contain. Only lines of newer builds have any.
    pub beyond: Option<Box<Beyond>>,
}

/// The parts of a line that this build does not understand: unknown fields, and unknown values of closed sets.
/// They are stored as written, and included in every copy of the Entry.
#[derive(Debug, Clone)]
pub struct Beyond {
    /// The complete `data` as written, if `fact` lacks some of it.
    data: Option<Box<RawValue>>,
    /// The unknown fields of the envelope: `,"name":value` for each.
    envelope: String,
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

    /// Parses an id from the user or from a file.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND` for any other form. The error does not repeat the text, which may be hostile.
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
                Remedy::ListSessions { which: Sessions::Here },
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

/// The payload of a live event: what happens in a Session at this moment. It is never stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Live {
    /// More text of the answer.
    TextDelta {
        /// The new text.
        text: String,
    },
    /// More of the model's reasoning.
    ReasoningDelta {
        /// The new text.
        text: String,
    },
    /// More of the notes that a model writes for a summary, as JSON.
    SummaryDelta {
        /// The new text.
        text: String,
    },
    /// The model is writing a call.
    ToolCallDelta {
        /// The position of the call in the answer, from 0.
        index: usize,
        /// The tool's name.
        name: String,
        /// How many bytes of arguments were added.
        bytes: u64,
    },
    /// More output of a running command.
    ToolOutputDelta {
        /// The call.
        call_id: String,
        /// The new output.
        #[serde(flatten)]
        printed: Printed,
    },
    /// The Session's status changed.
    Status {
        /// The new status.
        status: Status,
    },
    /// The preview of a call is ready; the gate judges the call next.
    CallPrepared {
        /// The call.
        call_id: String,
        /// What the call is about, with resolved paths.
        info: Box<CallInfo>,
        /// What the call would do.
        #[serde(rename = "plan")]
        preview: Box<Preview>,
    },
    /// How MCP servers are: something changed, or the user requested it.
    McpChanged {
        /// All of them, by name.
        servers: Vec<crate::protocol::servers::ServerState>,
    },
    /// The rules that hold in this Session, as the user requested.
    RulesListed {
        /// In the order in which they were made.
        rules: Vec<crate::protocol::rule::SavedRule>,
        /// What could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
    },
    /// The user is asked whether what the workspace brings along is to be in force, or wants to see it.
    TrustAsked(Contributions),
    /// A call waits for the user's decision.
    ApprovalRequested(Approval),
    /// A form with the model's questions waits for the user's answers.
    #[serde(rename = "question_asked")]
    FormOpened(Form),
    /// A child Session changed: at most ten times a second for each, and at once when it begins, asks or ends.
    AgentChanged(Box<AgentState>),
    /// Something that a child asked the user is no longer open.
    AnswerTaken {
        /// The child's call that asked.
        call_id: String,
        /// The child.
        agent: Asker,
    },
    /// A background job began or ended.
    JobsChanged {
        /// All jobs of the Session, oldest first.
        jobs: Vec<JobState>,
    },
    /// The queue changed.
    QueueChanged {
        /// Messages that join the running Turn.
        steer: Vec<String>,
        /// Messages that start the next Turns, one each.
        follow_up: Vec<String>,
    },
    /// A message has left the queue.
    QueueLeft {
        /// Its number, as the answer to its Input gave it.
        id: u64,
        /// What became of it.
        #[serde(flatten)]
        to: QueueExit,
    },
    /// The Turn of an agent waits for something that no user is asked about.
    TurnWaits {
        /// What it waits for; absent when it goes on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<WaitsOn>,
    },
    /// A request failed and is sent again.
    RetryScheduled {
        /// The next attempt, from 2.
        attempt: u32,
        /// The most attempts; absent where only the time limits them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<u32>,
        /// Milliseconds until the next attempt.
        wait_ms: u64,
        /// Milliseconds of patience that are left after the wait; absent where the number of attempts is the limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_ms: Option<u64>,
        /// Why the last attempt failed.
        reason: String,
    },
    /// The preview of a compaction; nothing was written.
    #[serde(rename = "compaction_planned")]
    CompactionPreviewed(Box<CompactionPreview>),
    /// What fills the window of the next request, as the user requested.
    ContextListed(Box<ContextReport>),
    /// The preview of a restore; no file was touched.
    #[serde(rename = "restore_planned")]
    RestorePreviewed(RestorePreview),
    /// The Session was forked.
    SessionForked {
        /// The id of the new Session.
        session_id: String,
    },
    /// The Session refused an Input, or could not complete an accepted one.
    Refused(Refusal),
    /// Information for the user that needs no answer.
    Notice {
        /// How important it is.
        severity: Severity,
        /// The code of the notice, for programs.
        code: String,
        /// The text, for the user.
        message: String,
        /// What to do about it, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<Remedy>,
    },
}

/// Why the Session refused an Input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// The Input, as [`Input::name`](crate::protocol::input::Input::name) gives it.
    pub input: String,
    /// Why.
    #[serde(flatten)]
    pub error: ErrorBody,
}

impl Live {
    /// The names of all live events.
    pub const KINDS: &'static [&'static str] = &[
        "text_delta",
        "reasoning_delta",
        "summary_delta",
        "tool_call_delta",
        "tool_output_delta",
        "status",
        "call_prepared",
        "rules_listed",
        "trust_asked",
        "approval_requested",
        "question_asked",
        "agent_changed",
        "answer_taken",
        "jobs_changed",
        "queue_changed",
        "queue_left",
        "turn_waits",
        "retry_scheduled",
        "compaction_planned",
        "context_listed",
        "restore_planned",
        "session_forked",
        "refused",
        "notice",
    ];
}

/// How a message left the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum QueueExit {
    /// It has begun a Turn, or joined one.
    Delivered {
        /// That Turn.
        turn: u32,
    },
    /// The Session could not take it.
    Refused {
        /// As the user typed it.
        text: String,
        /// Why.
        error: Box<ErrorBody>,
    },
    /// The user took it back, or interrupted the Turn that it waited for.
    TakenBack,
}

/// What the Turn of an agent waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum WaitsOn {
    /// Another agent changes the same files.
    Lease {
        /// That agent, or the main session.
        holder: String,
    },
    /// The Provider asked for a pause.
    Rate {
        /// Milliseconds until it is over.
        wait_ms: u64,
    },
    /// As many requests of agents are on their way to the Provider as may be at the same time.
    Requests {
        /// The Provider.
        provider: String,
        /// The agents whose requests those are.
        holders: Vec<String>,
    },
    /// The tokens that the agents of the Turn share are used up, and the user is asked for more.
    Budget {
        /// The tokens that are used.
        used: u64,
        /// The most that may be used.
        most: u64,
    },
    /// As many agents run as may run at the same time.
    Place,
}

/// What the Session is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing runs; a prompt starts a Turn.
    #[default]
    Idle,
    /// The Session waits for the model, or receives its answer.
    Thinking,
    /// The model writes the summary of a compaction.
    Compacting,
    /// Tools run, or files are restored.
    Working,
    /// The Session waits for the user's decision or answers.
    Asking,
}

impl Status {
    /// Something runs that needs nothing from the user.
    pub fn is_busy(self) -> bool {
        matches!(self, Status::Thinking | Status::Compacting | Status::Working)
    }
}

/// The importance of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// For information.
    Info,
    /// The user may have to act.
    Warning,
}

/// A call that waits for the user's decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What the call would do. If the user allows it, exactly this runs.
    #[serde(rename = "plan")]
    pub preview: Box<Preview>,
    /// Why the call needs the user's approval.
    pub reason: String,
    /// The rule that "always allow" would add; absent if "always" is not offered.
    pub rule: Option<Rule>,
    /// What a decision to allow the call has to confirm; absent for everyday calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirmation>,
    /// What a decision to save `rule` has to confirm; absent for everyday rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_rule: Option<Confirmation>,
    /// The child Session that asks; absent if the Session itself does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Asker>,
}

/// The word that the user types before damage that lasts. The Session refuses a decision to allow without it, whichever
/// Presenter sends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The word; the decision carries it.
    pub word: String,
    /// What could not be taken back, as clauses: `it deletes src and all that is in it`.
    pub dangers: Vec<String>,
}

impl Confirmation {
    /// The word for a call that is allowed once.
    pub const ONCE: &'static str = "allow";
    /// The word for a rule that allows such calls from now on.
    pub const ALWAYS: &'static str = "always";
}

/// Questions of the model that wait for the user's answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// The call that asks.
    pub call_id: String,
    /// The questions.
    pub questions: Vec<Question>,
    /// The child Session that asks; absent if the Session itself does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Asker>,
}

impl Form {
    /// The call under which the step of a run with this id asks.
    pub fn call_of_step(id: &str) -> String {
        format!("step {id}")
    }

    /// Whether a step of a run asks.
    pub fn is_of_step(&self) -> bool {
        self.call_id.starts_with("step ")
    }
}

/// One question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The text of the question.
    pub question: String,
    /// Answers to choose from.
    #[serde(default)]
    pub options: Vec<String>,
    /// The user may choose more than one answer.
    #[serde(default)]
    pub multiple: bool,
    /// Only the options are answers; otherwise the user can answer in their own words too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_options: bool,
}

/// How a file compares with the version that pixir last wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The file is unchanged since and can be restored.
    Ready,
    /// The file already has the content that the restore would write.
    AlreadyThere,
    /// The user or another program changed the file since.
    ChangedSince,
    /// The file cannot be restored: its old bytes were not stored, or a folder or a symlink has its path.
    Impossible,
}

/// One file in the preview of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePreview {
    /// The path, relative to the workspace.
    pub path: String,
    /// How the file compares with the version that pixir last wrote.
    pub standing: Standing,
    /// What the restore does to the file.
    pub kind: ChangeKind,
    /// The unified diff from the current file to the restored file.
    pub diff: String,
    /// Lines that the restore adds.
    pub added: u64,
    /// Lines that the restore removes.
    pub removed: u64,
    /// The path is protected: it can run code or widen permissions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
    /// The changes since: the unified diff from pixir's version to the current file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The unified diff from the current file to the merged file, which keeps the changes since; absent if they
    /// conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<String>,
    /// A file of an agent's copy whose lines changed on both sides: both versions in one text, with conflict marks around
    /// these lines, for the user to edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked: Option<String>,
    /// Why the file cannot be restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The preview of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestorePreview {
    /// What the restore is for.
    pub reason: RestoreReason,
    /// The Turn whose changes are undone or redone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_turn: Option<u32>,
    /// The Entry whose state of the files is restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_seq: Option<u64>,
    /// The Entry of the restore that is undone or redone, if it is not a Turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_seq: Option<u64>,
    /// The agent whose files would be adopted: the names from the root's child down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent: Vec<String>,
    /// A call waits for the user's decision about them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
    /// The files that the restore covers, without those that need no change.
    pub files: Vec<FilePreview>,
    /// A token that identifies exactly this preview, for the Input that performs the restore.
    pub token: String,
}

/// A line with the envelope that this build writes. `v` and `chain` are declared only so that they are known.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "`v` and `chain` are known and not used here")]
struct LineRead<'a> {
    #[serde(default)]
    v: u64,
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
    #[serde(default)]
    chain: &'a str,
}

/// The fields of a line's envelope.
const ENVELOPE: [&str; 9] = ["v", "id", "session_id", "seq", "ts", "turn", "type", "data", "chain"];

impl Entry {
    /// The line without its chain, one JSON object.
    ///
    /// # Errors
    /// `LOG_ENCODE_FAILED` when the fact cannot be written as JSON.
    pub fn encode(&self) -> Result<String> {
        let encode = || -> serde_json::Result<String> {
            let mut line = Vec::with_capacity(1024);
            let Entry { id, session_id, seq, ts, turn, fact, beyond } = self;
            // The values that are formatted here need no escaping; serde writes the others.
            write!(line, "{{\"v\":{VERSION},\"id\":\"{id}\",\"session_id\":\"{session_id}\",\"seq\":{seq},\"ts\":\"{ts:.3}\",\"turn\":")
                .map_err(serde_json::Error::io)?;
            serde_json::to_writer(&mut line, turn)?;
            line.extend_from_slice(b",\"type\":");
            serde_json::to_writer(&mut line, fact.kind())?;
            line.extend_from_slice(b",\"data\":");
            match beyond.as_deref() {
                Some(Beyond { data: Some(data), .. }) => line.extend_from_slice(data.get().as_bytes()),
                Some(Beyond { data: None, .. }) | None => fact.write_data(&mut line)?,
            }
            if let Some(beyond) = beyond {
                line.extend_from_slice(beyond.envelope.as_bytes());
            }
            line.push(b'}');
            String::from_utf8(line).map_err(serde::ser::Error::custom)
        };
        encode().map_err(|e| encode_failed(&self.fact, &e))
    }

    /// Reads a line, with or without its chain. Unknown types, fields and values are kept; they are no error.
    ///
    /// # Errors
    /// serde's error for a line that is not an Entry.
    pub fn decode(line: &str) -> serde_json::Result<Entry> {
        Entry::decode_next(line, None)
    }

    /// Reads a line of a Log. The Entries of one Session share one allocation of its id.
    pub(crate) fn decode_next(line: &str, session: Option<&SessionId>) -> serde_json::Result<Entry> {
        match serde_json::from_str(line) {
            Ok(it) => Ok(Entry::of_line(&it, session, String::new())),
            // The envelope may have fields of a newer build. This path reads the line twice more, so it is not the usual one.
            Err(e) => match split_envelope(line) {
                Ok((known, unknown)) if !unknown.is_empty() => {
                    Ok(Entry::of_line(&serde_json::from_str(&known)?, session, unknown))
                }
                Ok(_) | Err(_) => Err(e),
            },
        }
    }

    fn of_line(it: &LineRead<'_>, session: Option<&SessionId>, envelope: String) -> Entry {
        let session_id = match session {
            Some(known) if known.as_str() == it.session_id => known.clone(),
            Some(_) | None => SessionId(it.session_id.into()),
        };
        let (fact, data) = Fact::from_data(it.kind, it.data);
        let data = (data == Understood::InPart).then(|| it.data.to_owned());
        let is_whole = data.is_none() && envelope.is_empty();
        let beyond = (!is_whole).then(|| Box::new(Beyond { data, envelope }));
        Entry { id: it.id, session_id, seq: it.seq, ts: it.ts, turn: it.turn, fact, beyond }
    }

    /// Whether this build understands the whole line.
    pub fn is_understood(&self) -> bool {
        self.beyond.is_none() && !matches!(self.fact, Fact::Unknown { .. })
    }
}

/// Splits a line into a line with the known fields of the envelope, and the unknown fields as `,"name":value` each.
fn split_envelope(line: &str) -> serde_json::Result<(String, String)> {
    let (mut known, mut unknown) = (String::with_capacity(line.len()), String::new());
    for (name, value) in serde_json::from_str::<Members<'_>>(line)?.0 {
        let fields = if ENVELOPE.contains(&name.as_str()) { &mut known } else { &mut unknown };
        let name = serde_json::to_string(&name)?;
        fields.extend([",", name.as_str(), ":", value.get()]);
    }
    Ok((format!("{{{}}}", known.strip_prefix(',').unwrap_or_default()), unknown))
}

impl Beyond {
    /// The unknown parts for a copy of the Entry. The copy's `fact` provides the fields of `data` that `changed` names;
    /// all others stay as they were written.
    ///
    /// # Errors
    /// `LOG_ENCODE_FAILED` when the fact cannot be written as JSON.
    pub(crate) fn of_copy(&self, fact: &Fact, changed: &[&str]) -> Result<Beyond> {
        let merge = |data: &RawValue| -> serde_json::Result<Box<RawValue>> {
            let mut written = Vec::new();
            fact.write_data(&mut written)?;
            let new: Members<'_> = serde_json::from_slice(&written)?;
            let old: Members<'_> = serde_json::from_str(data.get())?;
            let stays = old.0.into_iter().filter(|(name, _)| !changed.contains(&name.as_str()));
            let comes = new.0.into_iter().filter(|(name, _)| changed.contains(&name.as_str()));
            let mut merged = String::from("{");
            for (name, value) in stays.chain(comes) {
                let comma = if merged.len() > 1 { "," } else { "" };
                let name = serde_json::to_string(&name)?;
                merged.extend([comma, name.as_str(), ":", value.get()]);
            }
            merged.push('}');
            RawValue::from_string(merged)
        };
        let data = match &self.data {
            Some(data) if !changed.is_empty() => Some(merge(data).map_err(|e| encode_failed(fact, &e))?),
            other => other.clone(),
        };
        Ok(Beyond { data, envelope: self.envelope.clone() })
    }
}

fn encode_failed(fact: &Fact, e: &serde_json::Error) -> Error {
    Error::new(Code::LogEncodeFailed, format!("encode a {} entry: {e}", fact.kind()), "report this as a bug")
}

/// Returns the members of a JSON object in order, each value as the text that was written.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Members<'a>, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut fields: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = fields.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Visitor).map(Members)
    }
}

/// A live event as one JSON object in the envelope of an entry, with `seq` null.
///
/// # Errors
/// `LOG_ENCODE_FAILED` when the event cannot be written as JSON.
pub fn encode_live(event: &LiveEvent) -> Result<String> {
    #[derive(Serialize)]
    struct LiveLine<'a> {
        v: u8,
        id: Uuid,
        session_id: &'a SessionId,
        seq: Option<u64>,
        ts: String,
        turn: Option<u32>,
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        agent_path: &'a [String],
        #[serde(flatten)]
        live: &'a Live,
    }
    let LiveEvent { session_id, turn, agent_path, live } = event;
    let line = LiveLine {
        v: VERSION,
        id: Uuid::now_v7(),
        session_id,
        seq: None,
        ts: format!("{:.3}", now()),
        turn: *turn,
        agent_path,
        live,
    };
    serde_json::to_string(&line)
        .map_err(|e| Error::new(Code::LogEncodeFailed, format!("encode a live event: {e}"), "report this as a bug"))
}

/// Writes a time with three digits of a second, so that times sorted as text are sorted in time.
pub(crate) fn to_the_millisecond<S: serde::Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{at:.3}"))
}

/// The same for one that may be missing.
pub(crate) fn maybe_to_the_millisecond<S: serde::Serializer>(at: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => to_the_millisecond(at, to),
        None => to.serialize_none(),
    }
}

/// Returns the current time, cut to milliseconds.
pub fn now() -> Timestamp {
    Timestamp::from_millisecond(Timestamp::now().as_millisecond()).expect("the present is in range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_three_digits_of_a_second() {
        #[derive(Serialize)]
        struct Times(
            #[serde(serialize_with = "to_the_millisecond")] Timestamp,
            #[serde(serialize_with = "maybe_to_the_millisecond")] Option<Timestamp>,
            #[serde(serialize_with = "maybe_to_the_millisecond")] Option<Timestamp>,
        );
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let times = Times(at("2026-11-25T19:13:37Z"), Some(at("2026-11-25T19:13:37.123987654Z")), None);
        let written = serde_json::to_string(&times).expect("JSON");
        assert_eq!(written, r#"["2026-11-25T19:13:37.000Z","2026-11-25T19:13:37.123Z",null]"#);
    }

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
