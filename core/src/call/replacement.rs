//! A file that a call creates or replaces: previewed first, then applied exactly as previewed.

use super::{Context, Output, Prepared, off_loop};
use crate::files::changes;
use crate::files::workspace::{Contents, Inside};
use crate::permissions::Touch;
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{FileChange, Preview};
use crate::protocol::remedy::Remedy;
use crate::text::human::human_size;

/// A file and the bytes that it will hold.
#[derive(Debug)]
pub(crate) struct Replacement {
    at: Inside,
    before: Option<Contents>,
    after: Vec<u8>,
    /// The preview.
    pub(crate) preview: Preview,
}

impl Replacement {
    /// Computes the preview of a change; changes nothing.
    ///
    /// # Errors
    /// `NOT_REGULAR_FILE`; `WRITE_FAILED` for a protected output folder; `FILE_CHANGED` if the file changed since the
    /// model read it.
    pub(crate) fn preview(would: &str, ctx: &Context, at: Inside, after: Vec<u8>) -> Result<Replacement> {
        ctx.workspace.check_writable(&at)?;
        let before = ctx.workspace.read_if_there(&at)?;
        Replacement::of(would, ctx, at, before, after)
    }

    /// Like [`Replacement::preview`], for bytes derived from `before`. Applying the change fails if the file differs from
    /// `before`.
    ///
    /// # Errors
    /// As [`Replacement::preview`].
    pub(crate) fn of(
        would: &str,
        ctx: &Context,
        at: Inside,
        before: Option<Contents>,
        after: Vec<u8>,
    ) -> Result<Replacement> {
        ctx.workspace.check_writable(&at)?;
        if ctx.workspace.is_below_file(&at) {
            let shown = at.display();
            let message = format!("a parent of {shown} is a file, not a folder");
            let fix = "another path, or move that file away first";
            return Err(Error::new(Code::WriteFailed, message, fix).with("input", shown));
        }
        ctx.read_set.check(&ctx.workspace, &at, before.as_ref().map(|b| b.bytes.as_slice())).inspect_err(|_| {
            if before.is_none() {
                ctx.read_set.forget(&ctx.workspace, &at);
            }
        })?;
        let shown = at.display();
        let (diff, _, _) = changes::unified(&shown, before.as_ref().map(|b| b.bytes.as_slice()), Some(&after));
        let preview = Preview {
            would: would.to_owned(),
            target: shown.clone(),
            paths: vec![shown],
            diff: Some(diff),
            bytes: Some(after.len() as u64),
            bytes_before: before.as_ref().map(|before| before.bytes.len() as u64),
            ..Preview::default()
        };
        Ok(Replacement { at, before, after, preview })
    }

    /// What replacing this file touches.
    pub(crate) fn touch(ctx: &Context, at: &Inside) -> Touch {
        Touch::Files { path: Some(at.display()), protected: ctx.workspace.is_protected(at).then(|| at.display()) }
    }

    /// The hash of the bytes that it will hold.
    pub(crate) fn hash_after(&self) -> blake3::Hash {
        blake3::hash(&self.after)
    }

    /// A prepared call that makes this change.
    pub(crate) fn prepared(self, ctx: &Context) -> Prepared {
        let touch = Replacement::touch(ctx, &self.at);
        Prepared::new(self.preview.clone(), touch, move |ctx| {
            off_loop(move || {
                let (change, told) = self.apply(&ctx)?;
                let mut output = Output::text(&ctx, &told);
                output.changes.push(change);
                Ok(output)
            })
        })
    }

    /// Applies the change, unless the file changed since the preview.
    ///
    /// # Errors
    /// `FILE_CHANGED`, `WRITE_FAILED`; the file is unchanged in both cases.
    pub(crate) fn apply(self, ctx: &Context) -> Result<(FileChange, String)> {
        let Replacement { at, before, after, preview } = self;
        let shown = preview.target;
        // An interrupt waits for this lock, so that it records the finished write.
        let writing = ctx.snapshot.write(&shown, &ctx.workspace, &ctx.blobs);
        if ctx.cancel.is_cancelled() {
            return Err(Error::new(Code::CommandFailed, "the call was interrupted before it began", "repeat it"));
        }
        let now = ctx.workspace.read_if_there(&at)?;
        if now.as_ref().map(|n| &n.bytes) != before.as_ref().map(|b| &b.bytes) {
            return Err(Error::new(
                Code::FileChanged,
                format!("`{shown}` changed after this change was prepared"),
                "read it again, then repeat the change",
            )
            .with("input", shown.as_str()));
        }
        // The earlier version is stored first, so that a restore can always bring it back.
        let unkept = |why: String| {
            Error::new(
                Code::WriteFailed,
                format!("{shown} was not changed, because its earlier version cannot be stored: {why}"),
                Remedy::CheckStateFolder,
            )
        };
        let old = before.as_ref().map(|b| (b.bytes.as_slice(), b.mode));
        let mut change =
            changes::record(&ctx.blobs, &shown, old, Some((&after, 0))).map_err(|e| unkept(e.to_string()))?;
        if before.is_some() && change.before_blob.is_none() {
            return Err(unkept("it is too large".into()));
        }
        let replaced = ctx.workspace.replace(&at, &after, before.as_ref().map(|b| b.mode))?;
        (change.after_mode, change.new_folders) = (Some(replaced.mode), replaced.new_folders);
        writing.made(&ctx.call_id, change.clone());
        ctx.read_set.note(&ctx.workspace, &at, blake3::hash(&after));
        let (added, removed) = (change.added, change.removed);
        let told = match &before {
            Some(before) => format!("Edited {shown}:{} (+{added} −{removed})\n", first_change(&before.bytes, &after)),
            None => format!("Created {shown} ({}, +{added} −0)\n", human_size(after.len() as u64)),
        };
        Ok((change, told))
    }
}

/// The first line that differs, from 1.
fn first_change(before: &[u8], after: &[u8]) -> usize {
    let same = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    memchr::memchr_iter(b'\n', &after[..same]).count() + 1
}
