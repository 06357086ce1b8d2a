//! The Presenter of editors: the Agent Client Protocol, version 1, on stdin and stdout. Requests become Inputs, Events become
//! updates; every fact is the Session's.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pixir_core::text::json_rpc::{Message, notification};
use pixir_core::{Code, Error, Result};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

use crate::cli::{Cli, Signals, block_on, spawn};
use crate::headless::host::Lines;
use crate::json_rpc::{Client, Failure, Reply, hung_up, last_written, take_stdout};

mod command; // what a client asks of a Session
mod content; // a prompt's blocks as a message
mod options; // mode, model, effort, toolset
mod projection; // Events as updates
mod prompts; // prompts that have no response yet
pub(crate) mod question; // approvals and forms
mod servers; // MCP servers of the client
mod session; // one open Session
mod slash; // slash commands
mod workspaces; // the Harness of each folder, and keys

use command::{Command, Opening};
use session::Attached;
use workspaces::{Opened, Workspaces};

/// The version of the protocol that is served, whatever is asked for.
const VERSION: u32 = 1;
/// How long pixir closes its Sessions after the client has gone.
const CLOSING: Duration = Duration::from_millis(800);
/// The most requests outside of Sessions that are carried out at the same time.
const MOST_REQUESTS: usize = 64;
/// The most Sessions of a client that are open at the same time.
const MOST_SESSIONS: usize = 64;
/// The Sessions of one page of the list.
const PAGE: usize = 50;

/// What the client can show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Abilities {
    notices: bool,
    compaction: bool,
    /// Output of commands as that of a terminal, by `_meta`.
    terminal_output: bool,
    forms: bool,
    /// Its buffers can be read and written, and the user wants changes repeated there.
    mirrors_writes: bool,
}

impl Abilities {
    fn of(params: &Value, mirror_writes: bool) -> Abilities {
        let client = &params["clientCapabilities"];
        Abilities {
            notices: client["session"]["notices"].is_object(),
            compaction: client["session"]["compaction"].is_object(),
            terminal_output: client["_meta"]["terminal_output"] == true,
            forms: client["elicitation"]["form"].is_object(),
            mirrors_writes: mirror_writes
                && client["fs"]["readTextFile"] == true
                && client["fs"]["writeTextFile"] == true,
        }
    }
}

/// What to do about a stdout that no client reads.
const FIX: &str = "start pixir acp from an editor, which reads its stdout";

/// Serves the client until it closes stdin, and returns the exit code.
pub(crate) fn run(cli: &Cli) -> Result<u8> {
    cli.start_diagnostics();
    let out = take_stdout(FIX)?;
    let (client, written) = Client::on(out, take_back);
    let agent = Agent(Arc::new(Shared {
        client,
        workspaces: Workspaces::new(cli),
        places: Arc::new(Semaphore::new(MOST_SESSIONS)),
        requests: Semaphore::new(MOST_REQUESTS),
        sessions: Mutex::default(),
        abilities: Mutex::default(),
    }));
    let exit = block_on(async move {
        let mut signals = Signals::listen()?;
        let exit = agent.serve(&mut signals).await;
        let _ = timeout(CLOSING, agent.close()).await;
        Ok(exit)
    })?;
    last_written(&written, FIX)?;
    Ok(exit)
}

/// How the protocol takes a question back.
fn take_back(id: i64) -> Value {
    notification("$/cancel_request", &json!({ "requestId": id }))
}

/// The agent of one client. Clones are the same agent.
#[derive(Clone)]
struct Agent(Arc<Shared>);

struct Shared {
    client: Client,
    workspaces: Workspaces,
    /// Free places for Sessions.
    places: Arc<Semaphore>,
    /// Bounds the requests outside of Sessions.
    requests: Semaphore,
    /// Open Sessions, and those that are being opened.
    sessions: Mutex<HashMap<String, mpsc::UnboundedSender<Command>>>,
    /// None before `initialize`.
    abilities: Mutex<Option<Abilities>>,
}

