//! Servers of this machine that still start: they are waited for, in sight of the user.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::endpoint::Endpoint;
use super::listing::Listed;
use protocol::error::{Code, Result};

/// Where the words of a server that is waited for go.
pub type Waits = watch::Sender<String>;

/// The detail of an error of a server that loads its model.
pub(super) const IS_STARTING: &str = "starting";
/// How often a server that starts is asked.
pub(super) const EVERY: Duration = Duration::from_millis(500);
/// How long a server of this machine may refuse connections: one that was just started opens its port late.
const REFUSED: Duration = Duration::from_secs(5);

/// What servers say while they load their model, in lower case: llama.cpp, vLLM, text-generation-inference, Hugging Face.
const LOADING: [&str; 10] = [
    "loading model",
    "model is loading",
    "model is being loaded",
    "currently loading",
    "still loading",
    "loading the model",
    "model is not ready",
    "model not ready",
    "server is starting",
    "is warming up",
];

/// Whether a refusal with this status says that the server still starts.
pub(super) fn is_starting(status: u16, text: &str) -> bool {
    let lower = text.to_lowercase();
    let has_failed = ["error", "fail"].iter().any(|word| lower.contains(word));
    !has_failed && matches!(status, 425 | 500 | 502 | 503) && LOADING.iter().any(|words| lower.contains(words))
}

impl Endpoint {
    /// What pixir tells the user while ollama loads the model of a request; `None` where it has it already, and for other servers.
    pub(super) async fn loads(&self, model: &str, within: Duration) -> Option<String> {
        let running = self.beside("/api/ps", None, within).await?;
        let latest = format!("{model}:latest");
        let is_it =
            |it: &serde_json::Value| ["model", "name"].iter().any(|key| it[*key] == model || it[*key] == latest);
        let is_there = running["models"].as_array()?.iter().any(is_it);
        (!is_there).then(|| format!("{} loads {model} before it answers", self.place()))
    }

    /// Requests the list of models. A server that says that it still starts is waited for, as long as a local server may take to
    /// begin an answer, and one that refuses connections for a moment; what it says goes to `waits`. Without `waits` it is asked
    /// once.
    ///
    /// # Errors
    /// As [`Endpoint::models`].
    pub(super) async fn models_once_started(&self, within: Duration, waits: Option<&Waits>) -> Result<Vec<Listed>> {
        let Some(waits) = waits else { return self.models(within).await };
        let began = Instant::now();
        let mut was_open = false;
        loop {
            let error = match self.models(within).await {
                Ok(models) => return Ok(models),
                Err(error) => error,
            };
            let longest = match error.code {
                _ if self.patience().total.is_zero() => return Err(error),
                Code::ProviderUnavailable if error.details.contains_key(IS_STARTING) => self.patience().local_head,
                // A port that is open by now may have been opened since it was asked, so it is asked once more.
                Code::Network if self.is_local() && !was_open => {
                    was_open = super::choose::listens(self).await.is_some();
                    REFUSED.min(self.patience().total)
                }
                _ => return Err(error),
            };
            if began.elapsed() + EVERY > longest {
                return Err(error);
            }
            waits.send_if_modified(|shown| {
                let is_new = *shown != error.message;
                shown.clone_from(&error.message);
                is_new
            });
            sleep(EVERY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_starts_is_told_from_one_that_fails() {
        for text in [
            "Loading model",
            "The model is loading",
            "Model bigcode/starcoder is currently loading",
            "warming up: model is not ready",
        ] {
            assert!(is_starting(503, text), "{text}");
            assert!(!is_starting(400, text) && !is_starting(404, text), "{text}");
        }
        for text in ["overloaded", "error loading model: out of memory", "failed to load model", "Service Unavailable"]
        {
            assert!(!is_starting(503, text), "{text}");
        }
    }
}
