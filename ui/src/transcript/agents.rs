//! The agents of the user's Session at any depth, which of them is on the screen, and the calls that started them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use pixir_core::agent::AgentState;
use pixir_core::event::{Adoption, AgentEvent, AgentStatus, Cost, Severity, Usage};
use pixir_core::history::History;
use pixir_core::{Entry, Fact};

use super::{Cell, Transcript};
use crate::render::text::visible;

/// The tool that starts an agent.
pub(in crate::transcript) const SPAWN: &str = "spawn_agent";

/// All agents below the Session that the user opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Agents {
    /// The names down to the agent on the screen; empty for the user's own Session.
    pub(crate) at: Vec<String>,
    /// Oldest first.
    all: Vec<AgentState>,
    /// Agents that had ended when the last Turn ended: they are not listed above the composer any more.
    left: BTreeSet<String>,
    /// What the Log says that each has used, by its Session.
    recorded: BTreeMap<String, (Usage, Cost)>,
}

impl Agents {
    /// What the Log of the user's Session says of its agents. Those that run report themselves.
    pub(crate) fn of(history: &History) -> Agents {
        let mut agents = Agents::default();
        for entry in history.entries() {
            agents.recall(entry);
        }
        agents.settle();
        agents
    }

    /// Takes in an entry of the past.
    fn recall(&mut self, entry: &Entry) {
        let Fact::AgentEvent(event) = &entry.fact else { return };
        if let AgentEvent::Spawned(it) = event {
            let line: String = it.task.lines().next().unwrap_or_default().chars().take(200).collect();
            self.all.push(AgentState {
                path: vec![it.name.clone()],
                session_id: it.session_id.clone(),
                role: it.role.clone(),
                task: line,
                // Without an end in the Log, and unless it reports itself.
                status: AgentStatus::Detached,
                doing: String::new(),
                since: entry.ts,
                active: entry.ts,
                took_ms: None,
                calls: 0,
                usage: Usage::default(),
                cost: Cost::default(),
                added: 0,
                removed: 0,
                waiting_files: 0,
            });
        }
        if let AgentEvent::Ended(it) = event
            && let Some(agent) = self.all.iter_mut().find(|agent| agent.session_id == it.session_id)
        {
            agent.status = it.status;
            agent.took_ms = Some(it.duration_ms);
            agent.active = entry.ts;
            agent.calls += it.evidence.calls;
            agent.usage += it.usage;
            agent.cost += it.cost;
        }
        if let AgentEvent::Changed { name, changes, .. } = event
            && let Some(agent) = self.all.iter_mut().find(|agent| agent.name() == name)
        {
            for change in changes {
                agent.added += change.added;
                agent.removed += change.removed;
            }
        }
        self.note(entry);
    }

    /// Takes in what an entry of the user's Session says that an agent has used.
    pub(crate) fn note(&mut self, entry: &Entry) {
        if let Fact::AgentEvent(AgentEvent::Ended(it)) = &entry.fact {
            let (usage, cost) = self.recorded.entry(it.session_id.clone()).or_default();
            *usage += it.usage;
            *cost += it.cost;
        }
    }

    /// Takes in what is new of an agent. Returns what it was doing before.
    pub(crate) fn take(&mut self, agent: AgentState) -> Option<AgentStatus> {
        if agent.status.is_open() {
            self.left.remove(&agent.session_id);
        }
        match self.all.iter_mut().find(|it| it.session_id == agent.session_id) {
            Some(known) => {
                let before = known.status;
                *known = agent;
                Some(before)
            }
            None => {
                self.all.push(agent);
                None
            }
        }
    }

    /// A Turn has ended: agents that have ended too leave the screen.
    pub(crate) fn settle(&mut self) {
        self.left.extend(self.all.iter().filter(|it| !it.status.is_open()).map(|it| it.session_id.clone()));
    }

