//! One conversation: the actor that is the single writer of its Log.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use call::Registry;
use call::agents::{AgentNews, Order};
use context::roles::Role;
use conversation::history::{History, Settings};
use door::{Command, Handle, Outbox, Reply, Watch};
use mcp::Servers;
use protocol::effort::Effort;
use protocol::error::{Code, Error, NoticeCode, Result};
use protocol::event::{
    AgentEvent, AgentResult, Approval, CompactionPreview, Delivery, Event, Fact, Form, Label, Live, LiveEvent, Printed,
    Refusal, SessionId, SettingsChanged, Severity, SkillIndex, Status, Toolset,
};
use protocol::input::{Accepted, Input, Message, SettingsChange};
use protocol::now::{Draft, Now};
use protocol::remedy::Remedy;
use provider::budget::Budget;
use storage::log::LogWriter;
use storage::store::Indexed;

mod agents; // child Sessions: what is recorded and heard of them
mod answers; // what the user answers
mod branches; // branches that the user removes and restores
mod fork; // a branch as the beginning of another Session
pub mod folders; // folders outside the workspace that the Session reads or works on
mod compact; // compactions on request: previews, drafts, what the user approved; what fills the context
mod jobs; // background jobs
mod queue; // messages that wait for the running Turn
mod record; // what is recorded and published
mod role; // the role that the user gives to the Session
mod running; // the running Turn: its reports, its end
mod servers; // tools of MCP servers
mod skills; // skills, templates, and the index that the model reads
mod surroundings; // what the model knows about mode, toolset and repository
mod travel; // undo, redo, forks and moves of the head
mod trust; // what the workspace brings along, and the user's answer
mod window; // the window of the model: compactions before a request
mod work; // what runs beside the actor
mod workflow; // runs of workflows

pub use fork::Branch;
use queue::{Waiters, Waiting};
use travel::{Travel, Trip};
use trust::Looked;
pub use turn::{AgentOptions, CompactionOptions, Limits, Options};
pub use turn::{Children, Services};
use work::{Job, Work, next_report};

/// How the Session may use its Log.
pub enum LogAccess {
    Writes(LogWriter),
    /// Nothing can be recorded, for this reason.
    ReadOnly(Error),
}

