//! A program that drives a Session: its Inputs arrive on stdin, one JSON object a line, and answers and Events leave on
//! stdout, one JSON object a line. Nothing that the terminal interface can do is closed to it.

use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use pixir_core::error::nearest;
use pixir_core::now::Now;
use pixir_core::{Accepted, Code, Entry, Error, Handle, Input, Remedy, Result, Watch};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use super::report::{Heard, Report};
use super::{Job, open};
use crate::cli::Signals;
use crate::output::{Output, envelope, versioned};

/// The version of this protocol. It grows only when a host must change.
const PROTOCOL: u32 = 1;
/// The longest line, bytes.
const MAX_LINE: usize = 32 << 20;
/// The most Entries of one answer.
const MOST_ENTRIES: usize = 1_000;

/// Serves the host until it closes stdin and everything it asked for is done, and returns the exit code.
pub(crate) async fn run(handle: &Handle, first: Option<Input>, job: Job<'_>, mut signals: Signals) -> u8 {
    let began = Instant::now();
    let Some((mut watch, mut report)) = open(handle, &job).await else { return 1 };
    report.expects_turn = false;
    let mut host = Host { handle, output: job.output, answers: FuturesUnordered::new() };
    host.say("ready", &json!({ "protocol": PROTOCOL, "session_id": handle.id(), "now": watch.now }));
    if let Some(input) = first {
        host.submit(Value::Null, input).await;
    }
    if report.refused.is_none() {
        host.serve(&mut watch, &mut report, &mut signals).await;
    }
    handle.close().await;
    report.catch_up(&mut watch);
    report.conclude(began)
}

/// The conversation with the host.
struct Host<'a> {
    handle: &'a Handle,
    output: &'a Output,
    /// Inputs that the Session has not answered yet, with the ids that the host gave them.
    answers: FuturesUnordered<BoxFuture<'static, (Value, Result<Accepted>)>>,
}

impl Host<'_> {
    async fn serve(&mut self, watch: &mut Watch, report: &mut Report<'_>, signals: &mut Signals) {
        let mut lines = Lines::new(tokio::io::stdin());
        let mut listens = true;
        loop {
            // Whether what the host asked for may be done now. Looking takes a copy of the conversation, so it is not done for
            // each event.
            let mut may_be_done = true;
            let heard = tokio::select! {
                line = lines.next(), if listens => {
                    match line {
                        Some(line) => self.on_line(line).await,
                        None => {
                            listens = false;
                            self.handle.send(Input::StopAsking).await;
                        }
                    }
                    None
                }
                Some((id, outcome)) = self.answers.next() => {
                    // What the Input led to comes before its answer.
                    report.catch_up(watch);
                    self.answer(&id, outcome.map(|accepted| json!({ "accepted": accepted })));
                    None
                }
                heard = Heard::next(watch, signals) => {
                    may_be_done = heard.is_a_rest();
                    Some(heard)
                }
            };
            if let Some(heard) = heard
                && !report.take(heard, self.handle).await
            {
                return;
            }
            let is_leaving = !listens || report.stopped.is_some() || self.output.is_closed();
            if may_be_done && is_leaving && self.answers.is_empty() && self.is_done(report.stopped.is_some()).await {
                return;
            }
        }
    }

    /// Whether nothing of what the host asked for is still to be done. After a signal the queue does not count.
    async fn is_done(&self, is_stopped: bool) -> bool {
        self.handle.settle().await;
        let Some(Watch { now, .. }) = self.handle.watch().await else { return true };
        let Now { turn, queue, children, waking, .. } = now;
        let waits = !queue.steer.is_empty() || !queue.follow_up.is_empty();
        let goes_on = waits || waking || children.iter().any(|child| child.status.is_open());
        turn.is_none() && (is_stopped || !goes_on)
    }

    async fn on_line(&mut self, line: Result<Vec<u8>>) {
        let parsed = line.map_err(|error| (Value::Null, error)).and_then(|line| Request::parse(&line));
        match parsed {
            Ok(None) => {}
            Ok(Some(Request { id, wish: Wish::Do(input) })) => self.submit(id, *input).await,
            Ok(Some(Request { id, wish: Wish::Get(what) })) => {
                let found = self.get(&what).await;
                self.answer(&id, found);
            }
            Err((id, error)) => self.answer(&id, Err(error)),
        }
    }

    async fn submit(&mut self, id: Value, input: Input) {
        let answer = self.handle.submit(input).await;
        self.answers.push(Box::pin(async move { (id, answer.await) }));
    }

    async fn get(&self, what: &What) -> Result<Value> {
        let closed = || Error::new(Code::SessionStartFailed, "the session has closed", "start another one");
        let Watch { past, now, .. } = self.handle.watch().await.ok_or_else(closed)?;
        Ok(match what {
            What::Now => json!({ "now": now }),
            What::Entries { from_seq, limit } => {
                let limit = limit.unwrap_or(MOST_ENTRIES).min(MOST_ENTRIES);
                let mut later = past.entries().iter().filter(|entry| entry.seq >= *from_seq);
                let lines: Result<Vec<Value>> = later.by_ref().take(limit).map(line_of).collect();
                json!({ "entries": lines?, "next_seq": later.next().map(|entry| entry.seq) })
            }
        })
    }

    fn answer(&self, id: &Value, outcome: Result<Value>) {
        let mut answer = match outcome {
            Ok(mut body) => {
                body["ok"] = json!(true);
                body
            }
            Err(error) => envelope(&error),
        };
        answer["id"] = id.clone();
        self.say("response", &answer);
    }

    fn say(&self, kind: &str, body: &impl Serialize) {
        let mut line = serde_json::to_value(body).expect("a value is JSON");
        line["type"] = json!(kind);
        self.output.line(&versioned(line).to_string());
    }
}

