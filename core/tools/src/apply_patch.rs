//! The tool `apply_patch`: it changes several files by one patch, all or nothing.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use call::arguments::{self, object, text};
use call::replacement::{Applied, Replacement, apply, as_notes, first_change, of_change};
use call::{Context, Output, Prepared, Tool, off_loop};
use files::changes;
use files::diff::Shown;
use files::patch::{self, Hunk, What};
use files::workspace::{Contents, Destination};
use permissions::Touch;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result};
use protocol::event::Preview;
use protocol::tool_spec::ToolSpec;
use text::encoding::{Decoded, Encoding};

/// The longest patch, bytes.
pub const MAX_PATCH: usize = 16 << 20;

pub(super) struct ApplyPatch;

#[derive(Deserialize)]
struct Args {
    patch: String,
}

impl Tool for ApplyPatch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "apply_patch".into(),
            description: concat!(
                "Change several files with one patch. Either all of its changes are made or none.\n",
                "A patch begins with the line *** Begin Patch and ends with *** End Patch. Each file begins with *** Update File: PATH, ",
                "*** Add File: PATH or *** Delete File: PATH; a line *** Move to: PATH below Update renames the file. Each change of a ",
                "file begins with @@, or with @@ and a line above the change that is unique. Its lines begin with a blank where they ",
                "stay, with - where they go and with + where they are new. A unified diff is accepted too.",
            )
            .into(),
            parameters: object(json!({ "patch": { "type": "string" } }), &["patch"]),
            reads_only: false,
            streams: "reads nothing from stdin; prints a line for each file".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let paths = patch::paths(text(args, "patch"));
        CallInfo::new(CallKind::Edit, "patch", paths.join(", ")).on(paths)
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { patch } = arguments::parse(args)?;
        Ok(Patched::of(ctx, &patch)?.prepared())
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("apply_patch")
    }

    fn example(&self) -> Value {
        json!({ "patch": "*** Begin Patch\n*** Update File: README.md\n@@\n-teh\n+the\n*** End Patch" })
    }
}

/// The changes that a patch makes to the present files.
pub struct Patched {
    files: Vec<Replacement>,
    /// One for each file that the patch names; a move is one.
    pub previews: Vec<Preview>,
    /// What the model reads once the changes are made.
    pub told: String,
}

impl Patched {
    /// Computes the changes; changes nothing.
    ///
    /// # Errors
    /// `INVALID_ARGS` for a patch that cannot be read. Otherwise one error for all that does not fit: its code and details
    /// are those of the first fault.
    pub fn of(ctx: &Context, text: &str) -> Result<Patched> {
        if text.len() > MAX_PATCH {
            let message = format!("the patch is longer than {} MB", MAX_PATCH >> 20);
            return Err(Error::new(Code::InvalidArgs, message, "several patches"));
        }
        let mut plan = Plan { ctx, files: Vec::new(), faults: Vec::new() };
        for section in patch::parse(text)? {
            if let Err(error) = plan.section(&section.path, section.what) {
                plan.faults.push((section.path, error));
            }
        }
        plan.finished()
    }

    /// What the changes touch: each file.
    pub fn touches(&self) -> Vec<Touch> {
        self.files.iter().flat_map(Replacement::touches).collect()
    }

    /// The hash of all files after the changes.
    pub fn hash_after(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        for file in &self.files {
            hasher.update(file.preview.target.as_bytes()).update(&[0]).update(file.hash_after().as_bytes());
        }
        hasher.finalize()
    }

    /// Makes the changes.
    ///
    /// # Errors
    /// As [`apply`]; then no file is changed.
    pub fn apply(self, ctx: &Context) -> Result<Applied> {
        apply(self.files, ctx)
    }

    fn prepared(self) -> Prepared {
        let touches = self.touches();
        let preview = match self.previews.as_slice() {
            [one] => one.clone(),
            several => Preview {
                would: "patch".into(),
                target: several.iter().map(|it| it.target.as_str()).collect::<Vec<_>>().join(", "),
                paths: several.iter().flat_map(|it| it.paths.clone()).collect(),
                bytes: Some(several.iter().filter_map(|it| it.bytes).sum()),
                steps: several.to_vec(),
                notes: several.iter().flat_map(|it| it.notes.clone()).collect(),
                ..Preview::default()
            },
        };
        let run = move |ctx: Context| {
            off_loop(move || {
                let told = self.told.clone();
                let Applied { changes, lost } = self.apply(&ctx)?;
                Ok(Output { changes, ..Output::text(&ctx, &(told + &as_notes(&lost))) })
            })
        };
        Prepared { info: CallInfo::default(), preview, touches, run: Box::new(|ctx| Box::pin(run(ctx))) }
    }
}

