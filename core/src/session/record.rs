//! What is recorded, and who hears of it: nothing is published that is not in the file.

use std::sync::Arc;

use super::{Pen, Session};
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{Entry, Event, Fact, Live, Severity, Status};

impl Session {
    pub(super) fn writable(&self) -> Result<()> {
        match &self.pen {
            Pen::Writes(_) => Ok(()),
            Pen::ReadsOnly(why) => Err(why.clone()),
        }
    }

    pub(super) fn record(&mut self, turn: Option<u32>, fact: Fact) -> Result<()> {
        let log = match &mut self.pen {
            Pen::Writes(log) => log,
            Pen::ReadsOnly(why) => return Err(why.clone()),
        };
        // The call may have changed things that the model will not know of, which programs can tell by the code.
        let is_result = matches!(fact, Fact::ToolResult(_));
        let lost = |e: Error| {
            if !is_result || e.code != Code::LogWriteFailed {
                return e;
            }
            let message = format!("record the tool result: {}", e.message);
            Error { code: Code::ToolResultRecordFailed, message, ..e }
        };
        let entry: Arc<Entry> = log.append(turn, fact).map_err(lost)?;
        if is_sync_point(&entry.fact)
            && let Err(e) = log.sync()
        {
            log.take_back();
            return Err(lost(e));
        }
        if let Fact::ToolResult(it) = &entry.fact {
            self.surface.shadow.recorded(&it.call_id);
        }
        self.indexed.summary.take(&entry);
        self.history.append(Arc::clone(&entry));
        // The index is behind while a Turn runs, and is read on from the Log by whoever lists then.
        if matches!(entry.fact, Fact::TurnEnded(_)) {
            self.index();
        }
        self.publish(Event::Recorded(entry));
        Ok(())
    }

    pub(super) fn index(&mut self) {
        if let Pen::Writes(log) = &self.pen {
            self.indexed.position = log.position();
            self.indexed.summary.bytes = self.indexed.position.bytes;
            self.indexed.keep(&self.surface.logs);
        }
    }

    pub(super) fn notice(&mut self, severity: Severity, code: &str, message: String) {
        self.publish(Event::Live(Live::Notice { severity, code: code.to_owned(), message, remedy: None }));
    }

    pub(super) fn publish_all(&mut self, news: impl IntoIterator<Item = Live>) {
        news.into_iter().for_each(|live| self.publish(Event::Live(live)));
    }

    pub(super) fn publish(&mut self, event: Event) {
        self.watchers.retain(|it| Arc::strong_count(it) > 1);
        for watcher in &self.watchers {
            watcher.push(event.clone());
        }
    }

    pub(super) fn set_status(&mut self, status: Status) {
        if self.status != status {
            self.status = status;
            self.publish(Event::Live(Live::Status { status }));
        }
    }
}

/// What must survive a power cut before anything else happens.
fn is_sync_point(fact: &Fact) -> bool {
    match fact {
        Fact::SessionStarted(_)
        | Fact::UserMessage(_)
        | Fact::UserCommand(_)
        | Fact::AssistantMessage(_)
        | Fact::PermissionDecision(_)
        | Fact::HistoryCompaction(_)
        | Fact::SessionFork(_)
        | Fact::ToolResult(_)
        | Fact::HeadMoved(_)
        | Fact::BranchSummary(_)
        | Fact::FilesRestored(_)
        | Fact::TurnEnded(_) => true,
        Fact::SettingsChanged(_)
        | Fact::Reasoning(_)
        | Fact::ToolCall(_)
        | Fact::SkillActivation(_)
        | Fact::PlanUpdated(_)
        | Fact::ProviderUsage(_)
        | Fact::Label(_)
        | Fact::MemoryFact(_)
        | Fact::LogRepaired(_)
        | Fact::Unknown { .. } => false,
    }
}
