//! The sign-in of a server that runs elsewhere, while it is used: its stored token, renewed where that is needed.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::login::ANSWER;
use super::secrets::Secrets;
use config::Environment;
use config::credentials::{ClientProof, Credential, Grant, Secret, Token, Vault, name_for_login};
use net::{check_address, client, document, unreachable};
use protocol::error::{Code, Error, Result};
use protocol::remedy::Remedy;
use provider::device_login::{token, told};

/// What the server calls the text that stands where its token was.
const NAME: &str = "sign-in";

/// The stored sign-in of one server.
pub(super) struct SignIn {
    server: String,
    url: String,
    vault: Vault,
    environment: Environment,
    /// What was used last.
    credential: Mutex<Option<Credential>>,
    /// Where the tokens are masked.
    secrets: Secrets,
}

impl SignIn {
    pub(super) fn new(server: &str, url: &str, vault: &Vault, environment: &Environment, secrets: &Secrets) -> SignIn {
        SignIn {
            server: server.to_owned(),
            url: url.to_owned(),
            vault: vault.clone(),
            environment: environment.clone(),
            credential: Mutex::default(),
            secrets: secrets.clone(),
        }
    }

    /// The token as it is stored now, renewed if it is about to expire; `None` without a sign-in.
    ///
    /// # Errors
    /// `MCP_AUTH_REQUIRED` when it cannot be renewed any more, `NETWORK`, and those of the store.
    pub(super) async fn token(&self) -> Result<Option<SecretString>> {
        let (vault, name, environment) = (self.vault.clone(), name_for_login(&self.url), self.environment.clone());
        let stored = call::off_loop(move || vault.find(&name, None, &environment)).await?;
        self.credential.lock().clone_from(&stored);
        let Some(credential) = stored else { return Ok(None) };
        self.hide(&credential);
        let token = credential.current(self.renewal()).await;
        self.hide(&credential);
        token.map(Some)
    }

    /// Whether there is another token than the one that the server refused.
    ///
    /// # Errors
    /// As [`SignIn::token`].
    pub(super) async fn renew(&self, refused: Option<&SecretString>) -> Result<bool> {
        let credential = self.credential.lock().clone();
        let (Some(credential), Some(refused)) = (credential, refused) else {
            return Ok(self.token().await?.is_some());
        };
        let is_renewed = credential.renew(Some(refused), self.renewal()).await;
        self.hide(&credential);
        is_renewed
    }

    /// The scope of the sign-in, if there is one.
    pub(super) fn scope(&self) -> Option<String> {
        match self.credential.lock().as_ref()?.secret() {
            Secret::Token(token) => token.grant?.scope,
            Secret::Key(_) | Secret::Printed(_) => None,
        }
    }

    fn hide(&self, credential: &Credential) {
        self.secrets.learn(NAME, credential.secret().reveal());
    }

    fn renewal(&self) -> impl FnOnce(Secret, String) -> BoxFuture<'static, Result<Secret>> + Send + use<> {
        let (server, vault) = (self.server.clone(), self.vault.clone());
        move |old, name| {
            let renewal = async move {
                match old {
                    Secret::Token(old) => renewed(old, &name, &server, &vault).await.map(Secret::Token),
                    other @ (Secret::Key(_) | Secret::Printed(_)) => Ok(other),
                }
            };
            renewal.boxed()
        }
    }
}

/// Exchanges a token for a new one. What the issuer does not accept any more is forgotten; no other process changes what is
/// stored meanwhile.
async fn renewed(old: Token, name: &str, server: &str, vault: &Vault) -> Result<Token> {
    let refresh = old.refresh.as_ref().expect("only a token that has one is renewed");
    let proof = old.grant.as_ref().map_or(&ClientProof::Nothing, |it| &it.client);
    let mut form = vec![
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh.expose_secret()),
        ("client_id", old.client_id.as_str()),
    ];
    if let Some(grant) = &old.grant {
        form.push(("resource", &grant.resource));
    }
    let (status, answer) = post(&old.endpoint, authenticated(&form, &old.client_id, proof)).await?;
    match (status, answer["error"].as_str()) {
        (200, _) => {
            let new = token(&answer, &old.endpoint, &old.client_id, Some(refresh)).map_err(|e| failed(&e.message))?;
            let scope = answer["scope"].as_str().map(str::to_owned);
            let grant = old.grant.map(|it| Box::new(Grant { scope: scope.or_else(|| it.scope.clone()), ..*it }));
            Ok(Token { grant, ..new })
        }
        (400 | 401 | 403, Some("invalid_grant" | "invalid_client" | "unauthorized_client")) => {
            vault.remove(name)?;
            let why = told(&answer).replace(refresh.expose_secret(), "[redacted]");
            let message = format!("the sign-in to the MCP server {server} has ended: {why}");
            Err(Error::new(Code::McpAuthRequired, message, Remedy::mcp_login(server, None)).with("server", server))
        }
        (status, _) => Err(Error::new(
            Code::ProviderUnavailable,
            format!("the sign-in to the MCP server {server} could not be renewed ({status})"),
            "try again in a moment",
        )),
    }
}

/// A form and a header that prove which client sends it (RFC 6749 §2.3.1).
pub(super) struct Authenticated {
    form: Vec<(String, SecretString)>,
    basic: Option<(String, SecretString)>,
}

/// The form with the proof of the client.
pub(super) fn authenticated(form: &[(&str, &str)], client_id: &str, proof: &ClientProof) -> Authenticated {
    let mut form: Vec<(String, SecretString)> =
        form.iter().map(|(name, value)| ((*name).to_owned(), SecretString::from(*value))).collect();
    let mut basic = None;
    match proof {
        ClientProof::Nothing => {}
        ClientProof::InForm(secret) => form.push(("client_secret".to_owned(), secret.clone())),
        ClientProof::InHeader(secret) => {
            basic = Some((encoded(client_id), SecretString::from(encoded(secret.expose_secret()))));
        }
    }
    Authenticated { form, basic }
}

/// A text as a form has it.
fn encoded(text: &str) -> String {
    let mut url = reqwest::Url::parse("https://form.invalid/").expect("a valid URL");
    url.query_pairs_mut().append_key_only(text);
    url.query().unwrap_or_default().to_owned()
}

/// Sends a form to an issuer. Its answer is empty where it is no JSON.
///
/// # Errors
/// `CONFIG_INVALID`, `NETWORK`.
pub(super) async fn post(address: &str, it: Authenticated) -> Result<(u16, Value)> {
    check_address(address, false)?;
    let form: Vec<(&str, &str)> = it.form.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect();
    let mut request = client(address)?.post(address).header("accept", "application/json").form(&form).timeout(ANSWER);
    if let Some((id, secret)) = &it.basic {
        request = request.basic_auth(id, Some(secret.expose_secret()));
    }
    let response = request.send().await.map_err(|e| unreachable(address, &e))?;
    let status = response.status().as_u16();
    Ok((status, document(response).await.unwrap_or_default()))
}

/// The error of a sign-in that did not succeed.
pub(super) fn failed(why: &str) -> Error {
    Error::new(
        Code::McpAuthRequired,
        format!("sign-in failed: {why}"),
        "try again, or give the server a key in headers_from",
    )
}
