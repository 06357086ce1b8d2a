//! `pixir agents tree`: the agents of a session, as its Log and theirs tell them.

use clap::Args;
use pixir_core::event::{AgentEvent, AgentResult, AgentStatus, Isolation, SessionId, Spawned};
use pixir_core::store::{Place, Store};
use pixir_core::text::human::human_duration;
use pixir_core::{Entry, Fact, Result, log};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::args::Format;
use crate::cli::Cli;
use crate::output::{List, ListOptions, Output, chatter, clean, count};

/// The deepest that agents are followed, should a Log name itself.
const DEEPEST: usize = 16;

#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    /// Session id, a unique prefix of one, a name, SESSION/AGENT, or last
    #[arg(default_value = "last")]
    id: String,
    #[command(flatten)]
    options: ListOptions,
}

/// An agent as the Log of its parent tells it.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) spawned: Spawned,
    /// How its last Turn ended; `None` if the Log has no end.
    pub(crate) end: Option<AgentResult>,
    /// Turns that the parent's Log has the end of.
    pub(crate) turns: usize,
    pub(crate) place: Option<Place>,
    /// Files that it changed in its copy, and that are not in the workspace.
    pub(crate) waiting: BTreeSet<String>,
    /// Its own agents.
    pub(crate) below: Vec<Agent>,
    /// A process has the Session open that it belongs to.
    runs: bool,
}

impl Agent {
    pub(crate) fn status(&self) -> AgentStatus {
        match &self.end {
            Some(end) => end.status,
            None if self.runs => AgentStatus::Running,
            None => AgentStatus::Detached,
        }
    }

    fn json(&self) -> Value {
        let unknown = AgentResult::default();
        let end = self.end.as_ref().unwrap_or(&unknown);
        let resume = if self.spawned.is_run { "pixir workflow resume" } else { "pixir resume" };
        json!({
            "name": self.spawned.name,
            "role": self.spawned.role,
            "session_id": self.spawned.session_id,
            "status": self.status().name(),
            "task": self.spawned.task,
            "turns": self.turns,
            "usage": end.usage,
            "cost": end.cost,
            "duration_ms": end.duration_ms,
            "changed": end.evidence.changed,
            "waiting": self.waiting,
            "resume_command": format!("{resume} {}", self.spawned.session_id),
            "agents": self.below.iter().map(Agent::json).collect::<Vec<_>>(),
        })
    }

    fn print(&self, depth: usize, output: &Output) {
        let took = self.end.as_ref().map_or(String::new(), |end| {
            let tokens = end.usage.input + end.usage.output;
            format!(" · {} · {tokens} tokens", human_duration(Duration::from_millis(end.duration_ms)))
        });
        let Spawned { name, role, session_id, task, .. } = &self.spawned;
        let task: String = clean(task).lines().next().unwrap_or_default().chars().take(60).collect();
        let indent = "  ".repeat(depth);
        let waits = match self.waiting.len() {
            0 => String::new(),
            1 => " · 1 file waits in its copy".to_owned(),
            n => format!(" · {n} files wait in its copy"),
        };
        output.line(&format!("{indent}{name} ({role})  {}{took}{waits}  {session_id}  {task}", self.status().name()));
        self.below.iter().for_each(|it| it.print(depth + 1, output));
    }

    /// The agents whose files wait, this one and those below it.
    fn waiting(&self) -> Vec<&Agent> {
        let own = Some(self).filter(|it| !it.waiting.is_empty());
        own.into_iter().chain(self.below.iter().flat_map(Agent::waiting)).collect()
    }

    /// Nothing waits in a copy that has gone: an adoption, or the end of a step, has removed it.
    fn look_for_copies(&mut self, folder: &Path) {
        if !folder.join(&self.spawned.name).is_dir() {
            self.waiting.clear();
        }
        self.below.iter_mut().for_each(|it| it.look_for_copies(folder));
    }

    fn count(&self) -> usize {
        1 + self.below.iter().map(Agent::count).sum::<usize>()
    }
}

/// The agents of a Session, oldest first.
///
/// # Errors
/// `LOG_READ_FAILED`.
pub(crate) fn agents_of(place: &Place) -> Result<Vec<Agent>> {
    below(place, 0)
}

