//! Addresses of servers, as configuration files name them.

use reqwest::Url;

use text::clean::hides;

/// Why an address cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is no address, and why not.
    NotValid(String),
    /// It holds a user name or a password.
    HoldsLogin {
        /// The host, which may be shown.
        host: String,
    },
    /// It would send everything unencrypted to another machine.
    Unencrypted,
    /// It is neither http nor https.
    NotHttp,
}

/// Reads an address. Plain http leads to this machine only, unless the user accepts that.
pub fn read(address: &str, insecure: bool) -> Result<Url, Unfit> {
    // The parser leaves some of these out, so that what the user sees is not what is used.
    if hides(address) || address.contains(char::is_whitespace) {
        return Err(Unfit::NotValid("it holds a blank or an invisible character".to_owned()));
    }
    let url = Url::parse(address).map_err(|e| Unfit::NotValid(e.to_string()))?;
    let host = url.host_str().unwrap_or_default();
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Unfit::HoldsLogin { host: host.to_owned() });
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if insecure || is_loopback(host) => Ok(url),
        "http" => Err(Unfit::Unencrypted),
        _ => Err(Unfit::NotHttp),
    }
}

/// Whether a host is this machine.
pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: a line end in an address is dropped by its parser; plain http to another machine.
    #[test]
    fn an_address_is_what_it_shows_and_encrypted_to_other_machines() {
        for fine in ["https://example.com/mcp", "http://127.0.0.1:9/x", "http://[::1]:9/", "http://localhost/"] {
            assert_eq!(read(fine, false).map(|it| it.to_string()), Ok(fine.to_owned()));
        }
        assert_eq!(read("http://example.com/", false), Err(Unfit::Unencrypted));
        assert!(read("http://example.com/", true).is_ok());
        assert_eq!(read("ftp://example.com/", true), Err(Unfit::NotHttp));
        assert_eq!(read("https://a:b@example.com/", true), Err(Unfit::HoldsLogin { host: "example.com".to_owned() }));
        for odd in ["https://exam\nple.com/", "https://example.com/\u{202e}x", "https://example.com/\u{1b}[2J", "x"] {
            assert!(matches!(read(odd, false), Err(Unfit::NotValid(_))), "{odd:?}");
        }
    }
}
