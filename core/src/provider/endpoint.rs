//! The address of a server, and the key of its requests.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::time::timeout;

use super::dialect::Dialect;
use super::refusal::{no_stream, retry_after, shown, told_with_status, unreached};
use super::retry::Patience;
use super::{Failure, device_login, invalid};
use crate::config::credentials::{Credential, Source};
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::remedy::Remedy;

const CONNECT: Duration = Duration::from_secs(10);
/// The longest time to read the body of a refusal. [`MAX_REFUSAL`] is the most of it, bytes.
const REFUSAL: Duration = Duration::from_secs(10);
const MAX_REFUSAL: usize = 16 << 10;
/// Headers with credentials. They are not allowed in the configuration file.
const SECRET_HEADERS: [&str; 4] = ["authorization", "x-api-key", "cookie", "proxy-authorization"];

/// A server's address, and the credential for it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    provider: String,
    dialect: Dialect,
    base_url: String,
    host: String,
    /// Host and port, for the user.
    place: String,
    is_local: bool,
    headers: HeaderMap,
    credential: Option<Credential>,
    /// The environment variable that may hold the key.
    key_variable: Option<String>,
    check_path: Option<&'static str>,
    /// The address was only given on the command line.
    is_unnamed: bool,
    patience: Patience,
    client: Arc<OnceLock<Client>>,
}

/// The parts of an [`Endpoint`].
#[derive(Debug, Default)]
pub struct Address<'a> {
    /// The Provider's name.
    pub provider: &'a str,
    /// The base URL.
    pub base_url: &'a str,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// Allows plain http to any host.
    pub insecure: bool,
    /// The environment variable that may hold the key.
    pub key_variable: Option<&'a str>,
    /// A path that only a valid key can read, for servers whose list of models is public.
    pub check_path: Option<&'static str>,
    /// The address was only given on the command line.
    pub is_unnamed: bool,
}

impl Endpoint {
    /// Creates an endpoint. Plain http is allowed for loopback only, unless `insecure` is set.
    ///
    /// # Errors
    /// `CONFIG_INVALID` when the address is invalid, would send data unencrypted, or contains a secret.
    pub fn new(
        address: &Address<'_>,
        dialect: Dialect,
        credential: Option<Credential>,
        patience: Patience,
    ) -> Result<Endpoint> {
        let url = check_address(address.base_url, address.insecure)?;
        let mut base_url = address.base_url.trim_end_matches('/').to_owned();
        // The base URL of this dialect is customarily written without the version.
        if dialect == Dialect::Anthropic && !base_url.ends_with("/v1") {
            base_url.push_str("/v1");
        }
        let mut headers = HeaderMap::new();
        if dialect == Dialect::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        for (name, value) in &address.headers {
            let (name, value) = header(name, value)?;
            headers.insert(name, value);
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        Ok(Endpoint {
            provider: address.provider.to_owned(),
            dialect,
            base_url,
            is_local: is_loopback(&host),
            place: url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}")),
            host,
            headers,
            credential,
            key_variable: address.key_variable.map(str::to_owned),
            check_path: address.check_path,
            is_unnamed: address.is_unnamed,
            patience,
            client: Arc::default(),
        })
    }

    /// Returns the base URL.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Returns the host without the port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the dialect of the server.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the credential of requests.
    pub fn credential(&self) -> Option<&Credential> {
        self.credential.as_ref()
    }

    /// Whether this is the user's own server: on this machine and without a key.
    pub(super) fn is_own(&self) -> bool {
        self.is_local && self.credential.is_none()
    }

    /// Returns the environment variable that may hold the key.
    pub(super) fn key_variable(&self) -> Option<&str> {
        self.key_variable.as_deref()
    }

    pub(super) fn patience(&self) -> &Patience {
        &self.patience
    }

    fn client(&self) -> Result<&Client> {
        match self.client.get() {
            Some(client) => Ok(client),
            None => {
                let client = client(self.is_local)?;
                Ok(self.client.get_or_init(|| client))
            }
        }
    }

    fn signed(&self, request: RequestBuilder, key: Option<&SecretString>) -> RequestBuilder {
        let request = request.headers(self.headers.clone());
        match (key, self.dialect) {
            (None, _) => request,
            // A renewable token is sent as a bearer token in every dialect.
            (Some(key), Dialect::Anthropic) if self.credential.as_ref().is_none_or(|it| !it.is_token()) => {
                let mut value = HeaderValue::from_str(key.expose_secret()).unwrap_or(HeaderValue::from_static(""));
                value.set_sensitive(true);
                request.header("x-api-key", value)
            }
            (Some(key), _) => request.bearer_auth(key.expose_secret()),
        }
    }

