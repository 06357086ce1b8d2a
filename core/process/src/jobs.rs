//! Background jobs of a Session. They end no later than the Session.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use crate::ports::{self, Listening};
use crate::{Group, Stopping};
use protocol::error::{Code, Error, Result};
use protocol::event::{JobState, JobStatus};
use protocol::remedy::Remedy;
use storage::outputs::{self, MAX_SPILL};
use storage::running::start_of;

/// The most jobs that run at the same time.
const MOST: usize = 16;
/// The most new output that one call returns, bytes.
const PAGE: u64 = 12_000;

/// How often a port is looked at. The kernel reports no beginning of listening.
const POLL: Duration = Duration::from_millis(50);
/// The longest line that is compared with a pattern, bytes.
const MAX_LINE: usize = 64 << 10;

/// What a job is waited for.
#[derive(Debug, Clone)]
pub enum Awaited {
    /// One of its processes listens on this TCP port.
    Port(u16),
    /// A line of its output matches.
    Output(RegexMatcher),
}

/// The end of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited {
    /// It listens.
    Listens(Listening),
    /// This line matched.
    Printed(String),
    /// The job ended first.
    Ended,
    TimedOut,
}

/// The process that leads the group of a job. Its id alone may become another process's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    pub pid: i32,
    /// When it was started, in clock ticks since the machine has started.
    pub start: u64,
}

/// The jobs of one Session.
#[derive(Debug)]
pub struct Jobs {
    folder: PathBuf,
    /// Held while a job starts, so that the next one knows it.
    starting: Mutex<()>,
    all: Mutex<BTreeMap<u32, Arc<Job>>>,
    /// Notifies the Session when a job begins or ends.
    news: mpsc::UnboundedSender<()>,
    stopping: Stopping,
}

#[derive(Debug)]
struct Job {
    command: String,
    path: PathBuf,
    /// The process that leads its group.
    leader: Option<u32>,
    /// The same, if the job shares its network with what starts after it.
    shares: Option<Leader>,
    status: Mutex<JobStatus>,
    started: Timestamp,
    ended: Mutex<Option<Timestamp>>,
    /// The ports on which it listened when they were last looked at.
    ports: Mutex<Vec<u16>>,
    /// How many bytes of the output `output` has returned so far.
    given: Mutex<u64>,
    /// Bytes of output that were dropped because the saved file is full.
    lost: AtomicU64,
    changed: Notify,
    /// Tells the attendant task to stop the job's processes.
    stop: Notify,
    attendant: Mutex<Option<JoinHandle<()>>>,
}

/// A job's new output, and its state.
#[derive(Debug, Clone)]
pub struct News {
    pub state: JobState,
    pub output: Vec<u8>,
    /// Bytes of the output left for the next call.
    pub more: u64,
}

impl Jobs {
    /// Creates an empty set of jobs. Outputs go to this folder; the receiver gets a message when a job begins or ends.
    pub fn new(folder: PathBuf, stopping: Stopping) -> (Arc<Jobs>, mpsc::UnboundedReceiver<()>) {
        let (news, heard) = mpsc::unbounded_channel();
        let (starting, all) = (Mutex::default(), Mutex::default());
        (Arc::new(Jobs { folder, starting, all, news, stopping }), heard)
    }

    /// Starts a job. If it `shares` its network, the commands that start while it lives may join it.
    ///
    /// # Errors
    /// `COMMAND_FAILED` when too many jobs run already or the command cannot be started.
    pub fn start(self: &Arc<Jobs>, shares: bool, command: impl FnOnce() -> Command, shown: &str) -> Result<JobState> {
        let _starting = lock(&self.starting);
        let command = command();
        let failed = |why: String| Error::new(Code::CommandFailed, why, "stop a job that is no longer needed");
        let mut all = lock(&self.all);
        let running = all.values().filter(|job| *lock(&job.status) == JobStatus::Running).count();
        if running >= MOST {
            return Err(failed(format!("{MOST} jobs are already running")));
        }
        let id = all.last_key_value().map_or(1, |(last, _)| last + 1);
        let (path, file) = self.file().map_err(|e| failed(format!("create the job's output file: {e}")))?;
        let (child, group) =
            Group::start(command, &self.stopping).map_err(|e| failed(format!("start the job: {e}")))?;
        let job = Arc::new(Job {
            command: shown.to_owned(),
            path,
            leader: child.id(),
            shares: child.id().filter(|_| shares).and_then(Leader::of),
            status: Mutex::new(JobStatus::Running),
            started: Timestamp::now(),
            ended: Mutex::default(),
            ports: Mutex::default(),
            given: Mutex::new(0),
            lost: AtomicU64::new(0),
            changed: Notify::new(),
            stop: Notify::new(),
            attendant: Mutex::new(None),
        });
        let attendant = task::spawn(attend(Arc::clone(&job), child, group, file, self.news.clone()));
        *lock(&job.attendant) = Some(attendant);
        let state = job.state(id);
        all.insert(id, job);
        let _ = self.news.send(());
        Ok(state)
    }

