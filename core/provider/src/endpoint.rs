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
use super::refusal::{REFUSED_PARAMETER, REFUSED_TOOL, no_stream, refused_parameter, refused_tool, told_with_status};
use super::retry::Patience;
use super::starting::IS_STARTING;
use super::wait::{retry_after, wait_in};
use super::{Failure, invalid, preset, renewal};
use config::address::{is_loopback, is_nearby};
use config::credentials::{Credential, REDACTED, SHORTEST_SECRET, Source};
use net::{check_address, client, document, unreached};
use protocol::error::{Code, Error, Result};
use protocol::remedy::{ModelNeed, Remedy};
use protocol::tool_spec::ToolSpec;

/// The longest time to read the body of a refusal. [`MAX_REFUSAL`] is the most of it, bytes.
const REFUSAL: Duration = Duration::from_secs(10);
const MAX_REFUSAL: usize = 16 << 10;
/// Headers with credentials. They are not allowed in the configuration file.
const SECRET_HEADERS: [&str; 5] = ["authorization", "x-api-key", "api-key", "cookie", "proxy-authorization"];

/// A server's address, and the credential for it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    provider: String,
    dialect: Dialect,
    base_url: String,
    /// The query of every request, without its question mark; empty if there is none.
    query: String,
    host: String,
    /// Host and port, for the user.
    place: String,
    is_local: bool,
    /// The server is the user's own, not the public one of a preset.
    is_own: bool,
    is_nearby: bool,
    /// The header of the key, if it is not the dialect's.
    key_header: Option<HeaderName>,
    headers: HeaderMap,
    /// Values of the user's headers and of the query, which may be keys too.
    values: Vec<SecretString>,
    credential: Option<Credential>,
    /// The environment variable that may hold the key.
    key_variable: Option<String>,
    check_path: Option<&'static str>,
    /// The address was only given on the command line.
    is_unnamed: bool,
    patience: Patience,
    client: Arc<OnceLock<Result<Client>>>,
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
    /// The header of the key, if it is not the dialect's.
    pub key_header: Option<&'static str>,
}

/// The body of an answer, of which the start may have been read already.
pub(super) struct Body {
    pub(super) start: Bytes,
    pub(super) rest: Response,
}

