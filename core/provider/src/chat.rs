//! The Chat Completions dialect, which OpenAI and most local servers speak.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::dialect::{AsText, DataUrl, Reader, StreamProgress, pieces, plain};
use super::models::ModelInfo;
use super::parameters::singly_typed;
use super::preset::{EffortField, Quirks};
use super::refusal::{closed, told_in_stream};
use super::think_tags::{Split, ThinkTags};
use super::{Answer, AnswerPart, CallRequest, Chunk, Ended, Request, args_object, count, invalid};
use conversation::history::Piece;
use protocol::error::Result;
use protocol::event::{Attachment, Usage};

mod opaque; // fields of calls that the server wants back

use opaque::{Extras, Pending, take_of_message};

/// The body of a request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageField>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Reasoning {
    effort: &'static str,
}

#[derive(Serialize)]
struct UsageField {
    include: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Message<'a> {
    System { content: Content<'a> },
    User { content: Content<'a> },
    Assistant(Assistant<'a>),
    Tool { tool_call_id: Cow<'a, str>, content: Content<'a> },
}

#[derive(Default, Serialize)]
struct Assistant<'a> {
    /// `None` is sent as `null`: in a message that only calls tools.
    content: Option<Content<'a>>,
    /// The reasoning, in the fields in which the server returned it.
    #[serde(flatten)]
    fields: BTreeMap<String, Cow<'a, Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Joined<'a>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text {
        text: Joined<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
}

#[derive(Serialize)]
struct ImageUrl {
    url: DataUrl,
}

/// Marks the end of a prefix that the server caches.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tool<'a> {
    Function { function: Function<'a> },
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Cow<'a, Value>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: CalledFunction<'a>,
    #[serde(flatten)]
    extras: Map<String, Value>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    arguments: AsText<'a>,
    #[serde(flatten)]
    extras: Map<String, Value>,
}

/// Texts that are sent as one string.
struct Joined<'a> {
    texts: Vec<Cow<'a, str>>,
    between: &'static str,
}

impl fmt::Display for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, text) in self.texts.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { self.between })?;
            f.write_str(text)?;
        }
        Ok(())
    }
}

impl Serialize for Joined<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self.texts.as_slice() {
            [text] => serializer.serialize_str(text),
            _ => serializer.collect_str(self),
        }
    }
}

impl<'a> From<Cow<'a, str>> for Joined<'a> {
    fn from(text: Cow<'a, str>) -> Joined<'a> {
        Joined { texts: vec![text], between: "\n\n" }
    }
}

impl<'a> Part<'a> {
    fn text(text: impl Into<Joined<'a>>) -> Part<'a> {
        Part::Text { text: text.into(), cache_control: None }
    }
}

impl<'a> Content<'a> {
    fn text(text: Cow<'a, str>) -> Content<'a> {
        Content::Text(text.into())
    }

    fn add(&mut self, text: Cow<'a, str>) {
        match self {
            Content::Text(joined) => joined.texts.push(text),
            Content::Parts(parts) => parts.push(Part::text(text)),
        }
    }

    fn into_parts(self) -> Vec<Part<'a>> {
        match self {
            Content::Text(text) => vec![Part::text(text)],
            Content::Parts(parts) => parts,
        }
    }
}

pub(super) fn body<'a>(request: &'a Request, facts: &ModelInfo, quirks: &Quirks) -> Body<'a> {
    let mut messages = messages(request, facts, quirks);
    if quirks.cache_breakpoints && request.model.contains("claude") {
        mark(&mut messages);
    }
    let tools = request.tools.iter().map(|tool| Tool::Function {
        function: Function {
            name: &tool.name,
            description: &tool.description,
            parameters: singly_typed(&tool.parameters),
        },
    });
    let effort = facts.effort(request.effort.as_deref());
    Body {
        model: &request.model,
        messages,
        stream: true,
        stream_options: quirks.asks_for_usage.then_some(StreamOptions { include_usage: true }),
        tools: tools.collect(),
        reasoning_effort: effort.filter(|_| quirks.effort == EffortField::ReasoningEffort),
        reasoning: effort.filter(|_| quirks.effort == EffortField::Reasoning).map(|effort| Reasoning { effort }),
        temperature: facts.temperature(request.temperature),
        prompt_cache_key: quirks.cache_key.then_some(&*request.cache_key),
        usage: quirks.usage_with_cost.then_some(UsageField { include: true }),
    }
}

