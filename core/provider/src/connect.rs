//! Connects a Provider while pixir runs: with a key that the user pastes, on a server of this machine, by signing in.

use std::time::Duration;

use futures_util::future::join_all;

use super::browser_login::random_host;
use super::choose::listens;
use super::endpoint::Endpoint;
use super::listing::Listed;
use super::preset::{PRESETS, preset};
use super::setup::{Definition, Setup};
use super::sign_in::{Invitation, SignIn};
use config::credentials::{Credential, Secret, Source, Vault};
use config::{Config, Environment};
use protocol::error::{Code, Error, Result};
use protocol::remedy::Remedy;

/// How long a server may take to accept or refuse a key.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a server of this machine may take to list its models.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest key, bytes.
pub const MAX_KEY: usize = 16 << 10;

/// Connects Providers with the user's configuration and store of keys.
#[derive(Debug, Clone)]
pub struct Connector {
    config: Config,
    around: Environment,
    vault: Vault,
}

/// A Provider that takes a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The Provider's name.
    pub provider: String,
    /// The environment variable that can hold the key.
    pub variable: Option<String>,
    /// Where its key comes from now.
    pub source: Option<Source>,
    /// The user can sign in: the Provider or the configuration says where.
    pub signs_in: bool,
    /// It takes a key that the user pastes.
    pub takes_key: bool,
}

/// A model server of this machine that answers.
#[derive(Debug, Clone)]
pub struct LocalServer {
    /// The Provider's name.
    pub provider: String,
    /// Its port.
    pub port: u16,
    /// The models that it lists and that answer prompts; or why it lists none.
    pub models: Result<Vec<String>>,
}

/// A Provider that has just been connected.
pub struct NewProvider {
    /// Its name.
    pub provider: String,
    /// The model to begin with.
    pub model: String,
    /// How many models it lists.
    pub models: usize,
    /// Why it is chosen, for the user.
    pub why: String,
    /// What takes precedence over the stored key at the next start: a variable of the environment, or `api_key_command`.
    pub hidden_by: Option<String>,
    pub(super) definition: Definition,
}

impl std::fmt::Debug for NewProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewProvider")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// Takes a key as the user gave it. The error does not repeat it: it may be a real key with a typo.
///
/// # Errors
/// `INVALID_ARGS`.
pub fn key(text: &str) -> Result<Secret> {
    let wrong = match text.trim() {
        "" => "the key is empty",
        key if key.len() > MAX_KEY => "the input is too long for a key",
        key if !key.bytes().all(|b| b.is_ascii_graphic()) => "a key is one word without spaces or control characters",
        key => return Ok(Secret::Key(key.into())),
    };
    Err(Error::new(Code::InvalidArgs, wrong, "copy the key again from the provider's site"))
}

/// The Provider whose keys begin like this one.
pub fn provider_of(key: &str) -> Option<&'static str> {
    const BEGINNINGS: [(&str, &str); 6] = [
        ("sk-ant-", "anthropic"),
        ("sk-or-", "openrouter"),
        ("gsk_", "groq"),
        ("xai-", "xai"),
        ("AIza", "gemini"),
        ("sk-proj-", "openai"),
    ];
    BEGINNINGS.iter().find(|(beginning, _)| key.trim_start().starts_with(beginning)).map(|(_, name)| *name)
}

/// Whether a server has refused a credential, or what its account includes.
pub fn is_refused(e: &Error) -> bool {
    matches!(e.code, Code::AuthRequired | Code::AccessDenied)
}

impl Connector {
    /// Connects Providers with this configuration, which is the user's own.
    pub fn new(config: Config, around: Environment) -> Connector {
        let vault = Vault::new(&around);
        Connector { config, around, vault }
    }

