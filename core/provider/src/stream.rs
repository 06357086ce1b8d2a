//! Turns bytes into events, and events into an answer. Chunks of bytes may be split anywhere. The size of an event, the
//! silence between two events and the wait for progress are bounded.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use serde_json::Value;
use sse_stream::{Sse, SseByteStream};
use tokio::time::{Instant, timeout, timeout_at};

use super::bounds::{self, Extent as AnswerExtent};
use super::dialect::{Dialect, StreamProgress};
use super::halves::{self, Joiner};
use super::refusal::{closed, error_event};
use super::repeats::Repeats;
use super::retry::Patience;
use super::text_loop::TextLoop;
use super::wait::wait_in;
use super::{Answer, Chunk, Failure, invalid, rest};
use net::quoted;
use protocol::error::{Code, Error};

/// The largest event that is accepted, bytes.
pub const MAX_EVENT: usize = 16 << 20;
/// How long to wait for usage after the answer is complete.
const GRACE: Duration = Duration::from_secs(2);
/// How many bytes of a body are retained, to show its start in an error if it is not an event stream.
const KEPT: usize = 400;

/// Reads one answer from the body of a response.
///
/// # Errors
/// `STREAM_CLOSED` and `STREAM_IDLE_TIMEOUT` when the stream breaks off, `INVALID_RESPONSE` when it is malformed,
/// `ANSWER_TOO_LARGE` beyond 8 MiB of text, 1 MiB of arguments in one call or 128 calls, `TEXT_LOOP` when it repeats itself
/// without end, and
/// errors that the server reports in it. [`Failure::after_content`] tells whether part of the answer arrived before.
pub async fn hear<S, E>(
    dialect: Dialect,
    bytes: S,
    patience: &Patience,
    say: &mut (dyn FnMut(Chunk) + Send),
) -> Result<Answer, Failure>
where
    S: Stream<Item = Result<Bytes, E>> + Send,
    E: fmt::Display + Send + 'static,
{
    let mut heard_any = false;
    let mut reader = dialect.reader();
    let mut events = Events::new(bytes, patience.idle);
    let mut usable_until: Option<Instant> = None;
    let mut last_news = Instant::now();
    let mut joiner = Joiner::default();
    let mut extent = AnswerExtent::default();
    let mut text_loop = patience.ends_loops.then(TextLoop::default);
    let outcome = loop {
        let event = if let Some(until) = usable_until {
            // The answer is complete; an error can only affect the usage.
            timeout_at(until, events.next()).await.ok().and_then(Result::ok).flatten()
        } else {
            match timeout_at(last_news + patience.progress, events.next()).await {
                Err(_) => break Err(no_progress(patience.progress)),
                Ok(Err(e)) => break Err(e),
                Ok(Ok(event)) => event,
            }
        };
        let Some(event) = event else { break Ok(()) };
        let Received { data, size, has_halves } = event;
        if has_halves {
            joiner.expect_halves();
        }
        let mut fits = Ok(());
        let mut is_silent = true;
        let heard = reader.take(&data, &mut |chunk| {
            if !chunk.is_empty() {
                (heard_any, is_silent) = (true, false);
                last_news = Instant::now();
                if fits.is_ok() {
                    fits = extent.add(&chunk).and_then(|()| text_loop.as_mut().map_or(Ok(()), |it| it.add(&chunk)));
                }
                if fits.is_ok() {
                    say(joiner.chunk(chunk));
                    rest::part_was_read();
                }
            }
        });
        if is_silent {
            fits = extent.add_silent(size);
        }
        if let Err(e) = fits {
            break Err(e);
        }
        match heard {
            Err(_) if usable_until.is_some() => break Ok(()),
            Err(e) => break Err(e),
            Ok(StreamProgress::All) => break Ok(()),
            Ok(StreamProgress::Usable) => usable_until = usable_until.or_else(|| Some(Instant::now() + GRACE)),
            Ok(StreamProgress::Part) => {}
        }
    };
    rest::answer_has_ended();
    let usage = reader.usage();
    let began = events.count > 0;
    let answer = outcome.and_then(|()| reader.finish()).map(|answer| joiner.answer(answer));
    let answer = answer.and_then(|answer| bounds::check(&answer).map(|()| answer));
    answer.map_err(|error| {
        // A body without a single event is not a stream, and stays what it is.
        let malformed = error.code == Code::InvalidResponse && (began || error.details.contains_key("event"));
        let retry_after = wait_in(&error.message);
        Failure { error, after_content: heard_any, malformed, retry_after, usage, usage_estimated: false }
    })
}

