//! The children of one Session.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};

use super::attend::{Attendant, failed};
use super::child::{Bounds, Child, Terms, TurnOrder};
use super::transcript::transcript;
use super::{Beginning, Position, Role, begin, copies, parent_of, role};
use super::{close_what_is_open, settle};
use crate::call::agents::{Above, AgentNews, MOST_TOLD, Order, Seen, Stop, Until};
use crate::call::tool::panicked;
use crate::call::{Agents, Leases};
use crate::conversation::history::{History, Settings};
use crate::door::Handle;
use crate::protocol::agent::AgentState;
use crate::protocol::error::{Code, Error, Result, nearest};
use crate::protocol::event::{
    AgentEvent, AgentResult, AgentStatus, Isolation, Live, Mode, SessionId, SessionStarted, Spawned, Telling, ToldBy,
};
use crate::protocol::input::{Input, Message, RestoreOptions};
use crate::provider::budget::Budget;
use crate::session::{LogAccess, Services};
use crate::storage::log::{self, Log, LogWriter};

/// The bytes that each end has for itself, for one line and the footer of its result.
const LEAST: usize = 150;
/// The bytes of the footer.
const FOOTER: usize = 40;
/// The bytes that ends share besides: as many may come at once as a Turn may start.
const SHARED: usize = MOST_TOLD - 64 * LEAST;

/// The children of one Session, and the way to its Log.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: SessionId,
    pub(super) at: Position,
    /// Where the texts of children are saved.
    pub(super) outputs: Option<PathBuf>,
    me: Weak<Node>,
    /// What the children share with the other Sessions of the workspace.
    pub(super) base: Base,
    pub(super) news: mpsc::UnboundedSender<AgentNews>,
    /// In the order in which they were started.
    pub(super) children: Mutex<Vec<Arc<Child>>>,
    /// States of those below the children.
    below: Mutex<Vec<AgentState>>,
    /// Children that are being started.
    starting: AtomicUsize,
    /// No child is started any more.
    closed: AtomicBool,
    /// A user or a program can answer the approvals and forms of children.
    pub(super) asks: AtomicBool,
    /// A child has begun or ended.
    changed: Notify,
    /// Bytes of ends that the next request tells already.
    told: AtomicUsize,
    /// What the requests of the running Turn draw from.
    budgets: Mutex<Arc<[Budget]>>,
    /// The settings of the parent now.
    settings: Mutex<Settings>,
}

/// `Services` without an output of its own.
pub(super) struct Base(pub(super) Services);

impl std::fmt::Debug for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Base").finish_non_exhaustive()
    }
}

impl Node {
    pub(super) fn new(
        base: &Services,
        id: SessionId,
        at: Position,
        outputs: Option<PathBuf>,
        settings: Settings,
        known: Vec<Arc<Child>>,
        news: mpsc::UnboundedSender<AgentNews>,
    ) -> Arc<Node> {
        Arc::new_cyclic(|me| Node {
            id,
            at,
            outputs,
            me: me.clone(),
            base: Base(base.clone()),
            news,
            children: Mutex::new(known),
            below: Mutex::default(),
            starting: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            asks: AtomicBool::new(base.options.can_ask),
            changed: Notify::new(),
            told: AtomicUsize::new(0),
            budgets: Mutex::default(),
            settings: Mutex::new(settings),
        })
    }

    /// Itself, for work that goes on by itself.
    fn shared(&self) -> Arc<Node> {
        self.me.upgrade().expect("the caller holds this node")
    }

    pub(super) fn child(&self, name: &str) -> Result<Arc<Child>> {
        let children = self.children.lock();
        children.iter().find(|child| child.name() == name).cloned().ok_or_else(|| {
            let names: Vec<&str> = children.iter().map(|child| child.name()).collect();
            let fix = match nearest(name, names.iter().copied()) {
                Some(near) => near.to_owned(),
                None if names.is_empty() => "spawn_agent to start one".to_owned(),
                None => format!("one of: {}", names.join(", ")),
            };
            Error::new(Code::NotFound, format!("there is no agent `{}`", name.escape_debug()), fix).with("input", name)
        })
    }

    // ─── To the parent ───

