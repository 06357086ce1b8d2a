//! What the Log of a run knows: which results there are, what was under way, what the user decided.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use permissions::ONLY_READS;
use protocol::event::{
    Adoption, AgentEvent, AgentResult, Entry, Fact, Held, LeftBehind, Planned, StepEnded, StepOutcome, StepStarted,
    TurnStatus, Verdict, WorkflowEvent,
};

/// The journal of a run, folded from its Log.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    /// The graph that is in force.
    pub planned: Option<Planned>,
    /// The run has just been resumed; an edited graph follows.
    goes_on: bool,
    /// Results of completed steps, by key.
    pub completed: HashMap<String, StepEnded>,
    /// The last end of each step that did not complete, by key.
    pub failed: HashMap<String, StepEnded>,
    /// What began and has no end, by key.
    pub(crate) under_way: HashMap<String, StepStarted>,
    /// Answers of gates, by key.
    pub answers: HashMap<String, String>,
    /// Answers that the user gave for a gate by its name, before it asks.
    pub given: BTreeMap<String, String>,
    /// Steps that the user skips, and steps that count as done.
    pub skip: BTreeSet<String>,
    pub done: BTreeSet<String>,
    /// What was held or waits, by step.
    pub held: BTreeMap<String, Held>,
    /// How often each step began.
    pub attempts: HashMap<String, u32>,
    /// The last end of each step, whatever its key.
    pub ends: BTreeMap<String, StepEnded>,
    /// Ends of agents, by Session.
    pub agents: HashMap<String, AgentResult>,
    /// What of the copies of agents is in the workspace, by the agent's name.
    pub adopted: HashMap<String, Adoption>,
    /// Files that were changed: the step that did it last, and what it left.
    pub files: BTreeMap<String, (String, LeftBehind)>,
    /// Commands that ran and whose checks are left, by key.
    pub unchecked: HashMap<String, StepEnded>,
    /// What began and has no end that says which files it changed, by key. A resume settles it.
    pub(crate) unsettled: BTreeMap<String, StepStarted>,
    /// Calls of steps that were allowed to do more than read.
    acted: BTreeSet<String>,
    /// What steps came to of whose work some was refused, by key.
    pub(crate) refused: HashMap<String, StepEnded>,
}

impl Journal {
    pub fn fold(entries: &[Arc<Entry>]) -> Journal {
        let mut journal = Journal::default();
        entries.iter().for_each(|entry| journal.take(&entry.fact));
        journal
    }

    /// Takes in the next Fact of the Log.
    pub fn take(&mut self, fact: &Fact) {
        match fact {
            Fact::WorkflowEvent(event) => self.take_event(event),
            Fact::AgentEvent(event) if let AgentEvent::Ended(result) = &**event => {
                self.agents.insert(result.session_id.clone(), (**result).clone());
            }
            Fact::AgentEvent(event) if let AgentEvent::Adopted(it) = &**event => {
                self.adopted.insert(it.name.clone(), (**it).clone());
                for change in &it.changes {
                    self.files.insert(change.path.clone(), (it.name.clone(), change.into()));
                }
            }
            Fact::PermissionDecision(it) if it.verdict == Verdict::Allow && it.reason != ONLY_READS => {
                self.acted.insert(it.call_id.clone());
            }
            // What was wanted of the graph is done, so from now on all of it is.
            Fact::TurnEnded(it) if it.status == TurnStatus::Completed && it.details.contains_key("workflow") => {
                if let Some(planned) = &mut self.planned {
                    planned.until = None;
                }
            }
            _ => {}
        }
    }

    fn take_event(&mut self, event: &WorkflowEvent) {
        if !event.begins() {
            self.goes_on = false;
        }
        match event {
            WorkflowEvent::Planned(it) => {
                // Without a resume before it, a run of its own begins, which knows nothing of the one before.
                let before = std::mem::take(self);
                if before.goes_on {
                    *self = before;
                }
                self.planned = Some((**it).clone());
            }
            WorkflowEvent::StepStarted(it) => {
                *self.attempts.entry(it.id.clone()).or_default() += 1;
                self.under_way.insert(it.key.clone(), (**it).clone());
                self.refused.remove(&it.key);
                self.unsettled.insert(it.key.clone(), (**it).clone());
                self.held.remove(&it.id);
            }
            WorkflowEvent::StepEnded(it) => self.take_end(it),
            WorkflowEvent::GateAnswered { id, key, choice } => {
                self.answers.insert(key.clone(), choice.clone());
                self.held.remove(id);
            }
            WorkflowEvent::Held(it) => {
                // A command that was refused has done nothing; an agent has ended, and its changes wait.
                if let Some(key) = it.key.as_ref().filter(|_| it.status == StepOutcome::Held) {
                    let is_command = self.under_way.get(key).is_some_and(|started| started.session_id.is_none());
                    if is_command {
                        self.under_way.remove(key);
                        self.unsettled.remove(key);
                    }
                    if let Some(ended) = &it.ended {
                        self.under_way.remove(key);
                        self.unsettled.remove(key);
                        ended.changes.iter().for_each(|left| self.leaves(&ended.id, left));
                        self.refused.insert(key.clone(), (**ended).clone());
                    }
                    if let Some(ended) = &it.unchecked {
                        self.unchecked.insert(key.clone(), (**ended).clone());
                    }
                }
                self.held.insert(it.id.clone(), (**it).clone());
            }
            WorkflowEvent::Resumed(it) => {
                for id in &it.rerun {
                    self.forget(id);
                }
                for id in &it.skip {
                    self.done.remove(id);
                    self.skip.insert(id.clone());
                }
                for id in &it.done {
                    self.skip.remove(id);
                    self.done.insert(id.clone());
                }
                let texts = it.answers.iter().filter_map(|(id, it)| Some((id.clone(), it.as_str()?.to_owned())));
                self.given.extend(texts);
                self.held.clear();
                self.goes_on = true;
            }
            WorkflowEvent::ChangedSince(it) => {
                self.unsettled.clear();
                if let Some(step) = it.steps.first() {
                    it.files.iter().for_each(|left| self.leaves(step, left));
                }
            }
        }
    }