/// The files of a patch while its sections are applied in order to what was read.
struct Plan<'a> {
    ctx: &'a Context,
    files: Vec<File>,
    faults: Vec<(String, Error)>,
}

struct File {
    to: Destination,
    /// Two names of one file compare equal.
    real: PathBuf,
    before: Option<Contents>,
    now: Option<Vec<u8>>,
    /// The file that was moved here, by its index.
    moved_from: Option<usize>,
}

impl Plan<'_> {
    fn section(&mut self, path: &str, what: What) -> Result<()> {
        match what {
            What::Create(text) => {
                let n = self.file(path)?;
                self.check_absent(n)?;
                self.files[n].now = Some(text.into_bytes());
            }
            What::Delete(hunks) => {
                let n = self.existing(path)?;
                if !hunks.is_empty() {
                    let left = self.fitted(n, path, &hunks)?;
                    if left.is_some_and(|left| !Encoding::of(&left).decode(&left).0.is_empty()) {
                        let message = format!("`{path}` has lines that the patch does not remove");
                        return Err(Error::new(Code::NoMatch, message, format!("*** Delete File: {path}")));
                    }
                }
                self.files[n].now = None;
            }
            What::Update { to, hunks } => {
                let n = self.existing(path)?;
                if to.is_none() && !hunks.iter().any(Hunk::changes) {
                    let message = format!("the patch changes nothing in `{path}`: it has no line with - or +");
                    return Err(Error::new(
                        Code::InvalidArgs,
                        message,
                        "lines with - for old text, and + for new text",
                    ));
                }
                let target = to.map(|to| self.file(&to)).transpose()?.filter(|target| *target != n);
                if let Some(target) = target {
                    self.check_absent(target)?;
                }
                let changed = if hunks.is_empty() { None } else { self.fitted(n, path, &hunks)? };
                if let Some(changed) = changed {
                    self.files[n].now = Some(changed);
                }
                if let Some(target) = target {
                    self.files[target].now = self.files[n].now.take();
                    self.files[target].moved_from = Some(n);
                }
            }
        }
        Ok(())
    }

    /// The index of a file that may not exist.
    fn file(&mut self, path: &str) -> Result<usize> {
        let at = self.ctx.workspace.locate(path)?;
        let real = self.ctx.workspace.real(&at);
        if let Some(n) = self.files.iter().position(|file| file.real == real) {
            return Ok(n);
        }
        self.ctx.workspace.check_writable(&at)?;
        let to = self.ctx.workspace.destination(&at)?;
        let before = self.ctx.workspace.read_if_there(to.at())?;
        if let Some(before) = &before {
            self.ctx.read_set.check(&self.ctx.workspace, to.at(), Some(&before.bytes))?;
        }
        let now = before.as_ref().map(|before| before.bytes.clone());
        self.files.push(File { to, real, before, now, moved_from: None });
        Ok(self.files.len() - 1)
    }

    fn existing(&mut self, path: &str) -> Result<usize> {
        let n = self.file(path)?;
        match &self.files[n] {
            File { now: Some(_), .. } => Ok(n),
            // The error of reading it names files that are called alike.
            File { before: None, to, .. } => Err(self
                .ctx
                .workspace
                .read(to.at())
                .err()
                .unwrap_or_else(|| Error::new(Code::FileChanged, format!("`{path}` is new"), "read it first"))),
            File { now: None, .. } => {
                let message = format!("an earlier part of the patch removes `{path}`");
                Err(Error::new(Code::NotFound, message, "one part for each file"))
            }
        }
    }

    fn check_absent(&self, n: usize) -> Result<()> {
        let File { to, now, .. } = &self.files[n];
        if now.is_none() {
            return Ok(());
        }
        let shown = to.at().display();
        let message = format!("`{shown}` exists already");
        Err(Error::new(Code::WriteFailed, message, format!("*** Update File: {shown}")).with("input", shown))
    }

    /// A file's bytes after these hunks; `None` where some do not fit, which is noted.
    fn fitted(&mut self, n: usize, path: &str, hunks: &[Hunk]) -> Result<Option<Vec<u8>>> {
        let file = Decoded::of(self.files[n].now.clone().unwrap_or_default()).ok_or_else(|| {
            let fix = "a program that supports its format";
            Error::new(Code::BinaryFile, format!("`{path}` is not text"), fix).with("input", path)
        })?;
        match patch::fit(file.text(), hunks) {
            Ok(text) => Ok(Some(file.rewritten(&text).map_err(|unfit| unfit.error(path))?.into_bytes())),
            Err(misfits) => {
                let of = hunks.len();
                for it in misfits {
                    let label = format!("{path}, hunk {} of {of} (line {} of the patch)", it.hunk, it.line);
                    self.faults.push((label, it.error.with("input", path)));
                }
                Ok(None)
            }
        }
    }

    fn finished(self) -> Result<Patched> {
        let Plan { ctx, files, mut faults } = self;
        let moved: Vec<(usize, usize)> =
            files.iter().enumerate().filter_map(|(to, file)| Some((file.moved_from?, to))).collect();
        let (mut replacements, mut previews, mut told) = (Vec::new(), Vec::new(), String::new());
        for (n, file) in files.iter().enumerate() {
            let is_same = file.before.as_ref().map(|it| &it.bytes) == file.now.as_ref();
            if is_same {
                continue;
            }
            let would = match (&file.before, &file.now) {
                (None, _) => "create",
                (Some(_), Some(_)) => "edit",
                (Some(_), None) => "delete",
            };
            let source = file.moved_from.map(|from| &files[from]).filter(|_| file.now.is_some());
            let made = Replacement::of(would, ctx, file.to.clone(), file.before.clone(), file.now.clone());
            match made {
                Ok(it) => {
                    let it = it.moving(source.and_then(|from| Some((from.to.clone(), from.before.as_ref()?.mode))));
                    match source {
                        Some(from) => {
                            let (preview, line) = moving(from, file);
                            previews.push(preview);
                            told.push_str(&line);
                        }
                        // The line of its target tells about a file that is moved away.
                        None if file.now.is_none() && moved.iter().any(|(from, _)| *from == n) => {}
                        None => {
                            previews.push(it.preview.clone());
                            told.push_str(&it.told);
                        }
                    }
                    replacements.push(it);
                }
                Err(error) => faults.push((file.to.at().display(), error)),
            }
        }
        if !faults.is_empty() {
            return Err(all_of(faults));
        }
        if replacements.is_empty() {
            return Err(Error::new(Code::NothingToDo, "the files are already as the patch leaves them", "go on"));
        }
        // A file that is moved is removed once its new place holds it.
        replacements.sort_by_key(|it| it.preview.would == "delete");
        Ok(Patched { files: replacements, previews, told })
    }
}

