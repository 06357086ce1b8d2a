//! Ask the model, run its tools, repeat: straight on, until an answer calls no tool.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::Map;
use tokio::sync::{mpsc, oneshot};

use crate::call::present::Overflow;
use crate::permissions::{Action, Judgement};
use crate::protocol::error::{Code, Error};
use crate::protocol::event::{
    Approval, AssistantMessage, DecidedBy, Fact, Form, Live, Mode, PermissionDecision, Plan, ProviderUsage, Reasoning,
    Rule, SessionId, Status, ToolCall, Toolset, TurnStatus, Usage, Verdict,
};
use crate::protocol::input::Decision;
use crate::protocol::remedy::{Limit, ModelNeed, Remedy};
use crate::provider::models::Facts;
use crate::provider::{Answer, CallRequest, Ended, Failure, Provider, Request, Said, args_object};
use crate::session::{Options, Surface};
use crate::tools::executor::{self, Done};
use crate::tools::{Answers, Ask, Context, Prepared, bash};

mod ending; // how a Turn can end
mod relay; // pieces of an answer, at most once a frame

pub(crate) use ending::Outcome;
use ending::{Circle, MAX_CIRCLES, cut_short, empty_answer};
use relay::Relay;

/// Read-only calls of one answer that run at the same time.
const AT_ONCE: usize = 16;
/// Breaks in a row that a server may take in one answer.
const MAX_BREAKS: u32 = 8;

/// What a Turn tells its Session; each that carries a reply waits for it.
pub(crate) enum Report {
    /// What does the model see now?
    Read(oneshot::Sender<Step>),
    /// This happened.
    Record { fact: Box<Fact>, reply: oneshot::Sender<()> },
    /// This is happening.
    Live(Live),
    /// May this run?
    Judge { action: Action, reply: oneshot::Sender<Judgement> },
    /// The person has to say.
    Ask { approval: Approval, reply: oneshot::Sender<Decision> },
    /// The model wants to know something from the person.
    Question { form: Form, reply: oneshot::Sender<Option<Answers>> },
    /// The Provider refused the request as too long.
    Compact { reply: oneshot::Sender<Result<(), Error>> },
    /// The Provider does not take the thinking back that it gave.
    ForgetReasoning { reply: oneshot::Sender<()> },
    /// What was asked to be summed up is, or why not.
    Summarized(Box<Result<Summarized, Error>>),
    /// It is over.
    Done(Outcome),
}

/// What a model made of something that is left behind.
pub(crate) struct Summarized {
    pub(crate) text: String,
    pub(crate) model: String,
    pub(crate) usage: Option<ProviderUsage>,
}

/// What the next request needs.
pub(crate) struct Step {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) facts: Facts,
    pub(crate) toolset: Toolset,
    pub(crate) request: Request,
}

pub(crate) struct Turn {
    reports: mpsc::UnboundedSender<Report>,
    /// The person has said something that waits for the current call to end.
    steered: Arc<AtomicBool>,
    surface: Surface,
    outputs: PathBuf,
    /// Numbers the overflow files; entries of the Log never shrink, so no name comes twice.
    next_output: AtomicU64,
    began: Instant,
}

/// Who wants a call to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    ByModel,
    ByPerson,
}

/// The Session has dropped this Turn; there is nobody left to tell.
struct Gone;

impl Turn {
    pub(crate) fn new(
        reports: mpsc::UnboundedSender<Report>,
        steered: Arc<AtomicBool>,
        id: &SessionId,
        entries: usize,
        surface: &Surface,
    ) -> Turn {
        Turn {
            reports,
            steered,
            outputs: surface.place(id).outputs(),
            surface: surface.clone(),
            next_output: AtomicU64::new(entries as u64),
            began: Instant::now(),
        }
    }

