//! The factory of a command: the Providers and the Harness that its options and settings make.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pixir_core::call::ResultLimits;
use pixir_core::event::{Mode, Rule, SessionId, Toolset};
use pixir_core::input::{FolderAccess, SettingsChange};
use pixir_core::layers::Settings;
use pixir_core::provider::{ProviderSelection, Providers, demo};
use pixir_core::{
    AgentOptions, Code, CompactionOptions, Config, Effort, Environment, Error, Harness, Limits, McpServers, Options,
    Result, SessionDefaults, Tier, rules,
};

use super::{Attendance, Cli};

impl Cli {
    // ─── Providers ───

    /// The Provider and model that the command line selects.
    fn selection(&self) -> ProviderSelection {
        ProviderSelection {
            provider: self.options.provider.clone(),
            model: self.options.model.clone().or_else(|| self.override_of("model")),
            dialect: self.options.dialect.clone(),
            base_url: self.options.base_url.clone(),
            waits: self.waits.clone(),
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
                below_price_step: config.compaction.below_price_step.unwrap_or(false),
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
            folders: self.worked_on(),
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

    // ─── settings of a Session ───

    /// Without a setting: ask where a user can answer, else only read. A project can make it stricter.
    ///
    /// A rule of the command line allows nothing in `read-only`, so where no user can answer it makes the mode `ask`: what
    /// the rule names runs, and what would ask is refused.
    fn mode(&self, settings: &Settings, attendance: Attendance) -> Result<Mode> {
        let options = &self.options;
        let own = match (options.write, options.mode.as_deref(), settings.config.mode.as_deref()) {
            (true, ..) => return Ok(Mode::Auto),
            (false, Some(name), _) => return Mode::parse(name),
            (false, None, Some(name)) => Mode::parse(name)?,
            (false, None, None) if attendance == Attendance::Attended => Mode::Ask,
            (false, None, None) => Mode::ReadOnly,
        };
        let rules_decide = attendance == Attendance::Unattended && self.is_allowed_by_rules();
        let own = if own == Mode::ReadOnly && rules_decide { Mode::Ask } else { own };
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
        let read = self.added().filter(|(_, access)| *access == FolderAccess::Read);
        let folders = read.map(|(folder, _)| {
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

    /// The folders of the command line, and what may be done in each.
    fn added(&self) -> impl Iterator<Item = (&Path, FolderAccess)> {
        self.options.add_dir.iter().map(|folder| match folder.to_str().map(FolderAccess::of) {
            Some((path, access)) => (Path::new(path), access),
            None => (folder.as_path(), FolderAccess::Read),
        })
    }

    /// The folders of the command line to work on, as absolute paths.
    fn worked_on(&self) -> Vec<PathBuf> {
        let written = self.added().filter(|(_, access)| *access == FolderAccess::Write);
        // A path that is empty stays so, and is refused.
        written.map(|(folder, _)| std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())).collect()
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
