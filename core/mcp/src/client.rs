//! The protocol itself, as the SDK speaks it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ClientRequest, ContentBlock,
    ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorData, GetPromptRequestParams, GetPromptResponse,
    Implementation, JsonObject, ListPromptsRequest, ListResourcesRequest, ListToolsRequest, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, Peer, RequestContext, RoleClient, RunningService,
    ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::IntoTransport;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::ask::Listening;
use super::challenge::Challenge;
use super::lines::TOO_LONG;
use super::pages::{CUT, MAX_ITEMS, MAX_LISTED};
use super::secrets::Secrets;
use call::FormRequest;

mod asker; // what a server asks the user

use asker::{Asker, Inputs, Round};

/// The most pages of a list that are read.
const MAX_PAGES: usize = 64;
/// The codes of a server that does not know a method, or a version of the protocol.
const OTHER_ERA: [i64; 2] = [-32_601, -32_022];
/// How long a server may take to list its prompts. It is used without them after that.
const PROMPTS: Duration = Duration::from_secs(3);
/// How often a server may ask for something before it answers one request.
const MAX_ROUNDS: usize = 4;

/// A connection to a server.
pub(super) struct Client {
    service: tokio::sync::Mutex<Option<RunningService<RoleClient, Handler>>>,
    peer: Peer<RoleClient>,
    heard: Arc<Heard>,
    /// How the server asks the user.
    asker: Arc<Asker>,
    /// What the server says about itself.
    pub(super) about: About,
}

/// What a server says about itself.
#[derive(Debug, Clone, Default)]
pub(super) struct About {
    pub(super) version: String,
    pub(super) instructions: String,
    pub(super) has_tools: bool,
    pub(super) has_prompts: bool,
    pub(super) has_resources: bool,
}

/// What a server has sent besides answers.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The list of tools may be another one.
    pub(super) list_changed: AtomicBool,
    progress: AtomicU64,
}

/// Why nothing came of a request.
#[derive(Debug)]
pub(super) enum Fault {
    /// The server answered with an error.
    Refused(String),
    /// The server does not know this way to begin.
    OtherEra(String),
    /// The answer is longer than a message may be.
    TooLong(String),
    /// The answer is no answer.
    Odd(String),
    /// The connection is gone.
    Closed,
    /// It took too long.
    TimedOut(Duration),
    /// The server wants a sign-in.
    NeedsLogin {
        /// One with this scope, where the present one does not suffice.
        scope: Option<String>,
    },
}

/// What was read of a list.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// As JSON, so that one with a fault does not hide the others.
    pub(super) items: Vec<Value>,
    /// The server had no more to list.
    pub(super) is_whole: bool,
}

/// The answer to a call of a tool.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// What pixir says about it, before all else.
    pub(super) note: Option<String>,
    pub(super) content: Vec<Block>,
    pub(super) structured: Option<Value>,
    pub(super) is_error: bool,
}

/// One part of an answer.
#[derive(Debug)]
pub(super) enum Block {
    Text(String),
    /// Bytes in base64.
    Bytes {
        media_type: String,
        data: String,
    },
    /// A resource that the server names.
    Link {
        uri: String,
        name: String,
        title: Option<String>,
    },
}

struct Handler {
    heard: Arc<Heard>,
    asker: Arc<Asker>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("pixir", env!("CARGO_PKG_VERSION"));
        let asks = ElicitationCapability::new().with_form(Default::default()).with_url(Default::default());
        let mut abilities = ClientCapabilities::default();
        abilities.elicitation = Some(asks);
        // The newest version that begins with `initialize`.
        ClientConfig::new(abilities, own).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.asker.ask(request).await)
    }

    #[expect(deprecated, reason = "the SDK would answer with an empty list, and roots are not declared")]
    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, "roots/list", None))
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.heard.list_changed.store(true, Ordering::Relaxed);
    }

    async fn on_progress(&self, _params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.heard.progress.fetch_add(1, Ordering::Relaxed);
    }
}

