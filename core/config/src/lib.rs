//! Settings from the environment, the user's file and the command line, read once and passed in. The core reads no
//! others.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use protocol::effort::Effort;
use protocol::error::{Code, Error, Result, nearest};
use protocol::event::{Mode, Toolset};
use protocol::remedy::{Part, Remedy};
use protocol::sandbox::Tier;
use storage::regular;

pub mod address; // addresses of servers
mod agents; // the paths that copies for agents have
pub mod catalogue; // every setting once: type, values, default, flag, what it does
pub mod credentials; // keys and tokens: found, stored, renewed, never printed
mod document; // the text of a file with the place of each value
pub mod edit; // one setting of a file set, with its comments kept
pub mod layers; // files, environment and flags, merged
pub mod mcp; // servers of the Model Context Protocol
mod path; // the names down to a setting
mod patience; // how long a request may take, and how long it is tried again
mod price; // what a model's tokens cost
pub mod project; // what a project may set

use catalogue::{AcpConfig, ScreenConfig};
pub use catalogue::{AgentsConfig, CompactionConfig, LimitsConfig, RequestsConfig};
pub use mcp::{Expose, McpLimits, McpServer, OAuth, OnChange, StartFolder};
pub use patience::Patience;
pub use price::{Price, Step};

/// The folders that pixir uses, and the environment.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// The value of `PIXIR_HOME`: the folder of Logs, blobs and diagnostics.
    pub home: PathBuf,
    /// The folder of the user's `config.toml`, skills and themes.
    pub user_folder: Option<PathBuf>,
    /// The folder that pixir was started in. Context files are read from the root of the workspace down to it.
    pub started_in: Option<PathBuf>,
    /// The environment variables of the process.
    pub environment: Vec<(String, String)>,
    /// Names of variables that commands get besides the usual ones.
    pub passed_on: Vec<String>,
    /// Paths below the workspace that copies for agents have although git ignores them.
    pub copy_ignored: Vec<String>,
}

impl Environment {
    /// The folders of the user's own skills, the first one first: pixir's, and those that agents share.
    pub fn skill_folders(&self) -> Vec<PathBuf> {
        let own = self.user_folder.as_ref().map(|folder| folder.join("skills"));
        let home = self.variable("HOME").map(Path::new).filter(|home| home.is_absolute());
        let shared = [".agents/skills", ".claude/skills"].into_iter().filter_map(|name| Some(home?.join(name)));
        own.into_iter().chain(shared).collect()
    }

    /// Returns an environment variable, unless it is empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().find(|(n, v)| n == name && !v.is_empty()).map(|(_, v)| v.as_str())
    }
}

/// The user's `config.toml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The model to use, as `provider/model`.
    pub model: Option<String>,
    /// The effort of models.
    pub effort: Option<String>,
    /// The mode: `read-only`, `ask` or `auto`.
    pub mode: Option<String>,
    /// The toolset of new Sessions.
    pub toolset: Option<String>,
    /// The strongest means by which programs are confined: `ns`, `ll` or `none`.
    pub sandbox: Option<String>,
    /// Names of environment variables that commands get besides the usual ones, which leave out everything that could hold a
    /// secret.
    pub environment: Vec<String>,
    /// The theme's name.
    pub theme: Option<String>,
    /// The models that lists name first, as `provider/model`.
    pub favourites: Vec<String>,
    /// Models to ask, as `provider/model`, when the patience with the one before has ended.
    pub fallback: Vec<String>,
    /// Servers, by the Provider name that `model` uses.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Windows, prices and abilities of models, by `provider/model`.
    pub models: BTreeMap<String, ModelConfig>,
    /// Limits of each Turn.
    pub limits: LimitsConfig,
    /// Time limits of requests, and how long failed ones are tried again.
    pub requests: RequestsConfig,
    /// How conversations are compacted.
    pub compaction: CompactionConfig,
    /// How many agents may work, and what each may use.
    pub agents: AgentsConfig,
    /// Servers of the Model Context Protocol, by name.
    pub mcp: BTreeMap<String, McpServer>,
    /// Bounds of what they take of a request.
    pub mcp_limits: McpLimits,
    /// Settings of the terminal interface.
    pub screen: ScreenConfig,
    /// Settings of the service for editors.
    pub acp: AcpConfig,
    /// Keys of the interface, by action; `none` unbinds an action.
    pub keys: BTreeMap<String, OneOrMany>,
}

