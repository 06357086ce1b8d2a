//! The Session that a command opens.

use pixir_core::event::SessionId;
use pixir_core::input::SettingsChange;
use pixir_core::{Handle, Harness, Input, Result, Watch};

use crate::cli::Cli;

/// Which Session to open.
#[derive(Debug, Clone)]
pub(crate) enum Open {
    New,
    Latest,
    Resume(SessionId),
    /// An agent: the Session that the user began, and the names from its agent down.
    Agent(SessionId, Vec<String>),
    /// For reading only.
    LookLatest,
    Look(SessionId),
}

impl Open {
    pub(crate) fn read_only(self) -> Open {
        match self {
            Open::Latest => Open::LookLatest,
            Open::Resume(id) => Open::Look(id),
            Open::New | Open::Agent(..) | Open::LookLatest | Open::Look(_) => self,
        }
    }

    pub(crate) fn is_resumed(&self) -> bool {
        match self {
            Open::New => false,
            Open::Latest | Open::Resume(_) | Open::Agent(..) | Open::LookLatest | Open::Look(_) => true,
        }
    }

    /// Opens the Session without a screen. Returns the root and the Session to work in, which differ for an agent.
    pub(crate) async fn open_alone(&self, cli: &Cli, harness: &Harness) -> Result<(Handle, Handle)> {
        let root = self.open(harness)?;
        let handle = match self {
            Open::Agent(_, path) => agent(cli, &root, path).await?,
            Open::New | Open::Latest | Open::Resume(_) | Open::LookLatest | Open::Look(_) => root.clone(),
        };
        Ok((root, handle))
    }

    /// Opens the Session for a user, who can read it also while another process writes it.
    pub(crate) fn open_attended(&self, harness: &Harness) -> Result<Handle> {
        match self {
            Open::Latest => harness.resume_or_read(&harness.latest()?),
            Open::Resume(id) => harness.resume_or_read(id),
            Open::Agent(root, path) => enter(harness.resume(root)?, path),
            Open::New | Open::LookLatest | Open::Look(_) => self.open(harness),
        }
    }

    /// Opens the Session.
    pub(crate) fn open(&self, harness: &Harness) -> Result<Handle> {
        match self {
            Open::New => harness.start(),
            Open::Latest => harness.resume(&harness.latest()?),
            Open::Resume(id) | Open::Agent(id, _) => harness.resume(id),
            Open::LookLatest => harness.open_read_only(&harness.latest()?),
            Open::Look(id) => harness.open_read_only(id),
        }
    }
}

/// Opens an agent of an open Session, on a thread that may block. The Session stays open as long as the agent does.
fn enter(root: Handle, path: &[String]) -> Result<Handle> {
    let runtime = tokio::runtime::Handle::current();
    let agent = runtime.block_on(root.agent(path))?;
    let inner = agent.clone();
    runtime.spawn(async move {
        let watch = inner.watch().await;
        // The handle would keep the agent open.
        drop(inner);
        if let Some(mut watch) = watch {
            while watch.next().await.is_some() {}
        }
        root.close().await;
    });
    Ok(agent)
}

/// Opens an agent of an open Session, with the mode that the user has asked for.
async fn agent(cli: &Cli, root: &Handle, path: &[String]) -> Result<Handle> {
    let agent = root.agent(path).await?;
    let Some(Watch { now, past, .. }) = root.watch().await else { return Ok(agent) };
    let asks = cli.options.write || cli.options.mode.is_some();
    if asks && !now.read_only {
        // It still may no more than its role and the Sessions above.
        let mode = Some(past.settings.mode);
        agent.request(Input::Set(SettingsChange { mode, ..SettingsChange::default() })).await?;
    }
    Ok(agent)
}
