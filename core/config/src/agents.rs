//! How many child Sessions a tree may have, and what each may use.

use std::path::{Component, Path};

use serde::Deserialize;

use protocol::error::{Code, Error, Result};

/// `[agents]`: how many agents may work, and what each may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AgentsConfig {
    /// The most agents of a tree that run at the same time.
    pub running: Option<usize>,
    /// The most agents that one Turn of the root starts, at any depth.
    pub per_turn: Option<u32>,
    /// How far below the root agents may be; 0 allows none.
    pub depth: Option<u32>,
    /// The most rounds of a Turn of an agent.
    pub rounds: Option<u32>,
    /// The most seconds of a Turn of an agent.
    pub seconds: Option<u64>,
    /// The most tokens of a Turn of an agent.
    pub tokens: Option<u64>,
    /// The most tokens of all agents that one Turn of the root starts.
    pub tree_tokens: Option<u64>,
    /// Ends that no call waited for start a Turn of an idle Session.
    pub wake: Option<bool>,
    /// Paths below the workspace that a copy for an agent has although git ignores them, such as `node_modules`.
    pub copy_ignored: Vec<String>,
}

pub(super) const AGENT_KEYS: [&str; 9] =
    ["running", "per_turn", "depth", "rounds", "seconds", "tokens", "tree_tokens", "wake", "copy_ignored"];

/// Each number, and the values that it takes. A tree of more than these could not be watched by a person.
const RANGES: [(&str, std::ops::RangeInclusive<u64>); 7] = [
    ("running", 1..=100),
    ("per_turn", 1..=1_000),
    ("depth", 0..=3),
    ("rounds", 1..=10_000),
    ("seconds", 1..=86_400),
    ("tokens", 1_000..=1_000_000_000),
    ("tree_tokens", 1_000..=10_000_000_000),
];

impl AgentsConfig {
    /// Rejects numbers that are out of range, and paths outside the workspace.
    pub(super) fn check(&self) -> Result<()> {
        let is_below = |path: &&String| {
            !path.is_empty() && Path::new(path).components().all(|it| matches!(it, Component::Normal(_)))
        };
        if let Some(path) = self.copy_ignored.iter().find(|path| !is_below(path)) {
            let message =
                format!("`agents.copy_ignored` has `{}`, which is no path below the workspace", path.escape_debug());
            return Err(Error::new(Code::ConfigInvalid, message, "paths like node_modules or web/node_modules"));
        }
        let given = [
            self.running.map(|n| n as u64),
            self.per_turn.map(u64::from),
            self.depth.map(u64::from),
            self.rounds.map(u64::from),
            self.seconds,
            self.tokens,
            self.tree_tokens,
        ];
        let wrong = RANGES.iter().zip(given).find(|((_, range), given)| given.is_some_and(|n| !range.contains(&n)));
        match wrong {
            None => Ok(()),
            Some(((key, range), _)) => {
                let fix = format!("a number from {} to {}", range.start(), range.end());
                Err(Error::new(Code::ConfigInvalid, format!("`agents.{key}` is out of range"), fix))
            }
        }
    }
}