/// The order in which the two ways to begin are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// `initialize`: a strict old server exits at a method that it does not know.
    Initialize,
    /// `server/discover`, of the stateless revision.
    Discover,
}

impl Begin {
    /// What a server with this version of the protocol answers at once; `None` where its version is not known.
    pub(super) fn of_version(version: &str) -> Option<Begin> {
        let is_stateless = version >= ProtocolVersion::V_2026_07_28.as_str();
        (!version.is_empty()).then_some(if is_stateless { Begin::Discover } else { Begin::Initialize })
    }

    /// The other one.
    pub(super) fn other(self) -> Begin {
        match self {
            Begin::Initialize => Begin::Discover,
            Begin::Discover => Begin::Initialize,
        }
    }
}

impl Client {
    /// Begins a connection.
    pub(super) async fn connect<T, E, A>(
        name: &str,
        secrets: &Secrets,
        transport: T,
        begin: Begin,
    ) -> Result<Client, Fault>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let heard = Arc::new(Heard::default());
        let asker = Arc::new(Asker::new(name, secrets));
        let handler = Handler { heard: Arc::clone(&heard), asker: Arc::clone(&asker) };
        let lifecycle = match begin {
            Begin::Initialize => ClientLifecycleMode::Initialize,
            // Falls back to `initialize` by itself where the server answers that it does not know this.
            Begin::Discover => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
        };
        let service =
            serve_client_with_lifecycle(handler, transport, lifecycle).await.map_err(|e| of_initialize(&e))?;
        let peer = service.peer().clone();
        let about = peer.peer_info().map_or_else(About::default, |info| About {
            version: info.protocol_version.to_string(),
            instructions: info.instructions.clone().unwrap_or_default(),
            has_tools: info.capabilities.tools.is_some(),
            has_prompts: info.capabilities.prompts.is_some(),
            has_resources: info.capabilities.resources.is_some(),
        });
        Ok(Client { service: tokio::sync::Mutex::new(Some(service)), peer, heard, asker, about })
    }

    /// Whether nothing can be sent any more.
    pub(super) fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Whether the list of tools may have changed since the last call of this.
    pub(super) fn take_list_changed(&self) -> bool {
        self.heard.list_changed.swap(false, Ordering::Relaxed)
    }

    /// The tools.
    pub(super) async fn tools(&self) -> Result<Listed, Fault> {
        if !self.about.has_tools {
            return Ok(Listed { is_whole: true, ..Listed::default() });
        }
        let request =
            |params| ListToolsRequest { method: Default::default(), params, extensions: Default::default() }.into();
        self.listed("tools", request).await
    }

    /// The prompts; none where the server does not list them in time.
    pub(super) async fn prompts(&self) -> Vec<Value> {
        if !self.about.has_prompts {
            return Vec::new();
        }
        let request =
            |params| ListPromptsRequest { method: Default::default(), params, extensions: Default::default() }.into();
        match tokio::time::timeout(PROMPTS, self.listed("prompts", request)).await {
            Ok(Ok(listed)) => listed.items,
            Ok(Err(_)) | Err(_) => Vec::new(),
        }
    }

    /// The text of a prompt.
    pub(super) async fn prompt(&self, name: &str, args: Map<String, Value>, limit: Duration) -> Result<String, Fault> {
        let asked = GetPromptRequestParams::new(name.to_owned()).with_arguments(args);
        let result = self
            .answered(limit, |inputs| {
                let mut params = asked.clone();
                (params.input_responses, params.request_state) = (inputs.responses, inputs.state);
                async move {
                    match self.peer.get_prompt_once(params).await.map_err(of_service)? {
                        GetPromptResponse::Complete(result) => Ok(Round::Done(result)),
                        GetPromptResponse::InputRequired(asked) => Ok(Round::Asks(asked)),
                        _ => Err(Fault::Odd("it answered with something newer".to_owned())),
                    }
                }
                .boxed()
            })
            .await?;
        let text = |it: rmcp::model::PromptMessage| match block(it.content) {
            Block::Text(text) => text,
            Block::Bytes { media_type, .. } => format!("[{media_type}, which a message cannot hold]"),
            Block::Link { uri, .. } => uri,
        };
        Ok(result.messages.into_iter().map(text).collect::<Vec<_>>().join("\n\n"))
    }

    /// The addresses of its resources.
    pub(super) async fn resources(&self, limit: Duration) -> Result<Vec<String>, Fault> {
        let listed = self.within(limit, self.listed("resources", list_resources)).await??;
        Ok(listed.items.iter().filter_map(|it| it["uri"].as_str()).map(str::to_owned).collect())
    }

    /// A list, page by page: as much of it as is read of any list.
    async fn listed(
        &self,
        key: &str,
        request: impl Fn(Option<PaginatedRequestParams>) -> ClientRequest,
    ) -> Result<Listed, Fault> {
        let none = || Fault::Odd(format!("what it sent as its {key} is not a list"));
        let (mut all, mut bytes) = (Listed::default(), 0);
        let (mut cursor, mut cursors) = (None, Vec::new());
        for _ in 0..MAX_PAGES {
            let params = cursor.take().map(|it: String| PaginatedRequestParams::default().with_cursor(Some(it)));
            // The SDK's own way to list would answer from what it has kept, also after an error, and has no end.
            let page = self.peer.send_request(request(params)).await.map_err(of_service)?;
            let json = |e: serde_json::Error| Fault::Odd(e.to_string());
            let mut add = |it: Value| {
                bytes += it.to_string().len();
                let has_room = all.items.len() < MAX_ITEMS && bytes <= MAX_LISTED;
                if has_room {
                    all.items.push(it);
                }
                has_room
            };
            let mut has_room = true;
            let next = match page {
                ServerResult::ListToolsResult(page) => {
                    for it in page.tools {
                        has_room = has_room && add(serde_json::to_value(it).map_err(json)?);
                    }
                    page.next_cursor
                }
                ServerResult::ListResourcesResult(page) => {
                    for it in page.resources {
                        has_room = has_room && add(serde_json::to_value(it).map_err(json)?);
                    }
                    page.next_cursor
                }
                ServerResult::ListPromptsResult(page) => {
                    for it in page.prompts {
                        has_room = has_room && add(serde_json::to_value(it).map_err(json)?);
                    }
                    page.next_cursor
                }
                // The SDK reads no list in which one item is odd.
                ServerResult::CustomResult(mut page) => {
                    let next = page.0["nextCursor"].as_str().map(str::to_owned);
                    let items = page.0.get_mut(key).map(Value::take);
                    let Some(Value::Array(items)) = items else { return Err(none()) };
                    has_room = items.into_iter().all(add);
                    next
                }
                _ => return Err(none()),
            };
            match next {
                _ if !has_room => return Ok(all),
                None => return Ok(Listed { is_whole: true, ..all }),
                Some(next) if next.is_empty() => return Ok(Listed { is_whole: true, ..all }),
                Some(next) if next == CUT => return Ok(all),
                // It would go round for ever.
                Some(next) if cursors.contains(&next) => return Ok(all),
                Some(next) => {
                    cursors.push(next.clone());
                    cursor = Some(next);
                }
            }
        }
        Ok(all)
    }

    /// Calls a tool. Dropping the future tells the server that the call is cancelled.
    pub(super) async fn call(&self, tool: &str, args: Map<String, Value>, limit: Duration) -> Result<Answer, Fault> {
        let args: JsonObject = args;
        let asked = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
        let result = self
            .answered(limit, |inputs| {
                let mut params = asked.clone();
                (params.input_responses, params.request_state) = (inputs.responses, inputs.state);
                async move {
                    match self.peer.call_tool_once(params).await.map_err(of_service)? {
                        CallToolResponse::Complete(result) => Ok(Round::Done(result)),
                        CallToolResponse::InputRequired(asked) => Ok(Round::Asks(asked)),
                        CallToolResponse::Task(_) => Err(Fault::Odd("it answered with a task".to_owned())),
                        _ => Err(Fault::Odd("it answered with something newer".to_owned())),
                    }
                }
                .boxed()
            })
            .await?;
        Ok(Answer {
            content: result.content.into_iter().map(block).collect(),
            structured: result.structured_content,
            is_error: result.is_error == Some(true),
            note: None,
        })
    }

    /// The answer to a request, after everything that the server asks the user before it.
    async fn answered<'a, T>(
        &'a self,
        limit: Duration,
        request: impl Fn(Inputs) -> BoxFuture<'a, Result<Round<T>, Fault>>,
    ) -> Result<T, Fault> {
        let mut inputs = Inputs::default();
        for asked_before in 0..=MAX_ROUNDS {
            match self.within(limit, request(inputs)).await?? {
                Round::Done(answer) => return Ok(answer),
                Round::Asks(_) if asked_before == MAX_ROUNDS => break,
                Round::Asks(asked) => inputs = self.asker.inputs(asked).await?,
            }
        }
        Err(Fault::Odd(format!("it asked more than {MAX_ROUNDS} times before it answered")))
    }

    /// Reads a resource; without a URI, lists them.
    pub(super) async fn read(&self, uri: &str, limit: Duration) -> Result<Answer, Fault> {
        if uri.is_empty() {
            let Listed { items, is_whole } = self.within(limit, self.listed("resources", list_resources)).await??;
            let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
            let lines: String = items.iter().map(|it| format!("{}  {}\n", text(it, "uri"), text(it, "name"))).collect();
            let first = items.len();
            let note = (!is_whole).then(|| format!("the server lists more than these {first} resources"));
            return Ok(Answer { note, content: vec![Block::Text(lines)], ..Answer::default() });
        }
        let read = self
            .answered(limit, |inputs| {
                let mut params = ReadResourceRequestParams::new(uri);
                (params.input_responses, params.request_state) = (inputs.responses, inputs.state);
                async move {
                    match self.peer.read_resource_once(params).await.map_err(of_service)? {
                        ReadResourceResponse::Complete(read) => Ok(Round::Done(read)),
                        ReadResourceResponse::InputRequired(asked) => Ok(Round::Asks(asked)),
                        _ => Err(Fault::Odd("it answered with something newer".to_owned())),
                    }
                }
                .boxed()
            })
            .await?;
        let parts = read.contents.iter().map(|it| resource(&serde_json::to_value(it).unwrap_or_default()));
        Ok(Answer { content: parts.collect(), ..Answer::default() })
    }

    /// The server can ask the user during this call, until the result is dropped; without `forms` its questions are declined.
    pub(super) fn listen(&self, forms: Option<mpsc::Sender<FormRequest>>) -> Option<Listening<'_>> {
        self.asker.ears.listen(forms)
    }

    /// Waits as long as the server is allowed to take. Each sign of progress begins the time anew, ten times at most; while
    /// the server waits for the user, it does not count.
    async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::pin!(work);
        let mut seen = self.heard.progress.load(Ordering::Relaxed);
        let mut extensions = 0;
        loop {
            if let Ok(done) = tokio::time::timeout(limit, &mut work).await {
                return Ok(done);
            }
            if self.asker.waits() {
                continue;
            }
            let now = self.heard.progress.load(Ordering::Relaxed);
            extensions += 1;
            if std::mem::replace(&mut seen, now) == now || extensions > 10 {
                return Err(Fault::TimedOut(limit));
            }
        }
    }

    /// Closes the connection, which closes the server's stdin.
    pub(super) async fn close(&self) {
        let service = self.service.lock().await.take();
        if let Some(service) = service {
            let _ = tokio::time::timeout(Duration::from_millis(200), service.cancel()).await;
        }
    }
}

