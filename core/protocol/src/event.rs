//! What a watcher of a Session receives: entries that are in the Log, and live events that never are.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use crate::error::{Code, Error, Result};
use crate::remedy::{Remedy, Sessions};

mod asked; // what waits for the user
mod fact; // the payloads of Entries, one struct per type
mod headline; // a Fact in one line
mod job; // background jobs
mod line; // Entries and live events as lines of JSON
mod live; // the payloads of live events
mod open; // reads lines of newer builds
mod printed; // the output of a running program
mod restore; // what a restore would do to files
mod skill; // skills and prompt templates
mod window; // what fills the model's window, and what a compaction would do to it

pub use asked::{Approval, Confirmation, Form, Question};
pub use fact::*;
pub use headline::Headline;
pub use job::{JobState, JobStatus};
pub use line::{Beyond, encode_live};
pub use live::{Live, QueueExit, Refusal, Severity, Status, WaitsOn};
pub use printed::Printed;
pub use restore::{FilePreview, RestorePreview, Standing};
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

/// Writes a time with three digits of a second, so that times sorted as text are sorted in time.
pub fn to_the_millisecond<S: serde::Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
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
