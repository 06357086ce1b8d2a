//! What a call has changed: diffs, or a list where a command has changed many files.

use pixir_core::changes::FileDiff;
use pixir_core::event::{ChangeKind, FileChange};
use ratatui::text::{Line, Span};

use super::{DIFF_PREVIEW, INDENT, Tool, indent, marked, most};
use crate::render::context::{Fold, RenderContext};
use crate::render::diff;
use crate::render::figures::{plus_minus, plus_minus_spans};
use crate::render::text::{Row, fit, plain, span_width};

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
    // The deletion of a file that was moved is told by the file that it is now.
    let is_moved = |it: &FileChange| changes.iter().any(|other| other.moved_from.as_ref() == Some(&it.path));
    let mut by_size: Vec<&FileChange> =
        changes.iter().filter(|it| it.kind != ChangeKind::Deleted || !is_moved(it)).collect();
    by_size.sort_by_key(|it| std::cmp::Reverse(it.added + it.removed));
    let shown = if by_size.len() <= LISTED + 1 { by_size.len() } else { LISTED };
    let (listed, rest) = by_size.split_at(shown);
    let mut rows: Vec<Row> = Vec::new();
    for change in listed {
        let (mark, style) = match (change.kind, &change.moved_from) {
            (ChangeKind::Created, Some(_)) => ("R ", theme.fg(theme.warning)),
            (ChangeKind::Created, None) => ("A ", theme.fg(theme.added)),
            (ChangeKind::Deleted, _) => ("D ", theme.fg(theme.removed)),
            (ChangeKind::Modified, _) => ("M ", theme.fg(theme.warning)),
        };
        let mut figures = plus_minus_spans("  ", (change.added, change.removed), theme);
        if let (ChangeKind::Modified, Some(old), Some(new)) = (change.kind, change.before_mode, change.after_mode)
            && old != new
        {
            figures.push(Span::styled(format!("  {old:o} → {new:o}"), theme.fg(theme.warning)));
        }
        let path = match &change.moved_from {
            Some(from) => format!("{} → {}", plain(from), plain(&change.path)),
            None => plain(&change.path).into_owned(),
        };
        let room = context.measure.saturating_sub(4 + span_width(&figures));
        let mut spans =
            vec![Span::raw("  "), Span::styled(mark, style), Span::styled(fit(&path, room), theme.fg(theme.text))];
        spans.extend(figures);
        rows.push(Row { gutter: 4, ..Row::text(Line::from(spans)) });
    }
    if !rest.is_empty() {
        let (added, removed) = rest.iter().fold((0, 0), |(a, r), it| (a + it.added, r + it.removed));
        let text = format!("… {} more files  {}{}", rest.len(), plus_minus(added, removed), context.more.details);
        rows.push(marked("  ", &text, theme.dim(), context));
    }
    rows
}

/// The diffs.
pub(super) fn diffs(diffs: &[FileDiff], context: &RenderContext<'_>, fold: Fold) -> Vec<Row> {
    let mut rows = Vec::new();
    // Several files that have no diff are one row: a run of tests leaves compiled files behind.
    let has_diff = |file: &&FileDiff| !file.text.starts_with('[');
    let without: Vec<&str> =
        diffs.iter().filter(|it| !has_diff(it)).map(|it| it.path.rsplit('/').next().unwrap_or(&it.path)).collect();
    let is_one_row = without.len() > 1 && fold != Fold::Full;
    let most = most(fold, DIFF_PREVIEW);
    let mut more = 0;
    for file in diffs.iter().filter(|it| !is_one_row || has_diff(it)) {
        let path = match &file.from {
            Some(from) => format!("{from} → {}", file.path),
            None => file.path.clone(),
        };
        // A note in place of a diff says nothing without the file that it is about.
        if let Some(note) = file.text.strip_prefix('[').and_then(|text| text.trim_end().strip_suffix(']')) {
            rows.push(marked("  ", &format!("{path}  {note}"), context.theme.dim(), context));
            continue;
        }
        if diffs.len() > 1 || file.from.is_some() {
            rows.push(marked("  ", &path, context.theme.dim(), context));
        }
        let room = most.saturating_sub(rows.len());
        let (lines, left) =
            diff::first_rows(&file.text, &context.of_columns(context.columns.saturating_sub(INDENT).min(140)), room);
        rows.extend(indent(lines));
        more += left;
    }
    if is_one_row {
        let text = format!("{} files without a diff  {}", without.len(), without.join(" · "));
        let room = context.measure.saturating_sub(4);
        rows.push(marked("  ", &fit(&plain(&text), room), context.theme.dim(), context));
    }
    if more > 0 {
        rows.push(marked("  ", &format!("… {more} more lines{}", context.more.details), context.theme.dim(), context));
    }
    rows
}
