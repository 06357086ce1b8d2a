//! The agents of a headless run: what became of each, and what that says of the whole run.

use std::collections::BTreeSet;
use std::sync::Arc;

use pixir_core::agent::AgentState;
use pixir_core::event::{Adoption, AgentEvent, AgentResult, AgentStatus, FileChange, Isolation, Telling, ToldBy};
use pixir_core::{Code, Entry, Error, Fact, Remedy};
use serde_json::{Value, json};

use super::going_on::permitting;

/// Agents that the run has started, or told to go on, in that order.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    all: Vec<Agent>,
    /// The run may change files.
    writes: bool,
}

#[derive(Debug)]
struct Agent {
    name: String,
    role: String,
    session: String,
    /// It is a run of a workflow.
    is_run: bool,
    /// It did nothing since the Session was resumed.
    is_earlier: bool,
    /// Its parent may change files.
    writes: bool,
    /// The end of its last Turn; `None` while it runs.
    end: Option<AgentResult>,
    /// The model has told it to stop, so nothing is missing without it.
    is_dismissed: bool,
    /// Files of its copy that are not in the workspace.
    undecided: BTreeSet<String>,
    /// Some of them wait for the user; none does where both sides are the same by now.
    waits: bool,
    /// What was adopted from its copy.
    adopted: Option<Adoption>,
}

impl Agents {
    pub(super) fn of_run(writes: bool) -> Agents {
        Agents { all: Vec::new(), writes }
    }

    pub(crate) fn take(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Spawned(it) => {
                let agent = self.named(&it.name);
                (agent.role, agent.session, agent.is_run) = (it.role.clone(), it.session_id.clone(), it.is_run);
            }
            AgentEvent::Resumed { name } => {
                let agent = self.named(name);
                (agent.end, agent.is_dismissed, agent.is_earlier) = (None, false, false);
            }
            AgentEvent::Told { name, by: ToldBy::Parent, how: Telling::Stop, .. } => {
                let agent = self.named(name);
                // One that has ended has ended as it did.
                agent.is_dismissed = agent.end.is_none();
            }
            AgentEvent::Ended(it) => {
                let agent = self.named(&it.name);
                agent.session.clone_from(&it.session_id);
                agent.is_earlier = false;
                if it.isolation == Isolation::Copy {
                    agent.undecided.extend(it.evidence.changed.iter().cloned());
                }
                agent.end = Some((**it).clone());
            }
            AgentEvent::Adopted(it) => self.named(&it.name).adopt(it),
            AgentEvent::Told { .. }
            | AgentEvent::Changed { .. }
            | AgentEvent::Reported { .. }
            | AgentEvent::Adopting(_) => {}
        }
    }

    /// Takes what earlier Turns of a resumed Session left. Only files that still wait in copies matter now.
    pub(super) fn take_past(&mut self, entries: &[Arc<Entry>], now: &[AgentState]) {
        for entry in entries {
            if let Fact::AgentEvent(event) = &entry.fact {
                self.take(event);
            }
        }
        self.all.iter_mut().for_each(|it| it.is_earlier = true);
        now.iter().for_each(|state| self.follow(state));
    }

    /// Agents of the run, and earlier ones whose files wait.
    fn shown(&self) -> impl Iterator<Item = &Agent> {
        self.all.iter().filter(|it| !it.is_earlier || it.waits)
    }

    /// What its parent knows of an agent that the run has started.
    pub(super) fn follow(&mut self, state: &AgentState) {
        if let Some(agent) = self.all.iter_mut().find(|it| it.session == state.session_id) {
            agent.waits = state.waiting_files > 0;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.iter().all(|it| it.is_earlier)
    }

    fn named(&mut self, name: &str) -> &mut Agent {
        let at = self.all.iter().position(|it| it.name == name).unwrap_or_else(|| {
            self.all.push(Agent {
                name: name.to_owned(),
                role: String::new(),
                session: String::new(),
                is_run: false,
                is_earlier: false,
                writes: self.writes,
                end: None,
                is_dismissed: false,
                undecided: BTreeSet::new(),
                waits: false,
                adopted: None,
            });
            self.all.len() - 1
        });
        &mut self.all[at]
    }

    /// What the run is missing: `AGENTS_PARTIAL` if some agents came to their answer, `AGENTS_FAILED` if none did. Where a Log could
    /// not be written, that is the code: no other agent would have done better. What was refused to one that is held is for [`Refusals`](super::refusals::Refusals).
    pub(crate) fn missing(&self) -> Option<Error> {
        let counted = || self.all.iter().filter(|it| !it.is_earlier && (!it.is_dismissed || it.is_complete()));
        let left: Vec<&Agent> = counted().filter(|it| !it.is_complete() && it.status() != AgentStatus::Held).collect();
        let first = left.first()?;
        let all = counted().count();
        let lost = left.iter().find_map(|it| it.fault_of_log());
        let code = match &lost {
            Some(fault) => fault.code,
            None if left.len() < all => Code::AgentsPartial,
            None => Code::AgentsFailed,
        };
        let names: Vec<String> = left.iter().map(|it| format!("{} ({})", it.name, it.status().name())).collect();
        let why = lost.map_or(String::new(), |fault| format!(": {}", fault.message));
        let message = format!("{} of {all} agents did not complete: {}{why}", left.len(), names.join(", "));
        Some(Error::new(code, message, Remedy::command(first.resume_command())))
    }

    /// Files that agents changed in their copies and that wait there: they conflict, or there was no user to decide.
    pub(super) fn waiting(&self, root: &str) -> Option<Error> {
        let left: Vec<&Agent> = self.all.iter().filter(|it| it.waits).collect();
        let first = left.first()?;
        let names: Vec<String> = left.iter().map(|it| format!("{} ({})", it.name, it.waiting().join(", "))).collect();
        let message =
            format!("files of agents are not in the workspace, and wait for a decision: {}", names.join(", "));
        Some(Error::new(Code::InputRequired, message, Remedy::command(first.adopt_command(root))))
    }

    /// The commands with which those that did not complete go on, and those that decide about files.
    pub(super) fn commands(&self, root: &str) -> impl Iterator<Item = String> {
        self.shown().flat_map(move |it| it.commands(root))
    }

    pub(super) fn json(&self, root: &str) -> Vec<Value> {
        self.shown().map(|it| it.json(root)).collect()
    }
}

