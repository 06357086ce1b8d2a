//! Protected files that a command wrote: they are taken back, and the user may keep them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use super::{Call, Context, Gone, Output, off_loop};
use crate::gate::{self, Authority};
use files::changes;
use files::guard::{Did, Guard, Taken};
use files::private::Modes;
use files::snapshot::{file_clock, protected_since};
use permissions::repository::{Repository, is_plain};
use protocol::error::{Code, Error, Result};
use protocol::event::{ChangeKind, FileChange, Preview};
use protocol::remedy::Remedy;
use protocol::sandbox::Tier;
use sandbox::Policy;

pub mod jobs; // the same around background jobs

/// The most files that the text of a result or an approval names.
const NAMED: usize = 5;

/// What keeps the repository's configuration from a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeper {
    /// The program cannot change it, as far as the tier can do that.
    Kernel,
    /// What the program changes is taken back.
    Guard,
}

/// A look at the protected files before a command, if it may write to the workspace. A command that is interrupted is taken
/// back too, once its processes have ended.
pub struct Watched {
    ctx: Context,
    guard: Option<Guard>,
    /// The modes of the user's private files, where the kernel does not keep them.
    modes: Option<Modes>,
    /// When the look was.
    at: SystemTime,
}

impl Watched {
    /// Looks at them. Blocks.
    pub(super) fn new(ctx: &Context, keeper: Keeper) -> Watched {
        let guard = match ctx.policy {
            Policy::Work | Policy::Network => Some(look(ctx, keeper)),
            // It changes nothing, or the user allowed it to change anything.
            Policy::Look | Policy::Outside => None,
        };
        let is_open = guard.is_some() && ctx.sandbox.tier() == Tier::Landlock;
        let modes = is_open.then(|| Modes::of(ctx.sandbox.secrets()));
        Watched { ctx: ctx.clone(), guard, modes, at: file_clock() }
    }

    /// Closes the private files that the command opened to others. Returns a remark for the model. Blocks.
    pub(super) fn close_again(&self) -> Option<String> {
        let opened = self.modes.as_ref().map(Modes::close_again).unwrap_or_default();
        let (first, others) = opened.split_first()?;
        let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
        let text = format!("the command opened {}{more} to others; pixir closed it again", first.display());
        tracing::warn!("{text}");
        Some(text)
    }

    /// Takes back what the command did to those directly in the workspace. Blocks.
    pub(super) fn take_back_top(mut self) -> Top {
        let guard = self.guard.take();
        let taken = guard.as_ref().map(|it| it.take_back(&self.ctx.workspace, &self.ctx.blobs, is_plain));
        Top { ctx: self.ctx.clone(), guard, taken: taken.unwrap_or_default() }
    }
}

/// What was taken back directly in the workspace.
pub(super) struct Top {
    ctx: Context,
    guard: Option<Guard>,
    taken: Vec<Taken>,
}

impl Top {
    /// Takes back, from the changes of a command, those of protected files in the workspace's folders. Blocks.
    pub(super) fn take_back_below(self, changes: Vec<FileChange>) -> (Vec<FileChange>, Vec<Taken>) {
        let Top { ctx, guard: Some(guard), mut taken } = self else { return (changes, Vec::new()) };
        // Repositories that the command made are known only now.
        let made = guard.new_among(ctx.snapshot.repositories());
        if !made.is_empty() {
            taken.extend(guard.take_back_with(&made, &ctx.workspace, &ctx.blobs, is_plain));
        }
        let is_below = |change: &FileChange| {
            let at = ctx.workspace.locate(&change.path);
            at.is_ok_and(|at| ctx.workspace.is_protected_below(&at) && !guard.is_own(&ctx.workspace, at.as_path()))
        };
        let (below, changes): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_below);
        taken.extend(below.iter().map(|change| take_back_one(&ctx, change)));
        (changes, taken)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let (Some(guard), Ok(runtime)) = (self.guard.take(), tokio::runtime::Handle::try_current()) else { return };
        let (ctx, modes, at) = (self.ctx.clone(), self.modes.take(), self.at);
        runtime.spawn(task::boxed(async move {
            ctx.stopping.finished().await;
            let take = move || {
                // Only its modes: this one has no guard, so that nothing is taken back twice.
                Watched { ctx: ctx.clone(), guard: None, modes, at }.close_again();
                let below = new_below(&ctx, &guard, &protected_since(&ctx.workspace, at));
                let below: Vec<Taken> = below.iter().map(|path| take_back_new(&ctx, path)).collect();
                for it in guard.take_back(&ctx.workspace, &ctx.blobs, is_plain).iter().chain(&below) {
                    tracing::warn!("after an interrupt: {}", it.told());
                }
            };
            let _ = task::spawn_blocking(take).await;
        }));
    }
}

