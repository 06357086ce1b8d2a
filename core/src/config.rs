//! Settings, read once and passed in: the environment, the person's file, the command line. The core looks nowhere else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Code, Error, Result, nearest};
use crate::event::{Mode, Toolset};

/// Where things are, and what the environment says.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `PIXIR_HOME`: Logs, blobs and diagnostics.
    pub home: PathBuf,
    /// The folder of the person's `config.toml`, skills and themes.
    pub user_folder: Option<PathBuf>,
    /// The environment, as the process found it.
    pub environment: Vec<(String, String)>,
}

impl Surroundings {
    /// A variable of the environment, unless it is empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().find(|(n, v)| n == name && !v.is_empty()).map(|(_, v)| v.as_str())
    }
}

/// The person's `config.toml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Config {
    /// `provider/model`.
    pub model: Option<String>,
    /// How hard models should think.
    pub effort: Option<String>,
    /// What may run without asking.
    pub mode: Option<String>,
    /// Which tools models are offered in a new Session.
    pub toolset: Option<String>,
    /// The theme's name.
    pub theme: Option<String>,
    /// Servers, by the name that `model` uses.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// What is known of models, by `provider/model`.
    pub models: BTreeMap<String, ModelConfig>,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ProviderConfig {
    /// `responses` or `chat`.
    pub dialect: String,
    /// Where it is.
    pub base_url: String,
    /// The variable that holds the key; never the key itself.
    pub api_key_env: Option<String>,
}

/// What is known of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ModelConfig {
    /// Tokens of its window.
    pub window: Option<u64>,
}

const KEYS: [&str; 7] = ["model", "effort", "mode", "toolset", "theme", "providers", "models"];
const PROVIDER_KEYS: [&str; 3] = ["dialect", "base_url", "api_key_env"];
const MODEL_KEYS: [&str; 1] = ["window"];

impl Config {
    /// Reads a file; one that is not there is an empty one.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, with the line or the key, and what was probably meant.
    pub fn load(path: &Path) -> Result<Config> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Config::default()),
            Err(e) => {
                return Err(Error::new(
                    Code::ConfigInvalid,
                    format!("read {}: {e}", path.display()),
                    "make the file readable",
                ));
            }
        };
        Config::parse(&text).map_err(|mut e| {
            e.message = format!("{}: {}", path.display(), e.message);
            e
        })
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(text: &str) -> Result<Config> {
        let invalid = |e: toml::de::Error| {
            Error::new(Code::ConfigInvalid, e.to_string().trim().replace('\n', " "), "correct the file")
        };
        let table: toml::Table = text.parse().map_err(invalid)?;
        check_keys(&table, &KEYS, "")?;
        for (section, known) in [("providers", PROVIDER_KEYS.as_slice()), ("models", MODEL_KEYS.as_slice())] {
            for (name, value) in table.get(section).and_then(toml::Value::as_table).into_iter().flatten() {
                if let Some(table) = value.as_table() {
                    check_keys(table, known, &format!("{section}.{name}."))?;
                }
            }
        }
        let config: Config = table.try_into().map_err(invalid)?;
        config.mode.as_deref().map(Mode::parse).transpose()?;
        config.toolset.as_deref().map(Toolset::parse).transpose()?;
        Ok(config)
    }
}

fn check_keys(table: &toml::Table, known: &[&str], prefix: &str) -> Result<()> {
    match table.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(wrong) => {
            let fix = match nearest(wrong, known.iter().copied()) {
                Some(near) => format!("did you mean `{prefix}{near}`?"),
                None => format!("known keys: {}", known.join(", ")),
            };
            Err(Error::new(Code::ConfigInvalid, format!("unknown key `{prefix}{wrong}`"), fix)
                .with("input", wrong.clone()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_key_is_named_with_the_one_that_was_meant() {
        let error = Config::parse("modle = \"a/b\"").expect_err("unknown");
        assert_eq!((error.code, error.remediation.as_str()), (Code::ConfigInvalid, "did you mean `model`?"));
        let error = Config::parse("[providers.local]\ndialect = \"chat\"\nbase_ulr = \"x\"").expect_err("unknown");
        assert_eq!(error.remediation, "did you mean `providers.local.base_url`?");
        let config = Config::parse(
            "model = \"local/q\"\n[providers.local]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n",
        )
        .expect("valid");
        assert_eq!(config.providers["local"].dialect, "chat");
    }
}
