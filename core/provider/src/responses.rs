//! The Responses dialect: stateless, with encrypted reasoning that is stored and sent back to the same model.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::dialect::{AsText, DataUrl, Reader, StreamProgress, pieces, plain};
use super::models::ModelInfo;
use super::preset::Quirks;
use super::refusal::{closed, told_in_stream};
use super::{Answer, AnswerPart, CallRequest, Chunk, Ended, Request, args_object, count, invalid};
use conversation::history::Piece;
use protocol::error::Result;
use protocol::event::{Attachment, Usage};

/// The body of a request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    instructions: &'a str,
    input: Vec<Input<'a>>,
    tools: Vec<Tool<'a>>,
    parallel_tool_calls: bool,
    store: bool,
    stream: bool,
    prompt_cache_key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
}

/// An item of the conversation.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Input<'a> {
    Message {
        role: &'static str,
        content: Vec<Part<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<Cow<'a, str>>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: AsText<'a>,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Output<'a>,
    },
    /// Reasoning, exactly as the server sent it.
    #[serde(untagged)]
    Given(Cow<'a, Value>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: DataUrl },
    OutputText { text: Cow<'a, str> },
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    strict: bool,
}

#[derive(Serialize)]
struct Reasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

pub(super) fn body<'a>(request: &'a Request, facts: &ModelInfo, quirks: &Quirks) -> Body<'a> {
    let context = Some(&request.context).filter(|context| !context.is_empty());
    let context = context.map(|context| message("developer", vec![Part::InputText { text: context.into() }]));
    let conversation = pieces(request).into_iter().filter_map(|piece| item(piece, request, facts));
    let tools = request.tools.iter().map(|tool| Tool {
        r#type: "function",
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.parameters,
        strict: false,
    });
    let effort = facts.effort(request.effort.as_deref());
    let summary = (facts.thinks() == Some(true) && quirks.reasoning_summaries).then_some("auto");
    Body {
        model: &request.model,
        instructions: &request.instructions,
        input: context.into_iter().chain(conversation).collect(),
        tools: tools.collect(),
        parallel_tool_calls: true,
        store: false,
        stream: true,
        prompt_cache_key: &request.cache_key,
        // A model without reasoning rejects a request for reasoning content.
        include: (facts.thinks() != Some(false)).then_some(["reasoning.encrypted_content"]),
        temperature: facts.temperature(request.temperature),
        reasoning: (effort.is_some() || summary.is_some()).then_some(Reasoning { effort, summary }),
    }
}

fn item<'a>(piece: Piece<'a>, request: &Request, facts: &ModelInfo) -> Option<Input<'a>> {
    Some(match piece {
        Piece::User { text, images } => message("user", parts(text, &images, request, facts)),
        Piece::Note { text } => message("developer", vec![Part::InputText { text }]),
        Piece::Assistant { text, phase } => {
            Input::Message { role: "assistant", content: vec![Part::OutputText { text }], phase }
        }
        Piece::Reasoning { item, .. } if item["type"] == "reasoning" => Input::Given(item),
        // The reasoning comes from the same model, but in another dialect.
        Piece::Reasoning { .. } => return None,
        Piece::Call { id, name, args } => {
            Input::FunctionCall { call_id: plain(id), name: plain(name), arguments: AsText(args) }
        }
        Piece::Result { id, output, images, .. } => {
            let output = if images.is_empty() {
                Output::Text(output)
            } else {
                Output::Parts(parts(output, &images, request, facts))
            };
            Input::FunctionCallOutput { call_id: plain(id), output }
        }
    })
}

fn message<'a>(role: &'static str, content: Vec<Part<'a>>) -> Input<'a> {
    Input::Message { role, content, phase: None }
}

fn parts<'a>(text: Cow<'a, str>, images: &[Attachment], request: &Request, facts: &ModelInfo) -> Vec<Part<'a>> {
    let text = Some(text).filter(|text| images.is_empty() || !text.trim().is_empty());
    let images = images.iter().map(|image| match request.image(image, facts) {
        Ok(bytes) => Part::InputImage { image_url: DataUrl::new(image, bytes) },
        Err(said) => Part::InputText { text: said.into() },
    });
    text.map(|text| Part::InputText { text }).into_iter().chain(images).collect()
}

/// Reads an answer. Items may be interleaved and closed in any order; each keeps its index.
#[derive(Default)]
pub(super) struct AnswerDecoder {
    items: BTreeMap<usize, OpenItem>,
    /// Indexes by item id, for events without an index.
    places: BTreeMap<String, usize>,
    summary_shown: bool,
    /// The model refused.
    refused: bool,
    usage: Option<Usage>,
    ended: Option<Ended>,
}

