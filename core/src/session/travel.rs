//! Going elsewhere in the conversation: moving the head, with a summary and with the files; undo; forks.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::{Job, Session, Work};
use crate::call::present::outputs_named;
use crate::context::compaction;
use crate::context::prompt;
use crate::conversation::history::Settings;
use crate::files::restore::{self, Aim};
use crate::protocol::error::{Code, Error, NoticeCode, Result};
use crate::protocol::event::{
    BranchSummary, Entry, Event, Fact, FilesRestored, HeadMoved, LeftFile, Live, PlanUpdated, ProviderUsage,
    RestorePlan, RestoreReason, SessionFork, SessionId, SessionStarted, SettingsChanged, Severity, Standing, Status,
};
use crate::protocol::input::{Choice, Summarize, Wish};
use crate::protocol::remedy::Remedy;
use crate::provider::Failure;
use crate::storage::log::Log;
use crate::turn::{Report, Summarized};

/// A move of the head that waits for its summary.
pub(super) struct Move {
    to_seq: Option<u64>,
    files: Option<Wish>,
    summary: BranchSummary,
}

impl Session {
    /// Moves the head; what is left may be summed up, and the files may go along.
    pub(super) async fn move_head(
        &mut self,
        to_seq: Option<u64>,
        summarize: Summarize,
        files: Option<Wish>,
    ) -> Result<()> {
        if let Some(seq) = to_seq {
            self.on_entry(seq)?;
        }
        if let Some(wish) = files.as_ref().filter(|wish| wish.dry_run) {
            let aim = restore::rewind(self.history.entries(), to_seq);
            return self.restore(aim, wish).await.map(drop);
        }
        self.writable()?;
        let summary = match summarize {
            Summarize::No => None,
            Summarize::Deterministic | Summarize::Model => compaction::branch(&self.history, to_seq),
        };
        match summary {
            Some(summary) if summarize == Summarize::Model => self.ask_for_summary(Move { to_seq, files, summary }),
            summary => self.go(to_seq, files, summary).await,
        }
    }

    /// Files first: while they are restored, the conversation still stands where it stood. Of those that are not as the
    /// conversation knows them there, the model is told.
    async fn go(&mut self, to_seq: Option<u64>, files: Option<Wish>, summary: Option<BranchSummary>) -> Result<()> {
        let aim = restore::rewind(self.history.entries(), to_seq);
        let left = match files {
            Some(wish) => self.restore(aim, &wish).await?,
            None => self.differing(aim).await?,
        };
        self.record(None, HeadMoved { to_seq, reason: "rewind".into() }.into())?;
        if !left.is_empty() {
            let stayed =
                FilesRestored { reason: RestoreReason::Stayed, of_turn: None, to_seq, changes: Vec::new(), left };
            self.record(None, stayed.into())?;
        }
        match summary {
            Some(summary) => self.record(None, summary.into()),
            None => Ok(()),
        }
    }

    /// Files that are not as they were there.
    async fn differing(&self, aim: Aim) -> Result<Vec<LeftFile>> {
        if aim.is_empty() {
            return Ok(Vec::new());
        }
        let (workspace, blobs) = (Arc::clone(&self.surface.workspace), self.surface.blobs.clone());
        let plan = beside(move || aim.plan(&workspace, &blobs)).await?;
        let why = || "it was not restored".to_owned();
        Ok(plan.files.into_iter().map(|file| LeftFile { path: file.path, why: why() }).collect())
    }

