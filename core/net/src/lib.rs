//! The HTTP client of model servers and of MCP servers: how it is built, which addresses it may be given, and its failures as
//! errors.
#![forbid(unsafe_code)]

pub mod proxy;
pub mod tls;

use std::time::Duration;

use reqwest::{Client, ClientBuilder, Response};
use rustix::io::Errno;
use serde::de::DeserializeOwned;

use config::address::{self, Unfit, is_loopback};
use protocol::error::{Code, Error, Result};
use protocol::remedy::Remedy;

const CONNECT: Duration = Duration::from_secs(10);
/// The most bytes of a document of a server, such as its list of models.
const MAX_DOCUMENT: usize = 4 << 20;
/// The most of a server's text that is shown, characters.
pub const MAX_SHOWN: usize = 200;

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
    if is_plain {
        return builder().tls_certs_only([]).build().map_err(|e| not_started(&e));
    }
    let beside = tls::beside_named()?;
    let client = if beside.is_empty() {
        // A slim container has no CA certificates; the built-in Mozilla roots serve then.
        builder().build().or_else(|_| builder().tls_certs_only(tls::built_in()).build())
    } else {
        builder().tls_certs_merge(beside).build()
    };
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

/// Returns the error for a request to this address that did not reach its server.
pub fn unreachable(address: &str, e: &reqwest::Error) -> Error {
    let host = reqwest::Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
    unreached(host.as_deref().unwrap_or(address), e)
}

/// Returns the error for a request that did not reach the server.
pub fn unreached(host: &str, e: &reqwest::Error) -> Error {
    let mut causes: Vec<String> = Vec::new();
    let mut cause: &dyn std::error::Error = e;
    let mut fault = None;
    let mut starved = false;
    while let Some(deeper) = cause.source() {
        cause = deeper;
        fault = fault.or_else(|| tls::fault(deeper));
        starved |= lacks_descriptors(cause);
        causes.push(cause.to_string());
    }
    let why = causes.pop().unwrap_or_else(|| e.to_string());
    if starved {
        // Another try would need the same descriptors.
        let fix = "allow this process more open files, or close other programs";
        return Error::new(Code::CommandFailed, format!("{host} could not be reached: {}", quoted(&why)), fix);
    }
    if let Some(fault) = fault {
        return tls::refused(host, fault, jiff::Timestamp::now());
    }
    let by_proxy = causes.iter().any(|cause| cause.contains("tunnel") || cause.contains("proxy"));
    let is_local = e.url().and_then(reqwest::Url::host_str).is_some_and(is_loopback);
    let proxy = proxy::variable(e.url().map_or("https", |it| it.scheme())).filter(|_| !is_local);
    let is_certain = by_proxy || why.contains("tunnel") || why.contains("SOCKS");
    let fix: Remedy = match proxy {
        _ if is_certain => {
            let variable = proxy.unwrap_or("HTTPS_PROXY");
            format!("check the proxy in {variable}, or name this host in NO_PROXY").into()
        }
        Some(variable) if e.is_connect() => format!(
            "check that the server and the proxy in {variable} are running and that their addresses are correct"
        )
        .into(),
        _ if e.is_connect() => "check that the server is running and that its address is correct".into(),
        _ => "check the connection, then try again".into(),
    };
    Error::new(Code::Network, format!("{host} could not be reached: {}", quoted(&why)), fix)
}

/// Whether the system has no descriptor left for this process, or for all.
fn lacks_descriptors(cause: &(dyn std::error::Error + 'static)) -> bool {
    let number = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
    [Errno::MFILE, Errno::NFILE].into_iter().any(|it| number == Some(it.raw_os_error()))
}

/// Returns the start of a server's text, on one line and safe to print.
pub fn quoted(text: &str) -> String {
    let text = text.trim();
    let mut start: String = text.chars().take(MAX_SHOWN).collect::<String>().escape_debug().to_string();
    if text.chars().nth(MAX_SHOWN).is_some() {
        start.push('…');
    }
    start.replace("\\\"", "\"").replace("\\'", "'")
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
