//! Carries out each action.

use super::{
    agents, approval, commands, configure, connect, context, read, replay, review, send, settings, travel, verb,
    workflow, write,
};
use crate::composer::Composer;
use crate::input::action::Action;
use crate::overlay::help::HelpView;
use crate::overlay::{Opening, Overlay};
use crate::state::side::Tab;
use crate::state::{Effect, OnHarness, PendingConfirm, State};
use crate::transcript::{Direction, Mark};
use pixir_core::verbs::Order;
use tui_textarea::CursorMove;

/// Carries out an action. `args` is the text after its slash command.
pub(crate) fn perform(state: &mut State, action: Action, args: &str) -> Vec<Effect> {
    // A second Esc or Ctrl+C in a row has an effect of its own. Any other action in between cancels that.
    if !matches!(action, Action::Escape | Action::StashOrQuit) {
        state.guard.confirm = PendingConfirm::Nothing;
    }
    match action {
        Action::Send => return send::submit(state, send::IfBusy::Steer),
        Action::SendFollowUp => return send::submit(state, send::IfBusy::FollowUp),
        Action::NewLine => return write::edit(state, Composer::newline),
        Action::TakeBack => return send::take_back_queue(state),
        Action::Escape => return send::escape(state),
        Action::StashOrQuit => return send::stash_or_quit(state),
        Action::QuitWhenEmpty => return send::quit_when_empty(state),
        Action::Interrupt => return send::interrupt(),
        Action::Quit | Action::QuitReplay => return vec![Effect::Quit],
        Action::OpenEditor => return vec![Effect::Edit],
        Action::PasteImage => return vec![OnHarness::AttachClipboard.into()],
        Action::SearchPast => write::search_past(state),
        Action::UndoEdit => return write::edit(state, |composer| _ = composer.undo()),
        Action::RedoEdit => return write::edit(state, |composer| _ = composer.redo()),
        Action::KillToEnd => return write::edit(state, Composer::kill_to_end),
        Action::KillToStart => return write::edit(state, Composer::kill_to_start),
        Action::KillWordBack => return write::edit(state, Composer::kill_word_back),
        Action::KillWord => return write::edit(state, Composer::kill_word),
        Action::Yank => return write::edit(state, Composer::yank),
        Action::YankPop => return write::edit(state, Composer::yank_pop),
        Action::LineStart => return write::edit(state, |composer| composer.go(CursorMove::Head)),
        Action::LineEnd => return write::edit(state, |composer| composer.go(CursorMove::End)),
        Action::WordBack => return write::edit(state, |composer| composer.go(CursorMove::WordBack)),
        Action::WordForward => return write::edit(state, |composer| composer.go(CursorMove::WordForward)),
        Action::Suspend => state.terminal.suspend = true,

        Action::AllowOnce | Action::FocusedAllowOnce => return approval::allow_once(state),
        Action::AllowAlways | Action::FocusedAllowAlways => return approval::allow_always(state),
        Action::Deny | Action::FocusedDeny => return approval::deny(state),
        Action::DenyWithFeedback | Action::FocusedDenyWithFeedback => approval::deny_with_feedback(state),
        Action::ExpandApproval => return approval::expand(state),

        Action::FocusNext => read::focus_next(state),
        Action::PageUp => read::page(state, -1),
        Action::PageDown => read::page(state, 1),
        Action::ToStart | Action::TranscriptStart => read::to_start(state),
        Action::ToEnd | Action::TranscriptEnd => read::to_end(state),
        Action::CycleDetails => read::details(state),
        Action::CycleThinking => read::thinking(state),
        Action::Find | Action::FindInTranscript => return read::find(state, args),
        Action::Repaint => state.terminal.repaint = true,
        Action::ToggleSide => read::toggle_side(state),
        Action::NextCell => read::step(state, 1),
        Action::PreviousCell => read::step(state, -1),
        Action::NextPrompt => read::jump(state, Mark::Prompt, Direction::Forward),
        Action::PreviousPrompt => read::jump(state, Mark::Prompt, Direction::Back),
        Action::NextError => read::jump(state, Mark::Error, Direction::Forward),
        Action::PreviousError => read::jump(state, Mark::Error, Direction::Back),
        Action::NextChange => read::jump(state, Mark::Change, Direction::Forward),
        Action::PreviousChange => read::jump(state, Mark::Change, Direction::Back),
        Action::NextCompaction => read::jump(state, Mark::Compaction, Direction::Forward),
        Action::PreviousCompaction => read::jump(state, Mark::Compaction, Direction::Back),
        Action::NextMatch => read::next_match(state, Direction::Forward),
        Action::PreviousMatch => read::next_match(state, Direction::Back),
        Action::ShowCopyLabels => read::show_labels(state),
        Action::FoldCell => read::fold(state),
        Action::OpenCell => return read::open(state),
        Action::NextSideTab => {
            state.side.turn(1, &state.history);
            return context::refresh(state);
        }
        Action::PreviousSideTab => {
            state.side.turn(-1, &state.history);
            return context::refresh(state);
        }
        Action::WidenSide => state.side.widen(4, state.layout.side.map_or(0, |it| it.width)),
        Action::NarrowSide => state.side.widen(-4, state.layout.side.map_or(0, |it| it.width)),
        Action::OpenSide if state.side.tab(&state.history) == Tab::Agents => return agents::open(state, ""),
        Action::OpenSide => {
            let path = state.side.path(&state.history);
            return path.map_or_else(Vec::new, |path| review::open(state, None, Some(path)));
        }
        Action::ScrollSideDown => state.side.step(1, &state.history),
        Action::ScrollSideUp => state.side.step(-1, &state.history),

        Action::PlayReplay => replay::play(state),
        Action::StepReplay => replay::forward(state),
        Action::StepReplayBack => replay::back(state),
        Action::NextReplayTurn => replay::next_turn(state),
        Action::PreviousReplayTurn => replay::previous_turn(state),
        Action::ReplayStart => replay::to_start(state),
        Action::ReplayEnd => replay::to_end(state),
        Action::SpeedUpReplay => replay::faster(state, 2.0),
        Action::SlowDownReplay => replay::faster(state, 0.5),

        // `write` carries them out while earlier prompts are searched.
        Action::OlderPrompt | Action::NewerPrompt | Action::TakePrompt | Action::LeavePast => {}
        // The layer on top has carried it out.
        Action::Layer(_) => {}
        Action::Open(opens) => {
            let overlay = Overlay::opened_by(
                opens,
                &Opening {
                    history: &state.history,
                    session: state.session_kind(),
                    jobs: &state.session.jobs,
                    wall: state.now.wall,
                    args,
                },
            );
            return state.open(overlay);
        }

        Action::OpenHelp => return read::help(state, HelpView::new, args),
        Action::OpenKeyHelp => return read::help(state, HelpView::of_keys, ""),
        Action::OpenPalette => return read::palette(state),
        Action::OpenOutline | Action::OutlineOfTranscript => return read::outline(state),
        Action::OpenTree => return travel::open_tree(state),
        Action::OpenDiff => return review::open(state, None, None),
        Action::OpenAgents => return agents::open(state, args),
        Action::OpenWorkflows => return workflow::open(state, args),
        Action::TrustWorkspace => return settings::trust(state, args),
        Action::ShowStatus => return commands::status(state),
        Action::RunDoctor => return commands::doctor(state),
        Action::ShowPlan => return commands::plan(state, args),
        Action::OpenSettings | Action::OpenConfig => return configure::open(state, args),
        Action::OpenConnect | Action::OpenAuth => return connect::open(state),
        Action::ToggleHud => {
            state.layout.hud = !state.layout.hud;
            state.stats.restart_wakes();
        }

        Action::NewSession => return vec![OnHarness::OpenNew.into()],
        Action::ResumeSession => return settings::resume(state, args),
        Action::ListSessions => return settings::resume(state, ""),
        Action::Rewind => return commands::rewind(state, args),
        Action::LabelTurn => return commands::label(state, args),
        Action::PinTurn => return commands::pin(state),
        Action::AttachFile => return commands::attach(state, args),
        Action::AddFolder => return commands::add_folder(state, args),
        Action::ExportSession => return commands::export(state, args),
        Action::RenameSession => return verb::send(state, "rename", Order { args, ..Order::default() }),
        Action::ForkSession => return travel::fork(state),
        Action::UndoTurn => return verb::send(state, "undo", Order { args, ..Order::default() }),
        Action::RedoTurn => return verb::send(state, "redo", Order::default()),
        Action::CompactHistory => return context::compact(state, args),
        Action::ActivateSkill => return settings::skill(state, args),
        Action::ShowUsage => return commands::usage(state),
        Action::Copy => return read::copy(state, args),

        Action::CycleMode => return settings::cycle_mode(state),
        Action::SetMode => return settings::mode(state, args),
        Action::SetModel => return settings::model(state, args),
        Action::SetEffort => return settings::effort(state, args),
        Action::SetToolset => return settings::toolset(state, args),
        Action::SetTheme => return settings::theme(args),
        Action::ToggleMouse => read::toggle_mouse(state),
        Action::Verb(name) => return verb::send(state, name, Order { args, ..Order::default() }),
    }
    Vec::new()
}
