//! How the State changes: keys, pastes, mouse events and slash commands here, Events of the Session in `events`.

use std::time::Instant;

use ratatui::layout::Position;

use crate::composer::dropped_image;
use crate::input::action::{Action, LayerAction, Scope, When};
use crate::input::keymap::Lookup;
use crate::input::keys::Key;
use crate::input::slash;
use crate::overlay::narrow::cut_word;
use crate::overlay::{Outcome, Press};
use crate::state::{Effect, Focus, OnHarness, PendingConfirm, State};
use crate::terminal::key::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use crate::transcript::Direction;

pub(crate) mod agents; // agents: their list, their questions, the way in and back
mod approval; // decisions about a call
pub(crate) mod arguments; // completions of an argument
pub(crate) mod commands; // slash commands about the Session as a whole
pub(crate) mod configure; // settings that are changed in place
pub(crate) mod connect; // a model that is connected while pixir runs
mod context; // what fills the context, and compactions
pub(crate) mod events; // Events of the Session, and results of background tasks
pub(crate) mod offers; // slash commands of templates and skills
mod overlay; // requests of overlays
mod perform; // the effect of each action
pub(crate) mod read; // scroll, jump, fold, search, copy
pub(crate) mod refused; // slash commands that go back into the composer
mod report; // what /status, /usage and /plan show
pub(crate) mod review; // the diff: what it reads, what it decides
pub(crate) mod replay; // steps through a replay
pub(crate) mod send; // sending, interrupting, quitting
pub(crate) mod settings; // model, mode, theme and other settings
pub(crate) mod travel; // moves of the head; undo and redo
mod verb; // verbs as their Inputs
pub(crate) mod workflow; // runs of workflows
mod write; // edits and completions of the draft

pub(crate) use perform::perform;

/// Rows that one notch of the wheel scrolls.
const NOTCH: isize = 3;
/// The longest pause between the clicks of a double click.
const DOUBLE_CLICK: std::time::Duration = std::time::Duration::from_millis(400);

/// Handles a key. The first of these that uses the key gets it: the top overlay, an unfinished interaction (a search,
/// copy labels, a completion), the key map, the draft.
pub(crate) fn on_key(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    let (command, request) = (state.pending.command.take(), state.pending.request.take());
    let mut effects = use_key(state, key);
    refused::forget_asked(state, command, &effects);
    refused::forget_request(state, request, &effects);
    effects.extend(agents::ask_next(state));
    effects
}

fn use_key(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    let quiet_since = std::mem::replace(&mut state.guard.quiet_since, state.now.at);
    (state.toast, state.note, state.mouse.row) = (None, None, None);
    state.guard.early_choice = None;
    if let Some(effects) = on_overlay_key(state, key, quiet_since) {
        return effects;
    }
    if let Some(effects) = on_search_key(state, key).or_else(|| on_label_key(state, key)) {
        return effects;
    }
    if let Some(effects) = write::on_past_key(state, key).or_else(|| write::on_completion_key(state, key)) {
        return effects;
    }
    let is_alone = state.keys.chord.is_empty() && state.composer.is_empty();
    if key.code == KeyCode::Char('?') && is_alone && state.focus != Focus::Approval {
        return perform(state, Action::OpenHelp, "");
    }
    if let Some(effects) = connect::on_welcome_key(state, key) {
        return effects;
    }
    if let Some(effects) = write::on_vim_key(state, key) {
        state.guard.confirm = PendingConfirm::Nothing;
        return effects;
    }
    state.keys.chord.push(Key::of(key));
    let scopes = state.scopes();
    match state.keys.map.find(&state.keys.chord, &scopes) {
        Lookup::Action(spec) => {
            state.keys.chord.clear();
            let decides = matches!(spec.scope, Scope::Approval | Scope::ApprovalFocus);
            // A key that is held down was pressed before the approval appeared.
            if decides && key.kind == KeyEventKind::Repeat {
                return Vec::new();
            }
            if decides {
                state.guard.quiet_since = quiet_since;
            }
            return perform(state, spec.action, "");
        }
        Lookup::Prefix => return Vec::new(),
        Lookup::Nothing => {}
    }
    state.guard.confirm = PendingConfirm::Nothing;
    // The last key of an unknown chord is not text.
    let was_chord = state.keys.chord.len() > 1;
    state.keys.chord.clear();
    if was_chord || state.focus != Focus::Composer || state.replay.is_some() {
        return Vec::new();
    }
    write::on_key(state, key)
}

