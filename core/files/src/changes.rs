//! File changes made by tools: the versions before and after, and their readable diffs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diff::{self, join_moves};
use protocol::event::{ChangeKind, Entry, Fact, FileChange};
use storage::blobs::Blobs;

/// The change of one file, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Relative to the workspace.
    pub path: String,
    /// The path before, if the file was moved.
    pub from: Option<String>,
    /// Created, modified or deleted, over the whole range of entries.
    pub kind: ChangeKind,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// A unified diff, or a sentence in brackets that says why there is none.
    pub text: String,
}

/// Returns a unified diff of two texts, and how many lines it adds and removes.
pub fn unified(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> (String, u64, u64) {
    let (text, counts) = diff::exact::unified(path, before, after);
    let (added, removed) = counts.unwrap_or_default();
    (text, added, removed)
}

/// Words what a change adds and removes: `+3 −1`, or the sizes of bytes without lines.
pub fn figures(counts: Option<(u64, u64)>, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    match counts {
        Some((added, removed)) => format!("+{added} −{removed}"),
        None => format!("not text, {}", diff::exact::sizes(before, after)),
    }
}

/// One side of a change: bytes and permission bits; `None` when the file does not exist.
pub type Side<'a> = Option<(&'a [u8], u32)>;

/// Stores both sides of a change as blobs and counts its lines.
///
/// # Errors
/// The file system's error from the blob store.
pub fn record<'a>(blobs: &Blobs, path: &str, before: Side<'a>, after: Side<'a>) -> std::io::Result<FileChange> {
    let bytes = |side: Side<'a>| side.map(|(bytes, _)| bytes);
    let (added, removed) = diff::shown::counts(bytes(before), bytes(after)).unwrap_or_default();
    let kind = match (before, after) {
        (None, _) => ChangeKind::Created,
        (Some(_), None) => ChangeKind::Deleted,
        (Some(_), Some(_)) => ChangeKind::Modified,
    };
    let keep = |side: Side<'_>| side.map_or(Ok(None), |(bytes, _)| blobs.put(bytes));
    Ok(FileChange {
        path: path.to_owned(),
        kind,
        before_blob: keep(before)?,
        after_blob: keep(after)?,
        before_mode: before.map(|(_, mode)| mode),
        after_mode: after.map(|(_, mode)| mode),
        new_folders: 0,
        moved_from: None,
        added,
        removed,
    })
}

/// Diffs the files that these entries changed, each from its first version to its last. Files that end as they began
/// are left out.
pub fn between<'a>(entries: impl Iterator<Item = &'a Arc<Entry>>, blobs: &Blobs) -> Vec<FileDiff> {
    let mut files: BTreeMap<&str, (&FileChange, &FileChange)> = BTreeMap::new();
    for entry in entries {
        for change in entry.fact.all_changes() {
            files.entry(&change.path).and_modify(|(_, last)| *last = change).or_insert((change, change));
        }
    }
    files.into_iter().filter_map(|(path, (first, last))| diff_of(path, first, last, blobs)).collect()
}

/// What these changes, in their order, come to: each file once, from its first version to its last. Files that end as they
/// began are left out.
pub fn net(changes: &[FileChange], blobs: &Blobs) -> Vec<FileChange> {
    let mut files: BTreeMap<&str, (&FileChange, &FileChange)> = BTreeMap::new();
    for change in changes {
        files.entry(&change.path).and_modify(|(_, last)| *last = change).or_insert((change, change));
    }
    let net = files.into_iter().filter_map(|(path, (first, last))| {
        let diff = diff_of(path, first, last, blobs)?;
        Some(FileChange {
            path: path.to_owned(),
            kind: diff.kind,
            before_blob: first.before_blob.clone(),
            after_blob: last.after_blob.clone(),
            before_mode: first.before_mode,
            after_mode: last.after_mode,
            new_folders: first.new_folders,
            moved_from: None,
            added: diff.added,
            removed: diff.removed,
        })
    });
    let mut net: Vec<FileChange> = net.collect();
    join_moves(&mut net, blobs);
    net
}

