//! The card of a run of a workflow: how far it is, what it has cost, and the steps that the user should know of.

use pixir_core::event::{Cost, StepOutcome};
use pixir_core::text::human::human_duration;
use pixir_core::{RunView, StepView};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use std::time::Duration;

use super::marked;
use crate::render::context::{Medium, RenderContext};
use crate::render::text::{Row, fit, visible, width};
use crate::theme::Theme;
use crate::transcript::cell::WorkflowCard;

/// The cells of the bar.
const BAR: usize = 16;
/// The most steps that the card names on the screen; the list of steps has the others.
const MAX_NAMED: usize = 6;

/// The rows of the card.
pub(super) fn rows(card: &WorkflowCard, context: &RenderContext<'_>) -> Vec<Row> {
    let theme = context.theme;
    let mut rows = vec![marked("◇ ", &title(card), theme.fg(theme.tool), context)];
    let mut cost = Cost::default();
    card.view.steps.iter().filter_map(|it| it.ended.as_ref()).for_each(|it| cost += it.cost);
    let most = card.view.planned.as_ref().and_then(|it| it.most_cost);
    let most = most.map(|usd| Cost { usd, ..Cost::default() }.to_string()).filter(|it| !it.is_empty());
    let most = most.map(|most| format!("at most {most}"));
    for line in progress(&card.view, cost, most, context.measure.saturating_sub(2), theme) {
        let mut row = Row::text(line);
        row.indent(2);
        rows.push(row);
    }
    let is_printed = matches!(context.medium, Medium::History | Medium::Reader);
    for (mark, text, style) in lines(&card.view, is_printed, theme) {
        let mut row = marked(mark, &text, style, &context.inset(2));
        row.indent(2);
        rows.push(row);
    }
    rows
}

fn title(card: &WorkflowCard) -> String {
    let name = card.view.planned.as_ref().map_or("", |it| it.name.as_str());
    let goes_on = if card.goes_on { " goes on" } else { "" };
    let steps = card.view.planned.as_ref().and_then(|it| it.graph["steps"].as_array()).map_or(0, Vec::len);
    let steps = if steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") };
    format!("workflow {}{goes_on} · {steps}", one_line(name))
}

/// The bar with its counts: `████░░░░  5 of 8 · 1 waits · 2 failed · $0.12`. Counts that do not fit beside it go on below.
pub(crate) fn progress(
    view: &RunView,
    cost: Cost,
    most: Option<String>,
    columns: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let all = view.count(|_| true);
    let count = |wanted: fn(StepOutcome) -> bool| view.count(|it| it.outcome.is_some_and(wanted));
    let done = count(StepOutcome::is_done);
    let mut told = vec![format!("{done} of {all}")];
    let counts = [
        (view.count(|it| it.since.is_some()), "runs", "run"),
        (count(|it| it == StepOutcome::Waiting), "waits", "wait"),
        (count(StepOutcome::is_failure), "failed", "failed"),
        (count(|it| it == StepOutcome::Interrupted), "interrupted", "interrupted"),
        (count(|it| it == StepOutcome::Held), "held", "held"),
    ];
    for (n, one, more) in counts.into_iter().filter(|(n, ..)| *n > 0) {
        told.push(format!("{n} {}", if n == 1 { one } else { more }));
    }
    let cost = cost.to_string();
    told.extend((!cost.is_empty()).then_some(cost));
    told.extend(most);
    let filled = (done * BAR).checked_div(all).unwrap_or(0);
    let room = columns.saturating_sub(BAR + 2);
    let mut counts: Vec<String> = Vec::new();
    for count in told {
        match counts.last_mut() {
            Some(line) if width(line) + width(&count) + 3 <= room => line.push_str(&format!(" · {count}")),
            Some(_) | None => counts.push(count),
        }
    }
    let bar = [
        Span::styled("▰".repeat(filled), theme.fg(theme.success)),
        Span::styled("▱".repeat(BAR - filled), theme.fg(theme.border)),
    ];
    let line = |(n, counts): (usize, String)| {
        let beside = if n == 0 { bar.to_vec() } else { vec![Span::raw(" ".repeat(BAR))] };
        let counts = Span::styled(fit(&format!("  {counts}"), room + 2), theme.fg(theme.text));
        Line::from_iter(beside.into_iter().chain([counts]))
    };
    counts.into_iter().enumerate().map(line).collect()
}

/// The steps that the card names. What is printed once names all; on the screen those that are done are a part of the bar.
fn lines(view: &RunView, is_printed: bool, theme: &Theme) -> Vec<(&'static str, String, Style)> {
    let is_named = |step: &&StepView| match step.outcome {
        Some(StepOutcome::Completed) => is_printed || step.kind == "gate",
        Some(StepOutcome::Skipped | StepOutcome::Held) => is_printed,
        Some(_) => true,
        None => step.since.is_some(),
    };
    let all: Vec<&StepView> = view.leaves().filter(is_named).collect();
    let shown = if is_printed || all.len() <= MAX_NAMED { all.len() } else { MAX_NAMED - 1 };
    let mut lines: Vec<_> = all.iter().take(shown).map(|step| line(step, theme)).collect();
    if all.len() > shown {
        lines.push(("… ", format!("{} more steps", all.len() - shown), theme.dim()));
    }
    lines
}

fn line(step: &StepView, theme: &Theme) -> (&'static str, String, Style) {
    let id = one_line(&step.id);
    let Some(outcome) = step.outcome else { return ("● ", format!("{id} runs"), theme.fg(theme.accent)) };
    let ended = step.ended.as_ref();
    let why = match (&step.held, ended) {
        (Some(held), _) => one_line(&held.why),
        (None, Some(ended)) => match (&ended.error, step.kind.as_str()) {
            (Some(error), _) => one_line(&error.message),
            (None, "gate") => ended.output.as_str().map(one_line).unwrap_or_default(),
            (None, _) => human_duration(Duration::from_millis(ended.duration_ms)),
        },
        (None, None) => String::new(),
    };
    let why = if why.is_empty() { String::new() } else { format!(" · {why}") };
    (mark(outcome), format!("{id} {}{why}", word(outcome)), style(outcome, theme))
}

fn one_line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The text of the card, for a search.
pub(crate) fn text(card: &WorkflowCard) -> String {
    let names = card.view.steps.iter().map(|step| step.id.as_str());
    std::iter::once(title(card).as_str()).chain(names).collect::<Vec<_>>().join("\n")
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

fn style(status: StepOutcome, theme: &Theme) -> Style {
    match status {
        StepOutcome::Completed => theme.fg(theme.text),
        StepOutcome::Skipped | StepOutcome::Held => theme.dim(),
        StepOutcome::Waiting => theme.fg(theme.warning),
        StepOutcome::Failed | StepOutcome::TimedOut | StepOutcome::Interrupted | StepOutcome::Incomplete => {
            theme.fg(theme.error)
        }
    }
}
