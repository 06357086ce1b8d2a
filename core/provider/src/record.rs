//! Records a Provider's answers as a script: requests, streamed parts and timing, with secrets removed.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::endpoint::Endpoint;
use super::models::ModelInfo;
use super::retry::Patience;
use super::script::{Recorded, RecordedChunk, RecordedFailure};
use super::{Answer, Chunk, Failure, Provider, Request, RequestBody};
use futures_util::future::BoxFuture;
use protocol::error::{Code, Error, Result};

/// The end of a script file. Each new step overwrites it and writes it again, so that the file is always valid JSON.
const END: &str = "\n]}\n";

/// A script that is being recorded.
#[derive(Debug)]
pub(crate) struct Recorder {
    path: PathBuf,
    state: Mutex<State>,
    /// Their secrets are removed from the file.
    endpoints: Vec<Endpoint>,
}

#[derive(Debug)]
struct State {
    file: File,
    is_empty: bool,
    /// The messages of the last request, which the next step leaves out.
    before: Vec<Value>,
}

impl Recorder {
    /// Creates a script file that only the user can read.
    ///
    /// # Errors
    /// `WRITE_FAILED`, also when the file exists already.
    pub(crate) fn create(path: &Path, endpoints: Vec<Endpoint>) -> Result<Recorder> {
        let failed = |e: std::io::Error| {
            let message = format!("record into {}: {e}", path.display());
            Error::new(Code::WriteFailed, message, "name a new file in a folder that exists")
        };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        write!(file, "{{\"steps\": [{END}").map_err(failed)?;
        let state = State { file, is_empty: true, before: Vec::new() };
        Ok(Recorder { path: path.to_owned(), state: Mutex::new(state), endpoints })
    }

    fn write(&self, body: Value, mut recorded: Recorded) {
        let mut state = self.state.lock();
        recorded.sent = news(body, &mut state.before);
        let mut step = json!({ "recorded": recorded });
        self.endpoints.iter().for_each(|endpoint| endpoint.redact_value(&mut step));

        let comma = if state.is_empty { "\n" } else { ",\n" };
        let end = i64::try_from(END.len()).unwrap_or(0);
        let written = state
            .file
            .seek(SeekFrom::End(-end))
            .and_then(|_| state.file.write_all(format!("{comma}{step}{END}").as_bytes()));
        match written {
            Ok(()) => state.is_empty = false,
            Err(e) => tracing::error!("record into {}: {e}", self.path.display()),
        }
    }
}

/// Removes the messages that the last request already contained, and adds their number as `unchanged`. Otherwise a
/// recording would grow with the square of the conversation.
fn news(mut body: Value, before: &mut Vec<Value>) -> Value {
    let Some(key) = ["input", "messages"].into_iter().find(|key| body[*key].is_array()) else { return body };
    let Value::Array(now) = body[key].take() else { return body };
    let same = now.iter().zip(before.iter()).take_while(|(a, b)| a == b).count();
    body[key] = Value::Array(now[same..].to_vec());
    body["unchanged"] = json!(same);
    *before = now;
    body
}

/// A Provider whose answers are recorded.
pub(super) struct Recording {
    provider: Arc<dyn Provider>,
    recorder: Arc<Recorder>,
}

impl Recording {
    pub(super) fn new(provider: Arc<dyn Provider>, recorder: Arc<Recorder>) -> Recording {
        Recording { provider, recorder }
    }
}

impl Provider for Recording {
    fn facts(&self, model: &str) -> ModelInfo {
        self.provider.facts(model)
    }

    fn key_number(&self) -> u64 {
        self.provider.key_number()
    }

    fn patience(&self) -> Patience {
        self.provider.patience()
    }

    fn writes_summaries(&self) -> bool {
        self.provider.writes_summaries()
    }

    fn loads<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Option<String>> {
        self.provider.loads(model)
    }

    fn take_notices(&self) -> Vec<String> {
        self.provider.take_notices()
    }

    fn body(&self, request: Request) -> RequestBody {
        self.provider.body(request)
    }

    fn answer<'a>(
        &'a self,
        request: &'a Request,
        on_chunk: &'a mut (dyn FnMut(Chunk) + Send),
    ) -> BoxFuture<'a, std::result::Result<Answer, Failure>> {
        Box::pin(async move {
            let mut take = Take {
                recorder: &self.recorder,
                body: self.provider.body(request.clone()).to_value(),
                began: Instant::now(),
                chunks: Vec::new(),
                done: false,
            };
            let outcome = self
                .provider
                .answer(request, &mut |chunk: Chunk| {
                    take.chunks.push(RecordedChunk { at_ms: millis(take.began.elapsed()), chunk: chunk.clone() });
                    on_chunk(chunk);
                })
                .await;
            match &outcome {
                Ok(answer) => take.write(Some(answer.clone()), None),
                Err(failure) => take.write(None, Some(recorded_failure(failure))),
            }
            outcome
        })
    }
}

/// An answer that is being recorded. If it is interrupted, the part that arrived is recorded.
struct Take<'a> {
    recorder: &'a Recorder,
    body: Value,
    began: Instant,
    chunks: Vec<RecordedChunk>,
    done: bool,
}

impl Take<'_> {
    fn write(&mut self, answer: Option<Answer>, failure: Option<RecordedFailure>) {
        self.done = true;
        let (body, chunks) = (self.body.take(), std::mem::take(&mut self.chunks));
        let took_ms = millis(self.began.elapsed());
        self.recorder.write(body, Recorded { sent: Value::Null, chunks, took_ms, answer, failure });
    }
}

impl Drop for Take<'_> {
    fn drop(&mut self) {
        if !self.done {
            let error = Error::new(
                Code::StreamClosed,
                "the recording was interrupted here",
                "send the message again; the part that arrived is kept",
            );
            let failure = Failure { after_content: !self.chunks.is_empty(), ..Failure::from(error) };
            self.write(None, Some(recorded_failure(&failure)));
        }
    }
}

fn recorded_failure(failure: &Failure) -> RecordedFailure {
    let body = failure.error.body();
    RecordedFailure {
        code: failure.error.code.name().to_owned(),
        message: failure.error.message.clone(),
        remediation: body.remediation,
        remedy: body.remedy,
        details: failure.error.details.clone(),
        after_content: failure.after_content,
        malformed: failure.malformed,
        retry_after_ms: failure.retry_after.map(millis),
        usage: failure.usage,
        usage_estimated: failure.usage_estimated,
    }
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
