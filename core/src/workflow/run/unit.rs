//! What a step is to do now, or what the journal knows of it.

use serde_json::{Value, json};

use super::super::graph::{Repeat, Retry, Step, Work};
use super::super::journal::key;
use super::super::schedule::Unit;
use super::super::template::Scope;
use super::{Ending, Hands, Runner};
use crate::call::{Gone, off_loop};
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{
    Adoption, AgentResult, AgentStatus, Ask, Held, Isolation, Question, StepEnded, StepOutcome, StepStarted,
    WorkflowEvent,
};
use crate::storage::blobs::{Blobs, name_of};

/// What the user can decide about a step whose effects are unknown.
pub(super) const DECISIONS: [&str; 3] = ["rerun", "done", "skip"];

/// A unit that may begin.
pub(super) enum Next {
    /// It has ended already.
    Ended(StepOutcome),
    Do(Box<Job>),
}

/// What a unit is to do.
pub(super) struct Job {
    pub(super) unit: Unit,
    pub(super) id: String,
    pub(super) key: String,
    pub(super) item: Option<Value>,
    pub(super) work: Work,
    /// The task, or the words of the command, or the question, with its paths filled.
    pub(super) words: Vec<String>,
    pub(super) checks: Vec<Vec<String>>,
    pub(super) seconds: Option<u64>,
    pub(super) retry: Option<Retry>,
    pub(super) repeat: Option<Rounds>,
    pub(super) attempt: u32,
    pub(super) agent: Option<super::super::check::AgentTerms>,
    /// Its agent had ended when pixir died.
    pub(super) late: Option<Late>,
    /// Why the user decides about it before it begins: it runs again, counts as done, or is skipped.
    pub(super) doubt: Option<String>,
}

/// A step whose agent had ended when pixir died, and which had no end of its own.
pub(super) struct Late {
    pub(super) started: StepStarted,
    pub(super) result: AgentResult,
    /// What of its copy is in the workspace.
    pub(super) adopted: Option<Adoption>,
}

/// The rounds of a unit that repeats, and what each can refer to.
pub(super) struct Rounds {
    pub(super) repeat: Repeat,
    base: Value,
    follows: Option<(String, usize)>,
}

impl Job {
    /// What this round is to do, after a round that ended so.
    pub(super) fn round(&self, last: &Value) -> Result<Vec<String>> {
        let Some(rounds) = &self.repeat else { return Ok(self.words.clone()) };
        words(&self.work, &rounds.scope(self.item.as_ref(), last))
    }

    /// Whether the last round was the last one that is needed.
    pub(super) fn is_enough(&self, last: &Value, completed: bool) -> bool {
        match self.repeat.as_ref().map(|rounds| (rounds, &rounds.repeat.until)) {
            Some((rounds, Some(until))) => until.holds(&rounds.scope(self.item.as_ref(), last)),
            Some((_, None)) | None => completed,
        }
    }

    pub(super) fn most_rounds(&self) -> u32 {
        self.repeat.as_ref().map_or(1, |rounds| rounds.repeat.max)
    }

    pub(super) fn started(&self, attempt: u32) -> StepStarted {
        StepStarted {
            id: self.id.clone(),
            key: self.key.clone(),
            item: self.item.clone(),
            attempt,
            ..StepStarted::default()
        }
    }

    pub(super) fn ended(&self, status: StepOutcome, error: Option<&Error>) -> StepEnded {
        StepEnded {
            id: self.id.clone(),
            key: self.key.clone(),
            status,
            error: error.map(Error::body),
            ..StepEnded::default()
        }
    }

    /// It waits for the user.
    pub(super) fn waiting(&self, why: &str, question: String, choices: Vec<String>) -> Held {
        Held { status: StepOutcome::Waiting, ask: Some(Ask { question, choices }), ..self.held("user", why) }
    }

    /// It may not do what it was to do.
    pub(super) fn held(&self, by: &str, why: impl Into<String>) -> Held {
        Held {
            id: self.id.clone(),
            status: StepOutcome::Held,
            by: by.to_owned(),
            why: why.into(),
            key: Some(self.key.clone()),
            ask: None,
        }
    }
}

impl Rounds {
    fn scope<'a>(&'a self, item: Option<&'a Value>, last: &'a Value) -> Scope<'a> {
        let follows = self.follows.as_ref().map(|(id, item)| (id.as_str(), *item));
        Scope { base: &self.base, item, last: Some(last), follows }
    }
}

/// What there is before the first round.
pub(super) fn no_round() -> Value {
    json!({ "output": "", "status": "", "exit_code": 0, "checks": "", "round": 0 })
}

fn words(work: &Work, scope: &Scope<'_>) -> Result<Vec<String>> {
    match work {
        Work::Agent(agent) => agent.task.prompt(scope).map(|task| vec![task]),
        Work::Command { argv, .. } => argv.iter().map(|word| word.text(scope)).collect(),
        Work::Gate { ask, .. } => ask.text(scope).map(|ask| vec![ask]),
        Work::Workflow { .. } | Work::Join { .. } => Ok(Vec::new()),
    }
}

