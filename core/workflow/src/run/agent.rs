//! A step that an agent does: its rounds and attempts, its checks, and its changes, which are in the workspace before it counts
//! as completed.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::graph::Work;
use super::command::{Verified, backoff, checks, failed_check, left_last};
use super::job::{Job, Late, no_round};
use super::{Ending, Hands, held, store};
use call::agents::{Order, OrderLimits, Seen, Settle, Until};
use call::{Agents, Gone, off_loop};
use permissions::shell::quoted;
use protocol::error::{Code, Error};
use protocol::event::{
    AgentResult, AgentStatus, CheckRan, Cost, DecidedBy, Denial, Fact, Held, Isolation, LeftBehind, Mode, SessionId,
    StepEnded, StepOutcome, Usage, WorkflowEvent,
};
use protocol::remedy::Remedy;
use storage::blobs::name_of;
use storage::log;
use storage::store::Place;

/// What all rounds and attempts of a step came to so far.
#[derive(Default)]
struct Total {
    usage: Usage,
    cost: Cost,
    session: Option<String>,
}

/// Has an agent do the step.
pub(super) async fn carry_out(
    job: &Job,
    hands: &dyn Hands,
    cancel: &CancellationToken,
    names: Vec<String>,
) -> Result<Ending, Gone> {
    let Some(agents) = hands.context("").agents else {
        let error =
            Error::new(Code::CommandFailed, "this session can have no agents", "run it from a session that can");
        return Ok(Ending::Ended(Box::new(job.ended(StepOutcome::Failed, Some(&error))), Value::Null));
    };
    let mut total = Total::default();
    if let Some(Late { started, result, .. }) = &job.late {
        let name = started.agent.clone().unwrap_or_else(|| result.name.clone());
        total.session.clone_from(&started.session_id);
        return finish(job, &*agents, &name, result.clone(), &mut total, hands).await.map(|it| it.ending);
    }
    let most = job.retry.as_ref().map_or(0, |it| it.times);
    let mut names = names.into_iter();
    let mut tried = 0;
    loop {
        let name = names.next().unwrap_or_default();
        let done = attempt(job, &*agents, &name, job.attempt + tried, cancel, &mut total, hands).await?;
        let may_retry = match &done.ending {
            Ending::Ended(ended, _) => {
                let code = ended.error.as_ref().map_or("", |it| it.code.as_str());
                ended.status != StepOutcome::Completed
                    && job.retry.as_ref().is_some_and(|it| it.on.iter().any(|on| on == code))
            }
            Ending::Held(_) => false,
        };
        // What an attempt did outside a copy stays, so another one would do it on top of that.
        if tried >= most || !may_retry || done.had_effects {
            return Ok(done.ending);
        }
        tried += 1;
        // The next attempt begins with a copy of its own.
        let _ = agents.settle_files(&name, Settle::Drop).await;
        tokio::select! {
            () = tokio::time::sleep(backoff(tried)) => {}
            () = cancel.cancelled() => return Ok(done.ending),
        }
    }
}

/// How an attempt ended.
struct Attempt {
    ending: Ending,
    /// It changed something that is not in a copy.
    had_effects: bool,
}

