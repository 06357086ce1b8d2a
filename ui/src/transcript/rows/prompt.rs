//! The user's messages, on a soft band across the screen.

use pixir_core::event::{Delivery, UserMessage};
use pixir_core::text::human::human_size;
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;

use super::marked;
use crate::render::context::{Medium, RenderContext};
use crate::render::text::{End, Row, plain, span_width, visible, wrap};

/// A user message, or a part of it. The attached images follow the last part.
pub(super) fn rows(it: &UserMessage, part: std::ops::Range<usize>, context: &RenderContext<'_>) -> Vec<Row> {
    let theme = context.theme;
    let (mark, style) = match it.delivery {
        Delivery::Prompt | Delivery::FollowUp => ("❯ ", theme.fg(theme.user).add_modifier(Modifier::BOLD)),
        Delivery::Steer => ("» ", theme.fg(theme.user)),
    };
    let mark = if part.start == 0 { Span::styled(mark, style) } else { Span::raw("  ") };
    let text = it.text[part.clone()].trim_end_matches('\n');
    let mut rows = wrap(&[Span::styled(plain(text), style)], context.measure, &[mark], &[Span::raw("  ")]);
    if part.end == it.text.len() {
        rows.extend(it.attachments.iter().map(|image| {
            let text = format!("{} · {}", visible(&image.path), human_size(image.bytes));
            marked("  ▣ ", &text, theme.dim(), context)
        }));
    }
    match context.medium {
        Medium::Screen | Medium::BesidePanel => {
            let band = Style::new().bg(theme.panel);
            rows.iter_mut().for_each(|row| lay_on(row, band, context.columns));
        }
        // A band would be made of blanks, which wrap in a narrower terminal.
        Medium::History | Medium::Reader => {}
    }
    rows
}

/// Paints the ground of a row, up to the right edge.
fn lay_on(row: &mut Row, band: Style, columns: usize) {
    for span in &mut row.line.spans {
        span.style = span.style.patch(band);
    }
    let used = span_width(&row.line.spans);
    // A row that ends inside of a word has text up to its end.
    if band.bg != Some(ratatui::style::Color::Reset) && used < columns {
        row.line.spans.push(Span::styled(" ".repeat(columns - used), band));
        row.padding += if row.end == End::Nothing { columns - used } else { 0 };
    }
}
