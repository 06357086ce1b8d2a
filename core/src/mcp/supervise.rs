//! One server: cold until it is needed, started once for all who wait, stopped with everything that it started.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::Shared;
use parking_lot::Mutex;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, mpsc, watch};

use super::catalog::{Definition, MAX_TOOLS, Pins};
use super::client::{Answer, Begin, Client, Fault};
use super::lines;
use super::secrets::Secrets;
use crate::call::FormRequest;
use crate::process::{Ended, Group, Stopping};
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::remedy::{McpNeed, Remedy, ServerSecret};
use crate::protocol::servers::ServerPhase;
use crate::text::clean::clean;
use crate::text::human::on_one_line;

/// How long a server may take to end after its stdin is closed.
const GRACE: Duration = Duration::from_millis(700);
/// How much of what a server prints on stderr is kept.
const MAX_STDERR: usize = 64 << 10;
/// Waits before the next start, by the number of deaths before it.
const WAITS: [Duration; 4] = [Duration::ZERO, Duration::ZERO, Duration::from_secs(1), Duration::from_secs(4)];
/// Deaths that are older do not count.
const MEMORY: Duration = Duration::from_secs(300);
/// After so many deaths a server is not started again unless the user says so.
const MOST_DEATHS: usize = 4;
/// The most servers that start at the same time.
const STARTS_AT_ONCE: usize = 4;

/// How a server is reached.
pub(super) enum Launch {
    /// A program, with its environment and folder set.
    Program(Box<dyn Fn() -> Command + Send + Sync>),
    /// A URL.
    Http(super::http::Endpoint),
}

/// One server of a workspace.
pub(super) struct Server {
    pub(super) name: String,
    launch_hash: String,
    launch: Launch,
    start_limit: Duration,
    secrets: Secrets,
    stopping: Stopping,
    starts: Arc<Semaphore>,
    state: Mutex<State>,
    /// When it died, newest last.
    deaths: Mutex<VecDeque<Instant>>,
    used: Mutex<Instant>,
    stderr: Arc<Stderr>,
    news: watch::Sender<u64>,
}

type Starting = Shared<Pin<Box<dyn Future<Output = Result<Arc<Running>>> + Send>>>;

enum State {
    Cold,
    Starting(Starting),
    Running(Arc<Running>),
}

/// A server that runs.
pub(super) struct Running {
    client: Client,
    /// What it offered when it was last asked.
    offered: Mutex<Arc<Pins>>,
    /// Tools that it has and that cannot be offered, and why.
    pub(super) left_out: Mutex<Vec<String>>,
    process: Option<Process>,
}

/// The process of a server.
struct Process {
    ended: watch::Receiver<Option<Ended>>,
    group: Mutex<Option<Group>>,
    /// Lines on stdout that were no messages.
    dropped: Arc<AtomicU64>,
}

/// The last bytes that a server printed on stderr, without known secrets.
#[derive(Debug, Default)]
pub(super) struct Stderr(Mutex<Vec<u8>>);

impl Stderr {
    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock();
        kept.extend_from_slice(bytes);
        let over = kept.len().saturating_sub(MAX_STDERR);
        kept.drain(..over);
    }

    /// The whole text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }

    fn last_line(&self) -> Option<String> {
        let text = self.text();
        text.lines().rev().map(plain_line).find(|it| !it.trim().is_empty())
    }
}

impl Server {
    pub(super) fn new(
        (name, launch_hash): (&str, &str),
        launch: Launch,
        start_limit: Duration,
        secrets: Secrets,
        (stopping, starts, news): (Stopping, Arc<Semaphore>, watch::Sender<u64>),
    ) -> Server {
        Server {
            name: name.to_owned(),
            launch_hash: launch_hash.to_owned(),
            launch,
            start_limit,
            secrets,
            stopping,
            starts,
            state: Mutex::new(State::Cold),
            deaths: Mutex::default(),
            used: Mutex::new(Instant::now()),
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
            State::Starting(_) => ServerPhase::Starting,
            State::Running(it) if it.is_alive() => ServerPhase::Running,
            State::Running(_) | State::Cold if self.recent_deaths() >= MOST_DEATHS => ServerPhase::Failed,
            State::Running(_) | State::Cold => ServerPhase::Cold,
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
            State::Cold | State::Starting(_) | State::Running(_) => None,
        }
    }

