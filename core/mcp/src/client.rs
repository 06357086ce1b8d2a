//! The protocol itself: how a connection begins, and what a server is asked.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::ask::Listening;
use super::headers;
use super::pages::{CUT, MAX_ITEMS, MAX_LISTED};
use super::pipes::{Pipes, Writer};
use super::secrets::Secrets;
use super::stream::Http;
use call::FormRequest;
use protocol::error::Error;

mod asker; // what a server asks the user
mod peer; // requests under way, and what the server sends beside their answers

use asker::{Asker, InputRequired, Inputs};
use peer::Link;
pub(super) use peer::Peer;

/// The newest version of the protocol that begins with `initialize`.
const NEWEST_WITH_INITIALIZE: &str = "2025-11-25";
/// The first version without: each request is complete by itself.
pub(super) const STATELESS: &str = "2026-07-28";
/// The most pages of a list that are read.
const MAX_PAGES: usize = 64;
/// The codes of a server that does not know a method, or a version of the protocol.
const OTHER_ERA: [i64; 2] = [-32_601, -32_022];
/// The codes of a stateless server that misses an ability of the client, or a header: it knows `server/discover`.
const STATELESS_REFUSALS: [i64; 2] = [-32_021, -32_020];
/// How long a server may take to answer `server/discover`. Some that do not know it say nothing.
const DISCOVERY: Duration = Duration::from_secs(10);
/// How long a server may take to list its prompts. It is used without them after that.
const PROMPTS: Duration = Duration::from_secs(3);
/// The type of bytes whose type is not known.
const BYTES: &str = "application/octet-stream";
/// How often a server may ask for something before it answers one request.
const MAX_ROUNDS: usize = 4;

/// A connection to a server. It is closed when this is dropped.
pub(super) struct Client {
    peer: Peer,
    /// How the server asks the user.
    asker: Arc<Asker>,
    /// What the server says about itself.
    pub(super) about: About,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.peer.abort();
    }
}

/// A future that is made here once, and not in every crate that waits for it.
type Answering<'a, T> = BoxFuture<'a, Result<T, Fault>>;

/// What a server says about itself.
#[derive(Debug, Clone, Default)]
pub(super) struct About {
    pub(super) version: String,
    pub(super) instructions: String,
    pub(super) has_tools: bool,
    pub(super) has_prompts: bool,
    pub(super) has_resources: bool,
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
    /// The server could not be reached, or the connection to it broke off.
    Unreached {
        /// Why, and what to do.
        error: Box<Error>,
        /// The connection stood, so a request may have taken effect.
        was_connected: bool,
    },
    /// The server answered with an HTTP status other than success.
    Status {
        status: u16,
        /// The status in words, and the beginning of the body.
        words: String,
    },
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
    /// Why others are left out.
    pub(super) left_out: Vec<String>,
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
        let is_stateless = version >= STATELESS;
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

/// The parameters of `initialize`.
pub(super) fn initialize_params() -> Map<String, Value> {
    let params = json!({
        "protocolVersion": NEWEST_WITH_INITIALIZE, "capabilities": abilities(), "clientInfo": client_info(),
    });
    object(params)
}

/// What pixir says about itself with each request to a stateless server.
fn introduction() -> Map<String, Value> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": client_info(),
        "io.modelcontextprotocol/clientCapabilities": abilities(),
    });
    object(meta)
}

/// What a server may ask of pixir.
fn abilities() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} } })
}

fn client_info() -> Value {
    json!({ "name": "pixir", "version": env!("CARGO_PKG_VERSION") })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// The result of `initialize`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized {
    protocol_version: String,
    #[serde(default)]
    capabilities: Abilities,
    instructions: Option<String>,
}

/// The result of `server/discover`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered {
    supported_versions: Vec<String>,
    #[serde(default)]
    capabilities: Abilities,
    instructions: Option<String>,
}

/// What a server can do, as far as pixir uses it.
#[derive(Default, Deserialize)]
struct Abilities {
    tools: Option<Value>,
    prompts: Option<Value>,
    resources: Option<Value>,
}