/// Marks the ends of the cached prefix: after the instructions, and after the last message.
fn mark(messages: &mut [Message<'_>]) {
    let last = messages.len() - 1;
    for at in [0, last] {
        let content = match &mut messages[at] {
            Message::System { content } | Message::User { content } | Message::Tool { content, .. } => Some(content),
            Message::Assistant(message) => message.content.as_mut(),
        };
        let Some(content) = content else { continue };
        if let Content::Text(Joined { texts, between }) = content {
            let text = Joined { texts: std::mem::take(texts), between };
            *content = Content::Parts(vec![Part::Text { text, cache_control: Some(CacheControl::Ephemeral) }]);
        }
    }
}

/// Builds the messages. Calls join the assistant message before them; many servers accept only one system message, at
/// the start.
fn messages<'a>(request: &'a Request, facts: &ModelInfo, quirks: &Quirks) -> Vec<Message<'a>> {
    let context = Some(&*request.context).filter(|context| !context.is_empty());
    let texts = [Some(&*request.instructions), context].into_iter().flatten().map(Cow::Borrowed).collect();
    let mut messages = vec![Message::System { content: Content::Text(Joined { texts, between: "\n" }) }];
    let wants_reasoning = wants_reasoning(&request.model);
    // A tool message holds only text. The images of results follow in a user message after the last result of the
    // answer.
    let mut images: Vec<Part<'_>> = Vec::new();
    let mut pending = Pending::default();
    for piece in pieces(request) {
        if !images.is_empty() && !matches!(piece, Piece::Result { .. }) {
            messages.push(Message::User { content: Content::Parts(std::mem::take(&mut images)) });
        }
        match piece {
            // Many chat templates refuse any other role between two answers.
            Piece::Note { text } => add_to_user(&mut messages, text),
            Piece::User { text, images: shown } => {
                add_to_user(&mut messages, text);
                if !shown.is_empty()
                    && let Some(Message::User { content }) = messages.pop()
                {
                    let mut parts = content.into_parts();
                    parts.extend(shown.iter().flat_map(|image| seen(image, request, facts)));
                    messages.push(Message::User { content: Content::Parts(parts) });
                }
            }
            Piece::Assistant { text, .. } => match &mut assistant(&mut messages).content {
                Some(content) => content.add(text),
                content => *content = Some(Content::text(text)),
            },
            Piece::Reasoning { item, .. } if item["type"] == FIELDS => {
                pending.begin(&item);
                if quirks.gives_reasoning_back {
                    assistant(&mut messages).fields.extend(fields(item));
                }
            }
            Piece::Reasoning { .. } => {}
            Piece::Call { id, name, args } => {
                let kept = pending.of(&id);
                let (mut extras, of_function) = kept.unwrap_or_default();
                let function = CalledFunction { name: plain(name), arguments: AsText(args), extras: of_function };
                let message = assistant(&mut messages);
                if wants_reasoning && message.fields.get("reasoning_content").is_none_or(|it| it.is_null()) {
                    message.fields.insert("reasoning_content".to_owned(), Cow::Owned(json!("")));
                }
                if quirks.signs_calls && extras.is_empty() && message.tool_calls.is_empty() {
                    extras = unsigned();
                }
                message.tool_calls.push(Call { id: pending.id(id), r#type: "function", function, extras });
            }
            Piece::Result { id, output, images: looked_at, .. } => {
                messages.push(Message::Tool { tool_call_id: pending.id(id), content: Content::text(output) });
                images.extend(looked_at.iter().flat_map(|image| seen(image, request, facts)));
            }
        }
    }
    if !images.is_empty() {
        messages.push(Message::User { content: Content::Parts(images) });
    }
    messages
}

/// Returns the fields of an item that stores a server's reasoning.
fn fields(item: Cow<'_, Value>) -> Vec<(String, Cow<'_, Value>)> {
    match item {
        Cow::Borrowed(item) => {
            let fields = item["fields"].as_object().into_iter().flatten();
            fields.map(|(field, value)| (field.clone(), Cow::Borrowed(value))).collect()
        }
        Cow::Owned(mut item) => match item["fields"].take() {
            Value::Object(fields) => fields.into_iter().map(|(field, value)| (field, Cow::Owned(value))).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Vec::new(),
        },
    }
}

/// What the documentation of Gemini has for a call that another model made.
fn unsigned() -> Map<String, Value> {
    let sign = json!({ "google": { "thought_signature": "skip_thought_signature_validator" } });
    Map::from_iter([("extra_content".to_owned(), sign)])
}

/// Returns an image, preceded by its name as text.
fn seen<'a>(image: &Attachment, request: &Request, facts: &ModelInfo) -> [Part<'a>; 2] {
    let name = Part::text(Cow::Owned(format!("The image {}:", image.path)));
    let image = match request.image(image, facts) {
        Ok(bytes) => Part::ImageUrl { image_url: ImageUrl { url: DataUrl::new(image, bytes) } },
        Err(said) => Part::text(Cow::Owned(said)),
    };
    [name, image]
}

