//! The list of models that a server returns.

use std::time::Duration;

use serde_json::Value;

use super::dialect::Dialect;
use super::endpoint::Endpoint;
use super::invalid;
use crate::protocol::error::Result;

impl Endpoint {
    /// Sends a request that only a valid key can make. Returns how many models the server lists.
    ///
    /// # Errors
    /// `AUTH_REQUIRED` when the key is invalid, else as [`Endpoint::models`].
    pub async fn check(&self, within: Duration) -> Result<usize> {
        // A public list of models would prove nothing about the key.
        if let Some(path) = self.check_path() {
            self.get::<Value>(path, within).await?;
        }
        self.models(within).await.map(|models| models.len())
    }

    /// Requests the list of models.
    ///
    /// # Errors
    /// `NETWORK` when the server does not answer in time, `AUTH_REQUIRED`, `INVALID_RESPONSE` when the answer is not a
    /// list of models.
    pub async fn models(&self, within: Duration) -> Result<Vec<Listed>> {
        // The largest page that the server allows.
        let path = if self.dialect() == Dialect::Anthropic { "/models?limit=1000" } else { "/models" };
        let body: Value = self.get(path, within).await?;
        let models = body["data"].as_array().or_else(|| body["models"].as_array());
        let models = models.ok_or_else(|| invalid(format!("{} did not list its models", self.place())))?;
        Ok(models.iter().filter_map(Listed::read).collect())
    }
}

/// A model in a server's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The model's name at the server.
    pub name: String,
    /// The window in tokens, if the server reports it. The user's own server may run with less than the model supports.
    pub window: Option<u64>,
}

impl Listed {
    fn read(model: &Value) -> Option<Listed> {
        let name = ["id", "name"].iter().find_map(|key| model[*key].as_str())?;
        let places = ["/max_model_len", "/context_length", "/context_window", "/max_input_tokens", "/meta/n_ctx"];
        let window = places.iter().find_map(|place| model.pointer(place)?.as_u64());
        Some(Listed { name: name.to_owned(), window })
    }
}
