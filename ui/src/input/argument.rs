//! What follows the name of a slash command, and what can complete it.

pub(crate) use pixir_core::verbs::Argument;

/// A completion of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// What is put after the command.
    pub(crate) value: String,
    /// What it stands for.
    pub(crate) about: String,
}

impl Candidate {
    pub(crate) fn new(value: impl Into<String>, about: impl Into<String>) -> Candidate {
        Candidate { value: value.into(), about: about.into() }
    }
}

/// Formats of an exported Session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Markdown.
    Markdown,
    /// One self-contained page.
    Html,
    /// Everything, for `pixir sessions import`.
    Json,
}

impl ExportFormat {
    /// The ending of its files, which is also its name.
    pub fn ending(self) -> &'static str {
        match self {
            ExportFormat::Markdown => "md",
            ExportFormat::Html => "html",
            ExportFormat::Json => "json",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<ExportFormat> {
        let all = [ExportFormat::Markdown, ExportFormat::Html, ExportFormat::Json];
        all.into_iter().find(|it| it.ending() == text.to_ascii_lowercase())
    }
}
