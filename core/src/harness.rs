//! One workspace's Sessions: start, resume, list.

use std::path::Path;
use std::sync::Arc;

use crate::config::Surroundings;
use crate::context::library::Library;
use crate::context::prompt;
use crate::context::skills::Skill;
use crate::conversation::history::History;
use crate::files::images;
use crate::files::workspace::Workspace;
use crate::process;
use crate::process::jobs::Jobs;
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{Attachment, Mode, SessionId, SessionStarted, SettingsChanged, Toolset};
use crate::protocol::remedy::{ModelNeed, Remedy};
use crate::provider::choose::Providers;
use crate::session::{Handle, Options, Pen, Session, Surface};
use crate::storage::blobs::Blobs;
use crate::storage::log::{self, Log};
use crate::storage::store::{Place, Store, Summary};
use crate::tools::{Context, Registry};

/// Everything that the Sessions of one workspace share.
#[derive(Clone)]
pub struct Harness {
    store: Store,
    surface: Surface,
    beginning: Beginning,
}

/// What new Sessions begin with, and what resumed ones are told anew.
#[derive(Debug, Clone, Default)]
pub struct Beginning {
    /// What may run without asking in a new Session.
    pub mode: Mode,
    /// Which tools models are offered in a new Session.
    pub toolset: Toolset,
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
        let store = Store::new(&around.home);
        let logs = store.folder_of(workspace.root());
        let library = Library {
            logs: logs.clone(),
            workspace: workspace.root().to_owned(),
            user_folder: around.user_folder.clone(),
            session: None,
        };
        // A variable that holds a key may be called anything.
        let keys: Vec<&str> = providers.key_variables().collect();
        let passed_on = around.environment.iter().filter(|(name, _)| !keys.contains(&name.as_str())).cloned();
        let environment = process::environment(passed_on).into();
        let surface = Surface {
            workspace: Arc::new(workspace),
            providers,
            registry: Registry::all(),
            blobs: store.blobs(),
            environment,
            user_folder: around.user_folder.clone(),
            logs,
            options,
            shadow: Arc::default(),
            known: Arc::default(),
            jobs: None,
            library: Arc::new(library),
        };
        Ok(Harness { store, surface, beginning })
    }

    /// Starts a new Session.
    ///
    /// # Errors
    /// `LOG_WRITE_FAILED` when the state folder cannot be written.
    pub fn start(&self) -> Result<Handle> {
        let id = SessionId::now();
        let mut log = Log::create(&self.surface.place(&id).log(), id.clone())?;
        let providers = &self.surface.providers;
        let started = SessionStarted {
            workspace: self.workspace().display().to_string(),
            model: providers.model.clone(),
            provider: providers.provider.clone(),
            toolset: self.beginning.toolset,
            mode: self.beginning.mode,
            effort: self.beginning.effort.clone(),
            context: prompt::collect_context(&self.surface.workspace, self.surface.user_folder.as_deref()),
            pixir_version: env!("CARGO_PKG_VERSION").into(),
        };
        let first = log.append(None, started.into())?;
        log.establish()?;
        self.spawn(id, Pen::Writes(log), History::fold([first]))
    }

    /// Continues a Session. One that is damaged opens for reading only, and says so to whoever watches.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`, `SESSION_LOCKED` when another process writes it, `LOG_READ_FAILED`, `LOG_WRITE_FAILED`.
    pub fn resume(&self, id: &SessionId) -> Result<Handle> {
        let path = self.surface.place(id).log();
        let (pen, contents) = match Log::open(&path, id.clone()) {
            Ok((log, contents)) => (Pen::Writes(log), contents),
            Err(e) if e.code == Code::CorruptLogLine => (Pen::ReadsOnly(e), log::read(&path)?),
            Err(e) => return Err(e),
        };
        self.open(id, pen, contents.entries)
    }

    /// Opens a Session to do something with it that asks no model: nothing of who answers in it is changed.
    ///
    /// # Errors
    /// As [`Harness::resume`]; `CORRUPT_LOG_LINE` when it is damaged.
    pub fn tend(&self, id: &SessionId) -> Result<Handle> {
        let (mut log, contents) = Log::open(&self.surface.place(id).log(), id.clone())?;
        let mut history = History::fold(contents.entries);
        close_what_is_open(&mut log, &mut history)?;
        log.sync()?;
        self.spawn(id.clone(), Pen::Writes(log), history)
    }

    /// Opens a Session to look at it, even while another process writes it.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`, `LOG_READ_FAILED`.
    pub fn look(&self, id: &SessionId) -> Result<Handle> {
        let contents = log::read(&self.surface.place(id).log())?;
        let why =
            Error::new(Code::SessionReadOnly, "this session is open read-only", Remedy::Resume { id: id.to_string() });
        self.open(id, Pen::ReadsOnly(why), contents.entries)
    }

    fn open(&self, id: &SessionId, mut pen: Pen, entries: Vec<Arc<crate::protocol::event::Entry>>) -> Result<Handle> {
        let mut history = History::fold(entries);
        let mut note = None;
        if history.started.pixir_version != env!("CARGO_PKG_VERSION") {
            // Other instructions, other tools: what was thought behind those is not given back.
            history.forget_reasoning();
        }
        if let Pen::Writes(log) = &mut pen {
            close_what_is_open(log, &mut history)?;
            if let Some(change) = self.change_for(&history) {
                let before = format!("{}/{}", history.settings.provider, history.settings.model);
                let replaced = self.beginning.resumed.provider.is_none() && change.provider.is_some();
                if replaced && !self.surface.options.can_ask {
                    // What was said to one is not told to another unasked.
                    let again = "set that provider up again".into();
                    let fix = Remedy::any_of([again, Remedy::ChooseModel { need: ModelNeed::Any }]);
                    return Err(Error::new(
                        Code::ConfigInvalid,
                        format!("{before}, the model of this session, is not configured here"),
                        fix,
                    ));
                }
                history.append(log.append(None, change.into())?);
                if replaced {
                    let now = format!("{}/{}", history.settings.provider, history.settings.model);
                    note = Some(format!("{before} is no longer configured; {now} answers from now on"));
                }
            }
            log.sync()?;
        }
        self.spawn_with(id.clone(), pen, history, note)
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
        // Letting everything run is a decision for one sitting.
        if now.mode == Mode::Auto {
            change.mode = change.mode.or(Some(Mode::Ask));
        }
        change.mode = change.mode.filter(|mode| *mode != now.mode);
        change.toolset = change.toolset.filter(|toolset| *toolset != now.toolset);
        change.effort = change.effort.filter(|effort| Some(effort) != now.effort.as_ref());
        (change != SettingsChanged::default()).then_some(change)
    }

    fn spawn(&self, id: SessionId, pen: Pen, history: History) -> Result<Handle> {
        self.spawn_with(id, pen, history, None)
    }

    /// Runs a Session; `note` is what whoever watches it first should know.
    fn spawn_with(&self, id: SessionId, pen: Pen, history: History, note: Option<String>) -> Result<Handle> {
        let outputs = self.surface.place(&id).outputs();
        let (jobs, job_news) = Jobs::new(outputs.clone());
        // Outputs that were too long to show may be read again by the tools of the Session that made them.
        let workspace = Workspace::open(self.surface.workspace.root())?.with_overflow(outputs);
        let library = Library { session: Some(id.clone()), ..(*self.surface.library).clone() };
        let surface = Surface {
            workspace: Arc::new(workspace),
            shadow: Arc::default(),
            known: Arc::default(),
            jobs: Some(jobs),
            library: Arc::new(library),
            ..self.surface.clone()
        };
        Ok(Session::spawn(id, pen, history, surface, job_news, note))
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

    /// Keeps an image, to be sent with a [`Message`](crate::protocol::input::Message): a file, relative to the workspace or
    /// absolute. What is not sent after all is cleaned up like everything that no Log names.
    ///
    /// # Errors
    /// `READ_FAILED` when it cannot be read or kept or is larger than 3.75 MB, `INVALID_ARGS` when it is no image.
    pub fn attach(&self, path: &str) -> Result<Attachment> {
        images::keep_file(self.blobs(), &self.workspace().join(path), path)
    }

    /// Keeps an image that is in no file; `name` is what it is called.
    ///
    /// # Errors
    /// As [`Harness::attach`].
    pub fn attach_bytes(&self, bytes: &[u8], name: &str) -> Result<Attachment> {
        images::keep(self.blobs(), bytes, bytes.len() as u64, name)
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
    pub fn tool_context(&self, call_id: &str) -> Context {
        self.surface.context(call_id, Toolset::Both, true)
    }

    /// Sessions with at least one prompt, the latest first.
    pub fn sessions(&self) -> Vec<Summary> {
        self.store.list(&self.surface.logs)
    }

    /// The Session that something was last recorded in.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND` when there is none yet.
    pub fn latest(&self) -> Result<SessionId> {
        self.find("last").map(|place| place.id)
    }

    /// The Session that a person means: an id, its unique beginning, a name, or `last`.
    ///
    /// # Errors
    /// As [`Store::find`].
    pub fn find(&self, text: &str) -> Result<Place> {
        self.store.find(text, &self.surface.logs)
    }

    /// What a Presenter kept of a Session in which nothing was said before it crashed; that Session goes.
    pub fn abandoned(&self) -> Option<String> {
        self.store.abandoned(&self.surface.logs)
    }

    /// Where a Session of this workspace lies.
    pub fn place(&self, id: &SessionId) -> Place {
        self.surface.place(id)
    }

    /// Everything that is kept under the home.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

/// A crash may have left calls without a result and a Turn without an end.
fn close_what_is_open(log: &mut Log, history: &mut History) -> Result<()> {
    for fact in history.repairs() {
        history.append(log.append(Some(history.turns).filter(|n| *n > 0), fact)?);
    }
    Ok(())
}
