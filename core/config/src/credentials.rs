//! Finds, stores and renews keys and tokens. They cannot be printed.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};

use crate::Environment;
use protocol::error::{Code, Error, Result};
use protocol::remedy::Remedy;
use storage::regular;

#[cfg(feature = "keyring")]
mod keyring; // the system's own store

/// A token that expires within this time is renewed before use, seconds.
const SKEW: i64 = 60;

/// Where a credential comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An environment variable.
    Environment(String),
    /// The system's keyring.
    Keyring,
    /// The file `auth.json`.
    File,
    /// A command that the user has configured, which prints the key.
    Command,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Environment(name) => f.write_str(name),
            Source::Keyring => f.write_str("keyring"),
            Source::File => f.write_str("auth.json"),
            Source::Command => f.write_str("api_key_command"),
        }
    }
}

/// A secret of a Provider.
#[derive(Debug, Clone)]
pub enum Secret {
    /// A key that does not expire.
    Key(SecretString),
    /// A token that expires, and the data to renew it.
    Token(Token),
    /// A key that a command prints. It is never stored.
    Printed(PrintedKey),
}

/// A key that a command of the user prints.
#[derive(Debug, Clone)]
pub struct PrintedKey {
    /// What the shell runs. It may hold a secret itself.
    pub command: SecretString,
    /// How long a printed key is used before the command runs again, seconds.
    pub lasts: u32,
    /// The key that was printed last; empty before the first run.
    pub key: SecretString,
    /// When the command runs again.
    pub until: Timestamp,
}

impl PrintedKey {
    /// A key that was not printed yet.
    pub fn new(command: &str, lasts: u32) -> PrintedKey {
        let (command, key) = (SecretString::from(command), SecretString::from(""));
        PrintedKey { command, lasts, key, until: Timestamp::UNIX_EPOCH }
    }

    /// The same with the key that was printed now.
    pub fn printed(self, key: SecretString) -> PrintedKey {
        let until = Timestamp::now().as_second().saturating_add(i64::from(self.lasts));
        PrintedKey { key, until: Timestamp::from_second(until).unwrap_or(Timestamp::MAX), ..self }
    }
}

/// A token that expires.
#[derive(Debug, Clone)]
pub struct Token {
    /// The token that requests carry.
    pub access: SecretString,
    /// The token that renews it.
    pub refresh: Option<SecretString>,
    /// When it expires.
    pub expires: Option<Timestamp>,
    /// The endpoint that renews it.
    pub endpoint: String,
    /// The OAuth client id.
    pub client_id: String,
    /// How `refresh` becomes a new token.
    pub renewal: Renewal,
    /// What the issuer wants besides to renew the token: it is for one resource alone.
    pub grant: Option<Box<Grant>>,
}

/// How a token is renewed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Renewal {
    /// `refresh` is a refresh token (RFC 6749 §6).
    #[default]
    Refresh,
    /// `refresh` is a token of GitHub, which is exchanged for a token of Copilot.
    Copilot,
}

/// What a token is good for, and how pixir proves to its issuer that it is the client which got it.
#[derive(Debug, Clone)]
pub struct Grant {
    /// The issuer.
    pub issuer: String,
    /// The server, as the issuer knows it.
    pub resource: String,
    /// The scope that was asked for.
    pub scope: Option<String>,
    /// The client's own secret, where it has one.
    pub client: ClientProof,
    /// Where the issuer ends tokens, if it does so on request.
    pub revocation: Option<String>,
}

/// How an OAuth client proves to the issuer which one it is.
#[derive(Debug, Clone)]
pub enum ClientProof {
    /// It has no secret.
    Nothing,
    /// Its secret is in the form.
    InForm(SecretString),
    /// Its secret is in the header.
    InHeader(SecretString),
}

impl Grant {
    fn to_json(&self) -> Value {
        let client = match &self.client {
            ClientProof::Nothing => Value::Null,
            ClientProof::InForm(secret) => json!({ "in": "form", "secret": secret.expose_secret() }),
            ClientProof::InHeader(secret) => json!({ "in": "header", "secret": secret.expose_secret() }),
        };
        json!({
            "issuer": self.issuer, "resource": self.resource, "scope": self.scope, "client": client,
            "revocation": self.revocation,
        })
    }

