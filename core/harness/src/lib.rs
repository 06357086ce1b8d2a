//! The factory of one workspace's Sessions: start, resume, open, list.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agents::{Beginning, Position};
use call::leases::Holder;
use call::protection::finish_left;
use call::protection::jobs::JobGuards;
use call::{Context, Leases, Registry, Standing, Tool, Unattended};
use config::Environment;
use context::library::Library;
use context::roles::{self, Role};
use context::sketch::{self, Sketch};
use context::skills::{Skill, Validated, found};
use context::templates::Template;
use conversation::history::History;
use door::Handle;
use files::images;
use files::snapshot::SessionSnapshot;
use files::workspace::{Workspace, remove_left};
use parking_lot::Mutex;
use permissions::rules::written_folders;
use process::Stopping;
use protocol::error::{Code, Error, Result};
use protocol::event::{
    Attachment, ContextDocument, Entry, Mode, Rule, Scope, SessionId, SessionStarted, SettingsChanged, Toolset,
};
use protocol::input::{FolderAccess, RuleReach, SettingsChange};
use protocol::remedy::{ModelNeed, Remedy};
use protocol::trust::Contributions;
use provider::choose::Providers;
use provider::connect::NewProvider;
use provider::gate::Gates;
use provider::shared::SharedProviders;
use sandbox::{Places, Sandbox, is_secret_of_home};
use session::{LogAccess, Options, Services};
use storage::blobs::Blobs;
#[cfg(test)]
use storage::log::Disk;
use storage::log::{self, Contents, Log, LogWriter, RealDisk};
use storage::store::{Place, Store, Summary};

#[cfg(test)]
mod slow_disk; // Sessions whose disks do not answer
mod servers; // MCP servers
mod workflows; // what runs of workflows would be

pub use servers::{McpServers, usable_servers};

/// The factory of a workspace's Sessions, and everything that these share. Clones share it too.
#[derive(Clone)]
pub struct Harness {
    store: Store,
    services: Services,
    beginning: SessionDefaults,
}

/// Settings of new Sessions, and changes for resumed ones.
#[derive(Debug, Clone, Default)]
pub struct SessionDefaults {
    /// The mode of a new Session.
    pub mode: Mode,
    /// The toolset of a new Session.
    pub toolset: Toolset,
    /// The effort of a new Session.
    pub effort: Option<String>,
    /// The role of a new Session.
    pub role: Option<String>,
    /// The id of a new Session; without one, it is made from the time.
    pub id: Option<SessionId>,
    /// Instructions of the user for a new Session, behind those of context files.
    pub instructions: Option<String>,
    /// Rules of this run alone.
    pub allowed: Vec<Rule>,
    /// Folders outside the workspace that every Session here works on from now on, as on the workspace.
    pub folders: Vec<PathBuf>,
    /// Changes for a resumed Session; its other settings stay as they were recorded.
    pub resumed: SettingsChange,
}

impl std::fmt::Debug for Harness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Harness")
            .field("workspace", &self.services.workspace)
            .field("providers", &self.services.providers)
            .finish_non_exhaustive()
    }
}

/// Whether the work that a Session is resumed for asks a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    AModel,
    NoModel,
}

