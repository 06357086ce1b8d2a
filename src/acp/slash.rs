//! Slash commands of a client: each is its Input, and never text for a model.

use std::path::Path;

use pixir_core::error::nearest;
use pixir_core::event::{ContextReport, JobState, JobStatus};
use pixir_core::history::Settings;
use pixir_core::input::{CompactOptions, Message, RestoreOptions, RuleReach, SettingsChange, WorkflowOrder};
use pixir_core::text::clean::clean;
use pixir_core::{Event, Harness, Input, Live};
use serde_json::{Map, Value, json};

use crate::headless::slash;
use crate::json_rpc::Failure;

/// Verbs that are Inputs: the name, what it does, and what to type after it.
const VERBS: [(&str, &str, &str); 14] = [
    ("compact", "Replace the older part of the conversation by a summary", "what the summary should focus on"),
    ("undo", "Take back the file changes of a turn", "number of the turn"),
    ("redo", "Take back the last undo", ""),
    ("init", "Let the model write AGENTS.md", ""),
    ("skill", "Activate a skill", "NAME, and what to do with it"),
    ("rename", "Name this session", "the name"),
    ("mode", "Change what may run without asking", "read-only, ask or auto"),
    ("effort", "Change how much the model reasons", "none to max"),
    ("toolset", "Change the tools of the model", "typed, run or both"),
    ("model", "Change the model", "provider/model"),
    ("add-dir", "Let the tools read a folder outside the workspace", "the folder"),
    ("workflows", "Run a workflow of this workspace", "NAME [parameter=value]…"),
    ("context", "Show what fills the window of the model", ""),
    ("jobs", "Show the background jobs", ""),
];

/// The parts of the window that are named one by one; the rest is one line.
const MOST_PARTS: usize = 20;

/// What a prompt means.
pub(super) enum Meaning {
    /// A message for the model.
    Message,
    /// An Input that is carried out as it is.
    Do(Input),
    /// An Input whose preview the user sees first: the dry run.
    Preview(Input),
    /// An Input whose events are shown as text.
    Show(Input),
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

/// What a prompt means.
pub(super) fn read(harness: &Harness, settings: &Settings, message: &Message) -> Meaning {
    let Some(line) = message.text.strip_prefix('/') else { return Meaning::Message };
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'));
    if !is_name || Path::new("/").join(name).exists() {
        return Meaning::Message;
    }
    let (args, attachments) = (rest.trim().to_owned(), message.attachments.clone());
    let set = |change: SettingsChange| Meaning::Do(Input::Set(change));
    match name {
        "init" => Meaning::Do(Input::Init),
        "context" => Meaning::Show(Input::ShowContext),
        "jobs" => Meaning::Show(Input::ListJobs),
        "add-dir" | "model" | "workflows" if args.is_empty() => Meaning::Say(format!("/{name} needs {}", hint(name))),
        "add-dir" => Meaning::Do(Input::AddFolder { path: args, holds: RuleReach::Session }),
        "model" => {
            let providers = harness.providers();
            let (provider, model) = providers.split(&args, &settings.provider);
            let (provider, model) = (Some(provider.to_owned()), Some(model.to_owned()));
            set(SettingsChange { provider, model, ..SettingsChange::default() })
        }
        "workflows" => workflow(&args).map_or_else(Meaning::Say, |order| Meaning::Do(Input::RunWorkflow(order))),
        "effort" if args == "default" => {
            set(SettingsChange { effort: Some(String::new()), ..SettingsChange::default() })
        }
        "compact" | "undo" | "redo" => of_headless(harness, &message.text).map_or_else(Meaning::Say, Meaning::Preview),
        _ if VERBS.iter().any(|(verb, ..)| *verb == name) => {
            of_headless(harness, &message.text).map_or_else(Meaning::Say, Meaning::Do)
        }
        _ if harness.templates().iter().any(|it| it.name == name) => {
            Meaning::Do(Input::UseTemplate { name: name.to_owned(), args, attachments })
        }
        _ if harness.skills().iter().any(|it| it.name == name) => {
            Meaning::Do(Input::ActivateSkill { name: name.to_owned(), args, attachments })
        }
        _ => Meaning::Say(unknown(harness, name)),
    }
}

fn hint(name: &str) -> &'static str {
    VERBS.iter().find(|(verb, ..)| *verb == name).map_or("", |(_, _, hint)| hint)
}

/// The run that `NAME parameter=value …` orders.
fn workflow(args: &str) -> Result<WorkflowOrder, String> {
    let mut words = args.split_whitespace();
    let name = words.next().map(str::to_owned);
    let mut params = Map::new();
    for word in words {
        let Some((param, value)) = word.split_once('=') else {
            return Err(format!("`{}` has no `=`: /workflows NAME parameter=value", word.escape_debug()));
        };
        params.insert(param.to_owned(), Value::from(value));
    }
    Ok(WorkflowOrder { name, params, ..WorkflowOrder::default() })
}

/// What the events of an Input show the user.
pub(super) fn shown(events: &[Event]) -> String {
    let text = events.iter().find_map(|event| match event.live() {
        Some(Live::ContextListed(it)) => Some(window(it)),
        Some(Live::JobsChanged { jobs }) => Some(list_of_jobs(jobs)),
        _ => None,
    });
    text.unwrap_or_else(|| list_of_jobs(&[]))
}

fn window(it: &ContextReport) -> String {
    let of = it.window.map_or_else(String::new, |window| format!(" of {window}"));
    let mut text = format!("{}{of} tokens are in use.\n\n", it.tokens);
    let mut parts: Vec<_> = it.parts.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.tokens));
    for part in parts.iter().take(MOST_PARTS) {
        text.push_str(&format!("- {} {}: {}\n", part.kind.name(), clean(&part.title), part.tokens));
    }
    let rest = &parts[parts.len().min(MOST_PARTS)..];
    if !rest.is_empty() {
        let tokens: u64 = rest.iter().map(|part| part.tokens).sum();
        text.push_str(&format!("- {} smaller parts: {tokens}\n", rest.len()));
    }
    text
}

fn list_of_jobs(jobs: &[JobState]) -> String {
    if jobs.is_empty() {
        return "There are no background jobs.".to_owned();
    }
    let line = |job: &JobState| {
        let status = match job.status {
            JobStatus::Running => "runs".to_owned(),
            JobStatus::Ended { exit_code } => format!("ended with {exit_code}"),
            JobStatus::Stopped => "was stopped".to_owned(),
        };
        format!("- {} {status}: {}", job.id, clean(&job.command))
    };
    jobs.iter().map(line).collect::<Vec<_>>().join("\n")
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
