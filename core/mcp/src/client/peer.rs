//! A connection to a server: the requests under way, and what the server sends besides their answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::Fault;
use super::asker::Asker;
use crate::lines::TOO_LONG;
use crate::pipes::{Printed, Writer};
use crate::stream::Http;
use text::json_rpc::{self, Message};

/// The most requests of a server that wait for pixir's answer. Others get none.
const MOST_ASKED: usize = 64;
/// How long a message that is no request may take over HTTP.
const CONTROL: Duration = Duration::from_secs(5);
/// How long a close waits for what is on its way over HTTP.
const LAST_MOMENT: Duration = Duration::from_millis(200);
/// The codes of JSON-RPC that pixir answers with.
const NO_METHOD: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;

/// Clones are the same connection.
#[derive(Clone)]
pub(crate) struct Peer(Arc<Shared>);

struct Shared {
    link: Link,
    asker: Arc<Asker>,
    /// The id of the next request.
    next: AtomicI64,
    /// The requests without an answer; `None` when the connection is closed.
    waiting: Mutex<Option<HashMap<i64, oneshot::Sender<Reply>>>>,
    /// The server's own requests that pixir has not answered, by the text of their id.
    asked: Mutex<HashMap<String, AbortHandle>>,
    /// What pixir says about itself with each request to a stateless server.
    introduction: OnceLock<Map<String, Value>>,
    heard: Heard,
    /// Tells a server over HTTP what is cancelled.
    cancelling: Mutex<JoinSet<()>>,
    /// Reads what the server prints.
    reader: Mutex<Option<AbortHandle>>,
}

/// How messages reach a server.
pub(crate) enum Link {
    Pipes(Writer),
    Http(Box<Http>),
}

/// What a server has sent besides answers.
#[derive(Debug, Default)]
struct Heard {
    /// The list of tools may be another one.
    list_changed: AtomicBool,
    /// How often it said that something goes on.
    progress: AtomicU64,
}

/// What a server answers to a request.
pub(crate) type Reply = Result<Value, Refusal>;

/// Why a server does not do what it was asked.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) message: String,
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        if refusal.code == TOO_LONG { Fault::TooLong(refusal.message) } else { Fault::Refused(refusal.message) }
    }
}

impl Refusal {
    fn of(error: &Value) -> Refusal {
        let code = error["code"].as_i64().unwrap_or_default();
        let message = error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned);
        Refusal { code, message }
    }
}

/// A request that the server has not answered, until it is dropped.
pub(crate) struct Underway<'a> {
    peer: &'a Peer,
    pub(crate) id: i64,
    answer: oneshot::Receiver<Reply>,
    /// The server wants to know when the answer is not wanted any more.
    can_be_cancelled: bool,
}

impl Underway<'_> {
    /// The answer.
    pub(crate) async fn answered(&mut self) -> Result<Reply, Fault> {
        (&mut self.answer).await.map_err(|_| Fault::Closed)
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        let is_open = self.peer.0.waiting.lock().as_mut().is_some_and(|it| it.remove(&self.id).is_some());
        if is_open && self.can_be_cancelled {
            self.peer.cancel(self.id);
        }
    }
}

impl Peer {
    pub(super) fn new(link: Link, asker: Arc<Asker>) -> Peer {
        Peer(Arc::new(Shared {
            link,
            asker,
            next: AtomicI64::new(1),
            waiting: Mutex::new(Some(HashMap::new())),
            asked: Mutex::default(),
            introduction: OnceLock::new(),
            heard: Heard::default(),
            cancelling: Mutex::default(),
            reader: Mutex::default(),
        }))
    }

    /// Reads what a server prints, until it closes its stdout.
    pub(super) fn read(&self, mut printed: Printed) {
        let peer = self.clone();
        let reader = task::spawn(async move {
            while let Some(message) = printed.messages.recv().await {
                peer.receive(&message, None);
            }
            peer.end();
            drop(printed.reading);
        });
        *self.0.reader.lock() = Some(reader.abort_handle());
    }

    pub(crate) fn http(&self) -> Option<&Http> {
        match &self.0.link {
            Link::Http(http) => Some(http),
            Link::Pipes(_) => None,
        }
    }

    /// From here on each request says this about pixir: the server keeps nothing between two of them.
    pub(super) fn introduce(&self, introduction: Map<String, Value>) {
        let _ = self.0.introduction.set(introduction);
    }

    fn is_stateless(&self) -> bool {
        self.0.introduction.get().is_some()
    }

