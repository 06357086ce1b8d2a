//! Slash commands of a client: each is its Input, and never text for a model.

use std::collections::BTreeMap;
use std::path::Path;

use pixir_core::error::nearest;
use pixir_core::event::Attachment;
use pixir_core::input::{CompactOptions, Message, RestoreOptions, SettingsChange, Summarize, WorkflowOrder};
use pixir_core::tree::{self, Node};
use pixir_core::trust::TrustAnswer;
use pixir_core::verbs::{self, Order, Outcome, VERBS};
use pixir_core::{Harness, Input, PLAN_ROLE, Watch};
use serde_json::{Map, Value, json};

use crate::json_rpc::Failure;

mod shown; // texts for the user

pub(super) use shown::{contributions, shown};

/// Commands of the terminal interface that need its screen, and what does the same beside an editor.
const ON_A_SCREEN: [(&str, &str); 21] = [
    ("interrupt", "the stop button of your editor"),
    ("quit", "your editor, which closes the session"),
    ("find", "the search of your editor, or pixir sessions export"),
    ("help", "pixir --help"),
    ("keys", "pixir --help"),
    ("outline", "/tree"),
    ("diff", "git diff, or pixir sessions show"),
    ("files", "git diff, or pixir sessions show"),
    ("settings", "pixir config"),
    ("config", "pixir config"),
    ("connect", "pixir auth login"),
    ("auth", "pixir auth login"),
    ("status", "pixir status"),
    ("doctor", "pixir doctor"),
    ("log", "the file pixir.log in the state folder"),
    ("new", "the menu of new threads of your editor"),
    ("resume", "the list of sessions of your editor, or pixir resume"),
    ("sessions", "the list of sessions of your editor, or pixir sessions list"),
    ("attach", "the mentions of your editor, or the path in the prompt"),
    ("export", "pixir sessions export"),
    ("usage", "the usage that your editor shows, or pixir sessions show"),
];

/// Commands that only change the screen of the terminal interface.
const OF_THE_SCREEN: [&str; 3] = ["copy", "theme", "mouse"];

/// What a prompt means.
pub(super) enum Meaning {
    /// A message for the model.
    Message,
    /// Inputs that are carried out as they are; what came of the last one is the end of the command. Then the text.
    Do(Vec<Input>, String),
    /// An Input whose preview the user sees first: the dry run. After it the text.
    Preview(Input, String),
    /// An Input whose events are shown as text.
    Show(Input),
    /// What the workspace brings along, and the question whether it is in force.
    Trust,
    /// A prompt of an MCP server, whose text the user reads before it is sent.
    Prompt { name: String, args: String },
    /// Nothing; the text is for the user.
    Say(String),
}

impl From<Input> for Meaning {
    fn from(input: Input) -> Meaning {
        Meaning::Do(vec![input], String::new())
    }
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
    let verbs = || VERBS.iter().filter_map(|verb| Some((verb.name, verb.client?)));
    let mut all: Vec<Value> = verbs().map(|(name, menu)| command(name, menu.about, menu.hint)).collect();
    let mut taken: Vec<String> = verbs().map(|(name, _)| name.to_owned()).collect();
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
    for it in harness.server_prompts() {
        if !taken.contains(&it.name) {
            all.push(command(
                &it.name,
                &it.about,
                &it.needs.iter().chain(&it.optional).cloned().collect::<Vec<_>>().join(", "),
            ));
            taken.push(it.name);
        }
    }
    json!({ "sessionUpdate": "available_commands_update", "availableCommands": all })
}

/// What a prompt means in this Session.
pub(super) fn read(harness: &Harness, session: &Watch, message: &Message) -> Meaning {
    let Some(line) = message.text.strip_prefix('/') else { return Meaning::Message };
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'));
    if !is_name || Path::new("/").join(name).exists() {
        return Meaning::Message;
    }
    let (args, attachments) = (rest.trim().to_owned(), message.attachments.clone());
    let set = |change: SettingsChange| Meaning::from(Input::Set(change));
    match name {
        "agents" => Meaning::Say(shown::agents(&session.now.children)),
        "tree" => Meaning::Say(shown::tree(&session.past)),
        "plan" => plan(session, &args, message),
        "rewind" => rewind(session, &args),
        "fork" => match session.past.head() {
            Some(seq) => Input::Fork { seq }.into(),
            None => Meaning::Say("There is nothing to fork yet.".to_owned()),
        },
        "label" => label(session, args),
        "pin" => pin(session),
        "trust" if args.is_empty() => Meaning::Trust,
        "trust" if args == "revoke" => {
            let revoke = Input::AnswerTrust { answer: TrustAnswer::Revoke, seen: BTreeMap::new(), folder: None };
            Meaning::Do(vec![revoke], "Nothing that this workspace brings along is in force any more.".to_owned())
        }
        "trust" => Meaning::Say(
            "/trust shows what this workspace brings along and asks; /trust revoke stops trusting it.".to_owned(),
        ),
        "add-dir" | "model" | "workflows" if args.is_empty() => Meaning::Say(format!("/{name} needs {}", hint(name))),
        "model" => {
            let providers = harness.providers();
            let (provider, model) = providers.split(&args, &session.past.settings.provider);
            let (provider, model) = (Some(provider.to_owned()), Some(model.to_owned()));
            set(SettingsChange { provider, model, ..SettingsChange::default() })
        }
        "workflows" => workflow(&args).map_or_else(Meaning::Say, |order| Input::RunWorkflow(order).into()),
        _ => {
            let order = Order { args: &args, attachments: attachments.clone(), dry_run: true };
            match verbs::find(name).filter(|it| it.client.is_some()).and_then(|it| it.input(order)) {
                Some(Ok((Outcome::Done, input))) => input.into(),
                Some(Ok((Outcome::Previewed, input))) => Meaning::Preview(input, String::new()),
                Some(Ok((Outcome::Shown, input))) => Meaning::Show(input),
                Some(Err(e)) => Meaning::Say(Failure::from(e).message),
                None => of_files(harness, name, args, attachments),
            }
        }
    }
}

