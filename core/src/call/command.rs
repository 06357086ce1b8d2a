//! A program that a call starts: its environment, and what it changed in the workspace.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::Context;
use crate::protocol::event::{FileChange, Printed};

/// `PATH` for a command that runs without an approval, so that a workspace cannot substitute its programs.
const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin:/opt/homebrew/bin";

/// A command to run, and its working folder.
pub(crate) struct Line {
    pub(crate) command: Command,
    pub(crate) folder: PathBuf,
    /// It is proven to only read and runs without an approval.
    pub(crate) runs_unasked: bool,
}

impl Line {
    /// The command with its environment and folder set, stdin empty, stdout and stderr piped.
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

/// Extra environment for a command that runs without an approval.
///
/// It finds only programs of the system. Its git runs no hook or fsmonitor of the repository, fetches no missing
/// objects, ignores submodules, and searches no parent folder for a repository.
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

/// Takes a snapshot of the workspace before a command, to find the command's changes afterwards.
pub(crate) async fn look_before(ctx: &Context) {
    let ctx = ctx.clone();
    let look = move || ctx.snapshot.before(&ctx.call_id, &ctx.workspace, &ctx.blobs, &ctx.cancel);
    let _ = tokio::task::spawn_blocking(look).await;
}

/// The changes since [`look_before`], and remarks about them for the model.
pub(crate) async fn look_after(ctx: &Context) -> (Vec<FileChange>, String) {
    let ctx = ctx.clone();
    let find = move || ctx.snapshot.after(&ctx.call_id, &ctx.workspace, &ctx.blobs);
    let found = tokio::task::spawn_blocking(find).await.unwrap_or_default();
    (found.changes, found.notes.iter().map(|note| format!("note: {note}\n")).collect())
}

/// Said when processes outlived their command.
pub(crate) const LEFT_BEHIND: &[u8] = b"processes that the command left running were stopped\n";

/// The message when a command exceeds its time limit.
pub(crate) fn timed_out(limit: Duration) -> String {
    format!("stopped after {} s; set a longer timeout if the command needs one\n", limit.as_secs())
}

/// Sends output to the live view. A full channel drops it; the recorded result is still complete.
pub(crate) fn tell(ctx: &Context, printed: Printed) {
    if let Some(progress) = &ctx.progress
        && printed != Printed::default()
    {
        let _ = progress.try_send(printed);
    }
}
