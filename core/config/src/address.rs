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

/// Whether a host is this machine or one of its network: a private address, or a name that only its network knows.
pub fn is_nearby(host: &str) -> bool {
    const ENDINGS: [&str; 6] = [".local", ".lan", ".home", ".internal", ".home.arpa", ".localhost"];
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(it)) => {
            // 100.64.0.0/10 is what networks between machines of one user are built of.
            let is_shared = it.octets()[0] == 100 && (64..128).contains(&it.octets()[1]);
            it.is_loopback() || it.is_private() || it.is_link_local() || is_shared
        }
        Ok(std::net::IpAddr::V6(it)) => it.is_loopback() || it.is_unique_local() || it.is_unicast_link_local(),
        Err(_) => !bare.contains('.') || ENDINGS.iter().any(|ending| bare.ends_with(ending)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: every server without a preset counts as one of a desk.
    #[test]
    fn machines_nearby_are_told_from_those_of_a_company_or_a_cloud() {
        for near in [
            "localhost",
            "127.0.0.1",
            "[::1]",
            "10.1.2.3",
            "172.20.0.1",
            "192.168.1.9",
            "100.101.102.103",
            "box",
            "box.local",
            "gpu.lan",
            "host.docker.internal",
            "[fd00::1]",
            "[fe80::1]",
            "169.254.1.1",
        ] {
            assert!(is_nearby(near), "{near}");
        }
        for far in [
            "bedrock-runtime.us-east-1.amazonaws.com",
            "us-east5-aiplatform.googleapis.com",
            "llm.example.com",
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "[2001:db8::1]",
            "x.services.ai.azure.com",
        ] {
            assert!(!is_nearby(far), "{far}");
        }
    }

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
