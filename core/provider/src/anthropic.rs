//! The Messages dialect: signed reasoning is sent back unchanged, and the cached prefix is marked.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::dialect::{Base64, Reader, StreamProgress, pieces, plain};
use super::models::{Effort, ModelInfo, Thinking};
use super::parameters::plainly_named;
use super::refusal::{closed, told_in_stream};
use super::{Answer, AnswerPart, CallRequest, Chunk, Ended, Request, args_object, count, invalid};
use conversation::history::Piece;
use protocol::error::Result;
use protocol::event::{Arguments, Attachment, Usage};

/// The longest answer where the model's limit is unknown, tokens.
const MAX_TOKENS: u64 = 32_000;
/// In place of a temperature that the API does not take.
const LOWER_TEMPERATURE: f64 = 0.7;
/// The largest reasoning budget, tokens.
const MAX_BUDGET: u64 = 32_000;

/// The body of a request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    system: Vec<Block<'a>>,
    messages: Vec<Message<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingField>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Cow<'a, Arguments>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Output<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    /// Reasoning with its signature, exactly as the server returned it.
    #[serde(untagged)]
    Given(Cow<'a, Value>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "base64")]
struct Source {
    media_type: String,
    data: Base64,
}

/// Marks the end of a prefix that the server caches.
#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Cow<'a, Value>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ThinkingField {
    Adaptive { display: &'static str },
    Enabled { budget_tokens: u64 },
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

pub(super) fn body<'a>(request: &'a Request, facts: &ModelInfo) -> Body<'a> {
    // Input and output share the window. Compaction starts at 85 % of it, so the rest is left for the answer.
    let room = facts.working_window().map_or(u64::MAX, |window| (window * 15 / 100).max(1));
    let max_tokens = facts.max_output.unwrap_or(MAX_TOKENS).min(room);
    let mut messages = messages(request, facts);
    mark(&mut messages);
    // Instructions are the same everywhere and the context is the same for a Session, so each is cached separately.
    let system = [&*request.instructions, &*request.context].into_iter().filter(|text| !text.trim().is_empty());
    let system = system.map(|text| Block::Text { text: text.into(), cache_control: Some(CacheControl::Ephemeral) });
    let tools = request.tools.iter().map(|tool| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: plainly_named(&tool.parameters),
    });
    let adaptive = Some(ThinkingField::Adaptive { display: "summarized" });
    let (thinking, output_config) = match (facts.effort(request.effort.as_deref()), facts.thinking) {
        (_, Thinking::Never) | (None, Thinking::Budget | Thinking::Wished) => (None, None),
        // The model reasons in any case; the field only makes the reasoning visible.
        (None, Thinking::Always) => (adaptive, None),
        // The server rejects reasoning while tool calls are open unless the answer began with reasoning.
        (Some(_), Thinking::Budget) if calls_without_thinking(&messages) => (None, None),
        (Some(effort), Thinking::Budget) => {
            (budget(effort, max_tokens).map(|budget_tokens| ThinkingField::Enabled { budget_tokens }), None)
        }
        (Some(effort), Thinking::Wished) if effort == Effort::None.name() => (None, None),
        (Some(effort), Thinking::Wished | Thinking::Always) => (adaptive, Some(OutputConfig { effort })),
    };
    // The API takes 0 to 1, has 1 by itself, and lets a model that reasons have no other.
    let is_free = thinking.is_none() && facts.thinking != Thinking::Always;
    let temperature = facts
        .temperature(request.temperature.filter(|_| is_free))
        .map(|it| if it > 1.0 { LOWER_TEMPERATURE } else { it });
    Body {
        model: &request.model,
        max_tokens,
        system: system.collect(),
        messages,
        stream: true,
        tools: tools.collect(),
        thinking,
        output_config,
        temperature,
    }
}

