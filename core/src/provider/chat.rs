//! The Chat Completions dialect: OpenAI, and every local server that speaks it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::http::{Endpoint, Events, closed, told_in_stream};
use super::{Answer, CallRequest, Chunk, Failure, Provider, Request, invalid};
use crate::error::Error;
use crate::event::Usage;
use crate::history::Piece;
use crate::tools::BoxFuture;

/// A server that speaks Chat Completions.
#[derive(Debug)]
pub struct Chat {
    endpoint: Endpoint,
}

impl Chat {
    /// The dialect at this server.
    pub fn new(endpoint: Endpoint) -> Chat {
        Chat { endpoint }
    }
}

impl Provider for Chat {
    fn body(&self, request: &Request) -> Value {
        body(request)
    }

    fn answer<'a>(
        &'a self,
        request: &'a Request,
        on_chunk: &'a mut (dyn FnMut(Chunk) + Send),
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let mut events = self.endpoint.post("/chat/completions", &body(request)).await?;
            let mut shown = false;
            let outcome = listen(&mut events, &mut |chunk| {
                shown = true;
                on_chunk(chunk);
            })
            .await;
            outcome.map_err(|error| Failure { error, after_content: shown, retry_after: None })
        })
    }
}

fn body(request: &Request) -> Value {
    let mut body = json!({
        "model": request.model,
        "messages": messages(request),
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|t| json!({ "type": "function", "function": { "name": t.name, "description": t.description, "parameters": t.parameters } }))
            .collect();
        body["tools"] = Value::Array(tools);
    }
    if let Some(effort) = &request.effort {
        body["reasoning_effort"] = json!(effort);
    }
    body
}

/// Calls join the assistant message before them; many servers take only one system message, at the start.
fn messages(request: &Request) -> Vec<Value> {
    let system = if request.context.is_empty() {
        request.instructions.to_owned()
    } else {
        format!("{}\n{}", request.instructions, request.context)
    };
    let mut messages = vec![json!({ "role": "system", "content": system })];
    // A tool's message is text alone; its images follow as the person's, after the last result of the answer.
    let mut images: Vec<Value> = Vec::new();
    for item in &request.items {
        let piece = item.piece();
        if !images.is_empty() && !matches!(piece, Piece::Result { .. }) {
            messages.push(json!({ "role": "user", "content": std::mem::take(&mut images) }));
        }
        match piece {
            Piece::User(text) => messages.push(json!({ "role": "user", "content": text })),
            Piece::Assistant(text) => messages.push(json!({ "role": "assistant", "content": text })),
            // This dialect has no place for it.
            Piece::Reasoning { .. } => {}
            Piece::Call { id, name, args } => {
                let call = json!({ "id": id, "type": "function", "function": { "name": name, "arguments": args } });
                let open = messages.last_mut().filter(|m| m["role"] == "assistant");
                match open {
                    Some(message) if message["tool_calls"].is_array() => {
                        message["tool_calls"].as_array_mut().expect("just seen").push(call)
                    }
                    Some(message) => message["tool_calls"] = json!([call]),
                    None => messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [call] })),
                }
            }
            Piece::Result { id, output, images: seen } => {
                messages.push(json!({ "role": "tool", "tool_call_id": id, "content": output }));
                for image in seen.iter() {
                    images.push(json!({ "type": "text", "text": format!("The image {}:", image.path) }));
                    images.push(match request.image(image) {
                        Ok(url) => json!({ "type": "image_url", "image_url": { "url": url } }),
                        Err(said) => json!({ "type": "text", "text": said }),
                    });
                }
            }
        }
    }
    if !images.is_empty() {
        messages.push(json!({ "role": "user", "content": images }));
    }
    messages
}

async fn listen(events: &mut Events, on_chunk: &mut (dyn FnMut(Chunk) + Send)) -> Result<Answer, Error> {
    let mut answer = Answer::default();
    let mut reasoning = String::new();
    let mut calls: BTreeMap<u64, CallRequest> = BTreeMap::new();
    let mut finish: Option<String> = None;
    while let Some(event) = events.next().await? {
        if event["error"].is_object() {
            return Err(told_in_stream(&event["error"]));
        }
        if let Some(usage) = usage(&event["usage"]) {
            answer.usage = Some(usage);
        }
        let choice = &event["choices"][0];
        let delta = &choice["delta"];
        if let Some(text) = delta["content"].as_str().or_else(|| delta["refusal"].as_str()).filter(|t| !t.is_empty()) {
            answer.text.push_str(text);
            on_chunk(Chunk::Text(text.to_owned()));
        }
        if let Some(text) =
            delta["reasoning_content"].as_str().or_else(|| delta["reasoning"].as_str()).filter(|t| !t.is_empty())
        {
            reasoning.push_str(text);
            on_chunk(Chunk::Reasoning(text.to_owned()));
        }
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            take_call(&mut calls, piece);
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            finish = Some(reason.to_owned());
        }
    }
    if !reasoning.is_empty() {
        answer.reasoning.push((reasoning, None));
    }
    match finish.as_deref() {
        None => return Err(closed("no finish_reason")),
        // What the model did not finish asking for is not done.
        Some(reason @ ("length" | "content_filter")) => {
            answer.cut_short = Some(if reason == "length" { "max_output_tokens".into() } else { reason.into() })
        }
        Some(_) => answer.calls = whole_calls(calls)?,
    }
    Ok(answer)
}

