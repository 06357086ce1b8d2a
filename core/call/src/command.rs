//! A program that a call starts: its environment, and what it changed in the workspace.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::blocked::Ran;
use super::protection::{Guards, Keeper, Watched, kept};
use super::{Context, off_loop};
use files::guard::Taken;
use permissions::configures_git;
use permissions::repository::{Leads, Repository, runs_nothing};
use permissions::shell::quoted;
use process::names_code;
use protocol::error::Result;
use protocol::event::{FileChange, Printed};
use protocol::sandbox::Tier;
use sandbox::{Own, Policy, leads_through};
use storage::store::make_private;

/// A program to run, and its working folder.
pub struct Line {
    pub program: String,
    pub args: Vec<String>,
    pub folder: PathBuf,
    /// It is proven to only read and runs without an approval.
    pub runs_unasked: bool,
    /// It is a background job.
    pub is_job: bool,
}

impl Line {
    /// A line of bash.
    pub fn shell(command: &str, folder: PathBuf, runs_unasked: bool) -> Line {
        Line { program: "bash".into(), args: vec!["-c".into(), command.into()], folder, runs_unasked, is_job: false }
    }

    /// The text that a search for the sandbox's refusals needs.
    pub fn ran(&self) -> Ran {
        Ran { command: self.args.join(" "), folder: self.folder.clone() }
    }

    /// What keeps the repository's configuration from the program.
    ///
    /// Git replaces that file, which the kernel cannot allow under a mount. So where the program is git alone, and git runs
    /// nothing else, the guard keeps it: the change is taken back when the program has ended, and the user may keep it. Every
    /// other program, and a job, which may run for hours, finds it read-only.
    pub fn config_keeper(&self, ctx: &Context) -> Keeper {
        let is_kept = self.is_job || self.policy(ctx) == Policy::Look || ctx.sandbox.tier() != Tier::Namespaces;
        let line = if self.program == "bash" { self.args.last().cloned().unwrap_or_default() } else { self.quoted() };
        if is_kept || !configures_git(&line, ctx.readable()) {
            return Keeper::Kernel;
        }
        // Which of the repositories the line is about is not judged, so none of them may run anything.
        let home = ctx.environment.iter().find(|(name, _)| name == "HOME").map(|(_, value)| Path::new(value));
        let repositories: Vec<(PathBuf, Repository)> = ctx
            .roots()
            .iter()
            .filter_map(|it| Some((it.root().to_owned(), Repository::find(it.root()).ok().flatten()?)))
            .collect();
        let is_own =
            !repositories.is_empty() && repositories.iter().all(|(root, it)| it.top == *root && runs_nothing(it, home));
        if is_own { Keeper::Guard } else { Keeper::Kernel }
    }

