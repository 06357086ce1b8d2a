//! Requests, statuses, server-sent events: what the dialects share.

use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, StatusCode};
use serde_json::Value;
use sse_stream::SseStream;

use super::{Failure, invalid};
use crate::error::{Code, Error};

/// Without a byte for so long, the stream is given up.
const IDLE: Duration = Duration::from_secs(180);
const CONNECT: Duration = Duration::from_secs(10);
/// The largest event that is taken, bytes.
const MAX_EVENT: usize = 16 << 20;
/// The most of an error's body that is shown, characters.
const MAX_SHOWN: usize = 200;

/// Where to send requests, and with which key.
#[derive(Clone)]
pub struct Endpoint {
    base_url: String,
    key: Option<String>,
    /// The environment variable that the key came from, or should come from.
    key_name: Option<String>,
    client: std::sync::Arc<OnceLock<Client>>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("base_url", &self.base_url)
            .field("key", &self.key.as_ref().map(|_| "[redacted]"))
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// A server; plain http is for loopback only.
    ///
    /// # Errors
    /// `CONFIG_INVALID` when the URL is none, or sends a key in the clear.
    pub fn new(base_url: &str, key: Option<String>, key_name: Option<String>) -> Result<Endpoint, Error> {
        let bad = |why: &str, fix: &str| {
            Error::new(Code::ConfigInvalid, format!("the base URL {} {why}", base_url.escape_debug()), fix)
                .with("input", base_url)
        };
        let url = reqwest::Url::parse(base_url)
            .map_err(|e| bad(&format!("is not valid: {e}"), "--base-url https://host/v1"))?;
        let loopback = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        match url.scheme() {
            "https" => {}
            "http" if loopback => {}
            "http" => return Err(bad("would send everything unencrypted", "https://, or a server on 127.0.0.1")),
            _ => return Err(bad("is neither http nor https", "--base-url https://host/v1")),
        }
        Ok(Endpoint {
            base_url: base_url.trim_end_matches('/').to_owned(),
            key,
            key_name,
            client: std::sync::Arc::default(),
        })
    }

    /// Where it is.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    fn client(&self) -> Result<&Client, Error> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // Err: another part of the process installed one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            Client::builder()
                .connect_timeout(CONNECT)
                .redirect(reqwest::redirect::Policy::none())
                .user_agent(concat!("pixir/", env!("CARGO_PKG_VERSION")))
        };
        // A slim container has no CA bundle; then the Mozilla roots that are built in serve.
        let client = builder().build().or_else(|_| {
            let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS
                .iter()
                .filter_map(|der| reqwest::Certificate::from_der(der).ok());
            builder().tls_certs_only(roots).build()
        });
        let client = client.map_err(|e| {
            Error::new(Code::Network, format!("start the HTTP client: {e}"), "check SSL_CERT_FILE and proxy settings")
        })?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Posts a body and returns the stream of its events' data.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Events, Failure> {
        let mut request = self.client()?.post(format!("{}{path}", self.base_url)).json(body);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let response = tokio::time::timeout(IDLE, request.send())
            .await
            .map_err(|_| idle())?
            .map_err(|e| network(&self.base_url, &e))?;
        let status = response.status();
        let headers = response.headers().clone();
        if !status.is_success() {
            let body =
                tokio::time::timeout(CONNECT, response.text()).await.ok().and_then(Result::ok).unwrap_or_default();
            return Err(self.refused(status, &headers, &body));
        }
        let kind = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
        if !kind.is_empty() && !kind.starts_with("text/event-stream") {
            let body =
                tokio::time::timeout(CONNECT, response.text()).await.ok().and_then(Result::ok).unwrap_or_default();
            return Err(
                invalid(format!("{} answered {kind} instead of a stream: {}", self.base_url, shown(&body))).into()
            );
        }
        // The decoder has no bound of its own; an event ends with an empty line.
        let (mut event, mut empty_line) = (0_usize, false);
        let bytes = response.bytes_stream().map(move |piece| {
            let piece = piece.map_err(std::io::Error::other)?;
            for byte in &piece {
                event += 1;
                match byte {
                    b'\n' if empty_line => event = 0,
                    b'\n' => empty_line = true,
                    b'\r' => {}
                    _ => empty_line = false,
                }
            }
            if event > MAX_EVENT { Err(std::io::Error::other("an event is larger than 16 MB")) } else { Ok(piece) }
        });
        Ok(Events {
            inner: Box::pin(SseStream::from_bytes_stream(bytes).map(|event| event.map_err(|e| e.to_string()))),
        })
    }

    /// Asks the server for its models' names.
    ///
    /// # Errors
    /// `NETWORK` when it does not answer in time, `INVALID_RESPONSE` when the answer is no list of models.
    pub async fn models(&self, within: Duration) -> Result<Vec<String>, Error> {
        let mut request = self.client()?.get(format!("{}/models", self.base_url)).timeout(within);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let response = request.send().await.map_err(|e| network(&self.base_url, &e).error)?;
        let body: Value =
            response.json().await.map_err(|e| invalid(format!("{} did not list its models: {e}", self.base_url)))?;
        Ok(body["data"].as_array().into_iter().flatten().filter_map(|m| m["id"].as_str()).map(str::to_owned).collect())
    }

    fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &str) -> Failure {
        let said = message_in(body);
        let lower = body.to_lowercase();
        let overflow =
            ["context_length_exceeded", "exceed_context_size", "maximum context length", "prompt is too long"]
                .iter()
                .any(|sign| lower.contains(sign));
        let quota = ["insufficient_quota", "usage_limit", "billing"].iter().any(|sign| lower.contains(sign));
        let (code, fix) = match status.as_u16() {
            _ if overflow => (Code::ContextOverflow, "/compact, or a model with a larger window".to_owned()),
            401 | 403 => (Code::AuthRequired, self.key_fix()),
            404 => (Code::ModelNotSupported, "another model (--model, /model), or check --base-url".to_owned()),
            402 => (Code::UsageLimitReached, "check the plan and billing of this account".to_owned()),
            429 if quota => (Code::UsageLimitReached, "check the plan and billing of this account".to_owned()),
            429 => (Code::RateLimited, "wait a little, then try again".to_owned()),
            408 | 409 | 425 | 500.. => (Code::ProviderUnavailable, "try again in a little while".to_owned()),
            _ => (Code::ProviderHttpError, "check --model, --dialect and --base-url".to_owned()),
        };
        let error = Error::new(code, format!("{} answered {}: {said}", self.base_url, status.as_u16()), fix)
            .with("status", status.as_u16());
        Failure { error, after_content: false, retry_after: retry_after(headers) }
    }

    fn key_fix(&self) -> String {
        match &self.key_name {
            Some(name) if self.key.is_none() => format!("export {name}=…"),
            Some(name) => format!("the key in {name} was not accepted; set another"),
            None => "a provider with a key: see pixir doctor".to_owned(),
        }
    }
}

