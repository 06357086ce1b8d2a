//! One conversation: one loop, the single writer of its Log.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::context::compaction;
use crate::context::prompt;
use crate::context::skills;
use crate::conversation::history::{History, Settings};
use crate::permissions;
use crate::protocol::error::{Code, Error, NoticeCode, Result};
use crate::protocol::event::{
    Approval, AssistantMessage, Attachment, Cost, Delivery, Event, Fact, Label, Live, Printed, SessionId,
    SettingsChanged, Severity, Status, ToolResult, Trigger, TurnEnded, TurnStatus, Usage, UserCommand, UserMessage,
};
use crate::protocol::input::{Decision, Input, Message};
use crate::protocol::remedy::Remedy;
use crate::provider::models::Effort;
use crate::session::watch::{Outbox, Watch};
use crate::storage::log::Log;
use crate::storage::store::Indexed;
use crate::tools::Answers;
use crate::turn::{Outcome, Report, Step, Turn};

mod handle; // a running Session, from outside
mod queue; // what waits for the running Turn
mod record; // what is recorded, and who hears of it
mod surface; // what it leans on, and how it is run
mod travel; // going elsewhere in the conversation
pub mod watch; // everything so far, then every event

use handle::Command;
pub use handle::Handle;
use queue::Waiting;
pub(crate) use surface::Surface;
pub use surface::{Limits, Options};

/// Compaction begins by itself when so much of the model's window is used.
const PRESSURE: f64 = 0.85;

/// Of what a call prints that may be cut off, its end, bytes.
const MOST_PRINTED: usize = 8 << 10;

/// The Log of a Session, or why there is none to write.
pub(crate) enum Pen {
    Writes(Log),
    ReadsOnly(Error),
}

pub(crate) struct Session {
    id: SessionId,
    pen: Pen,
    history: History,
    surface: Surface,
    watchers: Vec<Arc<Outbox>>,
    work: Option<Work>,
    steer: VecDeque<Message>,
    follow_up: VecDeque<Waiting>,
    status: Status,
    /// What the model has said of an answer that is not recorded yet.
    draft: String,
    /// What calls that run have printed: all there is of one that is cut off.
    printed: HashMap<String, Printed>,
    /// What a list says of this Session.
    indexed: Indexed,
    /// Entries when it was opened.
    opened_with: u64,
    /// What whoever watches first should know.
    note: Option<String>,
    /// It was said what becomes of the effort that it began with.
    told_effort: bool,
}

/// A running Turn, or a summary that a move of the head waits for. Dropping its reports is the end of what it can record.
struct Work {
    job: Job,
    task: JoinHandle<()>,
    reports: mpsc::UnboundedReceiver<Report>,
    steered: Arc<AtomicBool>,
    number: u32,
    began: Instant,
    usage: Usage,
    cost: Cost,
    tool_calls: u64,
    asking: Option<Asking>,
    /// A form that waits for the person.
    questioning: Option<(String, oneshot::Sender<Option<Answers>>)>,
}

enum Job {
    Turn,
    Move(Box<travel::Move>),
}

impl Work {
    fn new(job: Job, number: u32, task: JoinHandle<()>, reports: mpsc::UnboundedReceiver<Report>) -> Work {
        Work {
            job,
            task,
            reports,
            steered: Arc::default(),
            number,
            began: Instant::now(),
            usage: Usage::default(),
            cost: Cost::default(),
            tool_calls: 0,
            asking: None,
            questioning: None,
        }
    }
}

struct Asking {
    approval: Approval,
    reply: oneshot::Sender<Decision>,
}

impl Drop for Session {
    /// However it ends, nobody waits for it in vain.
    fn drop(&mut self) {
        for watcher in &self.watchers {
            watcher.close();
        }
    }
}