/// A template, a skill or a prompt of a server by its name; without one, what the user can do instead.
fn of_files(harness: &Harness, name: &str, args: String, attachments: Vec<Attachment>) -> Meaning {
    let own = name.to_owned();
    if harness.templates().iter().any(|it| it.name == name) {
        return Input::UseTemplate { name: own, args, attachments }.into();
    }
    if harness.skills().iter().any(|it| it.name == name) {
        return Input::ActivateSkill { name: own, args, attachments }.into();
    }
    if harness.server_prompts().iter().any(|it| it.name == name) {
        return Meaning::Prompt { name: own, args };
    }
    Meaning::Say(elsewhere(name).unwrap_or_else(|| unknown(harness, name)))
}

fn hint(name: &str) -> &'static str {
    verbs::find(name).and_then(|it| it.client).map_or("", |menu| menu.hint)
}

/// Begins or ends planning, plans a task, or shows the plan.
fn plan(session: &Watch, task: &str, message: &Message) -> Meaning {
    let plans = session.past.settings.role.as_deref() == Some(PLAN_ROLE);
    let role = |role: &str| Input::Set(SettingsChange { role: Some(role.to_owned()), ..SettingsChange::default() });
    match task {
        "" => Meaning::Say(shown::plan(&session.past.plan)),
        "on" if plans => Meaning::Say("The session is planning already; /plan off ends it.".to_owned()),
        "off" if !plans => Meaning::Say("The session is not planning; /plan on begins it.".to_owned()),
        "on" => Meaning::Do(vec![role(PLAN_ROLE)], "Planning: nothing is changed until you agree.".to_owned()),
        "off" => Meaning::Do(vec![role("")], "The session is not planning any more.".to_owned()),
        _ if session.now.turn.is_some() => {
            Meaning::Say("A turn is running; send /plan with the task when it has ended.".to_owned())
        }
        _ => {
            let prompt = Input::Prompt(Message { text: task.to_owned(), ..message.clone() });
            let begin = (!plans).then(|| role(PLAN_ROLE));
            Meaning::Do(begin.into_iter().chain([prompt]).collect(), String::new())
        }
    }
}

fn name_of(node: &Node) -> String {
    node.turn.map_or("The last step".to_owned(), |turn| format!("Turn {turn}"))
}

fn rewind(session: &Watch, to: &str) -> Meaning {
    if to.is_empty() {
        return Meaning::Say("/rewind needs the number or the label of a turn; /tree shows them.".to_owned());
    }
    match tree::named(&session.past, to) {
        Some(node) if node.is_head => Meaning::Say("The conversation is already there.".to_owned()),
        Some(node) => {
            let files = Some(RestoreOptions { dry_run: true, ..RestoreOptions::default() });
            let back = Input::MoveHead { to_seq: Some(node.end_seq), summarize: Summarize::No, files };
            let turn = node.turn.map_or_else(|| to.to_owned(), |turn| format!("turn {turn}"));
            let text = format!("The conversation goes on behind {turn}; /tree shows what came later.");
            Meaning::Preview(back, text)
        }
        None => Meaning::Say(format!("There is no turn {to}, and no label of that name; /tree shows them.")),
    }
}

fn label(session: &Watch, name: String) -> Meaning {
    let Some(node) = tree::head(&session.past) else {
        return Meaning::Say("There is no turn to label yet.".to_owned());
    };
    let turn = name_of(&node);
    let text = match (name.is_empty(), &node.label) {
        (true, None) => return Meaning::Say(format!("{turn} has no label; /label NAME gives it one.")),
        (true, Some(_)) => format!("{turn} has no label any more."),
        (false, _) => format!("{turn} is labelled {name}; /rewind {name} comes back to it."),
    };
    Meaning::Do(vec![Input::Label { seq: node.seq, text: name }], text)
}

fn pin(session: &Watch) -> Meaning {
    let Some(node) = tree::head(&session.past) else { return Meaning::Say("There is no turn to pin yet.".to_owned()) };
    let (turn, pinned) = (name_of(&node), !node.pinned);
    let text = if pinned {
        format!("{turn} is pinned: compactions keep it word for word. /pin again unpins it.")
    } else {
        format!("{turn} is not pinned any more.")
    };
    Meaning::Do(tree::pins(&node, pinned), text)
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

/// What does the same as a command that needs a screen.
fn elsewhere(name: &str) -> Option<String> {
    if OF_THE_SCREEN.contains(&name) {
        return Some(format!("/{name} changes the screen of pixir in a terminal; there is nothing to change here."));
    }
    let (_, instead) = ON_A_SCREEN.iter().find(|(known, _)| *known == name)?;
    Some(format!("/{name} needs the screen of pixir in a terminal. Here, use {instead}."))
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
        Input::MoveHead { to_seq, summarize, files } => {
            Input::MoveHead { to_seq, summarize, files: files.map(restore) }
        }
        other => other,
    }
}
