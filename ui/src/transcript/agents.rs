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
    /// What the user has told agents.
    told: Vec<Told>,
    /// Counted at each change, so that no frame has to look at all agents.
    sums: Sums,
}

/// Of the agents below the Session on the screen.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    running: usize,
    usage: Usage,
    cost: Cost,
}

/// A text that the user has told an agent.
#[derive(Debug, Clone)]
struct Told {
    session: String,
    text: String,
    /// When the Turn of that moment began, in microseconds since 1970.
    since: i64,
    /// It has waited in the agent's queue, or began a Turn.
    has_arrived: bool,
}

impl Agents {
    /// What the Log of the user's Session says of its agents. Those that run report themselves.
    pub(crate) fn of(history: &History) -> Agents {
        let mut agents = Agents::default();
        for entry in history.entries() {
            agents.recall(entry);
        }
        agents.settle();
        agents.count();
        agents
    }

    /// Takes in an entry of the past.
    fn recall(&mut self, entry: &Entry) {
        let Fact::AgentEvent(event) = &entry.fact else { return };
        if let AgentEvent::Spawned(it) = &**event {
            let line: String = it.task.lines().next().unwrap_or_default().chars().take(200).collect();
            self.all.push(AgentState {
                path: vec![it.name.clone()],
                session_id: it.session_id.clone(),
                role: it.role.clone(),
                task: line,
                // Without an end in the Log, and unless it reports itself.
                status: AgentStatus::Detached,
                waiting_for: None,
                doing: String::new(),
                since: entry.ts,
                active: entry.ts,
                took_ms: None,
                calls: 0,
                usage: Usage::default(),
                cost: Cost::default(),
                added: 0,
                removed: 0,
                queued: Vec::new(),
                waiting_files: 0,
                is_run: it.is_run,
            });
        }
        if let AgentEvent::Ended(it) = &**event
            && let Some(agent) = self.all.iter_mut().find(|agent| agent.session_id == it.session_id)
        {
            agent.status = it.status;
            agent.took_ms = Some(it.duration_ms);
            agent.active = entry.ts;
            agent.calls += it.evidence.calls;
            agent.usage += it.usage;
            agent.cost += it.cost;
        }
        if let AgentEvent::Changed { name, changes, .. } = &**event
            && let Some(agent) = self.all.iter_mut().find(|agent| agent.name() == name)
        {
            for change in changes {
                agent.added += change.added;
                agent.removed += change.removed;
            }
        }
        self.add_recorded(entry);
    }

    /// Takes in what an entry of the user's Session says that an agent has used.
    pub(crate) fn note(&mut self, entry: &Entry) {
        self.add_recorded(entry);
        self.count();
    }

    fn add_recorded(&mut self, entry: &Entry) {
        if let Fact::AgentEvent(event) = &entry.fact
            && let AgentEvent::Ended(it) = &**event
        {
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
        for told in self.told.iter_mut().filter(|it| it.session == agent.session_id) {
            told.has_arrived |= agent.queued.contains(&told.text) || agent.since.as_microsecond() != told.since;
        }
        let before = match self.all.iter_mut().find(|it| it.session_id == agent.session_id) {
            Some(known) => {
                let before = known.status;
                *known = agent;
                Some(before)
            }
            None => {
                self.all.push(agent);
                None
            }
        };
        self.count();
        before
    }

    fn count(&mut self) {
        let mut sums = Sums::default();
        for agent in self.below() {
            let (usage, cost) = self.used(agent);
            sums.running += usize::from(agent.status.is_open());
            sums.usage += usage;
            sums.cost += cost;
        }
        self.sums = sums;
    }

    /// The user tells an agent something.
    pub(crate) fn tell(&mut self, path: &[String], text: &str) {
        if let Some(agent) = self.all.iter().find(|it| it.path == path) {
            let (session, since) = (agent.session_id.clone(), agent.since.as_microsecond());
            self.told.push(Told { session, text: text.to_owned(), since, has_arrived: false });
        }
    }

    /// What the user has told an agent, and whether it has read it. What stands in the agent's queue, it has not.
    pub(crate) fn told<'a>(&'a self, agent: &'a AgentState) -> Vec<(&'a str, bool)> {
        let mut waiting: Vec<&str> = agent.queued.iter().map(String::as_str).collect();
        // Of two texts that are the same, the later one waits.
        let mut all: Vec<(&str, bool)> = Vec::new();
        for it in self.told.iter().rev().filter(|it| it.session == agent.session_id) {
            let in_queue = waiting.iter().rposition(|text| *text == it.text);
            in_queue.map(|at| waiting.remove(at));
            all.push((&it.text, it.has_arrived && in_queue.is_none()));
        }
        all.reverse();
        // Told on the agent's own screen, or before this process.
        all.extend(waiting.into_iter().map(|text| (text, false)));
        all
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
        let mut agents = Agents { at: path.to_vec(), ..self };
        agents.count();
        agents
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
        self.sums.running
    }

    /// An agent is on the screen, and not the user's own Session.
    pub(crate) fn is_inside(&self) -> bool {
        !self.at.is_empty()
    }

    /// Tokens and cost of the agents below the Session on the screen.
    pub(crate) fn total(&self) -> (Usage, Cost) {
        (self.sums.usage, self.sums.cost)
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