/// Whether the last answer calls tools and does not begin with reasoning.
fn calls_without_thinking(messages: &[Message<'_>]) -> bool {
    let last = messages.iter().rfind(|message| message.role == Role::Assistant);
    last.is_some_and(|Message { content, .. }| {
        content.iter().any(|block| matches!(block, Block::ToolUse { .. }))
            && !matches!(content.first(), Some(Block::Given(_)))
    })
}

/// Returns the reasoning budget for an effort in tokens, less than the longest answer. `None` for the effort `none`.
fn budget(effort: &str, max_tokens: u64) -> Option<u64> {
    let wished = match effort {
        "none" => return None,
        "minimal" | "low" => 4_096,
        "medium" => 12_000,
        "high" => 24_000,
        _ => MAX_BUDGET,
    };
    Some(wished.min(max_tokens / 4 * 3)).filter(|budget| *budget >= 1_024)
}

/// Marks the end of this request and the end of the previous one. A server finds a cached prefix by its mark, and one
/// answer may add more blocks than the server searches back.
fn mark(messages: &mut [Message<'_>]) {
    let users = messages.iter_mut().rev().filter(|message| message.role == Role::User);
    for block in users.take(2).filter_map(|message| message.content.last_mut()) {
        match block {
            Block::Text { cache_control, .. }
            | Block::Image { cache_control, .. }
            | Block::ToolResult { cache_control, .. } => *cache_control = Some(CacheControl::Ephemeral),
            Block::ToolUse { .. } | Block::Given(_) => {}
        }
    }
}

/// Builds the messages. Roles must alternate, so adjacent items of one role share a message. Results come first in
/// theirs, right after their calls.
fn messages<'a>(request: &'a Request, facts: &ModelInfo) -> Vec<Message<'a>> {
    let mut messages = Vec::new();
    for piece in pieces(request) {
        let (role, block) = match piece {
            Piece::User { text, images } => {
                let blocks = blocks(text, &images, request, facts);
                blocks.into_iter().for_each(|block| add(&mut messages, Role::User, block));
                continue;
            }
            // The dialect has no other role between two answers.
            Piece::Note { text } => (Role::User, Block::Text { text, cache_control: None }),
            Piece::Assistant { text, .. } => (Role::Assistant, Block::Text { text, cache_control: None }),
            Piece::Reasoning { item, .. } if is_thinking(&item) => (Role::Assistant, Block::Given(item)),
            // The reasoning comes from the same model, but in another dialect.
            Piece::Reasoning { .. } => continue,
            Piece::Call { id, name, args } => {
                (Role::Assistant, Block::ToolUse { id: plain(id), name: plain(name), input: args })
            }
            Piece::Result { id, output, images, is_error } => {
                let content = if images.is_empty() {
                    Output::Text(output)
                } else {
                    Output::Blocks(blocks(output, &images, request, facts))
                };
                (Role::User, Block::ToolResult { tool_use_id: plain(id), content, is_error, cache_control: None })
            }
        };
        add(&mut messages, role, block);
    }
    messages
}

/// Adds a block to the last message if the role is the same, else to a new message.
fn add<'a>(messages: &mut Vec<Message<'a>>, role: Role, block: Block<'a>) {
    match messages.last_mut().filter(|message| message.role == role) {
        Some(message) => message.content.push(block),
        None => messages.push(Message { role, content: vec![block] }),
    }
}

fn is_thinking(item: &Value) -> bool {
    item["type"] == "thinking" || item["type"] == "redacted_thinking"
}

fn blocks<'a>(text: Cow<'a, str>, images: &[Attachment], request: &Request, facts: &ModelInfo) -> Vec<Block<'a>> {
    let text = Some(text).filter(|text| !text.trim().is_empty());
    let images = images.iter().map(|image| match request.image(image, facts) {
        Ok(bytes) => {
            let source = Source { media_type: image.media_type.clone(), data: Base64(bytes) };
            Block::Image { source, cache_control: None }
        }
        Err(said) => Block::Text { text: said.into(), cache_control: None },
    });
    text.map(|text| Block::Text { text, cache_control: None }).into_iter().chain(images).collect()
}

/// Reads an answer, block by block.
#[derive(Default)]
pub(super) struct AnswerDecoder {
    blocks: BTreeMap<u64, OpenBlock>,
    input: Counts,
    ended: Option<Ended>,
}

/// A content block as it opened, and the deltas added to it.
struct OpenBlock {
    opened: Value,
    text: String,
    signature: String,
    /// How many calls came before this block.
    call: usize,
}

/// The latest token counts. A later event contains only those that changed.
#[derive(Default)]
struct Counts {
    fresh: Option<u64>,
    read: Option<u64>,
    written: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

impl Counts {
    fn take(&mut self, usage: &Value) {
        let newer = |slot: &mut Option<u64>, value: &Value| *slot = count(value).or(*slot);
        newer(&mut self.fresh, &usage["input_tokens"]);
        newer(&mut self.read, &usage["cache_read_input_tokens"]);
        newer(&mut self.written, &usage["cache_creation_input_tokens"]);
        newer(&mut self.output, &usage["output_tokens"]);
        newer(&mut self.thinking, &usage["output_tokens_details"]["thinking_tokens"]);
    }

    /// This API reports input without cached tokens; pixir's usage includes them.
    fn usage(&self) -> Option<Usage> {
        let (read, written) = (self.read.unwrap_or(0), self.written.unwrap_or(0));
        Some(Usage {
            input: self.fresh?.saturating_add(read).saturating_add(written),
            cached: read,
            cache_written: written,
            output: self.output?,
            reasoning: self.thinking.unwrap_or(0),
        })
    }
}

impl AnswerDecoder {
    fn open(&mut self, event: &Value, say: &mut (dyn FnMut(Chunk) + Send)) -> Result<()> {
        let (index, block) = (index(event)?, &event["content_block"]);
        let call = self.blocks.values().filter(|b| b.opened["type"] == "tool_use").count();
        // A text block may open with its first characters.
        let text = block["text"].as_str().or_else(|| block["thinking"].as_str()).unwrap_or_default().to_owned();
        let signature = block["signature"].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("text") if !text.is_empty() => say(Chunk::Text(text.clone())),
            Some("thinking") if !text.is_empty() => say(Chunk::Reasoning(text.clone())),
            Some("tool_use") => {
                let name = block["name"].as_str().unwrap_or_default().to_owned();
                say(Chunk::Call { index: call, name, args: String::new() });
            }
            Some(_) => {}
            None => return Err(invalid("a block of the answer has no type")),
        }
        match self.blocks.get(&index) {
            Some(before) if before.opened != *block => {
                Err(invalid(format!("block {index} of the answer was sent twice with different content")))
            }
            Some(_) => Ok(()),
            None => {
                self.blocks.insert(index, OpenBlock { opened: block.clone(), text, signature, call });
                Ok(())
            }
        }
    }

