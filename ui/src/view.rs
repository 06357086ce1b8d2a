//! State → one frame.

use std::time::{Duration, Instant};

use crate::canvas::{Canvas, Shift};
use pixir_core::event::{JobStatus, Mode, Plan, Rule, Status};
use pixir_core::present::{human_duration, human_size};
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType};

use crate::composer::Completion;
use crate::keys::chord_name;
use crate::overlay::{Paint, panel};
use crate::reading::{Needle, Search};
use crate::render::text::{Row, fit, visible, width, wrap_lines};
use crate::render::{cell, diff};
use crate::side;
use crate::state::{Connection, Focus, Primed, Question, State, look_of};
use crate::theme::Theme;
use crate::transcript::{MARKS, Mark};
use crate::viewport::Place;

/// Below this nothing of use can be shown.
const SMALLEST: (u16, u16) = (40, 10);
/// After so long without a word from the model the person is told.
const SILENCE: Duration = Duration::from_secs(20);
/// After so long a running call is shown beside the line, wherever the transcript stands; and at most so many.
const SLOW: Duration = Duration::from_secs(2);
const MOST_RUNNING: usize = 4;
/// How long a word to the person hides what is going on.
const TOAST: Duration = Duration::from_secs(4);
const SPINNER: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠇"];

/// Draws everything, and puts the caret where text is being written.
pub(crate) fn draw(state: &mut State, canvas: &mut Canvas) {
    let area = canvas.area();
    canvas.tint(area, state.theme.base());
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = fit(&format!("pixir needs {}x{}", SMALLEST.0, SMALLEST.1), usize::from(area.width));
        canvas
            .line(Line::styled(text, state.theme.fg(state.theme.warning)), Rect { height: 1.min(area.height), ..area });
        return;
    }
    let composer_rows = state.composer.rows(area.width.saturating_sub(6)).min(area.height / 3).max(1) + 2;
    // The question may take what the header, the composer and the status line leave, on a large screen the greater part.
    let room = usize::from(area.height.saturating_sub(composer_rows + 2));
    let (dock, all_in_sight) = dock_lines(state, area.width, room.min(usize::from(area.height * 3 / 5).max(12)));
    let dock_rows = u16::try_from(dock.len()).unwrap_or(u16::MAX);
    // From the bottom up; the transcript has the rest.
    let row = |y: u16, height: u16| Rect { y, height, ..area };
    let status = row(area.height - 1, 1);
    let composer = row(status.y - composer_rows, composer_rows);
    let dock_area = row(composer.y.saturating_sub(dock_rows).max(1), dock_rows.min(composer.y - 1));
    let (header, body) = (row(0, 1), row(1, dock_area.y - 1));
    let has_something =
        !state.history.plan.is_empty() || state.transcript.has_mark(Mark::Change, 0..state.transcript.len());
    let beside = state.side.columns(area.width, has_something);
    state.is_wide = area.width >= side::WIDE;
    state.side_area = (beside > 0).then(|| Rect { x: area.right() - beside, width: beside, ..body });
    let body = Rect { width: body.width - beside, ..body };
    draw_header(state, canvas, header);
    canvas.region("transcript", body, || format!("{} entries", state.transcript.len()));
    canvas.state(state.focus == Focus::Transcript, false);
    draw_transcript(state, canvas, body);
    if let Some(area) = state.side_area {
        side::draw(state, canvas, area);
    }
    state.question_area = (!state.questions.is_empty()).then_some(dock_area);
    for (row, line) in (dock_area.y..dock_area.bottom()).zip(dock) {
        canvas.line(line, Rect { y: row, height: 1, ..dock_area });
    }
    // A question counts as seen from the frame in which nothing hid it.
    if let Some(question) = state.questions.first_mut().filter(|_| state.overlays.is_empty()) {
        question.painted.get_or_insert_with(Instant::now);
        question.read |= all_in_sight;
    }
    if let Some(question) = state.questions.first() {
        canvas
            .region("question", dock_area, || format!("{}: {}", question.approval.tool, question.approval.plan.target));
        canvas.state(state.focus == Focus::Question, false);
    }
    canvas.region("composer", composer, || state.composer.text());
    canvas.state(state.focus == Focus::Composer && state.overlays.is_empty(), false);
    draw_composer(state, canvas, composer);
    draw_status(state, canvas, status);
    if canvas.regions.is_some() {
        let told = canvas.row_text(status.y);
        canvas.region("status", status, || told);
    }
    if state.overlays.is_empty() {
        draw_completions(state, canvas, composer);
    }
    draw_pending(state, canvas, body);
    // Layers leave the header and the status line in sight.
    let middle = Rect { y: header.bottom(), height: area.height.saturating_sub(2), ..area };
    let paint = Paint { theme: &state.theme, highlighter: &state.highlighter };
    for layer in &mut state.overlays {
        canvas.region("dialog", middle, || layer.title().to_owned());
        canvas.state(!layer.is_aside(), false);
        layer.draw(canvas, middle, paint);
    }
    let shown = state.overlays.last().and_then(|layer| layer.has_shown());
    if let Some(question) = state.questions.first_mut()
        && shown == Some(question.approval.call_id.as_str())
    {
        question.read = true;
    }
    if state.hud {
        draw_hud(state, canvas, body);
    }
    match (state.overlays.len(), state.layer_since) {
        (0, _) => state.layer_since = None,
        (now, Some((then, _))) if now == then => {}
        (now, _) => state.layer_since = Some((now, Instant::now())),
    }
}

