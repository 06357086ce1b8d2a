//! What runs in the background: hearing of it, and stopping it. `bash` with `background` starts it.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Context, Output, Prepared, Tool, ToolSpec, object, parse_args};
use crate::call::present::human_size;
use crate::permissions::Action;
use crate::process::jobs::{Jobs, News};
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{JobState, JobStatus, Plan};

/// The most seconds that can be waited.
const MAX_WAIT: u64 = 60;

pub(super) struct JobOutput;

#[derive(Deserialize)]
struct OutputArgs {
    job: Option<u32>,
    #[serde(default)]
    wait: u64,
}

impl Tool for JobOutput {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "job_output",
            description: "What a background job has printed since the last time, and whether it runs. Without job: list all.",
            parameters: object(
                json!({
                    "job": { "type": "integer", "minimum": 1, "description": "Its number" },
                    "wait": { "type": "integer", "minimum": 0, "maximum": MAX_WAIT, "description": "Seconds to wait for news" },
                }),
                &[],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; the job's new output, then how it stands",
        }
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let OutputArgs { job, wait } = parse_args(&self.spec(), args)?;
        output(job, wait, ctx)
    }
}

/// A call that reports on a job, or lists all.
fn output(job: Option<u32>, wait: u64, ctx: &Context) -> Result<Prepared> {
    let jobs = jobs_of(ctx)?;
    let target = job.map_or("jobs".to_owned(), |id| format!("job {id}"));
    let plan = Plan { would: "read".into(), target, ..Plan::default() };
    Ok(Prepared::new(plan, Action::Read, move |ctx| async move {
        let Some(id) = job else {
            let list: String = jobs.list().iter().map(|it| format!("{}\n", line(it))).collect();
            return Ok(Output::text(&ctx, &list));
        };
        let News { state, output, more } = jobs.output(id, Duration::from_secs(wait.min(MAX_WAIT))).await?;
        let mut all = Output::text(&ctx, "");
        // How it stands is told also when what it prints is no text.
        match std::str::from_utf8(&output) {
            Ok(text) if !text.contains('\0') => drop(all.stdout.push(&output)),
            Ok(_) | Err(_) => {
                let size = human_size(output.len() as u64);
                drop(all.stdout.push(format!("[binary output ({size}), in {}]", state.output_path).as_bytes()));
            }
        }
        if output.last().is_some_and(|last| *last != b'\n') {
            all.stdout.push(b"\n");
        }
        if more > 0 {
            all.stdout
                .push(format!("…[{more} more bytes: ask again, or look into {}]\n", state.output_path).as_bytes());
        }
        all.stdout.push(format!("{}\n", line(&state)).as_bytes());
        Ok(all)
    }))
}

pub(super) struct JobKill;

#[derive(Deserialize)]
struct KillArgs {
    job: u32,
}

impl Tool for JobKill {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "job_kill",
            description: "Stop a background job and everything that it started.",
            parameters: object(
                json!({ "job": { "type": "integer", "minimum": 1, "description": "Its number" } }),
                &["job"],
            ),
            reads_only: false,
            streams: "reads nothing from stdin; how the job stands",
        }
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let KillArgs { job } = parse_args(&self.spec(), args)?;
        kill(job, ctx)
    }
}

/// A call that stops a job.
fn kill(job: u32, ctx: &Context) -> Result<Prepared> {
    let jobs = jobs_of(ctx)?;
    let plan = Plan { would: "stop".into(), target: format!("job {job}"), ..Plan::default() };
    // It was allowed to run; that it stops needs nobody's leave.
    Ok(Prepared::new(plan, Action::Note, move |ctx| async move {
        let state = jobs.stop(job).await?;
        Ok(Output::text(&ctx, &format!("{}\n", line(&state))))
    }))
}

/// The jobs of the Session that a call belongs to.
///
/// # Errors
/// `COMMAND_FAILED` outside a Session.
pub(crate) fn jobs_of(ctx: &Context) -> Result<Arc<Jobs>> {
    ctx.jobs.clone().ok_or_else(|| {
        Error::new(Code::CommandFailed, "there are no background jobs outside a session", "run it in the foreground")
    })
}

/// `job 1 (running): npm run dev; output in .pixir/out/job-1.txt`.
pub(crate) fn line(job: &JobState) -> String {
    let status = match job.status {
        JobStatus::Running => "running".to_owned(),
        JobStatus::Ended { exit_code } => format!("ended, exit {exit_code}"),
        JobStatus::Stopped => "stopped".to_owned(),
    };
    let lost = if job.lost > 0 { format!(", but for its last {}", human_size(job.lost)) } else { String::new() };
    format!("job {} ({status}): {}; output in {}{lost}", job.id, job.command, job.output_path)
}
