//! Signing in to a server that runs elsewhere: who issues its tokens (RFC 9728, RFC 8414), and a token by a code with PKCE
//! (OAuth 2.1, RFC 7636, RFC 8707).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use ring::rand::{SecureRandom as _, SystemRandom};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::challenge::Challenge;
use super::http::Endpoint;
use super::sign_in::{authenticated, failed, post};
use config::OAuth;
use config::address::is_loopback;
use config::credentials::{ClientProof, Grant, Secret, Source, Token, Vault, name_for_login};
use net::{document, quoted, unreachable};
use protocol::error::{Code, Error, Result};
use provider::device_login::{token, told};
use provider::landing::{Expected, Landed, Landing};

/// How long the user may take to sign in.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// How long a server may take to answer.
pub(super) const ANSWER: Duration = Duration::from_secs(30);
/// The method of PKCE that pixir uses, and that an issuer must know.
const S256: &str = "S256";

/// Who signs the user in to a server. Nothing was asked of the user yet.
#[derive(Debug)]
pub struct LoginOffer {
    /// The issuer's URL.
    pub issuer: String,
    /// The scope that the server wants.
    pub scope: Option<String>,
    server: String,
    url: String,
    resource: String,
    metadata: Value,
    guard: Guard,
    oauth: OAuth,
    client_secret: Option<SecretString>,
    vault: Vault,
}

/// A sign-in that waits for the user.
pub struct ServerLogin {
    /// The page on which the user signs in.
    pub page: String,
    offer: LoginOffer,
    landing: Landing,
    expected: Expected,
    verifier: SecretString,
    client_id: String,
    proof: ClientProof,
}

/// Which addresses may be asked on behalf of a server.
#[derive(Debug, Clone, Copy)]
struct Guard {
    /// The server is on this machine, so its issuer may be there too.
    is_local: bool,
    /// A project names the server, so nothing of the user's own network is asked.
    is_of_project: bool,
}

impl Guard {
    /// An address that another server has named.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, `MCP_AUTH_REQUIRED`.
    async fn check(self, address: &str) -> Result<Url> {
        let url = net::check_address(address, false)?;
        let host = url.host_str().unwrap_or_default();
        if is_loopback(host) && !self.is_local {
            return Err(failed(&format!("{} is a page of this machine, and the server is not", quoted(address))));
        }
        if self.is_of_project {
            super::http::public_addresses(&url).await.map_err(|why| failed(&why))?;
        }
        Ok(url)
    }

    /// A document, or `None` where the address has none.
    async fn document(self, address: &str) -> Result<Option<Value>> {
        self.check(address).await?;
        let request = net::client(address)?.get(address).header("accept", "application/json").timeout(ANSWER);
        let response = request.send().await.map_err(|e| unreachable(address, &e))?;
        if !response.status().is_success() {
            return Ok(None);
        }
        Ok(document::<Value>(response).await.ok().filter(Value::is_object))
    }
}

/// What a server's metadata say, or what stands for them.
struct Resource {
    resource: String,
    issuer: String,
    scope: Option<String>,
    /// The server has such metadata: it is of the revision 2025-06-18 or newer.
    is_described: bool,
}

