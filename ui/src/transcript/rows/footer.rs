//! The line that ends a Turn: what it took, and what it changed.

use std::time::Duration;

use pixir_core::event::TurnEnded;
use pixir_core::text::human::{human_count, human_duration};
use ratatui::text::{Line, Span};

use super::INDENT;
use crate::render::context::{Medium, RenderContext};
use crate::render::figures::plus_minus_spans;
use crate::render::text::{Row, span_width};

/// Added and removed lines.
pub(crate) type Lines = (u64, u64);

/// `12s · 6 calls · +3 −1 · 9.1k tokens · $0.03 ──────`
pub(super) fn footer(it: &TurnEnded, (added, removed): Lines, context: &RenderContext<'_>) -> Vec<Row> {
    let theme = context.theme;
    let mut parts: Vec<Vec<Span<'static>>> = Vec::new();
    let mut say = |text: String| parts.push(vec![Span::styled(text, theme.dim())]);
    // A part of a second is no news.
    let took = Duration::from_secs(it.duration_ms / 1000);
    if !took.is_zero() {
        say(human_duration(took));
    }
    match it.tool_calls {
        0 => {}
        1 => say("1 call".to_owned()),
        n => say(format!("{n} calls")),
    }
    if added + removed > 0 {
        parts.push(plus_minus_spans("", (added, removed), theme));
    }
    let tokens = it.usage.input + it.usage.output;
    if tokens > 0 {
        parts.push(vec![Span::styled(format!("{} tokens", human_count(tokens)), theme.dim())]);
    }
    let cost = it.cost.to_string();
    if !cost.is_empty() {
        parts.push(vec![Span::styled(cost, theme.dim())]);
    }
    if parts.is_empty() {
        return Vec::new();
    }
    let mut spans = vec![Span::raw(" ".repeat(INDENT))];
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            spans.push(Span::styled(" · ", theme.fg(theme.border)));
        }
        spans.extend(part);
    }
    let free = context.measure.saturating_sub(span_width(&spans) + 1);
    let has_rule = match context.medium {
        Medium::Screen | Medium::BesidePanel => free > 3,
        // In a narrower terminal a rule would wrap.
        Medium::History | Medium::Reader => false,
    };
    if has_rule {
        spans.push(Span::styled(format!(" {}", "─".repeat(free)), theme.fg(theme.border)));
    }
    vec![Row::mark(Line::from(spans))]
}
