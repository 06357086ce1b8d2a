//! Restores files to earlier versions: previewed and shown first, and later edits by others are never overwritten
//! unasked.

use std::collections::BTreeMap;

use crate::changes;
use crate::diff::Shown;
use crate::snapshot::SessionSnapshot;
use crate::workspace::{Contents, Destination, New, Workspace};
use protocol::error::{Code, Error, Result};
use protocol::event::{
    ChangeKind, FileChange, FilePreview, FilesRestored, LeftFile, RestorePreview, RestoreReason, Standing,
};
use protocol::input::{OnConflict, RestoreOptions};
use protocol::remedy::Remedy;
use storage::blobs::{self, Blobs};
use text::encoding::Decoded;

/// Why an interrupted restore left a file as it was.
pub const INTERRUPTED: &str = "the restore was interrupted before it";

mod adopt; // what an agent changed in its copy
mod hunk; // one hunk of a change
mod turns; // which turns an undo and a redo are about

pub use adopt::{carry_out, of_copy};
pub use hunk::of_hunk;
pub use turns::{Undoable, left_by_undo, redo, rewind, undo, undo_revert, undoable};

/// The version of a file, past or wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Version {
    Absent,
    Known {
        blob: String,
        mode: Option<u32>,
    },
    /// The file existed, but its bytes were not captured.
    Unknown,
}

impl Version {
    fn before(change: &FileChange) -> Version {
        Version::of(change.kind == ChangeKind::Created, &change.before_blob, change.before_mode)
    }

    fn after(change: &FileChange) -> Version {
        Version::of(change.kind == ChangeKind::Deleted, &change.after_blob, change.after_mode)
    }

    fn of(absent: bool, blob: &Option<String>, mode: Option<u32>) -> Version {
        match (absent, blob) {
            (true, _) => Version::Absent,
            (false, Some(blob)) => Version::Known { blob: blob.clone(), mode },
            (false, None) => Version::Unknown,
        }
    }
}

/// The target of a restore, by path.
#[derive(Debug, Clone)]
pub struct RestoreTarget {
    reason: RestoreReason,
    of_turn: Option<u32>,
    to_seq: Option<u64>,
    of_seq: Option<u64>,
    files: BTreeMap<String, AimedFile>,
}

/// One file: the changes that pixir made to it, oldest first, from the wanted version to the one that pixir left.
#[derive(Debug, Clone, Default)]
struct AimedFile {
    steps: Vec<FileChange>,
    /// The file was changed by others between two of these changes.
    touched: bool,
}

impl AimedFile {
    fn take(&mut self, change: &FileChange) {
        let differs = |left: &FileChange| match (Version::after(left), Version::before(change)) {
            (Version::Known { blob: left, .. }, Version::Known { blob: found, .. }) => left != found,
            (Version::Unknown, _) | (_, Version::Unknown) => false,
            (left, found) => left != found,
        };
        self.touched |= self.steps.last().is_some_and(differs);
        self.steps.push(change.clone());
    }

    fn wanted(&self) -> Version {
        self.steps.first().map_or(Version::Absent, Version::before)
    }

    fn left(&self) -> Version {
        self.steps.last().map_or(Version::Absent, Version::after)
    }

    /// Folders that were created with the file, and are removed with it.
    fn new_folders(&self) -> u32 {
        self.steps.iter().find(|step| step.kind == ChangeKind::Created).map_or(0, |step| step.new_folders)
    }
}

fn aimed<'a>(changes: impl Iterator<Item = &'a FileChange>) -> BTreeMap<String, AimedFile> {
    let mut files: BTreeMap<String, AimedFile> = BTreeMap::new();
    for change in changes {
        files.entry(change.path.clone()).or_default().take(change);
    }
    files
}

/// The wanted contents of a file: its bytes, and its permission bits where they are known.
type Bytes<'a> = (&'a [u8], Option<u32>);

