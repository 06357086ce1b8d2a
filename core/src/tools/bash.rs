//! Run a command line.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

use super::job::{jobs_of, line};
use super::{Context, Output, Prepared, Tool, ToolSpec, object, parse_args};
use crate::call::present::Budget;
use crate::permissions::{Action, shell};
use crate::process::{self, Ended, Group, Stream};
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{FileChange, Plan, Printed};

/// Seconds that a command may take, unless asked otherwise.
const TIMEOUT: u64 = 120;
/// The most seconds that can be asked for.
pub(crate) const MAX_TIMEOUT: u64 = 3_600;
/// The longest command line, bytes.
const MAX_COMMAND: usize = 128 << 10;
/// Where the programs of a command that runs without a question come from, whatever a workspace puts in front of them.
const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin:/opt/homebrew/bin";

/// What the tool is called.
pub(crate) const NAME: &str = "bash";

pub(super) struct Bash;

#[derive(Deserialize)]
struct Args {
    command: String,
    timeout: Option<u64>,
    cwd: Option<String>,
    #[serde(default)]
    background: bool,
}

impl Tool for Bash {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME,
            description: "Run a command line with bash in the workspace. Each call starts afresh: no cd or variable carries over. No terminal, no stdin; what is left running is stopped, unless background.",
            parameters: object(
                json!({
                    "command": { "type": "string", "description": "Command line" },
                    "timeout": { "type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT, "description": "Seconds (default 120)" },
                    "cwd": { "type": "string", "description": "Folder to run in" },
                    "background": { "type": "boolean", "description": "Return at once; go on with job_output, job_kill" },
                }),
                &["command"],
            ),
            reads_only: false,
            streams: "stdin is empty; stdout is the output, stderr is added on failure",
        }
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { command, timeout, cwd, background } = parse_args(&self.spec(), args)?;
        if command.trim().is_empty() || command.contains('\0') || command.len() > MAX_COMMAND {
            return Err(Error::new(
                Code::InvalidArgs,
                "the command is empty, longer than 128 KB or holds a NUL byte",
                "pass a command line, and write long text to a file",
            ));
        }
        let at = ctx.workspace.locate(cwd.as_deref().unwrap_or("."))?;
        if !ctx.workspace.is_folder(&at)? {
            return Err(Error::new(
                Code::InvalidArgs,
                format!("`{}` is not a folder", at.display()),
                "use a folder inside the workspace",
            )
            .with("input", at.display()));
        }
        let folder = ctx.workspace.path_of(&at);
        // A command elsewhere than at the root is judged as what it is: a change of folder, then the command.
        let judged = if cwd.is_some() { format!("cd {} && {command}", at.display()) } else { command.clone() };
        let would = if background { "run in the background" } else { "run" };
        let plan = Plan { would: would.into(), target: judged.clone(), ..Plan::default() };
        let runs_unasked = shell::prove_read_only(&judged, ctx.workspace.root()).is_ok();
        let line = Line { command: process::shell(&command), folder, runs_unasked };
        if background {
            let jobs = jobs_of(ctx)?;
            return Ok(Prepared::new(plan, Action::Command(judged), move |ctx| async move {
                let job = jobs.start(line.ready(&ctx), &command)?;
                let note = "note: file changes of a background job are not recorded and cannot be undone";
                Ok(Output::text(&ctx, &format!("{}\n{note}\n", self::line(&job))))
            }));
        }
        let limit = Duration::from_secs(timeout.unwrap_or(TIMEOUT).clamp(1, MAX_TIMEOUT));
        Ok(Prepared::new(plan, Action::Command(judged), move |ctx| async move {
            let mut output = Output::new(&ctx, Budget::TYPED);
            if runs_unasked {
                run(line, limit, &ctx, &mut output).await?;
                return Ok(output);
            }
            look_before(&ctx).await;
            run(line, limit, &ctx, &mut output).await?;
            let (changes, notes) = look_after(&ctx).await;
            output.changes = changes;
            output.stdout.push(notes.as_bytes());
            Ok(output)
        }))
    }
}

/// Keeps the workspace's files as they are, so that what a command changes can be found.
pub(crate) async fn look_before(ctx: &Context) {
    let ctx = ctx.clone();
    let look = move || ctx.shadow.look(&ctx.call_id, &ctx.workspace, &ctx.blobs, &ctx.cancel);
    let _ = tokio::task::spawn_blocking(look).await;
}

/// What was changed since, and what has to be said about that.
pub(crate) async fn look_after(ctx: &Context) -> (Vec<FileChange>, String) {
    let ctx = ctx.clone();
    let find = move || ctx.shadow.changes(&ctx.call_id, &ctx.workspace, &ctx.blobs);
    let found = tokio::task::spawn_blocking(find).await.unwrap_or_default();
    (found.changes, found.notes.iter().map(|note| format!("note: {note}\n")).collect())
}

/// A command that is to be run, and where.
pub(crate) struct Line {
    pub(crate) command: Command,
    pub(crate) folder: std::path::PathBuf,
    /// It was proven to only read, and runs without a question.
    pub(crate) runs_unasked: bool,
}

impl Line {
    /// With its environment, without a terminal, nothing on stdin, both streams piped.
    pub(crate) fn ready(self, ctx: &Context) -> Command {
        let Line { mut command, folder, runs_unasked } = self;
        let safety = if runs_unasked { unasked(ctx.workspace.root()) } else { Vec::new() };
        command
            .current_dir(folder)
            .env_clear()
            .envs(ctx.environment.iter().map(|(k, v)| (k, v)))
            .envs(safety)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// What a command that runs without a question gets on top: programs of the system alone, and a git that does not run
/// what a repository names, fetch what it lacks, look into submodules, or search for a repository further up.
fn unasked(root: &Path) -> Vec<(&'static str, String)> {
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

async fn run(line: Line, limit: Duration, ctx: &Context, output: &mut Output) -> Result<()> {
    // Dropped at any await, by an interrupt or a panic, the group still stops every process of the command.
    let (mut child, group) = Group::start(line.ready(ctx)).map_err(|e| {
        Error::new(
            Code::CommandFailed,
            format!("start bash: {e}"),
            "install bash, or check that the workspace folder still exists",
        )
    })?;
    let ended = process::drain(&mut child, &group, Some(limit), |stream, bytes| {
        let capture = if stream == Stream::Out { &mut output.stdout } else { &mut output.stderr };
        tell(ctx, capture.push(bytes));
    })
    .await
    .map_err(|e| Error::new(Code::CommandFailed, format!("wait for the command: {e}"), "run it again"))?;
    if ended == Ended::TimedOut {
        group.stop();
        output.stderr.push(timed_out(limit).as_bytes());
    } else if group.is_alive() {
        output.stderr.push(LEFT_BEHIND);
        output.tell_stderr = true;
    }
    output.exit = ended.code();
    Ok(())
}

/// Said when processes outlived their command.
pub(crate) const LEFT_BEHIND: &[u8] = b"processes that the command left running were stopped\n";

/// Said when a command took too long.
pub(crate) fn timed_out(limit: Duration) -> String {
    format!("stopped after {} s; set a longer timeout if the command needs one\n", limit.as_secs())
}

/// A full channel drops news for the live view; what is recorded is whole.
pub(crate) fn tell(ctx: &Context, printed: Printed) {
    if let Some(progress) = &ctx.progress
        && printed != Printed::default()
    {
        let _ = progress.try_send(printed);
    }
}
