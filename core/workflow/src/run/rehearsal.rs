//! What a resume would do, worked out from the journal without doing it.

use std::collections::{BTreeSet, VecDeque};

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::super::graph::Work;
use super::super::schedule::{Action, Cause, Happened, Schedule, Unit};
use super::unit::Next;
use super::{Ending, Hands, Run, Runner};
use call::{Answers, Authority, Call, Context, Done, Gone, Permissions, Prepared, Registry};
use protocol::call_info::CallInfo;
use protocol::error::Error;
use protocol::event::{Approval, Fact, Held, PermissionDecision, Preview, Question, StepEnded, StepOutcome};
use protocol::input::Decision;

/// What a resume would do about a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rehearsed {
    /// The step, with `.N` for the N-th item.
    pub id: String,
    /// `reuse`, `run`, `ask`, `skip` or `held`.
    pub verdict: &'static str,
    /// Why.
    pub why: String,
}

/// Hands that do nothing.
pub struct Still {
    pub ctx: Context,
    pub registry: Registry,
}

impl Authority for Still {
    fn prepared<'a>(
        &'a self,
        _call: &'a Call,
        _info: &'a CallInfo,
        _preview: &'a Preview,
    ) -> BoxFuture<'a, Result<(), Gone>> {
        Box::pin(async move { Ok(()) })
    }

    fn permissions(&self) -> BoxFuture<'_, Result<Permissions, Gone>> {
        Box::pin(async move { Ok(Permissions::default()) })
    }

    fn approve(&self, _approval: Approval) -> BoxFuture<'_, Result<Option<Decision>, Gone>> {
        Box::pin(async move { Ok(None) })
    }

    fn record(&self, _decision: PermissionDecision) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(async move { Ok(()) })
    }
}

impl Hands for Still {
    fn fact(&self, _fact: Fact) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(async move { Ok(()) })
    }

    fn ask<'a>(&'a self, _id: &'a str, _question: Question) -> BoxFuture<'a, Result<Option<Answers>, Gone>> {
        Box::pin(async move { Ok(None) })
    }

    fn call<'a>(&'a self, call: &'a Call, _prepared: Prepared, _ctx: Context) -> BoxFuture<'a, Result<Done, Gone>> {
        Box::pin(async move {
            let error = Error::new(protocol::error::Code::NothingToDo, "nothing is run", "a real run");
            Ok(Done::failed(call, &error))
        })
    }

    fn context(&self, call_id: &str) -> Context {
        Context { call_id: call_id.to_owned(), ..self.ctx.clone() }
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }

    fn can_ask(&self) -> bool {
        false
    }

    fn budget(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl Run {
    /// What carrying the run out would do about each step.
    pub fn rehearse<'a>(self, hands: &'a Still) -> BoxFuture<'a, Vec<Rehearsed>> {
        Box::pin(async move {
            let mut runner = Runner::new(&self, hands, CancellationToken::new());
            runner.rehearse().await.unwrap_or_default()
        })
    }
}

