//! Editing the draft: keys of the composer and of vim, search in earlier prompts, completions.

use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};

use super::{arguments, offers, run_slash};
use crate::composer::{Completion, Composer, PastSearch};
use crate::input::action::{Action, Scope};
use crate::input::keymap::Lookup;
use crate::input::keys::Key;
use crate::state::{Effect, Focus, State};

/// Applies an edit to the draft.
pub(super) fn edit(state: &mut State, edit: impl FnOnce(&mut Composer)) -> Vec<Effect> {
    edit(&mut state.composer);
    find_offered(state)
}

/// Handles a key as a vim command, if vim is on and not in insert mode.
pub(super) fn on_vim_key(state: &mut State, key: KeyEvent) -> Option<Vec<Effect>> {
    if state.focus != Focus::Composer || state.replay.is_some() || !state.keys.chord.is_empty() {
        return None;
    }
    let c = match (key.code, key.modifiers) {
        (KeyCode::Char('r'), KeyModifiers::CONTROL) => 'U',
        (KeyCode::Char(c), held) if held.is_typing() => c,
        _ => return None,
    };
    state.composer.command(c).then(Vec::new)
}

/// Handles a key that edits the draft.
pub(super) fn on_key(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    match key.code {
        KeyCode::Up if state.composer.on_first_line() => state.composer.older(),
        KeyCode::Down if state.composer.on_last_line() => state.composer.newer(),
        _ => state.composer.key(key),
    }
    find_offered(state)
}

/// Starts to look for what can complete the word at the caret.
fn find_offered(state: &mut State) -> Vec<Effect> {
    let mut effects = find_mentioned(state);
    effects.extend(offers::load_for(state));
    effects.extend(arguments::load_for(state));
    effects
}

/// Starts the search for the path that the user is typing, in the background.
fn find_mentioned(state: &State) -> Vec<Effect> {
    match state.composer.path_letters() {
        Some(typed) if state.composer.files.as_ref().is_none_or(|(letters, _)| *letters != typed) => {
            vec![Effect::FindFiles(typed)]
        }
        _ => Vec::new(),
    }
}

// ─── Earlier prompts ───

pub(super) fn search_past(state: &mut State) {
    state.composer.past_search = Some(PastSearch::new(state.composer.text()));
}

/// While the user searches earlier prompts, keys edit the search.
pub(super) fn on_past_key(state: &mut State, key: KeyEvent) -> Option<Vec<Effect>> {
    let mut search = state.composer.past_search.take()?;
    let action = match state.keys.map.find(&[Key::of(key)], &[Scope::PastSearch]) {
        Lookup::Action(spec) => Some(spec.action),
        Lookup::Prefix | Lookup::Nothing => None,
    };
    match (action, key.code) {
        (Some(Action::LeavePast), _) => {
            state.composer.set(&search.draft);
            return Some(Vec::new());
        }
        // The prompt that was found stays in the composer, to be changed or sent.
        (Some(Action::TakePrompt), _) => {
            state.composer.past.remember(&search.draft);
            return Some(Vec::new());
        }
        (Some(Action::OlderPrompt), _) => search.older(&state.composer.past),
        (Some(Action::NewerPrompt), _) => search.newer(&state.composer.past),
        (_, KeyCode::Backspace) => search.pop(&state.composer.past),
        (_, KeyCode::Char(c)) if key.modifiers.is_typing() => search.push(c, &state.composer.past),
        _ => {}
    }
    let shown = search.current().unwrap_or(&search.draft).to_owned();
    state.composer.set(&shown);
    state.composer.past_search = Some(search);
    Some(Vec::new())
}

// ─── Completing ───

/// While completions are shown, a few keys choose among them.
pub(super) fn on_completion_key(state: &mut State, key: KeyEvent) -> Option<Vec<Effect>> {
    if state.focus != Focus::Composer || !key.modifiers.is_typing() {
        return None;
    }
    // Computing the completions costs time, so every other key is sorted out first.
    if !matches!(key.code, KeyCode::Up | KeyCode::Down | KeyCode::Esc | KeyCode::Tab | KeyCode::Enter) {
        return None;
    }
    let completions = state.composer.completions(state.uses.counts());
    if completions.is_empty() {
        return None;
    }
    let selected = state.composer.selected(&completions);
    match key.code {
        KeyCode::Up => {
            let before = selected.and_then(|at| at.checked_sub(1));
            state.composer.chosen = Some(before.unwrap_or(completions.len() - 1));
            return Some(Vec::new());
        }
        KeyCode::Down => {
            state.composer.chosen = Some(selected.map_or(0, |at| (at + 1) % completions.len()));
            return Some(Vec::new());
        }
        KeyCode::Esc => {
            state.composer.dismiss();
            return Some(Vec::new());
        }
        _ => {}
    }
    // Where nothing of an argument is typed, Tab takes the first, and Enter runs the command without one.
    let at = selected.or((key.code == KeyCode::Tab).then_some(0))?;
    match (key.code, &completions[at]) {
        // A path that is already complete is not completed again: Enter sends the draft.
        (KeyCode::Enter, Completion::File(path)) if state.composer.path_letters().as_ref() == Some(path) => {
            return None;
        }
        (_, Completion::File(path)) => {
            if state.composer.typed_argument().is_some() {
                state.composer.accept_argument(path);
            } else {
                state.composer.accept_file(path);
            }
            return Some(find_mentioned(state));
        }
        (key, Completion::Argument(candidate)) => {
            state.composer.accept_argument(&candidate.value);
            // Enter then runs the whole line.
            return if key == KeyCode::Enter { None } else { Some(Vec::new()) };
        }
        (KeyCode::Enter, Completion::Command(slash, _)) if !slash.needs_args() => {
            let line = format!("/{}", slash.name);
            state.composer.set("");
            state.composer.remember(&line);
            return Some(run_slash(state, &line));
        }
        (KeyCode::Enter, Completion::Offer(offer)) if offer.hint.is_empty() => {
            let line = format!("/{}", offer.name);
            state.composer.set("");
            state.composer.remember(&line);
            return Some(run_slash(state, &line));
        }
        (_, Completion::Offer(offer)) => state.composer.set(&format!("/{} ", offer.name)),
        (key, Completion::Command(slash, _)) => {
            state.composer.set(&format!("/{} ", slash.name));
            if key == KeyCode::Enter {
                state.say(format!("/{} needs {}", slash.name, slash.args));
            }
            return Some(find_offered(state));
        }
    }
    Some(Vec::new())
}
