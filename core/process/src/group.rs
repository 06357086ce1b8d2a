//! The processes of a command. They are stopped together, however the call ends.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{
    Pid, Signal, WaitOptions, getsid, kill_process, kill_process_group, test_kill_process, test_kill_process_group,
    waitpid,
};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::watch;

use storage::running::{Note, Running, Subject, start_of};

/// How long processes may take to end after SIGTERM before they get SIGKILL.
const GRACE: Duration = Duration::from_millis(150);

/// The environment variable that marks every process of a command.
pub(super) const TAG: &str = "PIXIR_COMMAND";
/// How long the pipes are still read after the command has ended.
const DRAIN: Duration = Duration::from_millis(100);
/// How long a stop searches for processes that left their group.
const SWEEP: Duration = Duration::from_secs(1);
/// How often a stop checks whether the processes have ended.
const POLL: Duration = Duration::from_millis(1);

/// Leaders of commands that are not reaped yet. Global, because a process has only one table of children.
static LEADERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
/// Programs that run for the user, such as an editor. They belong to no command, so stopping a command never ends them.
static OF_THE_PERSON: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
/// This process is a subreaper: processes whose parents have ended become its children.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// Makes this process adopt every process that a command leaves behind, even one with its own session, so that none
/// escapes. Call it from a program, not from a library: it claims every child that was not started through this module.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok() {
        ADOPTS.store(true, Ordering::Relaxed);
    }
}

/// A program that runs for the user. While it exists, no stop of a command takes the program for a stray.
#[derive(Debug)]
pub struct OfThePerson(Option<i32>);

impl OfThePerson {
    /// Starts the program. Processes that it leaves behind, such as a clipboard owner, are also spared.
    ///
    /// # Errors
    /// The system's error.
    pub fn start(command: &mut Command) -> io::Result<(Child, OfThePerson)> {
        command.env(TAG, "person");
        // The lock is held until the new child is registered: a command's sweep must not take it for a stray.
        let _leaders = leaders();
        let child = command.spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        of_the_person().extend(id);
        Ok((child, OfThePerson(id)))
    }
}

/// What a program of the user printed.
#[derive(Debug)]
pub struct Printed {
    /// How the program ended.
    pub ended: Ended,
    /// Its stdout, up to the bound.
    pub out: Vec<u8>,
    /// Its stderr, up to the bound.
    pub err: Vec<u8>,
}

impl OfThePerson {
    /// Runs a program without input until it ends, or kills its process group after the limit and when the caller stops waiting.
    /// At most the first `bound` bytes of stdout and the last of stderr are kept: the end says why a program failed.
    ///
    /// # Errors
    /// The system's error.
    pub async fn print(mut command: Command, limit: Duration, bound: usize) -> io::Result<Printed> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let (mut child, _spared) = OfThePerson::start(&mut command)?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let mut group = GroupOfThePerson(leader);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let take = |stream, bytes: &[u8]| match stream {
            Stream::Out => out.extend_from_slice(&bytes[..bytes.len().min(bound - out.len())]),
            Stream::Err => {
                err.extend_from_slice(bytes);
                err.drain(..err.len().saturating_sub(bound));
            }
        };
        let ended = read(&mut child, || {}, Some(limit), take).await?;
        if ended == Ended::TimedOut {
            drop(group);
            child.wait().await?;
        } else {
            group.0 = None;
        }
        Ok(Printed { ended, out, err })
    }
}

/// The process group of a program of the user, which is killed when this is dropped: its leader, while that runs.
struct GroupOfThePerson(Option<Pid>);

impl Drop for GroupOfThePerson {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It may have ended just now.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for OfThePerson {
    fn drop(&mut self) {
        if let Some(id) = self.0 {
            of_the_person().remove(&id);
        }
    }
}

fn of_the_person() -> MutexGuard<'static, BTreeSet<i32>> {
    OF_THE_PERSON.lock()
}

/// Makes both outputs of a command one pipe, so that they are read in the order in which they were written. Returns the end
/// to read from, which the child gets as its stdout.
///
/// # Errors
/// The system gives no pipe.
pub fn joined(mut command: Command) -> io::Result<(Command, ChildStdout)> {
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let printed = ChildStdout::from_std(std::process::ChildStdout::from(OwnedFd::from(reader)))?;
    Ok((command, printed))
}