    fn add(&mut self, event: &Value, say: &mut (dyn FnMut(Chunk) + Send)) -> Result<()> {
        let (index, delta) = (index(event)?, &event["delta"]);
        let Some(block) = self.blocks.get_mut(&index) else {
            return Err(invalid(format!("block {index} of the answer has a delta but no start")));
        };
        let piece =
            |key: &str| delta[key].as_str().ok_or_else(|| invalid(format!("a delta of the answer has no {key}")));
        match delta["type"].as_str().unwrap_or_default() {
            "text_delta" => {
                let text = piece("text")?;
                block.text.push_str(text);
                say(Chunk::Text(text.to_owned()));
            }
            "thinking_delta" => {
                let text = piece("thinking")?;
                block.text.push_str(text);
                say(Chunk::Reasoning(text.to_owned()));
            }
            "signature_delta" => block.signature.push_str(piece("signature")?),
            "input_json_delta" => {
                let args = piece("partial_json")?;
                block.text.push_str(args);
                let name = block.opened["name"].as_str().unwrap_or_default().to_owned();
                say(Chunk::Call { index: block.call, name, args: args.to_owned() });
            }
            // Citations, and kinds of delta added in the future.
            _ => {}
        }
        Ok(())
    }
}

fn index(event: &Value) -> Result<u64> {
    event["index"].as_u64().ok_or_else(|| invalid("an event of the answer has no block index"))
}

impl Reader for AnswerDecoder {
    fn take(&mut self, event: &Value, say: &mut (dyn FnMut(Chunk) + Send)) -> Result<StreamProgress> {
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => self.input.take(&event["message"]["usage"]),
            "content_block_start" => self.open(event, say)?,
            "content_block_delta" => self.add(event, say)?,
            "message_delta" => {
                self.input.take(&event["usage"]);
                if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                    self.ended = Some(match reason {
                        "max_tokens" | "length" => Ended::CutShort("max_output_tokens".into()),
                        "refusal" | "model_context_window_exceeded" => Ended::CutShort(reason.to_owned()),
                        "pause_turn" => Ended::Paused,
                        // `end_turn`, `tool_use`, `stop_sequence`, and other reasons for a normal end.
                        _ => Ended::Whole,
                    });
                    return Ok(StreamProgress::Usable);
                }
            }
            "message_stop" => return Ok(StreamProgress::All),
            "error" => return Err(told_in_stream(&event["error"])),
            // Pings, ends of blocks, and kinds of event added in the future.
            _ => {}
        }
        Ok(StreamProgress::Part)
    }

    fn usage(&self) -> Option<Usage> {
        self.input.usage()
    }

    fn finish(self: Box<Self>) -> Result<Answer> {
        let ended = self.ended.ok_or_else(|| closed("no stop_reason"))?;
        let mut answer = Answer { usage: self.input.usage(), ended, ..Answer::default() };
        for (index, block) in self.blocks {
            take_block(&mut answer, index, block)?;
        }
        if matches!(answer.ended, Ended::CutShort(_)) {
            answer.drop_calls();
        }
        Ok(answer)
    }
}

fn take_block(answer: &mut Answer, index: u64, block: OpenBlock) -> Result<()> {
    let OpenBlock { opened, text, signature, .. } = block;
    match opened["type"].as_str().unwrap_or_default() {
        "text" if !text.is_empty() => answer.parts.push(AnswerPart::text(text)),
        "thinking" => {
            // The server rejects reasoning that is sent back without a signature.
            let item = (!signature.is_empty())
                .then(|| json!({ "type": "thinking", "thinking": text, "signature": signature }));
            if item.is_some() || !text.is_empty() {
                answer.parts.push(AnswerPart::Reasoning { text, item });
            }
        }
        "redacted_thinking" => answer.parts.push(AnswerPart::Reasoning { text: String::new(), item: Some(opened) }),
        "tool_use" => {
            let name = opened["name"].as_str().unwrap_or_default().to_owned();
            if name.is_empty() {
                return Err(invalid("a tool call has no name"));
            }
            let id = opened["id"]
                .as_str()
                .filter(|id| !id.is_empty())
                .map_or_else(|| format!("call_{index}"), str::to_owned);
            // A server that sends no deltas opens the block with its full content.
            let whole = opened["input"].as_object().filter(|input| text.is_empty() && !input.is_empty());
            let args = whole.map_or_else(|| args_object(&text), |input| Value::Object(input.clone()));
            answer.parts.push(AnswerPart::Call(CallRequest { id, name, args }));
        }
        _ => {}
    }
    Ok(())
}
