//! Reading: scrolling, jumping, folding, searching, copying.

use std::time::Duration;

use pixir_core::Fact;

use super::{agents, context, refused, report, review};
use crate::input::action::{Action, Scope, SessionKind, of_slash};
use crate::input::keymap::Keymap;
use crate::input::slash;
use crate::overlay::help::HelpView;
use crate::overlay::outline::Outline;
use crate::overlay::palette::Palette;
use crate::overlay::report::{ReportKind, ReportView};
use crate::render::context::Fold;
use crate::state::{Effect, Focus, State};
use crate::terminal::MouseOwner;
use crate::transcript::reading::find::{Hit, Search};
use crate::transcript::reading::labels::CopyLabels;
use crate::transcript::reading::select::Selection;
use crate::transcript::viewport::CellRow;
use crate::transcript::{Cell, Direction, Mark};

/// The interval at which a search is repeated while an answer streams in.
const SEARCH_AGAIN: Duration = Duration::from_millis(500);

pub(super) fn page(state: &mut State, direction: isize) {
    let rows = isize::try_from(state.viewport.height.saturating_sub(2)).unwrap_or(1).max(1);
    state.scroll(rows * direction);
}

pub(super) fn to_start(state: &mut State) {
    state.viewport.show_start(&state.transcript);
    select(state, 0);
}

pub(super) fn to_end(state: &mut State) {
    state.viewport.follow();
    if state.focus == Focus::Transcript {
        state.reading.cell = last_entry(state);
    }
}

/// The last entry that the user can choose.
fn last_entry(state: &State) -> Option<usize> {
    let all = 0..state.transcript.len();
    all.clone().rev().find(|at| !state.transcript.is_hidden(*at, state.look.details)).or(all.last())
}

/// Moves the focus: composer, approval, transcript, side panel, and around.
pub(super) fn focus_next(state: &mut State) {
    let order = [Focus::Composer, Focus::Approval, Focus::Transcript, Focus::Side];
    let at = order.iter().position(|it| *it == state.focus).unwrap_or(0);
    let there = |focus: &&Focus| match focus {
        Focus::Composer => true,
        Focus::Approval => state.approvals.first().is_some_and(|approval| !approval.is_in_feedback()),
        Focus::Transcript => !state.transcript.is_empty(),
        Focus::Side => state.layout.side.is_some(),
    };
    let next = order.iter().cycle().skip(at + 1).find(there).copied().unwrap_or_default();
    state.focus = next;
    if next == Focus::Transcript && state.reading.cell.is_none() {
        let shown = state.viewport.shown().iter().rev().map(|it| it.cell);
        let details = state.look.details;
        state.reading.cell =
            shown.clone().find(|at| !state.transcript.is_hidden(*at, details)).or(shown.clone().next());
    }
}

pub(super) fn details(state: &mut State) {
    state.look.details = state.look.details.next();
    state.say(match state.look.details {
        Fold::Line => "tool cards: one line each",
        Fold::Some => "tool cards: preview",
        Fold::Full => "tool cards: in full",
    });
    follow_all(state);
    state.look.generation += 1;
}

pub(super) fn thinking(state: &mut State) {
    state.look.thinking = state.look.thinking.next();
    state.say(match state.look.thinking {
        Fold::Line => "reasoning: one line",
        Fold::Some => "reasoning: its end",
        Fold::Full => "reasoning: in full",
    });
    follow_all(state);
    state.look.generation += 1;
}

/// Drops the folds of single entries: all look alike again.
fn follow_all(state: &mut State) {
    state.transcript.follow_all();
    if let Some(search) = &mut state.reading.search {
        search.opened = None;
    }
}

pub(super) fn help(
    state: &mut State,
    view: fn(&Keymap, &[Scope], SessionKind) -> HelpView,
    command: &str,
) -> Vec<Effect> {
    if !command.is_empty() {
        return help_about(state, command);
    }
    let view = view(&state.keys.map, &state.scopes(), state.session_kind());
    state.open(view)
}

/// Usage, keys, availability and Inputs of one command.
fn help_about(state: &mut State, command: &str) -> Vec<Effect> {
    let name = command.trim_start_matches('/');
    match of_slash(name) {
        Some(spec) => {
            let report = report::command(state, spec);
            state.open(ReportView::new(ReportKind::Command, report))
        }
        None => {
            let why = slash::unknown(name, state.composer.offers.as_deref().unwrap_or_default());
            refused::refuse(state, why)
        }
    }
}

/// Opens the palette. `app` reads the saved uses of each action before.
pub(crate) fn palette(state: &mut State) -> Vec<Effect> {
    if !state.uses.is_known() {
        return vec![Effect::OpenPalette];
    }
    let uses = state.uses.counts();
    let palette = Palette::new(&state.keys.map, &state.scopes(), state.session_kind(), state.turn_state(), uses);
    state.open(palette)
}