    fn from_json(value: &Value) -> Option<Grant> {
        let text = |it: &Value| it.as_str().map(str::to_owned);
        let secret = value["client"]["secret"].as_str().map(SecretString::from);
        Some(Grant {
            issuer: text(&value["issuer"])?,
            resource: text(&value["resource"])?,
            scope: text(&value["scope"]),
            revocation: text(&value["revocation"]),
            client: match (value["client"]["in"].as_str(), secret) {
                (Some("header"), Some(secret)) => ClientProof::InHeader(secret),
                (_, Some(secret)) => ClientProof::InForm(secret),
                (_, None) => ClientProof::Nothing,
            },
        })
    }
}

impl Secret {
    /// Returns the text that requests carry.
    pub fn reveal(&self) -> &SecretString {
        match self {
            Secret::Key(key) => key,
            Secret::Token(token) => &token.access,
            Secret::Printed(it) => &it.key,
        }
    }

    /// Returns what is stored of it.
    fn to_json(&self) -> Value {
        match self {
            Secret::Key(key) => json!({ "type": "key", "key": key.expose_secret() }),
            Secret::Token(token) => json!({
                "type": "token",
                "access": token.access.expose_secret(),
                "refresh": token.refresh.as_ref().map(|it| it.expose_secret()),
                "expires": token.expires,
                "endpoint": token.endpoint,
                "client_id": token.client_id,
                "renewal": if token.renewal == Renewal::Copilot { Value::from("copilot") } else { Value::Null },
                "grant": token.grant.as_ref().map(|it| it.to_json()),
            }),
            // A credential of a command is held, and `save` is for what the user gives.
            Secret::Printed(_) => Value::Null,
        }
    }

    fn from_json(value: &Value) -> Option<Secret> {
        let field = |name: &str| value[name].as_str().filter(|it| !it.is_empty());
        let secret = |name: &str| field(name).map(SecretString::from);
        match field("type")? {
            "key" => Some(Secret::Key(secret("key")?)),
            "token" => Some(Secret::Token(Token {
                access: secret("access")?,
                refresh: secret("refresh"),
                expires: field("expires").and_then(|it| it.parse().ok()),
                endpoint: field("endpoint")?.to_owned(),
                client_id: field("client_id")?.to_owned(),
                renewal: if field("renewal") == Some("copilot") { Renewal::Copilot } else { Renewal::Refresh },
                grant: Grant::from_json(&value["grant"]).map(Box::new),
            })),
            _ => None,
        }
    }
}

/// The credential of requests to one Provider. Clones share a renewed token.
#[derive(Clone)]
pub struct Credential {
    provider: String,
    source: Source,
    secret: Arc<Mutex<Secret>>,
    /// Tells the secret apart from others of the Provider: from the one of the beginning, so that a renewal keeps it.
    number: u64,
    vault: Vault,
    /// Held during a renewal, so that only one runs at a time; in it, when and why the last one failed.
    renewing: Arc<tokio::sync::Mutex<Option<(Instant, Error)>>>,
    /// The credential is not stored, and renewing it does not store it.
    held: bool,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("source", &self.source).finish_non_exhaustive()
    }
}

/// A function that gets a new secret, given the old one and the Provider's name: from the issuer, or from the user's command.
pub trait Refresh<F>: FnOnce(Secret, String) -> F + Send + 'static {}

impl<F, R: FnOnce(Secret, String) -> F + Send + 'static> Refresh<F> for R {}

impl Credential {
    /// Returns where the credential comes from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the current secret.
    pub fn secret(&self) -> Secret {
        self.secret.lock().clone()
    }

    /// A number that tells it apart from other credentials of the Provider, and from which it cannot be found out.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether it is a token that expires, not a key.
    pub fn is_token(&self) -> bool {
        matches!(&*self.secret.lock(), Secret::Token(_))
    }

    /// Whether it can be renewed when it expires.
    pub fn can_renew(&self) -> bool {
        match &*self.secret.lock() {
            Secret::Key(_) => false,
            Secret::Token(token) => token.refresh.is_some(),
            Secret::Printed(_) => true,
        }
    }

    /// Returns when it expires, if it does.
    pub fn expires(&self) -> Option<Timestamp> {
        match &*self.secret.lock() {
            Secret::Key(_) | Secret::Printed(_) => None,
            Secret::Token(token) => token.expires,
        }
    }

