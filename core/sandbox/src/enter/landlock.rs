//! Files by Landlock.

use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetStatus, Scope, path_beneath_rules,
};

use super::{Doing as _, Plan, Result};
use storage::file_system::without_files_at;

/// Devices that programs write to.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];
/// What programs read besides the view: devices, and themselves.
const ALWAYS: [&str; 3] = ["/dev/random", "/dev/urandom", "/proc"];

/// Restricts this process and all that it starts to the view.
pub(super) fn confine(plan: &Plan) -> Result<()> {
    // What a newer kernel can restrict is restricted there; an older one does what it can. Truncating files (V3) must be
    // among it, or a program could empty what it may not write.
    let abi = ABI::V6;
    let read = AccessFs::from_read(abi);
    let all = AccessFs::from_all(abi);
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V3))
        .doing("restrict files")?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .doing("restrict devices")?
        .scope(Scope::from_all(abi))
        .doing("restrict signals")?;
    let view = &plan.view;
    // Landlock makes no mounts, so a cache has no cover.
    let mut shown: Vec<PathBuf> =
        view.show.iter().chain(&view.caches).flat_map(|path| without(path, &view.hide)).collect();
    let changed = view.change.iter().flat_map(|path| without(path, &view.hide));
    // What the kernel shows of itself in a workspace, no program changes.
    let (changed, of_kernel): (Vec<PathBuf>, Vec<PathBuf>) = changed.partition(|path| without_files_at(path).is_none());
    shown.extend(of_kernel);
    let status = ruleset
        .create()
        .doing("create the rules")?
        .set_compatibility(CompatLevel::BestEffort)
        .add_rules(path_beneath_rules(shown, read))
        .and_then(|it| it.add_rules(path_beneath_rules(ALWAYS, AccessFs::ReadFile | AccessFs::ReadDir)))
        .and_then(|it| {
            it.add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev))
        })
        .and_then(|it| it.add_rules(path_beneath_rules(&changed, all)))
        // A program that only looks may read what others have left there.
        .and_then(|it| it.add_rules(path_beneath_rules(&view.scratch, if changed.is_empty() { read } else { all })))
        .doing("add the rules")?
        .restrict_self()
        .doing("restrict this process")?;
    if status.ruleset == RulesetStatus::NotEnforced { Err("the kernel has no Landlock".into()) } else { Ok(()) }
}

/// Keeps this process, and all that it starts, from sockets with abstract names that others have opened. They belong to the
/// machine's network, and behind them are the user's screen and services. A kernel before 6.12 cannot do that.
pub(super) fn close_abstract_sockets() {
    let ruleset = Ruleset::default().scope(Scope::AbstractUnixSocket).and_then(|it| it.create());
    let _ = ruleset.and_then(|it| it.restrict_self());
}

/// The folder; where something below it is hidden, all of its children but that.
fn without(path: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    if hidden.iter().any(|it| it == path) {
        return Vec::new();
    }
    if !hidden.iter().any(|it| it.starts_with(path)) {
        return vec![path.to_owned()];
    }
    let children = fs::read_dir(path).into_iter().flatten().flatten();
    children.flat_map(|child| without(&child.path(), hidden)).collect()
}
