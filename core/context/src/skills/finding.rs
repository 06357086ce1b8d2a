//! What the author of a file should know about it.

use serde::Serialize;

/// Whether a finding breaks the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// The file does not have the format; pixir reads it all the same where it can.
    Fault,
    /// The file has the format, but something in it has no effect here.
    Note,
}

/// Something in a file that its author should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether it breaks the format.
    pub weight: Weight,
    /// The line, from 1.
    pub line: usize,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

impl Finding {
    pub fn fault(line: usize, message: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { weight: Weight::Fault, line, message: message.into(), fix: fix.into() }
    }

    pub fn note(line: usize, message: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { weight: Weight::Note, line, message: message.into(), fix: fix.into() }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}
