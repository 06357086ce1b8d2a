//! What the Log says about skills and prompt templates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::headline::Headline;

/// Where a skill or a template comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The workspace contains it.
    Workspace,
    /// The user installed it.
    User,
}

impl Origin {
    /// Returns the name that lists show.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Workspace => "workspace",
            Origin::User => "user",
        }
    }
}

/// Who activated a skill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActivatedBy {
    /// The user: the text is an item of the conversation.
    #[default]
    User,
    /// The model, by a call whose result has the text.
    Model,
}

/// An activated skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillActivation {
    /// The skill's name.
    pub name: String,
    /// The path of its `SKILL.md`.
    pub path: String,
    /// What the user wants it to work on.
    #[serde(default)]
    pub args: String,
    /// The text that joined the conversation.
    pub body: String,
    /// Who activated it.
    #[serde(default)]
    pub by: ActivatedBy,
    /// Where the skill comes from; absent in Logs of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// 32 hex digits of the BLAKE3 hash of its `SKILL.md`; absent in Logs of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl SkillActivation {
    pub(super) fn headline(&self) -> Headline {
        Headline::new(format!("skill {} is active", self.name))
    }
}

/// The skills that the model may use from here on. It replaces an earlier index of the Session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillIndex {
    /// The text that the model reads: names and descriptions.
    pub text: String,
    /// How many skills the text names.
    pub listed: u64,
    /// How many did not fit.
    #[serde(default)]
    pub left_out: u64,
}

/// The prompt template that a message was expanded from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateUse {
    /// The template's name.
    pub name: String,
    /// The path of its file.
    pub path: String,
    /// What the user typed after the name.
    #[serde(default)]
    pub args: String,
    /// Where the template comes from.
    pub origin: Origin,
    /// 32 hex digits of the BLAKE3 hash of the file.
    pub digest: String,
}
