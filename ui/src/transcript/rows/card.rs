//! The first line of a tool card: what it is about, how it ended, how long it took.

use pixir_core::text::human::human_duration;
use ratatui::text::{Line, Span};

use super::INDENT;
use crate::render::context::RenderContext;
use crate::render::text::{Row, fit, span_width, visible, width};
use crate::transcript::{Tool, WaitsFor};

/// `✓ edit stats.sh  +1 −1  3ms`, and whether that shows the target in full.
pub(super) fn card(cell: &Tool, context: &RenderContext<'_>) -> (Row, bool) {
    let theme = context.theme;
    let (mark, style) = match cell.result() {
        _ if cell.refused => ("⊘ ", theme.fg(theme.warning)),
        None => match cell.waits {
            Some(WaitsFor::User) => ("? ", theme.fg(theme.warning)),
            Some(WaitsFor::Call) => ("○ ", theme.dim()),
            None => ("● ", theme.fg(theme.accent)),
        },
        Some(result) if result.ok => ("✓ ", theme.fg(theme.success)),
        Some(_) => ("✗ ", theme.fg(theme.error)),
    };
    let mut tail: Vec<Span<'static>> = Vec::new();
    if let Some(answer) = cell.answer {
        tail.push(Span::styled(format!("  {answer}"), theme.dim()));
    }
    if let Some(result) = cell.result() {
        let (added, removed) = result.changes.iter().fold((0, 0), |(a, r), c| (a + c.added, r + c.removed));
        if added + removed > 0 {
            tail.push(Span::styled(format!("  +{added}"), theme.fg(theme.added)));
            tail.push(Span::styled(format!(" −{removed}"), theme.fg(theme.removed)));
        }
        if cell.is_command() && result.exit_code.is_some_and(|code| code != 0) {
            tail.push(Span::styled(format!("  exit {}", result.exit_code.unwrap_or_default()), theme.fg(theme.error)));
        }
        if result.preview.is_some() {
            tail.push(Span::styled("  dry run", theme.fg(theme.warning)));
        }
        let took = human_duration(std::time::Duration::from_millis(result.duration_ms));
        if result.duration_ms > 0 {
            tail.push(Span::styled(format!("  {took}"), theme.dim()));
        }
    }
    let name = &cell.call().name;
    let target = visible(&target(cell));
    let room = context.measure.saturating_sub(INDENT + width(name) + 1 + span_width(&tail));
    let mut spans = vec![
        Span::styled(mark, style),
        Span::styled(name.clone(), theme.fg(if cell.is_by_user() { theme.user } else { theme.tool })),
        Span::raw(" "),
        Span::styled(fit(&target, room), theme.fg(theme.text)),
    ];
    spans.extend(tail);
    (Row { gutter: width(mark), ..Row::text(Line::from(spans)) }, width(&target) <= room)
}

/// The target of the call, on one line, as it follows the tool's name: `bash run.sh`, not `bash bash run.sh`.
pub(crate) fn target(cell: &Tool) -> String {
    let target = cell.call().about().target.replace('\n', " ⏎ ");
    let rest = target.strip_prefix(cell.call().name.as_str()).and_then(|it| it.strip_prefix(' '));
    rest.map_or_else(|| target.clone(), str::to_owned)
}
