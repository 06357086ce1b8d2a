//! Protected files that a command wrote: they are taken back, and the user may keep them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Call, Context, Gone, Output, off_loop};
use crate::gate::{self, Authority};
use crate::replacement::of_change;
use files::changes;
use files::diff::Shown;
use files::guard::Taken;
use files::guard::left::BEAT;
use files::private::Modes;
use files::workspace::Workspace;
use permissions::repository::is_plain;
use protocol::error::{Code, Error, Result};
use protocol::event::{FileChange, Preview};
use protocol::protected::Group;
use protocol::remedy::Remedy;
use protocol::sandbox::Tier;
use sandbox::Policy;
use storage::blobs::Blobs;
use storage::running::Left;

mod guards; // a guard of each root
pub mod jobs; // the same around background jobs

pub(crate) use guards::Guards;
use guards::OnDisk;

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
/// back too, once its processes have ended; one whose pixir is killed, when the next pixir opens the workspace.
pub struct Watched {
    ctx: Context,
    guard: Option<(Guards, Noted)>,
    /// The modes of the user's private files, where the kernel does not keep them.
    modes: Option<Modes>,
}

impl Watched {
    /// Looks at them. Blocks.
    pub(super) fn new(ctx: &Context, keeper: Keeper) -> Watched {
        let guard = match ctx.policy {
            Policy::Work | Policy::Network => {
                let guard = Guards::before(ctx, keeper);
                let noted = Noted::of(&guard);
                Some((guard, noted))
            }
            // It changes nothing, or the user allowed it to change anything.
            Policy::Look | Policy::Outside => None,
        };
        let is_open = guard.is_some() && ctx.sandbox.tier() == Tier::Landlock;
        let modes = is_open.then(|| Modes::of(ctx.sandbox.secrets()));
        Watched { ctx: ctx.clone(), guard, modes }
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

    /// The files of ignore rules in the workspace, if the look found them.
    pub(super) fn rules(&self) -> Option<Vec<PathBuf>> {
        self.guard.as_ref().and_then(|(guard, _)| guard.rules())
    }

    /// Takes back what the command did to protected files. Returns the guard for what it found besides. Blocks.
    pub(super) fn take_back(mut self) -> (Vec<Taken>, Option<Guards>) {
        let Some((guard, _noted)) = self.guard.take() else { return (Vec::new(), None) };
        (guard.take_back(&self.ctx.blobs), Some(guard))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let (Some(guard), Ok(runtime)) = (self.guard.take(), tokio::runtime::Handle::try_current()) else { return };
        let (ctx, modes) = (self.ctx.clone(), self.modes.take());
        runtime.spawn(task::boxed(async move {
            ctx.stopping.finished().await;
            let take = move || {
                let (guard, _noted) = guard;
                // Only its modes: this one has no guard, so that nothing is taken back twice.
                Watched { ctx: ctx.clone(), guard: None, modes }.close_again();
                for it in guard.take_back(&ctx.blobs) {
                    tracing::warn!("after an interrupt: {}", it.told());
                }
            };
            let _ = task::spawn_blocking(take).await;
        }));
    }
}

/// A look on the disk, whose time is set anew as long as this exists.
#[derive(Debug)]
pub(super) struct Noted {
    _on_disk: Arc<OnDisk>,
    beat: Option<tokio::task::AbortHandle>,
}

impl Noted {
    fn of(guard: &Guards) -> Noted {
        let on_disk = Arc::new(guard.on_disk());
        let beating = Arc::downgrade(&on_disk);
        let beat = tokio::runtime::Handle::try_current().ok().map(|runtime| {
            let beats = runtime.spawn(task::boxed(async move {
                loop {
                    tokio::time::sleep(BEAT).await;
                    let Some(it) = beating.upgrade() else { return };
                    it.beat();
                }
            }));
            beats.abort_handle()
        });
        Noted { _on_disk: on_disk, beat }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(beat) = &self.beat {
            beat.abort();
        }
    }
}

/// Takes back what the commands of a killed pixir did to protected files of this workspace, and tells that in sentences. Blocks.
pub fn finish_left(left: &[Left], workspace: &Workspace, blobs: &Blobs) -> Vec<String> {
    files::guard::left::finish(left, workspace, blobs, is_plain)
}

/// Protected paths that exist, in a root and in its repository's folders elsewhere. Programs only read them, as far as the
/// kernel can keep them.
pub(super) fn kept(root: &Workspace, git: &[PathBuf], keeper: Keeper) -> Vec<PathBuf> {
    let mut kept = root.protected();
    if keeper == Keeper::Guard {
        kept.retain(|path| *path != root.root().join(".git/config"));
    }
    let names = ["config", "hooks", "info", "modules", "config.worktree", "commondir", "gitdir"];
    kept.extend(git.iter().flat_map(|git| names.map(|name| git.join(name))).filter(|path| path.exists()));
    kept
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
    output.put_back = taken.iter().filter(|it| it.is_back).map(|it| it.path.clone()).collect();
    // One question for each group, so that the user may keep the files of CI and not those of agents.
    let mut offered: BTreeMap<Group, Vec<Taken>> = BTreeMap::new();
    for it in taken.into_iter().filter(|it| it.is_back && it.written.is_some()) {
        offered.entry(ctx.workspace.group_of(&it.path)).or_default().push(it);
    }
    let mut kept = Vec::new();
    for of_group in offered.into_values() {
        if gate::keep(call, &preview(&of_group), ctx, "the command", authority).await? {
            kept.extend(of_group);
        }
    }
    for it in kept {
        let path = it.path.clone();
        output.put_back.retain(|other| *other != path);
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
    let each = taken.iter().map(|it| {
        let (written, before) = (it.written.as_ref(), it.before.as_ref());
        let bytes = |side: Option<&(Arc<[u8]>, u32)>| side.map(|(bytes, _)| bytes.len() as u64);
        let mut change = Shown::of(&it.path, before.map(|(bytes, _)| &**bytes), written.map(|(bytes, _)| &**bytes));
        change.tell_modes(before.map(|(_, mode)| *mode), written.map(|(_, mode)| *mode));
        Preview {
            would: "keep".into(),
            target: it.path.clone(),
            paths: vec![it.path.clone()],
            bytes: bytes(written),
            bytes_before: bytes(before),
            ..of_change(change)
        }
    });
    let mut each: Vec<Preview> = each.collect();
    match each.len() {
        1 => each.remove(0),
        _ => {
            let paths: Vec<String> = taken.iter().map(|it| it.path.clone()).collect();
            Preview { would: "keep".into(), target: paths.join(", "), paths, steps: each, ..Preview::default() }
        }
    }
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
