//! A guard of each root: the workspace, and the folders that are worked on as it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Keeper, kept};
use crate::Context;
use crate::command::SeenRepository;
use files::guard::{Guard, Taken, left};
use files::workspace::Workspace;
use permissions::repository::is_plain;
use protocol::sandbox::Tier;
use storage::blobs::Blobs;

/// Looks at the protected files of each root before a command.
#[derive(Debug)]
pub(crate) struct Guards {
    all: Vec<OfRoot>,
    /// The user's own settings of git.
    settings: Vec<PathBuf>,
}

#[derive(Debug)]
struct OfRoot {
    root: Arc<Workspace>,
    /// It is the workspace, whose paths are relative.
    is_workspace: bool,
    /// Folders of its repository elsewhere.
    git: Vec<PathBuf>,
    /// What the kernel keeps from programs that start now.
    kept: Vec<PathBuf>,
    guard: Guard,
}

/// The notes of these looks; dropping them removes them.
#[derive(Debug)]
pub(super) struct OnDisk(Vec<left::OnDisk>);

impl OnDisk {
    /// Says that the command still runs.
    pub(super) fn beat(&self) {
        self.0.iter().for_each(left::OnDisk::beat);
    }
}

impl Guards {
    /// Looks at the protected files now. Blocks.
    pub(super) fn before(ctx: &Context, keeper: Keeper) -> Guards {
        let home = ctx.environment.iter().find(|(name, _)| name == "HOME").map(|(_, value)| Path::new(value));
        let settings: Vec<PathBuf> =
            [".gitconfig", ".config/git/config"].iter().filter_map(|name| Some(home?.join(name))).collect();
        let is_kernel = ctx.sandbox.tier() == Tier::Namespaces;
        let all = ctx.roots().into_iter().map(|root| {
            let mut git = SeenRepository::of(root.root(), ctx).git;
            // A part of a repository, such as a folder of objects, has nothing to guard.
            git.retain(|it| ["objects", "commondir"].iter().any(|name| it.join(name).symlink_metadata().is_ok()));
            let kept = if is_kernel { kept(&root, &git, keeper) } else { Vec::new() };
            let guard = Guard::before(&root, &git, &kept, &settings);
            OfRoot { is_workspace: Arc::ptr_eq(&root, &ctx.workspace), root, git, kept, guard }
        });
        Guards { all: all.collect(), settings }
    }

    /// Looks at the same places again. Blocks.
    pub(super) fn look_again(&mut self) {
        for it in &mut self.all {
            it.guard = Guard::before(&it.root, &it.git, &it.kept, &self.settings);
        }
    }

    /// Writes the looks to the disk.
    pub(super) fn on_disk(&self) -> OnDisk {
        OnDisk(self.all.iter().map(|it| it.guard.on_disk(&it.root)).collect())
    }

    /// Takes back what the command did to protected files. Blocks.
    pub(super) fn take_back(&self, blobs: &Blobs) -> Vec<Taken> {
        self.all.iter().flat_map(|it| it.named(it.guard.take_back(&it.root, blobs, is_plain))).collect()
    }

    /// What happened to protected files since, without taking anything back. Blocks.
    pub(super) fn found(&self) -> Vec<Taken> {
        self.all.iter().flat_map(|it| it.named(it.guard.found(&it.root, is_plain))).collect()
    }

    /// The files of ignore rules in the workspace, as the last look found them.
    pub(crate) fn rules(&self) -> Option<Vec<PathBuf>> {
        self.all.iter().find(|it| it.is_workspace).and_then(|it| it.guard.rules())
    }

    /// Says where a guard cannot look, if it cannot.
    pub(crate) fn limits(&self) -> Option<&'static str> {
        self.all.iter().find_map(|it| it.guard.limits())
    }
}

impl OfRoot {
    /// The same with the paths by which the workspace locates them.
    fn named(&self, mut taken: Vec<Taken>) -> Vec<Taken> {
        for it in taken.iter_mut().filter(|_| !self.is_workspace) {
            it.path = self.root.root().join(&it.path).display().to_string();
        }
        taken
    }
}
