//! A branch of one Session as the beginning of another: of a fork, or of a child that knows the conversation.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::Arc;

use super::Services;
use conversation::history::History;
use protocol::error::Result;
use protocol::event::{Entry, Fact, Label, Rule, SessionFork, SessionId, SessionStarted, SettingsChanged};
use storage::log::Log;
use storage::outputs::outputs_named;

/// The path from the root of a conversation to one of its Entries.
pub struct Branch<'a> {
    history: &'a History,
    session: &'a SessionId,
    services: &'a Services,
    path: Vec<Arc<Entry>>,
    to_seq: u64,
}

impl<'a> Branch<'a> {
    /// The path to this Entry.
    pub fn to(history: &'a History, session: &'a SessionId, services: &'a Services, to_seq: u64) -> Branch<'a> {
        Branch { history, session, services, path: history.path_of(to_seq), to_seq }
    }

    /// The same without reasoning, which is only valid for the instructions and tools that it was produced with.
    pub fn without_reasoning(mut self) -> Branch<'a> {
        self.path.retain(|entry| !matches!(entry.fact, Fact::Reasoning(_)));
        self
    }

    /// Writes the branch into an empty Log that begins with `started`. `own` names the fields in which that differs from the
    /// first Entry of the Session that is copied.
    ///
    /// # Errors
    /// Those of the Log.
    pub fn copy_to(
        &self,
        log: &mut Log,
        id: &SessionId,
        started: SessionStarted,
        own: &[&str],
        name: Option<String>,
    ) -> Result<()> {
        let root = self.history.entries().iter().find_map(|e| {
            if let Fact::SessionFork(it) = &e.fact { Some(it.fork_root_session_id.clone()) } else { None }
        });
        match self.history.entries().first().filter(|first| matches!(first.fact, Fact::SessionStarted(_))) {
            Some(first) => log.append_copy(None, first, started.into(), own)?,
            None => log.append(None, started.into())?,
        };
        let first = log.next_seq() + 1 + u64::from(name.is_some());
        let fork = SessionFork {
            copied_to_seq: Some(first + self.path.len() as u64 - 1),
            parent_session_id: self.session.to_string(),
            fork_root_session_id: root.unwrap_or_else(|| self.session.to_string()),
            forked_to_seq: self.to_seq,
            strategy: "replay_v1".into(),
        };
        log.append(None, fork.into())?;
        if name.is_some() {
            log.append(None, SettingsChanged { name, ..SettingsChanged::default() }.into())?;
        }
        self.copy_path(log)?;
        self.share_outputs(id);
        Ok(())
    }

    /// Saved outputs that the path names are there under the same names. What is lost already stays lost, and is no reason to fail.
    fn share_outputs(&self, id: &SessionId) {
        let (from, to) = (self.services.place(self.session).outputs(), self.services.place(id).outputs());
        let results = self.path.iter().filter_map(|entry| match &entry.fact {
            Fact::ToolResult(it) => Some(it),
            _ => None,
        });
        let named: BTreeSet<&str> = results.flat_map(|it| outputs_named(it.output.as_bytes())).collect();
        for name in named {
            let shared = fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&to)
                .and_then(|()| fs::hard_link(from.join(name), to.join(name)));
            if let Err(e) = shared {
                tracing::warn!("the output {name} is not in the fork: {e}");
            }
        }
    }

    /// Numbers are given anew, so what names one is told the new.
    fn copy_path(&self, log: &mut Log) -> Result<()> {
        let path = &self.path;
        let first = log.next_seq();
        let new = |seq: u64| first + path.partition_point(|e| e.seq < seq) as u64;
        for (copied, entry) in path.iter().enumerate() {
            let mut fact = entry.fact.clone();
            let changed: &[&str] = match &mut fact {
                Fact::HistoryCompaction(it) => {
                    it.kept_from_seq = new(it.kept_from_seq);
                    let named = [&mut it.pinned, &mut it.skills, &mut it.kept, &mut it.removed, &mut it.dropped];
                    named.into_iter().flatten().for_each(|seq| *seq = new(*seq));
                    &["kept_from_seq", "pinned", "skills", "kept", "removed", "dropped"]
                }
                // The branch that it tells of is not in the fork.
                Fact::BranchSummary(it) => {
                    it.common_seq = it.common_seq.map(new);
                    it.from_seq = it.common_seq.unwrap_or(first);
                    &["common_seq", "from_seq"]
                }
                Fact::FilesRestored(it) => {
                    it.to_seq = it.to_seq.map(new);
                    it.of_seq = it.of_seq.map(new);
                    &["to_seq", "of_seq"]
                }
                _ => &[],
            };
            log.append_copy(entry.turn, entry, fact, changed)?;
            // A Log keeps its unsynced lines in memory, and this copy may be as large as the parent.
            if copied.is_multiple_of(SYNC_EVERY) {
                log.sync()?;
            }
        }
        for entry in path {
            let mark = self.history.mark(entry.seq);
            if mark != (Label { seq: entry.seq, ..Label::default() }) {
                log.append(None, Label { seq: new(entry.seq), ..mark }.into())?;
            }
        }
        let entries = self.history.entries();
        let plan = entries.iter().rfind(|entry| matches!(entry.fact, Fact::PlanUpdated(_)));
        if let Some(plan) = plan.filter(|_| !self.history.plan.is_empty()) {
            log.append_copy(None, plan, plan.fact.clone(), &[])?;
        }
        // Its requests begin as its family's do.
        if let Some(offered) = entries.iter().rfind(|entry| matches!(entry.fact, Fact::ToolsOffered(_))) {
            log.append_copy(None, offered, offered.fact.clone(), &[])?;
        }
        for entry in entries {
            match &entry.fact {
                // A newer build may have recorded a setting that restricts what the model does; what is known of the
                // settings stands in the first entry.
                Fact::SettingsChanged(_) if !entry.is_understood() => {
                    log.append_copy(None, entry, SettingsChanged::default().into(), SettingsChanged::FIELDS)?;
                }
                // A deny binds in the fork as well; an "always" of the user was for the other Session.
                Fact::PermissionDecision(it) if matches!(it.rule, Some(Rule::Deny(_))) => {
                    log.append_copy(None, entry, entry.fact.clone(), &[])?;
                }
                Fact::Unknown(it) if matches!(it.kind.as_str(), "settings_changed" | "permission_decision") => {
                    log.append_copy(None, entry, entry.fact.clone(), &[])?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A fork syncs its Log after this many copied Entries.
const SYNC_EVERY: usize = 500;