    /// Has the parent record this, and returns when it is in the Log.
    pub(super) async fn record(&self, event: AgentEvent) -> Result<()> {
        let (reply, recorded) = oneshot::channel();
        let closed = || Error::new(Code::SessionStartFailed, "the session has closed", "open it again");
        let news = AgentNews::Record { event: Box::new(event), reply };
        self.news.send(news).map_err(|_| closed())?;
        recorded.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Has the parent record this, and does not wait.
    pub(super) fn note(&self, event: AgentEvent) {
        let (reply, _) = oneshot::channel();
        let _ = self.news.send(AgentNews::Record { event: Box::new(event), reply });
    }

    /// Tells the watchers of the parent about a child, or about one below it.
    pub(super) fn send_live(&self, path: Vec<String>, live: Live) {
        if let Live::AgentChanged(state) = &live {
            let mut below = self.below.lock();
            if state.path.len() > self.at.path.len() + 1 {
                match below.iter_mut().find(|it| it.path == state.path) {
                    Some(known) => known.clone_from(state),
                    None => below.push((**state).clone()),
                }
            }
        }
        let _ = self.news.send(AgentNews::Live { path, live: Box::new(live) });
    }

    pub(super) fn publish(&self, state: AgentState) {
        self.send_live(state.path.clone(), Live::AgentChanged(Box::new(state)));
    }

    /// A Turn of a child has ended: the parent records it, and those who wait hear of it.
    pub(super) async fn ended(&self, child: &Arc<Child>, mut result: AgentResult) {
        *child.place.lock() = None;
        result.isolation = child.isolation;
        let recorded = self.record(AgentEvent::Ended(Box::new(result.clone()))).await;
        if let Err(error) = recorded {
            tracing::warn!(agent = child.name(), "the end of an agent was not recorded: {}", error.message);
        }
        self.offer(child, &mut result).await;
        let order = child.order.lock().clone();
        if order.is_ordered && !order.is_awaited && order.waiting == 0 {
            // The report is sent before the state says that the agent has ended: a reader of the state must not miss it.
            let _ = self.news.send(AgentNews::Report(Box::new(result.clone())));
        }
        let state = child.change(|state| {
            state.status = result.status;
            state.doing.clear();
            state.took_ms = Some(result.duration_ms);
        });
        let _ = child.ended.send_replace(Some(Arc::new(result)));
        self.publish(state);
        self.changed.notify_waiters();
    }

    // ─── Starting ───

    async fn start(self: Arc<Node>, order: Order) -> Result<AgentState> {
        let wished = order.role.as_deref().unwrap_or("worker");
        let library = Arc::clone(&self.base.0.library);
        let roles = crate::call::off_loop(move || Ok(library.roles())).await?;
        let role = Arc::new(Role::for_child(&self.allowed(roles), wished)?.clone());
        // A role whose settings cannot be had starts nothing.
        let schema = order.schema.clone().or_else(|| role.schema.clone());
        role::settings(&role, schema.as_ref(), &self.settings.lock().clone(), &self.base.0)?;
        self.may_start()?;
        let tree = Arc::clone(&self.at.tree);
        let name = tree.take_name(order.name.as_deref(), &role.name)?;
        let id = SessionId::now();
        let mut path = self.at.path.clone();
        path.push(name.clone());
        let bounds = Bounds::new(tree.options, role::limits(role.limits, order.limits));
        let isolation = order.isolation.unwrap_or_default().max(role.isolation);
        let terms = Terms { role, schema, bounds, isolation };
        let child = Arc::new(Child::new(path, id.clone(), terms, &order.task));
        *child.order.lock() = TurnOrder {
            is_awaited: order.waits,
            waiting: 0,
            // The end of the call is the end of the child that it waits for.
            stop: if order.waits { order.cancel.child_token() } else { Default::default() },
            is_ordered: true,
        };
        let spawned = Spawned {
            name: name.clone(),
            role: child.role.name.clone(),
            session_id: id.to_string(),
            call_id: order.call_id.clone(),
            task: order.task.clone(),
            waits: order.waits,
            role_digest: child.role.digest.clone(),
            // The role's own is in its file.
            schema: order.schema,
            isolation,
        };
        if let Err(error) = self.record(AgentEvent::Spawned(spawned)).await {
            tree.names.lock().remove(&name);
            return Err(error);
        }
        self.children.lock().push(Arc::clone(&child));
        let state = child.state();
        self.publish(state.clone());
        self.changed.notify_waiters();
        tokio::spawn(self.run(child, Turn::First { call_id: order.call_id }, order.task));
        Ok(state)
    }

    /// The roles that the role of the Session leaves to its children.
    fn allowed(&self, mut roles: Vec<Role>) -> Vec<Role> {
        let spawns = self.at.child.as_ref().and_then(|child| child.role.spawns.as_ref());
        if let Some(spawns) = spawns {
            roles.retain(|role| spawns.contains(&role.name));
        }
        roles
    }

    fn may_start(&self) -> Result<()> {
        let options = self.at.tree.options;
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::new(Code::CommandFailed, "the session is closing", "nothing"));
        }
        if self.at.tree.started.fetch_add(1, Ordering::Relaxed) >= options.per_turn {
            self.at.tree.started.fetch_sub(1, Ordering::Relaxed);
            let message = format!("this turn has already started {} agents", options.per_turn);
            return Err(Error::new(Code::BudgetReached, message, "tell_agent to give one of them more to do"));
        }
        Ok(())
    }

    /// Waits for a place, opens the child and sends it a message. Its attendant does the rest.
    async fn run(self: Arc<Node>, child: Arc<Child>, turn: Turn, text: String) {
        let stop = child.order.lock().stop.clone();
        let places = Arc::clone(&self.at.tree.places);
        let place = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            place = places.acquire_owned() => place.ok(),
        };
        let Some(place) = place else {
            let error = Error::new(Code::CommandFailed, "it was stopped before it began", "tell_agent to let it begin");
            let result = AgentResult { status: AgentStatus::Interrupted, ..failed(&child, &error) };
            return self.ended(&child, result).await;
        };
        *child.place.lock() = Some(place);
        let message = Message { text, ..Message::default() };
        let door = match &turn {
            Turn::First { call_id } => self.create(&child, call_id.clone()).await,
            Turn::Next => self.reopen(&child).await,
        };
        match door {
            Err(error) => self.ended(&child, failed(&child, &error)).await,
            Ok(Opened::New(door)) => {
                if let Some(watch) = door.watch().await {
                    Attendant::attend(self, child, door, watch, Some(message)).await;
                }
            }
            // Its attendant sees the Turn begin.
            Ok(Opened::Already(door)) => {
                if let Err(error) = door.request(Input::Prompt(message)).await {
                    self.ended(&child, failed(&child, &error)).await;
                }
            }
        }
    }

    /// Begins the Session of a new child.
    async fn create(&self, child: &Arc<Child>, call_id: Option<String>) -> Result<Opened> {
        let services = self.base.0.clone();
        let parent = parent_of(self, child, call_id);
        let (id, role) = (child.session.clone(), Arc::clone(&child.role));
        let at = self.position(child);
        let schema = child.schema.clone();
        let settings = role::settings(&role, schema.as_ref(), &self.settings.lock().clone(), &services)?;
        let mode = role.mode.into_iter().fold(self.at.standing.mode(), Mode::stricter);
        let mut door = child.door.lock().await;
        let own = Arc::clone(child);
        let made = tokio::task::spawn_blocking(move || {
            copies::make(&services, &at.tree.root, &own)?;
            let services = copies::services(&services, &at)?.unwrap_or(services);
            let mut log = Log::create_on(Arc::clone(&services.disk), &services.place(&id).log(), id.clone())?;
            let (mut context, surroundings) = services.documents(mode, settings.toolset);
            context.extend(role::documents(&role, schema.as_ref(), &services)?);
            let started = SessionStarted {
                workspace: services.workspace.root().display().to_string(),
                model: settings.model,
                provider: settings.provider,
                toolset: settings.toolset,
                mode,
                effort: settings.effort,
                context,
                surroundings: Some(surroundings),
                role: None,
                parent: Some(Box::new(parent)),
                sandbox: Some(services.sandbox.tier().name().to_owned()),
                pixir_version: env!("CARGO_PKG_VERSION").into(),
            };
            let first = log.append(None, started.into())?;
            log.establish()?;
            Ok((log, History::fold([first]), at))
        });
        let (log, history, at) = made.await.unwrap_or_else(|e| Err(panicked(&e.to_string())))?;
        let beginning = Beginning {
            id: child.session.clone(),
            log: LogAccess::Writes(LogWriter::new(log)),
            history,
            note: None,
            at,
        };
        let opened = begin(&self.services(), beginning)?;
        *door = Some(opened.downgrade());
        Ok(Opened::New(opened))
    }

    /// Opens the Session of a child that has ended, unless it is open.
    async fn reopen(&self, child: &Arc<Child>) -> Result<Opened> {
        let mut door = child.door.lock().await;
        if let Some(open) = door.as_ref().and_then(crate::door::WeakHandle::upgrade) {
            return Ok(Opened::Already(open));
        }
        let services = self.base.0.clone();
        let id = child.session.clone();
        let (own, root) = (Arc::clone(child), self.at.tree.root.clone());
        let read = tokio::task::spawn_blocking(move || {
            // A copy that has gone is made anew: what it had is in the workspace, or in the Log until it is adopted.
            copies::make(&services, &root, &own)?;
            let path = services.place(&id).log();
            match Log::open_on(Arc::clone(&services.disk), &path, id.clone()) {
                Ok((mut log, contents)) => {
                    let mut history = History::fold(contents.entries);
                    let inside = copies::workspace(&services, &root, &own)?;
                    settle(&services, &inside, &mut log, &mut history)?;
                    close_what_is_open(&mut log, &mut history)?;
                    log.sync()?;
                    Ok((LogAccess::Writes(LogWriter::new(log)), history))
                }
                Err(why) if matches!(why.code, Code::CorruptLogLine | Code::SessionReadOnly | Code::SessionLocked) => {
                    Ok((LogAccess::ReadOnly(why), History::fold(log::read(&path)?.entries)))
                }
                Err(error) => Err(error),
            }
        });
        let (log, history) = read.await.unwrap_or_else(|e| Err(panicked(&e.to_string())))?;
        let at = self.position(child);
        let opened = begin(&self.services(), Beginning { id: child.session.clone(), log, history, note: None, at })?;
        *door = Some(opened.downgrade());
        Ok(Opened::New(opened))
    }

    /// What a child begins with.
    fn services(&self) -> Services {
        let mut services = self.base.0.clone();
        services.options.can_ask &= self.asks.load(Ordering::Relaxed);
        services
    }

    fn position(&self, child: &Arc<Child>) -> Position {
        let above = Arc::clone(&self.budgets.lock());
        let pool = self.at.tree.pool.lock().clone();
        let mut role = child.role.bounds();
        if let Some(tools) = role.tools.as_mut().filter(|_| child.schema.is_some()) {
            tools.push(crate::tools::report::NAME.to_owned());
        }
        // The pool of the tree is drawn from once, however deep the child is.
        let pool = Some(pool).filter(|_| self.at.path.is_empty());
        Position {
            tree: Arc::clone(&self.at.tree),
            path: child.path.clone(),
            standing: self.at.standing.below(child.session.clone(), role),
            child: Some(Arc::clone(child)),
            leases: match child.isolation {
                Isolation::Shared => self.at.leases.clone(),
                Isolation::Copy | Isolation::Scratch => Leases::default(),
            },
            above: Some(Above {
                name: child.name().to_owned(),
                shares_files: child.isolation == Isolation::Shared,
                news: self.news.clone(),
            }),
            budgets: above.iter().cloned().chain(pool).collect(),
        }
    }

    // ─── Waiting and telling ───

    async fn wait_for(
        self: Arc<Node>,
        names: Vec<String>,
        until: Until,
        within: Option<Duration>,
    ) -> Result<Vec<Seen>> {
        let awaited: Vec<Arc<Child>> = if names.is_empty() {
            self.children.lock().iter().filter(|child| child.is_open()).cloned().collect()
        } else {
            names.iter().map(|name| self.child(name)).collect::<Result<_>>()?
        };
        awaited.iter().for_each(|child| child.order.lock().waiting += 1);
        // Dropped with the wait, so that an end after it is reported.
        let _counted = Counted(awaited.clone());
        // An agent that waits for its own children gives its place to one that can run.
        let stepped_aside = self.at.child.as_ref().and_then(|own| own.place.lock().take()).is_some();
        let ends = awaited.iter().map(|child| {
            let mut ended = child.ended.subscribe();
            async move { drop(ended.wait_for(Option::is_some).await) }.boxed()
        });
        let all = async {
            match until {
                Until::All => drop(join_all(ends).await),
                Until::Any if awaited.is_empty() => {}
                Until::Any => drop(futures_util::future::select_all(ends).await),
            }
        };
        match within {
            Some(within) => drop(tokio::time::timeout(within, all).await),
            None => all.await,
        }
        if let Some(own) = self.at.child.as_ref().filter(|_| stepped_aside) {
            let place = Arc::clone(&self.at.tree.places).acquire_owned().await.ok();
            *own.place.lock() = place;
        }
        Ok(awaited
            .iter()
            .map(|child| match child.ended.borrow().as_ref() {
                Some(result) => Seen::Ended(Box::new((**result).clone())),
                None => Seen::Open(Box::new(child.state())),
            })
            .collect())
    }

    async fn say(self: Arc<Node>, name: String, how: Telling, text: String, by: ToldBy) -> Result<AgentState> {
        let child = self.child(&name)?;
        let is_open = child.is_open();
        if how == Telling::Stop {
            self.record(AgentEvent::Told { name, by, how, text: String::new() }).await?;
            child.stop();
            let mut ended = child.ended.subscribe();
            drop(ended.wait_for(Option::is_some).await);
            return Ok(child.state());
        }
        if text.trim().is_empty() {
            return Err(Error::new(Code::InvalidArgs, "there is no text to tell", "what the agent is to know or do"));
        }
        if !is_open {
            self.may_start()?;
        }
        self.record(AgentEvent::Told { name: name.clone(), by, how, text: text.clone() }).await?;
        if is_open {
            // A child that is queued reads it at its beginning.
            let message = Message { text, ..Message::default() };
            let Opened::Already(door) = self.door_of(&child).await? else {
                let fix = "wait until it runs";
                return Err(Error::new(Code::CommandFailed, format!("{name} has not begun yet"), fix));
            };
            match how {
                Telling::Steer => door.request(Input::Steer(message)).await?,
                Telling::Next | Telling::Stop => {
                    child.next.lock().push_back(TurnOrder { is_ordered: by == ToldBy::Parent, ..TurnOrder::default() });
                    door.request(Input::FollowUp(message)).await?
                }
            };
            return Ok(child.state());
        }
        *child.order.lock() = TurnOrder { is_ordered: by == ToldBy::Parent, ..TurnOrder::default() };
        let _ = child.ended.send_replace(None);
        let state = child.change(|state| state.status = AgentStatus::Queued);
        self.record(AgentEvent::Resumed { name }).await?;
        self.publish(state.clone());
        tokio::spawn(Arc::clone(&self).run(child, Turn::Next, text));
        Ok(state)
    }

    /// The door of a child whose Session is open; anything else for one that is not.
    async fn door_of(&self, child: &Child) -> Result<Opened> {
        let door = child.door.lock().await;
        match door.as_ref().and_then(crate::door::WeakHandle::upgrade) {
            Some(open) => Ok(Opened::Already(open)),
            None => Err(Error::new(
                Code::CommandFailed,
                format!("{} has not begun yet", child.name()),
                "wait until it runs, then tell it",
            )),
        }
    }

    async fn open_path(self: Arc<Node>, path: Vec<String>) -> Result<Handle> {
        let Some((name, rest)) = path.split_first() else {
            return Err(Error::new(Code::InvalidArgs, "the path names no agent", "the names from the child down"));
        };
        let child = self.child(name)?;
        let door = match self.reopen(&child).await? {
            Opened::Already(door) => door,
            Opened::New(door) => {
                // The watch begins before anybody who has the door can start a Turn.
                if let Some(watch) = door.watch().await {
                    tokio::spawn(Attendant::attend(Arc::clone(&self), child, door.clone(), watch, None));
                }
                door
            }
        };
        if rest.is_empty() { Ok(door) } else { Box::pin(door.agent(rest)).await }
    }

    // ─── Stopping ───

    async fn stop_some(self: Arc<Node>, which: Stop) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let all = self.children.lock().clone();
            let open: Vec<&Arc<Child>> = all
                .iter()
                .filter(|child| child.is_open())
                .filter(|child| match &which {
                    Stop::Awaited => {
                        let order = child.order.lock();
                        order.is_awaited && order.stop.is_cancelled()
                    }
                    Stop::One(path) => path.first().is_some_and(|name| name == child.name()),
                    Stop::All => true,
                })
                .collect();
            open.iter().for_each(|child| child.stop());
            if open.is_empty() && self.starting.load(Ordering::Acquire) == 0 {
                return;
            }
            changed.await;
        }
    }
}