    /// Asks the model; the conversation stays where it is until it has answered.
    fn ask_for_summary(&mut self, pending: Move) -> Result<()> {
        let settings = &self.history.settings;
        let provider = self.surface.providers.connect(&settings.provider)?;
        let facts = provider.facts(&settings.model);
        let left: Vec<Arc<Entry>> = compaction::left_behind(&self.history, pending.to_seq).0;
        let surface = &self.surface;
        let id = self.id.as_str();
        let request = prompt::summary(&self.history, left, &surface.registry, &surface.blobs, id);
        let (report, reports) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let answer = provider.answer(&request, &mut |_| {}).await;
            let summary = answer.map_err(|Failure { error, .. }| error).and_then(|answer| {
                let text = answer.text().trim().to_owned();
                if text.is_empty() {
                    return Err(Error::new(Code::InvalidResponse, "the model returned no summary", "try again"));
                }
                let usage = answer.usage.map(|usage| ProviderUsage {
                    provider: request.provider.clone(),
                    model: request.model.clone(),
                    usage,
                    cost: facts.cost(&usage, answer.usd),
                });
                Ok(Summarized { text, model: request.model.clone(), usage })
            });
            let _ = report.send(Report::Summarized(Box::new(summary)));
        });
        self.work = Some(Work::new(Job::Move(Box::new(pending)), self.history.turns, task, reports));
        self.set_status(Status::Thinking);
        Ok(())
    }

    /// The model has summed up, or could not; the move is made either way.
    pub(super) async fn summarized(&mut self, summarized: Result<Summarized>) {
        let Some(Work { job: Job::Move(pending), .. }) = self.work.take() else { return };
        let Move { to_seq, files, mut summary } = *pending;
        match summarized {
            Ok(Summarized { text, model, usage }) => {
                summary = BranchSummary { strategy: "model".into(), summary: text, model: Some(model), ..summary };
                if let Some(Err(error)) = usage.map(|usage| self.record(None, usage.into())) {
                    self.publish(Event::Live(Live::Refused(error.body())));
                }
            }
            Err(error) => self.notice(
                Severity::Warning,
                error.code.name(),
                format!(
                    "the model could not summarize the branch ({}); pixir made this summary without it",
                    error.message
                ),
            ),
        }
        if let Err(error) = self.go(to_seq, files, Some(summary)).await {
            self.publish(Event::Live(Live::Refused(error.body())));
        }
        self.set_status(Status::Idle);
        self.begin_next().await;
    }

    // ─── Files ───

    /// Without a number, the last Turn of which anything is left to undo.
    pub(super) async fn undo(&mut self, turn: Option<u32>, wish: &Wish) -> Result<()> {
        let turns = match turn {
            Some(turn) => vec![turn],
            None => restore::undoable(self.history.entries())?,
        };
        let mut fallback = None;
        for turn in turns.iter().copied() {
            let aim = restore::undo(self.history.entries(), turn)?;
            // A turn of which only that is left which an earlier undo has left is not in the way of the one before it.
            if turns.len() == 1 || self.has_more_to_undo(turn, &aim, wish).await? {
                return self.restore(aim, wish).await.map(drop);
            }
            fallback = fallback.or(Some(aim));
        }
        match fallback {
            Some(aim) => self.restore(aim, wish).await.map(drop),
            None => Ok(()),
        }
    }

    async fn has_more_to_undo(&self, turn: u32, aim: &Aim, wish: &Wish) -> Result<bool> {
        let (workspace, blobs) = (Arc::clone(&self.surface.workspace), self.surface.blobs.clone());
        let aim = aim.clone();
        let plan = beside(move || aim.plan(&workspace, &blobs)).await?;
        let left = restore::left_by_undo(self.history.entries(), turn);
        Ok(plan.files.iter().any(|file| match file.standing {
            Standing::Ready => true,
            Standing::ChangedSince => wish.changed_since != Choice::Keep || !left.contains(&file.path.as_str()),
            Standing::AlreadyThere | Standing::Impossible => false,
        }))
    }

    pub(super) async fn redo(&mut self, wish: &Wish) -> Result<()> {
        let aim = restore::redo(self.history.entries())?;
        self.restore(aim, wish).await.map(drop)
    }

    /// Plans, or does it and records what was done; what was left as it is comes back.
    async fn restore(&mut self, aim: Aim, wish: &Wish) -> Result<Vec<LeftFile>> {
        let (workspace, blobs) = (Arc::clone(&self.surface.workspace), self.surface.blobs.clone());
        if wish.dry_run {
            let plan = beside(move || aim.plan(&workspace, &blobs)).await?;
            self.publish(Event::Live(Live::RestorePlanned(plan)));
            return Ok(Vec::new());
        }
        self.writable()?;
        let (aimed, wished) = (aim, wish.clone());
        let outcome = beside(move || {
            let outcome = aimed.apply(&wished, &workspace, &blobs);
            let plan: Option<RestorePlan> = outcome.is_err().then(|| aimed.plan(&workspace, &blobs));
            (outcome, plan)
        })
        .await?;
        let restored = match outcome {
            (Ok(restored), _) => restored,
            (Err(error), plan) => {
                self.publish_all(plan.map(Live::RestorePlanned));
                return Err(error);
            }
        };
        for left in &restored.left {
            self.notice(
                Severity::Warning,
                NoticeCode::FileLeft.name(),
                format!("{} was not restored: {}", left.path, left.why),
            );
        }
        let left = restored.left.clone();
        // Whoever saw the plan and chose to keep every file has what they want.
        if restored.changes.is_empty() && (restored.reason == RestoreReason::Rewind || wish.seen.is_some()) {
            return Ok(left);
        }
        if restored.changes.is_empty() && left.is_empty() {
            return Err(Error::new(
                Code::NothingToDo,
                "no file was restored: all of them already have that content",
                Remedy::ShowTree,
            ));
        }
        if restored.changes.is_empty() {
            let names: Vec<&str> = left.iter().map(|it| it.path.as_str()).collect();
            return Err(Error::new(
                Code::FileChanged,
                format!("no file was restored; these changed since, or cannot be restored: {}", names.join(", ")),
                Remedy::ResolveConflicts,
            )
            .with("left", serde_json::json!(left)));
        }
        self.record(None, restored.into())?;
        Ok(left)
    }

    // ─── Forks ───

    /// A Session of its own that begins with the path to this entry; this one is not touched.
    pub(super) fn fork(&mut self, seq: u64) -> Result<()> {
        self.on_entry(seq)?;
        let path = self.history.path_of(seq);
        let root = self.history.entries().iter().find_map(|e| {
            if let Fact::SessionFork(it) = &e.fact { Some(it.fork_root_session_id.clone()) } else { None }
        });
        let id = SessionId::now();
        let mut log = Log::create(&self.surface.place(&id).log(), id.clone())?;
        let Settings { provider, model, effort, mode, toolset, name, workspace } = self.history.settings.clone();
        let started =
            SessionStarted { workspace, provider, model, effort, mode, toolset, ..self.history.started.clone() };
        log.append(None, started.into())?;
        let named = name.map(|name| format!("{name} (fork)"));
        let first = log.next_seq() + 1 + u64::from(named.is_some());
        let fork = SessionFork {
            copied_to_seq: Some(first + path.len() as u64 - 1),
            parent_session_id: self.id.to_string(),
            fork_root_session_id: root.unwrap_or_else(|| self.id.to_string()),
            forked_to_seq: seq,
            strategy: "replay_v1".into(),
        };
        log.append(None, fork.into())?;
        if named.is_some() {
            log.append(None, SettingsChanged { name: named, ..SettingsChanged::default() }.into())?;
        }
        self.copy_path(&mut log, &path)?;
        self.share_outputs(&id, &path);
        log.establish()?;
        self.publish(Event::Live(Live::SessionForked { session_id: id.to_string() }));
        Ok(())
    }

    /// Saved outputs that the path names are there under the same names. What is lost already stays lost, and is no reason to fail.
    fn share_outputs(&self, id: &SessionId, path: &[Arc<Entry>]) {
        let (from, to) = (self.surface.place(&self.id).outputs(), self.surface.place(id).outputs());
        let results = path.iter().filter_map(|entry| match &entry.fact {
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
    fn copy_path(&self, log: &mut Log, path: &[Arc<Entry>]) -> Result<()> {
        let first = log.next_seq();
        let new = |seq: u64| first + path.partition_point(|e| e.seq < seq) as u64;
        for entry in path {
            let mut fact = entry.fact.clone();
            match &mut fact {
                Fact::HistoryCompaction(it) => {
                    it.kept_from_seq = new(it.kept_from_seq);
                    it.pinned.iter_mut().for_each(|seq| *seq = new(*seq));
                }
                // The branch that it tells of is not in the fork.
                Fact::BranchSummary(it) => {
                    it.common_seq = it.common_seq.map(new);
                    it.from_seq = it.common_seq.unwrap_or(first);
                }
                Fact::FilesRestored(it) => it.to_seq = it.to_seq.map(new),
                _ => {}
            }
            log.append(entry.turn, fact)?;
        }
        for entry in path {
            let mark = self.history.mark(entry.seq);
            if mark.text.is_some() || mark.pinned.is_some() {
                log.append(None, crate::protocol::event::Label { seq: new(entry.seq), ..mark }.into())?;
            }
        }
        if !self.history.plan.is_empty() {
            log.append(None, PlanUpdated { items: self.history.plan.clone() }.into())?;
        }
        Ok(())
    }
}

/// Work on files, beside the loop.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| Error::new(Code::CommandFailed, format!("the restore failed: {e}"), "report this as a bug"))
}