async fn attempt(
    job: &Job,
    agents: &dyn Agents,
    name: &str,
    number: u32,
    cancel: &CancellationToken,
    total: &mut Total,
    hands: &dyn Hands,
) -> Result<Attempt, Gone> {
    let Work::Agent(own) = &job.work else { unreachable!("an agent has a task") };
    let session = SessionId::now();
    let mut started = job.started(number);
    started.session_id = Some(session.to_string());
    started.agent = Some(name.to_owned());
    hands.fact(WorkflowEvent::StepStarted(Box::new(started)).into()).await?;
    total.session = Some(session.to_string());
    let mut last = no_round();
    let mut result = Err(Error::new(Code::CommandFailed, "it has no round", "max = 1 or more"));
    for round in 1..=job.most_rounds() {
        let task = match job.round(&last) {
            Ok(words) => words.into_iter().next().unwrap_or_default(),
            Err(error) => return Ok(refused(job, &error, total)),
        };
        let order = Order {
            task,
            role: Some(own.role.clone()),
            name: Some(name.to_owned()),
            cancel: cancel.child_token(),
            waits: true,
            limits: OrderLimits { seconds: job.seconds, ..OrderLimits::default() },
            schema: own.schema.clone(),
            isolation: job.agent.as_ref().map(|it| it.isolation),
            writes: own.writes.clone(),
            step: Some(session.clone()),
            ..Order::default()
        };
        // Later rounds go on in the same Session, with the same files.
        let begun = if round == 1 { agents.spawn(order).await } else { agents.again(name, order).await };
        if let Err(error) = begun {
            return Ok(refused(job, &error, total));
        }
        result = match agents.wait(vec![name.to_owned()], Until::All, None).await {
            Ok(seen) => match seen.into_iter().next() {
                Some(Seen::Ended(result)) => Ok(*result),
                Some(Seen::Open(_)) | None => {
                    Err(Error::new(Code::Detached, "its end was not seen", Remedy::ResumeRun))
                }
            },
            Err(error) => Err(error),
        };
        let Ok(ended) = &result else { break };
        // A further round would be refused the same.
        if job.repeat.is_none() || denied(ended).is_some() {
            break;
        }
        let checked = if ended.status == AgentStatus::Completed {
            check(job, agents, name, hands).await?
        } else {
            Verified::Ran(Vec::new(), Vec::new())
        };
        let checked = match checked {
            Verified::Ran(checked, _) => checked,
            Verified::Refused(denial) => return unverified(job, agents, name, denial, &result, hands).await,
        };
        let completed = ended.status == AgentStatus::Completed && failed_check(&checked).is_none();
        let status = if completed { StepOutcome::Completed } else { outcome_of(ended.status, StepOutcome::Failed) };
        let said = checked.iter().map(|it| it.output.as_str()).collect::<Vec<_>>().join("\n");
        let exit_code = checked.iter().find_map(|it| it.exit_code.filter(|code| *code != 0)).unwrap_or(0);
        let output = output_of(ended, hands).await;
        last = json!({
            "output": output, "status": status.name(), "exit_code": exit_code, "checks": said, "round": round,
        });
        let is_enough = job.is_enough(&last, completed);
        // A round that broke off is no round after which another one makes sense.
        if is_enough || ended.status != AgentStatus::Completed || cancel.is_cancelled() {
            return finish(job, agents, name, ended.clone(), total, hands).await;
        }
        total.usage += ended.usage;
        total.cost += ended.cost;
        if round == job.most_rounds() {
            let message = format!("its condition did not hold after {round} rounds");
            let error = Error::new(Code::IterationCap, message, "a larger `max` of `repeat`, or an easier condition");
            keep(agents, name).await;
            let ended = StepEnded { checks: checked, ..job.ended(StepOutcome::Incomplete, Some(&error)) };
            let had_effects = has_effects(result.as_ref().ok());
            return Ok(Attempt { ending: Ending::Ended(Box::new(total.put(ended)), output), had_effects });
        }
    }
    match result {
        Ok(result) => finish(job, agents, name, result, total, hands).await,
        Err(error) => Ok(refused(job, &error, total)),
    }
}

/// The agent could not be had.
fn refused(job: &Job, error: &Error, total: &Total) -> Attempt {
    let ended = job.ended(StepOutcome::Failed, Some(error));
    Attempt { ending: Ending::Ended(Box::new(total.put(ended)), Value::Null), had_effects: false }
}

