//! A dialect at an endpoint: what most Providers are.

use futures_util::TryStreamExt as _;
use serde_json::Value;

use super::endpoint::Endpoint;
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
}

impl Server {
    pub(super) fn new(endpoint: Endpoint, quirks: Quirks, said: Vec<(String, ModelConfig)>) -> Server {
        Server { endpoint, quirks, said }
    }
}

impl Provider for Server {
    fn facts(&self, model: &str) -> Facts {
        let said = self.said.iter().find(|(name, _)| name == model).map(|(_, said)| said);
        Facts::of(model, self.endpoint.host(), said)
    }

    fn patience(&self) -> Patience {
        *self.endpoint.patience()
    }

    fn body(&self, request: &Request) -> Value {
        self.endpoint.dialect().body(request, &self.facts(&request.model), &self.quirks)
    }

    fn answer<'a>(
        &'a self,
        request: &'a Request,
        on_chunk: &'a mut (dyn FnMut(Chunk) + Send),
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let dialect = self.endpoint.dialect();
            let answer = async {
                let response = self.endpoint.post(dialect.path(), &self.body(request)).await?;
                let bytes = response.bytes_stream().map_err(|e| why(&e));
                hear(dialect, bytes, self.endpoint.patience(), on_chunk).await
            };
            answer.await.map_err(|failure| Failure { error: self.endpoint.redact(failure.error), ..failure })
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
