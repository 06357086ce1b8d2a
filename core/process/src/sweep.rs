//! Ends what a killed pixir has left running, before anything new runs.
//!
//! Nothing can end the children of a process that gets SIGKILL at that moment, except the kernel: a sandbox with a
//! process namespace of its own will, where there is one. Everywhere else this sweep does, at the next open.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::group::TAG;
use storage::running::{Left, Stat, Subject, start_of, stat_of};

/// How long the processes may take to end after SIGTERM before they get SIGKILL.
const GRACE: Duration = Duration::from_millis(150);
/// How long a sweep waits for processes to end after SIGKILL.
const MOST: Duration = Duration::from_secs(1);
/// The longest time until a sweep looks again for processes that are left; it looks earlier when one of them ends.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Ends every process of these groups, whose pixir is dead. This blocks, for a moment only where a process is left.
pub fn sweep(left: &[Left]) {
    let groups: Vec<Group<'_>> = left.iter().filter(|it| it.subject == Subject::Group).map(Group::of).collect();
    if groups.is_empty() {
        return;
    }
    let began = Instant::now();
    let mut swept = 0;
    loop {
        let survivors = survivors(&groups);
        if survivors.is_empty() {
            break;
        }
        let signal = if began.elapsed() < GRACE { Signal::TERM } else { Signal::KILL };
        swept = swept.max(survivors.len());
        let signalled: Vec<OwnedFd> = survivors.values().filter_map(|it| send(it, signal)).collect();
        if began.elapsed() > MOST {
            tracing::warn!("{} processes of a pixir that was killed do not end", survivors.len());
            return;
        }
        let mut ends: Vec<PollFd<'_>> = signalled.iter().map(|it| PollFd::new(it, PollFlags::IN)).collect();
        // An interrupted wait only looks earlier.
        let _ = poll(&mut ends, Some(&LOOK));
    }
    if swept > 0 {
        tracing::warn!("ended {swept} processes of a pixir that was killed");
    }
    left.iter().filter(|it| it.subject == Subject::Group).for_each(Left::settled);
}

/// A group of processes, as its note describes it.
struct Group<'a> {
    tag: &'a str,
    /// The leader and when it was started, if pixir lived long enough to note it.
    leader: Option<(i32, u64)>,
}

impl<'a> Group<'a> {
    fn of(left: &'a Left) -> Group<'a> {
        let text = String::from_utf8_lossy(&left.text);
        let mut words = text.split_whitespace();
        let leader = words.next().and_then(|pid| Some((pid.parse().ok()?, words.next()?.parse().ok()?)));
        Group { tag: &left.name, leader }
    }

    /// Whether the process is in the session or the group of the leader. The ids are not given to others while one of
    /// their processes lives; if another process has the id of the leader now, none of them does.
    fn leads(&self, it: &Stat) -> bool {
        self.leader.is_some_and(|(leader, start)| {
            (it.session == leader || it.group == leader) && start_of(leader).is_none_or(|now| now == start)
        })
    }
}

/// The processes of these groups that are alive, and all their descendants.
fn survivors(groups: &[Group<'_>]) -> BTreeMap<i32, Stat> {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = names.filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
    let all: Vec<Stat> = pids.filter_map(stat_of).filter(|it| !it.is_ended && it.pid != own).collect();
    let is_tagged = |it: &Stat| {
        let environment = fs::read(format!("/proc/{}/environ", it.pid)).unwrap_or_default();
        let tag = environment.split(|b| *b == 0).find_map(|entry| entry.strip_prefix(format!("{TAG}=").as_bytes()));
        tag.is_some_and(|tag| groups.iter().any(|group| group.tag.as_bytes() == tag))
    };
    let mut found: BTreeMap<i32, Stat> = all
        .iter()
        .filter(|it| groups.iter().any(|group| group.leads(it)) || is_tagged(it))
        .map(|it| (it.pid, *it))
        .collect();
    loop {
        let children: Vec<Stat> =
            all.iter().filter(|it| found.contains_key(&it.parent) && !found.contains_key(&it.pid)).copied().collect();
        if children.is_empty() {
            return found;
        }
        found.extend(children.into_iter().map(|it| (it.pid, it)));
    }
}

/// Signals exactly this process, and no other one that was given its id since. Returns its handle, which becomes readable
/// when it ends.
fn send(it: &Stat, signal: Signal) -> Option<OwnedFd> {
    let process = pidfd_open(Pid::from_raw(it.pid)?, PidfdFlags::empty()).ok()?;
    if start_of(it.pid) == Some(it.start) {
        let _ = pidfd_send_signal(&process, signal);
    }
    Some(process)
}
