//! The Provider trait: takes a request, streams the parts of the answer and returns the whole answer. It never runs a
//! tool.

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
use retry::Patience;

// Dialects: how a request is written, and how the events of an answer are read.
mod anthropic; // Messages
mod chat; // Chat Completions
mod dialect; // what the three have in common
mod responses; // Responses

// The connection.
pub(crate) mod endpoint; // where requests go, and with which key
mod http; // the client, addresses, headers
mod listing; // the models that a server lists
mod refusal; // what a server's no means
pub(crate) mod retry; // when to give up waiting, when to try again
mod server; // a dialect at an endpoint: what most Providers are
pub(crate) mod stream; // bytes → events → an answer

// The available Providers.
pub(crate) mod choose; // which Provider, from flags, configuration, environment and local servers
pub(crate) mod device_login; // sign in on another device, and renew the token
pub mod demo; // the one that is always there
pub(crate) mod models; // what is known of models: windows, efforts, prices
pub(crate) mod preset; // the usual servers, as data
pub(crate) mod record; // what a Provider said, written down as a script
pub mod script; // a model that says what a file tells it to
mod setup; // which Providers there are

pub use choose::{ProviderSelection, Providers};
pub use device_login::Issuer;
pub use dialect::Dialect;
pub use listing::Listed;
pub use models::{ModelInfo, known_at};
pub use preset::PRESETS;
pub use stream::{MAX_EVENT, hear};

/// A request to a model.
#[derive(Debug, Clone)]
pub struct Request {
    /// The Provider's name.
    pub provider: String,
    /// The model's name at its Provider.
    pub model: String,
    /// The wanted effort; `None` leaves it to the server.
    pub effort: Option<String>,
    /// The fixed instructions, the same for every workspace and Turn.
    pub instructions: Arc<str>,
    /// The context documents, the same for the whole Session.
    pub context: String,
    /// The tools that the model may call, sorted by name.
    pub tools: Arc<[ToolSpec]>,
    /// The conversation, oldest first; every call has its result.
    pub items: Vec<Item>,
    /// The store that holds the images of prompts and results.
    pub blobs: Blobs,
    /// Requests with the same key share a cached prefix.
    pub cache_key: String,
}

impl Request {
    /// Returns the bytes of an image, or a text that replaces it: the blob is missing, or the model cannot see images.
    fn image(&self, image: &Attachment, facts: &ModelInfo) -> Result<Vec<u8>, String> {
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
    pub parts: Vec<AnswerPart>,
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

/// Why a request returned no whole answer.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The error to show.
    pub error: Error,
    /// Part of the answer was already shown, so a new try would be visible to the user.
    pub after_content: bool,
    /// How long the Provider asked to wait before the next try.
    pub retry_after: Option<Duration>,
    /// Usage that the Provider reported before the failure.
    pub usage: Option<Usage>,
}

impl AnswerPart {
    /// A text that is said for nothing in particular.
    pub fn text(text: String) -> AnswerPart {
        AnswerPart::Text { text, phase: None }
    }
}

impl Answer {
    /// Returns the text of the answer, without the reasoning.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            AnswerPart::Text { text, .. } => Some(text.as_str()),
            AnswerPart::Reasoning { .. } | AnswerPart::Call(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// Returns the calls of the answer.
    pub fn calls(&self) -> impl Iterator<Item = &CallRequest> {
        self.parts.iter().filter_map(|part| if let AnswerPart::Call(call) = part { Some(call) } else { None })
    }

    /// Removes the calls of an incomplete answer: their arguments may be cut off, so they must not run.
    fn drop_calls(&mut self) {
        self.parts.retain(|part| !matches!(part, AnswerPart::Call(_)));
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { error, after_content: false, retry_after: None, usage: None }
    }
}

/// A service that answers requests, such as a model server or a script.
pub trait Provider: Send + Sync {
    /// Returns the window, price and abilities of one of its models.
    fn facts(&self, model: &str) -> ModelInfo {
        ModelInfo::of(model, "", None)
    }

    /// Returns the time limits and the number of tries for its requests.
    fn patience(&self) -> Patience {
        Patience::default()
    }

    /// Returns the body that would be sent, as JSON. A Provider without a server describes the request instead.
    fn body(&self, request: &Request) -> Value {
        let items: Vec<String> = request.items.iter().map(|item| format!("{:?}", item.piece())).collect();
        serde_json::json!({
            "model": request.model, "instructions": request.instructions, "context": request.context,
            "tools": request.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), "items": items,
        })
    }

    /// Sends the request and calls `on_chunk` with each part of the answer. Dropping the future cancels the request.
    fn answer<'a>(
        &'a self,
        request: &'a Request,
        on_chunk: &'a mut (dyn FnMut(Chunk) + Send),
    ) -> BoxFuture<'a, Result<Answer, Failure>>;
}

/// Parses the arguments of a call into a JSON object. Other text is preserved under `_raw`, so that an error can show
/// it to the model.
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

/// Reads a token count; any other value counts as not reported.
fn count(value: &Value) -> Option<u64> {
    value.as_u64().filter(|tokens| *tokens < 1 << 40)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidResponse, message, Remedy::any_of([Remedy::Retry { after_s: None }, Remedy::CheckEndpoint]))
}
