//! The launcher: confines itself by a plan and runs the program.
//!
//! It has one thread, as the kernel demands of a process that enters namespaces. Under [`Tier::Namespaces`] it becomes two:
//! the second one is the first process of the new process namespace, and when that one ends, the kernel ends all others in
//! it. The outer launcher waits for it, and kills it when pixir has ended, for whatever reason.
//!
//! Every exit code belongs to the program. A launcher that could not start the program says why on stderr and ends itself by
//! a signal that no program can send it: it blocks all signals but that of its own hand.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fork::Fork;
use nix::sys::signal::{SigSet, SigmaskHow, Signal as NixSignal, kill, pthread_sigmask};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, getppid, getrlimit,
    kill_process, pidfd_open, set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal, setrlimit,
    setsid, wait,
};

use super::executable::{WHICH_BUILD, tell_build};
use super::{LAUNCHER, NOT_SET_UP, Network, Plan, STARTS_NOTHING};
use protocol::sandbox::Tier;

mod capabilities; // what root may do
mod descriptors; // what it was started with
mod landlock; // files by Landlock
mod covers; // what commands write to caches
mod namespaces; // a file system, processes and a network of its own
mod neighbours; // the network that it shares with the jobs of its Session
mod syscalls; // system calls that no program needs

/// The first process of a process namespace has this word before its plan.
const INSIDE: &str = "inside";
/// How long processes that outlived the program may take to end before they are killed.
const GRACE: Duration = Duration::from_millis(150);
/// The most bytes of one file that a program may write.
const MOST_OF_A_FILE: u64 = 64 << 30;
/// The most processes and threads of a program, where they are counted for it and the jobs of its Session alone.
const MOST_PROCESSES: u64 = 16 << 10;

/// A fault of the launcher, as the end of the sentence "the sandbox could not be set up: …".
type Result<T> = std::result::Result<T, String>;

/// Adds to an error what was being done.
trait Doing<T> {
    fn doing(self, what: &str) -> Result<T>;
}

impl<T, E: std::fmt::Display> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: &str) -> Result<T> {
        self.map_err(|e| format!("{what}: {e}"))
    }
}

/// Runs the program that the arguments name under the plan that they begin with.
pub(super) fn launch(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    descriptors::close();
    // The memory of a program may hold secrets.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let mut run = || {
        let first = args.next().unwrap_or_default();
        if first == WHICH_BUILD {
            return tell_build(io::stdout()).map(|()| 0).doing("tell the build");
        }
        let is_inside = first == INSIDE;
        let start = if is_inside { Some(Start::at(&args.next().unwrap_or_default())?) } else { None };
        let text = if is_inside { args.next().unwrap_or_default() } else { first };
        let plan: Plan = serde_json::from_slice(text.as_encoded_bytes()).doing("read the plan")?;
        let program: Vec<OsString> = args.by_ref().collect();
        if program.is_empty() {
            return Err("no program is named".to_owned());
        }
        match start {
            Some(start) => first_process(&plan, &program, &start),
            None => outer(&plan, &text, &program),
        }
    };
    run().map_or_else(
        |why| {
            say(&format!("{NOT_SET_UP}: {why}\n"));
            end_without_program();
            ExitCode::FAILURE
        },
        ExitCode::from,
    )
}

/// Ends this process by the signal that means: the program never ran. The first process of a namespace cannot do so, and
/// need not: it has not said that it starts the program.
fn end_without_program() {
    let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
    let _ = kill_process(getpid(), STARTS_NOTHING);
}

/// A file in memory in which the first process says that it starts the program. The program cannot reach it.
struct Start(File);

impl Start {
    fn new() -> Result<Start> {
        memfd_create("start", MemfdFlags::CLOEXEC).map(|it| Start(it.into())).doing("note the start")
    }

    /// Where another process of the launcher finds it.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", getpid(), self.0.as_raw_fd())
    }

    fn at(path: &OsStr) -> Result<Start> {
        File::options().write(true).open(path).map(Start).doing("note the start")
    }

    fn say(&self) -> Result<()> {
        (&self.0).write_all(b"!").doing("note the start")
    }

    fn is_said(&self) -> bool {
        self.0.metadata().is_ok_and(|it| it.len() > 0)
    }
}

