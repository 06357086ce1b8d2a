//! One Turn: ask the model, run the tools that it calls, repeat until an answer calls none.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::Map;
use tokio::sync::{mpsc, oneshot, watch};

use crate::call::present::Overflow;
use crate::call::{
    self, AgentPlace, Authority, Call, Caller, Context, Done, FormRequest, Gone, InTurn, Permissions, ResultLimits,
};
use crate::context::compaction::Room;
use crate::conversation::history::json_len;
use crate::protocol::call_info::{CallInfo, CallKind};
use crate::protocol::error::{Code, Error};
use crate::protocol::event::{
    Approval, AssistantMessage, Fact, Form, Live, PermissionDecision, Preview, Reasoning, Rule, Scope, SessionId,
    Severity, Status, ToolCall, Toolset, TurnStatus, WaitsOn,
};
use crate::protocol::input::{Decision, RuleReach};
use crate::protocol::remedy::{Limit, ModelNeed, Remedy};
use crate::provider::budget::Budget;
use crate::provider::gate::{Gate, Pass};
use crate::provider::retry::Retries;
use crate::provider::{Answer, AnswerPart, CallRequest, Ended, Failure};
use crate::storage::outputs;
use crate::tools::{bash, report};

mod budget; // what its requests may spend, and the question for more
mod call_ids; // one id for each call
mod ending; // outcomes of a Turn
mod relay; // parts of an answer, at most once per frame
mod reports; // reports of a Turn to its Session
mod services; // services and options of a Session
mod summary; // the request for the summary of a compaction
mod workflow; // a Turn that a scheduler carries out

pub(crate) use ending::Outcome;
use ending::{LoopGuard, MAX_CIRCLES, Reported, cut_short, empty_answer, too_large};
pub(crate) use relay::DeltaCoalescer;
pub(crate) use reports::{Halt, Next, Report, Reports, Step};
pub(crate) use services::Services;
pub use services::{AgentOptions, CompactionOptions, Limits, Options};
pub(crate) use summary::summarize;

/// The most read-only calls of one answer that run at the same time.
const AT_ONCE: usize = 16;
/// How often in a row a server may pause one answer.
const MAX_BREAKS: u32 = 8;
/// How often one request is compacted until it fits; each compaction leaves half as much as the one before.
const MAX_OVERFLOWS: u32 = 6;

/// Who counted the tokens of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UsageSource {
    Reported,
    Estimated,
}

impl UsageSource {
    fn of(is_estimated: bool) -> UsageSource {
        if is_estimated { UsageSource::Estimated } else { UsageSource::Reported }
    }
}

/// What an agent is told whose answer in words is not its result.
const REPORT_FIRST: &str =
    "your answer in words is not read: call the tool `report` with your result, also if it is incomplete";
/// What an agent is told at a limit.
const LAST_ANSWER: &str = "you have reached a limit, and no further call is run: say now in one answer what you found and did, \
                           with places as path:line, and what is missing. If you have the tool `report`, call it with that";

/// What a Session tells its running Turn.
pub(crate) struct Signals {
    /// A steer is waiting; it joins when the current call ends.
    pub(crate) steered: watch::Receiver<bool>,
    /// The Turn has reached this limit. Dropped without a word when the Turn may go on to its end.
    pub(crate) wound_up: oneshot::Receiver<Error>,
}

pub(crate) struct Turn {
    reports: Reports,
    steered: watch::Receiver<bool>,
    /// Taken when the Turn begins to run.
    wound_up: Option<oneshot::Receiver<Error>>,
    services: Services,
    /// The Provider and the model at the start of the Turn.
    model: (String, String),
    /// What its requests draw from: its own budget, then those of the Sessions above.
    budgets: Vec<Budget>,
    id: SessionId,
    outputs: PathBuf,
    /// Numbers the saved outputs, and calls whose id was taken. It starts at the length of the Log, which never shrinks, so
    /// no name is used twice.
    next_number: AtomicU64,
    began: Instant,
    /// Held by the call that starts something.
    starting: Arc<tokio::sync::Mutex<()>>,
}

