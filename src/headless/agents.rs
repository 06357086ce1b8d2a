//! The agents of a headless run: what became of each, and what that says of the whole run.

use pixir_core::event::{AgentEvent, AgentResult, AgentStatus, Telling, ToldBy};
use pixir_core::{Code, Error};
use serde_json::{Value, json};

/// Agents that the run has started, or told to go on, in that order.
#[derive(Debug, Default)]
pub(super) struct Agents(Vec<Agent>);

#[derive(Debug)]
struct Agent {
    name: String,
    role: String,
    session: String,
    /// The end of its last Turn; `None` while it runs.
    end: Option<AgentResult>,
    /// The model has told it to stop, so nothing is missing without it.
    is_dismissed: bool,
}

impl Agents {
    pub(super) fn take(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Spawned(it) => {
                let agent = self.named(&it.name);
                (agent.role, agent.session) = (it.role.clone(), it.session_id.clone());
            }
            AgentEvent::Resumed { name } => {
                let agent = self.named(name);
                (agent.end, agent.is_dismissed) = (None, false);
            }
            AgentEvent::Told { name, by: ToldBy::Parent, how: Telling::Stop, .. } => {
                self.named(name).is_dismissed = true;
            }
            AgentEvent::Ended(it) => {
                let agent = self.named(&it.name);
                agent.session.clone_from(&it.session_id);
                agent.end = Some((**it).clone());
            }
            AgentEvent::Told { .. }
            | AgentEvent::Changed { .. }
            | AgentEvent::Reported { .. }
            | AgentEvent::Adopting(_)
            | AgentEvent::Adopted(_) => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn named(&mut self, name: &str) -> &mut Agent {
        let at = self.0.iter().position(|it| it.name == name).unwrap_or_else(|| {
            self.0.push(Agent {
                name: name.to_owned(),
                role: String::new(),
                session: String::new(),
                end: None,
                is_dismissed: false,
            });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// What the run is missing: `AGENTS_PARTIAL` if some agents completed, `AGENTS_FAILED` if none did.
    pub(super) fn missing(&self) -> Option<Error> {
        let counted = || self.0.iter().filter(|it| !it.is_dismissed || it.is_complete());
        let left: Vec<&Agent> = counted().filter(|it| !it.is_complete()).collect();
        let first = left.first()?;
        let all = counted().count();
        let code = if left.len() < all { Code::AgentsPartial } else { Code::AgentsFailed };
        let names: Vec<String> = left.iter().map(|it| format!("{} ({})", it.name, it.status().name())).collect();
        let message = format!("{} of {all} agents did not complete: {}", left.len(), names.join(", "));
        Some(Error::new(code, message, first.resume_command()))
    }

    /// The commands with which those that did not complete go on.
    pub(super) fn commands(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter(|it| !it.is_complete() && !it.is_dismissed).map(Agent::resume_command)
    }

    pub(super) fn json(&self) -> Vec<Value> {
        self.0.iter().map(Agent::json).collect()
    }
}

impl Agent {
    fn is_complete(&self) -> bool {
        self.status() == AgentStatus::Completed
    }

    fn status(&self) -> AgentStatus {
        self.end.as_ref().map_or(AgentStatus::Running, |end| end.status)
    }

    fn resume_command(&self) -> String {
        format!("pixir resume {}", self.session)
    }

    fn json(&self) -> Value {
        let unknown = AgentResult::default();
        let end = self.end.as_ref().unwrap_or(&unknown);
        let mut it = json!({
            "name": self.name,
            "role": self.role,
            "session_id": self.session,
            "status": self.status().name(),
            "text": end.text,
            "evidence": end.evidence,
            "usage": end.usage,
            "cost": end.cost,
            "duration_ms": end.duration_ms,
            "resume_command": self.resume_command(),
        });
        if let Some(data) = &end.data {
            it["data"] = data.clone();
        }
        if let Some(error) = &end.error {
            it["error"] = json!({ "code": error.kind.code().name(), "message": error.message });
        }
        it
    }
}