fn say(text: &str) {
    // If stderr is closed, the fault cannot be reported anywhere.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// The process that pixir starts: it waits for the program, and ends it with pixir.
fn outer(plan: &Plan, text: &OsStr, program: &[OsString]) -> Result<u8> {
    setsid().doing("start a session")?;
    // A signal to the group is meant for the program; this process then tells how the program ended.
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None).doing("block signals")?;
    let owner = Pid::from_raw(plan.owner).ok_or("the plan names no owner")?;
    let owner_handle = pidfd_open(owner, PidfdFlags::empty()).doing("watch pixir")?;
    if getppid() != Some(owner) {
        return Err("pixir has ended".into());
    }
    match plan.tier {
        Tier::Namespaces if !plan.outside => {
            namespaces::leave(plan)?;
            let start = Start::new()?;
            let inner = if plan.is_joined {
                // Commands of the same user may open the namespaces of a process that was started within them, but not those
                // of a copy of this one.
                capabilities::hand_on()?;
                let mut inner = Command::new("/proc/self/exe");
                inner.arg0(LAUNCHER).arg(INSIDE).arg(start.path()).arg(text).args(program);
                pid(inner.spawn().doing("start the first process")?.id())?
            } else {
                // A copy of this process needs no loader and reads no plan.
                match fork::fork().doing("start the first process")? {
                    Fork::Child => return first_process(plan, program, &start),
                    Fork::Parent(inner) => Pid::from_raw(inner).ok_or("a process has no id")?,
                }
            };
            let inner_handle = pidfd_open(inner, PidfdFlags::empty()).doing("watch the first process")?;
            if !ends_before(&inner_handle, &owner_handle) {
                let _ = kill_process(inner, Signal::KILL);
            }
            let (_, status) = wait(WaitOptions::empty()).doing("wait for the first process")?.ok_or("no process")?;
            if !start.is_said() {
                // It has printed the reason.
                end_without_program();
            }
            Ok(code(status))
        }
        Tier::Namespaces | Tier::Landlock | Tier::None => {
            set_child_subreaper(Some(getpid())).doing("adopt orphans")?;
            if !plan.outside {
                limit(false);
                landlock::confine(plan)?;
                // Landlock takes nothing from root that is no file: devices, the clock, the name of the machine.
                capabilities::give_up()?;
                syscalls::refuse(plan)?;
            }
            let child = start(plan, program, None)?;
            if plan.outside {
                let_go_of_pipes();
            }
            std::thread::spawn(move || {
                let _ = poll(&mut [PollFd::new(&owner_handle, PollFlags::IN)], None);
                end_descendants(Signal::KILL);
                std::process::exit(1);
            });
            let status = reap_until(child);
            if end_descendants(Signal::TERM) {
                say(super::LEFT_BEHIND);
            }
            Ok(status.map_or(u8::MAX, code))
        }
    }
}

/// Closes the ends of the pipes that the program has. pixir reads them to their end while the program runs, and this process
/// would hold them open.
fn let_go_of_pipes() {
    if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&nothing);
        let _ = rustix::stdio::dup2_stdout(&nothing);
    }
}

/// The first process of the process namespace: builds the file system, runs the program, and reaps every process there.
fn first_process(plan: &Plan, program: &[OsString], note: &Start) -> Result<u8> {
    // With the outer launcher this process ends, and with it the namespace.
    set_parent_process_death_signal(Some(Signal::KILL)).doing("end with pixir")?;
    // The parent lives outside the namespace and has no id here; an id means that it is gone and was replaced.
    if getppid().is_some() {
        return Err("pixir has ended".into());
    }
    // Until the program has ended.
    let _covers = namespaces::build(plan)?;
    if plan.network == Network::Machine {
        landlock::close_abstract_sockets();
    }
    limit(true);
    capabilities::give_up()?;
    syscalls::refuse(plan)?;
    let child = start(plan, program, Some(note))?;
    let status = reap_until(child);
    if end_all_others() {
        say(super::LEFT_BEHIND);
    }
    Ok(status.map_or(u8::MAX, code))
}

