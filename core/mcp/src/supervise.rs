//! One server: cold until it is needed, started once for all who wait, stopped with everything that it started.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::Shared;
use parking_lot::Mutex;
use secrecy::SecretString;
use tokio::process::Command;
use tokio::sync::{Semaphore, oneshot, watch};

use super::catalog::{Definition, MAX_TOOLS, Pins};
use super::client::{Begin, Client, Fault};
use super::process::{Process, Stderr};
use super::prompts::Prompt;
use super::secrets::Secrets;
use process::{Deaths, Stopping};
use protocol::error::{Code, Error, Result};
use protocol::remedy::{McpNeed, Remedy};
use protocol::servers::ServerPhase;
use text::clean::without_hidden;

mod requests; // what a running server is asked

/// The most servers that start at the same time.
const STARTS_AT_ONCE: usize = 4;
/// The most bytes of what a server says about itself.
const MAX_INSTRUCTIONS: usize = 8 << 10;
/// The most reasons that are kept for tools that cannot be offered.
const MAX_LEFT_OUT: usize = 64;

/// How a server is reached.
pub(super) enum Launch {
    /// A program, with its environment and folder set.
    Program(Box<dyn Fn() -> io::Result<Command> + Send + Sync>),
    /// A URL.
    Http(Box<super::http::Endpoint>),
}

/// One server of a workspace.
pub(super) struct Server {
    pub(super) name: String,
    launch_hash: String,
    launch: Launch,
    start_limit: Duration,
    /// How it began when its tools were accepted.
    remembers: Option<Begin>,
    secrets: Secrets,
    stopping: Stopping,
    starts: Arc<Semaphore>,
    state: Mutex<State>,
    deaths: Deaths,
    used: Mutex<Instant>,
    /// How many callers use it now.
    busy: AtomicUsize,
    pub(super) stderr: Arc<Stderr>,
    news: watch::Sender<u64>,
}

/// What a server has from its workspace.
#[derive(Clone)]
pub(super) struct Around {
    pub(super) stopping: Stopping,
    /// At most so many servers start at the same time.
    pub(super) starts: Arc<Semaphore>,
    pub(super) news: watch::Sender<u64>,
    /// How the server began when its tools were accepted.
    pub(super) remembers: Option<Begin>,
}

/// While it exists, a server is not stopped for having nothing to do.
pub(super) struct Busy(Arc<Server>);

impl Busy {
    fn new(server: &Arc<Server>) -> Busy {
        server.busy.fetch_add(1, Ordering::SeqCst);
        Busy(Arc::clone(server))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        *self.0.used.lock() = Instant::now();
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

type Starting = Shared<Pin<Box<dyn Future<Output = Result<Arc<Running>>> + Send>>>;

enum State {
    Cold,
    Starting {
        done: Starting,
        /// The start ends when this is dropped.
        wanted: oneshot::Sender<()>,
        /// When it begins: a server that died again and again waits.
        begins: Instant,
    },
    Running(Arc<Running>),
}

/// A server that runs.
pub(super) struct Running {
    client: Client,
    /// What it offered when it was last asked.
    offered: Mutex<Arc<Pins>>,
    /// Tools that it has and that cannot be offered, and why.
    pub(super) left_out: Mutex<Vec<String>>,
    pub(super) process: Option<Process>,
    /// The token of the sign-in with which it was reached.
    token: Option<SecretString>,
}

impl Server {
    pub(super) fn new(
        name: &str,
        launch_hash: &str,
        launch: Launch,
        start_limit: Duration,
        secrets: Secrets,
        around: Around,
    ) -> Server {
        let Around { stopping, starts, news, remembers } = around;
        Server {
            name: name.to_owned(),
            launch_hash: launch_hash.to_owned(),
            launch,
            start_limit,
            remembers,
            secrets,
            stopping,
            starts,
            state: Mutex::new(State::Cold),
            deaths: Deaths::default(),
            used: Mutex::new(Instant::now()),
            busy: AtomicUsize::new(0),
            stderr: Arc::default(),
            news,
        }
    }

    /// At most this many servers start at the same time.
    pub(super) fn starts() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(STARTS_AT_ONCE))
    }