pub(super) fn outline(state: &mut State) -> Vec<Effect> {
    let outline = Outline::new(&state.transcript, &state.viewport);
    state.open(outline)
}

pub(super) fn toggle_mouse(state: &mut State) {
    state.terminal.mouse_owner = match state.terminal.mouse_owner {
        MouseOwner::Pixir => MouseOwner::Terminal,
        MouseOwner::Terminal => MouseOwner::Pixir,
    };
    state.say(match state.terminal.mouse_owner {
        MouseOwner::Pixir => "clicks and the wheel go to pixir".to_owned(),
        MouseOwner::Terminal => {
            let hints = [(Action::PageUp, "scrolls back"), (Action::PageDown, "scrolls forward")];
            let scroll = state.keys.map.and_hints(&hints);
            format!("clicks and the wheel go to the terminal: select text as usual{scroll}")
        }
    });
}

// ─── The chosen entry ───

/// Chooses an entry, and scrolls to it.
fn select(state: &mut State, cell: usize) {
    state.reading.cell = Some(cell);
    let is_shown = state.viewport.shown().iter().any(|it| it.cell == cell && it.from == 0);
    if !is_shown {
        state.viewport.stand_at(CellRow { cell, row: 0 }, &state.transcript);
    }
}

/// The chosen entry, else the first visible one.
fn chosen(state: &State) -> usize {
    state.reading.cell.or_else(|| state.viewport.shown().first().map(|it| it.cell)).unwrap_or(0)
}

pub(super) fn step(state: &mut State, by: isize) {
    let last = last_entry(state).unwrap_or(0);
    let mut at = chosen(state).min(last);
    // Cells that show nothing are skipped.
    loop {
        let next = at.saturating_add_signed(by).min(last);
        if next == at {
            break;
        }
        at = next;
        if !state.transcript.is_hidden(at, state.look.details) {
            break;
        }
    }
    if at == last && by > 0 {
        state.viewport.follow();
    }
    select(state, at);
}

pub(super) fn jump(state: &mut State, mark: Mark, direction: Direction) {
    match state.transcript.next_mark(mark, chosen(state), direction) {
        Some(cell) => {
            state.reading.cell = Some(cell);
            state.viewport.stand_at(CellRow { cell, row: 0 }, &state.transcript);
        }
        None => {
            let what = match mark {
                Mark::Prompt => "prompt",
                Mark::Error => "error",
                Mark::Change => "change",
                Mark::Compaction => "compaction",
            };
            let side = match direction {
                Direction::Forward => "after",
                Direction::Back => "before",
            };
            state.say(format!("there is no {what} {side} this one"));
        }
    }
}

pub(super) fn fold(state: &mut State) {
    let cell = chosen(state);
    fold_cell(state, cell);
}

