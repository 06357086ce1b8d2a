//! Finds, stores and renews keys and tokens. They cannot be printed.

use std::collections::VecDeque;
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
mod secret; // keys, tokens and what a command prints

pub use secret::{ClientProof, Grant, PrintedKey, Renewal, Secret, Token};

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

/// The credential of requests to one Provider. Clones share a renewed token.
#[derive(Clone)]
pub struct Credential {
    provider: String,
    source: Source,
    secret: Arc<Mutex<Secret>>,
    /// The secrets before it, latest last: an answer that is under way may still repeat one.
    past: Arc<Mutex<VecDeque<SecretString>>>,
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
        if !self.held {
            match self.vault.kept(&self.provider) {
                Ok(Some((_, kept))) => self.replace(kept),
                // The user has signed out, and a renewal would sign in again.
                Ok(None) => return Ok(false),
                Err(_) => {}
            }
            if self.is_good(refused) {
                return Ok(true);
            }
            if !self.can_renew() {
                return Ok(false);
            }
        }
        let renewed = refresh(self.secret(), self.provider.clone()).await;
        *failed = renewed.as_ref().err().map(|why| (Instant::now(), why.clone()));
        let renewed = renewed?;
        // The new token is stored before it is used.
        if !self.held {
            self.vault.save(&self.provider, &renewed)?;
        }
        self.replace(renewed);
        // A command may print again what the server has refused.
        Ok(self.is_good(refused))
    }

    /// Whether the secret can be used: it was not rejected and does not expire soon.
    fn is_good(&self, refused: Option<&SecretString>) -> bool {
        let secret = self.secret();
        let now = Timestamp::now();
        match (&secret, refused) {
            (_, Some(refused)) => secret.reveal().expose_secret() != refused.expose_secret(),
            (Secret::Key(_), None) => true,
            (Secret::Token(token), None) => {
                token.expires.is_none_or(|end| end.as_second() - now.as_second() >= SKEW) || token.refresh.is_none()
            }
            (Secret::Printed(it), None) => now < it.until,
        }
    }

    /// Replaces the secret in memory.
    fn replace(&self, new: Secret) {
        let old = std::mem::replace(&mut *self.secret.lock(), new);
        let mut past = self.past.lock();
        past.push_back(old.reveal().clone());
        if past.len() > MOST_PAST {
            past.pop_front();
        }
    }

    /// Removes the secret, and those that it has replaced, from a text. Very short secrets are ignored, because they would match everywhere.
    pub fn redact(&self, text: &str) -> String {
        let secret = self.secret();
        let refresh = if let Secret::Token(token) = &secret { token.refresh.as_ref() } else { None };
        let past = self.past.lock();
        let secrets = [Some(secret.reveal()), refresh].into_iter().flatten().chain(past.iter());
        let long = secrets.map(|it| it.expose_secret()).filter(|it| it.len() >= SHORTEST_SECRET);
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

/// The most secrets that are remembered after they were replaced.
const MOST_PAST: usize = 8;
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

    /// Waits until no process renews a token. Who stores or removes a secret holds this, because a renewal that is under way
    /// would store what comes after it.
    ///
    /// # Errors
    /// `AUTH_WRITE_FAILED`.
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
            past: Arc::default(),
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

    /// Broken builds: a token that was removed while it was renewed is stored again; a replaced secret stands in a text.
    #[tokio::test]
    async fn a_removed_token_is_not_renewed_and_a_replaced_one_stays_secret() {
        let folder = tempfile::tempdir().expect("a folder");
        let vault = Vault { path: folder.path().join("auth.json"), keyring: false };
        let token = |access: &str| {
            Secret::Token(Token {
                access: access.into(),
                refresh: Some("refresh-token".into()),
                expires: Some(Timestamp::UNIX_EPOCH),
                endpoint: "https://issuer.test/token".into(),
                client_id: "pixir".into(),
                renewal: Renewal::Refresh,
                grant: None,
            })
        };
        let renewed = |access: &str| {
            let new = token(access);
            async move |_, _| Ok(new)
        };
        vault.save("one", &token("first-token")).expect("it is stored");
        let around = Environment { home: folder.path().to_owned(), ..Environment::default() };
        let credential = vault.find("one", None, &around).expect("it is read").expect("it is there");
        assert!(credential.renew(None, renewed("second-token")).await.is_ok());
        assert_eq!(credential.secret().reveal().expose_secret(), "second-token");
        assert_eq!(credential.redact("first-token second-token"), format!("{REDACTED} {REDACTED}"));
        // A key that the user has stored meanwhile is used.
        vault.save("one", &Secret::Key("third-key".into())).expect("it is stored");
        let refused = SecretString::from("second-token");
        assert!(credential.renew(Some(&refused), renewed("unused")).await.expect("it is read"));
        assert_eq!(credential.secret().reveal().expose_secret(), "third-key");
        vault.save("two", &token("some-token")).expect("it is stored");
        let other = vault.find("two", None, &around).expect("it is read").expect("it is there");
        vault.remove("two").expect("it is removed");
        assert!(!other.renew(None, renewed("again")).await.expect("nothing fails"));
        assert!(!vault.holds("two").expect("it is read"), "the user has signed out");
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
