//! Settings that are changed in place: seen at once, and saved where the user chooses.

use pixir_core::catalogue::{self, Form, SettingSpec, TakesEffect};
use pixir_core::input::SettingsChange;
use pixir_core::layers::{Setting, Settings, Source};
use pixir_core::{Error, Input, edit};

use crate::input::action::ACTIONS;
use crate::input::keymap::Keymap;
use crate::overlay::Layer as _;
use crate::overlay::save_for::{SaveFor, SavePlace};
use crate::overlay::settings::{RowForm, SettingRow, SettingsView};
use crate::render::text::from_home;
use crate::state::{Effect, State};
use crate::terminal::MouseOwner;
use crate::update::refused;

/// Opens the settings, with this filter.
pub(super) fn open(state: &mut State, filter: &str) -> Vec<Effect> {
    state.open(SettingsView::new(filter))
}

/// The settings have been read, also after one was changed.
pub(crate) fn on_settings(state: &mut State, read: pixir_core::Result<Settings>) {
    match read {
        Ok(settings) => {
            let rows = rows(state, &settings);
            let own = state.keys.own.clone();
            for view in state.overlays.iter_mut().filter_map(SettingsView::of) {
                view.show(rows.clone(), own.clone());
            }
        }
        Err(e) => {
            let why = refused::because(state, &e);
            refused::beside(state, why);
        }
    }
}

/// The heading of a key's section.
fn group(key: &str) -> &'static str {
    match key.split('.').next().filter(|_| key.contains('.')) {
        Some("limits") => "Limits of a turn",
        Some("requests") => "Requests",
        Some("compaction") => "Compaction",
        Some("agents") => "Agents",
        Some("mcp" | "mcp_limits") => "MCP servers",
        Some("screen") => "Screen",
        Some("keys") => "Keys",
        Some("providers" | "models") => "Servers and models",
        Some(_) | None => "General",
    }
}

/// A value as the list shows it: with its unit, or what holds where there is none.
fn shown(spec: &SettingSpec, value: Option<&toml::Value>) -> String {
    let without = || spec.without().unwrap_or_default().to_owned();
    match (value, spec.form) {
        (None, _) => without(),
        (Some(toml::Value::Array(all)), _) if all.is_empty() => without(),
        (Some(toml::Value::Boolean(is_on)), _) => on_or_off(*is_on),
        (Some(toml::Value::Array(all)), _) => {
            let texts = all.iter().map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
            texts.collect::<Vec<_>>().join(", ")
        }
        (Some(toml::Value::Float(n)), Form::Amount("of the window")) => format!("{:.0} %", n * 100.0),
        (Some(value), Form::Amount("US dollars")) => format!("${}", raw(Some(value))),
        (Some(value), Form::Amount("seconds")) => format!("{} s", raw(Some(value))),
        (Some(value), Form::Count) => grouped(&raw(Some(value))),
        (Some(value), _) => raw(Some(value)),
    }
}

/// A value as the field has it, to be changed.
fn raw(value: Option<&toml::Value>) -> String {
    match value {
        None => String::new(),
        Some(toml::Value::String(text)) => text.clone(),
        Some(toml::Value::Float(n)) if n.fract() == 0.0 => format!("{n:.0}"),
        Some(other) => other.to_string(),
    }
}

