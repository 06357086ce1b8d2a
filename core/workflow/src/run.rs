//! Carrying out a run: what the schedule asks for is done, and what became of it is in the Log before anything depends on it.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::checked::Checked;
use super::graph::{Each, Work};
use super::journal::{Journal, hash_of};
use super::schedule::{Action, Cause, Happened, Schedule, Unit};
use super::template::Scope;
use call::{Answers, Authority, Call, Context, Done, Gone, Prepared, Registry};
use conversation::history::History;
use protocol::error::{Code, Error};
use protocol::event::{Fact, Held, LeftBehind, Planned, Question, StepEnded, StepOutcome, WorkflowEvent};

mod agent; // a step that an agent does
mod asked; // gates and decisions of the user
mod command; // a command, and the checks of a step
mod inner; // limits of other workflows in the run
mod job; // what a unit is to do
mod rehearsal; // what a resume would do
mod summary; // how a run ended
mod unit; // whether a unit begins, or what is known of it

use asked::Decision;
use inner::Spent;
use job::Job;
pub use rehearsal::Rehearsed;
pub use rehearsal::Still;
pub use summary::RunEnd;
use unit::Next;

/// The longest output that the Log itself holds, bytes.
const MAX_INLINE: usize = 16 << 10;

/// What carrying out a run needs of the Turn.
pub trait Hands: Authority {
    /// Records this; it is on the disk when this returns, where it must be.
    fn fact(&self, fact: Fact) -> BoxFuture<'_, Result<(), Gone>>;

    /// Asks the user; `None` where no user answers.
    fn ask<'a>(&'a self, id: &'a str, question: Question) -> BoxFuture<'a, Result<Option<Answers>, Gone>>;

    /// Takes a prepared call through its remaining steps.
    fn call<'a>(&'a self, call: &'a Call, prepared: Prepared, ctx: Context) -> BoxFuture<'a, Result<Done, Gone>>;

    /// What a call may use.
    fn context(&self, call_id: &str) -> Context;

    fn registry(&self) -> &Registry;

    /// Whether a user can answer.
    fn can_ask(&self) -> bool;

    /// Whether the budget of the run is used up.
    fn budget(&self) -> Result<(), Error>;
}

/// A run that is to be carried out.
#[derive(Debug)]
pub struct Run {
    /// The Session's id.
    pub id: String,
    pub checked: Checked,
    /// The values of all parameters.
    pub params: Map<String, Value>,
    /// The last step that is wanted; `None` for all.
    pub until: Option<usize>,
    pub journal: Journal,
    /// The graph, where the user has edited it since the run began.
    pub edited: Option<Planned>,
}

impl Run {
    /// Carries the run out, and returns how it ended.
    ///
    /// # Errors
    /// [`Gone`] when the Session no longer waits for the run.
    pub fn carry_out<'a>(self, hands: &'a dyn Hands) -> BoxFuture<'a, Result<RunEnd, Gone>> {
        Box::pin(async move {
            let cancel = CancellationToken::new();
            // Agents of a run that is dropped stop.
            let _guard = cancel.clone().drop_guard();
            let mut runner = Runner::new(&self, hands, cancel);
            runner.go().await
        })
    }
}

/// A run that is being carried out.
struct Runner<'a> {
    run: &'a Run,
    hands: &'a dyn Hands,
    cancel: CancellationToken,
    /// What steps can refer to: `params`, `run`, `steps`.
    base: Value,
    /// For each step with items, the items.
    items: BTreeMap<usize, Arc<Vec<Value>>>,
    /// What a step, or an item, leaves to those that depend on it.
    hashes: HashMap<Unit, [u8; 32]>,
    /// Keys that were given out; two items that are equal have two results.
    keys: BTreeSet<String>,
    /// How each unit ended.
    ends: BTreeMap<Unit, UnitEnd>,
    /// Names of agents that are taken.
    names: BTreeSet<String>,
    /// What steps of other workflows came to, by the step that uses it.
    spent: BTreeMap<&'a str, Spent>,
    /// Files that steps changed which were cut off, as they are now, each with one of these steps.
    changed: BTreeMap<String, (String, LeftBehind)>,
    /// The limit that ended the run, or kept a step of it from beginning.
    limit: Option<Error>,
}

/// How a unit ended, with what the summary needs of it.
#[derive(Debug, Clone)]
struct UnitEnd {
    outcome: StepOutcome,
    ended: Option<StepEnded>,
    held: Option<Held>,
    is_reused: bool,
}

/// Something that was under way has ended.
struct Finished {
    unit: Unit,
    result: Ending,
}

/// How a unit ended.
enum Ending {
    Ended(Box<StepEnded>, Value),
    Held(Held),
}

