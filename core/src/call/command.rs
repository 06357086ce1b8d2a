//! A program that a call starts: its environment, and what it changed in the workspace.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::Context;
use crate::protocol::event::{FileChange, Printed};

/// Where the programs of a command that runs without a question come from, whatever a workspace puts in front of them.
const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin:/opt/homebrew/bin";

/// A command that is to be run, and where.
pub(crate) struct Line {
    pub(crate) command: Command,
    pub(crate) folder: PathBuf,
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

/// Keeps the workspace's files as they are, so that what a command changes can be found.
pub(crate) async fn look_before(ctx: &Context) {
    let ctx = ctx.clone();
    let look = move || ctx.snapshot.before(&ctx.call_id, &ctx.workspace, &ctx.blobs, &ctx.cancel);
    let _ = tokio::task::spawn_blocking(look).await;
}

/// What was changed since, and what has to be said about that.
pub(crate) async fn look_after(ctx: &Context) -> (Vec<FileChange>, String) {
    let ctx = ctx.clone();
    let find = move || ctx.snapshot.after(&ctx.call_id, &ctx.workspace, &ctx.blobs);
    let found = tokio::task::spawn_blocking(find).await.unwrap_or_default();
    (found.changes, found.notes.iter().map(|note| format!("note: {note}\n")).collect())
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
