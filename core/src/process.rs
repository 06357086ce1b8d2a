//! Processes that a command started: stopped together, whatever becomes of the call.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, test_kill_process, test_kill_process_group, waitpid,
};
use tokio::process::{Child, Command};

/// How long a process may take to end by itself after it was asked to.
const GRACE: Duration = Duration::from_millis(150);

/// What a running command and everything that it starts is known by.
const TAG: &str = "PIXIR_COMMAND";
/// How long processes that left their group may take to be gone.
const SWEEP: Duration = Duration::from_secs(1);

/// Commands that were started and are not reaped yet. A process has one table of children, so this is one for all.
static LEADERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
/// Processes whose parents have ended become our children.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// From now on no process that a command leaves behind can get away from us, whatever session it makes for itself.
/// It is for the program to say, not for a library: every child that nobody here has started is taken for such a process.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok() {
        ADOPTS.store(true, Ordering::Relaxed);
    }
}

/// The processes of a running command. When it is dropped, none of them lives on.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Option<Pid>,
    tag: String,
    /// The leader was reaped; its number may belong to another process once the group is empty.
    reaped: AtomicBool,
}

impl Group {
    /// Starts a command line and leads its processes.
    ///
    /// # Errors
    /// What the system says when it cannot be started.
    pub(crate) fn start(mut command: Command) -> io::Result<(Child, Group)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let tag = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        command.env(TAG, &tag);
        // Nobody takes the new child for somebody else's before it is noted.
        let mut leaders = leaders();
        let child = command.spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        leaders.extend(leader.map(|pid| pid.as_raw_nonzero().get()));
        Ok((child, Group { leader, tag, reaped: AtomicBool::new(false) }))
    }

    /// The leader has ended, and whoever waited for it knows.
    pub(crate) fn leader_ended(&self) {
        self.reaped.store(true, Ordering::Relaxed);
        if let Some(leader) = self.leader {
            leaders().remove(&leader.as_raw_nonzero().get());
        }
    }

    /// Whether any process of the command is still there.
    pub(crate) fn is_alive(&self) -> bool {
        self.group_is_alive() || !self.strays().is_empty()
    }

    fn group_is_alive(&self) -> bool {
        self.leader
            .is_some_and(|leader| !self.reaped.load(Ordering::Relaxed) || test_kill_process_group(leader).is_ok())
    }

    /// Asks them to end, and makes them if they do not within the grace.
    pub(crate) fn stop(&self) {
        if let Some(leader) = self.leader {
            self.signal(leader, Signal::TERM);
            if !self.ends(leader, GRACE) {
                self.signal(leader, Signal::KILL);
                // Nobody survives that, but dying takes a moment too.
                self.ends(leader, GRACE);
            }
        }
        self.sweep();
    }

    /// What made a session of its own is our child once its parent has ended, and what it has started is so after it.
    fn sweep(&self) {
        let until = Instant::now() + SWEEP;
        loop {
            let strays = self.strays();
            if strays.is_empty() || Instant::now() >= until {
                return;
            }
            for stray in strays {
                let _ = kill_process(stray, Signal::KILL);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Our children that nobody here has started and that are not known to belong to another command. Those that have
    /// ended are reaped on the way.
    fn strays(&self) -> Vec<Pid> {
        if !ADOPTS.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let leaders = leaders();
        let ours = children().into_iter().filter(|pid| !leaders.contains(pid)).filter_map(Pid::from_raw);
        ours.filter(|pid| matches!(waitpid(Some(*pid), WaitOptions::NOHANG), Ok(None)))
            .filter(|pid| test_kill_process(*pid).is_ok())
            .filter(|pid| tag_of(*pid).is_none_or(|tag| tag == self.tag))
            .collect()
    }

    /// To the group, and to the leader itself, which may not have made the group yet.
    fn signal(&self, leader: Pid, signal: Signal) {
        if !self.reaped.load(Ordering::Relaxed) {
            let _ = kill_process(leader, signal);
        }
        let _ = kill_process_group(leader, signal);
    }

    /// Whether every process of the group ends within this time.
    fn ends(&self, leader: Pid, within: Duration) -> bool {
        let until = Instant::now() + within;
        loop {
            // Until it is reaped, a process that has ended still counts as one of its group.
            if !self.reaped.load(Ordering::Relaxed) && !matches!(waitpid(Some(leader), WaitOptions::NOHANG), Ok(None)) {
                self.leader_ended();
            }
            if !self.group_is_alive() {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.is_alive() {
            self.stop();
        }
    }
}

fn leaders() -> MutexGuard<'static, BTreeSet<i32>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Direct children of this process, whichever thread they are listed under.
fn children() -> Vec<i32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

/// The command that a process belongs to, as far as its environment still says.
fn tag_of(pid: Pid) -> Option<String> {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
    let own = format!("{TAG}=");
    let entry = environment.split(|b| *b == 0).find_map(|entry| entry.strip_prefix(own.as_bytes()))?;
    Some(String::from_utf8_lossy(entry).into_owned())
}

/// A command line, in a session of its own: without our terminal, and as the leader of its process group.
///
/// `setsid` is a program because a child can only be given a session before it starts, which takes unsafe code.
pub(crate) fn shell(command: &str) -> Command {
    let setsid = Path::new("/usr/bin/setsid");
    if setsid.exists() {
        let mut it = Command::new(setsid);
        it.args(["bash", "-c", command]);
        it
    } else {
        let mut it = Command::new("bash");
        it.args(["-c", command]).process_group(0);
        it
    }
}

/// The environment that commands get: the person's, without what looks like a secret or changes how shells start.
pub fn environment(all: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    const SECRET: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"];
    const HIJACK: [&str; 4] = ["BASH_ENV", "ENV", "PROMPT_COMMAND", "CDPATH"];
    const QUIET: [(&str, &str); 6] = [
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("EDITOR", "false"),
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("TERM", "dumb"),
    ];
    let keep = |name: &str| {
        let upper = name.to_uppercase();
        !SECRET.iter().any(|secret| upper.contains(secret))
            && !HIJACK.contains(&name)
            && !name.starts_with("BASH_FUNC_")
            && !name.starts_with("LD_")
    };
    let mut kept: Vec<_> =
        all.into_iter().filter(|(name, _)| keep(name) && QUIET.iter().all(|(quiet, _)| quiet != name)).collect();
    kept.extend(QUIET.map(|(name, value)| (name.to_owned(), value.to_owned())));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_the_environment_reaches_a_command() {
        let all = [
            "OPENAI_API_KEY",
            "GH_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "SSH_AUTH_SOCK",
            "db_password",
            "BASH_FUNC_ls%%",
            "LD_PRELOAD",
            "PATH",
            "HOME",
        ];
        let kept = environment(all.map(|name| (name.to_owned(), "canary".to_owned())));
        let names: Vec<_> = kept.iter().filter(|(_, value)| value == "canary").map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["PATH", "HOME"]);
    }
}
