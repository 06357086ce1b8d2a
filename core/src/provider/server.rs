//! A dialect at an endpoint: what most Providers are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use futures_util::TryStreamExt as _;
use serde_json::Value;

use super::endpoint::{Endpoint, Listed};
use super::models::Facts;
use super::preset::Quirks;
use super::retry::Patience;
use super::stream::hear;
use super::{Answer, Chunk, Failure, Provider, Request};
use crate::config::ModelConfig;
use crate::tools::BoxFuture;

/// A server that models answer on.
#[derive(Debug)]
pub(super) struct Server {
    endpoint: Endpoint,
    quirks: Quirks,
    /// What the person said of its models, by their names there.
    said: Vec<(String, ModelConfig)>,
    /// What it said of their windows itself.
    windows: Mutex<HashMap<String, u64>>,
    /// This account may not ask for summaries of the thinking.
    without_summaries: AtomicBool,
}

impl Server {
    pub(super) fn new(endpoint: Endpoint, quirks: Quirks, said: Vec<(String, ModelConfig)>) -> Server {
        let (windows, without_summaries) = (Mutex::default(), AtomicBool::new(!quirks.reasoning_summaries));
        Server { endpoint, quirks, said, windows, without_summaries }
    }

    /// Takes in what the server says of its models.
    pub(super) fn learn(&self, listed: &[Listed]) {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        windows.extend(listed.iter().filter_map(|it| Some((it.name.clone(), it.window?))));
    }

    async fn ask(&self, request: &Request, on_chunk: &mut (dyn FnMut(Chunk) + Send)) -> Result<Answer, Failure> {
        let dialect = self.endpoint.dialect();
        let response = self.endpoint.post(dialect.path(), &self.body(request)).await?;
        let bytes = response.bytes_stream().map_err(|e| why(&e));
        hear(dialect, bytes, self.endpoint.patience(), on_chunk).await
    }
}

impl Provider for Server {
    fn facts(&self, model: &str) -> Facts {
        let said = self.said.iter().find(|(name, _)| name == model).map(|(_, said)| said);
        let mut facts = Facts::of(model, self.endpoint.host(), said);
        // The person knows best, then the server: it may have been started with less than the model can hold.
        if said.is_none_or(|said| said.window.is_none()) {
            let windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
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
        let reasoning_summaries = !self.without_summaries.load(Ordering::Relaxed);
        let quirks = Quirks { reasoning_summaries, ..self.quirks };
        self.endpoint.dialect().body(request, &self.facts(&request.model), &quirks)
    }

    fn answer<'a>(
        &'a self,
        request: &'a Request,
        on_chunk: &'a mut (dyn FnMut(Chunk) + Send),
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let mut answer = self.ask(request, on_chunk).await;
            let refused = |failure: &Failure| failure.error.message.contains("reasoning.summary");
            if answer.as_ref().is_err_and(refused) && !self.without_summaries.swap(true, Ordering::Relaxed) {
                answer = self.ask(request, on_chunk).await;
            }
            answer.map_err(|failure| Failure { error: self.endpoint.redact(failure.error), ..failure })
        })
    }
}

/// The innermost cause, which says what happened; the outer ones only say where.
fn why(e: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = e;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
