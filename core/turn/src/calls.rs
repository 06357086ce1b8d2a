//! The calls of an answer: described, carried out beside each other or in turn, and recorded in their order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use tokio::sync::mpsc;

use super::ending::Reported;
use super::{Outcome, Report, Step, Turn};
use call::present::Overflow;
use call::{AgentPlace, Call, Caller, Context, Done, FormRequest, Gone, InTurn, Registry, ResultLimits, agents, shell};
use context::compaction::Room;
use conversation::history::json_len;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error};
use protocol::event::{Form, Live, Status, Toolset};

/// The most read-only calls of one answer that run at the same time.
const AT_ONCE: usize = 16;

impl Turn {
    /// Describes a call for the user. A tool may read the file system to do so, hence the blocking thread.
    pub(super) async fn describe(&self, call: &Call, step: &Step) -> CallInfo {
        let (registry, call) = (step.registry.clone(), call.clone());
        let ctx = self.services.context(&call.id, step.toolset, true);
        let unknown = CallInfo::unknown(&call.tool, &call.args);
        task::spawn_blocking(move || call::describe(&registry, &call, &ctx)).await.unwrap_or(unknown)
    }

    /// Runs the calls of an answer. Returns whether all of them failed.
    pub(super) async fn perform(
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
                if let Some(reported) = reported.as_mut().filter(|_| call.tool == agents::REPORT) {
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

    pub(super) async fn skip(&self, calls: &[Call], why: &Error) -> Result<(), Gone> {
        for call in calls {
            self.record(Done::failed(call, why).result).await?;
        }
        Ok(())
    }

    /// Runs the command that the user typed.
    pub async fn run_command(self, call_id: String, command: String) {
        let args = serde_json::json!({ "command": command, "timeout": shell::MAX_TIMEOUT });
        let call = Call { id: call_id, tool: shell::NAME.into(), args, caller: Caller::User };
        let ctx = self.services.context(&call.id, Toolset::Both, false);
        let registry = &self.services.registry;
        let Ok(Done { result, .. }) = self.call(&call, ctx, InTurn::default(), registry).await else { return };
        if self.record(result).await.is_ok() {
            let outcome = self.services.workspace.check_there().map_or_else(Outcome::failed, |()| Outcome::completed());
            let _ = self.reports.send(Report::Done(outcome)).await;
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
        self.call(call, ctx, in_turn, &step.registry).await
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
    async fn call(&self, call: &Call, ctx: Context, in_turn: InTurn, registry: &Registry) -> Result<Done, Gone> {
        let done = self.attend(call, ctx, in_turn, |ctx| call::carry_out(registry, call, ctx, self)).await?;
        let Done { result, .. } = &done;
        tracing::info!(tool = ?call.tool, ok = result.ok, ms = result.duration_ms, "a call ended");
        Ok(done)
    }

    /// Reports the progress and the forms of a call while it is carried out.
    pub(super) async fn attend<F>(
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
}

/// Whether a call may run at the same time as those before it in an answer.
fn runs_beside(info: &CallInfo) -> bool {
    info.reads_only || info.kind == CallKind::Agent
}
