//! What a server adds to the calls of an answer and wants back, although the dialect does not have it.
//!
//! Gemini signs its calls: in `extra_content.google.thought_signature` of a call by itself
//! (<https://ai.google.dev/gemini-api/docs/thought-signatures>), in `provider_specific_fields` or within the call's id behind
//! LiteLLM (BerriAI/litellm#16895). It refuses a request that lacks a signature. So pixir keeps every field of a call that it
//! does not know, and every id that it would otherwise cut, and sends them to the same model only.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};

use serde_json::{Map, Value, json};

use super::super::dialect::{MAX_NAME, plain};

/// The fields of a call that the dialect has.
const OF_CALL: [&str; 4] = ["id", "type", "index", "function"];
/// The fields of its function that the dialect has.
const OF_FUNCTION: [&str; 2] = ["name", "arguments"];
/// Fields of a message that servers want back, whatever is in them.
const OF_MESSAGE: [&str; 2] = ["extra_content", "thinking_blocks"];
/// A field of LiteLLM, which has more than its server wants back: it passes the rest on to servers that refuse it.
const OF_LAYER: &str = "provider_specific_fields";

/// Unknown fields of one call, as far as they have arrived.
#[derive(Debug, Default)]
pub(super) struct Extras {
    call: Map<String, Value>,
    function: Map<String, Value>,
}

impl Extras {
    /// Takes in the unknown fields of a piece of the call.
    pub(super) fn take(&mut self, piece: &Value) {
        add(&mut self.call, piece, &OF_CALL);
        add(&mut self.function, &piece["function"], &OF_FUNCTION);
    }

    /// What is kept of the call; `None` if it is a plain one.
    pub(super) fn kept(self, id: &str) -> Option<Value> {
        let is_plain = self.call.is_empty() && self.function.is_empty() && !is_long(id);
        (!is_plain).then(|| json!({ "id": id, "call": self.call, "function": self.function }))
    }
}

/// Takes in the fields of a message that its server wants back.
pub(super) fn take_of_message(fields: &mut Map<String, Value>, delta: &Value) {
    for name in OF_MESSAGE {
        merge(fields, name, &delta[name]);
    }
    let signed = delta[OF_LAYER].as_object().into_iter().flatten();
    let signed: Map<String, Value> = signed
        .filter(|(name, value)| name.contains("signature") && !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !signed.is_empty() {
        merge(fields, OF_LAYER, &Value::Object(signed));
    }
}

/// An id that is longer than most servers take has more in it than a name, so it goes back whole. A short one with odd
/// characters is written anew: some layers give ids that the server behind them refuses.
fn is_long(id: &str) -> bool {
    id.len() > MAX_NAME
}

fn add(to: &mut Map<String, Value>, from: &Value, known: &[&str]) {
    let unknown = from.as_object().into_iter().flatten().filter(|(name, _)| !known.contains(&name.as_str()));
    unknown.for_each(|(name, value)| merge(to, name, value));
}

/// Later pieces of an object add to it; other values replace what was there.
fn merge(to: &mut Map<String, Value>, name: &str, value: &Value) {
    match (to.get_mut(name), value) {
        (_, Value::Null) => {}
        (Some(Value::Object(old)), Value::Object(more)) => more.iter().for_each(|(name, it)| merge(old, name, it)),
        _ => drop(to.insert(name.to_owned(), value.clone())),
    }
}

/// The kept calls of the last answer, for the calls that follow in the History.
#[derive(Default)]
pub(super) struct Pending {
    calls: VecDeque<Value>,
    /// Ids that go back as their server gave them.
    ids: HashSet<String>,
}

impl Pending {
    /// Begins an answer of the same model.
    pub(super) fn begin(&mut self, item: &Value) {
        self.calls = item["calls"].as_array().into_iter().flatten().cloned().collect();
    }

    /// What was kept of a call with this id in the History: the fields for the call, and for its function.
    pub(super) fn of(&mut self, id: &str) -> Option<(Map<String, Value>, Map<String, Value>)> {
        // A later call with the same id has a number behind it.
        let is_it = |given: &str| {
            id.strip_prefix(given).is_some_and(|rest| {
                let number = rest.strip_prefix('_');
                rest.is_empty() || number.is_some_and(|it| !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit()))
            })
        };
        let at = self.calls.iter().position(|it| it["id"].as_str().is_some_and(is_it))?;
        let mut kept = self.calls.remove(at)?;
        if kept["id"] == *id && is_long(id) {
            self.ids.insert(id.to_owned());
        }
        let mut fields = |name: &str| match kept[name].take() {
            Value::Object(fields) => fields,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
        };
        Some((fields("call"), fields("function")))
    }

    /// The id of a call or of its result on the wire.
    pub(super) fn id<'a>(&self, id: Cow<'a, str>) -> Cow<'a, str> {
        if self.ids.contains(&*id) { id } else { plain(id) }
    }
}