/// `400,000`
fn grouped(digits: &str) -> String {
    let first = digits.len() % 3;
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && at % 3 == first {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn origin(it: &Setting) -> String {
    match it.source {
        Source::Default => "default".to_owned(),
        Source::User => "you".to_owned(),
        Source::Project => "project".to_owned(),
        Source::Environment => it.from.clone(),
        Source::Override | Source::Flag => "flag".to_owned(),
    }
}

/// The value of a setting that leaves a choice to pixir, with what was chosen.
fn in_force(state: &State, key: &str, value: String) -> String {
    match (key, state.session.sandbox) {
        ("theme", _) if value == "auto" => format!("{} (auto)", state.look.theme.name),
        ("sandbox", Some(tier)) if value != tier.name() => format!("{} ({value})", tier.name()),
        _ => value,
    }
}

/// Every row: dialogs of their own first, then the table, then the keys.
fn rows(state: &State, settings: &Settings) -> Vec<SettingRow> {
    let all = settings.all();
    let now = &state.history.settings;
    let model = Some(format!("{}/{}", now.provider, now.model)).filter(|_| !now.model.is_empty());
    let of_session = |key: &str| match key {
        "model" => model.clone().filter(|it| !it.starts_with("demo/")),
        "effort" => now.effort.clone(),
        "mode" => state.session.id.is_some().then(|| now.mode.name().to_owned()),
        "toolset" => state.session.id.is_some().then(|| now.toolset.name().to_owned()),
        "theme" => Some(state.look.theme_name.clone()),
        "screen.vim" => Some(on_or_off(state.composer.mode().is_some())),
        "screen.mouse" => Some(on_or_off(state.terminal.mouse_owner == MouseOwner::Pixir)),
        "screen.motion" => Some(on_or_off(state.look.animate)),
        "screen.notifications" => Some(on_or_off(state.terminal.notifies)),
        _ => None,
    };
    let of_table = catalogue::settings().map(|spec| {
        let plain =
            Setting { key: spec.key.to_owned(), value: spec.default(), source: Source::Default, from: String::new() };
        let set = all.iter().find(|it| it.key == spec.key).cloned().unwrap_or(plain);
        let configured = shown(spec, set.value.as_ref());
        let (value, origin) = match of_session(spec.key) {
            // A Session without a setting of its own has what was configured.
            Some(value) if value != configured => (value, "session".to_owned()),
            Some(_) | None => (configured, origin(&set)),
        };
        let value = in_force(state, spec.key, value);
        let form = match (spec.key, spec.form) {
            ("model", _) => RowForm::Dialog("/model"),
            ("theme", _) => RowForm::Dialog("/theme"),
            (_, Form::Choice(names)) => RowForm::Choice(names.iter().map(|it| (*it).to_owned()).collect()),
            (_, Form::Switch) => RowForm::Switch(value == "on"),
            (_, Form::Count | Form::Amount(_) | Form::Text) => RowForm::Field(raw(set.value.as_ref())),
            (_, Form::List) => RowForm::Field(set.value.as_ref().map_or_else(String::new, ToString::to_string)),
        };
        let unit = if let Form::Amount(unit) = spec.form { format!(" ({unit})") } else { String::new() };
        SettingRow {
            key: spec.key.to_owned(),
            group: group(spec.key),
            title: spec.title.to_owned(),
            about: format!("{}{unit}", spec.about),
            value,
            origin,
            form,
            is_later: spec.effect == TakesEffect::NextStart,
        }
    });
    let dialog = |key: &str, title: &str, command: &'static str, value: &str, about: &str| SettingRow {
        key: key.to_owned(),
        group: "General",
        title: title.to_owned(),
        about: about.to_owned(),
        value: value.to_owned(),
        origin: String::new(),
        form: RowForm::Dialog(command),
        is_later: false,
    };
    let dialogs = [
        dialog("auth", "Connected models", "/connect", "open ›", "keys, local servers and sign-ins"),
        dialog(
            "permissions",
            "Permissions",
            "/permissions",
            "open ›",
            "rules that allow or deny, and the last decisions",
        ),
        dialog("trust", "Trust", "/trust", "open ›", "what this workspace brings along, and whether it is in force"),
    ];
    let keys = ACTIONS.iter().map(|spec| {
        let chords = state.keys.map.keys_of(spec.action);
        let is_own = state.keys.own.contains_key(spec.id);
        let key = format!("keys.{}", spec.id);
        let saved = all.iter().find(|it| it.key == key).map(origin);
        SettingRow {
            key,
            group: "Keys",
            title: spec.id.to_owned(),
            about: spec.about.to_owned(),
            value: if chords.is_empty() { "–".to_owned() } else { chords.join(", ") },
            origin: saved.unwrap_or_else(|| if is_own { "session" } else { "default" }.to_owned()),
            form: RowForm::Press {
                action: spec.id,
                keys: state.keys.own.get(spec.id).cloned().unwrap_or_else(|| owned(spec.keys)),
            },
            is_later: false,
        }
    });
    let mut rows: Vec<SettingRow> = of_table.collect();
    let general = rows.iter().take_while(|row| row.group == "General").count();
    rows.splice(general..general, dialogs);
    // The screen is changed more often than a limit.
    rows.sort_by_key(|row| {
        ["General", "Screen", "Limits of a turn", "Agents", "Compaction", "Requests", "MCP servers", "Keys"]
            .iter()
            .position(|it| *it == row.group)
    });
    rows.extend(keys);
    rows
}

fn on_or_off(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_owned()
}

/// Changes a setting, as far as it can take effect now, and saves it.
pub(super) fn change(state: &mut State, key: &str, value: &str, save: SaveFor) -> Vec<Effect> {
    let mut effects = match apply(state, key, value) {
        Ok(effects) => effects,
        Err(e) => {
            let why = refused::because(state, &e);
            refused::beside(state, why);
            return Vec::new();
        }
    };
    let place = match save {
        SaveFor::Session => {
            state.say(format!("{key}: {value}, until you quit"));
            None
        }
        SaveFor::You => Some(SavePlace::User),
        SaveFor::Project => Some(SavePlace::Project),
    };
    effects.extend(place.map(|place| Effect::SaveSettings(vec![(key.to_owned(), value.to_owned())], place)));
    effects.push(Effect::LoadSettings);
    effects
}

/// Lets a setting take effect, if it can before the next start.
fn apply(state: &mut State, key: &str, value: &str) -> Result<Vec<Effect>, Error> {
    edit::setting(key, value)?;
    let set = |change: SettingsChange| vec![Effect::Send(Input::Set(change))];
    let is_on = value == "true";
    if let Some(action) = key.strip_prefix("keys.") {
        return bind(state, action, Some(chords(value))).map(|()| Vec::new());
    }
    Ok(match key {
        "model" => {
            let (provider, model) = value.split_once('/').unwrap_or((&state.history.settings.provider, value));
            let (provider, model) = (Some(provider.to_owned()), Some(model.to_owned()));
            set(SettingsChange { provider, model, ..SettingsChange::default() })
        }
        "effort" => set(SettingsChange { effort: Some(value.to_owned()), ..SettingsChange::default() }),
        "mode" => {
            let mode = Some(pixir_core::event::Mode::parse(value)?);
            set(SettingsChange { mode, ..SettingsChange::default() })
        }
        "toolset" => {
            let toolset = Some(pixir_core::event::Toolset::parse(value)?);
            set(SettingsChange { toolset, ..SettingsChange::default() })
        }
        "theme" => vec![Effect::RestoreTheme(value.to_owned())],
        "screen.mouse" => {
            state.terminal.mouse_owner = if is_on { MouseOwner::Pixir } else { MouseOwner::Terminal };
            Vec::new()
        }
        "screen.motion" => {
            state.look.animate = is_on;
            Vec::new()
        }
        "screen.notifications" => {
            state.terminal.notifies = is_on;
            Vec::new()
        }
        "screen.vim" => {
            if is_on {
                state.composer.with_vim();
            } else {
                state.composer.without_vim();
            }
            Vec::new()
        }
        _ => Vec::new(),
    })
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|it| (*it).to_owned()).collect()
}

