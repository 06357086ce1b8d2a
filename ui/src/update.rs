//! What the person did: the door by which keys, pastes, the mouse and slash commands change the State.

use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::Position;

use crate::composer::dropped_image;
use crate::input::action::{Scope, VERBS, Verb, When};
use crate::input::keymap::Found;
use crate::input::keys::Key;
use crate::input::slash;
use crate::overlay::Reply;
use crate::overlay::narrow::cut_word;
use crate::state::{Effect, Focus, Primed, State};

pub(crate) mod answer; // may this call run?
pub(crate) mod news; // what the Session said
pub(crate) mod read; // scroll, jump, fold, find, copy
pub(crate) mod replay; // going through a session that is told again
pub(crate) mod send; // the draft, and the ways out
pub(crate) mod settings; // who answers, and how
pub(crate) mod travel; // going elsewhere in the conversation; undo and redo
pub(crate) mod write; // the draft, edited and completed

/// Rows that a notch of the wheel moves.
const NOTCH: isize = 3;
/// Two clicks within so long are a double click.
const DOUBLE: std::time::Duration = std::time::Duration::from_millis(400);

/// A key: the top layer has it first, then what was begun, then the table, then the draft.
pub(crate) fn on_key(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    let quiet_since = std::mem::replace(&mut state.quiet_since, state.now.at);
    state.toast = None;
    if let Some(effects) = on_layer_key(state, key) {
        return effects;
    }
    if let Some(effects) = on_search_key(state, key).or_else(|| on_label_key(state, key)) {
        return effects;
    }
    if let Some(effects) = write::on_past_key(state, key).or_else(|| write::on_completion_key(state, key)) {
        return effects;
    }
    let is_alone = state.pending.is_empty() && state.composer.is_empty();
    if key.code == KeyCode::Char('?') && is_alone && state.focus != Focus::Question {
        return VERBS.iter().find(|verb| verb.id == "help").map_or_else(Vec::new, |verb| (verb.run)(state, ""));
    }
    if let Some(effects) = write::on_vim_key(state, key) {
        state.primed = Primed::Nothing;
        return effects;
    }
    state.pending.push(Key::of(key));
    let scopes = state.scopes();
    match state.keymap.find(&state.pending, &scopes) {
        Found::Verb(verb) => {
            state.pending.clear();
            let answers = matches!(verb.scope, Scope::Approval | Scope::Question);
            // A key that is held down was not pressed for the question that came up under it.
            if answers && key.kind == KeyEventKind::Repeat {
                return Vec::new();
            }
            if answers {
                state.quiet_since = quiet_since;
            }
            return run(state, verb, "");
        }
        Found::Begun => return Vec::new(),
        Found::Nothing => {}
    }
    state.primed = Primed::Nothing;
    // The rest of a chord that means nothing is no text.
    let was_begun = state.pending.len() > 1;
    state.pending.clear();
    if was_begun || state.focus != Focus::Composer || state.replay.is_some() {
        return Vec::new();
    }
    write::on_key(state, key)
}

/// Does what a verb means, if it can be done now.
pub(crate) fn run(state: &mut State, verb: &Verb, args: &str) -> Vec<Effect> {
    // What primes itself looks at what was primed.
    if !matches!(verb.id, "escape" | "stash-or-quit") {
        state.primed = Primed::Nothing;
    }
    (verb.run)(state, args)
}

/// The top layer has the keys, unless it lies aside.
fn on_layer_key(state: &mut State, key: KeyEvent) -> Option<Vec<Effect>> {
    let fresh = state.layer_since.is_none_or(|(_, since)| state.now.since(since) < state.arming);
    let layer = state.overlays.last_mut()?;
    if layer.is_aside() {
        if key.code == KeyCode::Tab {
            layer.turn_to();
            return Some(Vec::new());
        }
        return None;
    }
    // What was meant for the line does not answer what came up meanwhile: whoever writes goes on writing.
    if fresh && layer.must_be_seen() {
        if layer.is_question() && !matches!(key.code, KeyCode::Enter | KeyCode::Esc | KeyCode::Tab) {
            layer.give_way();
            return None;
        }
        if layer.is_question() || key.code == KeyCode::Enter {
            return Some(Vec::new());
        }
    }
    let reply = match (key.code, key.modifiers) {
        (KeyCode::Char('c'), KeyModifiers::CONTROL) => Reply::Close,
        _ => layer.key(key),
    };
    Some(match reply {
        Reply::Stay => Vec::new(),
        Reply::Close => {
            let act = state.overlays.pop().and_then(|mut layer| layer.on_close());
            act.map_or_else(Vec::new, |act| act(state))
        }
        Reply::Act(act) => act(state),
        Reply::CloseAndAct(act) => {
            state.overlays.pop();
            act(state)
        }
    })
}

