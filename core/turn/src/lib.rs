//! One Turn: ask the model, run the tools that it calls, repeat until an answer calls none.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::{oneshot, watch};

use call::{Call, Gone};
use context::lighter::Refused;
use protocol::error::{Code, Error};
use protocol::event::{Fact, Live, SessionId, Toolset, TurnStatus};
use protocol::remedy::{Limit, ModelNeed, Remedy};
use provider::Ended;
use provider::budget::Budget;
use provider::refusal::REFUSED_TOOL;
use provider::retry::Retries;
use storage::outputs;

mod authority; // what a call asks of its Turn
mod budget; // what its requests may spend, and the question for more
mod call_ids; // one id for each call
mod calls; // the calls of an answer, carried out
mod children; // the child Sessions of a Session
mod ending; // outcomes of a Turn
mod model; // requests to the model, from the wait for its server to the record of its answer
mod relay; // parts of an answer, at most once per frame
mod reports; // reports of a Turn to its Session
mod services; // services and options of a Session
mod summary; // the request for the summary of a compaction
mod workflow; // a Turn that a scheduler carries out

pub use children::Children;
pub use ending::Outcome;
use ending::{LoopGuard, MAX_CIRCLES, Reported, cut_short, empty_answer, text_loop, too_large};
pub use relay::DeltaCoalescer;
pub use reports::{Halt, Next, Report, Reports, Step};
pub use services::{AgentOptions, CompactionOptions, Limits, Options};
pub use services::{FolderStanding, HOLDS_SECRETS, Services};
pub use summary::summarize;

/// How often in a row a server may pause one answer.
const MAX_BREAKS: u32 = 8;
/// How often one request is compacted until it fits; each compaction leaves half as much as the one before.
const MAX_OVERFLOWS: u32 = 6;
/// The most tools of a Turn that are left out of requests because the Provider refuses their definitions.
const MAX_REFUSED: u32 = 16;
/// How often in a row something large is left out of a request that its server refuses.
const MAX_LIGHTENED: u32 = 6;

/// What an agent is told whose answer in words is not its result.
const REPORT_FIRST: &str =
    "your answer in words is not read: call the tool `report` with your result, also if it is incomplete";
/// What an agent is told at a limit.
const LAST_ANSWER: &str = "you have reached a limit, and no further call is run: say now in one answer what you found and did, \
                           with places as path:line, and what is missing. If you have the tool `report`, call it with that";

/// What a Session tells its running Turn.
pub struct Signals {
    /// A steer is waiting; it joins when the current call ends.
    pub steered: watch::Receiver<bool>,
    /// The Turn has reached this limit. Dropped silently when the Turn may go on to its end.
    pub wound_up: oneshot::Receiver<Error>,
}

