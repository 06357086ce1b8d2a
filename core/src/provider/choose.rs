//! Which Provider answers: flags, then configuration, then the environment, then a local server, else the demo.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::chat::Chat;
use super::demo::{self, Unconnected};
use super::http::Endpoint;
use super::responses::Responses;
use super::script::Scripted;
use super::{Provider, window_of};
use crate::config::{Config, Surroundings};
use crate::error::{Code, Error, Result, nearest};

/// Servers with a key in the environment: name, variable, base URL, its override, dialect, model.
const HOSTED: [(&str, &str, &str, &str, Dialect, &str); 2] = [
    ("openai", "OPENAI_API_KEY", "https://api.openai.com/v1", "OPENAI_BASE_URL", Dialect::Responses, "gpt-5-codex"),
    (
        "openrouter",
        "OPENROUTER_API_KEY",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_BASE_URL",
        Dialect::Chat,
        "openrouter/auto",
    ),
];
/// Local servers on their usual ports.
const LOCAL: [(&str, u16); 4] = [("ollama", 11434), ("llama.cpp", 8080), ("lmstudio", 1234), ("vllm", 8000)];
/// How long a local server may take to list its models.
const LOCAL_WAIT: Duration = Duration::from_millis(500);

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// The Responses API.
    Responses,
    /// Chat Completions.
    Chat,
}

impl Dialect {
    /// The dialect with this name.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, with the names that exist.
    pub fn parse(name: &str) -> Result<Dialect> {
        match name {
            "responses" => Ok(Dialect::Responses),
            "chat" => Ok(Dialect::Chat),
            _ => Err(Error::new(
                Code::ConfigInvalid,
                format!("there is no dialect `{}`", name.escape_debug()),
                "responses or chat",
            )
            .with("input", name)),
        }
    }

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Dialect::Responses => "responses",
            Dialect::Chat => "chat",
        }
    }
}

/// What the command line says of Provider and model.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// `--provider`, or `script:FILE`.
    pub provider: Option<String>,
    /// `--model`: a model, or `provider/model`.
    pub model: Option<String>,
    /// `--dialect`.
    pub dialect: Option<String>,
    /// `--base-url`.
    pub base_url: Option<String>,
}

enum Definition {
    Server { dialect: Dialect, endpoint: Endpoint },
    Given(Arc<dyn Provider>),
}

/// Every Provider that is known here, and the one that was chosen.
pub struct Providers {
    known: BTreeMap<String, Definition>,
    windows: BTreeMap<String, u64>,
    /// The chosen Provider's name.
    pub provider: String,
    /// The chosen model's name at it.
    pub model: String,
    /// Why these were chosen, for a person.
    pub why: String,
}

