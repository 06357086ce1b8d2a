//! Files that a call creates, replaces or removes: previewed first, then changed exactly as previewed.

use super::{Context, Output, Prepared, off_loop};
use files::changes;
use files::diff::Shown;
use files::walk::is_ignored;
use files::workspace::{Contents, Destination, Inside, New};
use permissions::{Protected, Touch};
use protocol::call_info::CallInfo;
use protocol::error::{Code, Error, Result};
use protocol::event::{FileChange, Preview};
use protocol::remedy::Remedy;
use text::encoding::{self, Encoding, Unfit};
use text::form;
use text::human::human_size;

/// A file, and the bytes that it will hold.
#[derive(Debug)]
pub struct Replacement {
    /// Where it lands: judged for the preview, and written nowhere else.
    to: Destination,
    before: Option<Contents>,
    /// `None` removes the file.
    after: Option<Vec<u8>>,
    /// The file that is moved here, and its permission bits.
    moved: Option<(Destination, u32)>,
    /// The mode of a file that its user may not write.
    read_only: Option<u32>,
    /// The preview.
    pub preview: Preview,
    /// What the model reads once the change is made.
    pub told: String,
}

impl Replacement {
    /// Computes the preview of a change of all of a file, which keeps its encoding, byte order mark and ends of lines; changes
    /// nothing.
    ///
    /// # Errors
    /// `NOT_REGULAR_FILE`; `WRITE_FAILED` for a protected output folder; `FILE_CHANGED` if the file changed since the
    /// model read it; `INVALID_ARGS` for a character that the encoding does not have.
    pub fn preview(would: &str, ctx: &Context, at: Inside, after: Vec<u8>) -> Result<Replacement> {
        Replacement::formed(would, ctx, at, |before| match before {
            Some(before) => form::kept(before, after),
            None => Ok((after, Vec::new())),
        })
    }

    /// Computes the preview of a whole file with this text in this encoding; changes nothing.
    ///
    /// # Errors
    /// As [`Replacement::preview`].
    pub fn encoded(would: &str, ctx: &Context, at: Inside, text: &str, encoding: Encoding) -> Result<Replacement> {
        Replacement::formed(would, ctx, at, |before| form::converted(before, text, encoding))
    }

    /// Computes the preview of a whole file whose bytes and notes are made of the bytes before.
    fn formed(
        would: &str,
        ctx: &Context,
        at: Inside,
        form: impl FnOnce(Option<&[u8]>) -> Result<(Vec<u8>, Vec<String>), Unfit>,
    ) -> Result<Replacement> {
        ctx.workspace.check_writable(&at)?;
        let to = ctx.workspace.destination(&at)?;
        let before = ctx.workspace.read_if_there(to.at())?;
        check_seen(ctx, to.at(), before.as_ref())?;
        let old = before.as_ref().map(|before| before.bytes.as_slice());
        let (after, notes) = form(old).map_err(|unfit| unfit.error(&to.at().display()))?;
        Ok(Replacement::of(would, ctx, to, before, Some(after))?.noting(notes))
    }

    /// The same change with more to say about its file, on the card and in the result.
    #[must_use]
    pub fn noting(mut self, notes: Vec<String>) -> Replacement {
        self.told.push_str(&as_notes(&notes));
        self.preview.notes.extend(notes);
        self
    }

    /// Like [`Replacement::preview`], for bytes derived from `before`; without bytes, the file is removed. Applying the
    /// change fails if the file differs from `before`.
    ///
    /// # Errors
    /// As [`Replacement::preview`].
    pub fn of(
        would: &str,
        ctx: &Context,
        to: Destination,
        before: Option<Contents>,
        after: Option<Vec<u8>>,
    ) -> Result<Replacement> {
        let at = to.at();
        ctx.workspace.check_writable(at)?;
        if ctx.workspace.is_below_file(at) {
            let shown = at.display();
            let message = format!("a parent of {shown} is a file, not a folder");
            let fix = "another path, or move that file away first";
            return Err(Error::new(Code::WriteFailed, message, fix).with("input", shown));
        }
        ctx.read_set.check(&ctx.workspace, at, before.as_ref().map(|b| b.bytes.as_slice())).inspect_err(|_| {
            if before.is_none() {
                ctx.read_set.forget(&ctx.workspace, at);
            }
        })?;
        let shown = at.display();
        let old = before.as_ref().map(|b| b.bytes.as_slice());
        let change = Shown::of(&shown, old, after.as_deref());
        let figures = changes::figures(change.counts, old, after.as_deref());
        let told = match (old, &after, change.counts) {
            (_, None, Some((_, removed))) => format!("Deleted {shown} (−{removed})\n"),
            (_, None, None) => format!("Deleted {shown} ({figures})\n"),
            (Some(old), Some(after), _) => format!("Edited {shown}:{} ({figures})\n", first_change(old, after)),
            (None, Some(after), Some(_)) => {
                format!("Created {shown} ({}, {figures})\n", human_size(after.len() as u64))
            }
            (None, Some(_), None) => format!("Created {shown} ({figures})\n"),
        };
        let lost = if after.is_some() { ctx.workspace.would_lose(&to) } else { Vec::new() };
        let preview = Preview {
            would: would.to_owned(),
            target: shown.clone(),
            paths: vec![shown],
            bytes: after.as_ref().map(|after| after.len() as u64),
            bytes_before: before.as_ref().map(|before| before.bytes.len() as u64),
            notes: lost,
            ..of_change(change)
        };
        let read_only = ctx.workspace.read_only(&to);
        Ok(Replacement { to, before, after, moved: None, read_only, preview, told })
    }

