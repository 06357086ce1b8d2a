//! How a run ended: counted from the ends of its steps, never from their words.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::schedule::Unit;
use super::super::template::Scope;
use super::Runner;
use protocol::error::{Code, Error};
use protocol::event::{StepOutcome, TurnStatus};
use protocol::remedy::{Limit, Remedy};

/// How a run ended.
#[derive(Debug)]
pub struct RunEnd {
    pub status: TurnStatus,
    pub error: Option<Error>,
    pub details: Map<String, Value>,
}

/// How many steps ended how; items count one by one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub completed: usize,
    pub failed: usize,
    pub timed_out: usize,
    pub interrupted: usize,
    pub incomplete: usize,
    pub held: usize,
    pub skipped: usize,
    pub waiting: usize,
    pub reused: usize,
}

impl Counts {
    pub(crate) fn count(&mut self, outcome: StepOutcome) {
        *match outcome {
            StepOutcome::Completed => &mut self.completed,
            StepOutcome::Failed => &mut self.failed,
            StepOutcome::TimedOut => &mut self.timed_out,
            StepOutcome::Interrupted => &mut self.interrupted,
            StepOutcome::Incomplete => &mut self.incomplete,
            StepOutcome::Held => &mut self.held,
            StepOutcome::Skipped => &mut self.skipped,
            StepOutcome::Waiting => &mut self.waiting,
        } += 1;
    }

    fn not_done(&self) -> usize {
        self.failed + self.timed_out + self.interrupted + self.incomplete + self.held + self.waiting
    }
}

impl Runner<'_> {
    /// The budget that kept a step from ending, if one did: all steps draw from it.
    fn limit_of_a_step(&self) -> Option<Error> {
        let mut errors = self.ends.values().filter_map(|end| end.ended.as_ref()?.error.as_ref());
        errors.find(|error| error.code == Code::BudgetReached.name()).map(|error| error.clone().into())
    }

    /// The budget of the run is used up.
    pub(super) fn budget_reached(&self, error: Error) -> Error {
        let limits = self.run.checked.graph.limits;
        let detail = |name: &str| error.details.get(name).and_then(Value::as_f64).unwrap_or_default();
        let (used, of_graph) = match raised(&error.remedy) {
            Some(Remedy::RaiseLimit { limit: Limit::Cost }) => {
                let usd = detail("usd");
                (format!("${usd:.4}"), limits.cost.is_some_and(|most| usd >= most))
            }
            Some(_) | None => {
                let tokens = detail("tokens");
                (format!("{tokens} tokens"), limits.tokens.is_some_and(|most| tokens >= most as f64))
            }
        };
        let message = format!("the run reached its budget: it used {used}");
        let more = "more `limits` in an edited graph";
        let remedy = if of_graph { Remedy::any_of([Remedy::ResumeRun, more.into()]) } else { error.remedy };
        Error { message, remedy, ..error }
    }

    pub(super) fn summary(&self, is_late: bool) -> RunEnd {
        let mut counts = Counts::default();
        let is_listed = |unit: &Unit| unit.item.is_none() && self.items.contains_key(&unit.step);
        let mut held_by_permissions = None;
        let mut first_left = None;
        let mut first_waiting = None;
        for (unit, end) in self.ends.iter().filter(|(unit, _)| !is_listed(unit)) {
            counts.count(end.outcome);
            counts.reused += usize::from(end.is_reused);
            let id = || self.id_of(*unit);
            match (&end.held, end.outcome) {
                (Some(held), StepOutcome::Held) if held.by == "permissions" => {
                    held_by_permissions.get_or_insert_with(|| format!("{}: {}", id(), held.why));
                }
                (Some(held), StepOutcome::Waiting) => {
                    first_waiting.get_or_insert_with(|| format!("{}: {}", id(), held.why));
                }
                (_, outcome) if !outcome.is_done() && outcome != StepOutcome::Held => {
                    let why = end.ended.as_ref().and_then(|it| it.error.as_ref()).map(|it| it.message.as_str());
                    first_left
                        .get_or_insert_with(|| format!("{} {}: {}", id(), outcome.name(), why.unwrap_or("no reason")));
                }
                (_, _) => {}
            }
        }
        let limit = self.limit.clone().or_else(|| self.limit_of_a_step()).map(resumable);
        let resume = Remedy::ResumeRun;
        let (status, error) = if let Some(error) = limit {
            let status = if is_late { TurnStatus::TimedOut } else { TurnStatus::Incomplete };
            (status, Some(error))
        } else if let Some(what) = first_waiting {
            (
                TurnStatus::Incomplete,
                Some(Error::new(Code::InputRequired, format!("a step waits for you: {what}"), resume)),
            )
        } else if let Some(what) = held_by_permissions {
            (TurnStatus::Incomplete, Some(Error::new(Code::WorkflowHeld, format!("a step is held: {what}"), resume)))
        } else if counts.not_done() > 0 {
            let all = counts.not_done() + counts.completed + counts.skipped;
            let first = first_left.map_or(String::new(), |first| format!("; {first}"));
            let message = format!("{} of {all} steps did not complete{first}", counts.not_done());
            match counts.completed {
                0 => (TurnStatus::Failed, Some(Error::new(Code::WorkflowFailed, message, resume))),
                _ => (TurnStatus::PartialFailed, Some(Error::new(Code::WorkflowPartial, message, resume))),
            }
        } else {
            (TurnStatus::Completed, None)
        };
        let output = match &self.run.checked.graph.output {
            Some(output) => {
                let scope = Scope::of(&self.base);
                output.value(&scope)
            }
            None => Ok(Value::Null),
        };
        let (status, error, output) = match (output, error) {
            (Ok(output), error) => (status, error, output),
            // Why steps did not complete is why there is no output.
            (Err(_), Some(error)) => (status, Some(error), Value::Null),
            (Err(_), None) if self.run.until.is_some() => (status, None, Value::Null),
            (Err(error), None) => {
                let message = format!("all steps completed, and the output of the run is missing: {}", error.message);
                let error = Error { message, ..error };
                (TurnStatus::PartialFailed, Some(error), Value::Null)
            }
        };
        let word = match error.as_ref().map(|it| it.code) {
            Some(Code::InputRequired) => "waiting",
            Some(Code::WorkflowHeld) => "held",
            Some(_) | None => status.name(),
        };
        let details = json!({ "workflow": {
            "status": word,
            "name": self.run.checked.graph.name,
            "counts": counts,
            "work_complete": counts.not_done() == 0 && error.is_none() && self.run.until.is_none(),
            "output": output,
        } });
        let details = match details {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        RunEnd { status, error, details }
    }
}

/// A limit with the way out of a run: it is resumed, and no message continues it.
fn resumable(error: Error) -> Error {
    match raised(&error.remedy).cloned() {
        Some(raise) => Error { remedy: Remedy::any_of([Remedy::ResumeRun, raise]), ..error },
        None => error,
    }
}

/// The limit that a remedy raises.
fn raised(remedy: &Remedy) -> Option<&Remedy> {
    match remedy {
        Remedy::AnyOf { remedies } => remedies.iter().find(|it| matches!(it, Remedy::RaiseLimit { .. })),
        _ => None,
    }
}
