//! The run language: one line runs a workflow of commands over bytes, without a shell.
#![forbid(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use call::Context;
use files::guard::Taken;
use parking_lot::{Mutex, MutexGuard};
use permissions::{Touch, prove, shell};
use protocol::error::{Code, Error, Result, nearest};
use protocol::event::{Attachment, Fact, FileChange, Preview};

mod line; // a line that can run, with its preview
mod chain; // runs the commands of a line and connects them by pipes
pub mod commands; // the built-in commands
pub mod parse; // the grammar: words and operators
pub mod tool; // the tool `run`

pub use chain::{Ended, Take};
pub use commands::{BUILTINS, Builtin, Stdin};
pub use line::PreparedLine;
pub use parse::{Chain, Command, parse};
pub use shell::{After, quote};

/// The most names that an error lists.
const MAX_NAMES: usize = 40;

/// How a command is executed.
#[derive(Debug, Clone)]
pub enum Kind {
    /// A built-in command; it runs inside this process.
    Builtin(&'static Builtin),
    /// A program; it receives its arguments unchanged.
    Program { runs_unasked: bool },
    /// Neither a built-in nor a program on `PATH`; running it fails.
    Unknown,
}

/// A parsed line whose commands are resolved. Each is resolved once, before the user is asked for approval, so the real
/// run executes the programs that the user approved.
#[derive(Debug, Clone)]
pub struct Bound {
    pub pipelines: Vec<(After, Vec<Step>)>,
}

/// A resolved command.
#[derive(Debug, Clone)]
pub struct Step {
    pub command: Command,
    pub kind: Kind,
    pub touch: Touch,
}

impl Bound {
    /// Resolves each command. A command that can never succeed is refused here.
    ///
    /// # Errors
    /// `UNSUPPORTED_SYNTAX` for a glob in a command that expands none; `USAGE` for a pipe into a command that does not
    /// read stdin.
    pub fn find(chain: Chain, has_stdin: bool, ctx: &Context) -> Result<Bound> {
        let mut pipelines = Vec::new();
        let mut may_be_made = false;
        for (n, pipeline) in chain.pipelines.into_iter().enumerate() {
            let mut steps = Vec::new();
            for (i, command) in pipeline.commands.into_iter().enumerate() {
                let is_fed = i > 0 || (n == 0 && has_stdin);
                let kind = match kind_of(&command, ctx)? {
                    // A missing program may be created by an earlier command of the line.
                    Kind::Unknown if may_be_made && command.words[0].text.contains('/') => {
                        Kind::Program { runs_unasked: false }
                    }
                    kind => kind,
                };
                if let Kind::Builtin(builtin) = kind {
                    builtin.check_stdin(is_fed)?;
                }
                let touch = match &kind {
                    Kind::Builtin(builtin) if builtin.only_tells(&command.words[1..], is_fed) => Touch::Read,
                    Kind::Builtin(builtin) => match (builtin.touches)(&command.words[1..], ctx) {
                        Touch::Read if builtin.expands => commands::reads_of(builtin, &command.words[1..], ctx),
                        touch => touch,
                    },
                    Kind::Program { .. } => {
                        Touch::Program(command.words.iter().map(|word| word.text.clone()).collect())
                    }
                    Kind::Unknown => Touch::Read,
                };
                may_be_made |= !touch.only_reads();
                steps.push(Step { command, kind, touch });
            }
            pipelines.push((pipeline.after, steps));
        }
        Ok(Bound { pipelines })
    }

    /// What each command touches, in order.
    pub fn touches(&self) -> Vec<Touch> {
        self.steps().map(|step| step.touch.clone()).collect()
    }

    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.pipelines.iter().flat_map(|(_, steps)| steps)
    }
}