    /// Returns a hint that is safe to show: the last four characters of a long secret.
    pub fn hint(&self) -> String {
        let secret = self.secret.lock();
        let text: Vec<char> = secret.reveal().expose_secret().chars().collect();
        if text.len() < 20 {
            "…".to_owned()
        } else {
            format!("…{}", text[text.len() - 4..].iter().collect::<String>())
        }
    }

    /// Returns the secret for a request, renewed first if it is about to expire.
    ///
    /// # Errors
    /// `AUTH_REQUIRED` when it cannot be renewed any more, `NETWORK`.
    pub async fn current<F>(&self, refresh: impl Refresh<F>) -> Result<SecretString>
    where
        F: Future<Output = Result<Secret>> + Send,
    {
        if !self.is_good(None) {
            self.renew(None, refresh).await?;
        }
        Ok(self.secret.lock().reveal().clone())
    }

    /// Renews the token after the server rejected `refused`. Returns `false` when the credential cannot be renewed.
    ///
    /// A renewal that has begun is completed even if the caller stops waiting: the issuer may already have invalidated
    /// the old token.
    ///
    /// # Errors
    /// As [`Credential::current`].
    pub async fn renew<F>(&self, refused: Option<&SecretString>, refresh: impl Refresh<F>) -> Result<bool>
    where
        F: Future<Output = Result<Secret>> + Send,
    {
        let (own, refused) = (self.clone(), refused.cloned());
        let renewal = task::spawn(async move { own.renew_alone(refused.as_ref(), refresh).await });
        renewal.await.unwrap_or_else(|_| {
            Err(Error::new(Code::TokenRequestFailed, "the token could not be renewed", "try again"))
        })
    }

    async fn renew_alone<F>(&self, refused: Option<&SecretString>, refresh: impl Refresh<F>) -> Result<bool>
    where
        F: Future<Output = Result<Secret>> + Send,
    {
        let asked = Instant::now();
        let mut failed = self.renewing.lock().await;
        if self.is_good(refused) {
            return Ok(true);
        }
        // Several requests at once wait for one renewal, also when it fails: a command that hangs runs once for all of them.
        if let Some((_, why)) = failed.as_ref().filter(|(at, _)| *at >= asked) {
            return Err(why.clone());
        }
        if !self.can_renew() {
            return Ok(false);
        }
        // Another pixir process may be renewing the token; the second one uses the result of the first.
        let _alone = if self.held { None } else { Some(self.vault.lock_renewal().await?) };
        if self.take_kept() && self.is_good(refused) {
            return Ok(true);
        }
        let renewed = refresh(self.secret(), self.provider.clone()).await;
        *failed = renewed.as_ref().err().map(|why| (Instant::now(), why.clone()));
        let renewed = renewed?;
        // The new token is stored before it is used.
        if !self.held {
            self.vault.save(&self.provider, &renewed)?;
        }
        *self.secret.lock() = renewed;
        // A command may print again what the server has refused.
        Ok(self.is_good(refused))
    }

    /// Whether the secret can be used: it was not rejected and does not expire soon.
    fn is_good(&self, refused: Option<&SecretString>) -> bool {
        let secret = self.secret();
        let now = Timestamp::now();
        match (&secret, refused) {
            (Secret::Key(_), refused) => refused.is_none(),
            (Secret::Token(_) | Secret::Printed(_), Some(refused)) => {
                secret.reveal().expose_secret() != refused.expose_secret()
            }
            (Secret::Token(token), None) => {
                token.expires.is_none_or(|end| end.as_second() - now.as_second() >= SKEW) || token.refresh.is_none()
            }
            (Secret::Printed(it), None) => now < it.until,
        }
    }

    /// Replaces the secret in memory by the stored one. Returns whether there was one.
    fn take_kept(&self) -> bool {
        if self.held {
            return false;
        }
        match self.vault.kept(&self.provider) {
            Ok(Some((_, kept))) => {
                *self.secret.lock() = kept;
                true
            }
            Ok(None) | Err(_) => false,
        }
    }

