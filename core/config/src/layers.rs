//! The layers of settings, and where each value comes from.

use std::collections::BTreeMap;

use super::Config;
use super::catalogue::{self, SettingSpec};
use super::path::{self, dotted, leaves};
use protocol::error::{Error, Result};
use protocol::event::Mode;

/// Where a setting comes from, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Nothing sets it.
    Default,
    /// The user's file.
    User,
    /// The project's file, in a workspace that the user trusts.
    Project,
    /// A variable of the environment.
    Environment,
    /// `--config`, on the command line.
    Override,
    /// A flag of its own, on the command line.
    Flag,
}

impl Source {
    /// The name that lists show.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Default => "default",
            Source::User => "user",
            Source::Project => "project",
            Source::Environment => "environment",
            Source::Override | Source::Flag => "flag",
        }
    }
}

/// The settings of one source.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// The kind of source.
    pub source: Source,
    /// The source itself: a path, a variable, a flag.
    pub from: String,
    /// Its settings.
    pub table: toml::Table,
}

/// One setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The key, with dots between its parts.
    pub key: String,
    /// The value; `None` where nothing sets it.
    pub value: Option<toml::Value>,
    /// The kind of source.
    pub source: Source,
    /// The source itself; empty for a default.
    pub from: String,
}

/// All layers, merged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// The values.
    pub config: Config,
    /// The most permissive mode that the project leaves to the user's own files and defaults.
    pub widest_mode: Option<Mode>,
    set: BTreeMap<Vec<String>, Setting>,
}

impl Settings {
    /// Merges layers, the weakest first. A project only makes mode and limits stricter.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, with the source.
    pub fn merge(layers: &[Layer]) -> Result<Settings> {
        let mut set: BTreeMap<Vec<String>, Setting> = BTreeMap::new();
        let mut widest_mode = None;
        for Layer { source, from, table } in layers {
            let named = |e: Error| Error { message: format!("{from}: {}", e.message), ..e };
            Config::checked(table.clone()).map_err(named)?;
            for (path, value) in leaves(table) {
                let key = dotted(&path);
                let is_of_project = *source == Source::Project;
                // A project's servers are read on their own: none of their keys joins a server of the user.
                if is_of_project && key.starts_with("mcp.") {
                    continue;
                }
                if is_of_project && key == "mode" {
                    widest_mode = value.as_str().map(Mode::parse).transpose().map_err(named)?;
                }
                // A project lowers the usual number of agents too, not only one that the user has set.
                let usual =
                    || catalogue::spec(&key).filter(|_| key.starts_with("agents.")).and_then(SettingSpec::default);
                let there = set.get(&path).and_then(|it| it.value.clone()).or_else(usual);
                if is_of_project && there.is_some_and(|it| is_wider(&key, &value, &it)) {
                    continue;
                }
                set.insert(path, Setting { key, value: Some(value), source: *source, from: from.clone() });
            }
        }
        // The mode of a project is no setting of the user's: it bounds the others.
        let own_mode = set.get(&vec!["mode".to_owned()]).filter(|it| it.source != Source::Project);
        let mode = own_mode.and_then(|it| it.value.as_ref()?.as_str()).map(str::to_owned);
        if own_mode.is_some_and(|it| it.source > Source::Project) {
            widest_mode = None;
        }
        let mut whole = toml::Table::new();
        for (path, it) in &set {
            if let Some(value) = &it.value {
                path::insert(&mut whole, path, value.clone());
            }
        }
        let config = Config { mode, ..Config::checked(whole)? };
        Ok(Settings { config, widest_mode, set })
    }

    /// Values without a source.
    pub fn only(config: Config) -> Settings {
        Settings { config, ..Settings::default() }
    }

    /// Every setting that has a default, and every other that is set, by key.
    pub fn all(&self) -> Vec<Setting> {
        let default = |spec: &SettingSpec| {
            let key = spec.key.to_owned();
            let plain = Setting { key, value: spec.default(), source: Source::Default, from: String::new() };
            self.set.values().find(|it| it.key == spec.key).cloned().unwrap_or(plain)
        };
        let mut all: Vec<Setting> = catalogue::settings().map(default).collect();
        let others = self.set.values().filter(|it| !all.iter().any(|other| other.key == it.key));
        let others: Vec<Setting> = others.cloned().collect();
        all.extend(others);
        let order = catalogue::top_keys();
        all.sort_by_key(|it| (order.iter().position(|key| it.key.split('.').next() == Some(key)), it.key.clone()));
        all
    }
}

/// Whether a project's value allows more than the one that it would replace.
fn is_wider(key: &str, its: &toml::Value, there: &toml::Value) -> bool {
    let number = |it: &toml::Value| it.as_float().or_else(|| it.as_integer().map(|n| n as f64));
    if key == "mode" {
        let rank = |it: &toml::Value| Mode::ALL.iter().position(|mode| Some(mode.name()) == it.as_str());
        return rank(its) > rank(there);
    }
    if key == "agents.wake" {
        return its.as_bool() == Some(true) && there.as_bool() == Some(false);
    }
    (key.starts_with("limits.") || key.starts_with("agents.")) && number(its) > number(there)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(source: Source, text: &str) -> Layer {
        Layer { source, from: source.name().to_owned(), table: text.parse().expect("TOML") }
    }

    #[test]
    fn the_strongest_layer_wins_and_a_project_only_makes_stricter() {
        let user = "model = 'a/m'\neffort = 'low'\nmode = 'ask'\n[limits]\nmax_rounds = 5\n[providers.ollama]\n[models.\"a/m#=.1\"]\nwindow = 9000\n";
        let project = "effort = 'high'\nmode = 'read-only'\n[limits]\nmax_rounds = 9\nmax_cost = 0.5\n";
        let layers = [layer(Source::User, user), layer(Source::Project, project)];
        let settings = Settings::merge(&layers).expect("valid");
        let config = &settings.config;
        assert_eq!((config.model.as_deref(), config.effort.as_deref()), (Some("a/m"), Some("high")));
        assert_eq!((config.limits.max_rounds, config.limits.max_cost), (Some(5), Some(0.5)));
        assert_eq!((config.mode.as_deref(), settings.widest_mode), (None, Some(Mode::ReadOnly)));
        assert!(config.providers.contains_key("ollama"), "an empty section means something");
        assert!(config.models.contains_key("a/m#=.1"), "a name may hold anything");
        let source = |key: &str| settings.all().into_iter().find(|it| it.key == key).map(|it| it.source.name());
        assert_eq!((source("effort"), source("limits.max_rounds")), (Some("project"), Some("user")));
        let agents = |text| layer(Source::Project, text);
        let user_agents = layer(Source::User, "[agents]\nseconds = 100\nwake = false");
        let project_agents = agents("[agents]\nrunning = 90\ndepth = 0\nseconds = 200\nwake = true");
        let bounded = Settings::merge(&[user_agents, project_agents]).expect("valid").config.agents;
        assert_eq!((bounded.running, bounded.depth), (None, Some(0)), "more than the usual number is wider");
        assert_eq!((bounded.seconds, bounded.wake), (Some(100), Some(false)));
        let [user, project] = layers;
        let flag = layer(Source::Override, "mode = 'auto'\neffort = 'max'");
        let settings = Settings::merge(&[user, project, flag]).expect("valid");
        assert_eq!((settings.config.mode.as_deref(), settings.widest_mode), (Some("auto"), None));
        assert_eq!(settings.config.effort.as_deref(), Some("max"));
    }
}