fn draw_header(state: &State, canvas: &mut Canvas, area: Rect) {
    let theme = &state.theme;
    let settings = &state.history.settings;
    let right = match &state.connection {
        Connection::Starting => "…".to_owned(),
        Connection::Failed(_) => "no model".to_owned(),
        Connection::Ready { .. } if settings.model.is_empty() => "…".to_owned(),
        Connection::Ready { .. } => {
            let effort = settings.effort.as_ref().map_or(String::new(), |e| format!(" · {e}"));
            format!("{}/{}{effort}", settings.provider, settings.model)
        }
    };
    let mode = settings.mode.name();
    let columns = usize::from(area.width);
    let right_width = width(&right).min(columns / 2);
    let tail = 3 + mode.len() + 1;
    let name = settings.name.as_ref().map_or(String::new(), |name| format!(" · {name}"));
    let place = state
        .workspace
        .file_name()
        .map_or_else(|| state.workspace.display().to_string(), |n| n.to_string_lossy().into_owned());
    let branch = state.branch.as_ref().map_or(String::new(), |b| format!(" · {b}"));
    let left = fit(&visible(&format!("{place}{branch}{name}")), columns.saturating_sub(right_width + tail + 10));
    let gap = columns.saturating_sub(7 + width(&left) + right_width + tail);
    let line = Line::from(vec![
        Span::styled(" pixir ", theme.fg(theme.accent).bold()),
        Span::styled(left, theme.dim()),
        Span::raw(" ".repeat(gap)),
        Span::styled(fit(&visible(&right), right_width), theme.dim()),
        Span::styled(" · ", theme.fg(theme.border)),
        Span::styled(mode, theme.fg(mode_colour(theme, settings.mode))),
    ]);
    canvas.line(line, area);
}

fn mode_colour(theme: &Theme, mode: Mode) -> Color {
    match mode {
        Mode::ReadOnly => theme.mode_read_only,
        Mode::Ask => theme.mode_ask,
        Mode::Auto => theme.mode_auto,
    }
}

