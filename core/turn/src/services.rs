//! The services and options that the Harness gives to a Session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use std::time::Duration;

use super::children::Children;
use call::agents::{Above, ModelTerms, Usual};
use call::context::Folders;
use call::leases::Holder;
use call::protection::finish_left;
use call::protection::jobs::JobGuards;
use call::{AgentPlace, Agents, Context, InTurn, Leases, Others, ReadSet, Registry, ResultLimits, Standing};
use config::{AgentsConfig, SummaryAuthor};
use context::documents::{self, Sources};
use context::environment::Posture;
use context::library::Library;
use context::roles::Role;
use context::skills::Skill;
use files::snapshot::SessionSnapshot;
use files::workspace::Workspace;
use jiff::Timestamp;
use mcp::Servers;
use permissions::rules::written_folders;
use process::Stopping;
use process::jobs::Jobs;
use protocol::error::Result;
use protocol::event::{ContextDocument, Mode, Rule, Scope, SessionId, Surroundings, Toolset};
use protocol::input::RuleReach;
use protocol::rule::Reach;
use protocol::sandbox::Tier;
use protocol::tool_spec::ToolSpec;
use provider::budget::Budget;
use provider::gate::Gates;
use provider::shared::SharedProviders;
use sandbox::{Policy, Sandbox, is_secret_of_home};
use storage::blobs::Blobs;
use storage::log::Disk;
use storage::store::{Place, Store};
use tokio_util::sync::CancellationToken;

/// Limits of a Turn; each is optional.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// The most rounds, that is, requests whose answer calls tools.
    pub max_rounds: Option<u32>,
    /// The time limit, in wall-clock time.
    pub deadline: Option<Duration>,
    /// The most tokens of all requests, input and output. Checked between rounds, so the last request may exceed it.
    pub max_tokens: Option<u64>,
    /// The most US dollars for all requests, as far as their price is known. Checked between rounds.
    pub max_cost_usd: Option<f64>,
}

/// How a Session is run. The Log does not record it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Options {
    /// Limits of each Turn.
    pub limits: Limits,
    /// Mutating tools return their preview instead of running.
    pub dry_run: bool,
    /// A user can answer approvals; otherwise a call that needs one is denied.
    pub can_ask: bool,
    /// The workspace counts as trusted, whatever the user decided before.
    pub trust_workspace: bool,
    /// The strongest means by which programs are confined; `None` takes the strongest that works here.
    pub sandbox: Option<Tier>,
    /// The user has chosen the toolset, so pixir does not change it for a small window.
    pub keeps_toolset: bool,
    /// A Session in which nothing was said stays when it closes: a client may hold its id.
    pub keeps_unused: bool,
    /// How conversations are compacted.
    pub compaction: CompactionOptions,
    /// How much of its results the model reads.
    pub results: ResultLimits,
    /// Children of the Session.
    pub agents: AgentOptions,
}

/// How many children a Session may start, and what each may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentOptions {
    /// The most agents of a tree that run at the same time; others wait.
    pub running: usize,
    /// The most agents that one Turn of the root starts, at any depth.
    pub per_turn: u32,
    /// How far below the root agents may be; 0 allows none, at most 3.
    pub depth: u32,
    /// The most rounds of a Turn of a child.
    pub rounds: u32,
    /// The most seconds of a Turn of a child, without the time in which it waits for the user.
    pub seconds: u64,
    /// The most tokens of a Turn of a child.
    pub tokens: u64,
    /// The most tokens of all agents that one Turn of the root starts.
    pub tree_tokens: u64,
    /// The ends of agents that no call waited for start a Turn of an idle Session.
    pub wake: bool,
}

impl Default for AgentOptions {
    fn default() -> AgentOptions {
        AgentOptions {
            running: 8,
            per_turn: 64,
            depth: 1,
            rounds: 50,
            seconds: 900,
            tokens: 400_000,
            tree_tokens: 4_000_000,
            wake: true,
        }
    }
}

impl From<&AgentsConfig> for AgentOptions {
    /// These settings, with the usual numbers for the rest.
    fn from(it: &AgentsConfig) -> AgentOptions {
        let usual = AgentOptions::default();
        AgentOptions {
            running: it.running.unwrap_or(usual.running),
            per_turn: it.per_turn.unwrap_or(usual.per_turn),
            depth: it.depth.unwrap_or(usual.depth),
            rounds: it.rounds.unwrap_or(usual.rounds),
            seconds: it.seconds.unwrap_or(usual.seconds),
            tokens: it.tokens.unwrap_or(usual.tokens),
            tree_tokens: it.tree_tokens.unwrap_or(usual.tree_tokens),
            wake: it.wake.unwrap_or(usual.wake),
        }
    }
}

