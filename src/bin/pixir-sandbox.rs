//! The launcher of the sandbox by itself. pixir's own executable can do the same; this one is a fraction of its size, and
//! every program in the sandbox starts through it once or twice.

use std::ffi::OsString;
use std::iter::once;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Whatever it was called: it is nothing else.
    let name = OsString::from(pixir_core::LAUNCHER);
    let launched = pixir_core::run_as_launcher(once(name).chain(std::env::args_os().skip(1)));
    launched.unwrap_or(ExitCode::FAILURE)
}
