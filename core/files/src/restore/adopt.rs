//! What an agent changed in its copy, written to the workspace by the same merge of three versions as a restore: the file
//! as it was copied, the agent's last version, and the file as it is now.

use std::collections::BTreeMap;

use super::{
    AimedFile, Bytes, Contents, FileToRestore, RestoreTarget, Version, restore_one, spares_protected, version_of,
};
use crate::changes;
use crate::snapshot::SessionSnapshot;
use crate::workspace::Workspace;
use protocol::error::{Code, Error, Result};
use protocol::event::{ChangeKind, Entry, FileChange, LeftFile, RestoreReason, Standing};
use protocol::input::{OnConflict, RestoreOptions};
use protocol::remedy::Remedy;
use storage::blobs::Blobs;
use text::encoding::Decoded;

/// What is to be written, before anything is.
#[derive(Debug, Default)]
pub struct Planned {
    /// The changes of the workspace; both versions of each file are stored.
    pub changes: Vec<FileChange>,
    /// Files that stay as they are in the workspace, and wait no more.
    pub kept: Vec<String>,
    /// Files that wait for the user, and why.
    pub left: Vec<LeftFile>,
}

/// Aims at the agent's last version of each file that it changed after these Entries of its Log, by path.
pub fn of_copy<'a>(entries: impl Iterator<Item = &'a Entry>, settled: &BTreeMap<String, u64>) -> RestoreTarget {
    let mut net: BTreeMap<&str, (&FileChange, &FileChange)> = BTreeMap::new();
    for entry in entries {
        for change in entry.fact.all_changes() {
            if settled.get(&change.path).is_none_or(|seq| entry.seq > *seq) {
                net.entry(&change.path).and_modify(|(_, last)| *last = change).or_insert((change, change));
            }
        }
    }
    let files = net.into_iter().filter_map(|(path, (first, last))| {
        let (base, theirs) = (Version::before(first), Version::after(last));
        (base != theirs).then(|| (path.to_owned(), AimedFile { steps: vec![step(path, first, last)], touched: false }))
    });
    RestoreTarget { reason: RestoreReason::Adopt, of_turn: None, to_seq: None, of_seq: None, files: files.collect() }
}

/// The step that a restore takes back to reach the agent's version: from it to the one that was copied.
fn step(path: &str, first: &FileChange, last: &FileChange) -> FileChange {
    let was_absent = first.kind == ChangeKind::Created;
    let is_absent = last.kind == ChangeKind::Deleted;
    FileChange {
        path: path.to_owned(),
        kind: match (is_absent, was_absent) {
            (true, _) => ChangeKind::Created,
            (false, true) => ChangeKind::Deleted,
            (false, false) => ChangeKind::Modified,
        },
        before_blob: last.after_blob.clone().filter(|_| !is_absent),
        after_blob: first.before_blob.clone().filter(|_| !was_absent),
        before_mode: last.after_mode.filter(|_| !is_absent),
        after_mode: first.before_mode.filter(|_| !was_absent),
        new_folders: 0,
        moved_from: None,
        added: 0,
        removed: 0,
    }
}

impl RestoreTarget {
    /// Decides what of each file is written, and stores both versions. It writes nothing to the workspace.
    ///
    /// # Errors
    /// `FILE_CHANGED` when a shown preview differs from what would be done now, `INPUT_REQUIRED` when it would write a
    /// protected file and the user has not agreed to that, `WRITE_FAILED` when a version cannot be stored.
    pub fn plan(&self, options: &RestoreOptions, workspace: &Workspace, blobs: &Blobs) -> Result<Planned> {
        let found: Vec<FileToRestore> = self.look(workspace, blobs).collect();
        self.is_as_seen(&found, options)?;
        let chosen = |file: &FileToRestore| options.choices.get(&file.path).copied();
        if let Some(path) = options.written.keys().find(|path| !found.iter().any(|file| file.path == **path)) {
            let message = format!("`{}` is no file that the agent changed and that waits", path.escape_debug());
            return Err(Error::new(Code::InvalidArgs, message, "a path of the preview").with("input", path.clone()));
        }
        let is_written =
            |file: &&FileToRestore| chosen(file) != Some(OnConflict::Keep) && outcome(file, options).is_ok();
        spares_protected(found.iter().filter(is_written), options)?;
        let mut it = Planned::default();
        for file in &found {
            if file.standing == Standing::AlreadyThere || chosen(file) == Some(OnConflict::Keep) {
                it.kept.push(file.path.clone());
                continue;
            }
            match outcome(file, options) {
                Err(why) => it.left.push(LeftFile { path: file.path.clone(), why }),
                Ok(target) => {
                    let before = file.current.as_ref().map(|now| (now.bytes.as_slice(), now.mode));
                    let after = target.map(|(bytes, mode)| (bytes, mode.unwrap_or(NEW_FILE)));
                    let change = changes::record(blobs, &file.path, before, after).map_err(unkept)?;
                    let is_kept = (before.is_none() || change.before_blob.is_some())
                        && (after.is_none() || change.after_blob.is_some());
                    if is_kept {
                        it.changes.push(change);
                    } else {
                        let why = "it is too large to be stored, so it could not be undone".to_owned();
                        it.left.push(LeftFile { path: file.path.clone(), why });
                    }
                }
            }
        }
        Ok(it)
    }
}