pub struct Session {
    id: SessionId,
    log: LogAccess,
    history: History,
    services: Services,
    /// The tools of the Session without those of MCP servers.
    own_tools: Registry,
    watchers: Vec<Arc<Outbox>>,
    work: Option<Work>,
    waiters: Waiters,
    /// Entries to drop, or to send again, before the next request.
    drops: BTreeMap<u64, bool>,
    status: Status,
    draft: Draft,
    /// What running calls have printed. A call that is cut off has no other result.
    printed: BTreeMap<String, Printed>,
    /// What the index of Sessions says about this one.
    indexed: Indexed,
    /// Entries when it was opened.
    opened_with: u64,
    /// An Entry could not be recorded. What was published before it must stay in the file.
    lost_entry: bool,
    /// A notice for the first watcher.
    note: Option<String>,
    /// Notices for the first watcher: severity, code, text, remedy.
    opening_notices: Vec<(Severity, &'static str, String, Option<Remedy>)>,
    /// What the first watcher hears of entries that a newer build wrote.
    of_newer_build: Option<String>,
    /// A watcher was told which effort the model really gets.
    effort_explained: bool,
    /// Inputs that came during a restore, a fork or a move of the head. They are taken in when it is over, in their order.
    held: VecDeque<(Input, Option<Reply>)>,
    /// Jobs that are being stopped on request.
    stopping_jobs: JoinSet<jobs::Stopped>,
    /// What the workspace brings along is being read.
    looking: JoinSet<Looked>,
    /// A watcher was asked whether it trusts what the workspace brings along, if there is something to ask.
    was_asked: bool,
    /// The role that the user gave to the Session.
    role: Option<Arc<Role>>,
    /// Roles for agents, as the last Turn found them.
    roles: Option<String>,
    /// The index of skills, as the last Turn found it.
    skill_index: Option<SkillIndex>,
    /// The last preview of a compaction. A summary that the user applies unchanged is by its author.
    previewed: Option<Box<CompactionPreview>>,
    /// Callers of [`Handle::settle`].
    settling: Vec<oneshot::Sender<()>>,
    /// What its children want recorded, published or told.
    agent_news: mpsc::UnboundedReceiver<AgentNews>,
    /// What children ask the user, oldest first.
    asked: Vec<LiveEvent>,
    /// Ends of children that the model has not read yet.
    reports_due: VecDeque<AgentResult>,
    /// What the model reads about agents before its next request. It starts no Turn.
    to_tell: Vec<AgentEvent>,
    /// When the reports that are due start a Turn.
    wake_at: Option<tokio::time::Instant>,
    /// Whether they may: the user has not interrupted the last Turn.
    may_wake: bool,
    /// What the last Turn drew from; a Turn that reports of agents begin draws on it too.
    budget: Option<Budget>,
    /// What the user does about MCP servers.
    server_work: JoinSet<servers::Work>,
    /// Inputs that children carry out.
    errands: JoinSet<agents::Errand>,
}

/// What a Session needs to run.
pub struct Opened {
    pub id: SessionId,
    pub log: LogAccess,
    pub history: History,
    pub services: Services,
    pub job_news: mpsc::UnboundedReceiver<()>,
    pub agent_news: mpsc::UnboundedReceiver<AgentNews>,
    /// A notice for the first watcher.
    pub note: Option<String>,
    /// The role that the user gave to the Session.
    pub role: Option<Arc<Role>>,
}

impl Drop for Session {
    /// However the Session ends, its watchers hear it, and its commands are not compared with any more.
    fn drop(&mut self) {
        for watcher in &self.watchers {
            watcher.close();
        }
        // A comparison of another Session may hold the snapshot for a while.
        let snapshot = self.services.snapshot.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // Where the system gives no thread, tokio panics; in a Session that a panic ends, that would abort the process.
            let leave = move || drop(runtime.spawn_blocking(move || snapshot.leave()));
            if catch_unwind(AssertUnwindSafe(leave)).is_err() {
                tracing::warn!("the snapshot of a session that ended is still compared: no thread can be started");
            }
        }
    }
}

