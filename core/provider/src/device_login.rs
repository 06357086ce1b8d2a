//! Signs in on another device (RFC 8628), and renews the token (RFC 6749 §6).
//!
//! GitHub's endpoints: <https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps#device-flow>.

use std::time::Duration;

use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::time::Instant;

use config::credentials::{Renewal, Token};
use net::{check_address, client, document, quoted, unreachable};
use protocol::error::{Code, Error, Result};
use protocol::remedy::Remedy;

/// How long the user may take to sign in, unless the issuer sets a shorter time.
pub(super) const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// How long an issuer may take to answer.
pub(super) const ANSWER: Duration = Duration::from_secs(30);
/// Seconds between two polls for the sign-in, unless the issuer asks for more.
const INTERVAL: u64 = 5;
/// The shortest wait between two polls, whatever the issuer asks for.
const SHORTEST: Duration = Duration::from_millis(200);
/// The longest wait between two polls, seconds.
const LONGEST: u64 = 60;

/// The OAuth issuer, and pixir's identity there.
#[derive(Debug, Clone)]
pub struct Issuer {
    /// The issuer's URL; its metadata is below it.
    pub url: String,
    /// The client id.
    pub client_id: String,
    /// The requested scope.
    pub scope: Option<String>,
}

/// A sign-in that waits until the user has entered a code.
#[derive(Debug)]
pub(super) struct DeviceLogin {
    /// The page to open.
    pub(super) url: String,
    /// The page with the code filled in, if the issuer offers one.
    pub(super) complete_url: Option<String>,
    /// The code to enter there.
    pub(super) code: String,
    device_code: SecretString,
    interval: Duration,
    until: Instant,
    token_endpoint: String,
    client_id: String,
}

impl Issuer {
    /// Requests a code.
    ///
    /// # Errors
    /// `DEVICE_CODE_UNSUPPORTED` when the issuer does not offer the device flow, `DEVICE_AUTH_FAILED`, `NETWORK`,
    /// `CONFIG_INVALID`.
    pub(super) async fn invite(&self) -> Result<DeviceLogin> {
        let base = self.url.trim_end_matches('/');
        check_address(base, false)?;
        let endpoints = self.discover(base).await?;
        let endpoint = |name: &str| endpoints[name].as_str().map(str::to_owned);
        match (endpoint("device_authorization_endpoint"), endpoint("token_endpoint")) {
            (Some(device), Some(token_endpoint)) => self.invite_at(device, token_endpoint).await,
            _ => Err(self.unsupported()),
        }
    }

    /// Requests a code at endpoints that the issuer documents and does not describe.
    ///
    /// # Errors
    /// As [`Issuer::invite`].
    pub(super) async fn invite_at(&self, device: String, token_endpoint: String) -> Result<DeviceLogin> {
        for address in [&device, &token_endpoint] {
            check_address(address, false)?;
        }
        let mut form = vec![("client_id", self.client_id.as_str())];
        if let Some(scope) = &self.scope {
            form.push(("scope", scope));
        }
        let (status, answer) = post(&device, &form).await?;
        if matches!(status, 404 | 405 | 501) || answer["error"] == "unsupported_grant_type" {
            return Err(self.unsupported());
        }
        let field = |name: &str| answer[name].as_str().filter(|it| !it.is_empty());
        // Some issuers still use the field name of an early draft.
        let url = field("verification_uri").or_else(|| field("verification_url"));
        let (200, Some(device_code), Some(code), Some(url)) = (status, field("device_code"), field("user_code"), url)
        else {
            return Err(failed(&format!("the issuer returned no code ({status}): {}", told(&answer))));
        };
        let within = number(&answer["expires_in"]).map_or(PATIENCE, |s| Duration::from_secs(s.min(PATIENCE.as_secs())));
        Ok(DeviceLogin {
            url: quoted(url),
            complete_url: field("verification_uri_complete").map(quoted),
            code: quoted(code),
            device_code: SecretString::from(device_code),
            interval: Duration::from_secs(number(&answer["interval"]).unwrap_or(INTERVAL).min(LONGEST)).max(SHORTEST),
            until: Instant::now() + within,
            token_endpoint,
            client_id: self.client_id.clone(),
        })
    }

    /// Fetches the issuer's metadata from one of the two usual paths.
    async fn discover(&self, base: &str) -> Result<Value> {
        for place in ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"] {
            let address = format!("{base}{place}");
            let response = client_for(&address)?
                .get(&address)
                .timeout(ANSWER)
                .send()
                .await
                .map_err(|e| unreachable(&address, &e))?;
            if response.status().is_success()
                && let Ok(endpoints) = document::<Value>(response).await
            {
                return Ok(endpoints);
            }
        }
        Err(self.unsupported())
    }

    fn unsupported(&self) -> Error {
        Error::new(
            Code::DeviceCodeUnsupported,
            format!("{} does not support signing in with a code", quoted(&self.url)),
            Remedy::Login { provider: None },
        )
    }
}

