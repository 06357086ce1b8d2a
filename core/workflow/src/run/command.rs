//! A step that runs a command, and the commands that check a step.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::super::journal::{call_of, check_prefix};
use super::job::Job;
use super::unit::output_of;
use super::{Ending, Hands, held, store};
use call::shell::{self, Heard};
use call::{Call, Caller, Context, Done, Gone};
use files::workspace::Workspace;
use permissions::shell::quoted;
use protocol::error::{Code, Error, ErrorKind};
use protocol::event::{
    CheckRan, DecidedBy, Denial, Held, LeftBehind, Rule, Scope, StepEnded, StepOutcome, ToolCall, ToolResult,
    WorkflowEvent,
};
use text::encoding;

/// The seconds of a command that names none.
const SECONDS: u64 = 600;
/// The most bytes of the output of a failed check that are kept.
const MAX_CHECK: usize = 2_000;

/// Runs the command of a step, again where it may be tried again.
pub(super) async fn carry_out(job: &Job, hands: &dyn Hands) -> Result<Ending, Gone> {
    if let Some(ended) = &job.unchecked {
        // What it put out is in the Log or in a blob.
        let output = output_of(ended.clone(), hands.context("").blobs).await.unwrap_or_default();
        return verified(job, StepEnded { output: Value::Null, ..ended.clone() }, output, hands).await;
    }
    let most = job.retry.as_ref().map_or(0, |it| it.times);
    let mut tried = 0;
    loop {
        let attempt = job.attempt + tried;
        hands.fact(WorkflowEvent::StepStarted(Box::new(job.started(attempt))).into()).await?;
        let ending = once(job, attempt, hands).await?;
        let Ending::Ended(ended, _) = &ending else { return Ok(ending) };
        let code = ended.error.as_ref().map_or("", |it| it.code.as_str());
        let may_retry = job.retry.as_ref().is_some_and(|it| it.on.iter().any(|on| on == code));
        if tried >= most || !may_retry {
            return Ok(ending);
        }
        tried += 1;
        tokio::time::sleep(backoff(tried)).await;
    }
}

/// How long to wait before an attempt.
pub(super) fn backoff(tried: u32) -> Duration {
    Duration::from_millis(500 << tried.min(6))
}

async fn once(job: &Job, attempt: u32, hands: &dyn Hands) -> Result<Ending, Gone> {
    let line = quoted(job.words.iter().map(String::as_str));
    let seconds = job.seconds.unwrap_or(SECONDS);
    let call_id = call_of(&job.key, attempt);
    let ctx = hands.context(&call_id);
    let ran = run(&call_id, &line, seconds, ctx, hands).await?;
    let Ran { result, heard, refused, put_back } = ran;
    if let Some(denial) = refused {
        let why = denial.reason.clone();
        return held(Held { denials: vec![denial], ..job.held("permissions", why) }, hands).await;
    }
    let changes: Vec<LeftBehind> = result.changes.iter().map(LeftBehind::from).collect();
    let stderr = encoding::legible(&heard.stderr).0.trim().to_owned();
    let exit_code = result.exit_code;
    let (status, error) = match (&result.error, exit_code) {
        (Some(error), _) => (StepOutcome::Failed, Some((**error).clone())),
        (None, Some(0)) => (StepOutcome::Completed, None),
        (None, Some(124)) if result.duration_ms >= seconds * 1_000 => {
            let error = Error::new(Code::Timeout, format!("it took longer than {seconds} s"), "a larger `seconds`");
            (StepOutcome::TimedOut, Some(error.body()))
        }
        (None, code) => {
            let last = stderr.lines().last().map_or(String::new(), |line| format!(": {}", short(line)));
            let message = format!("it exited with {}{last}", code.unwrap_or(1));
            (StepOutcome::Failed, Some(Error::new(Code::CommandFailed, message, "read its output").body()))
        }
    };
    let output = value_of(&heard.stdout);
    if status == StepOutcome::Completed && !put_back.is_empty() {
        let mut ended = StepEnded { exit_code, changes, ..job.ended(status, None) };
        store(&mut ended, &output, hands).await;
        return held(job.put_back(ended, &put_back, &line), hands).await;
    }
    if status != StepOutcome::Completed {
        let ended = StepEnded { error, exit_code, changes, stderr, ..job.ended(status, None) };
        return Ok(Ending::Ended(Box::new(ended), output));
    }
    verified(job, StepEnded { exit_code, changes, ..job.ended(status, None) }, output, hands).await
}

