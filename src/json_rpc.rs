//! JSON-RPC with a client on stdin and stdout: the failures of its requests, and the one writer of lines to it.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use pixir_core::error::{ErrorBody, ErrorKind};
use pixir_core::text::json_rpc::{self, Invalid};
use pixir_core::{Code, Error};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

use crate::{remedies, start};

/// A failure as JSON-RPC has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl Failure {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), data: None }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Failure {
        Failure::new(-32602, message)
    }

    pub(crate) fn internal() -> Failure {
        Failure::new(
            -32603,
            "pixir failed at this request: this is a bug; pixir.log in the state folder has the details",
        )
    }

    fn to_json(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match (error.code, error.kind()) {
            (Code::SessionNotFound, _) => -32002,
            (_, ErrorKind::NotAuthenticated) => -32000,
            (_, ErrorKind::InvalidArgs) => -32602,
            _ => -32603,
        };
        let message = format!("{}; {}", error.message, remedies::word(&error.remedy));
        Failure { code, message, data: Some(json!(error.body())) }
    }
}

impl From<&ErrorBody> for Failure {
    fn from(body: &ErrorBody) -> Failure {
        Failure::from(Error::from(body.clone()))
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Failure {
        Failure::new(invalid.code, invalid.message)
    }
}

/// The most requests of the client that are served at the same time.
const MOST_REQUESTS: usize = 256;
/// The most bytes of those requests; one is served whatever its size.
const MOST_BYTES: usize = 32 << 20;
/// The most bytes of responses that wait for a client that does not read; then requests are refused.
const MOST_UNREAD: usize = 8 << 20;
/// With so many bytes of responses and refusals, no more is read from the client.
const MOST_REFUSED: usize = 24 << 20;

/// How often the end of a stream is looked for that is not read.
const LOOKS_AGAIN: Duration = Duration::from_millis(200);

/// A line on its way to the client.
enum Line {
    /// One of any number; the client's pace bounds how many wait.
    Update(String),
    /// One for each request.
    Other(String),
}

/// The most updates that wait for a client that does not read.
const MOST_WAITING: usize = 64;

/// The client's end of the stream. Clones are the same client.
#[derive(Clone)]
pub(crate) struct Client(Arc<Shared>);

struct Shared {
    lines: mpsc::UnboundedSender<Line>,
    room: Semaphore,
    load: Load,
    /// Requests of pixir that the client has not answered.
    asked: Mutex<HashMap<i64, oneshot::Sender<Result<Value, Value>>>>,
    next: AtomicI64,
    /// The client has closed its end.
    gone: Notify,
    /// How a question is taken back.
    take_back: TakeBack,
}

/// How long the last lines to a client may take.
const LAST_LINES: Duration = Duration::from_millis(100);

/// Waits for the last lines: a client that reads gets them, one that does not is not waited for. `written` is what
/// [`Client::on`] returned, `fix` says how the client is to be started.
///
/// # Errors
/// `WRITE_FAILED`, unless the client has closed its end.
pub(crate) fn last_written(written: &std::sync::mpsc::Receiver<io::Error>, fix: &'static str) -> Result<(), Error> {
    match written.recv_timeout(LAST_LINES) {
        Ok(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::new(Code::WriteFailed, format!("write to the client: {e}"), fix))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The notification that takes the request with this id back, in the words of the protocol.
pub(crate) type TakeBack = fn(i64) -> Value;

impl Client {
    /// Starts the one writer to this file. The thread ends when the last clone of the client is dropped or a write fails; the
    /// channel that is returned has that error, and ends with the thread.
    pub(crate) fn on(out: File, take_back: TakeBack) -> (Client, std::sync::mpsc::Receiver<io::Error>) {
        let (lines, waiting) = mpsc::unbounded_channel();
        let client = Client(Arc::new(Shared {
            lines,
            room: Semaphore::new(MOST_WAITING),
            load: Load::default(),
            asked: Mutex::default(),
            next: AtomicI64::new(0),
            gone: Notify::new(),
            take_back,
        }));
        let shared = Arc::downgrade(&client.0);
        let (failed, end) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let mut waiting = waiting;
            let mut out = BufWriter::with_capacity(64 << 10, out);
            while let Some(line) = waiting.blocking_recv() {
                if let Err(e) = write(&mut out, line, &mut waiting, &shared) {
                    // The buffer would be written once more when it is dropped.
                    let _ = out.into_parts();
                    let _ = failed.send(e);
                    if let Some(shared) = shared.upgrade() {
                        // Nothing waits for a client that has gone.
                        shared.room.close();
                        shared.gone.notify_one();
                    }
                    return;
                }
            }
        });
        (client, end)
    }

    /// Returns when the client has closed its end of the stream.
    pub(crate) async fn gone(&self) {
        self.0.gone.notified().await;
    }

    /// Waits until the client has taken enough of what was sent before.
    pub(crate) async fn room(&self) {
        if let Ok(permit) = self.0.room.acquire().await {
            permit.forget();
        }
    }

    /// Gives back room that was not used.
    pub(crate) fn give_back(&self) {
        self.0.room.add_permits(1);
    }

    /// Sends an update for which [`Client::room`] was awaited.
    pub(crate) fn update(&self, line: String) {
        let _ = self.0.lines.send(Line::Update(line));
    }

    fn other(&self, value: &Value) {
        let line = value.to_string();
        self.0.load.unread.fetch_add(line.len(), Ordering::Relaxed);
        let _ = self.0.lines.send(Line::Other(line));
    }

    /// Takes a request of this many bytes, or refuses it because the client has too much under way, or does not read.
    pub(crate) fn admit(&self, id: Value, bytes: usize) -> Option<Reply> {
        match self.0.load.refuses(bytes) {
            Some(error) => {
                self.reject(&id, &error.into());
                None
            }
            None => {
                self.0.load.requests.fetch_add(1, Ordering::Relaxed);
                self.0.load.bytes.fetch_add(bytes, Ordering::Relaxed);
                Some(Reply { id, client: self.clone(), bytes, is_answered: false })
            }
        }
    }

    /// Whether so much waits for the client that nothing more may be read from it.
    pub(crate) fn is_clogged(&self) -> bool {
        self.0.load.unread.load(Ordering::Relaxed) > MOST_REFUSED
    }

    /// Returns when the client has read something, or at once if it has read since the last time.
    pub(crate) async fn has_read(&self) {
        self.0.load.read.notified().await;
    }

    /// Answers a line that is no request.
    pub(crate) fn reject(&self, id: &Value, failure: &Failure) {
        self.other(&json_rpc::error(id, &failure.to_json()));
    }

    /// Makes a request to the client; the line is to be sent, or the question dropped.
    pub(crate) fn ask(&self, method: &str, params: Value) -> (Ask, Asked) {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.0.asked.lock().insert(id, answer);
        let line = json_rpc::request(&id.into(), method, &params).to_string();
        let sent = Arc::new(AtomicBool::new(false));
        let asked = Asked { id, client: self.clone(), answered: Some(answered), sent: Arc::clone(&sent) };
        (Ask { line, sent }, asked)
    }

    /// Takes the client's answer. One to a question that is no longer open, or that pixir never asked, is dropped.
    pub(crate) fn answered(&self, id: &Value, outcome: Result<Value, Value>) {
        if let Some(answer) = id.as_i64().and_then(|id| self.0.asked.lock().remove(&id)) {
            let _ = answer.send(outcome);
        }
    }
}

/// What is under way between the client and pixir.
#[derive(Default)]
struct Load {
    /// Requests of the client without a response, and their bytes.
    requests: AtomicUsize,
    bytes: AtomicUsize,
    /// Bytes of responses that were not written yet.
    unread: AtomicUsize,
    /// Something was written.
    read: Notify,
}

impl Load {
    /// Why one more request of this many bytes is not taken; nothing if it is.
    fn refuses(&self, bytes: usize) -> Option<Error> {
        let (requests, held) = (self.requests.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        let message = if requests >= MOST_REQUESTS {
            format!("{MOST_REQUESTS} requests have no response yet")
        } else if requests > 0 && held + bytes > MOST_BYTES {
            format!("the requests without a response have more than {} MiB", MOST_BYTES >> 20)
        } else if self.unread.load(Ordering::Relaxed) > MOST_UNREAD {
            format!("more than {} MiB of responses wait to be read", MOST_UNREAD >> 20)
        } else {
            return None;
        };
        Some(Error::new(Code::TooManyItems, message, "read the responses, then send the request again"))
    }
}

impl Shared {
    /// A line no longer waits.
    fn written(&self, line: &Line) {
        match line {
            Line::Update(_) => self.room.add_permits(1),
            Line::Other(text) => {
                self.load.unread.fetch_sub(text.len(), Ordering::Relaxed);
                self.load.read.notify_one();
            }
        }
    }
}

/// Writes a line and those that wait behind it.
fn write(
    out: &mut BufWriter<File>,
    first: Line,
    waiting: &mut mpsc::UnboundedReceiver<Line>,
    shared: &Weak<Shared>,
) -> std::io::Result<()> {
    let mut next = Some(first);
    while let Some(line) = next {
        let (Line::Update(text) | Line::Other(text)) = &line;
        out.write_all(text.as_bytes())?;
        out.write_all(b"\n")?;
        if let Some(shared) = shared.upgrade() {
            shared.written(&line);
        }
        next = waiting.try_recv().ok();
    }
    out.flush()
}

/// A request of pixir that has not left yet.
pub(crate) struct Ask {
    line: String,
    sent: Arc<AtomicBool>,
}

impl Ask {
    /// Sends it, unless nothing waits for the answer any more. [`Client::room`] was awaited.
    pub(crate) fn send(self, client: &Client) {
        if Arc::strong_count(&self.sent) > 1 {
            self.sent.store(true, Ordering::Relaxed);
            client.update(self.line);
        } else {
            client.give_back();
        }
    }
}

/// A question to the client. Dropping it takes the question back.
pub(crate) struct Asked {
    id: i64,
    client: Client,
    answered: Option<oneshot::Receiver<Result<Value, Value>>>,
    sent: Arc<AtomicBool>,
}

impl Asked {
    /// The client's answer; none if it failed or the stream has ended.
    pub(crate) async fn answer(mut self) -> Option<Value> {
        let outcome = match self.answered.as_mut() {
            Some(answered) => answered.await.ok(),
            None => None,
        };
        self.answered = None;
        outcome?.ok()
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let was_open = self.client.0.asked.lock().remove(&self.id).is_some();
        if was_open && self.sent.load(Ordering::Relaxed) {
            self.client.other(&(self.client.0.take_back)(self.id));
        }
    }
}

/// The right to answer one request. It answers exactly once: if it is dropped, the request has failed.
pub(crate) struct Reply {
    pub(crate) id: Value,
    client: Client,
    /// The size of the request.
    bytes: usize,
    is_answered: bool,
}

impl Reply {
    /// Leaves a request without an answer, because the client has taken it back.
    pub(crate) fn without_answer(mut self) {
        self.is_answered = true;
    }

