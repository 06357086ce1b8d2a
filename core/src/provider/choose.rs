//! Which Provider answers: flags, then configuration, then the environment, then a local server, else the demo.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::Provider;
use super::demo;
use super::dialect::Dialect;
use super::endpoint::{Address, Endpoint};
use super::models::Facts;
use super::preset::{PLAIN, PRESETS, preset};
use super::record::{Recorder, Recording};
use super::script::Scripted;
use super::setup::{Definition, Definitions, Found, Setup};
use crate::config::credentials::{Credential, Vault};
use crate::config::{Config, Surroundings};
use crate::protocol::error::{Code, Error, Result, nearest};
use crate::protocol::remedy::Remedy;

/// How long a local server may take to list its models.
const LOCAL_WAIT: Duration = Duration::from_millis(500);
/// The variable with the key for `--base-url`.
const OWN_KEY: &str = "PIXIR_API_KEY";

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

/// Every Provider that is known here, and the one that was chosen.
pub struct Providers {
    known: Definitions,
    /// The usual servers of this machine, which nobody has set up; they may be running all the same.
    usual: Definitions,
    /// What is wrong with those that cannot be set up as they are configured.
    broken: BTreeMap<String, Error>,
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

/// Why it is this one: the caller named the Provider.
const NAMED_PROVIDER: &str = "the provider was given";
/// Why it is this one: the caller named the model.
const NAMED_MODEL: &str = "the model was given";

impl Providers {
    /// One given Provider and nothing else.
    pub fn only(name: &str, model: &str, provider: Arc<dyn Provider>) -> Providers {
        Providers {
            known: BTreeMap::from([(name.to_owned(), Definition::given(provider, model))]),
            usual: BTreeMap::new(),
            broken: BTreeMap::new(),
            provider: name.to_owned(),
            model: model.to_owned(),
            why: Self::GIVEN.into(),
        }
    }

    /// Why it is this one, where nothing was looked for.
    pub const GIVEN: &str = "it was given";

    /// What is configured, without choosing and without asking anybody.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, `CORRUPT_AUTH`, `AUTH_READ_FAILED`.
    pub fn configured(config: &Config, around: &Surroundings) -> Result<Providers> {
        Setup { config, around, vault: Vault::new(around) }.everything().map(Providers::new)
    }

    /// Nobody is chosen yet, so the demo is.
    fn new(Found { known, usual, broken }: Found) -> Providers {
        Providers {
            known,
            usual,
            broken,
            provider: "demo".into(),
            model: demo::MODEL.into(),
            why: "no key and no local server was found".into(),
        }
    }

    /// What is configured, where one Provider is asked with this credential and no other.
    ///
    /// # Errors
    /// As [`Providers::configured`].
    pub fn with_secret(name: &str, secret: Credential, config: &Config, around: &Surroundings) -> Result<Providers> {
        let setup = Setup { config, around, vault: Vault::new(around) };
        let mut it = Providers::new(setup.everything()?);
        let definition = match (config.providers.get(name), preset(name)) {
            (Some(server), _) => setup.configured(name, server, Some(secret))?,
            (None, Some(preset)) => setup.preset(preset, Some(secret))?,
            (None, None) => {
                let message = format!("there is no provider `{}`", name.escape_debug());
                return Err(Error::new(Code::ConfigInvalid, message, "add a [providers] section to config.toml"));
            }
        };
        it.known.insert(name.to_owned(), definition);
        Ok(it)
    }

    /// Finds what is configured and chooses. Only when nothing is, the usual local ports are tried.
    ///
    /// # Errors
    /// As [`Providers::configured`], and `SCRIPT_INVALID`, `MODEL_NOT_SUPPORTED`, `AUTH_REQUIRED`: what was wished cannot
    /// be had, and what can.
    pub async fn find(wishes: &Wishes, config: &Config, around: &Surroundings) -> Result<Providers> {
        let setup = Setup { config, around, vault: Vault::new(around) };
        let mut it = Providers::new(setup.everything()?);
        it.choose(wishes, &setup).await?;
        it.ask_for_windows().await;
        Ok(it)
    }

    /// A server of one's own says how much it was started with; nobody else knows.
    async fn ask_for_windows(&self) {
        let Some(Definition { endpoint: Some(endpoint), server: Some(server), .. }) = self.known.get(&self.provider)
        else {
            return;
        };
        if endpoint.is_own() && !server.has_learnt() {
            // One that does not answer now will say so when it is asked something.
            server.learn(&endpoint.models(LOCAL_WAIT).await.unwrap_or_default());
        }
    }

