//! What a tool call is about, for everybody who shows or summarises it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a call is about, worked out by its tool from the arguments. It is published before the call runs and recorded
/// with it, so no Presenter has to read arguments or know a tool's name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallInfo {
    /// One line for a person: verb and target.
    pub title: String,
    /// What the call does, in one word: `read`, `edit`, `run`.
    pub verb: String,
    /// The group that the tool belongs to.
    pub kind: CallKind,
    /// What the call is about: a path, a command line, a pattern. It may have several lines; a target that does not fit
    /// into 8 KiB is cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Files and folders that the arguments name, relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Arguments that neither the target nor the resulting diff shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// The call is proven to change nothing.
    #[serde(default)]
    pub reads_only: bool,
}

/// What kind of work a call does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// It reads files or records.
    Read,
    /// It looks for files, lines or messages.
    Search,
    /// It changes files.
    Edit,
    /// It runs a command line.
    Execute,
    /// It updates the model's plan.
    Plan,
    /// It asks the user.
    Ask,
    /// Anything else.
    #[default]
    Other,
}

/// The longest target that is recorded, bytes.
const MAX_TARGET: usize = 8 << 10;

impl CallInfo {
    /// A call of this kind about this target.
    pub fn new(kind: CallKind, verb: &str, target: impl Into<String>) -> CallInfo {
        let mut target = target.into();
        if target.len() > MAX_TARGET {
            target.truncate(target.floor_char_boundary(MAX_TARGET));
            target.push('…');
        }
        let line = target.lines().next().unwrap_or_default();
        let title = if line.is_empty() { verb.to_owned() } else { format!("{verb} {line}") };
        CallInfo { title, verb: verb.to_owned(), kind, target, ..CallInfo::default() }
    }

    /// The same about these paths.
    #[must_use]
    pub fn on(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> CallInfo {
        self.paths = paths.into_iter().map(Into::into).collect();
        self
    }

    /// The same with arguments that the target does not show, as far as they are given.
    #[must_use]
    pub fn with_details(mut self, args: &Value, names: &[&str]) -> CallInfo {
        self.details = names.iter().filter(|name| !args[**name].is_null()).map(|name| (*name).to_owned()).collect();
        self
    }

    /// Info for a call whose tool says nothing about it: an unknown tool, or an entry of a build that recorded none.
    /// The target is the first argument that is a string.
    pub fn unknown(tool: &str, args: &Value) -> CallInfo {
        let first = args.as_object().and_then(|all| all.iter().find_map(|(name, value)| Some((name, value.as_str()?))));
        let (shown, target) = first.map_or((None, ""), |(name, text)| (Some(name), text));
        let details = args.as_object().into_iter().flatten().map(|(name, _)| name).filter(|name| Some(*name) != shown);
        CallInfo { details: details.cloned().collect(), ..CallInfo::new(CallKind::Other, tool, target) }
    }
}