impl Chunk {
    /// Bytes of the answer.
    pub(super) fn len(&self) -> usize {
        match self {
            Chunk::Text(text) | Chunk::Reasoning(text) => text.len(),
            Chunk::Call { args, .. } => args.len(),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Chunk::Text(text) | Chunk::Reasoning(text) => text.is_empty(),
            // The start of a call counts as progress, even without arguments.
            Chunk::Call { name, args, .. } => args.is_empty() && name.is_empty(),
        }
    }
}

/// Why the stream delivers no more bytes.
#[derive(Debug)]
enum Broken {
    Idle,
    TooLarge,
    Connection(String),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Idle => f.write_str("nothing arrived in time"),
            Broken::TooLarge => f.write_str("an event is too large"),
            Broken::Connection(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Broken {}

/// One event of a response body.
struct Received {
    /// Its data.
    data: Value,
    /// The length of its data, bytes.
    size: usize,
    /// It contains half of a character; see [`halves`].
    has_halves: bool,
}

/// The events of a response body, as JSON.
struct Events<'a> {
    inner: std::pin::Pin<Box<dyn Stream<Item = Result<Sse, sse_stream::Error>> + Send + 'a>>,
    idle: Duration,
    /// The number of events so far.
    count: u64,
    repeats: Repeats,
    start: std::sync::Arc<parking_lot::Mutex<Vec<u8>>>,
}

impl<'a> Events<'a> {
    fn new<S, E>(bytes: S, idle: Duration) -> Events<'a>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'a,
        E: fmt::Display + Send + 'static,
    {
        let start = std::sync::Arc::<parking_lot::Mutex<Vec<u8>>>::default();
        let first = std::sync::Arc::clone(&start);
        let state = (Box::pin(bytes), Extent::default(), 0_usize);
        let bounded = futures_util::stream::unfold(Some(state), move |state| {
            let first = std::sync::Arc::clone(&first);
            async move {
                let (mut bytes, mut extent, mut seen) = state?;
                let piece = match timeout(idle, bytes.next()).await {
                    Err(_) => return Some((Err(Broken::Idle), None)),
                    Ok(None) => return None,
                    Ok(Some(Err(e))) => return Some((Err(Broken::Connection(e.to_string())), None)),
                    Ok(Some(Ok(piece))) => piece,
                };
                if seen < KEPT {
                    let kept = &piece[..piece.len().min(KEPT - seen)];
                    first.lock().extend_from_slice(kept);
                    seen += kept.len();
                }
                // The decoder itself has no size limit.
                if extent.grows_beyond(&piece, MAX_EVENT) {
                    return Some((Err(Broken::TooLarge), None));
                }
                Some((Ok(piece), Some((bytes, extent, seen))))
            }
        });
        Events {
            inner: Box::pin(SseByteStream::new(Box::pin(bounded))),
            idle,
            count: 0,
            repeats: Repeats::default(),
            start,
        }
    }

    /// Returns the data of the next event that has not come before. `None` at the end of the stream, and at `[DONE]`.
    async fn next(&mut self) -> Result<Option<Received>, Error> {
        loop {
            let (name, id, data) = match self.inner.next().await {
                None => return self.end().map(|()| None),
                Some(Err(e)) => return Err(self.broken(e)),
                Some(Ok(event)) => (event.event.unwrap_or_default(), event.id, event.data.unwrap_or_default()),
            };
            self.count += 1;
            match data.trim() {
                "" => {}
                text if text.starts_with("[DONE]") => return Ok(None),
                text => {
                    let received = self.read(&name, text)?;
                    if !self.repeats.has_come(id, &received.data, text) {
                        return Ok(Some(received));
                    }
                }
            }
        }
    }

