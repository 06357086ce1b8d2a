//! The Responses dialect: stateless, with encrypted reasoning kept and replayed to the same model.

use serde_json::{Value, json};

use super::http::{Endpoint, Events, closed, told_in_stream};
use super::{Answer, CallRequest, Chunk, Failure, Provider, Request, invalid};
use crate::error::Error;
use crate::event::Usage;
use crate::history::Piece;
use crate::tools::BoxFuture;

/// A server that speaks Responses.
#[derive(Debug)]
pub struct Responses {
    endpoint: Endpoint,
}

impl Responses {
    /// The dialect at this server.
    pub fn new(endpoint: Endpoint) -> Responses {
        Responses { endpoint }
    }
}

impl Provider for Responses {
    fn body(&self, request: &Request) -> Value {
        body(request)
    }

    fn answer<'a>(
        &'a self,
        request: &'a Request,
        on_chunk: &'a mut (dyn FnMut(Chunk) + Send),
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let mut events = self.endpoint.post("/responses", &body(request)).await?;
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

pub(crate) fn body(request: &Request) -> Value {
    let mut input = Vec::with_capacity(request.items.len() + 1);
    if !request.context.is_empty() {
        input.push(json!({ "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": request.context }] }));
    }
    input.extend(request.items.iter().filter_map(|item| item_json(item.piece(), request)));
    let tools: Vec<Value> = request
        .tools
        .iter()
        .map(|t| json!({ "type": "function", "name": t.name, "description": t.description, "parameters": t.parameters, "strict": false }))
        .collect();
    let mut body = json!({
        "model": request.model,
        "instructions": request.instructions,
        "input": input,
        "tools": tools,
        "parallel_tool_calls": true,
        "store": false,
        "stream": true,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": request.cache_key,
    });
    if let Some(effort) = &request.effort {
        body["reasoning"] = json!({ "effort": effort, "summary": "auto" });
    }
    body
}

fn item_json(piece: Piece<'_>, request: &Request) -> Option<Value> {
    Some(match piece {
        Piece::User(text) => {
            json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] })
        }
        Piece::Assistant(text) => {
            json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] })
        }
        Piece::Reasoning { model: thinker, item } if thinker == *request.model && item["type"] == "reasoning" => {
            item.into_owned()
        }
        Piece::Reasoning { .. } => return None,
        Piece::Call { id, name, args } => {
            json!({ "type": "function_call", "call_id": id, "name": name, "arguments": args })
        }
        Piece::Result { id, output, images } if images.is_empty() => {
            json!({ "type": "function_call_output", "call_id": id, "output": output })
        }
        Piece::Result { id, output, images } => {
            let mut parts = vec![json!({ "type": "input_text", "text": output })];
            parts.extend(images.iter().map(|image| match request.image(image) {
                Ok(url) => json!({ "type": "input_image", "image_url": url }),
                Err(said) => json!({ "type": "input_text", "text": said }),
            }));
            json!({ "type": "function_call_output", "call_id": id, "output": parts })
        }
    })
}

async fn listen(events: &mut Events, on_chunk: &mut (dyn FnMut(Chunk) + Send)) -> Result<Answer, Error> {
    let mut answer = Answer::default();
    let mut summary_shown = false;
    while let Some(event) = events.next().await? {
        let delta = || event["delta"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap_or_default() {
            "response.output_text.delta" | "response.refusal.delta" => {
                let text = delta();
                answer.text.push_str(&text);
                on_chunk(Chunk::Text(text));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                summary_shown = true;
                on_chunk(Chunk::Reasoning(delta()));
            }
            "response.reasoning_summary_part.added" if summary_shown => on_chunk(Chunk::Reasoning("\n\n".into())),
            "response.output_item.done" => take_item(&mut answer, &event["item"])?,
            "response.completed" => {
                answer.usage = usage(&event["response"]["usage"]);
                return Ok(answer);
            }
            "response.incomplete" => {
                answer.usage = usage(&event["response"]["usage"]);
                let reason = event["response"]["incomplete_details"]["reason"].as_str().unwrap_or("unknown");
                answer.cut_short = Some(reason.to_owned());
                // What the model did not finish asking for is not done.
                answer.calls.clear();
                return Ok(answer);
            }
            "response.failed" => return Err(told_in_stream(&event["response"]["error"])),
            "error" => return Err(told_in_stream(if event["error"].is_object() { &event["error"] } else { &event })),
            _ if event["type"].is_null() && event["error"].is_object() => return Err(told_in_stream(&event["error"])),
            // Everything else is about parts that `output_item.done` holds whole.
            _ => {}
        }
    }
    Err(closed("no response.completed event"))
}

fn take_item(answer: &mut Answer, item: &Value) -> Result<(), Error> {
    match item["type"].as_str().unwrap_or_default() {
        "function_call" => {
            let field = |key: &str| item[key].as_str().map(str::to_owned);
            let (Some(id), Some(name)) = (field("call_id"), field("name")) else {
                return Err(invalid("a function call has no call_id or no name"));
            };
            answer.calls.push(CallRequest { id, name, args: field("arguments").unwrap_or_default() });
        }
        "reasoning" => {
            let texts = |key: &str| {
                item[key]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|part| part["text"].as_str())
                    .collect::<Vec<_>>()
                    .join("\n\n")
            };
            let shown = Some(texts("summary")).filter(|t| !t.is_empty()).unwrap_or_else(|| texts("content"));
            // Without its encrypted part the item cannot be replayed to a server that stores nothing.
            let replay = item["encrypted_content"].is_string().then(|| item.clone());
            answer.reasoning.push((shown, replay));
        }
        "message" if answer.text.is_empty() => {
            // A server that sends no deltas.
            let parts = item["content"].as_array().into_iter().flatten();
            answer.text = parts.filter_map(|part| part["text"].as_str().or_else(|| part["refusal"].as_str())).collect();
        }
        _ => {}
    }
    Ok(())
}

fn usage(it: &Value) -> Option<Usage> {
    it.is_object().then(|| Usage {
        input: it["input_tokens"].as_u64().unwrap_or(0),
        cached: it["input_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0),
        output: it["output_tokens"].as_u64().unwrap_or(0),
        reasoning: it["output_tokens_details"]["reasoning_tokens"].as_u64().unwrap_or(0),
    })
}