fn look(ctx: &Context, keeper: Keeper) -> Guard {
    let (git, kept) = places(ctx, keeper);
    Guard::before(&ctx.workspace, &ctx.snapshot.repositories(), &git, &kept)
}

/// The folders of the repository elsewhere, and what the kernel keeps from programs that start now.
fn places(ctx: &Context, keeper: Keeper) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let root = ctx.workspace.root();
    let repository = Repository::find(root).ok().flatten().filter(|it| it.may_be_shown(root));
    let git = repository.map(|it| it.beside(root).0).unwrap_or_default();
    let is_kernel = ctx.sandbox.tier() == Tier::Namespaces;
    let kept = if is_kernel { kept(ctx, &git, keeper) } else { Vec::new() };
    (git, kept)
}

/// Protected paths that exist, in the workspace and in its repository's folders elsewhere. Programs only read them, as far
/// as the kernel can keep them.
pub(super) fn kept(ctx: &Context, git: &[PathBuf], keeper: Keeper) -> Vec<PathBuf> {
    let mut kept = ctx.workspace.protected();
    if keeper == Keeper::Guard {
        kept.retain(|path| *path != ctx.workspace.root().join(".git/config"));
    }
    let names = ["config", "hooks", "info", "modules", "config.worktree", "commondir", "gitdir"];
    kept.extend(git.iter().flat_map(|git| names.map(|name| git.join(name))).filter(|path| path.exists()));
    kept
}

/// Which of these new files are protected ones in folders of the workspace that pixir itself has not written.
fn new_below(ctx: &Context, guard: &Guard, new: &[(PathBuf, SystemTime)]) -> Vec<String> {
    let is_foreign = |path: &String| {
        let at = ctx.workspace.locate(path);
        let is_below = at.is_ok_and(|at| ctx.workspace.is_protected_below(&at));
        is_below && !guard.is_own(&ctx.workspace, path.as_ref())
    };
    new.iter().filter_map(|(path, _)| path.to_str().map(str::to_owned)).filter(is_foreign).collect()
}

/// A file that is new in a folder of the workspace, as it stands there.
fn written_below(ctx: &Context, path: &str) -> Taken {
    let read = || ctx.workspace.read(&ctx.workspace.locate(path).ok()?).ok();
    let written = read().map(|it| (it.bytes.into(), it.mode));
    Taken { path: path.to_owned(), did: Did::Wrote, is_back: false, written, before: None }
}

/// Takes back a file that is new in a folder of the workspace. Its bytes are stored.
fn take_back_new(ctx: &Context, path: &str) -> Taken {
    let read = || ctx.workspace.read(&ctx.workspace.locate(path).ok()?).ok();
    let after = read().map(|it| (it.bytes, it.mode));
    let new = after.as_ref().map(|(bytes, mode)| (bytes.as_slice(), *mode));
    match changes::record(&ctx.blobs, path, None, new) {
        Ok(change) => take_back_one(ctx, &change),
        Err(_) => Taken { path: path.to_owned(), did: Did::Wrote, is_back: false, written: None, before: None },
    }
}

