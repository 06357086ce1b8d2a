//! A wait for a background job: until it listens on a port, or prints a line.

use std::time::Duration;

use grep_regex::RegexMatcherBuilder;

use call::Context;
use process::jobs::{Awaited, Jobs, Waited};
use process::ports::Listening;
use protocol::error::{Code, Error, Result};
use protocol::event::JobStatus;

/// How long a wait takes at most, seconds, unless the call says otherwise.
pub(crate) const WAIT: u64 = 30;
/// The longest wait that a call may set, seconds.
pub(crate) const MAX_WAIT: u64 = 600;

/// What a job is waited for, and how long.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// All of them have to come.
    awaited: Vec<(Awaited, Words)>,
    limit: Duration,
}

/// What a job does, in a sentence.
#[derive(Debug, Clone)]
struct Words {
    /// `listens on port 80`
    does: String,
    /// `listened on port 80`
    did: String,
}

impl Waiting {
    /// A wait for a port and for a line that matches a pattern; `None` for neither.
    ///
    /// # Errors
    /// `INVALID_ARGS` for a pattern that is no regular expression.
    pub fn new(port: Option<u16>, output: Option<&str>, seconds: Option<u64>) -> Result<Option<Waiting>> {
        let mut awaited = Vec::new();
        if let Some(port) = port {
            let words = Words { does: format!("listens on port {port}"), did: format!("listened on port {port}") };
            awaited.push((Awaited::Port(port), words));
        }
        if let Some(pattern) = output {
            let matcher = RegexMatcherBuilder::new().build(pattern).map_err(|e| {
                let message = format!("the pattern is an invalid regular expression: {e}");
                Error::new(Code::InvalidArgs, message, "escape the special characters: \\( \\[ \\.")
                    .with("input", pattern)
            })?;
            let line = format!("a line like `{pattern}`");
            awaited.push((
                Awaited::Output(matcher),
                Words { does: format!("prints {line}"), did: format!("printed {line}") },
            ));
        }
        let limit = Duration::from_secs(seconds.unwrap_or(WAIT).min(MAX_WAIT));
        Ok(Some(Waiting { awaited, limit }).filter(|it| !it.awaited.is_empty()))
    }

    /// Waits, and returns what came as lines for the model, with an exit code: 0 if all came, 124 if time ran out, and that
    /// of the job, or 1, if the job ended first.
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown job; `COMMAND_FAILED` when the call is cancelled.
    pub async fn perform(&self, jobs: &Jobs, id: u32, ctx: &Context) -> Result<(String, i32)> {
        let began = tokio::time::Instant::now();
        let mut told = String::new();
        for (awaited, Words { does, did }) in &self.awaited {
            let left = self.limit.saturating_sub(began.elapsed());
            let waited = tokio::select! {
                waited = jobs.wait(id, awaited, left) => waited?,
                () = ctx.cancel.cancelled() => {
                    return Err(Error::new(Code::CommandFailed, "the wait was interrupted", "wait again"));
                }
            };
            match waited {
                Waited::Printed(line) => told.push_str(&format!("job {id} printed: {line}\n")),
                Waited::Listens(Listening::Machine) => told.push_str(&format!("job {id} {does}\n")),
                Waited::Listens(Listening::Session) => told.push_str(&format!(
                    "job {id} {does} in the sandbox: a command with the network does not reach it, nor does the user\n"
                )),
                Waited::Listens(Listening::Unseen) => {
                    told.push_str(&format!("a program {does}; pixir cannot see here whether it is job {id}\n"));
                }
                Waited::Ended => {
                    told.push_str(&format!("job {id} ended and never {did}\n"));
                    let of = |status| if let JobStatus::Ended { exit_code } = status { exit_code } else { 1 };
                    let exit = jobs.list().iter().find(|job| job.id == id).map_or(1, |job| of(job.status));
                    return Ok((told, if exit == 0 { 1 } else { exit }));
                }
                Waited::TimedOut => {
                    let seconds = self.limit.as_secs();
                    told.push_str(&format!("after {seconds} s job {id} still runs and has not {did} yet\n"));
                    return Ok((told, 124));
                }
            }
        }
        Ok((told, 0))
    }
}
