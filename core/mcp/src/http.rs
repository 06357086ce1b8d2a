//! Servers that run elsewhere: Streamable HTTP.

use std::net::{IpAddr, SocketAddr};

use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use secrecy::{ExposeSecret as _, SecretString};

use super::client::{Begin, Client, Fault, initialize_params};
use super::login::ANSWER;
use super::secrets::Secrets;
use super::sign_in::{SignIn, failed};
use super::stream::{Http, OWN_HEADERS};
use config::OAuth;
use protocol::error::{Code, Error};
use text::json_rpc;

/// The most redirects of one request.
const MAX_REDIRECTS: usize = 3;

/// Where a server is, and what it is sent besides messages.
pub(super) struct Endpoint {
    pub(super) url: String,
    pub(super) secrets: Secrets,
    /// A project names the server, so it may not be one of the user's own network.
    pub(super) is_of_project: bool,
    /// How the user signs in to it.
    pub(super) oauth: OAuth,
    /// The stored sign-in.
    pub(super) sign_in: SignIn,
}

impl Endpoint {
    /// Begins a connection, with the token of the sign-in where there is one.
    pub(super) async fn connect(&self, name: &str, first: Begin) -> Result<(Client, Option<SecretString>), Fault> {
        let token = if self.has_key() { None } else { self.sign_in.token().await.map_err(of_sign_in)? };
        match self.connect_with(name, first, token.as_ref()).await {
            // The server may refuse a token before its time.
            Err(Fault::NeedsLogin { scope: None }) if token.is_some() => {
                let is_renewed = self.sign_in.renew(token.as_ref()).await.map_err(of_sign_in)?;
                let token = if is_renewed { self.sign_in.token().await.map_err(of_sign_in)? } else { None };
                if token.is_none() {
                    return Err(Fault::NeedsLogin { scope: None });
                }
                let client = self.connect_with(name, first, token.as_ref()).await?;
                Ok((client, token))
            }
            connected => Ok((connected?, token)),
        }
    }

    async fn connect_with(&self, name: &str, first: Begin, token: Option<&SecretString>) -> Result<Client, Fault> {
        let client = self.client().await.map_err(not_sent)?;
        let mut headers = self.headers().map_err(not_sent)?;
        if let Some(token) = token {
            let bearer = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()));
            let mut bearer = bearer.map_err(|_| not_sent("the stored token cannot be sent".to_owned()))?;
            bearer.set_sensitive(true);
            headers.insert(AUTHORIZATION, bearer);
        }
        let connected = |begin: Begin| {
            let http = Http::new(client.clone(), &self.url, headers.clone());
            Client::over_http(name, &self.secrets, http, begin)
        };
        match connected(first).await {
            // Some answer anything that they do not know with nothing.
            Err(
                Fault::Odd(_)
                | Fault::OtherEra(_)
                | Fault::Status { .. }
                | Fault::Unreached { was_connected: true, .. },
            ) => connected(first.other()).await,
            connected => connected,
        }
    }

    /// Whether the user has configured a key of their own.
    pub(super) fn has_key(&self) -> bool {
        self.secrets.headers.keys().any(|it| it.eq_ignore_ascii_case("authorization"))
    }

    /// The headers of the server's answer to a request without a sign-in; `None` where it lets everyone in.
    ///
    /// # Errors
    /// `NETWORK`, `MCP_AUTH_REQUIRED`.
    pub(super) async fn probe(&self) -> Result<Option<HeaderMap>, Error> {
        let client = self.client().await.map_err(|why| failed(&why))?;
        let headers = self.headers().map_err(|why| failed(&why))?;
        let hello = json_rpc::request(&1.into(), "initialize", &initialize_params().into());
        let request = client.post(&self.url).headers(headers).header(ACCEPT, "application/json, text/event-stream");
        let response = request.json(&hello).timeout(ANSWER).send().await;
        let response = response.map_err(|e| net::unreachable(&self.url, &e))?;
        Ok(matches!(response.status().as_u16(), 401 | 403).then(|| response.headers().clone()))
    }

    /// A redirect that keeps the message is followed within the server; no other one is.
    async fn client(&self) -> Result<reqwest::Client, String> {
        let url = Url::parse(&self.url).map_err(|e| e.to_string())?;
        // What was looked up is what is connected to.
        let addresses = if self.is_of_project { public_addresses(&url).await? } else { Vec::new() };
        let host = url.host_str().unwrap_or_default().to_owned();
        let client = net::client_with(&self.url, |builder| {
            let builder = builder.redirect(Policy::custom(|attempt| {
                let keeps_message = matches!(attempt.status().as_u16(), 307 | 308);
                let from = attempt.previous().last().map(Url::origin);
                if keeps_message && attempt.previous().len() <= MAX_REDIRECTS && from == Some(attempt.url().origin()) {
                    attempt.follow()
                } else {
                    attempt.stop()
                }
            }));
            if addresses.is_empty() { builder } else { builder.resolve_to_addrs(&host, &addresses) }
        });
        client.map_err(|e| e.message)
    }

    fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.secrets.headers.iter() {
            let parsed =
                HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::from_str(value.expose_secret()).ok());
            let Some((name, mut value)) = parsed else {
                return Err(format!("the header `{}` cannot be sent", name.escape_debug()));
            };
            if OWN_HEADERS.contains(&name) {
                return Err(format!("the header `{name}` is one that the protocol sets"));
            }
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

/// Why a stored sign-in cannot be used.
fn of_sign_in(e: Error) -> Fault {
    match e.code {
        Code::McpAuthRequired => Fault::NeedsLogin { scope: None },
        _ => Fault::Unreached { error: Box::new(e), was_connected: false },
    }
}

/// Why nothing can be sent to a server.
fn not_sent(why: String) -> Fault {
    let fix = "check its URL and its headers in the configuration";
    Fault::Unreached { error: Box::new(Error::new(Code::ConfigInvalid, why, fix)), was_connected: false }
}

/// The addresses of a server that a project names. A repository could otherwise have pixir talk to what only the user reaches.
pub(super) async fn public_addresses(url: &Url) -> Result<Vec<SocketAddr>, String> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().unwrap_or(443);
    let found = tokio::net::lookup_host((host.as_str(), port)).await;
    let found: Vec<SocketAddr> = found.map_err(|e| format!("{host} is not found: {e}"))?.collect();
    match found.iter().map(SocketAddr::ip).find(|it| !is_public(*it)) {
        Some(ip) => Err(format!("{host} is {ip}, an address of a private network; name it in your own config.toml")),
        None => Ok(found),
    }
}

fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(it) => {
            let [a, b, ..] = it.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            !(it.is_private()
                || it.is_loopback()
                || it.is_link_local()
                || it.is_unspecified()
                || it.is_broadcast()
                || it.is_multicast()
                || it.is_documentation()
                || a == 0
                || is_shared)
        }
        IpAddr::V6(it) => match it.to_ipv4_mapped() {
            Some(v4) => is_public(v4.into()),
            None => {
                let first = it.segments()[0];
                let is_local = (first & 0xfe00) == 0xfc00 || (first & 0xffc0) == 0xfe80;
                !(it.is_loopback() || it.is_unspecified() || it.is_multicast() || is_local)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_users_own_network_are_not_public() {
        let public = |text: &str| is_public(text.parse().expect("an address"));
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "::1",
            "fd00::1",
            "fe80::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(!public(private), "{private}");
        }
        assert!(public("1.1.1.1") && public("2606:4700::1111"));
    }
}
