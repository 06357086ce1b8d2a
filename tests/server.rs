//! A scripted model server on loopback: it speaks Responses and Chat Completions, cuts, stalls and refuses as told.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// What the server answers to one request.
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
}

pub(crate) fn text(text: &str) -> Reply {
    Reply::Answer { text: text.into(), calls: Vec::new() }
}

pub(crate) fn call(id: &str, tool: &str, args: Value) -> Reply {
    Reply::Answer { text: String::new(), calls: vec![(id.into(), tool.into(), args)] }
}

/// Which of the two the client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Responses,
    Chat,
}

impl Dialect {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Dialect::Responses => "responses",
            Dialect::Chat => "chat",
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    replies: Vec<Reply>,
    bodies: Vec<Value>,
    keys: Vec<String>,
}

/// A running server; it ends with the test.
pub(crate) struct Server {
    pub(crate) url: String,
    shared: Arc<(Mutex<Shared>, Condvar)>,
}

impl Server {
    /// Answers the requests in this order; a request too many is refused with 500.
    pub(crate) fn start(replies: Vec<Reply>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let shared = Arc::new((Mutex::new(Shared { replies, ..Shared::default() }), Condvar::new()));
        let for_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&for_thread);
                thread::spawn(move || {
                    let _ = serve(stream, &shared);
                });
            }
        });
        Server { url, shared }
    }

    /// The bodies that were posted so far.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.shared.0.lock().expect("the server lives").bodies.clone()
    }

    /// What each request said of who asks.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.shared.0.lock().expect("the server lives").keys.clone()
    }

    /// Waits until so many requests have come.
    pub(crate) fn wait_for(&self, requests: usize) {
        let guard = self.shared.0.lock().expect("the server lives");
        let (guard, waited) = self
            .shared
            .1
            .wait_timeout_while(guard, Duration::from_secs(20), |it| it.bodies.len() < requests)
            .expect("the server lives");
        assert!(!waited.timed_out(), "only {} of {requests} requests came", guard.bodies.len());
    }

    pub(crate) fn flags(&self, dialect: Dialect) -> Vec<String> {
        ["--base-url", &self.url, "--dialect", dialect.name(), "--model", "m"].map(str::to_owned).to_vec()
    }
}

fn serve(mut stream: TcpStream, shared: &(Mutex<Shared>, Condvar)) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut length = 0;
    let mut key = String::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("authorization: ") {
            value.trim().clone_into(&mut key);
        }
        if let Some(n) = line.to_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    if request.starts_with("GET") {
        let models = json!({ "data": [{ "id": "m" }, { "id": "other" }] }).to_string();
        return write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{models}",
            models.len()
        );
    }
    let reply = {
        let mut shared_now = shared.0.lock().expect("the server lives");
        shared_now.bodies.push(serde_json::from_slice(&body).unwrap_or_default());
        shared_now.keys.push(key);
        let reply = if shared_now.replies.is_empty() { None } else { Some(shared_now.replies.remove(0)) };
        shared.1.notify_all();
        reply
    };
    let dialect = if request.contains("/responses") { Dialect::Responses } else { Dialect::Chat };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    match reply {
        None => write!(stream, "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
        Some(Reply::Refuse { status, headers, body }) => {
            write!(
                stream,
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
        }
        Some(Reply::Answer { text, calls }) => {
            stream.write_all(head.as_bytes())?;
            // In odd pieces, so that events and characters are cut anywhere.
            for piece in whole(dialect, &text, &calls).as_bytes().chunks(61) {
                stream.write_all(piece)?;
                stream.flush()?;
            }
            Ok(())
        }
        Some(Reply::Stall { text }) => {
            stream.write_all(head.as_bytes())?;
            stream.write_all(delta(dialect, &text).as_bytes())?;
            // Until the client goes away.
            reader.read_line(&mut request).map(drop)
        }
        Some(Reply::Cut { text }) => {
            stream.write_all(head.as_bytes())?;
            stream.write_all(delta(dialect, &text).as_bytes())
        }
    }
}

fn event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or("message"))
}

fn delta(dialect: Dialect, text: &str) -> String {
    match dialect {
        Dialect::Responses => event(&json!({ "type": "response.output_text.delta", "delta": text })),
        Dialect::Chat => format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": { "content": text } }] })),
    }
}

fn whole(dialect: Dialect, text: &str, calls: &[(String, String, Value)]) -> String {
    let mut out = String::new();
    for word in text.split_inclusive(' ') {
        out.push_str(&delta(dialect, word));
    }
    match dialect {
        Dialect::Responses => {
            for (id, tool, args) in calls {
                out.push_str(&event(&json!({ "type": "response.output_item.done", "item": { "type": "function_call", "call_id": id, "name": tool, "arguments": args.to_string() } })));
            }
            let usage = json!({ "input_tokens": 100, "input_tokens_details": { "cached_tokens": 40 }, "output_tokens": 7, "output_tokens_details": { "reasoning_tokens": 2 } });
            out.push_str(&event(&json!({ "type": "response.completed", "response": { "usage": usage } })));
        }
        Dialect::Chat => {
            for (index, (id, tool, args)) in calls.iter().enumerate() {
                let args = args.to_string();
                let (first, second) = args.split_at(args.len() / 2);
                for piece in [
                    json!({ "index": index, "id": id, "type": "function", "function": { "name": tool, "arguments": first } }),
                    json!({ "index": index, "function": { "arguments": second } }),
                ] {
                    out.push_str(&format!(
                        "data: {}\n\n",
                        json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [piece] } }] })
                    ));
                }
            }
            let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
            out.push_str(&format!(
                "data: {}\n\n",
                json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] })
            ));
            let usage = json!({ "prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": { "cached_tokens": 40 }, "completion_tokens_details": { "reasoning_tokens": 2 } });
            out.push_str(&format!("data: {}\n\ndata: [DONE]\n\n", json!({ "choices": [], "usage": usage })));
        }
    }
    out
}