fn list_resources(params: Option<PaginatedRequestParams>) -> ClientRequest {
    ListResourcesRequest { method: Default::default(), params, extensions: Default::default() }.into()
}

fn block(content: ContentBlock) -> Block {
    match content {
        ContentBlock::Text(it) => Block::Text(it.text),
        ContentBlock::Image(it) => Block::Bytes { media_type: it.mime_type, data: it.data },
        ContentBlock::Audio(it) => Block::Bytes { media_type: it.mime_type, data: it.data },
        ContentBlock::Resource(it) => resource(&serde_json::to_value(&it.resource).unwrap_or_default()),
        ContentBlock::ResourceLink(it) => Block::Link { uri: it.uri, name: it.name, title: it.title },
        other => Block::Text(serde_json::to_string(&other).unwrap_or_default()),
    }
}

/// The content of a resource.
fn resource(it: &Value) -> Block {
    match it["text"].as_str() {
        Some(text) => Block::Text(text.to_owned()),
        None => Block::Bytes {
            media_type: it["mimeType"].as_str().unwrap_or("application/octet-stream").to_owned(),
            data: it["blob"].as_str().unwrap_or_default().to_owned(),
        },
    }
}

fn of_service(error: ServiceError) -> Fault {
    match error {
        ServiceError::McpError(it) if i64::from(it.code.0) == TOO_LONG => Fault::TooLong(it.message.to_string()),
        ServiceError::McpError(it) => Fault::Refused(it.message.to_string()),
        it if it.auth_challenge().is_some() => of_challenge(it.auth_challenge()),
        ServiceError::TransportClosed | ServiceError::Cancelled { .. } => Fault::Closed,
        // It reads nothing any more.
        ServiceError::TransportSend(it) if it.error.is::<std::io::Error>() => Fault::Closed,
        ServiceError::Timeout { timeout } => Fault::TimedOut(timeout),
        other => of_other(&other.to_string()),
    }
}

