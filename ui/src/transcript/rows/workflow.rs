//! What happens in a run of a workflow, as rows: a line where it begins, and one for each step that has ended or waits.

use pixir_core::event::{StepOutcome, WorkflowEvent};
use pixir_core::text::human::human_duration;
use ratatui::style::Style;
use std::time::Duration;

use super::marked;
use crate::render::context::RenderContext;
use crate::render::text::{Row, plain};

/// The rows of an event; none where the next event of the step says it all.
pub(super) fn rows(event: &WorkflowEvent, context: &RenderContext<'_>) -> Vec<Row> {
    let theme = context.theme;
    match event {
        WorkflowEvent::Planned(it) => {
            let steps = it.graph["steps"].as_array().map_or(0, Vec::len);
            let text = format!("workflow {} · {steps} steps", plain(&it.name));
            vec![marked("◇ ", &text, theme.fg(theme.tool), context)]
        }
        WorkflowEvent::Resumed(_) => vec![marked("◇ ", "the workflow goes on", theme.fg(theme.tool), context)],
        WorkflowEvent::StepStarted(_) => Vec::new(),
        WorkflowEvent::StepEnded(it) => {
            let took = human_duration(Duration::from_millis(it.duration_ms));
            let why = it.error.as_ref().map_or(String::new(), |error| format!(" · {}", plain(&error.message)));
            let text = format!("{} {} · {took}{why}", plain(&it.id), word(it.status));
            vec![marked(mark(it.status), &text, style(it.status, context), context)]
        }
        WorkflowEvent::GateAnswered { id, choice, .. } => {
            let text = format!("{} · {}", plain(id), plain(choice));
            vec![marked("• ", &text, theme.fg(theme.text), context)]
        }
        WorkflowEvent::Held(it) => {
            let text = format!("{} {} · {}", plain(&it.id), word(it.status), plain(&it.why));
            vec![marked(mark(it.status), &text, style(it.status, context), context)]
        }
    }
}

/// Whether an event has rows.
pub(crate) fn has_rows(event: &WorkflowEvent) -> bool {
    match event {
        WorkflowEvent::StepStarted(_) => false,
        WorkflowEvent::Planned(_)
        | WorkflowEvent::Resumed(_)
        | WorkflowEvent::StepEnded(_)
        | WorkflowEvent::GateAnswered { .. }
        | WorkflowEvent::Held(_) => true,
    }
}

/// How a step ended, in words.
pub(crate) fn word(status: StepOutcome) -> &'static str {
    match status {
        StepOutcome::TimedOut => "timed out",
        StepOutcome::Completed
        | StepOutcome::Failed
        | StepOutcome::Interrupted
        | StepOutcome::Incomplete
        | StepOutcome::Held
        | StepOutcome::Skipped
        | StepOutcome::Waiting => status.name(),
    }
}

/// The glyph of a step that ended so.
pub(crate) fn mark(status: StepOutcome) -> &'static str {
    match status {
        StepOutcome::Completed => "✓ ",
        StepOutcome::Skipped => "– ",
        StepOutcome::Waiting => "? ",
        StepOutcome::Held => "‖ ",
        StepOutcome::Failed | StepOutcome::TimedOut | StepOutcome::Interrupted | StepOutcome::Incomplete => "✗ ",
    }
}

fn style(status: StepOutcome, context: &RenderContext<'_>) -> Style {
    let theme = context.theme;
    match status {
        StepOutcome::Completed => theme.fg(theme.text),
        StepOutcome::Skipped | StepOutcome::Held => theme.dim(),
        StepOutcome::Waiting => theme.fg(theme.warning),
        StepOutcome::Failed | StepOutcome::TimedOut | StepOutcome::Interrupted | StepOutcome::Incomplete => {
            theme.fg(theme.error)
        }
    }
}
