//! Writing: moving and cutting in the draft, finding what was sent before, completing.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tui_textarea::CursorMove;

use super::run_slash;
use crate::composer::{Completion, PastSearch};
use crate::state::{Effect, Focus, State};

/// An edit of the draft, as a verb.
macro_rules! edits {
    ($($name:ident => $edit:expr;)*) => {
        $(pub(crate) fn $name(state: &mut State, _: &str) -> Vec<Effect> {
            let edit: fn(&mut crate::composer::Composer) = $edit;
            edit(&mut state.composer);
            mention(state)
        })*
    };
}

edits! {
    undo => |it| { let _ = it.undo(); };
    redo => |it| { let _ = it.redo(); };
    kill_to_end => |it| it.kill_to_end();
    kill_to_start => |it| it.kill_to_start();
    kill_word_back => |it| it.kill_word_back();
    kill_word => |it| it.kill_word();
    yank => |it| it.yank();
    yank_pop => |it| it.yank_pop();
    to_line_start => |it| it.go(CursorMove::Head, false);
    to_line_end => |it| it.go(CursorMove::End, false);
    word_back => |it| it.go(CursorMove::WordBack, false);
    word_forward => |it| it.go(CursorMove::WordForward, false);
}

/// A key as a command of vim, where keys are commands now.
pub(super) fn on_vim_key(state: &mut State, key: KeyEvent) -> Option<Vec<Effect>> {
    if state.focus != Focus::Composer || state.replay.is_some() || !state.pending.is_empty() {
        return None;
    }
    let c = match (key.code, key.modifiers) {
        (KeyCode::Char('r'), KeyModifiers::CONTROL) => 'U',
        (KeyCode::Char(c), held) if held.difference(KeyModifiers::SHIFT).is_empty() => c,
        _ => return None,
    };
    state.composer.command(c).then(Vec::new)
}

/// A key that writes.
pub(super) fn on_key(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    match key.code {
        KeyCode::Up if state.composer.on_first_line() => state.composer.older(),
        KeyCode::Down if state.composer.on_last_line() => state.composer.newer(),
        _ => state.composer.key(key),
    }
    mention(state)
}

/// What stands behind an `@` is looked for beside the screen.
pub(super) fn mention(state: &State) -> Vec<Effect> {
    match state.composer.mention() {
        Some(mention) if state.composer.files.as_ref().is_none_or(|(letters, _)| *letters != mention.letters) => {
            vec![Effect::FindFiles(mention.letters)]
        }
        _ => Vec::new(),
    }
}

/// Another editor, for what is long.
pub(crate) fn edit_elsewhere(_: &mut State, _: &str) -> Vec<Effect> {
    vec![Effect::Edit]
}

// ─── What was sent before ───

pub(crate) fn search_past(state: &mut State, _: &str) -> Vec<Effect> {
    state.past_search = Some(PastSearch::new(state.composer.text()));
    Vec::new()
}

/// While what was sent is searched, keys are its letters.
pub(super) fn on_past_key(state: &mut State, key: KeyEvent) -> Option<Vec<Effect>> {
    let mut search = state.past_search.take()?;
    match (key.code, key.modifiers) {
        (KeyCode::Esc, _) | (KeyCode::Char('c' | 'g'), KeyModifiers::CONTROL) => {
            state.composer.set(&search.draft);
            return Some(Vec::new());
        }
        // What was found is in the line, to be changed or sent.
        (KeyCode::Enter | KeyCode::Tab | KeyCode::Left | KeyCode::Right, _) => {
            state.composer.past.remember(&search.draft);
            return Some(Vec::new());
        }
        (KeyCode::Char('r'), KeyModifiers::CONTROL) | (KeyCode::Up, _) => search.step(&state.composer.past, true),
        (KeyCode::Char('s'), KeyModifiers::CONTROL) | (KeyCode::Down, _) => search.step(&state.composer.past, false),
        (KeyCode::Backspace, _) => search.pop(&state.composer.past),
        (KeyCode::Char(c), held) if held.difference(KeyModifiers::SHIFT).is_empty() => {
            search.push(c, &state.composer.past)
        }
        _ => {}
    }
    let shown = search.found().unwrap_or(&search.draft).to_owned();
    state.composer.set(&shown);
    state.past_search = Some(search);
    Some(Vec::new())
}

// ─── Completing ───

/// While completions are shown, a few keys are about them.
pub(super) fn on_completion_key(state: &mut State, key: KeyEvent) -> Option<Vec<Effect>> {
    if state.focus != Focus::Composer || !key.modifiers.difference(KeyModifiers::SHIFT).is_empty() {
        return None;
    }
    // Only these are about them; every other key is spared the search.
    if !matches!(key.code, KeyCode::Up | KeyCode::Down | KeyCode::Esc | KeyCode::Tab | KeyCode::Enter) {
        return None;
    }
    let found = state.composer.completions();
    if found.is_empty() {
        return None;
    }
    let chosen = state.composer.chosen.min(found.len() - 1);
    // What is written out already is not completed: Enter sends it.
    if let (KeyCode::Enter, Completion::File(path)) = (key.code, &found[chosen])
        && state.composer.mention().is_some_and(|it| it.letters == *path)
    {
        return None;
    }
    match (key.code, &found[chosen]) {
        (KeyCode::Up, _) => state.composer.chosen = chosen.checked_sub(1).unwrap_or(found.len() - 1),
        (KeyCode::Down, _) => state.composer.chosen = (chosen + 1) % found.len(),
        (KeyCode::Esc, _) => state.composer.dismiss(),
        (_, Completion::File(path)) => {
            state.composer.accept_file(path);
            return Some(mention(state));
        }
        (KeyCode::Enter, Completion::Command(slash, _)) if !slash.args.starts_with('<') => {
            let line = format!("/{}", slash.name);
            state.composer.set("");
            state.composer.remember(&line);
            return Some(run_slash(state, &line));
        }
        (key, Completion::Command(slash, _)) => {
            state.composer.set(&format!("/{} ", slash.name));
            if key == KeyCode::Enter {
                state.say(format!("it takes {}", slash.args));
            }
        }
    }
    Some(Vec::new())
}
