//! Keys and tokens: where they are found, kept and renewed. None of them can be printed.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};

use crate::config::Surroundings;
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::remedy::Remedy;

#[cfg(feature = "keyring")]
mod keyring; // the system's own store

/// A token this near its end is renewed before it is used, seconds.
const SKEW: i64 = 60;

/// Where a credential was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A variable of the environment.
    Environment(String),
    /// The system's keyring.
    Keyring,
    /// `auth.json`.
    File,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Environment(name) => f.write_str(name),
            Source::Keyring => f.write_str("keyring"),
            Source::File => f.write_str("auth.json"),
        }
    }
}

/// What is kept for a Provider.
#[derive(Debug, Clone)]
pub enum Secret {
    /// A key, as it is.
    Key(SecretString),
    /// A token that ends, and what renews it.
    Token(Token),
}

/// A token that ends.
#[derive(Debug, Clone)]
pub struct Token {
    /// What is sent.
    pub access: SecretString,
    /// What gets a new one.
    pub refresh: Option<SecretString>,
    /// When it ends.
    pub expires: Option<Timestamp>,
    /// Where a new one is had.
    pub endpoint: String,
    /// Who we are there.
    pub client_id: String,
}

impl Secret {
    /// What is sent.
    fn reveal(&self) -> &SecretString {
        match self {
            Secret::Key(key) => key,
            Secret::Token(token) => &token.access,
        }
    }

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
            }),
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
            })),
            _ => None,
        }
    }
}

/// What requests to one Provider are signed with. Clones share what is renewed.
#[derive(Clone)]
pub struct Credential {
    provider: String,
    source: Source,
    secret: Arc<Mutex<Secret>>,
    vault: Vault,
    /// Only one renews at a time.
    renewing: Arc<tokio::sync::Mutex<()>>,
    /// It is in no store yet, and does not go there by itself.
    held: bool,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("source", &self.source).finish_non_exhaustive()
    }
}

/// Requests a new token from the issuer, for the old token and the Provider's name.
pub(crate) trait Refresh<F>: FnOnce(Token, String) -> F + Send + 'static {}

impl<F, R: FnOnce(Token, String) -> F + Send + 'static> Refresh<F> for R {}