fn draw_transcript(state: &mut State, canvas: &mut Canvas, area: Rect) {
    state.transcript_area = area;
    if let Some(connection) = state.transcript.is_empty().then_some(&state.connection) {
        let lines = welcome_lines(connection, usize::from(area.width.saturating_sub(4)), &state.theme);
        for (row, line) in (area.y + 1..area.bottom()).zip(lines) {
            canvas.line(line, Rect { x: area.x + 2, y: row, width: area.width.saturating_sub(4), height: 1 });
        }
        return;
    }
    let (look, key) = look_of!(state);
    let before = state.viewport.shown().to_vec();
    state.viewport.window(usize::from(area.height), &mut state.transcript, &look, key);
    let needle = state.search.as_ref().filter(|it| !it.text.is_empty()).map(|it| Needle::new(&it.text));
    let chosen = state.cell.filter(|_| state.focus == Focus::Transcript);
    let mut y = area.y;
    for it in state.viewport.shown() {
        let top = y;
        for (at, row) in it.rows.iter().enumerate().take(it.to).skip(it.from) {
            let here = Rect { x: area.x + 1, y, width: area.width.saturating_sub(3), height: 1 };
            draw_row(row, canvas, here);
            if let Some(needle) = &needle {
                tint_found(needle, row, canvas, here, &state.theme);
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
    state.pill = None;
    if let Some(new) = state.viewport.unseen(&state.transcript).filter(|_| area.height > 0) {
        let pill = if new > 0 { format!(" ↓ {new} new · Ctrl+End ") } else { " ↓ Ctrl+End ".to_owned() };
        let columns = u16::try_from(width(&pill)).unwrap_or(area.width).min(area.width);
        let at = Rect {
            x: area.right() - columns - 3.min(area.width - columns),
            y: area.bottom() - 1,
            width: columns,
            height: 1,
        };
        canvas.fill(at, state.theme.base());
        canvas.line(Line::styled(pill, state.theme.selected().fg(state.theme.accent)), at);
        state.pill = Some(at);
    }
}

/// Some columns of a row.
fn part_of(row: Rect, columns: std::ops::Range<usize>) -> Rect {
    let column = |at: usize| row.x.saturating_add(u16::try_from(at).unwrap_or(u16::MAX)).min(row.right());
    let (from, to) = (column(columns.start), column(columns.end));
    Rect { x: from, width: to - from, ..row }
}

/// What is searched for stands out.
fn tint_found(needle: &Needle, row: &Row, canvas: &mut Canvas, area: Rect, theme: &Theme) {
    let text = row.line.to_string();
    for at in needle.places(&text) {
        let from = width(&text[..at]);
        let end = (at + needle.len()).min(text.len());
        let wide = text.get(at..end).map_or(1, width);
        canvas.tint(part_of(area, from..from + wide), theme.badge(theme.warning));
    }
}

/// A letter on everything that can be copied.
fn draw_labels(state: &State, canvas: &mut Canvas, area: Rect) {
    let Some(labels) = &state.labels else { return };
    let mut y = area.y;
    for it in state.viewport.shown() {
        for row in it.from..it.to {
            let here = labels.0.iter().filter(|label| (label.place.cell, label.place.row) == (it.cell, row));
            let mut x = area.x;
            for label in here {
                let text = format!("{} {} ", label.letter, label.what);
                let at = Rect { x, y, width: u16::try_from(text.len()).unwrap_or(1), height: 1 };
                canvas.line(Line::styled(text, state.theme.badge(state.theme.accent)), at);
                x = at.right() + 1;
            }
            y += 1;
        }
    }
}

/// The keys that may follow what was begun.
fn draw_pending(state: &State, canvas: &mut Canvas, area: Rect) {
    if state.pending.is_empty() {
        return;
    }
    let next = state.keymap.after(&state.pending, &state.places());
    let rows = u16::try_from(next.len()).unwrap_or(u16::MAX).saturating_add(2).min(area.height);
    let columns = next.iter().map(|(keys, verb)| width(keys) + width(verb.about) + 6).max().unwrap_or(20);
    let columns = u16::try_from(columns).unwrap_or(area.width).min(area.width);
    let at = Rect { x: area.right() - columns, y: area.bottom() - rows, width: columns, height: rows };
    let inner = panel(canvas, at, &chord_name(&state.pending), "Esc", &state.theme);
    for (y, (keys, verb)) in (inner.y..inner.bottom()).zip(next) {
        let line = Line::from(vec![
            Span::styled(format!("{keys} "), state.theme.fg(state.theme.accent)),
            Span::styled(verb.about, state.theme.fg(state.theme.text)),
        ]);
        canvas.line(line, Rect { y, height: 1, ..inner });
    }
}

/// What drawing costs.
fn draw_hud(state: &State, canvas: &mut Canvas, area: Rect) {
    let theme = &state.theme;
    let share = |of: &std::collections::VecDeque<u32>, percent: usize| {
        let mut all: Vec<u32> = of.iter().copied().collect();
        all.sort_unstable();
        let micros = all.get(all.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0);
        format!("{:.2}", f64::from(micros) / 1e3)
    };
    let gauge = &state.gauge;
    let counts = gauge.counts;
    let lines = [
        format!("frame ms   p50 {}  p99 {}", share(&gauge.frames, 50), share(&gauge.frames, 99)),
        format!("key → seen p50 {}  p99 {}", share(&gauge.echoes, 50), share(&gauge.echoes, 99)),
        format!("frames {}  cells {}", counts.frames, short(counts.cells)),
        format!("bytes  {}  {} a frame", short(counts.bytes), counts.bytes / counts.frames.max(1)),
        format!("laid out {} of {} entries", state.transcript.laid_out(), state.transcript.len()),
    ];
    let at =
        Rect { x: area.right().saturating_sub(38), y: area.y, width: 38.min(area.width), height: 7.min(area.height) };
    let inner = panel(canvas, at, "HUD", "F12", theme);
    for (y, line) in (inner.y..inner.bottom()).zip(lines) {
        canvas.line(Line::styled(line, theme.dim()), Rect { y, height: 1, ..inner });
    }
}

/// A row of the transcript, with its links.
fn draw_row(row: &Row, canvas: &mut Canvas, area: Rect) {
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

fn welcome_lines(connection: &Connection, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = vec![
        Line::styled("pixir", theme.bold()),
        Line::styled("A coding assistant that works on your files, and asks before it changes them.", theme.dim()),
        Line::default(),
    ];
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
        Connection::Ready { demo: true, why, .. } => {
            say("○ ", theme.warning, format!("No model is connected: {why}."));
            say("  ", theme.dim, "To connect one: export OPENAI_API_KEY=… or OPENROUTER_API_KEY=…, start a local server (ollama, llama.cpp, LM Studio, vLLM), or give --base-url URL --model NAME.".into());
            say("  ", theme.dim, "To see it work without one: quit (Ctrl+C twice) and run `pixir demo`. `pixir doctor` says what was found here.".into());
        }
        Connection::Failed(e) => {
            say("■ ", theme.error, e.message.clone());
            say("  ", theme.dim, format!("fix: {}", e.remediation));
        }
    }
    lines
}

/// Above the composer: what waits, the question, how work goes.
fn dock_lines(state: &State, width: u16, most: usize) -> (Vec<Line<'static>>, bool) {
    let theme = &state.theme;
    let columns = usize::from(width.saturating_sub(2));
    let mut lines = Vec::new();
    let mut all_in_sight = false;
    if let Some(question) = state.questions.first() {
        (lines, all_in_sight) = question_lines(question, state, columns, most);
    }
    let waits =
        state.queue.steer.iter().map(|t| ("» now  ", t)).chain(state.queue.follow_up.iter().map(|t| ("⏵ next ", t)));
    for (mark, text) in waits.take(4) {
        lines.push(Line::from(vec![
            Span::styled(format!(" {mark}"), theme.fg(theme.accent)),
            Span::styled(fit(&visible(&text.replace('\n', " ")), columns.saturating_sub(24)), theme.dim()),
            Span::styled("  Alt+Up", theme.dim()),
        ]));
    }
    if state.questions.is_empty() {
        lines.extend(running_lines(state, columns));
    }
    (lines, all_in_sight)
}

/// Calls that take their time, with how long they have taken.
fn running_lines(state: &State, columns: usize) -> Vec<Line<'static>> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let slow = state.transcript.running().into_iter().filter_map(|tool| {
        let began = Duration::from_millis(u64::try_from(tool.began()).ok()?);
        let took = now.checked_sub(began).filter(|took| *took >= SLOW)?;
        let text = fit(&visible(&cell::target(tool)), columns.saturating_sub(24));
        Some(Line::from(vec![
            Span::styled(" ● ", state.theme.fg(state.theme.accent)),
            Span::styled(format!("{} ", tool.call().name), state.theme.fg(state.theme.tool)),
            Span::styled(text, state.theme.dim()),
            Span::styled(format!("  {}", human_duration(whole(took))), state.theme.fg(state.theme.text)),
        ]))
    });
    slow.take(MOST_RUNNING).collect()
}

