//! Carries out the requests of overlays.

use super::{agents, approval, configure, context, offers, perform, review, run_slash, travel};
use crate::overlay::Request;
use crate::state::{Effect, Focus, State};
use crate::transcript::viewport::CellRow;

pub(super) fn fulfil(state: &mut State, request: Request) -> Vec<Effect> {
    match request {
        Request::Do(effects) => effects,
        Request::Command(text) => run_slash(state, &text),
        Request::Send(inputs) => {
            inputs.iter().for_each(|input| agents::note_told(state, input));
            inputs.into_iter().map(Effect::Send).collect()
        }
        Request::Decide { agent, call_id, decision, word } => {
            approval::decide_about(state, agent.as_ref(), &call_id, decision, word)
        }
        Request::Use(spec) => {
            state.uses.note(spec);
            perform(state, spec.action, "")
        }
        Request::UseTemplate { name, args } => offers::use_template(state, name, args),
        Request::Mention(path) => {
            let quoted = if path.contains(' ') { format!("@\"{path}\" ") } else { format!("@{path} ") };
            state.focus = Focus::Composer;
            state.composer.insert(&quoted);
            Vec::new()
        }
        Request::Complete { draft, hint } => {
            state.composer.set(&draft);
            if let Some(hint) = hint {
                state.say(hint);
            }
            Vec::new()
        }
        Request::Perform(action) => perform(state, action, ""),
        Request::Change { key, value, save } => configure::change(state, &key, &value, save),
        Request::Unset { key, save } => configure::unset(&key, save),
        Request::ChooseModel { provider, model, effort, save } => {
            configure::choose_model(provider, model, effort, save)
        }
        Request::ShowCell(cell) => {
            state.focus = Focus::Transcript;
            state.reading.cell = Some(cell);
            state.viewport.stand_at(CellRow { cell, row: 0 }, &state.transcript);
            Vec::new()
        }
        Request::ShowEntry(seq) => {
            context::show_entry(state, seq);
            Vec::new()
        }
        Request::MoveHead(pending) => travel::preview_move(state, pending),
        Request::MoveWithoutFiles => travel::move_head(state, None),
        Request::Stay => {
            state.pending.head_move = None;
            Vec::new()
        }
        Request::SendReview(message) => review::send(state, message),
        Request::ShowTurnDiff { seq, path } => review::open_turn(state, seq, path),
        Request::KeepReview(review) => {
            state.pending.review = review;
            Vec::new()
        }
        Request::Restore(preview, options) => travel::restore(state, &preview, options),
    }
}
