//! Carries out the requests of overlays.

use super::{agents, approval, configure, context, offers, perform, review, run_slash, travel};
use crate::overlay::Request;
use crate::overlay::tree::Sides;
use crate::state::{Effect, Focus, State};
use crate::transcript::viewport::CellRow;

pub(super) fn fulfil(state: &mut State, request: Request) -> Vec<Effect> {
    match request {
        Request::Command(text) => run_slash(state, &text),
        Request::Send(inputs) => {
            inputs.iter().for_each(|input| agents::note_told(state, input));
            inputs.into_iter().map(Effect::Send).collect()
        }
        Request::Decide { agent, call_id, decision, word } => {
            approval::decide_about(state, agent.as_ref(), &call_id, decision, word)
        }
        Request::ReadAgent(session) => vec![Effect::ReadAgent(session)],
        Request::EnterAgent(path) => vec![Effect::EnterAgent { path, from_list: true }],
        Request::Use(spec) => {
            state.uses.note(spec);
            perform(state, spec.action, "")
        }
        Request::Stored(works) => works.into_iter().map(Effect::Stored).collect(),
        Request::ReadSkill(skill) => vec![Effect::ReadSkill(skill)],
        Request::UseTemplate { name, args } => offers::use_template(state, name, args),
        Request::ReadJob { job, path } => vec![Effect::ReadJob { job, path }],
        Request::FindFiles(letters) => vec![Effect::FindFiles(letters)],
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
        Request::RestoreTheme(name) => vec![Effect::RestoreTheme(name)],
        Request::Change { key, value, save } => configure::change(state, &key, &value, save),
        Request::Unset { key, save } => configure::unset(&key, save),
        Request::ChooseModel { provider, model, effort, save } => {
            configure::choose_model(provider, model, effort, save)
        }
        Request::Connect(order) => vec![Effect::Connect(order)],
        Request::ShowCell(cell) => {
            state.focus = Focus::Transcript;
            state.reading.cell = Some(cell);
            state.viewport.stand_at(CellRow { cell, row: 0 }, &state.transcript);
            Vec::new()
        }
        Request::CompareFiles(sides) => {
            let Sides { left, right } = sides;
            vec![Effect::LoadComparison { left, right }]
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
        Request::ReadDiff(wants) => review::read(wants),
        Request::Review { input, wants } => {
            let mut effects = vec![Effect::Send(input)];
            effects.extend(review::read(wants));
            effects
        }
        Request::SendReview(message) => review::send(state, message),
        Request::ShowTurnDiff { seq, path } => review::open_turn(state, seq, path),
        Request::KeepReview(review) => {
            state.pending.review = review;
            Vec::new()
        }
        Request::Copy(text) => vec![Effect::Copy(text)],
        Request::EditFile { path, line } => vec![Effect::EditFile { path, line }],
        Request::MergeByHand { path, text } => vec![Effect::MergeByHand { path, text }],
        Request::Restore(preview, options) => travel::restore(state, &preview, options),
    }
}
