//! Slash commands of a client: each is its Input, and never text for a model.

use std::path::Path;

use pixir_core::error::nearest;
use pixir_core::input::{CompactOptions, RestoreOptions};
use pixir_core::{Harness, Input};
use serde_json::{Value, json};

use super::wire::Failure;
use crate::headless::slash;

/// Verbs that are Inputs: the name, what it does, and what to type after it.
const VERBS: [(&str, &str, &str); 9] = [
    ("compact", "Replace the older part of the conversation by a summary", "what the summary should focus on"),
    ("undo", "Take back the file changes of a turn", "number of the turn"),
    ("redo", "Take back the last undo", ""),
    ("init", "Let the model write AGENTS.md", ""),
    ("skill", "Activate a skill", "NAME, and what to do with it"),
    ("rename", "Name this session", "the name"),
    ("mode", "Change what may run without asking", "read-only, ask or auto"),
    ("effort", "Change how much the model reasons", "none to max"),
    ("toolset", "Change the tools of the model", "typed, run or both"),
];

/// What a prompt means.
pub(super) enum Meaning {
    /// A message for the model.
    Message,
    /// An Input that is carried out as it is.
    Do(Input),
    /// An Input whose preview the user sees first: the dry run.
    Preview(Input),
    /// Nothing; the text is for the user.
    Say(String),
}

/// The commands of a Session, for the client's menu.
pub(super) fn commands(harness: &Harness) -> Value {
    let command = |name: &str, about: &str, hint: &str| {
        let mut it = json!({ "name": name, "description": about });
        if !hint.is_empty() {
            it["input"] = json!({ "hint": hint });
        }
        it
    };
    let mut all: Vec<Value> = VERBS.iter().map(|(name, about, hint)| command(name, about, hint)).collect();
    let mut taken: Vec<String> = VERBS.iter().map(|(name, ..)| (*name).to_owned()).collect();
    for it in harness.templates().iter().filter(|it| it.is_active()) {
        if !taken.contains(&it.name) {
            all.push(command(&it.name, &it.description, it.argument_hint.as_deref().unwrap_or_default()));
            taken.push(it.name.clone());
        }
    }
    for it in harness.skills().iter().filter(|it| it.is_active()) {
        if !taken.contains(&it.name) {
            all.push(command(&it.name, &it.description, "what to do with it"));
            taken.push(it.name.clone());
        }
    }
    json!({ "sessionUpdate": "available_commands_update", "availableCommands": all })
}

/// What the text of a prompt means.
pub(super) fn read(harness: &Harness, text: &str) -> Meaning {
    let Some(line) = text.strip_prefix('/') else { return Meaning::Message };
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'));
    if !is_name || Path::new("/").join(name).exists() {
        return Meaning::Message;
    }
    let args = rest.trim().to_owned();
    let is_template = harness.templates().iter().any(|it| it.name == name);
    let is_skill = harness.skills().iter().any(|it| it.name == name);
    let is_verb = VERBS.iter().any(|(verb, ..)| *verb == name);
    match (name, is_verb) {
        ("init", _) => Meaning::Do(Input::Init),
        ("compact" | "undo" | "redo", _) => of_headless(harness, text).map_or_else(Meaning::Say, Meaning::Preview),
        (_, true) => of_headless(harness, text).map_or_else(Meaning::Say, Meaning::Do),
        (_, false) if is_template => {
            Meaning::Do(Input::UseTemplate { name: name.to_owned(), args, attachments: Vec::new() })
        }
        (_, false) if is_skill => {
            Meaning::Do(Input::ActivateSkill { name: name.to_owned(), args, attachments: Vec::new() })
        }
        (_, false) => Meaning::Say(unknown(harness, name)),
    }
}

fn of_headless(harness: &Harness, text: &str) -> Result<Input, String> {
    slash::input(harness, text.to_owned(), true).map_err(|e| Failure::from(e).message)
}

fn unknown(harness: &Harness, name: &str) -> String {
    let menu = commands(harness);
    let names: Vec<&str> =
        menu["availableCommands"].as_array().into_iter().flatten().filter_map(|it| it["name"].as_str()).collect();
    match nearest(name, names.iter().copied()) {
        Some(near) => format!("There is no command /{name}. Did you mean /{near}?"),
        None => format!("There is no command /{name}. The commands are: /{}.", names.join(", /")),
    }
}

/// The Input that carries out what the user saw in the preview with this token.
pub(super) fn carried_out(preview: Input, token: &str) -> Input {
    let seen = Some(token.to_owned());
    let restore = |options: RestoreOptions| RestoreOptions { dry_run: false, seen: seen.clone(), ..options };
    match preview {
        Input::Compact { instructions, options, .. } => {
            let options = CompactOptions { seen: seen.clone(), ..options };
            Input::Compact { instructions, dry_run: false, options }
        }
        Input::Undo { turn, options } => Input::Undo { turn, options: restore(options) },
        Input::Redo { options } => Input::Redo { options: restore(options) },
        other => other,
    }
}