    async fn choose(&mut self, wishes: &Wishes, setup: &Setup<'_>) -> Result<()> {
        let Setup { config, around, .. } = setup;
        if let Some(path) = wishes.provider.as_deref().and_then(|p| p.strip_prefix("script:")) {
            let text = std::fs::read_to_string(path).map_err(|e| {
                Error::new(Code::ScriptInvalid, format!("read the script {path}: {e}"), "name a file that exists")
                    .with("input", path)
            })?;
            let script = Scripted::parse(&text).map_err(|mut e| {
                e.message = format!("{path}: {}", e.message);
                e
            })?;
            let scripted = Arc::new(Scripted::new(script));
            self.known.insert("script".into(), Definition::given(scripted, "script"));
            return self.take("script", wishes.model.as_deref().unwrap_or("script"), NAMED_PROVIDER);
        }
        if let Some(base_url) = &wishes.base_url {
            return self.choose_address(base_url, wishes, setup).await;
        }
        if let Some(dialect) = &wishes.dialect {
            let message = format!("the dialect {} has no base URL to go with it", dialect.escape_debug());
            return Err(Error::new(
                Code::ConfigInvalid,
                message,
                Remedy::any_of([Remedy::SetBaseUrl { url: None }, "add a [providers] section to config.toml".into()]),
            ));
        }
        let wished = wishes.model.as_deref().map(|m| (m, NAMED_MODEL));
        let wished = wished
            .or_else(|| around.variable("PIXIR_MODEL").map(|m| (m, "PIXIR_MODEL")))
            .or(config.model.as_deref().map(|m| (m, "config.toml")));
        if let Some(provider) = &wishes.provider {
            let own = |model: &str| model.strip_prefix(&format!("{provider}/")).map(str::to_owned);
            // What is configured for another Provider is no model of this one.
            let elsewhere = |model: &str| {
                model
                    .split_once('/')
                    .is_some_and(|(other, _)| self.known.contains_key(other) || preset(other).is_some())
            };
            self.definition(provider)?;
            let model = match wished {
                Some((model, source)) if source == NAMED_MODEL || !elsewhere(model) => {
                    own(model).unwrap_or_else(|| model.to_owned())
                }
                Some((model, _)) if own(model).is_some() => own(model).unwrap_or_default(),
                Some(_) | None => self.default_model(provider).await?,
            };
            return self.take(provider, &model, NAMED_PROVIDER);
        }
        if let Some((wished, source)) = wished {
            // `provider/model`, where the part before the slash is a provider; else a model of the first server there is.
            if let Some((provider, model)) = wished.split_once('/')
                && (self.known.contains_key(provider) || preset(provider).is_some())
            {
                return self.take(provider, model, source);
            }
            if let Some(it) = PRESETS.iter().find(|it| self.known.contains_key(it.name)) {
                return self.take(it.name, wished, source);
            }
        } else if let Some(it) = PRESETS.iter().find(|it| it.model.is_some() && self.known.contains_key(it.name)) {
            let from = self.known[it.name].endpoint.as_ref().and_then(Endpoint::credential).map(Credential::source);
            let why = from.map_or_else(String::new, |source| format!("there is a key in {source}"));
            return self.take(it.name, it.model.unwrap_or_default(), &why);
        }
        self.choose_local(wished.map(|(model, _)| model)).await
    }

    /// `--base-url` alone is a Provider.
    async fn choose_address(&mut self, base_url: &str, wishes: &Wishes, setup: &Setup<'_>) -> Result<()> {
        let name = wishes.provider.as_deref().unwrap_or("custom");
        let like = preset(name);
        let dialect = match (&wishes.dialect, like) {
            (Some(dialect), _) => Dialect::parse(dialect)?,
            (None, Some(like)) => like.dialect,
            (None, None) => Dialect::Chat,
        };
        let is_unnamed = wishes.provider.is_none();
        let address =
            Address { provider: name, base_url, key_variable: Some(OWN_KEY), is_unnamed, ..Address::default() };
        let credential = setup.vault.find(name, Some(OWN_KEY), setup.around)?;
        let endpoint = Endpoint::new(&address, dialect, credential, setup.config.requests.patience())?;
        let quirks = like.map_or(PLAIN, |it| it.quirks);
        self.known.insert(name.to_owned(), Definition::server(endpoint, quirks, setup.said(name), None));
        let model = match &wishes.model {
            Some(model) => model.strip_prefix(&format!("{name}/")).unwrap_or(model).to_owned(),
            None => self.default_model(name).await?,
        };
        self.take(name, &model, "the base URL was given")
    }

