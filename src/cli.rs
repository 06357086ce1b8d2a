//! The context of every command: its options, the environment and the output. What is made of them has a file of its own.

use std::path::PathBuf;
use std::sync::Arc;

use pixir_core::event::{Mode, Toolset};
use pixir_core::provider::Waits;
use pixir_core::store::Store;
use pixir_core::{Code, Environment, Error, Remedy, Result};

use crate::args::RunOptions;
use crate::output::Output;

mod diagnostics; // the log file of the program itself
mod environment; // the only place that reads the environment
mod factory; // the Providers and the Harness
mod runtime; // async work and signals
mod settings; // files, environment and flags
mod stored; // Sessions at rest

pub(crate) use runtime::{Asked, Signals, asked_to_end, block_on, block_on_apart, spawn};

/// The context of a command besides its own arguments.
#[derive(Debug, Clone)]
pub(crate) struct Cli {
    pub(crate) options: RunOptions,
    pub(crate) environment: Environment,
    pub(crate) output: Arc<Output>,
    /// Where the words go of a server that still starts. Only with it, such a server is waited for.
    pub(crate) waits: Option<Waits>,
}

/// Whether a user can answer approvals and questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attendance {
    Attended,
    Unattended,
}

impl Cli {
    pub(crate) fn new(options: RunOptions, output: Arc<Output>) -> Cli {
        Cli { options, environment: environment::read(), output, waits: None }
    }

    /// Fails where no command can work: the clock shows a time that no Log can hold.
    pub(crate) fn check_clock(&self) -> Result<()> {
        let now = jiff::Timestamp::try_from(std::time::SystemTime::now());
        if now.is_ok_and(|now| now >= jiff::Timestamp::UNIX_EPOCH) {
            return Ok(());
        }
        let message = "the clock of this machine shows a time before 1970 or after 9999";
        Err(Error::new(Code::SessionStartFailed, message, "set the clock"))
    }

    /// Fails where there is no folder for the state, or it is something else, or cannot have its name.
    pub(crate) fn check_home(&self) -> Result<()> {
        if self.environment.home.as_os_str().is_empty() {
            let message = "there is no folder for sessions and keys: HOME, XDG_STATE_HOME and PIXIR_HOME are not set";
            return Err(Error::new(
                Code::ConfigInvalid,
                message,
                Remedy::command("export PIXIR_HOME=/path/to/a/folder/of/your/own"),
            ));
        }
        let home = &self.environment.home;
        let why = match std::fs::metadata(home) {
            Ok(it) if it.is_dir() => return Ok(()),
            Ok(_) => "it is not a folder".to_owned(),
            // It is created when something is written.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => e.to_string(),
        };
        let fix = "set PIXIR_HOME to a folder, or to a path where one can be created";
        let shown: String = home.display().to_string().chars().take(200).collect();
        Err(Error::new(Code::ConfigInvalid, format!("the state folder {shown} cannot be used: {why}"), fix))
    }

    /// The folder with the user's own themes.
    pub(crate) fn themes_folder(&self) -> Option<PathBuf> {
        self.environment.user_folder.as_ref().map(|folder| folder.join("themes"))
    }

    /// The folder to work in, by the name that the user's shell has for it: it may be a symlink's.
    pub(crate) fn workspace(&self) -> Result<PathBuf> {
        match &self.options.workspace {
            Some(folder) => Ok(folder.clone()),
            None => std::env::current_dir().map(as_the_shell_names_it).map_err(|e| {
                Error::new(
                    Code::NotFound,
                    format!("the current folder does not exist any more: {e}"),
                    Remedy::text("cd to an existing folder, or pass ").and_flag("--workspace DIR"),
                )
            }),
        }
    }

    /// The Sessions of all workspaces.
    pub(crate) fn store(&self) -> Result<Store> {
        self.check_home()?;
        Ok(Store::new(&self.environment.home))
    }

    /// The tools that are listed or described.
    pub(crate) fn listed_toolset(&self) -> Result<Toolset> {
        self.options.toolset.as_deref().map_or(Ok(Toolset::Both), Toolset::parse)
    }

    /// The permission mode of a command that runs a tool itself.
    pub(crate) fn command_mode(&self) -> Mode {
        match (self.options.write, self.options.mode.as_deref()) {
            (true, _) | (false, Some("auto")) => Mode::Auto,
            (false, Some("ask")) => Mode::Ask,
            (false, None) if self.is_allowed_by_rules() => Mode::Ask,
            (false, Some(_) | None) => Mode::ReadOnly,
        }
    }

    /// Whether rules of this command line say what may run, in place of a mode.
    pub(crate) fn is_allowed_by_rules(&self) -> bool {
        let it = &self.options;
        !it.allow.is_empty() && !it.write && it.mode.is_none()
    }

    /// The error of a call that no rule of this command line allows. The user did not choose a mode that asks, so it is not
    /// an answer that is missing.
    pub(crate) fn refused(&self, error: Error) -> Error {
        if error.code != Code::InputRequired || !self.is_allowed_by_rules() {
            return error;
        }
        let fix = Remedy::flag("--allow RULE").and_text(" that names it, or ").and_flag("--write");
        Error { code: Code::MutationBlocked, remedy: fix, ..error }
    }

    /// Starts the log of the program itself; see [`diagnostics`].
    pub(crate) fn start_diagnostics(&self) {
        diagnostics::start(&self.environment);
    }

    /// The log file of the program itself.
    pub(crate) fn log_file(&self) -> PathBuf {
        diagnostics::path(&self.environment)
    }

    /// From now on panics are appended to that log, and printed nowhere.
    pub(crate) fn note_panics(&self) {
        diagnostics::note_panics(&self.environment);
    }
}

/// The current folder as `PWD` has it, if that leads there.
fn as_the_shell_names_it(folder: PathBuf) -> PathBuf {
    let is_same = |named: &PathBuf| named.is_absolute() && named.canonicalize().is_ok_and(|real| real == folder);
    std::env::var_os("PWD").map(PathBuf::from).filter(is_same).unwrap_or(folder)
}
