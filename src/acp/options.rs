//! The settings of a Session that an editor shows and changes: mode, model, effort, toolset.

use pixir_core::event::{Mode, Toolset};
use pixir_core::history::Settings;
use pixir_core::input::SettingsChange;
use pixir_core::{Effort, Harness};
use serde_json::{Value, json};

use crate::json_rpc::Failure;

/// The value of an effort that the user leaves to the model.
const UNSET: &str = "default";

const fn about(mode: Mode) -> &'static str {
    match mode {
        Mode::ReadOnly => "Reads, and changes nothing",
        Mode::Ask => "Asks before it changes something",
        Mode::Auto => "Changes files and runs commands without asking",
    }
}

fn modes() -> Vec<(&'static str, &'static str)> {
    Mode::ALL.into_iter().map(|mode| (mode.name(), about(mode))).collect()
}

/// The modes, for clients that know no options.
pub(super) fn mode_state(settings: &Settings) -> Value {
    let all: Vec<Value> =
        modes().iter().map(|(id, about)| json!({ "id": id, "name": id, "description": about })).collect();
    json!({ "currentModeId": settings.mode.name(), "availableModes": all })
}

/// All options, with their present values.
pub(super) fn all(harness: &Harness, settings: &Settings) -> Value {
    let option = |value: &str, about: &str| {
        let mut it = json!({ "value": value, "name": value });
        if !about.is_empty() {
            it["description"] = json!(about);
        }
        it
    };
    let select = |id: &str, name: &str, category: Option<&str>, current: &str, options: Vec<Value>| {
        let mut it = json!({ "id": id, "name": name, "type": "select", "currentValue": current, "options": options });
        if let Some(category) = category {
            it["category"] = json!(category);
        }
        it
    };
    let model = format!("{}/{}", settings.provider, settings.model);
    let facts = harness.providers().facts(&settings.provider, &settings.model);
    let efforts = facts.efforts.unwrap_or_else(|| Effort::ALL.to_vec());
    let effort = settings.effort.as_deref().unwrap_or(UNSET);
    let mut named: Vec<&str> = std::iter::once(UNSET).chain(efforts.iter().map(|it| it.name())).collect();
    if !named.contains(&effort) {
        named.push(effort);
    }
    let toolsets = Toolset::ALL.map(|it| option(it.name(), "")).to_vec();
    json!([
        select(
            "mode",
            "Mode",
            Some("mode"),
            settings.mode.name(),
            modes().iter().map(|(id, about)| option(id, about)).collect()
        ),
        select(
            "model",
            "Model",
            Some("model"),
            &model,
            models(harness, &model).iter().map(|it| option(it, "")).collect()
        ),
        select(
            "effort",
            "Effort",
            Some("thought_level"),
            effort,
            named.iter().map(|it| option(it, if *it == UNSET { "The model decides" } else { "" })).collect()
        ),
        select("toolset", "Tools", None, settings.toolset.name(), toolsets),
    ])
}

/// Models that need no question to a server: the present one, the one of new Sessions, and those that the user configured.
fn models(harness: &Harness, current: &str) -> Vec<String> {
    let providers = harness.providers();
    let mut all = vec![current.to_owned(), format!("{}/{}", providers.provider, providers.model)];
    for name in providers.names().filter(|name| *name != "demo") {
        all.extend(providers.configured_models(name).map(|model| format!("{name}/{model}")));
    }
    all.sort();
    all.dedup();
    all
}

/// The change that a client asks for.
///
/// # Errors
/// −32602 for an option or a value that does not exist.
pub(super) fn change(
    harness: &Harness,
    settings: &Settings,
    id: &str,
    value: &Value,
) -> Result<SettingsChange, Failure> {
    let value = value.as_str().ok_or_else(|| Failure::invalid_params("`value` must be one of the option's values"))?;
    let none = SettingsChange::default();
    Ok(match id {
        "mode" => SettingsChange { mode: Some(Mode::parse(value).map_err(Failure::from)?), ..none },
        "toolset" => SettingsChange { toolset: Some(Toolset::parse(value).map_err(Failure::from)?), ..none },
        "effort" if value == UNSET => SettingsChange { effort: Some(String::new()), ..none },
        "effort" => {
            let effort = Effort::parse(value).map_err(Failure::from)?.name().to_owned();
            SettingsChange { effort: Some(effort), ..none }
        }
        "model" => {
            let providers = harness.providers();
            let (provider, model) = providers.split(value, &settings.provider);
            SettingsChange { provider: Some(provider.to_owned()), model: Some(model.to_owned()), ..none }
        }
        _ => {
            let message = format!("there is no option `{}`; use mode, model, effort or toolset", id.escape_debug());
            return Err(Failure::invalid_params(message));
        }
    })
}
