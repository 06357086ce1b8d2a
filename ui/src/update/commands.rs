//! Slash commands about the Session as a whole: status, plan, marks, files, exports.

use pixir_core::event::PlanItem;
use pixir_core::input::{FolderAccess, RuleReach, SettingsChange, Summarize};
use pixir_core::{Input, PLAN_ROLE, tree};

use super::{refused, send, travel};
use crate::composer::is_image_name;
use crate::input::argument::ExportFormat;
use crate::overlay::report::{ReportKind, ReportView};
use crate::overlay::tree::PendingMove;
use crate::state::{Effect, OnHarness, State};
use crate::update::report;

// ─── Reports ───

pub(super) fn status(state: &mut State) -> Vec<Effect> {
    let report = report::status(state);
    state.open(ReportView::new(ReportKind::Status, report))
}

pub(super) fn usage(state: &mut State) -> Vec<Effect> {
    let report = report::usage(state);
    state.open(ReportView::new(ReportKind::Usage, report))
}

pub(super) fn doctor(state: &mut State) -> Vec<Effect> {
    let mut effects = state.open(ReportView::loading(ReportKind::Doctor));
    effects.push(Effect::Examine);
    effects
}

/// Shows the plan, begins or ends planning, or plans a task.
pub(super) fn plan(state: &mut State, task: &str) -> Vec<Effect> {
    let plans = state.history.settings.role.as_deref() == Some(PLAN_ROLE);
    let role = |role: &str| {
        let change = SettingsChange { role: Some(role.to_owned()), ..SettingsChange::default() };
        vec![Effect::Send(Input::Set(change))]
    };
    match task {
        "" if state.history.plan.is_empty() => {
            state.say("no plan yet; /plan <task> plans without changing anything");
            return Vec::new();
        }
        "" => {
            let plan: Vec<PlanItem> = state.history.plan.clone();
            return state.open(ReportView::new(ReportKind::Plan, report::plan(&plan)));
        }
        _ if state.replay.is_some() => {
            state.say("/plan <task> is not possible in a replay");
            return Vec::new();
        }
        "on" | "off" if plans == (task == "on") => {
            state.say(if plans { "planning already; /plan off ends it" } else { "not planning; /plan on begins it" });
            return Vec::new();
        }
        "on" => return role(PLAN_ROLE),
        "off" => return role(""),
        _ if state.is_busy() => return send::put_off(state, "plan"),
        _ => {}
    }
    state.viewport.follow();
    let mut effects = if plans { Vec::new() } else { role(PLAN_ROLE) };
    effects.push(Effect::message(Input::Prompt(task.to_owned().into())));
    effects
}

// ─── Marks and moves ───

/// Goes to the end of a Turn, or opens the tree.
pub(super) fn rewind(state: &mut State, to: &str) -> Vec<Effect> {
    if to.is_empty() {
        return travel::open_tree(state);
    }
    match tree::named(&state.history, to) {
        Some(node) if node.is_head => {
            state.say("the conversation is already there");
            Vec::new()
        }
        Some(node) => {
            let pending = PendingMove { to_seq: Some(node.end_seq), summarize: Summarize::No, edit: None };
            travel::preview_move(state, pending)
        }
        None => {
            refused::refuse(state, format!("there is no turn {to}, and no label of that name; /rewind opens the tree"))
        }
    }
}

pub(super) fn label(state: &mut State, name: &str) -> Vec<Effect> {
    let Some(node) = tree::head(&state.history) else {
        state.say("there is no turn to label yet");
        return Vec::new();
    };
    if name.is_empty() && node.label.is_none() {
        return refused::refuse(state, "the last turn has no label; /label <name> gives it one");
    }
    let turn = node.turn.map_or("the last step".to_owned(), |turn| format!("turn {turn}"));
    state.say(if name.is_empty() {
        format!("{turn} has no label any more")
    } else {
        format!("{turn} is labelled {name}; /rewind {name} comes back to it")
    });
    vec![Effect::Send(Input::Label { seq: node.seq, text: name.to_owned() })]
}

pub(super) fn pin(state: &mut State) -> Vec<Effect> {
    let Some(node) = tree::head(&state.history) else {
        state.say("there is no turn to pin yet");
        return Vec::new();
    };
    let pinned = !node.pinned;
    let turn = node.turn.map_or("the last step".to_owned(), |turn| format!("turn {turn}"));
    state.say(if pinned {
        format!("{turn} is pinned: compactions keep it word for word; /pin again unpins it")
    } else {
        format!("{turn} is not pinned any more")
    });
    tree::pins(&node, pinned).into_iter().map(Effect::Send).collect()
}

// ─── Files ───

/// Attaches an image to the draft, or mentions another file in it.
pub(super) fn attach(state: &mut State, path: &str) -> Vec<Effect> {
    let path = path.trim_matches('"');
    if path.is_empty() {
        return refused::refuse(state, "/attach needs a file: /attach <file>");
    }
    let quoted = if path.contains(' ') { format!("@\"{path}\" ") } else { format!("@{path} ") };
    if is_image_name(path) {
        return vec![OnHarness::AttachFile { path: path.to_owned(), pasted: quoted }.into()];
    }
    vec![Effect::MentionFile { path: path.to_owned(), mention: quoted }]
}

/// Mentions a file that `/attach` named, if it is there.
pub(crate) fn on_mentioned(state: &mut State, path: &str, mention: &str, is_there: bool) {
    if is_there {
        state.composer.insert(mention);
        state.say("mentioned; the model reads it when it needs to");
    } else {
        refused::refuse_late(state, "attach", format!("there is no file {path}"));
    }
}

pub(super) fn add_folder(state: &mut State, path: &str) -> Vec<Effect> {
    let (path, access) = FolderAccess::of(path);
    if path.is_empty() {
        return refused::refuse(state, "/add-dir needs a folder: /add-dir <folder>, or <folder>:rw to work on it");
    }
    state.viewport.follow();
    vec![Effect::AddFolder { path: path.to_owned(), access, holds: RuleReach::Session }]
}

/// `/export [md|html|json] [file]`: the file's ending can name the format too.
pub(super) fn export(state: &mut State, args: &str) -> Vec<Effect> {
    let (first, rest) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
    let (format, file) = match (ExportFormat::parse(first), args) {
        (Some(format), _) => (format, rest.trim()),
        (None, "") => (ExportFormat::Markdown, ""),
        (None, file) => match file.rsplit_once('.').and_then(|(_, ending)| ExportFormat::parse(ending)) {
            Some(format) => (format, file),
            None => {
                return refused::refuse(state, "/export takes md, html or json, and a file: /export html talk.html");
            }
        },
    };
    let file = Some(file.trim_matches('"').to_owned()).filter(|it| !it.is_empty());
    vec![Effect::Export { format, file }]
}
