//! What a workspace brings along that is in force only with the user's trust, and the user's answer about it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The user's answer about what a workspace brings along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrustAnswer {
    /// It is in force, as the user saw it.
    Trust,
    /// What is not trusted yet stays inert. The user is asked again when it changes.
    NotNow,
    /// Nothing of this workspace is in force, and the user is not asked about it again.
    Never,
    /// Nothing of this workspace is in force any more. The user is asked again when it changes.
    Revoke,
}

/// The kinds of contributions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContributionKind {
    /// The project's `config.toml`.
    Config,
    /// A skill.
    Skill,
    /// A prompt template.
    Template,
    /// A role of agents.
    Role,
    /// A workflow.
    Workflow,
    /// A server of the Model Context Protocol.
    McpServer,
    /// The context file of a folder beside the workspace.
    Instructions,
    /// The repository of the workspace, whose `.git` leads to folders elsewhere.
    Repository,
}

impl ContributionKind {
    /// The name that lists show.
    pub const fn name(self) -> &'static str {
        match self {
            ContributionKind::Config => "configuration",
            ContributionKind::Skill => "skill",
            ContributionKind::Template => "prompt template",
            ContributionKind::Role => "role",
            ContributionKind::Workflow => "workflow",
            ContributionKind::McpServer => "MCP server",
            ContributionKind::Instructions => "instructions",
            ContributionKind::Repository => "repository",
        }
    }
}

/// Whether a contribution is in force, and why not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Standing {
    /// The user trusts it as it is now.
    InForce,
    /// The user has seen it as it is now, and does not trust it.
    Inert,
    /// The user has not been asked about it.
    New,
    /// It changed since the user was asked about it.
    Changed,
    /// It can never be in force as it is.
    Unusable {
        /// Why.
        why: String,
    },
}

/// A file or folder of a workspace that is in force only with the user's trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contribution {
    /// What it is.
    pub kind: ContributionKind,
    /// Its path, relative to the workspace.
    pub path: String,
    /// What it would do.
    pub about: String,
    /// Whether it is in force.
    pub standing: Standing,
    /// 32 hex digits of the BLAKE3 hash of its content; absent where it cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// All contributions of a workspace, or of a folder that is worked on besides it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contributions {
    /// The root of the workspace.
    pub workspace: String,
    /// The folder beside it that they are of. An answer about them names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// In the order in which they are shown.
    pub all: Vec<Contribution>,
    /// The workspace is trusted for this run alone, whatever the user answered.
    #[serde(default)]
    pub trusted_for_run: bool,
}

impl Contributions {
    /// Whether the user has something to answer: a contribution is new or has changed.
    pub fn needs_answer(&self) -> bool {
        self.all.iter().any(|it| matches!(it.standing, Standing::New | Standing::Changed))
    }

    /// The content that an answer is about, by path.
    pub fn seen(&self) -> BTreeMap<String, String> {
        self.all.iter().filter_map(|it| Some((it.path.clone(), it.digest.clone()?))).collect()
    }
}