impl Agent {
    /// Reads the client's lines until there are no more.
    async fn serve(&self, signals: &mut Signals) -> u8 {
        let client = &self.0.client;
        let mut lines = Lines::new(tokio::io::stdin());
        loop {
            let line = tokio::select! {
                line = lines.next(), if !client.is_clogged() => line,
                () = client.has_read(), if client.is_clogged() => continue,
                () = hung_up(), if client.is_clogged() => return 0,
                code = signals.next() => return code,
                () = client.gone() => return 0,
            };
            let line = match line {
                None => return 0,
                Some(Err(error)) => {
                    client.reject(&Value::Null, &Failure::new(-32600, error.message));
                    continue;
                }
                Some(Ok(line)) => line,
            };
            match Message::parse(&line) {
                Ok(None) => {}
                Ok(Some(Message::Answer { id, outcome })) => client.answered(&id, outcome),
                Ok(Some(Message::Notification { method, params })) => self.notified(&method, &params),
                Ok(Some(Message::Request { id, method, params })) => {
                    let Some(reply) = client.admit(id, line.len()) else { continue };
                    let Some(request) = self.requested(reply, &method, params) else { continue };
                    let agent = self.clone();
                    spawn(async move { agent.answer(request).await });
                }
                Err(invalid) => client.reject(&invalid.id.clone(), &invalid.into()),
            }
        }
    }

    fn notified(&self, method: &str, params: &Value) {
        match method {
            "session/cancel" => {
                if let Some(session) = self.session(params) {
                    let _ = session.send(Command::Cancel);
                }
            }
            "$/cancel_request" => {
                for session in self.0.sessions.lock().values() {
                    let _ = session.send(Command::CancelRequest(params["requestId"].clone()));
                }
            }
            // Whatever else a client tells, it needs no answer.
            _ => {}
        }
    }

    fn session(&self, params: &Value) -> Option<mpsc::UnboundedSender<Command>> {
        self.0.sessions.lock().get(params["sessionId"].as_str()?).cloned()
    }

    /// Takes a request in the order of the lines. What needs more than a moment is returned.
    fn requested(&self, reply: Reply, method: &str, params: Value) -> Option<Request> {
        if method == "initialize" {
            *self.0.abilities.lock() = Some(Abilities::of(&params, self.0.workspaces.mirrors_writes()));
            reply.send(initialized(&params));
            return None;
        }
        let Some(abilities) = *self.0.abilities.lock() else {
            reply.send(Err(Failure::new(-32600, "send `initialize` first")));
            return None;
        };
        let what = match method {
            "session/new" => match self.place() {
                Ok(place) => What::Start { place, params, abilities },
                Err(failure) => {
                    reply.send(Err(failure));
                    return None;
                }
            },
            "session/load" => return self.reopen(reply, Opening::Load, params, abilities),
            "session/resume" => return self.reopen(reply, Opening::Resume, params, abilities),
            "session/list" => What::Other(Other::List(params)),
            "session/delete" => What::Other(Other::Delete(params)),
            "authenticate" => What::Other(Other::Authenticate(params)),
            "logout" => What::Other(Other::Logout),
            "session/prompt" | "session/close" | "session/set_mode" | "session/set_config_option" | "_pixir/input" => {
                self.pass_on(reply, method, params);
                return None;
            }
            _ => {
                reply.send(Err(Failure::new(-32601, format!("there is no method `{}`", method.escape_debug()))));
                return None;
            }
        };
        Some(Request { reply, what })
    }