impl Session {
    /// Runs a Session on a task of its own.
    pub fn spawn(opened: Opened) -> Handle {
        let Opened { id, log, history, services, job_news, agent_news, note, role } = opened;
        let is_child = history.started.parent.is_some();
        let (commands, inbox) = mpsc::channel(64);
        let mut indexed = Indexed::default();
        history.entries().iter().for_each(|entry| indexed.summary.take(entry));
        let of_newer_build = history.of_newer_build();
        let mut opening_notices = Vec::new();
        if let Some(warning) = services.store.rules().load().warning() {
            opening_notices.push((
                Severity::Warning,
                NoticeCode::RuleUnreadable.name(),
                warning,
                Some(Remedy::ShowRules),
            ));
        }
        for text in std::mem::take(&mut *services.left_behind.lock()) {
            tracing::warn!("{text}");
            opening_notices.push((Severity::Warning, NoticeCode::FileProtected.name(), text, None));
        }
        // Those of a child are its parent's.
        if !is_child {
            opening_notices.extend(folders::lost(&services));
        }
        if let Some(servers) = &services.servers {
            servers.join();
        }
        let mut session = Session {
            id: id.clone(),
            log,
            history,
            own_tools: services.registry.clone(),
            services,
            watchers: Vec::new(),
            work: None,
            waiters: Waiters::default(),
            drops: BTreeMap::new(),
            status: Status::Idle,
            draft: Draft::default(),
            printed: BTreeMap::new(),
            opened_with: indexed.summary.entries,
            indexed,
            lost_entry: false,
            opening_notices,
            note,
            of_newer_build,
            effort_explained: false,
            held: VecDeque::new(),
            stopping_jobs: JoinSet::new(),
            looking: JoinSet::new(),
            // The user answers for the workspace in the root.
            was_asked: is_child,
            role,
            roles: None,
            skill_index: None,
            previewed: None,
            settling: Vec::new(),
            agent_news,
            asked: Vec::new(),
            reports_due: VecDeque::new(),
            to_tell: Vec::new(),
            wake_at: None,
            may_wake: true,
            budget: None,
            server_work: JoinSet::new(),
            errands: JoinSet::new(),
        };
        session.take_offer();
        task::spawn(session.run(inbox, job_news));
        Handle { id, commands }
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<Command>, mut job_news: mpsc::UnboundedReceiver<()>) {
        let mut servers_news = self.services.servers.as_ref().map(Servers::news);
        let done = loop {
            tokio::select! {
                command = inbox.recv() => match command {
                    None => break None,
                    Some(Command::Close(done)) => break Some(done),
                    Some(Command::Watch(reply)) => {
                        // The present has the jobs as they are; the news of them must not repeat it.
                        while job_news.try_recv().is_ok() {
                            self.publish_jobs();
                        }
                        self.watch(reply);
                    }
                    Some(Command::Agent { path, reply }) => self.open_agent(path, reply),
                    Some(Command::TellAgent { name, how, text, reply }) => self.tell_agent(name, how, text, reply),
                    Some(Command::WindUp(limit)) => self.wind_up(*limit),
                    Some(Command::Settle(reply)) => self.settling.push(reply),
                    Some(Command::Input { input, reply }) => self.take(input, reply).await,
                },
                report = next_report(&mut self.work) => self.on_report(report).await,
                Some(()) = job_news.recv() => self.publish_jobs(),
                Some(news) = self.agent_news.recv() => self.on_agent_news(news).await,
                () = at(self.wake_at), if self.wake_at.is_some() => self.wake().await,
                () = servers::news(&mut servers_news) => self.look_at_servers(),
                Some(Ok(done)) = self.server_work.join_next() => self.on_server_work(done),
                Some(done) = self.errands.join_next() => self.on_errand(done).await,
                Some(stopped) = self.stopping_jobs.join_next() => self.on_stopped_job(stopped),
                Some(Ok(looked)) = self.looking.join_next() => self.on_looked(looked),
            }
            while !self.is_travelling()
                && let Some((input, reply)) = self.held.pop_front()
            {
                self.take(input, reply).await;
            }
            // Every Input so far was taken in, and nothing that has to end first still runs.
            if !self.is_travelling() && self.stopping_jobs.is_empty() && self.looking.is_empty() {
                for caller in self.settling.drain(..) {
                    let _ = caller.send(());
                }
            }
        };
        self.interrupt().await;
        self.close_agents().await;
        self.finish_travel().await;
        if let Some(jobs) = &self.services.jobs {
            jobs.stop_all().await;
            self.close_job_guards().await;
        }
        if let Some(servers) = &self.services.servers {
            servers.leave().await;
        }
        if !self.discard_if_empty() && self.indexed.summary.entries > self.opened_with {
            self.index().await;
        }
        // The lock is free, and the watchers know, before the caller of `close` goes on.
        drop(self);
        if let Some(done) = done {
            let _ = done.send(());
        }
    }

    /// A restore, a fork or a move of the head is under way. One that waits for the model is like a Turn: Inputs queue.
    fn is_travelling(&self) -> bool {
        let is_travel = |work: &Work| matches!(work.job, Job::Travel(_));
        self.work.as_ref().is_some_and(is_travel) && !matches!(self.status, Status::Thinking | Status::Compacting)
    }

