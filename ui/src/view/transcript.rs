//! The visible rows of the conversation, with hits, selection and labels on them, and the scrollbar.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::welcome;
use crate::input::action::Action;
use crate::render::text::width;
use crate::state::{Focus, State, render_context};
use crate::terminal::canvas::{Canvas, RegionState, Shift};
use crate::transcript::reading::find::{Needle, Stretch};
use crate::transcript::viewport::CellRow;
use crate::transcript::{MARKS, Mark};

/// The rows that the welcome leaves for notices below it.
const NOTICES: u16 = 4;

pub(super) fn draw(state: &mut State, canvas: &mut Canvas, area: Rect) {
    state.layout.transcript = area;
    if state.transcript.is_empty() && state.replay.is_some() {
        let text = Line::styled("the replay is before its first entry", state.look.theme.dim());
        return canvas.line(
            text,
            Rect { x: area.x + 1, height: area.height.min(1), width: area.width.saturating_sub(1), ..area },
        );
    }
    let area = match state.shows_welcome() {
        true => draw_welcome(state, canvas, area),
        false => area,
    };
    state.layout.transcript = area;
    if state.transcript.is_empty() {
        return;
    }
    state.follow_cut();
    let (context, key) = render_context!(state);
    let before = state.viewport.shown().to_vec();
    state.viewport.window(usize::from(area.height), &mut state.transcript, &context, key);
    let moved = state.viewport.moved_since(&before);
    let needle = state.reading.search.as_ref().filter(|it| !it.text.is_empty()).map(|it| Needle::new(&it.text));
    let chosen = state.reading.cell.filter(|_| state.focus == Focus::Transcript);
    let mut y = area.y;
    for it in state.viewport.shown() {
        let top = y;
        let found = needle.as_ref().map_or_else(Vec::new, |needle| needle.in_rows(&it.rows, it.from..it.to)).concat();
        let current =
            state.reading.search.as_mut().map_or(&[] as &[Stretch], |search| search.stretches_in(it.cell, &it.rows));
        for (at, row) in it.rows.iter().enumerate().take(it.to).skip(it.from) {
            let here = Rect { x: area.x + 1, y, width: area.width.saturating_sub(3), height: 1 };
            // The last column has the scrollbar. Beside the panel the row is not alone.
            let alone = state.layout.side.is_none().then_some(area.width.saturating_sub(1));
            let row_before = u16::try_from(i32::from(y) + moved.unwrap_or(0)).ok();
            match alone {
                Some(columns) => canvas.lone_line(&row.line, &row.links, here, columns, row_before),
                None => row.draw(canvas, here),
            }
            // Every match is marked, and the current one in another colour.
            for (stretches, colour) in [(&found[..], state.look.theme.warning), (current, state.look.theme.accent)] {
                for (_, columns) in stretches.iter().filter(|(row, _)| *row == at) {
                    canvas.tint(part_of(here, columns.clone()), state.look.theme.badge(colour));
                }
            }
            let cell_row = CellRow { cell: it.cell, row: at };
            if let Some(columns) =
                state.reading.selection.as_ref().and_then(|selection| selection.columns(cell_row, row))
            {
                canvas.tint(part_of(here, columns), state.look.theme.selected());
            }
            if chosen == Some(it.cell) && !row.line.spans.is_empty() {
                let bar = Rect { x: area.x, y, width: 1, height: 1 };
                canvas.line(Line::styled("▎", state.look.theme.fg(state.look.theme.accent)), bar);
            }
            y += 1;
        }
        let shown = Rect { x: area.x, y: top, width: area.width, height: y - top };
        canvas.region("entry", shown, || it.rows.iter().map(|row| row.line.to_string()).collect::<Vec<_>>().join("\n"));
        canvas.region_state(RegionState { focused: chosen == Some(it.cell), selected: chosen == Some(it.cell) });
    }
    draw_labels(state, canvas, area);
    canvas.shift = moved.map(|by| Shift { rows: area.y..area.bottom(), by });
    draw_scrollbar(state, canvas, area);
}

/// Draws the welcome, and returns the room below it, where notices are.
fn draw_welcome(state: &State, canvas: &mut Canvas, area: Rect) -> Rect {
    let for_notices = if state.transcript.is_empty() { 0 } else { NOTICES.min(area.height / 3) };
    // On a large screen it stands in the middle, with a width that does not depend on what it says at the moment.
    let columns =
        area.width.saturating_sub(4).min(if area.width >= welcome::CENTRED.0 { welcome::MEASURE } else { u16::MAX });
    let x = if area.width >= welcome::CENTRED.0 { area.x + (area.width - columns) / 2 } else { area.x + 2 };
    let is_high = area.height >= welcome::CENTRED.1 && !state.look.screen_reader;
    let above = if is_high { area.height / 5 } else { 1 };
    let lines =
        welcome::lines(state, usize::from(columns), usize::from(area.height.saturating_sub(above + for_notices)));
    let rows = area.y + above..area.bottom();
    let end = rows.end.min(rows.start + u16::try_from(lines.len()).unwrap_or(u16::MAX) + 1);
    for (row, line) in rows.zip(lines) {
        canvas.line(line, Rect { x, y: row, width: columns, height: 1 });
    }
    Rect { y: end, height: area.bottom() - end, ..area }
}

