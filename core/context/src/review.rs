//! What the user reviews: the changes of a call, a Turn, a part of the conversation, or the work tree against the commit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::git::Git;
use conversation::history::{History, starts_turn};
use conversation::tree;
use files::diff::{self, Across, Body, ChangedFile, Changes, Patch, Start, Version, Versions};
use files::workspace::Workspace;
use protocol::event::{Entry, Fact, RestoreReason};
use storage::blobs::Blobs;

/// Which changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Those of the Entry of this call's result.
    Call(u64),
    /// Those of the Turn that begins with this Entry, up to the next one, with what was restored after it.
    Turn(u64),
    /// Those since this Entry; null is the whole Session.
    Since(Option<u64>),
    /// The work tree against the commit that HEAD names.
    Head,
}

/// Reads changes of a workspace. It never runs git.
#[derive(Debug, Clone)]
pub struct Reviewer {
    blobs: Blobs,
    workspace: PathBuf,
    /// Folders that are worked on besides the workspace; their files have absolute paths.
    folders: Vec<PathBuf>,
}

impl Reviewer {
    /// For a workspace with the folders that are worked on besides it, and the blobs of its Sessions.
    pub const fn new(blobs: Blobs, workspace: PathBuf, folders: Vec<PathBuf>) -> Reviewer {
        Reviewer { blobs, workspace, folders }
    }

    /// Lists the changed files. Some are not counted yet; [`Reviewer::count`] does that.
    pub fn changes(&self, source: &Source, entries: &[Arc<Entry>]) -> Changes {
        let after = |seq: u64| entries.partition_point(|entry| entry.seq < seq);
        let versions = self.versions(source);
        match source {
            Source::Head => self.since_commit(&versions),
            Source::Call(seq) => diff::of_entries(of_call(entries, *seq).into_iter(), &versions),
            Source::Turn(seq) => {
                let from = after(*seq);
                let later = entries.iter().skip(from + 1).position(|entry| starts_turn(&entry.fact));
                let to = later.map_or(entries.len(), |later| from + 1 + later);
                diff::of_entries(entries.get(from..to).unwrap_or_default().iter(), &versions)
            }
            Source::Since(seq) => {
                diff::of_entries(entries[seq.map_or(0, after).min(entries.len())..].iter(), &versions)
            }
        }
    }

    /// The work tree of each root against the commit of its repository.
    fn since_commit(&self, versions: &Everywhere<'_>) -> Changes {
        let mut all = match &versions.git {
            Some(git) => {
                let mut changes = git.changes(&self.workspace);
                diff::join_renames(&mut changes.files, versions);
                changes
            }
            None => Changes { files: Vec::new(), note: Some("this workspace is in no git repository".to_owned()) },
        };
        for (root, git) in &versions.others {
            let mut changes = git.changes(root);
            for file in &mut changes.files {
                file.path = root.join(&file.path).display().to_string();
            }
            diff::join_renames(&mut changes.files, versions);
            all.files.extend(changes.files);
            let note = changes.note.map(|note| format!("{}: {note}", root.display()));
            all.note = match (all.note, note) {
                (Some(one), Some(other)) => Some(format!("{one}; {other}")),
                (one, other) => one.or(other),
            };
        }
        all.files.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    /// Counts the lines of these files.
    pub fn count(&self, source: &Source, mut files: Vec<ChangedFile>) -> Vec<ChangedFile> {
        let versions = self.versions(source);
        files.iter_mut().filter(|file| file.counts.is_none()).for_each(|file| file.count(&versions));
        files
    }

    /// The lines of one file.
    pub fn patch(&self, source: &Source, file: &ChangedFile) -> Patch {
        file.patch(&self.versions(source))
    }

    /// Finds lines that moved between these files. Of very many files, or very long ones, none are looked for.
    pub fn moves(&self, source: &Source, files: &[ChangedFile]) -> Across {
        /// Files that are read for it.
        const MOST: usize = 500;
        let versions = self.versions(source);
        let is_short = |file: &&ChangedFile| file.binary.is_none() && file.folded.is_none();
        let read: Vec<&ChangedFile> = files.iter().filter(is_short).collect();
        if read.len() < 2 || read.len() > MOST {
            return Across::default();
        }
        let texts = read.into_iter().filter_map(|file| match file.patch(&versions).body {
            Body::Text(text) => Some((Arc::from(file.path.as_str()), text)),
            Body::Binary(..) | Body::Nothing(_) => None,
        });
        Across::of(&texts.collect::<Vec<_>>())
    }

    /// The start of a long file's change; `None` if the file is not long.
    pub fn start(&self, source: &Source, file: &ChangedFile) -> Option<Patch> {
        file.start(&self.versions(source))
    }

    fn versions(&self, source: &Source) -> Everywhere<'_> {
        let is_head = *source == Source::Head;
        let git = if is_head { Git::of(&self.workspace) } else { None };
        let folders = self.folders.iter().filter(|_| is_head);
        let others = folders.filter_map(|root| Some((root.as_path(), Git::of(root)?))).collect();
        Everywhere { blobs: &self.blobs, workspace: &self.workspace, git, others }
    }
}

