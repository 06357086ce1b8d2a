//! Signing in with a browser: a code at a page of this machine, protected by PKCE (RFC 7636).
//!
//! OpenRouter: <https://openrouter.ai/docs/oauth>. The code buys a key that does not expire.
//!
//! ChatGPT plan: <https://developers.openai.com/siwc/token-sharing-open-source/sign-in>. pixir registers itself with the first
//! sign-in (`dynamic_agent_client`); the answer names the client id that every later request has.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use ring::rand::{SecureRandom as _, SystemRandom};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::device_login::{ANSWER, PATIENCE, failed, post, token, told};
use super::landing::{Code as LandedCode, Expected, Landing};
use config::credentials::{ClientProof, Grant, Secret, Token};
use net::{check_address, client, document, unreachable};
use protocol::error::{Code, Error, Result};
use protocol::remedy::Remedy;

/// The client id of a first sign-in with ChatGPT, which asks for one.
const UNREGISTERED: &str = "dynamic_agent_client";
/// Without this scope the plan of the account pays for nothing.
const PLAN_SCOPE: &str = "chatgpt.tokens.use.direct";
/// The port that OpenRouter documents for programs of this machine.
const OPENROUTER_PORT: u16 = 3000;

/// A sign-in that waits for the browser.
#[derive(Debug)]
pub(super) struct BrowserLogin {
    landing: Landing,
    expected: Expected,
    verifier: SecretString,
    exchange: Exchange,
}

/// What the code is exchanged for.
#[derive(Debug)]
enum Exchange {
    /// A key.
    Key { endpoint: String },
    /// A token of a plan.
    Plan { endpoint: String, issuer: String, registered: Option<String>, nonce: String, resource: String },
}

/// How pixir is known to the issuer of ChatGPT plans.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) issuer: String,
    /// The client id of an earlier sign-in, or the user's own.
    pub(super) client_id: Option<String>,
    pub(super) scope: String,
    /// What the token is for: the base URL of requests.
    pub(super) resource: String,
    /// This installation, the same at every sign-in.
    pub(super) host: String,
}

/// Begins a sign-in with OpenRouter. Returns it, and the page to open.
///
/// # Errors
/// `CONFIG_INVALID`, `DEVICE_AUTH_FAILED`.
pub(super) async fn openrouter(issuer: &str) -> Result<(BrowserLogin, String)> {
    let base = issuer.trim_end_matches('/');
    let mut page = check_address(&format!("{base}/auth"), false)?;
    // OpenRouter sends no state back, so the path is what only this sign-in has.
    let path = format!("/callback/{}", random()?);
    let landing = Landing::open(Some(OPENROUTER_PORT), &path).await;
    let landing = match landing {
        Ok(landing) => landing,
        Err(_) => Landing::open(None, &path).await.map_err(|e| no_port(&e))?,
    };
    let verifier = random()?;
    page.query_pairs_mut()
        .append_pair("callback_url", &landing.address)
        .append_pair("code_challenge", &challenge(&verifier))
        .append_pair("code_challenge_method", "S256");
    let login = BrowserLogin {
        landing,
        expected: Expected::any(),
        verifier: verifier.into(),
        exchange: Exchange::Key { endpoint: format!("{base}/api/v1/auth/keys") },
    };
    Ok((login, page.into()))
}

/// Begins a sign-in with a ChatGPT plan. Returns it, and the page to open.
///
/// # Errors
/// `CONFIG_INVALID`, `DEVICE_AUTH_FAILED`.
pub(super) async fn chatgpt(plan: Plan) -> Result<(BrowserLogin, String)> {
    let base = plan.issuer.trim_end_matches('/').to_owned();
    let mut page = check_address(&format!("{base}/api/accounts/authorize"), false)?;
    let landing = Landing::open(None, "/auth/callback").await.map_err(|e| no_port(&e))?;
    let (verifier, state, nonce) = (random()?, random()?, random()?);
    page.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", plan.client_id.as_deref().unwrap_or(UNREGISTERED))
        .append_pair("ext_agent_host_id", &plan.host)
        .append_pair("redirect_uri", &landing.address)
        .append_pair("scope", &plan.scope)
        .append_pair("resource", &plan.resource)
        .append_pair("state", &state)
        .append_pair("nonce", &nonce)
        .append_pair("code_challenge", &challenge(&verifier))
        .append_pair("code_challenge_method", "S256");
    if plan.client_id.is_none() {
        page.query_pairs_mut().append_pair("agent_name_hint", "pixir");
    }
    let exchange = Exchange::Plan {
        endpoint: format!("{base}/api/accounts/oauth/token"),
        issuer: base,
        registered: plan.client_id,
        nonce,
        resource: plan.resource,
    };
    let login = BrowserLogin { landing, expected: Expected::state(state), verifier: verifier.into(), exchange };
    Ok((login, page.into()))
}

