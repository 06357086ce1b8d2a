//! Rules that the user made, with where and how long they hold.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{Rule, SessionId};

/// A rule that the user made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
// A field that this build does not know may narrow the rule.
#[serde(deny_unknown_fields)]
pub struct SavedRule {
    /// Names the rule, to revoke it.
    pub id: String,
    /// What it allows or denies.
    pub rule: Rule,
    /// Where it holds.
    pub holds: Reach,
    /// When it was made.
    #[serde(serialize_with = "crate::event::to_the_millisecond")]
    pub made: Timestamp,
    /// When it ends.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::event::maybe_to_the_millisecond"
    )]
    pub expires: Option<Timestamp>,
}

/// Where a rule holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "in", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reach {
    /// In one Session, as long as it is in this workspace.
    Session {
        /// The Session's id.
        session: String,
        /// The root of its workspace.
        workspace: String,
    },
    /// In one workspace.
    Project {
        /// Its root.
        workspace: String,
    },
    /// Everywhere.
    User,
}

impl Reach {
    /// Whether it holds in this Session of this workspace.
    pub fn includes(&self, session: Option<&SessionId>, workspace: &Path) -> bool {
        let is_here = |it: &str| Path::new(it) == workspace;
        match self {
            Reach::Session { session: id, workspace } => {
                session.is_some_and(|session| session.as_str() == id) && is_here(workspace)
            }
            Reach::Project { workspace } => is_here(workspace),
            Reach::User => true,
        }
    }

    /// The name that lists show.
    pub const fn name(&self) -> &'static str {
        match self {
            Reach::Session { .. } => "session",
            Reach::Project { .. } => "project",
            Reach::User => "user",
        }
    }
}

impl SavedRule {
    /// Whether it has not ended.
    pub fn is_in_time(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|end| now < end)
    }
}