    /// One step of the actor: past, present and the first event that follows them belong together.
    fn watch(&mut self, reply: oneshot::Sender<Watch>) {
        let outbox = Arc::<Outbox>::default();
        self.watchers.retain(|it| Arc::strong_count(it) > 1);
        self.watchers.push(Arc::clone(&outbox));
        let watch = Watch::new(self.history.clone(), self.now(), Arc::clone(&outbox));
        // Notices for this watcher; those that were here before have theirs.
        let mut notices = Vec::new();
        if let LogAccess::ReadOnly(why) = &self.log {
            notices.push((Severity::Warning, why.code.name(), why.message.clone(), Some(why.remedy.clone())));
        }
        if let Some(note) = self.of_newer_build.take() {
            self.notice(Severity::Info, NoticeCode::LogFromNewerBuild.name(), note);
        }
        notices.append(&mut self.opening_notices);
        if let Some(note) = self.note.take() {
            notices.push((Severity::Warning, NoticeCode::ProviderReplaced.name(), note, None));
        }
        let wished = self.history.settings.effort.as_deref().and_then(|it| Effort::parse(it).ok());
        if let Some(effort) = wished.filter(|_| !std::mem::replace(&mut self.effort_explained, true)) {
            let code = NoticeCode::EffortMapped.name();
            notices.extend(self.effort_notice(effort).map(|text| (Severity::Info, code, text, None)));
        }
        for (severity, code, message, remedy) in notices {
            let live = Live::Notice { severity, code: code.to_owned(), message, remedy };
            outbox.push(Event::Live(self.live_event(live)));
        }
        let _ = reply.send(watch);
        // Without a user there is nothing to ask.
        let may_ask = self.services.options.can_ask && matches!(self.log, LogAccess::Writes(_));
        if may_ask && !std::mem::replace(&mut self.was_asked, true) {
            self.look(false);
        }
    }

    fn now(&self) -> Now {
        let running = self.work.as_ref().and_then(Work::turn);
        let own_approvals = running.into_iter().flat_map(|turn| &turn.approvals).map(|it| it.approval.clone());
        let own_forms = running.into_iter().flat_map(|turn| &turn.forms).map(|it| it.form.clone());
        Now {
            status: self.status,
            turn: running.map(|turn| turn.number),
            read_only: matches!(self.log, LogAccess::ReadOnly(_)),
            sandbox: match self.log {
                LogAccess::ReadOnly(_) => None,
                LogAccess::Writes(_) => Some(self.services.sandbox.tier()),
            },
            approvals: own_approvals.chain(self.asked.iter().filter_map(asked_approval)).collect(),
            forms: own_forms.chain(self.asked.iter().filter_map(asked_form)).collect(),
            queue: self.queue(),
            jobs: self.services.jobs.as_ref().map_or(Vec::new(), |jobs| jobs.list()),
            draft: self.draft.clone(),
            printed: self.printed.clone(),
            children: self.services.agents.as_ref().map_or(Vec::new(), |agents| agents.list()),
            waking: self.is_waking(),
        }
    }

    // ─── Inputs ───

