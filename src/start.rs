//! The start of the process: what Rust's runtime hides from `main`, and limits of the system.
#![expect(unsafe_code, reason = "a function before `main`, and one of the C library; nothing safe does either")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Closes the process to others of its user, and prepares it for the limits of its user. Call it first, while there is
/// one thread.
pub(crate) fn prepare() {
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

/// The address space that this process may still use, bytes. None without a limit, and where the system does not tell.
pub(crate) fn spare_space() -> Option<u64> {
    let most = getrlimit(Resource::As).current?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let used: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(most.saturating_sub(used << 10))
}
