//! What a call would do, as lines.

use pixir_core::event::Plan;
use pixir_core::text::human::human_size;
use ratatui::text::{Line, Span};

use super::diff;
use super::text::{visible, wrap_lines};
use crate::theme::Theme;

/// The lines of a preview: the target in full, then the diff; for several steps also their list.
pub(crate) fn lines(plan: &Plan, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = wrap_lines(&[Span::styled(visible(&plan.target), theme.fg(theme.code))], columns, &[], &[]);
    if let Some(text) = &plan.diff {
        lines.extend(diff::lines(text, columns, theme));
    }
    let step_line = |step: &Plan| {
        let first = [Span::styled(format!("{} ", step.would), theme.fg(theme.tool))];
        let size = match (step.bytes_before, step.bytes) {
            (Some(before), Some(after)) => format!("  {} → {}", human_size(before), human_size(after)),
            (None, Some(after)) => format!("  new, {}", human_size(after)),
            (_, None) => String::new(),
        };
        let target = [Span::styled(visible(&step.target), theme.fg(theme.text)), Span::styled(size, theme.dim())];
        wrap_lines(&target, columns, &first, &[Span::raw("  ")])
    };
    // The list of steps comes before their diffs, because these may be long.
    if plan.steps.len() > 1 {
        lines.extend(plan.steps.iter().flat_map(&step_line));
    }
    for step in &plan.steps {
        if plan.steps.len() == 1 || step.diff.is_some() {
            lines.extend(step_line(step));
        }
        lines.extend(step.diff.iter().flat_map(|text| diff::lines(text, columns, theme)));
    }
    for note in &plan.notes {
        lines.extend(wrap_lines(&[Span::styled(visible(note), theme.dim())], columns, &[], &[]));
    }
    lines
}
