//! What can complete the argument of a slash command.

use pixir_core::tree;

use crate::input::argument::{Argument, Candidate};
use crate::render::markdown::first_line;
use crate::state::{Effect, OnHarness, State};

/// The most Turns that are offered.
const MOST_TURNS: usize = 200;
/// The longest text beside a candidate, in columns.
const ABOUT: usize = 200;

/// Collects them when the user begins an argument, so that those of now are offered.
pub(super) fn load_for(state: &mut State) -> Vec<Effect> {
    let Some(typed) = state.composer.typed_argument().filter(|_| state.replay.is_none()) else { return Vec::new() };
    let is_known = state.composer.candidates.as_ref().is_some_and(|(of, _)| *of == typed.argument);
    if is_known && !typed.letters.is_empty() {
        return Vec::new();
    }
    match typed.argument {
        Argument::Turn => {
            state.composer.candidates = Some((Argument::Turn, turns(state)));
            Vec::new()
        }
        Argument::Session | Argument::Model | Argument::Theme | Argument::Skill if !is_known => {
            vec![OnHarness::LoadCandidates(typed.argument).into()]
        }
        Argument::Session
        | Argument::Model
        | Argument::Theme
        | Argument::Skill
        | Argument::Text
        | Argument::Words(_)
        | Argument::File
        | Argument::Folder
        | Argument::Command => Vec::new(),
    }
}

/// They are loaded.
pub(crate) fn on_loaded(state: &mut State, argument: Argument, candidates: Vec<Candidate>) {
    state.composer.candidates = Some((argument, candidates));
}

/// The Turns of the tree, the latest first, with label and prompt.
fn turns(state: &State) -> Vec<Candidate> {
    let candidate = |node: tree::Node| {
        let label = node.label.map_or(String::new(), |label| format!("⚑ {label} · "));
        Some(Candidate::new(node.turn?.to_string(), first_line(&format!("{label}{}", node.text), ABOUT)))
    };
    let mut turns: Vec<tree::Node> = tree::nodes(&state.history);
    turns.sort_by_key(|node| std::cmp::Reverse(node.seq));
    turns.into_iter().filter_map(candidate).take(MOST_TURNS).collect()
}
