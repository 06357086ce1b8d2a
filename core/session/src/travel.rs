//! Undo, redo, forks and moves of the head: each is told in order on a task of its own, so that the actor hears an interrupt.

use std::sync::Arc;

use tokio::sync::watch;

use super::fork::Branch;
use super::work::{Job, RunningTravel, Work};
use super::{LogAccess, Services, Session, on_entry};
use call::Gone;
use context::compaction::SummaryRequest;
use context::compaction::{self, Author, NotesRequest};
use context::prompt;
use conversation::history::{History, Settings};
use door::Reply;
use files::restore::{self, INTERRUPTED, RestoreTarget, Undoable};
use protocol::error::{Code, Error, NoticeCode, Result};
use protocol::event::{
    BranchSummary, CompactionPreview, Draft, FilesRestored, HeadMoved, LeftFile, Live, RestoreReason, SessionId,
    SessionStarted, Severity, Standing, Status,
};
use protocol::input::{Accepted, HunkRevert, OnConflict, RestoreOptions, Summarize};
use protocol::remedy::Remedy;
use storage::log::Log;
use turn::{DeltaCoalescer, Halt, Report, Reports, summarize};

impl Session {
    /// Sets out. The caller is answered when it is over.
    pub(super) fn set_out(&mut self, input: &'static str, reply: Option<Reply>, trip: Trip) {
        let status = trip.status();
        let (reports, receiver) = Reports::channel();
        let (interrupt, interrupted) = watch::channel(false);
        let travel = Travel {
            session: self.id.clone(),
            read_only: match &self.log {
                LogAccess::Writes(_) => None,
                LogAccess::ReadOnly(why) => Some(why.clone()),
            },
            history: Arc::new(self.history.clone()),
            services: self.services.clone(),
            reports,
            interrupted,
        };
        let task = task::spawn(travel.run(trip));
        let job = Job::Travel(RunningTravel { interrupt, reply });
        self.work = Some(Work { job, input, task, reports: receiver });
        self.set_status(status);
    }

    /// It is over.
    pub(super) async fn arrived(&mut self, outcome: std::result::Result<Accepted, Halt>) {
        let is_travel = |work: &mut Work| matches!(work.job, Job::Travel(_));
        let Some(Work { job: Job::Travel(travel), input, .. }) = self.work.take_if(is_travel) else { return };
        match outcome {
            Ok(accepted) => self.answer_input(input, travel.reply, Ok(accepted)),
            Err(Halt::Failed(error)) => self.answer_input(input, travel.reply, Err(error)),
            Err(Halt::Interrupted { left }) => {
                let code = match input {
                    "move_head" => NoticeCode::NotMoved,
                    "compact" => NoticeCode::NotCompacted,
                    _ => NoticeCode::RestoreInterrupted,
                };
                self.notice(Severity::Info, code.name(), left.clone());
                let error = Error::new(Code::CommandFailed, left, "do it again to continue");
                if let Some(reply) = travel.reply {
                    let _ = reply.send(Err(error));
                }
            }
        }
        self.set_status(Status::Idle);
        self.begin_next().await;
    }

    /// Waits until a restore or a move that was interrupted has recorded what it had done.
    pub(super) async fn finish_travel(&mut self) {
        while let Some(work) = self.work.as_mut().filter(|work| matches!(work.job, Job::Travel(_))) {
            let report = work.reports.recv().await;
            self.on_report(report).await;
        }
    }
}

/// What the user asked for.
pub(super) enum Trip {
    Undo {
        turn: Option<u32>,
        options: RestoreOptions,
    },
    Redo {
        options: RestoreOptions,
    },
    MoveHead {
        to_seq: Option<u64>,
        summarize: Summarize,
        files: Option<RestoreOptions>,
    },
    RevertHunk {
        hunk: HunkRevert,
        options: RestoreOptions,
    },
    Fork {
        seq: u64,
    },
    /// A model writes the summary of a compaction.
    Compact(Box<SummaryRequest>),
    /// A model writes the summary of a preview.
    Draft(Box<SummaryRequest>, Box<CompactionPreview>),
}