impl About {
    fn new(version: &str, abilities: &Abilities, instructions: Option<String>) -> About {
        About {
            version: version.to_owned(),
            instructions: instructions.unwrap_or_default(),
            has_tools: abilities.tools.is_some(),
            has_prompts: abilities.prompts.is_some(),
            has_resources: abilities.resources.is_some(),
        }
    }
}

impl Client {
    /// Begins a connection to the process of a server.
    pub(super) fn over_pipes<'a>(
        name: &'a str,
        secrets: &'a Secrets,
        pipes: Pipes,
        begin: Begin,
    ) -> Answering<'a, Client> {
        Box::pin(async move {
            let mut client = Client::new(name, secrets, Link::Pipes(Writer::start(pipes.stdin)));
            client.peer.read(pipes.stdout);
            client.begin(begin).await?;
            Ok(client)
        })
    }

    /// Begins a connection to a server elsewhere.
    pub(super) fn over_http<'a>(
        name: &'a str,
        secrets: &'a Secrets,
        http: Http,
        begin: Begin,
    ) -> Answering<'a, Client> {
        Box::pin(async move {
            let mut client = Client::new(name, secrets, Link::Http(Box::new(http)));
            client.begin(begin).await?;
            if let Some(http) = client.peer.http() {
                http.listen(&client.peer).await;
            }
            Ok(client)
        })
    }

    fn new(name: &str, secrets: &Secrets, link: Link) -> Client {
        let asker = Arc::new(Asker::new(name, secrets));
        Client { peer: Peer::new(link, Arc::clone(&asker)), asker, about: About::default() }
    }

    async fn begin(&mut self, begin: Begin) -> Result<(), Fault> {
        let discovered = match begin {
            Begin::Initialize => None,
            Begin::Discover => match timeout(DISCOVERY, self.discover()).await {
                Ok(discovered) => discovered?,
                Err(_) => None,
            },
        };
        self.about = match discovered {
            Some(about) => about,
            None => self.initialize().await?,
        };
        Ok(())
    }

    /// Asks a stateless server about itself; `None` where it is none.
    async fn discover(&self) -> Result<Option<About>, Fault> {
        self.speak(Some(STATELESS));
        let params = json!({ "_meta": introduction() });
        let result = match self.peer.ask("server/discover", object(params)).await? {
            Ok(result) => result,
            Err(refusal) if STATELESS_REFUSALS.contains(&refusal.code) => return Err(Fault::Refused(refusal.message)),
            Err(_) => return Ok(None),
        };
        let it: Discovered = read("server/discover", result)?;
        if !it.supported_versions.iter().any(|version| version == STATELESS) {
            return Ok(None);
        }
        self.peer.introduce(introduction());
        Ok(Some(About::new(STATELESS, &it.capabilities, it.instructions)))
    }

    async fn initialize(&self) -> Result<About, Fault> {
        self.speak(None);
        let result = match self.peer.ask("initialize", initialize_params()).await? {
            Ok(result) => result,
            Err(refusal) if OTHER_ERA.contains(&refusal.code) => return Err(Fault::OtherEra(refusal.message)),
            Err(refusal) => return Err(refusal.into()),
        };
        let it: Initialized = read("initialize", result)?;
        self.speak(Some(&it.protocol_version));
        if it.protocol_version.as_str() >= STATELESS {
            self.peer.introduce(introduction());
        }
        self.peer.tell("notifications/initialized", json!({})).await?;
        Ok(About::new(&it.protocol_version, &it.capabilities, it.instructions))
    }

    /// The version that the next messages are in. Over HTTP a header says so.
    fn speak(&self, version: Option<&str>) {
        if let Some(http) = self.peer.http() {
            http.speak(version);
        }
    }

    /// Whether nothing can be sent any more.
    pub(super) fn is_closed(&self) -> bool {
        self.peer.is_closed()
    }

    /// Whether the list of tools may have changed since the last call of this.
    pub(super) fn take_list_changed(&self) -> bool {
        self.peer.take_list_changed()
    }

    /// The tools.
    pub(super) fn tools(&self) -> Answering<'_, Listed> {
        Box::pin(async move {
            if !self.about.has_tools {
                return Ok(Listed { is_whole: true, ..Listed::default() });
            }
            let mut listed = self.listed("tools").await?;
            let http = self.peer.http().filter(|_| self.about.version.as_str() >= STATELESS);
            if let Some(http) = http {
                for tool in std::mem::take(&mut listed.items) {
                    let name = tool["name"].as_str().unwrap_or_default();
                    match headers::promoted(&tool["inputSchema"]) {
                        Ok(promoted) => {
                            http.promote(name, promoted);
                            listed.items.push(tool);
                        }
                        Err(why) => listed.left_out.push(format!("`{}`: {why}", name.escape_debug())),
                    }
                }
            }
            Ok(listed)
        })
    }

    /// The prompts; none where the server does not list them in time.
    pub(super) fn prompts(&self) -> BoxFuture<'_, Vec<Value>> {
        Box::pin(async move {
            if !self.about.has_prompts {
                return Vec::new();
            }
            match timeout(PROMPTS, self.listed("prompts")).await {
                Ok(Ok(listed)) => listed.items,
                Ok(Err(_)) | Err(_) => Vec::new(),
            }
        })
    }

    /// The text of a prompt.
    pub(super) fn prompt<'a>(
        &'a self,
        name: &'a str,
        args: Map<String, Value>,
        limit: Duration,
    ) -> Answering<'a, String> {
        #[derive(Deserialize)]
        struct Prompt {
            messages: Vec<Message>,
        }
        #[derive(Deserialize)]
        struct Message {
            content: Value,
        }
        let text = |it: Message| match block(it.content) {
            Block::Text(text) => text,
            Block::Bytes { media_type, .. } => format!("[{media_type}, which a message cannot hold]"),
            Block::Link { uri, .. } => uri,
        };
        Box::pin(async move {
            let params = object(json!({ "name": name, "arguments": args }));
            let it: Prompt = read("prompts/get", self.answered("prompts/get", params, limit).await?)?;
            Ok(it.messages.into_iter().map(text).collect::<Vec<_>>().join("\n\n"))
        })
    }

    /// The addresses of its resources.
    pub(super) fn resources(&self, limit: Duration) -> Answering<'_, Vec<String>> {
        Box::pin(async move {
            let listed = self.within(limit, self.listed("resources")).await??;
            Ok(listed.items.iter().filter_map(|it| it["uri"].as_str()).map(str::to_owned).collect())
        })
    }

    /// A list, page by page: as much of it as is read of any list.
    async fn listed(&self, key: &str) -> Result<Listed, Fault> {
        let method = format!("{key}/list");
        let (mut all, mut bytes) = (Listed::default(), 0);
        let (mut cursor, mut cursors) = (None, Vec::new());
        for _ in 0..MAX_PAGES {
            let params = cursor.take().map_or(json!({}), |it: String| json!({ "cursor": it }));
            let mut page = self.peer.ask(&method, object(params)).await??;
            let next = page["nextCursor"].as_str().map(str::to_owned);
            let items = page.get_mut(key).map(Value::take);
            let Some(Value::Array(items)) = items else {
                return Err(Fault::Odd(format!("what it sent as its {key} is not a list")));
            };
            for it in items {
                bytes += it.to_string().len();
                if all.items.len() == MAX_ITEMS || bytes > MAX_LISTED {
                    return Ok(all);
                }
                all.items.push(it);
            }
            match next {
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
    pub(super) fn call<'a>(
        &'a self,
        tool: &'a str,
        args: Map<String, Value>,
        limit: Duration,
    ) -> Answering<'a, Answer> {
        Box::pin(async move {
            let params = object(json!({ "name": tool, "arguments": args }));
            let mut result = self.answered("tools/call", params, limit).await?;
            let is_result = ["content", "structuredContent", "isError"].iter().any(|it| result.get(it).is_some());
            let is_empty = result.as_object().is_some_and(|it| it.keys().all(|it| it == "_meta" || it == "resultType"));
            let content = match result.get_mut("content").map(Value::take) {
                Some(Value::Array(content)) => content,
                None | Some(Value::Null) if is_result || is_empty => Vec::new(),
                _ => return Err(Fault::Odd("what it sent is not the result of a tool".to_owned())),
            };
            Ok(Answer {
                content: content.into_iter().map(block).collect(),
                structured: result.get_mut("structuredContent").map(Value::take),
                is_error: result["isError"] == true,
                note: None,
            })
        })
    }

    /// The result of a request, after everything that the server asks the user before it.
    async fn answered(&self, method: &str, params: Map<String, Value>, limit: Duration) -> Result<Value, Fault> {
        let mut inputs = Inputs::default();
        for asked_before in 0..=MAX_ROUNDS {
            let mut params = params.clone();
            inputs.add_to(&mut params);
            let result = self.within(limit, self.peer.ask(method, params)).await???;
            match result["resultType"].as_str() {
                None | Some("complete") => return Ok(result),
                Some("input_required") if asked_before == MAX_ROUNDS => break,
                Some("input_required") => {
                    inputs = self.asker.inputs(read::<InputRequired>(method, result)?).await?;
                }
                Some("task") => return Err(Fault::Odd("it answered with a task".to_owned())),
                Some(_) => return Err(Fault::Odd("it answered with something newer".to_owned())),
            }
        }
        Err(Fault::Odd(format!("it asked more than {MAX_ROUNDS} times before it answered")))
    }

    /// Reads a resource; without a URI, lists them.
    pub(super) fn read<'a>(&'a self, uri: &'a str, limit: Duration) -> Answering<'a, Answer> {
        #[derive(Deserialize)]
        struct Resource {
            contents: Vec<Value>,
        }
        Box::pin(async move {
            if uri.is_empty() {
                return self.directory(limit).await;
            }
            let params = object(json!({ "uri": uri }));
            let it: Resource = read("resources/read", self.answered("resources/read", params, limit).await?)?;
            Ok(Answer { content: it.contents.into_iter().map(resource).collect(), ..Answer::default() })
        })
    }

    async fn directory(&self, limit: Duration) -> Result<Answer, Fault> {
        let Listed { items, is_whole, .. } = self.within(limit, self.listed("resources")).await??;
        let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
        let lines: String = items.iter().map(|it| format!("{}  {}\n", text(it, "uri"), text(it, "name"))).collect();
        let first = items.len();
        let note = (!is_whole).then(|| format!("the server lists more than these {first} resources"));
        Ok(Answer { note, content: vec![Block::Text(lines)], ..Answer::default() })
    }

    /// The server can ask the user during this call, until the result is dropped; without `forms` its questions are declined.
    pub(super) fn listen(&self, forms: Option<mpsc::Sender<FormRequest>>) -> Option<Listening<'_>> {
        self.asker.ears.listen(forms)
    }

    /// Waits as long as the server is allowed to take. Each sign of progress begins the time anew, ten times at most; while
    /// the server waits for the user, it does not count.
    async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::pin!(work);
        let mut seen = self.peer.progress();
        let mut extensions = 0;
        loop {
            if let Ok(done) = timeout(limit, &mut work).await {
                return Ok(done);
            }
            if self.asker.waits() {
                continue;
            }
            let now = self.peer.progress();
            extensions += 1;
            if std::mem::replace(&mut seen, now) == now || extensions > 10 {
                return Err(Fault::TimedOut(limit));
            }
        }
    }

    /// Closes the connection, which closes the server's stdin.
    pub(super) fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.peer.close())
    }
}

