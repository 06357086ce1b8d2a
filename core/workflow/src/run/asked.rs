//! What the user is asked: gates, and decisions about steps whose effects are unknown.

use serde_json::Value;

use super::super::graph::Work;
use super::job::Job;
use super::{Ending, Hands};
use call::Gone;
use protocol::event::{Ask, Held, Question, StepOutcome, WorkflowEvent};

/// What the user can decide about a step whose effects are unknown. The first is suggested first, and does nothing twice.
const DECISIONS: [&str; 3] = [DONE, "skip", "rerun"];
/// It counts as done, with its files as they are.
pub(super) const DONE: &str = "done";

/// What the user decides about a unit.
pub(super) enum Decision {
    /// It runs again.
    Rerun,
    Ended(Ending),
}

/// The user decides about a unit that is in doubt: it runs again, counts as done, or is skipped.
pub(super) async fn decide(job: &Job, why: &str, hands: &dyn Hands) -> std::result::Result<Decision, Gone> {
    let question = format!("Step {}: {why}. Take it as done, skip it, or run it again?", job.id);
    let choices = DECISIONS.map(str::to_owned).to_vec();
    let waiting = job.waiting(why, question, choices);
    let Some(choice) = ask(&job.id, &waiting, hands).await? else {
        return Ok(Decision::Ended(Ending::Held(waiting)));
    };
    // Another resume knows what the user decided.
    let answered = WorkflowEvent::GateAnswered { id: job.id.clone(), key: job.key.clone(), choice: choice.clone() };
    hands.fact(answered.into()).await?;
    let ended = |status| Ending::Ended(Box::new(job.ended(status, None)), Value::Null);
    Ok(match (choice.as_str(), &job.before) {
        ("rerun", _) => Decision::Rerun,
        (DONE, Some((before, output))) => Decision::Ended(Ending::Ended(Box::new(before.clone()), output.clone())),
        (DONE, None) => Decision::Ended(ended(StepOutcome::Completed)),
        (_, _) => Decision::Ended(ended(StepOutcome::Skipped)),
    })
}

/// Records that a unit waits for the user, who is then asked. One of the choices is the answer; `None` where the user gives none.
async fn ask(id: &str, waiting: &Held, hands: &dyn Hands) -> std::result::Result<Option<String>, Gone> {
    // Presenters show what waits before the form is open, and still when it is closed.
    hands.fact(WorkflowEvent::Held(Box::new(waiting.clone())).into()).await?;
    let Some(Ask { question, choices }) = waiting.ask.clone().filter(|_| hands.can_ask()) else { return Ok(None) };
    let asked = Question { question, options: choices.clone(), multiple: false, only_options: true };
    let answer = hands.ask(id, asked).await?.and_then(|all| all.into_iter().flatten().next());
    Ok(answer.filter(|it| choices.contains(it)))
}

/// A gate: the user answers, or it waits.
pub(super) async fn gate(job: &Job, hands: &dyn Hands) -> std::result::Result<Ending, Gone> {
    let Work::Gate { choices, .. } = &job.work else { unreachable!("a gate asks") };
    let question = job.words.first().cloned().unwrap_or_default();
    let waiting = job.waiting(&question, question.clone(), choices.clone());
    let Some(choice) = ask(&job.id, &waiting, hands).await? else { return Ok(Ending::Held(waiting)) };
    let event = WorkflowEvent::GateAnswered { id: job.id.clone(), key: job.key.clone(), choice: choice.clone() };
    hands.fact(event.into()).await?;
    Ok(Ending::Ended(Box::new(job.ended(StepOutcome::Completed, None)), Value::from(choice)))
}
