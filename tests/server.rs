//! A scripted model server on loopback: it speaks every dialect, and fails in every way that servers fail.

use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) use pixir_core::provider::Dialect;
use serde_json::{Value, json};

use crate::wait;

/// The reply of the server to one request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Text, then calls as (id, tool, arguments).
    Answer { text: String, calls: Vec<(String, String, Value)> },
    /// Some text, then silence for as long as the client stays.
    Stall { text: String },
    /// Some text, then the connection ends.
    Cut { text: String },
    /// A status with a body.
    Refuse { status: u16, headers: String, body: String },
    /// The reply, if the request has at most so many tokens at four bytes each; else a refusal in these words, and the
    /// reply waits for the next request.
    Within { window: usize, words: fn(window: usize, tokens: usize) -> String, reply: Box<Reply> },
    /// Exactly this, byte for byte.
    Raw(Vec<Act>),
}

/// One step on the connection.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// These bytes, at once.
    Send(Vec<u8>),
    /// These bytes again and again, with this many milliseconds between, until the client disconnects.
    Drip(Vec<u8>, u64),
    /// Nothing for this many microseconds.
    Pause(u64),
    /// Nothing until the test opens the gate.
    Until(Gate),
    /// Nothing more, for as long as the client stays.
    Stall,
    /// The connection is reset.
    Reset,
}

/// A test opens the gate when the server may continue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().expect("no poison") = true;
        self.0.1.notify_all();
    }

    pub(crate) fn wait(&self) {
        let is_open = self.0.0.lock().expect("no poison");
        let _ = self.0.1.wait_timeout_while(is_open, wait::PATIENCE, |is_open| !*is_open).expect("no poison");
    }
}

pub(crate) fn text(text: &str) -> Reply {
    Reply::Answer { text: text.into(), calls: Vec::new() }
}

pub(crate) fn call(id: &str, tool: &str, args: Value) -> Reply {
    Reply::Answer { text: String::new(), calls: vec![(id.into(), tool.into(), args)] }
}

#[derive(Debug, Default)]
struct Shared {
    replies: Vec<Reply>,
    bodies: Vec<Value>,
    heads: Vec<String>,
    /// What the server answers beside its API, by path.
    beside: Vec<(&'static str, Value)>,
    /// Open connections.
    open: usize,
    /// The bytes of a token: the server reports the tokens that a request has, and forgets the request. 0: it does neither.
    counts: usize,
}

/// A running server; it ends with the test.
pub(crate) struct Server {
    pub(crate) url: String,
    shared: Arc<(Mutex<Shared>, Condvar)>,
}

impl Server {
    /// Answers the requests in this order; a request too many is refused with 400, which is not retried.
    pub(crate) fn start(replies: Vec<Reply>) -> Server {
        Server::behind(replies, "http", |stream| {
            let reading = stream.try_clone()?;
            Ok((BufReader::new(Box::new(reading) as _), stream))
        })
    }