    pub(crate) fn send(mut self, outcome: Result<Value, Failure>) {
        self.is_answered = true;
        match outcome {
            Ok(result) => self.client.other(&json_rpc::result(&self.id, &result)),
            Err(failure) => self.client.reject(&self.id, &failure),
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        let load = &self.client.0.load;
        load.requests.fetch_sub(1, Ordering::Relaxed);
        load.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        if !self.is_answered {
            self.client.reject(&self.id, &Failure::internal());
        }
    }
}

/// Returns when the other end of stdin was closed, although nothing is read from it.
pub(crate) async fn hung_up() {
    let stdin = rustix::stdio::stdin();
    loop {
        let mut ends = [PollFd::new(&stdin, PollFlags::empty())];
        let polled = rustix::event::poll(&mut ends, Some(&Timespec::default()));
        if polled.is_ok() && ends[0].revents().contains(PollFlags::HUP) {
            return;
        }
        tokio::time::sleep(LOOKS_AGAIN).await;
    }
}

/// Takes stdout for a protocol: from here on nothing else in this process, and no program that it starts, can write there.
///
/// # Errors
/// `WRITE_FAILED`, with what to do instead.
pub(crate) fn take_stdout(fix: &str) -> pixir_core::Result<File> {
    let fail = |why: String| Error::new(Code::WriteFailed, why, fix);
    if start::stdout_was_closed() {
        return Err(fail("stdout is closed, and the protocol needs it".to_owned()));
    }
    let take = || -> std::io::Result<File> {
        let out = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        let null = OpenOptions::new().write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(&null)?;
        Ok(File::from(out))
    };
    take().map_err(|e| fail(format!("take stdout for the protocol: {e}")))
}

#[cfg(test)]
mod tests {
    use pixir_core::text::json_rpc::Message;