    fn read(&self, name: &str, text: &str) -> Result<Received, Error> {
        let is_error = name == "error";
        let size = text.len();
        // Most events have no half, so looking for one comes after the first attempt.
        let read = serde_json::from_str(text).map(|data| (data, false)).or_else(|e| match halves::mark(text) {
            Some(marked) => serde_json::from_str(&marked).map(|data| (data, true)),
            None => Err(e),
        });
        match read {
            Ok((data, has_halves)) => Ok(Received { data: error_event(is_error, data), size, has_halves }),
            // Some servers send the words of an error without JSON.
            Err(_) if is_error => {
                Ok(Received { data: error_event(is_error, Value::from(text)), size, has_halves: false })
            }
            Err(e) => {
                Err(invalid(format!("event {} of the answer is not JSON: {e}", self.count)).with("event", self.count))
            }
        }
    }

    /// Checks the end of the stream. A body without a single event is not an event stream.
    fn end(&self) -> Result<(), Error> {
        let start = self.start.lock();
        let text = String::from_utf8_lossy(&start);
        let is_stream = self.count > 0
            || ["data:", "event:", ":", "id:", "retry:"]
                .iter()
                .any(|field| text.trim_start_matches(['\u{feff}', '\n', '\r']).starts_with(field));
        if is_stream || text.trim().is_empty() {
            return Ok(());
        }
        Err(invalid(format!("the server returned something other than an event stream: {}", quoted(&text))))
    }

    fn broken(&self, e: sse_stream::Error) -> Error {
        let broken = match e {
            sse_stream::Error::Body(cause) => {
                cause.downcast::<Broken>().map_or_else(|e| Broken::Connection(e.to_string()), |it| *it)
            }
            sse_stream::Error::Utf8Parse(_) => {
                let at = self.count + 1;
                return invalid(format!("event {at} of the answer is not UTF-8 text")).with("event", at);
            }
            other => Broken::Connection(other.to_string()),
        };
        match broken {
            Broken::Idle => Error::new(
                Code::StreamIdleTimeout,
                format!("nothing arrived for {} s", self.idle.as_secs()),
                "send the message again, for the part that arrived is kept; `requests.idle` in config.toml gives a slow server more seconds",
            ),
            Broken::TooLarge => {
                let at = self.count + 1;
                invalid(format!("event {at} of the answer is larger than {} MB", MAX_EVENT >> 20)).with("event", at)
            }
            Broken::Connection(why) => closed(&why),
        }
    }
}

/// Measures the event that is being read; an empty line ends it. The streams of MCP servers are measured by it too.
#[derive(Default)]
pub struct Extent {
    bytes: usize,
    line_is_empty: bool,
    after_cr: bool,
}

impl Extent {
    /// Counts these bytes, and returns whether the event has more than `most`.
    pub fn grows_beyond(&mut self, piece: &[u8], most: usize) -> bool {
        let mut rest = piece;
        loop {
            let Some(at) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.bytes += rest.len();
                self.line_is_empty &= rest.is_empty();
                self.after_cr &= rest.is_empty();
                return self.bytes > most;
            };
            if at > 0 {
                (self.line_is_empty, self.after_cr) = (false, false);
            }
            self.bytes += at + 1;
            if self.bytes > most {
                return true;
            }
            // A line feed right after a carriage return belongs to the same line end.
            if rest[at] == b'\n' && self.after_cr {
                self.after_cr = false;
            } else {
                if self.line_is_empty {
                    self.bytes = 0;
                }
                self.line_is_empty = true;
                self.after_cr = rest[at] == b'\r';
            }
            rest = &rest[at + 1..];
        }
    }
}

fn no_progress(within: Duration) -> Error {
    Error::new(
        Code::StreamIdleTimeout,
        format!("only keep-alives arrived for {} s, and no part of the answer", within.as_secs()),
        "send the message again, for the part that arrived is kept; `requests.progress` in config.toml gives a slow server more seconds",
    )
}
