//! A list beside its preview, or above it where the dialog is narrow.

use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::terminal::canvas::Canvas;
use crate::theme::Theme;

/// From this width on, the preview is beside the list.
const BESIDE: u16 = 84;
/// From this height on, the preview fits below the list.
const BELOW: u16 = 14;

/// The areas of the list and of the preview, with a line between them. Where the preview is below the list, the list has at most
/// this many rows.
pub(super) fn split_after(canvas: &mut Canvas, inner: Rect, most: u16, theme: &Theme) -> (Rect, Option<Rect>) {
    if inner.width >= BESIDE {
        let list = Rect { width: inner.width / 2, ..inner };
        let rule = Rect { x: list.right() + 1, width: 1, ..inner };
        // A screen reader would read the line.
        let edge = if canvas.is_bare { 0..0 } else { rule.y..rule.bottom() };
        for y in edge {
            canvas.line(Line::styled("│", theme.fg(theme.border)), Rect { y, height: 1, ..rule });
        }
        let x = rule.x + 2;
        return (list, Some(Rect { x, width: inner.right().saturating_sub(x), ..inner }));
    }
    if inner.height >= BELOW {
        let rows = most.clamp(3, inner.height.saturating_sub(inner.height / 3 + 1));
        let list = Rect { height: rows, ..inner };
        let rule = Rect { y: list.bottom(), height: 1, ..inner };
        if !canvas.is_bare {
            canvas.line(Line::styled("─".repeat(usize::from(inner.width)), theme.fg(theme.border)), rule);
        }
        return (list, Some(Rect { y: rule.bottom(), height: inner.bottom() - rule.bottom(), ..inner }));
    }
    (inner, None)
}

/// Draws as many lines as fit.
pub(super) fn draw_lines(canvas: &mut Canvas, area: Rect, lines: impl IntoIterator<Item = Line<'static>>) {
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        canvas.line(line, Rect { y, height: 1, ..area });
    }
}
