//! A Turn's requests to the model: its server is waited for, asked again and again, and its answer recorded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::relay::DeltaCoalescer;
use super::reports::Step;
use super::{Turn, call_ids, millis};
use call::{Call, Caller, Gone};
use protocol::call_info::CallInfo;
use protocol::error::{Code, NoticeCode};
use protocol::event::{AssistantMessage, Live, Reasoning, Severity, ToolCall, WaitsOn};
use provider::gate::{Gate, Pass};
use provider::retry::{Retries, with_requested_wait};
use provider::{Answer, AnswerPart, CallRequest, Failure};

/// How long pixir waits before it asks a server again that still loads its model.
const STARTING_WAIT: Duration = Duration::from_secs(1);
/// After how long without an answer a server is asked whether it loads the model.
const LOADING_AFTER: Duration = Duration::from_secs(3);

/// Who counted the tokens of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UsageSource {
    Reported,
    Estimated,
}

impl UsageSource {
    pub(super) fn of(is_estimated: bool) -> UsageSource {
        if is_estimated { UsageSource::Estimated } else { UsageSource::Reported }
    }
}

impl Turn {
    /// Learns the window of the model. A server that still loads it is waited for, so that the first request fits into it.
    pub(super) async fn learn_window(&self, provider: &str, model: &str) -> Result<(), Gone> {
        let mut attempt = 1;
        let began = tokio::time::Instant::now();
        while let Some(starting) = self.services.providers.now().learn_window(provider, model).await {
            let connected = self.services.providers.now().connect(provider);
            let patience = connected.map(|it| it.patience()).unwrap_or_default();
            let longest = if patience.total.is_zero() { Duration::ZERO } else { patience.local_head };
            // The request itself says what is wrong then.
            let Some(left) = longest.checked_sub(began.elapsed() + STARTING_WAIT) else { break };
            attempt += 1;
            self.live(Live::RetryScheduled {
                attempt,
                of: None,
                wait_ms: millis(STARTING_WAIT),
                left_ms: Some(millis(left)),
                reason: starting.message,
            })
            .await?;
            tokio::time::sleep(STARTING_WAIT).await;
        }
        Ok(())
    }

    /// Says after a moment without an answer that the server loads the model, if it does. Never ends.
    async fn say_that_it_loads(&self, step: &Step, has_begun: &AtomicBool) -> Gone {
        tokio::time::sleep(LOADING_AFTER).await;
        if !has_begun.load(Ordering::Relaxed)
            && let Some(message) = step.provider.loads(&step.request.model).await
        {
            let code = NoticeCode::ModelLoading.name().to_owned();
            let notice = Live::Notice { severity: Severity::Info, code, message, remedy: None };
            if let Err(gone) = self.live(notice).await {
                return gone;
            }
        }
        std::future::pending().await
    }

    pub(super) async fn ask_model(&self, step: &Step) -> Result<Result<Answer, Failure>, Gone> {
        let patience = step.provider.patience();
        let mut retries = Retries::default();
        let mut has_part = false;
        loop {
            // The microseconds of the elapsed time are random enough for jitter.
            let jitter = f64::from(self.began.elapsed().subsec_micros() % 1000) / 1000.0;
            let gate = self.services.gates.of(&step.request.provider, step.provider.key_number());
            let pass = self.enter_gate(&gate, &step.request.provider, jitter).await?;
            let relay = DeltaCoalescer::new(&self.reports);
            let has_begun = AtomicBool::new(false);
            let mut on_chunk = |chunk| {
                has_begun.store(true, Ordering::Relaxed);
                relay.take(chunk);
            };
            let outcome = tokio::select! {
                biased;
                outcome = relay.during(step.provider.answer(&step.request, &mut on_chunk)) => outcome,
                gone = self.say_that_it_loads(step, &has_begun) => return Err(gone),
            };
            drop(pass);
            for message in step.provider.take_notices() {
                let code = NoticeCode::ParameterDropped.name().to_owned();
                self.live(Live::Notice { severity: Severity::Warning, code, message, remedy: None }).await?;
            }
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
                return Ok(Err(with_requested_wait(&patience, failure)));
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
    pub(super) async fn waits(&self, on: Option<WaitsOn>) -> Result<(), Gone> {
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
    pub(super) async fn record_answer(&self, step: &Step, answer: Answer) -> Result<Vec<(Call, CallInfo)>, Gone> {
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
                    let info = self.describe(&call, step).await;
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
    pub(super) async fn take_place_again(&self) -> Result<(), Gone> {
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
}

/// Whether the future is ready at once.
async fn poll_once(future: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
    futures_util::poll!(future).is_ready()
}