/// The first piece of a call has its id and name, the rest only arguments; some servers leave the index out.
fn take_call(calls: &mut BTreeMap<u64, CallRequest>, piece: &Value) {
    let given = piece["index"].as_u64();
    let id = piece["id"].as_str().filter(|id| !id.is_empty());
    let last = calls.keys().next_back().copied();
    let index = match (given, id, last) {
        (Some(index), _, _) => index,
        (None, Some(id), Some(last)) if calls[&last].id != id => last + 1,
        (None, _, Some(last)) => last,
        (None, _, None) => 0,
    };
    let call = calls.entry(index).or_insert_with(|| CallRequest {
        id: String::new(),
        name: String::new(),
        args: String::new(),
    });
    if let Some(id) = id {
        id.clone_into(&mut call.id);
    }
    if let Some(name) = piece["function"]["name"].as_str().filter(|n| !n.is_empty()) {
        name.clone_into(&mut call.name);
    }
    match &piece["function"]["arguments"] {
        Value::String(text) => call.args.push_str(text),
        Value::Null => {}
        // A server that sends them as an object.
        whole => call.args = whole.to_string(),
    }
}

fn whole_calls(calls: BTreeMap<u64, CallRequest>) -> Result<Vec<CallRequest>, Error> {
    calls
        .into_values()
        .enumerate()
        .map(|(i, mut call)| {
            if call.name.is_empty() {
                return Err(invalid("a tool call has no name"));
            }
            if call.id.is_empty() {
                call.id = format!("call_{i}");
            }
            Ok(call)
        })
        .collect()
}

fn usage(it: &Value) -> Option<Usage> {
    it.is_object().then(|| Usage {
        input: it["prompt_tokens"].as_u64().unwrap_or(0),
        cached: it["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0),
        output: it["completion_tokens"].as_u64().unwrap_or(0),
        reasoning: it["completion_tokens_details"]["reasoning_tokens"].as_u64().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Item;
    use std::sync::Arc;

    #[test]
    fn calls_of_one_answer_are_one_message_and_each_has_its_result_after_it() {
        let call =
            |id: &str| Item::made(Piece::Call { id: id.to_owned().into(), name: "read".into(), args: "{}".into() });
        let result =
            |id: &str| Item::made(Piece::Result { id: id.to_owned().into(), output: "x".into(), images: (&[]).into() });
        let request = Request {
            model: "m".into(),
            effort: None,
            instructions: "I",
            context: String::new(),
            tools: Arc::new([]),
            items: vec![
                Item::user("u".into()),
                Item::made(Piece::Assistant("a".into())),
                call("1"),
                call("2"),
                result("1"),
                result("2"),
                call("3"),
                result("3"),
            ],
            blobs: crate::blobs::Blobs::new(std::path::PathBuf::new()),
            cache_key: String::new(),
        };
        let roles: Vec<_> = messages(&request)
            .iter()
            .map(|m| {
                (m["role"].as_str().unwrap_or_default().to_owned(), m["tool_calls"].as_array().map_or(0, Vec::len))
            })
            .collect();
        let row = |role: &str, calls| (role.to_owned(), calls);
        assert_eq!(
            roles,
            [
                row("system", 0),
                row("user", 0),
                row("assistant", 2),
                row("tool", 0),
                row("tool", 0),
                row("assistant", 1),
                row("tool", 0)
            ]
        );
    }

    #[test]
    fn a_server_that_leaves_the_index_out_is_understood() {
        let mut calls = BTreeMap::new();
        take_call(&mut calls, &json!({"id": "a", "function": {"name": "read", "arguments": "{\"path\":"}}));
        take_call(&mut calls, &json!({"function": {"arguments": "\"x\"}"}}));
        take_call(&mut calls, &json!({"id": "b", "function": {"name": "ls", "arguments": {}}}));
        let whole = whole_calls(calls).expect("whole");
        assert_eq!(
            whole.iter().map(|c| (c.id.as_str(), c.args.as_str())).collect::<Vec<_>>(),
            [("a", "{\"path\":\"x\"}"), ("b", "{}")]
        );
    }
}
