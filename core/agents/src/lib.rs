//! Child Sessions: how a Session begins, where it stands in its tree, and the children that it starts.
//!
//! A child is a Session with a Log of its own, in this process. Its parent supervises it as it does a background job.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc};

use call::agents::Above;
use call::leases::Holder;
use call::protection::jobs::JobGuards;
use call::{Leases, Registry, Standing};
use context::library::Library;
use conversation::history::History;
use door::Handle;
use process::Stopping;
use process::jobs::Jobs;
use protocol::error::{Code, Error, Result};
use protocol::event::{Entry, Fact, ParentSession, SessionId};
use provider::budget::{Budget, TellLow};
use session::{AgentOptions, Children, LogAccess, Opened, Services, Session};
use storage::log::Log;
use storage::outputs;

mod adopt; // what a child changed in its copy goes to the workspace
mod attend; // watching a child: its Turns, its questions, its end
mod child; // one child: what it is, what it does, its door
mod way; // the way to the Session of a child
mod copies; // the copies in which children work
mod writers; // children that may change a workspace which they share
mod links; // children that a Log names, and ends that a crash kept from it
mod node; // the children of one Session
mod starting; // how a child begins
mod stop_file; // a stop of all agents that another process asks for
mod telling; // waiting for children, and telling them something
mod steps; // children that do steps of a workflow
mod tally; // what a Turn of a child came to, counted from its Log
mod transcript; // a child's conversation as text
mod report; // the tool by which a child reports in a given form
mod role; // the tools and settings that a role leaves

use child::Child;
use context::roles::Role;
pub use links::{end_in_log, settle};
use node::Node;
use writers::Writers;

/// What all Sessions of a tree share.
#[derive(Debug)]
struct Tree {
    root: SessionId,
    options: AgentOptions,
    /// Places of agents that run at the same time.
    places: Arc<Semaphore>,
    /// Names that are taken.
    names: Mutex<BTreeSet<String>>,
    /// Children that the running Turn of the root has started, at any depth.
    started: AtomicU32,
    /// What the children of the running Turn of the root may spend together.
    pool: Mutex<Budget>,
    /// Children that may change a workspace which they share.
    writers: Writers,
}

/// The longest name of an agent.
const MAX_NAME: usize = 32;

impl Tree {
    fn new(root: SessionId, options: AgentOptions) -> Tree {
        Tree {
            root,
            options,
            places: Arc::new(Semaphore::new(options.running)),
            names: Mutex::default(),
            started: AtomicU32::new(0),
            pool: Mutex::default(),
            writers: Writers::default(),
        }
    }

    /// A Turn of the root begins.
    fn begin_turn(&self, tell_low: TellLow) {
        self.started.store(0, Ordering::Relaxed);
        self.fill_pool(tell_low);
    }

    fn fill_pool(&self, tell_low: TellLow) {
        *self.pool.lock() = Budget::raisable(self.options.tree_tokens, tell_low);
    }

    /// The wished name in the letters of names of agents, with a number where it is taken.
    fn free_name(&self, wished: &str) -> String {
        let plain = |c: char| match c.to_ascii_lowercase() {
            c if c.is_ascii_lowercase() || c.is_ascii_digit() => c,
            _ => '-',
        };
        let name: String = wished.chars().map(plain).take(MAX_NAME - 4).collect();
        let name = match name.trim_matches('-') {
            "" => "run",
            name => name,
        };
        let names = self.names.lock();
        let mut all = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name}-{n}")));
        all.find(|it| !names.contains(it)).unwrap_or_else(|| name.to_owned())
    }

    /// Takes a name: the wished one, or the next of the role's.
    fn take_name(&self, wished: Option<&str>, role: &str) -> Result<String> {
        let mut names = self.names.lock();
        let Some(name) = wished else {
            let free = (1..).map(|n| format!("{role}-{n}")).find(|name| !names.contains(name));
            let name = free.unwrap_or_else(|| role.to_owned());
            names.insert(name.clone());
            return Ok(name);
        };
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) || name.starts_with('-') {
            let message = format!("`{}` cannot be the name of an agent", name.escape_debug());
            return Err(Error::new(Code::InvalidArgs, message, "up to 32 of a-z, 0-9 and -, or no name"));
        }
        if !names.insert(name.to_owned()) {
            let message = format!("an agent named `{name}` already exists");
            return Err(Error::new(Code::InvalidArgs, message, "another name, or tell_agent to give it more to do"));
        }
        Ok(name.to_owned())
    }
}

/// Where a Session stands among the Sessions that were started from one root.
#[derive(Debug, Clone)]
pub struct Position {
    tree: Arc<Tree>,
    /// The names from the root's child down; empty for the root.
    path: Vec<String>,
    /// How many of them are runs of workflows: these are no agents, so they do not count for the depth.
    runs: usize,
    /// The Session as its parent knows it; `None` for the root.
    child: Option<Arc<Child>>,
    standing: Standing,
    /// Who changes what right now in the workspace that the Session works in.
    leases: Leases,
    /// Budgets of the Sessions above.
    budgets: Arc<[Budget]>,
    above: Option<Above>,
}

impl Position {
    /// The position of a Session that the user talks to.
    pub fn root(id: &SessionId, options: AgentOptions) -> Position {
        Position {
            tree: Arc::new(Tree::new(id.clone(), options)),
            path: Vec::new(),
            runs: 0,
            child: None,
            standing: Standing::root(id.clone()),
            leases: Leases::default(),
            budgets: Arc::default(),
            above: None,
        }
    }

    fn depth(&self) -> u32 {
        u32::try_from(self.path.len() - self.runs.min(self.path.len())).unwrap_or(u32::MAX)
    }