impl DeviceLogin {
    /// Polls until the user has signed in.
    ///
    /// # Errors
    /// `DEVICE_AUTH_FAILED` when the sign-in was refused or took too long, `NETWORK`.
    pub(super) async fn wait(&self) -> Result<Token> {
        let mut interval = self.interval;
        loop {
            if Instant::now() + interval > self.until {
                return Err(failed("the code was not entered in time"));
            }
            tokio::time::sleep(interval).await;
            let form = [
                ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
                ("device_code", self.device_code.expose_secret()),
                ("client_id", &self.client_id),
            ];
            let (status, answer) = match post(&self.token_endpoint, &form).await {
                Ok(answered) => answered,
                // The user may be entering the code right now, so a broken connection must not end the sign-in.
                Err(e) if e.code == Code::Network => continue,
                Err(e) => return Err(e),
            };
            match (status, answer["error"].as_str()) {
                (_, Some("authorization_pending")) => {}
                (_, Some("slow_down")) => {
                    interval = (interval + Duration::from_secs(INTERVAL)).min(Duration::from_secs(LONGEST))
                }
                (200, None) => return token(&answer, &self.token_endpoint, &self.client_id, None),
                (_, Some("access_denied")) => return Err(failed("the issuer denied access")),
                (_, Some("expired_token")) => return Err(failed("the code has expired")),
                (408 | 429 | 500.., _) => {}
                _ => return Err(failed(&format!("the issuer answered {status}: {}", told(&answer)))),
            }
        }
    }
}

/// Exchanges a token for a new one.
///
/// # Errors
/// `AUTH_REQUIRED` when the issuer refuses, `NETWORK`, `TOKEN_REQUEST_FAILED`.
pub(super) async fn refresh(old: Token, provider: String) -> Result<Token> {
    let refresh = old.refresh.as_ref().expect("only a token that has one is renewed");
    let mut form = vec![
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh.expose_secret()),
        ("client_id", old.client_id.as_str()),
    ];
    if let Some(grant) = &old.grant {
        form.push(("resource", &grant.resource));
    }
    let (status, answer) = post(&old.endpoint, &form).await?;
    match status {
        200 => {
            let new = token(&answer, &old.endpoint, &old.client_id, Some(refresh))?;
            Ok(Token { grant: old.grant.clone(), ..new })
        }
        400 | 401 | 403 => Err(Error::new(
            Code::AuthRequired,
            format!(
                "the sign-in to {provider} has ended: {}",
                told(&answer).replace(refresh.expose_secret(), "[redacted]")
            ),
            Remedy::SignIn { provider: Some(provider.to_owned()) },
        )),
        _ => Err(Error::new(
            Code::ProviderUnavailable,
            format!("the token for {provider} could not be renewed ({status})"),
            "try again in a moment",
        )),
    }
}

pub fn token(answer: &Value, endpoint: &str, client_id: &str, before: Option<&SecretString>) -> Result<Token> {
    let secret = |name: &str| answer[name].as_str().filter(|it| !it.is_empty()).map(SecretString::from);
    let access = secret("access_token").ok_or_else(|| failed("the issuer returned no token"))?;
    let lasts = number(&answer["expires_in"]).and_then(|s| i64::try_from(s).ok());
    Ok(Token {
        access,
        refresh: secret("refresh_token").or_else(|| before.cloned()),
        expires: lasts.and_then(|s| Timestamp::from_second(Timestamp::now().as_second().saturating_add(s)).ok()),
        endpoint: endpoint.to_owned(),
        client_id: client_id.to_owned(),
        renewal: Renewal::Refresh,
        grant: None,
    })
}

pub(super) fn client_for(address: &str) -> Result<reqwest::Client> {
    check_address(address, false)?;
    client(address)
}

/// Reads a number of seconds, also one written as text or with a fraction.
pub(super) fn number(value: &Value) -> Option<u64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    (number >= 0.0).then_some(number as u64)
}

pub(super) async fn post(address: &str, form: &[(&str, &str)]) -> Result<(u16, Value)> {
    let request = client_for(address)?.post(address).header("accept", "application/json").form(form).timeout(ANSWER);
    let response = request.send().await.map_err(|e| unreachable(address, &e))?;
    let status = response.status().as_u16();
    // A body that is not JSON is treated as empty.
    Ok((status, document(response).await.unwrap_or_default()))
}

/// The issuer's error text, and nothing else: the rest of the answer may be secret.
pub fn told(answer: &Value) -> String {
    let places = ["/error_description", "/error/message", "/error_details/message", "/error", "/message"];
    let words = places.iter().find_map(|place| answer.pointer(place)?.as_str());
    words.map_or_else(|| "(no explanation)".to_owned(), quoted)
}

pub(super) fn failed(why: &str) -> Error {
    Error::new(
        Code::DeviceAuthFailed,
        format!("sign-in failed: {why}"),
        Remedy::any_of([Remedy::SignIn { provider: None }, Remedy::Login { provider: None }]),
    )
}