/// The groups of one Session that are being stopped after their calls were dropped.
///
/// Dropping a future cannot wait, so such groups are stopped on tasks of their own. An interrupt waits for those tasks
/// here.
#[derive(Debug, Clone, Default)]
pub struct Stopping {
    running: Arc<watch::Sender<usize>>,
    /// Where groups are noted, so that a later pixir can end those of a killed one.
    notes: Running,
}

impl Stopping {
    /// Groups that are noted here.
    pub fn noting(notes: Running) -> Stopping {
        Stopping { notes, ..Stopping::default() }
    }

    /// Returns when none of these groups has a process left.
    pub async fn finished(&self) {
        // This value holds the sender, so the channel cannot close.
        let _ = self.running.subscribe().wait_for(|running| *running == 0).await;
    }

    fn begin(&self) -> StoppingOne {
        self.running.send_modify(|running| *running += 1);
        StoppingOne(self.clone())
    }
}

/// Counts as one group that is being stopped until it is dropped.
struct StoppingOne(Stopping);

impl Drop for StoppingOne {
    fn drop(&mut self) {
        self.0.running.send_modify(|running| *running -= 1);
    }
}

/// The processes of a running command. Dropping it ends all of them.
#[derive(Debug)]
pub struct Group {
    members: Option<Members>,
    stopping: Stopping,
}

impl Group {
    /// Starts a command in a process group of its own.
    ///
    /// # Errors
    /// The system's error when the command cannot be started.
    pub fn start(mut command: Command, stopping: &Stopping) -> io::Result<(Child, Group)> {
        let note = stopping.notes.note(Subject::Group, b"");
        command.env(TAG, &note.name);
        // The lock is held until the new child is registered: another command's sweep must not take it for a stray.
        let mut leaders = leaders();
        let child = command.spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        leaders.extend(leader.map(|pid| pid.as_raw_nonzero().get()));
        drop(leaders);
        if let Some(pid) = leader.map(|pid| pid.as_raw_nonzero().get())
            && let Some(start) = start_of(pid)
        {
            note.add(&format!("{pid} {start}"));
        }
        let members = Members { leader, note, reaped: AtomicBool::new(false) };
        Ok((child, Group { members: Some(members), stopping: stopping.clone() }))
    }

    fn members(&self) -> &Members {
        self.members.as_ref().expect("only Drop takes the members out")
    }

    /// Marks the leader as ended and reaped.
    pub fn leader_ended(&self) {
        self.members().leader_ended();
    }

    /// Whether any process of the command is still alive.
    pub fn is_alive(&self) -> bool {
        self.members().are_alive()
    }

    /// Sends SIGTERM to the remaining processes, and SIGKILL to those that outlive the grace period.
    pub async fn stop(&self) {
        // The id of an empty group may already belong to another group.
        if self.is_alive() {
            self.members().stop().await;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(members) = self.members.take().filter(Members::are_alive) else { return };
        let left = KillOnDrop(members);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let counted = self.stopping.begin();
        runtime.spawn(task::boxed(async move {
            left.0.stop().await;
            drop(counted);
        }));
    }
}

/// Kills the remaining processes when it is dropped, because no task can wait for them any more.
struct KillOnDrop(Members);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(leader) = self.0.leader.filter(|_| self.0.group_is_alive()) {
            self.0.signal(leader, Signal::KILL);
        }
        for stray in self.0.strays() {
            let _ = kill_process(stray, Signal::KILL);
        }
    }
}

/// The processes of the group.
#[derive(Debug)]
struct Members {
    leader: Option<Pid>,
    /// Its name is the tag of the processes. It is removed with this value, once they are stopped.
    note: Note,
    /// The leader is reaped, so its process id may be reused once the group is empty.
    reaped: AtomicBool,
}

impl Members {
    fn leader_ended(&self) {
        self.reaped.store(true, Ordering::Relaxed);
        if let Some(leader) = self.leader {
            leaders().remove(&leader.as_raw_nonzero().get());
        }
    }

    fn are_alive(&self) -> bool {
        self.group_is_alive() || !self.strays().is_empty()
    }

    fn group_is_alive(&self) -> bool {
        self.leader
            .is_some_and(|leader| !self.reaped.load(Ordering::Relaxed) || test_kill_process_group(leader).is_ok())
    }

