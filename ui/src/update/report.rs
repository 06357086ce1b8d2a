//! What `/status`, `/usage` and `/plan` show, read from the State.

use std::path::Path;

use pixir_core::event::{Cost, JobStatus, PlanItem, StepStatus, Usage};
use pixir_core::tree;
use pixir_core::usage::{Sums, Total, sums};

use crate::input::action::{ActionSpec, When};
use crate::input::argument::Argument;
use crate::render::figures::short;
use crate::render::markdown::first_line;
use crate::render::report::{Item, Report, Section, Table};
use crate::render::text::from_home;
use crate::state::{Connection, State};

/// The longest prompt beside a Turn, in columns.
const PROMPT: usize = 200;

/// Model, mode, sandbox, places, tokens.
pub(super) fn status(state: &State) -> Report {
    let settings = &state.history.settings;
    let model = match &state.session.connection {
        Connection::Starting { .. } => "connecting…".to_owned(),
        Connection::Failed(error) => {
            format!("none: {}; {}", error.message, state.look.more.remedies.word(&error.remedy))
        }
        Connection::Ready { .. } if settings.model.is_empty() => "connecting…".to_owned(),
        Connection::Ready { .. } => format!("{}/{}", settings.provider, settings.model),
    };
    let mut model = vec![Item::value("model", model)];
    if let Connection::Ready { why, server, .. } = &state.session.connection {
        model.push(Item::value("at start", server.clone()));
        model.push(Item::value("chosen", why.clone()));
    }
    model.push(Item::value("effort", settings.effort.clone().unwrap_or_else(|| "the model's own".to_owned())));
    let window = state.session.window.map_or("unknown".to_owned(), |it| format!("{} tokens", short(it)));
    model.push(Item::value("window", window));

    let sandbox = state.session.sandbox.map_or("not known yet", |tier| tier.name());
    let access = vec![
        Item::value("mode", settings.mode.name()),
        Item::value("sandbox", sandbox),
        Item::value("toolset", settings.toolset.name()),
        Item::value("rules", "/permissions lists them"),
    ];

    let mut session = vec![Item::value("id", state.session.id.as_ref().map_or("…".to_owned(), ToString::to_string))];
    if let Some(name) = &settings.name {
        session.push(Item::value("name", name.clone()));
    }
    session.push(Item::value("turns", state.history.turns.to_string()));
    session.push(Item::value("entries", state.history.entries().len().to_string()));
    let running = state.session.jobs.iter().filter(|job| job.status == JobStatus::Running).count();
    if running > 0 {
        session.push(Item::value("jobs", format!("{running} running; /jobs shows them")));
    }
    let used = state.history.last_input.unwrap_or_else(|| state.history.estimated_tokens());
    let share =
        state.session.window.map_or(String::new(), |it| format!(" ({} % of the window)", used * 100 / it.max(1)));
    // Until the Provider has counted, it is an estimate.
    let mark = if state.history.last_input.is_some() { "" } else { "~" };
    session.push(Item::value("context", format!("{mark}{} tokens{share}", short(used))));
    let total = sums(&state.history).session;
    session.push(Item::value("used", if total.requests == 0 { "no usage yet".to_owned() } else { words(&total) }));
    if state.session.read_only {
        session.push(Item::value("access", "read-only: another pixir writes it, or its log is damaged"));
    }

    let shown = |path: &Path| from_home(path, state.session.home.as_deref());
    let mut places = vec![Item::value("workspace", shown(&state.session.workspace))];
    if let Some(branch) = &state.session.branch {
        let changes = if state.session.has_changes { ", with changes that are not committed" } else { "" };
        places.push(Item::value("git branch", format!("{branch}{changes}")));
    }
    places.extend(state.session.places.iter().map(|(name, path)| Item::value(*name, shown(path))));
    let version =
        vec![Item::value("pixir", env!("CARGO_PKG_VERSION")), Item::value("theme", state.look.theme_name.clone())];
    Report {
        sections: vec![
            Section::new("Model", model),
            Section::new("Access", access),
            Section::new("Session", session),
            Section::new("Places", places),
            Section::new("Program", version),
        ],
    }
}

/// `12.1k in (91 % cached), 1.2k out, 3 requests, $0.02`
fn words(it: &Total) -> String {
    let cost = it.cost.to_string();
    let cost = if cost.is_empty() { String::new() } else { format!(", {cost}") };
    let requests = if it.requests == 1 { "1 request".to_owned() } else { format!("{} requests", it.requests) };
    format!("{} in ({} % cached), {} out, {requests}{cost}", short(it.usage.input), cached(it), short(it.usage.output))
}

/// The share of the tokens sent that the Provider read from its cache, in percent.
fn cached(it: &Total) -> u64 {
    it.usage.cached * 100 / it.usage.input.max(1)
}