/// Whether these first bytes begin an event stream; `None` while they are too few to tell.
fn begins_stream(bytes: &[u8]) -> Option<bool> {
    const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b":", b"id:", b"retry:"];
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let blank = bytes.iter().take_while(|b| matches!(b, b'\n' | b'\r')).count();
    let bytes = &bytes[blank..];
    if FIELDS.iter().any(|field| bytes.starts_with(field)) {
        return Some(true);
    }
    let may_become = FIELDS.iter().any(|field| field.starts_with(bytes));
    (!may_become).then_some(false)
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
        let (base_url, query) = address.base_url.split_once('?').unwrap_or((address.base_url, ""));
        let mut base_url = base_url.trim_end_matches('/').to_owned();
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
        let query = query.split('#').next().unwrap_or_default();
        // The version of an interface is no secret, and errors are about it.
        let in_query = query.split('&').filter(|pair| !pair.starts_with("api-version="));
        let in_query = in_query.filter_map(|pair| pair.split_once('=').map(|(_, value)| value));
        let values = address.headers.values().map(String::as_str).chain(in_query);
        let values = values.filter(|it| it.len() >= SHORTEST_SECRET).map(SecretString::from).collect();
        Ok(Endpoint {
            provider: address.provider.to_owned(),
            dialect,
            base_url,
            query: query.to_owned(),
            is_local: is_loopback(&host),
            is_own: !preset::is_public(&host),
            is_nearby: is_nearby(&host),
            key_header: address.key_header.map(HeaderName::from_static),
            place: url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}")),
            host,
            headers,
            values,
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

    /// Whether the server is on this machine.
    pub(super) fn is_local(&self) -> bool {
        self.is_local
    }

    /// Whether this is the user's own server: not the public one of a preset.
    pub(super) fn is_own(&self) -> bool {
        self.is_own
    }

    /// Whether the server runs on this machine or in its network.
    pub(super) fn is_nearby(&self) -> bool {
        self.is_nearby
    }

    /// Returns the address of a path below the base URL.
    fn address(&self, path: &str) -> String {
        let separator = match (self.query.is_empty(), path.contains('?')) {
            (true, _) => "",
            (false, true) => "&",
            (false, false) => "?",
        };
        format!("{}{path}{separator}{}", self.base_url, self.query)
    }

    /// A path that only a valid key can read, for servers whose list of models is public.
    pub(super) fn check_path(&self) -> Option<&'static str> {
        self.check_path
    }

    /// Host and port, for the user.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Returns the environment variable that may hold the key.
    pub(super) fn key_variable(&self) -> Option<&str> {
        self.key_variable.as_deref()
    }

    pub(super) fn patience(&self) -> &Patience {
        &self.patience
    }

    /// Returns the HTTP client. A second caller waits while the first one makes it.
    fn client(&self) -> Result<&Client> {
        self.client.get_or_init(|| client(&self.base_url)).as_ref().map_err(Clone::clone)
    }

    /// Makes the HTTP client. If that fails, the first request says so.
    pub(super) fn prepare_client(&self) {
        let _ = self.client();
    }

    fn signed(&self, request: RequestBuilder, key: Option<&SecretString>) -> RequestBuilder {
        let request = request.headers(self.headers.clone());
        match (key, self.dialect) {
            (None, _) => request,
            // A command prints what a sign-in yields (az, gcloud), or a key; only the former has the form of a token.
            (Some(key), _) if self.is_printed() && is_jwt(key.expose_secret()) => {
                request.bearer_auth(key.expose_secret())
            }
            (Some(key), _) if self.key_header.is_some() => {
                let mut value = HeaderValue::from_str(key.expose_secret()).unwrap_or(HeaderValue::from_static(""));
                value.set_sensitive(true);
                match &self.key_header {
                    Some(name) => request.header(name, value),
                    None => request,
                }
            }
            // A renewable token is sent as a bearer token in every dialect.
            (Some(key), Dialect::Anthropic) if self.credential.as_ref().is_none_or(|it| !it.is_token()) => {
                let mut value = HeaderValue::from_str(key.expose_secret()).unwrap_or(HeaderValue::from_static(""));
                value.set_sensitive(true);
                request.header("x-api-key", value)
            }
            (Some(key), _) => request.bearer_auth(key.expose_secret()),
        }
    }

    /// Posts a JSON body that has these tools; the answer is an event stream.
    pub(super) async fn post(&self, path: &str, body: Bytes, tools: &[ToolSpec]) -> std::result::Result<Body, Failure> {
        let mut renewed = false;
        loop {
            let key = self.key().await?;
            let request = self.client()?.post(self.address(path)).header(CONTENT_TYPE, "application/json");
            let request = self.signed(request.body(body.clone()), key.as_ref());
            let within = if self.is_local { self.patience.local_head } else { self.patience.head };
            let sent = timeout(within, request.send()).await.map_err(|_| self.no_head(within))?;
            let response = sent.map_err(|e| unreached(&self.place, &e))?;
            if response.status().is_success() {
                return self.streaming(response).await;
            }
            // A token may be revoked before it expires, so it is renewed once. A key can be renewed if a command prints it.
            if response.status() == 401
                && !renewed
                && let Some(credential) = &self.credential
                && credential.renew(key.as_ref(), renewal::renewed).await?
            {
                renewed = true;
                continue;
            }
            return Err(self.refused(response, tools).await);
        }
    }

    /// The content type is a hint: what begins like an event stream is one.
    async fn streaming(&self, mut response: Response) -> std::result::Result<Body, Failure> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
        if kind.is_empty() || kind.to_lowercase().starts_with("text/event-stream") {
            return Ok(Body { start: Bytes::new(), rest: response });
        }
        let mut start = Vec::new();
        let reading = async {
            while begins_stream(&start).is_none()
                && let Ok(Some(piece)) = response.chunk().await
            {
                start.extend_from_slice(&piece);
            }
        };
        // A server that sends nothing more is judged by what it has sent.
        let _ = timeout(self.patience.idle, reading).await;
        if begins_stream(&start) == Some(true) {
            return Ok(Body { start: start.into(), rest: response });
        }
        let headers = response.headers().clone();
        let body = String::from_utf8_lossy(&start).into_owned() + &start_of(response).await;
        Err(no_stream(&self.place, &kind, &headers, &body).into())
    }

    async fn refused(&self, response: Response, tools: &[ToolSpec]) -> Failure {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = start_of(response).await;
        let mut error = told_with_status(&self.place, status, &headers, &body);
        if error.code == Code::AuthRequired {
            error.remedy = self.key_fix();
        }
        if !self.is_nearby {
            // A service that loads a model is like one that is busy: another model may answer sooner.
            error.details.remove(IS_STARTING);
        }
        if error.code == Code::ModelNotSupported
            && let Some(name) = missing_at_ollama(&error.message).filter(|_| self.is_nearby)
        {
            let pull = Remedy::command(format!("ollama pull {name}"));
            error.remedy = Remedy::any_of([pull, Remedy::ChooseModel { need: ModelNeed::Any }]);
        }
        if error.code == Code::ProviderHttpError {
            if let Some(parameter) = refused_parameter(status, &body) {
                error = error.with(REFUSED_PARAMETER, parameter.name());
            } else if let Some(tool) = refused_tool(status, &body, tools) {
                error = error.with(REFUSED_TOOL, tool);
            }
        }
        let retry_after = retry_after(&headers, jiff::Timestamp::now()).or_else(|| wait_in(&body));
        Failure { retry_after, ..Failure::from(error) }
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
                Source::Command => {
                    let section = format!("[providers.{}]", self.provider);
                    format!("check what `api_key_command` in {section} of config.toml prints").into()
                }
            },
            // It has no name that a key could be kept under.
            (None, Some(name)) if self.is_unnamed => set(name),
            (None, Some(name)) => Remedy::any_of([set(name), login]),
            (None, None) => login,
        }
    }

    fn is_printed(&self) -> bool {
        self.credential.as_ref().is_some_and(|it| *it.source() == Source::Command)
    }

    fn no_head(&self, within: Duration) -> Error {
        let message = format!("{} sent no response within {} s", self.place, within.as_secs());
        Error::new(
            Code::Network,
            message,
            "try again, or give the server more time: `requests.head` in config.toml, in seconds",
        )
    }

    /// Removes the key, and what else the user sends with each request, from a text: some servers repeat it.
    pub(super) fn without_secrets(&self, text: &str) -> String {
        let text = self.credential.as_ref().map_or_else(|| text.to_owned(), |it| it.redact(text));
        self.values.iter().fold(text, |text, value| text.replace(value.expose_secret(), REDACTED))
    }

    /// Removes the same from an error.
    pub(super) fn redact(&self, mut error: Error) -> Error {
        error.message = self.without_secrets(&error.message);
        error.remedy = error.remedy.map_text(&|text| self.without_secrets(text));
        let mut details = Value::Object(std::mem::take(&mut error.details));
        self.redact_value(&mut details);
        if let Value::Object(details) = details {
            error.details = details;
        }
        error
    }

    /// Removes the same from every string in a JSON value.
    pub(super) fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.without_secrets(text),
            Value::Array(items) => items.iter_mut().for_each(|it| self.redact_value(it)),
            Value::Object(fields) => fields.values_mut().for_each(|it| self.redact_value(it)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The key or token for a request, if there is one.
    async fn key(&self) -> Result<Option<SecretString>> {
        match &self.credential {
            Some(credential) => credential.current(renewal::renewed).await.map(Some),
            None => Ok(None),
        }
    }

    /// Asks an address beside the API, which the user's own servers have. Without a body it is a GET.
    pub(super) async fn beside(&self, path: &str, body: Option<&Value>, within: Duration) -> Option<Value> {
        // A command of the user that prints the key has its own limit.
        let key = self.key().await.ok()?;
        let asking = async {
            let address = format!("{}{path}", self.base_url.trim_end_matches("/v1"));
            let client = self.client().ok()?;
            let request = match body {
                None => client.get(address),
                Some(body) => client.post(address).header(CONTENT_TYPE, "application/json").body(body.to_string()),
            };
            let response = self.signed(request, key.as_ref()).send().await.ok()?.error_for_status().ok()?;
            document(response).await.ok()
        };
        timeout(within, asking).await.ok().flatten()
    }

    pub(super) async fn get<T: serde::de::DeserializeOwned>(&self, path: &str, within: Duration) -> Result<T> {
        let key = self.key().await.map_err(|e| self.redact(e))?;
        let asking = async {
            let request = self.signed(self.client()?.get(self.address(path)), key.as_ref());
            let response = request.send().await.map_err(|e| unreached(&self.place, &e))?;
            if !response.status().is_success() {
                return Err(self.refused(response, &[]).await.error);
            }
            document(response).await.map_err(|e| invalid(format!("{} did not return JSON: {e}", self.place)))
        };
        let answer = timeout(within, asking).await.unwrap_or_else(|_| {
            // No setting makes this wait longer. With a name there is nothing to ask for.
            let message = format!("{} did not list its models within {} s", self.place, within.as_secs());
            Err(Error::new(Code::Network, message, Remedy::NameModel { provider: self.provider.clone() }))
        });
        answer.map_err(|e| self.redact(e))
    }
}