    /// Posts a JSON body; the answer is an event stream.
    pub(super) async fn post(&self, path: &str, body: Bytes) -> std::result::Result<Response, Failure> {
        let mut renewed = false;
        loop {
            let key = match &self.credential {
                Some(credential) => Some(credential.current(device_login::refresh).await?),
                None => None,
            };
            let request =
                self.client()?.post(format!("{}{path}", self.base_url)).header(CONTENT_TYPE, "application/json");
            let request = self.signed(request.body(body.clone()), key.as_ref());
            let within = if self.is_local { self.patience.local_head } else { self.patience.head };
            let sent = timeout(within, request.send()).await.map_err(|_| self.no_head(within))?;
            let response = sent.map_err(|e| unreached(&self.place, &e))?;
            if response.status().is_success() {
                return self.streaming(response).await;
            }
            // A token may be revoked before it expires, so it is renewed once. A key cannot be renewed.
            if response.status() == 401
                && !renewed
                && let Some(credential) = &self.credential
                && credential.renew(key.as_ref(), device_login::refresh).await?
            {
                renewed = true;
                continue;
            }
            return Err(self.refused(response).await);
        }
    }

    async fn streaming(&self, response: Response) -> std::result::Result<Response, Failure> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
        if kind.is_empty() || kind.starts_with("text/event-stream") {
            return Ok(response);
        }
        let headers = response.headers().clone();
        let body = start_of(response).await;
        Err(no_stream(&self.place, &kind, &headers, &body).into())
    }

    async fn refused(&self, response: Response) -> Failure {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = start_of(response).await;
        let mut error = told_with_status(&self.place, status, &headers, &body);
        if error.code == Code::AuthRequired {
            error.remedy = self.key_fix();
        }
        let retry_after = retry_after(&headers, jiff::Timestamp::now());
        Failure { error, after_content: false, retry_after, usage: None }
    }

    /// What to do where a key is missing or not taken.
    fn key_fix(&self) -> Remedy {
        let login = Remedy::Login { provider: Some(self.provider.clone()) };
        let set = |name: &str| Remedy::SetVariable { name: name.to_owned() };
        match (self.credential.as_ref(), &self.key_variable) {
            (Some(it), _) if it.is_token() => Remedy::SignIn { provider: Some(self.provider.clone()) },
            (Some(it), _) => match it.source() {
                Source::Environment(name) => Remedy::ReplaceVariable { name: name.clone() },
                Source::Keyring | Source::File => Remedy::ReplaceKey { provider: self.provider.clone() },
            },
            // It has no name that a key could be kept under.
            (None, Some(name)) if self.is_unnamed => set(name),
            (None, Some(name)) => Remedy::any_of([set(name), login]),
            (None, None) => login,
        }
    }

    fn no_head(&self, within: Duration) -> Error {
        let message = format!("{} sent no response within {} s", self.place, within.as_secs());
        Error::new(
            Code::Network,
            message,
            "try again, or give the server more time with `requests.head` in config.toml",
        )
    }

    /// Sends a request that only a valid key can make. Returns how many models the server lists.
    ///
    /// # Errors
    /// `AUTH_REQUIRED` when the key is invalid, else as [`Endpoint::models`].
    pub async fn check(&self, within: Duration) -> Result<usize> {
        // A public list of models would prove nothing about the key.
        if let Some(path) = self.check_path {
            self.get::<Value>(path, within).await?;
        }
        self.models(within).await.map(|models| models.len())
    }

    /// Removes the key from an error, because some servers repeat it.
    pub(super) fn redact(&self, mut error: Error) -> Error {
        if let Some(credential) = &self.credential {
            error.message = credential.redact(&error.message);
            error.remedy = error.remedy.map_text(&|text| credential.redact(text));
            for value in error.details.values_mut() {
                if let Value::String(text) = value {
                    *text = credential.redact(text);
                }
            }
        }
        error
    }

    /// Requests the list of models.
    ///
    /// # Errors
    /// `NETWORK` when the server does not answer in time, `AUTH_REQUIRED`, `INVALID_RESPONSE` when the answer is not a
    /// list of models.
    pub async fn models(&self, within: Duration) -> Result<Vec<Listed>> {
        // The largest page that the server allows.
        let path = if self.dialect == Dialect::Anthropic { "/models?limit=1000" } else { "/models" };
        let body: Value = self.get(path, within).await?;
        let models = body["data"].as_array().or_else(|| body["models"].as_array());
        let models = models.ok_or_else(|| invalid(format!("{} did not list its models", self.place)))?;
        Ok(models.iter().filter_map(Listed::read).collect())
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: &str, within: Duration) -> Result<T> {
        let asking = async {
            let key = match &self.credential {
                Some(credential) => Some(credential.current(device_login::refresh).await?),
                None => None,
            };
            let request = self.signed(self.client()?.get(format!("{}{path}", self.base_url)), key.as_ref());
            let response = request.send().await.map_err(|e| unreached(&self.place, &e))?;
            if !response.status().is_success() {
                return Err(self.refused(response).await.error);
            }
            response.json().await.map_err(|e| invalid(format!("{} did not return JSON: {e}", self.place)))
        };
        let answer = timeout(within, asking).await.unwrap_or_else(|_| Err(self.no_head(within)));
        answer.map_err(|e| self.redact(e))
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

async fn start_of(mut response: Response) -> String {
    let mut bytes = Vec::new();
    let reading = async {
        while let Ok(Some(piece)) = response.chunk().await {
            bytes.extend_from_slice(&piece[..piece.len().min(MAX_REFUSAL - bytes.len())]);
            if bytes.len() == MAX_REFUSAL {
                break;
            }
        }
    };
    // The part that arrived in time is enough for an error.
    let _ = timeout(REFUSAL, reading).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Creates the HTTP client of this process. Requests to this machine use no proxy.
pub(crate) fn client(is_local: bool) -> Result<Client> {
    // An error means that the process already has a crypto provider, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        let builder = if is_local { Client::builder().no_proxy() } else { Client::builder() };
        builder
            .connect_timeout(CONNECT)
            // A redirect could send the key to another server.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("pixir/", env!("CARGO_PKG_VERSION")))
    };
    // A slim container has no CA certificates; the built-in Mozilla roots serve then.
    let client = builder().build().or_else(|_| {
        let roots =
            webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().filter_map(|der| reqwest::Certificate::from_der(der).ok());
        builder().tls_certs_only(roots).build()
    });
    client.map_err(|e| {
        Error::new(Code::Network, format!("start the HTTP client: {e}"), "check SSL_CERT_FILE and the proxy settings")
    })
}

/// Checks that an address may be used.
///
/// # Errors
/// `CONFIG_INVALID`.
pub(crate) fn check_address(address: &str, insecure: bool) -> Result<reqwest::Url> {
    let bad = |shown: &str, why: &str, fix: Remedy| {
        Error::new(Code::ConfigInvalid, format!("the base URL {} {why}", shown.escape_debug()), fix)
            .with("input", shown)
    };
    let url = reqwest::Url::parse(address)
        .map_err(|e| bad(address, &format!("is not valid: {e}"), "use one like https://host/v1".into()))?;
    let host = url.host_str().unwrap_or_default();
    if !url.username().is_empty() || url.password().is_some() {
        // The message leaves the address out: it may contain a secret.
        return Err(bad(
            host,
            "contains a user name or a password",
            Remedy::steps(["remove it from the URL".into(), Remedy::Login { provider: None }]),
        ));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if insecure || is_loopback(host) => Ok(url),
        "http" => Err(bad(
            address,
            "would send everything unencrypted",
            "use https://, a server on 127.0.0.1, or `insecure = true` in its section of config.toml".into(),
        )),
        _ => Err(bad(address, "is neither http nor https", "use one like https://host/v1".into())),
    }
}

pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback())
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue)> {
    let bad = |why: &str, fix: Remedy| {
        Error::new(Code::ConfigInvalid, format!("the header {} {why}", name.escape_debug()), fix).with("input", name)
    };
    if SECRET_HEADERS.contains(&name.to_lowercase().as_str()) {
        let named = "name the variable that holds it in `api_key_env`".into();
        return Err(bad("holds a secret", Remedy::any_of([named, Remedy::Login { provider: None }])));
    }
    let name =
        HeaderName::try_from(name).map_err(|_| bad("is not a valid header name", "use one like X-Team".into()))?;
    let value = HeaderValue::try_from(value)
        .map_err(|_| bad("has a value that is not valid in a header", "use one line of plain text".into()))?;
    Ok((name, value))
}

/// Returns the error for a request outside a Provider that did not reach its server.
pub(crate) fn unreachable(address: &str, e: &reqwest::Error) -> Error {
    let host = reqwest::Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
    unreached(host.as_deref().unwrap_or(address), e)
}

/// Returns a server's text on one line, safe to print.
pub(crate) fn quoted(text: &str) -> String {
    shown(text)
}