impl Session {
    /// Runs a Session on a task of its own.
    pub(crate) fn spawn(
        id: SessionId,
        pen: Pen,
        history: History,
        surface: Surface,
        job_news: mpsc::UnboundedReceiver<()>,
        note: Option<String>,
    ) -> Handle {
        let (commands, inbox) = mpsc::channel(64);
        let mut indexed = Indexed::default();
        history.entries().iter().for_each(|entry| indexed.summary.take(entry));
        let session = Session {
            id: id.clone(),
            pen,
            history,
            surface,
            watchers: Vec::new(),
            work: None,
            steer: VecDeque::new(),
            follow_up: VecDeque::new(),
            status: Status::Idle,
            draft: String::new(),
            printed: HashMap::new(),
            opened_with: indexed.summary.entries,
            indexed,
            note,
            told_effort: false,
        };
        tokio::spawn(session.run(inbox, job_news));
        Handle { id, commands }
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<Command>, mut job_news: mpsc::UnboundedReceiver<()>) {
        let done = loop {
            tokio::select! {
                command = inbox.recv() => match command {
                    None => break None,
                    Some(Command::Close(done)) => break Some(done),
                    Some(Command::Watch(reply)) => self.watch(reply),
                    Some(Command::Settle(reply)) => drop(reply.send(())),
                    Some(Command::Input(input)) => self.take(input).await,
                },
                report = next_report(&mut self.work) => self.hear(report).await,
                Some(()) = job_news.recv() => self.publish_jobs(),
            }
        };
        self.interrupt().await;
        if let Some(jobs) = &self.surface.jobs {
            jobs.stop_all().await;
        }
        if !self.discard_if_empty() && self.indexed.summary.entries > self.opened_with {
            self.index();
        }
        // The lock is free, and those who watch are told, before whoever asked.
        drop(self);
        if let Some(done) = done {
            let _ = done.send(());
        }
    }

    fn watch(&mut self, reply: oneshot::Sender<Watch>) {
        let outbox = Arc::<Outbox>::default();
        self.watchers.retain(|it| Arc::strong_count(it) > 1);
        self.watchers.push(Arc::clone(&outbox));
        let read_only = matches!(self.pen, Pen::ReadsOnly(_));
        let watch = Watch::new(self.history.clone(), read_only, outbox);
        if let Pen::ReadsOnly(why) = &self.pen {
            let (code, message) = (why.code.name().to_owned(), why.message.clone());
            let remedy = Some(why.remedy.clone());
            self.publish(Event::Live(Live::Notice { severity: Severity::Warning, code, message, remedy }));
        }
        if let Some(note) = self.note.take() {
            self.notice(Severity::Warning, NoticeCode::ProviderReplaced.name(), note);
        }
        let wished = self.history.settings.effort.as_deref().and_then(|it| Effort::parse(it).ok());
        if let Some(effort) = wished.filter(|_| !std::mem::replace(&mut self.told_effort, true)) {
            self.say_what_becomes_of(effort);
        }
        let _ = reply.send(watch);
    }

    // ─── Inputs ───

    async fn take(&mut self, input: Input) {
        let outcome = match input {
            Input::Interrupt => {
                self.interrupt().await;
                Ok(())
            }
            Input::Decide { call_id, decision } => self.decide(&call_id, decision),
            Input::Answer { call_id, answers } => self.answer(&call_id, answers),
            Input::StopJob { job } => self.stop_job(job).await,
            Input::Prompt(message) | Input::FollowUp(message) if self.work.is_some() => {
                self.follow_up.push_back(Waiting::Say(message));
                self.publish_queue();
                Ok(())
            }
            Input::Steer(message) if self.work.is_some() => {
                self.steer.push_back(message);
                self.mark_steered();
                self.publish_queue();
                Ok(())
            }
            Input::Prompt(message) | Input::FollowUp(message) | Input::Steer(message) => {
                self.begin_turn(message, Delivery::Prompt).await
            }
            Input::Dequeue => {
                self.clear_queue();
                Ok(())
            }
            Input::Set(change) => self.set(change),
            Input::Label { seq, text } => self.mark(Label { seq, text: Some(text), pinned: None }),
            Input::Pin { seq, pinned } => self.mark(Label { seq, text: None, pinned: Some(pinned) }),
            Input::Compact { .. }
            | Input::MoveHead { .. }
            | Input::Undo { .. }
            | Input::Redo { .. }
            | Input::Fork { .. }
            | Input::ActivateSkill { .. }
                if self.work.is_some() =>
            {
                Err(Error::new(Code::InvalidArgs, "that is not possible while a turn is running", Remedy::Interrupt))
            }
            Input::Compact { instructions, dry_run } => self.compact(Trigger::Manual, instructions.as_deref(), dry_run),
            Input::MoveHead { to_seq, summarize, files } => self.move_head(to_seq, summarize, files).await,
            Input::Undo { turn, wish } => self.undo(turn, &wish).await,
            Input::Redo { wish } => self.redo(&wish).await,
            Input::Fork { seq } => self.fork(seq),
            Input::ActivateSkill { name, args, attachments } => self.activate_skill(&name, args, attachments).await,
            Input::RunUserCommand { command, send_to_model } if self.work.is_some() => {
                self.follow_up.push_back(Waiting::Run { command, send_to_model });
                self.publish_queue();
                Ok(())
            }
            Input::RunUserCommand { command, send_to_model } => self.run_command(command, send_to_model).await,
        };
        if let Err(error) = outcome {
            self.publish(Event::Live(Live::Refused(error.body())));
        }
    }