/// The chords of a value: one, or a list in TOML.
fn chords(value: &str) -> Vec<String> {
    let list = format!("v = {value}").parse::<toml::Table>().ok().and_then(|it| it.get("v")?.as_array().cloned());
    let list = list.map(|all| all.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect());
    list.unwrap_or_else(|| vec![value.to_owned()])
}

/// Binds an action to these chords, or to its default.
fn bind(state: &mut State, action: &str, chords: Option<Vec<String>>) -> Result<(), Error> {
    let mut own = state.keys.own.clone();
    match chords {
        Some(chords) => drop(own.insert(action.to_owned(), chords)),
        None => drop(own.remove(action)),
    }
    state.keys.map = Keymap::new(&own)?;
    state.keys.own = own;
    state.look.hint(&state.keys.map, state.printing.inline);
    Ok(())
}

/// Takes a setting out of where it stands.
pub(super) fn unset(key: &str, save: SaveFor) -> Vec<Effect> {
    let place = match save {
        SaveFor::Session => None,
        SaveFor::You => Some(SavePlace::User),
        SaveFor::Project => Some(SavePlace::Project),
    };
    vec![Effect::UnsetSetting(key.to_owned(), place)]
}

/// A setting was taken out: the value that is left takes effect, as far as it can now.
pub(crate) fn on_unset(
    state: &mut State,
    key: &str,
    removed: pixir_core::Result<(Option<std::path::PathBuf>, Option<Setting>)>,
) -> Vec<Effect> {
    let (path, left) = match removed {
        Ok(removed) => removed,
        Err(e) => {
            let why = format!("not unset: {}", refused::because(state, &e));
            refused::beside(state, why);
            return Vec::new();
        }
    };
    let of_table = catalogue::spec(key).and_then(|spec| spec.default());
    let value = left.as_ref().and_then(|it| it.value.clone()).or(of_table);
    let text = value.as_ref().map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
    let applied = match (key.strip_prefix("keys."), text) {
        (Some(action), text) => bind(state, action, text.map(|it| chords(&it))).map(|()| Vec::new()),
        (None, Some(text)) => apply(state, key, &text),
        (None, None) => Ok(Vec::new()),
    };
    let now = match left.filter(|it| it.source != Source::Default) {
        Some(it) => format!("{} holds", it.from),
        None => "the default holds".to_owned(),
    };
    let place = path.map_or_else(|| "for this session".to_owned(), |path| format!("in {}", path.display()));
    let mut effects = match applied {
        Ok(effects) => {
            state.say(format!("{key} unset {place}: {now}"));
            effects
        }
        Err(e) => {
            state.say(format!("{key} unset {place}; {}", e.message));
            Vec::new()
        }
    };
    effects.push(Effect::LoadSettings);
    effects
}