/// The command did what it was to do: its checks say whether the step is completed.
async fn verified(job: &Job, mut ended: StepEnded, output: Value, hands: &dyn Hands) -> Result<Ending, Gone> {
    match checks(job, hands.context("").workspace, hands).await? {
        Verified::Ran(checks, changed) => {
            ended.checks = checks;
            changed.into_iter().for_each(|left| left_last(&mut ended.changes, left));
        }
        Verified::Refused(denial) => {
            let mut unchecked = ended;
            store(&mut unchecked, &output, hands).await;
            let unchecked = Some(Box::new(unchecked));
            return held(Held { unchecked, ..job.held_by_check(denial) }, hands).await;
        }
    }
    if let Some(error) = failed_check(&ended.checks) {
        (ended.status, ended.error) = (StepOutcome::Failed, Some(error.body()));
    }
    Ok(Ending::Ended(Box::new(ended), output))
}

/// The beginning of a line.
fn short(line: &str) -> String {
    line.chars().take(200).collect()
}

/// What a command wrote to stdout: JSON if it is an object or a list, else text.
fn value_of(stdout: &[u8]) -> Value {
    let (text, _) = encoding::legible(stdout);
    let text = text.trim_end_matches(['\n', '\r']);
    if text.starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        return value;
    }
    Value::from(text)
}

/// A command that has ended.
struct Ran {
    result: ToolResult,
    heard: Heard,
    /// That it did not run, if it may not.
    refused: Option<Denial>,
    /// Protected files that it wrote, and that are as they were before.
    put_back: Vec<String>,
}

/// Takes a command through the steps of a call, and records it.
async fn run(call_id: &str, line: &str, seconds: u64, ctx: Context, hands: &dyn Hands) -> Result<Ran, Gone> {
    let args = json!({ "command": line, "timeout": seconds.min(shell::MAX_TIMEOUT) });
    let call = Call { id: call_id.to_owned(), tool: shell::NAME.into(), args, caller: Caller::Model };
    let info = {
        let (registry, call, ctx) = (hands.registry().clone(), call.clone(), ctx.clone());
        call::off_loop(move || Ok(call::describe(&registry, &call, &ctx))).await
    };
    let told = ToolCall {
        call_id: call.id.clone(),
        name: call.tool.clone(),
        args: (&call.args).into(),
        info: info.ok().map(Box::new),
    };
    hands.fact(told.into()).await?;
    let (done, heard) = perform(&call, line, seconds, ctx, hands).await?;
    let refused = refused(&done, line);
    let Done { result, facts, lease, put_back, .. } = done;
    for fact in facts {
        hands.fact(fact).await?;
    }
    hands.fact(result.clone().into()).await?;
    drop(lease);
    Ok(Ran { result, heard, refused, put_back })
}

/// That a command did not run, if it may not.
fn refused(done: &Done, line: &str) -> Option<Denial> {
    let error = done.result.error.as_ref().filter(|it| !done.ran && it.kind == ErrorKind::PermissionDenied)?;
    let by = match Code::from_name(&error.code) {
        Some(Code::MutationBlocked) => DecidedBy::Mode,
        Some(Code::InputRequired) => DecidedBy::NoAsker,
        Some(_) | None if error.message == permissions::FORBIDDEN => DecidedBy::Rule,
        Some(_) | None => DecidedBy::User,
    };
    let rule = (by == DecidedBy::NoAsker).then(|| Rule::Allow(Scope::Command(line.to_owned())));
    Some(Denial {
        agent: Vec::new(),
        call_id: done.result.call_id.clone(),
        call: short(line),
        by,
        reason: error.message.clone(),
        rule,
        has_feedback: false,
    })
}