/// The Turn of the agent has ended: its checks, then its changes.
async fn finish(
    job: &Job,
    agents: &dyn Agents,
    name: &str,
    result: AgentResult,
    total: &mut Total,
    hands: &dyn Hands,
) -> Result<Attempt, Gone> {
    total.usage += result.usage;
    total.cost += result.cost;
    let had_effects = has_effects(Some(&result));
    let output = output_of(&result, hands).await;
    let mut ended = job.ended(outcome_of(result.status, StepOutcome::Failed), None);
    ended.error.clone_from(&result.error);
    ended.denials.clone_from(&result.evidence.refused);
    let refused = match (denied(&result), result.status) {
        (Some(denial), _) => Some(format!("a call of its agent was refused: {}", denial.line())),
        (None, AgentStatus::Held) => Some("a workflow that its agent ran is held".to_owned()),
        (None, _) => None,
    };
    if let Some(why) = refused {
        keep(agents, name).await;
        if result.isolation == Isolation::Shared {
            ended.changes = left_behind(&result, hands).await;
        }
        (ended.status, ended.error) = (StepOutcome::Completed, None);
        let denials = std::mem::take(&mut ended.denials);
        let mut ended = total.put(ended);
        store(&mut ended, &output, hands).await;
        let refused = Held { ended: Some(Box::new(ended)), denials, ..job.held("permissions", why) };
        return Ok(Attempt { ending: held(refused, hands).await?, had_effects });
    }
    if result.status != AgentStatus::Completed {
        keep(agents, name).await;
        if result.isolation == Isolation::Shared {
            ended.changes = left_behind(&result, hands).await;
        }
        return Ok(Attempt { ending: Ending::Ended(Box::new(total.put(ended)), output), had_effects });
    }
    // Its files are adopted after its checks have passed, and not before. What pixir had begun to write when it died is in the
    // workspace since the Session is open again.
    let adopted = job.late.as_ref().and_then(|it| it.adopted.clone());
    let checked = match &adopted {
        Some(_) => Verified::Ran(passed(job), Vec::new()),
        None => check(job, agents, name, hands).await?,
    };
    let (checks, changed) = match checked {
        Verified::Ran(checks, changed) => (checks, changed),
        Verified::Refused(denial) => return unverified(job, agents, name, denial, &Ok(result), hands).await,
    };
    ended.checks = checks;
    if result.isolation == Isolation::Shared {
        ended.changes = left_behind(&result, hands).await;
    }
    changed.into_iter().for_each(|left| left_last(&mut ended.changes, left));
    if let Some(error) = failed_check(&ended.checks) {
        keep(agents, name).await;
        (ended.status, ended.error) = (StepOutcome::Failed, Some(error.body()));
        return Ok(Attempt { ending: Ending::Ended(Box::new(total.put(ended)), output), had_effects });
    }
    match result.isolation {
        Isolation::Shared => {}
        Isolation::Scratch => drop(agents.settle_files(name, Settle::Drop).await),
        Isolation::Copy => {
            let adoption = match adopted {
                // The rest of it waits, if it did not merge.
                Some(adopted) if !adopted.left.is_empty() => {
                    agents.settle_files(name, Settle::Keep).await.map(|_| Some(adopted))
                }
                Some(adopted) => agents.settle_files(name, Settle::Drop).await.map(|_| Some(adopted)),
                None => agents.settle_files(name, Settle::Adopt).await,
            };
            let adoption = match adoption {
                Ok(adoption) => adoption,
                Err(error) => {
                    (ended.status, ended.error) = (StepOutcome::Failed, Some(error.body()));
                    return Ok(Attempt { ending: Ending::Ended(Box::new(total.put(ended)), output), had_effects });
                }
            };
            let left: Vec<&str> = match &adoption {
                Some(adoption) => adoption.left.iter().map(|it| it.path.as_str()).collect(),
                None => result.evidence.changed.iter().map(String::as_str).collect(),
            };
            let is_left = !left.is_empty();
            ended.changes = adoption.iter().flat_map(|it| &it.changes).map(LeftBehind::from).collect();
            if is_left && hands.permissions().await?.mode != Mode::Auto && !hands.can_ask() {
                let why = format!("its changes wait in a copy: mode auto adopts them, or adopt those of {name}");
                return Ok(Attempt { ending: held(job.held("permissions", why), hands).await?, had_effects });
            }
            if is_left {
                let message = format!("what it changed does not merge: {}", left.join(", "));
                let error =
                    Error::new(Code::MergeConflict, message, format!("adopt the files of {name}, or run it again"));
                (ended.status, ended.error) = (StepOutcome::Failed, Some(error.body()));
            }
        }
    }
    Ok(Attempt { ending: Ending::Ended(Box::new(total.put(ended)), output), had_effects })
}

/// The call that keeps the work of an agent from being done, where one was not permitted. Of calls that the user refused those
/// do not count for which the user said what to do instead. A Turn that did not come to its answer ended as it did.
pub(super) fn denied(result: &AgentResult) -> Option<&Denial> {
    let counts = |it: &&Denial| it.wants_permission() || (it.by == DecidedBy::User && !it.has_feedback);
    result.evidence.refused.iter().find(counts).filter(|_| result.is_answered())
}

