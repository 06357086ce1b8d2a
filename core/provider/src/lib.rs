//! The Provider trait: it takes a request, streams the parts of the answer and returns the whole answer. A Provider
//! never runs a tool.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use conversation::history::{Item, Piece, json_len};
use protocol::error::{Code, Error};
use protocol::event::{Attachment, Usage};
use protocol::remedy::Remedy;
use protocol::tool_spec::ToolSpec;
use retry::Patience;
use storage::blobs::Blobs;

// Dialects: each writes requests and reads the events of answers.
mod anthropic; // the Messages API
mod chat; // the Chat Completions API
mod body; // the body of a request, written piece by piece
mod dialect; // the parts common to all dialects
mod responses; // the Responses API
mod think_tags; // reasoning that a model writes into its answer

// The connection.
pub mod gate; // requests at the same time, and pauses that all keep
pub mod endpoint; // base URL, key and headers of a server
pub mod budget; // limits on tokens and money
mod bounds; // the most of an answer that is accepted
mod halves; // characters that a server cut in two
mod once; // objects that name each field once
mod listing; // the list of models that a server returns
pub mod refusal; // a server's failures as errors
mod wait; // the wait that a server asks for
mod window; // the window that a server names when it refuses a request
mod repeats; // events that come twice
mod text_loop; // answers that repeat themselves without end
pub mod retry; // whether and when a failed request is tried again
mod rest; // the rest of a thread between two parts of an answer
mod server; // a dialect at an endpoint; most Providers are one
mod starting; // servers that still start
pub mod stream; // bytes → events → an answer

// The available Providers.
pub mod choose; // chooses the Provider from flags, configuration, environment and local servers
pub mod connect; // another Provider while pixir runs: a key, a local server, a sign-in
mod browser_login; // sign-in with a browser of this machine
mod copilot; // tokens of GitHub Copilot
pub mod device_login; // sign-in on another device, and token renewal
pub mod landing; // the page that ends a sign-in with a browser
pub mod sign_in; // how the Providers sign their users in
mod key_command; // a key that a command of the user prints
mod renewal; // a new secret in place of one that has expired or was refused
pub mod demo; // the built-in Provider, which needs no setup
pub mod models; // windows, efforts and prices of models
pub mod preset; // presets of the usual servers
pub mod record; // records answers as a script
pub mod script; // replays the answers in a script file
mod offered; // the models that the user can choose
mod parameters; // schemas of tools as single dialects take them
mod setup; // builds the available Providers
pub mod shared; // the Providers that all Sessions of a workspace use now

pub use body::RequestBody;
pub use choose::{ProviderSelection, Providers};
pub use connect::{Account, Connector, LocalServer, MAX_KEY, NewProvider, is_refused, key, provider_of};
pub use dialect::Dialect;
pub use listing::Listed;
pub use models::{ModelInfo, known_at};
pub use offered::{ModelOffer, Offered};
pub use preset::{Flow, PRESETS, preset};
pub use rest::rest_between_parts;
pub use sign_in::{Invitation, SignIn};
pub use starting::Waits;
pub use stream::{MAX_EVENT, hear};

/// A request to a model.
#[derive(Debug, Clone)]
pub struct Request {
    /// The Provider's name.
    pub provider: String,
    /// The model's name at its Provider.
    pub model: String,
    /// The requested effort; `None` means the server's default.
    pub effort: Option<String>,
    /// The requested temperature; `None` means the server's default.
    pub temperature: Option<f64>,
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
    /// The estimated tokens of the request, at four bytes each.
    pub fn estimated_tokens(&self) -> u64 {
        let items: usize = self.items.iter().map(|item| item.piece().len()).sum();
        self.fixed_tokens() + (items / 4) as u64
    }

    /// The estimated bytes of the request as it is sent, images included.
    pub fn estimated_bytes(&self) -> u64 {
        let images = |images: &[Attachment]| images.iter().map(|it| it.bytes.div_ceil(3) * 4).sum::<u64>();
        let items = self.items.iter().map(|item| match item.piece() {
            Piece::User { text, images: shown } => text.len() as u64 + images(&shown),
            Piece::Result { output, images: shown, .. } => output.len() as u64 + images(&shown),
            other => other.len() as u64,
        });
        self.fixed_tokens() * 4 + items.sum::<u64>()
    }

    /// The estimated tokens of what every request of the Session repeats.
    pub fn fixed_tokens(&self) -> u64 {
        fixed_tokens(&self.instructions, &self.context, &self.tools)
    }

    /// Returns the bytes of an image, or a text that replaces it: the blob is missing, or the model cannot see images.
    fn image(&self, image: &Attachment, facts: &ModelInfo) -> Result<Vec<u8>, String> {
        if !facts.sees_images {
            return Err(format!("[the image {} is left out: this model does not accept images]", image.path));
        }
        self.blobs.get(&image.blob).map_err(|_| format!("[the image {} is no longer stored]", image.path))
    }
}