    pub(super) fn idle_for(&self) -> Duration {
        self.used.lock().elapsed()
    }

    fn recent_deaths(&self) -> usize {
        let mut deaths = self.deaths.lock();
        deaths.retain(|it| it.elapsed() < MEMORY);
        deaths.len()
    }

    /// Forgets how often it died, because the user wants it to start.
    pub(super) fn forgive(&self) {
        self.deaths.lock().clear();
    }

    /// The running server; it is started if it does not run, once for all callers.
    ///
    /// # Errors
    /// `MCP_START_FAILED`, `MCP_AUTH_REQUIRED`.
    pub(super) async fn connected(self: &Arc<Self>) -> Result<Arc<Running>> {
        *self.used.lock() = Instant::now();
        let starting = {
            let mut state = self.state.lock();
            match &*state {
                State::Running(it) if it.is_alive() => return Ok(Arc::clone(it)),
                State::Starting(starting) => starting.clone(),
                State::Cold | State::Running(_) => {
                    if let State::Running(dead) = &*state {
                        self.give_up(Arc::clone(dead));
                    }
                    let deaths = self.recent_deaths();
                    if deaths >= MOST_DEATHS {
                        let message = format!("the MCP server {} ended {deaths} times in five minutes", self.name);
                        let message = format!("{message}; its last words: {}", self.last_words());
                        let fix = Remedy::mcp(&self.name, McpNeed::Restart);
                        return Err(Error::new(Code::McpStartFailed, message, fix));
                    }
                    let this = Arc::clone(self);
                    // On a task of its own, so that a caller who stops waiting does not stop the start for the others.
                    let task = tokio::spawn(async move { this.start(WAITS[deaths.min(WAITS.len() - 1)]).await });
                    let starting: Starting =
                        async move { task.await.unwrap_or_else(|e| Err(crate::call::tool::panicked(&e.to_string()))) }
                            .boxed()
                            .shared();
                    *state = State::Starting(starting.clone());
                    starting
                }
            }
        };
        self.tell();
        starting.await
    }

    async fn start(self: Arc<Self>, wait: Duration) -> Result<Arc<Running>> {
        tokio::time::sleep(wait).await;
        let place = Arc::clone(&self.starts).acquire_owned().await;
        let began = match tokio::time::timeout(self.start_limit, self.begin()).await {
            Ok(began) => began,
            Err(_) => Err(self.start_failed(&format!("it was not ready within {} s", self.start_limit.as_secs()))),
        };
        drop(place);
        let mut state = self.state.lock();
        let began = began.map(Arc::new);
        match &began {
            Ok(running) => *state = State::Running(Arc::clone(running)),
            Err(_) => {
                *state = State::Cold;
                self.deaths.lock().push_back(Instant::now());
            }
        }
        drop(state);
        if let Ok(running) = &began {
            self.watch(Arc::clone(running));
        }
        self.tell();
        began
    }

    /// Ends what is left of a server with which pixir cannot speak any more. It counts as a death.
    fn give_up(&self, dead: Arc<Running>) {
        if dead.process.as_ref().is_some_and(|it| it.ended.borrow().is_none()) {
            self.deaths.lock().push_back(Instant::now());
        }
        tokio::spawn(async move {
            if let Some(process) = &dead.process {
                process.stop().await;
            }
        });
    }

    /// Notes when the process ends.
    fn watch(self: &Arc<Self>, running: Arc<Running>) {
        let Some(mut ended) = running.process.as_ref().map(|it| it.ended.clone()) else { return };
        let this = Arc::downgrade(self);
        tokio::spawn(async move {
            let _ = ended.wait_for(Option::is_some).await;
            let Some(this) = this.upgrade() else { return };
            let mut state = this.state.lock();
            // What `stop` has ended is not in the state any more.
            if matches!(&*state, State::Running(it) if Arc::ptr_eq(it, &running)) {
                *state = State::Cold;
                this.deaths.lock().push_back(Instant::now());
            }
            drop(state);
            running.forget_process();
            this.tell();
        });
    }

