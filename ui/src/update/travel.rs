//! Moving the head, with or without the files; undo, redo and fork.

use pixir_core::Input;
use pixir_core::event::{RestorePreview, RestoreReason, Severity};
use pixir_core::input::{RestoreOptions, Summarize, has_marks};

use crate::input::action::Action;
use crate::overlay::Layer as _;
use crate::overlay::restore::RestoreView;
use crate::overlay::tree::{PendingMove, TreeView};
use crate::render::agents::named;
use crate::render::text::visible;
use crate::state::{Effect, State};
use crate::transcript::Cell;
use crate::update::replay;

pub(super) fn open_tree(state: &mut State) -> Vec<Effect> {
    let now = i64::try_from(state.now.wall.as_secs()).unwrap_or(i64::MAX);
    let tree = TreeView::new(&state.history, state.session_kind(), state.is_busy(), now);
    state.open(tree)
}

/// Asks the Session which files a move of the head would restore, before anything moves.
pub(super) fn preview_move(state: &mut State, pending: PendingMove) -> Vec<Effect> {
    let to_seq = pending.to_seq;
    // A replay goes there without changing anything.
    if state.replay.is_some() {
        replay::to_seq(state, to_seq);
        return Vec::new();
    }
    state.pending.head_move = Some(pending);
    let files = Some(RestoreOptions { dry_run: true, ..RestoreOptions::default() });
    vec![Effect::Send(Input::MoveHead { to_seq, summarize: Summarize::No, files })]
}

/// The preview has arrived. A move that affects no files happens at once; anything else is shown first.
pub(super) fn on_preview(state: &mut State, preview: RestorePreview) -> Vec<Effect> {
    if preview.reason == RestoreReason::Rewind && preview.files.is_empty() {
        return move_head(state, None);
    }
    // A revert that was refused says so in the diff.
    if preview.reason == RestoreReason::Hunk {
        return Vec::new();
    }
    if preview.files.is_empty() {
        state.say("nothing to restore: all files are already in that state");
        return Vec::new();
    }
    // A card must not take the keys of a user who is writing.
    if preview.asks && !state.composer.is_empty() {
        let name = visible(&named(&preview.agent));
        let files = preview.files.len();
        let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
        let key = state.keys.map.key_of(Action::OpenAgents).unwrap_or_default();
        let text = format!("{name} changed {files} in its copy and waits for your decision: {key}, then d");
        state.transcript.push(Cell::Notice(Severity::Info, text.into()));
        return Vec::new();
    }
    state.open(RestoreView::new(preview))
}

/// Moves the head as the user asked.
pub(super) fn move_head(state: &mut State, files: Option<RestoreOptions>) -> Vec<Effect> {
    // The pending move stays until the head has moved, so that the user can repeat a move that was refused.
    let Some(PendingMove { to_seq, summarize, .. }) = state.pending.head_move.clone() else { return Vec::new() };
    vec![Effect::Send(Input::MoveHead { to_seq, summarize, files })]
}

/// The head has moved. A prompt that the user wants to edit returns to the composer.
pub(super) fn on_head_moved(state: &mut State) {
    if let Some(text) = state.pending.head_move.take().and_then(|pending| pending.edit) {
        // Up brings back the draft that the prompt replaces.
        state.composer.take();
        state.composer.set(&text);
    }
}

/// Takes a file that the user has merged by hand into the preview that is open.
pub(crate) fn take_merge(state: &mut State, path: &str, text: String) {
    if has_marks(&text) {
        state.say(format!("{path} still has conflict marks"));
    }
    match state.overlays.iter_mut().rev().find_map(RestoreView::of) {
        Some(view) => view.take_merge(path, text),
        None => state.say(format!("the preview has closed; {path} was not written")),
    }
}

/// Restores files as the user has confirmed it.
pub(super) fn restore(state: &mut State, preview: &RestorePreview, options: RestoreOptions) -> Vec<Effect> {
    match preview.reason {
        RestoreReason::Rewind | RestoreReason::Stayed | RestoreReason::Unknown => move_head(state, Some(options)),
        RestoreReason::Undo => vec![Effect::Send(Input::Undo { turn: preview.of_turn, options })],
        RestoreReason::Redo => vec![Effect::Send(Input::Redo { options })],
        RestoreReason::Adopt => {
            vec![Effect::Send(Input::Adopt { path: preview.agent.clone(), options, later: false })]
        }
        // The diff asks for a revert itself, without a dry run.
        RestoreReason::Hunk => Vec::new(),
    }
}

pub(super) fn fork(state: &mut State) -> Vec<Effect> {
    match state.history.head() {
        Some(seq) => vec![Effect::Send(Input::Fork { seq })],
        None => {
            state.say("nothing to fork yet");
            Vec::new()
        }
    }
}
