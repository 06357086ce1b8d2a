//! How Providers sign their users in: with a code on another device, or with a browser.

use super::browser_login::{self, BrowserLogin, Plan};
use super::copilot;
use super::device_login::{DeviceLogin, Issuer};
use super::preset::{Flow, Preset};
use config::ProviderConfig;
use config::credentials::Secret;
use protocol::error::{Code, Error, Result};

/// What a token of a ChatGPT plan is for.
const CHATGPT_RESOURCE: &str = "https://api.openai.com/v1";

/// How one Provider signs its users in: its preset, with what the user has configured.
#[derive(Debug, Clone)]
pub struct SignIn {
    provider: String,
    /// The way.
    pub flow: Flow,
    /// The issuer's URL.
    pub issuer: Option<String>,
    /// The client id, where pixir is registered there.
    pub client_id: Option<String>,
    /// The requested scope.
    pub scope: Option<String>,
}

/// What the user needs to sign in.
#[derive(Debug)]
pub struct Invitation {
    /// The page to open.
    pub url: String,
    /// The page with the code filled in, if the issuer offers one.
    pub complete_url: Option<String>,
    /// The code to enter there; `None` where the browser comes back by itself.
    pub code: Option<String>,
    waiting: Waiting,
}

#[derive(Debug)]
enum Waiting {
    Device(DeviceLogin),
    Copilot { login: DeviceLogin, exchange: String, client_id: String, provider: String },
    Browser(BrowserLogin),
}

impl SignIn {
    /// The sign-in of a preset, of the user's configuration, or of both.
    pub(super) fn of(provider: &str, preset: Option<&Preset>, configured: Option<&ProviderConfig>) -> SignIn {
        let usual = preset.and_then(|it| it.sign_in.as_ref());
        let own = |field: fn(&ProviderConfig) -> &Option<String>| configured.and_then(|it| field(it).clone());
        SignIn {
            provider: provider.to_owned(),
            flow: usual.map_or(Flow::Device, |it| it.flow),
            issuer: own(|it| &it.issuer).or_else(|| usual.map(|it| it.issuer.to_owned())),
            client_id: own(|it| &it.client_id),
            scope: own(|it| &it.scope).or_else(|| usual?.scope.map(str::to_owned)),
        }
    }

    /// Whether everything is known that the sign-in needs.
    pub fn is_ready(&self) -> bool {
        self.issuer.is_some() && (self.client_id.is_some() || !self.flow.needs_client_id())
    }

    /// Asks the issuer for a code, or opens the page to which the browser comes back. `registered` is the client id of an
    /// earlier sign-in, `host` the name of this installation.
    ///
    /// # Errors
    /// `DEVICE_CODE_UNSUPPORTED` when the issuer or the client id is missing, or when the issuer does not offer the device flow;
    /// `DEVICE_AUTH_FAILED`, `NETWORK`, `CONFIG_INVALID`.
    pub(super) async fn invite(
        &self,
        registered: Option<String>,
        host: impl FnOnce() -> Result<String>,
    ) -> Result<Invitation> {
        let Some(url) = self.issuer.clone().filter(|_| self.is_ready()) else { return Err(self.not_ready()) };
        let client_id = self.client_id.clone().unwrap_or_default();
        let issuer = Issuer { url, client_id, scope: self.scope.clone() };
        match self.flow {
            Flow::Device => issuer.invite().await.map(|login| Invitation::to_enter(login, Waiting::Device)),
            Flow::Copilot => {
                let base = issuer.url.trim_end_matches('/').to_owned();
                let exchange = copilot::exchange_endpoint(&base)?;
                let (device, token) = (format!("{base}/login/device/code"), format!("{base}/login/oauth/access_token"));
                let login = issuer.invite_at(device, token).await?;
                let (client_id, provider) = (issuer.client_id, self.provider.clone());
                Ok(Invitation::to_enter(login, |login| Waiting::Copilot { login, exchange, client_id, provider }))
            }
            Flow::OpenRouter => browser_login::openrouter(&issuer.url).await.map(Invitation::to_open),
            Flow::ChatGpt => {
                let plan = Plan {
                    client_id: self.client_id.clone().or(registered),
                    scope: issuer.scope.unwrap_or_default(),
                    issuer: issuer.url,
                    resource: CHATGPT_RESOURCE.to_owned(),
                    host: host()?,
                };
                browser_login::chatgpt(plan).await.map(Invitation::to_open)
            }
        }
    }

    fn not_ready(&self) -> Error {
        let provider = &self.provider;
        let (message, what) = match &self.issuer {
            None => (format!("no sign-in server is configured for {provider}"), "`issuer` and `client_id`"),
            Some(_) => (
                format!("pixir has no client id of its own to sign in to {provider} with"),
                "`client_id` of an app of yours",
            ),
        };
        let fix = format!("set {what} in [providers.{provider}] of config.toml, or use a key");
        Error::new(Code::DeviceCodeUnsupported, message, fix).with("input", provider.as_str())
    }
}

impl Invitation {
    fn to_enter(login: DeviceLogin, waiting: impl FnOnce(DeviceLogin) -> Waiting) -> Invitation {
        let (url, complete_url, code) = (login.url.clone(), login.complete_url.clone(), login.code.clone());
        Invitation { url, complete_url, code: Some(code), waiting: waiting(login) }
    }

    fn to_open((login, url): (BrowserLogin, String)) -> Invitation {
        Invitation { url, complete_url: None, code: None, waiting: Waiting::Browser(login) }
    }

    /// Waits until the user has signed in. `given` is what the user types instead, where their browser cannot reach this
    /// machine: the address at which the browser ended, or the code that the page shows.
    ///
    /// # Errors
    /// `DEVICE_AUTH_FAILED` when the sign-in was refused or took too long, `NO_ACCOUNT_ID` when the answer names no account,
    /// `ACCESS_DENIED` when the account has no plan for it, `NETWORK`.
    pub async fn wait(self, given: impl Future<Output = String>) -> Result<Secret> {
        match self.waiting {
            Waiting::Device(login) => login.wait().await.map(Secret::Token),
            Waiting::Copilot { login, exchange, client_id, provider } => {
                let github = login.wait().await?.access;
                copilot::exchange(&github, &exchange, &client_id, &provider).await.map(Secret::Token)
            }
            Waiting::Browser(login) => login.wait(given).await,
        }
    }
}
