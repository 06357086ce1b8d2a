//! GitHub Copilot: a token of GitHub is exchanged for one of Copilot, which lasts about half an hour.
//!
//! GitHub documents the device flow, and not the exchange: its fields are those that the open clients of editors use
//! (`GET /copilot_internal/v2/token`, answered by `token` and `expires_at`).

use jiff::Timestamp;
use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::device_login::{ANSWER, client_for, failed, number, told};
use config::address::is_loopback;
use config::credentials::{Renewal, Token};
use net::{check_address, document, unreachable};
use protocol::error::{Code, Error, Result};
use protocol::remedy::Remedy;

/// The address of the exchange: `api.github.com` for `github.com`, `api.NAME.ghe.com` for a company's own host.
///
/// # Errors
/// `CONFIG_INVALID`.
pub(super) fn exchange_endpoint(issuer: &str) -> Result<String> {
    let url: Url = check_address(issuer, false)?;
    let host = url.host_str().unwrap_or_default();
    let prefix = if is_loopback(host) { "" } else { "api." };
    let port = url.port().map_or(String::new(), |port| format!(":{port}"));
    Ok(format!("{}://{prefix}{host}{port}/copilot_internal/v2/token", url.scheme()))
}

/// Exchanges a token of GitHub for one of Copilot.
///
/// # Errors
/// `AUTH_REQUIRED` when GitHub does not accept its token any more, `ACCESS_DENIED` when the account has no plan, `NETWORK`.
pub(super) async fn exchange(github: &SecretString, endpoint: &str, client_id: &str, provider: &str) -> Result<Token> {
    let request = client_for(endpoint)?
        .get(endpoint)
        .header("accept", "application/json")
        .header("editor-version", concat!("pixir/", env!("CARGO_PKG_VERSION")))
        .bearer_auth(github.expose_secret())
        .timeout(ANSWER);
    let response = request.send().await.map_err(|e| unreachable(endpoint, &e))?;
    let status = response.status().as_u16();
    let answer: Value = document(response).await.unwrap_or_default();
    let says = || told(&answer).replace(github.expose_secret(), "[redacted]");
    let sign_in = Remedy::SignIn { provider: Some(provider.to_owned()) };
    match status {
        200 => {
            let access = answer["token"].as_str().filter(|it| !it.is_empty());
            let access = access.ok_or_else(|| failed("GitHub returned no token for Copilot"))?;
            let expires = number(&answer["expires_at"]).and_then(|s| i64::try_from(s).ok());
            Ok(Token {
                access: SecretString::from(access),
                refresh: Some(github.clone()),
                expires: expires.and_then(|s| Timestamp::from_second(s).ok()),
                endpoint: endpoint.to_owned(),
                client_id: client_id.to_owned(),
                renewal: Renewal::Copilot,
                grant: None,
            })
        }
        401 => Err(Error::new(Code::AuthRequired, format!("the sign-in to {provider} has ended: {}", says()), sign_in)),
        403 | 404 => {
            let fix = "check which plan of Copilot the account has, and that this program may use it";
            Err(Error::new(
                Code::AccessDenied,
                format!("GitHub gives this account no access to Copilot: {}", says()),
                fix,
            ))
        }
        _ => Err(Error::new(
            Code::ProviderUnavailable,
            format!("the token for {provider} could not be renewed ({status})"),
            "try again in a moment",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_issuer_has_its_exchange_beside_it() {
        for (issuer, endpoint) in [
            ("https://github.com", "https://api.github.com/copilot_internal/v2/token"),
            ("https://github.com/", "https://api.github.com/copilot_internal/v2/token"),
            ("https://acme.ghe.com", "https://api.acme.ghe.com/copilot_internal/v2/token"),
            ("http://127.0.0.1:99", "http://127.0.0.1:99/copilot_internal/v2/token"),
        ] {
            assert_eq!(exchange_endpoint(issuer).expect(issuer), endpoint);
        }
        assert!(exchange_endpoint("http://github.com").is_err(), "no token travels unencrypted");
    }
}