    /// Tries the usual ports, one after the other; a closed port answers at once.
    async fn choose_local(&mut self, wished: Option<&str>) -> Result<()> {
        let running = PRESETS.iter().filter_map(|it| {
            let definition = self.usual.get(it.name)?;
            let (endpoint, server) = (definition.endpoint.as_ref()?, definition.server.as_ref()?);
            listens(endpoint).map(|port| (it.name, port, endpoint, server))
        });
        let asking = running.map(|(name, port, endpoint, server)| async move {
            let models = endpoint.models(LOCAL_WAIT).await.ok()?;
            server.learn(&models);
            Some((name, port, models))
        });
        let answers = futures_util::future::join_all(asking).await;
        for (name, port, models) in answers.into_iter().flatten() {
            let model = match wished {
                Some(wished) => models.iter().find(|m| m.name == wished),
                None => models.first(),
            };
            if let Some(model) = model {
                return self.take(name, &model.name, &format!("{name} answers on port {port}"));
            }
        }
        // Something is configured, only not so that it works; the demo is no answer to that.
        if let Some(error) = self.broken.values().next() {
            return Err(error.clone());
        }
        match wished {
            None => Ok(()),
            Some(wished) => {
                let names = self.names().collect::<Vec<_>>().join(", ");
                let fix = match wished.split_once('/').and_then(|(provider, _)| nearest(provider, self.names())) {
                    Some(near) => format!("did you mean {near}/…? Known providers: {names}").into(),
                    None => {
                        let one = format!("name a model as provider/model, with one of: {names}");
                        Remedy::any_of([Remedy::Login { provider: None }, one.into()])
                    }
                };
                let message = format!("no configured provider has the model `{}`", wished.escape_debug());
                Err(Error::new(Code::ModelNotSupported, message, fix).with("input", wished))
            }
        }
    }

    fn take(&mut self, provider: &str, model: &str, why: &str) -> Result<()> {
        self.definition(provider)?;
        // Whoever is chosen is set up by that.
        if let Some(definition) = self.usual.remove(provider) {
            self.known.insert(provider.to_owned(), definition);
        }
        provider.clone_into(&mut self.provider);
        model.clone_into(&mut self.model);
        why.clone_into(&mut self.why);
        Ok(())
    }

    fn definition(&self, name: &str) -> Result<&Definition> {
        if let Some(it) = self.known.get(name).or_else(|| self.usual.get(name)) {
            return Ok(it);
        }
        if let Some(error) = self.broken.get(name) {
            return Err(error.clone());
        }
        // A usual server of this machine is there by its name alone; one of somebody else's wants a key.
        if let Some(variable) = preset(name).and_then(|it| it.key_variable) {
            let fix = Remedy::any_of([
                Remedy::SetVariable { name: variable.to_owned() },
                Remedy::Login { provider: Some(name.to_owned()) },
            ]);
            return Err(Error::new(Code::AuthRequired, format!("{name} needs an API key, and none is set"), fix));
        }
        Err({
            let presets = PRESETS.iter().map(|it| it.name);
            let names: Vec<&str> = self.names().chain(presets).collect();
            let fix = match nearest(name, names.iter().copied()) {
                Some(near) => {
                    format!("did you mean {near}? Configured: {}", self.names().collect::<Vec<_>>().join(", ")).into()
                }
                None => Remedy::any_of([
                    format!("use one of: {}", self.names().collect::<Vec<_>>().join(", ")).into(),
                    format!("add a key or a [providers.{}] section to config.toml", name.escape_debug()).into(),
                    Remedy::CheckSetup,
                ]),
            };
            Error::new(Code::ConfigInvalid, format!("the provider `{}` is not set up", name.escape_debug()), fix)
                .with("input", name)
        })
    }

    async fn default_model(&self, provider: &str) -> Result<String> {
        let definition = self.definition(provider)?;
        match (&definition.model, &definition.endpoint) {
            (Some(model), _) => Ok(model.clone()),
            (None, Some(endpoint)) => {
                let models = endpoint.models(Duration::from_secs(5)).await?;
                if let Some(server) = &definition.server {
                    server.learn(&models);
                }
                models.into_iter().next().map(|it| it.name).ok_or_else(|| {
                    Error::new(
                        Code::ModelNotSupported,
                        format!("{provider} lists no models"),
                        Remedy::NameModel { provider: provider.to_owned() },
                    )
                })
            }
            (None, None) => Ok(demo::MODEL.to_owned()),
        }
    }