impl LoginOffer {
    /// Finds out who signs in to a server. A scope of the user's replaces the one that the server names.
    ///
    /// # Errors
    /// `MCP_AUTH_REQUIRED` where that cannot be found out, `NETWORK`, `CONFIG_INVALID`.
    pub(super) async fn find(
        server: &str,
        endpoint: &Endpoint,
        scope: Option<String>,
        client_secret: Option<SecretString>,
        vault: Vault,
    ) -> Result<LoginOffer> {
        let url = net::check_address(&endpoint.url, true)?;
        let is_local = url.host_str().is_some_and(is_loopback);
        let guard = Guard { is_local, is_of_project: endpoint.is_of_project };
        let asked = endpoint.probe().await?;
        let challenge = asked.as_ref().map(Challenge::of).unwrap_or_default();
        let Resource { resource, issuer, scope: usual, is_described } = describe(guard, &url, &challenge).await?;
        if asked.is_none() && !is_described {
            return Err(failed("the server lets everyone in"));
        }
        let issuer_url = guard.check(&issuer).await?;
        let mut metadata = None;
        for place in places(&issuer_url) {
            metadata = guard.document(&place).await?;
            if metadata.is_some() {
                break;
            }
        }
        let metadata = match metadata {
            Some(it) => it,
            // The revision 2025-03-26 has these where there are no metadata.
            None if !is_described => {
                let at = |path: &str| format!("{}{path}", issuer_url.origin().ascii_serialization());
                json!({
                    "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
                    "registration_endpoint": at("/register"), "code_challenge_methods_supported": [S256],
                })
            }
            None => return Err(failed(&format!("{} does not say how to sign in", quoted(&issuer)))),
        };
        let named = metadata["issuer"].as_str().unwrap_or(&issuer);
        // Without metadata of its own the server is the one that names the issuer.
        if is_described && named.trim_end_matches('/') != issuer.trim_end_matches('/') {
            return Err(failed(&format!("{} says that it is {}", quoted(&issuer), quoted(named))));
        }
        if !holds(&metadata["code_challenge_methods_supported"], S256) {
            return Err(failed(&format!("{} does not protect the code ({S256} of PKCE)", quoted(&issuer))));
        }
        let configured = Some(endpoint.oauth.scopes.join(" ")).filter(|it| !it.is_empty());
        let scope = scope.or(configured).or(challenge.scope).or(usual);
        Ok(LoginOffer {
            issuer: named.to_owned(),
            scope: lasting(scope, &metadata),
            server: server.to_owned(),
            url: endpoint.url.clone(),
            resource,
            metadata,
            guard,
            oauth: endpoint.oauth.clone(),
            client_secret,
            vault,
        })
    }

    /// Registers pixir with the issuer where that is needed, and prepares the page for the user.
    ///
    /// # Errors
    /// `MCP_AUTH_REQUIRED` where pixir cannot register itself, `NETWORK`, `CONFIG_INVALID`.
    pub async fn begin(self) -> Result<ServerLogin> {
        let landing = Landing::open(self.oauth.port, "/callback").await.map_err(|e| {
            let port = self.oauth.port.unwrap_or_default();
            failed(&format!("pixir cannot listen for the end of the sign-in at port {port} of this machine: {e}"))
        })?;
        let mut page = self.guard.check(self.place("authorization_endpoint")?).await?;
        self.guard.check(self.place("token_endpoint")?).await?;
        let (client_id, proof) = self.client(&landing.address).await?;
        let (verifier, state) = (random()?, random()?);
        let hash = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
        page.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &client_id)
            .append_pair("redirect_uri", &landing.address)
            .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(hash))
            .append_pair("code_challenge_method", S256)
            .append_pair("state", &state)
            .append_pair("resource", &self.resource);
        if let Some(scope) = &self.scope {
            page.query_pairs_mut().append_pair("scope", scope);
        }
        let names_itself = self.metadata["authorization_response_iss_parameter_supported"] == true;
        let expected = Expected::of_issuer(state, self.issuer.clone(), names_itself);
        let verifier = SecretString::from(verifier);
        Ok(ServerLogin { page: page.to_string(), offer: self, landing, expected, verifier, client_id, proof })
    }

    fn place(&self, name: &str) -> Result<&str> {
        self.metadata[name].as_str().ok_or_else(|| failed(&format!("{} names no `{name}`", quoted(&self.issuer))))
    }

    /// Who pixir is at this issuer: as the user has configured it, else newly registered (RFC 7591).
    async fn client(&self, landing: &str) -> Result<(String, ClientProof)> {
        let methods = &self.metadata["token_endpoint_auth_methods_supported"];
        let knows = |method: &str| match methods {
            Value::Array(_) => holds(methods, method),
            _ => method == "client_secret_basic",
        };
        let proof = |secret: Option<SecretString>, in_form: bool| match secret {
            None => ClientProof::Nothing,
            Some(secret) if in_form => ClientProof::InForm(secret),
            Some(secret) => ClientProof::InHeader(secret),
        };
        if let Some(id) = &self.oauth.client_id {
            return Ok((id.clone(), proof(self.client_secret.clone(), !knows("client_secret_basic"))));
        }
        let Some(register) = self.metadata["registration_endpoint"].as_str() else {
            let why = format!("{} does not register programs by itself", quoted(&self.issuer));
            let fix = format!("register pixir there, and set mcp.{}.oauth to {{ client_id = \"…\" }}", self.server);
            return Err(Error::new(Code::McpAuthRequired, format!("sign-in failed: {why}"), fix));
        };
        self.guard.check(register).await?;
        let wanted = ["none", "client_secret_basic", "client_secret_post"].into_iter().find(|it| knows(it));
        let wanted = wanted.unwrap_or("client_secret_basic");
        let mut asked = json!({
            "client_name": "pixir", "application_type": "native", "redirect_uris": [landing],
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "token_endpoint_auth_method": wanted,
        });
        if let Some(scope) = &self.scope {
            asked["scope"] = scope.as_str().into();
        }
        let request = net::client(register)?.post(register).json(&asked).timeout(ANSWER);
        let response = request.send().await.map_err(|e| unreachable(register, &e))?;
        let status = response.status().as_u16();
        let answer: Value = document(response).await.unwrap_or_default();
        let Some(id) = answer["client_id"].as_str().filter(|_| matches!(status, 200 | 201)) else {
            return Err(failed(&format!("the issuer does not register pixir ({status}): {}", told(&answer))));
        };
        let secret = answer["client_secret"].as_str().filter(|it| !it.is_empty()).map(SecretString::from);
        let method = answer["token_endpoint_auth_method"].as_str().unwrap_or(wanted);
        let secret = secret.filter(|_| method != "none");
        Ok((id.to_owned(), proof(secret, method == "client_secret_post")))
    }
}