impl BrowserLogin {
    /// Waits for the browser, and exchanges its code. The user may also give the address to which the browser was sent, where
    /// that browser runs on another machine, or the code that the page shows.
    ///
    /// # Errors
    /// `DEVICE_AUTH_FAILED` when the sign-in was refused or took too long, `NO_ACCOUNT_ID`, `ACCESS_DENIED`, `NETWORK`.
    pub(super) async fn wait(&self, given: impl Future<Output = String>) -> Result<Secret> {
        let read = async {
            let given = given.await;
            match Url::parse(given.trim()) {
                Ok(address) => self.expected.read(&address).unwrap_or_else(|| Err(OTHER.to_owned())),
                Err(_) if matches!(self.exchange, Exchange::Key { .. }) => Ok(LandedCode::bare(given.trim())),
                Err(_) => Err(OTHER.to_owned()),
            }
        };
        let landed = tokio::select! {
            landed = self.landing.wait(&self.expected) => landed,
            landed = read => landed,
            () = tokio::time::sleep(PATIENCE) => Err(format!("it took longer than {} minutes", PATIENCE.as_secs() / 60)),
        };
        let landed = landed.map_err(|why| failed(&why))?;
        match &self.exchange {
            Exchange::Key { endpoint } => self.buy_key(endpoint, &landed).await,
            Exchange::Plan { endpoint, issuer, registered, nonce, resource } => {
                let client_id = issued(registered.as_deref(), landed.client_id.as_deref())?;
                let form = [
                    ("grant_type", "authorization_code"),
                    ("client_id", client_id.as_str()),
                    ("code", landed.code.expose_secret()),
                    ("code_verifier", self.verifier.expose_secret()),
                    ("redirect_uri", &self.landing.address),
                    ("resource", resource),
                ];
                let (status, answer) = post(endpoint, &form).await?;
                if status != 200 {
                    return Err(failed(&format!("the issuer answered {status}: {}", self.told(&answer, &landed))));
                }
                check_identity(&answer, nonce, &client_id)?;
                let scope = answer["scope"].as_str().unwrap_or_default();
                if !scope.split_whitespace().any(|it| it == PLAN_SCOPE) {
                    let why = "the account did not permit the use of its ChatGPT plan";
                    return Err(Error::new(Code::AccessDenied, why, sign_in_again()));
                }
                let token = token(&answer, endpoint, &client_id, None)?;
                let grant = Grant {
                    issuer: issuer.clone(),
                    resource: resource.clone(),
                    scope: Some(scope.to_owned()),
                    client: ClientProof::Nothing,
                    revocation: None,
                };
                Ok(Secret::Token(Token { grant: Some(Box::new(grant)), ..token }))
            }
        }
    }

    async fn buy_key(&self, endpoint: &str, landed: &LandedCode) -> Result<Secret> {
        let body = json!({
            "code": landed.code.expose_secret(), "code_verifier": self.verifier.expose_secret(),
            "code_challenge_method": "S256",
        });
        check_address(endpoint, false)?;
        let request = client(endpoint)?.post(endpoint).json(&body).timeout(ANSWER);
        let response = request.send().await.map_err(|e| unreachable(endpoint, &e))?;
        let status = response.status().as_u16();
        let answer: Value = document(response).await.unwrap_or_default();
        match answer["key"].as_str() {
            Some(key) if status == 200 => {
                super::connect::key(key).map_err(|_| failed("the issuer returned no key that can be used"))
            }
            _ => Err(failed(&format!("the issuer returned no key ({status}): {}", self.told(&answer, landed)))),
        }
    }

