//! Whether a unit begins now, or what the journal knows of it.

use serde_json::{Value, json};

use super::super::graph::Work;
use super::super::journal::key;
use super::super::schedule::Unit;
use super::super::template::Scope;
use super::asked::DONE;
use super::job::{Job, Late, Rounds, content, no_round, words};
use super::{Ending, Runner};
use call::{Gone, off_loop};
use protocol::error::{Code, Error, Result};
use protocol::event::{AgentStatus, LeftBehind, StepEnded, StepOutcome, WorkflowEvent};
use storage::blobs::{Blobs, name_of};

/// A unit that may begin.
pub(super) enum Next {
    /// It has ended already.
    Ended(StepOutcome),
    Do(Box<Job>),
}

impl Runner<'_> {
    /// What the unit is to do, unless it has ended already.
    pub(super) async fn next(&mut self, unit: Unit) -> std::result::Result<Next, Gone> {
        let checked = &self.run.checked;
        let own = &checked.steps[unit.step];
        let step = &own.step;
        let id = self.id_of(unit);
        let items = self.items.get(&unit.step).cloned();
        let item = unit.item.and_then(|at| items.as_ref()?.get(at).cloned());
        if matches!(step.work, Work::Join { .. }) {
            return self.join(unit).await;
        }
        let journal = &self.run.journal;
        if journal.skips(&id) {
            return self.ends(unit, StepEnded { id, status: StepOutcome::Skipped, ..StepEnded::default() }).await;
        }
        let follows = own.follows.zip(unit.item).map(|(of, at)| (checked.steps[of].step.id.clone(), at));
        let last = no_round();
        let scope = Scope {
            base: &self.base,
            item: item.as_ref(),
            last: step.repeat.is_some().then_some(&last),
            follows: follows.as_ref().map(|(id, at)| (id.as_str(), *at)),
        };
        if step.when.as_ref().is_some_and(|when| !when.holds(&scope)) {
            return self.ends(unit, StepEnded { id, status: StepOutcome::Skipped, ..StepEnded::default() }).await;
        }
        let filled = words(&step.work, &scope).and_then(|words| {
            let check =
                |words: &Vec<super::super::template::Template>| words.iter().map(|it| it.text(&scope)).collect();
            Ok((words, step.checks.iter().map(check).collect::<Result<Vec<Vec<String>>>>()?))
        });
        let (words, checks) = match filled {
            Ok(filled) => filled,
            Err(error) => {
                let error = Some(error.body());
                let ended = StepEnded { id, status: StepOutcome::Failed, error, ..StepEnded::default() };
                return self.ends(unit, ended).await;
            }
        };
        let needs = own.needs.iter().map(|need| self.hash_of_need(*need, own.follows, unit.item));
        let digest = own.agent.as_ref().and_then(|it| it.role_digest.as_deref());
        let what = content(step, &id, &words, &checks, item.as_ref());
        let needs: Vec<[u8; 32]> = needs.collect();
        let mut own_key = key(&what, digest, needs.iter().copied());
        let mut times = 1;
        while !self.keys.insert(own_key.clone()) {
            times += 1;
            own_key = key(&json!([what, times]), digest, needs.iter().copied());
        }
        let repeat = step.repeat.clone().map(|repeat| Rounds { repeat, base: self.base.clone(), follows });
        let job = Job {
            unit,
            attempt: journal.attempts.get(&id).copied().unwrap_or(0) + 1,
            id,
            key: own_key,
            item,
            work: step.work.clone(),
            words,
            checks,
            seconds: step.seconds,
            retry: step.retry.clone(),
            repeat,
            agent: own.agent.clone(),
            late: None,
            unchecked: None,
            before: None,
            doubt: None,
        };
        self.known(job).await
    }

    fn hash_of_need(&self, need: usize, follows: Option<usize>, item: Option<usize>) -> [u8; 32] {
        let of = |unit: Unit| self.hashes.get(&unit).copied();
        if follows == Some(need) {
            return of(Unit { step: need, item }).unwrap_or_default();
        }
        let count = self.items.get(&need).map_or(0, |items| items.len());
        match of(Unit { step: need, item: None }) {
            Some(hash) => hash,
            None => {
                let mut all = blake3::Hasher::new();
                for item in 0..count {
                    all.update(&of(Unit { step: need, item: Some(item) }).unwrap_or_default());
                }
                *all.finalize().as_bytes()
            }
        }
    }

    async fn ends(&mut self, unit: Unit, ended: StepEnded) -> std::result::Result<Next, Gone> {
        match self.end_now(unit, ended).await? {
            super::Happened::Ended { outcome, .. } => Ok(Next::Ended(outcome)),
            super::Happened::Begun | super::Happened::Listed { .. } | super::Happened::Stopped => {
                unreachable!("a unit that ends has ended")
            }
        }
    }

    /// Another workflow has ended with all its steps.
    async fn join(&mut self, unit: Unit) -> std::result::Result<Next, Gone> {
        let own = &self.run.checked.steps[unit.step];
        let id = own.step.id.clone();
        let inner: Vec<StepOutcome> = own
            .needs
            .iter()
            .flat_map(|need| {
                let range = (Unit { step: *need, item: None })..=(Unit { step: *need, item: Some(usize::MAX) });
                self.ends.range(range).map(|(_, end)| end.outcome)
            })
            .collect();
        let all_skipped = !inner.is_empty() && inner.iter().all(|it| *it == StepOutcome::Skipped);
        let left = inner.iter().find(|it| !it.is_done());
        let scope = Scope::of(&self.base);
        let output = match &own.step.work {
            Work::Join { output: Some(output) } if left.is_none() && !all_skipped => output.value(&scope),
            _ => Ok(Value::Null),
        };
        let (status, output, error) = match (left, output) {
            (Some(outcome), _) => {
                let message = format!("a step of it is {}", outcome.name());
                let status = if outcome.is_failure() { StepOutcome::Failed } else { *outcome };
                (status, Value::Null, Some(Error::new(Code::WorkflowPartial, message, "look at its steps")))
            }
            (None, Err(error)) => (StepOutcome::Failed, Value::Null, Some(error)),
            (None, Ok(output)) if all_skipped => (StepOutcome::Skipped, output, None),
            (None, Ok(output)) => (StepOutcome::Completed, output, None),
        };
        let ended = StepEnded { id, status, error: error.map(|it| it.body()), ..StepEnded::default() };
        self.hands.fact(WorkflowEvent::StepEnded(Box::new(ended.clone())).into()).await?;
        Ok(Next::Ended(self.take(unit, Ending::Ended(Box::new(ended), output), false)))
    }

    /// What the journal knows of a unit counts.
    async fn known(&mut self, mut job: Job) -> std::result::Result<Next, Gone> {
        let journal = &self.run.journal;
        if let Some(ended) = journal.completed.get(&job.key) {
            let stale = self.stale(ended).await;
            let is_done = journal.counts_as_done(&job.id) || journal.answers.get(&job.key).is_some_and(|it| it == DONE);
            let blobs = self.hands.context("").blobs;
            match output_of(ended.clone(), blobs).await {
                Ok(output) if stale.is_empty() || is_done => {
                    let ended = Ending::Ended(Box::new(ended.clone()), output);
                    return Ok(Next::Ended(self.take(job.unit, ended, true)));
                }
                Ok(output) => {
                    job.doubt = Some(format!("stale: {} not as it left them", listed(&stale)));
                    job.before = Some((ended.clone(), output));
                    return Ok(Next::Do(Box::new(job)));
                }
                // What it put out has gone, so it runs again.
                Err(_) => return self.begin(job).await,
            }
        }
        if journal.counts_as_done(&job.id) {
            let output = match &job.work {
                Work::Gate { choices, .. } => choices.first().cloned().map_or(Value::Null, Value::from),
                Work::Agent(_) | Work::Command { .. } | Work::Workflow { .. } | Work::Join { .. } => Value::Null,
            };
            let ended = StepEnded { output: output.clone(), ..job.ended(StepOutcome::Completed, None) };
            self.hands.fact(WorkflowEvent::StepEnded(Box::new(ended.clone())).into()).await?;
            return Ok(Next::Ended(self.take(job.unit, Ending::Ended(Box::new(ended), output), false)));
        }
        if let Work::Gate { choices, .. } = &job.work {
            let known = journal.answers.get(&job.key).or_else(|| journal.given.get(&job.id)).cloned();
            if let Some(choice) = known.filter(|it| choices.contains(it)) {
                let output = Value::from(choice.clone());
                let event = WorkflowEvent::GateAnswered { id: job.id.clone(), key: job.key.clone(), choice };
                self.hands.fact(event.into()).await?;
                let ended = StepEnded { output: output.clone(), ..job.ended(StepOutcome::Completed, None) };
                self.hands.fact(WorkflowEvent::StepEnded(Box::new(ended.clone())).into()).await?;
                return Ok(Next::Ended(self.take(job.unit, Ending::Ended(Box::new(ended), output), false)));
            }
        }
        if let Some(ended) = journal.unchecked.get(&job.key) {
            job.unchecked = Some(ended.clone());
            return Ok(Next::Do(Box::new(job)));
        }
        let started = journal.under_way.get(&job.key);
        let cut_off = journal
            .failed
            .get(&job.key)
            .filter(|it| matches!(it.status, StepOutcome::Interrupted | StepOutcome::TimedOut));
        let end = started.and_then(|it| it.session_id.as_deref()).and_then(|id| journal.agents.get(id));
        if let (Some(started), Some(end)) = (started, end)
            && end.status == AgentStatus::Completed
        {
            let adopted = journal.adopted.get(&end.name).cloned();
            job.late = Some(Late { started: started.clone(), result: end.clone(), adopted });
            return Ok(Next::Do(Box::new(job)));
        }
        let never_began =
            end.is_some_and(|it| it.error.as_ref().is_some_and(|error| error.code == Code::NeverStarted.name()));
        let did_nothing = end.is_some_and(|it| it.evidence.calls == 0);
        if (started.is_some() || cut_off.is_some()) && !never_began && !did_nothing && job.has_lasting_effects() {
            job.doubt = Some("it was under way when the run ended, and what it did is unknown".to_owned());
        }
        self.begin(job).await
    }

    /// The unit begins, unless its workflow has reached a limit.
    async fn begin(&mut self, mut job: Job) -> std::result::Result<Next, Gone> {
        match self.room_of(job.unit.step, job.seconds) {
            Ok(seconds) => {
                job.seconds = seconds;
                Ok(Next::Do(Box::new(job)))
            }
            Err(error) => {
                self.held(job.unit, "limit".to_owned(), error.message.clone()).await?;
                self.limit.get_or_insert(error);
                Ok(Next::Ended(StepOutcome::Held))
            }
        }
    }

    /// Files of a step that are not as it left them.
    async fn stale(&self, ended: &StepEnded) -> Vec<String> {
        let left = self.run.journal.still_its(ended);
        if left.is_empty() {
            return Vec::new();
        }
        let workspace = self.hands.context("").workspace;
        let compare = move || {
            let differs = |left: &LeftBehind| {
                let now = workspace.locate(&left.path).and_then(|at| workspace.read_if_there(&at));
                match (&left.blob, now) {
                    (Some(blob), Ok(Some(it))) => name_of(&it.bytes) != *blob,
                    (Some(_), Ok(None) | Err(_)) => true,
                    // A file that it deleted is back.
                    (None, Ok(now)) => left.deleted && now.is_some(),
                    (None, Err(_)) => false,
                }
            };
            Ok(left.into_iter().filter(differs).map(|left| left.path).collect())
        };
        off_loop(compare).await.unwrap_or_default()
    }
}

fn listed(paths: &[String]) -> String {
    match paths {
        [one] => format!("{one} is"),
        [first, rest @ ..] => format!("{first} and {} more are", rest.len()),
        [] => "files are".to_owned(),
    }
}

/// What a step put out.
pub(super) async fn output_of(ended: StepEnded, blobs: Blobs) -> Result<Value> {
    let Some(name) = ended.output_blob else { return Ok(ended.output) };
    off_loop(move || {
        let gone = |e: &dyn std::fmt::Display| {
            Error::new(Code::ReadFailed, format!("read an output: {e}"), "run the step again")
        };
        let bytes = blobs.get(&name).map_err(|e| gone(&e))?;
        serde_json::from_slice(&bytes).map_err(|e| gone(&e))
    })
    .await
}
