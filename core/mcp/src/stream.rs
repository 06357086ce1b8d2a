//! Streamable HTTP: each message is a POST of its own, and the server answers it with JSON or with a stream of events. A
//! server that keeps a session has one more stream, for what belongs to no request, such as a question to the user.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use parking_lot::Mutex;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use sse_stream::{Sse, SseByteStream};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{sleep, timeout};

use super::challenge::Challenge;
use super::client::{Fault, Peer, STATELESS, initialize_params};
use super::headers::{self, Promoted};
use super::lines::MAX_MESSAGE;
use super::pages::shortened;
use net::unreachable;
use provider::stream::Extent;
use text::json_rpc::{self, Message};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Headers that only the protocol sets.
pub(super) const OWN_HEADERS: [HeaderName; 3] = [ACCEPT, SESSION, LAST_EVENT];

/// How long a server may take to open the stream of a session. Some open it only when they have something to send.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a stream that ended waits before it is opened again, unless the server says how long.
const RETRY: Duration = Duration::from_secs(1);
/// The longest wait between two attempts.
const MAX_RETRY: Duration = Duration::from_secs(60);
/// How long a session may take to begin anew.
const RENEWAL: Duration = Duration::from_secs(5);
/// How long a server may take to end a session.
const FAREWELL: Duration = Duration::from_secs(5);
/// How much of that a close waits for.
const LAST_MOMENT: Duration = Duration::from_millis(200);
/// How long the rest of a stream is read after the answer, so that its connection serves the next request.
const REST: Duration = Duration::from_millis(50);
/// The most of the body of a refusal that is shown, bytes.
const MAX_SHOWN: usize = 1 << 10;

/// A server over HTTP.
pub(super) struct Http {
    client: reqwest::Client,
    url: String,
    /// Those of the user, and the sign-in.
    headers: HeaderMap,
    dialog: Mutex<Dialog>,
    /// Held while a session is begun anew.
    renewal: tokio::sync::Mutex<()>,
    /// The arguments that stand in headers too, by tool.
    promoted: Mutex<HashMap<String, Vec<Promoted>>>,
    /// Reads the stream of the session.
    listening: Mutex<Option<AbortHandle>>,
}

/// What was agreed on so far.
#[derive(Debug, Clone, Default, PartialEq)]
struct Dialog {
    version: Option<String>,
    session: Option<HeaderValue>,
}

impl Dialog {
    fn is_stateless(&self) -> bool {
        self.version.as_deref() >= Some(STATELESS)
    }
}

/// Why a message was not exchanged.
enum Failed {
    /// The server does not know the session any more.
    NoSession,
    Fault(Fault),
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Failed {
        Failed::Fault(fault)
    }
}

impl From<Failed> for Fault {
    fn from(failed: Failed) -> Fault {
        match failed {
            Failed::NoSession => Fault::Odd("it does not know the session that it began".to_owned()),
            Failed::Fault(fault) => fault,
        }
    }
}

impl Http {
    pub(super) fn new(client: reqwest::Client, url: &str, headers: HeaderMap) -> Http {
        Http {
            client,
            url: url.to_owned(),
            headers,
            dialog: Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
            promoted: Mutex::default(),
            listening: Mutex::default(),
        }
    }

    /// The version that the next messages are in; `None` before it is agreed on.
    pub(super) fn speak(&self, version: Option<&str>) {
        self.dialog.lock().version = version.map(str::to_owned);
    }

    /// Which arguments of a tool stand in headers too.
    pub(super) fn promote(&self, tool: &str, promoted: Vec<Promoted>) {
        self.promoted.lock().insert(tool.to_owned(), promoted);
    }

    /// Sends a message, and takes what the server sends back. Returns when the request `awaited` has its answer, or when the
    /// server has taken the message and answers elsewhere.
    pub(super) async fn exchange(&self, peer: &Peer, message: &Value, awaited: Option<i64>) -> Result<(), Fault> {
        let dialog = self.dialog.lock().clone();
        match self.send(&dialog, peer, message, awaited).await {
            Err(Failed::NoSession) if awaited.is_some() => {
                let dialog = self.renewed(peer, &dialog).await?;
                self.send(&dialog, peer, message, awaited).await?;
            }
            sent => {
                let session = sent?;
                if message["method"] == "initialize" {
                    self.dialog.lock().session = session;
                }
            }
        }
        Ok(())
    }

