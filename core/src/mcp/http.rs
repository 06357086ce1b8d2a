//! Servers that run elsewhere: Streamable HTTP.

use std::collections::HashMap;
use std::net::IpAddr;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use secrecy::ExposeSecret as _;

use super::client::{Begin, Client, Fault};
use super::lines::MAX_MESSAGE;
use super::secrets::Secrets;
use crate::provider::http;

/// Where a server is, and what it is sent besides messages.
pub(super) struct Endpoint {
    pub(super) url: String,
    pub(super) secrets: Secrets,
    /// A project names the server, so it may not be one of the user's own network.
    pub(super) is_of_project: bool,
}

impl Endpoint {
    pub(super) async fn connect(&self, name: &str) -> Result<Client, Fault> {
        if self.is_of_project {
            self.check_public().await?;
        }
        let client = http::client(&self.url).map_err(|e| Fault::Odd(e.message))?;
        let mut headers = HashMap::new();
        for (name, value) in self.secrets.headers.iter() {
            let parsed =
                HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::from_str(value.expose_secret()).ok());
            let Some((name, mut value)) = parsed else {
                return Err(Fault::Odd(format!("the header `{}` cannot be sent", name.escape_debug())));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str());
        config.custom_headers = headers;
        config.max_sse_event_size = MAX_MESSAGE;
        config.max_json_response_size = MAX_MESSAGE;
        let transport = || StreamableHttpClientTransport::with_client(client.clone(), config.clone());
        match Client::connect(name, &self.secrets, transport(), Begin::Discover).await {
            // Some answer anything that they do not know with nothing.
            Err(Fault::Odd(_)) => Client::connect(name, &self.secrets, transport(), Begin::Initialize).await,
            connected => connected,
        }
    }

    /// A repository could otherwise have pixir talk to what only the user reaches.
    async fn check_public(&self) -> Result<(), Fault> {
        let url = reqwest::Url::parse(&self.url).map_err(|e| Fault::Odd(e.to_string()))?;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port_or_known_default().unwrap_or(443);
        let found = tokio::net::lookup_host((host.as_str(), port)).await;
        let found = found.map_err(|e| Fault::Odd(format!("{host} is not found: {e}")))?;
        match found.map(|it| it.ip()).find(|it| !is_public(*it)) {
            Some(ip) => Err(Fault::Odd(format!(
                "{host} is {ip}, an address of a private network; name it in your own config.toml"
            ))),
            None => Ok(()),
        }
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