/// The result of a request in its own shape. What else it holds is ignored.
fn read<T: DeserializeOwned>(method: &str, result: Value) -> Result<T, Fault> {
    serde_json::from_value(result).map_err(|e| Fault::Odd(format!("the result of {method}: {e}")))
}

/// A part of an answer. One of a kind that pixir does not know is shown as JSON.
fn block(mut content: Value) -> Block {
    let mut take = |key: &str| match content.get_mut(key).map(Value::take) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    match take("type").as_deref() {
        Some("text") => Block::Text(take("text").unwrap_or_default()),
        Some("image" | "audio") => Block::Bytes {
            media_type: take("mimeType").unwrap_or_else(|| BYTES.to_owned()),
            data: take("data").unwrap_or_default(),
        },
        Some("resource_link") => Block::Link {
            uri: take("uri").unwrap_or_default(),
            name: take("name").unwrap_or_default(),
            title: take("title"),
        },
        Some("resource") => resource(content.get_mut("resource").map(Value::take).unwrap_or_default()),
        Some(kind) => {
            content["type"] = kind.into();
            Block::Text(content.to_string())
        }
        None => Block::Text(content.to_string()),
    }
}

/// The content of a resource.
fn resource(mut it: Value) -> Block {
    let mut take = |key: &str| match it.get_mut(key).map(Value::take) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    match take("text") {
        Some(text) => Block::Text(text),
        None => Block::Bytes {
            media_type: take("mimeType").unwrap_or_else(|| BYTES.to_owned()),
            data: take("blob").unwrap_or_default(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
    use tokio::process::{Child, ChildStdout, Command};
    use tokio::sync::watch;

    use super::super::pipes::Printed;
    use super::*;

    /// The other end of a connection: what pixir sends comes back from `cat`.
    struct Other {
        sent: Lines<BufReader<ChildStdout>>,
        to: mpsc::Sender<Vec<u8>>,
        _cat: Child,
    }

    impl Other {
        fn start() -> (Other, Pipes) {
            let mut cat = Command::new("cat");
            let mut cat =
                cat.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("it starts");
            let (stdin, stdout) = (cat.stdin.take().expect("piped"), cat.stdout.take().expect("piped"));
            let (to, messages) = mpsc::channel(8);
            let other = Other { sent: BufReader::new(stdout).lines(), to, _cat: cat };
            (other, Pipes { stdin, stdout: Printed { messages, reading: watch::channel(()).0 } })
        }

        /// The next message of pixir.
        async fn next(&mut self) -> Value {
            let line = self.sent.next_line().await.expect("a line").expect("a line");
            serde_json::from_str(&line).expect("JSON")
        }

        async fn say(&self, message: Value) {
            self.to.send(message.to_string().into_bytes()).await.expect("it is read");
        }

        /// A connection that began with `initialize`.
        async fn begun() -> (Other, Client) {
            let (mut other, pipes) = Other::start();
            let secrets = Secrets::default();
            let server = async {
                let asked = other.next().await;
                other.say(hello(&asked["id"])).await;
                other.next().await
            };
            let begun = Client::over_pipes("test", &secrets, pipes, Begin::Initialize);
            let (client, initialized) = tokio::join!(begun, server);
            assert_eq!(initialized["method"], "notifications/initialized");
            (other, client.expect("it begins"))
        }
    }

    fn hello(id: &Value) -> Value {
        let result = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} } });
        json!({ "jsonrpc": "2.0", "id": id, "result": result })
    }

    const LIMIT: Duration = Duration::from_secs(60);

    /// Broken build: a program that has ended before it read the first message does not speak the protocol.
    #[tokio::test]
    async fn a_program_that_ended_before_it_read_is_a_connection_that_is_closed() {
        let mut ended = Command::new("true").stdin(Stdio::piped()).spawn().expect("it starts");
        let stdin = ended.stdin.take().expect("piped");
        ended.wait().await.expect("it ends");
        let (_to, messages) = mpsc::channel(1);
        let pipes = Pipes { stdin, stdout: Printed { messages, reading: watch::channel(()).0 } };
        let begun = Client::over_pipes("test", &Secrets::default(), pipes, Begin::Initialize).await;
        assert!(matches!(begun, Err(Fault::Closed)));
    }

    /// Broken builds: an id that is written otherwise belongs to no request; an error without one fails nothing, so that the
    /// request waits for its time limit.
    #[tokio::test]
    async fn an_answer_belongs_to_its_request_however_its_id_is_written() {
        let (mut other, client) = Other::begun().await;
        let result = json!({ "content": [{ "type": "text", "text": "done" }] });
        let forms: [fn(i64) -> Value; 3] = [|id| json!(id), |id| json!(id.to_string()), |id| json!(id as f64)];
        for write in forms {
            let call = client.call("go", Map::new(), LIMIT);
            let server = async {
                let id = other.next().await["id"].as_i64().expect("a number");
                other.say(json!({ "jsonrpc": "2.0", "id": id + 70, "result": { "content": [] } })).await;
                other.say(json!({ "jsonrpc": "2.0", "id": write(id), "result": result })).await;
            };
            let (answer, ()) = tokio::join!(call, server);
            assert!(matches!(&answer.expect("an answer").content[..], [Block::Text(text)] if text == "done"));
        }
        for id in [json!({}), json!({ "id": null })] {
            let mut error = json!({ "jsonrpc": "2.0", "error": { "code": -32_700, "message": "what?" } });
            error.as_object_mut().expect("an object").extend(object(id));
            let server = async {
                other.next().await;
                other.say(error).await;
            };
            let (answer, ()) = tokio::join!(client.call("go", Map::new(), LIMIT), server);
            assert!(matches!(answer, Err(Fault::Refused(why)) if why == "what?"));
        }
    }

    /// Broken builds: a server hears nothing of a call that is not waited for; it hears the id of another one.
    #[tokio::test]
    async fn a_call_that_is_dropped_is_taken_back_by_its_own_id() {
        let (mut other, client) = Other::begun().await;
        let call = client.call("go", Map::new(), LIMIT);
        let asked = tokio::select! {
            _ = call => panic!("nothing has answered"),
            asked = other.next() => asked,
        };
        assert_eq!(asked["params"]["_meta"], json!({ "progressToken": asked["id"] }));
        let told = other.next().await;
        assert_eq!((&told["method"], &told["params"]["requestId"]), (&json!("notifications/cancelled"), &asked["id"]));
    }

    /// Broken builds: a server that looks whether pixir lives gives it up; roots or samples that were not declared are given.
    #[tokio::test]
    async fn a_ping_is_answered_and_what_was_not_declared_is_refused() {
        let (mut other, _client) = Other::begun().await;
        for (method, answer) in [
            ("ping", json!({})),
            ("roots/list", json!(-32_601)),
            ("sampling/createMessage", json!(-32_601)),
            ("elicitation/create", json!(-32_602)),
        ] {
            other.say(json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": {} })).await;
            let reply = other.next().await;
            let given = reply.get("result").unwrap_or(&reply["error"]["code"]);
            assert_eq!((&reply["id"], given), (&json!(method), &answer));
        }
    }

    /// Broken builds: a server of the one era is given up because it does not know the other; a stateless server is not told
    /// who calls.
    #[tokio::test]
    async fn a_connection_begins_in_the_era_of_the_server() {
        let found = json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
        for (reply, wanted) in [
            (json!({ "result": found }), "2026-07-28"),
            (json!({ "result": { "supportedVersions": ["2027-01-01"] } }), "2025-11-25"),
            (json!({ "error": { "code": -32_601, "message": "no method" } }), "2025-11-25"),
            (json!({ "error": { "code": -32_020, "message": "mismatch" } }), "refused"),
        ] {
            let (mut other, pipes) = Other::start();
            let server = async {
                let asked = other.next().await;
                assert_eq!(asked["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
                let mut message = json!({ "jsonrpc": "2.0", "id": asked["id"] });
                message.as_object_mut().expect("an object").extend(object(reply));
                other.say(message).await;
                if wanted == "2025-11-25" {
                    let asked = other.next().await;
                    other.say(hello(&asked["id"])).await;
                    other.next().await;
                }
            };
            let secrets = Secrets::default();
            let (begun, ()) = tokio::join!(Client::over_pipes("test", &secrets, pipes, Begin::Discover), server);
            let version = match &begun {
                Ok(client) => client.about.version.clone(),
                Err(Fault::Refused(_)) => "refused".to_owned(),
                Err(fault) => format!("{fault:?}"),
            };
            assert_eq!(version, wanted);
            let Ok(client) = begun else { continue };
            let listing = client.tools();
            let asked = tokio::select! {
                _ = listing => panic!("nothing has answered"),
                asked = other.next() => asked,
            };
            let is_told = asked["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] == "pixir";
            assert_eq!(is_told, version == "2026-07-28", "{asked}");
        }
    }
}
