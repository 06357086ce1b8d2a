//! What is recorded and published: nothing is published that is not in the file.

use std::sync::Arc;

use super::{LogAccess, Session};
use protocol::error::{Code, Error, Result};
use protocol::event::{AgentEvent, Event, Fact, Live, Severity, Status};
use storage::log::Durability;

impl Session {
    /// Returns when the fact is in the Log, and on the disk where it must survive a power cut. The actor takes no other
    /// Input meanwhile, so order is kept; the runtime goes on.
    pub(super) async fn record(&mut self, turn: Option<u32>, fact: Fact) -> Result<()> {
        let log = match &mut self.log {
            LogAccess::Writes(log) => log,
            LogAccess::ReadOnly(why) => return Err(why.clone()),
        };
        let durability = if fact.is_sync_point() { Durability::Synced } else { Durability::Written };
        // The call may have changed files that the model never hears of; a program tells it by the code.
        let is_result = matches!(fact, Fact::ToolResult(_));
        let lost = |e: Error| {
            if !is_result || e.code != Code::LogWriteFailed {
                return e;
            }
            let message = format!("record the tool result: {}", e.message);
            Error { code: Code::ToolResultRecordFailed, message, ..e }
        };
        let entry = log.append(turn, fact, durability).await.map_err(lost);
        self.lost_entry |= entry.is_err();
        let entry = entry?;
        if let Fact::ToolResult(it) = &entry.fact {
            self.services.snapshot.recorded(&it.call_id);
        }
        self.indexed.summary.take(&entry);
        self.history.append(entry.clone());
        if matches!(entry.fact, Fact::SettingsChanged(_) | Fact::PermissionDecision(_)) {
            self.drop_role();
            self.services.standing.set(self.history.own_mode(), &self.history.rules);
            if let Some(agents) = &self.services.agents {
                agents.follow(&self.history.settings);
            }
        }
        // While a Turn runs the index is behind; a listing reads the rest from the Log.
        if matches!(entry.fact, Fact::TurnEnded(_)) {
            self.index().await;
        }
        self.publish_event(Event::Recorded(Arc::clone(&entry)));
        // The Sessions above have all changes of the workspace in their order, so that their undo takes these along.
        let above = self.services.above.as_ref().filter(|above| above.shares_files);
        if let (Some(above), changes @ [_, ..]) = (above, entry.fact.changes()) {
            let call_id = match &entry.fact {
                Fact::ToolResult(it) => it.call_id.clone(),
                Fact::AgentEvent(event) if let AgentEvent::Changed { call_id, .. } = &**event => call_id.clone(),
                Fact::AgentEvent(event) if let AgentEvent::Adopted(it) = &**event => it.as_call(),
                _ => String::new(),
            };
            above.clone().changed(call_id, changes.to_vec()).await;
        }
        Ok(())
    }

    pub(super) async fn index(&mut self) {
        let LogAccess::Writes(log) = &self.log else { return };
        let Some(position) = log.position() else { return };
        self.indexed.position = position;
        self.indexed.summary.bytes = self.indexed.position.bytes;
        let (indexed, logs) = (self.indexed.clone(), self.services.logs.clone());
        if let Err(e) = task::spawn_blocking(move || indexed.keep(&logs)).await {
            tracing::warn!("the index of sessions was not updated: {e}");
        }
    }

    pub(super) fn notice(&mut self, severity: Severity, code: &str, message: String) {
        self.publish(Live::Notice { severity, code: code.to_owned(), message, remedy: None });
    }

    pub(super) fn publish(&mut self, live: Live) {
        self.publish_event(Event::Live(self.live_event(live)));
    }

    pub(super) fn publish_event(&mut self, event: Event) {
        self.watchers.retain(|it| std::sync::Arc::strong_count(it) > 1);
        for watcher in &self.watchers {
            watcher.push(event.clone());
        }
    }

    pub(super) fn set_status(&mut self, status: Status) {
        if self.status != status {
            self.status = status;
            self.publish(Live::Status { status });
        }
    }
}
