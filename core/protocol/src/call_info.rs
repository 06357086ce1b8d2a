//! What a tool call is about, for Presenters, previews and summaries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a call is about, derived by its tool from the arguments. It is published before the call runs and recorded with
/// it, so no Presenter has to interpret arguments or know a tool's name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallInfo {
    /// One line for the user: verb and target.
    pub title: String,
    /// What the call does, as one verb: `read`, `edit`, `run`.
    pub verb: String,
    /// The kind of work.
    pub kind: CallKind,
    /// What the call is about: a path, a command line, a pattern. It may have several lines; a target that does not fit
    /// into 8 KiB is cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Files and folders that the arguments name, relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Arguments that are visible neither in the target nor in the resulting diff.
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
    /// It searches files, lines or messages.
    Search,
    /// It changes files.
    Edit,
    /// It runs a command line.
    Execute,
    /// It updates the model's plan.
    Plan,
    /// It asks the user.
    Ask,
    /// It starts a child Session, waits for one, or tells it something. Calls of this kind run together.
    Agent,
    /// Any other work.
    #[default]
    Other,
}

/// The longest target that is recorded, bytes.
const MAX_TARGET: usize = 8 << 10;

impl CallInfo {
    /// Creates the info of a call of this kind on this target.
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

    /// Returns the info with these paths.
    #[must_use]
    pub fn on(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> CallInfo {
        self.paths = paths.into_iter().map(Into::into).collect();
        self
    }

    /// Returns the info with those of these arguments that the call contains.
    #[must_use]
    pub fn with_details(mut self, args: &Value, names: &[&str]) -> CallInfo {
        self.details = names.iter().filter(|name| !args[**name].is_null()).map(|name| (*name).to_owned()).collect();
        self
    }

    /// The word before the target wherever a user reads of the call: `$` for a command line, else a verb. A tool that is not
    /// known keeps its name.
    pub fn label(&self, tool: &str) -> String {
        match self.kind {
            CallKind::Execute => "$".to_owned(),
            CallKind::Other if self.verb == tool => tool.to_owned(),
            CallKind::Read
            | CallKind::Search
            | CallKind::Edit
            | CallKind::Plan
            | CallKind::Ask
            | CallKind::Agent
            | CallKind::Other => {
                let first = self.verb.chars().next().map_or(0, char::len_utf8);
                format!("{}{}", self.verb[..first].to_uppercase(), &self.verb[first..])
            }
        }
    }

    /// Creates the info of a call whose tool is unknown, or whose Entry comes from a build that recorded none.
    /// The target is the first argument that is a string.
    pub fn unknown(tool: &str, args: &Value) -> CallInfo {
        let first = args.as_object().and_then(|all| all.iter().find_map(|(name, value)| Some((name, value.as_str()?))));
        let (shown, target) = first.map_or((None, ""), |(name, text)| (Some(name), text));
        let details = args.as_object().into_iter().flatten().map(|(name, _)| name).filter(|name| Some(*name) != shown);
        CallInfo { details: details.cloned().collect(), ..CallInfo::new(CallKind::Other, tool, target) }
    }
}
