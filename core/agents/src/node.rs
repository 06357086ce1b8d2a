//! The children of one Session.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::Position;
use super::child::Child;
use super::copies;
use super::transcript::transcript;
use super::way::Opened;
use call::Agents;
use call::agent_end::{MOST_TOLD, listed};
use call::agents::{AgentNews, Order, OrderedBy, Seen, Settle, Stop, Until, Usual};
use call::off_loop;
use call::tool::panicked;
use conversation::history::Settings;
use door::Handle;
use door::answer_of;
use files::workspace::Workspace;
use protocol::agent::AgentState;
use protocol::error::{Code, Error, NoticeCode, Result, nearest};
use protocol::event::{Adoption, AgentEvent, AgentResult, Isolation, Live, SessionId, Severity, Telling};
use protocol::input::{Accepted, Input, RestoreOptions};
use provider::budget::{Budget, TellLow};
use session::{Children, Services};
use storage::log;

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
    pub(super) closed: AtomicBool,
    /// A user or a program can answer the approvals and forms of children.
    pub(super) asks: AtomicBool,
    /// Heeds the file by which another process asks for the end of all agents.
    pub(super) stop_file: OnceLock<Heeding>,
    /// A child has begun or ended.
    pub(super) changed: Notify,
    /// Bytes of ends that the next request tells already.
    told: AtomicUsize,
    /// What the requests of the running Turn draw from.
    pub(super) budgets: Mutex<Arc<[Budget]>>,
    /// The settings of the parent now.
    pub(super) settings: Mutex<Settings>,
}

/// A task that ends with this.
#[derive(Debug)]
pub(super) struct Heeding(pub(super) AbortHandle);