    /// The same change, which moves this file with its permission bits here.
    #[must_use]
    pub fn moving(self, moved: Option<(Destination, u32)>) -> Replacement {
        Replacement { moved, ..self }
    }

    /// What replacing the file at this path touches, as far as that is known before its folders are resolved for the change.
    pub fn touch(ctx: &Context, at: &Inside) -> Touch {
        match ctx.workspace.destination(at) {
            Ok(to) => touch_of(&to),
            Err(_) => Touch::Files { path: Some(at.display()), protected: None },
        }
    }

    /// What a change there touches: the file, and the path that was given where a symlink leads from that to the file. A rule
    /// about either binds. A file that its user may not write is asked about.
    pub fn touches_of(ctx: &Context, to: &Destination) -> Vec<Touch> {
        touches_of(to, ctx.workspace.read_only(to))
    }

    /// What this change touches.
    pub fn touches(&self) -> Vec<Touch> {
        touches_of(&self.to, self.read_only)
    }

    /// The hash of the bytes that it will hold.
    pub fn hash_after(&self) -> blake3::Hash {
        blake3::hash(self.after.as_deref().unwrap_or_default())
    }

    /// A prepared call that makes this change.
    pub fn prepared(self) -> Prepared {
        let (preview, touches) = (self.preview.clone(), self.touches());
        let run = move |ctx: Context| {
            off_loop(move || {
                let told = self.told.clone();
                let Applied { changes, lost } = apply(vec![self], &ctx)?;
                Ok(Output { changes, ..Output::text(&ctx, &(told + &as_notes(&lost))) })
            })
        };
        Prepared { info: CallInfo::default(), preview, touches, run: Box::new(|ctx| Box::pin(run(ctx))) }
    }

    fn at(&self) -> &Inside {
        self.to.at()
    }

    /// Fails if the file changed since the preview.
    fn check_unchanged(&self, ctx: &Context) -> Result<()> {
        let now = ctx.workspace.read_at(&self.to)?;
        if now == self.before && ctx.workspace.read_only(&self.to) == self.read_only {
            return Ok(());
        }
        let shown = self.at().display();
        let message = format!("`{shown}` changed after this change was prepared");
        Err(Error::new(Code::FileChanged, message, "read it again, then repeat the change").with("input", shown))
    }

    /// Stores both versions, the earlier one so that a restore can always bring it back.
    fn stored(&self, ctx: &Context) -> Result<FileChange> {
        let shown = self.at().display();
        let unkept = |why: String| {
            Error::new(
                Code::WriteFailed,
                format!("{shown} was not changed, because its earlier version cannot be stored: {why}"),
                Remedy::CheckStateFolder,
            )
        };
        let old = self.before.as_ref().map(|b| (b.bytes.as_slice(), b.mode));
        let new = self.after.as_deref().map(|after| (after, 0));
        let change = changes::record(&ctx.blobs, &shown, old, new).map_err(|e| unkept(e.to_string()))?;
        if self.before.is_some() && change.before_blob.is_none() {
            return Err(unkept("it is too large".into()));
        }
        Ok(change)
    }

    /// Makes the change. Returns what the file loses by it.
    fn write(&self, ctx: &Context, change: &mut FileChange) -> Result<Vec<String>> {
        let before = self.before.as_ref().map(|before| before.bytes.as_slice());
        let Some(after) = &self.after else { return ctx.workspace.remove_at(&self.to, 0, before).map(|()| Vec::new()) };
        let mode = self.before.as_ref().map(|before| before.mode).or(self.moved.as_ref().map(|(_, mode)| *mode));
        let like = self.moved.as_ref().map(|(from, _)| from);
        let replaced = ctx.workspace.replace_at(&self.to, &New { bytes: after, mode, before, like })?;
        (change.after_mode, change.new_folders) = (Some(replaced.mode), replaced.new_folders);
        Ok(replaced.lost)
    }

    fn take_back(&self, ctx: &Context, change: &FileChange) -> Result<()> {
        let made = self.after.as_deref();
        match &self.before {
            Some(Contents { bytes, mode }) => {
                let new = New { bytes, mode: Some(*mode), before: made, like: None };
                ctx.workspace.replace_at(&self.to, &new).map(drop)
            }
            None => ctx.workspace.remove_at(&self.to, change.new_folders, made),
        }
    }

