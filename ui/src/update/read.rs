//! Reading: scrolling, jumping, folding, finding, copying; and what stands beside the transcript.

use std::time::Duration;

use pixir_core::event::Fact;

use crate::overlay::diff::DiffView;
use crate::overlay::help::HelpView;
use crate::state::{Effect, Focus, State};
use crate::transcript::reading::find::{Hit, Search};
use crate::transcript::reading::labels::Labels;
use crate::transcript::reading::select::Selection;
use crate::transcript::viewport::Place;
use crate::transcript::{Cell, Fold, Mark};

pub(crate) fn page(state: &mut State, direction: isize) -> Vec<Effect> {
    let rows = isize::try_from(state.viewport.height.saturating_sub(2)).unwrap_or(1).max(1);
    state.scroll(rows * direction);
    Vec::new()
}

pub(crate) fn to_start(state: &mut State, _: &str) -> Vec<Effect> {
    state.viewport.show_start(&state.transcript);
    select(state, 0);
    Vec::new()
}

pub(crate) fn to_end(state: &mut State, _: &str) -> Vec<Effect> {
    state.viewport.follow();
    if state.focus == Focus::Transcript {
        state.cell = state.transcript.len().checked_sub(1);
    }
    Vec::new()
}

/// The line, a question, the transcript, the side panel, and around.
/// How often it is looked for again while more is being said.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

pub(crate) fn focus_next(state: &mut State, _: &str) -> Vec<Effect> {
    let order = [Focus::Composer, Focus::Question, Focus::Transcript, Focus::Side];
    let at = order.iter().position(|it| *it == state.focus).unwrap_or(0);
    let there = |focus: &&Focus| match focus {
        Focus::Composer => true,
        Focus::Question => state.questions.first().is_some_and(|question| question.feedback.is_none()),
        Focus::Transcript => !state.transcript.is_empty(),
        Focus::Side => state.side_area.is_some(),
    };
    let next = order.iter().cycle().skip(at + 1).find(there).copied().unwrap_or_default();
    state.focus = next;
    if next == Focus::Transcript && state.cell.is_none() {
        state.cell = state.viewport.shown().last().map(|it| it.cell);
    }
    Vec::new()
}

pub(crate) fn details(state: &mut State, _: &str) -> Vec<Effect> {
    state.details = state.details.next();
    state.say(match state.details {
        Fold::Line => "tool cards: one line each",
        Fold::Some => "tool cards: as usual",
        Fold::Full => "tool cards: in full",
    });
    follow_all(state);
    state.generation += 1;
    Vec::new()
}

pub(crate) fn thinking(state: &mut State, _: &str) -> Vec<Effect> {
    state.thinking = state.thinking.next();
    state.say(match state.thinking {
        Fold::Line => "thinking: one line",
        Fold::Some => "thinking: its end",
        Fold::Full => "thinking: in full",
    });
    follow_all(state);
    state.generation += 1;
    Vec::new()
}

/// Every entry is shown like the rest again.
fn follow_all(state: &mut State) {
    state.transcript.follow_all();
    if let Some(search) = &mut state.search {
        search.opened = None;
    }
}

pub(crate) fn help(state: &mut State, view: HelpView) -> Vec<Effect> {
    let view = view.with(state);
    state.open(view)
}

pub(crate) fn repaint(state: &mut State, _: &str) -> Vec<Effect> {
    state.repaint = true;
    Vec::new()
}

pub(crate) fn toggle_hud(state: &mut State, _: &str) -> Vec<Effect> {
    state.hud = !state.hud;
    Vec::new()
}

pub(crate) fn toggle_mouse(state: &mut State, _: &str) -> Vec<Effect> {
    state.mouse = !state.mouse;
    state.say(if state.mouse {
        "clicks and the wheel are pixir's".to_owned()
    } else {
        let scroll = state.keymap.and_hints(&[("page-up", "reads back"), ("page-down", "reads on")]);
        format!("clicks and the wheel are the terminal's: select with them as usual{scroll}")
    });
    Vec::new()
}

// ─── The chosen entry ───

/// Chooses an entry, and brings it into sight.
fn select(state: &mut State, cell: usize) {
    state.cell = Some(cell);
    let is_shown = state.viewport.shown().iter().any(|it| it.cell == cell && it.from == 0);
    if !is_shown {
        state.viewport.stand_at(Place { cell, row: 0 }, &state.transcript);
    }
}

