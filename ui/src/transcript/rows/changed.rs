//! What a call has changed: diffs, or a list where a command has changed many files.

use pixir_core::changes::FileDiff;
use pixir_core::event::{ChangeKind, FileChange};
use ratatui::text::{Line, Span};

use super::{DIFF_PREVIEW, INDENT, Tool, indent, marked, most};
use crate::render::context::{Fold, RenderContext};
use crate::render::diff;
use crate::render::text::{Row, fit, plain, width};

/// A command that has changed more files shows a list instead of diffs.
const MANY: usize = 3;
/// The most files in that list.
const LISTED: usize = 10;

/// The files that a command has changed are listed, because there are many of them.
pub(super) fn are_many(cell: &Tool, changes: &[FileChange], fold: Fold) -> bool {
    cell.is_command() && changes.len() > MANY && fold != Fold::Full
}

/// The files with the most changed lines, and a count of the others.
pub(super) fn list(changes: &[FileChange], context: &RenderContext<'_>) -> Vec<Row> {
    let theme = context.theme;
    let mut by_size: Vec<&FileChange> = changes.iter().collect();
    by_size.sort_by_key(|it| std::cmp::Reverse(it.added + it.removed));
    let shown = if by_size.len() <= LISTED + 1 { by_size.len() } else { LISTED };
    let (listed, rest) = by_size.split_at(shown);
    let mut rows: Vec<Row> = Vec::new();
    for change in listed {
        let (mark, style) = match change.kind {
            ChangeKind::Created => ("A ", theme.fg(theme.added)),
            ChangeKind::Deleted => ("D ", theme.fg(theme.removed)),
            ChangeKind::Modified => ("M ", theme.fg(theme.warning)),
        };
        let (added, removed) = (format!("  +{}", change.added), format!(" −{}", change.removed));
        let room = context.measure.saturating_sub(4 + width(&added) + width(&removed));
        let mut spans = vec![
            Span::raw("  "),
            Span::styled(mark, style),
            Span::styled(fit(&plain(&change.path), room), theme.fg(theme.text)),
        ];
        if change.added > 0 {
            spans.push(Span::styled(added, theme.fg(theme.added)));
        }
        if change.removed > 0 {
            let gap = if change.added > 0 { "" } else { " " };
            spans.push(Span::styled(format!("{gap}{removed}"), theme.fg(theme.removed)));
        }
        rows.push(Row { gutter: 4, ..Row::text(Line::from(spans)) });
    }
    if !rest.is_empty() {
        let (added, removed) = rest.iter().fold((0, 0), |(a, r), it| (a + it.added, r + it.removed));
        let text = format!("… {} more files  +{added} −{removed}{}", rest.len(), context.more.details);
        rows.push(marked("  ", &text, theme.dim(), context));
    }
    rows
}

/// The diffs.
pub(super) fn diffs(diffs: &[FileDiff], context: &RenderContext<'_>, fold: Fold) -> Vec<Row> {
    let mut rows = Vec::new();
    let most = most(fold, DIFF_PREVIEW);
    let mut more = 0;
    for file in diffs {
        // A note in place of a diff says nothing without the file that it is about.
        if let Some(note) = file.text.strip_prefix('[').and_then(|text| text.trim_end().strip_suffix(']')) {
            rows.push(marked("  ", &format!("{}  {note}", file.path), context.theme.dim(), context));
            continue;
        }
        if diffs.len() > 1 {
            rows.push(marked("  ", &file.path, context.theme.dim(), context));
        }
        let room = most.saturating_sub(rows.len());
        let (lines, left) =
            diff::coloured_rows(&file.text, &context.of_columns(context.columns.saturating_sub(INDENT).min(140)), room);
        rows.extend(indent(lines));
        more += left;
    }
    if more > 0 {
        rows.push(marked("  ", &format!("… {more} more lines{}", context.more.details), context.theme.dim(), context));
    }
    rows
}
