//! What a server gets from the environment and from the stored secrets. It is given to the server and printed nowhere.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::RwLock;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use config::Environment;
use config::credentials::{SHORTEST_SECRET, Vault, name_for_server};
use config::mcp::McpServer;
use protocol::error::{Code, Error, Result};
use protocol::remedy::{Remedy, ServerSecret};

/// The variable that holds the secret of an OAuth client.
const CLIENT_SECRET: &str = "OAUTH_CLIENT_SECRET";

/// Where values of `env_from`, `headers_from` and `${VAR}` come from.
pub struct Source {
    pub environment: Environment,
    pub vault: Vault,
}

/// Older tokens of a sign-in are not masked any more.
const MOST_LEARNED: usize = 8;
/// A line of a secret of several lines that is shorter is no secret by itself, bytes.
const SHORTEST_LINE: usize = 6;

/// The values that one server gets, by the name of their variable or header.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    /// Variables of the environment.
    pub(super) env: Arc<BTreeMap<String, SecretString>>,
    /// Headers.
    pub(super) headers: Arc<BTreeMap<String, SecretString>>,
    /// What is masked, the longest first: the name of a secret, and its text or one line of it.
    masked: Arc<Vec<(String, SecretString)>>,
    /// The same of what was learned since: tokens of a sign-in, the newest last.
    learned: Arc<RwLock<VecDeque<(String, SecretString)>>>,
}

impl Source {
    /// The value of a variable: from the environment, else from the stored secrets.
    fn find(&self, server: &str, variable: &str) -> Result<Option<SecretString>> {
        if let Some(value) = self.environment.variable(variable) {
            return Ok(Some(SecretString::from(value)));
        }
        let found = self.vault.find(&name_for_server(server, variable), None, &self.environment)?;
        Ok(found.map(|it| SecretString::from(it.secret().reveal().expose_secret())))
    }

    /// The secret of the client that the user has registered with the issuer of a server.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) fn client_secret(&self, server: &str) -> Result<Option<SecretString>> {
        self.find(server, CLIENT_SECRET)
    }

    /// Everything that a server gets.
    ///
    /// # Errors
    /// `MCP_START_FAILED` where something is missing.
    pub(super) fn of(&self, name: &str, server: &McpServer, expands: bool) -> Result<Secrets> {
        let (mut env, mut headers, mut masked) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let missing = |variable: &str| {
            let message = format!("the MCP server {name} needs {variable}, which is not set");
            let fix =
                Remedy::StoreSecret(Box::new(ServerSecret { server: name.to_owned(), variable: variable.to_owned() }));
            Error::new(Code::McpStartFailed, message, fix).with("server", name)
        };
        let plain = |value: &String| -> Result<(SecretString, Vec<(String, SecretString)>)> {
            if !expands {
                return Ok((SecretString::from(value.as_str()), Vec::new()));
            }
            let (text, used) = expanded(value, |variable| self.environment.variable(variable).map(str::to_owned))
                .map_err(|variable| missing(&variable))?;
            Ok((SecretString::from(text), used))
        };
        for (into, from) in [(&mut env, &server.env), (&mut headers, &server.headers)] {
            for (key, value) in from {
                let (value, used) = plain(value)?;
                masked.extend(used);
                into.insert(key.clone(), value);
            }
        }
        for variable in &server.env_from {
            let value = self.find(name, variable)?.ok_or_else(|| missing(variable))?;
            masked.push((variable.clone(), value.clone()));
            env.insert(variable.clone(), value);
        }
        for (header, variable) in &server.headers_from {
            let value = self.find(name, variable)?.ok_or_else(|| missing(variable))?;
            masked.push((variable.clone(), value.clone()));
            headers.insert(header.clone(), value);
        }
        let masked = Arc::new(forms(&masked));
        Ok(Secrets { env: Arc::new(env), headers: Arc::new(headers), masked, learned: Arc::default() })
    }
}

