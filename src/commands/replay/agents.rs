//! What the agents of a session did, retold from their own Logs.

use std::collections::VecDeque;
use std::sync::Arc;

use pixir_core::event::AgentEvent;
use pixir_core::store::Place;
use pixir_core::{Entry, Fact, Result, log};
use serde_json::{Value, json};

use crate::headless::narration::Narrator;
use crate::output::Output;

/// The agents of one Session. Each is told up to the end of its Turn where the Session above has recorded that end.
pub(super) struct Agents(Vec<Agent>);

struct Agent {
    name: String,
    session: String,
    /// Before each of its lines: the names from the root's agent down.
    mark: String,
    untold: VecDeque<Arc<Entry>>,
    narrator: Narrator,
    below: Agents,
}

impl Agents {
    pub(super) fn of(place: &Place, above: &str) -> Agents {
        let all = place.children().into_iter().filter_map(|it| {
            let parent = it.parent()?;
            let mark = format!("{above}{}", parent.name);
            Some(Agent {
                untold: log::read(&it.log()).ok()?.entries.into(),
                narrator: Narrator::default(),
                below: Agents::of(&it, &format!("{mark} › ")),
                session: it.id.to_string(),
                name: parent.name,
                mark,
            })
        });
        Agents(all.collect())
    }

    /// Tells the next Turn of one of them.
    pub(super) fn tell_turn(&mut self, session: &str, output: &Output) {
        if let Some(agent) = self.0.iter_mut().find(|it| it.session == session) {
            agent.tell(output, |fact| matches!(fact, Fact::TurnEnded(_)));
        }
    }

    /// Tells what no end in the Log above covers: a kill came between.
    pub(super) fn tell_rest(&mut self, output: &Output) {
        for agent in &mut self.0 {
            agent.tell(output, |_| false);
            agent.below.tell_rest(output);
        }
    }

    pub(super) fn json(&self) -> Result<Vec<Value>> {
        self.0.iter().map(Agent::json).collect()
    }
}

impl Agent {
    fn tell(&mut self, output: &Output, is_last: impl Fn(&Fact) -> bool) {
        while let Some(entry) = self.untold.pop_front() {
            if let Fact::AgentEvent(event) = &entry.fact
                && let AgentEvent::Ended(it) = &**event
            {
                self.below.tell_turn(&it.session_id, output);
            }
            let text = self.narrator.entry(&entry.fact).or_else(|| Narrator::ending(&entry.fact));
            for line in text.iter().flat_map(|text| text.trim_end().lines()) {
                output.line(&format!("{} │ {line}", self.mark));
            }
            if is_last(&entry.fact) {
                return;
            }
        }
    }

    fn json(&self) -> Result<Value> {
        let events = self.untold.iter().map(|entry| Ok(serde_json::from_str(&entry.encode()?).unwrap_or_default()));
        let events = events.collect::<Result<Vec<Value>>>()?;
        Ok(json!({ "name": self.name, "session_id": self.session, "events": events, "agents": self.below.json()? }))
    }
}