    /// Loads or resumes a Session. What the client asks of it meanwhile waits until it is open.
    fn reopen(&self, reply: Reply, opening: Opening, params: Value, abilities: Abilities) -> Option<Request> {
        let Some(id) = params["sessionId"].as_str().map(str::to_owned) else {
            reply.send(Err(Failure::invalid_params("`sessionId` is missing")));
            return None;
        };
        let mut sessions = self.0.sessions.lock();
        if let Some(session) = sessions.get(&id) {
            let command = if opening == Opening::Load { Command::Load { reply } } else { Command::Resume { reply } };
            let _ = session.send(command);
            return None;
        }
        let place = match self.place() {
            Ok(place) => place,
            Err(failure) => {
                reply.send(Err(failure));
                return None;
            }
        };
        let (session, commands) = mpsc::unbounded_channel();
        sessions.insert(id.clone(), session);
        let open = OpenSession { agent: self.clone(), id, _place: place };
        Some(Request { reply, what: What::Reopen { open, opening, params, abilities, commands } })
    }

    /// A place for one more Session.
    fn place(&self) -> Result<OwnedSemaphorePermit, Failure> {
        Arc::clone(&self.0.places).try_acquire_owned().map_err(|_| {
            let message = format!("{MOST_SESSIONS} sessions of this client are open");
            let fix = "close one with session/close, then try again";
            Error::new(Code::TooManyItems, message, fix).into()
        })
    }

    fn pass_on(&self, reply: Reply, method: &str, mut params: Value) {
        let Some(session) = self.session(&params) else {
            let id = params["sessionId"].as_str().unwrap_or_default();
            return reply.send(Err(not_open(id)));
        };
        let command = match method {
            "session/prompt" => Command::Prompt { reply, params },
            "session/close" => Command::Close { reply },
            "session/set_mode" => Command::SetMode { reply, mode: params["modeId"].take() },
            "session/set_config_option" => Command::SetOption { reply, params },
            _ => Command::Input { reply, input: params["input"].take() },
        };
        if let Err(mpsc::error::SendError(command)) = session.send(command) {
            command.refuse(&not_open("this session"));
        }
    }

    async fn answer(&self, Request { reply, what }: Request) {
        let outcome = match what {
            What::Start { place, params, abilities } => return self.start(reply, place, params, abilities).await,
            What::Reopen { open, opening, params, abilities, commands } => {
                return self.reopened(reply, open, opening, params, abilities, commands).await;
            }
            What::Other(other) => {
                let Ok(_turn) = self.0.requests.acquire().await else { return };
                self.carry_out(other).await
            }
        };
        reply.send(outcome);
    }

    async fn carry_out(&self, other: Other) -> Result<Value, Failure> {
        let workspaces = &self.0.workspaces;
        match other {
            Other::List(params) => workspaces.list(&params, PAGE).await,
            Other::Delete(params) => self.delete(&params).await,
            Other::Authenticate(params) => workspaces.authenticate(&params).await,
            Other::Logout => workspaces.logout().await,
        }
    }

    async fn start(&self, reply: Reply, place: OwnedSemaphorePermit, params: Value, abilities: Abilities) {
        let opened = self.0.workspaces.start(&params).await;
        let Opened { harness, handle, folder } = match opened {
            Ok(opened) => opened,
            Err(failure) => {
                // The client may try again as soon as it has the answer.
                drop(place);
                return reply.send(Err(failure));
            }
        };
        let (session, commands) = mpsc::unbounded_channel();
        let id = handle.id().to_string();
        self.0.sessions.lock().insert(id.clone(), session);
        let open = OpenSession { agent: self.clone(), id, _place: place };
        let client = self.0.client.clone();
        let Some(attached) = Attached::open(client, harness, handle, abilities, Opening::New, reply).await else {
            return;
        };
        open.serve(attached, params, commands).await;
        drop(folder);
    }

    async fn reopened(
        &self,
        reply: Reply,
        open: OpenSession,
        opening: Opening,
        params: Value,
        abilities: Abilities,
        mut commands: mpsc::UnboundedReceiver<Command>,
    ) {
        let Opened { harness, handle, folder } = match self.0.workspaces.resume(&open.id, &params).await {
            Ok(opened) => opened,
            Err(failure) => {
                let not_open = not_open(&open.id);
                // The client may try again as soon as it has the answer.
                drop(open);
                while let Ok(command) = commands.try_recv() {
                    command.refuse(&not_open);
                }
                return reply.send(Err(failure));
            }
        };
        let client = self.0.client.clone();
        let Some(attached) = Attached::open(client, harness, handle, abilities, opening, reply).await else { return };
        open.serve(attached, params, commands).await;
        drop(folder);
    }