/// An output item, as far as it has arrived.
#[derive(Default)]
struct OpenItem {
    text: String,
    /// The tool's name, and how many calls opened before this one.
    call: Option<(String, usize)>,
    done: Option<Value>,
}

impl AnswerDecoder {
    /// Returns the index of the item that an event refers to. Some servers leave `output_index` out.
    fn place(&mut self, event: &Value) -> usize {
        let id = event["item_id"].as_str().or_else(|| event["item"]["id"].as_str()).filter(|id| !id.is_empty());
        // The id is more reliable: some servers give every item the same index.
        let given = event["output_index"].as_u64().and_then(|n| usize::try_from(n).ok());
        if let Some(known) = id.and_then(|id| self.places.get(id)) {
            // An id that reappears at another index after its item was closed names a new item.
            let is_closed = self.items.get(known).is_some_and(|part| part.done.is_some());
            if !(is_closed && given.is_some_and(|at| at != *known)) {
                return *known;
            }
        }
        let given = given.filter(|at| id.is_none() || !self.places.values().any(|taken| taken == at));
        if let Some(index) = given {
            if let Some(id) = id {
                self.places.insert(id.to_owned(), index);
            }
            return index;
        }
        let next = self.items.keys().next_back().map_or(0, |last| last + 1);
        match id {
            Some(id) => *self.places.entry(id.to_owned()).or_insert(next),
            // With neither id nor index: an opening event begins a new item; any other refers to the last item, if its
            // kind fits.
            None if event["type"] == "response.output_item.added" => next,
            None => {
                let other = event["item"]["type"].as_str().is_some_and(|kind| kind != "message");
                let fits = |part: &OpenItem| part.done.is_none() && (!other || part.text.is_empty());
                self.items.iter().next_back().filter(|(_, part)| fits(part)).map_or(next, |(last, _)| *last)
            }
        }
    }

    fn part(&mut self, event: &Value) -> (usize, &mut OpenItem) {
        let place = self.place(event);
        (place, self.items.entry(place).or_default())
    }

    fn close(&mut self, event: &Value) -> Result<()> {
        let item = &event["item"];
        let (place, part) = self.part(event);
        match &part.done {
            Some(before) if before != item => {
                Err(invalid(format!("item {place} of the answer was sent twice with different content")))
            }
            Some(_) => Ok(()),
            None => {
                part.done = Some(item.clone());
                Ok(())
            }
        }
    }

    fn end(&mut self, response: &Value, ended: Ended) -> Result<()> {
        self.usage = usage(&response["usage"]);
        self.ended = Some(ended);
        // Items without a closing event of their own are in the final response, if the server fills it.
        for (at, item) in response["output"].as_array().into_iter().flatten().enumerate() {
            let next = self.items.keys().next_back().map_or(0, |last| last + 1);
            let place = match item["id"].as_str().map(|id| self.places.get(id)) {
                Some(Some(known)) => *known,
                _ if self.items.values().any(|part| part.done.as_ref() == Some(item)) => continue,
                _ if self.items.get(&at).is_some_and(|part| part.done.is_some()) => next,
                _ => at,
            };
            self.items.entry(place).or_default().done.get_or_insert_with(|| item.clone());
        }
        let open = self.items.values().find(|part| part.done.is_none() && part.call.is_some());
        match (open.and_then(|part| part.call.as_ref()), &self.ended) {
            (Some((name, _)), Some(Ended::Whole)) => Err(invalid(format!("the call of {name} was never completed"))),
            _ => Ok(()),
        }
    }
}

