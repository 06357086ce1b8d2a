//! The tools that read a job's output and stop a job. `bash` with `background` starts one.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::waiting::{MAX_WAIT, Waiting};
use call::arguments::{self, object};
use call::{Context, Output, Prepared, Tool};
use permissions::Touch;
use process::jobs::News;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result};
use protocol::event::{JobState, JobStatus, Preview};
use protocol::tool_spec::ToolSpec;
use text::encoding;
use text::human::human_size;
use text::media::Guard;

pub(super) struct JobOutput;

#[derive(Deserialize)]
struct OutputArgs {
    job: Option<u32>,
    wait: Option<u64>,
    wait_port: Option<u16>,
    wait_output: Option<String>,
}

impl Tool for JobOutput {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "job_output".into(),
            description:
                "Read the status of a job, and what it has printed since you last read it. Without job, list all jobs."
                    .into(),
            parameters: object(
                json!({
                    "job": { "type": "integer", "minimum": 1 },
                    "wait": { "type": "integer", "minimum": 0, "maximum": MAX_WAIT, "description": "Seconds to wait for new output, or for wait_port or wait_output" },
                    "wait_port": { "type": "integer", "description": "TCP port on which the job listens" },
                    "wait_output": { "type": "string", "description": "Rust regex for a line that it prints" },
                }),
                &[],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; prints the job's new output, then its status".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let target = args["job"].as_u64().map_or("jobs".to_owned(), |id| format!("job {id}"));
        CallInfo::new(CallKind::Other, "read", target).with_details(args, &["wait", "wait_port", "wait_output"])
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let OutputArgs { job, wait, wait_port, wait_output } = arguments::parse(args)?;
        let waiting = Waiting::new(wait_port, wait_output.as_deref(), wait)?;
        if waiting.is_some() && job.is_none() {
            return Err(Error::new(Code::InvalidArgs, "`wait_port` and `wait_output` need a `job`", ""));
        }
        output(job, wait.unwrap_or(0), waiting, ctx)
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("job output")
    }
}

/// Prepares a call that reports on one job, or lists all jobs.
fn output(job: Option<u32>, wait: u64, waiting: Option<Waiting>, ctx: &Context) -> Result<Prepared> {
    let jobs = ctx.jobs()?;
    let target = job.map_or("jobs".to_owned(), |id| format!("job {id}"));
    let preview = Preview { would: "read".into(), target, ..Preview::default() };
    Ok(Prepared::new(preview, Touch::Read, move |ctx| async move {
        let Some(id) = job else {
            let list: String = jobs.list().iter().map(|it| format!("{}\n", line(it))).collect();
            return Ok(Output::text(&ctx, &list));
        };
        let mut all = Output::text(&ctx, "");
        let wait = match &waiting {
            Some(waiting) => {
                let (told, exit) = waiting.perform(&jobs, id, &ctx).await?;
                all.stdout.push(told.as_bytes());
                all.exit = exit;
                Duration::ZERO
            }
            None => Duration::from_secs(wait.min(MAX_WAIT)),
        };
        push_news(&mut all, jobs.output(id, wait).await?);
        Ok(all)
    }))
}

/// Adds a job's new output and its state to a result.
pub(super) fn push_news(all: &mut Output, news: News) {
    let News { state, output, more } = news;
    // Binary output must not hide the job's state, so only its size is shown.
    let mut guard = Guard::of(encoding::Source::Output);
    let text = guard.see(&output).into_owned() + &guard.end();
    if guard.is_binary(output.len() as u64) {
        let size = human_size(output.len() as u64);
        all.stdout.push(format!("[binary output ({size}), in {}]", state.output_path).as_bytes());
    } else if let Some(encoding) = guard.encoding() {
        all.stdout.push(format!("{}\n…[decoded from {encoding}]\n", text.trim_end_matches('\n')).as_bytes());
    } else {
        all.stdout.push(&output);
        if output.last().is_some_and(|last| *last != b'\n') {
            all.stdout.push(b"\n");
        }
    }
    if more > 0 {
        all.stdout.push(format!("…[{more} more bytes: call again, or read {}]\n", state.output_path).as_bytes());
    }
    all.stdout.push(format!("{}\n", line(&state)).as_bytes());
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
            description: "Stop a job and all of its processes.".into(),
            parameters: object(json!({ "job": { "type": "integer", "minimum": 1 } }), &["job"]),
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
pub fn line(job: &JobState) -> String {
    let status = match job.status {
        JobStatus::Running => "running".to_owned(),
        JobStatus::Ended { exit_code } => format!("ended, exit {exit_code}"),
        JobStatus::Stopped => "stopped".to_owned(),
    };
    let lost = if job.lost > 0 { format!(" without its last {}", human_size(job.lost)) } else { String::new() };
    format!("job {} ({status}): {}; output in {}{lost}", job.id, job.command, job.output_path)
}
