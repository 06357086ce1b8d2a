//! The running Turn: how it begins, what its reports lead to, how it ends.

use serde_json::Map;
use tokio::sync::{oneshot, watch};
use tracing::Instrument as _;

use super::work::{Job, OpenApproval, OpenForm, RunningTurn, Work};
use super::{Session, Travel};
use call::agents::Stop;
use context::prompt;
use conversation::history::{History, Settings};
use protocol::error::{Code, Error, ErrorBody, NoticeCode, Result};
use protocol::event::{
    AssistantMessage, Attachment, Delivery, Fact, Live, Reasoning, SettingsChanged, Severity, Status, ToolResult,
    TurnEnded, TurnStatus, UserCommand, UserMessage,
};
use protocol::input::{Accepted, Message, SettingsChange};
use turn::{Next, Outcome, Report, Reports, Signals, Step, Turn};

/// How much of the end of a call's output is kept in case the call is cut off, bytes.
const MOST_PRINTED: usize = 8 << 10;

impl Session {
    pub(super) async fn begin_turn(
        &mut self,
        input: &'static str,
        message: Message,
        delivery: Delivery,
    ) -> Result<Accepted> {
        let message = self.said(message, delivery);
        self.begin(input, message.into(), Turn::run, Status::Thinking).await
    }

    /// The user's own command is a Turn that asks no model.
    pub(super) async fn run_command(
        &mut self,
        input: &'static str,
        command: String,
        send_to_model: bool,
    ) -> Result<Accepted> {
        let call_id = format!("user_{}", self.history.entries().len());
        let ran = UserCommand { call_id: call_id.clone(), command: command.clone(), send_to_model };
        self.begin(input, ran.into(), |turn| turn.run_command(call_id, command), Status::Working).await
    }