/// One value, or a list of values.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One value.
    One(String),
    /// A list of values.
    Many(Vec<String>),
}

/// A server in `[providers]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ProviderConfig {
    /// The preset that gives the defaults: `ollama`, `vllm`, …; a section named like a preset uses it anyway.
    pub preset: Option<String>,
    /// The dialect: `responses`, `chat` or `anthropic`.
    pub dialect: Option<String>,
    /// The base URL.
    pub base_url: Option<String>,
    /// The environment variable that holds the key; never the key itself.
    pub api_key_env: Option<String>,
    /// A command that prints the key, for the shell. Only the user's own settings may have one.
    pub api_key_command: Option<String>,
    /// How long a printed key is used before the command runs again, seconds.
    pub api_key_ttl: Option<u32>,
    /// Headers of every request; they must not contain secrets.
    pub headers: BTreeMap<String, String>,
    /// Allows plain http to another machine.
    pub insecure: bool,
    /// The issuer that `pixir auth login --device` signs in at.
    pub issuer: Option<String>,
    /// The OAuth client id.
    pub client_id: Option<String>,
    /// The OAuth scope.
    pub scope: Option<String>,
}

/// Known properties of a model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ModelConfig {
    /// The maker's name of the model, where the server has another for it: that of a deployment.
    pub model_name: Option<String>,
    /// The window, tokens.
    pub window: Option<u64>,
    /// The longest answer, tokens.
    pub max_output: Option<u64>,
    /// The model accepts images.
    pub vision: Option<bool>,
    /// Efforts that the model accepts.
    pub efforts: Option<Vec<String>>,
    /// Prices, US dollars per million tokens.
    pub price: Option<PriceConfig>,
}

/// Prices, US dollars per million tokens. Cached tokens cost as much as other input unless a price is given.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, Deserialize, schemars::JsonSchema)]
pub struct PriceConfig {
    /// Input tokens.
    pub input: f64,
    /// Input tokens read from the cache.
    pub cached: Option<f64>,
    /// Input tokens written to the cache.
    pub cache_written: Option<f64>,
    /// Output tokens.
    pub output: f64,
    /// What a long request costs more.
    pub step: Option<Step>,
}

/// Who writes the summary of a compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryAuthor {
    /// The model where a server answers, else pixir.
    #[default]
    Auto,
    /// The model.
    Model,
    /// pixir, from the Log, without a request.
    Pixir,
}

impl RequestsConfig {
    /// Returns these settings, with defaults for the rest.
    pub fn patience(&self) -> Patience {
        let plain = Patience::default();
        let seconds = |given: Option<f64>, usual| given.map_or(usual, Duration::from_secs_f64);
        Patience {
            total: seconds(self.patience, plain.total),
            attempts: self.attempts,
            first_wait: seconds(self.first_wait, plain.first_wait),
            head: seconds(self.head, plain.head),
            local_head: seconds(self.head, plain.local_head),
            idle: seconds(self.idle, plain.idle),
            progress: seconds(self.progress, plain.progress),
            ends_loops: self.end_loops.unwrap_or(plain.ends_loops),
            ..plain
        }
    }
}

const PROVIDER_KEYS: [&str; 11] = [
    "preset",
    "dialect",
    "base_url",
    "api_key_env",
    "api_key_command",
    "api_key_ttl",
    "headers",
    "insecure",
    "issuer",
    "client_id",
    "scope",
];
const MODEL_KEYS: [&str; 6] = ["model_name", "window", "max_output", "vision", "efforts", "price"];
const PRICE_KEYS: [&str; 5] = ["input", "cached", "cache_written", "output", "step"];
const STEP_KEYS: [&str; 3] = ["above", "input", "output"];