    /// Creates an output file with a name that was never used before.
    fn file(&self) -> std::io::Result<(PathBuf, File)> {
        let folder = outputs::folder(&self.folder)?;
        let mut number = 1;
        loop {
            let path = folder.join(format!("job-{number}.txt"));
            match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok((path, file)),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(e) => return Err(e),
            }
        }
    }

    /// The jobs that run and share their network, oldest first.
    pub fn sharing(&self) -> Vec<Leader> {
        let all = lock(&self.all);
        all.values().filter(|job| *lock(&job.status) == JobStatus::Running).filter_map(|job| job.shares).collect()
    }

    /// Lists all jobs, oldest first.
    pub fn list(&self) -> Vec<JobState> {
        lock(&self.all).iter().map(|(id, job)| job.state(*id)).collect()
    }

    /// Looks on which ports the running jobs listen. It reads `/proc`, so it may block.
    pub fn look_at_ports(&self) {
        let all: Vec<Arc<Job>> = lock(&self.all).values().cloned().collect();
        for job in all.iter().filter(|job| *lock(&job.status) == JobStatus::Running) {
            let found = job.leader.map(ports::of_group).unwrap_or_default();
            *lock(&job.ports) = found;
        }
    }

    fn find(&self, id: u32) -> Result<Arc<Job>> {
        let all = lock(&self.all);
        all.get(&id).cloned().ok_or_else(|| {
            let known: Vec<String> = all.keys().map(u32::to_string).collect();
            let fix = if known.is_empty() {
                "bash with background=true to start one".to_owned()
            } else {
                format!("one of: {}", known.join(", "))
            };
            Error::new(Code::NotFound, format!("there is no job {id}"), fix).with("input", id)
        })
    }

    /// Returns the job's output since the last call. Waits at most `wait` for new output or the end of the job.
    ///
    /// # Errors
    /// `NOT_FOUND`, `READ_FAILED`.
    pub async fn output(&self, id: u32, wait: Duration) -> Result<News> {
        let job = self.find(id)?;
        let until = tokio::time::Instant::now() + wait;
        loop {
            let changed = job.changed.notified();
            let news = job.news(id)?;
            if !news.output.is_empty() || news.state.status != JobStatus::Running {
                return Ok(news);
            }
            if tokio::time::timeout_at(until, changed).await.is_err() {
                return Ok(news);
            }
        }
    }

    /// Waits for a port or a line of output of a job, at most `limit`.
    ///
    /// # Errors
    /// `NOT_FOUND`, `READ_FAILED`.
    pub async fn wait(&self, id: u32, awaited: &Awaited, limit: Duration) -> Result<Waited> {
        let job = self.find(id)?;
        let until = tokio::time::Instant::now() + limit;
        let mut read = Lines::default();
        loop {
            let changed = job.changed.notified();
            // The status is read first: once the job has ended, its output is complete.
            let has_ended = *lock(&job.status) != JobStatus::Running;
            let came = match awaited {
                Awaited::Port(port) => {
                    let (leader, port) = (job.leader, *port);
                    let look = move || leader.and_then(|leader| ports::listening(leader, port));
                    let found = if has_ended { None } else { task::spawn_blocking(look).await.unwrap_or(None) };
                    found.map(Waited::Listens)
                }
                Awaited::Output(matcher) => read.first(&job, matcher, has_ended)?.map(Waited::Printed),
            };
            if let Some(came) = came {
                return Ok(came);
            }
            if has_ended {
                return Ok(Waited::Ended);
            }
            if tokio::time::Instant::now() >= until {
                return Ok(Waited::TimedOut);
            }
            let next = match awaited {
                Awaited::Port(_) => until.min(tokio::time::Instant::now() + POLL),
                Awaited::Output(_) => until,
            };
            let _ = tokio::time::timeout_at(next, changed).await;
        }
    }

    /// Stops a job and every process that it started.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn stop(&self, id: u32) -> Result<JobState> {
        let job = self.find(id)?;
        let news = self.news.clone();
        // The stop runs on its own task, so it finishes even when the caller stops waiting.
        let stopping = task::spawn(async move {
            job.stop().await;
            let _ = news.send(());
            job.state(id)
        });
        stopping.await.map_err(|e| Error::new(Code::CommandFailed, format!("stop job {id}: {e}"), "try again"))
    }

    /// Stops all jobs.
    pub async fn stop_all(&self) {
        let all: Vec<Arc<Job>> = lock(&self.all).values().cloned().collect();
        futures_util::future::join_all(all.iter().map(|job| job.stop())).await;
    }
}

impl Leader {
    /// This process. It must not have been reaped.
    fn of(pid: u32) -> Option<Leader> {
        let pid = i32::try_from(pid).ok()?;
        Some(Leader { pid, start: start_of(pid)? })
    }
}

impl Drop for Jobs {
    /// Ends the attendants. Each owns the processes of its job, so ending it stops them.
    fn drop(&mut self) {
        for job in lock(&self.all).values() {
            if let Some(attendant) = lock(&job.attendant).take() {
                attendant.abort();
            }
        }
    }
}

