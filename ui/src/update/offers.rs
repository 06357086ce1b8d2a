//! `/name args` of a prompt template or a skill. They are read in the background, when the user types a `/`.

use pixir_core::Input;

use crate::input::offer::{Offer, OfferKind};
use crate::input::slash;
use crate::overlay::arguments::ArgumentsView;
use crate::state::{Connection, Effect, OnHarness, State};

use super::{refused, send};

/// Starts reading them when the user begins a slash command, so that those of now are offered.
pub(super) fn load_for(state: &State) -> Vec<Effect> {
    if state.composer.shown() == "/" && can_load(state) { vec![OnHarness::LoadOffers.into()] } else { Vec::new() }
}

fn can_load(state: &State) -> bool {
    state.replay.is_none() && !matches!(state.session.connection, Connection::Failed(_))
}

/// Runs `/name args`, which is no command of the table. What was read before may be old, so a name that is not in it is looked
/// for in the files of now.
pub(super) fn run(state: &mut State, text: &str) -> Vec<Effect> {
    let (name, _) = slash::split(text);
    let is_known = state.composer.offers.iter().flatten().any(|it| it.name == name);
    if !is_known && can_load(state) {
        state.pending.slash = Some(text.to_owned());
        return vec![OnHarness::LoadOffers.into()];
    }
    use_offer(state, text)
}

/// Uses the template or the skill of this name.
fn use_offer(state: &mut State, text: &str) -> Vec<Effect> {
    let offers = state.composer.offers.as_deref().unwrap_or_default();
    let (name, args) = slash::split(text);
    let Some(offer) = offers.iter().find(|it| it.name == name).cloned() else {
        let why = slash::unknown(name, offers);
        return refused::refuse(state, why);
    };
    if offer.kind == OfferKind::Skill && state.is_busy() {
        return send::put_off(state, name);
    }
    if let Some(form) = ArgumentsView::new(&offer.name, &offer.about, &offer.parameters, args) {
        return state.open(form);
    }
    let attachments = state.composer.images.within(args).attachments();
    match offer.input(args, attachments) {
        Some(input) => {
            state.viewport.follow();
            vec![Effect::Send(input)]
        }
        None => read_prompt(state, offer.name, args.to_owned()),
    }
}

/// Asks a server for the text of its prompt.
fn read_prompt(state: &mut State, name: String, args: String) -> Vec<Effect> {
    state.say(format!("/{name}: asking its server…"));
    vec![OnHarness::ReadPrompt { name, args }.into()]
}

/// The text of a prompt, or why there is none. The user reads it before it is sent; what was typed meanwhile stays.
pub(crate) fn on_prompt(state: &mut State, name: &str, text: Result<String, String>) {
    match text {
        Ok(text) if text.trim().is_empty() => state.say(format!("/{name} gave no text")),
        Ok(text) => {
            state.composer.insert(&text);
            state.say(format!("/{name}: its text is in the composer; Enter sends it"));
        }
        Err(why) => state.say(why),
    }
}

/// The form has everything that the template needs.
pub(super) fn use_template(state: &mut State, name: String, args: String) -> Vec<Effect> {
    let is_prompt = |it: &&Offer| it.name == name && it.kind == OfferKind::Prompt;
    if state.composer.offers.iter().flatten().any(|it| is_prompt(&it)) {
        return read_prompt(state, name, args);
    }
    state.viewport.follow();
    let attachments = state.composer.images.within(&args).attachments();
    vec![Effect::Send(Input::UseTemplate { name, args, attachments })]
}

/// The files are read. A command that waited for that runs now.
pub(crate) fn on_loaded(state: &mut State, offers: Vec<Offer>) -> Vec<Effect> {
    state.composer.offers = Some(offers);
    match state.pending.slash.take() {
        Some(text) => {
            refused::note(state, &text, &[]);
            let effects = use_offer(state, &text);
            if state.pending.command.is_some() {
                refused::note(state, &text, &effects);
            }
            effects
        }
        None => Vec::new(),
    }
}
