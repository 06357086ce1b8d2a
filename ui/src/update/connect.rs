//! Connecting a model while pixir runs.

use pixir_core::Input;
use pixir_core::input::SettingsChange;

use crate::overlay::connect::{ConnectView, News, Order, Way};
use crate::overlay::{Notification, Overlay};
use crate::state::{Connection, Effect, State};
use crate::terminal::key::{KeyCode, KeyEvent};

/// Opens the dialog at its menu.
pub(super) fn open(state: &mut State) -> Vec<Effect> {
    open_at(state, None)
}

/// Opens the dialog at its menu, or at one of its ways.
fn open_at(state: &mut State, way: Option<Way>) -> Vec<Effect> {
    if !state.session.can_connect {
        state.say("the demo has its own model; start pixir in your folder to connect one");
        return Vec::new();
    }
    state.open(ConnectView::new(way))
}

/// While the welcome offers ways to a model, their digits choose one. Any other key is for the draft.
pub(super) fn on_welcome_key(state: &mut State, key: KeyEvent) -> Option<Vec<Effect>> {
    let is_free = state.shows_welcome() && state.composer.is_empty() && state.keys.chord.is_empty();
    if !is_free || !state.offers_connection() || !key.modifiers.is_empty() {
        return None;
    }
    let way = match key.code {
        KeyCode::Char('1') => Way::Key,
        KeyCode::Char('2') => Way::SignIn,
        KeyCode::Char('3') => Way::Local,
        KeyCode::Char('4') => return Some(vec![Effect::Connect(Order::Demo)]),
        KeyCode::Enter => return Some(open(state)),
        _ => return None,
    };
    Some(open_at(state, Some(way)))
}

pub(crate) fn on_news(state: &mut State, news: News<'_>) {
    for overlay in &mut state.overlays {
        overlay.view_mut().notify(Notification::Connecting(news));
    }
}

/// The attempt has failed: the dialog says why, in the server's words.
pub(crate) fn on_failed(state: &mut State, error: &pixir_core::Error) {
    let why = format!("{}; {}", error.message, state.look.more.remedies.word(&error.remedy));
    on_news(state, News::Failed(&why));
}

/// A Provider is connected. The Session uses it from now on, and its models are shown.
pub(crate) fn on_connected(state: &mut State, provider: &str, model: &str, note: &str) -> Vec<Effect> {
    state.overlays.retain(|overlay| !matches!(overlay, Overlay::Connect(_)));
    let mut effects = Vec::new();
    // Without a Harness the next Session begins with the new Provider.
    if matches!(state.session.connection, Connection::Ready { .. }) {
        state.pending.connected = Some((provider.to_owned(), model.to_owned()));
        effects = use_connected(state);
    }
    state.say(format!("{provider} is connected{note}"));
    effects
}

/// Lets the Session use the Provider that was connected last. A Session that is being opened began with the one before,
/// so it does that once it is open.
pub(crate) fn use_connected(state: &mut State) -> Vec<Effect> {
    let Some((provider, model)) = state.pending.connected.take_if(|_| state.session.id.is_some()) else {
        return Vec::new();
    };
    let name = format!("{provider}/{model}");
    let change = SettingsChange { provider: Some(provider), model: Some(model), ..SettingsChange::default() };
    let models = super::settings::show_models(state, &name);
    [Effect::Send(Input::Set(change))].into_iter().chain(models).collect()
}
