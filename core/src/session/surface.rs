//! What a Session leans on, and how it is run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::blobs::Blobs;
use crate::event::SessionId;
use crate::provider::choose::Providers;
use crate::scan::Shadow;
use crate::skills::{self, Skill};
use crate::store::Place;
use crate::tools::Registry;
use crate::workspace::Workspace;

/// Bounds of a Turn; each is optional.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests with tool calls in one Turn.
    pub max_rounds: Option<u32>,
    /// Wall-clock time of one Turn.
    pub deadline: Option<Duration>,
}

/// How a Session is run; not part of what is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Bounds of each Turn.
    pub limits: Limits,
    /// Mutating tools return their plan.
    pub dry_run: bool,
    /// Somebody watches who can answer an approval; without, a question is a denial.
    pub can_ask: bool,
}

/// What a Session leans on.
#[derive(Clone)]
pub(crate) struct Surface {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) providers: Arc<Providers>,
    pub(crate) registry: Registry,
    pub(crate) blobs: Blobs,
    pub(crate) environment: Arc<[(String, String)]>,
    pub(crate) user_folder: Option<PathBuf>,
    /// The folder of the workspace's Logs.
    pub(crate) logs: PathBuf,
    pub(crate) options: Options,
    /// The workspace as its commands last saw it; each Session has its own.
    pub(crate) shadow: Arc<Shadow>,
}

impl Surface {
    pub(crate) fn skills(&self) -> Vec<Skill> {
        skills::find(self.workspace.root(), self.user_folder.as_deref())
    }

    /// Where a Session of this workspace lies.
    pub(crate) fn place(&self, id: &SessionId) -> Place {
        Place::new(&self.logs, id.clone())
    }
}
