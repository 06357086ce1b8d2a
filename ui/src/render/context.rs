//! The inputs of a layout besides the text: theme, width, and how much of each kind of cell is shown.

use super::highlight::Highlighter;
use crate::remedy::Remedies;
use crate::theme::Theme;

/// The most columns of running text. Code, tables and diffs may be wider.
pub(crate) const MEASURE: usize = 100;

/// Where the rows are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    /// The transcript, over the whole width.
    Screen,
    /// The transcript, beside the side panel.
    BesidePanel,
    /// The terminal's history. A blank at the end of a row would wrap when the terminal becomes narrower.
    History,
    /// A screen reader, for which a rule or a bar is noise.
    Reader,
}

/// Everything that rendering needs to turn a text into rows.
pub(crate) struct RenderContext<'a> {
    pub(crate) theme: &'a Theme,
    pub(crate) highlighter: &'a Highlighter,
    pub(crate) columns: usize,
    /// The columns of running text. Longer lines are hard to read.
    pub(crate) measure: usize,
    pub(crate) medium: Medium,
    /// The text grows: only the complete lines of its code have colours.
    pub(crate) grows: bool,
    /// How much of tool cards and summaries is shown.
    pub(crate) details: Fold,
    /// How much of the model's reasoning is shown.
    pub(crate) thinking: Fold,
    pub(crate) more: &'a MoreHints,
}

impl<'a> RenderContext<'a> {
    /// For a text by itself, with all of its colours.
    pub(crate) fn new(theme: &'a Theme, highlighter: &'a Highlighter, columns: usize) -> RenderContext<'a> {
        RenderContext {
            theme,
            highlighter,
            columns,
            measure: columns.min(MEASURE),
            medium: Medium::Screen,
            grows: false,
            details: Fold::Some,
            thinking: Fold::Line,
            more: MoreHints::NONE,
        }
    }

    /// The same with so many columns.
    pub(crate) fn of_columns(&self, columns: usize) -> RenderContext<'_> {
        RenderContext { columns: columns.max(1), ..*self }
    }

    /// The same, `by` columns narrower.
    pub(crate) fn inset(&self, by: usize) -> RenderContext<'_> {
        let narrower = |columns: usize| columns.saturating_sub(by).max(1);
        RenderContext { columns: narrower(self.columns), measure: narrower(self.measure), ..*self }
    }
}

/// The part of the context that decides whether laid out rows are still right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LayoutKey {
    pub(crate) columns: usize,
    /// Changes with the medium, the theme, with syntax colours that arrive late, and with what is shown in full.
    pub(crate) generation: u64,
}

/// How much of a cell is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fold {
    /// One line.
    Line,
    /// A preview.
    #[default]
    Some,
    /// All of it.
    Full,
}

impl Fold {
    pub(crate) fn next(self) -> Fold {
        match self {
            Fold::Some => Fold::Full,
            Fold::Full => Fold::Line,
            Fold::Line => Fold::Some,
        }
    }
}

/// The keys that show the rest of a cut cell, as they follow the cut: ` · Ctrl+O`.
#[derive(Debug, Clone, Default)]
pub(crate) struct MoreHints {
    pub(crate) details: String,
    pub(crate) thinking: String,
    /// What to do about an error, with the keys that are bound.
    pub(crate) remedies: Remedies,
}

impl MoreHints {
    /// No key shows more.
    pub(crate) const NONE: &'static MoreHints =
        &MoreHints { details: String::new(), thinking: String::new(), remedies: Remedies::NONE };
}