/// Lets a model answer, and saves it and its effort where the user wants it.
pub(super) fn choose_model(provider: String, model: String, effort: Option<String>, save: SaveFor) -> Vec<Effect> {
    let name = format!("{provider}/{model}");
    let change = SettingsChange {
        provider: Some(provider),
        model: Some(model),
        effort: effort.clone(),
        ..SettingsChange::default()
    };
    let mut effects = vec![Effect::Send(Input::Set(change))];
    let place = match save {
        SaveFor::Session => return effects,
        SaveFor::You => SavePlace::User,
        SaveFor::Project => SavePlace::Project,
    };
    let effort = effort.map(|effort| ("effort".to_owned(), effort));
    effects.push(Effect::SaveSettings(effort.into_iter().chain([("model".to_owned(), name)]).collect(), place));
    effects
}

/// Says where a setting was saved, or why it was not.
pub(crate) fn on_saved(state: &mut State, key: &str, saved: pixir_core::Result<(std::path::PathBuf, Option<String>)>) {
    match saved {
        Ok((path, stronger)) => {
            let later = catalogue::spec(key).is_some_and(|spec| spec.effect == TakesEffect::NextStart);
            let when = match (stronger, later) {
                (Some(by), _) => format!("; {by} is stronger"),
                (None, true) => "; it takes effect at the next start".to_owned(),
                (None, false) => String::new(),
            };
            let path = from_home(&path, state.session.home.as_deref());
            state.say(format!("{key} saved in {path}{when}"));
        }
        Err(e) => {
            let why = format!("not saved: {}", refused::because(state, &e));
            refused::beside(state, why);
        }
    }
}
