//! The start of the process: what Rust's runtime hides from `main`, and limits of the system.
#![expect(
    unsafe_code,
    reason = "a function before `main`, and calls of the C library and the kernel; nothing safe does these"
)]

use std::fs;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Resource, Signal, getrlimit};

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether the process was started without a stdout. Rust's runtime opens `/dev/null` in its place before `main` runs, so
/// that every write succeeds and its bytes are lost.
pub(crate) fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

/// It runs before Rust's runtime, so it makes one system call and uses nothing of the standard library.
extern "C" fn note_stdout() {
    let is_closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
    STDOUT_WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}

/// The system's loader calls the functions of this section before `main`.
#[used]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static BEFORE_MAIN: extern "C" fn() = note_stdout;

/// The first descriptor behind the standard streams.
const FIRST: RawFd = 3;

/// Keeps descriptors that this process was started with from every program that it starts. A folder among them would lead a
/// confined program out of its sandbox. This process itself can still open one by its name, as `/dev/fd/63` for
/// `<(a command)` of bash.
///
/// The standard library opens nothing that programs inherit, so this holds for all that is open later, too.
fn keep_descriptors() {
    // A kernel before 5.11 does not know the call or its flag, and some containers refuse it.
    if !mark_all() {
        mark_each();
    }
}

/// Closes all descriptors at the start of the next program, by one system call.
#[cfg(target_os = "linux")]
fn mark_all() -> bool {
    // SAFETY: the call marks descriptors and closes none.
    unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn mark_all() -> bool {
    false
}

/// The same, one by one.
fn mark_each() {
    let names = fs::read_dir("/proc/self/fd").or_else(|_| fs::read_dir("/dev/fd"));
    let open: Vec<RawFd> =
        names.into_iter().flatten().flatten().filter_map(|it| it.file_name().to_str()?.parse().ok()).collect();
    for number in open.into_iter().filter(|it| *it >= FIRST) {
        // SAFETY: nothing in this process owns a descriptor yet, and one that is closed again is only refused.
        let it = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(it, FdFlags::CLOEXEC);
    }
}

/// Closes the process to others of its user, keeps its descriptors to itself, and prepares it for the limits of its user.
/// Call it first, while there is one thread.
pub(crate) fn prepare() {
    keep_descriptors();
    // Memory and environment hold keys. Other processes of the user, such as programs without a sandbox, can neither read
    // them nor attach to this process. Without Linux's `/proc` there is nothing to close.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    // While this signal is caught, a write beyond the limit on the size of files fails with an error instead. A command
    // that pixir starts gets the default back. Without the handler that error is a signal, as in every program.
    let _ = signal_hook::flag::register(Signal::XFSZ.as_raw(), Arc::default());
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // Otherwise the C library raises this to the largest buffer that was ever freed, and then keeps as much in each
        // thread's heap. The body of a request is as long as the conversation, and each request makes a new one.
        tune_heap(M_MMAP_THRESHOLD, LARGE);
        // The C library reserves 64 MB of addresses for the heap of each new thread, as long as the limit allows it, and then
        // there is no space left for the stack of the next thread.
        if getrlimit(Resource::As).current.is_some() {
            tune_heap(M_ARENA_MAX, 1);
        }
    }
}

/// From `malloc.h`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const M_MMAP_THRESHOLD: i32 = -3;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const M_ARENA_MAX: i32 = -8;
/// The system gets a buffer of this size back as soon as it is freed, bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: i32 = 256 << 10;

/// Sets a parameter of the C library's heaps. It fails where another allocator replaces that of the C library, which then has
/// its own heaps.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn tune_heap(parameter: i32, value: i32) {
    unsafe extern "C" {
        safe fn mallopt(parameter: i32, value: i32) -> i32;
    }
    let _ = mallopt(parameter, value);
}

/// With less address space than this, no error could be put together, bytes: an allocation that fails aborts the process.
#[cfg(target_os = "linux")]
const LEAST: u64 = 4 << 20;

/// Whether the limit on addresses leaves too little to read the arguments. The reason is on stderr then.
pub(crate) fn is_out_of_space() -> bool {
    #[cfg(target_os = "linux")]
    if spare_space().is_some_and(|spare| spare < LEAST) {
        let text = "error: the system does not give pixir what it needs to run: the limit on address space leaves it less than 4 MB\n  \
            code: SESSION_START_FAILED\n  fix:  raise the limits of this shell: ulimit -v (memory)\n";
        let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
        return true;
    }
    false
}

/// The address space that this process may still use, bytes. None without a limit, and where the system does not tell.
pub(crate) fn spare_space() -> Option<u64> {
    let most = getrlimit(Resource::As).current?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let used: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(most.saturating_sub(used << 10))
}