/// How conversations are compacted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompactionOptions {
    /// Who writes the summary.
    pub author: SummaryAuthor,
    /// The used part of the window at which a compaction begins by itself, from 0.3 to 0.95.
    pub threshold: f64,
    /// A conversation is also compacted before its requests reach the length at which they cost more.
    pub below_price_step: bool,
}

impl Default for CompactionOptions {
    fn default() -> CompactionOptions {
        CompactionOptions { author: SummaryAuthor::default(), threshold: 0.85, below_price_step: false }
    }
}

/// The services that the Harness gives to each Session.
#[derive(Clone)]
pub struct Services {
    pub workspace: Arc<Workspace>,
    /// The user's workspace, where the Session works in a copy of it: rules and trust are about that one.
    pub project: Option<Arc<Workspace>>,
    pub providers: SharedProviders,
    pub registry: Registry,
    /// The MCP servers; `None` where none is configured.
    pub servers: Option<Servers>,
    pub blobs: Blobs,
    pub environment: Arc<[(String, String)]>,
    pub sandbox: Sandbox,
    /// The Session's folder for temporary files; there is none outside a Session.
    pub scratch: Option<PathBuf>,
    /// The folder of what programs write to caches, shared by a tree of Sessions; `None` outside a Session.
    pub cover: Option<PathBuf>,
    /// The folder of the Session's saved outputs; there is none outside a Session.
    pub outputs: Option<PathBuf>,
    pub user_folder: Option<PathBuf>,
    /// The folder that pixir was started in.
    pub started_in: Option<PathBuf>,
    /// Paths below the workspace that copies for agents have although git ignores them.
    pub copy_ignored: Arc<[String]>,
    /// The folder of the workspace's Logs.
    pub logs: PathBuf,
    /// The disk that the Logs are on.
    pub disk: Arc<dyn Disk>,
    pub options: Options,
    /// The Snapshot of the workspace; the Sessions of a workspace share it.
    pub snapshot: SessionSnapshot,
    /// Commands whose call was dropped and that are being stopped; each Session has its own.
    pub stopping: Stopping,
    /// The content of files that the Session's model last saw.
    pub read_set: Arc<ReadSet>,
    /// The Session's background jobs; there are none outside a Session.
    pub jobs: Option<Arc<Jobs>>,
    /// Looks at protected files before those jobs.
    pub job_guards: JobGuards,
    /// What a killed pixir had left in protected files, in sentences that the next Session tells.
    pub left_behind: Arc<Mutex<Vec<String>>>,
    pub library: Arc<Library>,
    /// The Session's children; `None` outside a Session, and where it can have none.
    pub agents: Option<Arc<dyn Children>>,
    /// The way to the Session above; `None` for one that the user started.
    pub above: Option<Above>,
    /// Who changes what in the workspace right now; the Sessions of a tree share it.
    pub leases: Leases,
    /// The place of an agent among those that run; `None` for a Session that the user started.
    pub agent_place: Option<AgentPlace>,
    /// Who takes leases for calls.
    pub holder: Holder,
    /// The most requests of agents at the same time, for each Provider and key; all Sessions share them.
    pub gates: Gates,
    /// A Turn ends with a call of the tool `report`.
    pub reports: bool,
    /// The mode and the rules of the Session, bounded by those above it.
    pub standing: Standing,
    /// Budgets of the Sessions above, which this Session's requests draw from too.
    pub budgets: Arc<[Budget]>,
    /// Everything under pixir's home folder.
    pub store: Store,
    /// Rules of this run alone.
    pub allowed: Arc<[Rule]>,
}

impl Services {
    /// The tools that the model is offered. They stay the same as long as the Session is open.
    pub fn specs(&self, toolset: Toolset) -> Arc<[ToolSpec]> {
        if self.options.can_ask { self.registry.specs(toolset) } else { self.registry.specs_unattended(toolset) }
    }

    pub fn skills(&self) -> Vec<Skill> {
        self.library.skills()
    }

    /// Collects what the model is told before the conversation of a new Session.
    pub fn documents(&self, mode: Mode, toolset: Toolset) -> (Vec<ContextDocument>, Surroundings) {
        let sources = Sources {
            workspace: &self.workspace,
            user_folder: self.user_folder.as_deref(),
            started_in: self.started_in.as_deref(),
            variables: &self.environment,
        };
        documents::collect(sources, Posture { mode, toolset, attended: self.options.can_ask })
    }

