//! The rules of the user, as Facts and the file of rules hold them.

use schemars::JsonSchema;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

/// A standing allow or deny. In a Log it is history: only a deny of a Log is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "RuleWire")]
#[schemars(with = "RuleWire")]
pub enum Rule {
    /// These calls run without asking.
    Allow(Scope),
    /// These calls do not run, in any mode.
    Deny(Scope),
}

/// What a [`Rule`] covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Writing and editing files inside the workspace, protected ones excepted.
    FileChanges,
    /// Exactly this command.
    Command(String),
    /// Commands whose words match this pattern, such as `cargo test *`.
    Pattern(String),
    /// Changes of files whose path matches this glob, protected ones excepted: a path in the workspace, or an absolute one in a
    /// folder that is worked on besides.
    Files(String),
    /// Reading below this folder outside the workspace, by pixir's own tools; secrets excepted.
    Reads(String),
    /// This folder outside the workspace is worked on as the workspace is: the mode and the other rules decide about each change.
    Writes(String),
    /// A tool of an MCP server: `SERVER`, `SERVER.TOOL`, or `SERVER.TOOL#PIN`, which holds for one definition.
    Mcp(String),
    /// The network, for programs in the sandbox.
    Network,
    /// A scope that only a newer build knows. An allow with it allows nothing; a deny with it may cover any call.
    Unknown,
}

/// A rule on the wire: `{"allow":"file_changes"}`, `{"deny":"command","what":"make"}`.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(rename = "Rule", description = "A standing allow or deny; exactly one of `allow` and `deny` is present.")]
struct RuleWire {
    /// What runs without asking.
    #[serde(skip_serializing_if = "Option::is_none")]
    allow: Option<ScopeName>,
    /// What does not run, in any mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    deny: Option<ScopeName>,
    /// The command, the pattern, the glob, the folder or the tool, for the scopes `command`, `pattern`, `files`, `reads`, `writes` and `mcp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ScopeName {
    /// Writing and editing files inside the workspace, protected ones excepted.
    FileChanges,
    /// Exactly the command in `what`.
    Command,
    /// Commands whose words match the pattern in `what`.
    Pattern,
    /// Changes of files whose path matches the glob in `what`, protected ones excepted.
    Files,
    /// Reading below the folder in `what`, outside the workspace; secrets excepted.
    Reads,
    /// Working on the folder in `what`, outside the workspace, as on the workspace.
    Writes,
    /// The tool of an MCP server in `what`: `SERVER`, `SERVER.TOOL` or `SERVER.TOOL#PIN`.
    Mcp,
    /// The network, for programs in the sandbox.
    Network,
    /// A scope that only a newer build knows.
    #[schemars(skip)]
    Unknown,
}

impl From<Rule> for RuleWire {
    fn from(rule: Rule) -> RuleWire {
        let (Rule::Allow(scope) | Rule::Deny(scope)) = rule.clone();
        let (name, what) = match scope {
            Scope::FileChanges => (ScopeName::FileChanges, None),
            Scope::Command(command) => (ScopeName::Command, Some(command)),
            Scope::Pattern(pattern) => (ScopeName::Pattern, Some(pattern)),
            Scope::Files(glob) => (ScopeName::Files, Some(glob)),
            Scope::Reads(folder) => (ScopeName::Reads, Some(folder)),
            Scope::Writes(folder) => (ScopeName::Writes, Some(folder)),
            Scope::Mcp(tool) => (ScopeName::Mcp, Some(tool)),
            Scope::Network => (ScopeName::Network, None),
            Scope::Unknown => (ScopeName::Unknown, None),
        };
        match rule {
            Rule::Allow(_) => RuleWire { allow: Some(name), what, ..RuleWire::default() },
            Rule::Deny(_) => RuleWire { deny: Some(name), what, ..RuleWire::default() },
        }
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rule, D::Error> {
        deserializer.deserialize_struct("Rule", &["allow", "deny", "what"], RuleVisitor)
    }
}

/// Reads a rule without derived code, because an unknown field matters: it may narrow what the rule allows.
struct RuleVisitor;

impl<'de> Visitor<'de> for RuleVisitor {
    type Value = Rule;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a rule")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Rule, A::Error> {
        let mut wire = RuleWire::default();
        let mut is_narrowed = false;
        while let Some(field) = fields.next_key::<String>()? {
            match field.as_str() {
                "allow" => wire.allow = fields.next_value()?,
                "deny" => wire.deny = fields.next_value()?,
                "what" => wire.what = fields.next_value()?,
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                    is_narrowed = true;
                }
            }
        }
        let scope = |name| match (name, wire.what) {
            (ScopeName::FileChanges, _) => Scope::FileChanges,
            (ScopeName::Command, Some(command)) => Scope::Command(command),
            (ScopeName::Pattern, Some(pattern)) => Scope::Pattern(pattern),
            (ScopeName::Files, Some(glob)) => Scope::Files(glob),
            (ScopeName::Reads, Some(folder)) => Scope::Reads(folder),
            (ScopeName::Writes, Some(folder)) => Scope::Writes(folder),
            (ScopeName::Mcp, Some(tool)) => Scope::Mcp(tool),
            (ScopeName::Network, _) => Scope::Network,
            (
                ScopeName::Command
                | ScopeName::Pattern
                | ScopeName::Files
                | ScopeName::Reads
                | ScopeName::Writes
                | ScopeName::Mcp,
                None,
            )
            | (ScopeName::Unknown, _) => Scope::Unknown,
        };
        Ok(match (wire.allow, wire.deny) {
            // Without its unknown condition a deny covers more calls, which is safe.
            (_, Some(name)) => Rule::Deny(scope(name)),
            (Some(name), None) if !is_narrowed => Rule::Allow(scope(name)),
            (Some(_), None) => Rule::Allow(Scope::Unknown),
            // An effect that only a newer build knows may be stricter than an allow.
            (None, None) => Rule::Deny(Scope::Unknown),
        })
    }
}