impl Reader for AnswerDecoder {
    fn take(&mut self, event: &Value, say: &mut (dyn FnMut(Chunk) + Send)) -> Result<StreamProgress> {
        let delta = || event["delta"].as_str().ok_or_else(|| invalid("a delta of the answer has no text"));
        match event["type"].as_str().unwrap_or_default() {
            "response.output_item.added" => {
                let before = self.items.values().filter(|part| part.call.is_some()).count();
                // Other items have names too, such as calls that the server itself makes.
                let item = &event["item"];
                let name = item["name"].as_str().filter(|_| item["type"] == "function_call").map(str::to_owned);
                self.part(event).1.call = name.clone().map(|name| (name, before));
                if let Some(name) = name {
                    say(Chunk::Call { index: before, name, args: String::new() });
                }
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                let text = delta()?;
                self.refused |= event["type"] == "response.refusal.delta";
                self.part(event).1.text.push_str(text);
                say(Chunk::Text(text.to_owned()));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.summary_shown = true;
                say(Chunk::Reasoning(delta()?.to_owned()));
            }
            "response.reasoning_summary_part.added" if self.summary_shown => say(Chunk::Reasoning("\n\n".into())),
            "response.function_call_arguments.delta" => {
                let args = delta()?.to_owned();
                let (name, index) = self.part(event).1.call.clone().unwrap_or_default();
                say(Chunk::Call { index, name, args });
            }
            "response.output_item.done" => self.close(event)?,
            // Some servers send only this event, with the status inside.
            "response.completed" if event["response"]["status"] == "incomplete" => {
                self.end(&event["response"], incomplete(&event["response"]))?;
                return Ok(StreamProgress::All);
            }
            "response.completed" => {
                self.end(&event["response"], Ended::Whole)?;
                return Ok(StreamProgress::All);
            }
            "response.incomplete" => {
                self.end(&event["response"], incomplete(&event["response"]))?;
                return Ok(StreamProgress::All);
            }
            "response.failed" => return Err(told_in_stream(&event["response"]["error"])),
            "error" => return Err(told_in_stream(&event["error"])),
            // All other events are about parts that `output_item.done` contains in full.
            _ => {}
        }
        Ok(StreamProgress::Part)
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn finish(self: Box<Self>) -> Result<Answer> {
        let ended = self.ended.ok_or_else(|| closed("no response.completed event"))?;
        let mut answer = Answer { usage: self.usage, ended, ..Answer::default() };
        let has_refusal = |item: &Value| {
            item["content"].as_array().is_some_and(|parts| parts.iter().any(|part| part["type"] == "refusal"))
        };
        let refused = self.refused || self.items.values().filter_map(|part| part.done.as_ref()).any(has_refusal);
        for part in self.items.into_values() {
            match part.done {
                Some(item) => take_item(&mut answer, &item, part.text)?,
                None if !part.text.is_empty() => answer.parts.push(AnswerPart::text(part.text)),
                None => {}
            }
        }
        if refused && answer.ended == Ended::Whole {
            answer.ended = Ended::CutShort("refusal".to_owned());
        }
        if answer.ended != Ended::Whole {
            answer.drop_calls();
        }
        Ok(answer)
    }
}

/// Returns why the server calls a response incomplete.
fn incomplete(response: &Value) -> Ended {
    Ended::CutShort(response["incomplete_details"]["reason"].as_str().unwrap_or("unknown").to_owned())
}

fn take_item(answer: &mut Answer, item: &Value, streamed: String) -> Result<()> {
    let texts = |key: &str, join: &str| {
        let parts = item[key].as_array().into_iter().flatten();
        let texts = parts.filter_map(|part| part["text"].as_str().or_else(|| part["refusal"].as_str()));
        texts.collect::<Vec<_>>().join(join)
    };
    match item["type"].as_str().unwrap_or_default() {
        "function_call" => {
            let field = |key: &str| item[key].as_str().filter(|it| !it.is_empty()).map(str::to_owned);
            let (Some(id), Some(name)) = (field("call_id").or_else(|| field("id")), field("name")) else {
                return Err(invalid("a function call has no call_id or no name"));
            };
            let args = args_object(item["arguments"].as_str().unwrap_or_default());
            answer.parts.push(AnswerPart::Call(CallRequest { id, name, args }));
        }
        "reasoning" => {
            let text =
                Some(texts("summary", "\n\n")).filter(|t| !t.is_empty()).unwrap_or_else(|| texts("content", "\n\n"));
            // Without its encrypted content, a stateless server cannot take the item back.
            let item = item["encrypted_content"].is_string().then(|| item.clone());
            answer.parts.push(AnswerPart::Reasoning { text, item });
        }
        "message" => {
            // The server sent no deltas.
            let text = if streamed.is_empty() { texts("content", "") } else { streamed };
            if !text.is_empty() {
                let phase = item["phase"].as_str().map(str::to_owned);
                answer.parts.push(AnswerPart::Text { text, phase });
            }
        }
        _ => {}
    }
    Ok(())
}

fn usage(it: &Value) -> Option<Usage> {
    Some(Usage {
        input: count(&it["input_tokens"])?,
        cached: count(&it["input_tokens_details"]["cached_tokens"]).unwrap_or(0),
        cache_written: count(&it["input_tokens_details"]["cache_write_tokens"]).unwrap_or(0),
        output: count(&it["output_tokens"])?,
        reasoning: count(&it["output_tokens_details"]["reasoning_tokens"]).unwrap_or(0),
    })
}
