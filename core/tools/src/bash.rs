//! The tool `bash`: it runs a shell command line.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::job;
use crate::waiting::Waiting;
use call::arguments::{self, object};
use call::blocked::Tail;
use call::command::{Line, look_after, look_before, tell, timed_out};
use call::outcome::Outcome;
use call::protection::jobs::start_job;
use call::{Context, Output, Prepared, Tool};
use files::size::Size;
use files::workspace::Inside;
use permissions::shell::quote;
use permissions::{Touch, prove_read_only, rules};
use process::{Ended, Group, Stream};
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result};
use protocol::event::Preview;
use protocol::tool_spec::ToolSpec;
use sandbox::LEFT_BEHIND;

/// The default time limit of a command, seconds.
const TIMEOUT: u64 = 120;
/// The longest time limit that a call may set, seconds.
pub const MAX_TIMEOUT: u64 = 3_600;
/// The longest command line, bytes.
const MAX_COMMAND: usize = 128 << 10;
/// The tool's name.
pub const NAME: &str = "bash";

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
            description: "Run a command line with bash in the workspace. Each call is a new shell: no cd or variable carries over. No terminal, no stdin; processes left running are stopped, unless background.".into(),
            parameters: object(
                json!({
                    "command": { "type": "string" },
                    "timeout": { "type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT, "description": "Seconds (default 120)" },
                    "cwd": { "type": "string", "description": "Folder" },
                    "background": { "type": "boolean", "description": "Start a job; return at once, or once it listens on wait_port or a line matches wait_output" },
                    "wait_port": { "type": "integer" },
                    "wait_output": { "type": "string" },
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

/// Prepares a command, of which each stream is collected besides.
///
/// # Errors
/// As for a call of the tool.
pub fn heard_by(command: String, limit: Duration, heard: Arc<Mutex<Heard>>, ctx: &Context) -> Result<Prepared> {
    if command.contains('\0') || command.len() > MAX_COMMAND {
        let message = "the command is longer than 128 KB or holds a NUL byte";
        return Err(Error::new(Code::InvalidArgs, message, "a shorter command, with long text in a file"));
    }
    let at = ctx.workspace.locate(".")?;
    let runs_unasked = prove_read_only(&command, ctx.readable()).is_ok();
    let danger = if runs_unasked { None } else { danger(&command, &at, ctx) };
    let preview = Preview { would: "run".into(), target: command.clone(), danger, ..Preview::default() };
    let line = Line::shell(&command, ctx.workspace.path_of(&at), runs_unasked);
    Ok(Prepared::new(preview, Touch::Command(command), move |ctx| async move {
        let mut output = Output::new(&ctx, ctx.limits.typed());
        let mut hear = |stream, bytes: &[u8]| heard.lock().take(stream, bytes);
        if runs_unasked {
            run(line, limit, &ctx, &mut output, Some(&mut hear)).await?;
            return Ok(output);
        }
        let watched = look_before(&ctx, line.config_keeper(&ctx)).await?;
        run(line, limit, &ctx, &mut output, Some(&mut hear)).await?;
        let found = look_after(&ctx, watched).await;
        output.changes = found.changes;
        output.taken = found.taken;
        Ok(output)
    }))
}

/// What the command would delete, as far as that is known before it runs.
fn danger(command: &str, folder: &Inside, ctx: &Context) -> Option<String> {
    let places = rules::deleted(command)?.into_iter().map(|path| {
        let path = match folder.display() {
            at if at == "." || path.starts_with('/') => path,
            at => format!("{at}/{path}"),
        };
        Some(ctx.workspace.path_of(&ctx.workspace.locate(&path).ok()?))
    });
    Size::of(places.collect::<Option<Vec<_>>>()?).deletes()
}

/// What a command wrote, each stream alone.
#[derive(Debug, Default)]
pub struct Heard {
    /// The first megabyte.
    pub stdout: Vec<u8>,
    /// The last two kilobytes.
    pub stderr: Vec<u8>,
}

impl Heard {
    const MAX_STDOUT: usize = 1 << 20;
    const MAX_STDERR: usize = 2 << 10;

    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Out => {
                let room = Self::MAX_STDOUT.saturating_sub(self.stdout.len()).min(bytes.len());
                self.stdout.extend_from_slice(&bytes[..room]);
            }
            Stream::Err => {
                self.stderr.extend_from_slice(bytes);
                self.stderr.drain(..self.stderr.len().saturating_sub(Self::MAX_STDERR));
            }
        }
    }
}

/// What takes the bytes of each stream alone.
type Hear<'a> = &'a mut (dyn FnMut(Stream, &[u8]) + Send);

async fn run(
    line: Line,
    limit: Duration,
    ctx: &Context,
    output: &mut Output,
    mut hear: Option<Hear<'_>>,
) -> Result<()> {
    let ran = line.ran();
    // Dropping the group stops every process of the command, also after an interrupt or a panic.
    let started = match hear {
        Some(_) => Group::start(line.ready(ctx), &ctx.stopping),
        // In the order of their writing.
        None => process::joined(line.ready(ctx)).and_then(|(command, printed)| {
            let (mut child, group) = Group::start(command, &ctx.stopping)?;
            child.stdout = Some(printed);
            Ok((child, group))
        }),
    };
    let (mut child, group) = started.map_err(|e| {
        Error::new(
            Code::CommandFailed,
            format!("start bash: {e}"),
            "install bash, or check that the workspace folder still exists",
        )
    })?;
    let mut tail = Tail::default();
    let ended = process::drain(&mut child, &group, Some(limit), |stream, bytes| {
        tail.push(bytes);
        if let Some(hear) = &mut hear {
            hear(stream, bytes);
        }
        let capture = if stream == Stream::Out { &mut output.stdout } else { &mut output.stderr };
        tell(ctx, capture.push(bytes));
    })
    .await
    .map_err(|e| Error::new(Code::CommandFailed, format!("wait for the command: {e}"), "run it again"))?;
    if let Ended::Exited(status) = ended
        && let Some(error) = ctx.sandbox.fault(status, tail.bytes())
    {
        return Err(error);
    }
    if ended == Ended::TimedOut {
        group.stop().await;
        output.stderr.push(timed_out(limit).as_bytes());
    } else if group.is_alive() {
        group.stop().await;
        output.stderr.push(LEFT_BEHIND.as_bytes());
    }
    output.exit = ended.code();
    if let Ended::Exited(_) = ended {
        output.blocked = tail.blocked(&ran, output.exit, ctx);
    }
    Ok(())
}