impl Config {
    /// Reads a configuration file. A missing file counts as empty.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, with the line or key and, where possible, the probable correction.
    pub fn load(path: &Path) -> Result<toml::Table> {
        let text = match regular::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(toml::Table::new()),
            Err(e) => {
                return Err(Error::new(
                    Code::ConfigInvalid,
                    format!("read {}: {e}", path.display()),
                    "make the file readable",
                ));
            }
        };
        table(&text).map_err(|e| Error { message: format!("{}: {}", path.display(), e.message), ..e })
    }

    /// Parses the text of a configuration file.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(text: &str) -> Result<Config> {
        Config::checked(table(text)?)
    }

    /// Checks the keys and values of a table.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn checked(table: toml::Table) -> Result<Config> {
        Config::checked_or(table, FIX_FILE)
    }

    /// The same, with what to do about a value of a wrong type.
    fn checked_or(table: toml::Table, fix: &str) -> Result<Config> {
        check_keys(&table, &catalogue::top_keys(), "")?;
        for (section, known) in [("providers", PROVIDER_KEYS.as_slice()), ("models", MODEL_KEYS.as_slice())] {
            for (name, value) in table.get(section).and_then(toml::Value::as_table).into_iter().flatten() {
                if let Some(table) = value.as_table() {
                    check_keys(table, known, &format!("{section}.{name}."))?;
                }
            }
        }
        for (section, known) in catalogue::sections() {
            if let Some(below) = table.get(section).and_then(toml::Value::as_table) {
                check_keys(below, &known, &format!("{section}."))?;
            }
        }
        mcp::check_keys(&table)?;
        for (name, model) in table.get("models").and_then(toml::Value::as_table).into_iter().flatten() {
            if let Some(price) = model.get("price").and_then(toml::Value::as_table) {
                check_keys(price, &PRICE_KEYS, &format!("models.{name}.price."))?;
                if let Some(step) = price.get("step").and_then(toml::Value::as_table) {
                    check_keys(step, &STEP_KEYS, &format!("models.{name}.price.step."))?;
                }
            }
        }
        let bounds = catalogue::check(&table);
        // A value of the wrong type is the better thing to report.
        let config: Config = table.try_into().map_err(|e| unfit(e, fix))?;
        bounds?;
        config.agents.check()?;
        config.effort.as_deref().map(|it| effort("effort", it)).transpose()?;
        config.providers.iter().try_for_each(|(name, it)| it.check(name))?;
        config.models.iter().try_for_each(|(name, it)| it.check(name))?;
        config.mcp.iter().try_for_each(|(name, it)| it.check(name))?;
        config.mode.as_deref().map(Mode::parse).transpose()?;
        config.toolset.as_deref().map(Toolset::parse).transpose()?;
        config.sandbox.as_deref().map(Tier::parse).transpose()?;
        Ok(config)
    }

    /// Returns the key bindings, each as a list.
    pub fn keys(&self) -> BTreeMap<String, Vec<String>> {
        let list = |it: &OneOrMany| match it {
            OneOrMany::One(key) => vec![key.clone()],
            OneOrMany::Many(keys) => keys.clone(),
        };
        self.keys.iter().map(|(name, keys)| (name.clone(), list(keys))).collect()
    }
}

fn table(text: &str) -> Result<toml::Table> {
    text.parse().map_err(invalid)
}

const FIX_FILE: &str = "fix the file";

fn invalid(e: toml::de::Error) -> Error {
    unfit(e, FIX_FILE)
}

fn unfit(e: toml::de::Error, fix: &str) -> Error {
    let mut message = e.to_string().trim().replace('\n', " ");
    // The reader of the format names types of Rust.
    for (types, words) in [(["u16", "u32", "u64", "usize"].as_slice(), "a whole number"), (&["f64"], "a number")] {
        for name in types {
            message = message.replace(&format!("expected {name}"), &format!("expected {words}"));
        }
    }
    Error::new(Code::ConfigInvalid, message, fix)
}