impl ServerLogin {
    /// Waits until the user has signed in, and stores the token. The user may also give the address to which the browser was
    /// sent, where that browser runs on another machine.
    ///
    /// # Errors
    /// `MCP_AUTH_REQUIRED` when the sign-in was refused or took too long, `NETWORK`, `AUTH_WRITE_FAILED`.
    pub async fn wait(&self, given: impl Future<Output = String>) -> Result<Source> {
        let read = async {
            match Url::parse(given.await.trim()).ok().and_then(|it| self.expected.read(&it)) {
                Some(landed) => landed,
                None => Err("this is not the address to which the browser was sent".to_owned()),
            }
        };
        let landed: Landed = tokio::select! {
            landed = self.landing.wait(&self.expected) => landed,
            landed = read => landed,
            () = tokio::time::sleep(PATIENCE) => Err("it took longer than 15 minutes".to_owned()),
        };
        let code = landed.map_err(|why| failed(&why))?.code;
        let offer = &self.offer;
        let endpoint = offer.place("token_endpoint")?;
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code.expose_secret()),
            ("redirect_uri", &self.landing.address),
            ("client_id", &self.client_id),
            ("code_verifier", self.verifier.expose_secret()),
            ("resource", &offer.resource),
        ];
        let (status, answer) = post(endpoint, authenticated(&form, &self.client_id, &self.proof)).await?;
        if status != 200 {
            return Err(failed(&format!("the issuer answered {status}: {}", told(&answer))));
        }
        let token = token(&answer, endpoint, &self.client_id, None).map_err(|e| failed(&e.message))?;
        // The issuer may give less than was asked for.
        let scope = answer["scope"].as_str().map(str::to_owned).or_else(|| offer.scope.clone());
        let (issuer, resource) = (offer.issuer.clone(), offer.resource.clone());
        let revocation = match offer.metadata["revocation_endpoint"].as_str() {
            Some(it) => offer.guard.check(it).await.ok().map(|url| url.to_string()),
            None => None,
        };
        let grant = Grant { issuer, resource, scope, client: self.proof.clone(), revocation };
        let secret = Secret::Token(Token { grant: Some(Box::new(grant)), ..token });
        // A renewal that is under way must not replace what comes after it.
        let _alone = offer.vault.lock_renewal().await?;
        offer.vault.save(&name_for_login(&offer.url), &secret)
    }
}