/// Resolves a command to a built-in or a program.
///
/// # Errors
/// `UNSUPPORTED_SYNTAX` for a glob in a command that expands none.
pub fn kind_of(command: &Command, ctx: &Context) -> Result<Kind> {
    let name = command.words[0].text.as_str();
    let builtin = BUILTINS.iter().find(|it| it.name == name);
    if builtin.is_none() && !is_on_path(name, ctx) {
        return Ok(Kind::Unknown);
    }
    if builtin.is_none_or(|it| !it.expands)
        && let Some(glob) = command.words.iter().find(|word| word.is_glob())
    {
        let why =
            if builtin.is_some() { "takes its arguments literally" } else { "is a program, and this is not a shell" };
        return Err(Error::new(
            Code::UnsupportedSyntax,
            format!("`{}` is not expanded: {name} {why}", glob.text),
            format!("write the names out, use '{}' for the text itself, or bash -c '…'", glob.text),
        )
        .with("input", glob.text.clone()));
    }
    Ok(match builtin {
        Some(builtin) => Kind::Builtin(builtin),
        None => Kind::Program { runs_unasked: only_reads(command, ctx) },
    })
}

/// Whether a program with these arguments is proven to only read.
pub fn only_reads(command: &Command, ctx: &Context) -> bool {
    prove(&command.texts(), ctx.readable()).is_ok()
}

fn is_on_path(name: &str, ctx: &Context) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let runs = |path: &Path| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    if name.contains('/') {
        return runs(&ctx.workspace.root().join(name));
    }
    let path = ctx.environment.iter().find(|(key, _)| key == "PATH").map_or("/usr/bin:/bin", |(_, value)| value);
    !name.is_empty()
        && path.split(':').filter(|folder| !folder.is_empty()).any(|folder| runs(&Path::new(folder).join(name)))
}

/// The error for a name that is neither a built-in nor a program; it lists the nearest name and all built-ins.
pub fn unknown(name: &str) -> Error {
    let names: Vec<&str> = BUILTINS.iter().map(|it| it.name).collect();
    let shown: String = name.escape_debug().take(80).collect();
    let listed = names.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!(", … ({more} more: help)") } else { String::new() };
    let meant = nearest(name, names.iter().copied()).map_or(String::new(), |near| format!("did you mean {near}? "));
    Error::new(Code::UnknownCommand, format!("unknown command: {shown}"), format!("{meant}Available: {listed}{more}"))
        .with("input", shown)
}

/// The effects of a line, apart from its output.
#[derive(Debug, Default)]
pub struct Effects {
    /// Files that the line changed.
    pub changes: Vec<FileChange>,
    /// Protected files that programs wrote, and that were taken back.
    pub taken: Vec<Taken>,
    /// Facts that are recorded with the call's result.
    pub facts: Vec<Fact>,
    /// Images that the line read for the model.
    pub attachments: Vec<Attachment>,
    /// In a dry run, the preview of each command that would change something.
    pub previews: Vec<Preview>,
    /// The commands that the preview covers, by number. The hash is that of the file after the change, if it is known.
    pub previewed: HashMap<usize, Option<blake3::Hash>>,
    /// What a command touches, by number, where the dry run tells that: which files a patch changes, and where a file lands.
    pub touches: HashMap<usize, Vec<Touch>>,
    /// Files that this line has already changed.
    pub touched: HashSet<String>,
    /// Remarks about the changes, for the model.
    pub notes: String,
}

impl Effects {
    /// Whether a previewed change may affect a later command of the line.
    fn changes_things(&self) -> bool {
        const NOTES: [&str; 5] = ["plan", "remember", "forget", "stop", "ask"];
        self.previews.iter().any(|preview| !NOTES.contains(&preview.would.as_str()))
    }

    /// Whether the line would change something, or may do so.
    fn would_do_anything(&self) -> bool {
        self.previews.iter().any(|preview| preview.would != CANNOT)
    }
}

/// Marks a command in the preview that would fail on the current files.
pub(crate) const CANNOT: &str = "cannot yet";

/// Effects that the threads of several commands append to.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<Mutex<Effects>>);

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, Effects> {
        self.0.lock()
    }

    /// Takes the effects out; called when every command has ended.
    pub fn take(&self) -> Effects {
        std::mem::take(&mut *self.lock())
    }
}

/// The default time limit of a line.
pub const TIMEOUT: Duration = Duration::from_secs(120);