/// A file with everything needed to restore it.
struct FileToRestore {
    path: String,
    /// The name of the blob with the wanted bytes.
    wanted_blob: Option<String>,
    new_folders: u32,
    /// Where it lands, if its path is one of the workspace.
    to: Option<Destination>,
    current: Option<Contents>,
    left: Option<Option<Vec<u8>>>,
    wanted: Option<(Vec<u8>, Option<u32>)>,
    standing: Standing,
    merged: Option<Vec<u8>>,
    /// Both versions with conflict marks.
    marked: Option<String>,
    why: Option<String>,
}

impl RestoreTarget {
    /// Whether the restore touches no file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The files, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &String> {
        self.files.keys()
    }

    /// Compares with the current files, without changing any.
    pub fn preview(&self, workspace: &Workspace, blobs: &Blobs) -> RestorePreview {
        let found: Vec<FileToRestore> = self.look(workspace, blobs).collect();
        self.describe(&found)
    }

    /// Restores the files, and returns what was done. Files that were changed since are left as they are unless the
    /// caller chose otherwise. After an interrupt, the remaining files are left, with [`INTERRUPTED`] as the reason.
    ///
    /// # Errors
    /// `FILE_CHANGED` when a shown preview differs from what would be done now, `INPUT_REQUIRED` when it would write a
    /// protected file and the user has not agreed to that.
    pub fn apply(
        &self,
        options: &RestoreOptions,
        workspace: &Workspace,
        blobs: &Blobs,
        snapshot: &SessionSnapshot,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<FilesRestored> {
        if !options.written.is_empty() {
            let message = "`written` is only for files of an agent's copy";
            return Err(Error::new(Code::InvalidArgs, message, "leave it out, and edit the file afterwards"));
        }
        let found: Vec<FileToRestore> = self.look(workspace, blobs).collect();
        self.is_as_seen(&found, options)?;
        let mut it = FilesRestored {
            reason: self.reason,
            of_turn: self.of_turn,
            to_seq: self.to_seq,
            of_seq: self.of_seq,
            changes: Vec::new(),
            left: Vec::new(),
        };
        let choice_for =
            |file: &FileToRestore| options.choices.get(&file.path).copied().unwrap_or(options.changed_since);
        let writes = found.iter().filter(|file| file.outcome(choice_for(file)).is_ok());
        spares_protected(writes, options)?;
        // A file that cannot be restored may have been moved; then no other file with the same bytes is removed.
        let missing: Vec<(&str, &str)> = found
            .iter()
            .filter(|file| file.standing != Standing::AlreadyThere && file.outcome(choice_for(file)).is_err())
            .filter_map(|file| Some((file.wanted_blob.as_deref()?, file.path.as_str())))
            .collect();
        let last_copy_of = |file: &FileToRestore| {
            let bytes = &file.current.as_ref()?.bytes;
            let name = if missing.is_empty() { return None } else { blobs::name_of(bytes) };
            missing.iter().find(|(blob, _)| *blob == name).map(|(_, path)| *path)
        };
        let mut restore = |file: &FileToRestore, target: Option<Bytes<'_>>| {
            if is_interrupted() {
                it.left.push(LeftFile { path: file.path.clone(), why: INTERRUPTED.to_owned() });
                return;
            }
            match restore_one(file, target, workspace, blobs, snapshot) {
                Ok(change) => it.changes.push(change),
                Err(e) => it.left.push(LeftFile { path: file.path.clone(), why: e.message }),
            }
        };
        let mut unrestored = Vec::new();
        let mut writes = Vec::new();
        // Removals go first: a folder may stand where a file has to be, or a file where a folder has to be. The last
        // path goes first, so that a folder is empty when its removal comes.
        for file in found.iter().rev().filter(|file| file.standing != Standing::AlreadyThere) {
            match file.outcome(choice_for(file)) {
                Ok(Some(target)) => writes.push((file, target)),
                Ok(None) if last_copy_of(file).is_some() => {
                    let of = last_copy_of(file).unwrap_or_default();
                    let why = format!("it holds the only copy of {of}, which was not restored");
                    unrestored.push(LeftFile { path: file.path.clone(), why });
                }
                Ok(None) => restore(file, None),
                Err(why) => unrestored.push(LeftFile { path: file.path.clone(), why }),
            }
        }
        for (file, target) in writes.into_iter().rev() {
            restore(file, Some(target));
        }
        it.left.splice(0..0, unrestored);
        Ok(it)
    }

    /// Whether this is what the user was shown.
    fn is_as_seen(&self, found: &[FileToRestore], options: &RestoreOptions) -> Result<()> {
        if options.seen.as_ref().is_some_and(|seen| *seen != self.describe(found).token) {
            return Err(Error::new(
                Code::FileChanged,
                "files changed after the preview; nothing was restored",
                "look at the new preview, then decide again",
            ));
        }
        Ok(())
    }

    fn look<'a>(&'a self, workspace: &'a Workspace, blobs: &'a Blobs) -> impl Iterator<Item = FileToRestore> + 'a {
        self.files.iter().map(move |(path, file)| {
            let mut found = look(path, file, workspace, blobs);
            if self.reason == RestoreReason::Adopt && found.standing == Standing::ChangedSince && found.merged.is_none()
            {
                found.marked = adopt::with_marks(file, found.current.as_ref(), blobs);
            }
            found
        })
    }

    fn describe(&self, found: &[FileToRestore]) -> RestorePreview {
        // Beside others, also a file that another program has put back is shown: the user looks for it.
        let acts =
            self.reason != RestoreReason::Adopt && found.iter().any(|file| file.standing != Standing::AlreadyThere);
        let is_shown = |file: &&FileToRestore| file.standing != Standing::AlreadyThere || (acts && file.is_put_back());
        let files: Vec<FilePreview> = found.iter().filter(is_shown).map(FileToRestore::describe).collect();
        let text = serde_json::to_string(&files).unwrap_or_default();
        let token = blobs::name_of(text.as_bytes());
        let RestoreTarget { reason, of_turn, to_seq, of_seq, .. } = *self;
        RestorePreview { reason, of_turn, to_seq, of_seq, agent: Vec::new(), asks: false, files, token }
    }
}