/// What the server is called at its issuer, and who that is.
async fn describe(guard: Guard, url: &Url, challenge: &Challenge) -> Result<Resource> {
    let origin = url.origin().ascii_serialization();
    let path = url.path().trim_end_matches('/');
    let known = "/.well-known/oauth-protected-resource";
    let mut places: Vec<String> = challenge.metadata.iter().cloned().collect();
    places.push(format!("{origin}{known}{path}"));
    places.push(format!("{origin}{known}"));
    places.dedup();
    for place in places {
        let Some(it) = guard.document(&place).await? else { continue };
        let resource = it["resource"].as_str().unwrap_or(url.as_str());
        if !covers(resource, url) {
            return Err(failed(&format!("{} is about another server: {}", quoted(&place), quoted(resource))));
        }
        let Some(issuer) = it["authorization_servers"][0].as_str() else {
            return Err(failed(&format!("{} names no issuer", quoted(&place))));
        };
        let scopes: Vec<&str> =
            it["scopes_supported"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        return Ok(Resource {
            resource: resource.to_owned(),
            issuer: issuer.to_owned(),
            scope: Some(scopes.join(" ")).filter(|it| !it.is_empty()),
            is_described: true,
        });
    }
    Ok(Resource { resource: url.to_string(), issuer: origin, scope: None, is_described: false })
}

/// Whether a resource is this server, or a part of the same origin in which it lies.
fn covers(resource: &str, url: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let folder = format!("{}/", resource.path().trim_end_matches('/'));
    resource.origin() == url.origin() && format!("{}/", url.path().trim_end_matches('/')).starts_with(&folder)
}

/// Where an issuer may have its metadata.
fn places(issuer: &Url) -> Vec<String> {
    let origin = issuer.origin().ascii_serialization();
    let path = issuer.path().trim_end_matches('/');
    let known = ["oauth-authorization-server", "openid-configuration"];
    let mut all: Vec<String> = known.iter().map(|it| format!("{origin}/.well-known/{it}{path}")).collect();
    if !path.is_empty() {
        all.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    all
}

/// The scope, with the one that makes a sign-in last where the issuer has it.
fn lasting(scope: Option<String>, metadata: &Value) -> Option<String> {
    let lasting = "offline_access";
    let has = scope.as_ref().is_some_and(|it| it.split(' ').any(|it| it == lasting));
    if has || !holds(&metadata["scopes_supported"], lasting) {
        return scope;
    }
    Some(scope.map_or_else(|| lasting.to_owned(), |it| format!("{it} {lasting}")))
}

fn holds(list: &Value, wanted: &str) -> bool {
    list.as_array().is_some_and(|it| it.iter().any(|it| it == wanted))
}

/// 32 random bytes, as 43 letters.
fn random() -> Result<String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| failed("this machine gives no random numbers"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: metadata of another server, or of a path beside it, are believed.
    #[test]
    fn metadata_are_about_the_server_that_was_asked() {
        let covers = |resource: &str| covers(resource, &Url::parse("https://a.example/mcp/one").expect("a URL"));
        for its in
            ["https://a.example/mcp/one", "https://a.example/mcp/one/", "https://a.example/mcp", "https://a.example"]
        {
            assert!(covers(its), "{its}");
        }
        for other in [
            "https://b.example/mcp/one",
            "http://a.example/mcp/one",
            "https://a.example/mc",
            "https://a.example/mcp/one/two",
            "x",
        ] {
            assert!(!covers(other), "{other}");
        }
    }

    #[test]
    fn an_issuer_with_a_path_has_its_metadata_at_three_places() {
        let of = |url: &str| places(&Url::parse(url).expect("a URL"));
        assert_eq!(
            of("https://a.example/t/"),
            [
                "https://a.example/.well-known/oauth-authorization-server/t",
                "https://a.example/.well-known/openid-configuration/t",
                "https://a.example/t/.well-known/openid-configuration",
            ]
        );
        assert_eq!(of("https://a.example").len(), 2);
    }
}