impl Trip {
    /// What the Session is doing meanwhile. A preview changes nothing, so the Session stays as it was.
    fn status(&self) -> Status {
        match self {
            Trip::Undo { options, .. }
            | Trip::Redo { options }
            | Trip::RevertHunk { options, .. }
            | Trip::MoveHead { files: Some(options), .. }
                if options.dry_run =>
            {
                Status::Idle
            }
            Trip::Compact(_) | Trip::Draft(..) | Trip::MoveHead { summarize: Summarize::Model, .. } => {
                Status::Compacting
            }
            Trip::Undo { .. }
            | Trip::Redo { .. }
            | Trip::RevertHunk { .. }
            | Trip::MoveHead { .. }
            | Trip::Fork { .. } => Status::Working,
        }
    }
}

/// One of these under way. It reads a copy of the History; what it records goes through the Session.
#[derive(Clone)]
pub(super) struct Travel {
    session: SessionId,
    /// Why nothing can be recorded.
    read_only: Option<Error>,
    history: Arc<History>,
    services: Services,
    reports: Reports,
    interrupted: watch::Receiver<bool>,
}

/// Why it ends before it has arrived.
enum Stop {
    /// The Session wants to hear no more of it.
    Gone,
    Halt(Halt),
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Stop {
        Stop::Gone
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Halt(Halt::Failed(error))
    }
}

impl Stop {
    fn interrupted(left: impl Into<String>) -> Stop {
        Stop::Halt(Halt::Interrupted { left: left.into() })
    }
}

const STAYS: &str = "the head stays where it was";

impl Travel {
    /// Why one that panicked did not arrive.
    pub(super) fn broke_off() -> Halt {
        let message = "it failed because of a bug in pixir";
        Halt::Failed(Error::new(Code::CommandFailed, message, "look at the files; pixir.log has the details"))
    }

    async fn run(self, trip: Trip) {
        let outcome = match trip {
            Trip::Undo { turn, options } => self.undo(turn, &options).await,
            Trip::Redo { options } => self.redo(&options).await,
            Trip::MoveHead { to_seq, summarize, files } => self.move_head(to_seq, summarize, files).await,
            Trip::RevertHunk { hunk, options } => self.revert_hunk(hunk, &options).await,
            Trip::Fork { seq } => self.fork(seq).await,
            Trip::Compact(request) => self.compact(*request).await,
            Trip::Draft(request, preview) => self.draft(*request, *preview).await,
        };
        let arrived = match outcome {
            Ok(accepted) => Ok(accepted),
            Err(Stop::Halt(halt)) => Err(halt),
            Err(Stop::Gone) => return,
        };
        let _ = self.reports.send(Report::Arrived(arrived)).await;
    }

    fn writable(&self) -> Result<()> {
        self.read_only.clone().map_or(Ok(()), Err)
    }

    // ─── The window ───

    /// Records the compaction with the model's summary, or the one without a model if the model fails.
    async fn compact(&self, request: SummaryRequest) -> std::result::Result<Accepted, Stop> {
        self.writable()?;
        let mut interrupted = self.interrupted.clone();
        tokio::select! {
            compacted = summarize(&self.reports, request) => drop(compacted?),
            _ = interrupted.wait_for(|it| *it) => {
                return Err(Stop::interrupted("the compaction was interrupted; the conversation stays as it was"));
            }
        }
        Ok(Accepted::default())
    }