    fn take_end(&mut self, it: &StepEnded) {
        self.under_way.remove(&it.key);
        self.unchecked.remove(&it.key);
        self.refused.remove(&it.key);
        self.held.remove(&it.id);
        self.ends.insert(it.id.clone(), it.clone());
        it.changes.iter().for_each(|left| self.leaves(&it.id, left));
        // The limit of the run, or its stop, may have ended it between two changes.
        let is_cut_off = matches!(it.status, StepOutcome::Interrupted | StepOutcome::TimedOut) && it.changes.is_empty();
        if !is_cut_off {
            self.unsettled.remove(&it.key);
        }
        if it.status == StepOutcome::Completed {
            self.failed.remove(&it.key);
            self.completed.insert(it.key.clone(), it.clone());
        } else {
            self.failed.insert(it.key.clone(), it.clone());
        }
    }

    /// Agents of steps that were cut off, of which this Log has no end: each with its Session.
    pub fn agents_without_end(&self) -> Vec<(String, String)> {
        let started = self.under_way.values().filter_map(|it| Some((it.agent.clone()?, it.session_id.clone()?)));
        started.filter(|(_, session)| !self.agents.contains_key(session)).collect()
    }

    /// A step changed a file, and left it so.
    fn leaves(&mut self, step: &str, left: &LeftBehind) {
        self.files.insert(left.path.clone(), (step.to_owned(), left.clone()));
    }

    /// Whether a command that began may have done more than read. Its permission is on the disk before it runs.
    pub(crate) fn has_acted(&self, started: &StepStarted) -> bool {
        self.acted.contains(&call_of(&started.key, started.attempt)) || self.has_checked(&started.key)
    }

    /// Whether a check of the step with this key may have done more than read.
    fn has_checked(&self, key: &str) -> bool {
        let prefix = check_prefix(key);
        self.acted.range(prefix.clone()..).next().is_some_and(|call| call.starts_with(&prefix))
    }

    /// What is known of a step, or of all items of it, no longer counts.
    fn forget(&mut self, id: &str) {
        let is_it = |other: &str| other == id || other.strip_prefix(id).is_some_and(|rest| rest.starts_with('.'));
        self.completed.retain(|_, it| !is_it(&it.id));
        self.failed.retain(|_, it| !is_it(&it.id));
        self.under_way.retain(|_, it| !is_it(&it.id));
        self.unchecked.retain(|_, it| !is_it(&it.id));
        self.refused.retain(|_, it| !is_it(&it.id));
        let gone: Vec<String> = self.held.values().filter(|it| is_it(&it.id)).filter_map(|it| it.key.clone()).collect();
        gone.iter().for_each(|key| drop(self.answers.remove(key)));
        self.given.remove(id);
        self.skip.remove(id);
        self.done.remove(id);
    }

    /// Whether the user skips this step, or this item.
    pub fn skips(&self, id: &str) -> bool {
        self.skip.contains(id) || parent(id).is_some_and(|step| self.skip.contains(step))
    }

    /// Whether this step, or this item, counts as done.
    pub(crate) fn counts_as_done(&self, id: &str) -> bool {
        self.done.contains(id) || parent(id).is_some_and(|step| self.done.contains(step))
    }

    /// Files that a step left, and that no later step has changed. `changed` is what steps did that were cut off.
    pub(crate) fn still_its(
        &self,
        ended: &StepEnded,
        changed: &BTreeMap<String, (String, LeftBehind)>,
    ) -> Vec<LeftBehind> {
        let own = ended.changes.iter().filter(|left| {
            let last = changed.get(&left.path).or_else(|| self.files.get(&left.path));
            last.is_none_or(|(by, last)| *by == ended.id || last == *left)
        });
        own.cloned().collect()
    }
}

/// The id of the call of a step's command.
pub(crate) fn call_of(key: &str, attempt: u32) -> String {
    format!("step_{}_{attempt}", &key[..12.min(key.len())])
}

/// How the ids of the calls of a step's checks begin.
pub(crate) fn check_prefix(key: &str) -> String {
    format!("check_{}_", &key[..12.min(key.len())])
}

/// The step of an item.
pub(crate) fn parent(id: &str) -> Option<&str> {
    id.rsplit_once('.').map(|(step, _)| step)
}

/// The key of a step: what it does, who does it, and what it depends on.
pub(crate) fn key(what: &Value, role_digest: Option<&str>, needs: impl IntoIterator<Item = [u8; 32]>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(what.to_string().as_bytes());
    hasher.update(&[0]);
    hasher.update(role_digest.unwrap_or_default().as_bytes());
    for need in needs {
        hasher.update(&[0]);
        hasher.update(&need);
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// The hash of what a step leaves to those that depend on it.
pub(crate) fn hash_of(output: &Value, ended: Option<&StepEnded>, outcome: StepOutcome) -> [u8; 32] {
    let changes: Vec<(&str, Option<&str>)> = ended
        .map_or(Vec::new(), |it| it.changes.iter().map(|left| (left.path.as_str(), left.blob.as_deref())).collect());
    let text = serde_json::json!([output, changes, outcome.name()]).to_string();
    *blake3::hash(text.as_bytes()).as_bytes()
}
