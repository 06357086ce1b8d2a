//! What a call may use: the workspace, the Session's services, and the way back to the user.

use crate::present::ResultLimits;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::leases::Holder;
use super::present::Overflow;
use super::protection::jobs::JobGuards;
use super::{Agents, Leases, Others, ReadSet};
use context::library::Library;
use files::snapshot::SessionSnapshot;
use files::workspace::{Inside, Workspace};
use permissions::repository::Leads;
use permissions::{Readable, Touch};
use process::Stopping;
use process::jobs::Jobs;
use protocol::error::{Code, Error, Result};
use protocol::event::{Printed, Question, Toolset};
use sandbox::{Policy, Sandbox};
use storage::blobs::Blobs;

/// What a call may use. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    /// The call's id.
    pub call_id: String,
    /// The tools that the model is offered.
    pub toolset: Toolset,
    /// The root that no path may leave.
    pub workspace: Arc<Workspace>,
    /// Where file versions are stored.
    pub blobs: Blobs,
    /// Where output that is too long for the model is saved; `None` saves none.
    pub overflow: Option<Overflow>,
    /// Sends the output of a running command to the live view; a full channel drops it.
    pub progress: Option<mpsc::Sender<Printed>>,
    /// Cancelled when the caller no longer waits for the call.
    pub cancel: CancellationToken,
    /// Whether a call that would change something returns its preview instead.
    pub dry_run: bool,
    /// The snapshot of the workspace, which finds what a command changed.
    pub snapshot: SessionSnapshot,
    /// Commands of dropped calls that are being stopped.
    pub stopping: Stopping,
    /// Files as the model last saw them.
    pub read_set: Arc<ReadSet>,
    /// The Session's background jobs; a call outside a Session has none.
    pub jobs: Option<Arc<Jobs>>,
    /// Looks at protected files before those jobs.
    pub job_guards: JobGuards,
    /// The child Sessions of the Session; `None` where it can have none.
    pub agents: Option<Arc<dyn Agents>>,
    /// Programs of others whose tools the call may use by name; `None` where there are none.
    pub others: Option<Arc<dyn Others>>,
    /// Its turn among the calls of an answer that start something.
    pub in_turn: InTurn,
    /// Whether the user has sent a message that joins the Turn of the call; `None` outside a Turn.
    pub steered: Option<watch::Receiver<bool>>,
    /// Who changes what in the workspace right now.
    pub leases: Leases,
    /// Who takes leases for the call.
    pub holder: Holder,
    /// The name of the role that the user gave to the Session.
    pub role: Option<String>,
    /// Past Sessions and skills.
    pub library: Arc<Library>,
    /// Opens forms for the user; `None` where no user can answer.
    pub forms: Option<mpsc::Sender<FormRequest>>,
    /// Whether the model accepts images.
    pub sees_images: bool,
    /// The environment of child processes.
    pub environment: Arc<[(String, String)]>,
    /// Confines the programs that the call starts.
    pub sandbox: Sandbox,
    /// What these programs may do; the gate sets it. Programs that are proven to only read may do less.
    pub policy: Policy,
    /// Folders outside the workspace that these programs see besides; the gate sets them.
    pub reads: Vec<PathBuf>,
    /// Folders outside the workspace that the call works on as on the workspace.
    pub folders: Folders,
    /// The Session's folder for temporary files, which its programs see as `/tmp`; `None` gives each program its own.
    pub scratch: Option<PathBuf>,
    /// The folder of what these programs write to caches; `None` keeps it as long as each program.
    pub cover: Option<PathBuf>,
    /// The folder of the Session's saved outputs, which its programs may read.
    pub outputs: Option<PathBuf>,
    /// How much of a result the model reads.
    pub limits: ResultLimits,
}

impl Context {
    /// The workspace, and the folders that are worked on as it is.
    pub fn roots(&self) -> Vec<Arc<Workspace>> {
        std::iter::once(&self.workspace).chain(&self.folders.roots).cloned().collect()
    }

