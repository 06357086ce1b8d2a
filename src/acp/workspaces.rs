//! The Harness of each folder that the client works in, the Sessions there, and the keys that they need.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use pixir_core::credentials::Vault;
use pixir_core::event::SessionId;
use pixir_core::store::{Place, Summary};
use pixir_core::{Code, Error, Handle, Harness};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::servers;
use crate::args::RunOptions;
use crate::cli::{Attendance, Cli};
use crate::commands::auth;
use crate::json_rpc::Failure;

/// The way to log in that opens a terminal.
pub(super) const LOGIN: &str = "pixir-login";
/// The way to log in that only looks again.
pub(super) const CHECK: &str = "pixir-check";

/// The most folders without an open Session whose Harness is kept for the next one.
const MOST_UNUSED: usize = 16;

/// The Harness of a folder, once it is open. Who holds it uses the folder.
type Folder = Arc<OnceCell<Harness>>;

pub(super) struct Workspaces {
    cli: Cli,
    harnesses: Mutex<HashMap<PathBuf, Folder>>,
}

/// A Session that has just been opened.
pub(super) struct Opened {
    pub(super) harness: Harness,
    pub(super) handle: Handle,
    /// Held while the Session is open, so that the others of its folder use the same Harness.
    pub(super) folder: Folder,
}

impl Workspaces {
    pub(super) fn new(cli: &Cli) -> Workspaces {
        Workspaces { cli: cli.clone(), harnesses: Mutex::default() }
    }

    /// Whether the user wants changes repeated in the buffers of the editor.
    pub(super) fn mirrors_writes(&self) -> bool {
        self.cli.own_config().is_ok_and(|config| config.acp.mirror_writes)
    }

    /// The Harness of the folder that a request names.
    async fn harness(&self, params: &Value) -> Result<(Harness, Folder), Failure> {
        let cwd = folder(params, "cwd")?;
        for (at, other) in params["additionalDirectories"].as_array().into_iter().flatten().enumerate() {
            absolute(other, &format!("additionalDirectories[{at}]"))?;
        }
        let folder = self.folder(&cwd);
        let harness = folder.get_or_try_init(|| self.open(&cwd)).await?;
        Ok((harness.clone().with_client_servers(servers::of(params).0), folder))
    }

    /// The folder in the list of those that are open. An editor that runs for weeks opens any number of them, and each takes
    /// memory and a descriptor, so those that no Session uses leave the list when it is long.
    fn folder(&self, cwd: &Path) -> Folder {
        let mut all = self.harnesses.lock();
        let unused = |folder: &Folder| Arc::strong_count(folder) == 1;
        if !all.contains_key(cwd) && all.values().filter(|it| unused(it)).count() >= MOST_UNUSED {
            all.retain(|_, folder| !unused(folder));
        }
        Arc::clone(all.entry(cwd.to_owned()).or_default())
    }

    async fn open(&self, cwd: &Path) -> Result<Harness, Failure> {
        let harness = self.of(cwd).harness(cwd, Attendance::Attended).await?.keeping_unused();
        let providers = harness.providers();
        if providers.provider == "demo" && self.cli.options.provider.is_none() {
            // An editor's user would take the demo's text for an answer.
            return Err(providers.unconnected().into());
        }
        Ok(harness)
    }

    /// Starts a Session.
    pub(super) async fn start(&self, params: &Value) -> Result<Opened, Failure> {
        let (harness, folder) = self.harness(params).await?;
        let starting = harness.clone();
        let handle = blocking(move || starting.start()).await??;
        Ok(Opened { harness, handle, folder })
    }

    /// Opens a Session again. One that another process has open is opened to look at.
    pub(super) async fn resume(&self, id: &str, params: &Value) -> Result<Opened, Failure> {
        let id = SessionId::parse(id)?;
        let (harness, folder) = self.harness(params).await?;
        let (opening, cli) = (harness.clone(), self.cli.clone());
        let handle = blocking(move || {
            let place = opening.place(&id);
            if place.log().exists() {
                return Ok(opening.resume_or_read(&id)?);
            }
            let place = find(&cli, &id)?;
            let recorded = place.summary().map_or_else(String::new, |it| it.workspace);
            let message = format!("session {id} belongs to {recorded}; open it with that `cwd`");
            Err(Failure { data: Some(json!({ "cwd": recorded })), ..Failure::invalid_params(message) })
        })
        .await??;
        Ok(Opened { harness, handle, folder })
    }