/// The preview of a move, and what the model reads of it.
fn moving(from: &File, to: &File) -> (Preview, String) {
    let (source, target) = (from.to.at().display(), to.to.at().display());
    let old = from.before.as_ref().map(|it| it.bytes.as_slice()).unwrap_or_default();
    let new = to.now.as_deref().unwrap_or_default();
    let change = Shown::of(&target, Some(old), Some(new));
    let figures = changes::figures(change.counts, Some(old), Some(new));
    let place = if old == new { target.clone() } else { format!("{target}:{}", first_change(old, new)) };
    let preview = Preview {
        would: "move".into(),
        target: format!("{source} → {target}"),
        paths: vec![source.clone(), target],
        bytes: Some(new.len() as u64),
        bytes_before: Some(old.len() as u64),
        ..if old == new { Preview::default() } else { of_change(change) }
    };
    (preview, format!("Moved {source} → {place} ({figures})\n"))
}

/// One error for all that does not fit.
fn all_of(faults: Vec<(String, Error)>) -> Error {
    let told: Vec<String> = faults
        .iter()
        .map(|(label, error)| format!("{label}: {}. Use: {}", error.message, error.remedy.plain()))
        .collect();
    let (_, first) = &faults[0];
    let message = format!("{}\nno file was changed", told.join("\n"));
    let mut all = Error::new(first.code, message, "send the whole patch again, corrected");
    all.details.clone_from(&first.details);
    all.with("faults", faults.len())
}
