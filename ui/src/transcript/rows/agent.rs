//! What an agent reported that no call waited for.

use pixir_core::event::AgentEvent;

use super::{indent, marked};
use crate::render::context::RenderContext;
use crate::render::markdown;
use crate::render::text::Row;

/// The first line of the report; all of it when the cell is open.
pub(super) fn rows(event: &AgentEvent, in_full: bool, context: &RenderContext<'_>) -> Vec<Row> {
    let AgentEvent::Reported { text, .. } = event else { return Vec::new() };
    let theme = context.theme;
    let (head, rest) = text.split_once('\n').unwrap_or((text, ""));
    let mut rows = vec![marked("◇ ", head, theme.fg(theme.tool), context)];
    if in_full {
        rows.extend(indent(markdown::rows(rest, &context.inset(super::INDENT))));
    }
    rows
}