/// An Entry as its line in the Log has it, without the chain.
fn line_of(entry: &Arc<Entry>) -> Result<Value> {
    serde_json::from_str(&entry.encode()?).map_err(unwritable)
}

/// One line of the host.
#[derive(Debug, PartialEq)]
struct Request {
    /// Returned with the answer; null if the host gave none.
    id: Value,
    wish: Wish,
}

#[derive(Debug, PartialEq)]
enum Wish {
    Do(Box<Input>),
    Get(What),
}

/// What a host can look at besides the Events.
#[derive(Debug, PartialEq, Serialize, serde::Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
enum What {
    /// The state of the Session.
    Now,
    /// Recorded Entries.
    Entries {
        #[serde(default)]
        from_seq: u64,
        #[serde(default)]
        limit: Option<usize>,
    },
}

impl Request {
    /// Parses a line; an empty one asks for nothing.
    ///
    /// # Errors
    /// `INVALID_ARGS`, with the id as far as it can be read.
    fn parse(line: &[u8]) -> std::result::Result<Option<Request>, (Value, Error)> {
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let given: Value = serde_json::from_slice(line)
            .map_err(|e| (Value::Null, invalid(&format!("the line is no JSON: {e}"), "one JSON object a line")))?;
        let Value::Object(mut fields) = given else {
            return Err((Value::Null, invalid("the line is no JSON object", "one JSON object a line")));
        };
        let id = fields.remove("id").unwrap_or_default();
        Request::read(fields.into()).map(|wish| Some(Request { id: id.clone(), wish })).map_err(|error| (id, error))
    }

    fn read(mut given: Value) -> Result<Wish> {
        let kind = given["type"].as_str().unwrap_or_default().to_owned();
        if kind == "get" {
            given.as_object_mut().expect("an object").remove("type");
            let what: What = serde_json::from_value(given.clone()).map_err(|e| {
                invalid(&format!("get: {e}"), r#"{"type":"get","what":"now"}, or "entries" with from_seq and limit"#)
            })?;
            no_other_fields("get", &given, &to_value(&what)?)?;
            return Ok(Wish::Get(what));
        }
        read_input(given).map(|input| Wish::Do(Box::new(input)))
    }
}

/// The Input that a program sends as JSON.
///
/// # Errors
/// `INVALID_ARGS` for anything in it that pixir does not know.
pub(crate) fn read_input(given: Value) -> Result<Input> {
    let kind = given["type"].as_str().unwrap_or_default().to_owned();
    let input: Input = serde_json::from_value(given.clone()).map_err(|e| misunderstood(&kind, &e))?;
    no_other_fields(&kind, &given, &to_value(&input)?)?;
    Ok(input)
}

fn misunderstood(kind: &str, e: &serde_json::Error) -> Error {
    let mut names = Input::names();
    names.push("get".to_owned());
    if names.iter().any(|name| name == kind) {
        return invalid(
            &format!("{kind}: {e}"),
            Remedy::text("look up the fields of every Input: ").and_command("pixir schema --inputs"),
        );
    }
    let near = nearest(kind, names.iter().map(String::as_str))
        .map_or_else(|| format!("use one of {}", names.join(", ")).into(), Remedy::nearest);
    invalid(&format!("there is no Input `{}`", kind.escape_debug()), near).with("input", kind)
}

/// A field that pixir does not know would be ignored, and the host would not learn of it.
fn no_other_fields(kind: &str, given: &Value, understood: &Value) -> Result<()> {
    let (Value::Object(given), Value::Object(understood)) = (given, understood) else { return Ok(()) };
    for (name, value) in given {
        match understood.get(name) {
            Some(known) => no_other_fields(kind, value, known)?,
            // What is left out when it is written, is written as nothing.
            None if is_nothing(value) => {}
            None => {
                let near = nearest(name, understood.keys().map(String::as_str))
                    .map_or_else(|| "leave it out".into(), Remedy::nearest);
                let message = format!("{kind} has no field `{}`", name.escape_debug());
                return Err(invalid(&message, near).with("input", name.as_str()));
            }
        }
    }
    Ok(())
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

fn invalid(message: &str, fix: impl Into<Remedy>) -> Error {
    Error::new(Code::InvalidArgs, message, fix)
}

fn to_value(it: &impl Serialize) -> Result<Value> {
    serde_json::to_value(it).map_err(unwritable)
}

fn unwritable(e: serde_json::Error) -> Error {
    Error::new(Code::LogEncodeFailed, format!("write JSON: {e}"), "report this as a bug")
}

/// The lines of a stream.
pub(crate) struct Lines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    /// The rest of a line that is too long is skipped.
    skips: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(from: R) -> Lines<R> {
        Lines { from: BufReader::new(from), line: Vec::new(), skips: false }
    }

    /// The next line without its end. None at the end of the stream, and where it cannot be read. A caller may drop the
    /// future before it is done: what was read stays here.
    pub(crate) async fn next(&mut self) -> Option<Result<Vec<u8>>> {
        loop {
            let bytes = self.from.fill_buf().await.ok()?;
            if bytes.is_empty() {
                return Some(std::mem::take(&mut self.line)).filter(|line| !line.is_empty()).map(Ok);
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            let is_too_long = self.line.len() + part.len() > MAX_LINE;
            if !self.skips && !is_too_long {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.from.consume(used);
            if is_too_long && !self.skips {
                self.line = Vec::new();
                self.skips = end.is_none();
                let message = format!("a line is longer than {} MB", MAX_LINE >> 20);
                return Some(Err(invalid(&message, "name a file instead of its content")));
            }
            if end.is_some() && !std::mem::take(&mut self.skips) {
                return Some(Ok(std::mem::take(&mut self.line)));
            }
        }
    }
}