    /// Names of every Provider that is set up.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }

    /// Models of a Provider that the person said something of.
    pub fn configured_models<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.known.get(name).into_iter().flat_map(|it| it.said.iter().map(String::as_str))
    }

    /// Where a Provider is, unless it is built in or not set up.
    pub fn endpoint(&self, name: &str) -> Option<&Endpoint> {
        self.known.get(name).or_else(|| self.usual.get(name)).and_then(|it| it.endpoint.as_ref())
    }

    /// Where a Provider is and how it is spoken to, for a person.
    pub fn describe(&self, name: &str) -> String {
        match self.known.get(name).or_else(|| self.usual.get(name)) {
            Some(Definition { endpoint: Some(it), .. }) => format!("{} at {}", it.dialect().name(), it.base_url()),
            Some(Definition { endpoint: None, .. }) => "built in".to_owned(),
            None => "not set up".to_owned(),
        }
    }

    /// The Provider with this name, ready to be asked.
    ///
    /// # Errors
    /// `CONFIG_INVALID` when it is not set up here.
    pub fn connect(&self, name: &str) -> Result<Arc<dyn Provider>> {
        Ok(Arc::clone(&self.definition(name)?.provider))
    }

    /// Models that can be chosen, as `provider/model`; servers that do not answer in time are left out.
    pub async fn models(&self, within: Duration) -> Vec<String> {
        let running = self.usual.iter().filter(|(_, it)| it.endpoint.as_ref().is_some_and(|it| listens(it).is_some()));
        let asking = self.known.iter().chain(running).map(|(name, definition)| async move {
            let models = match (&definition.endpoint, &definition.model) {
                (Some(endpoint), _) => {
                    let listed = endpoint.models(within).await.unwrap_or_default();
                    if let Some(server) = definition.server.as_ref().filter(|_| endpoint.is_own()) {
                        server.learn(&listed);
                    }
                    listed.into_iter().map(|it| it.name).collect()
                }
                (None, Some(model)) => vec![model.clone()],
                (None, None) => Vec::new(),
            };
            models.into_iter().map(|model| format!("{name}/{model}")).collect::<Vec<_>>()
        });
        futures_util::future::join_all(asking).await.concat()
    }

    /// Splits `provider/model`; without a known provider in front it is a model of `current`.
    pub fn split<'a>(&'a self, text: &'a str, current: &'a str) -> (&'a str, &'a str) {
        let is_one = |name: &str| self.known.contains_key(name) || preset(name).is_some();
        text.split_once('/').filter(|(provider, _)| is_one(provider)).unwrap_or((current, text))
    }

    /// What is known of a model.
    pub fn facts(&self, provider: &str, model: &str) -> Facts {
        self.definition(provider).map_or_else(|_| Facts::of(model, "", None), |it| it.provider.facts(model))
    }

    /// Tokens of a model's window, where they are known.
    pub fn window(&self, provider: &str, model: &str) -> Option<u64> {
        self.facts(provider, model).window
    }

    /// Writes down what every Provider says from now on.
    ///
    /// # Errors
    /// As [`Recorder::create`].
    pub fn record(&mut self, path: &std::path::Path) -> Result<()> {
        let secrets = self.known.values().filter_map(|it| it.endpoint.as_ref()?.credential().cloned()).collect();
        let recorder = Arc::new(Recorder::create(path, secrets)?);
        for definition in self.known.values_mut().chain(self.usual.values_mut()) {
            let provider = Arc::clone(&definition.provider);
            definition.provider = Arc::new(Recording::new(provider, Arc::clone(&recorder)));
        }
        Ok(())
    }

    /// Variables of the environment that may hold a key; no command gets them.
    pub fn key_variables(&self) -> impl Iterator<Item = &str> {
        self.known.values().filter_map(|it| it.endpoint.as_ref()?.key_variable())
    }
}

/// The port of a server of this machine, if somebody listens there; a closed one says so at once.
fn listens(endpoint: &Endpoint) -> Option<u16> {
    let port = reqwest::Url::parse(endpoint.base_url()).ok()?.port()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, Duration::from_millis(20)).is_ok().then_some(port)
}