/// Its checks may not run, so whether it is completed is not known: its files wait, and a resume goes on with the checks.
async fn unverified(
    job: &Job,
    agents: &dyn Agents,
    name: &str,
    denial: Denial,
    result: &protocol::error::Result<AgentResult>,
    hands: &dyn Hands,
) -> Result<Attempt, Gone> {
    keep(agents, name).await;
    let ending = held(job.held_by_check(denial), hands).await?;
    Ok(Attempt { ending, had_effects: has_effects(result.as_ref().ok()) })
}

/// The files that a step leaves in its copy wait there for the user.
async fn keep(agents: &dyn Agents, name: &str) {
    if let Err(error) = agents.settle_files(name, Settle::Keep).await {
        tracing::warn!(agent = name, "the files of a step were not kept: {}", error.message);
    }
}

/// The checks of a step as they ended before its files were adopted.
fn passed(job: &Job) -> Vec<CheckRan> {
    let ran = |words: &Vec<String>| CheckRan {
        command: quoted(words.iter().map(String::as_str)),
        exit_code: Some(0),
        output: String::new(),
    };
    job.checks.iter().map(ran).collect()
}

/// Runs the checks of the step in the files that its agent works on.
async fn check(job: &Job, agents: &dyn Agents, name: &str, hands: &dyn Hands) -> Result<Verified, Gone> {
    if job.checks.is_empty() {
        return Ok(Verified::Ran(Vec::new(), Vec::new()));
    }
    match agents.workspace_of(name) {
        Ok(workspace) => checks(job, workspace, hands).await,
        Err(error) => {
            let ran = CheckRan { command: "open its files".into(), exit_code: None, output: error.message };
            Ok(Verified::Ran(vec![ran], Vec::new()))
        }
    }
}

impl Total {
    fn put(&self, ended: StepEnded) -> StepEnded {
        StepEnded { usage: self.usage, cost: self.cost, session_id: self.session.clone(), ..ended }
    }
}

fn outcome_of(status: AgentStatus, otherwise: StepOutcome) -> StepOutcome {
    match status {
        AgentStatus::Completed => StepOutcome::Completed,
        AgentStatus::Held => StepOutcome::Held,
        AgentStatus::Incomplete => StepOutcome::Incomplete,
        AgentStatus::Failed => StepOutcome::Failed,
        AgentStatus::TimedOut => StepOutcome::TimedOut,
        AgentStatus::Interrupted | AgentStatus::Detached => StepOutcome::Interrupted,
        AgentStatus::Queued | AgentStatus::Running | AgentStatus::Waiting => otherwise,
    }
}

/// Whether an attempt did something that stays, outside a copy.
fn has_effects(result: Option<&AgentResult>) -> bool {
    result.is_some_and(|it| {
        it.isolation == Isolation::Shared && (!it.evidence.changed.is_empty() || !it.evidence.commands.is_empty())
    })
}

/// What an agent put out: its report, or its last words.
async fn output_of(result: &AgentResult, hands: &dyn Hands) -> Value {
    if let Some(data) = &result.data {
        return data.clone();
    }
    if !result.text.contains("bytes cut") {
        return Value::from(result.text.as_str());
    }
    // The whole of it is in the Log of the agent.
    let (logs, id) = (hands.context("").library.logs.clone(), result.session_id.clone());
    let whole = off_loop(move || {
        let contents = log::read(&Place::new(&logs, SessionId::parse(&id)?).log())?;
        Ok(contents.entries.iter().rev().find_map(|entry| match &entry.fact {
            Fact::AssistantMessage(it) if !it.text.trim().is_empty() => Some(it.text.clone()),
            _ => None,
        }))
    });
    Value::from(whole.await.ok().flatten().unwrap_or_else(|| result.text.clone()))
}

/// Files of the workspace as an agent left them that works on the workspace itself.
async fn left_behind(result: &AgentResult, hands: &dyn Hands) -> Vec<LeftBehind> {
    let workspace = hands.context("").workspace;
    let paths = result.evidence.changed.clone();
    let read = move || {
        let left = |path: String| {
            let now = workspace.locate(&path).and_then(|at| workspace.read_if_there(&at)).ok().flatten();
            LeftBehind { path, deleted: now.is_none(), blob: now.map(|it| name_of(&it.bytes)) }
        };
        Ok(paths.into_iter().map(left).collect())
    };
    off_loop(read).await.unwrap_or_default()
}
