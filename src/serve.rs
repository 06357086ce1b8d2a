//! The Presenter of other agents: an MCP server on stdin and stdout. A call of a tool becomes a Turn of a Session of its own, or
//! one line of the run language; what needs an approval is asked of the client's user.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pixir_core::text::json_rpc::{Message, notification};
use pixir_core::{Harness, Result};
use serde_json::{Value, json};
use tokio::sync::{OnceCell, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::args::RunOptions;
use crate::cli::{Attendance, Cli, Signals, block_on};
use crate::headless::host::Lines;
use crate::json_rpc::{Client, Failure, Reply, hung_up, last_written, take_stdout};

mod question; // approvals and forms, as elicitations
mod task; // a Turn in a Session of its own
mod tools; // what is offered, and the two tools that ask no model

/// Versions of the protocol with `initialize`, newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// How long pixir ends its calls after the client has gone.
const CLOSING: Duration = Duration::from_millis(1500);
/// The most calls at the same time. Others wait.
const MOST_CALLS: usize = 8;

/// Serves the client until it closes stdin, and returns the exit code.
pub(crate) fn run(cli: &Cli) -> Result<u8> {
    cli.start_diagnostics();
    let fix = "have an MCP client start pixir mcp serve; it reads its stdout";
    let (client, written) = Client::on(take_stdout(fix)?, take_back);
    let mut options = cli.options.clone();
    if options.mode.is_none() && !options.write {
        // The calling agent has not read what the configuration allows the user's own sessions.
        options.mode = Some("read-only".to_owned());
    }
    let server = Server(Arc::new(Shared {
        cli: Cli { options, ..cli.clone() },
        client,
        peer: Mutex::default(),
        harness: OnceCell::new(),
        calls: Mutex::default(),
        places: Semaphore::new(MOST_CALLS),
    }));
    let exit = block_on(async move {
        let mut signals = Signals::listen()?;
        let mut work = JoinSet::new();
        let exit = server.serve(&mut signals, &mut work).await;
        server.0.calls.lock().clear();
        let ended = async { while work.join_next().await.is_some() {} };
        let _ = timeout(CLOSING, ended).await;
        if let Some(harness) = server.0.harness.get() {
            harness.stop_servers().await;
            harness.processes_stopped().await;
        }
        Ok(exit)
    })?;
    last_written(&written, fix)?;
    Ok(exit)
}

/// How the protocol takes a question back.
fn take_back(id: i64) -> Value {
    notification("notifications/cancelled", &json!({ "requestId": id }))
}

/// The server of one client. Clones are the same server.
#[derive(Clone)]
struct Server(Arc<Shared>);

struct Shared {
    cli: Cli,
    client: Client,
    /// None before `initialize`.
    peer: Mutex<Option<Peer>>,
    harness: OnceCell<Harness>,
    /// Calls that have no answer yet, by the text of their id. Dropping one stops it.
    calls: Mutex<HashMap<String, oneshot::Sender<()>>>,
    places: Semaphore,
}

/// What the client can do.
#[derive(Debug, Clone, Copy)]
struct Peer {
    /// Its user can be asked.
    shows_forms: bool,
}

/// A call that may be taken back while it runs.
struct Running {
    reply: Reply,
    key: String,
    stopped: oneshot::Receiver<()>,
}

impl Server {
    /// Reads the client's lines until there are no more.
    async fn serve(&self, signals: &mut Signals, work: &mut JoinSet<()>) -> u8 {
        let client = &self.0.client;
        let mut lines = Lines::new(tokio::io::stdin());
        loop {
            let line = tokio::select! {
                line = lines.next(), if !client.is_clogged() => line,
                () = client.has_read(), if client.is_clogged() => continue,
                () = hung_up(), if client.is_clogged() => return 0,
                code = signals.next() => return code,
                () = client.gone() => return 0,
                Some(_) = work.join_next(), if !work.is_empty() => continue,
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
                Ok(Some(Message::Notification { method, params })) => {
                    if method == "notifications/cancelled" {
                        drop(self.0.calls.lock().remove(&params["requestId"].to_string()));
                    }
                }
                Ok(Some(Message::Request { id, method, params })) => {
                    let key = id.to_string();
                    let Some(reply) = client.admit(id, line.len()) else { continue };
                    if method == "tools/call" && self.0.peer.lock().is_some() {
                        let (stop, stopped) = oneshot::channel();
                        self.0.calls.lock().insert(key.clone(), stop);
                        let (server, running) = (self.clone(), Running { reply, key, stopped });
                        let call: BoxFuture<'static, ()> = Box::pin(async move { server.call(running, params).await });
                        work.spawn(call);
                    } else {
                        reply.send(self.answer(&method, &params));
                    }
                }
                Err(invalid) => client.reject(&invalid.id.clone(), &invalid.into()),
            }
        }
    }

    /// What needs no more than a moment.
    fn answer(&self, method: &str, params: &Value) -> std::result::Result<Value, Failure> {
        match method {
            "initialize" => {
                let asked = params["protocolVersion"].as_str().unwrap_or_default();
                let version = VERSIONS.into_iter().find(|it| *it == asked).unwrap_or(VERSIONS[0]);
                let asks = &params["capabilities"]["elicitation"];
                // A client that names no way to ask shows forms.
                let shows_forms = asks.is_object() && (asks.get("form").is_some() || asks.get("url").is_none());
                *self.0.peer.lock() = Some(Peer { shows_forms });
                Ok(json!({
                    "protocolVersion": version,
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": "pixir", "title": "pixir", "version": env!("CARGO_PKG_VERSION") },
                    "instructions": tools::INSTRUCTIONS,
                }))
            }
            "ping" => Ok(json!({})),
            _ if self.0.peer.lock().is_none() => Err(Failure::new(-32600, "send `initialize` first")),
            "tools/list" => Ok(json!({ "tools": tools::definitions(&self.0.cli) })),
            _ => Err(Failure::new(-32601, format!("there is no method `{}`", method.escape_debug()))),
        }
    }

    /// Calls a tool. A call that the client takes back is stopped, and has no answer.
    async fn call(&self, running: Running, params: Value) {
        let Running { reply, key, stopped } = running;
        let name = params["name"].as_str().unwrap_or_default();
        let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
        let progress = params["_meta"].get("progressToken").cloned();
        let outcome = match self.0.places.acquire().await {
            Err(_) => return,
            Ok(_place) => match name {
                "pixir_task" => self.task(arguments, progress, stopped).await,
                "pixir_run" => tokio::select! {
                    outcome = self.run_line(arguments) => Some(outcome),
                    _ = stopped => None,
                },
                "pixir_sessions" => Some(self.sessions(arguments).await),
                other => {
                    let message = format!("there is no tool `{}`; tools/list has all", other.escape_debug());
                    Some(Err(Failure::invalid_params(message)))
                }
            },
        };
        self.0.calls.lock().remove(&key);
        match outcome {
            Some(outcome) => reply.send(outcome),
            None => reply.without_answer(),
        }
    }

    /// The Harness of all tasks. It is made at the first one, which may have to look for a model.
    async fn harness(&self) -> std::result::Result<Harness, Failure> {
        let made = self.0.harness.get_or_try_init(|| async {
            let cli = &self.0.cli;
            let attendance = if self.asks() { Attendance::Attended } else { Attendance::Unattended };
            let workspace = cli.workspace()?;
            let options = RunOptions { workspace: Some(workspace.clone()), ..cli.options.clone() };
            let cli = Cli { options, ..cli.clone() };
            let harness = cli.harness(&workspace, attendance).await?;
            let providers = harness.providers();
            if providers.provider == "demo" && cli.options.provider.is_none() {
                // The client would take the demo's text for an answer.
                return Err(providers.unconnected());
            }
            Ok(harness)
        });
        Ok(made.await?.clone())
    }

    fn asks(&self) -> bool {
        self.0.peer.lock().is_some_and(|it| it.shows_forms)
    }

    /// Asks the client's user by a form. None if the user declines, or cannot be asked.
    async fn ask(&self, params: Value) -> Option<Value> {
        if !self.asks() {
            return None;
        }
        let client = &self.0.client;
        let (ask, asked) = client.ask("elicitation/create", params);
        client.room().await;
        ask.send(client);
        asked.answer().await.filter(|it| it["action"] == "accept")
    }

    /// Tells the client what a call does now, if it wants to know.
    async fn progress(&self, token: Option<&Value>, step: u64, message: &str) {
        let Some(token) = token else { return };
        let params = json!({ "progressToken": token, "progress": step, "message": message });
        self.0.client.room().await;
        self.0.client.update(notification("notifications/progress", &params).to_string());
    }
}

/// The result of a tool: its text, and the same as data.
fn result(text: &str, data: &Value, is_error: bool) -> Value {
    let text = if text.trim().is_empty() { "(no output)" } else { text };
    json!({ "content": [{ "type": "text", "text": text }], "structuredContent": data, "isError": is_error })
}
