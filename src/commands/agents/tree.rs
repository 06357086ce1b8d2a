//! `pixir agents tree`: the agents of a session, as its Log and theirs tell them.

use clap::Args;
use pixir_core::event::{AgentEvent, AgentResult, AgentStatus, Spawned};
use pixir_core::store::Place;
use pixir_core::text::human::human_duration;
use pixir_core::{Entry, Fact, Result, log};
use serde_json::{Value, json};
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
        output.line(&format!("{indent}{name} ({role})  {}{took}  {session_id}  {task}", self.status().name()));
        self.below.iter().for_each(|it| it.print(depth + 1, output));
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
            }
            AgentEvent::Spawned(_)
            | AgentEvent::Told { .. }
            | AgentEvent::Changed { .. }
            | AgentEvent::Reported { .. }
            | AgentEvent::Adopting(_)
            | AgentEvent::Adopted(_) => {}
        }
    }
    all
}

/// The agents of a Session as these of its Entries tell them.
pub(crate) fn agents_in(entries: &[Arc<Entry>], place: &Place) -> Vec<Agent> {
    let mut all = named_in(entries);
    let runs = all.iter().any(|it| it.end.is_none()) && place.is_open();
    all.iter_mut().for_each(|it| it.runs = runs);
    all
}

pub(super) fn run(cli: &Cli, args: &TreeArgs) -> Result<u8> {
    let (_, place) = cli.locate(&args.id)?;
    let agents = agents_of(&place)?;
    let output = &cli.output;
    if output.format != Format::Plain || !args.options.select.is_empty() {
        let rows = agents.iter().map(Agent::json).collect();
        let columns = &["name", "role", "status", "session_id", "turns"];
        let list = List { name: "agents", key: "name", columns, rows, beside: json!({ "session_id": place.id }) };
        return list.print(output, &args.options, |_| String::new()).map(|()| 0);
    }
    if agents.is_empty() {
        output.line("this session has started no agents");
        return Ok(0);
    }
    agents.iter().for_each(|it| it.print(0, output));
    let all = agents.iter().map(Agent::count).sum();
    chatter(&format!("{}; pixir resume ID goes on with one", count(all, "agent")));
    Ok(0)
}