/// Cycles how much of an entry is shown.
pub(super) fn fold_cell(state: &mut State, cell: usize) {
    let usual = match state.transcript.cell(cell) {
        Some(Cell::Thinking(_) | Cell::Thoughts(_)) => state.look.thinking,
        Some(Cell::Recorded(entry)) if matches!(entry.fact, Fact::Reasoning(_)) => state.look.thinking,
        _ => state.transcript.usual_fold(cell, state.look.details),
    };
    // The fold is the user's own now, and does not go back with the search that opened it.
    if let Some(search) = &mut state.reading.search {
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

pub(super) fn open(state: &mut State) -> Vec<Effect> {
    let cell = chosen(state);
    if let Some(entered) = agents::of_cell(state, cell) {
        return vec![entered];
    }
    if let Some(result) = review::result_of(state, cell) {
        return review::open(state, Some(result), None);
    }
    if let Some(opened) = context::open_compaction(state, cell) {
        return opened;
    }
    state.viewport.stay(&state.transcript);
    let is_closed_run = state.transcript.usual_fold(cell, state.look.details) != state.look.details
        && state.transcript.fold_of(cell).is_none_or(|fold| fold == Fold::Line);
    state.transcript.set_fold(cell, Some(if is_closed_run { Fold::Some } else { Fold::Full }));
    Vec::new()
}

// ─── Searching ───

/// Opens the search line, or searches for `text` at once.
pub(super) fn find(state: &mut State, text: &str) -> Vec<Effect> {
    fold_again(state, None);
    // A search within a search leads back to where the first one began.
    let before = match state.reading.search.take() {
        Some(search) => search.before,
        None => {
            state.reading.focus_before_search = state.focus;
            state.viewport.anchor()
        }
    };
    let mut search = Search::new(before);
    search.text = text.to_owned();
    search.is_typed = text.is_empty();
    state.reading.search = Some(search);
    if text.is_empty() {
        return Vec::new();
    }
    state.focus = Focus::Transcript;
    start_search(state)
}

/// Searches for the text that the user has just changed.
pub(super) fn start_search(state: &mut State) -> Vec<Effect> {
    let Some(search) = &mut state.reading.search else { return Vec::new() };
    state.reading.searches += 1;
    search.number = state.reading.searches;
    (search.matches, search.is_again) = (None, false);
    if search.text.is_empty() {
        return Vec::new();
    }
    vec![Effect::Find { number: search.number, text: search.text.clone() }]
}

/// Repeats the search now and then while an answer streams in.
pub(super) fn search_again_soon(state: &mut State) -> Vec<Effect> {
    let is_due = state.reading.search.as_ref().is_some_and(|search| {
        search.matches.is_some() && search.searched_at.is_none_or(|at| state.now.since(at) >= SEARCH_AGAIN)
    });
    if is_due { search_again(state) } else { Vec::new() }
}

/// Repeats the search because the transcript has grown.
pub(super) fn search_again(state: &mut State) -> Vec<Effect> {
    let Some(search) = state.reading.search.as_mut().filter(|search| !search.text.is_empty()) else {
        return Vec::new();
    };
    if search.matches.is_none() {
        search.is_stale = true;
        return Vec::new();
    }
    state.reading.searches += 1;
    (search.number, search.is_again, search.searched_at) = (state.reading.searches, true, Some(state.now.at));
    vec![Effect::Find { number: search.number, text: search.text.clone() }]
}

pub(super) fn next_match(state: &mut State, direction: Direction) {
    let at = chosen(state);
    let Some(search) = &mut state.reading.search else {
        state.say(format!("no search yet{}", state.keys.map.and_hints(&[(Action::Find, "searches")])));
        return;
    };
    match search.step(at, direction) {
        Some(hit) => show_hit(state, hit),
        None => state.say("no matches"),
    }
}

/// Closes the fold that a search has opened, unless the next hit is in the same cell.
pub(super) fn fold_again(state: &mut State, next: Option<usize>) {
    let opened =
        state.reading.search.as_mut().and_then(|search| search.opened.take_if(|(cell, _)| Some(*cell) != next));
    if let Some((cell, fold)) = opened {
        state.viewport.stay(&state.transcript);
        state.transcript.set_fold(cell, fold);
    }
}

/// Scrolls to a hit, and opens the fold around it.
pub(super) fn show_hit(state: &mut State, hit: Hit) {
    state.reading.cell = Some(hit.cell);
    fold_again(state, Some(hit.cell));
    let text = state.reading.search.as_ref().map(|search| search.text.clone()).unwrap_or_default();
    let row = state.row_of_hit(&text, hit);
    // A third of the viewport stays above the hit, for its context.
    let above = isize::try_from(state.viewport.height / 3).unwrap_or(0);
    state.viewport.stand_at(CellRow { cell: hit.cell, row }, &state.transcript);
    state.scroll(-above);
}

// ─── Copying ───

pub(super) fn show_labels(state: &mut State) {
    let labels = CopyLabels::of(&state.transcript, &state.viewport);
    if labels.is_empty() {
        state.say("nothing on the screen can be copied");
    } else {
        state.reading.labels = Some(labels);
    }
}

pub(super) fn copy(state: &mut State, what: &str) -> Vec<Effect> {
    match what {
        "" | "answer" => match state.transcript.last_answer() {
            Some(answer) => vec![Effect::Copy(answer.to_owned())],
            None => {
                state.say("there is no answer yet");
                Vec::new()
            }
        },
        "code" => {
            show_labels(state);
            Vec::new()
        }
        other => refused::refuse(state, format!("/copy takes `answer` or `code`, not `{other}`")),
    }
}

/// Copies the selected text.
pub(super) fn copy_selection(state: &mut State) -> Vec<Effect> {
    let Some(selection) = state.reading.selection.clone() else { return Vec::new() };
    let text = state.selected_text(&selection);
    if text.trim().is_empty() {
        state.reading.selection = None;
        return Vec::new();
    }
    vec![Effect::Copy(text)]
}

pub(super) fn start_selection(state: &mut State, at: CellRow, column: usize, clicks: u8) {
    state.reading.selection = Some(Selection::new(at, column, clicks));
}

// ─── The side panel ───

pub(super) fn toggle_side(state: &mut State) {
    if state.layout.side.is_some() {
        state.side.hide()
    } else {
        state.side.show()
    }
    if !state.layout.is_wide {
        state.say("the side panel needs a screen of 120 columns");
    }
    if state.focus == Focus::Side {
        state.focus = Focus::Composer;
    }
}