impl Turn {
    pub(crate) fn new(
        reports: Reports,
        Signals { steered, wound_up }: Signals,
        id: &SessionId,
        entries: usize,
        model: (String, String),
        services: &Services,
    ) -> Turn {
        let Limits { max_tokens, max_cost_usd, .. } = services.options.limits;
        Turn {
            budgets: std::iter::once(Budget::new(max_tokens, max_cost_usd))
                .chain(services.budgets.iter().cloned())
                .collect(),
            reports,
            steered,
            wound_up: Some(wound_up),
            id: id.clone(),
            outputs: outputs::real(&services.place(id).outputs()),
            services: services.clone(),
            model,
            next_number: AtomicU64::new(entries as u64),
            began: Instant::now(),
            starting: Arc::default(),
        }
    }

    pub(crate) async fn run(mut self) {
        let wound_up = self.wound_up.take();
        let outcome = match self.services.options.limits.deadline {
            None => self.converse_until(wound_up).await,
            // The deadline drops the running work, which also stops its processes.
            Some(deadline) => {
                tokio::time::timeout(deadline, self.converse_until(wound_up)).await.unwrap_or_else(|_| {
                    let message =
                        format!("the turn reached its deadline of {} s without a final answer", deadline.as_secs());
                    let more = Remedy::RaiseLimit { limit: Limit::Deadline };
                    let fix = Remedy::any_of(["send a message to continue".into(), more]);
                    Ok(Outcome::incomplete(Error::new(Code::DeadlineReached, message, fix)))
                })
            }
        };
        if let Ok(outcome) = outcome {
            let _ = self.reports.send(Report::Done(outcome)).await;
        }
    }