/// A call's result, and the hunks of it that were reverted since.
fn of_call(entries: &[Arc<Entry>], seq: u64) -> Vec<&Arc<Entry>> {
    let at = entries.partition_point(|entry| entry.seq < seq);
    let Some(result) = entries.get(at) else { return Vec::new() };
    let mut all = vec![result];
    for entry in &entries[at + 1..] {
        match &entry.fact {
            Fact::FilesRestored(it) if it.reason == RestoreReason::Hunk => all.push(entry),
            // After another change of files, a revert is of that one.
            fact if !fact.all_changes().is_empty() => break,
            _ => {}
        }
    }
    all
}

/// The sources that a conversation offers, for the diff's Tab: what is absent has nothing to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The results of calls that changed files, oldest first.
    pub calls: Vec<u64>,
    /// The Entries that start Turns, oldest first, with the numbers of the Turns.
    pub turns: Vec<(u64, u32)>,
    /// The Entry after which this branch left another one.
    pub branch: Option<u64>,
}

impl Sources {
    /// Reads them from the path to the Head.
    pub fn of(history: &History) -> Sources {
        let mut it = Sources::default();
        for entry in history.path() {
            if starts_turn(&entry.fact)
                && let Some(turn) = entry.turn
            {
                it.turns.push((entry.seq, turn));
            }
            if matches!(&entry.fact, Fact::ToolResult(result) if !result.changes.is_empty()) {
                it.calls.push(entry.seq);
            }
        }
        it.branch = tree::branch_point(history);
        it
    }
}

struct Everywhere<'a> {
    blobs: &'a Blobs,
    workspace: &'a Path,
    git: Option<Git>,
    /// The repositories of the folders besides the workspace.
    others: Vec<(&'a Path, Git)>,
}

impl Everywhere<'_> {
    /// The root that a path lies in, the path in it, and the repository of that root.
    fn root_of<'a>(&'a self, path: &'a str) -> (&'a Path, &'a str, Option<&'a Git>) {
        let other = self.others.iter().find_map(|(root, git)| {
            let inside = Path::new(path).strip_prefix(root).ok()?.to_str()?;
            Some((*root, inside, Some(git)))
        });
        other.unwrap_or((self.workspace, path, self.git.as_ref()))
    }
}

impl Versions for Everywhere<'_> {
    fn read(&self, path: &str, version: &Version) -> Result<Option<Vec<u8>>, String> {
        match version {
            Version::Absent | Version::Blob(_) | Version::Lost(_) => self.blobs.read(path, version),
            Version::Object(name) => {
                let bytes = self.root_of(path).2.and_then(|git| git.blob(name));
                bytes.map(Some).ok_or_else(|| "the version of the commit cannot be read here".to_owned())
            }
            Version::Disk => {
                let read = || {
                    let (root, inside, _) = self.root_of(path);
                    let workspace = Workspace::open(root)?;
                    let at = workspace.locate(inside)?;
                    if workspace.is_behind_symlink(&at) {
                        return Ok(None);
                    }
                    workspace.read_if_there(&at)
                };
                read().map(|now| now.map(|now| now.bytes)).map_err(|e| e.message)
            }
        }
    }

    fn read_start(&self, path: &str, version: &Version, most: usize) -> Result<Option<Start>, String> {
        match version {
            Version::Absent | Version::Blob(_) | Version::Lost(_) => self.blobs.read_start(path, version, most),
            Version::Object(_) | Version::Disk => {
                self.read(path, version).map(|bytes| bytes.map(|bytes| Start::of(bytes, most)))
            }
        }
    }
}
