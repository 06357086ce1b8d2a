//! Entries and live events as lines of JSON, each as it was written.

use std::fmt;
use std::io::Write as _;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::open::Understood;
use super::{Entry, Fact, Live, LiveEvent, SessionId, VERSION, now};
use crate::error::{Code, Error, Result};

/// The parts of a line that this build does not understand: unknown fields, and unknown values of closed sets.
/// They are stored as written, and included in every copy of the Entry.
#[derive(Debug, Clone)]
pub struct Beyond {
    /// The complete `data` as written, if `fact` lacks some of it.
    data: Option<Box<RawValue>>,
    /// The unknown fields of the envelope: `,"name":value` for each.
    envelope: String,
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
    pub fn decode_next(line: &str, session: Option<&SessionId>) -> serde_json::Result<Entry> {
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
    pub fn of_copy(&self, fact: &Fact, changed: &[&str]) -> Result<Beyond> {
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