fn below(place: &Place, depth: usize) -> Result<Vec<Agent>> {
    let mut all = named_in(&log::read(&place.log())?.entries);
    if all.is_empty() {
        return Ok(all);
    }
    let runs = all.iter().any(|it| it.end.is_none()) && place.is_open();
    let children = place.children();
    for agent in &mut all {
        agent.runs = runs;
        agent.place = children.iter().find(|it| it.id.as_str() == agent.spawned.session_id).cloned();
        if let Some(own) = agent.place.as_ref().filter(|_| depth < DEEPEST) {
            agent.below = below(own, depth + 1)?;
        }
    }
    Ok(all)
}

/// The agents that these Entries of one Session name, oldest first.
fn named_in(entries: &[Arc<Entry>]) -> Vec<Agent> {
    let mut all: Vec<Agent> = Vec::new();
    for entry in entries {
        let Fact::AgentEvent(event) = &entry.fact else { continue };
        if let AgentEvent::Spawned(it) = &**event {
            all.push(Agent {
                spawned: (**it).clone(),
                end: None,
                turns: 0,
                place: None,
                waiting: BTreeSet::new(),
                below: Vec::new(),
                runs: false,
            });
        }
        let Some(agent) = all.iter_mut().find(|it| it.spawned.name == event.name()) else { continue };
        match &**event {
            AgentEvent::Resumed { .. } => agent.end = None,
            AgentEvent::Ended(it) => {
                agent.end = Some((**it).clone());
                agent.turns += 1;
                if it.isolation == Isolation::Copy {
                    agent.waiting.extend(it.evidence.changed.iter().cloned());
                }
            }
            AgentEvent::Adopted(it) => {
                for path in it.changes.iter().map(|change| &change.path).chain(&it.kept) {
                    agent.waiting.remove(path);
                }
            }
            AgentEvent::Spawned(_)
            | AgentEvent::Told { .. }
            | AgentEvent::Changed { .. }
            | AgentEvent::Reported { .. }
            | AgentEvent::Adopting(_) => {}
        }
    }
    all
}

/// The commands that write what agents left in their copies to the workspace: one for each agent of this Session whose files wait.
///
/// # Errors
/// `LOG_READ_FAILED`.
pub(crate) fn adoptions(store: &Store, place: &Place) -> Result<Vec<String>> {
    if !store.copies(&place.id).is_dir() {
        return Ok(Vec::new());
    }
    let agents = with_copies(store, place, agents_of(place)?);
    let waiting = agents.iter().flat_map(Agent::waiting);
    Ok(waiting.map(|it| adopt_command(&place.id, it)).collect())
}

fn adopt_command(root: &SessionId, agent: &Agent) -> String {
    format!("pixir agents adopt {root} {}", agent.spawned.name)
}

/// The same agents, with what waits in copies that are there.
fn with_copies(store: &Store, root: &Place, mut agents: Vec<Agent>) -> Vec<Agent> {
    let folder = store.copies(&root.id);
    agents.iter_mut().for_each(|it| it.look_for_copies(&folder));
    agents
}

/// The agents of a Session as these of its Entries tell them.
pub(crate) fn agents_in(entries: &[Arc<Entry>], place: &Place) -> Vec<Agent> {
    let mut all = named_in(entries);
    let runs = all.iter().any(|it| it.end.is_none()) && place.is_open();
    all.iter_mut().for_each(|it| it.runs = runs);
    all
}

pub(super) fn run(cli: &Cli, args: &TreeArgs) -> Result<u8> {
    let (harness, place) = cli.locate(&args.id)?;
    let (root, _) = place.lineage()?;
    let agents = with_copies(harness.store(), &root, agents_of(&place)?);
    let next: Vec<String> = agents.iter().flat_map(Agent::waiting).map(|it| adopt_command(&root.id, it)).collect();
    let output = &cli.output;
    if output.format != Format::Plain || !args.options.select.is_empty() {
        let rows = agents.iter().map(Agent::json).collect();
        let columns = &["name", "role", "status", "session_id", "turns"];
        let list = List {
            name: "agents",
            key: "name",
            columns,
            rows,
            beside: json!({ "session_id": place.id, "next_actions": next }),
        };
        return list.print(output, &args.options, |_| String::new()).map(|()| 0);
    }
    if agents.is_empty() {
        output.line("this session has started no agents");
        return Ok(0);
    }
    agents.iter().for_each(|it| it.print(0, output));
    let all = agents.iter().map(Agent::count).sum();
    chatter(&format!("{}; pixir resume ID goes on with one", count(all, "agent")));
    next.iter().for_each(|it| chatter(&format!("next: {it}")));
    Ok(0)
}