    fn note_seen(&self, ctx: &Context) {
        match &self.after {
            Some(after) => ctx.read_set.note(&ctx.workspace, self.at(), blake3::hash(after)),
            None => ctx.read_set.forget(&ctx.workspace, self.at()),
        }
    }
}

/// A preview that has this change of one file, and nothing else yet.
pub fn of_change(it: Shown) -> Preview {
    let (added, removed) = it.counts.unzip();
    Preview { diff: Some(it.text), added, removed, unseen: it.unseen, ..Preview::default() }
}

/// Refuses to replace a file that the model took for absent: git ignores it, so no search has shown it, and the model has not
/// read it.
fn check_seen(ctx: &Context, at: &Inside, before: Option<&Contents>) -> Result<()> {
    let is_text = |it: &&Contents| !it.bytes.is_empty() && encoding::decoded(&it.bytes).is_some();
    // Outside a Session nothing is remembered of what was read, and the rules are those of the workspace.
    let root = ctx.workspace.root();
    if ctx.jobs.is_none()
        || !root.join(at.as_path()).starts_with(root)
        || before.filter(is_text).is_none()
        || ctx.read_set.knows(&ctx.workspace, at)
        || !is_ignored(root, at.as_path())
    {
        return Ok(());
    }
    let shown = at.display();
    let message = format!("`{shown}` exists and you have not read it: git ignores it, so no search shows it");
    Err(Error::new(Code::FileChanged, message, format!("read {shown}, then repeat the change")).with("input", shown))
}

fn touch_of(to: &Destination) -> Touch {
    let path = to.at().display();
    let protected = to.group().map(|group| Protected { path: path.clone(), group });
    Touch::Files { path: Some(path), protected }
}

fn touches_of(to: &Destination, read_only: Option<u32>) -> Vec<Touch> {
    let mut touches = vec![touch_of(to)];
    if to.given() != to.at() {
        touches.push(Touch::Files { path: Some(to.given().display()), protected: None });
    }
    touches.extend(read_only.map(|mode| Touch::ReadOnly { path: to.at().display(), mode }));
    touches
}

/// Sentences about a changed file, as the model reads them.
pub fn as_notes(notes: &[String]) -> String {
    notes.iter().map(|note| format!("note: {note}\n")).collect()
}

/// Changes that were made.
#[derive(Debug)]
pub struct Applied {
    /// One for each file.
    pub changes: Vec<FileChange>,
    /// What the files lost by being replaced, as sentences.
    pub lost: Vec<String>,
}

/// Makes all of these changes or none: nothing is written if a file changed since its preview, and what is written is taken
/// back if a later file cannot be.
///
/// # Errors
/// `FILE_CHANGED`, `WRITE_FAILED`; `LEASE_HELD` where another program has locked a folder.
pub fn apply(all: Vec<Replacement>, ctx: &Context) -> Result<Applied> {
    let paths: Vec<String> = all.iter().map(|it| it.at().display()).collect();
    // An interrupt waits for this lock, so that it records the finished writes.
    let writing = ctx.snapshot.write_all(paths.iter().map(String::as_str).collect(), &ctx.workspace, &ctx.blobs);
    if ctx.cancel.is_cancelled() {
        return Err(Error::new(Code::CommandFailed, "the call was interrupted before it began", "repeat it"));
    }
    // From the look at the files to their replacement, no other pixir writes in their folders.
    let files: Vec<&Destination> = all.iter().map(|it| &it.to).collect();
    let _locked = ctx.workspace.lock(&files, &|| ctx.cancel.is_cancelled())?;
    all.iter().try_for_each(|it| it.check_unchanged(ctx))?;
    let mut lost = Vec::new();
    let mut changes = all.iter().map(|it| it.stored(ctx)).collect::<Result<Vec<FileChange>>>()?;
    for (n, it) in all.iter().enumerate() {
        let error = match it.write(ctx, &mut changes[n]) {
            Ok(more) => {
                lost.extend(more);
                continue;
            }
            Err(error) => error,
        };
        let mut left = Vec::new();
        for (made, change) in all[..n].iter().zip(&changes).rev() {
            if made.take_back(ctx, change).is_err() {
                left.push(change.clone());
            }
        }
        if left.is_empty() {
            return Err(error);
        }
        let names: Vec<&str> = left.iter().map(|change| change.path.as_str()).collect();
        let message =
            format!("{}; {} stays changed, because it cannot be written back", error.message, names.join(", "));
        left.iter().for_each(|change| writing.made(&ctx.call_id, change.clone()));
        return Err(Error { message, ..error });
    }
    for (it, change) in all.iter().zip(&changes) {
        writing.made(&ctx.call_id, change.clone());
        it.note_seen(ctx);
    }
    Ok(Applied { changes, lost })
}

/// The first line that differs, from 1.
pub fn first_change(before: &[u8], after: &[u8]) -> usize {
    let texts = encoding::both(before, after);
    let (before, after) = texts.as_ref().map_or((before, after), |(old, new)| (old.as_bytes(), new.as_bytes()));
    let same = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    memchr::memchr_iter(b'\n', &after[..same]).count() + 1
}