/// Gives the key to the top overlay, unless the overlay leaves the keys to the composer.
fn on_overlay_key(state: &mut State, key: KeyEvent, quiet_since: Instant) -> Option<Vec<Effect>> {
    let is_new = state.guard.top_overlay_since.is_none_or(|(_, since)| state.now.since(since) < state.guard.delay);
    let overlay = state.overlays.last_mut()?;
    let is_guarded = is_new && overlay.view().is_guarded();
    if let Some(form) = overlay.form_mut() {
        if !form.has_keys() {
            if key.code == KeyCode::Tab {
                // Before the form was on the screen for a moment, the user did not turn to it.
                if !is_new {
                    form.focus();
                }
                return Some(Vec::new());
            }
            return None;
        }
        // The form appeared while the user was typing: text still goes to the composer, and Enter, Esc and Tab, which
        // would answer or close the form, do nothing.
        if is_guarded && !matches!(key.code, KeyCode::Enter | KeyCode::Esc | KeyCode::Tab) {
            form.yield_keys();
            return None;
        }
        if is_guarded {
            return Some(Vec::new());
        }
        // Such a form takes no words, so these are for the composer: a command, or a message to the run.
        if let KeyCode::Char(letter) = key.code
            && key.modifiers.is_typing()
            && form.leaves_letters()
            && !form.takes(letter)
        {
            form.yield_keys();
            return None;
        }
    }
    let is_text = matches!(key.code, KeyCode::Char(_)) && key.modifiers.is_typing();
    let is_typing = state.keys.chord.is_empty() && overlay.view().is_typing();
    let typed = if is_typing { overlay.view_mut().key(key) } else { None };
    let outcome = match typed {
        Some(outcome) => outcome,
        // Letters for a field never trigger an action.
        None if is_typing && is_text && !overlay.view().leaves_to_actions(key) => Outcome::Stay,
        None => {
            state.keys.chord.push(Key::of(key));
            match state.keys.map.find(&state.keys.chord, overlay.view().scopes()) {
                Lookup::Prefix => return Some(Vec::new()),
                Lookup::Nothing => {
                    overlay.view_mut().forget_question();
                    let chord = std::mem::take(&mut state.keys.chord);
                    return Some(match state.keys.map.find(&chord, &[Scope::Anywhere]) {
                        Lookup::Action(spec) if spec.works_over_overlays() => perform(state, spec.action, ""),
                        _ => Vec::new(),
                    });
                }
                Lookup::Action(spec) => {
                    state.keys.chord.clear();
                    // The full view of an approval answers it under the same conditions as its card.
                    if spec.scope == Scope::ApprovalFocus {
                        if key.kind == KeyEventKind::Repeat {
                            return Some(Vec::new());
                        }
                        state.guard.quiet_since = quiet_since;
                    }
                    match spec.action {
                        // The key can have been pressed before the overlay was visible.
                        Action::Layer(LayerAction::Choose) if is_guarded => return Some(Vec::new()),
                        Action::Layer(LayerAction::Choose) if overlay.view().is_loading() => {
                            state.guard.early_choice = Some(state.overlays.len());
                            return Some(Vec::new());
                        }
                        Action::Layer(LayerAction::OverlayHelp) => return Some(perform(state, Action::OpenHelp, "")),
                        Action::Layer(action) => overlay.view_mut().act(action),
                        action => overlay.view_mut().pass(action),
                    }
                }
            }
        }
    };
    Some(carry_out(state, outcome))
}

/// Chooses what the user chose with Enter before the rows were there, once they are.
pub(crate) fn choose_late(state: &mut State) -> Vec<Effect> {
    let is_ahead = state.guard.early_choice == Some(state.overlays.len());
    match state.overlays.last_mut().filter(|overlay| is_ahead && !overlay.view().is_loading()) {
        Some(overlay) => {
            state.guard.early_choice = None;
            let outcome = overlay.view_mut().act(LayerAction::Choose);
            carry_out(state, outcome)
        }
        None => Vec::new(),
    }
}