    /// Removes the secret from a text. Very short secrets are ignored, because they would match everywhere.
    pub fn redact(&self, text: &str) -> String {
        let secret = self.secret();
        let refresh = if let Secret::Token(token) = &secret { token.refresh.as_ref() } else { None };
        let secrets = [Some(secret.reveal()), refresh].into_iter().flatten().map(|it| it.expose_secret());
        let long = secrets.filter(|it| it.len() >= SHORTEST_SECRET);
        long.fold(text.to_owned(), |text, it| text.replace(it, REDACTED))
    }
}

/// The name under which a secret of an MCP server is stored.
pub fn name_for_server(server: &str, variable: &str) -> String {
    format!("mcp:{server}:{variable}")
}

/// The name under which the sign-in to an MCP server at this URL is stored.
pub fn name_for_login(url: &str) -> String {
    format!("mcp-login:{url}")
}

/// Shorter secrets are not removed from texts, bytes.
pub const SHORTEST_SECRET: usize = 8;
/// Stands where a secret was.
pub const REDACTED: &str = "[redacted]";

/// The store of credentials.
#[derive(Debug, Clone)]
pub struct Vault {
    path: PathBuf,
    /// The system's keyring is used too.
    #[cfg_attr(not(feature = "keyring"), expect(dead_code, reason = "this build has no keyring"))]
    keyring: bool,
}

impl Vault {
    /// Opens the store of this home. `PIXIR_KEYRING=off` disables the system's keyring.
    pub fn new(around: &Environment) -> Vault {
        Vault { path: around.home.join("auth.json"), keyring: around.variable("PIXIR_KEYRING") != Some("off") }
    }

    /// Returns the path of `auth.json`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Finds a Provider's credential: in the environment, else the keyring, else the file.
    ///
    /// # Errors
    /// `CORRUPT_AUTH`, `AUTH_READ_FAILED`: the file exists and cannot be used.
    pub fn find(&self, provider: &str, variable: Option<&str>, around: &Environment) -> Result<Option<Credential>> {
        let found = |source, secret| self.credential(provider, source, secret);
        let set = variable.and_then(|name| Some((name, around.variable(name)?.trim())));
        if let Some((name, key)) = set.filter(|(_, key)| !key.is_empty()) {
            let key = Secret::Key(SecretString::from(key));
            return Ok(Some(found(Source::Environment(name.to_owned()), key)));
        }
        Ok(self.kept(provider)?.map(|(source, secret)| found(source, secret)))
    }

    /// Returns the stored secret of a Provider, and where it is stored.
    fn kept(&self, provider: &str) -> Result<Option<(Source, Secret)>> {
        #[cfg(feature = "keyring")]
        if self.keyring
            && let Some(secret) = keyring::find(provider)
        {
            return Ok(Some((Source::Keyring, secret)));
        }
        let Some(value) = self.read()?.remove(provider) else { return Ok(None) };
        match Secret::from_json(&value) {
            Some(secret) => Ok(Some((Source::File, secret))),
            None => Err(self.corrupt(&format!("the entry for {provider} is incomplete"))),
        }
    }

    /// The name of this installation for issuers that want one, the same at every sign-in. `new` makes it once.
    ///
    /// # Errors
    /// `AUTH_READ_FAILED`, `AUTH_WRITE_FAILED`, and those of `new`.
    pub fn host(&self, new: impl FnOnce() -> Result<String>) -> Result<String> {
        // It lies among the secrets under a name that no Provider can have, and is removed with none of them.
        const NAME: &str = "installation:host";
        if let Some((_, it)) = self.kept(NAME)? {
            return Ok(it.reveal().expose_secret().to_owned());
        }
        let host = new()?;
        self.save(NAME, &Secret::Key(SecretString::from(host.as_str())))?;
        Ok(host)
    }

    /// Whether a secret is stored for a Provider.
    ///
    /// # Errors
    /// As [`Vault::find`].
    pub fn holds(&self, provider: &str) -> Result<bool> {
        Ok(self.kept(provider)?.is_some())
    }

    /// Waits until no other process renews a token.
    pub async fn lock_renewal(&self) -> Result<fs::File> {
        let path = self.path.with_extension("renewal.lock");
        let locking = task::spawn_blocking(move || {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let file = fs::File::create(path)?;
            file.lock().map(|()| file)
        });
        let locked = locking.await.unwrap_or_else(|e| Err(std::io::Error::other(e)));
        locked.map_err(|e| self.not_written(&e))
    }