/// Whether the user has agreed to what of these files is protected.
fn spares_protected<'a>(files: impl Iterator<Item = &'a FileToRestore>, options: &RestoreOptions) -> Result<()> {
    let protected: Vec<&str> = files.filter(|file| file.is_protected()).map(|file| file.path.as_str()).collect();
    if options.protected || protected.is_empty() {
        return Ok(());
    }
    let message =
        format!("this would write protected files, which can run code or widen permissions: {}", protected.join(", "));
    Err(Error::new(Code::InputRequired, message, Remedy::AllowProtected)
        .with("protected", serde_json::json!(protected)))
}

fn look(path: &str, file: &AimedFile, workspace: &Workspace, blobs: &Blobs) -> FileToRestore {
    let (left, wanted) = (&file.left(), &file.wanted());
    let load = |version: &Version| match version {
        Version::Absent => Ok(None),
        Version::Unknown => Err("its earlier bytes were not captured".to_owned()),
        Version::Known { blob, mode } => match blobs.get(blob) {
            Ok(bytes) => Ok(Some((bytes, *mode))),
            Err(e) => Err(format!("its stored version cannot be read: {e}")),
        },
    };
    let mut it = FileToRestore {
        path: path.to_owned(),
        wanted_blob: if let Version::Known { blob, .. } = wanted { Some(blob.clone()) } else { None },
        new_folders: file.new_folders(),
        to: None,
        current: None,
        left: None,
        wanted: None,
        standing: Standing::Impossible,
        merged: None,
        marked: None,
        why: None,
    };
    let located = workspace.locate(path).and_then(|at| {
        let symlink = || {
            let fix = "move the symlink away";
            Error::new(Code::WriteFailed, "one of its parent folders is a symlink now", fix)
        };
        if workspace.is_behind_symlink(&at) {
            return Err(symlink());
        }
        // Judged once, for the preview and for the write.
        let to = workspace.destination(&at)?;
        if to.at() != &at {
            return Err(symlink());
        }
        it.to = Some(to);
        // A folder in the file's place is removed if every file in it is. Whether that happens is known only when the
        // restore is applied.
        if workspace.is_folder(&at).unwrap_or(false) {
            return Ok(None);
        }
        workspace.check_writable(&at)?;
        workspace.read_if_there(&at)
    });
    match located {
        Ok(current) => it.current = current,
        Err(e) => {
            it.why = Some(e.message);
            return it;
        }
    }
    let left = load(left);
    it.left = left.as_ref().ok().map(|left| left.as_ref().map(|(bytes, _)| bytes.clone()));
    match load(wanted) {
        Ok(wanted) => it.wanted = wanted,
        Err(why) => {
            it.why = Some(why);
            return it;
        }
    }
    let left_mode = left.as_ref().ok().and_then(|left| left.as_ref().and_then(|(_, mode)| *mode));
    let current = it.current.as_ref().map(|c| c.bytes.as_slice());
    let is_wanted = current == it.wanted.as_ref().map(|(bytes, _)| bytes.as_slice());
    // A mode that pixir did not change was set by the user.
    let mode_wanted = it.wanted.as_ref().and_then(|(_, mode)| *mode).filter(|mode| Some(*mode) != left_mode);
    if let Some((_, mode)) = &mut it.wanted {
        *mode = mode_wanted.or_else(|| it.current.as_ref().map(|c| c.mode)).or(*mode);
    }
    let mode_fits = mode_wanted.is_none_or(|mode| it.current.as_ref().is_some_and(|c| c.mode == mode));
    let is_left = it.left.as_ref().is_some_and(|left| left.as_deref() == current);
    // Permissions that were changed since are preserved, like bytes.
    let modes = it.current.as_ref().map(|c| c.mode).zip(mode_wanted).zip(left_mode);
    let mode_is_theirs = modes.is_some_and(|((now, wanted), left)| now != wanted && now != left);
    it.standing = if is_wanted && mode_fits {
        Standing::AlreadyThere
    } else if (is_left || is_wanted) && !file.touched && !mode_is_theirs {
        Standing::Ready
    } else {
        it.merged = merge(file, it.current.as_ref(), blobs);
        Standing::ChangedSince
    };
    it
}