/// Carries out what the top overlay asks for.
fn carry_out(state: &mut State, outcome: Outcome) -> Vec<Effect> {
    match outcome {
        Outcome::Stay => Vec::new(),
        Outcome::Close => {
            let request = state.overlays.pop().and_then(|overlay| overlay.leave());
            request.map_or_else(Vec::new, |request| overlay::fulfil(state, request))
        }
        Outcome::Ask(request) => {
            let effects = overlay::fulfil(state, request);
            refused::note_request(state, None, &effects);
            effects
        }
        Outcome::CloseAndAsk(request) => {
            let closed = state.overlays.pop();
            let effects = overlay::fulfil(state, request);
            refused::note_request(state, closed, &effects);
            effects
        }
    }
}

/// While the user types a search, keys edit its text.
fn on_search_key(state: &mut State, key: KeyEvent) -> Option<Vec<Effect>> {
    let search = state.reading.search.as_mut().filter(|search| search.is_typed)?;
    match key.code {
        KeyCode::Esc => {
            read::fold_again(state, None);
            let before = state.reading.search.take().and_then(|search| search.before);
            state.viewport.return_to(before, &state.transcript);
        }
        KeyCode::Enter => {
            search.is_typed = false;
            if search.text.is_empty() {
                read::fold_again(state, None);
                state.reading.search = None;
                return Some(Vec::new());
            }
            state.focus = Focus::Transcript;
            if search.matches.is_some() && search.at.is_none() {
                read::next_match(state, Direction::Forward);
            }
        }
        KeyCode::Up => read::next_match(state, Direction::Back),
        KeyCode::Down => read::next_match(state, Direction::Forward),
        KeyCode::Backspace => {
            search.text.pop();
            return Some(read::start_search(state));
        }
        KeyCode::Char('c') if key.modifiers == KeyModifiers::CONTROL => {
            read::fold_again(state, None);
            state.reading.search = None;
        }
        KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => {
            search.text.clear();
            return Some(read::start_search(state));
        }
        KeyCode::Char('w') if key.modifiers == KeyModifiers::CONTROL => {
            cut_word(&mut search.text);
            return Some(read::start_search(state));
        }
        KeyCode::Char(c) if key.modifiers.is_typing() => {
            search.text.push(c);
            return Some(read::start_search(state));
        }
        _ => {}
    }
    Some(Vec::new())
}

/// While copy labels are shown, the next key chooses one of them.
fn on_label_key(state: &mut State, key: KeyEvent) -> Option<Vec<Effect>> {
    let labels = state.reading.labels.take()?;
    let chosen = labels.0.into_iter().find(|label| key.code == KeyCode::Char(label.letter));
    Some(chosen.map_or_else(Vec::new, |label| vec![Effect::Copy(label.text)]))
}

/// Runs `/name rest`, typed or chosen. A command that cannot run goes back into the composer.
pub(crate) fn run_slash(state: &mut State, text: &str) -> Vec<Effect> {
    refused::note(state, text, &[]);
    let effects = run_command(state, text);
    if state.pending.command.is_some() {
        refused::note(state, text, &effects);
    }
    effects
}

fn run_command(state: &mut State, text: &str) -> Vec<Effect> {
    let Some((spec, rest)) = slash::parse(text) else { return offers::run(state, text) };
    let name = spec.slash.map_or(spec.id, |slash| slash.name);
    if let Some(why) = spec.when.unavailable(state.session_kind(), state.turn_state()) {
        if spec.when == When::Idle && state.replay.is_none() {
            return send::put_off(state, name);
        }
        state.say(format!("/{name} is not available: {why}"));
        return Vec::new();
    }
    // Words that a command would drop without a sound are often meant for the model.
    if !rest.is_empty() && spec.slash.is_some_and(|slash| slash.args.is_empty()) {
        return refused::refuse(state, format!("/{name} takes nothing after its name"));
    }
    state.uses.note(spec);
    perform(state, spec.action, rest)
}