    /// Waits until no process renews a token, if this is one: the renewal would replace what is stored now.
    ///
    /// # Errors
    /// `AUTH_WRITE_FAILED`.
    pub async fn lock_for(&self, credential: &Credential) -> Result<Option<fs::File>> {
        if credential.is_token() { self.lock_renewal().await.map(Some) } else { Ok(None) }
    }

    fn not_written(&self, e: &std::io::Error) -> Error {
        let message = format!("write {}: {e}", self.path.display());
        Error::new(Code::AuthWriteFailed, message, "make the folder writable, or set PIXIR_HOME")
    }

    /// Creates a credential that is not stored, to try it out.
    pub fn hold(&self, provider: &str, secret: Secret) -> Credential {
        Credential { held: true, ..self.credential(provider, Source::File, secret) }
    }

    /// Creates a credential whose key a command of the user prints when it is needed.
    pub fn printed(&self, provider: &str, key: PrintedKey) -> Credential {
        Credential { held: true, ..self.credential(provider, Source::Command, Secret::Printed(key)) }
    }

    fn credential(&self, provider: &str, source: Source, secret: Secret) -> Credential {
        // A command may print another key each time, so its text is what stays.
        let named = if let Secret::Printed(it) = &secret { &it.command } else { secret.reveal() };
        let hash = blake3::hash(named.expose_secret().as_bytes());
        let (first, _) = hash.as_bytes().split_first_chunk().expect("a hash is longer than a number");
        Credential {
            provider: provider.to_owned(),
            source,
            number: u64::from_le_bytes(*first),
            secret: Arc::new(Mutex::new(secret)),
            vault: self.clone(),
            renewing: Arc::default(),
            held: false,
        }
    }

    /// Returns the names of the Providers with a secret in the file.
    ///
    /// # Errors
    /// As [`Vault::find`].
    pub fn names(&self) -> Result<Vec<String>> {
        Ok(self.read()?.into_iter().map(|(name, _)| name).filter(|it| !it.starts_with("installation:")).collect())
    }

    /// Stores a secret and replaces an earlier one: in the keyring if there is one, else in the file.
    ///
    /// # Errors
    /// `AUTH_WRITE_FAILED`.
    pub fn save(&self, provider: &str, secret: &Secret) -> Result<Source> {
        #[cfg(feature = "keyring")]
        if self.keyring && keyring::save(provider, secret) {
            // A secret in the file is now outdated.
            self.change(|kept| kept.remove(provider).is_some())?;
            return Ok(Source::Keyring);
        }
        self.change(|kept| {
            kept.insert(provider.to_owned(), secret.to_json());
            true
        })?;
        Ok(Source::File)
    }

    /// Removes a secret and returns whether there was one.
    ///
    /// # Errors
    /// `AUTH_WRITE_FAILED`.
    pub fn remove(&self, provider: &str) -> Result<bool> {
        #[cfg(feature = "keyring")]
        let was_in_keyring = self.keyring && keyring::remove(provider);
        #[cfg(not(feature = "keyring"))]
        let was_in_keyring = false;
        let was_in_file = self.change(|kept| kept.remove(provider).is_some())?;
        Ok(was_in_keyring || was_in_file)
    }

    /// Whether other users can read the file.
    pub fn is_open_to_others(&self) -> bool {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(&self.path).is_ok_and(|it| it.permissions().mode() & 0o077 != 0)
    }

