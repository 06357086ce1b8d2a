//! Processes that a command started: stopped together, whatever becomes of the call.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, test_kill_process_group, waitpid};
use tokio::process::{Child, Command};

/// How long a process may take to end by itself after it was asked to.
const GRACE: Duration = Duration::from_millis(150);

/// The process group of a running command. When it is dropped, nothing of the group lives on.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Option<Pid>,
    /// The leader was reaped; its number may belong to another process once the group is empty.
    reaped: AtomicBool,
}

impl Group {
    /// The group that this child leads, or will lead in a moment: it makes the group itself.
    pub(crate) fn of(child: &Child) -> Group {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Group { leader, reaped: AtomicBool::new(false) }
    }

    /// The leader has ended, and whoever waited for it knows.
    pub(crate) fn leader_ended(&self) {
        self.reaped.store(true, Ordering::Relaxed);
    }

    /// Whether any process of the group is still there.
    pub(crate) fn is_alive(&self) -> bool {
        self.leader
            .is_some_and(|leader| !self.reaped.load(Ordering::Relaxed) || test_kill_process_group(leader).is_ok())
    }

    /// Asks them to end, and makes them if they do not within the grace.
    pub(crate) fn stop(&self) {
        let Some(leader) = self.leader else { return };
        self.signal(leader, Signal::TERM);
        if !self.ends(leader, GRACE) {
            self.signal(leader, Signal::KILL);
            // Nobody survives that, but dying takes a moment too.
            self.ends(leader, GRACE);
        }
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
            if !self.is_alive() {
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