/// A stored version, if it is text in the encoding of the file as it is now.
fn version_of(now: &Decoded, version: &Version, blobs: &Blobs) -> Option<Decoded> {
    match version {
        Version::Known { blob, .. } => now.version(blobs.get(blob).ok()?),
        Version::Absent | Version::Unknown => None,
    }
}

/// Undoes pixir's changes one by one around edits by others. Works only on text whose edits do not overlap, and where no change
/// was one of the encoding.
fn merge(file: &AimedFile, current: Option<&Contents>, blobs: &Blobs) -> Option<Vec<u8>> {
    let now = Decoded::of(current?.bytes.clone())?;
    let mut ours = now.text().to_owned();
    for step in file.steps.iter().rev() {
        let base = version_of(&now, &Version::after(step), blobs)?;
        let theirs = version_of(&now, &Version::before(step), blobs)?;
        ours = diffy::merge(base.text(), &ours, theirs.text()).ok()?;
    }
    Some(now.rewritten(&ours).ok()?.into_bytes())
}

impl FileToRestore {
    fn is_protected(&self) -> bool {
        self.to.as_ref().is_some_and(|to| to.group().is_some())
    }

    /// Whether the file was changed, and has its content from before again.
    fn is_put_back(&self) -> bool {
        let wanted = self.wanted.as_ref().map(|(bytes, _)| bytes);
        self.standing == Standing::AlreadyThere && self.left.as_ref().is_some_and(|left| left.as_ref() != wanted)
    }

