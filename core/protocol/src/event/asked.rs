//! What waits for the user: a decision about a call, or answers to questions.

use serde::{Deserialize, Serialize};

use super::{Preview, Rule};
use crate::agent::Asker;

/// A call that waits for the user's decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What the call would do. If the user allows it, exactly this runs.
    #[serde(rename = "plan")]
    pub preview: Box<Preview>,
    /// Why the call needs the user's approval.
    pub reason: String,
    /// The rule that "always allow" would add; absent if "always" is not offered.
    pub rule: Option<Rule>,
    /// What a decision to allow the call has to confirm; absent for everyday calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirmation>,
    /// What a decision to save `rule` has to confirm; absent for everyday rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_rule: Option<Confirmation>,
    /// The child Session that asks; absent if the Session itself does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Asker>,
}

/// The word that the user types before damage that lasts, and before a change that is not shown as a whole. The Session
/// refuses a decision to allow without it, whichever Presenter sends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The word; the decision carries it.
    pub word: String,
    /// What could not be taken back, as clauses: `it deletes src and all that is in it`.
    #[serde(default)]
    pub dangers: Vec<String>,
    /// What the preview does not show, as clauses: `37120 changed lines (2.1MB) of dump.sql are not shown`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

impl Confirmation {
    /// The word for a call that is allowed once.
    pub const ONCE: &'static str = "allow";
    /// The word for a rule that allows such calls from now on.
    pub const ALWAYS: &'static str = "always";

    /// Why the word is needed, without the particulars.
    pub const fn headline(&self) -> &'static str {
        if self.dangers.is_empty() { "Not all of this change can be shown" } else { "This cannot be taken back" }
    }

    /// What the word confirms, as one clause.
    pub fn clauses(&self) -> String {
        self.dangers.iter().chain(&self.unseen).map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}

/// Questions of the model that wait for the user's answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// The call that asks.
    pub call_id: String,
    /// The questions.
    pub questions: Vec<Question>,
    /// The child Session that asks; absent if the Session itself does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Asker>,
}

impl Form {
    /// The call under which the step of a run with this id asks.
    pub fn call_of_step(id: &str) -> String {
        format!("step {id}")
    }

    /// Whether a step of a run asks.
    pub fn is_of_step(&self) -> bool {
        self.call_id.starts_with("step ")
    }
}

/// One question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The text of the question.
    pub question: String,
    /// Answers to choose from.
    #[serde(default)]
    pub options: Vec<String>,
    /// The user may choose more than one answer.
    #[serde(default)]
    pub multiple: bool,
    /// Only the options are answers; otherwise the user can answer in their own words too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_options: bool,
}