    /// Creates the context of a call, without progress, saved output and asker.
    pub fn context(&self, call_id: &str, toolset: Toolset, sees_images: bool) -> Context {
        self.open_folders();
        Context {
            call_id: call_id.to_owned(),
            toolset,
            workspace: Arc::clone(&self.workspace),
            blobs: self.blobs.clone(),
            overflow: None,
            progress: None,
            cancel: CancellationToken::new(),
            dry_run: self.options.dry_run,
            snapshot: self.snapshot.clone(),
            stopping: self.stopping.clone(),
            read_set: Arc::clone(&self.read_set),
            jobs: self.jobs.clone(),
            job_guards: self.job_guards.clone(),
            agents: self.agents.clone().map(|it| it as Arc<dyn Agents>),
            others: self.servers.clone().map(|it| Arc::new(it) as Arc<dyn Others>),
            in_turn: InTurn::default(),
            steered: None,
            leases: self.leases.clone(),
            holder: self.holder.clone(),
            role: self.standing.given_role(),
            library: Arc::clone(&self.library),
            forms: None,
            sees_images,
            environment: Arc::clone(&self.environment),
            sandbox: self.sandbox.clone(),
            policy: Policy::Work,
            reads: Vec::new(),
            folders: Folders::of(&self.workspace),
            scratch: self.scratch.clone(),
            cover: self.cover.clone(),
            outputs: self.outputs.clone(),
            limits: self.options.results,
        }
    }

    /// What agents of these roles may use, and what it costs, where they begin with this Provider and model.
    pub fn usual(&self, (provider, model): (&str, &str), roles: &[Role]) -> Usual {
        let providers = self.providers.now();
        let terms = |provider: &str, model: &str| {
            let facts = providers.facts(provider, model);
            // The demo stands for a model that is not connected yet.
            let price = facts.price.filter(|_| provider != provider::demo::NAME);
            let price = price.map(|it| it.input.max(it.output).max(it.cached).max(it.cache_written) / 1e6);
            ModelTerms { window: facts.window, price }
        };
        let named = roles.iter().filter_map(|role| role.model.as_deref());
        let options = self.options.agents;
        Usual {
            tokens: options.tokens,
            tree_tokens: options.tree_tokens,
            max_tokens: self.options.limits.max_tokens,
            max_cost_usd: self.options.limits.max_cost_usd,
            deadline: self.options.limits.deadline,
            model: terms(provider, model),
            models: named
                .filter_map(|named| Some((named.to_owned(), named.split_once('/')?)))
                .map(|(named, (provider, model))| (named, terms(provider, model)))
                .collect(),
        }
    }

    /// The workspace that the user has opened.
    pub fn project(&self) -> &Arc<Workspace> {
        self.project.as_ref().unwrap_or(&self.workspace)
    }

    /// The rules that the user made and that hold in this Session.
    pub(crate) fn rules_in_force(&self) -> Vec<Rule> {
        let loaded = self.store.rules().load();
        let mut rules: Vec<Rule> = self.allowed.to_vec();
        for id in self.standing.sessions() {
            let saved = loaded.for_gate(Some(&id), self.project().root());
            rules.extend(saved.into_iter().filter(|rule| !rules.contains(rule)).collect::<Vec<_>>());
        }
        // The folder itself is not copied, so an agent in a copy only reads it.
        if self.project.is_some() {
            for rule in &mut rules {
                if let Rule::Allow(Scope::Writes(folder)) = rule {
                    *rule = Rule::Allow(Scope::Reads(std::mem::take(folder)));
                }
            }
        }
        rules
    }

    /// Opens the folders that the rules in force let this Session work on, closes the others, and says of each how it stands.
    pub fn open_folders(&self) -> Vec<FolderStanding> {
        let rules = self.rules_in_force();
        let wanted = written_folders(&rules);
        let open = self.workspace.folders();
        if wanted.is_empty() && open.is_empty() {
            return Vec::new();
        }
        let mut roots = Vec::new();
        let mut all = Vec::new();
        for folder in wanted {
            let known = open.iter().find(|it| it.root() == folder && it.is_in_place()).cloned();
            let opened = known.map_or_else(|| self.open_folder(folder), Ok);
            let fault = opened.as_ref().err().cloned();
            roots.extend(opened.ok());
            all.push(FolderStanding { path: folder.to_owned(), fault });
        }
        self.workspace.have_folders(roots);
        all
    }