    /// Sends a message within this dialog; returns the session that the response names.
    async fn send(
        &self,
        dialog: &Dialog,
        peer: &Peer,
        message: &Value,
        awaited: Option<i64>,
    ) -> Result<Option<HeaderValue>, Failed> {
        let mut headers = self.headers_in(dialog);
        if dialog.is_stateless() {
            let promoted = match message["params"]["name"].as_str() {
                Some(tool) if message["method"] == "tools/call" => self.promoted.lock().get(tool).cloned(),
                _ => None,
            };
            headers::add(&mut headers, message, &promoted.unwrap_or_default());
        }
        let sent = self.client.post(&self.url).headers(headers).json(message).send().await;
        let response = sent.map_err(|e| self.unreached(&e))?;
        let status = response.status();
        if !status.is_success() {
            self.refused(dialog, peer, message, awaited, response).await?;
            return Ok(None);
        }
        let session = response.headers().get(SESSION).cloned();
        let Some(id) = awaited.filter(|_| !matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT)) else {
            // What comes back on a message that wants no answer says nothing.
            return Ok(session);
        };
        match Media::of(&response) {
            Media::Events => self.follow(dialog, peer, Events::of(response), Some(id)).await?,
            Media::Json => {
                let body = body(response).await?;
                let start = String::from_utf8_lossy(&body[..body.len().min(MAX_SHOWN)]).into_owned();
                if peer.receive(&shortened(body), awaited) != awaited {
                    return Err(Fault::Odd(format!("its answer belongs to no request: {start}")).into());
                }
            }
            Media::Other(what) => {
                let why = format!("its answer is {what}, which is neither JSON nor a stream of events");
                return Err(Fault::Odd(why).into());
            }
        }
        Ok(session)
    }

    fn headers_in(&self, dialog: &Dialog) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if let Some(version) = dialog.version.as_deref().and_then(|it| HeaderValue::from_str(it).ok()) {
            headers.insert(VERSION, version);
        }
        if let Some(session) = &dialog.session {
            headers.insert(SESSION, session.clone());
        }
        headers
    }

    fn unreached(&self, e: &reqwest::Error) -> Fault {
        Fault::Unreached { error: Box::new(unreachable(&self.url, e)), was_connected: !e.is_connect() }
    }

    /// Takes a response that is no success. It may be the answer to the request all the same.
    async fn refused(
        &self,
        dialog: &Dialog,
        peer: &Peer,
        message: &Value,
        awaited: Option<i64>,
        response: Response,
    ) -> Result<(), Failed> {
        let status = response.status();
        let is_unwelcome = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_unwelcome && let Some(fault) = wants_sign_in(&response) {
            return Err(fault.into());
        }
        if status == StatusCode::NOT_FOUND && dialog.session.is_some() {
            return Err(Failed::NoSession);
        }
        let is_json = matches!(Media::of(&response), Media::Json);
        let body = if is_json && !is_unwelcome { body(response).await? } else { start_of(response).await };
        let mut words = String::from_utf8_lossy(&body[..body.len().min(MAX_SHOWN)]).into_owned();
        if let Some(id) = awaited
            && !is_unwelcome
        {
            // A proxy, or a server that could not read the request, knows no id of it.
            let error = match Message::parse(&body) {
                Ok(Some(Message::Answer { outcome: Err(error), .. })) => Some(error),
                _ if message["method"] == "server/discover" && status.is_client_error() => {
                    let why = format!("server/discover was refused: HTTP {status}: {words}");
                    Some(json!({ "code": -32_600, "message": why }))
                }
                _ => None,
            };
            if let Some(error) = error {
                peer.receive(json_rpc::error(&id.into(), &error).to_string().as_bytes(), awaited);
                return Ok(());
            }
        }
        if status == StatusCode::UNAUTHORIZED {
            // A server that wants a sign-in should say so in a header. Many do not.
            return Err(Fault::NeedsLogin { scope: None }.into());
        }
        if !words.is_empty() {
            words.insert_str(0, ": ");
        }
        Err(Fault::Status { status: status.as_u16(), words: format!("HTTP {status}{words}") }.into())
    }

    /// Begins a session anew, once for all requests that found the old one gone.
    async fn renewed(&self, peer: &Peer, gone: &Dialog) -> Result<Dialog, Fault> {
        let _one = self.renewal.lock().await;
        let now = self.dialog.lock().clone();
        if now != *gone {
            return Ok(now);
        }
        let renewed = timeout(RENEWAL, self.begun_anew(peer)).await;
        let dialog = renewed.unwrap_or(Err(Fault::TimedOut(RENEWAL)))?;
        self.dialog.lock().clone_from(&dialog);
        // It has forgotten the session, so it may be another program by now.
        peer.list_may_have_changed();
        if dialog.session.is_some() {
            self.listen(peer).await;
        }
        Ok(dialog)
    }

    async fn begun_anew(&self, peer: &Peer) -> Result<Dialog, Fault> {
        let mut dialog = Dialog::default();
        let mut underway = peer.open()?;
        let message = json_rpc::request(&underway.id.into(), "initialize", &initialize_params().into());
        dialog.session = self.send(&dialog, peer, &message, Some(underway.id)).await?;
        let result = underway.answered().await??;
        dialog.version = result["protocolVersion"].as_str().map(str::to_owned);
        let initialized = json_rpc::notification("notifications/initialized", &json!({}));
        self.send(&dialog, peer, &initialized, None).await?;
        Ok(dialog)
    }

    /// Opens the stream of the session, if there is one. What the server sends before it is open is lost: many servers keep
    /// nothing for it.
    pub(super) async fn listen(&self, peer: &Peer) {
        let dialog = self.dialog.lock().clone();
        if dialog.session.is_none() {
            return;
        }
        let (opened, is_opened) = oneshot::channel();
        let peer = peer.clone();
        let listening = task::spawn(async move {
            let Some(http) = peer.http() else { return };
            let events = http.resumed(&dialog, None).await;
            let _ = opened.send(());
            let followed = match events {
                Ok(events) => http.follow(&dialog, &peer, events, None).await,
                Err(lost) => Err(lost.into()),
            };
            if let Err(why) = followed {
                tracing::debug!("the stream of an MCP server ended: {why:?}");
            }
        });
        let before = self.listening.lock().replace(listening.abort_handle());
        if let Some(before) = before {
            before.abort();
        }
        let _ = timeout(PATIENCE, is_opened).await;
    }

    /// Takes the messages of a stream, until the request `awaited` has its answer. A stream that ends before is opened again
    /// where it can be; that of a session always.
    async fn follow(
        &self,
        dialog: &Dialog,
        peer: &Peer,
        mut events: Events,
        awaited: Option<i64>,
    ) -> Result<(), Fault> {
        let (mut last, mut retry) = (None, None);
        loop {
            while let Some(event) = events.next().await? {
                retry = event.retry.map(Duration::from_millis).or(retry);
                last = event.id.or(last);
                let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
                let Some(data) = event.data.filter(|_| is_message) else { continue };
                let answered = peer.receive(&shortened(data.into_bytes()), awaited);
                if answered.is_some() && answered == awaited {
                    task::spawn(timeout(REST, async move { while let Ok(Some(_)) = events.next().await {} }));
                    return Ok(());
                }
            }
            if awaited.is_some() && last.is_none() {
                return Err(Fault::Closed);
            }
            events = self.reopened(dialog, last.as_deref(), retry.take().unwrap_or(RETRY)).await?;
        }
    }

    /// Opens a stream again, as often as there is hope.
    async fn reopened(&self, dialog: &Dialog, last: Option<&str>, mut wait: Duration) -> Result<Events, Fault> {
        loop {
            sleep(wait).await;
            match self.resumed(dialog, last).await {
                Ok(events) => return Ok(events),
                Err(Lost::ForNow) => wait = (wait * 2).clamp(RETRY, MAX_RETRY),
                Err(lost @ Lost::ForGood(_)) => return Err(lost.into()),
            }
        }
    }

    /// Asks for a stream; with what comes after the event `last`, where there is one.
    async fn resumed(&self, dialog: &Dialog, last: Option<&str>) -> Result<Events, Lost> {
        let mut headers = self.headers_in(dialog);
        if let Some(last) = last.and_then(|it| HeaderValue::from_str(it).ok()) {
            headers.insert(LAST_EVENT, last);
        }
        let sent = self.client.get(&self.url).headers(headers).send().await;
        let response = sent.map_err(|_| Lost::ForNow)?;
        let status = response.status();
        if status.is_success() && matches!(Media::of(&response), Media::Events) {
            return Ok(Events::of(response));
        }
        let is_passing =
            status.is_server_error() || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
        if is_passing {
            return Err(Lost::ForNow);
        }
        let is_unwelcome = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let fault = if is_unwelcome { wants_sign_in(&response) } else { None };
        Err(Lost::ForGood(fault.unwrap_or(Fault::Closed)))
    }

    /// Ends the session; the server's answer is waited for a moment.
    pub(super) async fn close(&self) {
        if let Some(ending) = self.farewell() {
            let _ = timeout(LAST_MOMENT, ending).await;
        }
    }

    /// Ends the session at once.
    pub(super) fn abort(&self) {
        drop(self.farewell());
    }

    fn farewell(&self) -> Option<JoinHandle<()>> {
        if let Some(listening) = self.listening.lock().take() {
            listening.abort();
        }
        let dialog = self.dialog.lock().clone();
        self.dialog.lock().session.take()?;
        let request = self.client.delete(&self.url).headers(self.headers_in(&dialog)).timeout(FAREWELL);
        // Without a runtime pixir has ended, and nothing is sent.
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        Some(runtime.spawn(async move {
            // A server need not allow it.
            if let Err(e) = request.send().await {
                tracing::debug!("end a session of an MCP server: {e}");
            }
        }))
    }
}