    /// A page of Sessions, the latest first.
    pub(super) async fn list(&self, params: &Value, page: usize) -> Result<Value, Failure> {
        let cwd = if params["cwd"].is_null() { None } else { Some(folder(params, "cwd")?) };
        let store = self.cli.store()?;
        let all = blocking(move || match cwd {
            Some(cwd) => store.list(&store.folder_of(&cwd)),
            None => store.list_all(),
        })
        .await?;
        let from = match params["cursor"].as_str() {
            None => 0,
            // The last Session of the page before.
            Some(cursor) => {
                let at = all.iter().position(|it| it.id == cursor);
                at.ok_or_else(|| Failure::invalid_params("this `cursor` has expired; list from the start"))? + 1
            }
        };
        let rest = &all[from..];
        let shown = &rest[..rest.len().min(page)];
        let sessions: Vec<Value> = shown.iter().map(session).collect();
        let mut result = json!({ "sessions": sessions });
        if let Some(last) = shown.last().filter(|_| rest.len() > page) {
            result["nextCursor"] = json!(last.id);
        }
        Ok(result)
    }

    /// Moves a Session to the trash.
    pub(super) async fn delete(&self, params: &Value) -> Result<Value, Failure> {
        let id = SessionId::parse(params["sessionId"].as_str().unwrap_or_default())?;
        let cli = self.cli.clone();
        blocking(move || cli.store()?.delete(&find(&cli, &id)?).map_err(Failure::from)).await??;
        Ok(json!({}))
    }

    // ─── keys ───

    /// Looks again whether a model can be asked; the key itself comes from a terminal.
    pub(super) async fn authenticate(&self, params: &Value) -> Result<Value, Failure> {
        let method = params["methodId"].as_str().unwrap_or_default();
        if method != LOGIN && method != CHECK {
            let message = format!("there is no way to log in called `{}`", method.escape_debug());
            return Err(Failure::invalid_params(message));
        }
        let providers = self.cli.providers().await?;
        if providers.provider == "demo" && self.cli.options.provider.is_none() {
            return Err(providers.unconnected().into());
        }
        // Sessions that run, and their agents, ask with the key that is stored now.
        let open: Vec<Harness> = self.harnesses.lock().values().filter_map(|cell| cell.get().cloned()).collect();
        for harness in open {
            harness.replace_providers(self.of(harness.workspace()).providers().await?)?;
        }
        Ok(json!({}))
    }

    /// The command line as it is in this folder.
    fn of(&self, cwd: &Path) -> Cli {
        let options = RunOptions { workspace: Some(cwd.to_owned()), ..self.cli.options.clone() };
        Cli { options, ..self.cli.clone() }
    }

    /// Forgets the stored key of the Provider of new Sessions.
    pub(super) async fn logout(&self) -> Result<Value, Failure> {
        let providers = self.cli.providers().await?;
        let cli = self.cli.clone();
        let _alone = Vault::new(&cli.environment).lock_renewal().await?;
        blocking(move || auth::forget(&cli, &providers.provider)).await??;
        // Sessions that start now look for a key again.
        self.harnesses.lock().clear();
        Ok(json!({}))
    }
}

/// A Session of any workspace.
fn find(cli: &Cli, id: &SessionId) -> Result<Place, Failure> {
    let all = cli.store()?.places();
    let none = || {
        Failure::from(Error::new(Code::SessionNotFound, format!("there is no session {id}"), "session/list lists them"))
    };
    all.into_iter().find(|place| place.id == *id).ok_or_else(none)
}

fn session(it: &Summary) -> Value {
    let mut info = json!({ "sessionId": it.id, "cwd": it.workspace, "updatedAt": it.last_activity.to_string() });
    if let Some(title) = it.name.as_ref().or(it.first_prompt.as_ref()) {
        info["title"] = json!(title);
    }
    info
}

fn absolute(value: &Value, name: &str) -> Result<PathBuf, Failure> {
    let path = value.as_str().map(PathBuf::from).filter(|path| path.is_absolute());
    path.ok_or_else(|| Failure::invalid_params(format!("`{name}` must be an absolute path")))
}

/// An existing folder that a request names, as its canonical path.
fn folder(params: &Value, name: &str) -> Result<PathBuf, Failure> {
    let path = absolute(&params[name], name)?;
    let real = path.canonicalize().ok().filter(|path| path.is_dir());
    real.ok_or_else(|| Failure::invalid_params(format!("`{name}`: there is no folder {}", path.display())))
}

/// Reads and writes files on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Failure::internal())
}
