//! A Provider that speaks a dialect to an endpoint; most Providers are one.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::TryStreamExt as _;
use parking_lot::Mutex;
use serde_json::Value;

use super::endpoint::Endpoint;
use super::listing::Listed;
use super::models::ModelInfo;
use super::preset::Quirks;
use super::retry::Patience;
use super::stream::hear;
use super::{Answer, Chunk, Failure, Provider, Request};
use crate::config::ModelConfig;
use crate::protocol::error::Code;
use futures_util::future::BoxFuture;

/// A server that runs models.
#[derive(Debug)]
pub(super) struct Server {
    endpoint: Endpoint,
    quirks: Quirks,
    /// Model settings of the user, by the server's model names.
    configured: Vec<(String, ModelConfig)>,
    /// Windows that the server itself reported, tokens.
    windows: Mutex<HashMap<String, u64>>,
    /// The server has already listed its models.
    has_learnt: AtomicBool,
    /// The server rejects requests for reasoning summaries, often only for this account.
    without_summaries: AtomicBool,
    /// The server rejects reasoning from earlier answers.
    takes_no_reasoning: AtomicBool,
    /// Models that rejected images.
    blind: Mutex<HashSet<String>>,
}

impl Server {
    pub(super) fn new(endpoint: Endpoint, quirks: Quirks, configured: Vec<(String, ModelConfig)>) -> Server {
        Server {
            endpoint,
            configured,
            windows: Mutex::default(),
            has_learnt: AtomicBool::new(false),
            without_summaries: AtomicBool::new(!quirks.reasoning_summaries),
            takes_no_reasoning: AtomicBool::new(!quirks.gives_reasoning_back),
            blind: Mutex::default(),
            quirks,
        }
    }

    /// Whether the server has listed its models already.
    pub(super) fn has_learnt(&self) -> bool {
        self.has_learnt.load(Ordering::Relaxed)
    }

    /// Remembers a rejected feature, if requests can do without it. Returns whether the request can be sent again
    /// without it.
    fn leave_out(&self, model: &str, failure: &Failure) -> bool {
        let configured = &failure.error.message;
        if failure.after_content {
            return false;
        }
        // Servers have no code for a rejected field, but their messages name it.
        match failure.error.code {
            Code::VisionUnsupported => self.blind.lock().insert(model.to_owned()),
            Code::ReasoningRejected if configured.contains("reasoning_") => {
                !self.takes_no_reasoning.swap(true, Ordering::Relaxed)
            }
            _ => configured.contains("reasoning.summary") && !self.without_summaries.swap(true, Ordering::Relaxed),
        }
    }

    /// Stores the windows that the server lists for its models.
    pub(super) fn learn(&self, listed: &[Listed]) {
        self.has_learnt.store(true, Ordering::Relaxed);
        let mut windows = self.windows.lock();
        windows.extend(listed.iter().filter_map(|it| Some((it.name.clone(), it.window?))));
    }

    /// Writes the body of a request, without the features that the server rejects.
    fn written(&self, request: &Request) -> Vec<u8> {
        let reasoning_summaries = !self.without_summaries.load(Ordering::Relaxed);
        let gives_reasoning_back = !self.takes_no_reasoning.load(Ordering::Relaxed);
        let quirks = Quirks { reasoning_summaries, gives_reasoning_back, ..self.quirks };
        self.endpoint.dialect().body(request, &self.facts(&request.model), &quirks)
    }

    async fn ask(&self, request: &Request, on_chunk: &mut (dyn FnMut(Chunk) + Send)) -> Result<Answer, Failure> {
        let dialect = self.endpoint.dialect();
        let response = self.endpoint.post(dialect.path(), self.written(request).into()).await?;
        let bytes = response.bytes_stream().map_err(|e| why(&e));
        hear(dialect, bytes, self.endpoint.patience(), on_chunk).await
    }
}

impl Provider for Server {
    fn facts(&self, model: &str) -> ModelInfo {
        let configured = self.configured.iter().find(|(name, _)| name == model).map(|(_, configured)| configured);
        let mut facts = ModelInfo::of(model, self.endpoint.host(), configured);
        facts.sees_images &= !self.blind.lock().contains(model);
        // The user's setting comes first, then the server's: it may run with a smaller window than the model supports.
        if configured.is_none_or(|configured| configured.window.is_none()) {
            let windows = self.windows.lock();
            match windows.get(model) {
                Some(window) => facts.window = Some(*window),
                None if self.quirks.hides_window => facts.window = None,
                None => {}
            }
        }
        facts
    }

    fn patience(&self) -> Patience {
        *self.endpoint.patience()
    }

    fn body(&self, request: &Request) -> Value {
        serde_json::from_slice(&self.written(request)).expect("it was written as JSON")
    }

    fn answer<'a>(
        &'a self,
        request: &'a Request,
        on_chunk: &'a mut (dyn FnMut(Chunk) + Send),
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let answer = loop {
                match self.ask(request, on_chunk).await {
                    Err(failure) if self.leave_out(&request.model, &failure) => {}
                    answer => break answer,
                }
            };
            answer.map_err(|failure| Failure { error: self.endpoint.redact(failure.error), ..failure })
        })
    }
}

/// Returns the innermost cause. It describes the failure; the outer errors only name the step that failed.
fn why(e: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = e;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