    /// The issuer's words, without the code and its proof.
    fn told(&self, answer: &Value, landed: &LandedCode) -> String {
        let secrets = [landed.code.expose_secret(), self.verifier.expose_secret()];
        secrets.into_iter().filter(|it| !it.is_empty()).fold(told(answer), |text, it| text.replace(it, "[redacted]"))
    }
}

const OTHER: &str = "the given text is not the address to which the browser was sent";

/// The client id for the exchange: the one that the answer issues, which must be the registered one if there is any.
fn issued(registered: Option<&str>, answered: Option<&str>) -> Result<String> {
    match (registered, answered.filter(|it| !it.is_empty() && *it != UNREGISTERED)) {
        (Some(registered), None) => Ok(registered.to_owned()),
        (Some(registered), Some(answered)) if registered != answered => {
            Err(failed("the answer is for another registration: sign out first to use another account"))
        }
        (_, Some(answered)) => Ok(answered.to_owned()),
        (None, None) => {
            let why = "sign-in failed: the answer names no account registration (client_id)";
            Err(Error::new(Code::NoAccountId, why, sign_in_again()))
        }
    }
}

/// Checks what the identity token says. The issuer itself sent it over TLS, so its signature need not be checked (OpenID
/// Connect Core 1.0, §3.1.3.7).
fn check_identity(answer: &Value, nonce: &str, client_id: &str) -> Result<()> {
    let claims = answer["id_token"].as_str().and_then(claims);
    let Some(claims) = claims else {
        return Err(Error::new(Code::NoAccountId, "sign-in failed: the answer identifies no account", sign_in_again()));
    };
    let is_for = |audience: &Value| match audience {
        Value::Array(all) => all.iter().any(|it| it == client_id),
        one => one == client_id,
    };
    if claims["nonce"] != nonce || !is_for(&claims["aud"]) {
        return Err(failed("the identity in the answer belongs to another sign-in"));
    }
    match claims["sub"].as_str() {
        Some(subject) if !subject.is_empty() => Ok(()),
        _ => Err(Error::new(Code::NoAccountId, "sign-in failed: the answer identifies no account", sign_in_again())),
    }
}

/// The claims of a signed token (RFC 7519).
fn claims(token: &str) -> Option<Value> {
    let payload = token.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

fn sign_in_again() -> Remedy {
    Remedy::SignIn { provider: Some("chatgpt".to_owned()) }
}

fn no_port(e: &std::io::Error) -> Error {
    failed(&format!("pixir cannot listen for the end of the sign-in on this machine: {e}"))
}

fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes()))
}

/// 32 random bytes, as 43 letters.
pub(super) fn random() -> Result<String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| failed("this machine gives no random numbers"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// A new name of an installation (RFC 9562, version 4).
pub(super) fn random_host() -> Result<String> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| failed("this machine gives no random numbers"))?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("urn:uuid:{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: the placeholder counts as a registration; another account replaces the registered one silently.
    #[test]
    fn a_registration_is_issued_once_and_kept() {
        let issued = |registered, answered| issued(registered, answered).map_err(|e| e.code);
        assert_eq!(issued(None, Some("oaiapp_1")), Ok("oaiapp_1".to_owned()));
        assert_eq!(issued(Some("oaiapp_1"), None), Ok("oaiapp_1".to_owned()));
        assert_eq!(issued(Some("oaiapp_1"), Some("oaiapp_1")), Ok("oaiapp_1".to_owned()));
        for nothing in [None, Some(""), Some(UNREGISTERED)] {
            assert_eq!(issued(None, nothing), Err(Code::NoAccountId));
        }
        assert_eq!(issued(Some("oaiapp_1"), Some("oaiapp_2")), Err(Code::DeviceAuthFailed));
    }

    #[test]
    fn the_name_of_an_installation_is_a_random_uuid() {
        let one = random_host().expect("random");
        assert!(one.len() == 45 && one.starts_with("urn:uuid:") && one.as_bytes()[23] == b'4', "{one}");
        assert_ne!(one, random_host().expect("random"));
    }
}