/// Inserts pasted text. It never submits.
pub(crate) fn on_paste(state: &mut State, text: &str) -> Vec<Effect> {
    state.keys.chord.clear();
    state.guard.quiet_since = state.now.at;
    if let Some(search) = state.reading.search.as_mut().filter(|search| search.is_typed) {
        search.text.push_str(text.lines().next().unwrap_or_default());
        return read::start_search(state);
    }
    // The composer holds the prompt that the search has found; the paste goes on from there.
    if let Some(search) = state.composer.past_search.take() {
        state.composer.past.remember(&search.draft);
    }
    match state.overlays.last_mut().filter(|overlay| !overlay.is_aside()) {
        Some(overlay) => overlay.view_mut().paste(text),
        // A replay has no composer.
        None if state.replay.is_some() => {}
        None => {
            state.focus = Focus::Composer;
            // Some terminals send an empty paste if the clipboard holds an image.
            if text.is_empty() {
                return vec![OnHarness::AttachClipboard.into()];
            }
            let takes_images = state.composer.runs().is_none() && state.approvals.iter().all(|it| !it.is_in_feedback());
            if let Some(path) = dropped_image(text).filter(|_| takes_images) {
                return vec![OnHarness::AttachFile { path, pasted: text.to_owned() }.into()];
            }
            state.composer.insert(text);
        }
    }
    Vec::new()
}

/// Handles clicks, drags and the wheel. None if nothing on the screen changes.
pub(crate) fn on_mouse(state: &mut State, mouse: MouseEvent) -> Option<Vec<Effect>> {
    let by = match mouse.kind {
        MouseEventKind::ScrollUp => -NOTCH,
        MouseEventKind::ScrollDown => NOTCH,
        MouseEventKind::Down(MouseButton::Left) => return Some(on_press(state, mouse.column, mouse.row)),
        MouseEventKind::Drag(MouseButton::Left) => {
            on_drag(state, mouse.column, mouse.row);
            return Some(Vec::new());
        }
        MouseEventKind::Up(MouseButton::Left) => return Some(on_release(state)),
        _ => return None,
    };
    let at = Position { x: mouse.column, y: mouse.row };
    state.mouse.row = None;
    match state.overlays.last_mut() {
        Some(overlay) => {
            let outcome = overlay.view_mut().wheel(at, by);
            return Some(carry_out(state, outcome));
        }
        None if state.layout.side.is_some_and(|area| area.contains(at)) => state.side.scroll(by),
        None => state.scroll(by),
    }
    Some(Vec::new())
}

fn on_press(state: &mut State, column: u16, row: u16) -> Vec<Effect> {
    state.keys.chord.clear();
    (state.pending.command, state.note) = (None, None);
    let at = Position { x: column, y: row };
    let again =
        state.mouse.last.is_some_and(|(when, x, y)| (x, y) == (column, row) && state.now.since(when) < DOUBLE_CLICK);
    state.mouse.clicks = if again { state.mouse.clicks % 3 + 1 } else { 1 };
    state.mouse.last = Some((state.now.at, column, row));
    (state.mouse.on_bar, state.mouse.edge) = (false, 0);
    // A key right after a click can be meant for what the click was about.
    state.guard.quiet_since = state.now.at;
    state.reading.selection = None;
    if let Some(overlay) = state.overlays.last_mut() {
        // A second click on the same row is like Enter there.
        let before = state.mouse.row.take();
        let outcome = match overlay.view_mut().press(at) {
            Press::Did(outcome) => *outcome,
            Press::OnRow(row) | Press::Preview(row, _) if before == Some(row) => {
                overlay.view_mut().act(LayerAction::Choose)
            }
            Press::OnRow(row) => {
                state.mouse.row = Some(row);
                Outcome::Stay
            }
            Press::Preview(row, outcome) => {
                state.mouse.row = Some(row);
                *outcome
            }
            Press::Nowhere => Outcome::Stay,
        };
        return carry_out(state, outcome);
    }
    if let Some(bar) = state.replay.as_ref().and_then(|it| it.bar).filter(|bar| bar.contains(at)) {
        replay::to_fraction(state, f64::from(column - bar.x) / f64::from(bar.width.saturating_sub(1).max(1)));
        return Vec::new();
    }
    let area = state.layout.transcript;
    if state.layout.pill.is_some_and(|pill| pill.contains(at)) {
        state.viewport.follow();
    } else if let Some(side) = state.layout.side.filter(|area| area.contains(at)) {
        state.focus = Focus::Side;
        // Two rows at the top are the names of the tabs.
        if let Some(row) = usize::from(at.y - side.y).checked_sub(2)
            && let Some(path) = state.side.choose_row(row, &state.history)
        {
            return review::open(state, None, Some(path));
        }
    } else if area.contains(at) && column + 1 >= area.right() {
        state.mouse.on_bar = true;
        on_drag(state, column, row);
    } else if area.contains(at) {
        if let Some(at) = state.viewport.row_at(usize::from(row - area.y)) {
            let clicks = state.mouse.clicks;
            read::start_selection(state, at, usize::from(column.saturating_sub(area.x + 1)), clicks);
        }
    } else if row >= area.bottom() {
        // A click focuses an approval, but never decides about it.
        let on_approval = state.layout.approval.is_some_and(|area| area.contains(at));
        state.focus = if on_approval { Focus::Approval } else { Focus::Composer };
    }
    Vec::new()
}