impl Runner<'_> {
    async fn rehearse(&mut self) -> Result<Vec<Rehearsed>, Gone> {
        let run = self.run;
        self.settle().await?;
        let wanted = run.until.map(|step| run.checked.up_to(step));
        let mut schedule = Schedule::of(&run.checked, wanted.as_ref());
        let mut happened = VecDeque::from([Happened::Begun]);
        // Steps whose results are not known before they run.
        let mut unknown: BTreeSet<usize> = BTreeSet::new();
        let mut all = Vec::new();
        while let Some(what) = happened.pop_front() {
            for action in schedule.take(what) {
                match action {
                    Action::Finish => {}
                    Action::Hold { unit, by } => {
                        let why = match by {
                            Cause::Step(by) => format!("{} does not complete", run.checked.steps[by].step.id),
                            Cause::Failures => "the run reaches its limit of failed steps".to_owned(),
                            Cause::Stopped => "the run was stopped".to_owned(),
                        };
                        all.push(Rehearsed { id: self.id_of(unit), verdict: "held", why });
                    }
                    Action::List(step) => {
                        let unit = Unit { step, item: None };
                        match self.unknown_need(step, &unknown) {
                            Some(why) => {
                                unknown.insert(step);
                                all.push(Rehearsed { id: self.id_of(unit), verdict: "run", why });
                                happened.push_back(self.pretend(unit));
                            }
                            None => happened.push_back(self.list(step).await?),
                        }
                    }
                    Action::Start(unit) => {
                        let (rehearsed, next) = self.one(unit, &mut unknown).await?;
                        all.extend(rehearsed);
                        happened.push_back(next);
                    }
                }
            }
        }
        Ok(all)
    }

    async fn one(&mut self, unit: Unit, unknown: &mut BTreeSet<usize>) -> Result<(Option<Rehearsed>, Happened), Gone> {
        let id = self.id_of(unit);
        let is_join = matches!(self.run.checked.steps[unit.step].step.work, Work::Join { .. });
        if let Some(why) = self.unknown_need(unit.step, unknown) {
            unknown.insert(unit.step);
            let rehearsed = (!is_join).then_some(Rehearsed { id, verdict: "run", why });
            return Ok((rehearsed, self.pretend(unit)));
        }
        Ok(match self.next(unit).await? {
            Next::Ended(outcome) => {
                let end = self.ends.get(&unit);
                let is_reused = end.is_some_and(|it| it.is_reused);
                let why = end.and_then(|it| it.held.as_ref()).map(|it| it.why.clone());
                let (verdict, why) = match outcome {
                    _ if is_reused => ("reuse", "completed with the same key".to_owned()),
                    StepOutcome::Completed => ("reuse", "it counts as done".to_owned()),
                    StepOutcome::Skipped => ("skip", "its condition does not hold, or you skip it".to_owned()),
                    StepOutcome::Waiting => ("ask", why.unwrap_or_default()),
                    StepOutcome::Failed
                    | StepOutcome::TimedOut
                    | StepOutcome::Interrupted
                    | StepOutcome::Incomplete
                    | StepOutcome::Held => ("run", "it fails before it begins".to_owned()),
                };
                let rehearsed = (!is_join).then_some(Rehearsed { id, verdict, why });
                (rehearsed, Happened::Ended { unit, outcome })
            }
            Next::Do(job) if job.doubt.is_some() => {
                let why = job.doubt.clone().unwrap_or_default();
                let held = job.held("user", why.clone());
                let outcome = self.take(unit, Ending::Held(Held { status: StepOutcome::Waiting, ..held }), false);
                (Some(Rehearsed { id, verdict: "ask", why }), Happened::Ended { unit, outcome })
            }
            Next::Do(job) => {
                unknown.insert(unit.step);
                let journal = &self.run.journal;
                let why = if job.unchecked.is_some() {
                    "its command has run; its checks are left".to_owned()
                } else if job.late.is_some() {
                    "its agent has ended; its checks and changes are left".to_owned()
                } else if journal.refused.contains_key(&job.key) {
                    "some of its work was refused".to_owned()
                } else if let Some(before) = journal.failed.get(&job.key) {
                    format!("{} before", before.status.name())
                } else if journal.under_way.contains_key(&job.key) {
                    "it was under way, and may run again".to_owned()
                } else if journal.ends.contains_key(&id) {
                    "it, or what it depends on, has changed".to_owned()
                } else {
                    "it has not run".to_owned()
                };
                let verdict = if matches!(job.work, Work::Gate { .. }) { "ask" } else { "run" };
                (Some(Rehearsed { id, verdict, why }), self.pretend(unit))
            }
        })
    }

    fn unknown_need(&self, step: usize, unknown: &BTreeSet<usize>) -> Option<String> {
        let need = self.run.checked.steps[step].needs.iter().find(|need| unknown.contains(need))?;
        Some(format!("{} runs before it", self.run.checked.steps[*need].step.id))
    }

    /// Goes on as if the unit had completed.
    fn pretend(&mut self, unit: Unit) -> Happened {
        let ended = StepEnded { id: self.id_of(unit), status: StepOutcome::Completed, ..StepEnded::default() };
        let outcome = self.take(unit, Ending::Ended(Box::new(ended), Value::Null), false);
        Happened::Ended { unit, outcome }
    }
}