    /// Moves a Session to the trash; one that is open closes first.
    async fn delete(&self, params: &Value) -> Result<Value, Failure> {
        let open = self.session(params);
        if let Some(session) = open {
            let _ = session.send(Command::End);
            session.closed().await;
        }
        self.0.workspaces.delete(params).await
    }

    /// Interrupts and closes every Session.
    async fn close(&self) {
        let open: Vec<_> = self.0.sessions.lock().values().cloned().collect();
        for session in &open {
            let _ = session.send(Command::End);
        }
        for session in &open {
            session.closed().await;
        }
    }
}

/// A Session in the list of the open ones; it leaves the list however its task ends.
struct OpenSession {
    agent: Agent,
    id: String,
    _place: OwnedSemaphorePermit,
}

impl OpenSession {
    /// Serves it until it is closed, and first tells what pixir does not do with it.
    async fn serve(self, mut attached: Attached, params: Value, mut commands: mpsc::UnboundedReceiver<Command>) {
        attached.add_folders(&params).await;
        let (_, left_out) = servers::of(&params);
        // The request can be large, and the Session is open for long.
        drop(params);
        if !left_out.is_empty() {
            attached.notice("MCP servers that cannot be used", &left_out.join("\n"));
        }
        let closing = attached.serve(&mut commands).await;
        let not_open = not_open(&self.id);
        // What comes after the answer finds no open Session, and what came before it is not lost.
        drop(self);
        while let Ok(command) = commands.try_recv() {
            command.refuse(&not_open);
        }
        if let Some(reply) = closing {
            reply.send(Ok(json!({})));
        }
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.agent.0.sessions.lock().remove(&self.id);
    }
}

/// A request that needs more than a moment.
struct Request {
    reply: Reply,
    what: What,
}

enum What {
    Start {
        place: OwnedSemaphorePermit,
        params: Value,
        abilities: Abilities,
    },
    Reopen {
        open: OpenSession,
        opening: Opening,
        params: Value,
        abilities: Abilities,
        commands: mpsc::UnboundedReceiver<Command>,
    },
    Other(Other),
}

/// A request outside of open Sessions.
enum Other {
    List(Value),
    Delete(Value),
    Authenticate(Value),
    Logout,
}

fn not_open(id: &str) -> Failure {
    let message = format!("there is no open session {}; load or resume it first", id.escape_debug());
    Failure::new(-32002, message)
}

fn initialized(params: &Value) -> Result<Value, Failure> {
    if !params["protocolVersion"].is_u64() {
        return Err(Failure::invalid_params("`protocolVersion` is missing"));
    }
    let mut methods = Vec::new();
    if params["clientCapabilities"]["auth"]["terminal"] == true {
        methods.push(json!({
            "type": "terminal", "id": workspaces::LOGIN, "name": "Log in",
            "description": "Store the key of a provider, in a terminal", "args": ["--login"],
        }));
    }
    methods.push(json!({
        "id": workspaces::CHECK, "name": "Check again",
        "description": "Look again for a key or a server, after `pixir auth login PROVIDER` in a terminal",
    }));
    let version = env!("CARGO_PKG_VERSION");
    Ok(json!({
        "protocolVersion": VERSION,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
            "mcpCapabilities": { "http": true, "sse": false },
            "sessionCapabilities": {
                "list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {},
            },
            "auth": { "logout": {} },
            "_meta": { "pixir": { "version": version, "input": 1, "events": 1 } },
        },
        "agentInfo": { "name": "pixir", "title": "pixir", "version": version },
        "authMethods": methods,
    }))
}