fn on_drag(state: &mut State, column: u16, row: u16) {
    let area = state.layout.transcript;
    if state.mouse.on_bar {
        let height = f64::from(area.height.saturating_sub(1).max(1));
        let fraction = f64::from(row.saturating_sub(area.y)) / height;
        state.viewport.show_fraction(fraction, &state.transcript);
        return;
    }
    let is_selecting = state.reading.selection.is_some();
    if is_selecting && state.viewport.anchor().is_none() {
        // New output must not move the text under the selection.
        state.viewport.stay(&state.transcript);
        state.mouse.followed = true;
    }
    state.mouse.edge = isize::from(is_selecting && row >= area.bottom()) - isize::from(is_selecting && row < area.y);
    state.mouse.last = Some((state.now.at, column, row));
    extend_selection(state, column, row);
}

/// Ends the selection where the mouse is.
fn extend_selection(state: &mut State, column: u16, row: u16) {
    let area = state.layout.transcript;
    if area.is_empty() {
        return;
    }
    let row = usize::from(row.clamp(area.y, area.bottom().saturating_sub(1)) - area.y);
    let at = (0..=row).rev().find_map(|row| state.viewport.row_at(row));
    if let (Some(selection), Some(at)) = (&mut state.reading.selection, at) {
        selection.drag_to(at, usize::from(column.saturating_sub(area.x + 1)));
    }
}

/// Scrolls while the button is held at an edge of the transcript.
pub(crate) fn on_edge(state: &mut State) {
    let edge = state.mouse.edge;
    if edge == 0 || state.reading.selection.is_none() {
        return;
    }
    // If the selection scrolls up, the viewport does not return to the end afterwards.
    state.mouse.followed &= edge > 0;
    state.scroll(edge * 2);
    if let Some((_, column, row)) = state.mouse.last {
        extend_selection(state, column, row);
    }
}

fn on_release(state: &mut State) -> Vec<Effect> {
    state.mouse.edge = 0;
    if std::mem::take(&mut state.mouse.on_bar) {
        return Vec::new();
    }
    state.follow_cut();
    if std::mem::take(&mut state.mouse.followed) {
        state.viewport.follow();
    }
    let Some(selection) = &state.reading.selection else { return Vec::new() };
    if !selection.is_click() {
        return read::copy_selection(state);
    }
    // A click on the first row of an entry unfolds it, or folds it.
    let (at, _) = selection.ends().0;
    state.reading.selection = None;
    let rows = state.rows_of(at.cell);
    let first = rows.iter().position(|row| !row.line.spans.is_empty()).unwrap_or(0);
    if at.row == first && state.transcript.folds_by_click(at.cell) {
        read::fold_cell(state, at.cell);
    }
    Vec::new()
}