/// The card of a question, and whether all of what would be done is in sight.
fn question_lines(question: &Question, state: &State, columns: usize, most: usize) -> (Vec<Line<'static>>, bool) {
    let (theme, of) = (&state.theme, state.questions.len());
    let focused = state.focus == Focus::Question;
    let it = &question.approval;
    let bar = || Span::styled(" ┃ ", theme.fg(theme.warning));
    let count = if of > 1 { format!("  1 of {of}") } else { String::new() };
    let head = Line::from(vec![
        Span::styled(" ┏ ", theme.fg(theme.warning)),
        Span::styled(asks(&it.tool), theme.bold()),
        Span::styled(count, theme.dim()),
    ]);
    let answers = answer_lines(question, focused, columns, theme);
    let mut body = plan_lines(&it.plan, columns.saturating_sub(3), theme);
    let room = most.saturating_sub(1 + answers.len()).max(1);
    // Where there is little room, what would be done is worth more than why it is asked.
    let tight = body.len() + 2 > room;
    let all = body.len() <= room;
    if !all {
        let more = body.len() - (room - 1);
        body.truncate(room - 1);
        let text = format!("… {more} more lines · Tab, then Enter, to read and allow");
        body.push(Line::styled(fit(&text, columns.saturating_sub(3)), theme.fg(theme.warning)));
    }
    let mut lines = if tight { vec![head] } else { vec![Line::default(), head] };
    lines.extend(body.into_iter().map(|mut line| {
        line.spans.insert(0, bar());
        line
    }));
    if !tight {
        let why = fit(&format!("asks because {}", visible(&it.reason)), columns.saturating_sub(3));
        lines.push(Line::from(vec![bar(), Span::styled(why, theme.dim())]));
    }
    lines.extend(answers);
    (lines, all)
}