    pub(super) fn phase(&self) -> ServerPhase {
        match &*self.state.lock() {
            State::Starting { .. } => ServerPhase::Starting,
            State::Running(it) if it.is_alive() => ServerPhase::Running,
            State::Running(_) | State::Cold if self.deaths.next_start().is_err() => ServerPhase::Failed,
            State::Running(_) | State::Cold => ServerPhase::Cold,
        }
    }

    /// What a user who waits for the server may want to know; empty where it runs.
    pub(super) fn start_words(&self) -> String {
        let begins = match &*self.state.lock() {
            State::Starting { begins, .. } => *begins,
            State::Running(_) | State::Cold => return String::new(),
        };
        let name = &self.name;
        match (begins > Instant::now(), self.stderr.last_line()) {
            (true, _) => format!("{name} has ended again and again; it starts again {}", self.deaths.wait_words()),
            (false, Some(line)) => format!("{name} starts: {line}"),
            (false, None) => format!("{name} starts"),
        }
    }

    /// How long the next start still waits, because the server died again and again.
    pub(super) fn waits(&self) -> Option<Duration> {
        match &*self.state.lock() {
            State::Starting { begins, .. } => {
                Some(begins.saturating_duration_since(Instant::now())).filter(|it| !it.is_zero())
            }
            State::Running(_) | State::Cold => None,
        }
    }

    pub(super) fn stderr(&self) -> String {
        self.stderr.text()
    }

    pub(super) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The server as it runs now; `None` if it does not.
    pub(super) fn running(&self) -> Option<Arc<Running>> {
        match &*self.state.lock() {
            State::Running(it) if it.is_alive() => Some(Arc::clone(it)),
            State::Cold | State::Starting { .. } | State::Running(_) => None,
        }
    }

    /// Forgets how often it died, because the user wants it to start.
    pub(super) fn forgive(&self) {
        self.deaths.forget();
    }

    /// The running server, which does not become idle before [`Busy`] is dropped. It is started if it does not run, once for
    /// all callers.
    ///
    /// # Errors
    /// `MCP_START_FAILED`, `MCP_AUTH_REQUIRED`.
    pub(super) async fn connected(self: &Arc<Self>) -> Result<(Arc<Running>, Busy)> {
        // Before the state is looked at: what looks for idle servers holds the state and reads the count.
        let busy = Busy::new(self);
        let starting = {
            let mut state = self.state.lock();
            match &*state {
                State::Running(it) if it.is_alive() => return Ok((Arc::clone(it), busy)),
                State::Starting { done, .. } => done.clone(),
                State::Cold | State::Running(_) => {
                    if let State::Running(dead) = std::mem::replace(&mut *state, State::Cold) {
                        self.give_up(dead);
                    }
                    let wait = self.deaths.next_start().map_err(|deaths| {
                        let message = format!("the MCP server {} ended {deaths} times in five minutes", self.name);
                        let message = format!("{message}; its last words: {}", self.last_words());
                        let fix = Remedy::mcp(&self.name, McpNeed::Restart);
                        Error::new(Code::McpStartFailed, message, fix)
                    })?;
                    let this = Arc::clone(self);
                    let (wanted, unwanted) = oneshot::channel();
                    // On a task of its own, so that a caller who stops waiting does not stop the start for the others.
                    let task = task::spawn(async move { this.start(wait, unwanted).await });
                    let done: Starting =
                        async move { task.await.unwrap_or_else(|e| Err(call::tool::panicked(&e.to_string()))) }
                            .boxed()
                            .shared();
                    *state = State::Starting { done: done.clone(), wanted, begins: Instant::now() + wait };
                    done
                }
            }
        };
        self.tell();
        Ok((starting.await?, busy))
    }

    /// Starts the server, unless a stop ends that before.
    async fn start(self: Arc<Self>, wait: Duration, mut unwanted: oneshot::Receiver<()>) -> Result<Arc<Running>> {
        let began = tokio::select! {
            biased;
            _ = &mut unwanted => return Err(self.start_failed("it was stopped before it was ready")),
            began = self.try_start(wait) => began.map(Arc::new),
        };
        {
            let mut state = self.state.lock();
            // Only the state holds the other end.
            if matches!(unwanted.try_recv(), Err(oneshot::error::TryRecvError::Closed)) {
                return Err(self.start_failed("it was stopped before it was ready"));
            }
            match &began {
                Ok(running) => *state = State::Running(Arc::clone(running)),
                // The user may sign in at any time.
                Err(e) if e.code == Code::McpAuthRequired => *state = State::Cold,
                Err(_) => {
                    *state = State::Cold;
                    self.deaths.add();
                }
            }
        }
        if let Ok(running) = &began {
            self.watch(Arc::clone(running));
        }
        self.tell();
        began
    }