    async fn take(&mut self, input: Input, reply: Option<Reply>) {
        if self.is_travelling() && input != Input::Interrupt {
            self.held.push_back((input, reply));
            return;
        }
        let name = input.name();
        if let Some(Err(error)) = input.message().map(Message::check_context) {
            return self.answer_input(name, reply, Err(error));
        }
        let outcome = match input {
            Input::Interrupt => Ok(self.interrupt().await),
            Input::Decide { call_id, decision, word } => self.decide(&call_id, decision, word.as_deref()),
            Input::Answer { call_id, answers } => self.answer(&call_id, answers),
            Input::StopJob { job } => return self.stop_job(job, reply),
            Input::ListJobs => Ok(self.list_jobs().await),
            Input::ToAgent { path, input } => return self.pass_to_agent(path, *input, reply),
            Input::SpawnAgent { task, role, name } => {
                return self.spawn_agent(Order { task, role, name, ..Order::default() }, reply);
            }
            Input::StopAgents { path } => return self.stop_agent(path, reply),
            Input::Adopt { path, options, later } => return self.adopt(path, options, later, reply),
            Input::StopAsking => Ok(self.stop_asking()),
            Input::ListRules => Ok(self.list_rules()),
            Input::Mcp { server, act } => return self.act_on_server(server, act, reply),
            Input::RevokeRule { id } => self.services.store.rules().revoke(&id).map(|()| self.list_rules()),
            Input::AddFolder { path, access, holds } => self.add_folder(&path, access, holds),
            Input::ShowTrust => {
                self.look(true);
                Ok(Accepted::default())
            }
            Input::AnswerTrust { answer, seen, folder: None } => self.answer_trust(answer, &seen),
            Input::AnswerTrust { answer, seen, folder: Some(folder) } => self.answer_trust_of(&folder, answer, &seen),
            Input::Prompt(message) | Input::FollowUp(message) if self.work.is_some() => {
                self.wait_in_line(Waiting::Say(message))
            }
            Input::UseTemplate { name: template, args, attachments } => {
                self.use_template(name, &template, &args, attachments).await
            }
            Input::Steer(message) if self.work.is_some() => self.steer(message),
            Input::Prompt(message) | Input::FollowUp(message) | Input::Steer(message) => {
                self.begin_turn(name, message, Delivery::Prompt).await
            }
            Input::Dequeue => {
                self.clear_queue();
                Ok(Accepted::default())
            }
            Input::Set(change) => self.set(change).await,
            Input::Label { seq, text } => self.mark(Label { seq, text: Some(text), ..Label::default() }).await,
            Input::Pin { seq, pinned } => self.mark(Label { seq, pinned: Some(pinned), ..Label::default() }).await,
            Input::ShowContext => Ok(self.show_context()),
            Input::Drop { seq, dropped } => self.drop_entry(seq, dropped).await,
            Input::RemoveBranch { seq } => self.remove_branch(seq).await,
            Input::RestoreBranch { seq } => self.restore_branch(seq).await,
            Input::RunWorkflow(_)
            | Input::ResumeWorkflow { .. }
            | Input::Compact { .. }
            | Input::MoveHead { .. }
            | Input::Undo { .. }
            | Input::Redo { .. }
            | Input::RevertHunk { .. }
            | Input::Fork { .. }
            | Input::Init
            | Input::ActivateSkill { .. }
                if self.work.is_some() =>
            {
                Err(Error::new(Code::InvalidArgs, "that is not possible while a turn is running", Remedy::Interrupt))
            }
            Input::Undo { .. } | Input::Redo { .. } | Input::RevertHunk { .. } if self.agents_run() => Err(Error::new(
                Code::InvalidArgs,
                "agents still change files",
                "wait for them or stop them, then try again",
            )),
            // These may take long: they run beside the actor, which hears an interrupt meanwhile and answers in the end.
            Input::Compact { instructions, dry_run, options } => {
                match self.compact(instructions, dry_run, options).await {
                    Ok(Some(trip)) => return self.set_out(name, reply, trip),
                    Ok(None) => Ok(Accepted::default()),
                    Err(error) => Err(error),
                }
            }
            Input::MoveHead { to_seq, summarize, files } => {
                return self.set_out(name, reply, Trip::MoveHead { to_seq, summarize, files });
            }
            Input::Undo { turn, options } => return self.set_out(name, reply, Trip::Undo { turn, options }),
            Input::Redo { options } => return self.set_out(name, reply, Trip::Redo { options }),
            Input::RevertHunk { hunk, options } => {
                return self.set_out(name, reply, Trip::RevertHunk { hunk, options });
            }
            Input::KeepHunk(review) => self.record(None, review.into()).await.map(|_| Accepted::default()),
            Input::Fork { seq } => return self.set_out(name, reply, Trip::Fork { seq }),
            Input::Init => self.begin_init(name).await,
            Input::RunWorkflow(order) => self.run_workflow(name, order).await,
            Input::ResumeWorkflow { decisions, graph } => self.resume_workflow(name, decisions, graph).await,
            Input::ActivateSkill { name: skill, args, attachments } => {
                self.activate_skill(name, &skill, args, attachments).await
            }
            Input::RunUserCommand { command, send_to_model } if self.work.is_some() => {
                self.wait_in_line(Waiting::Run { command, send_to_model })
            }
            Input::RunUserCommand { command, send_to_model } => self.run_command(name, command, send_to_model).await,
        };
        self.answer_input(name, reply, outcome);
    }

    /// Tells the watchers about a refusal, and the caller about either.
    fn answer_input(&mut self, input: &'static str, reply: Option<Reply>, outcome: Result<Accepted>) {
        if let Err(error) = &outcome {
            self.refuse(input, error);
        }
        if let Some(reply) = reply {
            let _ = reply.send(outcome);
        }
    }