/// Everything that a plan would do: its target, whole, then its diff.
pub(crate) fn plan_lines(plan: &Plan, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = wrap_lines(&[Span::styled(visible(&plan.target), theme.fg(theme.code))], columns, &[], &[]);
    if let Some(text) = &plan.diff {
        lines.extend(diff::lines(text, columns, theme));
    }
    let step_line = |step: &Plan| {
        let first = [Span::styled(format!("{} ", step.would), theme.fg(theme.tool))];
        let size = match (step.bytes_before, step.bytes) {
            (Some(before), Some(after)) => format!("  {} → {}", human_size(before), human_size(after)),
            (None, Some(after)) => format!("  new, {}", human_size(after)),
            (_, None) => String::new(),
        };
        let target = [Span::styled(visible(&step.target), theme.fg(theme.text)), Span::styled(size, theme.dim())];
        wrap_lines(&target, columns, &first, &[Span::raw("  ")])
    };
    // What it comes to stands before what may be long.
    if plan.steps.len() > 1 {
        lines.extend(plan.steps.iter().flat_map(&step_line));
    }
    for step in &plan.steps {
        if plan.steps.len() == 1 || step.diff.is_some() {
            lines.extend(step_line(step));
        }
        lines.extend(step.diff.iter().flat_map(|text| diff::lines(text, columns, theme)));
    }
    for note in &plan.notes {
        lines.extend(wrap_lines(&[Span::styled(visible(note), theme.dim())], columns, &[], &[]));
    }
    lines
}