    /// Converses until the answer is there or the Session says that a limit is reached. Then what runs is dropped, which
    /// also stops its processes, and the model answers once more.
    async fn converse_until(&self, wound_up: Option<oneshot::Receiver<Error>>) -> Result<Outcome, Gone> {
        let wound_up = async {
            match wound_up {
                Some(limit) => match limit.await {
                    Ok(limit) => limit,
                    Err(_) => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        };
        let limit = tokio::select! {
            biased;
            limit = wound_up => limit,
            outcome = self.converse() => return outcome,
        };
        self.ask_session(|reply| Report::CutOff { reply }).await?;
        self.sum_up(limit).await
    }

    async fn converse(&self) -> Result<Outcome, Gone> {
        let Options { limits, .. } = self.services.options;
        let mut rounds = 0;
        let mut overflows = 0;
        let mut breaks = 0;
        let mut forgot = false;
        let mut circle = LoopGuard::default();
        let mut has_spoken = false;
        let mut reported = self.services.reports.then(Reported::default);
        // A resumed Session, or one that has changed its model, may talk to a server that nobody has asked yet.
        let (provider, model) = &self.model;
        self.services.providers.now().prepared().await;
        self.services.providers.now().learn_window(provider, model).await;
        self.offer_skills().await?;
        loop {
            if limits.max_rounds.is_some_and(|most| rounds >= most) {
                let message = format!("the turn used all {rounds} rounds of tool calls without a final answer");
                let fix =
                    Remedy::any_of(["send a message to continue".into(), Remedy::RaiseLimit { limit: Limit::Rounds }]);
                return self.sum_up(Error::new(Code::IterationCap, message, fix)).await;
            }
            if let Err(error) = self.check_budgets().await? {
                return self.sum_up(error).await;
            }
            self.take_place_again().await?;
            let step = self.next_step().await?;
            let reserved = match self.reserve_or_ask(&step).await? {
                Ok(reserved) => reserved,
                Err(error) => return Ok(Outcome::incomplete(error)),
            };
            let answer = match self.ask_model(&step).await? {
                Ok(answer) => answer,
                Err(failure) if failure.error.code == Code::ContextOverflow && !failure.after_content => {
                    overflows += 1;
                    if overflows <= MAX_OVERFLOWS && self.compact(&step, overflows).await?.is_ok() {
                        continue;
                    }
                    return Ok(Outcome::failed(Error { remedy: smaller(step.toolset), ..failure.error }));
                }
                // Reasoning is only valid for the prompt prefix and model that it was produced with. The request can be
                // sent again without it.
                Err(failure) if failure.error.code == Code::ReasoningRejected && !failure.after_content && !forgot => {
                    forgot = true;
                    self.forget_reasoning().await?;
                    continue;
                }
                Err(failure) if failure.error.code == Code::AnswerTooLarge => return Ok(too_large(failure.error)),
                Err(failure) if Retries::may_pass_elsewhere(&failure) && self.fall_back(&failure.error).await? => {
                    continue;
                }
                Err(failure) if failure.after_content => {
                    return Ok(Outcome {
                        status: TurnStatus::PartialFailed,
                        error: Some(failure.error),
                        details: Map::new(),
                    });
                }
                Err(failure) => return Ok(Outcome::failed(failure.error)),
            };
            overflows = 0;
            let ended = answer.ended.clone();
            has_spoken |= !answer.text().trim().is_empty();
            let calls = self.record_answer(&step, answer).await?;
            drop(reserved);
            match ended {
                Ended::Whole => breaks = 0,
                Ended::Paused if breaks < MAX_BREAKS => {
                    breaks += 1;
                    if calls.is_empty() {
                        continue;
                    }
                }
                Ended::Paused => return Ok(cut_short("pause_turn")),
                Ended::CutShort(reason) => return Ok(cut_short(&reason)),
            }

            if calls.is_empty()
                && let Some(reported) = &mut reported
            {
                match reported.missing() {
                    Some(outcome) => return Ok(outcome),
                    None => self.tell("report", REPORT_FIRST).await?,
                }
                continue;
            }
            if calls.is_empty() {
                // After tool calls an empty answer is fine: there may be nothing to add. Before any, it is an error.
                return Ok(if !has_spoken && rounds == 0 { empty_answer() } else { Outcome::completed() });
            }
            let failed = self.perform(&step, &calls, &mut reported).await?;
            if let Some(outcome) = reported.as_ref().and_then(Reported::ending) {
                return Ok(outcome);
            }
            if circle.goes_on(calls, failed) {
                return Ok(Outcome::incomplete(Error::new(
                    Code::IterationCap,
                    format!("the model repeated the same failing calls {MAX_CIRCLES} times in a row"),
                    Remedy::any_of([
                        "tell the model what to do instead".into(),
                        Remedy::ChooseModel { need: ModelNeed::Any },
                    ]),
                )));
            }
            rounds += 1;
        }
    }

    /// At a limit an agent says once more what it found, because its parent reads nothing else. Its calls are not run, and
    /// the tools stay in the request, so that what the Provider has cached of it still serves.
    async fn sum_up(&self, limit: Error) -> Result<Outcome, Gone> {
        let ended = Outcome::incomplete(limit);
        if self.services.above.is_none() {
            return Ok(ended);
        }
        self.tell("limit", LAST_ANSWER).await?;
        let step = self.next_step().await?;
        // What other agents need is not drawn on.
        let Ok(_reserved) = self.reserve(&step) else { return Ok(ended) };
        let Ok(answer) = self.ask_model(&step).await? else { return Ok(ended) };
        let (reports, rest): (Vec<_>, Vec<_>) =
            self.record_answer(&step, answer).await?.into_iter().partition(|(call, _)| call.tool == report::NAME);
        self.perform(&step, &reports, &mut None).await?;
        let rest: Vec<Call> = rest.into_iter().map(|(call, _)| call).collect();
        let fix = "say what is missing; the agent can be told to go on";
        self.skip(&rest, &Error::new(Code::IterationCap, "not run: the agent has reached a limit", fix)).await?;
        Ok(ended)
    }

    // ─── The model ───

    async fn ask_model(&self, step: &Step) -> Result<Result<Answer, Failure>, Gone> {
        let patience = step.provider.patience();
        let mut retries = Retries::default();
        let mut has_part = false;
        loop {
            // The microseconds of the elapsed time are random enough for jitter.
            let jitter = f64::from(self.began.elapsed().subsec_micros() % 1000) / 1000.0;
            let gate = self.services.gates.of(&step.request.provider, step.provider.key_number());
            let pass = self.enter_gate(&gate, &step.request.provider, jitter).await?;
            let relay = DeltaCoalescer::new(&self.reports);
            let mut on_chunk = |chunk| relay.take(chunk);
            let outcome = relay.during(step.provider.answer(&step.request, &mut on_chunk)).await;
            drop(pass);
            let mut failure = match outcome {
                Ok(answer) => return Ok(Ok(answer)),
                Err(failure) => failure,
            };
            // The Provider also charges for the part of the answer that arrived.
            if let Some(usage) = failure.usage {
                let source = UsageSource::of(failure.usage_estimated);
                self.record_usage(step, usage, None, source).await?;
            }
            has_part |= failure.after_content;
            let Some(retry) = retries.next(&patience, &failure, tokio::time::Instant::now(), jitter) else {
                failure.after_content = has_part;
                return Ok(Err(patience.told_to_wait(failure)));
            };
            let is_limited = failure.error.code == Code::RateLimited;
            if is_limited {
                gate.hold(retry.wait);
            }
            // None of the calls of a broken answer has run, so the same request may be sent again.
            if failure.after_content {
                self.keep_draft().await?;
            }
            self.live(Live::RetryScheduled {
                attempt: retry.attempt,
                of: retry.of,
                wait_ms: millis(retry.wait),
                left_ms: retry.left.map(millis),
                reason: failure.error.message,
            })
            .await?;
            if is_limited {
                self.waits(Some(WaitsOn::Rate { wait_ms: millis(retry.wait) })).await?;
            }
            tokio::time::sleep(retry.wait).await;
            if is_limited {
                self.waits(None).await?;
            }
        }
    }

    /// Who watches an agent is told what it waits for.
    async fn waits(&self, on: Option<WaitsOn>) -> Result<(), Gone> {
        if self.services.above.is_none() {
            return Ok(());
        }
        self.live(Live::TurnWaits { on }).await
    }

    /// Returns when the request may be sent: that of the user at once, also while a pause lasts that agents keep.
    async fn enter_gate(&self, gate: &Arc<Gate>, provider: &str, jitter: f64) -> Result<Option<Pass>, Gone> {
        if self.services.above.is_none() {
            return Ok(None);
        }
        let mut changes = gate.changes();
        let mut told = None;
        let entering = Arc::clone(gate).enter(&self.services.holder.name, jitter);
        tokio::pin!(entering);
        let mut is_first = true;
        let pass = loop {
            tokio::select! {
                biased;
                pass = &mut entering => break pass,
                () = std::future::ready(()), if is_first => is_first = false,
                Ok(()) = changes.changed() => {}
            }
            // Those who have got their answers are named no more, and those who were sent meanwhile are.
            let holders = gate.holders();
            let waits = match gate.pause() {
                Some(wait) => Some(WaitsOn::Rate { wait_ms: millis(wait) }),
                None if holders.is_empty() => None,
                None => Some(WaitsOn::Requests { provider: provider.to_owned(), holders }),
            };
            if waits != told {
                self.waits(waits.clone()).await?;
                told = waits;
            }
        };
        if told.is_some() {
            self.waits(None).await?;
        }
        Ok(Some(pass))
    }

    /// Records an answer in its own order, and returns its calls.
    async fn record_answer(&self, step: &Step, answer: Answer) -> Result<Vec<(Call, CallInfo)>, Gone> {
        let (provider, model) = (step.request.provider.clone(), step.request.model.clone());
        if let Some(usage) = answer.usage {
            let source = UsageSource::of(answer.usage_estimated);
            self.record_usage(step, usage, answer.usd, source).await?;
        }
        let mut calls = Vec::new();
        for part in call_ids::unique(&step.request, answer.parts, &self.next_number) {
            match part {
                AnswerPart::Reasoning { text, item } => {
                    self.record(Reasoning { text, provider: provider.clone(), model: model.clone(), item }).await?;
                }
                AnswerPart::Text { text, phase } => {
                    self.record(AssistantMessage { text, partial: false, phase }).await?
                }
                AnswerPart::Call(CallRequest { id, name, args }) => {
                    let call = Call { id, tool: name, args, caller: Caller::Model };
                    let info = self.describe(&call, step.toolset).await;
                    self.record(ToolCall {
                        call_id: call.id.clone(),
                        name: call.tool.clone(),
                        args: (&call.args).into(),
                        info: Some(Box::new(info.clone())),
                    })
                    .await?;
                    calls.push((call, info));
                }
            }
        }
        Ok(calls)
    }

    /// An agent that gave its place away while it waited takes one before it goes on.
    async fn take_place_again(&self) -> Result<(), Gone> {
        let Some(place) = self.services.agent_place.as_ref().filter(|place| place.is_owed()) else { return Ok(()) };
        let taken = place.take();
        tokio::pin!(taken);
        if poll_once(taken.as_mut()).await {
            return Ok(());
        }
        self.waits(Some(WaitsOn::Place)).await?;
        taken.await;
        self.waits(None).await
    }

    // ─── Its tools ───

    /// Describes a call for the user. A tool may read the file system to do so, hence the blocking thread.
    async fn describe(&self, call: &Call, toolset: Toolset) -> CallInfo {
        let (registry, call) = (self.services.registry.clone(), call.clone());
        let ctx = self.services.context(&call.id, toolset, true);
        let unknown = CallInfo::unknown(&call.tool, &call.args);
        tokio::task::spawn_blocking(move || call::describe(&registry, &call, &ctx)).await.unwrap_or(unknown)
    }

    /// Runs the calls of an answer. Returns whether all of them failed.
    async fn perform(
        &self,
        step: &Step,
        calls: &[(Call, CallInfo)],
        reported: &mut Option<Reported>,
    ) -> Result<bool, Gone> {
        self.live(Live::Status { status: Status::Working }).await?;
        let limits = self.limits_of_results(step, calls);
        let mut rest = calls;
        let mut failed = true;
        while !rest.is_empty() {
            if *self.steered.borrow() {
                let skipped: Vec<Call> = rest.iter().map(|(call, _)| call.clone()).collect();
                let error = Error::new(
                    Code::SkippedForSteer,
                    "not run: the user sent a message before the call started",
                    "read the message, then decide again",
                );
                return self.skip(&skipped, &error).await.map(|()| false);
            }
            let mut readers = 0;
            let together = rest.iter().take_while(|(_, info)| {
                // How many agents run is bounded for the whole tree.
                readers += usize::from(info.kind != CallKind::Agent);
                runs_beside(info) && readers <= AT_ONCE
            });
            let together = together.count();
            let (now, later) = rest.split_at(together.max(1));
            // Results are recorded in the order of the calls, whichever ended first.
            let all = join_all(now.iter().map(|(call, info)| self.call_in_turn(call, info, step, limits))).await;
            for (done, (call, _)) in all.into_iter().zip(now) {
                let Done { result, facts, lease, .. } = done?;
                if let Some(reported) = reported.as_mut().filter(|_| call.tool == report::NAME) {
                    reported.take(result.error.is_none());
                }
                failed &= result.error.is_some();
                for fact in facts {
                    self.record(fact).await?;
                }
                self.record(result).await?;
                drop(lease);
            }
            rest = later;
        }
        Ok(failed)
    }

    async fn skip(&self, calls: &[Call], why: &Error) -> Result<(), Gone> {
        for call in calls {
            self.record(Done::failed(call, why).result).await?;
        }
        Ok(())
    }

    /// Runs the command that the user typed.
    pub(crate) async fn run_command(self, call_id: String, command: String) {
        let args = serde_json::json!({ "command": command, "timeout": bash::MAX_TIMEOUT });
        let call = Call { id: call_id, tool: bash::NAME.into(), args, caller: Caller::User };
        let ctx = self.services.context(&call.id, Toolset::Both, false);
        let Ok(Done { result, .. }) = self.call(&call, ctx, InTurn::default()).await else { return };
        if self.record(result).await.is_ok() {
            let _ = self.reports.send(Report::Done(Outcome::completed())).await;
        }
    }

    /// Runs one of several calls. Those that start agents do so in their order.
    async fn call_in_turn(
        &self,
        call: &Call,
        info: &CallInfo,
        step: &Step,
        limits: ResultLimits,
    ) -> Result<Done, Gone> {
        let in_turn = if info.kind == CallKind::Agent {
            // The mutex is fair, and the calls of an answer are polled in their order.
            InTurn::new(Arc::clone(&self.starting).lock_owned().await)
        } else {
            InTurn::default()
        };
        let ctx = Context { limits, ..self.services.context(&call.id, step.toolset, step.facts.sees_images) };
        self.call(call, ctx, in_turn).await
    }

    /// How much of each result the model reads: what is set, and in a small window less, so that the results of one answer
    /// stay beside a compaction.
    fn limits_of_results(&self, step: &Step, calls: &[(Call, CallInfo)]) -> ResultLimits {
        let set = self.services.options.results;
        let Some(window) = step.facts.working_window() else { return set };
        let args: usize = calls.iter().map(|(call, _)| json_len(&call.args)).sum();
        let fixed = step.scale.count(step.request.fixed_tokens() + args as u64 / 4);
        let room = Room { window, fixed, scale: step.scale, shrink: 0 };
        set.at_most(room.results() / calls.len().max(1))
    }

    /// Runs one call, from its arguments to its result, and reports its progress, approvals and forms.
    async fn call(&self, call: &Call, ctx: Context, in_turn: InTurn) -> Result<Done, Gone> {
        self.attend(call, ctx, in_turn, |ctx| call::carry_out(&self.services.registry, call, ctx, self)).await
    }

    /// Reports the progress and the forms of a call while it is carried out.
    async fn attend<F>(
        &self,
        call: &Call,
        ctx: Context,
        in_turn: InTurn,
        carry_out: impl FnOnce(Context) -> F,
    ) -> Result<Done, Gone>
    where
        F: Future<Output = Result<Done, Gone>>,
    {
        let (forms, mut opened) = mpsc::channel(1);
        let (progress, mut printed) = mpsc::channel(64);
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let done = carry_out(Context {
            in_turn,
            steered: Some(self.steered.clone()),
            overflow: Some(Overflow { folder: self.outputs.clone(), name: format!("cmd-{number}") }),
            forms: Some(forms).filter(|_| self.services.options.can_ask),
            progress: Some(progress),
            ..ctx
        });
        tokio::pin!(done);
        let mut aside = None;
        loop {
            tokio::select! {
                done = &mut done => {
                    drop(aside);
                    return done;
                }
                Some(printed) = printed.recv() => {
                    self.live(Live::ToolOutputDelta { call_id: call.id.clone(), printed }).await?;
                }
                Some(FormRequest { questions, reply }) = opened.recv() => {
                    let form = Form { call_id: call.id.clone(), questions, agent: None };
                    // The call is over when it has its answers; the place is taken again before the next request.
                    aside = self.services.agent_place.as_ref().map(AgentPlace::step_aside);
                    self.reports.send(Report::OpenForm { form, reply }).await?;
                }
            }
        }
    }

    // ─── The Session ───

    async fn next_step(&self) -> Result<Step, Gone> {
        loop {
            match self.ask_session(Report::NextStep).await? {
                Next::Request(step) => return Ok(*step),
                Next::Summarize(request) => {
                    if let Some(it) = summarize(&self.reports, *request).await? {
                        self.spend(it.usage, it.cost).await?;
                    }
                }
            }
        }
    }

    async fn compact(&self, step: &Step, attempt: u32) -> Result<Result<(), Error>, Gone> {
        let (window, tokens) = (step.facts.window, step.tokens());
        self.ask_session(|reply| Report::Compact { attempt, window, tokens, reply }).await
    }

    /// Reads which skills there are, and lets the Session tell the model what it does not know yet.
    async fn offer_skills(&self) -> Result<(), Gone> {
        let library = Arc::clone(&self.services.library);
        let starts_agents = self.services.agents.is_some();
        let read = move || Ok((library.index(), if starts_agents { library.roles_for_model() } else { None }));
        match call::off_loop(read).await {
            Ok((index, roles)) => self.ask_session(|reply| Report::OfferSkills { index, roles, reply }).await,
            // Without an index the model can still list them.
            Err(_) => Ok(()),
        }
    }

    /// Tells the model something about its Turn, as late context.
    async fn tell(&self, source: &'static str, text: &'static str) -> Result<(), Gone> {
        self.ask_session(|reply| Report::Tell { source, text, reply }).await
    }

    /// Continues with the next fallback model, if there is one.
    async fn fall_back(&self, error: &Error) -> Result<bool, Gone> {
        let reason = error.message.clone();
        self.ask_session(|reply| Report::FallBack { reason, reply }).await
    }

    /// Records the part of the answer that arrived, marked as partial.
    async fn keep_draft(&self) -> Result<(), Gone> {
        self.ask_session(|reply| Report::KeepDraft { reply }).await
    }

    async fn forget_reasoning(&self) -> Result<(), Gone> {
        self.ask_session(|reply| Report::ForgetReasoning { reply }).await
    }

    async fn record(&self, fact: impl Into<Fact>) -> Result<(), Gone> {
        self.reports.record(fact).await
    }

    async fn live(&self, live: Live) -> Result<(), Gone> {
        self.reports.live(live).await
    }

    async fn ask_session<T>(&self, report: impl FnOnce(oneshot::Sender<T>) -> Report) -> Result<T, Gone> {
        self.reports.ask(report).await
    }
}

impl Authority for Turn {
    async fn prepared(&self, call: &Call, info: &CallInfo, preview: &Preview) -> Result<(), Gone> {
        let (info, preview) = (Box::new(info.clone()), Box::new(preview.clone()));
        self.live(Live::CallPrepared { call_id: call.id.clone(), info, preview }).await
    }

    async fn permissions(&self) -> Result<Permissions, Gone> {
        let Permissions { mode, rules: denied, bounds } = self.ask_session(Report::Permissions).await?;
        // The file is read each time, so that a rule that was revoked elsewhere no longer counts.
        let services = self.services.clone();
        let saved = call::off_loop(move || Ok(services.rules_in_force())).await;
        // Without an answer anything may be denied.
        let saved = saved.unwrap_or_else(|_| vec![Rule::Deny(Scope::Unknown)]);
        Ok(Permissions { mode, rules: saved.into_iter().chain(denied).collect(), bounds })
    }

    async fn keep(&self, rule: &Rule, holds: RuleReach, seconds: Option<u64>) -> Result<(), Gone> {
        let (services, id, rule) = (self.services.clone(), self.id.clone(), rule.clone());
        match call::off_loop(move || services.save_rule(rule, holds, seconds, &id)).await {
            Ok(()) => Ok(()),
            Err(error) => {
                let message =
                    format!("the decision counts for this call, but the rule was not saved: {}", error.message);
                let (severity, code) = (Severity::Warning, error.code.name().to_owned());
                self.live(Live::Notice { severity, code, message, remedy: Some(error.remedy) }).await
            }
        }
    }

    async fn approve(&self, approval: Approval) -> Result<Option<Decision>, Gone> {
        if !self.services.options.can_ask {
            return Ok(None);
        }
        // Another agent may run while the user decides.
        let aside = self.services.agent_place.as_ref().map(AgentPlace::step_aside);
        let decision = self.ask_session(|reply| Report::RequestApproval { approval, reply }).await?;
        drop(aside);
        self.take_place_again().await?;
        Ok(decision)
    }

    async fn waits_for_lease(&self, holder: Option<&str>) -> Result<(), Gone> {
        self.waits(holder.map(|holder| WaitsOn::Lease { holder: holder.to_owned() })).await
    }

    async fn record(&self, decision: PermissionDecision) -> Result<(), Gone> {
        Turn::record(self, decision).await
    }
}

/// Whether a call may run at the same time as those before it in an answer.
fn runs_beside(info: &CallInfo) -> bool {
    info.reads_only || info.kind == CallKind::Agent
}

/// Returns what helps where a request does not fit into the window.
pub(crate) fn smaller(toolset: Toolset) -> Remedy {
    let larger = Remedy::ChooseModel { need: ModelNeed::LargerWindow };
    match toolset {
        Toolset::Run => Remedy::any_of([Remedy::Compact, larger]),
        Toolset::Typed | Toolset::Both => {
            Remedy::any_of([Remedy::Compact, Remedy::SetToolset { toolset: Toolset::Run }, larger])
        }
    }
}

/// Whether the future is ready at once.
async fn poll_once(future: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
    futures_util::poll!(future).is_ready()
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
