//! State → one frame.

use pixir_core::event::Mode;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType};

use crate::composer::{self, Completion};
use crate::input::keys::chord_name;
use crate::overlay::{Paint, panel};
use crate::render::text::{fit, visible, width};
use crate::state::{Connection, Focus, State};
use crate::terminal::canvas::Canvas;
use crate::theme::Theme;
use crate::transcript::Mark;

pub(crate) mod dock; // a question, and what waits
pub(crate) mod inline; // without a screen of its own
mod replay; // the bar of a session that is told again
pub(crate) mod side; // what stands beside the transcript
pub(crate) mod status; // the last line
mod transcript; // the conversation

/// Below this nothing of use can be shown.
const SMALLEST: (u16, u16) = (40, 10);

/// Something of use can be shown.
pub(crate) fn has_room(columns: u16, rows: u16) -> bool {
    columns >= SMALLEST.0 && rows >= SMALLEST.1
}

/// Draws everything, and puts the caret where text is being written.
pub(crate) fn draw(state: &mut State, canvas: &mut Canvas) {
    let area = canvas.area();
    canvas.is_bare = state.is_read_aloud;
    canvas.tint(area, state.theme.base());
    if !has_room(area.width, area.height) {
        let text = fit(&format!("pixir needs {}x{}", SMALLEST.0, SMALLEST.1), usize::from(area.width));
        canvas
            .line(Line::styled(text, state.theme.fg(state.theme.warning)), Rect { height: 1.min(area.height), ..area });
        return;
    }
    let mut foot = Foot::measure(state, area);
    let row = |y: u16, height: u16| Rect { y, height, ..area };
    let (header, body) = (row(0, 1), row(1, foot.dock.y - 1));
    let has_something =
        !state.history.plan.is_empty() || state.transcript.has_mark(Mark::Change, 0..state.transcript.len());
    let beside = state.side.columns(area.width, has_something);
    state.is_wide = area.width >= side::WIDE;
    state.side_area = (beside > 0).then(|| Rect { x: area.right() - beside, width: beside, ..body });
    let body = Rect { width: body.width - beside, ..body };
    draw_header(state, canvas, header);
    if canvas.regions.is_some() {
        let told = canvas.row_text(header.y);
        canvas.region("header", header, || told);
    }
    canvas.region("transcript", body, || format!("{} entries", state.transcript.len()));
    canvas.state(state.focus == Focus::Transcript, false);
    transcript::draw(state, canvas, body);
    if let Some(area) = state.side_area {
        side::draw(state, canvas, area);
    }
    foot.draw(state, canvas);
    transcript::draw_pill(state, canvas, body, foot.composer);
    if state.overlays.is_empty() {
        draw_completions(state, canvas, foot.composer);
    }
    draw_pending(state, canvas, body);
    // Layers leave the header and the status line in sight.
    let middle = Rect { y: header.bottom(), height: area.height.saturating_sub(2), ..area };
    let paint = Paint { theme: &state.theme, highlighter: &state.highlighter, generation: state.generation };
    for layer in &mut state.overlays {
        canvas.region("dialog", middle, || layer.title().to_owned());
        canvas.state(!layer.is_aside(), false);
        layer.draw(canvas, middle, paint);
    }
    // Whoever listens hears what the cursor is on.
    if state.is_read_aloud
        && !state.overlays.is_empty()
        && let Some(chosen) = canvas.regions.iter().flatten().rev().find(|it| it.role == "option" && it.selected)
    {
        canvas.caret = Some(Position { x: chosen.area.x, y: chosen.area.y });
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
        (now, _) => state.layer_since = Some((now, state.now.at)),
    }
}

/// What stands below the conversation: what waits, the line, and how it goes.
struct Foot {
    lines: Vec<Line<'static>>,
    /// All of what is asked about is in sight.
    all_in_sight: bool,
    dock: Rect,
    composer: Rect,
    status: Rect,
}

impl Foot {
    /// From the bottom of an area up; what is above it has the rest.
    fn measure(state: &mut State, area: Rect) -> Foot {
        let frame = if state.is_read_aloud { 0 } else { 2 };
        let draft_rows = state.composer.rows(area.width.saturating_sub(4 + frame)).min(area.height / 3).max(1);
        let composer_rows = if state.replay.is_some() { 3 } else { draft_rows + frame };
        // The question may take most of what the header, the composer and the status line leave: what it is about stands
        // above it, and stays in sight.
        let room = usize::from(area.height.saturating_sub(composer_rows + 2));
        let most = usize::from(area.height * 3 / 5).max(12).min(room - (room / 4).min(3));
        let (lines, all_in_sight) = dock::lines(state, area.width, most);
        let dock_rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        let row = |y: u16, height: u16| Rect { y, height, ..area };
        let status = row(area.bottom().saturating_sub(1), 1);
        let composer = row(status.y.saturating_sub(composer_rows), composer_rows);
        let dock = row(composer.y.saturating_sub(dock_rows).max(1), dock_rows.min(composer.y.saturating_sub(1)));
        Foot { lines, all_in_sight, dock, composer, status }
    }

    fn rows(&self) -> u16 {
        self.status.bottom() - self.dock.y
    }

    /// Lets it begin in another row.
    fn move_to(&mut self, y: u16) {
        let by = self.dock.y - y;
        for area in [&mut self.dock, &mut self.composer, &mut self.status] {
            area.y -= by;
        }
    }