    async fn begin(&self) -> Result<Running> {
        let (client, process) = match &self.launch {
            Launch::Program(command) => {
                let (child, process, io) = self.spawn(command())?;
                let ended = self.reap(child);
                let process = Process { ended, ..process };
                let mut over = process.ended.clone();
                let client = tokio::select! {
                    client = Client::connect(&self.name, &self.secrets, io, Begin::Initialize) => client,
                    _ = over.wait_for(Option::is_some) => Err(Fault::Closed),
                };
                match client {
                    Ok(client) => (client, Some(process)),
                    Err(fault) => return Err(self.not_begun(&fault, Some(&process)).await),
                }
            }
            Launch::Http(endpoint) => match endpoint.connect(&self.name).await {
                Ok(client) => (client, None),
                Err(fault) => return Err(self.not_begun(&fault, None).await),
            },
        };
        let running = Running { client, offered: Mutex::default(), left_out: Mutex::default(), process };
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

    fn spawn(
        &self,
        mut command: Command,
    ) -> Result<(Child, Process, AsyncRwTransport<rmcp::RoleClient, tokio::io::DuplexStream, tokio::process::ChildStdin>)>
    {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, group) = Group::start(command, &self.stopping)
            .map_err(|e| self.start_failed(&format!("it cannot be started: {e}")))?;
        let piped = "all three are piped";
        let (stdin, stdout) = (child.stdin.take().expect(piped), child.stdout.take().expect(piped));
        let mut stderr = child.stderr.take().expect(piped);
        let (kept, secrets, name) = (Arc::clone(&self.stderr), self.secrets.clone(), self.name.clone());
        tokio::spawn(async move {
            let mut chunk = vec![0; 8 << 10];
            while let Ok(n) = stderr.read(&mut chunk).await {
                if n == 0 {
                    return;
                }
                let text = secrets.masked(&String::from_utf8_lossy(&chunk[..n]));
                tracing::info!("MCP server {name}: {}", text.trim_end());
                kept.push(text.as_bytes());
            }
        });
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&dropped);
        let (to, from) = tokio::io::duplex(64 << 10);
        tokio::spawn(async move {
            if let Err(e) = lines::pump(stdout, to, &counter).await {
                tracing::debug!("read from an MCP server: {e}");
            }
        });
        let process = Process { ended: watch::channel(None).1, group: Mutex::new(Some(group)), dropped };
        Ok((child, process, AsyncRwTransport::new_client(from, stdin)))
    }

    /// Waits for the end of the process on a task of its own.
    fn reap(&self, mut child: Child) -> watch::Receiver<Option<Ended>> {
        let (tell, ended) = watch::channel(None);
        tokio::spawn(async move {
            let status = child.wait().await.unwrap_or_default();
            let _ = tell.send(Some(Ended::Exited(status)));
        });
        ended
    }

    /// The error of a start, after everything that it started has ended.
    async fn not_begun(&self, fault: &Fault, process: Option<&Process>) -> Error {
        let exit = match process {
            Some(process) => {
                // Its last words may follow the end of its stdout.
                let exit = process.ended_within(Duration::from_millis(300)).await;
                process.stop().await;
                exit
            }
            None => None,
        };
        let why = match (fault, exit) {
            (Fault::NeedsLogin, _) => return self.needs_login(),
            (Fault::Closed, Some(Ended::Exited(status))) => exit_words(status),
            (Fault::Closed, _) => "it closed the connection".to_owned(),
            (Fault::Refused(why) | Fault::Odd(why) | Fault::TooLong(why), _) => {
                format!("it does not speak the protocol: {}", self.secrets.masked(&plain_line(why)))
            }
            (Fault::TimedOut(limit), _) => format!("it did not answer within {} s", limit.as_secs()),
            (Fault::Asks, _) => "it asks a question before anything was called".to_owned(),
        };
        self.start_failed(&why)
    }

    fn start_failed(&self, why: &str) -> Error {
        let words = self.stderr.last_line().map_or(String::new(), |it| format!("; its last words: {it}"));
        let fix = Remedy::mcp(&self.name, McpNeed::Test);
        Error::new(Code::McpStartFailed, format!("the MCP server {} did not start: {why}{words}", self.name), fix)
            .with("server", self.name.as_str())
    }

    fn needs_login(&self) -> Error {
        let message = format!("the MCP server {} wants a token", self.name);
        let fix = Remedy::steps([
            format!("name a header of [mcp.{}] in headers_from, such as Authorization = \"TOKEN\"", self.name).into(),
            Remedy::StoreSecret(Box::new(ServerSecret { server: self.name.clone(), variable: "TOKEN".to_owned() })),
        ]);
        Error::new(Code::McpAuthRequired, message, fix).with("server", self.name.as_str())
    }

    fn last_words(&self) -> String {
        self.stderr.last_line().unwrap_or_else(|| "none".to_owned())
    }

    /// Asks the server for its tools.
    async fn list(&self, running: &Running) -> Result<(), Fault> {
        let _ = running.client.take_list_changed();
        let listed = running.client.tools().await?;
        let (mut tools, mut left_out) = (Vec::new(), Vec::new());
        for tool in &listed {
            match Definition::read(&self.secrets.masked_json(tool)) {
                Ok(it) if tools.len() < MAX_TOOLS => tools.push(it),
                Ok(it) => left_out.push(format!("`{}`: the server has more than {MAX_TOOLS} tools", it.name)),
                Err(why) => left_out.push(why),
            }
        }
        tools.sort_by(|a: &Definition, b| a.name.cmp(&b.name));
        tools.dedup_by(|a, b| a.name == b.name);
        *running.left_out.lock() = left_out;
        *running.offered.lock() = Arc::new(Pins {
            server: self.name.clone(),
            launch: self.launch_hash.clone(),
            version: running.client.about.version.clone(),
            instructions: self.secrets.masked(&super::catalog::visible(&running.client.about.instructions)),
            tools,
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

    /// Calls a tool.
    ///
    /// # Errors
    /// `MCP_SERVER_EXITED`, `MCP_TIMEOUT`, `MCP_PROTOCOL`, `MCP_LIMIT`, `MCP_AUTH_REQUIRED`; what the server refuses is
    /// `MCP_PROTOCOL` too.
    pub(super) async fn call(
        &self,
        running: &Running,
        tool: &str,
        args: Map<String, Value>,
        limit: Duration,
        forms: Option<mpsc::Sender<FormRequest>>,
    ) -> Result<Answer> {
        let _listening = running.client.ears.listen(forms);
        *self.used.lock() = Instant::now();
        let answer = tokio::select! {
            biased;
            answer = running.client.call(tool, args, limit) => answer,
            () = running.gone() => Err(Fault::Closed),
        };
        *self.used.lock() = Instant::now();
        match answer {
            Ok(answer) => Ok(answer),
            Err(fault) => Err(self.failed(fault, running, tool).await),
        }
    }

    /// Reads a resource; without a URI, lists them.
    ///
    /// # Errors
    /// As [`Server::call`].
    pub(super) async fn read(&self, running: &Running, uri: &str, limit: Duration) -> Result<Answer> {
        *self.used.lock() = Instant::now();
        let answer = tokio::select! {
            biased;
            answer = running.client.read(uri, limit) => answer,
            () = running.gone() => Err(Fault::Closed),
        };
        *self.used.lock() = Instant::now();
        match answer {
            Ok(answer) => Ok(answer),
            Err(fault) => Err(self.failed(fault, running, "resources/read").await),
        }
    }

    async fn failed(&self, fault: Fault, running: &Running, tool: &str) -> Error {
        let name = &self.name;
        let error = match fault {
            Fault::Closed => {
                let exit = match &running.process {
                    // Its stdout may close a moment before it has ended.
                    Some(process) => process.ended_within(Duration::from_millis(300)).await,
                    None => None,
                };
                let how = match exit {
                    Some(Ended::Exited(status)) => exit_words(status),
                    Some(Ended::TimedOut) | None => "it closed the connection".to_owned(),
                };
                let message =
                    format!("the MCP server {name} ended during the call: {how}; last words: {}", self.last_words());
                let fix = "find out first whether the call took effect; the next call starts the server again";
                Error::new(Code::McpServerExited, message, fix)
            }
            Fault::TimedOut(limit) => {
                let message = format!("`{tool}` of the MCP server {name} did not answer within {} s", limit.as_secs());
                let fix = "ask for less at a time; the server was told that the call is cancelled, and lives on";
                Error::new(Code::McpTimeout, message, fix)
            }
            Fault::TooLong(why) => {
                let message = format!("the answer of `{tool}` of the MCP server {name} was dropped: {why}");
                Error::new(Code::McpLimit, message, "ask for less: a page, a filter, a smaller range")
            }
            Fault::Refused(why) => {
                let message =
                    format!("the MCP server {name} refused `{tool}`: {}", self.secrets.masked(&plain_line(&why)));
                Error::new(Code::McpProtocol, message, "check the arguments, or try another way")
            }
            Fault::Odd(why) => {
                let why = self.secrets.masked(&plain_line(&why));
                let message = format!("the MCP server {name} gave no valid answer to `{tool}`: {why}");
                Error::new(Code::McpProtocol, message, Remedy::mcp(name, McpNeed::Test))
            }
            Fault::NeedsLogin => self.needs_login(),
            Fault::Asks => {
                let message =
                    format!("`{tool}` of the MCP server {name} asks the user for something, and no user answers");
                Error::new(Code::InputRequired, message, "give it in the arguments if the tool takes it")
            }
        };
        error.with("server", name.as_str())
    }

    /// Ends the server: it is told first, and then stopped with everything that it started.
    pub(super) async fn stop(&self) {
        let before = std::mem::replace(&mut *self.state.lock(), State::Cold);
        let running = match before {
            State::Running(running) => Some(running),
            // It would run on without anyone to stop it.
            State::Starting(starting) => starting.await.ok(),
            State::Cold => None,
        };
        if matches!(&*self.state.lock(), State::Running(_)) {
            *self.state.lock() = State::Cold;
        }
        if let Some(running) = running {
            running.client.close().await;
            if let Some(process) = &running.process {
                process.stop().await;
            }
        }
        self.tell();
    }

    fn tell(&self) {
        self.news.send_modify(|n| *n += 1);
    }
}

impl Running {
    fn is_alive(&self) -> bool {
        !self.client.is_closed() && self.process.as_ref().is_none_or(|it| it.ended.borrow().is_none())
    }

    /// Returns when the process has ended. Then what it sent before has been read.
    async fn gone(&self) {
        match &self.process {
            Some(process) => {
                let _ = process.ended.clone().wait_for(Option::is_some).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            None => std::future::pending().await,
        }
    }

    /// The leader has ended; what it left behind is ended with the group.
    fn forget_process(&self) {
        if let Some(process) = &self.process {
            let group = process.group.lock().take();
            if let Some(group) = &group {
                group.leader_ended();
            }
            drop(group);
        }
    }

    pub(super) fn dropped_lines(&self) -> u64 {
        self.process.as_ref().map_or(0, |it| it.dropped.load(Ordering::Relaxed))
    }

    /// What it offered when it was last asked.
    pub(super) fn offered(&self) -> Arc<Pins> {
        Arc::clone(&self.offered.lock())
    }
}

impl Process {
    /// How it ended, if it does so within this time.
    async fn ended_within(&self, limit: Duration) -> Option<Ended> {
        let mut ended = self.ended.clone();
        let ended = tokio::time::timeout(limit, ended.wait_for(Option::is_some)).await;
        ended.ok().and_then(|it| it.ok().and_then(|it| *it))
    }

    /// Ends the process: its stdin is closed already, so a server that can end by itself does.
    async fn stop(&self) {
        let mut ended = self.ended.clone();
        let by_itself = tokio::time::timeout(GRACE, ended.wait_for(Option::is_some)).await.is_ok();
        let group = self.group.lock().take();
        if let Some(group) = group {
            if by_itself {
                group.leader_ended();
            }
            group.stop().await;
        }
    }
}

/// Words of a server as one line that cannot control the terminal.
fn plain_line(text: &str) -> String {
    let mut line = on_one_line(clean(text).trim());
    if line.len() > 300 {
        line.truncate(line.floor_char_boundary(300));
        line.push('…');
    }
    line
}

fn exit_words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with {code}"),
        (None, Some(signal)) => format!("signal {signal} ended it"),
        (None, None) => "it ended".to_owned(),
    }
}