/// Draws the button that leads back to the end. It is on the border of the composer, where it hides nothing.
pub(super) fn draw_pill(state: &mut State, canvas: &mut Canvas, area: Rect, line: Rect) {
    state.layout.pill = None;
    let Some(new) = state.viewport.unseen(&state.transcript).filter(|_| area.height > 0) else { return };
    // On a narrow screen the border needs the room for itself.
    let key = state.keys.map.key_of(Action::ToEnd).filter(|_| area.width >= 60);
    let pill = match (new, key) {
        (0, Some(key)) => format!(" ↓ {key} "),
        (0, None) => " ↓ ".to_owned(),
        (new, Some(key)) => format!(" ↓ {new} new · {key} "),
        (new, None) => format!(" ↓ {new} new "),
    };
    let y = match (state.look.screen_reader, state.replay.is_some()) {
        (true, _) => area.bottom() - 1,
        // The upper border of a replay shows the time.
        (false, true) => line.bottom() - 1,
        (false, false) => line.y,
    };
    let columns = u16::try_from(width(&pill)).unwrap_or(area.width).min(area.width);
    let at = Rect { x: area.x + 2.min(area.width - columns), y, width: columns, height: 1 };
    canvas.fill(at, state.look.theme.base());
    canvas.region("pill", at, || pill.trim().to_owned());
    canvas.line(Line::styled(pill, state.look.theme.selected().fg(state.look.theme.accent)), at);
    state.layout.pill = Some(at);
}

/// A range of columns of a row.
fn part_of(row: Rect, columns: std::ops::Range<usize>) -> Rect {
    let column = |at: usize| row.x.saturating_add(u16::try_from(at).unwrap_or(u16::MAX)).min(row.right());
    let (from, to) = (column(columns.start), column(columns.end));
    Rect { x: from, width: to - from, ..row }
}

/// Draws a letter on everything that can be copied.
fn draw_labels(state: &State, canvas: &mut Canvas, area: Rect) {
    let Some(labels) = &state.reading.labels else { return };
    let mut y = area.y;
    for it in state.viewport.shown() {
        for row in it.from..it.to {
            let here = labels.0.iter().filter(|label| (label.at.cell, label.at.row) == (it.cell, row));
            // The letter of a link covers its begin. Anything longer than a row has its letter after its first row.
            let end = it.rows[row].text_end() + 2;
            let mut x = area.x;
            for label in here {
                let text = format!(" {} {} ", label.letter, label.what);
                let wide = u16::try_from(text.len()).unwrap_or(1).min(area.width);
                let column = u16::try_from(label.column.unwrap_or(end)).unwrap_or(u16::MAX);
                x = x.max(area.x.saturating_add(1).saturating_add(column)).min(area.right().saturating_sub(wide + 1));
                let at = Rect { x, y, width: wide, height: 1 };
                canvas.line(Line::styled(text, state.look.theme.badge(state.look.theme.accent)), at);
                x = at.right() + 1;
            }
            y += 1;
        }
    }
}

/// Draws which part of the conversation is visible, and where prompts, errors, changes and compactions are.
fn draw_scrollbar(state: &State, canvas: &mut Canvas, area: Rect) {
    let (from, to, of) = state.viewport.extent(&state.transcript);
    if of <= usize::from(area.height) || area.height < 4 {
        return;
    }
    let (theme, height) = (&state.look.theme, usize::from(area.height));
    // The thumb is at least one row high, and touches an end only when that end is visible.
    let size = ((to - from) * height).div_ceil(of).clamp(1, height);
    let free = of - (to - from);
    let top = (from * (height - size) + free / 2).checked_div(free).unwrap_or(0);
    // Many prompts would be one solid column.
    let prompts_are_few = state.transcript.count_marks(Mark::Prompt) * 4 <= height;
    for row in 0..height {
        // Cells whose first row is here.
        let first = |row: usize| match state.transcript.at_row(row * of / height) {
            (cell, 0) => cell,
            (cell, _) => cell + 1,
        };
        let (from, to) = (first(row), first(row + 1));
        let mark = MARKS
            .iter()
            .rev()
            .find(|mark| (prompts_are_few || **mark != Mark::Prompt) && state.transcript.has_mark(**mark, from..to));
        let thumb = (top..top + size).contains(&row);
        let (symbol, colour) = match mark {
            Some(Mark::Error) => ("━", theme.error),
            Some(Mark::Compaction) => ("━", theme.warning),
            Some(Mark::Change) => ("╼", theme.added),
            Some(Mark::Prompt) => ("╼", theme.user),
            None if thumb => ("┃", theme.accent),
            // The track stays blank: a character in every row would be sent again with each row that scrolls.
            None => continue,
        };
        let at = Rect { x: area.right() - 1, y: area.y + row as u16, width: 1, height: 1 };
        let style = if thumb { theme.fg(colour).bg(theme.selection) } else { theme.fg(colour) };
        canvas.line(Line::styled(symbol, style), at);
    }
}