    /// Publishes the preview again once the model has written its summary, or cannot, or the user has stopped it.
    async fn draft(&self, request: SummaryRequest, preview: CompactionPreview) -> std::result::Result<Accepted, Stop> {
        let mut interrupted = self.interrupted.clone();
        let relay = DeltaCoalescer::new(&self.reports);
        let mut hear = |chunk| relay.take_note(chunk);
        let answer = tokio::select! {
            answer = relay.during(request.ask(&mut hear)) => Some(answer),
            _ = interrupted.wait_for(|it| *it) => None,
        };
        let (compaction, draft) = match answer {
            Some((made, usage)) => {
                // A preview of a Session that is only read costs as well, but nothing can be recorded.
                if let Some(usage) = usage.filter(|_| self.read_only.is_none()) {
                    self.reports.record(usage).await?;
                }
                match made {
                    Ok(compaction) => (compaction, Draft::Written),
                    Err(error) => (request.without_model(&error), Draft::Failed),
                }
            }
            None => (preview.compaction.clone(), Draft::Stopped),
        };
        let preview = CompactionPreview { compaction, draft, ..preview };
        self.reports.live(Live::CompactionPreviewed(Box::new(preview))).await?;
        Ok(Accepted::default())
    }

    // ─── The head ───

    /// Moves the head; the branch that is left may be summed up, and the files may go along.
    async fn move_head(
        &self,
        to_seq: Option<u64>,
        summarize: Summarize,
        files: Option<RestoreOptions>,
    ) -> std::result::Result<Accepted, Stop> {
        if let Some(seq) = to_seq {
            on_entry(&self.history, seq)?;
        }
        let aim = restore::rewind(self.history.entries(), to_seq);
        if let Some(options) = files.as_ref().filter(|options| options.dry_run) {
            self.restore(aim, options).await?;
            return Ok(Accepted::default());
        }
        self.writable()?;
        let made = match summarize {
            Summarize::No => None,
            Summarize::Deterministic | Summarize::Model => compaction::branch(&self.history, to_seq),
        };
        let (summary, notice) = match made {
            Some(made) if summarize == Summarize::Model => self.summarized(made, to_seq).await?,
            made => (made, None),
        };
        self.reports.live(Live::Status { status: Status::Working }).await?;
        // Files first: while they are restored, the conversation still stands where it stood.
        let left = match files {
            Some(options) => self.restore(aim, &options).await?,
            None => self.differing(aim).await?,
        };
        self.reports.record(HeadMoved { to_seq, reason: "rewind".into() }).await?;
        // The model is told which files are not as the conversation knows them there.
        if !left.is_empty() {
            let stayed = FilesRestored {
                reason: RestoreReason::Stayed,
                of_turn: None,
                to_seq,
                of_seq: None,
                changes: Vec::new(),
                left,
            };
            self.reports.record(stayed).await?;
        }
        if let Some(summary) = summary {
            self.reports.record(summary).await?;
        }
        // Watchers draw the conversation anew where the head moves, so this comes after it.
        if let Some(notice) = notice {
            self.reports.live(notice).await?;
        }
        Ok(Accepted::default())
    }

    /// Files that are not as they were there.
    async fn differing(&self, aim: RestoreTarget) -> Result<Vec<LeftFile>> {
        if aim.is_empty() {
            return Ok(Vec::new());
        }
        let (workspace, blobs) = (Arc::clone(&self.services.workspace), self.services.blobs.clone());
        let preview = offload(move || aim.preview(&workspace, &blobs)).await?;
        let why = || "it was not restored".to_owned();
        Ok(preview.files.into_iter().map(|file| LeftFile { path: file.path, why: why() }).collect())
    }