    pub(crate) fn all(&self) -> &[AgentState] {
        &self.all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The same agents, seen from another of them.
    pub(crate) fn seen_from(self, path: &[String]) -> Agents {
        Agents { at: path.to_vec(), ..self }
    }

    /// The agents below the Session on the screen, of any depth.
    pub(crate) fn below(&self) -> impl Iterator<Item = &AgentState> {
        self.all.iter().filter(|it| it.path.len() > self.at.len() && it.path.starts_with(&self.at))
    }

    /// Those of them that run, or that ended while the Turn runs.
    pub(crate) fn current(&self) -> impl Iterator<Item = &AgentState> {
        self.below().filter(|it| !self.left.contains(&it.session_id))
    }

    /// How many below the Session on the screen run, wait, or are about to run.
    pub(crate) fn running(&self) -> usize {
        self.below().filter(|it| it.status.is_open()).count()
    }

    /// An agent is on the screen, and not the user's own Session.
    pub(crate) fn is_inside(&self) -> bool {
        !self.at.is_empty()
    }

    /// Tokens and cost of the agents below the Session on the screen.
    pub(crate) fn total(&self) -> (Usage, Cost) {
        let mut total = (Usage::default(), Cost::default());
        for agent in self.below() {
            let (usage, cost) = self.used(agent);
            total.0 += usage;
            total.1 += cost;
        }
        total
    }

    /// Tokens and cost of one agent. What this process has not seen is in the Log.
    pub(crate) fn used(&self, agent: &AgentState) -> (Usage, Cost) {
        match self.recorded.get(&agent.session_id) {
            Some((usage, cost)) if usage.input + usage.output > agent.usage.input + agent.usage.output => {
                (*usage, *cost)
            }
            Some(_) | None => (agent.usage, agent.cost),
        }
    }
}

// ─── Calls that started an agent ───

/// The cells of calls that started agents.
#[derive(Debug, Default)]
pub(super) struct AgentCells {
    /// The cell of each, by the Session of the agent.
    cells: HashMap<String, usize>,
    /// The states of the agents, by cell.
    states: HashMap<usize, AgentState>,
}

/// What became of the files of an agent's copy: `2 files of scribe are in the workspace, 1 waits`.
fn adopted(it: &Adoption) -> String {
    let name = visible(&it.name);
    let mut text = match it.changes.len() {
        0 => format!("no file of {name} was written"),
        1 => format!("1 file of {name} is in the workspace"),
        n => format!("{n} files of {name} are in the workspace"),
    };
    match it.kept.len() {
        0 => {}
        1 => text.push_str(", 1 stays as it was"),
        n => text.push_str(&format!(", {n} stay as they were")),
    }
    match it.left.len() {
        0 => {}
        1 => text.push_str(", 1 waits for you"),
        n => text.push_str(&format!(", {n} wait for you")),
    }
    text
}

impl Transcript {
    pub(super) fn agent_event(&mut self, entry: &Arc<Entry>, event: &AgentEvent) {
        match event {
            AgentEvent::Spawned(it) => {
                if let Some(at) = it.call_id.as_ref().and_then(|call| self.open_calls.get(call)) {
                    self.agents.cells.insert(it.session_id.clone(), *at);
                }
            }
            AgentEvent::Adopted(it) => {
                for change in &it.changes {
                    self.changed_lines.0 += change.added;
                    self.changed_lines.1 += change.removed;
                }
                self.push(Cell::Notice(Severity::Info, adopted(it).into()));
            }
            AgentEvent::Changed { changes, .. } => {
                for change in changes {
                    self.changed_lines.0 += change.added;
                    self.changed_lines.1 += change.removed;
                }
            }
            // What a call waited for is in its result.
            AgentEvent::Reported { .. } => self.push(Cell::Recorded(Arc::clone(entry))),
            AgentEvent::Ended(_) | AgentEvent::Told { .. } | AgentEvent::Resumed { .. } | AgentEvent::Adopting(_) => {}
        }
    }

    /// Shows what an agent does in the call that started it.
    pub(crate) fn agent_changed(&mut self, agent: &AgentState) {
        let Some(at) = self.agents.cells.get(&agent.session_id).copied() else { return };
        let is_spawn = matches!(self.cells.get(at), Some(Cell::Tool(tool)) if tool.call().name == SPAWN);
        if is_spawn {
            self.agents.states.insert(at, agent.clone());
            self.changed(at);
        }
    }

    /// The agent that the call in this cell started.
    pub(crate) fn agent_of(&self, at: usize) -> Option<&AgentState> {
        self.agents.states.get(&at)
    }
}
