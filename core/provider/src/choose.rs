//! Chooses the Provider: from flags, the configuration, the environment, a local server, else the demo.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Provider;
use super::connect::NewProvider;
use super::demo;
use super::dialect::Dialect;
use super::endpoint::{Address, Endpoint};
use super::listing::Listed;
use super::models::ModelInfo;
use super::preset::{PLAIN, PRESETS, preset};
use super::record::{Recorder, Recording};
use super::script::Scripted;
use super::setup::{Definition, Definitions, FoundProviders, Setup};
use super::starting::{IS_STARTING, Waits};
use config::credentials::{Credential, Vault};
use config::{Config, Environment};
use protocol::error::{Code, Error, Result, nearest};
use protocol::remedy::Remedy;

/// How long a local server may take to accept a connection: a closed port refuses at once.
const LOCAL_CONNECT: Duration = Duration::from_millis(20);
/// How long a local server may take to list its models.
const LOCAL_WAIT: Duration = Duration::from_secs(2);
/// The variable with the key for `--base-url`.
const OWN_KEY: &str = "PIXIR_API_KEY";

/// The Provider and model given on the command line.
#[derive(Debug, Clone, Default)]
pub struct ProviderSelection {
    /// The flag `--provider`, or `script:FILE`.
    pub provider: Option<String>,
    /// The flag `--model`: a model, or `provider/model`.
    pub model: Option<String>,
    /// The flag `--dialect`.
    pub dialect: Option<String>,
    /// The flag `--base-url`.
    pub base_url: Option<String>,
    /// Where the words of a server that is waited for go.
    pub waits: Option<Waits>,
}

/// Every available Provider, and the chosen one.
#[derive(Clone)]
pub struct Providers {
    pub(super) known: Definitions,
    /// Presets on this machine that are not configured. Their servers may be running nevertheless.
    pub(super) usual: Definitions,
    /// Errors of Providers whose configuration does not work.
    broken: BTreeMap<String, Error>,
    /// Models to ask, as `provider/model`, when the patience with the one before has ended.
    fallback: Vec<String>,
    /// Ends when the chosen Provider is prepared.
    preparing: Option<Shared<BoxFuture<'static, ()>>>,
    /// Every answer is recorded.
    is_recorded: bool,
    /// The chosen Provider's name.
    pub provider: String,
    /// The chosen model's name at it.
    pub model: String,
    /// Why these were chosen, for the user.
    pub why: String,
    /// The local server that did not list its models in time.
    silent: Option<&'static str>,
    /// The command that gets a model for the local server that has none.
    gets_model: Option<&'static str>,
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
    /// Offers one given Provider and no other.
    pub fn only(name: &str, model: &str, provider: Arc<dyn Provider>) -> Providers {
        Providers {
            known: BTreeMap::from([(name.to_owned(), Definition::given(provider, model))]),
            usual: BTreeMap::new(),
            broken: BTreeMap::new(),
            fallback: Vec::new(),
            preparing: None,
            is_recorded: false,
            provider: name.to_owned(),
            model: model.to_owned(),
            why: Self::GIVEN.into(),
            silent: None,
            gets_model: None,
        }
    }

    /// The reason shown for a Provider that was given, not chosen.
    pub const GIVEN: &str = "it was given";

    /// Loads the configured Providers, without choosing one and without network access.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, `CORRUPT_AUTH`, `AUTH_READ_FAILED`.
    pub fn configured(config: &Config, around: &Environment) -> Result<Providers> {
        let found = Setup { config, around, vault: Vault::new(around) }.everything()?;
        Ok(Providers::new(found, config))
    }

    /// The demo is chosen until a choice is made.
    fn new(FoundProviders { known, usual, broken }: FoundProviders, config: &Config) -> Providers {
        Providers {
            known,
            usual,
            broken,
            fallback: config.fallback.clone(),
            preparing: None,
            is_recorded: false,
            provider: "demo".into(),
            model: demo::MODEL.into(),
            why: "no key and no local server was found".into(),
            silent: None,
            gets_model: None,
        }
    }

    /// The same Providers and a new one, which is chosen. It replaces one of the same name.
    pub(super) fn with(&self, new: NewProvider) -> Providers {
        let NewProvider { provider, model, why, definition, .. } = new;
        let mut it = self.clone();
        it.usual.remove(&provider);
        it.broken.remove(&provider);
        it.known.insert(provider.clone(), definition);
        (it.provider, it.model, it.why) = (provider, model, why);
        it.prepare();
        it
    }