    /// The root in whose repository git runs, where the program runs unasked.
    fn git_root<'a>(&self, ctx: &'a Context) -> &'a Path {
        let root = ctx.workspace.root();
        let line = if self.program == "bash" { self.args.last().cloned().unwrap_or_default() } else { self.quoted() };
        let line = match self.folder.to_str() {
            Some(folder) if self.folder != root => format!("cd {} && {line}", quoted([folder])),
            Some(_) | None => line,
        };
        permissions::git_root(&line, ctx.readable()).unwrap_or(root)
    }

    fn quoted(&self) -> String {
        quoted(std::iter::once(self.program.as_str()).chain(self.args.iter().map(String::as_str)))
    }

    /// What the program may do.
    fn policy(&self, ctx: &Context) -> Policy {
        if self.runs_unasked { Policy::Look } else { ctx.policy }
    }

    /// Whether the program may write to the workspace, and no more than the user allowed.
    pub(super) fn may_write(&self, ctx: &Context) -> bool {
        match self.policy(ctx) {
            Policy::Work | Policy::Network => true,
            Policy::Look | Policy::Outside => false,
        }
    }

    /// Whether the program, as a job, shares its network with the commands after it.
    pub fn shares(&self, ctx: &Context) -> bool {
        self.policy(ctx) == Policy::Work && ctx.sandbox.tier() == Tier::Namespaces
    }

    /// What the model should know about the network of the program as a job.
    pub fn network_note(&self, ctx: &Context) -> &'static str {
        if self.policy(ctx) == Policy::Work && ctx.sandbox.tier() == Tier::Landlock {
            "note: without the network no program can listen here; if this program has to, ask the user for the rule `network`\n"
        } else {
            ""
        }
    }

    /// The program in its sandbox, with its environment and folder set, stdin empty, stdout and stderr piped.
    pub fn ready(self, ctx: &Context) -> Command {
        let (policy, shares, keeper) = (self.policy(ctx), self.shares(ctx), self.config_keeper(ctx));
        let runs_unasked = policy == Policy::Look;
        let root = ctx.workspace.root();
        let git_root = if runs_unasked && !ctx.folders.paths.is_empty() { self.git_root(ctx) } else { root };
        let Line { program, args, folder, is_job, .. } = self;
        // A repository that is not shown is not found by git either.
        let (mut git, mut beside, mut protected) = (Vec::new(), Vec::new(), Vec::new());
        for it in ctx.roots() {
            let SeenRepository { git: own, beside: around, .. } = SeenRepository::of(it.root(), ctx);
            if !runs_unasked {
                protected.extend(kept(&it, &own, keeper));
            }
            git.extend(own);
            beside.extend(around);
        }
        let scratch = ctx.scratch.clone().or_else(|| ctx.sandbox.shared_scratch());
        let scratch = scratch.filter(|folder| make_private(folder).is_ok());
        // Under this tier a program sees the machine's `/tmp`, and may not use it.
        let is_elsewhere = ctx.sandbox.tier() == Tier::Landlock && matches!(policy, Policy::Work | Policy::Network);
        let temporary = scratch.clone().filter(|_| is_elsewhere);
        let jobs = ctx.jobs.as_ref().filter(|_| shares).map(|jobs| jobs.sharing()).unwrap_or_default();
        let (workspace, outputs, added) = (root.to_owned(), ctx.outputs.clone(), ctx.reads.clone());
        let is_joined = is_job && shares;
        let cover = ctx.cover.clone().filter(|_| ctx.sandbox.tier() == Tier::Namespaces);
        let folders = ctx.folders.paths.clone();
        let own =
            Own { workspace, outputs, scratch, cover, protected, git, beside, added, folders, jobs, is_job, is_joined };
        let mut command = ctx.sandbox.command(policy, &program, &args, &folder, &own);
        let is_passed_on = |name: &str| !runs_unasked || !(name.starts_with("GIT_") || names_code(name));
        let environment = ctx.environment.iter().filter(|(name, _)| is_passed_on(name));
        command
            .env_clear()
            .envs(environment.map(|(name, value)| (name, value)))
            .envs(temporary.iter().flat_map(|folder| ["TMPDIR", "TMP", "TEMP"].map(|name| (name, folder))))
            .envs(temporary.iter().flat_map(|folder| OWN_CACHES.map(|(name, below)| (name, folder.join(below)))))
            .envs(if runs_unasked {
                unasked(ctx, SeenRepository::of(git_root, ctx).repository.as_ref())
            } else {
                Vec::new()
            })
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// The repository of a workspace, as far as programs see it.
pub(super) struct SeenRepository {
    pub(super) repository: Option<Repository>,
    /// What git changes outside the workspace.
    pub(super) git: Vec<PathBuf>,
    /// What it only reads there.
    pub(super) beside: Vec<PathBuf>,
}

impl SeenRepository {
    /// One that the workspace names and that does not name it is shown only if the user trusts that.
    pub(super) fn of(root: &Path, ctx: &Context) -> SeenRepository {
        let leads = Some(ctx).filter(|ctx| root == ctx.workspace.root()).and_then(Context::trusted_leads);
        let leads = leads.filter(|it| !it.all().any(|path| ctx.sandbox.is_secret(path)));
        let found = Repository::find_trusted(root, leads.is_some()).ok().flatten();
        let repository = found.filter(|it| it.may_be_shown(root));
        let (mut git, mut beside) = repository.as_ref().map(|it| it.beside(root)).unwrap_or_default();
        let Leads { changes, reads } = leads.unwrap_or_default();
        git.extend(changes);
        git.sort();
        git.dedup();
        beside.extend(reads);
        SeenRepository { repository, git, beside }
    }
}

/// Variables that name a cache which a toolchain must be able to write, and where it is in the folder for temporary files.
/// Under Landlock the user's own caches are only read, and have no cover.
const OWN_CACHES: [(&str, &str); 5] = [
    // Go builds nothing without one.
    ("GOCACHE", "go-build"),
    // npm packs nothing.
    ("npm_config_cache", "npm"),
    ("CCACHE_DIR", "ccache"),
    ("SCCACHE_DIR", "sccache"),
    ("UV_CACHE_DIR", "uv"),
];

/// Extra environment for a command that runs without an approval.
///
/// It finds no program of the workspace. Its git runs no hook or fsmonitor of the repository, fetches no missing
/// objects, ignores submodules, and reads the repository that was judged and no other one.
fn unasked(ctx: &Context, repository: Option<&Repository>) -> Vec<(&'static str, OsString)> {
    let fixed = [
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_PAGER", "cat"),
        ("GIT_CONFIG_COUNT", "4"),
        ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
        ("GIT_CONFIG_VALUE_0", "false"),
        ("GIT_CONFIG_KEY_1", "diff.ignoreSubmodules"),
        ("GIT_CONFIG_VALUE_1", "all"),
        ("GIT_CONFIG_KEY_2", "core.hooksPath"),
        ("GIT_CONFIG_VALUE_2", "/dev/null"),
        ("GIT_CONFIG_KEY_3", "status.submoduleSummary"),
        ("GIT_CONFIG_VALUE_3", "false"),
        // A folder that `cd` would look in first, and a file of flags for rg.
        ("CDPATH", ""),
        ("RIPGREP_CONFIG_PATH", ""),
    ];
    let mut all: Vec<_> = fixed.into_iter().map(|(name, value)| (name, value.into())).collect();
    let path = ctx.environment.iter().find(|(name, _)| name == "PATH").map_or("/usr/bin:/bin", |(_, value)| value);
    let roots = || std::iter::once(ctx.workspace.root()).chain(ctx.folders.paths.iter().map(PathBuf::as_path));
    let is_of_a_root =
        |folder: &str| roots().any(|root| !is_of_system(folder, root) && leads_through(Path::new(folder), root));
    let folders = path.split(':').filter(|folder| folder.starts_with('/') && !is_of_a_root(folder));
    all.push(("PATH", folders.collect::<Vec<_>>().join(":").into()));
    match repository {
        Some(Repository { top, git, common }) => {
            all.push(("GIT_DIR", git.into()));
            all.push(("GIT_COMMON_DIR", common.into()));
            all.push(("GIT_WORK_TREE", top.into()));
        }
        // It exists nowhere, so git looks no further.
        None => all.push(("GIT_DIR", "/nonexistent".into())),
    }
    all
}

/// Whether a folder of programs is one of the system's, in a workspace that has all of them in it. No other program could be found
/// there, and the sandbox keeps one that runs unasked from changing anything.
fn is_of_system(folder: &str, workspace: &Path) -> bool {
    let holds_all = ["/", "/usr"].iter().any(|it| workspace == Path::new(it));
    holds_all && ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"].contains(&folder)
}

/// Looks at the workspace before a command, to find the command's changes afterwards.
///
/// # Errors
/// The look panicked; the command must not run.
pub async fn look_before(ctx: &Context, keeper: Keeper) -> Result<Watched> {
    let ctx = ctx.clone();
    let look = move || {
        // First, because its walk finds the files of ignore rules too.
        let watched = Watched::new(&ctx, keeper);
        ctx.snapshot.before(&ctx.call_id, &ctx.workspace, &ctx.blobs, watched.rules().as_deref(), &ctx.cancel);
        Ok(watched)
    };
    off_loop(look).await
}

/// What a command changed.
#[derive(Default)]
pub struct Effect {
    pub changes: Vec<FileChange>,
    /// Protected files that were taken back.
    pub taken: Vec<Taken>,
    /// Remarks for the model.
    pub notes: String,
}

/// The changes since [`look_before`], without those of protected files, which are taken back.
pub async fn look_after(ctx: &Context, watched: Watched) -> Effect {
    let ctx = ctx.clone();
    let find = move || {
        let closed = watched.close_again();
        // First, so that the list of changes leaves out what is taken back.
        let (taken, looked) = watched.take_back();
        let rules = looked.as_ref().and_then(Guards::rules);
        let found = ctx.snapshot.after(&ctx.call_id, &ctx.workspace, &ctx.blobs, rules.as_deref());
        let limits = looked.as_ref().and_then(Guards::limits).map(str::to_owned);
        let notes = found.notes.iter().chain(&closed).chain(&limits).map(|note| format!("note: {note}\n")).collect();
        Effect { changes: found.changes, taken, notes }
    };
    task::spawn_blocking(find).await.unwrap_or_default()
}

/// The message when a command exceeds its time limit.
pub fn timed_out(limit: Duration) -> String {
    format!("stopped after {} s; set a longer timeout if the command needs one\n", limit.as_secs())
}

/// Sends output to the live view. A full channel drops it; the recorded result is still complete.
pub fn tell(ctx: &Context, printed: Printed) {
    if let Some(progress) = &ctx.progress
        && printed != Printed::default()
    {
        let _ = progress.try_send(printed);
    }
}