/// Diffs the files that one call changed. A file that it moved is compared with what it was under its old path.
pub fn of_call(entry: &Entry, blobs: &Blobs) -> Vec<FileDiff> {
    let all = entry.fact.all_changes();
    let moved = |path: &str| all.iter().any(|it| it.moved_from.as_deref() == Some(path));
    let diff = |change: &FileChange| {
        let old = change.moved_from.as_ref().and_then(|from| all.iter().find(|it| it.path == *from));
        let Some(old) = old else { return diff_of(&change.path, change, change, blobs) };
        let (before, after) = (Version::before(old), Version::after(change));
        // Also a file whose bytes are the same has changed: its path.
        let same = FileDiff {
            path: change.path.clone(),
            from: None,
            kind: ChangeKind::Modified,
            added: 0,
            removed: 0,
            text: String::new(),
        };
        let diff = before.diff(&after, &change.path, blobs).unwrap_or(same);
        Some(FileDiff { from: Some(old.path.clone()), ..diff })
    };
    let is_gone = |it: &&FileChange| it.kind == ChangeKind::Deleted && moved(&it.path);
    all.iter().filter(|it| !is_gone(it)).filter_map(diff).collect()
}

/// Diffs the files of two places of the tree, from the first to the second. The entries are those that only one place
/// has, in their order. Files that are the same in both places are left out.
pub fn across(left: &[Arc<Entry>], right: &[Arc<Entry>], blobs: &Blobs) -> Vec<FileDiff> {
    // The versions at both places. A file that one side did not touch stands there as the other side found it.
    let mut files: BTreeMap<&str, [Option<Version<'_>>; 2]> = BTreeMap::new();
    for (side, entries) in [left, right].into_iter().enumerate() {
        let other = 1 - side;
        let mut seen = std::collections::BTreeSet::new();
        for change in entries.iter().flat_map(|entry| entry.fact.all_changes()) {
            let versions = files.entry(&change.path).or_default();
            if seen.insert(&change.path) && versions[other].is_none() {
                versions[other] = Some(Version::before(change));
            }
            versions[side] = Some(Version::after(change));
        }
    }
    let diffs = files.into_iter().filter_map(|(path, versions)| {
        let [Some(left), Some(right)] = versions else { return None };
        left.diff(&right, path, blobs)
    });
    diffs.collect()
}

/// A version of a file, as a change names it.
struct Version<'a> {
    exists: bool,
    blob: Option<&'a String>,
    mode: Option<u32>,
}

