//! Reads JSON that a newer build may have written. Unknown parts are skipped, and the reader reports that it skipped
//! some.
//!
//! Types that derive `Deserialize` reject unknown enum values, which is right for Inputs, configuration and tool
//! arguments. Only Logs are read through [`from_str`].

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, IntoDeserializer as _, MapAccess, SeqAccess, Visitor};

/// Returns the value that replaces an unknown value of a closed set, by the name of the Rust type. It is always the
/// value that permits and claims the least. For a type that is not listed, the whole Entry becomes a
/// [`super::Fact::Unknown`].
fn reading_of_unknown(set: &str) -> Option<&'static str> {
    Some(match set {
        "Mode" => "read-only",
        "Toolset" => "typed",
        // The Entry remains a message of the user, which the model reads.
        "Delivery" => "prompt",
        "Verdict" => "deny",
        "DecidedBy" | "Exposure" | "RestoreReason" | "ScopeName" => "unknown",
        "Trigger" => "threshold",
        "StepStatus" => "pending",
        // The blobs, if there are any, still contain the bytes before and after.
        "ChangeKind" => "modified",
        // The Turn has ended, but completion cannot be claimed.
        "TurnStatus" => "incomplete",
        "ErrorKind" => "command_failed",
        "CallKind" => "other",
        "EditorDocumentKind" => "open_file",
        // The source that is trusted least.
        "Origin" => "workspace",
        // The text stays an item of the conversation.
        "ActivatedBy" => "user",
        // An end that is unknown here is none that can be relied on.
        "AgentStatus" => "incomplete",
        // It is not relied on, so it runs again.
        "StepOutcome" => "failed",
        "ToldBy" => "parent",
        "Telling" => "next",
        // Nothing of it comes to the workspace.
        "Isolation" => "scratch",
        // Its Log has what it began with.
        "AgentContext" => "none",
        _ => return None,
    })
}

/// Whether this build knows everything that it read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Understood {
    /// Everything is known: reading and writing it again loses nothing.
    Whole,
    /// Fields were skipped or values replaced.
    InPart,
}

/// Reads a value; unknown fields are skipped, and unknown values of closed sets are read as the safest known one.
///
/// # Errors
/// serde's error for JSON that does not fit the type for another reason.
pub(super) fn from_str<'de, T: Deserialize<'de>>(text: &'de str) -> serde_json::Result<(T, Understood)> {
    let skipped = Cell::new(false);
    let mut json = serde_json::Deserializer::from_str(text);
    let value = T::deserialize(Open { inner: &mut json, skipped: &skipped })?;
    json.end()?;
    Ok((value, if skipped.get() { Understood::InPart } else { Understood::Whole }))
}

/// The member of a step that names its struct.
const TAG: &str = "event";

/// Returns the name in the tag of a step.
///
/// # Errors
/// serde's error for JSON that is not an object with a tag.
pub(super) fn tag(text: &str) -> serde_json::Result<String> {
    #[derive(Deserialize)]
    struct Tagged {
        event: String,
    }
    Ok(serde_json::from_str::<Tagged>(text)?.event)
}

/// Reads the members of a step beside its tag, as [`from_str`] reads an object, and makes an event of them.
///
/// serde would read an enum with a tag through a buffer, where unknown parts go unnoticed.
///
/// # Errors
/// As [`from_str`].
pub(super) fn step<'de, T: Deserialize<'de>, E>(
    text: &'de str,
    event: impl FnOnce(T) -> E,
) -> serde_json::Result<(E, Understood)> {
    let skipped = Cell::new(false);
    let mut json = serde_json::Deserializer::from_str(text);
    let step = (&mut json).deserialize_map(Step { skipped: &skipped, step: PhantomData })?;
    json.end()?;
    Ok((event(step), if skipped.get() { Understood::InPart } else { Understood::Whole }))
}

struct Step<'a, T> {
    skipped: &'a Cell<bool>,
    step: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Step<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(BesideTag(Open { inner: members, skipped: self.skipped })))
    }
}

/// The members of an object, except for its tag.
struct BesideTag<'a, A>(Open<'a, A>);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for BesideTag<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        while let Some(name) = self.0.inner.next_key::<String>()? {
            if name != TAG {
                return seed.deserialize(name.into_deserializer()).map(Some);
            }
            self.0.inner.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}

/// Wraps a serde deserializer, visitor, seed or access, and applies the same rules to everything nested in it.
struct Open<'a, T> {
    inner: T,
    skipped: &'a Cell<bool>,
}