fn answer_lines(question: &Question, focused: bool, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let it = &question.approval;
    let colour = theme.warning;
    let corner = Span::styled(" ┗ ", theme.fg(colour));
    let mut answers = Vec::new();
    if question.feedback.is_some() {
        answers.push(Span::styled("say what to do instead, then Enter · Esc back", theme.fg(theme.accent)));
    } else {
        let always = it.rule.as_ref().map(|rule| match rule {
            _ if columns < 62 => "always",
            Rule::FileChanges => "always: file changes",
            Rule::Command(_) => "always: this command",
        });
        for (keys, short, label) in [
            ("Alt+Y", "y", Some("once")),
            ("Alt+A", "a", always),
            ("Alt+N", "n", Some("no")),
            ("Alt+F", "f", Some(if columns < 62 { "no…" } else { "no, because…" })),
        ] {
            if let Some(label) = label {
                answers.push(Span::styled(if focused { short } else { keys }, theme.fg(theme.accent)));
                // An answer stays on one line: its blanks do not break.
                answers.push(Span::styled(format!("\u{a0}{}", label.replace(' ', "\u{a0}")), theme.fg(theme.text)));
                answers.push(Span::raw("  "));
            }
        }
    }
    wrap_lines(&answers, columns, &[corner], &[Span::raw("   ")])
}

fn asks(tool: &str) -> String {
    match tool {
        "bash" => "Allow this command?".to_owned(),
        "run" => "Allow this line?".to_owned(),
        "edit" => "Allow this edit?".to_owned(),
        "write" => "Allow this file to be written?".to_owned(),
        other => format!("Allow {}?", visible(other)),
    }
}

fn draw_composer(state: &mut State, canvas: &mut Canvas, area: Rect) {
    let colour = match state.questions.first() {
        Some(question) if question.feedback.is_some() => state.theme.warning,
        _ => mode_colour(&state.theme, state.history.settings.mode),
    };
    let block = Block::bordered().border_type(BorderType::Rounded).border_style(Style::new().fg(colour));
    let inner = block.inner(area);
    canvas.render_widget(block, area);
    canvas.buffer_mut().set_string(inner.x, inner.y, " ❯", state.theme.fg(colour));
    let text = Rect { x: inner.x + 3, width: inner.width.saturating_sub(4), ..inner };
    let placeholder = match (&state.questions.first(), state.is_busy()) {
        (Some(question), _) if question.feedback.is_some() => "What should it do instead?",
        (_, true) => "Say something to the running turn…",
        (_, false) => "Ask pixir…",
    };
    let caret = state.composer.draw(canvas, text, &state.theme, placeholder);
    let is_free = state.overlays.iter().all(|layer| layer.is_aside());
    let has_keys = state.focus == Focus::Composer && is_free && state.search.as_ref().is_none_or(|it| !it.is_typed);
    if let Some(caret) = caret.filter(|_| has_keys) {
        canvas.set_cursor_position(caret);
    }
}