impl Drop for Heeding {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Tells the user of the tree that its agents run low on tokens.
fn tells_low(news: &mpsc::UnboundedSender<AgentNews>) -> TellLow {
    let news = news.clone();
    Box::new(move |used, most| {
        let message = format!("the agents of this turn have used {used} of {most} tokens");
        let code = NoticeCode::AgentTokensLow.name().to_owned();
        let live = Live::Notice { severity: Severity::Warning, code, message, remedy: None };
        let _ = news.send(AgentNews::Live { path: Vec::new(), live: Box::new(live) });
    })
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
        if at.path.is_empty() {
            at.tree.fill_pool(tells_low(&news));
        }
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
            stop_file: OnceLock::new(),
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

    /// For work that does not keep it.
    pub(super) fn weak(&self) -> Weak<Node> {
        self.me.clone()
    }

    /// The child with this name.
    pub(super) fn child(&self, name: &str) -> Result<Arc<Child>> {
        let child = self.children.lock().iter().find(|child| child.name() == name).cloned();
        child.ok_or_else(|| self.unknown(name))
    }

    /// The agent with this name, or with this path from the root or from this Session down. Names are unique in a tree.
    pub(super) fn find(&self, name: &str) -> Result<Named> {
        let own = self.at.path.len();
        let names: Vec<&str> = name.split('/').collect();
        let is_named = |path: &[String]| {
            let below = path.get(own..).unwrap_or_default();
            path == names || below == names || below.last().is_some_and(|last| last == name)
        };
        if let Some(child) = self.children.lock().iter().find(|child| is_named(&child.path)) {
            return Ok(Named::Child(Arc::clone(child)));
        }
        let below = self.below.lock().iter().find(|it| is_named(&it.path)).cloned();
        below.map(|it| Named::Below(Box::new(it))).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> Error {
        let names: Vec<String> = self.list().iter().map(|it| it.name().to_owned()).collect();
        let fix = match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => near.to_owned(),
            None if names.is_empty() => "spawn_agent to start one".to_owned(),
            None => format!("one of: {}", names.join(", ")),
        };
        Error::new(Code::NotFound, format!("there is no agent `{}`", name.escape_debug()), fix).with("input", name)
    }

    /// What an agent does that a child started, or one below it.
    pub(super) fn state_below(&self, path: &[String]) -> Option<AgentState> {
        self.below.lock().iter().find(|it| it.path == path).cloned()
    }

    /// The doors of the Session itself and of those above it, up to the root's: they stay open as long as these are held.
    pub(super) async fn doors_above(&self) -> Vec<Handle> {
        let mut doors = Vec::new();
        let mut at = self.at.child.clone();
        while let Some(child) = at {
            let door = child.door.lock().await;
            doors.extend(door.as_ref().and_then(door::WeakHandle::upgrade));
            drop(door);
            at = child.parent.clone();
        }
        doors
    }

    // ─── To the parent ───

    /// Has the parent record this, and returns when it is in the Log.
    pub(super) async fn record(&self, event: AgentEvent) -> Result<()> {
        let (reply, recorded) = oneshot::channel();
        let closed = || Error::new(Code::SessionStartFailed, "the session has closed", "open it again");
        let news = AgentNews::Record { event: Box::new(event), reply };
        self.news.send(news).map_err(|_| closed())?;
        answer_of(recorded, self.news.closed()).await.unwrap_or_else(|| Err(closed()))
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
                drop(below);
                self.changed.notify_waiters();
            }
        }
        let _ = self.news.send(AgentNews::Live { path, live: Box::new(live) });
    }

    pub(super) fn publish(&self, state: AgentState) {
        self.send_live(state.path.clone(), Live::AgentChanged(Box::new(state)));
    }

    /// A Turn of a child has ended: the parent records it, and those who wait hear of it.
    pub(super) fn ended(self: Arc<Node>, child: Arc<Child>, result: AgentResult) -> impl Future<Output = ()> + Send {
        // A decision that comes before the files are offered counts as well.
        let decided = child.adoptions.decided.subscribe();
        async move { self.end(&child, result, decided).await }
    }

    async fn end(&self, child: &Arc<Child>, mut result: AgentResult, decided: watch::Receiver<u64>) {
        child.place.leave();
        result.isolation = child.isolation;
        if child.isolation == Isolation::Copy {
            let (base, root, own) = (self.base.0.clone(), self.at.tree.root.clone(), Arc::clone(child));
            let links = off_loop(move || Ok(copies::new_links(&base, &root, &own))).await.unwrap_or_default();
            if !links.is_empty() {
                child.note(&format!("symlinks that it made in its copy are not adopted: {}", listed(&links)));
            }
        }
        result.note = child.notes();
        let recorded = self.record(AgentEvent::Ended(Box::new(result.clone()))).await;
        if let Err(error) = recorded {
            tracing::warn!(agent = child.name(), "the end of an agent was not recorded: {}", error.message);
        }
        if !*child.adoptions.waits_for_step.lock() {
            // What was not written waits, and its error is in the diagnostics.
            let _ = self.offer(child, &mut result, decided).await;
        }
        let order = child.order.lock().clone();
        if order.by == OrderedBy::Parent && !order.is_awaited && order.waiting == 0 {
            // The report is sent before the state says that the agent has ended: a reader of the state must not miss it.
            let _ = self.news.send(AgentNews::Report(Box::new(result.clone())));
        }
        let state = child.change(|state| {
            state.status = result.status;
            state.waiting_for = None;
            state.doing.clear();
            state.took_ms = Some(result.duration_ms);
        });
        let _ = child.ended.send_replace(Some(Arc::new(result)));
        self.publish(state);
        self.changed.notify_waiters();
    }

    // ─── Stopping ───

    pub(super) async fn stop_some(self: Arc<Node>, which: Stop) {
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

/// An agent that a name means.
pub(super) enum Named {
    Child(Arc<Child>),
    /// One that a child started, or one below it.
    Below(Box<AgentState>),
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
        let task = task::spawn(async move {
            let started = node.start(order).await;
            drop(starting);
            started
        });
        async move { task.await.unwrap_or_else(|e| Err(panicked(&e.to_string()))) }.boxed()
    }

    fn free_name(&self, wished: &str) -> String {
        self.at.tree.free_name(wished)
    }

    fn wait(
        &self,
        names: Vec<String>,
        until: Until,
        within: Option<Duration>,
    ) -> BoxFuture<'static, Result<Vec<Seen>>> {
        self.shared().wait_for(names, until, within).boxed()
    }

    fn tell(&self, name: &str, how: Telling, text: String, by: OrderedBy) -> BoxFuture<'static, Result<AgentState>> {
        self.shared().say(name.to_owned(), how, text, by).boxed()
    }

    fn let_go(&self, name: &str) {
        if let Ok(child) = self.child(name) {
            child.order.lock().is_awaited = false;
        }
    }

    fn list(&self) -> Vec<AgentState> {
        let mut all: Vec<AgentState> = self.children.lock().iter().map(|child| child.state()).collect();
        all.extend(self.below.lock().iter().cloned());
        all
    }

    fn again(&self, name: &str, order: Order) -> BoxFuture<'static, Result<AgentState>> {
        self.shared().next_round(name.to_owned(), order).boxed()
    }

    fn workspace_of(&self, name: &str) -> Result<Arc<Workspace>> {
        self.files_of(name)
    }

    fn settle_files(&self, name: &str, how: Settle) -> BoxFuture<'static, Result<Option<Adoption>>> {
        self.shared().settle_step(name.to_owned(), how).boxed()
    }

    fn usual(&self, roles: &[context::roles::Role]) -> Usual {
        let settings = self.settings.lock().clone();
        self.base.0.usual((&settings.provider, &settings.model), roles)
    }

    fn stop(&self, which: Stop) -> BoxFuture<'static, ()> {
        self.shared().stop_some(which).boxed()
    }

    fn transcript(&self, name: &str) -> BoxFuture<'static, Result<String>> {
        let (node, name) = (self.shared(), name.to_owned());
        async move {
            let session = match node.find(&name)? {
                Named::Child(child) if child.unbegun.lock().is_some() => return Err(child.not_begun()),
                Named::Child(child) => child.session.clone(),
                Named::Below(state) => SessionId::parse(&state.session_id)?,
            };
            let path = node.base.0.place(&session).log();
            let read = task::spawn_blocking(move || log::read(&path).map(|it| transcript(&it.entries)));
            read.await.unwrap_or_else(|e| Err(panicked(&e.to_string())))
        }
        .boxed()
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
}

impl Children for Node {
    fn pass(&self, path: &[String], input: Input) -> BoxFuture<'static, Result<Accepted>> {
        self.shared().pass_on(path.to_vec(), input).boxed()
    }

    fn open(&self, path: &[String]) -> BoxFuture<'static, Result<Handle>> {
        self.shared().open_path(path.to_vec()).boxed()
    }

    fn adopt(&self, name: &str, options: RestoreOptions, later: bool) -> BoxFuture<'static, Result<()>> {
        self.shared().decide_files(name.to_owned(), options, later).boxed()
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

    fn stop_asking(&self) {
        self.asks.store(false, Ordering::Relaxed);
        let node = self.shared();
        node.children.lock().iter().for_each(|child| child.adoptions.decided.send_modify(|times| *times += 1));
        task::spawn(async move {
            let open: Vec<Arc<Child>> = node.children.lock().iter().filter(|child| child.is_open()).cloned().collect();
            for child in open {
                if let Ok(Opened::Already(door)) = node.door_of(&child).await {
                    door.send(Input::StopAsking).await;
                }
            }
        });
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
            self.at.tree.begin_turn(tells_low(&self.news));
        }
    }
}