/// Checks a configured header.
///
/// # Errors
/// `CONFIG_INVALID` for one that may hold a secret, or that HTTP does not allow.
fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue)> {
    let bad = |why: &str, fix: Remedy| {
        Error::new(Code::ConfigInvalid, format!("the header {} {why}", name.escape_debug()), fix).with("input", name)
    };
    if SECRET_HEADERS.contains(&name.to_lowercase().as_str()) {
        let named = "name the variable that holds it in `api_key_env`".into();
        return Err(bad("holds a secret", Remedy::any_of([named, Remedy::Login { provider: None }])));
    }
    let name =
        HeaderName::try_from(name).map_err(|_| bad("is not a valid header name", "a name like X-Team".into()))?;
    let value = HeaderValue::try_from(value)
        .map_err(|_| bad("has a value that is not valid in a header", "one line of plain text".into()))?;
    Ok((name, value))
}

/// Whether a key is a signed token (RFC 7519): three parts, of which the first is a JSON object in Base64.
fn is_jwt(key: &str) -> bool {
    key.starts_with("eyJ") && key.split('.').count() == 3
}

/// The model that ollama lacks, by its words: `model "NAME" not found, try pulling it first`.
fn missing_at_ollama(message: &str) -> Option<&str> {
    let (before, _) = message.split_once(" not found")?;
    let name = before.rsplit_once("model ")?.1.trim_matches(['"', '\'', '`', '“', '”']);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:/-".contains(c);
    let is_name = !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain);
    (is_name && message.contains("pull")).then_some(name)
}

/// The start of a response's body, as far as it arrives in time.
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