/// The entry that is chosen, else the first in sight.
fn chosen(state: &State) -> usize {
    state.cell.or_else(|| state.viewport.shown().first().map(|it| it.cell)).unwrap_or(0)
}

pub(crate) fn step(state: &mut State, by: isize) -> Vec<Effect> {
    let last = state.transcript.len().saturating_sub(1);
    let mut at = chosen(state).min(last);
    // What shows nothing is passed over.
    loop {
        let next = at.saturating_add_signed(by).min(last);
        if next == at {
            break;
        }
        at = next;
        if !state.transcript.is_hidden(at) {
            break;
        }
    }
    if at == last && by > 0 {
        state.viewport.follow();
    }
    select(state, at);
    Vec::new()
}

pub(crate) fn jump(state: &mut State, mark: Mark, forward: bool) -> Vec<Effect> {
    match state.transcript.next_mark(mark, chosen(state), forward) {
        Some(cell) => {
            state.cell = Some(cell);
            state.viewport.stand_at(Place { cell, row: 0 }, &state.transcript);
        }
        None => {
            let what = match mark {
                Mark::Prompt => "prompt",
                Mark::Error => "error",
                Mark::Change => "change",
                Mark::Compaction => "compaction",
            };
            state.say(format!("there is no {what} {}", if forward { "after this" } else { "before this" }));
        }
    }
    Vec::new()
}

pub(crate) fn fold(state: &mut State, _: &str) -> Vec<Effect> {
    let cell = chosen(state);
    fold_cell(state, cell);
    Vec::new()
}

/// Shows more of an entry, and less again.
pub(crate) fn fold_cell(state: &mut State, cell: usize) {
    let usual = match state.transcript.cell(cell) {
        Some(Cell::Thinking(_) | Cell::Thoughts(_)) => state.thinking,
        Some(Cell::Recorded(entry)) if matches!(entry.fact, Fact::Reasoning(_)) => state.thinking,
        _ => state.details,
    };
    // From now on it is as the person wants it.
    if let Some(search) = &mut state.search {
        search.opened = search.opened.filter(|(opened, _)| *opened != cell);
    }
    state.viewport.stay(&state.transcript);
    if let Some(message) = state.transcript.message_of(cell) {
        let fold = if state.transcript.fold_of(cell) == Some(Fold::Line) { None } else { Some(Fold::Line) };
        select(state, message.start);
        return message.for_each(|at| state.transcript.set_fold(at, fold));
    }
    let now = state.transcript.fold_of(cell).unwrap_or(usual);
    state.transcript.set_fold(cell, Some(now.next()));
}

pub(crate) fn open(state: &mut State, _: &str) -> Vec<Effect> {
    let cell = chosen(state);
    let changed = matches!(state.transcript.cell(cell), Some(Cell::Tool(it)) if it.result().is_some_and(|r| !r.changes.is_empty()));
    if changed {
        return state.open(DiffView::default());
    }
    state.viewport.stay(&state.transcript);
    state.transcript.set_fold(cell, Some(Fold::Full));
    Vec::new()
}

// ─── Finding ───

/// Opens the search line, or searches at once.
pub(crate) fn find(state: &mut State, text: &str) -> Vec<Effect> {
    fold_again(state, None);
    // A search in a search goes back to where the first one was begun.
    let (before, focus) =
        state.search.take().map_or((state.viewport.anchor(), state.focus), |search| (search.before, search.focus));
    let mut search = Search::new(before, focus);
    search.text = text.to_owned();
    search.is_typed = text.is_empty();
    state.search = Some(search);
    if text.is_empty() {
        return Vec::new();
    }
    state.focus = Focus::Transcript;
    look_for(state)
}

/// What is searched for has changed.
pub(crate) fn look_for(state: &mut State) -> Vec<Effect> {
    let Some(search) = &mut state.search else { return Vec::new() };
    state.searches += 1;
    search.number = state.searches;
    (search.found, search.is_again) = (None, false);
    if search.text.is_empty() {
        return Vec::new();
    }
    vec![Effect::Find { number: search.number, text: search.text.clone() }]
}

/// More is being said: what is searched for may be in it, and is looked for now and then.
pub(crate) fn look_again_soon(state: &mut State) -> Vec<Effect> {
    let is_due = state.search.as_ref().is_some_and(|search| {
        search.found.is_some() && search.looked.is_none_or(|looked| state.now.since(looked) >= LOOK_AGAIN)
    });
    if is_due { look_again(state) } else { Vec::new() }
}