    /// Opens a folder as a root of its own.
    ///
    /// # Errors
    /// Why it cannot be worked on, as a clause.
    fn open_folder(&self, folder: &Path) -> std::result::Result<Arc<Workspace>, String> {
        let root = self.workspace.root();
        match folder.canonicalize() {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err("it is gone".to_owned()),
            Err(e) => return Err(format!("it cannot be opened: {e}")),
            Ok(real) if real != folder => return Err(format!("a symlink now leads from there to {}", real.display())),
            Ok(_) if !folder.is_dir() => return Err("it is not a folder".to_owned()),
            Ok(_) if folder.starts_with(root) => return Err("it lies in the workspace".to_owned()),
            Ok(_) if root.starts_with(folder) => return Err("the workspace lies in it".to_owned()),
            Ok(_) if !self.sandbox.may_add(folder) => return Err(HOLDS_SECRETS.to_owned()),
            Ok(_) => {}
        }
        let opened = self.guarded(folder).map_err(|e| format!("it cannot be opened: {}", e.message))?;
        // A killed pixir may have left something in it.
        let left = self.store.running().left();
        if !left.is_empty() {
            self.left_behind.lock().extend(finish_left(&left, &opened, &self.blobs));
        }
        Ok(Arc::new(opened))
    }

    /// A root as the tools of one Session see it: pixir's own folders and the user's secrets are out of their reach.
    ///
    /// # Errors
    /// `NOT_FOUND` when it cannot be opened.
    pub fn guarded(&self, root: &Path) -> Result<Workspace> {
        let own = [Some(self.store.home()), self.user_folder.as_deref()];
        let home = self.environment.iter().find(|(name, _)| name == "HOME").map(|(_, value)| Path::new(value));
        let workspace = Workspace::open(root)?.noting(self.store.running());
        Ok(workspace.guarding(own.into_iter().flatten()).hiding_secrets_of(home, is_secret_of_home))
    }

    /// Saves a rule of the user, for so many seconds or until it is revoked.
    ///
    /// # Errors
    /// `WRITE_FAILED`.
    pub fn save_rule(&self, rule: Rule, holds: RuleReach, seconds: Option<u64>, id: &SessionId) -> Result<()> {
        let workspace = self.project().root().display().to_string();
        let holds = match holds {
            RuleReach::Session => Reach::Session { session: id.to_string(), workspace },
            RuleReach::Tree => {
                let above = self.standing.sessions();
                Reach::Session { session: above.last().unwrap_or(id).to_string(), workspace }
            }
            RuleReach::Project => Reach::Project { workspace },
            RuleReach::User => Reach::User,
        };
        // A time that no clock reaches is none.
        let expires = seconds.and_then(|seconds| Timestamp::now().checked_add(Duration::from_secs(seconds)).ok());
        self.store.rules().add(rule, holds, expires).map(drop)
    }

    /// Lets another Session read and work on the folders that this one has for itself. Other rules of a Session are not copied.
    ///
    /// # Errors
    /// `WRITE_FAILED`.
    pub fn share_folders(&self, from: &SessionId, to: &SessionId) -> Result<()> {
        let root = self.project().root();
        for saved in self.store.rules().load().in_force(Some(from), root, Timestamp::now()) {
            let is_of_folder = matches!(saved.rule, Rule::Allow(Scope::Reads(_) | Scope::Writes(_)));
            if is_of_folder && matches!(saved.holds, Reach::Session { .. }) {
                let holds = Reach::Session { session: to.to_string(), workspace: root.display().to_string() };
                self.store.rules().add(saved.rule, holds, saved.expires)?;
            }
        }
        Ok(())
    }

    /// Returns where the files of a Session are stored.
    pub fn place(&self, id: &SessionId) -> Place {
        Place::new(&self.logs, id.clone())
    }
}

/// A folder that a rule lets a Session work on as on the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderStanding {
    /// Its path.
    pub path: PathBuf,
    /// Why it cannot be worked on, as a clause.
    pub fault: Option<String>,
}

/// Why a folder is never worked on.
pub const HOLDS_SECRETS: &str =
    "it holds secrets, or it is the home folder, a folder for temporary files or one above those";

#[cfg(test)]
mod tests {
    use super::*;
    use config::{Config, catalogue};

    #[test]
    fn the_table_of_settings_names_the_numbers_that_agents_really_get() {
        let mut set = toml::Table::new();
        for it in catalogue::settings().filter(|it| it.key.starts_with("agents.")) {
            let (_, name) = it.key.split_once('.').expect("a section");
            set.insert(name.to_owned(), it.default().expect("a default"));
        }
        assert_eq!(set.len(), 9);
        let config = Config::parse(&format!("[agents]\n{set}")).expect("valid");
        assert_eq!(AgentOptions::from(&config.agents), AgentOptions::default());
    }
}