/// Why there is no stream.
enum Lost {
    /// The next attempt may succeed.
    ForNow,
    ForGood(Fault),
}

impl From<Lost> for Fault {
    fn from(lost: Lost) -> Fault {
        match lost {
            Lost::ForNow => Fault::Closed,
            Lost::ForGood(fault) => fault,
        }
    }
}

/// The fault of a server that says by a header that it wants a sign-in, or more than this one.
fn wants_sign_in(response: &Response) -> Option<Fault> {
    let header = response.headers().get(WWW_AUTHENTICATE)?.to_str().unwrap_or_default();
    let is_short = header.contains("insufficient_scope");
    Some(Fault::NeedsLogin { scope: Challenge::read(header).scope.filter(|_| is_short) })
}

/// What a response is.
enum Media {
    Events,
    Json,
    Other(String),
}

impl Media {
    fn of(response: &Response) -> Media {
        let header = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let header = String::from_utf8_lossy(header);
        match header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "text/event-stream" => Media::Events,
            "application/json" => Media::Json,
            "" => Media::Other("of no type".to_owned()),
            other => Media::Other(other.to_owned()),
        }
    }
}

/// The whole body of a response.
async fn body(mut response: Response) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|_| Fault::Closed)? {
        if bytes.len() + piece.len() > MAX_MESSAGE {
            return Err(too_long());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// The start of the body of a refusal.
async fn start_of(mut response: Response) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < MAX_SHOWN
        && let Ok(Some(piece)) = response.chunk().await
    {
        bytes.extend_from_slice(&piece);
    }
    bytes
}

fn too_long() -> Fault {
    Fault::TooLong(format!("the message has more than {} MB", MAX_MESSAGE >> 20))
}

/// The events of a response.
struct Events(Pin<Box<dyn Stream<Item = Result<Sse, sse_stream::Error>> + Send>>);

/// Why the bytes of a stream end early.
#[derive(Debug)]
enum Cut {
    TooLong,
    Connection,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cut::TooLong => "an event is too long",
            Cut::Connection => "the connection broke off",
        })
    }
}

impl std::error::Error for Cut {}

impl Events {
    fn of(response: Response) -> Events {
        // The decoder itself has no limit.
        let mut extent = Extent::default();
        let bounded = response.bytes_stream().map(move |piece| -> Result<Bytes, Cut> {
            let piece = piece.map_err(|_| Cut::Connection)?;
            if extent.grows_beyond(&piece, MAX_MESSAGE) { Err(Cut::TooLong) } else { Ok(piece) }
        });
        Events(Box::pin(SseByteStream::new(bounded)))
    }

    /// The next event; `None` where the stream has ended or broken off.
    async fn next(&mut self) -> Result<Option<Sse>, Fault> {
        match self.0.next().await {
            Some(Ok(event)) => Ok(Some(event)),
            Some(Err(sse_stream::Error::Body(why))) if matches!(why.downcast_ref(), Some(Cut::TooLong)) => {
                Err(too_long())
            }
            Some(Err(_)) | None => Ok(None),
        }
    }
}
