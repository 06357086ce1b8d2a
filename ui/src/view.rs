//! Draws the State as one frame.

use pixir_core::PLAN_ROLE;
use pixir_core::event::Mode;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType};

use crate::composer;
use crate::input::keys::chord_name;
use crate::overlay::form::FormView;
use crate::overlay::{Overlay, Paint, panel};
use crate::render::text::{fit, visible, width};
use crate::state::side::{Content, WIDE};
use crate::state::{Focus, PendingApproval, State};
use crate::terminal::canvas::{Canvas, RegionState};
use crate::terminal::{Extent, Scene};
use crate::theme::Theme;
use crate::transcript::Mark;

mod approval; // the card of an approval
mod completions; // what completes the word at the caret
mod dock; // the approval, the queue and slow calls, above the composer
mod gauge; // the model's window, and the cost
mod header; // workspace, model, mode, sandbox
mod hud; // what drawing costs
mod inline; // the frame of inline mode
mod replay; // the bar of a replay
mod side; // the side panel
mod status; // the status line
mod transcript; // the conversation
mod welcome; // the first screen of an empty Session

/// The smallest screen, in columns and rows, that has room for the interface.
const SMALLEST: (u16, u16) = (40, 10);

/// With fewer rows above the composer, a dialog of an approval covers the composer too.
const LEAST_DOCKED: u16 = 7;
/// Screens of at least this height have a blank row below the header.
const AIRY: u16 = 20;

/// The screen has room for the interface.
fn has_room(columns: u16, rows: u16) -> bool {
    columns >= SMALLEST.0 && rows >= SMALLEST.1
}

impl Scene for State {
    fn wants_whole_screen(&self, columns: u16, rows: u16) -> bool {
        self.wants_whole_screen() || !has_room(columns, rows)
    }

    fn take_repaint(&mut self) -> bool {
        std::mem::take(&mut self.terminal.repaint)
    }

    fn is_read_out(&self) -> bool {
        self.look.screen_reader
    }

    fn draw(&mut self, canvas: &mut Canvas, size: (u16, u16)) {
        draw(self, canvas, size);
    }

    fn print(&mut self, settled: &mut Canvas, open: &mut Canvas, size: (u16, u16), extent: Extent) -> bool {
        inline::draw(self, [settled, open], size, extent)
    }
}

