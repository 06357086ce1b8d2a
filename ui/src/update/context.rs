//! Compactions and the context: what the user asks for, and what the Session answers.

use pixir_core::event::{CompactionPreview, ContextReport, Trigger};
use pixir_core::input::CompactOptions;
use pixir_core::{Fact, Input, compaction};

use crate::input::action::Action;
use crate::overlay::compaction::CompactionView;
use crate::overlay::{Layer as _, Notification, Overlay, View};
use crate::state::side::Tab;
use crate::state::{Effect, Focus, State};
use crate::transcript::Cell;
use crate::transcript::viewport::CellRow;

// ─── Compactions ───

/// Asks for a preview, with a summary by the model.
pub(super) fn compact(state: &mut State, instructions: &str) -> Vec<Effect> {
    let instructions = Some(instructions.to_owned()).filter(|it| !it.is_empty());
    state.pending.compaction = Some(instructions.clone());
    let options = CompactOptions { draft: true, ..CompactOptions::default() };
    vec![Effect::Send(Input::Compact { instructions, dry_run: true, options })]
}

/// A preview has arrived: the one that the user asked for opens, a later one of the same compaction replaces it.
pub(super) fn on_preview(state: &mut State, preview: CompactionPreview) -> Vec<Effect> {
    if let Some(instructions) = state.pending.compaction.take() {
        return state.open(CompactionView::new(preview, instructions));
    }
    let open = state.overlays.iter_mut().rev().filter_map(CompactionView::of).find(|it| it.is_guarded());
    // The user may have closed it, and another Presenter may have asked.
    if let Some(open) = open {
        open.replace(preview);
    }
    Vec::new()
}

/// Opens the compaction of this cell, as it was recorded.
pub(super) fn open_compaction(state: &mut State, cell: usize) -> Option<Vec<Effect>> {
    let Some(Cell::Recorded(entry)) = state.transcript.cell(cell) else { return None };
    let preview = compaction::recorded(&state.history, entry.seq)?;
    Some(state.open(CompactionView::recorded(preview)))
}

// ─── The context ───

/// Something on the screen shows what fills the context.
fn is_shown(state: &State) -> bool {
    let in_panel = state.layout.side.is_some() && state.side.tab(&state.history) == Tab::Context;
    in_panel || state.overlays.iter().any(|overlay| matches!(overlay, Overlay::Context(_)))
}

/// Asks what fills the context, if that is on the screen.
pub(super) fn refresh(state: &State) -> Vec<Effect> {
    if state.replay.is_some() || !is_shown(state) {
        return Vec::new();
    }
    vec![Effect::Send(Input::ShowContext)]
}

/// The Session has listed it.
pub(super) fn on_listed(state: &mut State, report: Box<ContextReport>) {
    let history = &state.history;
    for overlay in &mut state.overlays {
        overlay.view_mut().notify(Notification::Context { report: &report, history });
    }
    state.session.context = Some(report);
}

/// An Entry was recorded that changes what fills the context, once for each request and each change by the user.
pub(super) fn after(state: &mut State, fact: &Fact) -> Vec<Effect> {
    match fact {
        Fact::HistoryCompaction(it) => {
            if it.trigger == Trigger::Manual && state.replay.is_none() {
                let tree = state.keys.map.and_hints(&[(Action::OpenTree, "goes back to before it")]);
                state.say(format!("compacted{tree}"));
            }
            refresh(state)
        }
        Fact::ProviderUsage(_) | Fact::TurnEnded(_) => refresh(state),
        _ => Vec::new(),
    }
}

/// Shows the cell of an entry.
pub(super) fn show_entry(state: &mut State, seq: u64) {
    let cell = state.transcript.cells().iter().position(|cell| match cell {
        Cell::Recorded(entry) | Cell::Part(entry, _) => entry.seq == seq,
        Cell::Tool(tool) => tool.entries().any(|entry| entry.seq == seq),
        Cell::Workflow(card) => card.seq() == seq,
        Cell::Thoughts(entries) => entries.iter().any(|entry| entry.seq == seq),
        Cell::Drafted(_) | Cell::Tail | Cell::Thinking(_) | Cell::Error(_) | Cell::Notice(..) | Cell::Gone => false,
    });
    match cell {
        Some(cell) => {
            state.focus = Focus::Transcript;
            state.reading.cell = Some(cell);
            state.viewport.stand_at(CellRow { cell, row: 0 }, &state.transcript);
        }
        None => state.say("the transcript does not show this part"),
    }
}