    /// Whether the answers are recorded.
    pub(super) fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// Loads the configured Providers and chooses one. The usual local ports are tried only if none is configured.
    ///
    /// # Errors
    /// As [`Providers::configured`], and `SCRIPT_INVALID`, `MODEL_NOT_SUPPORTED`, `AUTH_REQUIRED` when the requested
    /// Provider or model is not available; the error lists alternatives.
    pub async fn find(wishes: &ProviderSelection, config: &Config, around: &Environment) -> Result<Providers> {
        let it = Providers::find_early(wishes, config, around).await?;
        it.prepared().await;
        Ok(it)
    }

    /// As [`Providers::find`], but returns before the user's own server has said how large its window is. A Turn waits for
    /// that; meanwhile the Session can begin.
    ///
    /// # Errors
    /// As [`Providers::find`].
    pub fn find_early<'a>(
        wishes: &'a ProviderSelection,
        config: &'a Config,
        around: &'a Environment,
    ) -> BoxFuture<'a, Result<Providers>> {
        Box::pin(async move {
            let setup = Setup { config, around, vault: Vault::new(around) };
            let mut it = Providers::new(setup.everything()?, config);
            it.choose(wishes, &setup).await?;
            it.prepare();
            Ok(it)
        })
    }

    /// Requests the window of a model from the user's own server, at most once: only the server knows what it was started
    /// with. Returns after two seconds at the latest; what a server says that still starts, so that it can be asked again.
    pub async fn learn_window(&self, provider: &str, model: &str) -> Option<Error> {
        match self.definition(provider) {
            Ok(Definition { server: Some(server), .. }) => server.ask_for_window(model, LOCAL_WAIT).await,
            Ok(Definition { server: None, .. }) | Err(_) => None,
        }
    }

    /// Begins what the first request waits for: the HTTP client, and the window of the user's own server, because only
    /// the server knows what it was started with.
    fn prepare(&mut self) {
        if let Some(Definition { server: Some(server), .. }) = self.known.get(&self.provider) {
            let (server, model) = (Arc::clone(server), self.model.clone());
            let preparing = task::spawn(async move {
                server.prepare_client();
                server.ask_for_window(&model, LOCAL_WAIT).await;
            });
            self.preparing = Some(preparing.map(drop).boxed().shared());
        }
    }

    /// Returns when the chosen Provider is prepared.
    pub async fn prepared(&self) {
        if let Some(preparing) = &self.preparing {
            preparing.clone().await;
        }
    }

    async fn choose(&mut self, wishes: &ProviderSelection, setup: &Setup<'_>) -> Result<()> {
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
            // A model configured for another Provider does not belong to this one.
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
                Some(_) | None => self.default_model(provider, wishes.waits.as_ref()).await?,
            };
            return self.take(provider, &model, NAMED_PROVIDER);
        }
        if let Some((wished, source)) = wished {
            // `provider/model` if the text before the slash is a Provider, else a model of the first available server.
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
        self.choose_local(wished.map(|(model, _)| model), wishes.waits.as_ref()).await
    }

    /// Chooses a server given by `--base-url` alone.
    async fn choose_address(&mut self, base_url: &str, wishes: &ProviderSelection, setup: &Setup<'_>) -> Result<()> {
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
        self.known.insert(name.to_owned(), Definition::server(endpoint, quirks, setup.models_of(name), None));
        let model = match &wishes.model {
            Some(model) => model.strip_prefix(&format!("{name}/")).unwrap_or(model).to_owned(),
            None => self.default_model(name, wishes.waits.as_ref()).await?,
        };
        self.take(name, &model, "the base URL was given")
    }

    /// Tries the usual local ports, all at the same time. The first preset whose server answers is chosen.
    async fn choose_local(&mut self, wished: Option<&str>, waits: Option<&Waits>) -> Result<()> {
        let asking = PRESETS.iter().map(|it| async {
            let definition = self.usual.get(it.name)?;
            let (endpoint, server) = (definition.endpoint.as_ref()?, definition.server.as_ref()?);
            let port = listens(endpoint).await?;
            let models = endpoint.models(LOCAL_WAIT).await;
            if let Ok(models) = &models {
                server.learn(models);
            }
            Some((it.name, port, models))
        });
        let answers = futures_util::future::join_all(asking).await;
        let wanted = |models: &[Listed]| {
            let model = match wished {
                Some(wished) => models.iter().find(|m| m.name == wished),
                None => models.iter().find(|m| m.may_answer()),
            };
            model.map(|it| it.name.clone())
        };
        let (mut silent, mut without_model, mut starting) = (Vec::new(), None, Vec::new());
        for (name, port, models) in answers.into_iter().flatten() {
            match models {
                Ok(models) => match wanted(&models) {
                    Some(model) => return self.take(name, &model, &format!("{name} answers on port {port}")),
                    None => without_model = without_model.or(Some((name, port))),
                },
                Err(error) if error.details.contains_key(IS_STARTING) => starting.push((name, port)),
                Err(_) => {
                    self.silent = self.silent.or(Some(name));
                    silent.push(format!("{name} on port {port}"));
                }
            }
        }
        // Nothing else answers, so the server that still starts is waited for.
        for (name, port) in starting {
            let Some(Definition { endpoint: Some(endpoint), server, .. }) = self.usual.get(name) else { continue };
            match endpoint.models_once_started(LOCAL_WAIT, waits).await {
                Ok(models) => {
                    server.iter().for_each(|server| server.learn(&models));
                    if let Some(model) = wanted(&models) {
                        return self.take(name, &model, &format!("{name} answers on port {port}"));
                    }
                }
                Err(error) => self.why = error.message,
            }
        }
        if let (Some((name, port)), None) = (without_model, wished) {
            self.gets_model = preset(name).and_then(|it| it.gets_model);
            let how = self.gets_model.map_or(String::new(), |command| format!("; `{command}` gets one"));
            self.why = format!("{name} on port {port} has no model that answers{how}");
        }
        if !silent.is_empty() {
            let seconds = LOCAL_WAIT.as_secs();
            self.why = format!("{} did not list its models within {seconds} s, and there is no key", silent.join(", "));
        }
        // A configured Provider is broken. Falling back to the demo would hide its error.
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

    /// The error of a program that needs an answer of a model, and not of the demo that stands in for one.
    pub fn unconnected(&self) -> Error {
        let message = format!("no model is connected: {}", self.why);
        // A server that is slow to list its models can be asked for one by its name.
        let slow = self.silent.map(|name| Remedy::NameModel { provider: name.to_owned() });
        let gets = self.gets_model.map(Remedy::command);
        let others = [
            Remedy::Login { provider: Some("anthropic".into()) },
            Remedy::SetVariable { name: "ANTHROPIC_API_KEY".into() },
            Remedy::SetBaseUrl { url: None },
            Remedy::CheckSetup,
        ];
        Error::new(
            Code::AuthRequired,
            message,
            Remedy::AnyOf { remedies: gets.into_iter().chain(slow).chain(others).collect() },
        )
    }

    fn take(&mut self, provider: &str, model: &str, why: &str) -> Result<()> {
        self.definition(provider)?;
        // Choosing a preset also sets it up.
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
        // A preset on this machine needs no setup; a remote one needs a key.
        if let Some(variable) = preset(name).and_then(|it| it.key_variable) {
            let fix = Remedy::any_of([
                Remedy::SetVariable { name: variable.to_owned() },
                Remedy::Login { provider: Some(name.to_owned()) },
            ]);
            return Err(Error::new(Code::AuthRequired, format!("{name} needs an API key, and none is set"), fix));
        }
        if preset(name).is_some_and(|it| it.sign_in.is_some()) {
            let fix = Remedy::SignIn { provider: Some(name.to_owned()) };
            return Err(Error::new(
                Code::AuthRequired,
                format!("{name} needs a sign-in, and you are not signed in"),
                fix,
            ));
        }
        Err({
            let presets = PRESETS.iter().map(|it| it.name);
            let names: Vec<&str> = self.names().chain(presets).collect();
            let fix = match nearest(name, names.iter().copied()) {
                Some(near) => Remedy::nearest(near)
                    .and_text(format!(" Configured: {}", self.names().collect::<Vec<_>>().join(", "))),
                None => Remedy::any_of([
                    format!("one of: {}", self.names().collect::<Vec<_>>().join(", ")).into(),
                    format!("add a key or a [providers.{}] section to config.toml", name.escape_debug()).into(),
                    Remedy::CheckSetup,
                ]),
            };
            Error::new(Code::ConfigInvalid, format!("the provider `{}` is not set up", name.escape_debug()), fix)
                .with("input", name)
        })
    }

    async fn default_model(&self, provider: &str, waits: Option<&Waits>) -> Result<String> {
        let definition = self.definition(provider)?;
        match (&definition.model, &definition.endpoint) {
            (Some(model), _) => Ok(model.clone()),
            (None, Some(endpoint)) => {
                let models = endpoint.models_once_started(Duration::from_secs(5), waits).await?;
                if let Some(server) = &definition.server {
                    server.learn(&models);
                }
                models.into_iter().find(Listed::may_answer).map(|it| it.name).ok_or_else(|| {
                    let name = Remedy::NameModel { provider: provider.to_owned() };
                    let fix = match preset(provider).and_then(|it| it.gets_model) {
                        Some(command) => Remedy::any_of([Remedy::command(command), name]),
                        None => name,
                    };
                    Error::new(Code::ModelNotSupported, format!("{provider} lists no model that answers prompts"), fix)
                })
            }
            (None, None) => Ok(demo::MODEL.to_owned()),
        }
    }

    /// Returns the names of all available Providers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }

    /// Returns the models of a Provider that the user configured.
    pub fn configured_models<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.known.get(name).into_iter().flat_map(|it| it.configured.iter().map(String::as_str))
    }

    /// Returns the Provider's endpoint, unless it is built in or not set up.
    pub fn endpoint(&self, name: &str) -> Option<&Endpoint> {
        self.known.get(name).or_else(|| self.usual.get(name)).and_then(|it| it.endpoint.as_ref())
    }

    /// Describes the Provider's address and dialect for the user.
    pub fn describe(&self, name: &str) -> String {
        match self.known.get(name).or_else(|| self.usual.get(name)) {
            Some(Definition { endpoint: Some(it), .. }) => format!("{} at {}", it.dialect().name(), it.base_url()),
            Some(Definition { endpoint: None, .. }) => "built in".to_owned(),
            None => "not set up".to_owned(),
        }
    }

    /// Returns the Provider with this name, ready for requests.
    ///
    /// # Errors
    /// `CONFIG_INVALID` when the Provider is not set up.
    pub fn connect(&self, name: &str) -> Result<Arc<dyn Provider>> {
        Ok(Arc::clone(&self.definition(name)?.provider))
    }

    /// Returns the Provider and model to ask when this one does not answer. Fallbacks that are not set up are left out.
    pub fn fallback_after(&self, provider: &str, model: &str) -> Option<(String, String)> {
        let current = format!("{provider}/{model}");
        let rest = match self.fallback.iter().position(|it| *it == current) {
            Some(at) => &self.fallback[at + 1..],
            None => &self.fallback[..],
        };
        let mut usable =
            rest.iter().filter_map(|it| it.split_once('/')).filter(|(name, _)| self.definition(name).is_ok());
        usable.next().map(|(provider, model)| (provider.to_owned(), model.to_owned()))
    }

    /// Lists the available models as `provider/model`. Servers that do not answer in time are left out.
    pub async fn models(&self, within: Duration) -> Vec<String> {
        let models = self.offered(within).await.models.into_iter();
        models.map(|it| format!("{}/{}", it.provider, it.model)).collect()
    }

    /// Splits `provider/model`. Without a Provider's name in front, the text is a model of `current`.
    pub fn split<'a>(&'a self, text: &'a str, current: &'a str) -> (&'a str, &'a str) {
        let is_one = |name: &str| self.known.contains_key(name) || preset(name).is_some();
        text.split_once('/').filter(|(provider, _)| is_one(provider)).unwrap_or((current, text))
    }

    /// Returns the window, price and abilities of a model.
    pub fn facts(&self, provider: &str, model: &str) -> ModelInfo {
        self.definition(provider).map_or_else(|_| ModelInfo::of(model, "", None), |it| it.provider.facts(model))
    }

    /// Returns the window of a model in tokens, if it is known.
    pub fn window(&self, provider: &str, model: &str) -> Option<u64> {
        self.facts(provider, model).window
    }

    /// Records the answers of every Provider from now on.
    ///
    /// # Errors
    /// `WRITE_FAILED`, also when the file exists already.
    pub fn record(&mut self, path: &std::path::Path) -> Result<()> {
        let endpoints = self.known.values().filter_map(|it| it.endpoint.clone()).collect();
        let recorder = Arc::new(Recorder::create(path, endpoints)?);
        self.is_recorded = true;
        for definition in self.known.values_mut().chain(self.usual.values_mut()) {
            let provider = Arc::clone(&definition.provider);
            definition.provider = Arc::new(Recording::new(provider, Arc::clone(&recorder)));
        }
        Ok(())
    }

    /// Returns the environment variables that may hold a key; commands do not inherit them.
    pub fn key_variables(&self) -> impl Iterator<Item = &str> {
        self.known.values().filter_map(|it| it.endpoint.as_ref()?.key_variable())
    }
}

/// Returns the port of a server on this machine if the port accepts connections. A closed port refuses at once.
pub(super) async fn listens(endpoint: &Endpoint) -> Option<u16> {
    let port = reqwest::Url::parse(endpoint.base_url()).ok()?.port()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let connected = timeout(LOCAL_CONNECT, TcpStream::connect(address)).await;
    connected.is_ok_and(|it| it.is_ok()).then_some(port)
}