    async fn stop(&self) {
        if let Some(leader) = self.leader {
            self.signal(leader, Signal::TERM);
            if !self.end_within(leader, GRACE).await {
                self.signal(leader, Signal::KILL);
                // No process survives SIGKILL, but the kernel takes a moment to end it.
                self.end_within(leader, GRACE).await;
            }
        }
        self.sweep().await;
    }

    /// Kills processes that started a session of their own. This process adopts them once their parents end. Their
    /// children follow only when they end in turn, hence the loop.
    async fn sweep(&self) {
        let until = Instant::now() + SWEEP;
        loop {
            let strays = self.strays();
            if strays.is_empty() || Instant::now() >= until {
                return;
            }
            for stray in strays {
                let _ = kill_process(stray, Signal::KILL);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Returns adopted children that may belong to this command: not started through this module, and of no other
    /// command. Children that have ended are reaped on the way.
    fn strays(&self) -> Vec<Pid> {
        if !ADOPTS.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let leaders = leaders();
        let others = of_the_person().clone();
        let is_of_this = |pid: &Pid| match tag_of(*pid) {
            Some(tag) => tag == self.note.name,
            // Its environment has no tag. Its session may identify the command; otherwise it belongs here if no other
            // command runs.
            None => {
                let own = self.leader.map(|leader| leader.as_raw_nonzero().get());
                getsid(Some(*pid)).is_ok_and(|led| Some(led) == self.leader)
                    || leaders.iter().all(|leader| Some(*leader) == own)
            }
        };
        loop {
            let mut has_reaped = false;
            let mut runs = |pid: &Pid| {
                let seen = waitpid(Some(*pid), WaitOptions::NOHANG);
                has_reaped |= matches!(seen, Ok(Some(_)));
                matches!(seen, Ok(None)) && test_kill_process(*pid).is_ok()
            };
            let ours = children().into_iter().filter(|pid| !leaders.contains(pid) && !others.contains(pid));
            let strays: Vec<Pid> = ours.filter_map(Pid::from_raw).filter(&mut runs).filter(is_of_this).collect();
            // A child that ended after the count has left its own children to this process.
            if !strays.is_empty() || !has_reaped {
                return strays;
            }
        }
    }

    /// Signals the group, and also the leader, which may not have created the group yet.
    fn signal(&self, leader: Pid, signal: Signal) {
        if !self.reaped.load(Ordering::Relaxed) {
            let _ = kill_process(leader, signal);
        }
        let _ = kill_process_group(leader, signal);
    }

    /// Whether every process of the group ends within this time. Polled, because a pidfd reports the end of one process
    /// and groups have none.
    async fn end_within(&self, leader: Pid, within: Duration) -> bool {
        let until = Instant::now() + within;
        loop {
            // A process that has ended counts as a member of its group until it is reaped.
            if !self.reaped.load(Ordering::Relaxed) && !matches!(waitpid(Some(leader), WaitOptions::NOHANG), Ok(None)) {
                self.leader_ended();
            }
            if !self.group_is_alive() {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The command ended by itself, or by a signal from outside.
    Exited(ExitStatus),
    /// The command exceeded its time limit.
    TimedOut,
}

impl Ended {
    /// Returns the exit code that a shell would report: 128 + n after a signal, 124 after a timeout.
    pub fn code(self) -> i32 {
        match self {
            Ended::Exited(status) => status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            Ended::TimedOut => 124,
        }
    }
}

/// One of a command's output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

/// Reads the piped streams of a command until the command itself ends. Processes that it left behind may hold the pipes
/// open forever.
///
/// # Errors
/// The system's error when waiting for the command fails.
pub async fn drain(
    child: &mut Child,
    group: &Group,
    limit: Option<Duration>,
    take: impl FnMut(Stream, &[u8]),
) -> io::Result<Ended> {
    read(child, || group.leader_ended(), limit, take).await
}

async fn read(
    child: &mut Child,
    has_ended: impl Fn(),
    limit: Option<Duration>,
    mut take: impl FnMut(Stream, &[u8]),
) -> io::Result<Ended> {
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let (mut out_buffer, mut err_buffer) = (vec![0; 32 << 10], vec![0; 8 << 10]);
    let deadline = tokio::time::sleep(limit.unwrap_or(Duration::from_secs(3600 * 24 * 365)));
    tokio::pin!(deadline);
    let mut status = None;
    while out.is_some() || err.is_some() || status.is_none() {
        tokio::select! {
            n = read_some(&mut out, &mut out_buffer), if out.is_some() => match n {
                Ok(0) | Err(_) => out = None,
                Ok(n) => take(Stream::Out, &out_buffer[..n]),
            },
            n = read_some(&mut err, &mut err_buffer), if err.is_some() => match n {
                Ok(0) | Err(_) => err = None,
                Ok(n) => take(Stream::Err, &err_buffer[..n]),
            },
            ended = child.wait(), if status.is_none() => {
                has_ended();
                status = Some(ended?);
                deadline.as_mut().reset(tokio::time::Instant::now() + DRAIN);
            }
            () = &mut deadline => break,
        }
    }
    Ok(status.map_or(Ended::TimedOut, Ended::Exited))
}

async fn read_some(stream: &mut Option<impl tokio::io::AsyncRead + Unpin>, buffer: &mut [u8]) -> io::Result<usize> {
    match stream {
        Some(stream) => stream.read(buffer).await,
        None => std::future::pending().await,
    }
}

/// Runs this while pixir starts no process. A start that is stopped half way keeps its thread waiting, and with it all of
/// pixir from stopping.
pub fn between_starts<T>(work: impl FnOnce() -> T) -> T {
    let _leaders = leaders();
    work()
}

fn leaders() -> MutexGuard<'static, BTreeSet<i32>> {
    LEADERS.lock()
}

/// Returns the direct children of this process, from all of its threads.
pub fn children() -> Vec<i32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

/// Returns the command tag from the environment of a process, if it still has one.
fn tag_of(pid: Pid) -> Option<String> {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
    let own = format!("{TAG}=");
    let entry = environment.split(|b| *b == 0).find_map(|entry| entry.strip_prefix(own.as_bytes()))?;
    Some(String::from_utf8_lossy(entry).into_owned())
}

/// Builds a command for a program and its exact arguments, in a session of its own: without pixir's terminal, and as
/// leader of its process group.
///
/// It runs the program `setsid`, because calling `setsid(2)` in a child before it starts takes unsafe code.
pub fn program(name: &str, args: &[String]) -> Command {
    let setsid = Path::new("/usr/bin/setsid");
    let mut it = if setsid.exists() {
        let mut it = Command::new(setsid);
        it.arg("--").arg(name);
        it
    } else {
        // Without the `setsid` program the command leads a process group, but shares pixir's terminal.
        let mut it = Command::new(name);
        it.process_group(0);
        it
    };
    it.args(args);
    it
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: `stop` sleeps on the worker; then its first poll is also its last.
    #[tokio::test]
    async fn a_stop_gives_the_worker_back_while_it_waits() {
        let line = "trap '' TERM; echo ready; exec sleep 1000";
        let mut command = program("bash", &["-c".to_owned(), line.to_owned()]);
        command.stdout(std::process::Stdio::piped());
        let (mut child, group) = Group::start(command, &Stopping::default()).expect("it starts");
        let mut ready = [0; 6];
        child.stdout.take().expect("it is piped").read_exact(&mut ready).await.expect("it prints");
        let mut stop = std::pin::pin!(group.stop());
        assert!(
            futures_util::poll!(&mut stop).is_pending(),
            "it ignores SIGTERM, so the stop waits for the grace period"
        );
        stop.await;
        assert!(!group.is_alive());
    }

    /// Broken build: `Drop` does not count the group, or stops nothing.
    #[tokio::test]
    async fn a_dropped_group_is_stopped_and_that_can_be_waited_for() {
        let line = "trap '' TERM; echo ready; exec sleep 1000";
        let mut command = program("bash", &["-c".to_owned(), line.to_owned()]);
        command.stdout(std::process::Stdio::piped());
        let stopping = Stopping::default();
        let (mut child, group) = Group::start(command, &stopping).expect("it starts");
        let leader = group.members().leader.expect("it runs");
        let mut ready = [0; 6];
        child.stdout.take().expect("it is piped").read_exact(&mut ready).await.expect("it prints");
        drop(group);
        assert!(test_kill_process_group(leader).is_ok(), "a future that is dropped does not wait");
        stopping.finished().await;
        assert!(test_kill_process_group(leader).is_err());
    }
}