impl Job {
    fn state(&self, id: u32) -> JobState {
        JobState {
            id,
            command: self.command.clone(),
            status: *lock(&self.status),
            output_path: self.path.display().to_string(),
            started: Some(self.started),
            ended: *lock(&self.ended),
            ports: lock(&self.ports).clone(),
            lost: self.lost.load(Ordering::Relaxed),
        }
    }

    async fn stop(&self) {
        let attendant = lock(&self.attendant).take();
        let Some(attendant) = attendant else { return };
        // The attendant stops the processes before it ends. It ignores this when the job has already ended.
        self.stop.notify_one();
        let _ = attendant.await;
        let mut status = lock(&self.status);
        if *status == JobStatus::Running {
            *status = JobStatus::Stopped;
            *lock(&self.ended) = Some(Timestamp::now());
        }
        self.changed.notify_waiters();
    }

    fn news(&self, id: u32) -> Result<News> {
        // The state is read before the output: if it says that the job has ended, the output is complete.
        let state = self.state(id);
        let mut given = lock(&self.given);
        let read = || -> std::io::Result<(Vec<u8>, u64)> {
            let mut file = File::open(&self.path)?;
            let len = file.metadata()?.len();
            file.seek(SeekFrom::Start(*given))?;
            let mut output = Vec::new();
            file.take(PAGE).read_to_end(&mut output)?;
            // The bytes of an incomplete character are left for the next call.
            let goes_on = state.status == JobStatus::Running || *given + (output.len() as u64) < len;
            if let Err(e) = std::str::from_utf8(&output)
                && e.error_len().is_none()
                && goes_on
            {
                output.truncate(e.valid_up_to());
            } else if goes_on
                && std::str::from_utf8(&output).is_err()
                && let Some(newline) = output.iter().rposition(|byte| *byte == b'\n')
            {
                // In another encoding, only a line end is certainly no part of a character.
                output.truncate(newline + 1);
            }
            Ok((output, len))
        };
        let (output, len) = read().map_err(|e| {
            Error::new(Code::ReadFailed, format!("read the output of job {id}: {e}"), Remedy::CheckStateFolder)
        })?;
        *given += output.len() as u64;
        Ok(News { state, more: len.saturating_sub(*given), output })
    }
}

/// The output of a job as lines, for a wait.
#[derive(Default)]
struct Lines {
    read: u64,
    /// A line whose end is not there yet.
    rest: Vec<u8>,
}

impl Lines {
    /// The first new line that matches. What stands behind the last newline counts too: a prompt has no newline.
    fn first(&mut self, job: &Job, matcher: &RegexMatcher, has_ended: bool) -> Result<Option<String>> {
        let failed = |e: std::io::Error| {
            Error::new(Code::ReadFailed, format!("read the output of the job: {e}"), Remedy::CheckStateFolder)
        };
        let mut file = File::open(&job.path).map_err(failed)?;
        file.seek(SeekFrom::Start(self.read)).map_err(failed)?;
        let mut page = vec![0; 64 << 10];
        loop {
            let n = file.read(&mut page).map_err(failed)?;
            self.read += n as u64;
            self.rest.extend_from_slice(&page[..n]);
            while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                if let Some(line) = matched(matcher, &line) {
                    return Ok(Some(line));
                }
            }
            if n == 0 || self.rest.len() > MAX_LINE {
                let found = matched(matcher, &self.rest);
                if found.is_some() || has_ended || self.rest.len() > MAX_LINE {
                    self.rest.clear();
                }
                if n == 0 || found.is_some() {
                    return Ok(found);
                }
            }
        }
    }
}

fn matched(matcher: &RegexMatcher, line: &[u8]) -> Option<String> {
    let line = line.trim_ascii_end();
    let found = !line.is_empty() && matcher.is_match(line).unwrap_or(false);
    found.then(|| String::from_utf8_lossy(line).into_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// Saves the output of a job until it ends or is stopped. Dropping the future stops the job's processes.
async fn attend(job: Arc<Job>, mut child: Child, group: Group, mut file: File, news: mpsc::UnboundedSender<()>) {
    let mut written = 0;
    let ended = crate::drain(&mut child, &group, None, |_, bytes| {
        let room = usize::try_from(MAX_SPILL.saturating_sub(written)).unwrap_or(usize::MAX).min(bytes.len());
        written += bytes.len() as u64;
        job.lost.fetch_add((bytes.len() - room) as u64, Ordering::Relaxed);
        if let Err(e) = file.write_all(&bytes[..room]) {
            tracing::warn!("the output of a job was not saved: {e}");
        }
        job.changed.notify_waiters();
    });
    let exit = tokio::select! {
        exit = ended => Some(exit),
        () = job.stop.notified() => None,
    };
    group.stop().await;
    *lock(&job.status) = match exit {
        Some(exit) => JobStatus::Ended { exit_code: exit.map_or(126, crate::Ended::code) },
        None => JobStatus::Stopped,
    };
    *lock(&job.ended) = Some(Timestamp::now());
    lock(&job.ports).clear();
    job.changed.notify_waiters();
    let _ = news.send(());
}