/// What a step does, as a part of its key: everything that changes its result.
fn content(step: &Step, id: &str, words: &[String], checks: &[Vec<String>], item: Option<&Value>) -> Value {
    let own = |key: &str| step.source.get(key).cloned().unwrap_or(Value::Null);
    json!({
        "id": step.id,
        "kind": step.kind(),
        "words": words,
        "checks": checks,
        "item": item,
        "role": own("role"),
        "schema": own("schema"),
        "isolation": own("isolation"),
        "writes": own("writes"),
        "choices": own("choices"),
        "repeat": own("repeat"),
        "join": matches!(step.work, Work::Join { .. }).then_some(id),
    })
}

impl<H: Hands> Runner<'_, H> {
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
        let scope = Scope { base: &self.base, item: None, last: None, follows: None };
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
            if stale.is_empty() || journal.counts_as_done(&job.id) {
                let blobs = self.hands.context("").blobs;
                return match output_of(ended.clone(), blobs).await {
                    Ok(output) => {
                        let ended = Ending::Ended(Box::new(ended.clone()), output);
                        Ok(Next::Ended(self.take(job.unit, ended, true)))
                    }
                    // What it put out has gone, so it runs again.
                    Err(_) => Ok(Next::Do(Box::new(job))),
                };
            }
            job.doubt = Some(format!("stale: {} not as it left them", listed(&stale)));
            return Ok(Next::Do(Box::new(job)));
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
        Ok(Next::Do(Box::new(job)))
    }

    /// Files of a step that are not as it left them.
    async fn stale(&self, ended: &StepEnded) -> Vec<String> {
        let left: Vec<(String, String)> = self
            .run
            .journal
            .still_its(ended)
            .filter_map(|(path, blob)| Some((path.to_owned(), blob?.to_owned())))
            .collect();
        if left.is_empty() {
            return Vec::new();
        }
        let workspace = self.hands.context("").workspace;
        let compare = move || {
            let differs = |(path, blob): &(String, String)| {
                let now = workspace.locate(path).and_then(|at| workspace.read_if_there(&at));
                !now.is_ok_and(|now| now.is_some_and(|it| name_of(&it.bytes) == *blob))
            };
            Ok(left.into_iter().filter(differs).map(|(path, _)| path).collect())
        };
        off_loop(compare).await.unwrap_or_default()
    }
}

/// What the user decides about a unit.
pub(super) enum Decision {
    /// It runs again.
    Rerun,
    Ended(Ending),
}

/// The user decides about a unit that is in doubt: it runs again, counts as done, or is skipped.
pub(super) async fn decide<H: Hands>(job: &Job, why: &str, hands: &H) -> std::result::Result<Decision, Gone> {
    let question = format!("Step {}: {why}. Run it again, take it as done, or skip it?", job.id);
    let choices = DECISIONS.map(str::to_owned).to_vec();
    let waiting = job.waiting(why, question, choices);
    let ended = |status| Ok(Decision::Ended(Ending::Ended(Box::new(job.ended(status, None)), Value::Null)));
    match ask(&job.id, &waiting, hands).await?.as_deref() {
        Some("rerun") => Ok(Decision::Rerun),
        Some("done") => ended(StepOutcome::Completed),
        Some("skip") => ended(StepOutcome::Skipped),
        Some(_) | None => Ok(Decision::Ended(Ending::Held(waiting))),
    }
}

/// Records that a unit waits for the user, who is then asked. One of the choices is the answer; `None` where the user gives none.
async fn ask<H: Hands>(id: &str, waiting: &Held, hands: &H) -> std::result::Result<Option<String>, Gone> {
    // Presenters show what waits before the form is open, and still when it is closed.
    hands.fact(WorkflowEvent::Held(waiting.clone()).into()).await?;
    let Some(Ask { question, choices }) = waiting.ask.clone().filter(|_| hands.can_ask()) else { return Ok(None) };
    let asked = Question { question, options: choices.clone(), multiple: false, only_options: true };
    let answer = hands.ask(id, asked).await?.and_then(|all| all.into_iter().flatten().next());
    Ok(answer.filter(|it| choices.contains(it)))
}

impl Job {
    /// Whether running it twice could do something twice.
    fn has_lasting_effects(&self) -> bool {
        match &self.work {
            Work::Command { is_idempotent, .. } => !is_idempotent,
            Work::Agent(_) => self.agent.as_ref().is_some_and(|it| !it.reads_only && it.isolation == Isolation::Shared),
            Work::Gate { .. } | Work::Workflow { .. } | Work::Join { .. } => false,
        }
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

/// A gate: the user answers, or it waits.
pub(super) async fn gate<H: Hands>(job: &Job, hands: &H) -> std::result::Result<Ending, Gone> {
    let Work::Gate { choices, .. } = &job.work else { unreachable!("a gate asks") };
    let question = job.words.first().cloned().unwrap_or_default();
    let waiting = job.waiting(&question, question.clone(), choices.clone());
    let Some(choice) = ask(&job.id, &waiting, hands).await? else { return Ok(Ending::Held(waiting)) };
    let event = WorkflowEvent::GateAnswered { id: job.id.clone(), key: job.key.clone(), choice: choice.clone() };
    hands.fact(event.into()).await?;
    Ok(Ending::Ended(Box::new(job.ended(StepOutcome::Completed, None)), Value::from(choice)))
}
