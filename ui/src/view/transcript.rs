//! The conversation: its rows, what stands out in them, and where in the whole they are.

use pixir_core::provider::choose::Providers;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};

use crate::canvas::{Canvas, Shift};
use crate::reading::find::{Needle, Stretch};
use crate::remedy::Remedies;
use crate::render::text::{Row, width, wrap_lines};
use crate::state::{Connection, Focus, State, look_of};
use crate::theme::Theme;
use crate::transcript::{MARKS, Mark};
use crate::viewport::Place;

pub(super) fn draw(state: &mut State, canvas: &mut Canvas, area: Rect) {
    state.transcript_area = area;
    if state.transcript.is_empty() && state.replay.is_some() {
        let before = Line::styled("before its first entry", state.theme.dim());
        return canvas.line(
            before,
            Rect { x: area.x + 1, height: area.height.min(1), width: area.width.saturating_sub(1), ..area },
        );
    }
    if let Some(connection) = state.transcript.is_empty().then_some(&state.connection) {
        let lines =
            welcome_lines(connection, usize::from(area.width.saturating_sub(4)), &state.theme, &state.more.remedies);
        for (row, line) in (area.y + 1..area.bottom()).zip(lines) {
            canvas.line(line, Rect { x: area.x + 2, y: row, width: area.width.saturating_sub(4), height: 1 });
        }
        return;
    }
    state.follow_cut();
    let (look, key) = look_of!(state);
    let before = state.viewport.shown().to_vec();
    state.viewport.window(usize::from(area.height), &mut state.transcript, &look, key);
    let needle = state.search.as_ref().filter(|it| !it.text.is_empty()).map(|it| Needle::new(&it.text));
    let chosen = state.cell.filter(|_| state.focus == Focus::Transcript);
    let mut y = area.y;
    for it in state.viewport.shown() {
        let top = y;
        let found = needle.as_ref().map_or_else(Vec::new, |needle| needle.in_rows(&it.rows, it.from..it.to)).concat();
        let current = state.search.as_mut().map_or(&[] as &[Stretch], |search| search.stretches_in(it.cell, &it.rows));
        for (at, row) in it.rows.iter().enumerate().take(it.to).skip(it.from) {
            let here = Rect { x: area.x + 1, y, width: area.width.saturating_sub(3), height: 1 };
            draw_row(row, canvas, here);
            // What is searched for stands out, and most of all the place that was gone to.
            for (stretches, colour) in [(&found[..], state.theme.warning), (current, state.theme.accent)] {
                for (_, columns) in stretches.iter().filter(|(row, _)| *row == at) {
                    canvas.tint(part_of(here, columns.clone()), state.theme.badge(colour));
                }
            }
            let place = Place { cell: it.cell, row: at };
            if let Some(columns) = state.selection.as_ref().and_then(|selection| selection.columns(place, row)) {
                canvas.tint(part_of(here, columns), state.theme.selected());
            }
            if chosen == Some(it.cell) && !row.line.spans.is_empty() {
                let bar = Rect { x: area.x, y, width: 1, height: 1 };
                canvas.line(Line::styled("▎", state.theme.fg(state.theme.accent)), bar);
            }
            y += 1;
        }
        let shown = Rect { x: area.x, y: top, width: area.width, height: y - top };
        canvas.region("entry", shown, || it.rows.iter().map(|row| row.line.to_string()).collect::<Vec<_>>().join("\n"));
        canvas.state(chosen == Some(it.cell), chosen == Some(it.cell));
    }
    draw_labels(state, canvas, area);
    if let Some(by) = state.viewport.moved_since(&before) {
        canvas.shift = Some(Shift { rows: area.y..area.bottom(), by });
    }
    draw_scrollbar(state, canvas, area);
}

/// What leads back to the end: on the border of the line, where it hides nothing.
pub(super) fn draw_pill(state: &mut State, canvas: &mut Canvas, area: Rect, line: Rect) {
    state.pill = None;
    let Some(new) = state.viewport.unseen(&state.transcript).filter(|_| area.height > 0) else { return };
    // Where there is little room, what the border says is worth more.
    let key = state.keymap.key_of("to-end");
    let has_room = area.width >= 60 && !key.is_empty();
    let pill = match new {
        0 if has_room => format!(" ↓ {key} "),
        0 => " ↓ ".to_owned(),
        new if has_room => format!(" ↓ {new} new · {key} "),
        new => format!(" ↓ {new} new "),
    };
    let y = match (state.is_read_aloud, state.replay.is_some()) {
        (true, _) => area.bottom() - 1,
        // Above it says where it is.
        (false, true) => line.bottom() - 1,
        (false, false) => line.y,
    };
    let columns = u16::try_from(width(&pill)).unwrap_or(area.width).min(area.width);
    let at = Rect { x: area.x + 2.min(area.width - columns), y, width: columns, height: 1 };
    canvas.fill(at, state.theme.base());
    canvas.region("pill", at, || pill.trim().to_owned());
    canvas.line(Line::styled(pill, state.theme.selected().fg(state.theme.accent)), at);
    state.pill = Some(at);
}

/// Some columns of a row.
fn part_of(row: Rect, columns: std::ops::Range<usize>) -> Rect {
    let column = |at: usize| row.x.saturating_add(u16::try_from(at).unwrap_or(u16::MAX)).min(row.right());
    let (from, to) = (column(columns.start), column(columns.end));
    Rect { x: from, width: to - from, ..row }
}

