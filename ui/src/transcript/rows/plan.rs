//! The model's plan: in full when its steps are new, and one line for progress.

use pixir_core::event::{PlanItem, StepStatus};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::marked;
use crate::render::context::{Medium, RenderContext};
use crate::render::text::{Row, fit, plain, span_width, wrap};

/// How much of the plan a cell shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// A plan with the same steps stands above.
    Progress,
}

pub(super) fn rows(items: &[PlanItem], extent: Extent, context: &RenderContext<'_>) -> Vec<Row> {
    let theme = context.theme;
    let done = items.iter().filter(|i| i.status == StepStatus::Completed).count();
    let head = format!("Plan · {done} of {}", items.len());
    // The side panel shows the whole plan.
    if extent == Extent::Whole && context.medium != Medium::BesidePanel {
        let mut rows = vec![marked("▤ ", &head, theme.fg(theme.accent), context)];
        rows.extend(items.iter().flat_map(|item| item_rows(item, context)));
        return rows;
    }
    let mut spans = vec![Span::styled("▤ ", theme.fg(theme.accent)), Span::styled(head, theme.fg(theme.accent))];
    if let Some(item) = items.iter().find(|item| item.status == StepStatus::InProgress) {
        let room = context.measure.saturating_sub(span_width(&spans) + 4);
        spans.push(Span::styled("  ▸ ", theme.dim()));
        spans.push(Span::styled(fit(&plain(&item.step).replace('\n', " "), room), theme.fg(theme.text)));
    }
    vec![Row { gutter: 2, ..Row::text(Line::from(spans)) }]
}

/// One step of a plan.
pub(crate) fn item_rows(item: &PlanItem, context: &RenderContext<'_>) -> Vec<Row> {
    let theme = context.theme;
    let (mark, style) = match item.status {
        StepStatus::Completed => ("✓ ", theme.dim().add_modifier(Modifier::CROSSED_OUT)),
        StepStatus::InProgress => ("▸ ", theme.bold()),
        StepStatus::Pending => ("· ", theme.fg(theme.text)),
    };
    let mark_style = if item.status == StepStatus::Completed { theme.fg(theme.success) } else { theme.dim() };
    let mark = Span::styled(format!("  {mark}"), mark_style);
    wrap(&[Span::styled(plain(&item.step), style)], context.measure, &[mark], &[Span::raw("    ")])
}