    use super::*;

    /// Broken builds: a line with an odd id ends the process; a damaged request counts as a notification, so that it has no
    /// response.
    #[test]
    fn damaged_lines_are_read_as_what_they_are_or_refused() {
        let times = if std::env::var("PIXIR_LONG").is_ok_and(|it| it == "1") { 1_000_000 } else { 20_000 };
        let mut whole: Vec<Vec<u8>> = Vec::new();
        for file in std::fs::read_dir("tests/golden/acp").expect("the transcripts") {
            let text = std::fs::read_to_string(file.expect("a file").path()).expect("a transcript");
            whole.extend(text.lines().filter_map(|line| line.strip_prefix("> ")).map(|line| line.as_bytes().to_vec()));
        }
        let mut state = 65_u64;
        let mut below = |most: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 16).expect("64 bits") % most
        };
        for _ in 0..times {
            let mut line = whole[below(whole.len())].clone();
            for _ in 0..=below(4) {
                let at = below(line.len());
                match below(4) {
                    0 => line[at] = [b'{', b'}', b'"', b'[', b',', b'0', b'\\', 0xff, b' ', b'n'][below(10)],
                    1 if line.len() > 1 => drop(line.remove(at)),
                    2 => line.insert(at, line[below(line.len())]),
                    _ => line.truncate(at.max(1)),
                }
            }
            let text = String::from_utf8_lossy(&line);
            let holds = match (Message::parse(&line), serde_json::from_slice::<Value>(&line)) {
                (Err(invalid), Err(_)) => invalid.code == -32700 && invalid.id.is_null(),
                (Err(invalid), Ok(_)) => invalid.code == -32600,
                (Ok(None), _) => line.trim_ascii().is_empty(),
                (Ok(Some(Message::Request { id, method, .. })), Ok(it)) => {
                    it.get("id") == Some(&id) && it["method"] == *method
                }
                (Ok(Some(Message::Notification { method, .. })), Ok(it)) => {
                    it.get("id").is_none() && it["method"] == *method
                }
                (Ok(Some(Message::Answer { .. })), Ok(it)) => it.get("id").is_some() && it.get("method").is_none(),
                (Ok(Some(_)), Err(_)) => false,
            };
            assert!(holds, "{text}");
        }
    }
}
