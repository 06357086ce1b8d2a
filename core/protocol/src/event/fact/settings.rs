//! What a Session starts with, and changes of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ContextDocument, ParentSession, Surroundings};
use crate::error::{Code, Error, Result};

/// The first line of every Log: the settings at the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStarted {
    /// The canonical root of the workspace.
    pub workspace: String,
    /// The model's name at its Provider.
    pub model: String,
    /// The Provider's name in the configuration.
    pub provider: String,
    /// Which tools the model is offered.
    pub toolset: Toolset,
    /// What may run without asking.
    pub mode: Mode,
    /// How much the model is asked to reason, if it was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Context documents (`AGENTS.md` of the workspace and the user) as they were at the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextDocument>,
    /// The surroundings that those documents tell of; absent in Logs of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Surroundings>,
    /// The role that the user gave to the Session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The parent, if another Session started this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Box<ParentSession>>,
    /// The means by which programs were confined at the start: `ns`, `ll` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The version of the build that wrote the Log.
    pub pixir_version: String,
}

/// Which tools the model is offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Toolset {
    /// Each tool with its own schema.
    #[default]
    Typed,
    /// One tool, `run`, whose commands are the same tools.
    Run,
    /// Both.
    Both,
    /// No tools: the model answers in words alone.
    None,
}

impl Toolset {
    /// All toolsets.
    pub const ALL: [Toolset; 4] = [Toolset::Typed, Toolset::Run, Toolset::Both, Toolset::None];

    /// The name on the command line and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Toolset::Typed => "typed",
            Toolset::Run => "run",
            Toolset::Both => "both",
            Toolset::None => "none",
        }
    }

    /// The toolset with this name.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, with the names that exist.
    pub fn parse(name: &str) -> Result<Toolset> {
        Toolset::ALL.into_iter().find(|toolset| toolset.name() == name).ok_or_else(|| {
            let message = format!("there is no toolset `{}`", name.escape_debug());
            Error::new(Code::ConfigInvalid, message, "choose typed, run, both or none").with("input", name)
        })
    }
}

/// What may run without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Calls that change something are refused.
    ReadOnly,
    /// Calls that provably only read run; all others need the user's approval.
    #[default]
    Ask,
    /// Every call runs; only changes of protected paths need the user's approval.
    Auto,
}

impl Mode {
    /// All modes, from the safest to the most permissive.
    pub const ALL: [Mode; 3] = [Mode::ReadOnly, Mode::Ask, Mode::Auto];

    /// The name on the command line and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::ReadOnly => "read-only",
            Mode::Ask => "ask",
            Mode::Auto => "auto",
        }
    }

    /// The one of two modes in which less runs without asking.
    #[must_use]
    pub fn stricter(self, other: Mode) -> Mode {
        let first = Mode::ALL.into_iter().find(|mode| *mode == self || *mode == other);
        first.unwrap_or(self)
    }

    /// The mode with this name.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, with the names that exist.
    pub fn parse(name: &str) -> Result<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
            Error::new(
                Code::ConfigInvalid,
                format!("there is no mode `{}`", name.escape_debug()),
                "choose read-only, ask or auto",
            )
            .with("input", name)
        })
    }
}

/// A change of settings; only the changed ones are present.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingsChanged {
    /// The Provider's name in the configuration; always together with `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model's name at its Provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How much the model is asked to reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// What may run without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Which tools the model is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolset: Option<Toolset>,
    /// The Session's name; empty removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The canonical root of the workspace from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The role of the Session; empty removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Why pixir made the change; absent where the user made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl SessionStarted {
    /// The fields that this build knows.
    pub const FIELDS: &'static [&'static str] = &[
        "workspace",
        "model",
        "provider",
        "toolset",
        "mode",
        "effort",
        "context",
        "surroundings",
        "role",
        "parent",
        "sandbox",
        "pixir_version",
    ];
}

impl SettingsChanged {
    /// The fields that this build knows.
    pub const FIELDS: &'static [&'static str] =
        &["provider", "model", "effort", "mode", "toolset", "name", "workspace", "role", "reason"];
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{SessionStarted, SettingsChanged};

    /// Broken build: a field that is missing in one of the lists. A copy of an Entry then keeps the old value of it.
    #[test]
    fn the_lists_of_fields_are_complete() {
        let fields = |schema: schemars::Schema| -> BTreeSet<String> {
            schema.as_value()["properties"].as_object().expect("fields").keys().cloned().collect()
        };
        let listed = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        assert_eq!(fields(schemars::schema_for!(SessionStarted)), listed(SessionStarted::FIELDS));
        assert_eq!(fields(schemars::schema_for!(SettingsChanged)), listed(SettingsChanged::FIELDS));
    }
}
