//! One hunk of a change, taken back through the same restore as an undo.

use std::collections::BTreeMap;

use super::{AimedFile, RestoreTarget};
use crate::diff::with_edit;
use crate::workspace::Workspace;
use protocol::error::{Code, Error, Result};
use protocol::event::{ChangeKind, FileChange, RestoreReason};
use protocol::input::HunkRevert;
use protocol::remedy::Remedy;
use storage::blobs::{self, Blobs};
use text::encoding::Decoded;

/// Aims at the file without the hunk. What others changed in the file since it was seen stays, or is a conflict.
///
/// # Errors
/// `FILE_CHANGED` if the version with the hunk is neither there nor stored, or does not have its lines; errors of the
/// workspace for a path that leads out of it.
pub fn of_hunk(it: &HunkRevert, workspace: &Workspace, blobs: &Blobs) -> Result<RestoreTarget> {
    let at = workspace.locate(&it.path)?;
    let gone = |why: &str| Error::new(Code::FileChanged, format!("{}: {why}", it.path), "look at the new diff");
    let unkept = |e: std::io::Error| {
        Error::new(Code::WriteFailed, format!("the version to restore cannot be stored: {e}"), Remedy::CheckStateFolder)
    };
    let put = |bytes: &[u8]| match blobs.put(bytes).map_err(unkept)? {
        Some(name) => Ok(name),
        None => Err(unkept(std::io::Error::other("it is too large"))),
    };
    let seen = match &it.seen {
        None => Some(Decoded::default()),
        Some(name) => {
            // pixir has not stored the version that git has, but the file on the disk is that version if its hash is the one seen.
            let now = workspace.read_if_there(&at)?.map(|now| now.bytes);
            let bytes = match now.filter(|bytes| blobs::name_of(bytes) == *name) {
                Some(bytes) => bytes,
                None => blobs.get(name).map_err(|_| gone("it changed since the diff was made"))?,
            };
            put(&bytes)?;
            Decoded::of(bytes)
        }
    };
    let seen = seen.ok_or_else(|| gone("it is not text"))?;
    let wanted = with_edit(seen.text(), &it.edit).ok_or_else(|| gone("the hunk is not there any more"))?;
    let wanted = seen.rewritten(&wanted).map_err(|unfit| unfit.error(&it.path))?.into_bytes();
    let is_removed = it.is_new && wanted.is_empty();
    let kind = match (is_removed, &it.seen) {
        (true, _) => ChangeKind::Created,
        (false, None) => ChangeKind::Deleted,
        (false, Some(_)) => ChangeKind::Modified,
    };
    // The change that the restore takes back: from the version without the hunk to the one that was seen.
    let change = FileChange {
        path: it.path.clone(),
        kind,
        before_blob: if is_removed { None } else { Some(put(&wanted)?) },
        after_blob: it.seen.clone(),
        before_mode: it.mode.filter(|_| it.seen.is_none()),
        after_mode: None,
        new_folders: 0,
        moved_from: None,
        added: 0,
        removed: 0,
    };
    let files = BTreeMap::from([(it.path.clone(), AimedFile { steps: vec![change], touched: false })]);
    Ok(RestoreTarget { reason: RestoreReason::Hunk, of_turn: None, to_seq: None, of_seq: None, files })
}