/// Draws everything on a screen of this size, and places the caret.
pub(crate) fn draw(state: &mut State, canvas: &mut Canvas, size: (u16, u16)) {
    canvas.begin(size, state.look.theme.base());
    let area = canvas.area();
    canvas.is_bare = state.look.screen_reader;
    if !has_room(area.width, area.height) {
        let text = fit(&format!("pixir needs {}x{}", SMALLEST.0, SMALLEST.1), usize::from(area.width));
        canvas.line(
            Line::styled(text, state.look.theme.fg(state.look.theme.warning)),
            Rect { height: 1.min(area.height), ..area },
        );
        return;
    }
    let mut foot = Foot::measure(state, area);
    let row = |y: u16, height: u16| Rect { y, height, ..area };
    // On a small screen each row counts.
    let air = u16::from(area.height >= AIRY && !state.look.screen_reader);
    let (header, body) = (row(0, 1), row(1 + air, foot.dock.y.saturating_sub(1 + air)));
    let has_content =
        !state.history.plan.is_empty() || state.transcript.has_mark(Mark::Change, 0..state.transcript.len());
    let side_columns = state.side.columns(area.width, if has_content { Content::Some } else { Content::None });
    state.layout.is_wide = area.width >= WIDE;
    state.layout.side =
        (side_columns > 0).then(|| Rect { x: area.right() - side_columns, width: side_columns, ..body });
    // A free column keeps the scrollbar apart from the edge of the panel.
    let gap = u16::from(side_columns > 0);
    let body = Rect { width: body.width - side_columns - gap, ..body };
    header::draw(state, canvas, header);
    if canvas.regions.is_some() {
        let text = canvas.row_text(header.y);
        canvas.region("header", header, || text);
    }
    canvas.region("transcript", body, || format!("{} entries", state.transcript.len()));
    canvas.region_state(RegionState { focused: state.focus == Focus::Transcript, selected: false });
    transcript::draw(state, canvas, body);
    if let Some(area) = state.layout.side {
        side::draw(state, canvas, area);
    }
    foot.draw(state, canvas);
    transcript::draw_pill(state, canvas, body, foot.composer);
    if state.overlays.is_empty() {
        completions::draw(state, canvas, foot.composer);
    }
    draw_chord(state, canvas, body);
    // Overlays leave the header and the status line visible.
    let mut middle = Rect { y: header.bottom(), height: area.height.saturating_sub(2), ..area };
    // A question that opens over a layer stays visible below it.
    let is_docked = |overlay: &Overlay| overlay.is_form() && !state.look.screen_reader;
    if state.overlays.len() > 1 && state.overlays.last().is_some_and(is_docked) {
        middle.height = foot.form.y.saturating_sub(middle.y);
    }
    let paint = Paint {
        theme: &state.look.theme,
        highlighter: &state.look.highlighter,
        generation: state.look.generation,
        keys: &state.keys.map,
        wall: state.now.wall,
        home: state.session.home.as_deref(),
    };
    let top = state.overlays.iter().rposition(|overlay| !overlay.is_aside() && !is_docked(overlay));
    for (at, overlay) in state.overlays.iter_mut().enumerate() {
        if overlay.is_form() && !state.look.screen_reader {
            continue;
        }
        // The conversation and lower layers step back behind the layer that has the keys.
        if Some(at) == top && !canvas.is_bare {
            canvas.recede(middle, state.look.theme.dim());
        }
        canvas.region("dialog", middle, || overlay.view().title().to_owned());
        canvas.region_state(RegionState { focused: !overlay.is_aside(), selected: false });
        let above_composer = foot.composer.y.saturating_sub(middle.y);
        let place = if overlay.is_of_card() && above_composer >= LEAST_DOCKED {
            Rect { height: above_composer, ..middle }
        } else {
            middle
        };
        canvas.note = state.note.clone().filter(|_| Some(at) == top);
        overlay.view_mut().draw(canvas, place, paint);
    }
    canvas.note = None;
    // A screen reader reads the line that the caret is on.
    if state.look.screen_reader
        && !state.overlays.is_empty()
        && let Some(chosen) = canvas.regions.iter().flatten().rev().find(|it| it.role == "option" && it.state.selected)
    {
        canvas.caret = Some(Position { x: chosen.area.x, y: chosen.area.y });
    }
    if canvas.is_bare {
        canvas.erase_drawing();
    }
    let read = state.overlays.last().and_then(|overlay| overlay.call_read_to_end());
    if let Some(approval) = state.approvals.first_mut()
        && read == Some((approval.approval.call_id.as_str(), approval.approval.agent.as_ref()))
    {
        approval.is_read = true;
    }
    if state.layout.hud {
        hud::draw(state, canvas, body);
    }
    state.overlays_drawn();
}

/// The question of the model, unless it is read out.
fn docked_form(state: &State) -> Option<&FormView> {
    state.overlays.iter().find_map(Overlay::form).filter(|_| !state.look.screen_reader)
}

/// The part of the screen below the conversation: dock, composer, status line.
struct Foot {
    lines: Vec<Line<'static>>,
    /// The question of the model, between the conversation and the composer.
    form: Rect,
    /// The whole preview of the approval is on the screen.
    shows_whole_preview: bool,
    dock: Rect,
    composer: Rect,
    status: Rect,
}

impl Foot {
    /// Measures the foot from the bottom of an area up. The conversation gets the rest.
    fn measure(state: &mut State, area: Rect) -> Foot {
        let frame = if state.look.screen_reader { 0 } else { 2 };
        let draft_rows = state.composer.rows(area.width.saturating_sub(4 + frame)).min(area.height / 3).max(1);
        let composer_rows = if state.replay.is_some() { 3 } else { draft_rows + frame };
        let status_rows = status::rows(state, area.width);
        // The approval may take most of the room, but a few rows of the conversation that it is about stay visible
        // above.
        let room = usize::from(area.height.saturating_sub(composer_rows + 1 + status_rows));
        let most = usize::from(area.height * 3 / 5).max(12).min(room - (room / 4).min(3));
        let (lines, shows_whole_preview) = dock::lines(state, area.width, most);
        let dock_rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        let most_of_form = area.height.saturating_sub(composer_rows + 1 + status_rows + dock_rows);
        let form_rows = match docked_form(state) {
            Some(form) => {
                form.rows(area.width, &state.look.theme).min(most_of_form - most_of_form.min(area.height / 6))
            }
            None => 0,
        };
        let row = |y: u16, height: u16| Rect { y, height, ..area };
        let status = row(area.bottom().saturating_sub(status_rows), status_rows);
        let composer = row(status.y.saturating_sub(composer_rows), composer_rows);
        let form = row(composer.y.saturating_sub(form_rows), form_rows.min(composer.y));
        let dock = row(form.y.saturating_sub(dock_rows).max(1), dock_rows.min(form.y.saturating_sub(1)));
        Foot { lines, form, shows_whole_preview, dock, composer, status }
    }

