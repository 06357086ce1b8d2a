//! The first line of a tool card: what the call does, with what outcome, and how long it took.

use std::time::Duration;

use pixir_core::call_info::{CallInfo, CallKind};
use pixir_core::error::{Code, ErrorKind};
use pixir_core::event::{ChangeKind, ToolResult};
use pixir_core::text::human::human_duration;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::INDENT;
use crate::render::context::{Medium, RenderContext};
use crate::render::figures::plus_minus_spans;
use crate::render::text::{Row, fit, span_width, visible, width};
use crate::transcript::{Tool, WaitsFor};

/// The columns that a target is given before the duration and the user's decision are.
const LEAST_TARGET: usize = 16;

/// `✓ Edit stats.sh         +1 −1  3ms`, and whether that shows the target in full. On the screen the outcomes of all
/// cards begin in the same column, unless a target is too long for that.
pub(super) fn card(cell: &Tool, context: &RenderContext<'_>) -> (Row, bool) {
    let theme = context.theme;
    let call = cell.call();
    let about = call.about();
    let (mark, style) = match cell.result() {
        _ if cell.refused => ("⊘ ", theme.fg(theme.warning)),
        None => match cell.waits {
            Some(WaitsFor::User) => ("? ", theme.fg(theme.warning)),
            Some(WaitsFor::Call) => ("○ ", theme.dim()),
            None => ("● ", theme.fg(theme.accent)),
        },
        Some(result) if is_cut_off(result) => ("■ ", theme.fg(theme.warning)),
        Some(result) if result.ok || is_answer(&about, result) => ("✓ ", theme.fg(theme.success)),
        Some(_) => ("✗ ", theme.fg(theme.error)),
    };
    let verb = verb(cell);
    let target = visible(&target(cell));
    let mut tail = cell.result().filter(|_| !cell.refused).map_or_else(Vec::new, |it| outcome(&about, it, context));
    // What is left out first where there is little room comes last.
    // How long the user took for an answer is no news.
    let took = cell.result().filter(|_| about.kind != CallKind::Ask).map_or(0, |it| it.duration_ms);
    let extras = [
        cell.answer.map(|answer| format!("  {answer}")),
        (took > 0).then(|| format!("  {}", human_duration(Duration::from_millis(took)))),
    ];
    let before = INDENT + width(&verb) + 1;
    let least = width(&target).min(LEAST_TARGET);
    for extra in extras.into_iter().flatten() {
        if before + least + span_width(&tail) + width(&extra) <= context.measure {
            tail.push(Span::styled(extra, theme.dim()));
        }
    }
    let room = context.measure.saturating_sub(before + span_width(&tail));
    let shown = fit(&target, room);
    let end = before + width(&shown);
    let gap = match context.medium {
        Medium::Screen | Medium::BesidePanel | Medium::History if !tail.is_empty() => {
            let column = INDENT + context.measure * 2 / 5;
            column.saturating_sub(end + 2).min(room.saturating_sub(width(&shown)))
        }
        Medium::Screen | Medium::BesidePanel | Medium::History | Medium::Reader => 0,
    };
    let mut spans = vec![
        Span::styled(mark, style),
        Span::styled(verb, theme.fg(if cell.is_by_user() { theme.user } else { theme.tool })),
        Span::raw(" "),
        Span::styled(shown, theme.fg(theme.text)),
    ];
    if gap > 0 {
        spans.push(Span::raw(" ".repeat(gap)));
    }
    spans.extend(tail);
    (Row { gutter: width(mark), ..Row::text(Line::from(spans)) }, width(&target) <= room)
}

/// A search that finds nothing has answered, although it exits with 1 as grep does.
pub(crate) fn is_answer(about: &CallInfo, result: &ToolResult) -> bool {
    about.kind == CallKind::Search && result.error.is_none() && result.outcome.is_some()
}

/// Whether the call failed, and not with "no match" or an interrupt.
pub(crate) fn has_failed(about: &CallInfo, result: &ToolResult) -> bool {
    !result.ok && !is_answer(about, result) && !is_cut_off(result)
}

/// The Turn ended before the call did, by the user or with the process.
fn is_cut_off(result: &ToolResult) -> bool {
    result.error.as_ref().is_some_and(|error| error.code == Code::OrphanToolCall.name())
}

/// What came of the call, from its result alone: changed lines, counts, an exit code.
fn outcome(about: &CallInfo, result: &ToolResult, context: &RenderContext<'_>) -> Vec<Span<'static>> {
    let theme = context.theme;
    let mut parts: Vec<Span<'static>> = Vec::new();
    let mut add = |text: String, style: Style| parts.push(Span::styled(format!("  {text}"), style));
    let failed = theme.fg(theme.error);
    if let Some(words) = &result.outcome {
        add(visible(words), if has_failed(about, result) { failed } else { theme.dim() });
    }
    let code = result.exit_code.filter(|code| *code != 0 && about.kind == CallKind::Execute);
    match (&result.error, code) {
        (Some(error), _) if error.kind == ErrorKind::Timeout => add("timed out".to_owned(), failed),
        (_, Some(code)) => add(format!("exit {code}"), failed),
        (Some(error), None) if error.kind == ErrorKind::NotFound => add("not found".to_owned(), failed),
        (Some(_), None) if is_cut_off(result) => add("interrupted".to_owned(), theme.fg(theme.warning)),
        (Some(error), None) if error.code == Code::SkippedForSteer.name() => add("skipped".to_owned(), theme.dim()),
        (Some(_), None) => add("failed".to_owned(), failed),
        (None, None) => {}
    }
    let (added, removed) = result.changes.iter().fold((0, 0), |(a, r), it| (a + it.added, r + it.removed));
    if let ([one], CallKind::Edit) = (result.changes.as_slice(), about.kind)
        && one.kind == ChangeKind::Created
        && one.moved_from.is_none()
    {
        add("new".to_owned(), theme.fg(theme.added));
    }
    if result.changes.len() > 1 {
        add(format!("{} files", result.changes.len()), theme.dim());
    }
    parts.extend(plus_minus_spans("  ", (added, removed), theme));
    if result.preview.is_some() {
        parts.push(Span::styled("  dry run", theme.fg(theme.warning)));
    }
    parts
}

/// The word before the target: what a user typed to run the command, else what the call does.
pub(crate) fn verb(cell: &Tool) -> String {
    let call = cell.call();
    if cell.is_by_user() { call.name.clone() } else { call.about().label(&call.name) }
}

/// The target of the call, on one line.
pub(crate) fn target(cell: &Tool) -> String {
    cell.call().about().target.replace('\n', " ⏎ ")
}