/// While a search is typed, keys are its text.
fn on_search_key(state: &mut State, key: KeyEvent) -> Option<Vec<Effect>> {
    let search = state.search.as_mut().filter(|search| search.is_typed)?;
    match key.code {
        KeyCode::Esc => {
            read::fold_again(state, None);
            let before = state.search.take().and_then(|search| search.before);
            state.viewport.return_to(before, &state.transcript);
        }
        KeyCode::Enter => {
            search.is_typed = false;
            if search.text.is_empty() {
                read::fold_again(state, None);
                state.search = None;
                return Some(Vec::new());
            }
            state.focus = Focus::Transcript;
            if search.found.is_some() && search.at.is_none() {
                return Some(read::next_match(state, true));
            }
        }
        KeyCode::Up => return Some(read::next_match(state, false)),
        KeyCode::Down => return Some(read::next_match(state, true)),
        KeyCode::Backspace => {
            search.text.pop();
            return Some(read::look_for(state));
        }
        KeyCode::Char('c') if key.modifiers == KeyModifiers::CONTROL => {
            read::fold_again(state, None);
            state.search = None;
        }
        KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => {
            search.text.clear();
            return Some(read::look_for(state));
        }
        KeyCode::Char('w') if key.modifiers == KeyModifiers::CONTROL => {
            cut_word(&mut search.text);
            return Some(read::look_for(state));
        }
        KeyCode::Char(c) if key.modifiers.difference(KeyModifiers::SHIFT).is_empty() => {
            search.text.push(c);
            return Some(read::look_for(state));
        }
        _ => {}
    }
    Some(Vec::new())
}

/// While letters are shown, the next key chooses one of them.
fn on_label_key(state: &mut State, key: KeyEvent) -> Option<Vec<Effect>> {
    let labels = state.labels.take()?;
    let chosen = labels.0.into_iter().find(|label| key.code == KeyCode::Char(label.letter));
    Some(chosen.map_or_else(Vec::new, |label| vec![Effect::Copy(label.text)]))
}

/// `/name rest`, typed or chosen.
pub(crate) fn run_slash(state: &mut State, text: &str) -> Vec<Effect> {
    let (verb, rest) = match slash::parse(text) {
        Ok(found) => found,
        Err(why) => {
            state.composer.set(text);
            state.say(why);
            return Vec::new();
        }
    };
    if verb.when == When::Idle && state.is_busy() {
        state.composer.set(text);
        let name = verb.slash.map_or(verb.id, |slash| slash.name);
        let stop = state.keymap.and_hints(&[("escape", "interrupts it")]);
        state.say(format!("/{name} has to wait until the turn has ended{stop}"));
        return Vec::new();
    }
    run(state, verb, rest)
}

/// Text that was pasted: it never submits.
pub(crate) fn on_paste(state: &mut State, text: &str) -> Vec<Effect> {
    state.pending.clear();
    state.quiet_since = state.now.at;
    if let Some(search) = state.search.as_mut().filter(|search| search.is_typed) {
        search.text.push_str(text.lines().next().unwrap_or_default());
        return read::look_for(state);
    }
    // What was found is in the line, to be gone on with.
    if let Some(search) = state.past_search.take() {
        state.composer.past.remember(&search.draft);
    }
    match state.overlays.last_mut().filter(|layer| !layer.is_aside()) {
        Some(layer) => layer.paste(text),
        // There is no line.
        None if state.replay.is_some() => {}
        None => {
            state.focus = Focus::Composer;
            // Some terminals paste an image that they cannot write as nothing.
            if text.is_empty() {
                return vec![Effect::AttachClipboard];
            }
            let takes_images =
                state.composer.runs().is_none() && state.questions.iter().all(|it| it.feedback.is_none());
            if let Some(path) = dropped_image(text).filter(|_| takes_images) {
                return vec![Effect::AttachFile { path, pasted: text.to_owned() }];
            }
            state.composer.insert(text);
        }
    }
    Vec::new()
}

/// Clicks, drags and the wheel; none when nothing on the screen has changed.
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
    match state.overlays.last_mut() {
        Some(layer) => layer.scroll(by),
        None if state.side_area.is_some_and(|area| area.contains(at)) => drop(read::scroll_side(state, by)),
        None => state.scroll(by),
    }
    Some(Vec::new())
}