fn draw_status(state: &State, canvas: &mut Canvas, area: Rect) {
    let theme = &state.theme;
    if let Some(search) = &state.search {
        return draw_search(search, state, canvas, area);
    }
    if let Some(search) = &state.past_search {
        let is_found = search.letters.is_empty() || search.found(&state.composer.past).is_some();
        let line = Line::from(vec![
            Span::styled(" sent before: ", theme.fg(theme.accent)),
            Span::styled(visible(&search.letters), theme.fg(if is_found { theme.text } else { theme.warning })),
            Span::styled(if is_found { "" } else { "  not found" }, theme.fg(theme.warning)),
            Span::styled("  Ctrl+R before · Enter take it · Esc back", theme.dim()),
        ]);
        return canvas.line(line, area);
    }
    let columns = usize::from(area.width);
    let clock = state.busy_since.map_or(String::new(), |since| format!(" {}", human_duration(whole(since.elapsed()))));
    let spinner = SPINNER[usize::try_from(state.frame).unwrap_or(0) % SPINNER.len()];
    let toast = state.toast.as_ref().filter(|(_, since)| !state.is_animated() || since.elapsed() < TOAST);
    let left = match (state.primed, toast, state.status) {
        (Primed::Quit, ..) => Span::styled(" Ctrl+C again quits".to_owned(), theme.fg(theme.warning)),
        (Primed::Tree, ..) => Span::styled(" Esc again opens the tree".to_owned(), theme.fg(theme.accent)),
        (Primed::Nothing, Some((text, _)), _) => Span::styled(format!(" {}", visible(text)), theme.fg(theme.accent)),
        (Primed::Nothing, None, Status::Thinking) => {
            // A long call takes a while to write, and nothing else is seen of it.
            let doing = match &state.writing {
                Some((name, bytes)) if *bytes >= 1_000 => format!("preparing {} ({}B)", visible(name), short(*bytes)),
                Some(_) | None => "thinking".to_owned(),
            };
            // A server that says nothing looks like a model that thinks; the difference is worth a word.
            let silence = state.heard.elapsed();
            let wait =
                state.tries_again.map(|at| at.saturating_duration_since(Instant::now())).filter(|it| !it.is_zero());
            let (doing, silence) = match wait {
                Some(wait) => (format!("trying again in {} s", wait.as_secs() + 1), Duration::ZERO),
                None => (doing, silence),
            };
            let clock = if wait.is_some() {
                String::new()
            } else if silence < SILENCE {
                clock
            } else {
                format!("{clock} · nothing for {}", human_duration(whole(silence)))
            };
            Span::styled(format!(" {spinner} {doing}{clock} · Esc interrupts"), theme.fg(theme.accent))
        }
        (Primed::Nothing, None, Status::Working) => {
            Span::styled(format!(" {spinner} working{clock} · Esc interrupts"), theme.fg(theme.accent))
        }
        (Primed::Nothing, None, Status::Asking) => {
            Span::styled(" ● waiting for your answer".to_owned(), theme.fg(theme.warning))
        }
        (Primed::Nothing, None, Status::Idle) => Span::styled(idle_hints(state), theme.dim()),
    };
    let mut right = usage_text(state);
    // Where both do not fit, what is happening is worth more than what it cost.
    if width(&left.content) + width(&right) + 2 > columns {
        right = right.split(" · ").next().unwrap_or_default().to_owned();
    }
    if width(&left.content) + width(&right) + 2 > columns {
        right.clear();
    }
    let left_width = columns.saturating_sub(width(&right) + 2);
    let left = Span::styled(fit(&left.content, left_width), left.style);
    let gap = columns.saturating_sub(width(&left.content) + width(&right) + 1);
    canvas.line(Line::from(vec![left, Span::raw(" ".repeat(gap)), Span::styled(right, theme.dim())]), area);
}

/// Keys that are of use where the person is.
fn idle_hints(state: &State) -> String {
    let hint = |ids: &[(&str, &str)]| {
        let one = |(id, word): &(&str, &str)| {
            let key = state.keymap.key_of(id);
            (!key.is_empty()).then(|| format!("{key} {word}"))
        };
        format!(" {}", ids.iter().filter_map(one).collect::<Vec<_>>().join(" · "))
    };
    if state.labels.is_some() {
        return " press a letter to copy · Esc leaves".to_owned();
    }
    match state.focus {
        Focus::Composer => " / commands · ? help".to_owned(),
        Focus::Question => " y once · a always · n no · f no, because… · Enter all of it".to_owned(),
        Focus::Transcript => hint(&[
            ("cell-next", "next"),
            ("cell-previous", "before"),
            ("next-prompt", "prompt"),
            ("next-error", "error"),
            ("transcript-find", "find"),
            ("copy-labels", "copy"),
            ("fold", "fold"),
            ("transcript-outline", "outline"),
            ("escape", "back"),
        ]),
        Focus::Side => {
            hint(&[("side-next", "tab"), ("side-wider", "wider"), ("side-narrower", "narrower"), ("escape", "back")])
        }
    }
}

/// The line in which is typed what is searched for.
fn draw_search(search: &Search, state: &State, canvas: &mut Canvas, area: Rect) {
    let theme = &state.theme;
    let told = search.told();
    let told_style = if told == "not found" { theme.fg(theme.warning) } else { theme.dim() };
    let line = Line::from(vec![
        Span::styled(" find: ", theme.fg(theme.accent)),
        Span::styled(visible(&search.text), theme.fg(theme.text)),
        Span::styled(format!("  {told}"), told_style),
        Span::styled(
            if search.is_typed {
                "  Enter keep · ↑↓ others · Esc back"
            } else {
                "  n next · N before · Esc done"
            },
            theme.dim(),
        ),
    ]);
    if search.is_typed {
        let x = area.x + 7 + u16::try_from(width(&search.text)).unwrap_or(0);
        canvas.set_cursor_position((x.min(area.right().saturating_sub(1)), area.y));
    }
    canvas.line(line, area);
}