/// Whether the model's servers require a reasoning field with every call, even where there was no reasoning.
fn wants_reasoning(model: &str) -> bool {
    let bare = model.rsplit('/').next().unwrap_or(model);
    ["kimi-", "deepseek-"].iter().any(|family| bare.starts_with(family))
}

/// Adds a text to the user's message. Many chat templates require alternating roles.
fn add_to_user<'a>(messages: &mut Vec<Message<'a>>, text: Cow<'a, str>) {
    match messages.last_mut() {
        Some(Message::User { content }) => content.add(text),
        _ => messages.push(Message::User { content: Content::text(text) }),
    }
}

/// Returns the last message if it is the assistant's, else appends an assistant message.
fn assistant<'m, 'a>(messages: &'m mut Vec<Message<'a>>) -> &'m mut Assistant<'a> {
    if !matches!(messages.last(), Some(Message::Assistant(_))) {
        messages.push(Message::Assistant(Assistant::default()));
    }
    match messages.last_mut() {
        Some(Message::Assistant(message)) => message,
        Some(Message::System { .. } | Message::User { .. } | Message::Tool { .. }) | None => {
            unreachable!("the last message is the assistant's: it was pushed above")
        }
    }
}

/// The longest name of a tool that is put together from pieces, bytes.
const MAX_NAME: usize = 256;

/// The kind of item that stores a server's reasoning, field by field.
const FIELDS: &str = "chat_fields";

/// Reads an answer. Calls may be interleaved; each part names its call or continues the last one.
#[derive(Default)]
pub(super) struct AnswerDecoder {
    text: String,
    /// Whether the text so far belongs to reasoning that the model writes into its answer.
    tags: ThinkTags,
    /// The model refused, in the field that the dialect has for that.
    refused: bool,
    reasoning: String,
    /// The reasoning under the server's field names, to be sent back.
    fields: Map<String, Value>,
    /// The calls, in the order in which they began.
    calls: Vec<OpenCall>,
    /// The call that each index refers to now.
    places: BTreeMap<u64, usize>,
    usage: Option<Usage>,
    usd: Option<f64>,
    ended: Option<String>,
}

/// A call, as far as it has arrived.
#[derive(Default)]
struct OpenCall {
    id: String,
    name: String,
    args: String,
    extras: Extras,
}