impl Credential {
    /// Where it was found.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// What it is now.
    pub fn secret(&self) -> Secret {
        self.secret.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// It is a token that ends, and not a key.
    pub fn is_token(&self) -> bool {
        matches!(&*self.secret.lock().unwrap_or_else(PoisonError::into_inner), Secret::Token(_))
    }

    /// A new one can be had when it ends.
    pub fn can_renew(&self) -> bool {
        match &*self.secret.lock().unwrap_or_else(PoisonError::into_inner) {
            Secret::Key(_) => false,
            Secret::Token(token) => token.refresh.is_some(),
        }
    }

    /// When it ends, if it does.
    pub fn expires(&self) -> Option<Timestamp> {
        match &*self.secret.lock().unwrap_or_else(PoisonError::into_inner) {
            Secret::Key(_) => None,
            Secret::Token(token) => token.expires,
        }
    }

    /// What tells it from others and gives nothing away: its last four characters, if it is long.
    pub fn hint(&self) -> String {
        let secret = self.secret.lock().unwrap_or_else(PoisonError::into_inner);
        let text: Vec<char> = secret.reveal().expose_secret().chars().collect();
        if text.len() < 20 {
            "…".to_owned()
        } else {
            format!("…{}", text[text.len() - 4..].iter().collect::<String>())
        }
    }

    /// What is sent with a request now; renewed before, when it is about to end.
    ///
    /// # Errors
    /// `AUTH_REQUIRED` when it cannot be renewed any more, `NETWORK`.
    pub(crate) async fn current<F>(&self, refresh: impl Refresh<F>) -> Result<SecretString>
    where
        F: Future<Output = Result<Token>> + Send,
    {
        let now = Timestamp::now().as_second();
        if self.expires().is_some_and(|end| end.as_second() - now < SKEW) {
            self.renew(None, refresh).await?;
        }
        Ok(self.secret.lock().unwrap_or_else(PoisonError::into_inner).reveal().clone())
    }

    /// Gets a new token after `refused` was not accepted. `false` when this is nothing that can be renewed.
    ///
    /// What was begun is ended, also when whoever asked does not wait any more: the old token may be worth nothing by then.
    ///
    /// # Errors
    /// As [`Credential::current`].
    pub(crate) async fn renew<F>(&self, refused: Option<&SecretString>, refresh: impl Refresh<F>) -> Result<bool>
    where
        F: Future<Output = Result<Token>> + Send,
    {
        let (own, refused) = (self.clone(), refused.cloned());
        let renewal = tokio::spawn(async move { own.renew_alone(refused.as_ref(), refresh).await });
        renewal.await.unwrap_or_else(|_| {
            Err(Error::new(Code::TokenRequestFailed, "the token could not be renewed", "try again"))
        })
    }

    async fn renew_alone<F>(&self, refused: Option<&SecretString>, refresh: impl Refresh<F>) -> Result<bool>
    where
        F: Future<Output = Result<Token>> + Send,
    {
        let _turn = self.renewing.lock().await;
        if self.is_good(refused) {
            return Ok(true);
        }
        if !self.can_renew() {
            return Ok(false);
        }
        // Another pixir may be doing the same; whoever comes second takes what the first has kept.
        let _alone = self.vault.lock_renewal().await?;
        if self.take_kept() && self.is_good(refused) {
            return Ok(true);
        }
        let Secret::Token(token) = self.secret() else { return Ok(false) };
        let renewed = Secret::Token(refresh(token, self.provider.clone()).await?);
        // Kept before it is used.
        if !self.held {
            self.vault.save(&self.provider, &renewed)?;
        }
        *self.secret.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
        Ok(true)
    }

    /// It can be used: it is not the one that was refused, and does not end soon.
    fn is_good(&self, refused: Option<&SecretString>) -> bool {
        let Secret::Token(token) = self.secret() else { return refused.is_none() };
        match refused {
            Some(refused) => token.access.expose_secret() != refused.expose_secret(),
            None => token.expires.is_none_or(|end| end.as_second() - Timestamp::now().as_second() >= SKEW),
        }
    }

    /// Takes what is kept in place of what this process has read before. Whether there was something.
    fn take_kept(&self) -> bool {
        if self.held {
            return false;
        }
        match self.vault.kept(&self.provider) {
            Ok(Some((_, kept))) => {
                *self.secret.lock().unwrap_or_else(PoisonError::into_inner) = kept;
                true
            }
            Ok(None) | Err(_) => false,
        }
    }

    /// The text without the secret. What is too short to be one would be found everywhere.
    pub(crate) fn redact(&self, text: &str) -> String {
        const SHORTEST: usize = 8;
        let secret = self.secret();
        let refresh = if let Secret::Token(token) = &secret { token.refresh.as_ref() } else { None };
        let secrets = [Some(secret.reveal()), refresh].into_iter().flatten().map(|it| it.expose_secret());
        let long = secrets.filter(|it| it.len() >= SHORTEST);
        long.fold(text.to_owned(), |text, it| text.replace(it, "[redacted]"))
    }

    /// The same for every text in it.
    pub(crate) fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|it| self.redact_value(it)),
            Value::Object(fields) => fields.values_mut().for_each(|it| self.redact_value(it)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Where credentials are kept.
#[derive(Debug, Clone)]
pub struct Vault {
    path: PathBuf,
    /// The system's keyring is asked too.
    #[cfg_attr(not(feature = "keyring"), expect(dead_code, reason = "this build has no keyring"))]
    keyring: bool,
}

impl Vault {
    /// Of this home. `PIXIR_KEYRING=off` leaves the system's keyring alone.
    pub fn new(around: &Surroundings) -> Vault {
        Vault { path: around.home.join("auth.json"), keyring: around.variable("PIXIR_KEYRING") != Some("off") }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A Provider's credential: from the environment, else the keyring, else the file.
    ///
    /// # Errors
    /// `CORRUPT_AUTH`, `AUTH_READ_FAILED`: the file is there and cannot be used.
    pub fn find(&self, provider: &str, variable: Option<&str>, around: &Surroundings) -> Result<Option<Credential>> {
        let found = |source, secret| self.credential(provider, source, secret);
        let set = variable.and_then(|name| Some((name, around.variable(name)?.trim())));
        if let Some((name, key)) = set.filter(|(_, key)| !key.is_empty()) {
            let key = Secret::Key(SecretString::from(key));
            return Ok(Some(found(Source::Environment(name.to_owned()), key)));
        }
        Ok(self.kept(provider)?.map(|(source, secret)| found(source, secret)))
    }

    /// What is kept for a Provider, and where.
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

    /// Whether something is kept for a Provider.
    ///
    /// # Errors
    /// As [`Vault::find`].
    pub fn holds(&self, provider: &str) -> Result<bool> {
        Ok(self.kept(provider)?.is_some())
    }

    /// Waits until no other process renews a token.
    async fn lock_renewal(&self) -> Result<fs::File> {
        let path = self.path.with_extension("renewal.lock");
        let locking = tokio::task::spawn_blocking(move || {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let file = fs::File::create(path)?;
            file.lock().map(|()| file)
        });
        let locked = locking.await.unwrap_or_else(|e| Err(std::io::Error::other(e)));
        locked.map_err(|e| self.not_written(&e))
    }

    fn not_written(&self, e: &std::io::Error) -> Error {
        let message = format!("write {}: {e}", self.path.display());
        Error::new(Code::AuthWriteFailed, message, "make the folder writable, or set PIXIR_HOME")
    }

    /// A secret that is not kept yet, to be tried.
    pub fn hold(&self, provider: &str, secret: Secret) -> Credential {
        Credential { held: true, ..self.credential(provider, Source::File, secret) }
    }

    fn credential(&self, provider: &str, source: Source, secret: Secret) -> Credential {
        Credential {
            provider: provider.to_owned(),
            source,
            secret: Arc::new(Mutex::new(secret)),
            vault: self.clone(),
            renewing: Arc::default(),
            held: false,
        }
    }

    /// Names of the Providers that the file holds something for.
    ///
    /// # Errors
    /// As [`Vault::find`].
    pub fn names(&self) -> Result<Vec<String>> {
        Ok(self.read()?.into_iter().map(|(name, _)| name).collect())
    }

    /// Keeps a credential, instead of what was there; in the keyring where there is one, else in the file.
    ///
    /// # Errors
    /// `AUTH_WRITE_FAILED`.
    pub fn save(&self, provider: &str, secret: &Secret) -> Result<Source> {
        #[cfg(feature = "keyring")]
        if self.keyring && keyring::save(provider, secret) {
            // What the file held is older.
            self.change(|kept| kept.remove(provider).is_some())?;
            return Ok(Source::Keyring);
        }
        self.change(|kept| {
            kept.insert(provider.to_owned(), secret.to_json());
            true
        })?;
        Ok(Source::File)
    }

    /// Forgets a credential. Whether there was one.
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

    /// Others can read the file.
    pub fn is_open_to_others(&self) -> bool {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(&self.path).is_ok_and(|it| it.permissions().mode() & 0o077 != 0)
    }

    fn read(&self) -> Result<Map<String, Value>> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
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
        // What is wrong with it is not told with its text: that is a secret.
        let document: Value =
            serde_json::from_slice(&bytes).map_err(|e| self.corrupt(&format!("line {} is not JSON", e.line())))?;
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

    /// Reads, changes and replaces the file as one step; a file that is there is never half of two.
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
        // Its mode is 0600 from the start.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        file.write_all(format!("{document:#}\n").as_bytes()).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&self.path).map_err(|e| failed(e.error))?;
        Ok(true)
    }
}