/// The fault of a server that refuses a client without a sign-in, or with this one.
fn of_challenge(header: Option<&str>) -> Fault {
    let is_short = |it: &&str| it.contains("insufficient_scope");
    Fault::NeedsLogin { scope: header.filter(is_short).and_then(|it| Challenge::read(it).scope) }
}

/// What happened, without the types of the SDK that stand around it.
fn of_other(text: &str) -> Fault {
    let why = text.rsplit_once("unexpected server response: ").map_or(text, |(_, why)| why);
    let why = why.split(", when send").next().unwrap_or(why).trim_end_matches([':', ',', ' ']);
    // A server that wants a key should name how to get one. Many do not.
    if why.starts_with("HTTP 401") { Fault::NeedsLogin { scope: None } } else { Fault::Odd(why.to_owned()) }
}

fn of_initialize(error: &ClientInitializeError) -> Fault {
    match error {
        it if it.auth_challenge().is_some() => of_challenge(it.auth_challenge()),
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::Cancelled => Fault::Closed,
        ClientInitializeError::TransportError { error, .. } if error.error.is::<std::io::Error>() => Fault::Closed,
        ClientInitializeError::JsonRpcError(it) if OTHER_ERA.contains(&i64::from(it.code.0)) => {
            Fault::OtherEra(it.message.to_string())
        }
        ClientInitializeError::JsonRpcError(it) => Fault::Refused(it.message.to_string()),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => of_initialize(fallback),
        other => of_other(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;
    use std::io;

    use rmcp::transport::DynamicTransportError;

    use super::*;

    /// Broken build: a program that has ended before it read the first message does not speak the protocol, and the user reads
    /// the names of types.
    #[test]
    fn a_pipe_that_nobody_reads_is_a_connection_that_is_closed() {
        let broken = || {
            let why = Box::new(io::Error::from(io::ErrorKind::BrokenPipe));
            DynamicTransportError::from_parts("pipes", TypeId::of::<()>(), why)
        };
        let begun = ClientInitializeError::TransportError { error: broken(), context: "send initialize".into() };
        assert!(matches!(of_initialize(&begun), Fault::Closed));
        assert!(matches!(of_service(ServiceError::TransportSend(broken())), Fault::Closed));
    }
}