impl Harness {
    /// Opens a workspace, with the Providers that were found for it.
    ///
    /// # Errors
    /// `NOT_FOUND` when the workspace cannot be opened, `INVALID_ARGS` for a folder that cannot be worked on.
    pub fn new(
        workspace: &Path,
        around: &Environment,
        providers: Arc<Providers>,
        options: Options,
        mut beginning: SessionDefaults,
    ) -> Result<Harness> {
        let workspace = Workspace::open(workspace)?;
        let store = Store::new(&around.home);
        // A killed pixir may have left processes that still change files, and files that it was writing.
        let left = store.running().left();
        process::sweep(&left);
        remove_left(&left);
        let own = [Some(around.home.as_path()), around.user_folder.as_deref()];
        let home = around.environment.iter().find(|(name, _)| name == "HOME").map(|(_, value)| Path::new(value));
        let workspace = workspace
            .noting(store.running())
            .guarding(own.into_iter().flatten())
            .hiding_secrets_of(home, is_secret_of_home);
        let workspace = Arc::new(workspace);
        let left_behind = finish_left(&left, &workspace, &store.blobs());
        let logs = store.folder_of(workspace.root());
        let library = Library {
            logs: logs.clone(),
            workspace: Some(Arc::clone(&workspace)),
            trust: Some(store.trust()),
            is_trusted: options.trust_workspace,
            own_servers: BTreeMap::new(),
            skill_folders: around.skill_folders(),
            user_folder: around.user_folder.clone(),
            session: None,
        };
        // A variable that holds a key may be called anything.
        let keys: Vec<&str> = providers.key_variables().collect();
        let passed_on = around.environment.iter().filter(|(name, _)| !keys.contains(&name.as_str())).cloned();
        let environment = process::environment(passed_on, &around.passed_on);
        let places = Places {
            workspace: workspace.root().to_owned(),
            aliases: workspace.alias().map(Path::to_owned).into_iter().collect(),
            home: around.home.clone(),
            user_folder: around.user_folder.clone(),
            environment: environment.clone(),
            withheld: withheld(&around.environment, &environment),
        };
        let sandbox = Sandbox::new(options.sandbox, places);
        let environment = environment.into();
        let mut services = Services {
            workspace: Arc::clone(&workspace),
            project: None,
            providers: SharedProviders::new(providers),
            registry: builtin_tools([]),
            servers: None,
            blobs: store.blobs(),
            environment,
            sandbox,
            scratch: None,
            cover: None,
            outputs: None,
            user_folder: around.user_folder.clone(),
            started_in: around.started_in.clone(),
            copy_ignored: around.copy_ignored.as_slice().into(),
            logs,
            disk: Arc::new(RealDisk),
            options,
            snapshot: SessionSnapshot::default(),
            stopping: Stopping::noting(store.running()),
            read_set: Arc::default(),
            jobs: None,
            job_guards: JobGuards::default(),
            left_behind: Arc::new(Mutex::new(left_behind)),
            agents: None,
            above: None,
            agent_place: None,
            leases: Leases::default(),
            holder: Holder::named("the main session"),
            gates: Gates::default(),
            reports: false,
            standing: Standing::default(),
            budgets: Arc::default(),
            library: Arc::new(library),
            store: store.clone(),
            allowed: beginning.allowed.clone().into(),
        };
        for folder in &mut beginning.folders {
            *folder = session::folders::checked(&folder.display().to_string(), FolderAccess::Write, &services)?;
        }
        // They hold for this run also where no Session is.
        let folders = beginning.folders.iter().map(|it| Rule::Allow(Scope::Writes(it.display().to_string())));
        services.allowed = beginning.allowed.iter().cloned().chain(folders).collect();
        Ok(Harness { store, services, beginning })
    }

