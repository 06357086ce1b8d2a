//! The frame and the place of a dialog.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType};

use crate::render::text::{visible, width, wrap_lines};
use crate::terminal::canvas::Canvas;
use crate::theme::Theme;

/// The most rows of a note.
const MOST_NOTE: u16 = 3;

/// Clears an area and draws a frame with a title above and key hints below. Returns the area inside, without the rows of
/// the canvas's note.
pub(crate) fn panel(canvas: &mut Canvas, area: Rect, title: &str, keys: &str, theme: &Theme) -> Rect {
    let inner = framed(canvas, area, title, keys, theme);
    let Some(note) = canvas.note.take() else { return inner };
    let style = theme.fg(theme.error);
    let text = [Span::styled(visible(&note), style)];
    let first = [Span::styled("✗ ", style)];
    let lines = wrap_lines(&text, usize::from(inner.width).max(4), &first, &[Span::raw("  ")]);
    let rows = u16::try_from(lines.len()).unwrap_or(MOST_NOTE).min(MOST_NOTE).min(inner.height);
    let top = inner.bottom() - rows;
    for (y, line) in (top..inner.bottom()).zip(lines) {
        canvas.line(line, Rect { y, height: 1, ..inner });
    }
    Rect { height: inner.height - rows, ..inner }
}

fn framed(canvas: &mut Canvas, area: Rect, title: &str, keys: &str, theme: &Theme) -> Rect {
    if canvas.is_bare {
        let inner = inside(canvas, area);
        // A screen reader reads whole rows, so nothing may stand beside a dialog.
        let area = Rect { x: 0, width: canvas.area().width, ..area };
        let keys = fitting_hints(keys, usize::from(area.width));
        canvas.fill(area, theme.base());
        canvas.line(Line::styled(title.to_owned(), theme.bold()), Rect { height: area.height.min(1), ..area });
        let last = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
        canvas.line(Line::styled(keys, theme.dim()), last);
        return inner;
    }
    let inner = inside(canvas, area);
    let keys = fitting_hints(keys, usize::from(area.width).saturating_sub(4));
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(theme.fg(theme.accent))
        .style(theme.base())
        .title(Line::styled(format!(" {title} "), theme.bold()))
        .title_bottom(Line::styled(format!(" {keys} "), theme.dim()));
    canvas.fill(area, theme.base());
    canvas.render_widget(block, area);
    inner
}

/// The area inside the frame that [`panel`] draws around this one.
pub(crate) fn inside(canvas: &Canvas, area: Rect) -> Rect {
    if canvas.is_bare {
        let area = Rect { x: 0, width: canvas.area().width, ..area };
        return Rect { y: area.y + 1.min(area.height), height: area.height.saturating_sub(2), ..area };
    }
    let inner = Block::bordered().inner(area);
    Rect {
        x: inner.x + u16::from(inner.width > 2),
        width: inner.width.saturating_sub(2).max(u16::from(inner.width > 0)),
        ..inner
    }
}

/// As many of the hints as fit. The hints that the user needs most come first.
fn fitting_hints(keys: &str, columns: usize) -> String {
    let mut fitting = String::new();
    for item in keys.split(" · ") {
        let gap = if fitting.is_empty() { "" } else { " · " };
        if width(&fitting) + width(gap) + width(item) > columns {
            break;
        }
        fitting.push_str(gap);
        fitting.push_str(item);
    }
    fitting
}

/// The rows of a composer with one line, which end the area of the overlays.
const COMPOSER: u16 = 3;
/// From this height on there is room for a dialog above the composer.
const HIGH: u16 = 26;

/// The columns of a dialog that is a short list.
pub(crate) const SMALL: u16 = 68;

/// The place of a dialog that belongs to the card of an approval: at the end of the area, where the card is.
pub(crate) fn docked(area: Rect, height: u16) -> Rect {
    let height = height.min(area.height);
    Rect { y: area.bottom() - height, height, ..area }
}

/// The place of a dialog of at most this size: in the middle, in the upper third. Its size must not depend on how much a
/// list shows at the moment, so that the dialog stands still while the user types.
pub(crate) fn dialog(area: Rect, width: u16, height: u16) -> Rect {
    let room = if width < area.width && area.height >= HIGH { area.height - COMPOSER } else { area.height };
    let (width, height) = (width.min(area.width), height.min(room));
    let y = area.y + (room - height) / 3;
    // A dialog covers the frame of the composer as a whole or not at all: a part of it would look like a stray line.
    let bottom = if y + height + COMPOSER > area.bottom() { area.bottom() } else { y + height };
    Rect { x: area.x + (area.width - width) / 2, y, width, height: bottom - y }
}