    fn draw(&mut self, state: &mut State, canvas: &mut Canvas) {
        let Foot { dock, composer, status, .. } = *self;
        state.question_area = (!state.questions.is_empty()).then_some(dock);
        for (row, line) in (dock.y..dock.bottom()).zip(std::mem::take(&mut self.lines)) {
            canvas.line(line, Rect { y: row, height: 1, ..dock });
        }
        // A question counts as seen from the frame in which nothing hid it.
        if let Some(question) = state.questions.first_mut().filter(|_| state.overlays.is_empty()) {
            question.painted.get_or_insert(state.now.at);
            question.read |= self.all_in_sight;
        }
        if let Some(question) = state.questions.first() {
            canvas
                .region("question", dock, || format!("{}: {}", question.approval.tool, question.approval.plan.target));
            canvas.state(state.focus == Focus::Question, false);
        }
        if let Some(it) = &state.replay {
            canvas.region("replay", composer, || format!("{} of {}", it.shown(), it.len()));
            canvas.state(state.focus == Focus::Composer && state.overlays.is_empty(), false);
            replay::draw(state, canvas, composer);
        } else {
            canvas.region("composer", composer, || state.composer.text());
            canvas.state(state.focus == Focus::Composer && state.overlays.is_empty(), false);
            draw_composer(state, canvas, composer);
        }
        status::draw(state, canvas, status);
        if canvas.regions.is_some() {
            let told = canvas.row_text(status.y);
            canvas.region("status", status, || told);
        }
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

/// The keys that may follow what was begun.
fn draw_pending(state: &State, canvas: &mut Canvas, area: Rect) {
    if state.pending.is_empty() {
        return;
    }
    let next = state.keymap.after(&state.pending, &state.scopes());
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
        format!("frames {}  cells {}", counts.frames, status::short(counts.cells)),
        format!("bytes  {}  {} a frame", status::short(counts.bytes), counts.bytes / counts.frames.max(1)),
        format!("laid out {} of {} entries", state.transcript.laid_out(), state.transcript.len()),
    ];
    let at =
        Rect { x: area.right().saturating_sub(38), y: area.y, width: 38.min(area.width), height: 7.min(area.height) };
    let inner = panel(canvas, at, "HUD", &state.keymap.key_of("hud"), theme);
    for (y, line) in (inner.y..inner.bottom()).zip(lines) {
        canvas.line(Line::styled(line, theme.dim()), Rect { y, height: 1, ..inner });
    }
}

fn draw_composer(state: &mut State, canvas: &mut Canvas, area: Rect) {
    let colour = match state.questions.first() {
        Some(question) if question.feedback.is_some() => state.theme.warning,
        _ => mode_colour(&state.theme, state.history.settings.mode),
    };
    // On the border: what would be run, else how hard the model thinks.
    let told = match state.composer.runs() {
        Some(true) => "runs here; the model reads it",
        Some(false) => "runs here; the model is not told",
        None => state.history.settings.effort.as_deref().unwrap_or_default(),
    };
    let told = match state.composer.mode() {
        Some(composer::Mode::Normal) => "NORMAL",
        Some(composer::Mode::Visual(_)) => "VISUAL",
        Some(composer::Mode::Insert) | None => told,
    };
    if state.is_read_aloud {
        // Nothing but words.
        canvas.buffer_mut().set_string(area.x, area.y, ">", state.theme.fg(colour));
        let text = Rect { x: area.x + 2, width: area.width.saturating_sub(3), ..area };
        return draw_draft(state, canvas, text);
    }
    let mut block = Block::bordered().border_type(BorderType::Rounded).border_style(Style::new().fg(colour));
    if !told.is_empty() {
        let told = fit(&format!(" {} ", visible(told)), usize::from(area.width.saturating_sub(4)));
        block = block.title_top(Line::styled(told, state.theme.fg(colour)).right_aligned());
    }
    if !state.wants_whole_screen() {
        // There is no header.
        let settings = &state.history.settings;
        let model = if settings.model.is_empty() {
            "…".to_owned()
        } else {
            format!("{}/{}", settings.provider, settings.model)
        };
        let told = fit(&format!(" {model} · {} ", settings.mode.name()), usize::from(area.width / 2));
        block = block.title_top(Line::styled(told, state.theme.dim()));
    }
    let inner = block.inner(area);
    canvas.render_widget(block, area);
    canvas.buffer_mut().set_string(inner.x, inner.y, " ❯", state.theme.fg(colour));
    let text = Rect { x: inner.x + 3, width: inner.width.saturating_sub(4), ..inner };
    draw_draft(state, canvas, text);
}

/// The draft itself, and the caret in it.
fn draw_draft(state: &mut State, canvas: &mut Canvas, text: Rect) {
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

fn draw_completions(state: &mut State, canvas: &mut Canvas, composer: Rect) {
    let found = state.composer.completions();
    if found.is_empty() {
        return;
    }
    // The header stays in sight, and a row of the conversation.
    let kept = if canvas.area().height > composer.bottom() + 1 || !state.inline { 2 } else { 0 };
    let rows = u16::try_from(found.len().min(8)).unwrap_or(8).min(composer.y.saturating_sub(kept));
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