/// A streamed part of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Chunk {
    /// Text to append to the answer.
    Text(String),
    /// Text to append to the displayable reasoning.
    Reasoning(String),
    /// The start of a call, or more of its arguments.
    Call {
        /// The position of the call among the answer's calls, from 0.
        index: usize,
        /// The tool's name.
        name: String,
        /// A fragment of JSON text, to append to the arguments. Empty when the call starts without arguments.
        args: String,
    },
}

/// A complete answer to one request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Reasoning, texts and calls in the server's order. Some servers accept them back only in that order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<AnswerPart>,
    /// The tokens of the request, if the Provider reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// pixir estimated the usage, because the Provider reports none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usage_estimated: bool,
    /// The cost of the request in US dollars, if the Provider reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// How the answer ended; `whole` if absent.
    #[serde(default)]
    pub ended: Ended,
}

/// One part of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerPart {
    /// Reasoning.
    Reasoning {
        /// The text that may be shown; empty if the Provider returns none.
        text: String,
        /// The Provider's own item, sent back unchanged to the same model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<Value>,
    },
    /// A message to the user.
    Text {
        /// The message, in Markdown.
        text: String,
        /// The purpose of the message, such as `commentary`, if the server distinguishes purposes; sent back with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
    },
    /// A call of a tool.
    Call(CallRequest),
}

/// How an answer ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The answer is complete.
    #[default]
    Whole,
    /// The server paused. The same request, extended by the answer so far, continues it.
    Paused,
    /// The answer is incomplete, with the server's reason: `max_output_tokens`, `content_filter`, `refusal`, …
    CutShort(String),
}

/// A call of a tool, as an answer contains it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallRequest {
    /// The Provider's id of the call.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, a JSON object. A recorded script contains them as JSON text.
    #[serde(with = "args_text")]
    #[schemars(with = "String")]
    pub args: Value,
}

/// Why a request returned no whole answer.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The error to show.
    pub error: Error,
    /// Part of the answer was already shown, so the user sees a retry.
    pub after_content: bool,
    /// An event of the answer was malformed; the same request may get a whole answer.
    pub malformed: bool,
    /// The Provider's requested wait before the next attempt.
    pub retry_after: Option<Duration>,
    /// Usage that the Provider reported before the failure.
    pub usage: Option<Usage>,
    /// pixir estimated the usage, because the Provider reports none.
    pub usage_estimated: bool,
}

impl AnswerPart {
    /// Creates a text without a phase.
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
        Failure {
            error,
            after_content: false,
            malformed: false,
            retry_after: None,
            usage: None,
            usage_estimated: false,
        }
    }
}

/// A service that answers requests, such as a model server or a script.
pub trait Provider: Send + Sync {
    /// Returns the window, price and abilities of one of this Provider's models.
    fn facts(&self, model: &str) -> ModelInfo {
        ModelInfo::of(model, "", None)
    }

    /// Tells the keys of a Provider apart without revealing them: requests with the same number share the limits of the server.
    /// A token that is renewed keeps its number.
    fn key_number(&self) -> u64 {
        0
    }

    /// Returns the time limits and the patience for this Provider's requests.
    fn patience(&self) -> Patience {
        Patience::default()
    }

    /// Whether the model can summarize a conversation. A script only says what it contains.
    fn writes_summaries(&self) -> bool {
        true
    }

    /// Takes what the user has not been told of this Provider: which parameters it refused, and requests leave out from now on.
    fn take_notices(&self) -> Vec<String> {
        Vec::new()
    }

    /// What pixir tells the user while the server loads the model before its answer; `None` where it does not.
    fn loads<'a>(&'a self, _model: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// Returns the body that would be sent. A Provider without a server describes the request instead.
    fn body(&self, request: Request) -> RequestBody {
        RequestBody::described(request)
    }

    /// Sends the request and calls `on_chunk` with each part of the answer. Dropping the future cancels the request.
    fn answer<'a>(
        &'a self,
        request: &'a Request,
        on_chunk: &'a mut (dyn FnMut(Chunk) + Send),
    ) -> BoxFuture<'a, Result<Answer, Failure>>;
}

/// The estimated tokens of the part of a request that every request of a Session repeats.
pub fn fixed_tokens(instructions: &str, context: &str, tools: &[ToolSpec]) -> u64 {
    let tool = |it: &ToolSpec| it.name.len() + it.description.len() + json_len(&it.parameters);
    ((instructions.len() + context.len() + tools.iter().map(tool).sum::<usize>()) / 4) as u64
}

/// Parses the arguments of a call into a JSON object. Other text, and an object that names a field twice, is preserved under
/// `_raw`, so that an error can show it to the model.
pub fn args_object(args: &str) -> Value {
    if args.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    let has_each_field_once = || once::has_each_field_once(halves::mark(args).as_deref().unwrap_or(args));
    match halves::parse(args) {
        Ok(value) if value.is_object() && has_each_field_once() => value,
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