    fn rows(&self) -> u16 {
        self.status.bottom() - self.dock.y
    }

    /// Moves the foot up so that it begins in row `y`.
    fn move_to(&mut self, y: u16) {
        let by = self.dock.y - y;
        for area in [&mut self.dock, &mut self.form, &mut self.composer, &mut self.status] {
            area.y -= by;
        }
    }

    fn draw(&mut self, state: &mut State, canvas: &mut Canvas) {
        let Foot { dock, form, composer, status, .. } = *self;
        state.layout.approval = state.shows_approval().then_some(dock);
        for (row, line) in (dock.y..dock.bottom()).zip(std::mem::take(&mut self.lines)) {
            canvas.line(line, Rect { y: row, height: 1, ..dock });
        }
        // An approval counts as painted from the first frame in which no overlay hides it.
        if let Some(approval) = state.approvals.first_mut().filter(|_| state.overlays.is_empty()) {
            approval.painted.get_or_insert(state.now.at);
            approval.is_read |= self.shows_whole_preview;
        }
        if let Some(PendingApproval { approval, .. }) = state.approvals.first().filter(|_| state.shows_approval()) {
            canvas.region("approval", dock, || format!("{}: {}", approval.tool, approval.preview.target));
            canvas.region_state(RegionState { focused: state.focus == Focus::Approval, selected: false });
        }
        let paint = Paint {
            theme: &state.look.theme,
            highlighter: &state.look.highlighter,
            generation: state.look.generation,
            keys: &state.keys.map,
            wall: state.now.wall,
            home: state.session.home.as_deref(),
        };
        if !form.is_empty()
            && let Some(it) = state.overlays.iter_mut().find(|it| it.is_form())
        {
            let asked = state.approvals.len() + state.forms.len();
            if let Some(form) = it.form_mut() {
                form.waiting = asked;
            }
            canvas.region("dialog", form, || it.view().title().to_owned());
            canvas.region_state(RegionState { focused: !it.is_aside(), selected: false });
            it.view_mut().draw(canvas, form, paint);
        }
        if let Some(it) = &state.replay {
            canvas.region("replay", composer, || format!("{} of {}", it.shown(), it.len()));
            canvas.region_state(RegionState {
                focused: state.focus == Focus::Composer && state.overlays.is_empty(),
                selected: false,
            });
            replay::draw(state, canvas, composer);
        } else {
            canvas.region("composer", composer, || state.composer.text());
            canvas.region_state(RegionState {
                focused: state.focus == Focus::Composer && state.overlays.is_empty(),
                selected: false,
            });
            draw_composer(state, canvas, composer);
        }
        status::draw(state, canvas, status);
        if canvas.regions.is_some() {
            let text = canvas.row_text(status.y);
            canvas.region("status", status, || text);
        }
    }
}

/// The colour of the mode. What can only be read has that of `read-only`.
fn mode_colour(theme: &Theme, state: &State) -> Color {
    match state.history.settings.mode {
        _ if state.session.read_only || state.history.settings.role.as_deref() == Some(PLAN_ROLE) => {
            theme.mode_read_only
        }
        Mode::ReadOnly => theme.mode_read_only,
        Mode::Ask => theme.mode_ask,
        Mode::Auto => theme.mode_auto,
    }
}

/// Draws the keys that can complete the chord that the user has begun.
fn draw_chord(state: &State, canvas: &mut Canvas, area: Rect) {
    if state.keys.chord.is_empty() {
        return;
    }
    let next = state.keys.map.completions(&state.keys.chord, &state.scopes());
    let rows = u16::try_from(next.len()).unwrap_or(u16::MAX).saturating_add(2).min(area.height);
    let columns = next.iter().map(|(keys, spec)| width(keys) + width(spec.about) + 6).max().unwrap_or(20);
    let columns = u16::try_from(columns).unwrap_or(area.width).min(area.width);
    let at = Rect { x: area.right() - columns, y: area.bottom() - rows, width: columns, height: rows };
    let inner = panel(canvas, at, &chord_name(&state.keys.chord), "Esc", &state.look.theme);
    for (y, (keys, spec)) in (inner.y..inner.bottom()).zip(next) {
        let line = Line::from(vec![
            Span::styled(format!("{keys} "), state.look.theme.fg(state.look.theme.accent)),
            Span::styled(spec.about, state.look.theme.fg(state.look.theme.text)),
        ]);
        canvas.line(line, Rect { y, height: 1, ..inner });
    }
}

