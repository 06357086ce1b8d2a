//! What the model says, and how a message of the user was delivered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a user message was delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// It started a Turn.
    #[default]
    Prompt,
    /// It joined a running Turn.
    Steer,
    /// It waited for the Turn to end and started the next.
    FollowUp,
}

/// A message of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage {
    /// The text, Markdown.
    pub text: String,
    /// The stream broke off. The text is shown and recorded, but never sent to a model again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The purpose of the message, such as `commentary`, if the Provider states one; sent back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// The model's reasoning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reasoning {
    /// The part that may be shown.
    pub text: String,
    /// The only Provider that it may be sent back to.
    #[serde(default)]
    pub provider: String,
    /// The only model that it may be sent back to.
    pub model: String,
    /// The Provider's own item, sent back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Value>,
}
