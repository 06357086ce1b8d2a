//! The proxies that the environment names.

use std::env;

/// The variables that name a proxy, for a scheme each or for all; for one scheme, the first that is set counts.
const VARIABLES: [(&str, &str); 6] = [
    ("https", "HTTPS_PROXY"),
    ("https", "https_proxy"),
    ("http", "HTTP_PROXY"),
    ("http", "http_proxy"),
    ("", "ALL_PROXY"),
    ("", "all_proxy"),
];

/// The schemes of a proxy that pixir speaks to.
const SPOKEN: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

/// The variable that names the proxy for addresses of this scheme.
pub(crate) fn variable(scheme: &str) -> Option<&'static str> {
    let counts = |(of, name): &&(&str, &'static str)| [scheme, ""].contains(of) && value(name).is_some();
    VARIABLES.iter().find(counts).map(|(_, name)| *name)
}

/// A proxy of the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    pub variable: &'static str,
    /// Its address without user and password, or why it is none that pixir can use.
    pub address: Result<String, String>,
}

/// Each proxy that the environment names.
pub fn named() -> Vec<Proxy> {
    VARIABLES.iter().filter_map(|(_, name)| Some(Proxy { variable: name, address: shown(&value(name)?) })).collect()
}

/// The hosts that are reached without a proxy, as the environment lists them.
pub fn exceptions() -> Option<String> {
    ["NO_PROXY", "no_proxy"].into_iter().find_map(value)
}

fn value(name: &str) -> Option<String> {
    env::var(name).ok().filter(|it| !it.trim().is_empty())
}

/// An address of a proxy as it may be shown. Without a scheme, it is one of http.
fn shown(value: &str) -> Result<String, String> {
    let whole = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
    let url = reqwest::Url::parse(&whole).map_err(|e| format!("is not an address: {e}"))?;
    if !SPOKEN.contains(&url.scheme()) {
        return Err(format!("has the scheme {}; pixir speaks to proxies of {}", url.scheme(), SPOKEN.join(", ")));
    }
    let host = url.host_str().ok_or("names no host")?;
    Ok(match url.port() {
        Some(port) => format!("{}://{host}:{port}", url.scheme()),
        None => format!("{}://{host}", url.scheme()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        assert_eq!(shown("http://me:secret@proxy.example:3128/x"), Ok("http://proxy.example:3128".to_owned()));
        assert_eq!(shown("proxy.example:3128"), Ok("http://proxy.example:3128".to_owned()));
        assert_eq!(shown("socks5h://[::1]:1080"), Ok("socks5h://[::1]:1080".to_owned()));
        for bad in ["ftp://proxy.example", "http://", "http://a b"] {
            assert!(shown(bad).is_err(), "{bad}");
        }
    }
}
