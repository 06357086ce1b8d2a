//! A run of calls that only read, as one line.

use ratatui::text::{Line, Span};

use crate::render::context::{Medium, RenderContext};
use crate::render::text::{Row, fit, visible, width};
use crate::transcript::runs::ShownRun;

/// The most names in the line.
const MAX_NAMES: usize = 8;

/// `✓ Looked at 4 files, ran 1 search  core.py · lexer.py …  ›`
pub(super) fn line(shown: &ShownRun, context: &RenderContext<'_>) -> Row {
    let theme = context.theme;
    let sentence = shown.looked.sentence();
    let fold = match (context.medium, shown.is_open) {
        (Medium::Screen | Medium::BesidePanel, false) => "  ›",
        (Medium::Screen | Medium::BesidePanel, true) => "  ⌄",
        (Medium::History | Medium::Reader, _) => "",
    };
    let names = shown.looked.names().take(MAX_NAMES).collect::<Vec<_>>().join(" · ");
    let room = context.measure.saturating_sub(2 + width(&sentence) + 2 + width(fold));
    let names = fit(&visible(&names), room);
    let mut spans = vec![Span::styled("✓ ", theme.fg(theme.success)), Span::styled(sentence, theme.fg(theme.tool))];
    if !shown.is_open && width(&names) > 4 {
        spans.push(Span::styled(format!("  {names}"), theme.dim()));
    }
    spans.push(Span::styled(fold, theme.fg(theme.accent)));
    Row { gutter: 2, ..Row::text(Line::from(spans)) }
}