    pub(super) async fn begin<F>(
        &mut self,
        input: &'static str,
        first: Fact,
        run: impl FnOnce(Turn) -> F,
        status: Status,
    ) -> Result<Accepted>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.begin_bounded(input, first, |_| (), run, status).await
    }

    /// Begins a Turn whose limits are not only those of the options.
    pub(super) async fn begin_bounded<F>(
        &mut self,
        input: &'static str,
        first: Fact,
        bound: impl FnOnce(&mut Turn),
        run: impl FnOnce(Turn) -> F,
        status: Status,
    ) -> Result<Accepted>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.close_open_turn().await?;
        self.offer_tools().await?;
        let number = self.history.turns + 1;
        let is_woken = matches!(first, Fact::AgentEvent(_));
        self.record(Some(number), first).await?;
        let (sender, reports) = Reports::channel();
        let (steered, is_steered) = watch::channel(false);
        let entries = self.history.entries().len();
        let Settings { provider, model, .. } = self.history.settings.clone();
        let (wind_up, wound_up) = oneshot::channel();
        let signals = Signals { steered: is_steered, wound_up };
        let mut turn = Turn::new(sender, signals, &self.id, entries, (provider, model), &self.services);
        bound(&mut turn);
        // A Turn that reports of agents begin draws on the budget of the Turn before it.
        if let Some(budget) = self.budget.take().filter(|_| is_woken) {
            turn.draw_from(budget);
        }
        self.budget = turn.budgets().first().cloned();
        self.wake_at = None;
        self.may_wake = true;
        if let Some(agents) = &self.services.agents {
            agents.begin_turn(turn.budgets(), is_woken);
        }
        self.draft = Default::default();
        self.printed.clear();
        // What its work writes to the log of the program names it.
        let span = tracing::error_span!("turn", session = %self.id, turn = number);
        let task = task::spawn(run(turn).instrument(span));
        self.work =
            Some(Work { job: Job::Turn(Box::new(RunningTurn::new(number, steered, wind_up))), input, task, reports });
        self.set_status(status);
        Ok(Accepted { turn: Some(number), ..Accepted::default() })
    }

    /// The message as it is recorded.
    pub(super) fn said(&mut self, message: Message, delivery: Delivery) -> UserMessage {
        let Message { text, attachments, context, template } = message;
        self.warn_of_images(&attachments);
        UserMessage { text, delivery, attachments, context, template }
    }

    /// A model that sees no images is told that there are some; the user is told that.
    fn warn_of_images(&mut self, attachments: &[Attachment]) {
        let Settings { provider, model, .. } = &self.history.settings;
        if !attachments.is_empty() && !self.services.providers.now().facts(provider, model).sees_images {
            let text = format!("{model} does not accept images; it is only told that there is one");
            self.notice(Severity::Warning, Code::VisionUnsupported.name(), text);
        }
    }

    async fn close_open_turn(&mut self) -> Result<()> {
        let turn = Some(self.history.turns).filter(|n| *n > 0);
        for fact in self.results_cut_off().await {
            self.record(turn, fact).await?;
        }
        for fact in self.history.repairs() {
            self.record(turn, fact).await?;
        }
        Ok(())
    }

    // ─── Reports ───

    pub(super) async fn on_report(&mut self, report: Option<Report>) {
        match report {
            Some(Report::NextStep(reply)) => match self.next_step().await {
                Ok(next) => drop(reply.send(next)),
                Err(error) => self.end_turn(Outcome::failed(error)).await,
            },
            Some(Report::Record { fact, reply }) => match self.record_report(*fact).await {
                Ok(()) => drop(reply.send(())),
                // The Log can still be written, so the Turn gets its end. A restore or a fork is abandoned as below.
                Err(error) if error.code == Code::LogEncodeFailed && self.runs_turn() => {
                    self.end_turn(Outcome::failed(error)).await;
                }
                // The work waits for a reply that never comes, so that nothing runs after a failed write.
                Err(error) => self.abandon(error).await,
            },
            Some(Report::Live(live)) => self.relay(live),
            Some(Report::Permissions(reply)) => {
                let _ = reply.send(self.services.standing.now());
            }
            // The Turn that asks began when a user could answer.
            Some(Report::RequestApproval { reply, .. }) if !self.services.options.can_ask => drop(reply.send(None)),
            Some(Report::OpenForm { reply, .. }) if !self.services.options.can_ask => drop(reply.send(None)),
            Some(Report::RequestApproval { approval, reply }) => {
                if let Some(turn) = self.work.as_mut().and_then(Work::turn_mut) {
                    turn.approvals.push(OpenApproval { approval: approval.clone(), reply });
                }
                self.set_status(Status::Asking);
                self.publish(Live::ApprovalRequested(approval));
            }
            Some(Report::OpenForm { form, reply }) => {
                if let Some(turn) = self.work.as_mut().and_then(Work::turn_mut) {
                    turn.forms.push(OpenForm { form: form.clone(), reply });
                }
                self.set_status(Status::Asking);
                self.publish(Live::FormOpened(form));
            }
            Some(Report::Compact { attempt, window, tokens, reply }) => {
                let _ = reply.send(self.make_room(attempt, window, tokens).await);
            }
            Some(Report::OfferSkills { index, roles, reply }) => {
                self.roles = roles;
                match self.offer_skills(index).await {
                    Ok(()) => drop(reply.send(())),
                    Err(error) => self.abandon(error).await,
                }
            }
            Some(Report::FallBack { reason, reply }) => match self.fall_back(&reason).await {
                Ok(found) => drop(reply.send(found)),
                Err(error) => self.abandon(error).await,
            },
            Some(Report::KeepDraft { reply }) => match self.keep_draft().await {
                Ok(()) => drop(reply.send(())),
                Err(error) if error.code == Code::LogEncodeFailed => self.end_turn(Outcome::failed(error)).await,
                Err(error) => self.abandon(error).await,
            },
            Some(Report::CutOff { reply }) => match self.cut_off().await {
                Ok(()) => drop(reply.send(())),
                Err(error) if error.code == Code::LogEncodeFailed => self.end_turn(Outcome::failed(error)).await,
                Err(error) => self.abandon(error).await,
            },
            Some(Report::Tell { source, text, reply }) => match self.tell(source, text).await {
                Ok(()) => drop(reply.send(())),
                Err(error) => self.abandon(error).await,
            },
            Some(Report::ForgetReasoning { reply }) => {
                self.history.forget_reasoning();
                let _ = reply.send(());
            }
            Some(Report::LeaveOut { tool, reason, reply }) => match self.leave_out(&tool, &reason).await {
                Ok(is_left_out) => drop(reply.send(is_left_out)),
                Err(error) => self.abandon(error).await,
            },
            Some(Report::DropTools { reason, reply }) => match self.drop_tools(&reason).await {
                Ok(is_dropped) => drop(reply.send(is_dropped)),
                Err(error) => self.abandon(error).await,
            },
            Some(Report::Lighten { refused, reply }) => match self.lighten(&refused).await {
                Ok(is_lighter) => drop(reply.send(is_lighter)),
                Err(error) => self.abandon(error).await,
            },
            Some(Report::Done(outcome)) => self.end_turn(outcome).await,
            Some(Report::Arrived(outcome)) => self.arrived(outcome).await,
            // A panic closed the channel before the work could say how it ended.
            None => self.broke_off().await,
        }
        // Messages behind a Turn that was abandoned do not wait for another one.
        self.begin_next().await;
    }

    fn runs_turn(&self) -> bool {
        self.work.as_ref().and_then(Work::turn).is_some()
    }

    async fn broke_off(&mut self) {
        if self.runs_turn() {
            let message = "the turn failed because of a bug in pixir";
            let error = Error::new(Code::CommandFailed, message, "send the message again; pixir.log has the details");
            self.end_turn(Outcome::failed(error)).await;
        } else {
            self.arrived(Err(Travel::broke_off())).await;
        }
    }

    /// Between two requests every call has its result, so steers may join the conversation.
    async fn next_step(&mut self) -> Result<Next> {
        let turn = self.work.as_ref().and_then(Work::turn).map(|turn| turn.number);
        self.join_steers(turn).await?;
        self.record_drops().await?;
        self.deliver_reports(turn).await?;
        self.tell_surroundings(turn).await?;
        if let Some(request) = self.relieve_pressure().await? {
            self.set_status(Status::Compacting);
            return Ok(Next::Summarize(request));
        }
        // A compaction may have replaced what told of the last change.
        self.tell_surroundings(turn).await?;
        self.offer_skills_again().await?;
        self.draft = Default::default();
        self.set_status(Status::Thinking);
        let settings = &self.history.settings;
        let provider = self.services.providers.now().connect(&settings.provider)?;
        let facts = provider.facts(&settings.model);
        let toolset = settings.toolset;
        let scale = self.history.scale(self.fixed_tokens());
        let services = &self.services;
        // A fork begins as its family did, so a prefix that the Provider has cached for one serves all.
        let family = self.history.family.as_deref().unwrap_or(self.id.as_str());
        let request = prompt::request(&self.history, services.specs(toolset), &services.blobs, family);
        let registry = services.registry.clone();
        Ok(Next::Request(Box::new(Step { provider, facts, toolset, registry, request, scale })))
    }

    /// Continues with the next fallback model. Returns whether there is one.
    async fn fall_back(&mut self, reason: &str) -> Result<bool> {
        let Settings { provider, model, .. } = self.history.settings.clone();
        let Some((next_provider, next_model)) = self.services.providers.now().fallback_after(&provider, &model) else {
            return Ok(false);
        };
        // The part that arrived belongs to the model before.
        self.keep_draft().await?;
        let text =
            format!("{provider}/{model} does not answer ({reason}); {next_provider}/{next_model} answers from now on");
        let change = SettingsChange { provider: Some(next_provider), model: Some(next_model), ..Default::default() };
        let turn = self.work.as_ref().and_then(Work::turn).map(|turn| turn.number);
        let change = SettingsChanged { reason: Some(text.clone()), ..SettingsChanged::from(change) };
        self.record(turn, change.into()).await?;
        self.notice(Severity::Warning, NoticeCode::ProviderReplaced.name(), text);
        Ok(true)
    }

    async fn keep_draft(&mut self) -> Result<()> {
        let text = std::mem::take(&mut self.draft).text;
        let turn = self.work.as_ref().and_then(Work::turn).map(|turn| turn.number);
        if text.is_empty() {
            return Ok(());
        }
        self.record(turn, AssistantMessage { text, partial: true, phase: None }.into()).await
    }

    async fn record_report(&mut self, fact: Fact) -> Result<()> {
        let turn = self.work.as_mut().and_then(Work::turn_mut);
        let number = turn.as_ref().map(|turn| turn.number);
        if let Some(turn) = turn {
            match &fact {
                Fact::ProviderUsage(it) => {
                    turn.usage += it.usage;
                    turn.usage_estimated |= it.estimated;
                    turn.cost += it.cost;
                }
                Fact::ToolCall(_) => turn.tool_calls += 1,
                Fact::AssistantMessage(_) => self.draft = Default::default(),
                Fact::ToolResult(it) => {
                    self.printed.remove(&it.call_id);
                    // The call that asked has ended.
                    turn.forms.retain(|open| open.form.call_id != it.call_id);
                }
                _ => {}
            }
        }
        self.record(number, fact).await
    }

    fn relay(&mut self, live: Live) {
        match &live {
            Live::TextDelta { text } => self.draft.text.push_str(text),
            Live::ReasoningDelta { text } => self.draft.reasoning.push_str(text),
            Live::ToolOutputDelta { call_id, printed } => {
                let all = self.printed.entry(call_id.clone()).or_default();
                all.push(printed);
                all.keep_end(MOST_PRINTED);
            }
            // The next attempt begins at the start of the answer.
            Live::RetryScheduled { .. } => self.draft = Default::default(),
            Live::Status { status } => {
                self.set_status(*status);
                return;
            }
            Live::CompactionPreviewed(preview) => self.previewed = Some(preview.clone()),
            _ => {}
        }
        self.publish(live);
    }

    // ─── The end ───

    pub(super) async fn interrupt(&mut self) -> Accepted {
        self.clear_queue();
        let Some(work) = self.work.take() else { return Accepted::default() };
        let Work { job, input, mut task, mut reports } = work;
        let turn = match job {
            Job::Turn(turn) => turn,
            Job::Travel(travel) => {
                // It stops before the next file, and reports what it has done.
                let _ = travel.interrupt.send(true);
                self.work = Some(Work { job: Job::Travel(travel), input, task, reports });
                return Accepted::default();
            }
        };
        // No report is recorded from here on.
        reports.close();
        task.abort();
        let _ = (&mut task).await;
        self.may_wake = false;
        // The calls that waited for children are gone, so these stop.
        self.stop_agents(Stop::Awaited).await;
        let error = Error::new(Code::CommandFailed, "the turn was interrupted", "send a message to continue");
        let outcome = Outcome { status: TurnStatus::Interrupted, error: Some(error), details: Map::new() };
        let number = turn.number;
        self.record_end(turn, input, outcome).await;
        if let Err(error) = self.record_drops().await {
            self.refuse("drop", &error);
        }
        self.set_status(Status::Idle);
        Accepted { turn: Some(number), ..Accepted::default() }
    }

    /// Tells the running Turn that it has reached this limit.
    pub(super) fn wind_up(&mut self, limit: Error) {
        let turn = self.work.as_mut().and_then(Work::turn_mut);
        if let Some(wind_up) = turn.and_then(|turn| turn.wind_up.take()) {
            // A Turn that has just ended needs no limit any more.
            let _ = wind_up.send(limit);
        }
    }

    /// The Turn has dropped what ran: its part is recorded, so that another request can be made.
    async fn cut_off(&mut self) -> Result<()> {
        if let Some(turn) = self.work.as_mut().and_then(Work::turn_mut) {
            turn.approvals.clear();
            turn.forms.clear();
        }
        // The calls that waited for children are gone, so these stop.
        self.stop_agents(Stop::Awaited).await;
        self.keep_draft().await?;
        let turn = self.work.as_ref().and_then(Work::turn).map(|turn| turn.number);
        for fact in self.results_cut_off().await {
            self.record(turn, fact).await?;
        }
        Ok(())
    }

    async fn end_turn(&mut self, outcome: Outcome) {
        let Some(Work { job: Job::Turn(turn), input, .. }) = self.work.take_if(|work| work.turn().is_some()) else {
            return;
        };
        self.record_end(turn, input, outcome).await;
        if let Err(error) = self.record_drops().await {
            self.refuse("drop", &error);
        }
        self.set_status(Status::Idle);
        self.begin_next().await;
        self.gather_reports();
    }

    async fn record_end(&mut self, turn: Box<RunningTurn>, input: &'static str, outcome: Outcome) {
        let number = Some(turn.number);
        if let Some(error) = &outcome.error {
            tracing::warn!(session = %self.id, turn = turn.number, code = error.code.name(), "{}", error.message);
        }
        let draft = std::mem::take(&mut self.draft);
        let mut facts: Vec<Fact> = Vec::new();
        // What the user has seen of a loop stays on the screen. This reasoning is not sent again.
        let is_loop = outcome.error.as_ref().is_some_and(|error| error.code == Code::TextLoop);
        if is_loop && !draft.reasoning.is_empty() {
            let Settings { provider, model, .. } = self.history.settings.clone();
            facts.push(Reasoning { text: draft.reasoning, provider, model, item: None }.into());
        }
        if !draft.text.is_empty() {
            facts.push(AssistantMessage { text: draft.text, partial: true, phase: None }.into());
        }
        facts.extend(self.results_cut_off().await);
        let end = TurnEnded {
            status: outcome.status,
            error: outcome.error.map(|e| e.body().into()),
            usage: turn.usage,
            usage_estimated: turn.usage_estimated,
            cost: turn.cost,
            duration_ms: u64::try_from(turn.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            tool_calls: turn.tool_calls,
            details: outcome.details,
        };
        // An end without what others have written into it: texts and details can be too large for a line.
        let bare = TurnEnded {
            error: end.error.as_ref().map(|error| without_details(error.kind.code()).into()),
            details: Map::new(),
            ..end.clone()
        };
        facts.push(end.into());
        for fact in facts {
            let is_end = matches!(fact, Fact::TurnEnded(_));
            let recorded = match self.record(number, fact).await {
                Err(error) if error.code == Code::LogEncodeFailed && is_end => {
                    self.record(number, bare.clone().into()).await
                }
                // The Turn ends, also when one of its last parts is too large for the Log.
                Err(error) if error.code == Code::LogEncodeFailed => {
                    self.refuse(input, &error);
                    Ok(())
                }
                recorded => recorded,
            };
            if let Err(error) = recorded {
                self.refuse(input, &error);
                return self.publish_abandoned(turn.number, &error);
            }
        }
    }

    /// Results of calls that were cut off. They have the changes of files, so that those can be undone like any other.
    async fn results_cut_off(&mut self) -> Vec<Fact> {
        // A command that is still being stopped may still change files.
        self.services.stopping.finished().await;
        let orphans: Vec<String> = self.history.orphans().map(str::to_owned).collect();
        if orphans.is_empty() {
            return Vec::new();
        }
        let services = self.services.clone();
        let compare = move || services.snapshot.unrecorded(&services.workspace, &services.blobs);
        let made = task::spawn_blocking(compare).await.unwrap_or_default();
        let mut printed = std::mem::take(&mut self.printed);
        let mut result = |id: String| {
            let changes = made.iter().filter(|(of, _)| *of == id).map(|(_, change)| change.clone()).collect();
            let cut_off = History::orphan_result(&id);
            let before = printed.remove(&id).map_or(String::new(), |it| format!("{}\n", it.text.trim_end()));
            Fact::from(ToolResult { changes, output: format!("{before}{}", cut_off.output), ..cut_off })
        };
        orphans.into_iter().map(&mut result).collect()
    }

    /// The Log cannot be written: the work stops where it is, and its draft stays on the screen.
    pub(super) async fn abandon(&mut self, error: Error) {
        tracing::error!(session = %self.id, code = error.code.name(), "{}", error.message);
        if let Some(Work { job, input, mut task, reports }) = self.work.take() {
            match job {
                Job::Turn(turn) => {
                    // The user reads why before what still runs has stopped.
                    self.refuse(input, &error);
                    drop(reports);
                    task.abort();
                    let _ = (&mut task).await;
                    // The calls that waited for children are gone, so these stop.
                    self.stop_agents(Stop::Awaited).await;
                    self.publish_abandoned(turn.number, &error);
                }
                // Without its reports it ends by itself.
                Job::Travel(travel) => self.answer_input(input, travel.reply, Err(error)),
            }
        }
        self.set_status(Status::Idle);
    }

    /// A Turn is over without a `turn_ended` in the Log. Watchers that wait for its end need this event.
    fn publish_abandoned(&mut self, turn: u32, error: &Error) {
        self.publish(Live::TurnAbandoned { turn, error: Box::new(error.body()) });
    }
}

/// The error of a Turn whose own error is too large for the Log.
fn without_details(code: Code) -> ErrorBody {
    Error::new(code, "the turn failed; its error is too large for the session log", "send the message again").body()
}
