//! The context of every command: its options, the environment, the output, and the Harness that they make.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pixir_core::call::ResultLimits;
use pixir_core::event::{Mode, Rule, SessionId, Toolset};
use pixir_core::input::SettingsChange;
use pixir_core::layers::Settings;
use pixir_core::provider::{ProviderSelection, Providers, demo};
use pixir_core::store::{Place, Store};
use pixir_core::{
    AgentOptions, Code, CompactionOptions, Config, Effort, Entry, Environment, Error, Harness, Limits, McpServers,
    Options, Remedy, Result, SessionDefaults, Tier, log, rules,
};

use crate::args::RunOptions;
use crate::next_actions::quoted;
use crate::output::Output;

mod diagnostics; // the log file of the program itself
mod environment; // the only place that reads the environment
mod runtime; // async work and signals
mod settings; // files, environment and flags

pub(crate) use runtime::{Signals, block_on, block_on_apart, spawn};

/// The context of a command besides its own arguments.
#[derive(Debug, Clone)]
pub(crate) struct Cli {
    pub(crate) options: RunOptions,
    pub(crate) environment: Environment,
    pub(crate) output: Arc<Output>,
}

/// Whether a user can answer approvals and questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attendance {
    Attended,
    Unattended,
}

impl Cli {
    pub(crate) fn new(options: RunOptions, output: Arc<Output>) -> Cli {
        Cli { options, environment: environment::read(), output }
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

    // ─── settings ───

    /// The folder with the user's own themes.
    pub(crate) fn themes_folder(&self) -> Option<PathBuf> {
        self.environment.user_folder.as_ref().map(|folder| folder.join("themes"))
    }

    /// The folder to work in.
    pub(crate) fn workspace(&self) -> Result<PathBuf> {
        match &self.options.workspace {
            Some(folder) => Ok(folder.clone()),
            None => std::env::current_dir().map_err(|e| {
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
            (false, Some(_) | None) => Mode::ReadOnly,
        }
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

    // ─── Providers ───

    /// The Provider and model that the command line selects.
    fn selection(&self) -> ProviderSelection {
        ProviderSelection {
            provider: self.options.provider.clone(),
            model: self.options.model.clone().or_else(|| self.override_of("model")),
            dialect: self.options.dialect.clone(),
            base_url: self.options.base_url.clone(),
        }
    }

    /// Every available Provider, and the selected one; this may look for local servers.
    pub(crate) async fn providers(&self) -> Result<Providers> {
        self.check_home()?;
        Providers::find(&self.selection(), &self.config()?, &self.environment).await
    }

    /// The Provider and model that would answer, without a wait for servers.
    pub(crate) async fn selected(&self) -> Result<Providers> {
        self.check_home()?;
        Providers::find_early(&self.selection(), &self.config()?, &self.environment).await
    }

    /// The Providers that have a key or a configuration, without looking for servers.
    pub(crate) fn configured_providers(&self) -> Result<Providers> {
        self.check_home()?;
        Providers::configured(&self.config()?, &self.environment)
    }

    /// Starts recording the answers of models if `--record` asks for it.
    pub(crate) fn record(&self, providers: &mut Providers) -> Result<()> {
        self.options.record.as_ref().map_or(Ok(()), |path| providers.record(path))
    }

    // ─── Sessions ───

    /// A Harness with the selected Provider.
    pub(crate) async fn harness(&self, workspace: &Path, attendance: Attendance) -> Result<Harness> {
        let mut providers = match attendance {
            Attendance::Attended => self.providers().await?,
            Attendance::Unattended => self.selected().await?,
        };
        self.record(&mut providers)?;
        self.assemble(workspace, attendance, &self.settings()?, providers)
    }

    /// A Harness for commands that ask no model: lists, single tools, files.
    pub(crate) fn offline_harness(&self) -> Result<Harness> {
        let providers = Providers::only("demo", demo::MODEL, Arc::new(demo::Unconnected));
        // A configuration that cannot be read must not keep the user from looking at sessions.
        let Config { sandbox, environment, mcp, mcp_limits, .. } = self.own_config().unwrap_or_default();
        let settings = Settings::only(Config { sandbox, environment, mcp, mcp_limits, ..Config::default() });
        self.assemble(&self.workspace()?, Attendance::Unattended, &settings, providers)
    }

    /// A Harness with the given Providers.
    pub(crate) fn assemble(
        &self,
        workspace: &Path,
        attendance: Attendance,
        settings: &Settings,
        providers: Providers,
    ) -> Result<Harness> {
        self.check_home()?;
        let config = &settings.config;
        let Cli { options, environment, .. } = self;
        let usual = ResultLimits::default();
        let session_options = Options {
            limits: Limits {
                max_rounds: config.limits.max_rounds,
                deadline: config.limits.deadline.map(Duration::from_secs),
                max_tokens: config.limits.max_tokens,
                max_cost_usd: config.limits.max_cost,
            },
            dry_run: options.dry_run,
            can_ask: attendance == Attendance::Attended && !options.no_input,
            trust_workspace: options.trust_workspace,
            sandbox: self.sandbox(config)?,
            keeps_toolset: self.toolset(config)?.is_some(),
            keeps_unused: false,
            compaction: CompactionOptions {
                author: config.compaction.summary,
                threshold: config.compaction.threshold.unwrap_or(CompactionOptions::default().threshold),
            },
            agents: AgentOptions::from(&config.agents),
            results: ResultLimits {
                output_bytes: config.limits.output_bytes.unwrap_or(usual.output_bytes),
                page_bytes: config.limits.page_bytes.unwrap_or(usual.page_bytes),
                run_bytes: config.limits.run_bytes.unwrap_or(usual.run_bytes),
                run_lines: config.limits.run_lines.unwrap_or(usual.run_lines),
            },
        };
        let defaults = SessionDefaults {
            mode: self.mode(settings, attendance)?,
            toolset: self.toolset(config)?.unwrap_or_default(),
            effort: self.effort()?.or_else(|| config.effort.clone()),
            role: options.agent.clone(),
            id: options.session_id.as_deref().map(own_id).transpose()?,
            instructions: options.append_system_prompt.clone(),
            allowed: self.allowed()?,
            resumed: self.resumed(settings, attendance, &providers)?,
        };
        let around = Environment {
            passed_on: config.environment.clone(),
            copy_ignored: config.agents.copy_ignored.clone(),
            ..environment.clone()
        };
        let servers =
            McpServers { own: config.mcp.clone(), limits: config.mcp_limits.clone(), ..McpServers::default() };
        let harness = Harness::new(workspace, &around, Arc::new(providers), session_options, defaults)?;
        Ok(harness.with_servers(servers, &around))
    }

    /// A Session of this workspace.
    pub(crate) fn session_here(&self, id: &str) -> Result<Place> {
        let harness = self.offline_harness()?;
        let place = harness.find(id)?;
        if place == harness.place(&place.id) {
            return Ok(place);
        }
        let folder = place.summary().map_or(String::new(), |it| it.workspace);
        let fix = if Path::new(&folder).is_dir() {
            Remedy::command(format!("pixir resume {} --workspace {}", place.id, quoted(&folder)))
        } else {
            Remedy::command(format!("pixir sessions move {}", place.id))
                .and_text("  # its folder is gone; this moves it here")
        };
        Err(Error::new(Code::SessionNotFound, format!("that session belongs to another workspace: {folder}"), fix)
            .with("workspace", folder))
    }

    /// A Session of any workspace, with a Harness for its own workspace.
    pub(crate) fn locate(&self, id: &str) -> Result<(Harness, Place)> {
        let harness = self.offline_harness()?;
        let place = harness.find(id)?;
        if place == harness.place(&place.id) {
            return Ok((harness, place));
        }
        let workspace = place.summary().map(|it| PathBuf::from(it.workspace));
        let there = Cli { options: RunOptions { workspace, ..self.options.clone() }, ..self.clone() };
        Ok((there.offline_harness()?, place))
    }

    /// The readable entries of a Session's Log. Damage is reported beside the result.
    pub(crate) fn entries(&self, place: &Place) -> Result<Vec<Arc<Entry>>> {
        let contents = log::read(&place.log())?;
        self.note_damage(place, &contents);
        Ok(contents.entries)
    }

    /// Checks the Log of a Session without keeping its entries, and notes damage as [`Cli::entries`] does.
    pub(crate) fn report_damage(&self, place: &Place) -> Result<()> {
        self.note_damage(place, &log::scan(&place.log(), &mut drop)?);
        Ok(())
    }

    fn note_damage(&self, place: &Place, contents: &log::Contents) {
        if let Some(damage) = contents.damage.first() {
            self.output.aside(&format!(
                "note: line {} of this session's log is damaged ({}); pixir sessions repair {} --dry-run",
                damage.line, damage.reason, place.id
            ));
        }
    }

    // ─── settings of a Session ───

    /// Without a setting: ask where a user can answer, else only read. A project can make it stricter.
    fn mode(&self, settings: &Settings, attendance: Attendance) -> Result<Mode> {
        let own = match (self.options.write, self.options.mode.as_deref(), settings.config.mode.as_deref(), attendance)
        {
            (true, ..) => return Ok(Mode::Auto),
            (false, Some(name), ..) => return Mode::parse(name),
            (false, None, Some(name), _) => Mode::parse(name)?,
            (false, None, None, Attendance::Attended) => Mode::Ask,
            (false, None, None, Attendance::Unattended) => Mode::ReadOnly,
        };
        let most = settings.widest_mode.unwrap_or(own);
        Ok(Mode::ALL.into_iter().find(|mode| *mode == own || *mode == most).unwrap_or(own))
    }

    /// The mode of a Session whose user can answer.
    pub(crate) fn session_mode(&self) -> Result<Mode> {
        self.mode(&self.settings()?, Attendance::Attended)
    }

    /// The rules of this run.
    fn allowed(&self) -> Result<Vec<Rule>> {
        let scopes = self.options.allow.iter().map(|text| {
            let scope = rules::parse(text)?;
            if let Some(danger) = rules::danger_of(&scope) {
                self.output.aside(&format!("note: {text} runs without asking, and {danger}"));
            }
            Ok(scope)
        });
        let folders = self.options.add_dir.iter().map(|folder| {
            let real = folder.canonicalize().ok().filter(|it| it.is_dir());
            let text = real.as_ref().and_then(|it| it.to_str()).ok_or_else(|| {
                let message = format!("--add-dir {}: there is no such folder", folder.display());
                Error::new(Code::NotFound, message, "name an existing folder")
                    .with("input", folder.display().to_string())
            })?;
            rules::parse(&format!("read({text})"))
        });
        scopes.chain(folders).map(|scope| scope.map(Rule::Allow)).collect()
    }

    fn effort(&self) -> Result<Option<String>> {
        let effort = self.options.effort.as_deref().map(Effort::parse).transpose()?;
        Ok(effort.map(|it| it.name().to_owned()))
    }

    /// The strongest sandbox that the user wants.
    pub(crate) fn sandbox(&self, config: &Config) -> Result<Option<Tier>> {
        self.options.sandbox.as_deref().or(config.sandbox.as_deref()).map(Tier::parse).transpose()
    }

    fn toolset(&self, config: &Config) -> Result<Option<Toolset>> {
        self.options.toolset.as_deref().or(config.toolset.as_deref()).map(Toolset::parse).transpose()
    }

    /// A resumed Session keeps its settings, except for those on this command line. The mode of an unattended one is
    /// set anew: a Session that ended in `auto` must not change files in a script that did not request it.
    fn resumed(&self, settings: &Settings, attendance: Attendance, providers: &Providers) -> Result<SettingsChange> {
        let options = &self.options;
        let selects_model = options.model.is_some() || options.provider.is_some() || options.base_url.is_some();
        let sets_mode = options.write || options.mode.is_some() || attendance == Attendance::Unattended;
        Ok(SettingsChange {
            provider: selects_model.then(|| providers.provider.clone()),
            model: selects_model.then(|| providers.model.clone()),
            effort: self.effort()?,
            mode: if sets_mode { Some(self.mode(settings, attendance)?) } else { None },
            toolset: self.toolset(&Config::default())?,
            name: None,
            workspace: None,
            role: options.agent.clone(),
        })
    }
}

/// The id that the user gives to a new Session.
fn own_id(text: &str) -> Result<SessionId> {
    SessionId::parse(text).map_err(|e| {
        let fix = "the time and six hexadecimal digits, such as 20261121T203012-0a1b2c";
        Error::new(Code::Usage, e.message, fix).with("input", text)
    })
}