    /// The same, with other answers to requests for facts: `/v1/models`, `/props`, `/api/ps` and the like.
    pub(crate) fn with_facts(replies: Vec<Reply>, beside: Vec<(&'static str, Value)>) -> Server {
        let server = Server::start(replies);
        server.shared.0.lock().expect("the server lives").beside = beside;
        server
    }

    /// The same for a long conversation in the dialect `chat` with the model `other`, which has this window: it reports the
    /// tokens that each request has, and keeps only the latest request.
    pub(crate) fn counting(replies: Vec<Reply>, window: u64) -> Server {
        Server::counting_each(replies, window, 4)
    }

    /// The same with tokens of so many bytes.
    pub(crate) fn counting_each(replies: Vec<Reply>, window: u64, bytes: usize) -> Server {
        let models = json!({ "data": [{ "id": "other", "max_model_len": window }] });
        let server = Server::with_facts(replies, vec![("/v1/models", models)]);
        server.shared.0.lock().expect("the server lives").counts = bytes;
        server
    }

    /// The same, with a layer such as TLS between the socket and HTTP.
    pub(crate) fn behind<W: Connection + 'static>(
        replies: Vec<Reply>,
        scheme: &str,
        dress: impl Fn(TcpStream) -> std::io::Result<(BufReader<Box<dyn std::io::Read>>, W)> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("{scheme}://{}/v1", listener.local_addr().expect("an address"));
        let shared = Arc::new((Mutex::new(Shared { replies, ..Shared::default() }), Condvar::new()));
        let (for_thread, dress) = (Arc::clone(&shared), Arc::new(dress));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, dress) = (Arc::clone(&for_thread), Arc::clone(&dress));
                shared.0.lock().expect("the server lives").open += 1;
                thread::spawn(move || {
                    if let Ok((reader, writer)) = dress(stream) {
                        let _ = serve(reader, writer, &shared);
                    }
                    shared.0.lock().expect("the server lives").open -= 1;
                    shared.1.notify_all();
                });
            }
        });
        Server { url, shared }
    }

    /// The bodies that were posted so far.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.shared.0.lock().expect("the server lives").bodies.clone()
    }

    /// The key of each posted request, in whichever header it was sent.
    pub(crate) fn keys(&self) -> Vec<String> {
        let key = |head: &String| {
            let line = head.lines().find(|l| l.starts_with("authorization: ") || l.starts_with("x-api-key: "));
            line.and_then(|line| line.split_once(": ")).map_or(String::new(), |(_, key)| key.to_owned())
        };
        self.heads().iter().filter(|head| head.starts_with("POST") && !head.contains("/api/")).map(key).collect()
    }

    /// The first lines of every request, in lower case but for the values.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.shared.0.lock().expect("the server lives").heads.clone()
    }

    /// Waits until this many requests have come.
    pub(crate) fn wait_for(&self, requests: usize) {
        let guard = self.shared.0.lock().expect("the server lives");
        let (guard, waited) = self
            .shared
            .1
            .wait_timeout_while(guard, wait::PATIENCE, |it| it.bodies.len() < requests)
            .expect("the server lives");
        assert!(!waited.timed_out(), "only {} of {requests} requests came", guard.bodies.len());
    }

    /// Waits until every connection is closed.
    pub(crate) fn wait_until_alone(&self) {
        let guard = self.shared.0.lock().expect("the server lives");
        let waited = self.shared.1.wait_timeout_while(guard, wait::PATIENCE, |it| it.open > 0);
        assert!(!waited.expect("the server lives").1.timed_out(), "a client is still connected");
    }

    pub(crate) fn flags(&self, dialect: Dialect) -> Vec<String> {
        ["--base-url", &self.url, "--dialect", dialect.name(), "--model", "m"].map(str::to_owned).to_vec()
    }
}

/// A connection to the client.
pub(crate) trait Connection: Write {
    /// Resets the connection.
    fn reset(&mut self);
    /// Ends the stream.
    fn close(&mut self) {}
}

impl Connection for TcpStream {
    fn reset(&mut self) {
        // Without lingering, closing resets the connection.
        let _ = rustix::net::sockopt::set_socket_linger(&*self, Some(Duration::ZERO));
    }

