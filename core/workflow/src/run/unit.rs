//! Whether a unit begins now, or what the journal knows of it.

use serde_json::{Value, json};

use super::super::graph::Work;
use super::super::journal::{key, parent};
use super::super::schedule::Unit;
use super::super::template::Scope;
use super::agent::denied;
use super::asked::DONE;
use super::job::{Job, Late, Rounds, content, no_round, words};
use super::{Ending, Runner};
use call::{Gone, off_loop};
use protocol::error::{Code, Error, Result};
use protocol::event::{
    AgentResult, AgentStatus, ChangedSince, Isolation, LeftBehind, StepEnded, StepOutcome, StepStarted, WorkflowEvent,
};
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
        if let Some(ended) = journal.refused.get(&job.key) {
            return self.refused(ended.clone(), job).await;
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
            && denied(end).is_none()
        {
            let adopted = journal.adopted.get(&end.name).cloned();
            job.late = Some(Late { started: started.clone(), result: end.clone(), adopted });
            return Ok(Next::Do(Box::new(job)));
        }
        let never_began =
            end.is_some_and(|it| it.error.as_ref().is_some_and(|error| error.code == Code::NeverStarted.name()));
        let did_nothing = match (&job.work, started) {
            (Work::Command { .. }, Some(started)) => !journal.has_acted(started),
            (_, _) => end.is_some_and(did_nothing),
        };
        if (started.is_some() || cut_off.is_some()) && !never_began && !did_nothing && job.has_lasting_effects() {
            let files = self.changed_by(&job.id);
            let changed =
                if files.is_empty() { String::new() } else { format!("; changed since: {}", files.join(", ")) };
            job.doubt = Some(format!("it was under way when the run ended, and what it did is unknown{changed}"));
        }
        self.begin(job).await
    }

    /// Calls of the agent of this unit were refused, so its work is not done: it runs again, unless the user takes it as done. What
    /// it did without a copy is not done twice unasked.
    async fn refused(&mut self, ended: StepEnded, mut job: Job) -> std::result::Result<Next, Gone> {
        let journal = &self.run.journal;
        let blobs = self.hands.context("").blobs;
        let output = output_of(ended.clone(), blobs).await.unwrap_or_default();
        if journal.counts_as_done(&job.id) {
            self.hands.fact(WorkflowEvent::StepEnded(Box::new(ended.clone())).into()).await?;
            return Ok(Next::Ended(self.take(job.unit, Ending::Ended(Box::new(ended), output), false)));
        }
        let end = ended.session_id.as_deref().and_then(|id| journal.agents.get(id));
        if job.has_lasting_effects() && !end.is_some_and(did_nothing) {
            job.doubt = Some("some of its work was refused, and the rest had its effect".to_owned());
            job.before = Some((ended, output));
            return Ok(Next::Do(Box::new(job)));
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
        let left = self.run.journal.still_its(ended, &self.changed);
        self.differing(left).await.into_iter().map(|now| now.path).collect()
    }

    /// Those of these files that are not as they were left, as they are now.
    async fn differing(&self, left: Vec<LeftBehind>) -> Vec<LeftBehind> {
        if left.is_empty() {
            return Vec::new();
        }
        let workspace = self.hands.context("").workspace;
        let compare = move || {
            let differing = |left: LeftBehind| {
                let now = workspace.locate(&left.path).and_then(|at| workspace.read_if_there(&at));
                let (blob, deleted) = match now {
                    Ok(now) => (now.as_ref().map(|it| name_of(&it.bytes)), now.is_none()),
                    Err(_) => (None, false),
                };
                let differs = match (&left.blob, left.deleted) {
                    (Some(_), _) => left.blob != blob,
                    // A file that it deleted is back.
                    (None, true) => blob.is_some(),
                    (None, false) => false,
                };
                differs.then_some(LeftBehind { path: left.path, blob, deleted })
            };
            Ok(left.into_iter().filter_map(differing).collect())
        };
        off_loop(compare).await.unwrap_or_default()
    }

    /// Steps were cut off, and what they did is unknown. Files that are not as the steps before left them count as theirs, so
    /// that no completed step is asked about for them.
    pub(super) async fn settle(&mut self) -> std::result::Result<(), Gone> {
        let journal = &self.run.journal;
        let cut_off = journal.unsettled.values().filter(|it| self.may_have_changed(it));
        let steps: Vec<String> = cut_off.map(|it| it.id.clone()).collect();
        let Some(first) = steps.first().cloned() else { return Ok(()) };
        let files = self.differing(journal.files.values().map(|(_, left)| left.clone()).collect()).await;
        self.changed = files.iter().map(|left| (left.path.clone(), (first.clone(), left.clone()))).collect();
        self.hands.fact(WorkflowEvent::ChangedSince(Box::new(ChangedSince { steps, files })).into()).await
    }

    /// Whether a step that was cut off may have changed files of the workspace.
    fn may_have_changed(&self, started: &StepStarted) -> bool {
        let journal = &self.run.journal;
        let Some(session) = &started.session_id else { return journal.has_acted(started) };
        let steps = &self.run.checked.steps;
        let own = |id: &str| steps.iter().find(|it| it.step.id == id).and_then(|it| it.agent.as_ref());
        let terms = own(&started.id).or_else(|| own(parent(&started.id)?));
        let changes = terms.is_none_or(|it| it.isolation == Isolation::Shared && !it.reads_only);
        changes && !journal.agents.get(session).is_some_and(did_nothing)
    }

    /// Files that this step may have changed before it was cut off.
    fn changed_by(&self, id: &str) -> Vec<&str> {
        let all = self.run.journal.files.iter().filter(|(path, _)| !self.changed.contains_key(*path));
        let cut_off = |by: &str| by == id && !self.run.journal.ends.contains_key(id);
        let before = all.filter(|(_, (by, _))| cut_off(by));
        let now = self.changed.iter().filter(|(_, (by, _))| by == id);
        before.chain(now).map(|(path, _)| path.as_str()).collect()
    }
}

/// Whether an agent has done nothing but read.
fn did_nothing(end: &AgentResult) -> bool {
    end.evidence.calls == 0 || (end.evidence.acted == Some(0) && end.evidence.changed.is_empty())
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