impl<'a> Runner<'a> {
    fn new(run: &'a Run, hands: &'a dyn Hands, cancel: CancellationToken) -> Runner<'a> {
        let base = json!({
            "params": run.params,
            "run": { "name": run.checked.graph.name, "id": run.id },
            "steps": {},
        });
        let known = hands.context("").agents.map_or(Vec::new(), |agents| agents.list());
        Runner {
            run,
            hands,
            cancel,
            base,
            items: BTreeMap::new(),
            hashes: HashMap::new(),
            keys: BTreeSet::new(),
            ends: BTreeMap::new(),
            names: known.iter().filter_map(|it| it.path.last().cloned()).collect(),
            spent: BTreeMap::new(),
            changed: BTreeMap::new(),
            limit: None,
        }
    }

    async fn go(&mut self) -> Result<RunEnd, Gone> {
        let run = self.run;
        let hands = self.hands;
        if let Some(edited) = &run.edited {
            hands.fact(WorkflowEvent::Planned(Box::new(edited.clone())).into()).await?;
        }
        self.settle().await?;
        let wanted = run.until.map(|step| run.checked.up_to(step));
        let mut schedule = Schedule::of(&run.checked, wanted.as_ref());
        let mut happened = VecDeque::from([Happened::Begun]);
        let mut under_way = FuturesUnordered::new();
        let mut jobs: BTreeMap<Unit, (String, String, Instant)> = BTreeMap::new();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(run.checked.graph.limits.most_seconds());
        let mut is_late = false;
        let mut is_finished = false;
        while !is_finished {
            while let Some(what) = happened.pop_front() {
                for action in schedule.take(what) {
                    match action {
                        Action::List(step) => happened.push_back(self.list(step).await?),
                        Action::Hold { unit, by } => self.hold(unit, by).await?,
                        Action::Finish => is_finished = true,
                        Action::Start(unit) => match self.next(unit).await? {
                            Next::Ended(outcome) => happened.push_back(Happened::Ended { unit, outcome }),
                            Next::Do(job) => {
                                jobs.insert(unit, (job.id.clone(), job.key.clone(), Instant::now()));
                                under_way.push(perform(*job, hands, self.cancel.clone(), self.name_of(unit)));
                            }
                        },
                    }
                }
            }
            if is_finished {
                break;
            }
            tokio::select! {
                Some(finished) = under_way.next() => {
                    let Finished { unit, result } = finished?;
                    jobs.remove(&unit);
                    let outcome = self.take(unit, result, false);
                    happened.push_back(Happened::Ended { unit, outcome });
                    if let Err(error) = hands.budget()
                        && self.limit.is_none()
                    {
                        self.limit = Some(self.budget_reached(error));
                        happened.push_front(Happened::Stopped);
                    }
                }
                () = tokio::time::sleep_until(deadline), if !is_late => {
                    is_late = true;
                    happened.push_back(Happened::Stopped);
                    let seconds = run.checked.graph.limits.most_seconds();
                    let message = format!("the run reached its limit of {seconds} s");
                    let error = Error::new(Code::DeadlineReached, message, "resume it, with more `limits.seconds` in an edited graph");
                    self.limit = Some(error.clone());
                    self.cancel.cancel();
                    // A command that is dropped is stopped with all its processes.
                    under_way.clear();
                    if let Some(agents) = hands.context("").agents {
                        agents.stop(call::agents::Stop::Awaited).await;
                    }
                    for (unit, (id, key, began)) in std::mem::take(&mut jobs) {
                        let ended = StepEnded {
                            id,
                            key,
                            status: StepOutcome::TimedOut,
                            duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                            error: Some(error.body()),
                            ..StepEnded::default()
                        };
                        hands.fact(WorkflowEvent::StepEnded(Box::new(ended.clone())).into()).await?;
                        let outcome = self.take(unit, Ending::Ended(Box::new(ended), Value::Null), false);
                        happened.push_back(Happened::Ended { unit, outcome });
                    }
                }
            }
        }
        Ok(self.summary(is_late))
    }

    /// Takes in how a unit ended.
    fn take(&mut self, unit: Unit, result: Ending, is_reused: bool) -> StepOutcome {
        let (end, output) = match result {
            Ending::Ended(ended, output) => {
                let outcome = ended.status;
                (UnitEnd { outcome, ended: Some(*ended), held: None, is_reused }, output)
            }
            Ending::Held(held) => {
                (UnitEnd { outcome: held.status, ended: None, held: Some(held), is_reused }, Value::Null)
            }
        };
        let outcome = end.outcome;
        self.hashes.insert(unit, hash_of(&output, end.ended.as_ref(), outcome));
        let ended = end.ended.as_ref();
        let fields = json!({
            "output": output,
            "status": outcome.name(),
            "exit_code": ended.and_then(|it| it.exit_code),
            "error": ended.and_then(|it| it.error.as_ref()).map(|it| it.message.clone()),
        });
        let id = &self.run.checked.steps[unit.step].step.id;
        match unit.item {
            Some(item) => {
                let steps = &mut self.base["steps"][id.as_str()];
                if let Some(items) = steps["items"].as_array_mut() {
                    items[item] = fields;
                }
                if let Some(outputs) = steps["output"].as_array_mut() {
                    outputs[item] = output;
                }
            }
            None => self.base["steps"][id.as_str()] = fields,
        }
        if !is_reused {
            self.spend(unit.step, &end);
        }
        self.ends.insert(unit, end);
        outcome
    }

    async fn hold(&mut self, unit: Unit, by: Cause) -> Result<(), Gone> {
        let (by, why) = match by {
            Cause::Step(step) => {
                let by = &self.run.checked.steps[step].step.id;
                (by.clone(), format!("{by} did not complete"))
            }
            Cause::Failures => {
                let most = self.run.checked.graph.limits.failures.unwrap_or_default();
                let error = self.limit.get_or_insert_with(|| {
                    let message = format!("the run reached its limit of failed steps: {most}");
                    let fix = "resume it, with more `limits.failures` in an edited graph";
                    Error::new(Code::TooManyFailures, message, fix)
                });
                ("limit".to_owned(), error.message.clone())
            }
            Cause::Stopped => match &self.limit {
                Some(error) => ("limit".to_owned(), error.message.clone()),
                None => ("user".to_owned(), "the run was stopped".to_owned()),
            },
        };
        self.held(unit, by, why).await
    }

    /// A unit does not run now.
    async fn held(&mut self, unit: Unit, by: String, why: String) -> Result<(), Gone> {
        let held = Held { id: self.id_of(unit), status: StepOutcome::Held, by, why, ..Held::default() };
        self.hands.fact(WorkflowEvent::Held(Box::new(held.clone())).into()).await?;
        self.take(unit, Ending::Held(held), false);
        Ok(())
    }

    /// Finds out the items of a step.
    async fn list(&mut self, step: usize) -> Result<Happened, Gone> {
        let own = &self.run.checked.steps[step].step;
        let whole = Unit { step, item: None };
        let scope = Scope::of(&self.base);
        let reads_item = own.when.as_ref().is_some_and(|it| it.paths().iter().any(|path| path.root() == "item"));
        let skips = self.run.journal.skips(&own.id);
        if skips || own.when.as_ref().is_some_and(|when| !reads_item && !when.holds(&scope)) {
            let ended = StepEnded { id: own.id.clone(), status: StepOutcome::Skipped, ..StepEnded::default() };
            return self.end_now(whole, ended).await;
        }
        let found = match &own.each {
            Some(Each::List(path)) => match scope.find(path).map(std::borrow::Cow::into_owned) {
                Some(Value::Array(items)) => Ok(items),
                Some(other) => {
                    let message = format!("`{{{{{path}}}}}` must be a list: {}", super::read::shown(&other));
                    Err(Error::new(Code::TemplateMissing, message, "a path to a list, such as …lines of text"))
                }
                None => {
                    Err(Error::new(Code::TemplateMissing, format!("`{{{{{path}}}}}` has no value"), "a path to a list"))
                }
            },
            Some(Each::Follows(_)) | None => Ok(Vec::new()),
        };
        let items = match found {
            Ok(items) if items.len() > own.max => {
                let message = format!("there are {} items, and `max` is {}", items.len(), own.max);
                Err(Error::new(Code::TooManyItems, message, "a larger `max`, at most 1000, or fewer items"))
            }
            found => found,
        };
        let items = items.and_then(|items| match self.units_with(step, items.len()) {
            units if units > super::read::MAX_ITEMS => {
                let most = super::read::MAX_ITEMS;
                let message = format!("the run would have {units} steps, counting each item");
                Err(Error::new(Code::TooManyItems, message, format!("at most {most} steps and items in one run")))
            }
            _ => Ok(items),
        });
        match items {
            Ok(items) => {
                self.open(step, Arc::new(items));
                Ok(Happened::Listed { step, items: self.items[&step].len() })
            }
            Err(error) => {
                let ended = StepEnded {
                    id: own.id.clone(),
                    status: StepOutcome::Failed,
                    error: Some(error.body()),
                    ..StepEnded::default()
                };
                self.end_now(whole, ended).await
            }
        }
    }

    /// How many steps and items the run has, where this step and those that follow it have so many.
    fn units_with(&self, step: usize, items: usize) -> usize {
        let steps = &self.run.checked.steps;
        let plain = steps.iter().filter(|it| it.step.each.is_none()).count();
        let known: usize = self.items.values().map(|it| it.len()).sum();
        let source = &self.run.checked.steps[step].step.id;
        let alike = (0..steps.len()).filter(|at| self.run.checked.source_of_items(*at).step.id == *source).count();
        plain + known + items * alike
    }

    /// The items of a step are known: it and those that follow it have as many.
    fn open(&mut self, step: usize, items: Arc<Vec<Value>>) {
        let id = self.run.checked.steps[step].step.id.clone();
        let blank = vec![Value::Null; items.len()];
        self.base["steps"][id] = json!({ "items": blank, "output": blank });
        self.items.insert(step, Arc::clone(&items));
        let followers = self.run.checked.steps.iter().enumerate().filter(|(_, it)| it.follows == Some(step));
        for follower in followers.map(|(at, _)| at).collect::<Vec<_>>() {
            self.open(follower, Arc::clone(&items));
        }
    }

    /// A unit that does nothing ends.
    async fn end_now(&mut self, unit: Unit, ended: StepEnded) -> Result<Happened, Gone> {
        self.hands.fact(WorkflowEvent::StepEnded(Box::new(ended.clone())).into()).await?;
        let outcome = self.take(unit, Ending::Ended(Box::new(ended), Value::Null), false);
        Ok(Happened::Ended { unit, outcome })
    }

    /// The name of a unit: `build`, or `build.3`.
    fn id_of(&self, unit: Unit) -> String {
        let id = &self.run.checked.steps[unit.step].step.id;
        unit.item.map_or_else(|| id.clone(), |item| format!("{id}.{}", item + 1))
    }

    /// A free name for the agent of a unit.
    fn name_of(&mut self, unit: Unit) -> Vec<String> {
        let plain: String = self
            .id_of(unit)
            .chars()
            .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' })
            .collect();
        let short = &plain[plain.len().saturating_sub(26)..];
        let stem = short.trim_start_matches('-');
        // One for each attempt that may come.
        let wanted = self.run.checked.steps[unit.step].step.retry.as_ref().map_or(1, |it| it.times as usize + 1);
        let candidates = std::iter::once(stem.to_owned()).chain((2..).map(|n| format!("{stem}-{n}")));
        let free: Vec<String> = candidates.filter(|name| !self.names.contains(name)).take(wanted).collect();
        self.names.extend(free.iter().cloned());
        free
    }
}