    /// Returns the bytes to write, `None` to remove the file, or the reason to leave it.
    fn outcome(&self, choice: OnConflict) -> Result<Option<Bytes<'_>>, String> {
        let wanted = self.wanted.as_ref().map(|(bytes, mode)| (bytes.as_slice(), *mode));
        match (self.standing, choice) {
            (Standing::Ready, _) | (Standing::ChangedSince, OnConflict::Overwrite) => Ok(wanted),
            (Standing::ChangedSince, OnConflict::Merge) => match &self.merged {
                Some(merged) => Ok(Some((merged, wanted.and_then(|(_, mode)| mode)))),
                None => Err("it changed since, in the same lines; keep it or overwrite it".into()),
            },
            (Standing::ChangedSince, OnConflict::Keep) => Err("it changed since".into()),
            (Standing::AlreadyThere | Standing::Impossible, _) => {
                Err(self.why.clone().unwrap_or_else(|| "it already has that content".into()))
            }
        }
    }

    fn describe(&self) -> FilePreview {
        let current = self.current.as_ref().map(|c| c.bytes.as_slice());
        let wanted = self.wanted.as_ref().map(|(bytes, _)| bytes.as_slice());
        let mut change = match self.standing {
            Standing::Impossible => Shown::default(),
            _ => Shown::of(&self.path, current, wanted),
        };
        change.tell_modes(self.current.as_ref().map(|c| c.mode), self.wanted.as_ref().and_then(|(_, mode)| *mode));
        let Shown { text: diff, counts, unseen: _ } = change;
        let (added, removed) = counts.unwrap_or_default();
        let kind = match (current, wanted) {
            (None, _) => ChangeKind::Created,
            (Some(_), None) => ChangeKind::Deleted,
            (Some(_), Some(_)) => ChangeKind::Modified,
        };
        let since = (self.standing == Standing::ChangedSince).then(|| match &self.left {
            Some(left) => Shown::of(&self.path, left.as_deref(), current).text,
            None => "[the content that pixir left was not captured]\n".to_owned(),
        });
        let merged = self.merged.as_ref().map(|merged| Shown::of(&self.path, current, Some(merged)).text);
        FilePreview {
            path: self.path.clone(),
            standing: self.standing,
            kind,
            diff,
            added,
            removed,
            protected: self.is_protected(),
            since,
            merged,
            marked: self.marked.clone(),
            why: self.why.clone(),
        }
    }
}

