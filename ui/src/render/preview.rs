//! The preview of a call as lines.

use std::borrow::Cow;

use pixir_core::event::Preview;
use pixir_core::text::clean::visible_command;
use pixir_core::text::human::human_size;
use ratatui::text::{Line, Span};

use super::context::RenderContext;
use super::diff;
use super::text::{lines_of, visible, wrap_lines};

/// Diffs of so many lines together need no list of the files before them.
const SHORT: usize = 16;

/// How many of the unchanged lines around a change are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unchanged {
    All,
    Some,
    None,
}

/// The target, if it is one short line that can stand in a title.
pub(crate) fn target_in_one_line(preview: &Preview) -> Option<String> {
    let shown = visible_command(&preview.target);
    (!shown.contains('\n')).then_some(shown)
}

/// The lines that a call would add and remove.
pub(crate) fn changed_lines(preview: &Preview) -> (u64, u64) {
    let own = (preview.added.unwrap_or_default(), preview.removed.unwrap_or_default());
    preview.steps.iter().map(changed_lines).fold(own, |(a, r), (added, removed)| (a + added, r + removed))
}

/// The lines of a preview: the target in full, then the diff; for several steps also their list. The target is left out
/// where `is_titled` says that the title has it. Of diffs that have more than about `most` rows, the others are only counted.
pub(crate) fn card(
    preview: &Preview,
    context: &RenderContext<'_>,
    unchanged: Unchanged,
    is_titled: bool,
    most: usize,
) -> (Vec<Line<'static>>, usize) {
    let (columns, theme) = (context.columns, context.theme);
    // A return within the text of a preview is part of the change.
    let put_diff = |text: &str, lines: &mut Vec<Line<'static>>| {
        let text = text.replace("\r\n", "\\r\n");
        let (rows, more) = diff::first_rows(&nearer(&text, unchanged), context, most.saturating_sub(lines.len()));
        lines.extend(lines_of(rows));
        more
    };
    let mut more = 0;
    let mut lines = if is_titled {
        Vec::new()
    } else {
        wrap_lines(&[Span::styled(visible_command(&preview.target), theme.fg(theme.code))], columns, &[], &[])
    };
    if let Some(text) = &preview.diff {
        more += put_diff(text, &mut lines);
    }
    let step_line = |step: &Preview| {
        let first = [Span::styled(format!("{} ", step.would), theme.fg(theme.tool))];
        let size = match (step.bytes_before, step.bytes) {
            (Some(before), Some(after)) => format!("  {} → {}", human_size(before), human_size(after)),
            (None, Some(after)) => format!("  new, {}", human_size(after)),
            (_, None) => String::new(),
        };
        let target =
            [Span::styled(visible_command(&step.target), theme.fg(theme.text)), Span::styled(size, theme.dim())];
        wrap_lines(&target, columns, &first, &[Span::raw("  ")])
    };
    let changed: usize =
        preview.steps.iter().filter_map(|step| step.diff.as_ref()).map(|diff| diff.lines().count()).sum();
    let all_have_diffs = preview.steps.iter().all(|step| step.diff.is_some());
    // The list of steps comes before their diffs where these are long.
    if preview.steps.len() > 1 && (!all_have_diffs || changed > SHORT) {
        lines.extend(preview.steps.iter().flat_map(&step_line));
    }
    for step in &preview.steps {
        if preview.steps.len() == 1 || step.diff.is_some() {
            lines.extend(step_line(step));
        }
        if let Some(text) = &step.diff {
            more += put_diff(text, &mut lines);
        }
    }
    for note in &preview.notes {
        lines.extend(wrap_lines(&[Span::styled(visible(note), theme.dim())], columns, &[], &[]));
    }
    (lines, more)
}

/// A unified diff with fewer unchanged lines around each change. Every changed line stays.
fn nearer(diff: &str, unchanged: Unchanged) -> Cow<'_, str> {
    let around = match unchanged {
        Unchanged::All => return Cow::Borrowed(diff),
        Unchanged::Some => 1,
        Unchanged::None => 0,
    };
    let mut kept = String::new();
    let mut hunk: Vec<&str> = Vec::new();
    let mut starts = (0, 0);
    for line in diff.split_terminator('\n') {
        match line.strip_prefix("@@ ") {
            Some(head) => {
                put_hunk(&mut kept, &hunk, starts, around);
                hunk.clear();
                starts = starts_of(head).unwrap_or((0, 0));
                hunk.push(line);
            }
            None if hunk.is_empty() => {
                kept.push_str(line);
                kept.push('\n');
            }
            None => hunk.push(line),
        }
    }
    put_hunk(&mut kept, &hunk, starts, around);
    Cow::Owned(kept)
}

/// Appends the parts of a hunk that are near a change, each as a hunk of its own.
fn put_hunk(kept: &mut String, hunk: &[&str], (mut old, mut new): (u64, u64), around: usize) {
    let Some((_, lines)) = hunk.split_first() else { return };
    let is_change = |line: &&str| !line.starts_with(' ');
    let mut is_open = false;
    for (at, line) in lines.iter().enumerate() {
        let near = lines[at.saturating_sub(around)..(at + around + 1).min(lines.len())].iter().any(is_change);
        if near && !is_open {
            kept.push_str(&format!("@@ -{old} +{new} @@\n"));
        }
        is_open = near;
        if near {
            kept.push_str(line);
            kept.push('\n');
        }
        old += u64::from(line.starts_with([' ', '-']));
        new += u64::from(line.starts_with([' ', '+']));
    }
}

/// The first line numbers of both sides in `-1,4 +2,5 @@`.
fn starts_of(hunk: &str) -> Option<(u64, u64)> {
    let mut parts = hunk.split(' ');
    let number = |part: &str, sign| part.strip_prefix(sign)?.split(',').next()?.parse().ok();
    Some((number(parts.next()?, '-')?, number(parts.next()?, '+')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_with_fewer_lines_around_keeps_every_change_and_its_number() {
        let diff = "--- a/x\n+++ b/x\n@@ -9,7 +9,8 @@\n a\n b\n-c\n+C\n d\n e\n f\n+g\n h\n";
        assert_eq!(
            nearer(diff, Unchanged::Some),
            "--- a/x\n+++ b/x\n@@ -10 +10 @@\n b\n-c\n+C\n d\n@@ -14 +14 @@\n f\n+g\n h\n"
        );
        assert_eq!(nearer(diff, Unchanged::None), "--- a/x\n+++ b/x\n@@ -11 +11 @@\n-c\n+C\n@@ -15 +15 @@\n+g\n");
        assert_eq!(nearer(diff, Unchanged::All), diff);
    }
}