    async fn try_start(&self, wait: Duration) -> Result<Running> {
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
            self.tell();
        }
        let _place = self.starts.acquire().await;
        match tokio::time::timeout(self.start_limit, self.begin()).await {
            Ok(began) => began,
            Err(_) => Err(self.start_failed(&format!("it was not ready within {} s", self.start_limit.as_secs()))),
        }
    }

    /// Ends what is left of a server with which pixir cannot speak any more. It counts as a death.
    fn give_up(&self, dead: Arc<Running>) {
        if dead.process.is_some() {
            self.deaths.add();
        }
        task::spawn(async move { dead.end_after_its_last_moment().await });
    }

    /// Notes when the process ends, or closes its stdout; then nothing of it is left running.
    fn watch(self: &Arc<Self>, running: Arc<Running>) {
        let this = Arc::downgrade(self);
        task::spawn(async move {
            let Some(process) = &running.process else { return };
            process.gone().await;
            let Some(this) = this.upgrade() else { return };
            {
                let mut state = this.state.lock();
                // What `stop` has ended is not in the state any more.
                let is_now = matches!(&*state, State::Running(it) if Arc::ptr_eq(it, &running));
                if !is_now {
                    return;
                }
                *state = State::Cold;
                this.deaths.add();
            }
            this.tell();
            running.end_after_its_last_moment().await;
        });
    }

    /// Starts the program, and begins to speak with it.
    async fn begin_program(
        &self,
        command: &(dyn Fn() -> io::Result<Command> + Send + Sync),
        begin: Begin,
    ) -> Result<(std::result::Result<Client, Fault>, Process)> {
        let started =
            command().and_then(|it| Process::start(it, &self.name, &self.stderr, &self.secrets, &self.stopping));
        let (process, pipes) = started.map_err(|e| self.start_failed(&format!("it cannot be started: {e}")))?;
        let client = tokio::select! {
            client = Client::over_pipes(&self.name, &self.secrets, pipes, begin) => client,
            () = process.gone() => Err(Fault::Closed),
        };
        Ok((client, process))
    }

    async fn begin(&self) -> Result<Running> {
        let (client, process, token) = match &self.launch {
            Launch::Program(command) => {
                let first = self.remembers.unwrap_or(Begin::Initialize);
                let (client, process) = match self.begin_program(command, first).await? {
                    // It answers, so what it does not know is this way to begin. It gets a process of its own for the other.
                    (Err(Fault::OtherEra(_)), process) if first == Begin::Initialize => {
                        process.stop().await;
                        self.begin_program(command, first.other()).await?
                    }
                    begun => begun,
                };
                match client {
                    Ok(client) => (client, Some(process), None),
                    Err(fault) => return Err(self.not_begun(&fault, Some(&process)).await),
                }
            }
            Launch::Http(endpoint) => {
                match endpoint.connect(&self.name, self.remembers.unwrap_or(Begin::Discover)).await {
                    Ok((client, token)) => (client, None, token),
                    Err(fault) => return Err(self.not_begun(&fault, None).await),
                }
            }
        };
        let running = Running { client, offered: Mutex::default(), left_out: Mutex::default(), process, token };
        let listed = tokio::select! {
            biased;
            listed = self.list(&running) => listed,
            () = running.gone() => Err(Fault::Closed),
        };
        match listed {
            Ok(()) => Ok(running),
            Err(fault) => Err(self.not_begun(&fault, running.process.as_ref()).await),
        }
    }

    /// Asks the server for its tools.
    async fn list(&self, running: &Running) -> Result<(), Fault> {
        let _ = running.client.take_list_changed();
        let listed = running.client.tools().await?;
        let (mut tools, mut left_out, mut more) = (Vec::new(), listed.left_out, !listed.is_whole);
        for tool in &listed.items {
            match Definition::read(&self.secrets.masked_json(tool)) {
                Ok(it) if tools.len() < MAX_TOOLS => tools.push(it),
                Ok(_) => more = true,
                Err(why) => left_out.push(why),
            }
        }
        tools.sort_by(|a: &Definition, b| a.name.cmp(&b.name));
        tools.dedup_by(|a, b| a.name == b.name);
        if left_out.len() > MAX_LEFT_OUT {
            let others = left_out.len() - MAX_LEFT_OUT;
            left_out.truncate(MAX_LEFT_OUT);
            left_out.push(format!("{others} others"));
        }
        if more {
            let most = tools.len();
            left_out.insert(0, format!("the server lists more than the {most} tools that pixir reads of it"));
        }
        let prompts = Prompt::read(
            &running.client.prompts().await.iter().map(|it| self.secrets.masked_json(it)).collect::<Vec<_>>(),
        );
        *running.left_out.lock() = left_out;
        let mut instructions = self.secrets.masked(&without_hidden(&running.client.about.instructions));
        if instructions.len() > MAX_INSTRUCTIONS {
            instructions.truncate(instructions.floor_char_boundary(MAX_INSTRUCTIONS - '…'.len_utf8()));
            instructions.push('…');
        }
        *running.offered.lock() = Arc::new(Pins {
            server: self.name.clone(),
            launch: self.launch_hash.clone(),
            version: running.client.about.version.clone(),
            instructions,
            tools,
            prompts,
            has_resources: running.client.about.has_resources,
        });
        Ok(())
    }

    /// What the server offers now. It is asked again where it said that its list has changed.
    ///
    /// # Errors
    /// As [`Server::call`].
    pub(super) async fn offered(&self, running: &Running) -> Result<Arc<Pins>> {
        if running.client.take_list_changed() {
            let listed = tokio::select! {
                biased;
                listed = tokio::time::timeout(self.start_limit, self.list(running)) => {
                    listed.unwrap_or(Err(Fault::TimedOut(self.start_limit)))
                }
                () = running.gone() => Err(Fault::Closed),
            };
            if let Err(fault) = listed {
                return Err(self.failed(fault, running, "tools/list").await);
            }
            self.tell();
        }
        Ok(Arc::clone(&running.offered.lock()))
    }

    /// Ends the server: it is told first, and then stopped with everything that it started. A start is ended at once.
    pub(super) async fn stop(&self) {
        let before = std::mem::replace(&mut *self.state.lock(), State::Cold);
        match before {
            State::Running(running) => running.end().await,
            State::Starting { done, wanted, .. } => {
                drop(wanted);
                let _ = done.await;
                // What was started so far is ended on a task of its own.
                self.stopping.finished().await;
            }
            State::Cold => {}
        }
        self.tell();
    }

    /// Ends the server if nothing has used it for this long.
    pub(super) async fn stop_if_idle(&self, limit: Duration) {
        let running = {
            let mut state = self.state.lock();
            let State::Running(running) = &*state else { return };
            if self.busy.load(Ordering::SeqCst) > 0 || self.used.lock().elapsed() < limit {
                return;
            }
            let running = Arc::clone(running);
            *state = State::Cold;
            running
        };
        running.end().await;
        self.tell();
    }

    fn tell(&self) {
        self.news.send_modify(|n| *n += 1);
    }
}

impl Running {
    fn is_alive(&self) -> bool {
        !self.client.is_closed() && self.process.as_ref().is_none_or(Process::is_alive)
    }

    /// Returns when the process has ended, or has closed its stdout. Then what it sent before has been read.
    async fn gone(&self) {
        match &self.process {
            Some(process) => process.gone().await,
            None => std::future::pending().await,
        }
    }

    /// Tells the server to end, and ends what it started.
    async fn end(&self) {
        self.client.close().await;
        if let Some(process) = &self.process {
            process.stop().await;
        }
    }

    /// Ends what is left of a server that says nothing any more.
    async fn end_after_its_last_moment(&self) {
        if let Some(process) = &self.process {
            process.last_moment().await;
        }
        self.end().await;
    }

    pub(super) fn dropped_lines(&self) -> u64 {
        self.process.as_ref().map_or(0, Process::dropped_lines)
    }

    /// What it offered when it was last asked.
    pub(super) fn offered(&self) -> Arc<Pins> {
        Arc::clone(&self.offered.lock())
    }
}