/// Tokens and cost: in all, by model, by Turn.
pub(super) fn usage(state: &State) -> Report {
    let sums = sums(&state.history);
    if sums.session.requests == 0 && state.session.agents.is_empty() {
        let text = "No usage yet: no request has reported its tokens.".to_owned();
        return Report { sections: vec![Section::new("", vec![Item::Text(text)])] };
    }
    let mut all = vec![row("this session", &sums.session)];
    if sums.branch != sums.session {
        all.push(row("this branch", &sums.branch));
    }
    let mut agents = Vec::new();
    if !state.session.agents.is_empty() {
        let (usage, cost) = state.session.agents.total();
        let mut whole = sums.session;
        whole.usage += usage;
        whole.cost += cost;
        all.push(agent_row("with its agents", whole.usage, whole.cost));
        let rows = state.session.agents.below().map(|it| {
            let (usage, cost) = state.session.agents.used(it);
            agent_row(&first_line(&format!("{}  {}", it.path.join(" › "), it.task), PROMPT), usage, cost)
        });
        agents.push(Section::new("By agent", vec![table("agent", rows.collect())]));
    }
    let models = sums.models.iter().map(|(model, total)| row(model, total)).collect();
    let mut sections = vec![Section::new("In all", vec![table("", all)])];
    sections.extend(agents);
    sections.push(Section::new("By model", vec![table("model", models)]));
    sections.push(Section::new("By turn, latest first", vec![table("turn", turns(state, &sums))]));
    Report { sections }
}

fn table(first: &str, rows: Vec<Vec<String>>) -> Item {
    let head = [first, "in", "cached", "out", "requests", "cost"].map(str::to_owned).to_vec();
    Item::Table(Table { head, rows })
}

fn row(name: &str, it: &Total) -> Vec<String> {
    vec![
        name.to_owned(),
        short(it.usage.input),
        format!("{} %", cached(it)),
        short(it.usage.output),
        it.requests.to_string(),
        it.cost.to_string(),
    ]
}

/// The requests of an agent are not counted here.
fn agent_row(name: &str, usage: Usage, cost: Cost) -> Vec<String> {
    let total = Total { usage, cost, ..Total::default() };
    let mut cells = row(name, &total);
    cells[4].clear();
    cells
}

fn turns(state: &State, sums: &Sums) -> Vec<Vec<String>> {
    let nodes = tree::nodes(&state.history);
    let prompt = |turn: u32| nodes.iter().find(|node| node.turn == Some(turn)).map_or("", |node| node.text.as_str());
    let rows = sums.turns.iter().rev().map(|it| {
        // The mark of a fork: the turn is on another branch.
        let aside = if it.on_branch { "" } else { "↱ " };
        row(&first_line(&format!("{}  {aside}{}", it.turn, prompt(it.turn)), PROMPT), &it.total)
    });
    rows.collect()
}

/// Usage, keys, availability and Inputs of one command.
pub(super) fn command(state: &State, spec: &ActionSpec) -> Report {
    let usage = spec.slash.map_or_else(|| spec.id.to_owned(), |it| format!("/{} {}", it.name, it.args));
    let keys = state.keys.map.keys_of(spec.action);
    let keys = if keys.is_empty() { "none; bind one in [keys]".to_owned() } else { keys.join(", ") };
    let available = match (spec.when.unavailable(state.session_kind(), state.turn_state()), spec.when) {
        (Some(why), _) => format!("not now: {why}"),
        (None, When::Idle) => "now, and whenever no turn runs".to_owned(),
        (None, When::Live) => "now; not in a replay".to_owned(),
        (None, When::Running) => "now, while the turn runs".to_owned(),
        (None, When::Always) => "always".to_owned(),
    };
    let mut items = vec![
        Item::Text(spec.about.to_owned()),
        Item::value("usage", usage.trim_end()),
        Item::value("keys", keys),
        Item::value("available", available),
        Item::value("in [keys]", spec.id),
    ];
    if let Some(slash) = spec.slash {
        items.push(Item::value("does", slash.does));
        if let Argument::Words(words) = slash.argument {
            items.push(Item::value("takes", words.join(", ")));
        }
    }
    Report { sections: vec![Section::new(spec.title(), items)] }
}

/// The steps of the plan.
pub(super) fn plan(items: &[PlanItem]) -> Report {
    let done = items.iter().filter(|it| it.status == StepStatus::Completed).count();
    let steps = items.iter().map(|it| Item::Step {
        done: match it.status {
            StepStatus::Pending => None,
            StepStatus::InProgress => Some(false),
            StepStatus::Completed => Some(true),
        },
        text: it.step.clone(),
    });
    Report { sections: vec![Section::new(format!("{done} of {} done", items.len()), steps.collect())] }
}
