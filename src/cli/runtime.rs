//! The async runtime of a command, and the signals that stop it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use futures_util::future::{BoxFuture, LocalBoxFuture};
use pixir_core::{Code, EndSignals, Error, Result};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

use crate::start;

/// Runs a future to its end, with all that it spawns on this thread. Blocking tasks that still run then are abandoned.
///
/// Workers of their own would be two more threads to start, and each step of a call would wake one of them: a Turn waits
/// for its server, its disk and its programs, not for a processor.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    check_space()?;
    check_tasks()?;
    let runtime = build(Builder::new_current_thread())?;
    let outcome = runtime.block_on(boxed(work));
    runtime.shutdown_background();
    outcome
}

/// Runs an interface on this thread, and what it gives to the runtime of the core on one other thread. Neither waits for
/// the other: a key needs no thread of the core, and the parts of an answer that arrive between two frames wake one thread
/// once.
pub(crate) fn block_on_apart<T, W>(work: impl FnOnce(Handle) -> W) -> Result<T>
where
    W: Future<Output = Result<T>>,
{
    check_space()?;
    check_tasks()?;
    let mut builder = Builder::new_current_thread();
    builder.on_thread_park(pixir_core::rest_between_parts);
    let core = build(builder)?;
    let own = build(Builder::new_current_thread())?;
    let handle = core.handle().clone();
    // A runtime with workers would be every task compiled once more.
    let (end, ended) = oneshot::channel::<()>();
    let run = move || {
        let _ = core.block_on(ended);
        core.shutdown_background();
    };
    thread::Builder::new().name("core".into()).spawn(run).map_err(|e| starved(&e.to_string()))?;
    let outcome = own.block_on(work(handle));
    drop(end);
    own.shutdown_background();
    outcome
}

/// Starts a task beside the command.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    let work: BoxFuture<'static, ()> = Box::pin(work);
    tokio::spawn(work);
}

// Tokio compiles its loops, and the body of the future in each of them, for every type of future that it waits for.
fn boxed<'a, T>(work: impl Future<Output = T> + 'a) -> LocalBoxFuture<'a, T> {
    Box::pin(work)
}

fn build(mut builder: Builder) -> Result<Runtime> {
    // Idle blocking threads end early: their timeout would wake an idle screen later.
    builder.thread_keep_alive(Duration::from_millis(300)).enable_all();
    // Without descriptors the builder fails; without threads or memory for them it panics.
    let runtime = catch_unwind(AssertUnwindSafe(|| builder.build()));
    let runtime = runtime.map_err(|_| starved("it could not start its threads"))?;
    runtime.map_err(|e| starved(&e.to_string()))
}

/// The threads that a Turn with a tool takes besides the first one, and the processes that its program takes: 4 were
/// measured to break it, and 8 to do.
const LEAST_TASKS: usize = 8;

/// Fails where the system gives too few threads: each of them may be waited for, and tokio panics where it gets none.
fn check_tasks() -> Result<()> {
    let mut threads: Vec<thread::JoinHandle<()>> = Vec::new();
    let mut refused = None;
    for _ in 0..LEAST_TASKS {
        match thread::Builder::new().stack_size(SMALL_STACK).spawn(thread::park) {
            Ok(thread) => threads.push(thread),
            Err(e) => refused = Some(e),
        }
    }
    let given = threads.len();
    for thread in threads {
        thread.thread().unpark();
        // It only waits, so it ends without a panic.
        let _ = thread.join();
    }
    match refused {
        Some(e) => {
            let why = format!("it needs {LEAST_TASKS} threads and processes, and the system gives {given}: {e}");
            Err(starved(&why))
        }
        None => Ok(()),
    }
}

/// The signals that end pixir. From construction on they are received and no longer kill the process.
pub(crate) struct Signals(EndSignals);

impl Signals {
    pub(crate) fn listen() -> Result<Signals> {
        let signals = EndSignals::listen().map_err(|e| starved(&e.to_string()))?;
        let asked = ASKED.get_or_init(Arc::default);
        for number in EndSignals::numbers() {
            let value = usize::try_from(number).unwrap_or_default();
            signal_hook::flag::register_usize(number, Arc::clone(asked), value).map_err(|e| starved(&e.to_string()))?;
        }
        Ok(Signals(signals))
    }

    /// Waits for the next signal and returns its exit code.
    pub(crate) async fn next(&mut self) -> u8 {
        128 + self.0.next().await
    }
}

/// The number of the last signal that asked pixir to end; 0 before.
static ASKED: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// Whether a signal has asked pixir to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Signals are not caught: one ends the process at once.
    NotCaught,
    No,
    Signal(u8),
}

/// Whether a signal has asked pixir to end, for code that waits for something else than the runtime.
pub(crate) fn asked_to_end() -> Asked {
    match ASKED.get().map(|it| u8::try_from(it.load(Ordering::Relaxed)).unwrap_or(u8::MAX)) {
        None => Asked::NotCaught,
        Some(0) => Asked::No,
        Some(number) => Asked::Signal(number),
    }
}

/// The stack of a thread that only waits, bytes.
const SMALL_STACK: usize = 16 << 10;

/// The address space that the threads and one Turn take, bytes: 21 MB were measured for the demo. With less, a thread that
/// cannot start may be waited for, and an allocation that fails aborts the process.
const LEAST_SPACE: u64 = 32 << 20;

/// Fails where the limit on address space leaves too little.
fn check_space() -> Result<()> {
    match start::spare_space() {
        Some(spare) if spare < LEAST_SPACE => {
            let (least, spare) = (LEAST_SPACE >> 20, spare >> 20);
            Err(starved(&format!("it needs {least} MB of address space, and the limit leaves {spare} MB")))
        }
        Some(_) | None => Ok(()),
    }
}

fn starved(why: &str) -> Error {
    let fix = "raise the limits of this shell: ulimit -n (open files), -u (processes), -v (memory)";
    Error::new(Code::SessionStartFailed, format!("the system does not give pixir what it needs to run: {why}"), fix)
}
