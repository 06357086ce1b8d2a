//! Runs that another process has open: only that process can stop them, so it is asked to.

use pixir_core::{Code, Error, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The process that holds a lock, if one of these words stands in its command line. It is never a terminal, which may have more
/// open than the Session that is meant, and never the process of a host, which has its own Input for this.
pub(super) fn process_of(locked: &Error, words: &[&str]) -> Option<Pid> {
    let pid = locked.details.get("pid").and_then(Value::as_i64).and_then(|pid| i32::try_from(pid).ok())?;
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let of_line = || line.split(|byte| *byte == 0);
    let is_run = of_line().any(|word| words.iter().any(|it| it.as_bytes() == word));
    let has_host = of_line().any(|word| word.starts_with(b"--input"));
    Pid::from_raw(pid).filter(|_| is_run && !has_host)
}

/// Asks a process to stop what it runs.
///
/// # Errors
/// `COMMAND_FAILED` where the user may not.
pub(super) fn ask_to_stop(pid: Pid) -> Result<()> {
    kill_process(pid, Signal::TERM)
        .map_err(|e| Error::new(Code::CommandFailed, format!("stop the run: {e}"), "end its process"))
}
