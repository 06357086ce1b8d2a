//! The list of models that a server returns.

use std::time::Duration;

use serde_json::{Value, json};

use super::dialect::Dialect;
use super::endpoint::Endpoint;
use super::invalid;
use protocol::error::Result;

impl Endpoint {
    /// Sends a request that only a valid key can make. Returns the models that the server lists.
    ///
    /// # Errors
    /// `AUTH_REQUIRED` when the key is invalid, else as [`Endpoint::models`].
    pub async fn check(&self, within: Duration) -> Result<Vec<Listed>> {
        // A public list of models would prove nothing about the key.
        if let Some(path) = self.check_path() {
            self.get::<Value>(path, within).await?;
        }
        self.models(within).await
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
        // ollama without a model lists `null`.
        if body.get("data").is_some_and(Value::is_null) {
            return Ok(Vec::new());
        }
        let models = body["data"].as_array().or_else(|| body["models"].as_array());
        let models = models.ok_or_else(|| invalid(format!("{} did not list its models", self.place())))?;
        Ok(models.iter().filter_map(Listed::read).collect())
    }
}

impl Endpoint {
    /// Asks the user's own server how it runs a model, in the ways of the usual servers.
    pub(super) async fn loaded(&self, model: &str, within: Duration) -> Loaded {
        let named = json!({ "model": model });
        let (studio, running, shown, props) = tokio::join!(
            self.beside("/api/v0/models", None, within),
            self.beside("/api/ps", None, within),
            self.beside("/api/show", Some(&named), within),
            self.beside("/props", None, within),
        );
        let is_it = |it: &&Value| ["id", "model", "name"].iter().any(|key| it[*key] == model);
        let listed = |body: &Option<Value>, list: &str, field: &str| {
            body.as_ref()?[list].as_array()?.iter().find(is_it)?[field].as_u64()
        };
        let studio = listed(&studio, "data", "loaded_context_length");
        let ollama = || listed(&running, "models", "context_length").or_else(|| parameter(shown.as_ref()?));
        let llama_cpp = || {
            let props = props.as_ref()?;
            props["default_generation_settings"]["n_ctx"].as_u64().or_else(|| props["n_ctx"].as_u64())
        };
        let window = studio.or_else(ollama).or_else(llama_cpp).filter(|window| *window > 0);
        let able = shown.as_ref().and_then(|it| it["capabilities"].as_array());
        let takes_tools = able.map(|all| all.iter().any(|it| it == "tools"));
        Loaded { window, takes_tools }
    }
}

/// How a server of the user runs a model.
pub(super) struct Loaded {
    /// The window, tokens.
    pub(super) window: Option<u64>,
    /// Whether the model takes tools, if the server lists what it can.
    pub(super) takes_tools: Option<bool>,
}

/// Returns `num_ctx` of ollama's description of a model: one parameter a line.
fn parameter(shown: &Value) -> Option<u64> {
    let lines = shown["parameters"].as_str()?.lines();
    lines.filter_map(|line| line.trim().strip_prefix("num_ctx")).find_map(|value| value.trim().parse().ok())
}

/// A model in a server's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The model's name at the server.
    pub name: String,
    /// The window in tokens, if the server reports it. The user's own server may run with less than the model supports.
    pub window: Option<u64>,
}

/// Beginnings of words in the names of models that do not answer prompts.
const NOT_ANSWERING: [&str; 17] = [
    "embed",
    "rerank",
    "paraphrase",
    "minilm",
    "colbert",
    "whisper",
    "parakeet",
    "kokoro",
    "orpheus",
    "audio",
    "transcri",
    "speech",
    "moderation",
    "diffusion",
    "sdxl",
    "dall",
    "flux",
];
/// Whole words of the same kind, which also begin the names of other models.
const NOT_ANSWERING_WORDS: [&str; 5] = ["bge", "gte", "e5", "tts", "asr"];

impl Listed {
    /// Whether the model may answer prompts, as far as its name tells. Models that embed, rank, listen or speak do not.
    pub(super) fn may_answer(&self) -> bool {
        let name = self.name.to_lowercase();
        let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
        !words.any(|word| NOT_ANSWERING_WORDS.contains(&word) || NOT_ANSWERING.iter().any(|it| word.starts_with(it)))
    }

    fn read(model: &Value) -> Option<Listed> {
        // ChatGPT plans list models that are not for choice; Copilot also those that the plan or the user has switched off.
        let is_hidden = model["visibility"].as_str().is_some_and(|it| it != "list")
            || model["model_picker_enabled"] == false
            || model["policy"]["state"] == "disabled"
            || model["capabilities"]["type"].as_str().is_some_and(|it| it != "chat");
        if is_hidden {
            return None;
        }
        let name = ["slug", "id", "name"].iter().find_map(|key| model[*key].as_str())?;
        let places = [
            "/max_model_len",
            "/context_length",
            "/context_window",
            "/max_input_tokens",
            "/meta/n_ctx",
            "/capabilities/limits/max_context_window_tokens",
        ];
        let window = places.iter().find_map(|place| model.pointer(place)?.as_u64());
        Some(Listed { name: name.to_owned(), window })
    }
}