/// Does what a unit is to do, and records its end.
async fn perform(job: Job, hands: &dyn Hands, cancel: CancellationToken, names: Vec<String>) -> Result<Finished, Gone> {
    let began = Instant::now();
    let unit = job.unit;
    let decision = match &job.doubt {
        Some(why) => asked::decide(&job, why, hands).await?,
        None => Decision::Rerun,
    };
    let done = match (decision, &job.work) {
        (Decision::Ended(ending), _) => ending,
        (Decision::Rerun, Work::Agent(_)) => agent::carry_out(&job, hands, &cancel, names).await?,
        (Decision::Rerun, Work::Command { .. }) => command::carry_out(&job, hands).await?,
        (Decision::Rerun, Work::Gate { .. }) => asked::gate(&job, hands).await?,
        (Decision::Rerun, Work::Workflow { .. } | Work::Join { .. }) => {
            unreachable!("a step of another workflow is replaced by its steps, and a join ends at once")
        }
    };
    let result = match done {
        // That it is held is recorded already, by what holds it.
        Ending::Held(held) => Ending::Held(held),
        Ending::Ended(mut ended, output) => {
            ended.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            store(&mut ended, &output, hands).await;
            hands.fact(WorkflowEvent::StepEnded(ended.clone()).into()).await?;
            Ending::Ended(ended, output)
        }
    };
    Ok(Finished { unit, result })
}

/// Records that a unit does not run now.
async fn held(held: Held, hands: &dyn Hands) -> Result<Ending, Gone> {
    hands.fact(WorkflowEvent::Held(Box::new(held.clone())).into()).await?;
    Ok(Ending::Held(held))
}

/// A long output goes to a blob.
async fn store(ended: &mut StepEnded, output: &Value, hands: &dyn Hands) {
    let text = output.to_string();
    if text.len() <= MAX_INLINE {
        ended.output = output.clone();
        return;
    }
    let blobs = hands.context("").blobs;
    let put = task::spawn_blocking(move || blobs.put(text.as_bytes())).await;
    match put {
        Ok(Ok(Some(name))) => ended.output_blob = Some(name),
        // Without the blob the Log holds it, however long it is.
        Ok(Ok(None) | Err(_)) | Err(_) => ended.output = output.clone(),
    }
}

/// The journal of a conversation.
pub fn journal_of(history: &History) -> Journal {
    Journal::fold(history.entries())
}
