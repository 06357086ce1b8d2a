//! Inline mode: finished cells, printed once into the terminal's history, and below them what can still change.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::{Foot, completions, welcome};
use crate::input::action::Action;
use crate::overlay::View;
use crate::render::text::Row;
use crate::state::{Announced, Connection, State, text_columns};
use crate::terminal::Extent;
use crate::terminal::canvas::Canvas;
use crate::transcript::Answers;

/// About how many rows are printed at a time.
const MAX_PRINTED: usize = 400;
/// The welcome is printed whole, however low the screen is.
const WELCOME: usize = 40;

/// Draws the new cells that are to be printed on one canvas, and everything that can still change on the other. Each
/// canvas gets the height that it needs. False when more is left to print.
pub(super) fn draw(
    state: &mut State,
    [settled, open]: [&mut Canvas; 2],
    (columns, rows): (u16, u16),
    extent: Extent,
) -> bool {
    let text = Style { bg: None, ..state.look.theme.base() };
    let whole = Rect { x: 0, y: 0, width: columns, height: rows };
    state.layout.transcript = whole;
    state.layout.side = None;
    // Scrolling back switches to the whole screen, and begins at the end.
    state.viewport.leave(usize::from(rows.saturating_sub(6)));
    let mut foot = Foot::measure(state, whole);
    let room = usize::from(rows.saturating_sub(foot.rows() + 1));
    let mut printed: Vec<Row> = Vec::new();
    let begun = begin(state, room, columns, &mut printed);
    // A screen reader gets an answer as a whole, because it would read each part again as the answer grows.
    let answers = if state.look.screen_reader { Answers::Whole } else { Answers::InParts };
    let end = match extent {
        Extent::All => state.transcript.len(),
        Extent::Settled => state.transcript.settled_until(begun, state.session.status, answers),
    };
    let mut until = begun;
    while until < end && printed.len() < MAX_PRINTED {
        let rows = state.rows_of(until);
        // Printed rows never change, so code waits for its colours.
        if extent == Extent::Settled && state.transcript.is_short_of_colours(until) {
            break;
        }
        printed.extend(rows.iter().cloned());
        // Printed rows are not drawn again, so they need not stay in memory.
        state.transcript.changed(until);
        until += 1;
    }
    let end = if extent == Extent::Settled && printed.len() < MAX_PRINTED { until } else { end };
    if !(state.printing.printed.is_none() && printed.is_empty()) {
        state.printing.printed = Some(until);
    }
    if let (true, Some(turn)) = (state.look.screen_reader, state.activity.busy_since) {
        let rows = foot.rows();
        let moves = |it: &Announced| it.turn == turn && (it.has_moved || it.rows != rows || !printed.is_empty());
        let has_moved = state.printing.announced.as_ref().is_some_and(moves);
        state.printing.announced = Some(Announced { turn, rows, has_moved });
    }
    if until == end {
        printed.extend(read_out(state, columns));
    }
    // Rows of the Session that the user has left come first.
    printed.splice(0..0, std::mem::take(&mut state.printing.left_over));
    settled.begin((columns, u16::try_from(printed.len()).unwrap_or(u16::MAX)), text);
    for (row, y) in printed.iter().zip(0..) {
        row.draw(settled, Rect { x: 1, y, width: columns.saturating_sub(3), height: 1 });
    }
    let growing = end_of(state, until, room);
    let offered = completions::height(state.composer.completions(state.uses.counts()).len());
    // One empty row separates it from the composer.
    let shown = (growing.len() + 1).max(offered).min(room);
    let hidden = (growing.len() + 1).saturating_sub(shown);
    let above = u16::try_from(shown).unwrap_or(0);
    open.begin((columns, above + foot.rows()), text);
    for (row, y) in growing[hidden.min(growing.len())..].iter().zip(0..) {
        row.draw(open, Rect { x: 1, y, width: columns.saturating_sub(3), height: 1 });
    }
    foot.move_to(above);
    foot.draw(state, open);
    completions::draw(state, open, foot.composer);
    state.overlays_drawn();
    until == end
}

/// The rows of a question that a screen reader has not read yet.
fn read_out(state: &mut State, columns: u16) -> Vec<Row> {
    let Some(form) = state.read_out_form() else {
        state.printing.question = None;
        return Vec::new();
    };
    let (lines, at) = form.as_lines(text_columns(Rect { width: columns, ..Rect::default() }), &state.look.theme);
    let question = form.call_id().map(|it| (it.to_owned(), at));
    if state.printing.question == question {
        return Vec::new();
    }
    state.printing.question = question;
    lines.into_iter().map(Row::text).collect()
}

/// The last rows of the cells that can still change, about as many as there is room for.
fn end_of(state: &mut State, from: usize, room: usize) -> Vec<Row> {
    let end = state.transcript.len();
    // Laying out the first cell requests the diff that it may be waiting for. Without it the cell would never settle.
    if from < end {
        state.rows_of(from);
    }
    if state.look.screen_reader {
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

/// The first cell that is not printed. For a conversation that has just opened, one screen of it is printed.
fn begin(state: &mut State, rows: usize, columns: u16, printed: &mut Vec<Row>) -> usize {
    if let Some(printed) = state.printing.printed {
        return printed.min(state.transcript.len());
    }
    if state.transcript.is_empty() {
        let lines = welcome::lines(state, usize::from(columns.saturating_sub(4)), rows.max(WELCOME));
        // The welcome is printed once, when the connection is known.
        if state.session.id.is_some() || matches!(state.session.connection, Connection::Failed(_)) {
            printed.extend(lines.into_iter().map(Row::text));
            printed.push(Row::default());
            state.printing.printed = Some(0);
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
        let text = format!("… {what} before{}", state.keys.map.and_hints(&[(Action::PageUp, "shows them")]));
        printed.push(Row::text(Line::styled(text, state.look.theme.dim())));
    }
    from
}