impl std::fmt::Debug for Providers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Providers")
            .field("known", &self.names().collect::<Vec<_>>())
            .field("provider", &self.provider)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl Providers {
    /// One given Provider and nothing else.
    pub fn only(name: &str, model: &str, provider: Arc<dyn Provider>) -> Providers {
        Providers {
            known: BTreeMap::from([(name.to_owned(), Definition::Given(provider))]),
            windows: BTreeMap::new(),
            provider: name.to_owned(),
            model: model.to_owned(),
            why: "it was given".into(),
        }
    }

    /// What is configured, without choosing and without asking anybody.
    ///
    /// # Errors
    /// `CONFIG_INVALID`.
    pub fn configured(config: &Config, around: &Surroundings) -> Result<Providers> {
        let mut it = Providers {
            known: BTreeMap::from([("demo".to_owned(), Definition::Given(Arc::new(Unconnected)))]),
            windows: config.models.iter().filter_map(|(name, model)| Some((name.clone(), model.window?))).collect(),
            provider: "demo".into(),
            model: demo::MODEL.into(),
            why: "no key and no local server was found".into(),
        };
        for (name, variable, base_url, override_name, dialect, _) in HOSTED {
            if let Some(key) = around.variable(variable) {
                let base_url = around.variable(override_name).unwrap_or(base_url);
                let endpoint = Endpoint::new(base_url, Some(key.to_owned()), Some(variable.to_owned()))?;
                it.known.insert(name.into(), Definition::Server { dialect, endpoint });
            }
        }
        for (name, server) in &config.providers {
            let key = server.api_key_env.as_deref().and_then(|variable| around.variable(variable)).map(str::to_owned);
            let endpoint = Endpoint::new(&server.base_url, key, server.api_key_env.clone())?;
            it.known.insert(name.clone(), Definition::Server { dialect: Dialect::parse(&server.dialect)?, endpoint });
        }
        Ok(it)
    }

    /// Finds what is configured and chooses. Only when nothing is, the usual local ports are tried.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, `SCRIPT_INVALID`, `MODEL_NOT_SUPPORTED`: what was wished cannot be had, and what can.
    pub async fn find(wishes: &Wishes, config: &Config, around: &Surroundings) -> Result<Providers> {
        let mut it = Providers::configured(config, around)?;
        it.choose(wishes, config, around).await?;
        Ok(it)
    }

    async fn choose(&mut self, wishes: &Wishes, config: &Config, around: &Surroundings) -> Result<()> {
        if let Some(path) = wishes.provider.as_deref().and_then(|p| p.strip_prefix("script:")) {
            let text = std::fs::read_to_string(path).map_err(|e| {
                Error::new(Code::ScriptInvalid, format!("read the script {path}: {e}"), "an existing file")
                    .with("input", path)
            })?;
            self.known.insert("script".into(), Definition::Given(Arc::new(Scripted::new(Scripted::parse(&text)?))));
            return self.take("script", wishes.model.as_deref().unwrap_or("script"), "--provider");
        }
        if let Some(base_url) = &wishes.base_url {
            return self.choose_server(base_url, wishes, around).await;
        }
        let wished = wishes.model.as_deref().map(|m| (m, "--model"));
        let wished = wished
            .or_else(|| around.variable("PIXIR_MODEL").map(|m| (m, "PIXIR_MODEL")))
            .or(config.model.as_deref().map(|m| (m, "config.toml")));
        if let Some(provider) = &wishes.provider {
            self.definition(provider)?;
            let model = match wished {
                Some((model, _)) => model.strip_prefix(&format!("{provider}/")).unwrap_or(model).to_owned(),
                None => self.default_model(provider).await?,
            };
            return self.take(provider, &model, "--provider");
        }
        if let Some((wished, source)) = wished {
            // `provider/model`, where the part before the slash is a provider; else a model of the first server there is.
            if let Some((provider, model)) =
                wished.split_once('/').filter(|(provider, _)| self.known.contains_key(*provider))
            {
                return self.take(provider, model, source);
            }
            let hosted = HOSTED.iter().map(|(name, ..)| *name).find(|name| self.known.contains_key(*name));
            if let Some(provider) = hosted {
                return self.take(provider, wished, source);
            }
        }
        for (name, variable, _, _, _, model) in HOSTED {
            if self.known.contains_key(name) {
                return self.take(name, model, &format!("{variable} is set"));
            }
        }
        self.choose_local(wished.map(|(model, _)| model)).await
    }

    async fn choose_server(&mut self, base_url: &str, wishes: &Wishes, around: &Surroundings) -> Result<()> {
        let name = wishes.provider.as_deref().unwrap_or("custom");
        let dialect = wishes.dialect.as_deref().map_or(Ok(Dialect::Chat), Dialect::parse)?;
        let key = around.variable("PIXIR_API_KEY").map(str::to_owned);
        let endpoint = Endpoint::new(base_url, key, Some("PIXIR_API_KEY".into()))?;
        self.known.insert(name.to_owned(), Definition::Server { dialect, endpoint });
        let model = match &wishes.model {
            Some(model) => model.clone(),
            None => self.default_model(name).await?,
        };
        self.take(name, &model, "--base-url")
    }

    /// Tries the usual ports, one after the other; a closed port answers at once.
    async fn choose_local(&mut self, wished: Option<&str>) -> Result<()> {
        for (name, port) in LOCAL {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            if TcpStream::connect_timeout(&address, Duration::from_millis(20)).is_err() {
                continue;
            }
            let endpoint = Endpoint::new(&format!("http://127.0.0.1:{port}/v1"), None, None)?;
            let Ok(models) = endpoint.models(LOCAL_WAIT).await else { continue };
            let model = match wished {
                Some(wished) => models.iter().find(|m| *m == wished),
                None => models.first(),
            };
            if let Some(model) = model {
                self.known.insert(name.into(), Definition::Server { dialect: Dialect::Chat, endpoint });
                return self.take(name, model, &format!("{name} answers on port {port}"));
            }
        }
        match wished {
            None => Ok(()),
            Some(wished) => {
                let names = self.names().collect::<Vec<_>>().join(", ");
                let fix = match wished.split_once('/').and_then(|(provider, _)| nearest(provider, self.names())) {
                    Some(near) => format!("did you mean {near}/…? Known providers: {names}"),
                    None => format!("a key for its provider (pixir doctor), or provider/model with one of: {names}"),
                };
                Err(Error::new(
                    Code::ModelNotSupported,
                    format!("no provider that is set up has the model `{}`", wished.escape_debug()),
                    fix,
                )
                .with("input", wished))
            }
        }
    }

    fn take(&mut self, provider: &str, model: &str, why: &str) -> Result<()> {
        self.definition(provider)?;
        provider.clone_into(&mut self.provider);
        model.clone_into(&mut self.model);
        why.clone_into(&mut self.why);
        Ok(())
    }

    fn definition(&self, name: &str) -> Result<&Definition> {
        self.known.get(name).ok_or_else(|| {
            let names = self.names().collect::<Vec<_>>().join(", ");
            let fix = match nearest(name, self.names()) {
                Some(near) => format!("did you mean {near}? Known: {names}"),
                None => format!(
                    "one of: {names}; others need a key or a [providers.{}] section (pixir doctor)",
                    name.escape_debug()
                ),
            };
            Error::new(Code::ConfigInvalid, format!("the provider `{}` is not set up", name.escape_debug()), fix)
                .with("input", name)
        })
    }

    async fn default_model(&self, provider: &str) -> Result<String> {
        if let Some((.., model)) = HOSTED.iter().find(|(name, ..)| *name == provider) {
            return Ok((*model).to_owned());
        }
        match self.definition(provider)? {
            Definition::Given(_) => Ok(demo::MODEL.to_owned()),
            Definition::Server { endpoint, .. } => {
                let models = endpoint.models(Duration::from_secs(5)).await?;
                models.into_iter().next().ok_or_else(|| {
                    Error::new(Code::ModelNotSupported, format!("{provider} lists no models"), "name one: --model NAME")
                })
            }
        }
    }

    /// Names of every Provider that is set up.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }

    /// Where a Provider is and how it is spoken to, for a person.
    pub fn describe(&self, name: &str) -> String {
        match self.known.get(name) {
            Some(Definition::Server { dialect, endpoint }) => format!("{} at {}", dialect.name(), endpoint.base_url()),
            Some(Definition::Given(_)) => "built in".to_owned(),
            None => "not set up".to_owned(),
        }
    }

    /// The Provider with this name, ready to be asked.
    ///
    /// # Errors
    /// `CONFIG_INVALID` when it is not set up here.
    pub fn connect(&self, name: &str) -> Result<Arc<dyn Provider>> {
        Ok(match self.definition(name)? {
            Definition::Given(provider) => Arc::clone(provider),
            Definition::Server { dialect: Dialect::Responses, endpoint } => Arc::new(Responses::new(endpoint.clone())),
            Definition::Server { dialect: Dialect::Chat, endpoint } => Arc::new(Chat::new(endpoint.clone())),
        })
    }

    /// Models that can be chosen, as `provider/model`; servers that do not answer in time are left out.
    pub async fn models(&self, within: Duration) -> Vec<String> {
        let mut all = Vec::new();
        for (name, definition) in &self.known {
            match definition {
                Definition::Given(_) => {
                    all.push(format!("{name}/{}", if *name == self.provider { &self.model } else { demo::MODEL }))
                }
                Definition::Server { endpoint, .. } => all.extend(
                    endpoint.models(within).await.unwrap_or_default().into_iter().map(|m| format!("{name}/{m}")),
                ),
            }
        }
        all
    }

    /// Splits `provider/model`; without a known provider in front it is a model of `current`.
    pub fn split<'a>(&'a self, text: &'a str, current: &'a str) -> (&'a str, &'a str) {
        text.split_once('/').filter(|(provider, _)| self.known.contains_key(*provider)).unwrap_or((current, text))
    }

    /// Tokens of a model's window, where they are known.
    pub fn window(&self, provider: &str, model: &str) -> Option<u64> {
        self.windows.get(&format!("{provider}/{model}")).copied().or_else(|| window_of(model))
    }
}