pub struct Turn {
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
    pub fn new(
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

    pub async fn run(mut self) {
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
        let mut refused = 0;
        let mut lightened = 0;
        let mut circle = LoopGuard::default();
        let mut has_spoken = false;
        let mut reported = self.services.reports.then(Reported::default);
        // A resumed Session, or one that has changed its model, may talk to a server that pixir has not asked yet.
        let (provider, model) = &self.model;
        self.services.providers.now().prepared().await;
        self.learn_window(provider, model).await?;
        if let Some(servers) = &self.services.servers
            && let Err(error) = servers.required_ready().await
        {
            return Ok(Outcome::failed(error));
        }
        if !self.services.providers.now().facts(provider, model).takes_tools {
            self.drop_tools("its server says so").await?;
        }
        self.offer_skills().await?;
        loop {
            // Every further call would fail for it, and a model can do nothing about it.
            if let Err(gone) = self.services.workspace.check_there() {
                return Ok(Outcome::failed(gone));
            }
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
                // What is too large for the server would be refused in every later request too.
                Err(failure)
                    if lightened < MAX_LIGHTENED
                        && !failure.after_content
                        && self.lighten(&step, &failure.error, lightened).await? =>
                {
                    lightened += 1;
                    continue;
                }
                Err(failure)
                    if matches!(failure.error.code, Code::ContextOverflow | Code::RequestTooLarge)
                        && !failure.after_content =>
                {
                    overflows += 1;
                    if overflows <= MAX_OVERFLOWS && self.compact(&step, overflows).await?.is_ok() {
                        continue;
                    }
                    let remedy = match failure.error.code {
                        Code::RequestTooLarge => lighter(step.toolset, failure.error.remedy),
                        _ => smaller(step.toolset),
                    };
                    return Ok(Outcome::failed(Error { remedy, ..failure.error }));
                }
                // Reasoning is only valid for the prompt prefix and model that it was produced with. The request can be
                // sent again without it.
                Err(failure) if failure.error.code == Code::ReasoningRejected && !failure.after_content && !forgot => {
                    forgot = true;
                    self.forget_reasoning().await?;
                    continue;
                }
                // A model without tools can still answer.
                Err(failure)
                    if failure.error.code == Code::ToolsUnsupported
                        && !failure.after_content
                        && self.drop_tools(&failure.error.message).await? =>
                {
                    continue;
                }
                // One definition that a Provider does not take must not end every Turn.
                Err(failure)
                    if refused < MAX_REFUSED && !failure.after_content && self.leave_out(&failure.error).await? =>
                {
                    refused += 1;
                    continue;
                }
                Err(failure) if failure.error.code == Code::AnswerTooLarge => return Ok(too_large(failure.error)),
                Err(failure) if failure.error.code == Code::TextLoop => return Ok(text_loop(failure.error)),
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
            (overflows, lightened) = (0, 0);
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
        let (reports, rest): (Vec<_>, Vec<_>) = self
            .record_answer(&step, answer)
            .await?
            .into_iter()
            .partition(|(call, _)| call.tool == call::agents::REPORT);
        self.perform(&step, &reports, &mut None).await?;
        let rest: Vec<Call> = rest.into_iter().map(|(call, _)| call).collect();
        let fix = "say what is missing; the agent can be told to go on";
        self.skip(&rest, &Error::new(Code::IterationCap, "not run: the agent has reached a limit", fix)).await?;
        Ok(ended)
    }

    // ─── The Session ───

    async fn next_step(&self) -> Result<Step, Gone> {
        loop {
            match self.ask_session(Report::NextStep).await? {
                Next::Request(step) => return Ok(*step),
                Next::Summarize(request) => {
                    if let Some(it) = summarize(&self.reports, *request).await? {
                        self.spend(it.usage, it.cost);
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

    /// Continues without the definition of a tool that the Provider has refused, if it is one of a server.
    async fn leave_out(&self, error: &Error) -> Result<bool, Gone> {
        let Some(tool) = error.details.get(REFUSED_TOOL).and_then(Value::as_str) else { return Ok(false) };
        let (tool, reason) = (tool.to_owned(), error.message.clone());
        self.ask_session(|reply| Report::LeaveOut { tool, reason, reply }).await
    }

    /// Offers the model no tools from now on. Returns whether it was offered some.
    async fn drop_tools(&self, reason: &str) -> Result<bool, Gone> {
        let reason = reason.to_owned();
        self.ask_session(|reply| Report::DropTools { reason, reply }).await
    }

    /// Continues without what is too large for the server, if the failure says so and there is something large.
    async fn lighten(&self, step: &Step, error: &Error, before: u32) -> Result<bool, Gone> {
        let refused = match error.code {
            Code::RequestTooLarge => Refused::Request { bytes: step.request.estimated_bytes() },
            Code::ImageRefused => Refused::Image { why: error.message.clone(), before },
            _ => return Ok(false),
        };
        self.ask_session(|reply| Report::Lighten { refused, reply }).await
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

/// Returns what helps where a request does not fit into the window.
pub fn smaller(toolset: Toolset) -> Remedy {
    let larger = Remedy::ChooseModel { need: ModelNeed::LargerWindow };
    match toolset {
        Toolset::Run | Toolset::None => Remedy::any_of([Remedy::Compact, larger]),
        Toolset::Typed | Toolset::Both => {
            Remedy::any_of([Remedy::Compact, Remedy::SetToolset { toolset: Toolset::Run }, larger])
        }
    }
}

/// Returns what helps where a request is too large for its server, though nothing large is left in it.
fn lighter(toolset: Toolset, at_the_server: Remedy) -> Remedy {
    match toolset {
        Toolset::Run | Toolset::None => at_the_server,
        Toolset::Typed | Toolset::Both => Remedy::any_of([Remedy::SetToolset { toolset: Toolset::Run }, at_the_server]),
    }
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