    fn refuse(&mut self, input: &'static str, error: &Error) {
        self.publish(Live::Refused(Refusal { input: input.to_owned(), error: error.body() }));
    }

    async fn set(&mut self, mut change: SettingsChange) -> Result<Accepted> {
        // Another model may take tools; one that does not says so again.
        let is_other = change.model.as_ref().is_some_and(|it| *it != self.history.settings.model);
        if is_other
            && change.toolset.is_none()
            && self.history.settings.toolset == Toolset::None
            && !self.services.options.keeps_toolset
        {
            change.toolset = Some(Toolset::Typed);
        }
        if let Some(provider) = &change.provider {
            self.services.providers.now().connect(provider)?;
        }
        let effort = change.effort.as_deref().filter(|name| !name.is_empty()).map(Effort::parse).transpose()?;
        let role = self.role_for(&change).await?;
        self.record(None, SettingsChanged::from(change).into()).await?;
        self.take_role(role);
        if let Some(text) = effort.and_then(|effort| self.effort_notice(effort)) {
            self.notice(Severity::Info, NoticeCode::EffortMapped.name(), text);
        }
        Ok(Accepted::default())
    }

    /// Models take different efforts. This says which one the model gets instead, if it is another.
    fn effort_notice(&self, effort: Effort) -> Option<String> {
        let Settings { provider, model, .. } = &self.history.settings;
        match self.services.providers.now().facts(provider, model).effort(Some(effort.name())) {
            Some(asked) if asked == effort.name() => None,
            Some(asked) => Some(format!("{model} does not know the effort {}; it gets {asked} instead", effort.name())),
            None => Some(format!("{model} does not let you set an effort")),
        }
    }

    async fn mark(&mut self, mark: Label) -> Result<Accepted> {
        on_entry(&self.history, mark.seq)?;
        self.record(None, mark.into()).await?;
        Ok(Accepted::default())
    }

    fn list_rules(&mut self) -> Accepted {
        let loaded = self.services.store.rules().load();
        let rules = loaded.in_force(Some(&self.id), self.services.workspace.root(), jiff::Timestamp::now());
        self.publish(Live::RulesListed { rules, warning: loaded.warning() });
        Accepted::default()
    }

    /// A Session in which nothing was said leaves no files behind when it closes.
    fn discard_if_empty(&self) -> bool {
        if let LogAccess::Writes(log) = &self.log
            && let Some(path) = log.path()
            && !self.services.options.keeps_unused
            // Only if it began here; a Log that was found may be all that is left of a conversation.
            && self.opened_with == 1
            && !self.lost_entry
            && !self.history.entries().iter().any(|e| e.fact.is_conversation() || matches!(e.fact, Fact::LogRepaired(_)))
            // A draft that was left in it is found again at the next start.
            && self.services.place(&self.id).presenter_state().is_none()
        {
            let _ = std::fs::remove_file(path);
            let _ = storage::removal::remove_folder(&self.services.place(&self.id).own_folder());
            return true;
        }
        false
    }

    fn live_event(&self, live: Live) -> LiveEvent {
        let turn = self.work.as_ref().and_then(Work::turn).map(|turn| turn.number);
        LiveEvent { session_id: self.id.clone(), turn, agent_path: Vec::new(), live }
    }
}

async fn at(time: Option<tokio::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn asked_approval(event: &LiveEvent) -> Option<Approval> {
    if let Live::ApprovalRequested(it) = &event.live { Some(it.clone()) } else { None }
}

fn asked_form(event: &LiveEvent) -> Option<Form> {
    if let Live::FormOpened(it) = &event.live { Some(it.clone()) } else { None }
}

/// The conversation has an entry with this number.
fn on_entry(history: &History, seq: u64) -> Result<()> {
    match history.entry(seq) {
        Some(entry) if entry.fact.is_conversation() => Ok(()),
        Some(_) | None => {
            Err(Error::new(Code::NotFound, format!("there is no message with number {seq}"), Remedy::ShowTree)
                .with("input", seq))
        }
    }
}
