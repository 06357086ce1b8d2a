//! How much a model is asked to reason.

use super::error::{Code, Error, Result};

/// How much a model is asked to reason, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effort {
    /// No reasoning.
    None,
    /// The least reasoning.
    Minimal,
    /// Little reasoning.
    Low,
    /// Moderate reasoning.
    Medium,
    /// Much reasoning.
    High,
    /// Very much reasoning.
    XHigh,
    /// The most reasoning that the model offers.
    Max,
}

impl Effort {
    /// Every effort, the least first.
    pub const ALL: [Effort; 7] =
        [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High, Effort::XHigh, Effort::Max];

    /// The name on the command line and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Effort::None => "none",
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::XHigh => "xhigh",
            Effort::Max => "max",
        }
    }

    /// Returns the effort with this name.
    ///
    /// # Errors
    /// `INVALID_ARGS`, with the names that exist.
    pub fn parse(name: &str) -> Result<Effort> {
        Effort::ALL.into_iter().find(|it| it.name() == name).ok_or_else(|| {
            let names = Effort::ALL.map(Effort::name).join(", ");
            let message = format!("there is no effort `{}`", name.escape_debug());
            Error::new(Code::InvalidArgs, message, format!("one of: {names}")).with("input", name)
        })
    }
}
