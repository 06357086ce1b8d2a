//! Builds the available Providers: presets that have a key, configured servers, and the demo.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Provider;
use super::demo::{self, Unconnected};
use super::dialect::Dialect;
use super::endpoint::{Address, Endpoint};
use super::preset::{PLAIN, PRESETS, Preset, Quirks, preset};
use super::server::Server;
use config::credentials::{Credential, PrintedKey, Vault};
use config::{Config, Environment, ModelConfig, ProviderConfig};
use protocol::error::{Code, Error, Result, nearest};
use protocol::remedy::Remedy;

/// How long a key that a command has printed is used, seconds.
const KEY_LASTS: u32 = 300;

/// Providers by their names.
pub(super) type Definitions = BTreeMap<String, Definition>;

/// A Provider that is set up.
#[derive(Clone)]
pub(super) struct Definition {
    pub(super) provider: Arc<dyn Provider>,
    /// The server's endpoint, unless the Provider is built in.
    pub(super) endpoint: Option<Endpoint>,
    /// The Provider as a server, if it is one.
    pub(super) server: Option<Arc<Server>>,
    /// The default model; `None` means the first that the server lists.
    pub(super) model: Option<String>,
    /// Models that the user configured.
    pub(super) configured: Vec<String>,
}

impl Definition {
    pub(super) fn given(provider: Arc<dyn Provider>, model: &str) -> Definition {
        Definition { provider, endpoint: None, server: None, model: Some(model.to_owned()), configured: Vec::new() }
    }

    pub(super) fn server(
        endpoint: Endpoint,
        quirks: Quirks,
        configured: Vec<(String, ModelConfig)>,
        model: Option<&str>,
    ) -> Definition {
        let names = configured.iter().map(|(name, _)| name.clone()).collect();
        let server = Arc::new(Server::new(endpoint.clone(), quirks, configured));
        let provider = Arc::clone(&server) as Arc<dyn Provider>;
        Definition {
            provider,
            endpoint: Some(endpoint),
            server: Some(server),
            model: model.map(str::to_owned),
            configured: names,
        }
    }
}

/// The result of the setup.
pub(super) struct FoundProviders {
    /// Providers that are ready to use.
    pub(super) known: Definitions,
    /// Presets on this machine that are not configured.
    pub(super) usual: Definitions,
    /// Errors of the other Providers.
    pub(super) broken: BTreeMap<String, Error>,
}

/// Names the environment variable that caused the error.
fn elsewhere(it: &Preset, mut error: Error) -> Error {
    if let Some(variable) = it.base_url_variable {
        error.message = format!("{variable}: {}", error.message);
    }
    error
}

/// Names the section of the configuration that caused the error.
fn in_section(name: &str, mut error: Error) -> Error {
    if error.code == Code::ConfigInvalid && !error.message.starts_with('[') {
        error.message = format!("[providers.{name}] in config.toml: {}", error.message);
    }
    error
}

/// The sources from which Providers are built.
pub(super) struct Setup<'a> {
    pub(super) config: &'a Config,
    pub(super) around: &'a Environment,
    pub(super) vault: Vault,
}