impl Agent {
    fn is_complete(&self) -> bool {
        self.status() == AgentStatus::Completed
    }

    /// Why its Log could not be written, if that ended it.
    fn fault_of_log(&self) -> Option<Error> {
        let error = Error::from(self.end.as_ref()?.error.clone()?);
        matches!(error.code, Code::LogWriteFailed | Code::ToolResultRecordFailed).then_some(error)
    }

    fn status(&self) -> AgentStatus {
        self.end.as_ref().map_or(AgentStatus::Running, |end| end.status)
    }

    fn adopt(&mut self, it: &Adoption) {
        for path in it.changes.iter().map(|change| &change.path).chain(&it.kept) {
            self.undecided.remove(path);
        }
        let all = self.adopted.get_or_insert_default();
        all.changes.extend(it.changes.iter().cloned());
        all.kept.extend(it.kept.iter().cloned());
        all.left.clone_from(&it.left);
    }

    fn waiting(&self) -> Vec<&str> {
        self.undecided.iter().filter(|_| self.waits).map(String::as_str).collect()
    }

    fn resume_command(&self) -> String {
        let command = if self.is_run { "pixir workflow resume" } else { "pixir resume" };
        let refused = self.end.iter().flat_map(|end| &end.evidence.refused);
        format!("{command} {}{}", self.session, permitting(refused, self.writes))
    }

    fn adopt_command(&self, root: &str) -> String {
        format!("pixir agents adopt {root} {}", self.name)
    }

    fn commands(&self, root: &str) -> Vec<String> {
        let is_over = self.is_complete() || self.is_dismissed || self.is_earlier;
        let goes_on = Some(self.resume_command()).filter(|_| !is_over);
        let adopts = Some(self.adopt_command(root)).filter(|_| self.waits);
        goes_on.into_iter().chain(adopts).collect()
    }

    fn json(&self, root: &str) -> Value {
        let unknown = AgentResult::default();
        let end = self.end.as_ref().unwrap_or(&unknown);
        let mut it = json!({
            "name": self.name,
            "role": self.role,
            "session_id": self.session,
            "status": self.status().name(),
            "text": end.text,
            "handle": end.handle,
            "evidence": end.evidence,
            "usage": end.usage,
            "cost": end.cost,
            "duration_ms": end.duration_ms,
            "isolation": end.isolation,
            "changes": counted(&end.changes),
            "waiting": self.waiting(),
            "resume_command": self.resume_command(),
            "next_actions": self.commands(root),
        });
        if let Some(adopted) = &self.adopted {
            it["adoption"] = json!({ "adopted": counted(&adopted.changes), "kept": adopted.kept });
        }
        if let Some(note) = &end.note {
            it["note"] = json!(note);
        }
        if let Some(data) = &end.data {
            it["data"] = data.clone();
        }
        if let Some(error) = &end.error {
            // Logs of old builds have the kind alone.
            let code = if error.code.is_empty() { error.kind.code().name() } else { &error.code };
            it["error"] = json!({ "code": code, "message": error.message, "remediation": error.remediation });
        }
        it
    }
}

fn counted(changes: &[FileChange]) -> Vec<Value> {
    let one = |it: &FileChange| json!({ "path": it.path, "kind": it.kind, "added": it.added, "removed": it.removed });
    changes.iter().map(one).collect()
}