/// A letter on everything that can be copied.
fn draw_labels(state: &State, canvas: &mut Canvas, area: Rect) {
    let Some(labels) = &state.labels else { return };
    let mut y = area.y;
    for it in state.viewport.shown() {
        for row in it.from..it.to {
            let here = labels.0.iter().filter(|label| (label.place.cell, label.place.row) == (it.cell, row));
            // A link has its letter where it stands; what is more than a row, behind its first, where it hides nothing.
            let end = it.rows[row].text_end() + 2;
            let mut x = area.x;
            for label in here {
                let text = format!("{} {} ", label.letter, label.what);
                let wide = u16::try_from(text.len()).unwrap_or(1).min(area.width);
                let column = u16::try_from(label.column.unwrap_or(end)).unwrap_or(u16::MAX);
                x = x.max(area.x.saturating_add(1).saturating_add(column)).min(area.right().saturating_sub(wide + 1));
                let at = Rect { x, y, width: wide, height: 1 };
                canvas.line(Line::styled(text, state.theme.badge(state.theme.accent)), at);
                x = at.right() + 1;
            }
            y += 1;
        }
    }
}

/// A row of the transcript, with its links.
pub(super) fn draw_row(row: &Row, canvas: &mut Canvas, area: Rect) {
    canvas.line(&row.line, area);
    let column = |at: usize| area.x.saturating_add(u16::try_from(at).unwrap_or(u16::MAX)).min(area.right());
    for (columns, url) in &row.links {
        canvas.link(area.y, column(columns.start)..column(columns.end), url);
    }
}

/// Which part of the whole is in sight, and where something stands out.
fn draw_scrollbar(state: &State, canvas: &mut Canvas, area: Rect) {
    let (from, to, of) = state.viewport.extent(&state.transcript);
    if of <= usize::from(area.height) || area.height < 4 {
        return;
    }
    let (theme, height) = (&state.theme, usize::from(area.height));
    // At least one row, and never at an end that is not shown.
    let size = ((to - from) * height).div_ceil(of).clamp(1, height);
    let free = of - (to - from);
    let top = (from * (height - size) + free / 2).checked_div(free).unwrap_or(0);
    for row in 0..height {
        // Cells whose first row is here.
        let first = |row: usize| match state.transcript.at_row(row * of / height) {
            (cell, 0) => cell,
            (cell, _) => cell + 1,
        };
        let (from, to) = (first(row), first(row + 1));
        let mark = MARKS.iter().rev().find(|mark| state.transcript.has_mark(**mark, from..to));
        let thumb = (top..top + size).contains(&row);
        let (symbol, colour) = match mark {
            Some(Mark::Error) => ("━", theme.error),
            Some(Mark::Compaction) => ("━", theme.warning),
            Some(Mark::Change) => ("╼", theme.added),
            Some(Mark::Prompt) => ("╼", theme.user),
            None if thumb => ("┃", theme.accent),
            // The track is left blank: what stands beside every row would have to be written anew for each that moves.
            None => continue,
        };
        let at = Rect { x: area.right() - 1, y: area.y + row as u16, width: 1, height: 1 };
        let style = if thumb { theme.fg(colour).bg(theme.selection) } else { theme.fg(colour) };
        canvas.line(Line::styled(symbol, style), at);
    }
}

pub(super) fn welcome_lines(
    connection: &Connection,
    columns: usize,
    theme: &Theme,
    remedies: &Remedies,
) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled("pixir", theme.bold())];
    let what = "A coding assistant that works on your files, and asks before it changes them.";
    lines.extend(wrap_lines(&[Span::styled(what, theme.dim())], columns, &[], &[]));
    lines.push(Line::default());
    let mut say = |mark: &'static str, colour: Color, text: String| {
        lines.extend(wrap_lines(
            &[Span::styled(text, theme.fg(theme.text))],
            columns,
            &[Span::styled(mark, theme.fg(colour))],
            &[Span::raw("  ")],
        ));
    };
    match connection {
        Connection::Starting => say("… ", theme.dim, "looking for a model".into()),
        Connection::Ready { demo: false, why, server } => {
            say("✓ ", theme.success, format!("{server} ({why})"));
            say(
                "  ",
                theme.dim,
                "Type what you want. /help shows keys and commands, /model changes who answers.".into(),
            );
        }
        Connection::Ready { demo: true, why, .. } if why == Providers::GIVEN => {
            say(
                "○ ",
                theme.warning,
                "This is the demo: a script plays the model; the tools and the files are real.".into(),
            );
        }
        Connection::Ready { demo: true, why, .. } => {
            say("○ ", theme.warning, format!("No model is connected: {why}."));
            say("  ", theme.dim, "To connect one: export OPENAI_API_KEY=… or OPENROUTER_API_KEY=…, start a local server (ollama, llama.cpp, LM Studio, vLLM), or give --base-url URL --model NAME.".into());
            say("  ", theme.dim, "To see it work without one: quit (Ctrl+C twice) and run `pixir demo`. `pixir doctor` says what was found here.".into());
        }
        Connection::Failed(e) => {
            say("■ ", theme.error, e.message.clone());
            say("  ", theme.dim, format!("fix: {}", remedies.word(&e.remedy)));
        }
    }
    lines
}