fn on_press(state: &mut State, column: u16, row: u16) -> Vec<Effect> {
    state.pending.clear();
    let at = Position { x: column, y: row };
    let again = state.press.last.is_some_and(|(when, x, y)| (x, y) == (column, row) && state.now.since(when) < DOUBLE);
    state.press.clicks = if again { state.press.clicks % 3 + 1 } else { 1 };
    state.press.last = Some((state.now.at, column, row));
    (state.press.on_bar, state.press.edge) = (false, 0);
    state.selection = None;
    if !state.overlays.is_empty() {
        return Vec::new();
    }
    if let Some(bar) = state.replay.as_ref().and_then(|it| it.bar).filter(|bar| bar.contains(at)) {
        return replay::to_fraction(state, f64::from(column - bar.x) / f64::from(bar.width.saturating_sub(1).max(1)));
    }
    let area = state.transcript_area;
    if state.pill.is_some_and(|pill| pill.contains(at)) {
        state.viewport.follow();
    } else if state.side_area.is_some_and(|area| area.contains(at)) {
        state.focus = Focus::Side;
    } else if area.contains(at) && column + 1 >= area.right() {
        state.press.on_bar = true;
        on_drag(state, column, row);
    } else if area.contains(at) {
        if let Some(place) = state.viewport.place_at(usize::from(row - area.y)) {
            let clicks = state.press.clicks;
            read::start_selection(state, place, usize::from(column.saturating_sub(area.x + 1)), clicks);
        }
    } else if row >= area.bottom() {
        // A question is turned to by a click on it, but never answered by one.
        let on_question = state.question_area.is_some_and(|area| area.contains(at));
        state.quiet_since = state.now.at;
        state.focus = if on_question { Focus::Question } else { Focus::Composer };
    }
    Vec::new()
}

fn on_drag(state: &mut State, column: u16, row: u16) {
    let area = state.transcript_area;
    if state.press.on_bar {
        let height = f64::from(area.height.saturating_sub(1).max(1));
        let fraction = f64::from(row.saturating_sub(area.y)) / height;
        state.viewport.show_fraction(fraction, &state.transcript);
        return;
    }
    let is_selecting = state.selection.is_some();
    if is_selecting && state.viewport.anchor().is_none() {
        // What is being selected stands still, whatever is said meanwhile.
        state.viewport.stay(&state.transcript);
        state.press.followed = true;
    }
    state.press.edge = isize::from(is_selecting && row >= area.bottom()) - isize::from(is_selecting && row < area.y);
    state.press.last = Some((state.now.at, column, row));
    extend_selection(state, column, row);
}

/// Where the mouse is now is where the selection ends.
fn extend_selection(state: &mut State, column: u16, row: u16) {
    let area = state.transcript_area;
    if area.is_empty() {
        return;
    }
    let row = usize::from(row.clamp(area.y, area.bottom().saturating_sub(1)) - area.y);
    let place = (0..=row).rev().find_map(|row| state.viewport.place_at(row));
    if let (Some(selection), Some(place)) = (&mut state.selection, place) {
        selection.drag_to(place, usize::from(column.saturating_sub(area.x + 1)));
    }
}

/// The button is still held at an edge: what lies beyond it comes into sight.
pub(crate) fn on_edge(state: &mut State) {
    let edge = state.press.edge;
    if edge == 0 || state.selection.is_none() {
        return;
    }
    // Whoever looks back while selecting has left the end.
    state.press.followed &= edge > 0;
    state.scroll(edge * 2);
    if let Some((_, column, row)) = state.press.last {
        extend_selection(state, column, row);
    }
}

fn on_release(state: &mut State) -> Vec<Effect> {
    state.press.edge = 0;
    if std::mem::take(&mut state.press.on_bar) {
        return Vec::new();
    }
    state.follow_cut();
    if std::mem::take(&mut state.press.followed) {
        state.viewport.follow();
    }
    let Some(selection) = &state.selection else { return Vec::new() };
    if !selection.is_click() {
        return read::copy_selection(state);
    }
    // A click on the first row of an entry shows more of it, or less.
    let (place, _) = selection.ends().0;
    state.selection = None;
    let rows = state.rows_of(place.cell);
    let first = rows.iter().position(|row| !row.line.spans.is_empty()).unwrap_or(0);
    if place.row == first && state.transcript.folds_by_click(place.cell) {
        read::fold_cell(state, place.cell);
    }
    Vec::new()
}
