//! One workspace's Sessions: start, resume, list.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use crate::blobs::{self, Blobs};
use crate::config::Surroundings;
use crate::error::{Code, Error, Result};
use crate::event::{Fact, Mode, SessionId, SessionStarted, SettingsChanged};
use crate::history::History;
use crate::log::{self, Log};
use crate::process;
use crate::prompt;
use crate::provider::choose::Providers;
use crate::session::{Handle, Options, Pen, Session, Surface};
use crate::skills::Skill;
use crate::tools::Registry;
use crate::workspace::Workspace;

/// How much of a Log a list reads, bytes.
const SUMMARY: u64 = 64 << 10;

/// Everything that the Sessions of one workspace share.
#[derive(Clone)]
pub struct Harness {
    surface: Surface,
    beginning: Beginning,
}

/// What new Sessions begin with, and what resumed ones are told anew.
#[derive(Debug, Clone, Default)]
pub struct Beginning {
    /// What may run without asking in a new Session.
    pub mode: Mode,
    /// How hard models should think in a new Session.
    pub effort: Option<String>,
    /// What the person wants changed in a resumed Session; the rest stays as it was recorded.
    pub resumed: SettingsChanged,
}

impl std::fmt::Debug for Harness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Harness")
            .field("workspace", &self.surface.workspace)
            .field("providers", &self.surface.providers)
            .finish_non_exhaustive()
    }
}

/// One line of a list of Sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Its id.
    pub id: String,
    /// Where it works.
    pub workspace: String,
    /// Its first prompt, one line.
    pub first_prompt: String,
    /// The model that it began with.
    pub model: String,
    /// When something was last recorded, RFC 3339.
    pub last_activity: String,
    /// The size of its Log, bytes.
    pub bytes: u64,
    /// The Session that it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
}

impl Harness {
    /// A workspace, with the Providers that were found for it.
    ///
    /// # Errors
    /// `NOT_FOUND` when the workspace cannot be opened.
    pub fn new(
        workspace: &Path,
        around: &Surroundings,
        providers: Arc<Providers>,
        options: Options,
        beginning: Beginning,
    ) -> Result<Harness> {
        let workspace = Workspace::open(workspace)?;
        let logs = around.home.join("sessions").join(slug(workspace.root()));
        let surface = Surface {
            workspace: Arc::new(workspace),
            providers,
            registry: Registry::typed(),
            blobs: Blobs::new(around.home.join("blobs")),
            environment: process::environment(around.environment.iter().cloned()).into(),
            user_folder: around.user_folder.clone(),
            logs,
            options,
        };
        Ok(Harness { surface, beginning })
    }

    /// Starts a new Session.
    ///
    /// # Errors
    /// `LOG_WRITE_FAILED` when the state folder cannot be written.
    pub fn start(&self) -> Result<Handle> {
        let id = SessionId::now();
        let mut log = Log::create(&self.surface.log_path(&id), id.clone())?;
        let providers = &self.surface.providers;
        let started = SessionStarted {
            workspace: self.workspace().display().to_string(),
            model: providers.model.clone(),
            provider: providers.provider.clone(),
            toolset: "typed".into(),
            mode: self.beginning.mode,
            effort: self.beginning.effort.clone(),
            context: prompt::collect_context(&self.surface.workspace, self.surface.user_folder.as_deref()),
            pixir_version: env!("CARGO_PKG_VERSION").into(),
        };
        let first = log.append(None, started.into())?;
        log.sync()?;
        Ok(Session::spawn(id.clone(), Pen::Writes(log), History::fold([first]), self.surface_of(&id)?))
    }

    /// Continues a Session. One that is damaged opens for reading only, and says so to whoever watches.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`, `SESSION_LOCKED` when another process writes it, `LOG_READ_FAILED`, `LOG_WRITE_FAILED`.
    pub fn resume(&self, id: &SessionId) -> Result<Handle> {
        let path = self.surface.log_path(id);
        let (pen, contents) = match Log::open(&path, id.clone()) {
            Ok((log, contents)) => (Pen::Writes(log), contents),
            Err(e) if e.code == Code::CorruptLogLine => (Pen::ReadsOnly(e), log::read(&path)?),
            Err(e) => return Err(e),
        };
        self.open(id, pen, contents.entries)
    }

    /// Opens a Session to look at it, even while another process writes it.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`, `LOG_READ_FAILED`.
    pub fn look(&self, id: &SessionId) -> Result<Handle> {
        let contents = log::read(&self.surface.log_path(id))?;
        let why =
            Error::new(Code::SessionReadOnly, "this session was opened for reading only", format!("pixir resume {id}"));
        self.open(id, Pen::ReadsOnly(why), contents.entries)
    }

    fn open(&self, id: &SessionId, mut pen: Pen, entries: Vec<Arc<crate::event::Entry>>) -> Result<Handle> {
        let mut history = History::fold(entries);
        if let Pen::Writes(log) = &mut pen {
            for fact in history.repairs() {
                history.append(log.append(Some(history.turns).filter(|n| *n > 0), fact)?);
            }
            if let Some(change) = self.change_for(&history) {
                history.append(log.append(None, change.into())?);
            }
            log.sync()?;
        }
        Ok(Session::spawn(id.clone(), pen, history, self.surface_of(id)?))
    }