fn restore_one(
    file: &FileToRestore,
    target: Option<Bytes<'_>>,
    workspace: &Workspace,
    blobs: &Blobs,
    snapshot: &SessionSnapshot,
) -> Result<FileChange> {
    let unkept = |e: std::io::Error| {
        Error::new(Code::WriteFailed, format!("its current version cannot be stored: {e}"), Remedy::CheckStateFolder)
    };
    let unresolved = || Error::new(Code::WriteFailed, "its path cannot be resolved", "preview the restore again");
    let to = file.to.as_ref().ok_or_else(unresolved)?;
    let before = file.current.as_ref().map(|c| (c.bytes.as_slice(), c.mode));
    // The version about to be replaced is stored first.
    let mut change = changes::record(blobs, &file.path, before, target.map(|(bytes, _)| (bytes, 0))).map_err(unkept)?;
    // Without this guard, a running command of another Session would be credited with the write.
    let _writing = snapshot.write(&file.path, workspace, blobs);
    let _locked = workspace.lock(&[to], &|| false)?;
    let now = workspace.read_at(to)?;
    if now.as_ref().map(|n| &n.bytes) != file.current.as_ref().map(|c| &c.bytes) {
        return Err(Error::new(Code::FileChanged, "it changed during the restore", "preview the restore again"));
    }
    if before.is_some() && change.before_blob.is_none() {
        return Err(unkept(std::io::Error::other("it is too large")));
    }
    match target {
        Some((bytes, mode)) => {
            let before = before.map(|(bytes, _)| bytes);
            let replaced = workspace.replace_at(to, &New { bytes, mode, before, like: None })?;
            (change.after_mode, change.new_folders) = (Some(replaced.mode), replaced.new_folders);
        }
        None => {
            workspace.remove_at(to, file.new_folders, before.map(|(bytes, _)| bytes))?;
            change.after_mode = None;
        }
    }
    Ok(change)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;
    use std::fs;

    use super::*;

    /// A change of a file from one text to another, with both stored.
    fn change(blobs: &Blobs, path: &str, before: &str, after: &str) -> FileChange {
        let sides = (Some((before.as_bytes(), 0o644)), Some((after.as_bytes(), 0o644)));
        changes::record(blobs, path, sides.0, sides.1).expect("it is stored")
    }

    fn blobs_of(workspace: &Workspace) -> Blobs {
        Blobs::new(workspace.root().with_file_name("blobs"))
    }

    /// Takes a change back, which pixir has made. Returns whether the file was written.
    ///
    /// # Errors
    /// As [`RestoreTarget::apply`], or why the file was left.
    pub(crate) fn undone(workspace: &Workspace, path: &str, before: &str, left: &str) -> Result<bool> {
        let blobs = blobs_of(workspace);
        let made = change(&blobs, path, before, left);
        let (reason, files) = (RestoreReason::Undo, aimed([made].iter()));
        let aim = RestoreTarget { reason, of_turn: Some(1), to_seq: None, of_seq: None, files };
        let snapshot = SessionSnapshot::default();
        let done = aim.apply(&RestoreOptions::default(), workspace, &blobs, &snapshot, &|| false)?;
        match done.left.first() {
            Some(left) => Err(Error::new(Code::WriteFailed, left.why.clone(), "")),
            None => Ok(!done.changes.is_empty()),
        }
    }

    /// Writes a change that an agent made in its copy. Returns whether the file was written.
    ///
    /// # Errors
    /// Why the file was left.
    pub(crate) fn adopted(workspace: &Workspace, path: &str, theirs: &str, base: &str) -> Result<bool> {
        let blobs = blobs_of(workspace);
        let planned = [change(&blobs, path, base, theirs)];
        let (done, left) = carry_out(&planned, workspace, &blobs, &SessionSnapshot::default());
        match left.first() {
            Some(left) => Err(Error::new(Code::WriteFailed, left.why.clone(), "")),
            None => Ok(!done.is_empty()),
        }
    }

    /// Broken build: `apply` goes on after it was interrupted, or does not say what it left.
    #[test]
    fn an_interrupted_restore_leaves_the_rest_and_says_exactly_what_it_did() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("app");
        fs::create_dir(&root).expect("mkdir");
        let (workspace, blobs) =
            (Workspace::open(&root).expect("a workspace"), Blobs::new(folder.path().join("blobs")));
        let names = ["a", "b", "c", "d"];
        let made = names.map(|name| {
            fs::write(root.join(name), name).expect("write");
            changes::record(&blobs, name, None, Some((name.as_bytes(), 0o644))).expect("it is stored")
        });
        let aim = RestoreTarget {
            reason: RestoreReason::Undo,
            of_turn: Some(1),
            to_seq: None,
            of_seq: None,
            files: aimed(made.iter()),
        };
        let asked = Cell::new(0);
        let is_interrupted = || asked.replace(asked.get() + 1) >= 2;
        let snapshot = SessionSnapshot::default();
        let it =
            aim.apply(&RestoreOptions::default(), &workspace, &blobs, &snapshot, &is_interrupted).expect("it begins");
        let changed: Vec<&str> = it.changes.iter().map(|change| change.path.as_str()).collect();
        let left: Vec<(&str, &str)> = it.left.iter().map(|left| (left.path.as_str(), left.why.as_str())).collect();
        assert_eq!(changed, ["d", "c"], "what is to go goes from the last path on");
        assert_eq!(left, [("b", INTERRUPTED), ("a", INTERRUPTED)]);
        assert_eq!(names.map(|name| root.join(name).exists()), [true, true, false, false]);
    }
}