async fn perform(
    call: &Call,
    line: &str,
    seconds: u64,
    ctx: Context,
    hands: &dyn Hands,
) -> Result<(Done, Heard), Gone> {
    let heard: Arc<Mutex<Heard>> = Arc::default();
    let prepared = {
        let (line, ctx, heard) = (line.to_owned(), ctx.clone(), Arc::clone(&heard));
        let limit = Duration::from_secs(seconds);
        call::off_loop(move || shell::heard_by(line, limit, heard, &ctx)).await
    };
    let done = match prepared {
        Ok(prepared) => hands.call(call, prepared, ctx).await?,
        Err(error) => Done::failed(call, &error),
    };
    let heard = std::mem::take(&mut *heard.lock());
    Ok((done, heard))
}

/// What the checks of a step say.
pub(super) enum Verified {
    /// They ran, up to the first that failed, and changed these files of the workspace.
    Ran(Vec<CheckRan>, Vec<LeftBehind>),
    /// One of them may not run.
    Refused(Denial),
}

/// Runs the checks of a step in these files, up to the first that fails. pixir itself runs them.
pub(super) async fn checks(job: &Job, workspace: Arc<Workspace>, hands: &dyn Hands) -> Result<Verified, Gone> {
    let (mut all, mut changed) = (Vec::new(), Vec::new());
    for (n, words) in job.checks.iter().enumerate() {
        let line = quoted(words.iter().map(String::as_str));
        let id = format!("{}{}", check_prefix(&job.key), n + 1);
        let ctx = hands.context(&id);
        let is_elsewhere = ctx.workspace.root() != workspace.root();
        let mut ctx = Context { workspace: Arc::clone(&workspace), ..ctx };
        if is_elsewhere {
            // What a check changes in a copy is thrown away with it.
            ctx.snapshot = Default::default();
            ctx.leases = Default::default();
        }
        let args = json!({ "command": line });
        let call = Call { id, tool: shell::NAME.into(), args, caller: Caller::Model };
        let (done, _) = perform(&call, &line, job.seconds.unwrap_or(SECONDS), ctx, hands).await?;
        if let Some(denial) = refused(&done, &line) {
            return Ok(Verified::Refused(denial));
        }
        if !is_elsewhere {
            done.result.changes.iter().for_each(|it| left_last(&mut changed, LeftBehind::from(it)));
        }
        let passed = done.result.error.is_none() && done.result.exit_code == Some(0);
        let text = &done.result.output;
        let from = text.ceil_char_boundary(text.len().saturating_sub(MAX_CHECK));
        let output = if passed { String::new() } else { text[from..].to_owned() };
        all.push(CheckRan { command: line, exit_code: done.result.exit_code, output });
        if !passed {
            break;
        }
    }
    Ok(Verified::Ran(all, changed))
}

/// A file was left so, whatever was left of it before.
pub(super) fn left_last(all: &mut Vec<LeftBehind>, left: LeftBehind) {
    all.retain(|it| it.path != left.path);
    all.push(left);
}

/// The error of the check that failed, if one did.
pub(super) fn failed_check(checks: &[CheckRan]) -> Option<Error> {
    let failed = checks.iter().find(|it| it.exit_code != Some(0))?;
    let ended = failed.exit_code.map_or("did not end".to_owned(), |code| format!("exited with {code}"));
    let short: String = failed.command.chars().take(120).collect();
    Some(Error::new(Code::CheckFailed, format!("the check `{short}` {ended}"), "read the output of the check"))
}
