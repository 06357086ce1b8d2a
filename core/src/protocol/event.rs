//! What a Session says: entries that are in the Log, and live news that never is.

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::protocol::error::{Code, Error, ErrorBody, Result};
use crate::protocol::remedy::{Remedy, Sessions};

mod fact; // what happened: one struct per kind
mod printed; // what a program has printed so far

pub use fact::*;
pub use printed::Printed;

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
    /// A call is being written.
    ToolCallDelta {
        /// Which call of the answer, from 0.
        index: usize,
        /// The tool.
        name: String,
        /// Bytes of its arguments that are new.
        bytes: u64,
    },
    /// More of a running command's output.
    ToolOutputDelta {
        /// The call that prints it.
        call_id: String,
        /// What is new.
        #[serde(flatten)]
        printed: Printed,
    },
    /// What the Session is doing.
    Status {
        /// The new state.
        status: Status,
    },
    /// A call waits for the person.
    ApprovalRequested(Approval),
    /// The model wants to know something from the person.
    QuestionAsked(Form),
    /// A background job began or ended.
    JobsChanged {
        /// All of them, the first first.
        jobs: Vec<JobState>,
    },
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
    /// What restoring files would do; nothing was touched.
    RestorePlanned(RestorePlan),
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
        /// What, for the user.
        message: String,
        /// What to do about it, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<Remedy>,
    },
}

impl Live {
    /// Names of every kind.
    pub const KINDS: &'static [&'static str] = &[
        "text_delta",
        "reasoning_delta",
        "tool_call_delta",
        "tool_output_delta",
        "status",
        "approval_requested",
        "question_asked",
        "jobs_changed",
        "queue_changed",
        "retry_scheduled",
        "compaction_planned",
        "restore_planned",
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
    pub plan: Box<Plan>,
    /// Why it is asked.
    pub reason: String,
    /// What "always" would allow; absent where always is not to be had.
    pub rule: Option<Rule>,
}

/// Questions that wait for the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// The call that asks.
    pub call_id: String,
    /// What it asks.
    pub questions: Vec<Question>,
}

/// One question. A person can always answer in own words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// What is asked.
    pub question: String,
    /// Answers to choose from.
    #[serde(default)]
    pub options: Vec<String>,
    /// Several may be chosen.
    #[serde(default)]
    pub multiple: bool,
}

/// A command in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobState {
    /// Its number in the Session, from 1.
    pub id: u32,
    /// The command line.
    pub command: String,
    /// How it stands.
    #[serde(flatten)]
    pub status: JobStatus,
    /// Where its output is, as tools name it.
    pub output_path: String,
    /// Bytes that it printed beyond the 64 MB that are saved.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// How a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum JobStatus {
    /// It runs.
    Running,
    /// It ended by itself.
    Ended {
        /// As a shell would say it.
        exit_code: i32,
    },
    /// It was stopped.
    Stopped,
}

/// How a file stands to what pixir left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is as pixir left it, and can be restored.
    Ready,
    /// It is as it should be.
    AlreadyThere,
    /// Somebody changed it since.
    ChangedSince,
    /// It cannot be restored: its bytes were not captured, or something else is in its place.
    Impossible,
}

/// One file of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFile {
    /// Relative to the workspace.
    pub path: String,
    /// How it stands.
    pub standing: Standing,
    /// What restoring does to it.
    pub kind: ChangeKind,
    /// From how it is to how it will be.
    pub diff: String,
    /// Lines that restoring adds and removes.
    pub added: u64,
    /// See `added`.
    pub removed: u64,
    /// What was changed since, from how pixir left it to how it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// From how it is to restored around what was changed since; absent where that does not work out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<String>,
    /// Why it cannot be restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What a restore would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestorePlan {
    /// Why.
    pub reason: RestoreReason,
    /// The Turn whose changes are taken back or done again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_turn: Option<u32>,
    /// The entry whose files they will be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_seq: Option<u64>,
    /// The files that are not yet as they should be.
    pub files: Vec<PlannedFile>,
    /// Stands for exactly this plan.
    pub token: String,
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
        let encode = || -> serde_json::Result<String> {
            let mut line = Vec::with_capacity(1024);
            let Entry { id, session_id, seq, ts, turn, .. } = self;
            // What is written here by hand needs no escaping; the rest goes through serde.
            write!(line, "{{\"v\":{VERSION},\"id\":\"{id}\",\"session_id\":\"{session_id}\",\"seq\":{seq},\"ts\":\"{ts}\",\"turn\":")
                .map_err(serde_json::Error::io)?;
            serde_json::to_writer(&mut line, turn)?;
            line.extend_from_slice(b",\"type\":");
            serde_json::to_writer(&mut line, self.fact.kind())?;
            line.extend_from_slice(b",\"data\":");
            self.fact.write_data(&mut line)?;
            line.push(b'}');
            String::from_utf8(line).map_err(serde::ser::Error::custom)
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
        Entry::decode_next(line, None)
    }

    /// Reads a line that follows others; entries of one Session share its id.
    pub(crate) fn decode_next(line: &str, session: Option<&SessionId>) -> serde_json::Result<Entry> {
        let it: LineRead<'_> = serde_json::from_str(line)?;
        let session_id = match session {
            Some(known) if known.as_str() == it.session_id => known.clone(),
            Some(_) | None => SessionId(it.session_id.into()),
        };
        Ok(Entry {
            id: it.id,
            session_id,
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
