//! The protocol itself. Only this file knows the SDK.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ClientRequest, ContentBlock,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorData, Implementation, JsonObject,
    ListResourcesRequest, ListToolsRequest, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
    ReadResourceRequestParams, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, Peer, RequestContext, RoleClient, RunningService,
    ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::IntoTransport;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::ask::{self, Ears};
use super::lines::TOO_LONG;
use super::secrets::Secrets;
use crate::protocol::event::Question;
use crate::text::clean::clean;

/// The most pages of a list that are read.
const MAX_PAGES: usize = 64;
/// The most items of a list that are read.
const MAX_ITEMS: usize = 1_024;
/// The most of a list that is read, bytes as JSON.
const MAX_LISTED: usize = 2 << 20;

/// A connection to a server.
pub(super) struct Client {
    service: tokio::sync::Mutex<Option<RunningService<RoleClient, Handler>>>,
    peer: Peer<RoleClient>,
    heard: Arc<Heard>,
    /// The ways to the user, for what the server asks.
    pub(super) ears: Arc<Ears>,
    /// What the server says about itself.
    pub(super) about: About,
}

/// What a server says about itself.
#[derive(Debug, Clone, Default)]
pub(super) struct About {
    pub(super) version: String,
    pub(super) instructions: String,
    pub(super) has_tools: bool,
}

/// What a server has sent besides answers.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The list of tools may be another one.
    pub(super) list_changed: AtomicBool,
    progress: AtomicU64,
    progressed: Notify,
}

/// Why nothing came of a request.
#[derive(Debug)]
pub(super) enum Fault {
    /// The server answered with an error.
    Refused(String),
    /// The answer is longer than a message may be.
    TooLong(String),
    /// The answer is no answer.
    Odd(String),
    /// The connection is gone.
    Closed,
    /// It took too long.
    TimedOut(Duration),
    /// The server wants a sign-in.
    NeedsLogin,
    /// The server asks the user something that pixir does not show.
    Asks,
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
    name: String,
    secrets: Secrets,
    heard: Arc<Heard>,
    ears: Arc<Ears>,
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
        Ok(match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
                let shown = self.secrets.masked_json(&schema);
                let Some(questions) = ask::questions(&self.name, &self.secrets.masked(&message), &shown) else {
                    return Ok(ElicitResult::new(ElicitationAction::Decline));
                };
                match self.ears.ask(questions).await.and_then(|answers| ask::content(&schema, &answers)) {
                    Some(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
                    None => ElicitResult::new(ElicitationAction::Decline),
                }
            }
            // The page is for the user; pixir does not open it.
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                let question = format!("{} asks: {message}\nOpen this page in a browser: {url}", self.name);
                let question = self.secrets.masked(&question);
                let options = vec!["I have opened it".to_owned(), "No".to_owned()];
                let question =
                    Question { question: clean(&question).into_owned(), options, only_options: true, multiple: false };
                let answers = self.ears.ask(vec![question]).await.unwrap_or_default();
                let is_open = answers.first().and_then(|it| it.first()).is_some_and(|it| it != "No");
                ElicitResult::new(if is_open { ElicitationAction::Accept } else { ElicitationAction::Decline })
            }
            _ => ElicitResult::new(ElicitationAction::Decline),
        })
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
        self.heard.progressed.notify_waiters();
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
        let ears = Arc::<Ears>::default();
        let handler = Handler {
            name: name.to_owned(),
            secrets: secrets.clone(),
            heard: Arc::clone(&heard),
            ears: Arc::clone(&ears),
        };
        let lifecycle = match begin {
            Begin::Initialize => ClientLifecycleMode::Initialize,
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
        });
        Ok(Client { service: tokio::sync::Mutex::new(Some(service)), peer, heard, ears, about })
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
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
        let answer = self.within(limit, self.peer.call_tool_once(params)).await?.map_err(of_service)?;
        match answer {
            CallToolResponse::Complete(result) => Ok(Answer {
                content: result.content.into_iter().map(block).collect(),
                structured: result.structured_content,
                is_error: result.is_error == Some(true),
                note: None,
            }),
            CallToolResponse::InputRequired(_) => Err(Fault::Asks),
            CallToolResponse::Task(_) => Err(Fault::Odd("it answered with a task".to_owned())),
            _ => Err(Fault::Odd("it answered with something newer".to_owned())),
        }
    }

    /// Reads a resource; without a URI, lists them.
    pub(super) async fn read(&self, uri: &str, limit: Duration) -> Result<Answer, Fault> {
        if uri.is_empty() {
            let request = |params| {
                ListResourcesRequest { method: Default::default(), params, extensions: Default::default() }.into()
            };
            let Listed { items, is_whole } = self.within(limit, self.listed("resources", request)).await??;
            let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
            let lines: String = items.iter().map(|it| format!("{}  {}\n", text(it, "uri"), text(it, "name"))).collect();
            let first = items.len();
            let note = (!is_whole).then(|| format!("the server lists more than these {first} resources"));
            return Ok(Answer { note, content: vec![Block::Text(lines)], ..Answer::default() });
        }
        let params = ReadResourceRequestParams::new(uri);
        let read = self.within(limit, self.peer.read_resource(params)).await?.map_err(of_service)?;
        let parts = read.contents.iter().map(|it| resource(&serde_json::to_value(it).unwrap_or_default()));
        Ok(Answer { content: parts.collect(), ..Answer::default() })
    }

    /// Waits as long as the server is allowed to take. Each sign of progress begins the time anew, ten times at most.
    async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::pin!(work);
        let mut seen = self.heard.progress.load(Ordering::Relaxed);
        for _ in 0..=10 {
            if let Ok(done) = tokio::time::timeout(limit, &mut work).await {
                return Ok(done);
            }
            let now = self.heard.progress.load(Ordering::Relaxed);
            if std::mem::replace(&mut seen, now) == now {
                break;
            }
        }
        Err(Fault::TimedOut(limit))
    }

    /// Closes the connection, which closes the server's stdin.
    pub(super) async fn close(&self) {
        let service = self.service.lock().await.take();
        if let Some(service) = service {
            let _ = tokio::time::timeout(Duration::from_millis(200), service.cancel()).await;
        }
    }
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
        it if it.is_authorization_required() => Fault::NeedsLogin,
        ServiceError::TransportClosed | ServiceError::Cancelled { .. } => Fault::Closed,
        ServiceError::Timeout { timeout } => Fault::TimedOut(timeout),
        other => of_other(&other.to_string()),
    }
}

/// What happened, without the types of the SDK that stand around it.
fn of_other(text: &str) -> Fault {
    let why = text.rsplit_once("unexpected server response: ").map_or(text, |(_, why)| why);
    let why = why.split(", when send").next().unwrap_or(why).trim_end_matches([':', ',', ' ']);
    // A server that wants a key should name how to get one. Many do not.
    if why.starts_with("HTTP 401") { Fault::NeedsLogin } else { Fault::Odd(why.to_owned()) }
}

fn of_initialize(error: &ClientInitializeError) -> Fault {
    match error {
        it if it.is_authorization_required() => Fault::NeedsLogin,
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::Cancelled => Fault::Closed,
        ClientInitializeError::JsonRpcError(it) => Fault::Refused(it.message.to_string()),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => of_initialize(fallback),
        other => of_other(&other.to_string()),
    }
}
