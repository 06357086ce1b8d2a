//! The Chat Completions dialect: OpenAI, and every local server that speaks it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::dialect::{Heard, Reader, pieces, plain};
use super::models::Facts;
use super::preset::{EffortField, Quirks};
use super::refusal::{closed, told_in_stream};
use super::{Answer, CallRequest, Chunk, Ended, Request, Said, count, invalid};
use crate::conversation::history::Piece;
use crate::protocol::error::Result;
use crate::protocol::event::{Attachment, Usage};

pub(super) fn body(request: &Request, facts: &Facts, quirks: &Quirks) -> Value {
    let mut body = json!({
        "model": request.model,
        "messages": messages(request, facts, quirks),
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|t| {
            json!({ "type": "function", "function": { "name": t.name, "description": t.description, "parameters": t.parameters } })
        });
        body["tools"] = tools.collect();
    }
    if let Some(effort) = facts.effort(request.effort.as_deref()) {
        match quirks.effort {
            EffortField::ReasoningEffort => body["reasoning_effort"] = json!(effort),
            EffortField::Reasoning => body["reasoning"] = json!({ "effort": effort }),
        }
    }
    if quirks.cache_key {
        body["prompt_cache_key"] = json!(request.cache_key);
    }
    if quirks.usage_with_cost {
        body["usage"] = json!({ "include": true });
    }
    if quirks.cache_breakpoints && request.model.contains("claude") {
        mark(&mut body["messages"]);
    }
    body
}

/// Marks where the cached prefix ends: after the instructions, and after the last message.
fn mark(messages: &mut Value) {
    let Some(messages) = messages.as_array_mut() else { return };
    let last = messages.len() - 1;
    for at in [0, last] {
        let content = &mut messages[at]["content"];
        if let Some(text) = content.as_str() {
            *content = json!([{ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } }]);
        }
    }
}

/// Calls join the assistant message before them; many servers take only one system message, at the start.
fn messages(request: &Request, facts: &Facts, quirks: &Quirks) -> Vec<Value> {
    let system = if request.context.is_empty() {
        request.instructions.to_owned()
    } else {
        format!("{}\n{}", request.instructions, request.context)
    };
    let mut messages = vec![json!({ "role": "system", "content": system })];
    let wants_reasoning = wants_reasoning(&request.model);
    // A tool's message is text alone; its images follow as the person's, after the last result of the answer.
    let mut images: Vec<Value> = Vec::new();
    for piece in pieces(request) {
        if !images.is_empty() && !matches!(piece, Piece::Result { .. }) {
            messages.push(json!({ "role": "user", "content": std::mem::take(&mut images) }));
        }
        match piece {
            // Many templates want the roles to take turns.
            Piece::User { text, images: shown } => {
                match messages.last_mut().filter(|m| m["role"] == "user") {
                    Some(Value::Object(message)) => match message.get_mut("content") {
                        Some(Value::Array(parts)) => parts.push(json!({ "type": "text", "text": text })),
                        Some(Value::String(before)) => *before = format!("{before}\n\n{text}"),
                        _ => {}
                    },
                    _ => messages.push(json!({ "role": "user", "content": text })),
                }
                if let Some(message) = messages.last_mut().filter(|_| !shown.is_empty()) {
                    let mut parts = match message["content"].take() {
                        Value::Array(parts) => parts,
                        text => vec![json!({ "type": "text", "text": text })],
                    };
                    shown.iter().for_each(|image| parts.extend(seen(image, request, facts)));
                    message["content"] = Value::Array(parts);
                }
            }
            Piece::Assistant { text, .. } => match assistant(&mut messages) {
                message if message["content"].is_null() => message["content"] = json!(text),
                message => {
                    let before = message["content"].as_str().unwrap_or_default();
                    message["content"] = json!(format!("{before}\n\n{text}"));
                }
            },
            Piece::Reasoning { item, .. } if quirks.gives_reasoning_back && item["type"] == FIELDS => {
                let message = assistant(&mut messages);
                for (field, value) in item["fields"].as_object().into_iter().flatten() {
                    message[field] = value.clone();
                }
            }
            Piece::Reasoning { .. } => {}
            Piece::Call { id, name, args } => {
                let call = json!({ "id": plain(id), "type": "function", "function": { "name": plain(name), "arguments": args } });
                let message = assistant(&mut messages);
                if wants_reasoning && message["reasoning_content"].is_null() {
                    message["reasoning_content"] = json!("");
                }
                match message["tool_calls"].as_array_mut() {
                    Some(calls) => calls.push(call),
                    None => message["tool_calls"] = json!([call]),
                }
            }
            Piece::Result { id, output, images: looked_at } => {
                messages.push(json!({ "role": "tool", "tool_call_id": plain(id), "content": output }));
                images.extend(looked_at.iter().flat_map(|image| seen(image, request, facts)));
            }
        }
    }
    if !images.is_empty() {
        messages.push(json!({ "role": "user", "content": images }));
    }
    messages
}

