//! The tools that read a job's output and stop a job. `bash` with `background` starts one.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::arguments::{self, object};
use crate::call::{Context, Output, Prepared, Tool};
use crate::permissions::Touch;
use crate::process::jobs::News;
use crate::protocol::call_info::{CallInfo, CallKind};
use crate::protocol::error::Result;
use crate::protocol::event::{JobState, JobStatus, Preview};
use crate::protocol::tool_spec::ToolSpec;
use crate::text::human::human_size;
use crate::text::media::Guard;

/// The longest wait for output that a call may set, seconds.
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
            name: "job_output".into(),
            description: "A background job's output since the last call, and its status. Without job: list all jobs."
                .into(),
            parameters: object(
                json!({
                    "job": { "type": "integer", "minimum": 1, "description": "Its number" },
                    "wait": { "type": "integer", "minimum": 0, "maximum": MAX_WAIT, "description": "Seconds to wait for new output" },
                }),
                &[],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; prints the job's new output, then its status".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let target = args["job"].as_u64().map_or("jobs".to_owned(), |id| format!("job {id}"));
        CallInfo::new(CallKind::Other, "read", target).with_details(args, &["wait"])
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let OutputArgs { job, wait } = arguments::parse(args)?;
        output(job, wait, ctx)
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("job output")
    }
}

/// Prepares a call that reports on one job, or lists all jobs.
fn output(job: Option<u32>, wait: u64, ctx: &Context) -> Result<Prepared> {
    let jobs = ctx.jobs()?;
    let target = job.map_or("jobs".to_owned(), |id| format!("job {id}"));
    let preview = Preview { would: "read".into(), target, ..Preview::default() };
    Ok(Prepared::new(preview, Touch::Read, move |ctx| async move {
        let Some(id) = job else {
            let list: String = jobs.list().iter().map(|it| format!("{}\n", line(it))).collect();
            return Ok(Output::text(&ctx, &list));
        };
        let News { state, output, more } = jobs.output(id, Duration::from_secs(wait.min(MAX_WAIT))).await?;
        let mut all = Output::text(&ctx, "");
        // Binary output must not hide the job's state, so only its size is shown.
        let mut guard = Guard::default();
        guard.see(&output);
        if guard.is_binary(output.len() as u64) {
            let size = human_size(output.len() as u64);
            all.stdout.push(format!("[binary output ({size}), in {}]", state.output_path).as_bytes());
        } else {
            all.stdout.push(&output);
        }
        if output.last().is_some_and(|last| *last != b'\n') {
            all.stdout.push(b"\n");
        }
        if more > 0 {
            all.stdout.push(format!("…[{more} more bytes: call again, or read {}]\n", state.output_path).as_bytes());
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
            name: "job_kill".into(),
            description: "Stop a background job and all its processes.".into(),
            parameters: object(
                json!({ "job": { "type": "integer", "minimum": 1, "description": "Its number" } }),
                &["job"],
            ),
            reads_only: false,
            streams: "reads nothing from stdin; prints the job's status".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let target = args["job"].as_u64().map_or("job".to_owned(), |id| format!("job {id}"));
        CallInfo::new(CallKind::Other, "stop", target)
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let KillArgs { job } = arguments::parse(args)?;
        kill(job, ctx)
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("job kill")
    }
}

/// Prepares a call that stops a job.
fn kill(job: u32, ctx: &Context) -> Result<Prepared> {
    let jobs = ctx.jobs()?;
    let preview = Preview { would: "stop".into(), target: format!("job {job}"), ..Preview::default() };
    // The gate allowed the job to run; stopping it needs no approval.
    Ok(Prepared::new(preview, Touch::Note, move |ctx| async move {
        let state = jobs.stop(job).await?;
        Ok(Output::text(&ctx, &format!("{}\n", line(&state))))
    }))
}

/// One line about a job: `job 1 (running): npm run dev; output in /…/out/job-1.txt`.
pub(crate) fn line(job: &JobState) -> String {
    let status = match job.status {
        JobStatus::Running => "running".to_owned(),
        JobStatus::Ended { exit_code } => format!("ended, exit {exit_code}"),
        JobStatus::Stopped => "stopped".to_owned(),
    };
    let lost = if job.lost > 0 { format!(" without its last {}", human_size(job.lost)) } else { String::new() };
    format!("job {} ({status}): {}; output in {}{lost}", job.id, job.command, job.output_path)
}