    /// Whether a Session here may start children.
    fn may_spawn(&self) -> bool {
        let role = self.child.as_ref().map(|child| &child.role);
        role.is_none_or(|role| role.leaves_any()) && self.depth() < self.tree.options.depth
    }
}

/// A Session that is to run.
pub struct Beginning {
    pub id: SessionId,
    pub log: LogAccess,
    pub history: History,
    /// A notice for its first watcher.
    pub note: Option<String>,
    pub at: Position,
}

/// Runs a Session. Every Session begins here: those that the user starts, and those that a Session starts.
///
/// # Errors
/// `NOT_FOUND` when the workspace cannot be opened any more.
pub fn begin(base: &Services, beginning: Beginning) -> Result<Handle> {
    let Beginning { id, log, history, note, at } = beginning;
    // Agents build with what another one, or the user's Session, has fetched.
    let cover = base.place(&at.tree.root).cover();
    let in_copy = copies::services(base, &at)?;
    let base = in_copy.as_ref().unwrap_or(base);
    let outputs = outputs::real(&base.place(&id).outputs());
    let stopping = Stopping::noting(base.store.running());
    let (jobs, job_news) = Jobs::new(outputs.clone(), stopping.clone());
    // Outputs that were too long to show may be read again by the tools of the Session that made them.
    let workspace = Arc::new(base.guarded(base.workspace.root())?.with_outputs(outputs.clone()));
    let project = Some(Arc::clone(base.project.as_ref().unwrap_or(&workspace)));
    let library = Library { session: Some(id.clone()), workspace: project, ..(*base.library).clone() };
    let (news, agent_news) = mpsc::unbounded_channel();
    let mut services = Services {
        workspace,
        snapshot: base.snapshot.for_session(id.clone()),
        stopping,
        read_set: Arc::default(),
        jobs: Some(jobs),
        job_guards: JobGuards::default(),
        scratch: Some(base.place(&id).scratch()),
        cover: Some(cover),
        outputs: Some(outputs),
        library: Arc::new(library),
        standing: at.standing.clone(),
        budgets: Arc::clone(&at.budgets),
        agents: None,
        above: at.above.clone(),
        leases: at.leases.clone(),
        agent_place: None,
        ..base.clone()
    };
    services.standing.set(history.own_mode(), &history.rules);
    services.open_folders();
    let role = match (&at.child, &history.settings.role) {
        (None, Some(name)) => Some(role::of_session(name, &services)),
        (Some(_), _) | (None, None) => None,
    };
    if let Some(role) = &role {
        services.standing.set_role(Some(role.bounds()));
    }
    if let Some(child) = &at.child {
        services.holder = Holder::named(at.path.join("/"));
        services.agent_place = Some(child.place.clone());
        services.registry = role::narrow(&child.role, child.schema.as_ref(), &services.registry);
        services.reports = child.schema.is_some();
        services.options.limits = child.limits();
    }
    if matches!(log, LogAccess::Writes(_)) && at.may_spawn() {
        let known = links::known(&history, &at, &services);
        let node: Arc<dyn Children> =
            Node::new(base, id.clone(), at, services.outputs.clone(), history.settings.clone(), known, news);
        services.agents = Some(node);
    } else {
        services.registry = starting_none(&services.registry);
    }
    Ok(Session::spawn(Opened { id, log, history, services, job_news, agent_news, note, role }))
}

/// The tools of a Session that starts no children.
fn starting_none(registry: &Registry) -> Registry {
    let starts = |name: &str| call::agents::TOOLS.contains(&name) || name == workflow::tool::NAME;
    registry.keeping(|name| !starts(name))
}

/// The tools that the Session with this Log is offered, without those of MCP servers: for an agent, what its role and its depth
/// leave to it.
pub fn registry_of(entries: &[Arc<Entry>], services: &Services) -> Registry {
    let parent = entries.first().and_then(|entry| match &entry.fact {
        Fact::SessionStarted(started) => started.parent.as_deref().map(|parent| (&entry.session_id, parent)),
        _ => None,
    });
    let depth = services.options.agents.depth;
    let Some((id, parent)) = parent else {
        return if depth == 0 { starting_none(&services.registry) } else { services.registry.clone() };
    };
    let role = links::role_of(&services.library.roles(), &parent.role);
    let schema = links::schema_of(id, parent, services).or_else(|| role.schema.clone());
    let narrowed = role::narrow(&role, schema.as_ref(), &services.registry);
    if parent.depth < depth && role.leaves_any() { narrowed } else { starting_none(&narrowed) }
}

/// A crash may have left calls without a result and a Turn without an end.
pub fn close_what_is_open(log: &mut Log, history: &mut History) -> Result<()> {
    for fact in history.repairs() {
        history.append(log.append(Some(history.turns).filter(|n| *n > 0), fact)?);
    }
    Ok(())
}

/// What a child said and did itself. One that knows its parent's conversation begins with a copy of that.
fn own_entries(entries: &[Arc<Entry>]) -> &[Arc<Entry>] {
    let copied = entries.iter().find_map(|entry| match &entry.fact {
        Fact::SessionFork(it) => it.copied_to_seq,
        _ => None,
    });
    let first = copied.map_or(0, |to| entries.partition_point(|entry| entry.seq <= to));
    &entries[first..]
}

/// What the Log of a child says about its parent.
fn parent_of(node: &Node, child: &Child, call_id: Option<String>) -> ParentSession {
    ParentSession {
        session_id: node.id.to_string(),
        root_id: node.at.tree.root.to_string(),
        call_id,
        name: child.name().to_owned(),
        role: child.role.name.clone(),
        role_digest: child.role.digest.clone(),
        depth: node.at.depth() + 1,
    }
}