impl AnswerDecoder {
    fn take_reasoning(&mut self, delta: &Value, say: &mut (dyn FnMut(Chunk) + Send)) {
        // Servers that send both fields repeat the same text in them.
        let named = ["reasoning_content", "reasoning"].into_iter().find_map(|name| Some((name, text(&delta[name])?)));
        if let Some((name, text)) = named {
            self.think(text, say);
            if let Value::String(all) = self.fields.entry(name).or_insert_with(|| json!("")) {
                all.push_str(text);
            }
        }
        // Encrypted or signed parts must be sent back unchanged.
        if let Some(details) = delta["reasoning_details"].as_array()
            && let Value::Array(all) = self.fields.entry("reasoning_details").or_insert_with(|| json!([]))
        {
            details.iter().for_each(|detail| join_detail(all, detail));
        }
        take_of_message(&mut self.fields, delta);
    }

    fn think(&mut self, text: &str, say: &mut (dyn FnMut(Chunk) + Send)) {
        self.reasoning.push_str(text);
        say(Chunk::Reasoning(text.to_owned()));
    }

    fn speak(&mut self, text: &str, say: &mut (dyn FnMut(Chunk) + Send)) {
        let Split { reasoning, text } = self.tags.split(text);
        self.say(&reasoning, &text, say);
    }

    /// Releases text that waited for the rest of a tag.
    fn flush(&mut self, say: &mut (dyn FnMut(Chunk) + Send)) {
        let Split { reasoning, text } = self.tags.rest();
        self.say(&reasoning, &text, say);
    }

    fn say(&mut self, reasoning: &str, text: &str, say: &mut (dyn FnMut(Chunk) + Send)) {
        if !reasoning.is_empty() {
            self.think(reasoning, say);
        }
        if !text.is_empty() {
            self.text.push_str(text);
            say(Chunk::Text(text.to_owned()));
        }
    }

