//! What a Session leans on, and how it is run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::context::library::Library;
use crate::context::skills::Skill;
use crate::files::snapshot::Shadow;
use crate::files::workspace::Workspace;
use crate::process::jobs::Jobs;
use crate::protocol::event::{SessionId, Toolset};
use crate::provider::choose::Providers;
use crate::storage::blobs::Blobs;
use crate::storage::store::Place;
use crate::tools::{Cancel, Context, Known, Registry};

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
    /// Files as its model last saw them.
    pub(crate) known: Arc<Known>,
    /// What runs in its background; a workspace without a Session has none.
    pub(crate) jobs: Option<Arc<Jobs>>,
    pub(crate) library: Arc<Library>,
}

impl Surface {
    pub(crate) fn skills(&self) -> Vec<Skill> {
        self.library.skills()
    }

    /// What a call may lean on, before it has a progress, an output and somebody to ask.
    pub(crate) fn context(&self, call_id: &str, toolset: Toolset, sees_images: bool) -> Context {
        Context {
            call_id: call_id.to_owned(),
            toolset,
            workspace: Arc::clone(&self.workspace),
            blobs: self.blobs.clone(),
            overflow: None,
            progress: None,
            cancel: Cancel::default(),
            shadow: Arc::clone(&self.shadow),
            known: Arc::clone(&self.known),
            jobs: self.jobs.clone(),
            library: Arc::clone(&self.library),
            asker: None,
            sees_images,
            environment: Arc::clone(&self.environment),
        }
    }

    /// Where a Session of this workspace lies.
    pub(crate) fn place(&self, id: &SessionId) -> Place {
        Place::new(&self.logs, id.clone())
    }
}