impl Setup<'_> {
    /// Builds every Provider that is ready to use, and finds the unconfigured presets on this machine.
    pub(super) fn everything(&self) -> Result<FoundProviders> {
        let mut broken = BTreeMap::new();
        let demo = Definition::given(Arc::new(Unconnected), demo::MODEL);
        let mut known = BTreeMap::from([("demo".to_owned(), demo)]);
        for it in PRESETS.iter().filter(|it| it.is_remote()) {
            if let Some(credential) = self.vault.find(it.name, it.key_variable, self.around)? {
                match self.preset(it, Some(credential)) {
                    Ok(definition) => drop(known.insert(it.name.to_owned(), definition)),
                    Err(error) => drop(broken.insert(it.name.to_owned(), elsewhere(it, error))),
                }
            }
        }
        for (name, server) in &self.config.providers {
            match self.configured(name, server, None) {
                Ok(definition) => drop(known.insert(name.clone(), definition)),
                // An unreadable credentials file affects every Provider.
                Err(error) if error.code != Code::ConfigInvalid => return Err(error),
                Err(error) => drop(broken.insert(name.clone(), in_section(name, error))),
            }
        }
        let mut usual = BTreeMap::new();
        for it in PRESETS.iter().filter(|it| !it.is_remote() && !known.contains_key(it.name)) {
            usual.insert(it.name.to_owned(), self.preset(it, None)?);
        }
        Ok(FoundProviders { known, usual, broken })
    }

    pub(super) fn preset(&self, it: &Preset, credential: Option<Credential>) -> Result<Definition> {
        let elsewhere = it.base_url_variable.and_then(|name| self.around.variable(name));
        let base_url = match elsewhere {
            Some(url) => it.completed(url),
            None => self.in_region(it.base_url)?,
        };
        if base_url.is_empty() {
            let fix = Remedy::SetVariable { name: it.base_url_variable.unwrap_or_default().to_owned() };
            return Err(Error::new(Code::ConfigInvalid, format!("{} has no base URL", it.name), fix));
        }
        let address = Address {
            provider: it.name,
            base_url: &base_url,
            headers: it.headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            insecure: false,
            key_variable: it.key_variable,
            check_path: it.check_path,
            is_unnamed: false,
            key_header: it.key_header,
        };
        let endpoint = Endpoint::new(&address, it.dialect, credential, self.config.requests.patience())?;
        Ok(Definition::server(endpoint, it.quirks, self.models_of(it.name), it.model))
    }

    /// Builds a Provider from its configuration section, with defaults from its preset.
    pub(super) fn configured(&self, name: &str, it: &ProviderConfig, secret: Option<Credential>) -> Result<Definition> {
        let like = it.preset.as_deref().or(Some(name)).and_then(preset);
        let invalid = |what: &str, fix| {
            Error::new(Code::ConfigInvalid, format!("[providers.{name}] {what}"), fix).with("input", name)
        };
        if let (Some(wrong), None) = (&it.preset, like) {
            let names = PRESETS.iter().map(|it| it.name);
            let fix = match nearest(wrong, names.clone()) {
                Some(near) => Remedy::nearest(near),
                None => format!("one of: {}", names.collect::<Vec<_>>().join(", ")).into(),
            };
            let what = format!("names the preset `{wrong}`, which does not exist");
            return Err(invalid(&what, fix).with("input", wrong.as_str()));
        }
        let dialect = match (&it.dialect, like) {
            (Some(dialect), _) => Dialect::parse(dialect)?,
            (None, Some(like)) => like.dialect,
            (None, None) => {
                let fix: Remedy = "add dialect = \"chat\", \"responses\" or \"anthropic\"".into();
                return Err(invalid("has no dialect", fix));
            }
        };
        let elsewhere = like.and_then(|like| Some(like.completed(self.around.variable(like.base_url_variable?)?)));
        let usual = match (&it.base_url, &elsewhere, like) {
            (None, None, Some(like)) => Some(self.in_region(like.base_url)?).filter(|url| !url.is_empty()),
            (_, _, _) => None,
        };
        let base_url = it.base_url.as_deref().or(elsewhere.as_deref()).or(usual.as_deref());
        let base_url =
            base_url.ok_or_else(|| invalid("has no base URL", "add base_url = \"https://host/v1\"".into()))?;
        let key_variable = it.api_key_env.as_deref().or(like.and_then(|like| like.key_variable));
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in like.map_or(&[][..], |like| like.headers) {
            headers.insert((*name).to_owned(), (*value).to_owned());
        }
        headers.extend(it.headers.clone());
        let check_path = like.and_then(|like| like.check_path);
        let address = Address {
            provider: name,
            base_url,
            headers,
            insecure: it.insecure,
            key_variable,
            check_path,
            is_unnamed: false,
            key_header: like.and_then(|like| like.key_header),
        };
        let credential = match secret {
            Some(secret) => Some(secret),
            None => self.credential(name, key_variable)?,
        };
        let endpoint = Endpoint::new(&address, dialect, credential, self.config.requests.patience())?;
        Ok(Definition::server(
            endpoint,
            like.map_or(PLAIN, |like| like.quirks),
            self.models_of(name),
            like.and_then(|like| like.model),
        ))
    }

    /// Puts the region of the environment into the address of a server that has one in each region.
    fn in_region(&self, base_url: &str) -> Result<String> {
        const PLACE: &str = "{region}";
        if !base_url.contains(PLACE) {
            return Ok(base_url.to_owned());
        }
        let region = ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().find_map(|name| self.around.variable(name));
        // It becomes a part of the host's name, so it cannot name another host.
        let is_region = |it: &&str| !it.is_empty() && it.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        match region.filter(is_region) {
            Some(region) => Ok(base_url.replace(PLACE, region)),
            None => {
                let fix = Remedy::SetVariable { name: "AWS_REGION".to_owned() };
                Err(Error::new(Code::ConfigInvalid, "the region of the account is not set", fix))
            }
        }
    }

    /// Finds a Provider's credential: the command of the user's settings, else as [`Vault::find`].
    pub(super) fn credential(&self, name: &str, variable: Option<&str>) -> Result<Option<Credential>> {
        let configured = self.config.providers.get(name);
        match configured.and_then(|it| Some((it.api_key_command.as_deref()?, it.api_key_ttl))) {
            Some((command, ttl)) => {
                Ok(Some(self.vault.printed(name, PrintedKey::new(command, ttl.unwrap_or(KEY_LASTS)))))
            }
            None => self.vault.find(name, variable, self.around),
        }
    }

    /// Returns the user's settings for a Provider's models, by the server's model names.
    pub(super) fn models_of(&self, provider: &str) -> Vec<(String, ModelConfig)> {
        let of = |(name, configured): (&String, &ModelConfig)| {
            let (of, model) = name.split_once('/')?;
            (of == provider).then(|| (model.to_owned(), configured.clone()))
        };
        self.config.models.iter().filter_map(of).collect()
    }
}
