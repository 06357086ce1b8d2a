//! The preview of a call as lines.

use pixir_core::event::Preview;
use pixir_core::text::clean::visible_command;
use pixir_core::text::human::human_size;
use ratatui::text::{Line, Span};

use super::context::RenderContext;
use super::diff;
use super::text::{lines_of, visible, wrap_lines};

/// Diffs of so many lines together need no list of the files before them.
const SHORT: usize = 16;

/// The lines of a preview: the target in full, then the diff; for several steps also their list.
pub(crate) fn lines(preview: &Preview, context: &RenderContext<'_>) -> Vec<Line<'static>> {
    let (columns, theme) = (context.columns, context.theme);
    let of_diff = |text: &str| lines_of(diff::coloured_rows(text, context, usize::MAX).0);
    let mut lines =
        wrap_lines(&[Span::styled(visible_command(&preview.target), theme.fg(theme.code))], columns, &[], &[]);
    if let Some(text) = &preview.diff {
        lines.extend(of_diff(text));
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
        lines.extend(step.diff.iter().flat_map(|text| of_diff(text)));
    }
    for note in &preview.notes {
        lines.extend(wrap_lines(&[Span::styled(visible(note), theme.dim())], columns, &[], &[]));
    }
    lines
}