    fn setup(&self) -> Setup<'_> {
        Setup { config: &self.config, around: &self.around, vault: self.vault.clone() }
    }

    /// Providers that take a key: the built-in ones in their order, then those of the configuration.
    pub fn names(&self) -> Vec<String> {
        let built_in = PRESETS.iter().filter(|it| it.is_remote()).map(|it| it.name.to_owned());
        let mut names: Vec<String> = built_in.collect();
        let own: Vec<String> = self.config.providers.keys().filter(|it| !names.contains(it)).cloned().collect();
        names.extend(own);
        names
    }

    /// The environment variable that can hold a Provider's key.
    pub fn variable(&self, provider: &str) -> Option<&str> {
        let configured = self.config.providers.get(provider).and_then(|it| it.api_key_env.as_deref());
        configured.or_else(|| preset(provider)?.key_variable)
    }

    /// The variable of a Provider's key, if the environment sets it.
    pub fn set_variable(&self, provider: &str) -> Option<&str> {
        self.variable(provider).filter(|name| self.around.variable(name).is_some())
    }

    /// The Provider's credential, wherever it comes from.
    ///
    /// # Errors
    /// `CORRUPT_AUTH`, `AUTH_READ_FAILED`.
    pub fn credential(&self, provider: &str) -> Result<Option<Credential>> {
        self.setup().credential(provider, self.variable(provider))
    }

    /// What takes precedence over a stored key of the Provider: a variable that is set, or a command of the settings.
    pub fn before_stored(&self, provider: &str) -> Option<&str> {
        let command = self.config.providers.get(provider).is_some_and(|it| it.api_key_command.is_some());
        if command { Some("api_key_command") } else { self.set_variable(provider) }
    }

    /// How the Provider signs its users in, with what the user has configured.
    pub fn sign_in(&self, provider: &str) -> SignIn {
        let configured = self.config.providers.get(provider);
        let like = configured.and_then(|it| it.preset.as_deref()).unwrap_or(provider);
        SignIn::of(provider, preset(like), configured)
    }

    /// Whether the Provider takes no key, so that users can only sign in.
    pub fn only_signs_in(&self, provider: &str) -> bool {
        let configured = self.config.providers.get(provider);
        let like = configured.and_then(|it| it.preset.as_deref()).unwrap_or(provider);
        self.variable(provider).is_none()
            && preset(like).is_some_and(|it| it.key_variable.is_none() && it.sign_in.is_some())
    }

    /// Every Provider that takes a key, and whether it has one.
    ///
    /// # Errors
    /// `CORRUPT_AUTH`, `AUTH_READ_FAILED`.
    pub fn accounts(&self) -> Result<Vec<Account>> {
        let account = |provider: String| {
            let variable = self.variable(&provider).map(str::to_owned);
            let found = self.credential(&provider)?;
            let signs_in = self.sign_in(&provider).is_ready();
            let takes_key = !self.only_signs_in(&provider);
            Ok(Account { variable, source: found.map(|it| it.source().clone()), signs_in, takes_key, provider })
        };
        self.names().into_iter().map(account).collect()
    }

    /// The model servers of this machine that accept connections on their usual ports.
    pub async fn local_servers(&self) -> Vec<LocalServer> {
        let asking = PRESETS.iter().filter(|it| !it.is_remote()).map(|it| async {
            let definition = self.local(it.name).ok()?;
            let endpoint = definition.endpoint.as_ref()?;
            let port = listens(endpoint).await?;
            let models = endpoint.models(LOCAL_TIMEOUT).await;
            let names = |all: Vec<Listed>| all.into_iter().filter(Listed::may_answer).map(|it| it.name).collect();
            Some(LocalServer { provider: it.name.to_owned(), port, models: models.map(names) })
        });
        join_all(asking).await.into_iter().flatten().collect()
    }

    fn local(&self, provider: &str) -> Result<Definition> {
        let setup = self.setup();
        match (self.config.providers.get(provider), preset(provider)) {
            (Some(server), _) => setup.configured(provider, server, None),
            (None, Some(preset)) => setup.preset(preset, None),
            (None, None) => Err(unknown(provider)),
        }
    }

    fn with_secret(&self, provider: &str, secret: Credential) -> Result<Definition> {
        let setup = self.setup();
        match (self.config.providers.get(provider), preset(provider)) {
            (Some(server), _) => setup.configured(provider, server, Some(secret)),
            (None, Some(preset)) => setup.preset(preset, Some(secret)),
            (None, None) => Err(unknown(provider)),
        }
    }

    /// Connects a server of this machine.
    ///
    /// # Errors
    /// Those of the request for its models; `MODEL_NOT_SUPPORTED` when none of them answers prompts.
    pub async fn connect_local(&self, provider: &str) -> Result<NewProvider> {
        let definition = self.local(provider)?;
        let listed = list(&definition, LOCAL_TIMEOUT).await?;
        self.connected(provider, definition, &listed, format!("{provider} runs on this machine"))
    }

    /// Tests a credential with the server. Returns how many models it lists.
    ///
    /// # Errors
    /// As [`Connector::connect_with`].
    pub async fn check(&self, provider: &str, credential: &Credential) -> Result<usize> {
        let definition = self.with_secret(provider, credential.clone())?;
        list(&definition, CHECK_TIMEOUT).await.map(|listed| listed.len())
    }

    /// Tests a secret with the server, stores it, and connects the Provider.
    ///
    /// # Errors
    /// `AUTH_REQUIRED` with the server's words when it refuses the secret, which is not stored then; `NETWORK`,
    /// `AUTH_WRITE_FAILED`.
    pub async fn connect_with(&self, provider: &str, secret: Secret) -> Result<NewProvider> {
        self.connect_tested(provider, secret, Err).await
    }

    /// `or` decides what is made of a list of models that cannot be had.
    async fn connect_tested(
        &self,
        provider: &str,
        secret: Secret,
        or: impl FnOnce(Error) -> Result<Vec<Listed>>,
    ) -> Result<NewProvider> {
        let held = self.vault.hold(provider, secret);
        let definition = self.with_secret(provider, held.clone())?;
        let listed = list(&definition, CHECK_TIMEOUT).await.or_else(or)?;
        let _alone = self.vault.lock_renewal().await?;
        // The test may have renewed a token.
        let source = self.vault.save(provider, &held.secret())?;
        // The stored credential, so that a renewed token is stored too.
        let stored = self.vault.find(provider, None, &self.around)?;
        let definition = self.with_secret(provider, stored.unwrap_or(held))?;
        let mut new = self.connected(provider, definition, &listed, format!("there is a key in {source}"))?;
        new.hidden_by = self.before_stored(provider).map(str::to_owned);
        Ok(new)
    }

    /// Begins a sign-in: asks the issuer for a code, or for a page to which the browser comes back.
    ///
    /// # Errors
    /// `DEVICE_CODE_UNSUPPORTED` when the issuer or the client id is not known, or when the issuer does not offer the device
    /// flow; `DEVICE_AUTH_FAILED`, `NETWORK`, `CONFIG_INVALID`, and those of the store of keys.
    pub async fn invite(&self, provider: &str, sign_in: &SignIn) -> Result<Invitation> {
        // An issuer that has registered pixir for this account does not register it again.
        let registered = match self.vault.find(provider, None, &self.around)?.map(|it| it.secret()) {
            Some(Secret::Token(token)) => token.grant.is_some().then_some(token.client_id),
            Some(Secret::Key(_) | Secret::Printed(_)) | None => None,
        };
        sign_in.invite(registered, || self.vault.host(random_host)).await
    }

    /// Waits until the user has signed in, and connects the Provider, also where its list of models cannot be had: the user need
    /// not sign in again for that. `given` is what the user types in place of a browser that
    /// cannot reach this machine.
    ///
    /// # Errors
    /// As [`Invitation::wait`] and [`Connector::connect_with`].
    pub async fn connect_signed_in(
        &self,
        provider: &str,
        invitation: Invitation,
        given: impl Future<Output = String>,
    ) -> Result<NewProvider> {
        let secret = invitation.wait(given).await?;
        self.connect_tested(provider, secret, |e| if is_refused(&e) { Err(e) } else { Ok(Vec::new()) }).await
    }

    fn connected(&self, provider: &str, definition: Definition, listed: &[Listed], why: String) -> Result<NewProvider> {
        // The usual model, as long as this account has it.
        let usual = definition.model.clone().filter(|it| listed.is_empty() || listed.iter().any(|m| m.name == *it));
        let first = || listed.iter().find(|it| it.may_answer()).map(|it| it.name.clone());
        let configured = definition.configured.first().cloned();
        let model = usual.or(configured).or_else(first).or_else(|| definition.model.clone()).ok_or_else(|| {
            let message = format!("{provider} lists no model that answers prompts");
            Error::new(Code::ModelNotSupported, message, Remedy::NameModel { provider: provider.to_owned() })
        })?;
        let models = listed.len();
        Ok(NewProvider { provider: provider.to_owned(), model, models, why, hidden_by: None, definition })
    }
}

fn unknown(provider: &str) -> Error {
    let message = format!("there is no provider `{}`", provider.escape_debug());
    Error::new(Code::ConfigInvalid, message, "add a [providers] section to config.toml").with("input", provider)
}

/// The models of a server, asked in a way that only a valid key can.
async fn list(definition: &Definition, within: Duration) -> Result<Vec<Listed>> {
    let Some(endpoint): Option<&Endpoint> = definition.endpoint.as_ref() else { return Ok(Vec::new()) };
    let listed = endpoint.check(within).await?;
    if let Some(server) = definition.server.as_ref().filter(|_| endpoint.is_own()) {
        server.learn(&listed);
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_tells_its_provider_and_a_wrong_one_is_not_repeated() {
        assert_eq!(provider_of("sk-ant-api03-x"), Some("anthropic"));
        assert_eq!(provider_of("  gsk_x"), Some("groq"));
        assert_eq!(provider_of("sk-x"), None, "many servers have keys like this");
        assert!(key("  sk-one-word\n").is_ok());
        let error = key("sk two words").expect_err("two words");
        assert!(!format!("{error:?}").contains("sk two"), "{error:?}");
    }
}