    /// What reading this path touches.
    pub fn reading(&self, at: &Inside) -> Touch {
        let Some(path) = at.outside() else { return Touch::Read };
        let secret = self.sandbox.is_secret(path).then(|| path.to_owned());
        Touch::Outside { paths: vec![path.to_owned()], secret }
    }

    /// Whether what a walk has found may be read: below a folder outside the workspace may be secrets.
    pub fn may_read(&self, at: &Inside) -> bool {
        at.outside().is_none_or(|path| !self.sandbox.is_secret(path))
    }

    /// Where a command of the call may read without an approval.
    pub fn readable(&self) -> Readable<'_> {
        let home = self.environment.iter().find(|(name, _)| name == "HOME").map(|(_, value)| value.as_str());
        Readable {
            workspace: self.workspace.root(),
            alias: self.workspace.alias(),
            outputs: self.outputs.as_deref(),
            folders: &self.folders.paths,
            others: self.sandbox.sources(),
            home,
            is_confined: self.sandbox.confines(),
            trusts_leads: self.trusted_leads().is_some(),
        }
    }

    /// Where the workspace's repository leads, if it leads elsewhere and the user trusts that.
    pub fn trusted_leads(&self) -> Option<Leads> {
        let leads = Leads::of(self.workspace.root());
        (!leads.is_empty() && self.library.trusts_leads(&leads)).then_some(leads)
    }

    /// The child Sessions of the Session that the call belongs to.
    ///
    /// # Errors
    /// `COMMAND_FAILED` where there can be none.
    pub fn agents(&self) -> Result<Arc<dyn Agents>> {
        self.agents
            .clone()
            .ok_or_else(|| Error::new(Code::CommandFailed, "there are no agents here", "do the work yourself"))
    }

    /// Returns when the user has sent a message that joins the Turn of the call.
    pub async fn steered(&self) {
        if let Some(mut steered) = self.steered.clone()
            && steered.wait_for(|is_steered| *is_steered).await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }

    /// The background jobs of the Session that the call belongs to.
    ///
    /// # Errors
    /// `COMMAND_FAILED` outside a Session.
    pub fn jobs(&self) -> Result<Arc<Jobs>> {
        self.jobs.clone().ok_or_else(|| {
            Error::new(
                Code::CommandFailed,
                "there are no background jobs outside a session",
                "run it in the foreground",
            )
        })
    }
}

/// Folders outside the workspace that a call works on. They stay the same as long as the call runs.
#[derive(Clone, Default)]
pub struct Folders {
    pub roots: Vec<Arc<Workspace>>,
    /// The path of each.
    pub paths: Vec<PathBuf>,
}

impl Folders {
    /// Those that the workspace has now.
    pub fn of(workspace: &Workspace) -> Folders {
        let roots = workspace.folders();
        Folders { paths: roots.iter().map(|it| it.root().to_owned()).collect(), roots }
    }
}

/// The turn of a call among those of one answer that run at the same time: what they start, they start in their order.
#[derive(Debug, Clone, Default)]
pub struct InTurn(Arc<Mutex<Option<OwnedMutexGuard<()>>>>);

impl InTurn {
    pub fn new(turn: OwnedMutexGuard<()>) -> InTurn {
        InTurn(Arc::new(Mutex::new(Some(turn))))
    }

    /// The call has started what it starts; the next may.
    pub fn over(&self) {
        drop(self.0.lock().take());
    }
}

/// Questions of the model, and where the user's answers go.
#[derive(Debug)]
pub struct FormRequest {
    /// The questions of one form.
    pub questions: Vec<Question>,
    /// Receives the answers; `None` when the user dismisses the form.
    pub reply: oneshot::Sender<Option<Answers>>,
}

/// For each question of a form the chosen options, or the user's own words.
pub type Answers = Vec<Vec<String>>;