    /// What a resumed Session has to be told: what the person wants now, and who answers when its Provider is not set up any more.
    fn change_for(&self, history: &History) -> Option<SettingsChanged> {
        let now = &history.settings;
        let providers = &self.surface.providers;
        let mut change = self.beginning.resumed.clone();
        if change.provider.is_none() && providers.connect(&now.provider).is_err() {
            change.provider = Some(providers.provider.clone());
            change.model = Some(providers.model.clone());
        }
        if change.provider.as_ref() == Some(&now.provider) && change.model.as_ref() == Some(&now.model) {
            (change.provider, change.model) = (None, None);
        }
        change.mode = change.mode.filter(|mode| *mode != now.mode);
        change.effort = change.effort.filter(|effort| Some(effort) != now.effort.as_ref());
        (change != SettingsChanged::default()).then_some(change)
    }

    fn surface_of(&self, id: &SessionId) -> Result<Surface> {
        // Outputs that were too long to show may be read again by the tools of the Session that made them.
        let workspace = Workspace::open(self.surface.workspace.root())?.with_overflow(self.surface.outputs(id));
        Ok(Surface { workspace: Arc::new(workspace), ..self.surface.clone() })
    }

    /// The canonical root of the workspace.
    pub fn workspace(&self) -> &Path {
        self.surface.workspace.root()
    }

    /// The Providers that Sessions can use.
    pub fn providers(&self) -> &Arc<Providers> {
        &self.surface.providers
    }

    /// The tools that Sessions offer.
    pub fn registry(&self) -> &Registry {
        &self.surface.registry
    }

    /// Where file versions are kept.
    pub fn blobs(&self) -> &Blobs {
        &self.surface.blobs
    }

    /// Skills of the workspace and the person.
    pub fn skills(&self) -> Vec<Skill> {
        self.surface.skills()
    }

    /// What a single tool call outside a Session may lean on.
    pub fn tool_context(&self, call_id: &str) -> crate::tools::Context {
        crate::tools::Context {
            call_id: call_id.to_owned(),
            workspace: Arc::clone(&self.surface.workspace),
            blobs: self.surface.blobs.clone(),
            overflow: None,
            progress: None,
            cancel: crate::tools::Cancel::default(),
            environment: Arc::clone(&self.surface.environment),
        }
    }

    /// Sessions with at least one prompt, the latest first.
    pub fn sessions(&self) -> Vec<Summary> {
        sessions_in(&self.surface.logs)
    }

    /// The Session that something was last recorded in.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND` when there is none yet.
    pub fn latest(&self) -> Result<SessionId> {
        match self.sessions().first() {
            Some(summary) => SessionId::parse(&summary.id),
            None => Err(Error::new(
                Code::SessionNotFound,
                "there is no session in this workspace yet",
                "pixir \"your first prompt\"",
            )),
        }
    }
}

/// Sessions of every workspace, the latest first.
pub fn all_sessions(home: &Path) -> Vec<Summary> {
    let folders = std::fs::read_dir(home.join("sessions")).into_iter().flatten().flatten();
    let mut all: Vec<Summary> = folders.flat_map(|folder| sessions_in(&folder.path())).collect();
    all.sort_by(|a, b| b.last_activity.cmp(&a.last_activity));
    all
}

fn sessions_in(folder: &Path) -> Vec<Summary> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<Summary> = files.filter_map(|file| summary(&file.path())).collect();
    all.sort_by(|a, b| b.last_activity.cmp(&a.last_activity).then_with(|| b.id.cmp(&a.id)));
    all
}

fn summary(path: &Path) -> Option<Summary> {
    let id = SessionId::parse(path.file_name()?.to_str()?.strip_suffix(".ndjson")?).ok()?;
    let metadata = std::fs::metadata(path).ok()?;
    let entries = log::read_start(path, SUMMARY).ok()?;
    let started = entries.iter().find_map(|e| if let Fact::SessionStarted(it) = &e.fact { Some(it) } else { None })?;
    let prompt =
        entries.iter().find_map(|e| if let Fact::UserMessage(it) = &e.fact { Some(it.text.as_str()) } else { None })?;
    let forked_from = entries
        .iter()
        .find_map(|e| if let Fact::SessionFork(it) = &e.fact { Some(it.parent_session_id.clone()) } else { None });
    let modified = jiff::Timestamp::try_from(metadata.modified().ok()?).ok()?;
    Some(Summary {
        id: id.to_string(),
        workspace: started.workspace.clone(),
        first_prompt: prompt.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect(),
        model: format!("{}/{}", started.provider, started.model),
        last_activity: jiff::Timestamp::from_millisecond(modified.as_millisecond()).ok()?.to_string(),
        bytes: metadata.len(),
        forked_from,
    })
}

/// A readable, unique folder name for a workspace: its last part and a hash of the whole path.
fn slug(root: &Path) -> PathBuf {
    let name: String = root.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_else(|| "root".into());
    let safe: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' })
        .take(40)
        .collect();
    let hash = blobs::name_of(root.as_os_str().as_encoded_bytes());
    PathBuf::from(format!("{safe}-{}", &hash[..8]))
}