/// An image, with its name before it.
fn seen(image: &Attachment, request: &Request, facts: &Facts) -> [Value; 2] {
    let name = json!({ "type": "text", "text": format!("The image {}:", image.path) });
    let image = match request.image(image, facts) {
        Ok(bytes) => {
            let url = format!("data:{};base64,{}", image.media_type, STANDARD.encode(bytes));
            json!({ "type": "image_url", "image_url": { "url": url } })
        }
        Err(said) => json!({ "type": "text", "text": said }),
    };
    [name, image]
}

/// Models whose servers want the thinking with every call, also where there was none or another model called.
fn wants_reasoning(model: &str) -> bool {
    let bare = model.rsplit('/').next().unwrap_or(model);
    ["kimi-", "deepseek-"].iter().any(|family| bare.starts_with(family))
}

/// The assistant message at the end, opened if there is none.
fn assistant(messages: &mut Vec<Value>) -> &mut Value {
    if messages.last().is_none_or(|m| m["role"] != "assistant") {
        messages.push(json!({ "role": "assistant", "content": null }));
    }
    messages.last_mut().expect("just made sure of")
}

/// The kind of item that keeps what a server called its thinking, field by field.
const FIELDS: &str = "chat_fields";

/// Reads an answer. Calls may be interleaved; each piece says which it belongs to, or continues the last.
#[derive(Default)]
pub(super) struct Listener {
    text: String,
    reasoning: String,
    /// The thinking as the server named it, to be given back.
    fields: Map<String, Value>,
    /// In the order in which they began.
    calls: Vec<CallRequest>,
    /// Which call the pieces with an index belong to now.
    places: BTreeMap<u64, usize>,
    usage: Option<Usage>,
    usd: Option<f64>,
    ended: Option<String>,
}

impl Listener {
    fn take_reasoning(&mut self, delta: &Value, say: &mut (dyn FnMut(Chunk) + Send)) {
        // Servers that send both mean the same by them.
        let named = ["reasoning_content", "reasoning"].into_iter().find_map(|name| Some((name, text(&delta[name])?)));
        if let Some((name, text)) = named {
            self.think(text, say);
            if let Value::String(all) = self.fields.entry(name).or_insert_with(|| json!("")) {
                all.push_str(text);
            }
        }
        // Encrypted or signed parts, which have to be given back as they came.
        if let Some(details) = delta["reasoning_details"].as_array()
            && let Value::Array(all) = self.fields.entry("reasoning_details").or_insert_with(|| json!([]))
        {
            details.iter().for_each(|detail| join_detail(all, detail));
        }
    }

    fn think(&mut self, text: &str, say: &mut (dyn FnMut(Chunk) + Send)) {
        self.reasoning.push_str(text);
        say(Chunk::Reasoning(text.to_owned()));
    }

    fn speak(&mut self, text: &str, say: &mut (dyn FnMut(Chunk) + Send)) {
        self.text.push_str(text);
        say(Chunk::Text(text.to_owned()));
    }

    /// The first piece of a call has its id and name, the rest only arguments. Some servers leave the index out, and some
    /// give every call the same.
    fn take_call(&mut self, piece: &Value, say: &mut (dyn FnMut(Chunk) + Send)) {
        let (id, name) = (text(&piece["id"]), text(&piece["function"]["name"]));
        let given = piece["index"].as_u64();
        let known = match given {
            Some(index) => self.places.get(&index).copied(),
            None => self.calls.len().checked_sub(1),
        };
        let is_whole = |call: &CallRequest| serde_json::from_str::<Map<String, Value>>(&call.args).is_ok();
        let has_other_id = |call: &CallRequest| id.is_some_and(|id| !call.id.is_empty() && call.id != id);
        // A name opens a call; one that has all its arguments goes on no more.
        let is_other = |call: &CallRequest| name.is_some() && (has_other_id(call) || (id.is_none() && is_whole(call)));
        let at = match known.filter(|at| !is_other(&self.calls[*at])) {
            Some(at) => at,
            None => {
                self.calls.push(CallRequest { id: String::new(), name: String::new(), args: String::new() });
                self.calls.len() - 1
            }
        };
        if let Some(index) = given {
            self.places.insert(index, at);
        }
        let call = &mut self.calls[at];
        if let Some(id) = id {
            id.clone_into(&mut call.id);
        }
        if let Some(name) = name {
            name.clone_into(&mut call.name);
        }
        let args = match &piece["function"]["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            // A server that sends them as an object.
            whole => whole.to_string(),
        };
        call.args.push_str(&args);
        let name = call.name.clone();
        say(Chunk::Call { index: at, name, args });
    }

