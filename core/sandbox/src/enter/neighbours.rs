//! The loopback network that the commands of one Session share while one of its jobs lives.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{Doing as _, INSIDE, Result};
use process::Leader;
use storage::running::start_of;

/// How long a job that has just been started may take to make its namespaces.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked at. The kernel reports no new namespace.
const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Enters the user namespace and the network of the first of these jobs that lives. Returns whether there was one.
pub(super) fn join(jobs: &[Leader]) -> Result<bool> {
    let Some([user, network]) = jobs.iter().find_map(namespaces_of) else { return Ok(false) };
    setns(user, CloneFlags::CLONE_NEWUSER).doing("enter the user namespace of a job")?;
    setns(network, CloneFlags::CLONE_NEWNET).doing("enter the network of a job")?;
    Ok(true)
}

/// The user namespace and the network of a job's programs, as its launcher's first process has them. That process was
/// started within them, so the user who made them may open them; those of the outer launcher only root may open.
fn namespaces_of(job: &Leader) -> Option<[File; 2]> {
    let handle = pidfd_open(Pid::from_raw(job.pid)?, PidfdFlags::empty()).ok()?;
    let until = Instant::now() + PATIENCE;
    // Another process has this id once the job has ended.
    while start_of(job.pid) == Some(job.start) {
        if let Some(first) = first_process(job)? {
            let open = |kind: &str| File::open(format!("/proc/{first}/ns/{kind}")).ok();
            let both = [open("user")?, open("net")?];
            // Still the same child, so the files are of no process that got its id meanwhile.
            let is_the_same = first_process(job)? == Some(first) && start_of(job.pid) == Some(job.start);
            return Some(both).filter(|_| is_the_same);
        }
        let has_ended = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&POLL)) != Ok(0);
        if has_ended || Instant::now() >= until {
            return None;
        }
    }
    None
}

/// The first process of a job's process namespace, once it runs as such; `None` where the system does not tell.
#[expect(clippy::option_option, reason = "not yet is another answer than never")]
fn first_process(job: &Leader) -> Option<Option<u32>> {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", job.pid)).ok()?;
    let first: Option<u32> = children.split_whitespace().next().and_then(|pid| pid.parse().ok());
    Some(first.filter(|pid| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(INSIDE.as_bytes())
    }))
}
