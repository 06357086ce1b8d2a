//! Run a command line.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::{Context, Output, Prepared, Tool, ToolSpec, parse_args, schema};
use crate::error::{Code, Error, Result};
use crate::event::Plan;
use crate::permissions::{Action, shell};
use crate::present::Capture;
use crate::process::{self, Group};

/// Seconds that a command may take, unless asked otherwise.
const TIMEOUT: u64 = 120;
/// The most seconds that can be asked for.
const MAX_TIMEOUT: u64 = 3_600;
/// The longest command line, bytes.
const MAX_COMMAND: usize = 128 << 10;
/// Where the programs of a command that runs without a question come from, whatever a workspace puts in front of them.
const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin:/opt/homebrew/bin";
/// How long the pipes are still read after the command itself has ended.
const DRAIN: Duration = Duration::from_millis(100);

pub(super) struct Bash;

#[derive(Deserialize)]
struct Args {
    command: String,
    timeout: Option<u64>,
    cwd: Option<String>,
}

impl Tool for Bash {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "bash",
            description: "Run a command line with bash in the workspace. Each call starts afresh: cd and variables do not carry over. No terminal and no stdin; processes left behind are stopped when the command ends.",
            parameters: schema(
                json!({
                    "command": { "type": "string", "description": "Command line" },
                    "timeout": { "type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT, "description": "Seconds until it is stopped (default 120)" },
                    "cwd": { "type": "string", "description": "Folder to run in, relative to the workspace" },
                }),
                &["command"],
            ),
            reads_only: false,
            streams: "stdin is empty; stdout is the output, stderr is added on failure",
        }
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { command, timeout, cwd } = parse_args(&self.spec(), args)?;
        if command.trim().is_empty() || command.contains('\0') || command.len() > MAX_COMMAND {
            return Err(Error::new(
                Code::InvalidArgs,
                "the command is empty, longer than 128 KB or holds a NUL byte",
                "a command line; long text belongs in a file",
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
        // A command elsewhere than at the root is judged as what it is: a change of folder, then the command.
        let judged = if cwd.is_some() { format!("cd {} && {command}", at.display()) } else { command.clone() };
        let reads_only = shell::prove_read_only(&judged, ctx.workspace.root()).is_ok();
        let plan = Plan { would: "run".into(), target: judged.clone(), ..Plan::default() };
        let limit = Duration::from_secs(timeout.unwrap_or(TIMEOUT).clamp(1, MAX_TIMEOUT));
        Ok(Prepared::new(plan, Action::Command(judged), move |ctx| async move {
            let safety = if reads_only { unasked(ctx.workspace.root()) } else { Vec::new() };
            if reads_only {
                return run(&command, &folder, limit, safety, &ctx).await;
            }
            let before = ctx.clone();
            let look = move || before.shadow.look(&before.call_id, &before.workspace, &before.blobs, &before.cancel);
            let _ = tokio::task::spawn_blocking(look).await;
            let mut output = run(&command, &folder, limit, safety, &ctx).await?;
            let after = ctx.clone();
            let find = move || after.shadow.changes(&after.call_id, &after.workspace, &after.blobs);
            let found = tokio::task::spawn_blocking(find).await.unwrap_or_default();
            output.changes = found.changes;
            for note in found.notes {
                output.stdout.push(format!("note: {note}\n").as_bytes());
            }
            Ok(output)
        }))
    }
}

/// What a command that runs without a question gets on top: programs of the system alone, and a git that does not run
/// what a repository names, fetch what it lacks, look into submodules, or search for a repository further up.
fn unasked(root: &std::path::Path) -> Vec<(&'static str, String)> {
    let fixed = [
        ("PATH", SYSTEM),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_CONFIG_COUNT", "3"),
        ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
        ("GIT_CONFIG_VALUE_0", "false"),
        ("GIT_CONFIG_KEY_1", "diff.ignoreSubmodules"),
        ("GIT_CONFIG_VALUE_1", "all"),
        ("GIT_CONFIG_KEY_2", "core.hooksPath"),
        ("GIT_CONFIG_VALUE_2", "/dev/null"),
    ];
    let mut all: Vec<_> = fixed.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
    all.push(("GIT_DIR", root.join(".git").display().to_string()));
    all
}

async fn run(
    command: &str,
    folder: &std::path::Path,
    limit: Duration,
    safety: Vec<(&str, String)>,
    ctx: &Context,
) -> Result<Output> {
    let mut shell = process::shell(command);
    shell
        .current_dir(folder)
        .env_clear()
        .envs(ctx.environment.iter().map(|(k, v)| (k, v)))
        .envs(safety)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Dropped at any await, by an interrupt or a panic, the group still stops every process of the command.
    let (mut child, group) = Group::start(shell).map_err(|e| {
        Error::new(
            Code::CommandFailed,
            format!("bash could not be started: {e}"),
            "install bash, or check that the workspace folder is still there",
        )
    })?;
    let (Some(mut out), Some(mut err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Error::new(Code::CommandFailed, "the command has no output streams", "report this as a bug"));
    };
    let mut stdout = Capture::new(ctx.overflow.clone());
    let mut stderr = Capture::stderr();
    let (mut out_buffer, mut err_buffer) = (vec![0; 32 << 10], vec![0; 8 << 10]);
    let (mut out_open, mut err_open) = (true, true);
    let deadline = tokio::time::sleep(limit);
    tokio::pin!(deadline);
    let mut status = None;
    let mut timed_out = false;
    while out_open || err_open || status.is_none() {
        tokio::select! {
            n = out.read(&mut out_buffer), if out_open => match n {
                Ok(0) | Err(_) => out_open = false,
                Ok(n) => tell(ctx, stdout.push(&out_buffer[..n])),
            },
            n = err.read(&mut err_buffer), if err_open => match n {
                Ok(0) | Err(_) => err_open = false,
                Ok(n) => tell(ctx, stderr.push(&err_buffer[..n])),
            },
            // The call is over when the command itself is, not when whoever it left behind closes the pipes.
            ended = child.wait(), if status.is_none() => {
                group.leader_ended();
                status = Some(ended);
                deadline.as_mut().reset(tokio::time::Instant::now() + DRAIN);
            }
            () = &mut deadline => {
                timed_out = status.is_none();
                break;
            }
        }
    }
    if timed_out {
        group.stop();
        stderr.push(
            format!("stopped after {} s without an end; give a longer timeout if it needs one\n", limit.as_secs())
                .as_bytes(),
        );
        return Ok(Output { stdout, stderr, exit: 124, changes: Vec::new(), plan: None });
    }
    if group.is_alive() {
        stderr.push(b"processes that the command left behind were stopped\n");
    }
    let exit = match status {
        Some(Ok(status)) => status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        Some(Err(e)) => {
            return Err(Error::new(Code::CommandFailed, format!("wait for the command: {e}"), "run it again"));
        }
        None => 124,
    };
    Ok(Output { stdout, stderr, exit, changes: Vec::new(), plan: None })
}

/// A full channel drops news for the live view; what is recorded is whole.
fn tell(ctx: &Context, text: String) {
    if let Some(progress) = &ctx.progress
        && !text.is_empty()
    {
        let _ = progress.try_send(text);
    }
}