    /// The same harness, whose Sessions offer these tools too. One with the name of a built-in tool replaces it.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Harness {
        self.services.registry = builtin_tools(tools);
        self
    }

    /// The same harness, whose Sessions stay when they close although nothing was said in them: a client may hold their ids.
    #[must_use]
    pub fn keeping_unused(mut self) -> Harness {
        self.services.options.keeps_unused = true;
        self
    }

    /// Starts a new Session.
    ///
    /// # Errors
    /// `LOG_WRITE_FAILED` when the state folder cannot be written.
    pub fn start(&self) -> Result<Handle> {
        if let Some(name) = &self.beginning.role {
            Role::for_session(&self.roles(), name)?;
        }
        let id = match &self.beginning.id {
            Some(id) if self.services.place(id).log().exists() => {
                let fix = Remedy::any_of([Remedy::Resume { id: id.to_string() }, "use another id".into()]);
                return Err(Error::new(Code::InvalidArgs, format!("there is a session {id} already"), fix)
                    .with("input", id.to_string()));
            }
            Some(id) => id.clone(),
            None => SessionId::now(),
        };
        let mut log = Log::create_on(Arc::clone(&self.services.disk), &self.services.place(&id).log(), id.clone())?;
        let providers = self.services.providers.now();
        let (mut context, surroundings) = self.services.documents(self.beginning.mode, self.beginning.toolset);
        let own = self.beginning.instructions.clone();
        context.extend(own.map(|text| ContextDocument { source: "instructions of the user".into(), text }));
        let started = SessionStarted {
            workspace: self.workspace().display().to_string(),
            model: providers.model.clone(),
            provider: providers.provider.clone(),
            toolset: self.beginning.toolset,
            mode: self.beginning.mode,
            effort: self.beginning.effort.clone(),
            context,
            surroundings: Some(surroundings),
            role: self.beginning.role.clone(),
            parent: None,
            sandbox: Some(self.services.sandbox.tier().name().to_owned()),
            pixir_version: env!("CARGO_PKG_VERSION").into(),
        };
        let first = log.append(None, started.into())?;
        log.appear()?;
        self.spawn(id, LogAccess::Writes(LogWriter::new(log)), History::fold([first]), None)
    }

    /// Continues a Session. One that is damaged or cannot be written opens for reading only, and tells its watchers so.
    /// This reads the whole Log: async code calls it on a thread that may block, inside the runtime that the Session is
    /// to run on.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`, `SESSION_LOCKED` when another process writes it, `LOG_READ_FAILED`, `LOG_WRITE_FAILED`.
    pub fn resume(&self, id: &SessionId) -> Result<Handle> {
        let path = self.services.place(id).log();
        match self.open_log(id) {
            Ok((log, contents)) => self.go_on(id, log, contents.entries, Asks::AModel),
            Err(mut why) if matches!(why.code, Code::CorruptLogLine | Code::SessionReadOnly) => {
                if why.code == Code::SessionReadOnly {
                    why.remedy = Remedy::any_of([why.remedy, Remedy::OpenReadOnly { id: id.to_string() }]);
                }
                self.show(id, why, log::read(&path)?.entries)
            }
            Err(e) => Err(e),
        }
    }

    /// Continues a Session whose work asks no model, such as a run of commands: the Provider that it is set to need not be set
    /// up here, and stays. Blocks like [`Harness::resume`].
    ///
    /// # Errors
    /// As [`Harness::resume`]; `CORRUPT_LOG_LINE` when it is damaged, `SESSION_READ_ONLY` when it cannot be written.
    pub fn resume_without_model(&self, id: &SessionId) -> Result<Handle> {
        let (log, contents) = self.open_log(id)?;
        self.go_on(id, log, contents.entries, Asks::NoModel)
    }

    /// Continues a Session like [`Harness::resume`]. One that another process writes opens for reading only, and tells its
    /// watchers which process that is and how to go on. Blocks like [`Harness::resume`].
    ///
    /// # Errors
    /// As [`Harness::resume`], except `SESSION_LOCKED`.
    pub fn resume_or_read(&self, id: &SessionId) -> Result<Handle> {
        let locked = match self.resume(id) {
            Err(why) if why.code == Code::SessionLocked => why,
            resumed => return resumed,
        };
        let contents = log::read(&self.services.place(id).log())?;
        let fork = Remedy::Fork { id: id.to_string() };
        let why = Error {
            message: format!("{}, so it is read-only here, as it was when it opened", locked.message),
            remedy: Remedy::any_of([fork, "close it there and open it here again".into()]),
            ..locked
        };
        self.show(id, why, contents.entries)
    }

    /// Opens a Session for work that asks no model, such as an undo: the Provider that it is set to need not be set up here.
    /// Blocks like [`Harness::resume`].
    ///
    /// # Errors
    /// As [`Harness::resume`]; `CORRUPT_LOG_LINE` when it is damaged, `SESSION_READ_ONLY` when it cannot be written.
    pub fn open_for_maintenance(&self, id: &SessionId) -> Result<Handle> {
        let (mut log, contents) = self.open_log(id)?;
        let mut history = History::fold(contents.entries);
        agents::settle(&self.services, &self.services.workspace, &mut log, &mut history)?;
        agents::close_what_is_open(&mut log, &mut history)?;
        log.sync()?;
        self.spawn(id.clone(), LogAccess::Writes(LogWriter::new(log)), history, None)
    }

    /// Opens a Session to read it, also while another process writes it. Blocks like [`Harness::resume`].
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`, `LOG_READ_FAILED`.
    pub fn open_read_only(&self, id: &SessionId) -> Result<Handle> {
        let contents = log::read(&self.services.place(id).log())?;
        let why =
            Error::new(Code::SessionReadOnly, "this session is open read-only", Remedy::Resume { id: id.to_string() });
        self.show(id, why, contents.entries)
    }

    fn open_log(&self, id: &SessionId) -> Result<(Log, Contents)> {
        Log::open_on(Arc::clone(&self.services.disk), &self.services.place(id).log(), id.clone())
    }

    fn show(&self, id: &SessionId, why: Error, entries: Vec<Arc<Entry>>) -> Result<Handle> {
        self.spawn(id.clone(), LogAccess::ReadOnly(why), fold(entries), None)
    }

    fn go_on(&self, id: &SessionId, mut log: Log, entries: Vec<Arc<Entry>>, asks: Asks) -> Result<Handle> {
        if let Some(name) = &self.beginning.resumed.role {
            Role::for_session(&self.roles(), name)?;
        }
        let mut history = fold(entries);
        let mut note = None;
        agents::settle(&self.services, &self.services.workspace, &mut log, &mut history)?;
        agents::close_what_is_open(&mut log, &mut history)?;
        if let Some(change) = self.change_for(&history, asks) {
            let before = format!("{}/{}", history.settings.provider, history.settings.model);
            let replaced = self.beginning.resumed.provider.is_none() && change.provider.is_some();
            if replaced && !self.services.options.can_ask {
                // A conversation with one Provider is not sent to another unless the user says so.
                let again = "set that provider up again".into();
                let fix = Remedy::any_of([again, Remedy::ChooseModel { need: ModelNeed::Any }]);
                return Err(Error::new(
                    Code::ConfigInvalid,
                    format!("{before}, the model of this session, is not configured here"),
                    fix,
                ));
            }
            history.append(log.append(None, SettingsChanged::from(change).into())?);
            if replaced {
                let now = format!("{}/{}", history.settings.provider, history.settings.model);
                note = Some(format!("{before} is no longer configured; {now} answers from now on"));
            }
        }
        log.sync()?;
        self.spawn(id.clone(), LogAccess::Writes(LogWriter::new(log)), history, note)
    }

    /// Settings that change when a Session is resumed: the user's, and another Provider where its own is not set up any more.
    fn change_for(&self, history: &History, asks: Asks) -> Option<SettingsChange> {
        let now = &history.settings;
        let providers = self.services.providers.now();
        let mut change = self.beginning.resumed.clone();
        if asks == Asks::AModel && change.provider.is_none() && providers.connect(&now.provider).is_err() {
            change.provider = Some(providers.provider.clone());
            change.model = Some(providers.model.clone());
        }
        if change.provider.as_ref() == Some(&now.provider) && change.model.as_ref() == Some(&now.model) {
            (change.provider, change.model) = (None, None);
        }
        // `auto` is a decision for one sitting.
        if now.mode == Mode::Auto {
            change.mode = change.mode.or(Some(Mode::Ask));
        }
        change.mode = change.mode.filter(|mode| *mode != now.mode);
        // Another model may take tools; one that does not says so again.
        if change.model.is_some() && now.toolset == Toolset::None && !self.services.options.keeps_toolset {
            change.toolset = change.toolset.or(Some(Toolset::Typed));
        }
        change.toolset = change.toolset.filter(|toolset| *toolset != now.toolset);
        change.effort = change.effort.filter(|effort| Some(effort) != now.effort.as_ref());
        change.role = change.role.filter(|role| Some(role) != now.role.as_ref());
        (change != SettingsChange::default()).then_some(change)
    }

    /// Runs a Session; `note` is a notice for its first watcher.
    fn spawn(&self, id: SessionId, log: LogAccess, history: History, note: Option<String>) -> Result<Handle> {
        for folder in self.beginning.folders.iter().filter(|_| matches!(log, LogAccess::Writes(_))) {
            let rule = Rule::Allow(Scope::Writes(folder.display().to_string()));
            self.services.save_rule(rule, RuleReach::Session, None, &id)?;
        }
        let at = Position::root(&id, self.services.options.agents);
        agents::begin(&self.services, Beginning { id, log, history, note, at })
    }

    /// The folders beside the workspace that a Session works on now.
    pub fn folders(&self, id: &SessionId) -> Vec<PathBuf> {
        let saved = self.store.rules().load().for_gate(Some(id), self.workspace());
        let rules: Vec<Rule> = self.services.allowed.iter().cloned().chain(saved).collect();
        written_folders(&rules).into_iter().filter(|it| it.is_dir()).map(Path::to_owned).collect()
    }

    /// The canonical root of the workspace.
    pub fn workspace(&self) -> &Path {
        self.services.workspace.root()
    }

    /// The Providers that Sessions can use now.
    pub fn providers(&self) -> Arc<Providers> {
        self.services.providers.now()
    }

    /// Gives another Provider to all Sessions, also to those that run, and chooses it for new ones. A Session goes on with
    /// its own until an `Input::Set` names the new one.
    ///
    /// # Errors
    /// `CONFIG_INVALID` while the answers of models are recorded.
    pub fn connect(&self, new: NewProvider) -> Result<()> {
        self.services.providers.add(new)
    }

    /// Gives these Providers to all Sessions, also to those that run and to their agents: they ask with the keys that were
    /// found now from their next request on.
    ///
    /// # Errors
    /// `CONFIG_INVALID` while the answers of models are recorded.
    pub fn replace_providers(&self, providers: Providers) -> Result<()> {
        self.services.providers.replace(providers)
    }

    /// The tools that Sessions offer.
    pub fn registry(&self) -> &Registry {
        &self.services.registry
    }

    /// The tools that the Session with these Entries is offered, without those of MCP servers.
    pub fn registry_of(&self, entries: &[Arc<Entry>]) -> Registry {
        agents::registry_of(entries, &self.services)
    }

    /// Stores an image for a [`Message`](protocol::input::Message): a file, relative to the workspace or absolute. An
    /// image that is never sent is cleaned up like any blob that no Log names.
    ///
    /// # Errors
    /// `READ_FAILED` when it cannot be read or kept or is larger than 3.75 MB, `INVALID_ARGS` when it is no image.
    pub fn attach(&self, path: &str) -> Result<Attachment> {
        images::keep_file(self.blobs(), &self.workspace().join(path), path)
    }

    /// Stores an image that is in no file, under this name.
    ///
    /// # Errors
    /// As [`Harness::attach`].
    pub fn attach_bytes(&self, bytes: &[u8], name: &str) -> Result<Attachment> {
        images::keep(self.blobs(), bytes, bytes.len() as u64, name)
    }

    /// The store of file versions.
    pub fn blobs(&self) -> &Blobs {
        &self.services.blobs
    }

    /// The authority of calls outside a Session: this mode, and the rules that hold in the workspace.
    pub fn unattended(&self, mode: Mode) -> Unattended {
        let saved = self.store.rules().load().for_gate(None, self.workspace());
        Unattended { mode, rules: self.services.allowed.iter().cloned().chain(saved).collect() }
    }

    /// Skills of the workspace and the user.
    pub fn skills(&self) -> Vec<Skill> {
        self.services.skills()
    }

    /// Sketches an AGENTS.md from the files of the workspace, and writes nothing.
    pub fn sketch(&self) -> Sketch {
        sketch::sketch(&self.services.workspace)
    }

    /// Writes a sketch.
    ///
    /// # Errors
    /// `CONFIRMATION_NEEDED` if there is a file and `replaces` is not set; `WRITE_FAILED`.
    pub fn write_sketch(&self, sketch: &Sketch, replaces: bool) -> Result<()> {
        sketch::write(&self.services.workspace, sketch, replaces)
    }

    /// A skill's text, for its user to look at: whether it can be used does not matter.
    ///
    /// # Errors
    /// `READ_FAILED`, and those of the path layer.
    pub fn skill_text(&self, skill: &Skill) -> Result<String> {
        self.services.library.text_of(skill)
    }

    /// Checks the skills at a path: a file, a skill's folder, or a folder of skills.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none, `READ_FAILED` for a file that cannot be read.
    pub fn validate_skills(path: &Path) -> Result<Vec<Validated>> {
        found::validate(path)
    }

    /// Prompt templates of the workspace and the user.
    pub fn templates(&self) -> Vec<Template> {
        self.services.library.templates()
    }

    /// Roles of agents and of the Session: pixir's own, the user's and the workspace's.
    pub fn roles(&self) -> Vec<Role> {
        self.services.library.roles()
    }

    /// Checks the roles at a path: a file, or a folder of files.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none.
    pub fn validate_roles(path: &Path) -> Result<Vec<Role>> {
        let found = roles::found::at(path);
        if found.is_empty() {
            let message = format!("there is no role at {}", path.display());
            return Err(Error::new(Code::NotFound, message, "a file NAME.md, or a folder of them"));
        }
        Ok(found)
    }

    /// What the workspace brings along that is in force only with the user's trust.
    pub fn contributions(&self) -> Contributions {
        self.services.library.contributions()
    }

    /// The same workspace, with its Logs on another disk.
    #[cfg(test)]
    pub fn on_disk(mut self, disk: Arc<dyn Disk>) -> Harness {
        self.services.disk = disk;
        self
    }

    /// Returns when no process of a call outside a Session is left. A call that is dropped cannot wait for that itself.
    pub async fn processes_stopped(&self) {
        self.services.stopping.finished().await;
    }

    /// The context of a tool call outside a Session.
    pub fn tool_context(&self, call_id: &str) -> Context {
        self.services.context(call_id, Toolset::Both, true)
    }

    /// Sessions with at least one prompt, the latest first.
    pub fn sessions(&self) -> Vec<Summary> {
        self.store.list(&self.services.logs)
    }

    /// The same, with those that other Sessions started.
    pub fn sessions_and_agents(&self) -> Vec<Summary> {
        let mut all = self.store.list(&self.services.logs);
        all.extend(self.store.agents(&self.services.logs));
        all.sort_by(|a, b| b.last_activity.cmp(&a.last_activity).then_with(|| b.id.cmp(&a.id)));
        all
    }

    /// Files among the Logs of this workspace that are not files; see [`Store::special_files`].
    pub fn special_files(&self) -> Vec<PathBuf> {
        self.store.special_files(&self.services.logs)
    }

    /// The Session with the latest entry.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND` when there is none yet.
    pub fn latest(&self) -> Result<SessionId> {
        self.find("last").map(|place| place.id)
    }

    /// The Session that this text names: an id, its unique beginning, a name, or `last`.
    ///
    /// # Errors
    /// As [`Store::find`].
    pub fn find(&self, text: &str) -> Result<Place> {
        self.store.find(text, &self.services.logs)
    }

    /// The draft that a Presenter saved for a Session without messages before it crashed; that Session is removed.
    pub fn abandoned(&self) -> Option<String> {
        self.store.abandoned(&self.services.logs)
    }

    /// Where the files of a Session are.
    pub fn place(&self, id: &SessionId) -> Place {
        self.services.place(id)
    }

    /// The store of all Sessions.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

/// The built-in tools and `others`; of two with one name the later one counts.
pub fn builtin_tools(others: impl IntoIterator<Item = Arc<dyn Tool>>) -> Registry {
    let own = [run::tool::tool(), workflow::tool::tool()];
    Registry::new(tools::builtin().into_iter().chain(own).chain(others))
}

/// Folds a Log that another build may have written.
/// The names of the user's variables that commands do not get. A shell sets some of them anew.
fn withheld(all: &[(String, String)], passed_on: &[(String, String)]) -> Vec<String> {
    const OF_SHELLS: [&str; 6] = ["PWD", "OLDPWD", "SHLVL", "_", "PIXIR_HOME", "PS1"];
    let is_withheld = |name: &str| !OF_SHELLS.contains(&name) && !passed_on.iter().any(|(it, _)| it == name);
    all.iter().map(|(name, _)| name).filter(|name| is_withheld(name)).cloned().collect()
}

fn fold(entries: Vec<Arc<Entry>>) -> History {
    let mut history = History::fold(entries);
    if history.started.pixir_version != env!("CARGO_PKG_VERSION") {
        // That build had other instructions and other tools, and reasoning is only valid behind those.
        history.forget_reasoning();
    }
    history
}
