//! The run language: one line is a whole workflow of commands, over bytes, without a shell.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::call::Context;
use crate::permissions::{Action, prove, shell};
use crate::protocol::error::{Code, Error, Result, nearest};
use crate::protocol::event::{Attachment, Fact, FileChange, Plan};

mod call; // a line that can run
mod chain; // pipes between commands, and when each runs
pub mod commands; // what can be said
pub mod parse; // words and operators
pub mod tool; // the tool `run`

pub use call::Call;
pub use chain::{Ended, Take};
pub use commands::{BUILTINS, Builtin, Stdin};
pub use parse::{Chain, Command, parse};
pub use shell::{After, quote};

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

/// A chain of which each command is known: what it is and what it touches is found out once, before anybody is asked.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub(crate) pipelines: Vec<(After, Vec<Step>)>,
}

/// A command that is known.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) command: Command,
    pub(crate) kind: Kind,
    pub(crate) action: Action,
}

impl Bound {
    /// Finds out what each command is. What cannot work, however things turn out, is refused here.
    ///
    /// # Errors
    /// `UNSUPPORTED_SYNTAX` for a glob that nobody would expand, `USAGE` for stdin that is missing or not read.
    pub(crate) fn find(chain: Chain, has_stdin: bool, ctx: &Context) -> Result<Bound> {
        let mut pipelines = Vec::new();
        let mut may_be_made = false;
        for (n, pipeline) in chain.pipelines.into_iter().enumerate() {
            let mut steps = Vec::new();
            for (i, command) in pipeline.commands.into_iter().enumerate() {
                let is_fed = i > 0 || (n == 0 && has_stdin);
                let kind = match kind_of(&command, ctx)? {
                    // What is not there yet may be what the line makes.
                    Kind::Unknown if may_be_made && command.words[0].text.contains('/') => {
                        Kind::Program { runs_unasked: false }
                    }
                    kind => kind,
                };
                if let Kind::Builtin(builtin) = kind {
                    builtin.check_stdin(is_fed)?;
                }
                let action = match &kind {
                    Kind::Builtin(_) if commands::only_tells(&command.words[1..], is_fed) => Action::Read,
                    Kind::Builtin(builtin) => (builtin.touches)(&command.words[1..], ctx),
                    Kind::Program { .. } => {
                        Action::Program(command.words.iter().map(|word| word.text.clone()).collect())
                    }
                    Kind::Unknown => Action::Read,
                };
                may_be_made |= action != Action::Read;
                steps.push(Step { command, kind, action });
            }
            pipelines.push((pipeline.after, steps));
        }
        Ok(Bound { pipelines })
    }

    /// What each command touches; one that only reads says so.
    pub(crate) fn actions(&self) -> Vec<Action> {
        self.steps().map(|step| step.action.clone()).collect()
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.pipelines.iter().flat_map(|(_, steps)| steps)
    }
}

/// Finds out what a command is.
///
/// # Errors
/// `UNSUPPORTED_SYNTAX` for a glob that nobody would expand.
pub(crate) fn kind_of(command: &Command, ctx: &Context) -> Result<Kind> {
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

/// Whether a program with its arguments is proven to only read.
pub(crate) fn only_reads(command: &Command, ctx: &Context) -> bool {
    prove(&command.texts(), ctx.workspace.root()).is_ok()
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
    /// Files that this chain has changed already.
    pub(crate) touched: HashSet<String>,
    /// What has to be said about its changes.
    pub notes: String,
}

impl Effects {
    /// Something was planned that what comes after it may depend on.
    fn changes_things(&self) -> bool {
        const NOTES: [&str; 5] = ["plan", "remember", "forget", "stop", "ask"];
        self.plans.iter().any(|plan| !NOTES.contains(&plan.would.as_str()))
    }

    /// Something would be done, or may be.
    fn would_do_anything(&self) -> bool {
        self.plans.iter().any(|plan| plan.would != CANNOT)
    }
}

/// What is planned for a command that cannot do it as things are.
pub(crate) const CANNOT: &str = "cannot yet";

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