    fn close(&mut self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

pub(crate) const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn serve<W: Connection>(
    mut reader: BufReader<Box<dyn std::io::Read>>,
    mut stream: W,
    shared: &(Mutex<Shared>, Condvar),
) -> std::io::Result<()> {
    let mut request = String::new();
    if reader.read_line(&mut request)? == 0 {
        // The client disconnected before its request.
        return Ok(());
    }
    let (mut length, mut head) = (0, request.clone());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(n) = line.to_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().unwrap_or(0);
        }
        head.push_str(&line.replace('\r', ""));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let path = request.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default().to_owned();
    let dialect = Dialect::ALL.into_iter().find(|it| {
        path.ends_with(match it {
            Dialect::Responses => "/responses",
            Dialect::Chat => "/chat/completions",
            Dialect::Anthropic => "/messages",
        })
    });
    let Some(dialect) = dialect else {
        let mut shared = shared.0.lock().expect("the server lives");
        shared.heads.push(head);
        let known = shared.beside.iter().find(|(at, _)| *at == path).map(|(_, fact)| fact.clone());
        let models = || json!({ "data": [{ "id": "m" }, { "id": "other", "context_length": 4096 }] });
        let fact = known.or_else(|| (request.starts_with("GET") && path.ends_with("/models")).then(models));
        drop(shared);
        let (status, fact) = fact.map_or(("404 Not Found", String::new()), |fact| ("200 OK", fact.to_string()));
        return write!(
            stream,
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{fact}",
            fact.len()
        );
    };
    let (reply, counts) = {
        let mut shared_now = shared.0.lock().expect("the server lives");
        if shared_now.counts > 0 {
            shared_now.bodies.clear();
            shared_now.heads.clear();
        }
        shared_now.bodies.push(serde_json::from_slice(&body).unwrap_or_default());
        shared_now.heads.push(head);
        let mut reply = if shared_now.replies.is_empty() { None } else { Some(shared_now.replies.remove(0)) };
        if let Some(Reply::Within { window, words, reply: fitting }) = &reply {
            let tokens = length / 4;
            if tokens > *window {
                let refusal = Reply::Refuse { status: 400, headers: String::new(), body: words(*window, tokens) };
                shared_now.replies.insert(0, reply.replace(refusal).expect("it is there"));
            } else {
                let fitting = (**fitting).clone();
                reply = Some(fitting);
            }
        }
        shared.1.notify_all();
        (reply, shared_now.counts)
    };
    match reply {
        None => write!(stream, "HTTP/1.1 400 No More Replies\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
        Some(Reply::Refuse { status, headers, body }) => {
            write!(
                stream,
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
        }
        Some(Reply::Answer { text, calls }) => {
            stream.write_all(HEAD.as_bytes())?;
            let mut said = vec![Part::Text(&text)];
            said.extend(calls.iter().map(|(id, tool, args)| Part::Call(id, tool, args)));
            let mut answer = answer(dialect, &said).concat();
            if let Some(tokens) = length.checked_div(counts) {
                answer = answer.replace("\"prompt_tokens\":100", &format!("\"prompt_tokens\":{tokens}"));
            }
            // Pieces of an odd size cut events and characters anywhere.
            for piece in answer.as_bytes().chunks(61) {
                stream.write_all(piece)?;
                stream.flush()?;
            }
            stream.close();
            Ok(())
        }
        Some(Reply::Stall { text }) => {
            stream.write_all(HEAD.as_bytes())?;
            stream.write_all(opening(dialect, &text).as_bytes())?;
            stream.flush()?;
            // Until the client disconnects.
            reader.read_line(&mut request).map(drop)
        }
        Some(Reply::Cut { text }) => {
            stream.write_all(HEAD.as_bytes())?;
            stream.write_all(opening(dialect, &text).as_bytes())
        }
        Some(Reply::Within { .. }) => unreachable!("it was replaced above"),
        Some(Reply::Raw(acts)) => perform(acts, &mut reader, &mut stream),
    }
}

fn perform<W: Connection>(
    acts: Vec<Act>,
    reader: &mut BufReader<Box<dyn std::io::Read>>,
    stream: &mut W,
) -> std::io::Result<()> {
    for act in acts {
        match act {
            Act::Send(bytes) => {
                stream.write_all(&bytes)?;
                stream.flush()?;
            }
            Act::Drip(bytes, every) => loop {
                stream.write_all(&bytes)?;
                stream.flush()?;
                wait::lapse(Duration::from_millis(every));
            },
            Act::Pause(micros) => wait::lapse(Duration::from_micros(micros)),
            Act::Until(gate) => gate.wait(),
            Act::Stall => return reader.read_line(&mut String::new()).map(drop),
            Act::Reset => stream.reset(),
        }
    }
    Ok(())
}

/// One part of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part<'a> {
    Reasoning(&'a str),
    Text(&'a str),
    /// Id, tool, arguments.
    Call(&'a str, &'a str, &'a Value),
}

/// An event with this data. Its name is the `type` of the data.
pub(crate) fn event(value: &Value) -> String {
    match value["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    }
}

/// The beginning of an answer: its first words.
pub(crate) fn opening(dialect: Dialect, text: &str) -> String {
    let mut events = begin(dialect);
    let mut words = part(dialect, 0, Part::Text(text));
    if dialect == Dialect::Anthropic {
        // Its block stays open.
        words.pop();
    }
    events.extend(words);
    events.concat()
}

/// A whole answer, event by event.
pub(crate) fn answer(dialect: Dialect, said: &[Part<'_>]) -> Vec<String> {
    let mut events = begin(dialect);
    for (place, it) in said.iter().enumerate() {
        if !matches!(it, Part::Text("")) {
            events.extend(part(dialect, place, *it));
        }
    }
    events.extend(end(dialect, said.iter().any(|it| matches!(it, Part::Call(..)))));
    events
}

pub(crate) fn begin(dialect: Dialect) -> Vec<String> {
    match dialect {
        Dialect::Responses => vec![event(&json!({ "type": "response.created", "response": { "id": "r" } }))],
        Dialect::Chat => Vec::new(),
        Dialect::Anthropic => {
            let usage = json!({ "input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 1 });
            vec![event(&json!({ "type": "message_start", "message": { "id": "m", "usage": usage } }))]
        }
    }
}

/// The events of one part: text cut into words, arguments into halves. A long text comes in larger pieces: stories fill windows
/// with one word over and over, which no model that writes word by word is let do.
pub(crate) fn part(dialect: Dialect, place: usize, it: Part<'_>) -> Vec<String> {
    let words = |text: &str| {
        let words: Vec<&str> = text.split_inclusive(' ').collect();
        let together = if text.len() > 4_000 { words.len().div_ceil(100).max(1) } else { 1 };
        words.chunks(together).map(|some| some.concat()).collect::<Vec<_>>()
    };
    let halves = |args: &Value| {
        let text = args.to_string();
        let (first, second) = text.split_at(text.len() / 2);
        [first.to_owned(), second.to_owned()]
    };
    let mut events = Vec::new();
    let mut say = |value: Value| events.push(event(&value));
    match (dialect, it) {
        (Dialect::Responses, Part::Text(text)) => {
            for word in words(text) {
                say(json!({ "type": "response.output_text.delta", "output_index": place, "delta": word }));
            }
        }
        (Dialect::Responses, Part::Reasoning(text)) => {
            for word in words(text) {
                say(json!({ "type": "response.reasoning_summary_text.delta", "output_index": place, "delta": word }));
            }
            let summary = json!([{ "type": "summary_text", "text": text }]);
            let item = json!({ "type": "reasoning", "id": "rs", "summary": summary, "encrypted_content": "gAAA" });
            say(json!({ "type": "response.output_item.done", "output_index": place, "item": item }));
        }
        (Dialect::Responses, Part::Call(id, tool, args)) => {
            let item = |args: &str| json!({ "type": "function_call", "call_id": id, "name": tool, "arguments": args });
            say(json!({ "type": "response.output_item.added", "output_index": place, "item": item("") }));
            for half in halves(args) {
                say(json!({ "type": "response.function_call_arguments.delta", "output_index": place, "delta": half }));
            }
            say(json!({ "type": "response.output_item.done", "output_index": place, "item": item(&args.to_string()) }));
        }
        (Dialect::Chat, Part::Text(text)) => {
            for word in words(text) {
                say(json!({ "choices": [{ "index": 0, "delta": { "content": word } }] }));
            }
        }
        (Dialect::Chat, Part::Reasoning(text)) => {
            for word in words(text) {
                say(json!({ "choices": [{ "index": 0, "delta": { "reasoning_content": word } }] }));
            }
        }
        (Dialect::Chat, Part::Call(id, tool, args)) => {
            let [first, second] = halves(args);
            for piece in [
                json!({ "index": place, "id": id, "type": "function", "function": { "name": tool, "arguments": first } }),
                json!({ "index": place, "function": { "arguments": second } }),
            ] {
                say(json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [piece] } }] }));
            }
        }
        (Dialect::Anthropic, it) => {
            let (block, deltas) = match it {
                Part::Text(text) => {
                    let deltas = words(text).into_iter().map(|word| json!({ "type": "text_delta", "text": word }));
                    (json!({ "type": "text", "text": "" }), deltas.collect::<Vec<_>>())
                }
                Part::Reasoning(text) => {
                    let deltas =
                        words(text).into_iter().map(|word| json!({ "type": "thinking_delta", "thinking": word }));
                    let signed = json!({ "type": "signature_delta", "signature": "EqQB" });
                    (json!({ "type": "thinking", "thinking": "", "signature": "" }), deltas.chain([signed]).collect())
                }
                Part::Call(id, tool, args) => {
                    let deltas = halves(args).map(|half| json!({ "type": "input_json_delta", "partial_json": half }));
                    (json!({ "type": "tool_use", "id": id, "name": tool, "input": {} }), deltas.to_vec())
                }
            };
            say(json!({ "type": "content_block_start", "index": place, "content_block": block }));
            for delta in deltas {
                say(json!({ "type": "content_block_delta", "index": place, "delta": delta }));
            }
            say(json!({ "type": "content_block_stop", "index": place }));
        }
    }
    events
}

/// Every answer reports 100 input tokens, 40 of them cached, and 7 output tokens, 2 of them for reasoning.
pub(crate) fn end(dialect: Dialect, calls: bool) -> Vec<String> {
    match dialect {
        Dialect::Responses => {
            let usage = json!({ "input_tokens": 100, "input_tokens_details": { "cached_tokens": 40 }, "output_tokens": 7, "output_tokens_details": { "reasoning_tokens": 2 } });
            vec![event(&json!({ "type": "response.completed", "response": { "usage": usage } }))]
        }
        Dialect::Chat => {
            let finish = if calls { "tool_calls" } else { "stop" };
            let usage = json!({ "prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": { "cached_tokens": 40 }, "completion_tokens_details": { "reasoning_tokens": 2 } });
            vec![
                event(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] })),
                event(&json!({ "choices": [], "usage": usage })),
                "data: [DONE]\n\n".to_owned(),
            ]
        }
        Dialect::Anthropic => {
            let reason = if calls { "tool_use" } else { "end_turn" };
            let usage = json!({ "output_tokens": 7, "output_tokens_details": { "thinking_tokens": 2 } });
            vec![
                event(&json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": usage })),
                event(&json!({ "type": "message_stop" })),
            ]
        }
    }
}

/// Bytes of one delta in a long answer.
const DELTA: usize = 64;

/// One answer with a text and an argument of `size` bytes each, as a server sends it.
pub(crate) fn long(dialect: Dialect, size: usize) -> String {
    let words: Vec<String> = (0..size / DELTA).map(|n| format!("w{n:062} ")).collect();
    let mut out = String::new();
    let mut say = |value: Value| out.push_str(&event(&value));
    let args = json!({ "path": "x", "content": words.concat() }).to_string();
    match dialect {
        Dialect::Responses => {
            for word in &words {
                say(json!({ "type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": word }));
            }
            for piece in args.as_bytes().chunks(DELTA) {
                let delta = std::str::from_utf8(piece).expect("ASCII");
                say(
                    json!({ "type": "response.function_call_arguments.delta", "item_id": "f", "output_index": 1, "delta": delta }),
                );
            }
            let item =
                json!({ "id": "f", "type": "function_call", "call_id": "c", "name": "write", "arguments": args });
            say(json!({ "type": "response.output_item.done", "output_index": 1, "item": item }));
            say(
                json!({ "type": "response.completed", "response": { "usage": { "input_tokens": 1, "output_tokens": 2 } } }),
            );
        }
        Dialect::Chat => {
            for word in &words {
                say(json!({ "choices": [{ "index": 0, "delta": { "content": word } }] }));
            }
            for piece in args.as_bytes().chunks(DELTA) {
                let delta = std::str::from_utf8(piece).expect("ASCII");
                let call = json!({ "index": 0, "id": "c", "function": { "name": "write", "arguments": delta } });
                say(json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] }));
            }
            say(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] }));
            out.push_str("data: [DONE]\n\n");
        }
        Dialect::Anthropic => {
            say(json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }));
            for word in &words {
                say(
                    json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": word } }),
                );
            }
            let block = json!({ "type": "tool_use", "id": "c", "name": "write", "input": {} });
            say(json!({ "type": "content_block_start", "index": 1, "content_block": block }));
            for piece in args.as_bytes().chunks(DELTA) {
                let delta = std::str::from_utf8(piece).expect("ASCII");
                say(
                    json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "input_json_delta", "partial_json": delta } }),
                );
            }
            say(
                json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 2 } }),
            );
            say(json!({ "type": "message_stop" }));
        }
    }
    out
}

pub(crate) fn raw(events: &str) -> Reply {
    Reply::Raw(vec![Act::Send(format!("{HEAD}{events}").into_bytes())])
}

pub(crate) fn said(dialect: Dialect, parts: &[Part<'_>]) -> Reply {
    raw(&answer(dialect, parts).concat())
}