/// The data of each event, until the server ends the stream.
pub(super) struct Events {
    inner: Pin<Box<dyn Stream<Item = Result<sse_stream::Sse, String>> + Send>>,
}

impl Events {
    /// The next event's data as JSON. `None` at the end of the stream, and at `[DONE]`.
    pub(super) async fn next(&mut self) -> Result<Option<Value>, Error> {
        loop {
            let event = tokio::time::timeout(IDLE, self.inner.next()).await.map_err(|_| idle())?;
            let data = match event {
                None => return Ok(None),
                Some(Err(e)) => return Err(closed(&e)),
                Some(Ok(event)) => event.data.unwrap_or_default(),
            };
            match data.trim() {
                "" => {}
                "[DONE]" => return Ok(None),
                text => {
                    return serde_json::from_str(text)
                        .map(Some)
                        .map_err(|e| invalid(format!("an event of the answer is not JSON: {e}")));
                }
            }
        }
    }
}

/// The stream ended before the answer did.
pub(super) fn closed(why: &str) -> Error {
    Error::new(
        Code::StreamClosed,
        format!("the connection ended before the answer was whole: {}", shown(why)),
        "send it again; what came is kept",
    )
}

/// A failure that the server told inside a stream.
pub(super) fn told_in_stream(error: &Value) -> Error {
    let said = error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned);
    let name = [&error["code"], &error["type"]].iter().find_map(|v| v.as_str()).unwrap_or_default().to_lowercase();
    let (code, fix) = match name.as_str() {
        "context_length_exceeded" | "exceed_context_size_error" => {
            (Code::ContextOverflow, "/compact, or a model with a larger window")
        }
        "rate_limit_exceeded" | "429" => (Code::RateLimited, "wait a little, then try again"),
        "insufficient_quota" => (Code::UsageLimitReached, "check the plan and billing of this account"),
        "server_error" | "overloaded_error" | "500" | "503" => {
            (Code::ProviderUnavailable, "try again in a little while")
        }
        _ => (Code::ProviderHttpError, "try again, or with another model"),
    };
    Error::new(code, format!("the model's server reported: {}", shown(&said)), fix)
}

fn idle() -> Error {
    Error::new(
        Code::StreamIdleTimeout,
        format!("nothing came for {} s", IDLE.as_secs()),
        "send it again; what came is kept",
    )
}

fn network(base_url: &str, e: &reqwest::Error) -> Failure {
    let mut cause: &dyn std::error::Error = e;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let fix = if e.is_connect() {
        "check that the server runs and the address is right (--base-url)"
    } else {
        "check the connection, then try again"
    };
    Error::new(Code::Network, format!("{base_url} could not be reached: {cause}"), fix).into()
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| {
        headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0)
    };
    if let Some(ms) = number("retry-after-ms") {
        return Some(Duration::from_secs_f64(ms / 1000.0));
    }
    if let Some(seconds) = number("retry-after") {
        return Some(Duration::from_secs_f64(seconds));
    }
    let date = headers.get("retry-after")?.to_str().ok()?;
    let at = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
    Duration::try_from(at.duration_since(jiff::Timestamp::now())).ok()
}

fn message_in(body: &str) -> String {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let said = json["error"]["message"]
        .as_str()
        .or_else(|| json["error"].as_str())
        .or_else(|| json["message"].as_str())
        .or_else(|| json["detail"].as_str());
    said.map_or_else(|| if body.trim().is_empty() { "(no explanation)".into() } else { shown(body) }, shown)
}

/// The start of a text from outside, safe to print.
fn shown(text: &str) -> String {
    let mut start: String = text.trim().chars().take(MAX_SHOWN).collect::<String>().escape_debug().to_string();
    if text.trim().chars().count() > MAX_SHOWN {
        start.push('…');
    }
    start.replace("\\\"", "\"").replace("\\'", "'")
}