    pub(crate) async fn run(self) {
        let outcome = match self.surface.options.limits.deadline {
            None => self.converse().await,
            // Whatever runs when it is reached is dropped, and so stopped.
            Some(deadline) => tokio::time::timeout(deadline, self.converse()).await.unwrap_or_else(|_| {
                let message =
                    format!("the turn reached its deadline of {} s without a final answer", deadline.as_secs());
                let more = Remedy::RaiseLimit { limit: Limit::Deadline };
                let fix = Remedy::any_of(["send a message to go on".into(), more]);
                Ok(Outcome::incomplete(Error::new(Code::DeadlineReached, message, fix)))
            }),
        };
        if let Ok(outcome) = outcome {
            let _ = self.reports.send(Report::Done(outcome));
        }
    }

    async fn converse(&self) -> Result<Outcome, Gone> {
        let Options { limits, .. } = self.surface.options;
        let mut rounds = 0;
        let mut compacted = false;
        let mut breaks = 0;
        let mut forgot = false;
        let mut circle = Circle::default();
        let mut has_spoken = false;
        loop {
            if limits.max_rounds.is_some_and(|most| rounds >= most) {
                let message = format!("the turn used all {rounds} rounds of tool calls without a final answer");
                return Ok(Outcome::incomplete(Error::new(
                    Code::IterationCap,
                    message,
                    Remedy::any_of(["send a message to go on".into(), Remedy::RaiseLimit { limit: Limit::Rounds }]),
                )));
            }
            let step = self.read().await?;
            let answer = match self.ask_model(&step).await? {
                Ok(answer) => answer,
                Err(failure) if failure.error.code == Code::ContextOverflow && !failure.after_content && !compacted => {
                    compacted = true;
                    match self.compact().await? {
                        Ok(()) => continue,
                        Err(_) => return Ok(Outcome::failed(failure.error)),
                    }
                }
                // Thinking is bound to what was before it, and to who asks; without it the same can be asked.
                Err(failure) if failure.error.code == Code::ReasoningRejected && !failure.after_content && !forgot => {
                    forgot = true;
                    self.forget_reasoning().await?;
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
            compacted = false;
            let ended = answer.ended.clone();
            has_spoken |= !answer.text().trim().is_empty();
            let calls = self.record_answer(&step, answer).await?;
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

            if calls.is_empty() {
                // After work has been done there may be nothing to add; before, it is no answer.
                return Ok(if !has_spoken && rounds == 0 { empty_answer() } else { Outcome::completed() });
            }
            let failed = self.perform(&step, &calls).await?;
            if circle.goes_on(calls, failed) {
                return Ok(Outcome::incomplete(Error::new(
                    Code::IterationCap,
                    format!("the model repeated the same failing calls {MAX_CIRCLES} times"),
                    Remedy::any_of([
                        "tell the model what to do instead".into(),
                        Remedy::ChooseModel { need: ModelNeed::Any },
                    ]),
                )));
            }
            rounds += 1;
        }
    }

    // ─── The model ───

    async fn ask_model(&self, step: &Step) -> Result<Result<Answer, Failure>, Gone> {
        let patience = step.provider.patience();
        let mut attempt = 1;
        loop {
            let relay = Relay::new(&self.reports);
            let mut on_chunk = |chunk| relay.take(chunk);
            let outcome = relay.during(step.provider.answer(&step.request, &mut on_chunk)).await;
            let failure = match outcome {
                Ok(answer) => return Ok(Ok(answer)),
                Err(failure) => failure,
            };
            // What was heard of it was paid for.
            if let Some(usage) = failure.usage {
                self.record_usage(step, usage, None).await?;
            }
            let jitter = f64::from(self.began.elapsed().subsec_micros() % 1000) / 1000.0;
            let Some(wait) = patience.wait_before(attempt + 1, &failure, jitter) else {
                return Ok(Err(patience.told_to_wait(failure)));
            };
            attempt += 1;
            self.live(Live::RetryScheduled {
                attempt,
                of: patience.attempts,
                wait_ms: millis(wait),
                reason: failure.error.message,
            })?;
            tokio::time::sleep(wait).await;
        }
    }

    /// Records an answer in its own order; returns what it asks for.
    async fn record_answer(&self, step: &Step, answer: Answer) -> Result<Vec<CallRequest>, Gone> {
        let (provider, model) = (step.request.provider.clone(), step.request.model.clone());
        if let Some(usage) = answer.usage {
            self.record_usage(step, usage, answer.usd).await?;
        }
        let mut calls = Vec::new();
        for said in unique(&step.request, answer.said) {
            match said {
                Said::Reasoning { text, item } => {
                    self.record(Reasoning { text, provider: provider.clone(), model: model.clone(), item }).await?;
                }
                Said::Text { text, phase } => self.record(AssistantMessage { text, partial: false, phase }).await?,
                Said::Call(call) => {
                    let (call_id, name) = (call.id.clone(), call.name.clone());
                    self.record(ToolCall { call_id, name, args: args_object(&call.args) }).await?;
                    calls.push(call);
                }
            }
        }
        Ok(calls)
    }

    async fn record_usage(&self, step: &Step, usage: Usage, usd: Option<f64>) -> Result<(), Gone> {
        let (provider, model) = (step.request.provider.clone(), step.request.model.clone());
        self.record(ProviderUsage { provider, model, usage, cost: step.facts.cost(&usage, usd) }).await
    }

    // ─── Its tools ───

    /// Runs what was asked for. Whether all of it failed.
    async fn perform(&self, step: &Step, calls: &[CallRequest]) -> Result<bool, Gone> {
        self.live(Live::Status { status: Status::Working })?;
        let mut rest = calls;
        let mut failed = true;
        while !rest.is_empty() {
            if self.steered.load(Ordering::Relaxed) {
                return self.skip(rest).await.map(|()| false);
            }
            let together = rest.iter().take(AT_ONCE).take_while(|call| self.only_reads(step, call)).count();
            let (now, later) = rest.split_at(together.max(1));
            // Recorded in the order of the calls, whichever ended first.
            for done in join_all(now.iter().map(|call| self.call(step, call))).await {
                let Done { result, facts } = done?;
                failed &= result.error.is_some();
                for fact in facts {
                    self.record(fact).await?;
                }
                self.record(result).await?;
            }
            rest = later;
        }
        Ok(failed)
    }

    fn only_reads(&self, step: &Step, call: &CallRequest) -> bool {
        let ctx = self.surface.context(&call.id, step.toolset, true);
        self.surface.registry.only_reads(&call.name, &call.args, &ctx)
    }

    async fn skip(&self, calls: &[CallRequest]) -> Result<(), Gone> {
        for call in calls {
            let error = Error::new(
                Code::SkippedForSteer,
                "not run: the user sent a message first",
                "read the message, then decide again",
            );
            self.record(executor::failed(&call.id, &call.name, &error, Duration::ZERO)).await?;
        }
        Ok(())
    }

    async fn call(&self, step: &Step, call: &CallRequest) -> Result<Done, Gone> {
        self.carry_out(call, step.toolset, step.facts.sees_images, Wanted::ByModel).await
    }

    /// Runs what the person typed, by the way of every call.
    pub(crate) async fn run_command(self, call_id: String, command: String) {
        let args = serde_json::json!({ "command": command, "timeout": bash::MAX_TIMEOUT });
        let call = CallRequest { id: call_id, name: bash::NAME.into(), args: args.to_string() };
        let Ok(Done { result, .. }) = self.carry_out(&call, Toolset::Both, false, Wanted::ByPerson).await else {
            return;
        };
        if self.record(result).await.is_ok() {
            let _ = self.reports.send(Report::Done(Outcome::completed()));
        }
    }

    /// One call, from its arguments to its result.
    async fn carry_out(
        &self,
        call: &CallRequest,
        toolset: Toolset,
        sees_images: bool,
        wanted: Wanted,
    ) -> Result<Done, Gone> {
        let failed = |error: &Error| {
            let result = executor::failed(&call.id, &call.name, error, Duration::ZERO);
            Ok(Done { result, facts: Vec::new() })
        };
        let (asker, questions) = mpsc::channel(1);
        let ctx = self.context(call, toolset, sees_images, asker);
        // However this ends, what still runs on another thread is told to.
        let _told = ctx.cancel.clone().on_drop();
        let args = args_object(&call.args);
        let prepared = match executor::prepare(&self.surface.registry, &call.name, args, &ctx).await {
            Ok(prepared) => prepared,
            Err(error) => return failed(&error),
        };
        if self.surface.options.dry_run && !prepared.only_reads() {
            return Ok(Done { result: executor::planned(&call.id, prepared.plan), facts: Vec::new() });
        }
        if let Err(refusal) = self.permit(call, &prepared.plan, &prepared.actions, wanted).await? {
            return failed(&refusal);
        }
        self.execute(call, prepared, ctx, questions).await
    }

    fn context(&self, call: &CallRequest, toolset: Toolset, sees_images: bool, asker: mpsc::Sender<Ask>) -> Context {
        let number = self.next_output.fetch_add(1, Ordering::Relaxed);
        Context {
            overflow: Some(Overflow { folder: self.outputs.clone(), name: format!("cmd-{number}") }),
            asker: Some(asker).filter(|_| self.surface.options.can_ask),
            ..self.surface.context(&call.id, toolset, sees_images)
        }
    }

    /// Whether every part of a call may run. Where several have to be asked about, it is one question.
    async fn permit(
        &self,
        call: &CallRequest,
        plan: &Plan,
        actions: &[Action],
        wanted: Wanted,
    ) -> Result<Result<(), Error>, Gone> {
        let mut decisions = Vec::new();
        let mut asked: Vec<(String, Option<Rule>)> = Vec::new();
        let mut refusal = None;
        for action in actions {
            let judgement = self.ask_session(|reply| Report::Judge { action: action.clone(), reply }).await?;
            match judgement {
                Judgement::Allow { by: None, .. } => {}
                Judgement::Allow { by: Some(by), rule, reason } => {
                    decisions.push(decided(call, Verdict::Allow, by, reason, rule));
                }
                Judgement::Deny(error) => {
                    let error = match wanted {
                        Wanted::ByModel => error,
                        Wanted::ByPerson => Error { remedy: Remedy::SetMode { mode: Mode::Ask }, ..error },
                    };
                    decisions.push(decided(call, Verdict::Deny, DecidedBy::Mode, error.message.clone(), None));
                    refusal = Some(error);
                }
                // Whoever typed it need not be asked whether they want it.
                Judgement::Ask { .. } if wanted == Wanted::ByPerson => {
                    decisions.push(decided(call, Verdict::Allow, DecidedBy::User, "the user typed it".into(), None));
                }
                Judgement::Ask { reason, .. } if !self.surface.options.can_ask => {
                    let error = Error::new(
                        Code::InputRequired,
                        format!("this needs the user's approval ({reason}), and no user can be asked here"),
                        Remedy::any_of(["try another way".into(), Remedy::SetMode { mode: Mode::Auto }]),
                    );
                    decisions.push(decided(call, Verdict::Deny, DecidedBy::NoAsker, reason, None));
                    refusal = Some(error);
                }
                Judgement::Ask { reason, rule } => asked.push((reason, rule)),
            }
        }
        if refusal.is_none() && !asked.is_empty() {
            let (answers, refused) = self.ask_person(call, plan, asked).await?;
            decisions.extend(answers);
            refusal = refused;
        }
        // What is allowed is durable before it runs, and so is the call that it allows.
        for decision in decisions {
            self.record(decision).await?;
        }
        Ok(refusal.map_or(Ok(()), Err))
    }

    async fn ask_person(
        &self,
        call: &CallRequest,
        plan: &Plan,
        asked: Vec<(String, Option<Rule>)>,
    ) -> Result<(Vec<PermissionDecision>, Option<Error>), Gone> {
        let mut reasons: Vec<&str> = asked.iter().map(|(reason, _)| reason.as_str()).collect();
        reasons.dedup();
        // "Always" can only mean one thing.
        let rule = asked[0].1.clone().filter(|rule| asked.iter().all(|(_, it)| it.as_ref() == Some(rule)));
        let approval = Approval {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            plan: Box::new(plan.clone()),
            reason: reasons.join("; "),
            rule: rule.clone(),
        };
        let decision = self.ask_session(|reply| Report::Ask { approval, reply }).await?;
        let each = |verdict: Verdict, rule: Option<Rule>| {
            let all =
                asked.iter().map(|(reason, _)| decided(call, verdict, DecidedBy::User, reason.clone(), rule.clone()));
            all.collect::<Vec<_>>()
        };
        Ok(match decision {
            Decision::Allow => (each(Verdict::Allow, None), None),
            Decision::AllowAlways => (each(Verdict::Allow, rule), None),
            Decision::Deny { feedback } => {
                let said = feedback.as_ref().map_or(String::new(), |text| format!(" and said: {text}"));
                let error = Error::new(
                    Code::PermissionDenied,
                    format!("the user refused this call{said}"),
                    "respect that: try another way, or ask the user",
                );
                let mut decisions = each(Verdict::Deny, None);
                decisions[0].feedback = feedback;
                (decisions, Some(error))
            }
        })
    }

    async fn execute(
        &self,
        call: &CallRequest,
        prepared: Prepared,
        mut ctx: Context,
        mut questions: mpsc::Receiver<Ask>,
    ) -> Result<Done, Gone> {
        let (progress, mut news) = mpsc::channel(64);
        ctx.progress = Some(progress);
        let began = Instant::now();
        let running = executor::perform(prepared, ctx);
        tokio::pin!(running);
        let outcome = loop {
            tokio::select! {
                outcome = &mut running => break outcome,
                Some(printed) = news.recv() => {
                    self.live(Live::ToolOutputDelta { call_id: call.id.clone(), printed })?;
                }
                Some(Ask { questions, reply }) = questions.recv() => {
                    let form = Form { call_id: call.id.clone(), questions };
                    self.reports.send(Report::Question { form, reply }).map_err(|_| Gone)?;
                }
            }
        };
        Ok(executor::finish(&call.id, &call.name, outcome, began.elapsed()))
    }

    // ─── The Session ───

    async fn read(&self) -> Result<Step, Gone> {
        self.ask_session(Report::Read).await
    }

    async fn compact(&self) -> Result<Result<(), Error>, Gone> {
        self.ask_session(|reply| Report::Compact { reply }).await
    }

    async fn forget_reasoning(&self) -> Result<(), Gone> {
        self.ask_session(|reply| Report::ForgetReasoning { reply }).await
    }

    async fn record(&self, fact: impl Into<Fact>) -> Result<(), Gone> {
        let fact = Box::new(fact.into());
        self.ask_session(|reply| Report::Record { fact, reply }).await
    }

    fn live(&self, live: Live) -> Result<(), Gone> {
        self.reports.send(Report::Live(live)).map_err(|_| Gone)
    }

    async fn ask_session<T>(&self, report: impl FnOnce(oneshot::Sender<T>) -> Report) -> Result<T, Gone> {
        let (reply, answer) = oneshot::channel();
        self.reports.send(report(reply)).map_err(|_| Gone)?;
        answer.await.map_err(|_| Gone)
    }
}

fn decided(
    call: &CallRequest,
    verdict: Verdict,
    by: DecidedBy,
    reason: String,
    rule: Option<Rule>,
) -> PermissionDecision {
    PermissionDecision { call_id: call.id.clone(), verdict, by, reason, rule, feedback: None }
}

/// A Provider may say a call twice, which is one call, or use an id twice for two; results find their calls by it, so each
/// is made its own.
fn unique(request: &Request, said: Vec<Said>) -> Vec<Said> {
    let mut seen: HashSet<String> = request.items.iter().filter_map(|item| item.call_id().map(str::to_owned)).collect();
    let mut known: HashSet<(String, String, String)> = HashSet::new();
    let own = |said| {
        let Said::Call(mut call) = said else { return Some(said) };
        if !known.insert((call.id.clone(), call.name.clone(), call.args.clone())) {
            return None;
        }
        let given = call.id.clone();
        let mut n = 2;
        while !seen.insert(call.id.clone()) {
            call.id = format!("{given}_{n}");
            n += 1;
        }
        Some(Said::Call(call))
    };
    said.into_iter().filter_map(own).collect()
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
