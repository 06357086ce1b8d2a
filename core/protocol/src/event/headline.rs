//! A Fact in one line.

use std::fmt;

/// A Fact in one line, which every Presenter shows unless it has a view of its own for the Fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// The bullet that plain text puts before it.
    pub mark: &'static str,
    /// The event, as a phrase.
    pub title: String,
    /// The paths, the reason or the text that the title introduces. Empty if it introduces nothing.
    pub detail: String,
}

impl Headline {
    /// A headline that introduces nothing.
    pub(super) fn new(title: impl Into<String>) -> Headline {
        Headline { mark: "•", title: title.into(), detail: String::new() }
    }

    /// With this detail.
    pub(super) fn with(self, detail: impl Into<String>) -> Headline {
        Headline { detail: detail.into(), ..self }
    }

    /// With another bullet.
    pub(super) fn marked(self, mark: &'static str) -> Headline {
        Headline { mark, ..self }
    }

    /// With the bullet, as a line of plain text.
    pub fn line(&self) -> String {
        format!("{} {self}", self.mark)
    }
}

impl fmt::Display for Headline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}