    fn set(&mut self, change: SettingsChanged) -> Result<()> {
        if let Some(provider) = &change.provider {
            self.surface.providers.connect(provider)?;
        }
        let effort = change.effort.as_deref().map(Effort::parse).transpose()?;
        self.record(None, change.into())?;
        if let Some(effort) = effort {
            self.say_what_becomes_of(effort);
        }
        Ok(())
    }

    /// Models take different efforts; what is asked for in place of one is said.
    fn say_what_becomes_of(&mut self, effort: Effort) {
        let Settings { provider, model, .. } = &self.history.settings;
        let said = match self.surface.providers.facts(provider, model).effort(Some(effort.name())) {
            Some(asked) if asked == effort.name() => return,
            Some(asked) => format!("{model} does not know the effort {}; it gets {asked} instead", effort.name()),
            None => format!("{model} does not let you set an effort"),
        };
        self.notice(Severity::Info, NoticeCode::EffortMapped.name(), said);
    }

    fn mark(&mut self, mark: Label) -> Result<()> {
        self.on_entry(mark.seq)?;
        self.record(None, mark.into())
    }

    fn on_entry(&self, seq: u64) -> Result<()> {
        match self.history.entry(seq) {
            Some(entry) if entry.fact.is_conversation() => Ok(()),
            Some(_) | None => {
                Err(Error::new(Code::NotFound, format!("there is no message with number {seq}"), Remedy::ShowTree)
                    .with("input", seq))
            }
        }
    }

    fn compact(&mut self, trigger: Trigger, instructions: Option<&str>, dry_run: bool) -> Result<()> {
        let settings = &self.history.settings;
        let window = self.surface.providers.window(&settings.provider, &settings.model);
        let plan = compaction::plan(&self.history, trigger, instructions, window)?;
        if dry_run {
            self.publish(Event::Live(Live::CompactionPlanned(plan)));
            return Ok(());
        }
        self.record(None, plan.into())
    }

    async fn activate_skill(&mut self, name: &str, args: String, attachments: Vec<Attachment>) -> Result<()> {
        let activation = skills::activate(&self.surface.skills(), name, &args)?;
        self.record(None, activation.into())?;
        if args.is_empty() {
            return Ok(());
        }
        self.begin_turn(Message { text: args, attachments }, Delivery::Prompt).await
    }

    fn decide(&mut self, call_id: &str, decision: Decision) -> Result<()> {
        let asking = self.work.as_mut().and_then(|work| work.asking.take_if(|it| it.approval.call_id == call_id));
        let Some(asking) = asking else {
            return Err(Error::new(Code::NotFound, "that approval is no longer open", Remedy::AnswerOpenApproval)
                .with("input", call_id));
        };
        let _ = asking.reply.send(decision);
        self.set_status(Status::Working);
        Ok(())
    }

    fn answer(&mut self, call_id: &str, answers: Option<Answers>) -> Result<()> {
        let open = self.work.as_mut().and_then(|work| work.questioning.take_if(|(id, _)| id == call_id));
        let Some((_, reply)) = open else {
            let message = "that form is no longer open";
            let error = Error::new(Code::NotFound, message, Remedy::AnswerOpenForm);
            return Err(error.with("input", call_id));
        };
        let _ = reply.send(answers);
        self.set_status(Status::Working);
        Ok(())
    }

