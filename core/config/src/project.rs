//! What the configuration of a project may set. The file comes with a repository, so its author may be anybody: it can
//! choose what suits the project and make limits stricter, and never reach the user's keys, servers or permissions.

use std::collections::BTreeMap;

use super::mcp::McpServer;
use super::path::{dotted, leaves};
use super::{Config, catalogue};
use protocol::error::{Code, Error, Result, nearest};
use protocol::event::Mode;
use protocol::remedy::Remedy;

/// The project's configuration, relative to the workspace.
pub const CONFIG: &str = ".pixir/config.toml";

/// The keys that a project may set.
pub const PROJECT_KEYS: [&str; 8] = ["model", "effort", "mode", "toolset", "theme", "limits", "agents", "mcp"];

/// Keys that a project may not set, and why not. Some are known to no other file either, but people try them.
const REFUSED: [(&str, &str); 29] = [
    ("providers", "it decides which servers get your messages and keys"),
    ("base_url", "it decides which server gets your messages and keys"),
    ("headers", "it would be sent with your keys"),
    ("insecure", "it could send your keys unencrypted"),
    ("api_key", "keys are yours alone"),
    ("api_key_env", "it decides which variable is sent as a key"),
    ("api_key_command", "it would run programs"),
    ("proxy", "it would see your messages and keys"),
    ("fallback", "it decides which other servers get your messages"),
    ("favourites", "they are yours"),
    ("models", "prices and windows decide what your limits mean"),
    ("requests", "it decides how long pixir waits for your servers"),
    ("sandbox", "it could weaken how programs are confined"),
    ("environment", "it decides which variables programs get"),
    ("env", "it decides which variables programs get"),
    ("compaction", "it decides when your conversation is sent to a model to be summarized"),
    ("screen", "it is about your screen"),
    ("acp", "it is about your editor"),
    ("keys", "it is about your keyboard"),
    ("permissions", "only you allow what runs without asking"),
    ("rules", "only you allow what runs without asking"),
    ("allow", "only you allow what runs without asking"),
    ("trust", "only you decide what is trusted"),
    ("hooks", "it would run programs"),
    ("mcp_limits", "it decides how much of your window the tools of servers take"),
    ("mcp_servers", "it would run programs"),
    ("home", "it decides where pixir keeps its files"),
    ("pixir_home", "it decides where pixir keeps its files"),
    ("workspace", "it decides which files pixir may change"),
];

/// Reads a project's configuration.
///
/// # Errors
/// `CONFIG_INVALID`, with the key and what to do.
pub fn parse(content: &[u8]) -> Result<toml::Table> {
    let table = table(content)?;
    for key in table.keys() {
        check(key)?;
    }
    let config = Config::checked(table.clone())?;
    if config.mode.as_deref().map(Mode::parse).transpose()? == Some(Mode::Auto) {
        let message = "a project may not set `mode` to auto: only you allow what runs without asking";
        let fix = "set it to read-only or ask, which can only make your own mode stricter, or remove it";
        return Err(Error::new(Code::ConfigInvalid, message, fix).with("input", "mode"));
    }
    Ok(table)
}

/// The servers that a project's configuration names.
///
/// # Errors
/// As [`parse`].
pub fn servers(content: &[u8]) -> Result<BTreeMap<String, McpServer>> {
    Ok(Config::checked(parse(content)?)?.mcp)
}

/// What a project's configuration sets, on one line.
///
/// # Errors
/// As [`parse`].
pub fn summary(content: &[u8]) -> Result<String> {
    // Each server is a contribution of its own.
    let mut all = leaves(&parse(content)?);
    all.retain(|(path, _)| path.first().is_none_or(|name| name != "mcp"));
    all.sort_by_key(|(path, _)| PROJECT_KEYS.iter().position(|it| path.first().is_some_and(|name| name == it)));
    let set: Vec<String> = all.iter().map(|(path, value)| format!("{} = {value}", dotted(path))).collect();
    Ok(if set.is_empty() { "sets nothing".to_owned() } else { format!("sets {}", set.join(", ")) })
}

fn table(content: &[u8]) -> Result<toml::Table> {
    let text = std::str::from_utf8(content)
        .map_err(|_| Error::new(Code::ConfigInvalid, "it is not UTF-8 text", "save the file as UTF-8"))?;
    super::table(text)
}

fn check(key: &str) -> Result<()> {
    if PROJECT_KEYS.contains(&key) {
        return Ok(());
    }
    let error = match REFUSED.iter().find(|(refused, _)| *refused == key) {
        Some((_, why)) => {
            let place = if catalogue::top_keys().contains(&key) { "; your own config.toml may have it" } else { "" };
            let message = format!("a project may not set `{key}`: {why}");
            Error::new(Code::ConfigInvalid, message, format!("remove it from the project's file{place}"))
        }
        None => {
            let fix = match nearest(key, PROJECT_KEYS) {
                Some(near) => Remedy::nearest(near),
                None => format!("a project may set: {}", PROJECT_KEYS.join(", ")).into(),
            };
            Error::new(Code::ConfigInvalid, format!("unknown key `{}`", key.escape_debug()), fix)
        }
    };
    Err(error.with("input", key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_user_is_either_allowed_to_a_project_or_refused_with_a_reason() {
        for key in catalogue::top_keys() {
            let is_refused = REFUSED.iter().any(|(refused, _)| *refused == key);
            assert!(PROJECT_KEYS.contains(&key) != is_refused, "{key}");
        }
    }
}
