//! The plain Presenter: a Turn, a command or a host's Inputs, as text, as one JSON document, or as lines of events.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pixir_core::store::Store;
use pixir_core::{Accepted, Blobs, Code, Error, Event, Handle, Input, Remedy, Result, Watch};

use crate::cli::Signals;
use crate::output::Output;

mod answer; // what a Turn answers and changes
mod answer_schema; // what the answer must fit
mod agents; // what became of the agents of a run
pub(crate) mod host; // a program drives the Session by lines
pub(crate) mod narration; // events as lines of text
mod report; // the result of a run
mod refusals; // calls of a run that were not permitted
mod going_on; // the command that goes on with a run or an agent
pub(crate) mod workflow; // a run of a workflow
pub(crate) mod slash; // slash commands without a screen

pub(crate) use agents::Agents;
pub(crate) use answer::Answer;
pub(crate) use answer_schema::AnswerSchema;
pub(crate) use refusals::Judging;
use report::Report;
pub(crate) use report::is_at_rest;

/// One headless run: its input and output.
pub(crate) struct Job<'a> {
    /// Skills that are activated before the Input.
    pub(crate) skills: Vec<String>,
    /// Whether the Session has earlier entries.
    pub(crate) resumed: bool,
    pub(crate) output: &'a Output,
    /// The file versions, for the diffs of the result.
    pub(crate) blobs: Blobs,
    pub(crate) narrate: Narrate,
    /// How long the run may take, with the agents that its Turn leaves behind.
    pub(crate) deadline: Option<Duration>,
    /// What the answer must fit.
    pub(crate) schema: Option<AnswerSchema>,
    /// How its calls are judged.
    pub(crate) judging: Judging,
    /// Where the answer goes besides stdout.
    pub(crate) answer_file: Option<PathBuf>,
    /// The state folder, which knows of that file while it is written.
    pub(crate) store: Store,
    /// Whether the Session stays when the run ends.
    pub(crate) is_kept: bool,
}

/// Where the narration of the Turn goes in plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Narrate {
    /// On stderr; stdout has only the answer.
    OnStderr,
    /// On stdout, as the result.
    OnStdout,
}

/// Carries out an Input, to the end of its Turn if it begins one, and returns the exit code. It always prints a result,
/// even if the Turn fails.
pub(crate) async fn run(handle: &Handle, input: Input, job: Job<'_>, mut signals: Signals) -> u8 {
    let began = Instant::now();
    let Some((mut watch, mut report)) = open(handle, &job).await else { return 1 };
    report.expects_turn = begins_turn(&input);
    report.is_command = !report.expects_turn;
    if report.refused.is_none() {
        let answer = handle.submit(input).await;
        match report.wait_for(handle, &mut watch, &mut signals, answer).await {
            Some(Ok(_)) if report.expects_turn => {
                report.follow(handle, &mut watch, &mut signals).await;
                if let Some(schema) = &job.schema {
                    report.fit(schema, handle, &mut watch, &mut signals).await;
                }
            }
            Some(Err(error)) => report.refused = Some(error),
            Some(Ok(_)) | None => {}
        }
    }
    handle.close().await;
    report.catch_up(&mut watch);
    report.conclude(began)
}

/// Whether a Session at rest begins a Turn with this Input.
fn begins_turn(input: &Input) -> bool {
    match input {
        Input::Prompt(_)
        | Input::Steer(_)
        | Input::FollowUp(_)
        | Input::RunUserCommand { .. }
        | Input::UseTemplate { .. }
        | Input::SpawnAgent { .. }
        | Input::RunWorkflow(_)
        | Input::ResumeWorkflow { .. }
        | Input::Init => true,
        Input::ActivateSkill { args, .. } => !args.is_empty(),
        Input::Dequeue
        | Input::Interrupt
        | Input::Decide { .. }
        | Input::Answer { .. }
        | Input::StopAsking
        | Input::ToAgent { .. }
        | Input::StopAgents { .. }
        | Input::Adopt { .. }
        | Input::ListRules
        | Input::Mcp { .. }
        | Input::RevokeRule { .. }
        | Input::AddFolder { .. }
        | Input::ShowTrust
        | Input::AnswerTrust { .. }
        | Input::StopJob { .. }
        | Input::ListJobs
        | Input::Compact { .. }
        | Input::MoveHead { .. }
        | Input::Undo { .. }
        | Input::Redo { .. }
        | Input::RevertHunk { .. }
        | Input::KeepHunk(_)
        | Input::Fork { .. }
        | Input::Label { .. }
        | Input::Pin { .. }
        | Input::RemoveBranch { .. }
        | Input::RestoreBranch { .. }
        | Input::Drop { .. }
        | Input::ShowContext
        | Input::Set(_) => false,
    }
}

/// Watches the Session, begins the report, and activates the skills of the run. None if the Session has closed,
/// after an error.
async fn open<'a>(handle: &Handle, job: &Job<'a>) -> Option<(Watch, Report<'a>)> {
    let Some(mut watch) = handle.watch().await else {
        job.output.error(&Error::new(
            Code::SessionStartFailed,
            "the session closed before it began",
            Remedy::Retry { after_s: None },
        ));
        return None;
    };
    let mut report = Report::new(handle, job);
    report.writes(watch.past.settings.mode);
    // The stream begins with the first line of a new Session; earlier entries of a resumed one stay in its Log.
    let past = std::mem::take(&mut watch.past);
    if job.resumed {
        report.agents.take_past(past.entries(), &watch.now.children);
    }
    for entry in past.entries().iter().filter(|e| e.seq == 0 && !job.resumed) {
        report.handle_event(&Event::Recorded(Arc::clone(entry)));
    }
    for name in job.skills.clone() {
        let asked = handle.request(Input::ActivateSkill { name, args: String::new(), attachments: Vec::new() }).await;
        report.refused = report.refused.or(asked.err());
        while let Some(event) = watch.try_next() {
            report.handle_event(&event);
        }
    }
    Some((watch, report))
}

/// Sends one Input to an open Session; returns the answer and the events that it led to.
pub(crate) async fn request(handle: &Handle, input: Input) -> Result<(Accepted, Vec<Event>)> {
    let closed = || {
        Error::new(
            Code::SessionStartFailed,
            "the session closed before it could answer",
            Remedy::Retry { after_s: None },
        )
    };
    let mut watch = handle.watch().await.ok_or_else(closed)?;
    let accepted = handle.request(input).await?;
    Ok((accepted, std::iter::from_fn(|| watch.try_next()).collect()))
}
