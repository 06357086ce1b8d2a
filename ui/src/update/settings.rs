//! How the Session goes on: who answers, what may run, what it is called; and how it looks.

use pixir_core::Input;
use pixir_core::event::{Mode, SessionId, SettingsChanged, Severity, Toolset};
use pixir_core::provider::models::Effort;
use pixir_core::usage::{Sums, Total, sums};

use crate::action::list;
use crate::overlay::picker::{Kind, Picker};
use crate::state::{Effect, State};
use crate::theme::{Depth, Theme};
use crate::transcript::Cell;

/// Turns that `/usage` names one by one.
const SHOWN_TURNS: usize = 8;

fn set(change: SettingsChanged) -> Vec<Effect> {
    vec![Effect::Send(Input::Set(change))]
}

/// What is set, or why it cannot be.
fn set_or_say(state: &mut State, change: pixir_core::Result<SettingsChanged>) -> Vec<Effect> {
    match change {
        Ok(change) => set(change),
        Err(e) => {
            state.say(format!("{}: {}", e.message, state.more.remedies.word(&e.remedy)));
            Vec::new()
        }
    }
}

pub(crate) fn cycle_mode(state: &mut State, _: &str) -> Vec<Effect> {
    let next = match state.history.settings.mode {
        Mode::ReadOnly => Mode::Ask,
        Mode::Ask => Mode::Auto,
        Mode::Auto => Mode::ReadOnly,
    };
    set(SettingsChanged { mode: Some(next), ..SettingsChanged::default() })
}

pub(crate) fn mode(state: &mut State, name: &str) -> Vec<Effect> {
    if name.is_empty() {
        return state.open(Picker::modes(state.history.settings.mode));
    }
    let change = Mode::parse(name).map(|mode| SettingsChanged { mode: Some(mode), ..SettingsChanged::default() });
    set_or_say(state, change)
}

pub(crate) fn toolset(state: &mut State, name: &str) -> Vec<Effect> {
    if name.is_empty() {
        return state.open(Picker::toolsets(state.history.settings.toolset));
    }
    let change = Toolset::parse(name).map(|it| SettingsChanged { toolset: Some(it), ..SettingsChanged::default() });
    set_or_say(state, change)
}

pub(crate) fn effort(state: &mut State, name: &str) -> Vec<Effect> {
    if name.is_empty() {
        return state.open(Picker::efforts(state.history.settings.effort.as_deref()));
    }
    let change = Effort::parse(name)
        .map(|effort| SettingsChanged { effort: Some(effort.name().to_owned()), ..SettingsChanged::default() });
    set_or_say(state, change)
}

pub(crate) fn model(state: &mut State, name: &str) -> Vec<Effect> {
    if name.is_empty() {
        return list(state, Kind::Models);
    }
    // A name without a provider is one of the provider that answers now.
    let (provider, model) =
        name.split_once('/').map_or((state.history.settings.provider.as_str(), name), |(p, m)| (p, m));
    set(SettingsChanged {
        provider: Some(provider.to_owned()),
        model: Some(model.to_owned()),
        ..SettingsChanged::default()
    })
}

pub(crate) fn resume(state: &mut State, id: &str) -> Vec<Effect> {
    if id.is_empty() { list(state, Kind::Sessions) } else { open_session(state, id) }
}

pub(crate) fn open_session(state: &mut State, id: &str) -> Vec<Effect> {
    match SessionId::parse(id) {
        Ok(id) if Some(&id) == state.session.as_ref() => Vec::new(),
        Ok(id) => vec![Effect::Open(id)],
        Err(e) => {
            state.transcript.push(Cell::Error(Box::new(e.body())));
            Vec::new()
        }
    }
}

pub(crate) fn rename(state: &mut State, name: &str) -> Vec<Effect> {
    if name.is_empty() {
        state.say("give it a name: /rename <name>");
        return Vec::new();
    }
    set(SettingsChanged { name: Some(name.to_owned()), ..SettingsChanged::default() })
}

pub(crate) fn skill(state: &mut State, rest: &str) -> Vec<Effect> {
    if rest.is_empty() {
        return list(state, Kind::Skills);
    }
    let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    state.viewport.follow();
    let attachments = state.composer.images.within(args).attachments();
    vec![Effect::Send(Input::ActivateSkill { name: name.to_owned(), args: args.trim().to_owned(), attachments })]
}

pub(crate) fn compact(state: &mut State, instructions: &str) -> Vec<Effect> {
    state.instructions = Some(instructions.to_owned()).filter(|it| !it.is_empty());
    vec![Effect::Send(Input::Compact { instructions: state.instructions.clone(), dry_run: true })]
}

pub(crate) fn theme(_: &mut State, name: &str) -> Vec<Effect> {
    vec![match name {
        "" => Effect::ListThemes,
        name => Effect::LoadTheme { name: name.to_owned(), is_told: true },
    }]
}

/// The themes that there are.
pub(crate) fn on_themes(state: &mut State, names: &[String]) -> Vec<Effect> {
    state.open(Picker::themes(names, &state.theme_name))
}

/// A theme that was asked for, or why there is none such.
pub(crate) fn on_theme(state: &mut State, name: &str, loaded: pixir_core::Result<Theme>, is_told: bool) {
    match loaded {
        Ok(theme) => {
            name.clone_into(&mut state.theme_name);
            wear(state, theme);
            if is_told {
                state.say(match state.depth {
                    Depth::Mono => format!("{name}; without colours (NO_COLOR) all themes look alike"),
                    _ => format!("{name} until you quit; theme = \"{name}\" in config.toml keeps it"),
                });
            }
        }
        Err(e) => state.transcript.push(Cell::Error(Box::new(e.body()))),
    }
}

/// Everything looks so from now on.
pub(crate) fn wear(state: &mut State, theme: Theme) {
    if theme != state.theme {
        state.theme = theme;
        state.generation += 1;
    }
}

pub(crate) fn usage(state: &mut State, _: &str) -> Vec<Effect> {
    let text = usage_text(&sums(&state.history));
    state.transcript.push(Cell::Notice(Severity::Info, text.into()));
    state.viewport.follow();
    Vec::new()
}

/// What a Session took, line by line.
fn usage_text(sums: &Sums) -> String {
    if sums.session.requests == 0 {
        return "no request has said yet what it took".to_owned();
    }
    let line = |name: &str, it: &Total| format!("{name:<16} {it}");
    let mut lines = vec![line("session", &sums.session)];
    if sums.branch != sums.session {
        lines.push(line("this branch", &sums.branch));
    }
    lines.extend(sums.models.iter().map(|(model, total)| line(model, total)));
    let hidden = sums.turns.len().saturating_sub(SHOWN_TURNS);
    if hidden > 0 {
        lines.push(format!("… {hidden} turns before (pixir sessions show --json has them)"));
    }
    lines.extend(sums.turns.iter().skip(hidden).map(|it| line(&format!("turn {}", it.turn), &it.total)));
    lines.join("\n")
}
