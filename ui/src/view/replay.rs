//! The bar of a replay: how far it is, and where the Turns begin.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType};

use crate::render::text::{fit, width};
use crate::state::State;
use crate::terminal::canvas::Canvas;

pub(super) fn draw(state: &mut State, canvas: &mut Canvas, area: Rect) {
    let theme = &state.look.theme;
    let Some(replay) = &mut state.replay else { return };
    let (turn, turns) = replay.turns();
    let when = replay.newest().map_or(String::new(), |entry| entry.ts.strftime(" · %Y-%m-%d %H:%M:%S UTC").to_string());
    let title = format!(" replay · turn {turn} of {turns}{when} ");
    let speed = format!(" {}× ", replay.speed());
    let room = usize::from(area.width.saturating_sub(4));
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(Style::new().fg(theme.border))
        .title_top(Line::styled(fit(&title, room.saturating_sub(width(&speed) + 2)), theme.fg(theme.accent)))
        .title_top(Line::styled(speed, theme.dim()).right_aligned());
    let inner = block.inner(area);
    canvas.render_widget(block, area);
    let sign = if replay.is_playing() { " ▶ " } else { " || " };
    let seq = |entry: Option<&pixir_core::Entry>| entry.map_or("–".to_owned(), |entry| entry.seq.to_string());
    let count = format!(" {} of {} ", seq(replay.newest()), seq(replay.last()));
    let columns = usize::from(inner.width).saturating_sub(width(sign) + width(&count)).max(1);
    let column_of = |at: usize| at * (columns - 1) / replay.len().max(1);
    let here = column_of(replay.shown());
    let mut bar: Vec<char> = (0..columns).map(|at| if at < here { '━' } else { '─' }).collect();
    // The first entry of a column.
    let first = |column: usize| (column * replay.len()).div_ceil((columns - 1).max(1));
    for (column, sign) in bar.iter_mut().enumerate() {
        if replay.begins_in(first(column)..first(column + 1)) {
            *sign = '┿';
        }
    }
    bar[here] = '●';
    let (done, rest): (String, String) = (bar[..=here].iter().collect(), bar[here + 1..].iter().collect());
    let line = Line::from(vec![
        Span::styled(sign, theme.fg(theme.accent)),
        Span::styled(done, theme.fg(theme.accent)),
        Span::styled(rest, theme.dim()),
        Span::styled(count, theme.dim()),
    ]);
    canvas.line(line, inner);
    let x = inner.x + u16::try_from(width(sign)).unwrap_or(0);
    replay.bar = Some(Rect { x, width: u16::try_from(columns).unwrap_or(inner.width), height: 1, ..inner });
}
