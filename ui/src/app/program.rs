//! What the program around the interface does for it: checks, exports, its own log file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pixir_core::event::SessionId;
use pixir_core::{Harness, Result};
use tokio::sync::watch;

use crate::input::argument::ExportFormat;
use crate::render::report::Check;

/// Checks this machine.
pub type Examine = Arc<dyn Fn() -> BoxFuture<'static, Vec<Check>> + Send + Sync>;
/// Writes a Session to a new file, and returns its bytes.
pub type Export = Arc<dyn Fn(&Harness, &SessionId, ExportFormat, &Path) -> Result<u64> + Send + Sync>;

/// What the program around the interface does for it. Without a door, its command says that it is not available.
#[derive(Clone, Default)]
pub struct Program {
    /// The log file of the program itself.
    pub log: Option<PathBuf>,
    /// The user's home folder, for which `~` stands.
    pub home: Option<PathBuf>,
    /// Checks this machine.
    pub examine: Option<Examine>,
    /// Exports a Session.
    pub export: Option<Export>,
    /// What a model's server says that pixir waits for.
    pub waits: Option<watch::Receiver<String>>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("log", &self.log).field("home", &self.home).finish_non_exhaustive()
    }
}

impl Program {
    /// The path that the user has typed: `~` is the home folder, and a relative path begins in `folder`.
    pub(super) fn path(&self, typed: &str, folder: &Path) -> PathBuf {
        match (typed.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            (None, Some(home)) if typed == "~" => home.clone(),
            (Some(_) | None, _) => folder.join(typed),
        }
    }
}