    /// The summary as the model writes it, or as it was made without the model when that cannot, with a notice that says so.
    /// The conversation stays where it is until then.
    async fn summarized(
        &self,
        made: BranchSummary,
        to_seq: Option<u64>,
    ) -> std::result::Result<(Option<BranchSummary>, Option<Live>), Stop> {
        let settings = &self.history.settings;
        let Services { registry, blobs, providers, .. } = &self.services;
        let provider = providers.now().connect(&settings.provider)?;
        let (history, tools) = (&*self.history, registry.specs(settings.toolset));
        let cache_key = self.session.as_str();
        let left = compaction::left_behind(history, to_seq).0;
        let scale = history.scale(prompt::fixed_tokens(history, &tools));
        let request = NotesRequest::of_branch(Author { provider, history, scale, tools, blobs, cache_key }, left);
        let mut interrupted = self.interrupted.clone();
        let relay = DeltaCoalescer::new(&self.reports);
        let mut hear = |chunk| relay.take_note(chunk);
        let (notes, usage) = tokio::select! {
            answer = relay.during(request.ask(&mut hear)) => answer,
            _ = interrupted.wait_for(|it| *it) => return Err(Stop::interrupted(format!("the move was interrupted; {STAYS}"))),
        };
        if let Some(usage) = usage {
            self.reports.record(usage).await?;
        }
        match notes {
            Ok(notes) => Ok((Some(compaction::with_notes(made, notes, request.model())), None)),
            Err(error) => {
                let message = format!(
                    "the model could not summarize the branch ({}); pixir made this summary without it",
                    error.message
                );
                let code = error.code.name().to_owned();
                Ok((Some(made), Some(Live::Notice { severity: Severity::Warning, code, message, remedy: None })))
            }
        }
    }

    // ─── Files ───

    /// Without a number, the last Turn that left anything to undo.
    async fn undo(&self, turn: Option<u32>, options: &RestoreOptions) -> std::result::Result<Accepted, Stop> {
        let entries = self.history.entries();
        let all = match turn {
            Some(turn) => vec![Undoable::Turn(turn)],
            None => restore::undoable(entries)?,
        };
        let mut fallback = None;
        for of in all.iter().copied() {
            let aim = match of {
                Undoable::Turn(turn) => restore::undo(entries, turn)?,
                Undoable::Revert(seq) => restore::undo_revert(entries, seq)?,
            };
            // A Turn of which only what an earlier undo has left is left does not hide the one before it.
            if all.len() == 1 || self.has_more_to_undo(of, &aim, options).await? {
                fallback = Some(aim);
                break;
            }
            fallback = fallback.or(Some(aim));
        }
        if let Some(aim) = fallback {
            self.restore(aim, options).await?;
        }
        Ok(Accepted::default())
    }

    async fn has_more_to_undo(&self, of: Undoable, aim: &RestoreTarget, options: &RestoreOptions) -> Result<bool> {
        let (workspace, blobs) = (Arc::clone(&self.services.workspace), self.services.blobs.clone());
        let aim = aim.clone();
        let preview = offload(move || aim.preview(&workspace, &blobs)).await?;
        let left = restore::left_by_undo(self.history.entries(), of);
        Ok(preview.files.iter().any(|file| match file.standing {
            Standing::Ready => true,
            Standing::ChangedSince => options.changed_since != OnConflict::Keep || !left.contains(&file.path.as_str()),
            Standing::AlreadyThere | Standing::Impossible => false,
        }))
    }

    async fn redo(&self, options: &RestoreOptions) -> std::result::Result<Accepted, Stop> {
        let aim = restore::redo(self.history.entries())?;
        self.restore(aim, options).await?;
        Ok(Accepted::default())
    }

    async fn revert_hunk(&self, hunk: HunkRevert, options: &RestoreOptions) -> std::result::Result<Accepted, Stop> {
        let (workspace, blobs) = (Arc::clone(&self.services.workspace), self.services.blobs.clone());
        let aim = offload(move || restore::of_hunk(&hunk, &workspace, &blobs)).await??;
        self.restore(aim, options).await?;
        Ok(Accepted::default())
    }