    /// Whether the list of tools may have changed since the last call of this.
    pub(super) fn take_list_changed(&self) -> bool {
        self.0.heard.list_changed.swap(false, Ordering::Relaxed)
    }

    /// The list of tools may be another one.
    pub(crate) fn list_may_have_changed(&self) {
        self.0.heard.list_changed.store(true, Ordering::Relaxed);
    }

    /// How often the server said that something goes on.
    pub(super) fn progress(&self) -> u64 {
        self.0.heard.progress.load(Ordering::Relaxed)
    }

    /// A request with an id of its own.
    ///
    /// # Errors
    /// `Closed`.
    pub(crate) fn open(&self) -> Result<Underway<'_>, Fault> {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (tell, answer) = oneshot::channel();
        self.0.waiting.lock().as_mut().ok_or(Fault::Closed)?.insert(id, tell);
        Ok(Underway { peer: self, id, answer, can_be_cancelled: false })
    }

    /// Makes a request. Dropping the future cancels it.
    pub(super) fn ask<'a>(
        &'a self,
        method: &'a str,
        params: Map<String, Value>,
    ) -> BoxFuture<'a, Result<Reply, Fault>> {
        Box::pin(self.asked_for(method, params))
    }

    async fn asked_for(&self, method: &str, mut params: Map<String, Value>) -> Result<Reply, Fault> {
        let mut underway = self.open()?;
        // These two begin a connection; nothing is done that could be cancelled.
        let begins = matches!(method, "initialize" | "server/discover");
        if !begins {
            let mut meta = self.0.introduction.get().cloned().unwrap_or_default();
            meta.insert("progressToken".to_owned(), underway.id.into());
            params.insert("_meta".to_owned(), meta.into());
        }
        let id = underway.id;
        let message = json_rpc::request(&id.into(), method, &params.into());
        underway.can_be_cancelled = !begins;
        let sent = tokio::select! {
            biased;
            // A server may answer on another stream than on that of the request.
            answer = underway.answered() => return answer,
            sent = self.send(&message, Some(id)) => sent,
        };
        underway.can_be_cancelled &= sent.is_ok();
        sent?;
        underway.answered().await
    }

    /// Tells the server something.
    pub(super) async fn tell(&self, method: &str, params: Value) -> Result<(), Fault> {
        self.send(&json_rpc::notification(method, &params), None).await
    }

    async fn send(&self, message: &Value, awaited: Option<i64>) -> Result<(), Fault> {
        match &self.0.link {
            Link::Pipes(writer) => writer.send(message).await,
            Link::Http(http) => http.exchange(self, message, awaited).await,
        }
    }

    /// Tells the server that the answer to a request is not wanted any more.
    fn cancel(&self, id: i64) {
        let params = json!({ "requestId": id, "reason": "the client does not wait for the answer any more" });
        let message = json_rpc::notification("notifications/cancelled", &params);
        match &self.0.link {
            Link::Pipes(writer) => drop(writer.queue(&message)),
            // Such a server knows it by the end of the connection.
            Link::Http(_) if self.is_stateless() => {}
            Link::Http(_) => {
                // Without a runtime pixir has ended, and nothing is sent.
                let Ok(runtime) = Handle::try_current() else { return };
                let peer = self.clone();
                let telling = async move {
                    let _ = timeout(CONTROL, peer.send(&message, None)).await;
                };
                let mut cancelling = self.0.cancelling.lock();
                while cancelling.try_join_next().is_some() {}
                cancelling.spawn_on(telling, &runtime);
            }
        }
    }

    /// Takes a message of the server, and returns the id of the request that it answers. On the response to the request
    /// `awaited`, an error without an id is its answer.
    pub(crate) fn receive(&self, message: &[u8], awaited: Option<i64>) -> Option<i64> {
        match Message::parse(message) {
            Ok(Some(Message::Answer { id, outcome })) => self.answered(&id, outcome, awaited),
            Ok(Some(Message::Request { id, method, params })) => {
                self.requested(id, method, params);
                None
            }
            Ok(Some(Message::Notification { method, params })) => {
                self.told(&method, &params);
                None
            }
            Ok(None) => None,
            Err(invalid) => {
                #[derive(Deserialize)]
                struct WithoutId {
                    error: Value,
                }
                if let Ok(WithoutId { error }) = serde_json::from_slice(message) {
                    return self.answered(&Value::Null, Err(error), awaited);
                }
                tracing::debug!("an MCP server sent what is no message: {}", invalid.message);
                None
            }
        }
    }

    fn answered(&self, id: &Value, outcome: Result<Value, Value>, awaited: Option<i64>) -> Option<i64> {
        let mut waiting = self.0.waiting.lock();
        let waiting = waiting.as_mut()?;
        let id = match (id, &outcome) {
            (Value::Null, Err(_)) => {
                // A server that could not read a request knows no id of it.
                let only = || waiting.keys().next().copied().filter(|_| waiting.len() == 1);
                awaited.or_else(only)?
            }
            // Some write a number as a text, or with a point.
            (Value::String(text), _) => text.parse().ok()?,
            (id, _) => id.as_i64().or_else(|| format!("{:.0}", id.as_f64()?).parse().ok())?,
        };
        let answer = waiting.remove(&id)?;
        let _ = answer.send(outcome.map_err(|error| Refusal::of(&error)));
        Some(id)
    }

    fn told(&self, method: &str, params: &Value) {
        match method {
            "notifications/tools/list_changed" => self.list_may_have_changed(),
            "notifications/progress" => {
                self.0.heard.progress.fetch_add(1, Ordering::Relaxed);
            }
            "notifications/cancelled" => {
                if let Some(answering) = self.0.asked.lock().remove(&params["requestId"].to_string()) {
                    answering.abort();
                }
            }
            // Logs of a server and changes of other lists are nothing that pixir shows.
            _ => {}
        }
    }

    /// Answers a request of the server on a task of its own.
    fn requested(&self, id: Value, method: String, params: Value) {
        let mut asked = self.0.asked.lock();
        if asked.len() >= MOST_ASKED {
            tracing::debug!("an MCP server has {MOST_ASKED} requests without an answer; `{method}` gets none");
            return;
        }
        let (peer, key) = (self.clone(), id.to_string());
        let answering = task::spawn(async move {
            let reply = match peer.reply_to(&method, params).await {
                Ok(result) => json_rpc::result(&id, &result),
                Err((code, message)) => json_rpc::error(&id, &json!({ "code": code, "message": message })),
            };
            let sent = timeout(CONTROL, peer.send(&reply, None)).await;
            if !matches!(sent, Ok(Ok(()))) {
                tracing::debug!("the answer to `{method}` of an MCP server was not sent: {sent:?}");
            }
            peer.0.asked.lock().remove(&id.to_string());
        });
        asked.insert(key, answering.abort_handle());
    }

    async fn reply_to(&self, method: &str, params: Value) -> Result<Value, (i64, String)> {
        match method {
            "ping" => Ok(json!({})),
            "elicitation/create" if self.is_stateless() && self.is_idle() => {
                Err((INVALID_PARAMS, "nothing was asked that could need an answer of the user".to_owned()))
            }
            "elicitation/create" => {
                let answer = self.0.asker.ask(params).await;
                answer.ok_or_else(|| (INVALID_PARAMS, "this is no form and no page".to_owned()))
            }
            // Roots and sampling are not declared.
            other => Err((NO_METHOD, format!("pixir does not answer `{other}`"))),
        }
    }

    /// Whether no request is under way.
    fn is_idle(&self) -> bool {
        self.0.waiting.lock().as_ref().is_none_or(HashMap::is_empty)
    }

    /// Whether nothing can be sent any more.
    pub(super) fn is_closed(&self) -> bool {
        self.0.waiting.lock().is_none()
    }

    /// Nothing comes any more: all requests have failed.
    fn end(&self) {
        drop(self.0.waiting.lock().take());
        for (_, answering) in self.0.asked.lock().drain() {
            answering.abort();
        }
    }

    /// Closes the connection after what waits to be sent; not for long.
    pub(super) async fn close(&self) {
        self.end();
        match &self.0.link {
            Link::Pipes(writer) => writer.close().await,
            Link::Http(http) => {
                // A server that has ended the session would not take it.
                let mut cancelling = std::mem::take(&mut *self.0.cancelling.lock());
                let _ = timeout(LAST_MOMENT, async { while cancelling.join_next().await.is_some() {} }).await;
                http.close().await;
            }
        }
        self.stop_reading();
    }

    /// Closes the connection at once.
    pub(super) fn abort(&self) {
        self.end();
        match &self.0.link {
            Link::Pipes(writer) => writer.abort(),
            Link::Http(http) => http.abort(),
        }
        self.stop_reading();
    }

    fn stop_reading(&self) {
        if let Some(reader) = self.0.reader.lock().take() {
            reader.abort();
        }
    }
}