    fn read(&self) -> Result<Map<String, Value>> {
        let text = match regular::read_to_string(&self.path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Map::new()),
            Err(e) => {
                let message = format!("read {}: {e}", self.path.display());
                return Err(Error::new(
                    Code::AuthReadFailed,
                    message,
                    "make the file readable for you alone: chmod 600",
                ));
            }
        };
        // The error does not quote the file, which contains secrets.
        let document: Value =
            serde_json::from_str(&text).map_err(|e| self.corrupt(&format!("line {} is not JSON", e.line())))?;
        match &document["providers"] {
            Value::Object(kept) => Ok(kept.clone()),
            _ => Err(self.corrupt("it has no `providers` object")),
        }
    }

    fn corrupt(&self, why: &str) -> Error {
        let away = Remedy::text(format!("move {} away", self.path.display()));
        let fix = Remedy::steps([away, Remedy::Login { provider: None }]);
        Error::new(Code::CorruptAuth, format!("{} cannot be used: {why}", self.path.display()), fix)
    }

    /// Reads, changes and atomically replaces the file.
    fn change(&self, make: impl FnOnce(&mut Map<String, Value>) -> bool) -> Result<bool> {
        let failed = |e: std::io::Error| self.not_written(&e);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = fs::File::create(self.path.with_extension("json.lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut kept = self.read()?;
        if !make(&mut kept) {
            return Ok(false);
        }
        let document = json!({ "version": 1, "providers": kept });
        // The file is created with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        file.write_all(format!("{document:#}\n").as_bytes()).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&self.path).map_err(|e| failed(e.error))?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: two keys have one number, so agents of one wait for those of the other; a renewed token has a new number,
    /// so a pause that the server asked for is not kept.
    #[tokio::test]
    async fn a_number_tells_keys_apart_and_outlives_a_renewal() {
        let folder = tempfile::tempdir().expect("a folder");
        let vault = Vault { path: folder.path().join("auth.json"), keyring: false };
        let key = |text: &str| vault.hold("one", Secret::Key(SecretString::from(text))).number();
        assert_eq!(key("sk-first-key"), key("sk-first-key"));
        assert_ne!(key("sk-first-key"), key("sk-second-key"));
        let token = |access: &str| Token {
            access: SecretString::from(access),
            refresh: Some(SecretString::from("refresh")),
            expires: Some(Timestamp::UNIX_EPOCH),
            endpoint: String::new(),
            client_id: String::new(),
            renewal: Renewal::Refresh,
            grant: None,
        };
        let credential = vault.hold("one", Secret::Token(token("old-token")));
        let before = credential.number();
        let renewed = Token { expires: None, ..token("new-token") };
        let current = credential.current(async move |_, _| Ok(Secret::Token(renewed))).await.expect("it is renewed");
        assert_eq!((current.expose_secret(), credential.number()), ("new-token", before));
    }

    /// Broken builds: eight requests at once run the command eight times; a failure is not shared, so a command that hangs runs
    /// once for each of them; a key is used beyond its time, or a refused one again.
    #[tokio::test]
    async fn a_command_runs_once_for_all_who_wait_and_again_when_its_key_is_old_or_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let vault = Vault { path: folder.path().join("auth.json"), keyring: false };
        let credential = vault.printed("one", PrintedKey::new("print-key", 300));
        let runs = Arc::new(Mutex::new(0));
        let run = |fails: bool| {
            let runs = Arc::clone(&runs);
            async move |secret: Secret, _| {
                let number = {
                    let mut runs = runs.lock();
                    *runs += 1;
                    *runs
                };
                // The others come to wait meanwhile.
                for _ in 0..16 {
                    tokio::task::yield_now().await;
                }
                let Secret::Printed(it) = secret else { panic!("it is printed") };
                match fails {
                    true => Err(Error::new(Code::TokenRequestFailed, format!("run {number}"), "")),
                    false => Ok(Secret::Printed(it.printed(SecretString::from(format!("key-{number}"))))),
                }
            }
        };
        for (fails, says) in [(true, "run 1"), (true, "run 2"), (false, "key-3"), (true, "key-3")] {
            let one = || (credential.clone(), run(fails));
            let asking: Vec<_> =
                (0..8).map(|_| one()).map(|(it, run)| task::spawn(async move { it.current(run).await })).collect();
            for it in asking {
                let it = it.await.expect("it ends");
                assert_eq!(it.map_or_else(|e| e.message, |key| key.expose_secret().to_owned()), says);
            }
        }
        let refused = SecretString::from("key-3");
        assert!(credential.renew(Some(&refused), run(false)).await.expect("it runs"));
        assert!(credential.renew(Some(&refused), run(false)).await.expect("another request has renewed it"));
        assert_eq!((credential.secret().reveal().expose_secret(), *runs.lock()), ("key-4", 4));
        if let Secret::Printed(it) = &mut *credential.secret.lock() {
            it.until = Timestamp::now();
        }
        let current = credential.current(run(false)).await.expect("it runs");
        assert_eq!(current.expose_secret(), "key-5");
        assert!(!vault.path().exists(), "nothing is stored");
    }
}
