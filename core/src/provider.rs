//! Who answers: one trait, a request in, a stream of chunks and one assembled answer out. A Provider owns no agency.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::history::Item;
use crate::protocol::error::{Code, Error};
use crate::protocol::event::{Attachment, Usage};
use crate::protocol::remedy::Remedy;
use crate::protocol::tool_spec::ToolSpec;
use crate::storage::blobs::Blobs;
use models::Facts;
use retry::Patience;

// Languages: how a request is written, how the events of an answer are read.
mod anthropic; // Messages
mod chat; // Chat Completions
mod dialect; // what the three have in common
mod responses; // Responses

// The wire.
pub mod endpoint; // where requests go, and with which key
mod refusal; // what a server's no means
pub mod retry; // when to give up waiting, when to try again
mod server; // a dialect at an endpoint: what most Providers are
pub mod stream; // bytes → events → an answer

// Who there is.
pub mod choose; // which Provider, from flags, configuration, environment and local servers
pub mod device_login; // sign in on another device, and renew the token
pub mod demo; // the one that is always there
pub mod models; // what is known of models: windows, efforts, prices
pub mod preset; // the usual servers, as data
pub mod record; // what a Provider said, written down as a script
pub mod script; // a model that says what a file tells it to
mod setup; // which Providers there are

pub use dialect::Dialect;

/// What a model is sent.
#[derive(Debug, Clone)]
pub struct Request {
    /// The Provider's name.
    pub provider: String,
    /// The model's name at its Provider.
    pub model: String,
    /// How hard it should think; without, as the server likes.
    pub effort: Option<String>,
    /// The same for every workspace and Turn.
    pub instructions: Arc<str>,
    /// The same for the whole Session.
    pub context: String,
    /// Sorted by name.
    pub tools: Arc<[ToolSpec]>,
    /// The conversation, oldest first; every call has its result.
    pub items: Vec<Item>,
    /// Where the images of results are.
    pub blobs: Blobs,
    /// Requests with the same key share a cached prefix.
    pub cache_key: String,
}

impl Request {
    /// The bytes of an image, or what is said in its place: it is not stored any more, or this model could not look at it.
    fn image(&self, image: &Attachment, facts: &Facts) -> Result<Vec<u8>, String> {
        if !facts.sees_images {
            return Err(format!("[the image {} is left out: this model does not accept images]", image.path));
        }
        self.blobs.get(&image.blob).map_err(|_| format!("[the image {} is no longer stored]", image.path))
    }
}

/// A piece of an answer, as it comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Chunk {
    /// More of the text.
    Text(String),
    /// More of the thinking that may be shown.
    Reasoning(String),
    /// More of a call's arguments.
    Call {
        /// Which call of the answer, from 0.
        index: usize,
        /// The tool.
        name: String,
        /// What is new of its arguments, JSON text.
        args: String,
    },
}

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// What it says and asks for, in order: some servers take it back only in that order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<AnswerPart>,
    /// What it took, if the Provider says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What it cost in US dollars, if the Provider says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// How it ended.
    #[serde(default)]
    pub ended: Ended,
}

/// A part of what an answer says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerPart {
    /// Thinking.
    Reasoning {
        /// What may be shown of it.
        text: String,
        /// The Provider's own item, to be given back to the same model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<Value>,
    },
    /// What it tells the person.
    Text {
        /// Markdown.
        text: String,
        /// What it is said for, where the server tells comment from answer; to be given back with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
    },
    /// A tool that it asks for.
    Call(CallRequest),
}

/// How an answer ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It is whole.
    #[default]
    Whole,
    /// The server took a break; the same request with what came so far goes on.
    Paused,
    /// It is not whole, and why: `max_output_tokens`, `content_filter`, `refusal`, …
    CutShort(String),
}

/// A tool that an answer asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallRequest {
    /// The Provider's id for it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its arguments, a JSON object; in a recorded script it is written as text.
    #[serde(with = "args_text")]
    #[schemars(with = "String")]
    pub args: Value,
}

/// Why there is no whole answer.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What went wrong.
    pub error: Error,
    /// Something of the answer was already shown; it cannot be asked for again without a person noticing.
    pub after_content: bool,
    /// How long the Provider asked to wait before the next try.
    pub retry_after: Option<Duration>,
    /// What was told of its cost before it failed.
    pub usage: Option<Usage>,
}

impl AnswerPart {
    /// A text that is said for nothing in particular.
    pub fn text(text: String) -> AnswerPart {
        AnswerPart::Text { text, phase: None }
    }
}

impl Answer {
    /// Its text, without the thinking.
    pub fn text(&self) -> String {
        let texts = self.said.iter().filter_map(|said| match said {
            AnswerPart::Text { text, .. } => Some(text.as_str()),
            AnswerPart::Reasoning { .. } | AnswerPart::Call(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// The tools that it asks for.
    pub fn calls(&self) -> impl Iterator<Item = &CallRequest> {
        self.said.iter().filter_map(|said| if let AnswerPart::Call(call) = said { Some(call) } else { None })
    }

    /// What the model did not finish asking for is not done.
    fn drop_calls(&mut self) {
        self.said.retain(|said| !matches!(said, AnswerPart::Call(_)));
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { error, after_content: false, retry_after: None, usage: None }
    }
}

/// Someone who answers. Implementors are the dialects, and whatever a test needs.
pub trait Provider: Send + Sync {
    /// What is known of one of its models.
    fn facts(&self, model: &str) -> Facts {
        Facts::of(model, "", None)
    }

    /// How long is waited for it, and how often something is tried.
    fn patience(&self) -> Patience {
        Patience::default()
    }

    /// What is sent, as JSON. A Provider that sends nothing says what it was given.
    fn body(&self, request: &Request) -> Value {
        let items: Vec<String> = request.items.iter().map(|item| format!("{:?}", item.piece())).collect();
        serde_json::json!({
            "model": request.model, "instructions": request.instructions, "context": request.context,
            "tools": request.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), "items": items,
        })
    }

    /// Sends the request; calls `on_chunk` with each piece as it comes. Dropping the future cancels it.
    fn answer<'a>(
        &'a self,
        request: &'a Request,
        on_chunk: &'a mut (dyn FnMut(Chunk) + Send),
    ) -> BoxFuture<'a, Result<Answer, Failure>>;
}

/// Arguments as a JSON object; what is none is kept under `_raw`, so that the model can be told and nothing is lost.
pub fn args_object(args: &str) -> Value {
    if args.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    match serde_json::from_str::<Value>(args) {
        Ok(value) if value.is_object() => value,
        Ok(_) | Err(_) => serde_json::json!({ "_raw": args }),
    }
}

/// Arguments in recorded scripts: JSON text, as servers send them.
mod args_text {
    use serde::{Deserialize, Deserializer, Serializer};
    use serde_json::Value;

    pub(super) fn serialize<S: Serializer>(args: &Value, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(args)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        String::deserialize(deserializer).map(|text| super::args_object(&text))
    }
}

/// A number of tokens that can be one; anything else is as good as not told.
fn count(value: &Value) -> Option<u64> {
    value.as_u64().filter(|tokens| *tokens < 1 << 40)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidResponse, message, Remedy::any_of([Remedy::Retry { after_s: None }, Remedy::CheckEndpoint]))
}
