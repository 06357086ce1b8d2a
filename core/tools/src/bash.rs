//! The tool `bash`: it runs a shell command line.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::job;
use crate::waiting::Waiting;
use call::arguments::{self, object};
use call::command::{Line, look_after, look_before};
use call::outcome::Outcome;
use call::protection::jobs::start_job;
use call::shell::{MAX_COMMAND, MAX_TIMEOUT, NAME, danger, run};
use call::{Context, Output, Prepared, Tool};
use permissions::shell::quote;
use permissions::{Touch, prove_read_only};
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result};
use protocol::event::Preview;
use protocol::tool_spec::ToolSpec;

/// The default time limit of a command, seconds.
const TIMEOUT: u64 = 120;

pub(super) struct Bash;

#[derive(Deserialize)]
struct Args {
    command: String,
    timeout: Option<u64>,
    cwd: Option<String>,
    #[serde(default)]
    background: bool,
    wait_port: Option<u16>,
    wait_output: Option<String>,
}

impl Tool for Bash {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.into(),
            description: concat!(
                "Run a command line with bash in the workspace. Each call starts a new shell, so cd and variables do not last until ",
                "the next call. The command has no terminal and nothing on stdin. When it ends, the processes that it left running are ",
                "stopped; start a server with background=true.",
            )
            .into(),
            parameters: object(
                json!({
                    "command": { "type": "string" },
                    "timeout": { "type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT, "description": "The most seconds that it may take (default 120)" },
                    "cwd": { "type": "string", "description": "Folder to run it in" },
                    "background": { "type": "boolean", "description": "Whether to start it as a job. The call returns at once, or when the job listens on wait_port or prints a line that matches wait_output" },
                    "wait_port": { "type": "integer", "description": "TCP port" },
                    "wait_output": { "type": "string", "description": "Rust regex" },
                }),
                &["command"],
            ),
            reads_only: false,
            streams: "stdin is empty; stdout and stderr are the output, in the order of their writing".into(),
        }
    }

    fn describe(&self, args: &Value, ctx: &Context) -> CallInfo {
        let command = args["command"].as_str().unwrap_or_default();
        let folder = args["cwd"].as_str().filter(|folder| *folder != ".");
        let judged = folder.map_or(command.to_owned(), |folder| format!("cd {} && {command}", quote(folder)));
        let reads_only = prove_read_only(&judged, ctx.readable()).is_ok();
        let info = CallInfo::new(CallKind::Execute, "run", command)
            .with_details(args, &["cwd", "timeout", "background", "wait_port", "wait_output"]);
        CallInfo { reads_only, ..info }
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { command, timeout, cwd, background, wait_port, wait_output } = arguments::parse(args)?;
        let waiting = Waiting::new(wait_port, wait_output.as_deref(), timeout)?;
        if waiting.is_some() && !background {
            let message = "`wait_port` and `wait_output` wait for a background job";
            return Err(Error::new(Code::InvalidArgs, message, "background=true"));
        }
        if command.trim().is_empty() || command.contains('\0') || command.len() > MAX_COMMAND {
            return Err(Error::new(
                Code::InvalidArgs,
                "the command is empty, longer than 128 KB or holds a NUL byte",
                "a shorter command line, with long text in a file",
            ));
        }
        let at = ctx.workspace.locate(cwd.as_deref().unwrap_or("."))?;
        if !ctx.workspace.is_folder(&at)? {
            return Err(Error::new(
                Code::InvalidArgs,
                format!("`{}` is not a folder", at.display()),
                "a folder inside the workspace",
            )
            .with("input", at.display()));
        }
        let folder = ctx.workspace.path_of(&at);
        // With a `cwd`, the gate judges the equivalent line `cd <cwd> && <command>`.
        let judged = if cwd.is_some() { format!("cd {} && {command}", quote(&at.display())) } else { command.clone() };
        let would = if background { "run in the background" } else { "run" };
        let runs_unasked = prove_read_only(&judged, ctx.readable()).is_ok();
        let danger = if runs_unasked { None } else { danger(&command, &at, ctx) };
        let preview = Preview { would: would.into(), target: judged.clone(), danger, ..Preview::default() };
        let line = Line::shell(&command, folder, runs_unasked);
        if background {
            let jobs = ctx.jobs()?;
            return Ok(Prepared::new(preview, Touch::Command(judged), move |ctx| async move {
                let network = line.network_note(&ctx);
                let started = start_job(line, &jobs, &command, &ctx)?;
                let note =
                    format!("{network}note: file changes of a background job are not recorded and cannot be undone");
                let Some(waiting) = waiting else {
                    return Ok(Output::text(&ctx, &format!("{}\n{note}\n", job::line(&started))));
                };
                let (told, exit) = waiting.perform(&jobs, started.id, &ctx).await?;
                let mut output = Output { exit, ..Output::text(&ctx, &told) };
                job::push_news(&mut output, jobs.output(started.id, Duration::ZERO).await?);
                output.stdout.push(format!("{note}\n").as_bytes());
                Ok(output)
            }));
        }
        let limit = Duration::from_secs(timeout.unwrap_or(TIMEOUT).clamp(1, MAX_TIMEOUT));
        Ok(Prepared::new(preview, Touch::Command(judged), move |ctx| async move {
            let mut output = Output::new(&ctx, ctx.limits.typed());
            if runs_unasked {
                run(line, limit, &ctx, &mut output, None).await?;
                return Ok(output);
            }
            output.outcome = Outcome::OfPrograms;
            let watched = look_before(&ctx, line.config_keeper(&ctx)).await?;
            run(line, limit, &ctx, &mut output, None).await?;
            let found = look_after(&ctx, watched).await;
            output.changes = found.changes;
            output.taken = found.taken;
            output.stdout.push(found.notes.as_bytes());
            Ok(output)
        }))
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("<program> <argument>…")
    }
}
