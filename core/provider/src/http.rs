//! The HTTP client, and which addresses and headers it may be given.

use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, Response};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::refusal::{shown, unreached};
use config::address::{self, Unfit, is_loopback};
use protocol::error::{Code, Error, Result};
use protocol::remedy::Remedy;

const CONNECT: Duration = Duration::from_secs(10);
/// The longest time to read the body of a refusal. [`MAX_REFUSAL`] is the most of it, bytes.
const REFUSAL: Duration = Duration::from_secs(10);
const MAX_REFUSAL: usize = 16 << 10;
/// The most bytes of a document of a server, such as its list of models.
const MAX_DOCUMENT: usize = 4 << 20;
/// Headers with credentials. They are not allowed in the configuration file.
const SECRET_HEADERS: [&str; 5] = ["authorization", "x-api-key", "api-key", "cookie", "proxy-authorization"];

/// Creates the HTTP client for the server at this address. Requests to this machine use no proxy.
pub fn client(address: &str) -> Result<Client> {
    // A redirect could send the key to another server.
    client_with(address, |builder| builder.redirect(reqwest::redirect::Policy::none()))
}

/// The same with a word of its own about redirects and addresses.
pub fn client_with(address: &str, more: impl Fn(ClientBuilder) -> ClientBuilder) -> Result<Client> {
    let url = reqwest::Url::parse(address).ok();
    let is_local = url.as_ref().and_then(reqwest::Url::host_str).is_some_and(is_loopback);
    // Reading the certificates of this machine takes hundreds of system calls. Plain http to the machine itself, without
    // a proxy and without redirects, has no use for them.
    let is_plain = is_local && url.is_some_and(|it| it.scheme() == "http");
    // An error means that the process already has a crypto provider, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        let builder = if is_local { Client::builder().no_proxy() } else { Client::builder() };
        more(builder.connect_timeout(CONNECT).user_agent(concat!("pixir/", env!("CARGO_PKG_VERSION"))))
    };
    // A slim container has no CA certificates; the built-in Mozilla roots serve then.
    if is_plain {
        return builder().tls_certs_only([]).build().map_err(|e| not_started(&e));
    }
    let client = builder().build().or_else(|_| {
        let roots =
            webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().filter_map(|der| reqwest::Certificate::from_der(der).ok());
        builder().tls_certs_only(roots).build()
    });
    client.map_err(|e| not_started(&e))
}

fn not_started(e: &reqwest::Error) -> Error {
    Error::new(Code::Network, format!("start the HTTP client: {e}"), "check SSL_CERT_FILE and the proxy settings")
}

/// Checks that an address may be used.
///
/// # Errors
/// `CONFIG_INVALID`.
pub fn check_address(address: &str, insecure: bool) -> Result<reqwest::Url> {
    let bad = |shown: &str, why: &str, fix: Remedy| {
        Error::new(Code::ConfigInvalid, format!("the base URL {} {why}", shown.escape_debug()), fix)
            .with("input", shown)
    };
    address::read(address, insecure).map_err(|unfit| match unfit {
        Unfit::NotValid(why) => bad(address, &format!("is not valid: {why}"), "use one like https://host/v1".into()),
        // The message leaves the address out: it may contain a secret.
        Unfit::HoldsLogin { host } => bad(
            &host,
            "contains a user name or a password",
            Remedy::steps(["remove it from the URL".into(), Remedy::Login { provider: None }]),
        ),
        Unfit::Unencrypted => bad(
            address,
            "would send everything unencrypted",
            "use https://, a server on 127.0.0.1, or `insecure = true` in its section of config.toml".into(),
        ),
        Unfit::NotHttp => bad(address, "is neither http nor https", "use one like https://host/v1".into()),
    })
}

/// Checks a configured header.
///
/// # Errors
/// `CONFIG_INVALID` for one that may hold a secret, or that HTTP does not allow.
pub(super) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue)> {
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

/// Returns the error for a request outside a Provider that did not reach its server.
pub fn unreachable(address: &str, e: &reqwest::Error) -> Error {
    let host = reqwest::Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
    unreached(host.as_deref().unwrap_or(address), e)
}

/// Returns a server's text on one line, safe to print.
pub fn quoted(text: &str) -> String {
    shown(text)
}

/// The JSON document that a response is. One of more than [`MAX_DOCUMENT`] bytes is not read to its end.
///
/// # Errors
/// Why there is none.
pub async fn document<T: DeserializeOwned>(mut response: Response) -> std::result::Result<T, String> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|e| e.to_string())? {
        if bytes.len() + piece.len() > MAX_DOCUMENT {
            return Err(format!("it has more than {} MiB", MAX_DOCUMENT >> 20));
        }
        bytes.extend_from_slice(&piece);
    }
    serde_json::from_slice(&bytes).map_err(|e| e.to_string())
}

/// The start of a response's body, as far as it arrives in time.
pub(super) async fn start_of(mut response: Response) -> String {
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