/// Calls that wait for these children.
struct Counted(Vec<Arc<Child>>);

impl Drop for Counted {
    fn drop(&mut self) {
        for child in &self.0 {
            let mut order = child.order.lock();
            order.waiting = order.waiting.saturating_sub(1);
        }
    }
}

/// Which Turn of a child begins.
enum Turn {
    First { call_id: Option<String> },
    Next,
}

/// The door of a child.
enum Opened {
    /// The child's Session was closed and has just been opened. It has no attendant yet.
    New(Handle),
    Already(Handle),
}

struct Starting(Arc<Node>);

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.starting.fetch_sub(1, Ordering::Release);
        self.0.changed.notify_waiters();
    }
}

impl Agents for Node {
    fn spawn(&self, order: Order) -> BoxFuture<'static, Result<AgentState>> {
        let node = self.shared();
        node.starting.fetch_add(1, Ordering::Acquire);
        // A task of its own: a call that is dropped must not leave a link without a child, or a child without a link.
        let starting = Starting(Arc::clone(&node));
        let task = tokio::spawn(async move {
            let started = node.start(order).await;
            drop(starting);
            started
        });
        async move { task.await.unwrap_or_else(|e| Err(panicked(&e.to_string()))) }.boxed()
    }

    fn wait(
        &self,
        names: Vec<String>,
        until: Until,
        within: Option<Duration>,
    ) -> BoxFuture<'static, Result<Vec<Seen>>> {
        self.shared().wait_for(names, until, within).boxed()
    }

    fn tell(&self, name: &str, how: Telling, text: String, by: ToldBy) -> BoxFuture<'static, Result<AgentState>> {
        self.shared().say(name.to_owned(), how, text, by).boxed()
    }

    fn open(&self, path: &[String]) -> BoxFuture<'static, Result<Handle>> {
        self.shared().open_path(path.to_vec()).boxed()
    }

    fn list(&self) -> Vec<AgentState> {
        let mut all: Vec<AgentState> = self.children.lock().iter().map(|child| child.state()).collect();
        all.extend(self.below.lock().iter().cloned());
        all
    }

    fn adopt(&self, name: &str, options: RestoreOptions, later: bool) -> BoxFuture<'static, Result<()>> {
        self.shared().decide_files(name.to_owned(), options, later).boxed()
    }

    fn stop(&self, which: Stop) -> BoxFuture<'static, ()> {
        self.shared().stop_some(which).boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.closed.store(true, Ordering::Relaxed);
        let node = self.shared();
        async move {
            Arc::clone(&node).stop_some(Stop::All).await;
            node.tidy_all().await;
        }
        .boxed()
    }

    fn transcript(&self, name: &str) -> BoxFuture<'static, Result<String>> {
        let (node, name) = (self.shared(), name.to_owned());
        async move {
            let child = node.child(&name)?;
            let path = node.base.0.place(&child.session).log();
            let read = tokio::task::spawn_blocking(move || log::read(&path).map(|it| transcript(&it.entries)));
            read.await.unwrap_or_else(|e| Err(panicked(&e.to_string())))
        }
        .boxed()
    }

    fn stop_asking(&self) {
        self.asks.store(false, Ordering::Relaxed);
        let node = self.shared();
        node.children.lock().iter().for_each(|child| child.adoptions.decided.send_modify(|times| *times += 1));
        tokio::spawn(async move {
            let open: Vec<Arc<Child>> = node.children.lock().iter().filter(|child| child.is_open()).cloned().collect();
            for child in open {
                if let Ok(Opened::Already(door)) = node.door_of(&child).await {
                    door.send(Input::StopAsking).await;
                }
            }
        });
    }

    fn share(&self, others: usize) -> usize {
        // Those of the same answer that other calls wait for will be told too.
        let awaited = self.children.lock().iter().filter(|it| it.is_open() && it.order.lock().is_awaited).count();
        let mut share = 0;
        let _ = self.told.fetch_update(Ordering::AcqRel, Ordering::Acquire, |told| {
            share = SHARED.saturating_sub(told) / (awaited + others + 1);
            Some(told + share)
        });
        LEAST - FOOTER + share
    }

    fn begin_request(&self) {
        self.told.store(0, Ordering::Release);
    }

    fn follow(&self, settings: &Settings) {
        *self.settings.lock() = settings.clone();
    }

    fn begin_turn(&self, budgets: Arc<[Budget]>, is_woken: bool) {
        *self.budgets.lock() = budgets;
        if self.at.path.is_empty() && !is_woken {
            self.at.tree.begin_turn();
        }
    }
}
