//! Settings of the Session: model, mode, toolset, effort, name; and the theme.

use std::collections::BTreeMap;

use pixir_core::Input;
use pixir_core::event::{Mode, SessionId};
use pixir_core::input::SettingsChange;
use pixir_core::trust::TrustAnswer;
use pixir_core::verbs::Order;

use crate::overlay::models::ModelsView;
use crate::overlay::picker::Picker;
use crate::overlay::sessions::SessionList;
use crate::overlay::skills::SkillsView;
use crate::overlay::themes::{ThemeRow, ThemesView};
use crate::state::{Effect, OnHarness, State};
use crate::theme::{Depth, Theme};
use crate::update::{refused, verb};

fn set(change: SettingsChange) -> Vec<Effect> {
    vec![Effect::Send(Input::Set(change))]
}

pub(super) fn cycle_mode(state: &mut State) -> Vec<Effect> {
    // A second press may come before the Session has the mode of the first one.
    let next = match state.pending.mode.unwrap_or(state.history.settings.mode) {
        Mode::ReadOnly => Mode::Ask,
        Mode::Ask => Mode::Auto,
        Mode::Auto => Mode::ReadOnly,
    };
    state.pending.mode = Some(next);
    set(SettingsChange { mode: Some(next), ..SettingsChange::default() })
}

fn pick(state: &mut State, picker: Picker) -> Vec<Effect> {
    state.open(picker)
}

pub(super) fn mode(state: &mut State, name: &str) -> Vec<Effect> {
    if name.is_empty() {
        return pick(state, Picker::modes(state.history.settings.mode));
    }
    verb::send(state, "mode", Order { args: name, ..Order::default() })
}

pub(super) fn toolset(state: &mut State, name: &str) -> Vec<Effect> {
    if name.is_empty() {
        return pick(state, Picker::toolsets(state.history.settings.toolset));
    }
    verb::send(state, "toolset", Order { args: name, ..Order::default() })
}

pub(super) fn effort(state: &mut State, name: &str) -> Vec<Effect> {
    if name.is_empty() {
        return pick(state, Picker::efforts(state.history.settings.effort.as_deref()));
    }
    verb::send(state, "effort", Order { args: name, ..Order::default() })
}

pub(super) fn model(state: &mut State, name: &str) -> Vec<Effect> {
    if name.is_empty() {
        let settings = &state.history.settings;
        let current = format!("{}/{}", settings.provider, settings.model);
        return show_models(state, &current);
    }
    // A name without a provider is a model of the current provider.
    let (provider, model) =
        name.split_once('/').map_or((state.history.settings.provider.as_str(), name), |(p, m)| (p, m));
    set(SettingsChange {
        provider: Some(provider.to_owned()),
        model: Some(model.to_owned()),
        ..SettingsChange::default()
    })
}

/// Shows the models, with this one in use.
pub(super) fn show_models(state: &mut State, current: &str) -> Vec<Effect> {
    let effort = state.history.settings.effort.clone();
    state.open(ModelsView::new(current, effort.as_deref()))
}

pub(super) fn resume(state: &mut State, id: &str) -> Vec<Effect> {
    if id.is_empty() {
        let list = SessionList::new(state.now.wall);
        return state.open(list);
    }
    open_session(state, id)
}

pub(crate) fn open_session(state: &mut State, id: &str) -> Vec<Effect> {
    // An agent of this Session has an open Log.
    if let Some(agent) = state.session.agents.all().iter().find(|it| it.session_id == id) {
        return vec![OnHarness::EnterAgent { path: agent.path.clone(), from_list: false }.into()];
    }
    match SessionId::parse(id) {
        // A Session that is only read here may be free by now.
        Ok(id) if Some(&id) == state.session.id.as_ref() && !state.session.read_only => Vec::new(),
        Ok(id) => vec![OnHarness::Open(id).into()],
        Err(e) => {
            let why = refused::because(state, &e);
            refused::refuse(state, why)
        }
    }
}

pub(super) fn skill(state: &mut State, rest: &str) -> Vec<Effect> {
    if rest.is_empty() {
        return state.open(SkillsView::default());
    }
    state.viewport.follow();
    let attachments = state.composer.images.within(rest).attachments();
    verb::send(state, "skill", Order { args: rest, attachments, ..Order::default() })
}

pub(super) fn theme(name: &str) -> Vec<Effect> {
    vec![match name {
        "" => Effect::ListThemes,
        name => Effect::SetTheme(name.to_owned()),
    }]
}

/// Lists the themes, each with its colours if it can be read.
pub(crate) fn on_themes(state: &mut State, all: Vec<(String, Option<Theme>)>) -> Vec<Effect> {
    let rows = all.into_iter().map(|(name, theme)| ThemeRow::new(name, theme.as_ref(), state.look.depth)).collect();
    state.open(ThemesView::new(rows, &state.look.theme_name))
}

/// The user named a theme: uses it, and says so; or says why it cannot be loaded.
pub(crate) fn on_theme_chosen(state: &mut State, name: &str, loaded: pixir_core::Result<Theme>) {
    let is_loaded = loaded.is_ok();
    use_theme(state, name, loaded);
    if is_loaded {
        state.say(match state.look.depth {
            Depth::Mono => format!("{name}; without colours (NO_COLOR) all themes look alike"),
            Depth::True | Depth::Indexed | Depth::Named => {
                format!("{name}, until you quit; /theme saves it")
            }
        });
    }
}

/// Uses a theme, or says why it cannot be loaded.
pub(crate) fn use_theme(state: &mut State, name: &str, loaded: pixir_core::Result<Theme>) {
    match loaded {
        Ok(theme) => {
            name.clone_into(&mut state.look.theme_name);
            set_theme(state, theme);
        }
        Err(e) => {
            let why = refused::because(state, &e);
            refused::refuse_late(state, "theme", why);
        }
    }
}

/// Draws with this theme from now on.
pub(crate) fn set_theme(state: &mut State, theme: Theme) {
    if theme != state.look.theme {
        state.look.theme = theme;
        state.look.generation += 1;
    }
}

/// Shows what the workspace brings along, or with `revoke` stops trusting it.
pub(super) fn trust(state: &mut State, args: &str) -> Vec<Effect> {
    match args.trim() {
        "" => vec![Effect::Send(Input::ShowTrust)],
        "revoke" => {
            vec![Effect::Send(Input::AnswerTrust { answer: TrustAnswer::Revoke, seen: BTreeMap::new(), folder: None })]
        }
        _ => refused::refuse(state, "/trust shows what this workspace brings along, /trust revoke stops trusting it"),
    }
}
