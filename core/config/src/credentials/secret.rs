//! What a credential holds, and the form in which it is stored.

use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

/// A secret of a Provider.
#[derive(Debug, Clone)]
pub enum Secret {
    /// A key that does not expire.
    Key(SecretString),
    /// A token that expires, and the data to renew it.
    Token(Token),
    /// A key that a command prints. It is never stored.
    Printed(PrintedKey),
}

/// A key that a command of the user prints.
#[derive(Debug, Clone)]
pub struct PrintedKey {
    /// What the shell runs. It may hold a secret itself.
    pub command: SecretString,
    /// How long a printed key is used before the command runs again, seconds.
    pub lasts: u32,
    /// The key that was printed last; empty before the first run.
    pub key: SecretString,
    /// When the command runs again.
    pub until: Timestamp,
}

impl PrintedKey {
    /// A key that was not printed yet.
    pub fn new(command: &str, lasts: u32) -> PrintedKey {
        let (command, key) = (SecretString::from(command), SecretString::from(""));
        PrintedKey { command, lasts, key, until: Timestamp::UNIX_EPOCH }
    }

    /// The same with the key that was printed now.
    pub fn printed(self, key: SecretString) -> PrintedKey {
        let until = Timestamp::now().as_second().saturating_add(i64::from(self.lasts));
        PrintedKey { key, until: Timestamp::from_second(until).unwrap_or(Timestamp::MAX), ..self }
    }
}

/// A token that expires.
#[derive(Debug, Clone)]
pub struct Token {
    /// The token that requests carry.
    pub access: SecretString,
    /// The token that renews it.
    pub refresh: Option<SecretString>,
    /// When it expires.
    pub expires: Option<Timestamp>,
    /// The endpoint that renews it.
    pub endpoint: String,
    /// The OAuth client id.
    pub client_id: String,
    /// How `refresh` becomes a new token.
    pub renewal: Renewal,
    /// What the issuer wants besides to renew the token: it is for one resource alone.
    pub grant: Option<Box<Grant>>,
}

/// How a token is renewed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Renewal {
    /// `refresh` is a refresh token (RFC 6749 §6).
    #[default]
    Refresh,
    /// `refresh` is a token of GitHub, which is exchanged for a token of Copilot.
    Copilot,
}

/// What a token is good for, and how pixir proves to its issuer that it is the client which got it.
#[derive(Debug, Clone)]
pub struct Grant {
    /// The issuer.
    pub issuer: String,
    /// The server, as the issuer knows it.
    pub resource: String,
    /// The scope that was asked for.
    pub scope: Option<String>,
    /// The client's own secret, where it has one.
    pub client: ClientProof,
    /// Where the issuer ends tokens, if it does so on request.
    pub revocation: Option<String>,
}

/// How an OAuth client proves to the issuer which one it is.
#[derive(Debug, Clone)]
pub enum ClientProof {
    /// It has no secret.
    Nothing,
    /// Its secret is in the form.
    InForm(SecretString),
    /// Its secret is in the header.
    InHeader(SecretString),
}

impl Grant {
    fn to_json(&self) -> Value {
        let client = match &self.client {
            ClientProof::Nothing => Value::Null,
            ClientProof::InForm(secret) => json!({ "in": "form", "secret": secret.expose_secret() }),
            ClientProof::InHeader(secret) => json!({ "in": "header", "secret": secret.expose_secret() }),
        };
        json!({
            "issuer": self.issuer, "resource": self.resource, "scope": self.scope, "client": client,
            "revocation": self.revocation,
        })
    }

    fn from_json(value: &Value) -> Option<Grant> {
        let text = |it: &Value| it.as_str().map(str::to_owned);
        let secret = value["client"]["secret"].as_str().map(SecretString::from);
        Some(Grant {
            issuer: text(&value["issuer"])?,
            resource: text(&value["resource"])?,
            scope: text(&value["scope"]),
            revocation: text(&value["revocation"]),
            client: match (value["client"]["in"].as_str(), secret) {
                (Some("header"), Some(secret)) => ClientProof::InHeader(secret),
                (_, Some(secret)) => ClientProof::InForm(secret),
                (_, None) => ClientProof::Nothing,
            },
        })
    }
}

impl Secret {
    /// Returns the text that requests carry.
    pub fn reveal(&self) -> &SecretString {
        match self {
            Secret::Key(key) => key,
            Secret::Token(token) => &token.access,
            Secret::Printed(it) => &it.key,
        }
    }

    /// Returns what is stored of it.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Secret::Key(key) => json!({ "type": "key", "key": key.expose_secret() }),
            Secret::Token(token) => json!({
                "type": "token",
                "access": token.access.expose_secret(),
                "refresh": token.refresh.as_ref().map(|it| it.expose_secret()),
                "expires": token.expires,
                "endpoint": token.endpoint,
                "client_id": token.client_id,
                "renewal": if token.renewal == Renewal::Copilot { Value::from("copilot") } else { Value::Null },
                "grant": token.grant.as_ref().map(|it| it.to_json()),
            }),
            // A credential of a command is held, and `save` is for what the user gives.
            Secret::Printed(_) => Value::Null,
        }
    }

    pub(super) fn from_json(value: &Value) -> Option<Secret> {
        let field = |name: &str| value[name].as_str().filter(|it| !it.is_empty());
        let secret = |name: &str| field(name).map(SecretString::from);
        match field("type")? {
            "key" => Some(Secret::Key(secret("key")?)),
            "token" => Some(Secret::Token(Token {
                access: secret("access")?,
                refresh: secret("refresh"),
                expires: field("expires").and_then(|it| it.parse().ok()),
                endpoint: field("endpoint")?.to_owned(),
                client_id: field("client_id")?.to_owned(),
                renewal: if field("renewal") == Some("copilot") { Renewal::Copilot } else { Renewal::Refresh },
                grant: Grant::from_json(&value["grant"]).map(Box::new),
            })),
            _ => None,
        }
    }
}
