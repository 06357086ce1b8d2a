//! What a Session says: entries that are in the Log, and live news that never is.

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::error::{Code, Error, ErrorBody, Result};

mod fact; // what happened: one struct per kind
mod open; // reading lines of newer builds
mod printed; // what a program has printed so far

pub use fact::*;
use open::Understood;
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
    /// What the line holds beyond `fact`, when a newer build wrote it.
    pub beyond: Option<Box<Beyond>>,
}

/// The parts of a line that this build does not understand: unknown fields, and unknown values of closed sets.
/// They are kept as they were written and written again wherever the entry is.
#[derive(Debug, Clone)]
pub struct Beyond {
    /// The `data` as it was written, where `fact` does not say all of it.
    data: Option<Box<RawValue>>,
    /// Unknown fields of the envelope: `,"name":value` for each.
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
        /// What, for a person.
        message: String,
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

/// A line as it is read. Fields that are not used stand here so that they do not count as unknown.
#[derive(Deserialize)]
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
    /// `LOG_ENCODE_FAILED` when the fact holds what JSON cannot.
    pub fn encode(&self) -> Result<String> {
        let encode = || -> serde_json::Result<String> {
            let mut line = Vec::with_capacity(1024);
            let Entry { id, session_id, seq, ts, turn, fact, beyond } = self;
            // What is written here by hand needs no escaping; the rest goes through serde.
            write!(line, "{{\"v\":{VERSION},\"id\":\"{id}\",\"session_id\":\"{session_id}\",\"seq\":{seq},\"ts\":\"{ts}\",\"turn\":")
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

    /// Reads a line, with or without its chain. Unknown kinds, fields and values are kept, and never an error.
    ///
    /// # Errors
    /// What serde says of a line that is not an entry.
    pub fn decode(line: &str) -> serde_json::Result<Entry> {
        Entry::decode_next(line, None)
    }

    /// Reads a line that follows others; entries of one Session share its id.
    pub(crate) fn decode_next(line: &str, session: Option<&SessionId>) -> serde_json::Result<Entry> {
        let (it, envelope): (LineRead<'_>, _) = open::from_str(line)?;
        let session_id = match session {
            Some(known) if known.as_str() == it.session_id => known.clone(),
            Some(_) | None => SessionId(it.session_id.into()),
        };
        let (fact, data) = Fact::from_data(it.kind, it.data);
        let beyond = match (envelope, data) {
            (Understood::Whole, Understood::Whole) => None,
            (envelope, data) => Some(Box::new(Beyond {
                data: (data == Understood::InPart).then(|| it.data.to_owned()),
                envelope: if envelope == Understood::InPart { unknown_of_envelope(line)? } else { String::new() },
            })),
        };
        Ok(Entry { id: it.id, session_id, seq: it.seq, ts: it.ts, turn: it.turn, fact, beyond })
    }

    /// Whether this build understands all of it.
    pub fn is_understood(&self) -> bool {
        self.beyond.is_none() && !matches!(self.fact, Fact::Unknown { .. })
    }
}

fn unknown_of_envelope(line: &str) -> serde_json::Result<String> {
    let mut unknown = String::new();
    for (name, value) in serde_json::from_str::<Members<'_>>(line)?.0 {
        if !ENVELOPE.contains(&name.as_str()) {
            let name = serde_json::to_string(&name)?;
            unknown.extend([",", name.as_str(), ":", value.get()]);
        }
    }
    Ok(unknown)
}

impl Beyond {
    /// The same for a copy whose fact is another in these fields of `data`: they are those of the copy, and all that is
    /// unknown stays.
    ///
    /// # Errors
    /// `LOG_ENCODE_FAILED` when the fact holds what JSON cannot.
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

/// The members of a JSON object in their order, each value as it was written.
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