impl<'a, T> Open<'a, T> {
    fn around<U>(&self, inner: U) -> Open<'a, U> {
        Open { inner, skipped: self.skipped }
    }
}

macro_rules! pass_on {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method(visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Open<'_, D> {
    type Error = D::Error;

    // Free-form JSON, like the arguments of a call, has no unknown parts.
    pass_on! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
        deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_unit
        deserialize_identifier
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_option(visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_seq(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_tuple(len, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_tuple_struct(name, len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_map(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Closed { set: name, values: variants, visitor, skipped: self.skipped };
        self.inner.deserialize_any(visitor)
    }

    /// Derived code calls this for the value of a field that it does not know.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.skipped.set(true);
        self.inner.deserialize_ignored_any(visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! visit_on {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method<E: serde::de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Open<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit_on! {
        visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64, visit_u128: u128, visit_f64: f64,
        visit_char: char, visit_str: &str, visit_borrowed_str: &'de str, visit_string: String, visit_bytes: &[u8],
        visit_borrowed_bytes: &'de [u8], visit_byte_buf: Vec<u8>,
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.around(deserializer);
        self.inner.visit_some(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.around(deserializer);
        self.inner.visit_newtype_struct(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        let items = self.around(items);
        self.inner.visit_seq(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<V::Value, A::Error> {
        let fields = self.around(fields);
        self.inner.visit_map(fields)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Open<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let seed = self.around(seed);
        self.inner.next_element_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Open<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.inner.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.around(seed);
        self.inner.next_value_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Open<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let deserializer = self.around(deserializer);
        self.inner.deserialize(deserializer)
    }
}

/// Reads a value of a closed set: a text that this build knows, or anything else.
struct Closed<'a, V> {
    set: &'static str,
    values: &'static [&'static str],
    visitor: V,
    skipped: &'a Cell<bool>,
}

impl<'de, V: Visitor<'de>> Closed<'_, V> {
    fn known<E: serde::de::Error>(self, value: &str) -> Result<V::Value, E> {
        let value: StrDeserializer<'_, E> = value.into_deserializer();
        self.visitor.visit_enum(value)
    }

    fn unknown<E: serde::de::Error>(self) -> Result<V::Value, E> {
        let Some(reading) = reading_of_unknown(self.set) else {
            return Err(E::custom(format_args!("an unknown value of {}", self.set)));
        };
        self.skipped.set(true);
        self.known(reading)
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Closed<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value of {}", self.set)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<V::Value, E> {
        if self.values.contains(&value) { self.known(value) } else { self.unknown() }
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<V::Value, E> {
        self.unknown()
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<V::Value, E> {
        self.unknown()
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<V::Value, E> {
        self.unknown()
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<V::Value, E> {
        self.unknown()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.unknown()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<V::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        self.unknown()
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<V::Value, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.unknown()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{Index, select};
    use serde_json::value::RawValue;
    use serde_json::{Map, Value, json};

    use crate::event::{
        DecidedBy, Entry, Fact, Mode, Rule, Scope, SettingsChanged, StepStatus, Toolset, TurnStatus, Verdict,
    };

    fn line(kind: &str, data: &str) -> String {
        format!(
            r#"{{"v":1,"id":"0190163d-8694-739b-aea5-966c26f8ad91","session_id":"20261121T203012-0a1b2c","seq":4,"ts":"2026-11-21T20:30:12.345Z","turn":3,"type":"{kind}","data":{data}}}"#
        )
    }

    fn read(kind: &str, data: &Value) -> Fact {
        let entry = Entry::decode(&line(kind, &data.to_string())).expect("an entry");
        assert!(!entry.is_understood(), "{data} is all known");
        entry.fact
    }

    /// A place in `data` where a newer build may write something else: an object, or a value of a closed set.
    #[derive(Clone, Copy, PartialEq)]
    enum Place {
        Object,
        Closed,
    }

    /// Builds a value that fits a schema, with every field present, and lists its places.
    fn sample(schema: &Value, whole: &Value, at: &str, places: &mut Vec<(String, Place)>) -> Value {
        // The tag of a step. Another one makes another step.
        if let Some(tag) = schema.get("const") {
            return tag.clone();
        }
        if let Some(name) = schema["$ref"].as_str() {
            let mut value = sample(whole.pointer(&name[1..]).expect("it is defined"), whole, at, places);
            // The tag of a step stands beside its fields.
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                value[name] = field["const"].clone();
            }
            return value;
        }
        let choices = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
        if let Some(choices) = choices {
            let closed = choices.iter().find_map(|it| it.get("const").or(it["enum"].get(0)));
            if let Some(value) = closed {
                places.push((at.to_owned(), Place::Closed));
                return value.clone();
            }
            let choice = choices.iter().find(|it| it["type"] != "null").expect("not only null");
            return sample(choice, whole, at, places);
        }
        if let Some(value) = schema["enum"].get(0) {
            places.push((at.to_owned(), Place::Closed));
            return value.clone();
        }
        let kind = schema["type"].as_str().or_else(|| schema["type"].get(0).and_then(Value::as_str));
        match kind {
            Some("object") if schema["properties"].is_object() => {
                places.push((at.to_owned(), Place::Object));
                let fields = schema["properties"].as_object().expect("an object").iter();
                fields
                    .map(|(name, field)| (name.clone(), sample(field, whole, &format!("{at}/{name}"), places)))
                    .collect::<Map<_, _>>()
                    .into()
            }
            // A plan has steps that are plans.
            Some("array") if at.matches('/').count() > 4 => json!([]),
            Some("array") => json!([sample(&schema["items"], whole, &format!("{at}/0"), places)]),
            Some("string") => json!("text"),
            Some("integer") => json!(7),
            Some("number") => json!(0.5),
            Some("boolean") => json!(true),
            // Free-form JSON has no unknown parts.
            Some("object") | None => json!({ "free": [1] }),
            Some(other) => panic!("{other}"),
        }
    }

    /// The recorded remedy in a line, as it is written there.
    fn remedy_in(line: &str) -> Option<&str> {
        let (_, rest) = line.split_once(r#""remedy":"#)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        Some(values.next()?.expect("JSON").get())
    }

    proptest! {
        /// Broken build: lines are read with plain derived code. It reports a newer build's value as damage, and writes
        /// a copy without a newer build's fields.
        #[test]
        fn what_a_newer_build_adds_anywhere_is_kept_byte_for_byte(
            kind in select(Fact::KINDS),
            added in vec((any::<Index>(), select(vec![
                r#""of_later""#, r#"{"b":1,"a":[1.50,{"c":null}]}"#, "17", "-1e5", r#"["plan", {}]"#, r#""h\u006flogram""#, "false",
            ])), 1..4),
        ) {
            let schema = &Fact::schemas()[kind];
            let mut places = Vec::new();
            let mut data = sample(schema, schema, "", &mut places);
            let mut texts = Vec::new();
            let mut is_skipped = false;
            for (n, (place, text)) in added.iter().enumerate() {
                let (at, place) = place.get(&places);
                // An earlier addition may have replaced this place.
                let Some(there) = data.pointer_mut(at) else { continue };
                let mark = json!(format!("@{n}@"));
                match place {
                    Place::Object => there[format!("of_later_{n}")] = mark.clone(),
                    Place::Closed => *there = mark.clone(),
                }
                texts.push((mark.to_string(), text));
                // A recorded remedy keeps its own JSON, whatever is in it.
                is_skipped |= !at.contains("/remedy");
            }
            let data = texts.iter().fold(data.to_string(), |data, (mark, text)| data.replace(mark, text));
            let line = line(kind, &data);
            let entry = Entry::decode(&line).expect("an entry");
            prop_assert!(!matches!(entry.fact, Fact::Unknown { .. }), "{line}");
            prop_assert_eq!(entry.is_understood(), !is_skipped);
            let written = entry.encode().expect("an object");
            if is_skipped {
                prop_assert_eq!(written, line);
            } else {
                // An understood entry is written in this build's order of fields, with the remedy as it was.
                prop_assert_eq!(remedy_in(&written), remedy_in(&line));
            }
        }
    }

    #[test]
    fn every_kind_is_understood_as_this_build_writes_it() {
        for kind in Fact::KINDS {
            let whole = &Fact::schemas()[*kind];
            let steps = whole["oneOf"].as_array().map_or_else(|| vec![whole], |steps| steps.iter().collect());
            for schema in steps {
                let data = sample(schema, whole, "", &mut Vec::new());
                let entry = Entry::decode(&line(kind, &data.to_string())).expect("an entry");
                assert!(entry.is_understood(), "{kind}: {data}");
            }
        }
    }

    /// Broken build: the fields of a step are read through a buffer, where what is unknown goes unnoticed.
    #[test]
    fn a_step_keeps_what_a_newer_build_adds_to_it_and_a_new_step_is_unknown() {
        for (kind, data) in [
            ("subagent_event", r#"{"of_later":[1.50],"name":"a","event":"resumed"}"#),
            ("subagent_event", r#"{"event":"told","name":"a","by":"robot","how":"next","text":"b"}"#),
            ("workflow_event", r#"{"event":"gate_answered","id":"a","key":"k","choice":"yes","of_later":null}"#),
        ] {
            let line = line(kind, data);
            let entry = Entry::decode(&line).expect("an entry");
            assert!(!entry.is_understood() && !entry.fact.is_misfit(), "{data}");
            assert_eq!(entry.encode().expect("an object"), line);
        }
        for data in [r#"{"event":"cloned","name":"a"}"#, r#"{"name":"a"}"#, r#"["resumed"]"#] {
            let line = line("subagent_event", data);
            let entry = Entry::decode(&line).expect("an entry");
            assert!(entry.fact.is_misfit(), "{data}");
            assert_eq!(entry.encode().expect("an object"), line);
        }
    }

    #[test]
    fn an_unknown_field_of_the_envelope_is_kept() {
        let line = line("hologram", r#"{"b":1,"a":[1.50]},"agent":{"path":[1.0]},"x":null"#);
        let entry = Entry::decode(&line).expect("an entry");
        assert_eq!((entry.is_understood(), entry.encode().expect("an object")), (false, line));
    }

    #[test]
    fn an_unknown_value_is_read_as_the_safest_and_the_other_fields_still_apply() {
        let Fact::SettingsChanged(it) =
            read("settings_changed", &json!({ "mode": "plan", "toolset": { "only": ["read"] }, "model": "m2" }))
        else {
            panic!("no settings")
        };
        let (mode, toolset) = (Some(Mode::ReadOnly), Some(Toolset::Typed));
        assert_eq!(*it, SettingsChanged { mode, toolset, model: Some("m2".into()), ..SettingsChanged::default() });

        let Fact::PermissionDecision(it) = read(
            "permission_decision",
            &json!({ "call_id": "c", "verdict": "allow_once", "by": "hook", "reason": "r", "rule": { "allow": "registry" } }),
        ) else {
            panic!("no decision")
        };
        assert_eq!(
            (it.verdict, it.by, it.rule),
            (Verdict::Deny, DecidedBy::Unknown, Some(Rule::Allow(Scope::Unknown)))
        );

        let data = json!({ "status": "handed_over", "duration_ms": 1, "tool_calls": 0 });
        let Fact::TurnEnded(it) = read("turn_ended", &data) else { panic!("no end") };
        assert_eq!(it.status, TurnStatus::Incomplete);

        let data = json!({ "items": [{ "step": "a", "status": "blocked" }, { "step": "b", "status": "completed" }] });
        let Fact::PlanUpdated(it) = read("plan_updated", &data) else { panic!("no plan") };
        assert_eq!(it.items.iter().map(|i| i.status).collect::<Vec<_>>(), [StepStatus::Pending, StepStatus::Completed]);
    }

    #[test]
    fn a_rule_is_never_read_as_more_permissive_than_it_was_written() {
        let read = |rule: Value| serde_json::from_value::<Rule>(rule).expect("a rule");
        let command = || Scope::Command("make".into());
        for (written, rule) in [
            (json!({ "allow": "file_changes" }), Rule::Allow(Scope::FileChanges)),
            (json!({ "allow": "command", "what": "make" }), Rule::Allow(command())),
            (json!({ "deny": "file_changes" }), Rule::Deny(Scope::FileChanges)),
            (json!({ "deny": "command", "what": "make" }), Rule::Deny(command())),
            (json!({ "allow": "reads", "what": "/usr" }), Rule::Allow(Scope::Reads("/usr".into()))),
        ] {
            assert_eq!(serde_json::to_value(&rule).expect("JSON"), written);
            assert_eq!(read(written), rule);
        }
        let narrowed = json!({ "allow": "command", "what": "make", "in": "sandbox" });
        assert_eq!(read(narrowed), Rule::Allow(Scope::Unknown));
        let narrowed = json!({ "deny": "command", "what": "make", "unless": "sandbox" });
        assert_eq!(read(narrowed), Rule::Deny(command()));
        assert_eq!(read(json!({ "ask": "file_changes" })), Rule::Deny(Scope::Unknown));
    }

    #[test]
    fn data_that_does_not_fit_makes_an_unknown_entry_that_is_kept() {
        for (kind, data) in [("tool_result", r#"{"call_id":"c","output":{"blob":"b"}}"#), ("label", r#"{"seq":"a"}"#)] {
            let line = line(kind, data);
            let entry = Entry::decode(&line).expect("an entry");
            assert!(entry.fact.is_misfit());
            assert_eq!(entry.encode().expect("an object"), line);
        }
    }
}