fn effort(key: &str, name: &str) -> Result<()> {
    Effort::parse(name)
        .map(drop)
        .map_err(|e| Error::new(Code::ConfigInvalid, format!("`{key}`: {}", e.message), e.remedy).with("input", name))
}

impl ProviderConfig {
    fn check(&self, name: &str) -> Result<()> {
        let is_name = |it: &String| {
            it.len() <= 64
                && it.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                && !it.starts_with(|c: char| c.is_ascii_digit())
        };
        let wrong = |key: &str, what: &str, fix: &str| {
            Err(Error::new(Code::ConfigInvalid, format!("`providers.{name}.{key}` {what}"), fix))
        };
        match (&self.api_key_command, self.api_key_ttl) {
            (Some(command), _) if command.trim().is_empty() => {
                return wrong(
                    "api_key_command",
                    "is empty",
                    "a command that prints the key, such as \"pass show work\"",
                );
            }
            (Some(_), _) if self.api_key_env.is_some() => {
                return wrong("api_key_command", "and `api_key_env` both say where the key is", "keep one of them");
            }
            (None, Some(_)) => {
                return wrong("api_key_ttl", "needs an `api_key_command`", "add the command, or remove it");
            }
            (Some(_), Some(0)) => return wrong("api_key_ttl", "is 0", "seconds, 1 or more"),
            (Some(_) | None, _) => {}
        }
        match &self.api_key_env {
            // The error does not repeat the value: it may be a key.
            Some(it) if !is_name(it) => Err(Error::new(
                Code::ConfigInvalid,
                format!("`providers.{name}.api_key_env` is not the name of an environment variable"),
                Remedy::any_of([
                    "name the variable that holds the key, never the key itself".into(),
                    Remedy::Login { provider: Some(name.to_owned()) },
                ]),
            )),
            _ => Ok(()),
        }
    }
}

impl ModelConfig {
    fn check(&self, name: &str) -> Result<()> {
        let wrong =
            |what: &str, fix: &str| Err(Error::new(Code::ConfigInvalid, format!("`models.\"{name}\"{what}"), fix));
        if !name.contains('/') {
            return wrong("` does not name a provider", "[models.\"provider/model\"]");
        }
        if self.window.is_some_and(|n| n < 1_000) || self.max_output == Some(0) {
            return wrong(
                ".window` or `max_output` is not a valid number of tokens",
                "a window of at least 1000 tokens",
            );
        }
        if self.window.zip(self.max_output).is_some_and(|(window, answer)| answer > window) {
            return wrong(".max_output` is larger than its window", "a `max_output` that fits into the window");
        }
        if let Some(it) = &self.price {
            let all = [Some(it.input), it.cached, it.cache_written, Some(it.output)];
            if all.into_iter().flatten().any(|usd| !(0.0..=1e6).contains(&usd)) {
                return wrong(".price` is not a valid price", "US dollars per million tokens, 0 or more");
            }
        }
        for name_of_effort in self.efforts.iter().flatten() {
            effort(&format!("models.\"{name}\".efforts"), name_of_effort)?;
        }
        Ok(())
    }
}

fn check_keys(table: &toml::Table, known: &[&str], prefix: &str) -> Result<()> {
    match table.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(wrong) => {
            let fix = match nearest(wrong, known.iter().copied()) {
                Some(near) => {
                    Remedy::text(format!("did you mean {prefix}")).and(Part::Nearest(near.to_owned())).and_text("?")
                }
                None => format!("known keys: {}", known.join(", ")).into(),
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
        assert_eq!((error.code, &*error.remedy.plain()), (Code::ConfigInvalid, "did you mean model?"));
        let error = Config::parse("[providers.local]\ndialect = \"chat\"\nbase_ulr = \"x\"").expect_err("unknown");
        assert_eq!(error.remedy.plain(), "did you mean providers.local.base_url?");
        let config = Config::parse(
            "model = \"local/q\"\n[providers.local]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n",
        )
        .expect("valid");
        assert_eq!(config.providers["local"].dialect.as_deref(), Some("chat"));
    }
}
