//! Files `.git` that lead to what git knows of a linked work tree or a submodule. Such a file is git's own if both lead to each
//! other, and git's folder has nothing but what git writes.

use std::path::{Component, Path, PathBuf};

use super::item::Item;
use super::{Listed, Place};
use storage::regular;

/// Whether a file `.git` leads to a true record of its folder, in a folder of git that this workspace belongs to.
pub(super) fn is_true(place: &Place, path: &Path, now: &Item, before: &Listed, after: &Listed) -> bool {
    let Some(target) = now.text().and_then(|text| text.strip_prefix("gitdir:")).map(str::trim) else { return false };
    let folder = place.at.join(path.parent().unwrap_or(Path::new("")));
    let Ok(target) = folder.join(target).canonicalize() else { return false };
    let Ok(folder) = folder.canonicalize() else { return false };
    let known =
        before.repositories.union(&after.repositories).map(|it| place.at.join(it)).chain(place.git.iter().cloned());
    let known: Vec<PathBuf> = known.filter_map(|it| it.canonicalize().ok()).filter(|it| it.is_dir()).collect();
    is_record(&target, &folder, &known) || is_submodule(&target, &folder, &known)
}

/// The record of a linked work tree: it names the work tree's `.git`, and has no settings of its own.
fn is_record(target: &Path, folder: &Path, known: &[PathBuf]) -> bool {
    let of = target.parent().filter(|it| it.ends_with("worktrees")).and_then(Path::parent);
    let leads_back = || {
        let back = regular::read_to_string(&target.join("gitdir")).ok()?;
        Some(Path::new(back.trim()).parent()?.canonicalize().ok()? == folder)
    };
    of.is_some_and(|it| known.iter().any(|known| known == it))
        && regular::read_to_string(&target.join("commondir")).is_ok_and(|text| text.trim() == "../..")
        && leads_back() == Some(true)
}

/// The folder of a submodule: its settings name the work tree.
fn is_submodule(target: &Path, folder: &Path, known: &[PathBuf]) -> bool {
    let is_below = known.iter().any(|it| target.starts_with(it.join("modules")));
    let leads_back = || {
        let text = regular::read_to_string(&target.join("config")).ok()?;
        let tree = work_trees(&text).next()?;
        Some(target.join(tree).canonicalize().ok()? == folder)
    };
    is_below && leads_back() == Some(true)
}

/// The values of `core.worktree`, or what looks like one.
fn work_trees(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        key.trim().eq_ignore_ascii_case("worktree").then_some(value.trim())
    })
}

/// The settings of a submodule without the line that names its work tree, where this lies in the workspace.
pub(super) fn without_work_tree(place: &Place, path: &Path, text: &str) -> String {
    let is_of_submodule = path.iter().any(|it| it == "modules");
    let folder = place.at.join(path.parent().unwrap_or(Path::new("")));
    let is_inside = |tree: &str| lexical(&folder.join(tree)).starts_with(&place.at);
    let is_left_out = |line: &&str| !is_of_submodule || !work_trees(line).any(is_inside);
    text.lines().filter(is_left_out).map(|line| format!("{line}\n")).collect()
}

/// A path without `..`, as its text says.
pub(super) fn lexical(path: &Path) -> PathBuf {
    let mut to = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(to.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => to.push(part),
        }
    }
    to
}