/// The forms in which these secrets may be printed: as they are, as JSON has them, and each line by itself.
fn forms(secrets: &[(String, SecretString)]) -> Vec<(String, SecretString)> {
    let mut all: Vec<(&String, String)> = Vec::new();
    for (name, value) in secrets.iter().filter(|(_, it)| it.expose_secret().len() >= SHORTEST_SECRET) {
        let whole = value.expose_secret();
        let lines = whole.lines().map(str::trim).filter(|it| it.len() >= SHORTEST_LINE);
        for form in std::iter::once(whole).chain(lines) {
            let json = Value::from(form).to_string();
            all.push((name, form.to_owned()));
            all.push((name, json[1..json.len() - 1].to_owned()));
        }
    }
    all.sort_by(|(_, a), (_, b)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    all.dedup_by(|(_, a), (_, b)| a == b);
    all.into_iter().map(|(name, form)| (name.clone(), SecretString::from(form))).collect()
}

impl Secrets {
    /// Secrets that are only masked.
    #[cfg(test)]
    pub(super) fn hiding(name: &str, value: &str) -> Secrets {
        let masked = forms(&[(name.to_owned(), SecretString::from(value))]);
        Secrets { masked: Arc::new(masked), ..Secrets::default() }
    }

    /// Masks this secret too from now on.
    pub(super) fn learn(&self, name: &str, secret: &SecretString) {
        let is_known = |it: &(String, SecretString)| it.1.expose_secret() == secret.expose_secret();
        let mut learned = self.learned.write();
        if secret.expose_secret().len() < SHORTEST_SECRET || learned.iter().any(is_known) {
            return;
        }
        if learned.len() == MOST_LEARNED {
            learned.pop_front();
        }
        learned.push_back((name.to_owned(), secret.clone()));
    }

    /// The length of the longest text that is masked, bytes.
    pub(super) fn longest(&self) -> usize {
        self.masked.first().map_or(0, |(_, value)| value.expose_secret().len())
    }

    /// The same JSON with `[secret NAME]` where a secret is.
    pub(super) fn masked_json(&self, it: &Value) -> Value {
        if self.masked.is_empty() && self.learned.read().is_empty() {
            return it.clone();
        }
        match it {
            Value::String(text) => self.masked(text).into(),
            Value::Array(items) => items.iter().map(|it| self.masked_json(it)).collect(),
            Value::Object(fields) => {
                let field = |(key, it): (&String, &Value)| (self.masked(key), self.masked_json(it));
                Value::Object(fields.iter().map(field).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => it.clone(),
        }
    }

    /// The text with `[secret NAME]` where a secret is.
    pub(super) fn masked(&self, text: &str) -> String {
        let learned = self.learned.read();
        learned.iter().chain(self.masked.iter()).fold(text.to_owned(), |text, (name, value)| {
            if text.contains(value.expose_secret()) {
                text.replace(value.expose_secret(), &format!("[secret {name}]"))
            } else {
                text
            }
        })
    }
}

/// A text whose `${VAR}` and `${VAR:-other}` are replaced, and what they were replaced by. `Err` is a variable that is not
/// set.
fn expanded(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> std::result::Result<(String, Vec<(String, SecretString)>), String> {
    let (mut out, mut used, mut rest) = (String::new(), Vec::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inner, behind)) = after.split_once('}') else { break };
        let (name, other) = inner.split_once(":-").map_or((inner, None), |(name, other)| (name, Some(other)));
        let value = match (variable(name), other) {
            (Some(value), _) => {
                used.push((name.to_owned(), SecretString::from(value.as_str())));
                value
            }
            (None, Some(other)) => other.to_owned(),
            (None, None) => return Err(name.to_owned()),
        };
        out.push_str(before);
        out.push_str(&value);
        rest = behind;
    }
    out.push_str(rest);
    Ok((out, used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_shared_file_are_filled_once() {
        let of = |text: &str| {
            expanded(text, |name| match name {
                "A" => Some("${B}".to_owned()),
                "B" => Some("b".to_owned()),
                _ => None,
            })
            .map(|(text, _)| text)
        };
        assert_eq!(of("x${A}y${B}${C:-c}").as_deref(), Ok("x${B}ybc"));
        assert_eq!(of("${C}"), Err("C".to_owned()));
        assert_eq!(of("${").as_deref(), Ok("${"));
    }

    /// Broken builds: a key of several lines is masked only where it stands whole; so is one that a server prints as JSON.
    #[test]
    fn each_line_of_a_secret_is_masked_and_short_ones_stay() {
        let secrets = Secrets::hiding("KEY", "-----BEGIN-----\n  line-\"two\"\n}\n-----END-----");
        assert_eq!(secrets.masked("a -----BEGIN-----\nline-\"two\"\n} b"), "a [secret KEY]\n[secret KEY]\n} b");
        assert_eq!(secrets.masked(r#"{"k": "line-\"two\""}"#), r#"{"k": "[secret KEY]"}"#);
        assert_eq!(secrets.masked("-----BEGIN-----\n  line-\"two\"\n}\n-----END-----"), "[secret KEY]");
    }
}
