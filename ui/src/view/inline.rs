//! The same without a screen of its own: what is settled, to be printed once, and what is still open.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::transcript::{draw_row, welcome_lines};
use super::{Foot, draw_completions};
use crate::canvas::Canvas;
use crate::render::text::Row;
use crate::state::{Announced, Connection, State};

/// About so many rows are printed in one frame.
const MOST: usize = 4_000;

/// Draws what is new and settled, or all that is new, on one canvas, and what is open on the other; each is as high as it
/// has to be. False when there is more to be printed.
pub(crate) fn draw(state: &mut State, [settled, open]: [&mut Canvas; 2], columns: u16, rows: u16, all: bool) -> bool {
    let text = Style { bg: None, ..state.theme.base() };
    let whole = Rect { x: 0, y: 0, width: columns, height: rows };
    state.transcript_area = whole;
    state.side_area = None;
    // Whoever reads back does so on a screen of its own, from the end.
    state.viewport.leave(usize::from(rows.saturating_sub(6)));
    let mut foot = Foot::measure(state, whole);
    let room = usize::from(rows.saturating_sub(foot.rows() + 1));
    let mut printed: Vec<Row> = Vec::new();
    let told = begin(state, room, columns, &mut printed);
    // Whoever listens hears an answer once, when it is there.
    let settled_until = || state.transcript.settled_until(told, state.is_busy(), !state.is_read_aloud);
    let end = if all { state.transcript.len() } else { settled_until() };
    let mut until = told;
    while until < end && printed.len() < MOST {
        printed.extend(state.rows_of(until).iter().cloned());
        until += 1;
    }
    if !(state.told.is_none() && printed.is_empty()) {
        state.told = Some(until);
    }
    if let (true, Some(turn)) = (state.is_read_aloud, state.busy_since) {
        let rows = foot.rows();
        let moves = |it: &Announced| it.turn == turn && (it.has_moved || it.rows != rows || !printed.is_empty());
        let has_moved = state.announced.as_ref().is_some_and(moves);
        state.announced = Some(Announced { turn, rows, has_moved });
    }
    // What was seen of the conversation that was left stands before it.
    printed.splice(0..0, std::mem::take(&mut state.left_over));
    settled.begin(columns, u16::try_from(printed.len()).unwrap_or(u16::MAX));
    settled.tint(settled.area(), text);
    for (row, y) in printed.iter().zip(0..) {
        draw_row(row, settled, Rect { x: 1, y, width: columns.saturating_sub(3), height: 1 });
    }
    let growing = end_of(state, until, room);
    let offered = state.composer.completions().len().min(8);
    // A row parts it from the line.
    let shown = (growing.len() + 1).max(offered).min(room);
    let hidden = (growing.len() + 1).saturating_sub(shown);
    let above = u16::try_from(shown).unwrap_or(0);
    open.begin(columns, above + foot.rows());
    open.tint(open.area(), text);
    for (row, y) in growing[hidden.min(growing.len())..].iter().zip(0..) {
        draw_row(row, open, Rect { x: 1, y, width: columns.saturating_sub(3), height: 1 });
    }
    foot.move_to(above);
    foot.draw(state, open);
    draw_completions(state, open, foot.composer);
    state.layer_since = None;
    until == end
}

/// The last rows of what is open, about as many as there is room for.
fn end_of(state: &mut State, from: usize, room: usize) -> Vec<Row> {
    let end = state.transcript.len();
    // What keeps the first of it open is looked for when it is laid out.
    if from < end {
        state.rows_of(from);
    }
    // Whoever listens hears an answer once, when it is there.
    if state.is_read_aloud {
        return Vec::new();
    }
    let (mut cells, mut rows) = (Vec::new(), 0);
    for at in (from..end).rev() {
        cells.push(state.rows_of(at));
        rows += cells.last().map_or(0, |it| it.len());
        if rows >= room {
            break;
        }
    }
    let skipped = rows.saturating_sub(room);
    cells.iter().rev().flat_map(|cell| cell.iter()).skip(skipped).cloned().collect()
}

/// Where printing goes on. After another conversation was opened, with what a screen shows of it.
fn begin(state: &mut State, rows: usize, columns: u16, printed: &mut Vec<Row>) -> usize {
    if let Some(told) = state.told {
        return told.min(state.transcript.len());
    }
    if state.transcript.is_empty() {
        let lines = welcome_lines(
            &state.connection,
            usize::from(columns.saturating_sub(4)),
            &state.theme,
            &state.more.remedies,
        );
        // It is said once, when it is known, and where a conversation begins.
        if state.session.is_some() || matches!(state.connection, Connection::Failed(_)) {
            printed.extend(lines.into_iter().map(Row::text));
            printed.push(Row::default());
            state.told = Some(0);
        }
        return 0;
    }
    let (mut from, mut height) = (state.transcript.len(), 0);
    while from > 0 && height < rows {
        from -= 1;
        height += state.rows_of(from).len();
    }
    if from > 0 {
        let what = if from == 1 { "1 entry".to_owned() } else { format!("{from} entries") };
        let text = format!("… {what} before{}", state.keymap.and_hints(&[("page-up", "shows more")]));
        printed.push(Row::text(Line::styled(text, state.theme.dim())));
    }
    from
}