/// Takes back a change in a folder of the workspace.
fn take_back_one(ctx: &Context, change: &FileChange) -> Taken {
    let blob = |name: &Option<String>| name.as_ref().and_then(|name| ctx.blobs.get(name).ok());
    let revert = || -> Result<()> {
        let at = ctx.workspace.locate(&change.path)?;
        let _writing = ctx.snapshot.write(&change.path, &ctx.workspace, &ctx.blobs);
        match (change.kind, blob(&change.before_blob)) {
            (ChangeKind::Created, _) => ctx.workspace.remove(&at, change.new_folders),
            (_, Some(bytes)) => ctx.workspace.replace(&at, &bytes, change.before_mode).map(drop),
            (_, None) => Err(Error::new(Code::WriteFailed, "its bytes were not captured", Remedy::text(""))),
        }
    };
    let did = match change.kind {
        ChangeKind::Created => Did::Wrote,
        ChangeKind::Deleted => Did::Removed,
        ChangeKind::Modified => Did::Changed,
    };
    let written = blob(&change.after_blob).map(|bytes| (bytes.into(), change.after_mode.unwrap_or(0o644)));
    let before = blob(&change.before_blob).map(Arc::from);
    Taken { path: change.path.clone(), did, is_back: revert().is_ok(), written, before }
}

/// Tells about protected files that were taken back, and keeps what the command wrote if the user wants that.
///
/// # Errors
/// [`Gone`] when the Session no longer waits for the call.
pub(super) async fn settle(
    call: &Call,
    output: &mut Output,
    ctx: &Context,
    authority: &dyn Authority,
) -> std::result::Result<(), Gone> {
    let taken = std::mem::take(&mut output.taken);
    if taken.is_empty() {
        return Ok(());
    }
    tell(output, &taken, "the command");
    let offered: Vec<Taken> = taken.into_iter().filter(|it| it.is_back && it.written.is_some()).collect();
    if offered.is_empty() || !gate::keep(call, &preview(&offered), "the command", authority).await? {
        return Ok(());
    }
    for it in offered {
        let path = it.path.clone();
        let own = ctx.clone();
        match off_loop(move || write(&own, &it)).await {
            Ok(change) => {
                output.changes.push(change);
                drop(output.stderr.push(format!("pixir: the user kept {path}\n").as_bytes()));
            }
            Err(e) => drop(output.stderr.push(format!("pixir: {path} was not kept: {e}\n").as_bytes())),
        }
    }
    Ok(())
}

/// Tells in the result what became of these files.
fn tell(output: &mut Output, taken: &[Taken], writer: &str) {
    let mut say = |text: String| drop(output.stderr.push(format!("pixir: {text}\n").as_bytes()));
    for it in taken.iter().take(NAMED) {
        say(it.told_of(writer));
    }
    if taken.len() > NAMED {
        say(format!("and so with {} more protected files", taken.len() - NAMED));
    }
}

/// What the user is asked to keep.
fn preview(taken: &[Taken]) -> Preview {
    let paths: Vec<String> = taken.iter().map(|it| it.path.clone()).collect();
    let diff = taken.iter().map(|it| {
        let after = it.written.as_ref().map(|(bytes, _)| &**bytes);
        changes::unified(&it.path, it.before.as_deref(), after).0
    });
    Preview { would: "keep".into(), target: paths.join(", "), diff: Some(diff.collect()), paths, ..Preview::default() }
}

/// Gives a file what the command had written to it.
fn write(ctx: &Context, taken: &Taken) -> Result<FileChange> {
    let (bytes, mode): (Arc<[u8]>, u32) = taken.written.clone().unwrap_or_default();
    let at = ctx.workspace.locate(&taken.path)?;
    let writing = ctx.snapshot.write(&taken.path, &ctx.workspace, &ctx.blobs);
    let before = ctx.workspace.read_if_there(&at)?;
    let old = before.as_ref().map(|it| (it.bytes.as_slice(), it.mode));
    let mut change = changes::record(&ctx.blobs, &taken.path, old, Some((&bytes, mode)))
        .map_err(|e| Error::new(Code::WriteFailed, format!("store its versions: {e}"), Remedy::CheckStateFolder))?;
    let replaced = ctx.workspace.replace(&at, &bytes, Some(mode))?;
    (change.after_mode, change.new_folders) = (Some(replaced.mode), replaced.new_folders);
    writing.made(&ctx.call_id, change.clone());
    Ok(change)
}