/// More was said: what is searched for may be in it.
pub(crate) fn look_again(state: &mut State) -> Vec<Effect> {
    let Some(search) = state.search.as_mut().filter(|search| !search.text.is_empty()) else { return Vec::new() };
    if search.found.is_none() {
        search.is_stale = true;
        return Vec::new();
    }
    state.searches += 1;
    (search.number, search.is_again, search.looked) = (state.searches, true, Some(state.now.at));
    vec![Effect::Find { number: search.number, text: search.text.clone() }]
}

pub(crate) fn next_match(state: &mut State, forward: bool) -> Vec<Effect> {
    let at = chosen(state);
    let Some(search) = &mut state.search else {
        state.say(format!("nothing is searched for{}", state.keymap.and_hints(&[("find", "searches")])));
        return Vec::new();
    };
    match search.step(at, forward) {
        Some(hit) => show_hit(state, hit),
        None => state.say("it was not found"),
    }
    Vec::new()
}

/// What a search has opened is shown as before, unless the reader is taken to the same again.
pub(crate) fn fold_again(state: &mut State, next: Option<usize>) {
    let opened = state.search.as_mut().and_then(|search| search.opened.take_if(|(cell, _)| Some(*cell) != next));
    if let Some((cell, fold)) = opened {
        state.viewport.stay(&state.transcript);
        state.transcript.set_fold(cell, fold);
    }
}

/// Brings a place where it was found into sight; what is folded around it opens.
pub(crate) fn show_hit(state: &mut State, hit: Hit) {
    state.cell = Some(hit.cell);
    fold_again(state, Some(hit.cell));
    let text = state.search.as_ref().map(|search| search.text.clone()).unwrap_or_default();
    let row = state.row_of_hit(&text, hit);
    // A third of the window above it, so that what it belongs to is seen.
    let above = isize::try_from(state.viewport.height / 3).unwrap_or(0);
    state.viewport.stand_at(Place { cell: hit.cell, row }, &state.transcript);
    state.scroll(-above);
}

// ─── Copying ───

pub(crate) fn label(state: &mut State, _: &str) -> Vec<Effect> {
    let labels = Labels::of(state);
    if labels.is_empty() {
        state.say("nothing in sight can be copied by a letter");
    } else {
        state.labels = Some(labels);
    }
    Vec::new()
}

pub(crate) fn copy(state: &mut State, what: &str) -> Vec<Effect> {
    match what {
        "" | "answer" => match state.transcript.last_answer() {
            Some(answer) => vec![Effect::Copy(answer.to_owned())],
            None => {
                state.say("there is no answer yet");
                Vec::new()
            }
        },
        "code" => label(state, ""),
        other => {
            state.say(format!("`{other}` is neither answer nor code"));
            Vec::new()
        }
    }
}

/// What was selected with the mouse.
pub(crate) fn copy_selection(state: &mut State) -> Vec<Effect> {
    let Some(selection) = state.selection.clone() else { return Vec::new() };
    let text = state.selected_text(&selection);
    if text.trim().is_empty() {
        state.selection = None;
        return Vec::new();
    }
    vec![Effect::Copy(text)]
}

pub(crate) fn start_selection(state: &mut State, place: Place, column: usize, clicks: u8) {
    state.selection = Some(Selection::new(place, column, clicks));
}

// ─── Beside the transcript ───

pub(crate) fn toggle_side(state: &mut State, _: &str) -> Vec<Effect> {
    state.side.toggle(state.side_area.is_some());
    if !state.is_wide {
        state.say("the side panel needs a screen of 120 columns");
    }
    if state.focus == Focus::Side {
        state.focus = Focus::Composer;
    }
    Vec::new()
}

pub(crate) fn turn_side(state: &mut State, by: isize) -> Vec<Effect> {
    state.side.turn(by, &state.history);
    Vec::new()
}

pub(crate) fn widen_side(state: &mut State, by: i16) -> Vec<Effect> {
    state.side.widen(by);
    Vec::new()
}

pub(crate) fn scroll_side(state: &mut State, by: isize) -> Vec<Effect> {
    state.side.top = state.side.top.saturating_add_signed(by);
    Vec::new()
}
