//! Who answers: one trait, a request in, a stream of chunks and one assembled answer out. A Provider owns no agency.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::blobs::Blobs;
use crate::error::{Code, Error};
use crate::event::{Attachment, Usage};
use crate::history::Item;
use crate::tools::{BoxFuture, ToolSpec};

pub mod chat; // the Chat Completions dialect
pub mod choose; // which Provider, from flags, configuration, environment and local servers
pub mod demo; // the one that is always there
mod http; // requests, statuses, server-sent events
pub mod responses; // the Responses dialect
pub mod retry; // when to try again
pub mod script; // a model that says what a file tells it to

/// What a model is sent.
#[derive(Debug, Clone)]
pub struct Request {
    /// The model's name at its Provider.
    pub model: String,
    /// How hard it should think.
    pub effort: Option<String>,
    /// The same for every workspace and Turn.
    pub instructions: &'static str,
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
    /// An image as a data URL, or what is said in its place when it is not stored any more.
    pub(crate) fn image(&self, image: &Attachment) -> Result<String, String> {
        match self.blobs.get(&image.blob) {
            Ok(bytes) => Ok(format!("data:{};base64,{}", image.media_type, STANDARD.encode(bytes))),
            Err(_) => Err(format!("[the image {} is not stored any more]", image.path)),
        }
    }
}

/// A piece of an answer, as it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// More of the text.
    Text(String),
    /// More of the thinking that may be shown.
    Reasoning(String),
}

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Thinking, in order: what may be shown, and the Provider's own item.
    pub reasoning: Vec<(String, Option<Value>)>,
    /// Markdown.
    pub text: String,
    /// Tools that it asks for, in order.
    pub calls: Vec<CallRequest>,
    /// What it cost, if the Provider says.
    pub usage: Option<Usage>,
    /// The answer is not whole, and why: `max_output_tokens`, `content_filter`, …
    pub cut_short: Option<String>,
}

/// A tool that an answer asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRequest {
    /// The Provider's id for it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its arguments, as the model wrote them.
    pub args: String,
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
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { error, after_content: false, retry_after: None }
    }
}

/// Someone who answers. Implementors are the dialects, and whatever a test needs.
pub trait Provider: Send + Sync {
    /// What is sent, as JSON. A Provider that sends nothing says what it was given.
    fn body(&self, request: &Request) -> Value {
        let items: Vec<String> = request.items.iter().map(|item| format!("{:?}", item.piece())).collect();
        serde_json::json!({
            "model": request.model, "instructions": request.instructions, "context": request.context,
            "tools": request.tools.iter().map(|tool| tool.name).collect::<Vec<_>>(), "items": items,
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

/// Whether a model can look at images; one that is not known to be blind is believed to.
pub(crate) fn sees_images(model: &str) -> bool {
    const BLIND: [&str; 7] = ["deepseek", "qwen3-coder", "kimi-k2", "gpt-oss", "codestral", "starcoder", "o1-mini"];
    let bare = model.rsplit('/').next().unwrap_or(model);
    !BLIND.iter().any(|prefix| bare.starts_with(prefix))
}

/// The tokens of a model's window, where they are known.
pub fn window_of(model: &str) -> Option<u64> {
    const WINDOWS: [(&str, u64); 12] = [
        ("gpt-4.1", 1_047_576),
        ("gpt-4o", 128_000),
        ("gpt-5", 400_000),
        ("gpt-6", 400_000),
        ("o3", 200_000),
        ("o4", 200_000),
        ("claude-", 200_000),
        ("gemini-", 1_048_576),
        ("deepseek", 128_000),
        ("qwen3-coder", 262_144),
        ("kimi-k2", 262_144),
        ("pixir-demo", 128_000),
    ];
    let bare = model.rsplit('/').next().unwrap_or(model);
    WINDOWS.iter().find(|(prefix, _)| bare.starts_with(prefix)).map(|(_, window)| *window)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidResponse, message, "try again; if it stays, check --base-url and --dialect (pixir doctor)")
}