    /// Shows the preview, or restores and records what was done; the files that were left come back.
    async fn restore(&self, aim: RestoreTarget, options: &RestoreOptions) -> std::result::Result<Vec<LeftFile>, Stop> {
        let Services { workspace, blobs, snapshot, .. } = self.services.clone();
        if options.dry_run {
            let preview = offload(move || aim.preview(&workspace, &blobs)).await?;
            self.reports.live(Live::RestorePreviewed(preview)).await?;
            return Ok(Vec::new());
        }
        self.writable()?;
        let (wished, interrupted) = (options.clone(), self.interrupted.clone());
        let work = move || {
            let is_interrupted = || *interrupted.borrow();
            let outcome = aim.apply(&wished, &workspace, &blobs, &snapshot, &is_interrupted);
            let preview = outcome.is_err().then(|| aim.preview(&workspace, &blobs));
            (outcome, preview)
        };
        let (outcome, preview) = offload(work).await?;
        // The preview that was approved is out of date; this is the new one.
        if let Some(preview) = preview {
            self.reports.live(Live::RestorePreviewed(preview)).await?;
        }
        let restored = outcome?;
        if restored.left.iter().any(|left| left.why == INTERRUPTED) {
            return Err(self.record_interrupted(restored).await?);
        }
        for left in &restored.left {
            let message = format!("{} was not restored: {}", left.path, left.why);
            let (severity, code) = (Severity::Warning, NoticeCode::FileLeft.name().to_owned());
            self.reports.live(Live::Notice { severity, code, message, remedy: None }).await?;
        }
        let left = restored.left.clone();
        // A user who saw the preview and chose to keep every file has that.
        if restored.changes.is_empty() && (restored.reason == RestoreReason::Rewind || options.seen.is_some()) {
            return Ok(left);
        }
        if restored.changes.is_empty() && left.is_empty() {
            return Err(Error::new(
                Code::NothingToDo,
                "no file was restored: all of them already have that content",
                Remedy::ShowTree,
            )
            .into());
        }
        if restored.changes.is_empty() {
            let names: Vec<&str> = left.iter().map(|it| it.path.as_str()).collect();
            return Err(Error::new(
                Code::FileChanged,
                format!("no file was restored; these changed since, or cannot be restored: {}", names.join(", ")),
                Remedy::ResolveConflicts,
            )
            .with("left", serde_json::json!(left))
            .into());
        }
        self.reports.record(restored).await?;
        Ok(left)
    }

    /// Records the files that were restored before the interrupt, and those that were left.
    async fn record_interrupted(&self, restored: FilesRestored) -> std::result::Result<Stop, Stop> {
        let (done, left) = (restored.changes.len(), restored.left.len());
        let stays = if restored.reason == RestoreReason::Rewind { format!("; {STAYS}") } else { String::new() };
        if done > 0 {
            self.reports.record(restored).await?;
        }
        Ok(Stop::interrupted(format!("interrupted: files restored: {done}, left as they were: {left}{stays}")))
    }

    // ─── Forks ───

    /// A Session of its own that begins with the path to this entry; this one is not touched.
    async fn fork(&self, seq: u64) -> std::result::Result<Accepted, Stop> {
        on_entry(&self.history, seq)?;
        let work = self.clone();
        let id = offload(move || work.make_fork(seq)).await??.to_string();
        self.reports.live(Live::SessionForked { session_id: id.clone() }).await?;
        Ok(Accepted { forked: Some(id), ..Accepted::default() })
    }

    fn make_fork(&self, seq: u64) -> Result<SessionId> {
        let id = SessionId::now();
        let disk = Arc::clone(&self.services.disk);
        let mut log = Log::create_on(disk, &self.services.place(&id).log(), id.clone())?;
        let Settings { provider, model, effort, mode, toolset, role, name, workspace } = self.history.settings.clone();
        let of_parent = self.history.started.clone();
        let started =
            SessionStarted { workspace, provider, model, effort, mode, toolset, role, parent: None, ..of_parent };
        let own = ["workspace", "provider", "model", "effort", "mode", "toolset", "role", "parent"];
        let branch = Branch::to(&self.history, &self.session, &self.services, seq);
        branch.copy_to(&mut log, &id, started, &own, name.map(|name| format!("{name} (fork)")))?;
        log.establish()?;
        // The conversation goes on where it was, and the user allowed that conversation to work there.
        self.services.share_folders(&self.session, &id)?;
        Ok(id)
    }
}

/// Work on files, on a thread that may block.
async fn offload<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    task::spawn_blocking(work)
        .await
        .map_err(|e| Error::new(Code::CommandFailed, format!("the restore failed: {e}"), "report this as a bug"))
}
