//! The words of a remedy of one Presenter, with its commands, flags and names as parts of their own.

use serde::{Deserialize, Serialize};

/// A part of a phrase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Words.
    Text(String),
    /// A command for a shell. Words in capitals are placeholders.
    Command(String),
    /// A flag, with its value if it takes one, that the failed call can be given.
    Flag(String),
    /// The failed call can be made once more; the words say so.
    Again(String),
    /// The name that the wrong one of the failed call most likely stands for.
    Nearest(String),
}

impl Part {
    /// The words of this part.
    pub fn words(&self) -> &str {
        match self {
            Part::Text(words)
            | Part::Command(words)
            | Part::Flag(words)
            | Part::Again(words)
            | Part::Nearest(words) => words,
        }
    }

    /// Returns the part with its words rewritten.
    pub(super) fn map_text(self, rewrite: &impl Fn(&str) -> String) -> Part {
        match self {
            Part::Text(words) => Part::Text(rewrite(&words)),
            Part::Command(words) => Part::Command(rewrite(&words)),
            Part::Flag(words) => Part::Flag(rewrite(&words)),
            Part::Again(words) => Part::Again(rewrite(&words)),
            Part::Nearest(words) => Part::Nearest(rewrite(&words)),
        }
    }
}

/// Joins the words of parts.
pub fn words(parts: &[Part]) -> String {
    parts.iter().map(Part::words).collect()
}