/// Without what is less than a second.
fn whole(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs())
}

/// `1 job · 42% of 128k · 12.4k in · 1.2k out`
pub(crate) fn usage_text(state: &State) -> String {
    let history = &state.history;
    let used = history.last_input.unwrap_or_else(|| history.estimated_tokens());
    let mark = if history.last_input.is_some() { "" } else { "~" };
    let mut parts = Vec::new();
    match state.jobs.iter().filter(|job| job.status == JobStatus::Running).count() {
        0 => {}
        1 => parts.push("1 job".to_owned()),
        n => parts.push(format!("{n} jobs")),
    }
    match state.window {
        Some(window) if used > 0 => parts.push(format!("{mark}{}% of {}", used * 100 / window.max(1), short(window))),
        None if used > 0 => parts.push(format!("{mark}{} tokens", short(used))),
        Some(_) | None => {}
    }
    if history.usage.input > 0 {
        let cached =
            if history.usage.cached > 0 { format!(" ({} cached)", short(history.usage.cached)) } else { String::new() };
        parts.push(format!("↑{}{cached} ↓{}", short(history.usage.input), short(history.usage.output)));
    }
    let cost = history.cost.to_string();
    if !cost.is_empty() {
        parts.push(cost);
    }
    parts.join(" · ")
}

pub(crate) fn short(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{:.1}k", n as f64 / 1e3).replace(".0k", "k"),
        _ => format!("{:.1}M", n as f64 / 1e6).replace(".0M", "M"),
    }
}

fn draw_completions(state: &mut State, canvas: &mut Canvas, composer: Rect) {
    let found = state.composer.completions();
    if found.is_empty() {
        return;
    }
    let rows = u16::try_from(found.len().min(8)).unwrap_or(8).min(composer.y.saturating_sub(2));
    let chosen = state.composer.chosen.min(found.len() - 1);
    let top = (chosen + 1).saturating_sub(usize::from(rows));
    let columns = composer.width.saturating_sub(4).min(90);
    let area = Rect { x: composer.x + 2, y: composer.y.saturating_sub(rows), width: columns, height: rows };
    canvas.fill(area, state.theme.base());
    for (row, (at, completion)) in (area.y..area.bottom()).zip(found.iter().enumerate().skip(top)) {
        let (theme, room) = (&state.theme, usize::from(columns));
        let line = match completion {
            Completion::Command(slash, verb) => {
                let name = fit(&format!(" /{} {}", slash.name, slash.args), 28);
                let pad = " ".repeat(28_usize.saturating_sub(width(&name)));
                Line::from(vec![
                    Span::styled(name, theme.fg(theme.accent)),
                    Span::raw(pad),
                    Span::styled(fit(verb.about, room.saturating_sub(29)), theme.fg(theme.text)),
                ])
            }
            Completion::File(path) => {
                let (folder, name) =
                    path.trim_end_matches('/').rsplit_once('/').map_or(("", path.as_str()), |(f, n)| (f, n));
                let name =
                    if path.ends_with('/') && !name.ends_with('/') { format!("{name}/") } else { name.to_owned() };
                Line::from(vec![
                    Span::styled(format!(" {}", visible(&name)), theme.fg(theme.accent)),
                    Span::styled(
                        format!("  {}", fit(&visible(folder), room.saturating_sub(width(&name) + 4))),
                        theme.dim(),
                    ),
                ])
            }
        };
        let at_row = Rect { y: row, height: 1, ..area };
        let style = if at == chosen { theme.selected() } else { Style::new().bg(theme.panel) };
        canvas.tint(at_row, style);
        canvas.region("option", at_row, || line.to_string());
        canvas.state(false, at == chosen);
        canvas.line(line, at_row);
    }
}