    /// Takes in a part of a call. The first part has the id and name, the others only arguments. Some servers leave the
    /// index out, and some give every call the same one.
    fn take_call(&mut self, piece: &Value, say: &mut (dyn FnMut(Chunk) + Send)) {
        let (id, name) = (text(&piece["id"]), text(&piece["function"]["name"]));
        let given = piece["index"].as_u64();
        let known = match given {
            Some(index) => self.places.get(&index).copied(),
            None => self.calls.len().checked_sub(1),
        };
        // Only a text that ends like an object is parsed: some servers repeat the name with every part.
        let is_whole = |call: &OpenCall| {
            call.args.trim_end().ends_with('}') && serde_json::from_str::<Map<String, Value>>(&call.args).is_ok()
        };
        let has_other_id = |call: &OpenCall| id.is_some_and(|id| !call.id.is_empty() && call.id != id);
        // A repeated name continues the call, unless the id differs or the arguments are already complete.
        let is_other = |call: &OpenCall| name.is_some() && (has_other_id(call) || (id.is_none() && is_whole(call)));
        let at = match known.filter(|at| !is_other(&self.calls[*at])) {
            Some(at) => at,
            None => {
                self.calls.push(OpenCall::default());
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
            // A name may come in pieces; a server that repeats it sends the whole name again.
            if name.starts_with(&call.name) {
                name.clone_into(&mut call.name);
            } else if call.name.len() + name.len() <= MAX_NAME {
                call.name.push_str(name);
            }
        }
        call.extras.take(piece);
        let args = match &piece["function"]["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            // The server sends arguments as an object instead of text.
            whole => whole.to_string(),
        };
        call.args.push_str(&args);
        let name = call.name.clone();
        say(Chunk::Call { index: at, name, args });
    }

    /// The calls, and what is kept of them for the next request.
    fn calls(calls: Vec<OpenCall>) -> Result<(Vec<CallRequest>, Vec<Value>)> {
        let (mut named, mut kept) = (Vec::new(), Vec::new());
        for (i, OpenCall { id, name, args, extras }) in calls.into_iter().enumerate() {
            if name.is_empty() {
                return Err(invalid("a tool call has no name"));
            }
            let id = if id.is_empty() { format!("call_{i}") } else { id };
            kept.extend(extras.kept(&id));
            named.push(CallRequest { id, name, args: args_object(&args) });
        }
        Ok((named, kept))
    }
}

impl Reader for AnswerDecoder {
    fn take(&mut self, event: &Value, say: &mut (dyn FnMut(Chunk) + Send)) -> Result<StreamProgress> {
        if !event["error"].is_null() {
            return Err(told_in_stream(&event["error"]));
        }
        if let Some(usage) = usage(&event["usage"]) {
            self.usage = Some(usage);
            self.usd = event["usage"]["cost"].as_f64();
        }
        // Only the first choice is the answer.
        let choices = event["choices"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(choice) = choices.iter().find(|it| it["index"].as_u64().unwrap_or(0) == 0) else {
            return Ok(if self.ended.is_some() { StreamProgress::Usable } else { StreamProgress::Part });
        };
        if !choice["error"].is_null() {
            return Err(told_in_stream(&choice["error"]));
        }
        // Some servers send the whole message in one chunk; others repeat it after its deltas.
        let has_begun = !self.text.is_empty() || !self.calls.is_empty() || self.tags.is_waiting();
        let has_delta = choice["delta"].as_object().is_some_and(|delta| !delta.is_empty());
        let delta = if has_delta || has_begun { &choice["delta"] } else { &choice["message"] };
        self.take_reasoning(delta, say);
        match &delta["content"] {
            Value::String(text) if !text.is_empty() => self.speak(text, say),
            // The server sends the content as a list of parts.
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
            self.refused = true;
            self.speak(text, say);
        }
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            self.take_call(piece, say);
        }
        if let Some(reason) = text(&choice["finish_reason"]) {
            self.flush(say);
            self.ended = Some(reason.to_owned());
        }
        Ok(match (&self.ended, &self.usage) {
            (None, _) => StreamProgress::Part,
            (Some(_), _) => StreamProgress::Usable,
        })
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn finish(self: Box<Self>) -> Result<Answer> {
        let ended = self.ended.clone().ok_or_else(|| closed("no finish_reason"))?;
        let mut answer = Answer { usage: self.usage, usd: self.usd, ..Answer::default() };
        let mut this = *self;
        // A template that opens the tag itself leaves only its end to the model.
        if this.reasoning.is_empty()
            && let Some((reasoning, text)) = this.text.split_once(ThinkTags::CLOSE)
            && !reasoning.contains(ThinkTags::OPEN)
        {
            (this.reasoning, this.text) = (reasoning.to_owned(), text.trim_start().to_owned());
        }
        answer.ended = match ended.as_str() {
            "length" | "max_tokens" | "model_length" => Ended::CutShort("max_output_tokens".into()),
            "content_filter" | "sensitive" => Ended::CutShort("content_filter".into()),
            "refusal" => Ended::CutShort("refusal".into()),
            _ if this.refused => Ended::CutShort("refusal".into()),
            "error" | "network_error" | "abort" | "insufficient_system_resource" => {
                let said = format!("the model stopped early ({ended})");
                return Err(told_in_stream(&json!({ "message": said, "code": "server_error" })));
            }
            _ => Ended::Whole,
        };
        // The calls of an incomplete answer may be cut off, so they must not run.
        let (calls, kept) =
            if answer.ended == Ended::Whole { AnswerDecoder::calls(this.calls)? } else { Default::default() };
        if !this.reasoning.is_empty() || !this.fields.is_empty() || !kept.is_empty() {
            let is_kept = !this.fields.is_empty() || !kept.is_empty();
            let mut item = json!({ "type": FIELDS, "fields": this.fields });
            if !kept.is_empty() {
                item["calls"] = Value::Array(kept);
            }
            answer.parts.push(AnswerPart::Reasoning { text: this.reasoning, item: is_kept.then_some(item) });
        }
        if !this.text.is_empty() {
            answer.parts.push(AnswerPart::text(this.text));
        }
        answer.parts.extend(calls.into_iter().map(AnswerPart::Call));
        Ok(answer)
    }
}

/// Adds a part of a reasoning detail. Parts of one detail are consecutive: texts are joined, other fields are replaced.
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
