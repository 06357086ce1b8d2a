//! The run language: one line is a whole workflow of commands, over bytes, without a shell.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Code, Error, Result, nearest};
use crate::event::{Attachment, Fact, FileChange, Plan};
use crate::permissions::{Action, shell};
use crate::tools::Context;

mod call; // a line that can run
mod chain; // pipes between commands, and when each runs
pub mod commands; // what can be said
pub mod parse; // words and operators

pub use call::Call;
pub use chain::Ended;
pub use commands::{BUILTINS, Builtin, Stdin};
pub use parse::{Chain, Command, parse, quote};

/// The most names that an error lists.
const MAX_NAMES: usize = 40;

/// What a command turned out to be.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// One of ours, in this process.
    Builtin(&'static Builtin),
    /// A program, with its arguments as they are.
    Program { runs_unasked: bool },
    /// Neither, and so it fails.
    Unknown,
}

/// Finds out what a command is.
///
/// # Errors
/// `UNSUPPORTED_SYNTAX` for a glob that nobody would expand.
pub(crate) fn kind_of(command: &Command, ctx: &Context) -> Result<Kind> {
    let name = command.words[0].text.as_str();
    if let Some(builtin) = BUILTINS.iter().find(|it| it.name == name) {
        return Ok(Kind::Builtin(builtin));
    }
    if !is_on_path(name, ctx) {
        return Ok(Kind::Unknown);
    }
    if let Some(glob) = command.words.iter().find(|word| word.is_glob) {
        return Err(Error::new(
            Code::UnsupportedSyntax,
            format!("`{}` is not expanded: {name} is a program, and this is no shell", glob.text),
            format!("names written out, '{}' for the text itself, or bash -c '…'", glob.text),
        )
        .with("input", glob.text.clone()));
    }
    let line = judged(command);
    Ok(Kind::Program { runs_unasked: shell::prove_read_only(&line, ctx.workspace.root()).is_ok() })
}

/// A program's command line as permissions and rules see it.
fn judged(command: &Command) -> String {
    command.words.iter().map(|word| quote(&word.text)).collect::<Vec<_>>().join(" ")
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

/// What each command of a chain touches; one that only reads says so.
///
/// # Errors
/// As [`kind_of`].
pub(crate) fn actions(chain: &Chain, ctx: &Context) -> Result<Vec<Action>> {
    chain
        .pipelines
        .iter()
        .flat_map(|it| &it.commands)
        .map(|command| {
            Ok(match kind_of(command, ctx)? {
                Kind::Builtin(_) if commands::only_tells(&command.words[1..]) => Action::Read,
                Kind::Builtin(builtin) => (builtin.touches)(&command.words[1..], ctx),
                Kind::Program { .. } => Action::Command(judged(command)),
                Kind::Unknown => Action::Read,
            })
        })
        .collect()
}

/// A name that is neither a command nor a program.
pub(crate) fn unknown(name: &str) -> Error {
    let names: Vec<&str> = BUILTINS.iter().map(|it| it.name).collect();
    let shown: String = name.escape_debug().take(80).collect();
    let listed = names.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!(", … ({more} more: help)") } else { String::new() };
    let meant = nearest(name, names.iter().copied()).map_or(String::new(), |near| format!("did you mean {near}? "));
    Error::new(Code::UnknownCommand, format!("unknown command: {shown}"), format!("{meant}Available: {listed}{more}"))
        .with("input", shown)
}

/// What a chain did beside printing.
#[derive(Debug, Default)]
pub struct Effects {
    /// Files that it changed.
    pub changes: Vec<FileChange>,
    /// What is recorded with its result.
    pub facts: Vec<Fact>,
    /// Images that it looked at.
    pub attachments: Vec<Attachment>,
    /// What would be done, in a dry run.
    pub(crate) plans: Vec<Plan>,
    /// What was planned for each command that changes a file: the hash of its bytes after, where it was known.
    pub(crate) planned: HashMap<usize, Option<blake3::Hash>>,
    /// All that would be done is planned; what is not, is not done.
    pub(crate) is_certain: bool,
    /// Files that this chain has changed already.
    pub(crate) touched: HashSet<String>,
    /// What has to be said about its changes.
    pub notes: String,
}

/// Effects that several commands add to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Effects>>);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Effects> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of it, when nobody adds any more.
    pub(crate) fn take(&self) -> Effects {
        std::mem::take(&mut *self.lock())
    }
}

/// How long a chain may take, unless asked otherwise.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);