impl RestoreTarget {
    /// Writes the agent's last version of each file to a new copy. Returns the files that it could not write.
    ///
    /// # Errors
    /// As [`RestoreTarget::plan`].
    pub fn bring_back(&self, copy: &Workspace, blobs: &Blobs) -> Result<Vec<LeftFile>> {
        let options = RestoreOptions { changed_since: OnConflict::Overwrite, protected: true, ..Default::default() };
        let planned = self.plan(&options, copy, blobs)?;
        let (_, left) = carry_out(&planned.changes, copy, blobs, &SessionSnapshot::default());
        Ok(planned.left.into_iter().chain(left).collect())
    }
}

/// The workspace's version and the agent's in one text, with marks around the lines that changed on both sides. `None` where one
/// of them is not there, or is no text.
pub(super) fn with_marks(file: &AimedFile, current: Option<&Contents>, blobs: &Blobs) -> Option<String> {
    let [step] = file.steps.as_slice() else { return None };
    // What the user makes of the text is written as UTF-8.
    let ours = Decoded::of(current?.bytes.clone()).filter(Decoded::is_plain)?;
    let base = version_of(&ours, &Version::after(step), blobs)?;
    let theirs = version_of(&ours, &Version::before(step), blobs)?;
    diffy::merge(base.text(), ours.text(), theirs.text()).err()
}

/// What is written of a file, or why it waits.
fn outcome<'a>(file: &'a FileToRestore, options: &'a RestoreOptions) -> std::result::Result<Option<Bytes<'a>>, String> {
    if let Some(text) = options.written.get(&file.path) {
        // The user's own text keeps the mode that the file has, or that the agent gave to it.
        let mode = file.current.as_ref().map(|now| now.mode);
        return Ok(Some((text.as_bytes(), mode.or(file.wanted.as_ref().and_then(|(_, mode)| *mode)))));
    }
    file.outcome(options.choices.get(&file.path).copied().unwrap_or(options.changed_since))
}

/// The permission bits of a file whose own are not known.
const NEW_FILE: u32 = 0o644;

fn unkept(e: std::io::Error) -> Error {
    Error::new(Code::WriteFailed, format!("a version of a file cannot be stored: {e}"), Remedy::CheckStateFolder)
}

/// Writes what was planned. A file that has the new content and mode already was written before a crash; one that changed meanwhile is
/// left as it is. Returns what is in the workspace now, and what was left.
pub fn carry_out(
    planned: &[FileChange],
    workspace: &Workspace,
    blobs: &Blobs,
    snapshot: &SessionSnapshot,
) -> (Vec<FileChange>, Vec<LeftFile>) {
    let (mut done, mut left) = (Vec::new(), Vec::new());
    // Removals go first: a folder may have to give way to a file.
    let (removals, writes): (Vec<_>, Vec<_>) =
        planned.iter().partition(|change| Version::after(change) == Version::Absent);
    for change in removals.into_iter().rev().chain(writes) {
        match carry_out_one(change, workspace, blobs, snapshot) {
            Ok(change) => done.push(change),
            Err(e) => left.push(LeftFile { path: change.path.clone(), why: e.message }),
        }
    }
    (done, left)
}

fn carry_out_one(
    change: &FileChange,
    workspace: &Workspace,
    blobs: &Blobs,
    snapshot: &SessionSnapshot,
) -> Result<FileChange> {
    let bytes = |version: Version| match version {
        Version::Known { blob, .. } => blobs.get(&blob).map(Some).map_err(unkept),
        Version::Absent | Version::Unknown => Ok(None),
    };
    let (before, after) = (bytes(Version::before(change))?, bytes(Version::after(change))?);
    let at = workspace.locate(&change.path)?;
    if workspace.is_behind_symlink(&at) {
        return Err(Error::new(Code::WriteFailed, "one of its parent folders is a symlink", "move the symlink away"));
    }
    let current = workspace.read_if_there(&at)?;
    let now = current.as_ref().map(|it| it.bytes.as_slice());
    let has_mode = |mode: u32| current.as_ref().is_none_or(|it| it.mode == mode);
    if now == after.as_deref() && change.after_mode.is_none_or(has_mode) {
        return Ok(change.clone());
    }
    if now != before.as_deref() {
        return Err(Error::new(Code::FileChanged, "it changed meanwhile", "look at it again"));
    }
    let file = FileToRestore {
        path: change.path.clone(),
        wanted_blob: None,
        new_folders: 0,
        // The plan was judged by this path. Folders that lead elsewhere now are found when it is written.
        to: Some(workspace.exact(&at)),
        current,
        left: None,
        wanted: None,
        standing: Standing::Ready,
        merged: None,
        marked: None,
        why: None,
    };
    let target = after.as_deref().map(|bytes| (bytes, change.after_mode));
    restore_one(&file, target, workspace, blobs, snapshot)
}