impl<'a> Version<'a> {
    fn before(change: &'a FileChange) -> Version<'a> {
        let exists = change.kind != ChangeKind::Created;
        Version { exists, blob: change.before_blob.as_ref(), mode: change.before_mode }
    }

    fn after(change: &'a FileChange) -> Version<'a> {
        let exists = change.kind != ChangeKind::Deleted;
        Version { exists, blob: change.after_blob.as_ref(), mode: change.after_mode }
    }

    fn load(&self, blobs: &Blobs) -> Result<Option<Vec<u8>>, String> {
        match (self.exists, self.blob) {
            (false, _) => Ok(None),
            (true, Some(name)) => {
                blobs.get(name).map(Some).map_err(|e| format!("[a stored version cannot be read: {e}]\n"))
            }
            (true, None) => Err("[changed by a command; its earlier bytes were not captured]\n".to_owned()),
        }
    }

    /// The diff from this version to another; `None` if both are the same.
    fn diff(&self, to: &Version<'_>, path: &str, blobs: &Blobs) -> Option<FileDiff> {
        let kind = match (self.exists, to.exists) {
            (false, false) => return None,
            (false, true) => ChangeKind::Created,
            (true, false) => ChangeKind::Deleted,
            (true, true) => ChangeKind::Modified,
        };
        let (mut added, mut removed) = (0, 0);
        let text = match self.load(blobs).and_then(|before| Ok((before, to.load(blobs)?))) {
            Ok((before, after)) => {
                let is_same_mode = self.mode == to.mode || kind != ChangeKind::Modified;
                if before == after && is_same_mode {
                    return None;
                }
                let mut text;
                (text, added, removed) = unified(path, before.as_deref(), after.as_deref());
                if let (Some(old), Some(new)) = (self.mode, to.mode)
                    && old != new
                {
                    text.insert_str(0, &format!("mode {old:o} → {new:o}\n"));
                }
                text
            }
            Err(why) => why,
        };
        Some(FileDiff { path: path.to_owned(), from: None, kind, added, removed, text })
    }
}

/// Returns the blobs that an entry names: file versions and images.
pub fn blobs_of(fact: &Fact) -> Vec<&String> {
    let versions = fact.all_changes().iter().flat_map(|change| [&change.before_blob, &change.after_blob]).flatten();
    let images = match fact {
        Fact::ToolResult(it) => it.attachments.as_slice(),
        Fact::UserMessage(it) => it.attachments.as_slice(),
        _ => &[],
    };
    versions.chain(images.iter().map(|image| &image.blob)).collect()
}

fn diff_of(path: &str, first: &FileChange, last: &FileChange, blobs: &Blobs) -> Option<FileDiff> {
    let (before, after) = (Version::before(first), Version::after(last));
    let mut diff = before.diff(&after, path, blobs)?;
    // Without both versions there is still what the last change counted.
    if diff.text.starts_with('[') && diff.added + diff.removed == 0 {
        (diff.added, diff.removed) = (last.added, last.removed);
    }
    Some(diff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(bytes: &[u8]) -> Side<'_> {
        Some((bytes, 0o644))
    }

    #[test]
    fn a_change_is_told_from_its_first_state_to_its_last() {
        let folder = tempfile::tempdir().expect("a folder");
        let blobs = Blobs::new(folder.path().to_owned());
        let first = record(&blobs, "a.txt", side(b"one\n"), side(b"two\n")).expect("record");
        let last = record(&blobs, "a.txt", side(b"two\n"), side(b"three\n")).expect("record");
        let diff = diff_of("a.txt", &first, &last, &blobs).expect("it changed");
        assert_eq!(diff.text, "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+three\n");
        let back = record(&blobs, "a.txt", side(b"two\n"), side(b"one\n")).expect("record");
        assert_eq!(diff_of("a.txt", &first, &back, &blobs), None);
        let came_to = net(&[first.clone(), last.clone()], &blobs);
        assert_eq!((came_to.len(), came_to[0].added, came_to[0].removed), (1, 1, 1), "not the sum of both");
        assert_eq!((&came_to[0].before_blob, &came_to[0].after_blob), (&first.before_blob, &last.after_blob));
        assert_eq!(net(&[first, back], &blobs), []);
    }

    #[test]
    fn two_branches_are_compared_by_the_files_as_they_stand_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let blobs = Blobs::new(folder.path().to_owned());
        let entry = |change: FileChange| {
            let result = protocol::event::ToolResult { changes: vec![change], ..Default::default() };
            let id = protocol::event::SessionId::now();
            Arc::new(Entry {
                id: uuid::Uuid::now_v7(),
                session_id: id,
                seq: 0,
                ts: protocol::event::now(),
                turn: None,
                fact: result.into(),
                beyond: None,
            })
        };
        let change =
            |path: &str, before: Side<'_>, after: Side<'_>| entry(record(&blobs, path, before, after).expect("record"));
        let (one, two, three) = (side(b"one\n"), side(b"two\n"), side(b"three\n"));
        let left = [
            change("both", one, two),
            change("left", None, one),
            change("same", one, two),
            change("back", one, two),
            change("back", two, one),
        ];
        let right = [change("both", one, three), change("right", one, None), change("same", one, two)];
        let seen: Vec<(String, ChangeKind, u64, u64)> =
            across(&left, &right, &blobs).into_iter().map(|it| (it.path, it.kind, it.added, it.removed)).collect();
        let row = |path: &str, kind, added, removed| (path.to_owned(), kind, added, removed);
        assert_eq!(
            seen,
            [
                row("both", ChangeKind::Modified, 1, 1),
                row("left", ChangeKind::Deleted, 0, 1),
                row("right", ChangeKind::Deleted, 0, 1),
            ]
        );
    }
}