fn draw_composer(state: &mut State, canvas: &mut Canvas, area: Rect) {
    let colour = match state.approvals.first() {
        Some(approval) if approval.is_in_feedback() => state.look.theme.warning,
        _ => mode_colour(&state.look.theme, state),
    };
    // On the border: what Enter would run, else the effort.
    let label = match state.composer.runs() {
        Some(true) => "runs a command; the model reads it",
        Some(false) => "runs a command; the model does not see it",
        None => state.history.settings.effort.as_deref().unwrap_or_default(),
    };
    let label = match state.composer.mode() {
        Some(composer::Mode::Normal) => "NORMAL",
        Some(composer::Mode::Visual(_)) => "VISUAL",
        Some(composer::Mode::Insert) | None => label,
    };
    if state.look.screen_reader {
        // Without a frame: a screen reader would read its characters.
        canvas.line(Line::styled(">", state.look.theme.fg(colour)), Rect { height: area.height.min(1), ..area });
        let text = Rect { x: area.x + 2, width: area.width.saturating_sub(3), ..area };
        return match state.read_out_form().filter(|form| form.has_keys() && state.printing.inline) {
            Some(form) => draw_answer(form.typed(), state, canvas, text),
            None => draw_draft(state, canvas, text),
        };
    }
    let mut block = Block::bordered().border_type(BorderType::Rounded).border_style(Style::new().fg(colour));
    if !label.is_empty() {
        let label = fit(&format!(" {} ", visible(label)), usize::from(area.width.saturating_sub(4)));
        block = block.title_top(Line::styled(label, state.look.theme.fg(colour)).right_aligned());
    }
    if !state.wants_whole_screen() {
        // Inline mode has no header, so its facts are on the border.
        let settings = &state.history.settings;
        let model = if settings.model.is_empty() {
            "…".to_owned()
        } else {
            format!("{}/{}", settings.provider, settings.model)
        };
        let half = usize::from(area.width / 2);
        let mode = if state.session.read_only { "read-only" } else { settings.mode.name() };
        let mode = format!(" · {mode} ");
        let sandbox = header::sandbox_name(state, half.saturating_sub(1 + width(&model) + width(&mode)));
        let sandbox = sandbox.map(|(text, style)| (format!(" · {text}"), style));
        let taken = 1 + width(&mode) + sandbox.as_ref().map_or(0, |(text, _)| width(text));
        let dim = state.look.theme.dim();
        let mut facts = Line::styled(format!(" {}", fit(&visible(&model), half.saturating_sub(taken))), dim);
        facts.extend(sandbox.map(|(text, style)| Span::styled(text, style)));
        facts.push_span(Span::styled(mode, dim));
        block = block.title_top(facts);
    }
    let inner = block.inner(area);
    canvas.render_widget(block, area);
    canvas.line(Line::styled(" ❯", state.look.theme.fg(colour)), Rect { height: inner.height.min(1), ..inner });
    let text = Rect { x: inner.x + 3, width: inner.width.saturating_sub(4), ..inner };
    draw_draft(state, canvas, text);
}

/// Draws the answer to a form that is read out, and the caret behind it.
fn draw_answer(typed: &str, state: &State, canvas: &mut Canvas, area: Rect) {
    // Of a long answer it is the end, where the user writes.
    let mut shown = visible(typed);
    while width(&shown) >= usize::from(area.width.max(1)) {
        shown.remove(0);
    }
    let end = area.x.saturating_add(u16::try_from(width(&shown)).unwrap_or(0));
    canvas.line(Line::styled(shown, state.look.theme.fg(state.look.theme.text)), Rect { height: 1, ..area });
    canvas.set_cursor_position((end.min(area.right().saturating_sub(1)), area.y));
}

/// Draws the draft, and the caret in it.
fn draw_draft(state: &mut State, canvas: &mut Canvas, text: Rect) {
    let placeholder = match (&state.approvals.first(), state.is_busy()) {
        (Some(approval), _) if approval.is_in_feedback() => "What should the model do instead?",
        (_, true) => "Steer the running turn…",
        (_, false) if state.session.read_only => "Read-only here; /fork continues in a copy…",
        (_, false) => "Ask pixir…",
    };
    let caret = state.composer.draw(canvas, text, &state.look.theme, placeholder);
    let is_free = state.overlays.iter().all(|overlay| overlay.is_aside());
    let has_keys =
        state.focus == Focus::Composer && is_free && state.reading.search.as_ref().is_none_or(|it| !it.is_typed);
    if let Some(caret) = caret.filter(|_| has_keys) {
        canvas.set_cursor_position(caret);
    }
}