    fn calls(calls: Vec<CallRequest>) -> Result<Vec<CallRequest>> {
        let named = calls.into_iter().enumerate().map(|(i, mut call)| {
            if call.name.is_empty() {
                return Err(invalid("a tool call has no name"));
            }
            if call.id.is_empty() {
                call.id = format!("call_{i}");
            }
            Ok(call)
        });
        named.collect()
    }
}

impl Reader for Listener {
    fn take(&mut self, event: &Value, say: &mut (dyn FnMut(Chunk) + Send)) -> Result<Heard> {
        if !event["error"].is_null() {
            return Err(told_in_stream(&event["error"]));
        }
        if let Some(usage) = usage(&event["usage"]) {
            self.usage = Some(usage);
            self.usd = event["usage"]["cost"].as_f64();
        }
        let choice = &event["choices"][0];
        if !choice["error"].is_null() {
            return Err(told_in_stream(&choice["error"]));
        }
        let delta = &choice["delta"];
        self.take_reasoning(delta, say);
        match &delta["content"] {
            Value::String(text) if !text.is_empty() => self.speak(text, say),
            // A server that sends its content in parts.
            Value::Array(parts) => {
                for part in parts {
                    if let Some(text) = text(&part["text"]) {
                        self.speak(text, say);
                    }
                    for thought in part["thinking"].as_array().into_iter().flatten() {
                        self.think(thought["text"].as_str().unwrap_or_default(), say);
                    }
                }
            }
            _ => {}
        }
        if let Some(text) = text(&delta["refusal"]) {
            self.speak(text, say);
        }
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            self.take_call(piece, say);
        }
        if let Some(reason) = text(&choice["finish_reason"]) {
            self.ended = Some(reason.to_owned());
        }
        Ok(match (&self.ended, &self.usage) {
            (None, _) => Heard::Part,
            (Some(_), _) => Heard::Usable,
        })
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn finish(self: Box<Self>) -> Result<Answer> {
        let ended = self.ended.ok_or_else(|| closed("no finish_reason"))?;
        let mut answer = Answer { usage: self.usage, usd: self.usd, ..Answer::default() };
        if !self.reasoning.is_empty() || !self.fields.is_empty() {
            let item = (!self.fields.is_empty()).then(|| json!({ "type": FIELDS, "fields": self.fields }));
            answer.said.push(Said::Reasoning { text: self.reasoning, item });
        }
        if !self.text.is_empty() {
            answer.said.push(Said::text(self.text));
        }
        answer.ended = match ended.as_str() {
            "length" | "max_tokens" | "model_length" => Ended::CutShort("max_output_tokens".into()),
            "content_filter" | "sensitive" => Ended::CutShort("content_filter".into()),
            "error" | "network_error" | "abort" | "insufficient_system_resource" => {
                let said = format!("the model stopped early ({ended})");
                return Err(told_in_stream(&json!({ "message": said, "code": "server_error" })));
            }
            _ => Ended::Whole,
        };
        // What the model did not finish asking for is not done.
        if answer.ended == Ended::Whole {
            answer.said.extend(Listener::calls(self.calls)?.into_iter().map(Said::Call));
        }
        Ok(answer)
    }
}

/// Pieces of the same detail come one after the other: texts are joined, everything else is the newest.
fn join_detail(all: &mut Vec<Value>, piece: &Value) {
    let same = |it: &&mut Value| it["type"] == piece["type"] && it["index"] == piece["index"];
    let Some(open) = all.last_mut().filter(same) else {
        all.push(piece.clone());
        return;
    };
    for (key, value) in piece.as_object().into_iter().flatten() {
        match (open.get_mut(key), value) {
            (Some(Value::String(before)), Value::String(more))
                if ["text", "summary", "data"].contains(&key.as_str()) =>
            {
                before.push_str(more);
            }
            (_, Value::Null) => {}
            _ => open[key] = value.clone(),
        }
    }
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

fn usage(it: &Value) -> Option<Usage> {
    Some(Usage {
        input: count(&it["prompt_tokens"])?,
        cached: count(&it["prompt_tokens_details"]["cached_tokens"])
            .or_else(|| count(&it["prompt_cache_hit_tokens"]))
            .unwrap_or(0),
        cache_written: count(&it["prompt_tokens_details"]["cache_write_tokens"]).unwrap_or(0),
        output: count(&it["completion_tokens"]).unwrap_or(0),
        reasoning: count(&it["completion_tokens_details"]["reasoning_tokens"]).unwrap_or(0),
    })
}