/// Starts the program, with no signal blocked.
///
/// A copy of this process becomes the program, so that this one blocks signals all the time: the program may run before its
/// start is known here, and a signal that it sends here would end this process as if the program had never run.
fn start(plan: &Plan, program: &[OsString], note: Option<&Start>) -> Result<Pid> {
    // No other process of the user attaches to this one: it knows how the program ended, and says so to pixir.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).doing("close this process to others")?;
    note.map_or(Ok(()), Start::say)?;
    if program[0].is_empty() {
        // The question was only whether this tier works.
        std::process::exit(0);
    }
    if let Fork::Parent(child) = fork::fork().doing("start the program")? {
        return Pid::from_raw(child).ok_or_else(|| "a process has no id".to_owned());
    }
    let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
    let e = Command::new(&program[0]).args(&program[1..]).current_dir(&plan.folder).exec();
    let is_missing = e.kind() == io::ErrorKind::NotFound && plan.folder.is_dir();
    let why = if is_missing { "command not found".to_owned() } else { e.to_string() };
    say(&format!("{}: {why}\n", program[0].display()));
    // As a shell does.
    std::process::exit(if is_missing { 127 } else { 126 });
}

fn pid(id: u32) -> Result<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw).ok_or_else(|| "a process has no id".to_owned())
}

/// Whether the first of these processes ends while the second one runs.
fn ends_before(first: &OwnedFd, second: &OwnedFd) -> bool {
    let mut both = [PollFd::new(first, PollFlags::IN), PollFd::new(second, PollFlags::IN)];
    while poll(&mut both, None) == Err(rustix::io::Errno::INTR) {}
    both[1].revents().is_empty()
}

/// Reaps every child that ends, until this one does. `None` where the system does not tell how.
fn reap_until(child: Pid) -> Option<WaitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == child => return Some(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// The exit code that a shell would report.
fn code(status: WaitStatus) -> u8 {
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Reaps the children that have ended. Returns whether others are left.
fn reap() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Waits until a child ends. Returns whether there was one.
fn reap_one() -> bool {
    loop {
        match wait(WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            ended => return ended.is_ok(),
        }
    }
}

/// Does something after the grace period, unless this process has ended by then.
fn after_grace(act: impl FnOnce() + Send + 'static) {
    let grace = Timespec { tv_sec: 0, tv_nsec: i64::from(GRACE.subsec_nanos()) };
    std::thread::spawn(move || {
        let _ = poll(&mut [], Some(&grace));
        act();
    });
}

/// Ends every other process of the namespace, of which this is the first. Returns whether there was any.
fn end_all_others() -> bool {
    let signal_all = |signal: NixSignal| kill(nix::unistd::Pid::from_raw(-1), signal).is_ok();
    if !reap() || !signal_all(NixSignal::SIGTERM) {
        return false;
    }
    after_grace(move || {
        let _ = signal_all(NixSignal::SIGKILL);
    });
    while reap_one() {}
    true
}

/// Ends every descendant of this process, which adopts those whose parents have ended. Returns whether there was any.
fn end_descendants(first: Signal) -> bool {
    static IS_LATE: AtomicBool = AtomicBool::new(false);
    if !reap() {
        return false;
    }
    let signal_children = |signal: Signal| {
        for child in process::children().into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(child, signal);
        }
    };
    after_grace(move || {
        IS_LATE.store(true, Ordering::Relaxed);
        signal_children(Signal::KILL);
    });
    // A child that ends leaves its own children to this process.
    loop {
        signal_children(if IS_LATE.load(Ordering::Relaxed) { Signal::KILL } else { first });
        if !reap_one() {
            return true;
        }
    }
}

/// Sets limits on what one program may take from the machine. A lower limit that is set already stays.
fn limit(counts_alone: bool) {
    let lower = |resource: Resource, most: u64| {
        let now = getrlimit(resource);
        let new = |it: Option<u64>| Some(it.map_or(most, |it| it.min(most)));
        // The kernel refuses nothing that lowers a limit.
        let _ = setrlimit(resource, Rlimit { current: new(now.current), maximum: new(now.maximum) });
    };
    lower(Resource::Fsize, MOST_OF_A_FILE);
    let memory = rustix::system::sysinfo();
    // Memory that is written, not address space: runtimes reserve far more than they use.
    lower(Resource::Data, (memory.totalram as u64).saturating_mul(u64::from(memory.mem_unit)) / 4 * 3);
    if counts_alone {
        lower(Resource::Nproc, MOST_PROCESSES);
    }
}