    async fn stop_job(&mut self, job: u32) -> Result<()> {
        if let Some(jobs) = self.surface.jobs.clone() {
            jobs.stop(job).await?;
        }
        Ok(())
    }

    fn publish_jobs(&mut self) {
        if let Some(jobs) = &self.surface.jobs {
            let live = Live::JobsChanged { jobs: jobs.list() };
            self.publish(Event::Live(live));
        }
    }

    // ─── The Turn ───

    async fn begin_turn(&mut self, message: Message, delivery: Delivery) -> Result<()> {
        let Message { text, attachments } = message;
        self.warn_of_images(&attachments);
        self.begin(UserMessage { text, delivery, attachments }.into(), Turn::run, Status::Thinking).await
    }

    /// What the person runs is a Turn that asks no model.
    async fn run_command(&mut self, command: String, send_to_model: bool) -> Result<()> {
        let call_id = format!("user_{}", self.history.entries().len());
        let ran = UserCommand { call_id: call_id.clone(), command: command.clone(), send_to_model };
        self.begin(ran.into(), |turn| turn.run_command(call_id, command), Status::Working).await
    }

    async fn begin<F>(&mut self, first: Fact, run: impl FnOnce(Turn) -> F, status: Status) -> Result<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.close_open_turn().await?;
        let number = self.history.turns + 1;
        self.record(Some(number), first)?;
        let (report, reports) = mpsc::unbounded_channel();
        let steered = Arc::new(AtomicBool::new(false));
        let turn = Turn::new(report, Arc::clone(&steered), &self.id, self.history.entries().len(), &self.surface);
        self.draft.clear();
        self.printed.clear();
        let task = tokio::spawn(run(turn));
        self.work = Some(Work { steered, ..Work::new(Job::Turn, number, task, reports) });
        self.set_status(status);
        Ok(())
    }

    /// A model that sees no images is told that there were some; so is the person.
    fn warn_of_images(&mut self, attachments: &[Attachment]) {
        let Settings { provider, model, .. } = &self.history.settings;
        if !attachments.is_empty() && !self.surface.providers.facts(provider, model).sees_images {
            let said = format!("{model} does not accept images; it is only told that there is one");
            self.notice(Severity::Warning, Code::VisionUnsupported.name(), said);
        }
    }

    async fn close_open_turn(&mut self) -> Result<()> {
        let turn = Some(self.history.turns).filter(|n| *n > 0);
        for fact in self.results_cut_off().await {
            self.record(turn, fact)?;
        }
        for fact in self.history.repairs() {
            self.record(turn, fact)?;
        }
        Ok(())
    }

    async fn hear(&mut self, report: Option<Report>) {
        match report {
            Some(Report::Read(reply)) => match self.next_step() {
                Ok(step) => drop(reply.send(step)),
                Err(error) => self.end_turn(Outcome::failed(error)).await,
            },
            Some(Report::Record { fact, reply }) => self.record_report(*fact, reply),
            Some(Report::Live(live)) => self.relay(live),
            Some(Report::Judge { action, reply }) => {
                let _ = reply.send(permissions::judge(
                    self.history.settings.mode,
                    &action,
                    &self.history.rules,
                    self.surface.workspace.root(),
                ));
            }
            Some(Report::Ask { approval, reply }) => {
                if let Some(work) = &mut self.work {
                    work.asking = Some(Asking { approval: approval.clone(), reply });
                }
                self.set_status(Status::Asking);
                self.publish(Event::Live(Live::ApprovalRequested(approval)));
            }
            Some(Report::Question { form, reply }) => {
                if let Some(work) = &mut self.work {
                    work.questioning = Some((form.call_id.clone(), reply));
                }
                self.set_status(Status::Asking);
                self.publish(Event::Live(Live::QuestionAsked(form)));
            }
            Some(Report::Compact { reply }) => {
                let _ = reply.send(self.compact(Trigger::Overflow, None, false));
            }
            Some(Report::ForgetReasoning { reply }) => {
                self.history.forget_reasoning();
                let _ = reply.send(());
            }
            Some(Report::Done(outcome)) => self.end_turn(outcome).await,
            Some(Report::Summarized(outcome)) => self.summarized(*outcome).await,
            // A panic closed the channel before the Turn could say how it ended.
            None => {
                let error = Error::new(
                    Code::CommandFailed,
                    "the turn failed because of a bug in pixir",
                    "send the message again; pixir.log has the details",
                );
                self.end_turn(Outcome::failed(error)).await;
            }
        }
    }

    /// Between two requests every call has its result, so what waits may join the conversation.
    fn next_step(&mut self) -> Result<Step> {
        let turn = self.work.as_ref().map(|work| work.number);
        while let Some(Message { text, attachments }) = self.steer.pop_front() {
            self.warn_of_images(&attachments);
            self.record(turn, UserMessage { text, delivery: Delivery::Steer, attachments }.into())?;
            self.publish_queue();
        }
        self.mark_steered();
        self.relieve_pressure()?;
        self.draft.clear();
        self.set_status(Status::Thinking);
        let settings = &self.history.settings;
        let provider = self.surface.providers.connect(&settings.provider)?;
        let facts = provider.facts(&settings.model);
        let toolset = settings.toolset;
        let surface = &self.surface;
        // A fork begins as its family did, so what is cached for one serves all.
        let family = self.history.family.as_deref().unwrap_or(self.id.as_str());
        let request = prompt::request(&self.history, &surface.registry, &surface.blobs, family);
        Ok(Step { provider, facts, toolset, request })
    }

    fn relieve_pressure(&mut self) -> Result<()> {
        let settings = &self.history.settings;
        let Some(window) = self.surface.providers.window(&settings.provider, &settings.model) else { return Ok(()) };
        let used = self.history.last_input.unwrap_or_else(|| self.history.estimated_tokens());
        if (used as f64) < window as f64 * PRESSURE {
            return Ok(());
        }
        match self.compact(Trigger::Threshold, None, false) {
            // All of it is recent; the Provider will say if it is too much.
            Err(error) if error.code == Code::NothingToDo => Ok(()),
            other => other,
        }
    }

    fn record_report(&mut self, fact: Fact, reply: oneshot::Sender<()>) {
        let turn = self.work.as_ref().map(|work| work.number);
        match (&fact, &mut self.work) {
            (Fact::ProviderUsage(it), Some(work)) => {
                work.usage += it.usage;
                work.cost += it.cost;
            }
            (Fact::ToolCall(_), Some(work)) => work.tool_calls += 1,
            (Fact::AssistantMessage(_), Some(_)) => self.draft.clear(),
            // Whoever asked has ended.
            (Fact::ToolResult(it), Some(work)) => {
                self.printed.remove(&it.call_id);
                drop(work.questioning.take_if(|(id, _)| *id == it.call_id));
            }
            _ => {}
        }
        match self.record(turn, fact) {
            Ok(()) => drop(reply.send(())),
            // The Turn waits for a reply that never comes, so no tool runs after a failed write.
            Err(error) => self.abandon_turn(&error),
        }
    }

    fn relay(&mut self, live: Live) {
        match &live {
            Live::TextDelta { text } => self.draft.push_str(text),
            Live::ToolOutputDelta { call_id, printed } => {
                let all = self.printed.entry(call_id.clone()).or_default();
                all.push(printed);
                all.keep_end(MOST_PRINTED);
            }
            // A try that failed is asked again from its start.
            Live::RetryScheduled { .. } => self.draft.clear(),
            Live::Status { status } => {
                self.set_status(*status);
                return;
            }
            _ => {}
        }
        self.publish(Event::Live(live));
    }

    async fn interrupt(&mut self) {
        self.clear_queue();
        let Some(mut work) = self.work.take() else { return };
        // Whatever it would still report is not heard any more.
        work.reports.close();
        work.task.abort();
        let _ = (&mut work.task).await;
        if let Job::Move(_) = work.job {
            self.notice(
                Severity::Info,
                NoticeCode::NotMoved.name(),
                "the move was interrupted; the head stays where it was".into(),
            );
            self.set_status(Status::Idle);
            return;
        }
        let error = Error::new(Code::CommandFailed, "the turn was interrupted", "send a message to go on");
        let outcome = Outcome { status: TurnStatus::Interrupted, error: Some(error), details: serde_json::Map::new() };
        self.record_end(&work, outcome).await;
        self.set_status(Status::Idle);
    }

    async fn end_turn(&mut self, outcome: Outcome) {
        let Some(work) = self.work.take() else { return };
        if let Job::Turn = work.job {
            self.record_end(&work, outcome).await;
        } else if let Some(error) = outcome.error {
            self.publish(Event::Live(Live::Refused(error.body())));
        }
        self.set_status(Status::Idle);
        self.begin_next().await;
    }

    async fn record_end(&mut self, work: &Work, outcome: Outcome) {
        let turn = Some(work.number);
        if let Some(error) = &outcome.error {
            tracing::warn!(session = %self.id, turn = work.number, code = error.code.name(), "{}", error.message);
        }
        let draft = std::mem::take(&mut self.draft);
        let mut facts: Vec<Fact> = Vec::new();
        if !draft.is_empty() {
            facts.push(AssistantMessage { text: draft, partial: true, phase: None }.into());
        }
        facts.extend(self.results_cut_off().await);
        facts.push(
            TurnEnded {
                status: outcome.status,
                error: outcome.error.map(|e| e.body()),
                usage: work.usage,
                cost: work.cost,
                duration_ms: u64::try_from(work.began.elapsed().as_millis()).unwrap_or(u64::MAX),
                tool_calls: work.tool_calls,
                details: outcome.details,
            }
            .into(),
        );
        for fact in facts {
            if let Err(error) = self.record(turn, fact) {
                self.publish(Event::Live(Live::Refused(error.body())));
                return;
            }
        }
    }

    /// Results of calls that were cut off, with what they have changed in files, so that it can be undone like everything else.
    async fn results_cut_off(&mut self) -> Vec<Fact> {
        let orphans: Vec<String> = self.history.orphans().map(str::to_owned).collect();
        if orphans.is_empty() {
            return Vec::new();
        }
        let surface = self.surface.clone();
        let look = move || surface.shadow.unrecorded(&surface.workspace, &surface.blobs);
        let made = tokio::task::spawn_blocking(look).await.unwrap_or_default();
        let mut printed = std::mem::take(&mut self.printed);
        let mut result = |id: String| {
            let changes = made.iter().filter(|(of, _)| *of == id).map(|(_, change)| change.clone()).collect();
            let cut_off = History::orphan_result(&id);
            let before = printed.remove(&id).map_or(String::new(), |it| format!("{}\n", it.text.trim_end()));
            Fact::from(ToolResult { changes, output: format!("{before}{}", cut_off.output), ..cut_off })
        };
        orphans.into_iter().map(&mut result).collect()
    }

    /// The Log cannot be written: the Turn stops where it is, and what was shown stays on the screen.
    fn abandon_turn(&mut self, error: &Error) {
        if let Some(work) = self.work.take() {
            work.task.abort();
        }
        tracing::error!(session = %self.id, code = error.code.name(), "{}", error.message);
        self.publish(Event::Live(Live::Refused(error.body())));
        self.set_status(Status::Idle);
    }

    /// Opening pixir and closing it again leaves nothing behind.
    fn discard_if_empty(&self) -> bool {
        if let Pen::Writes(log) = &self.pen
            // Only what was begun here; what was found may be all that is left of something.
            && self.opened_with == 1
            && !self.history.entries().iter().any(|e| e.fact.is_conversation() || matches!(e.fact, Fact::LogRepaired(_)))
            // A draft that was left in it is found again at the next start.
            && self.surface.place(&self.id).presenter_state().is_none()
        {
            let _ = std::fs::remove_file(log.path());
            let _ = std::fs::remove_dir_all(self.surface.place(&self.id).own_folder());
            return true;
        }
        false
    }
}

async fn next_report(work: &mut Option<Work>) -> Option<Report> {
    match work {
        Some(work) => work.reports.recv().await,
        None => std::future::pending().await,
    }
}
