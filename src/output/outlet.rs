//! stdout and stderr as places that pixir can give up: a reader that takes nothing must not keep a signal from ending it.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::cli::{Asked, asked_to_end};

/// A reader has let [`LAST_WAIT`] pass, so that pixir waits for no reader any more.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// How long a reader may take nothing once a signal has asked pixir to end.
const LAST_WAIT: Duration = Duration::from_millis(200);
/// How often a blocked write looks for a signal: another thread may be the one that it interrupts.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// A pipe or a socket that poll reports as writable takes this many bytes without blocking: `PIPE_BUF`.
const PIECE: usize = if cfg!(target_os = "linux") { 4 << 10 } else { 512 };

/// One of the standard streams. Without a signal it waits for its reader as long as the reader takes.
pub(super) struct Outlet {
    stream: BorrowedFd<'static>,
    /// A terminal, opened without blocking: it may take less than poll promises.
    terminal: Option<File>,
}

impl Outlet {
    pub(super) fn stdout() -> Outlet {
        Outlet::of(rustix::stdio::stdout())
    }

    pub(super) fn stderr() -> Outlet {
        Outlet::of(rustix::stdio::stderr())
    }

    fn of(stream: BorrowedFd<'static>) -> Outlet {
        // O_NONBLOCK belongs to the open file, which pixir shares with the shell, so it opens the terminal by its name.
        let open = || {
            let name = rustix::termios::ttyname(stream, Vec::new()).ok()?.into_string().ok()?;
            let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).ok()?;
            File::options().write(true).custom_flags(flags).open(name).ok()
        };
        let terminal = if asked_to_end() == Asked::NotCaught { None } else { open() };
        Outlet { stream, terminal }
    }

    /// Returns when the reader takes more.
    ///
    /// # Errors
    /// `TimedOut` when a signal has asked pixir to end, and the reader takes nothing.
    fn wait(&self) -> io::Result<()> {
        let mut last_moment = None;
        loop {
            let most = match asked_to_end() {
                Asked::NotCaught | Asked::No => LOOK_AGAIN,
                Asked::Signal(_) if GIVEN_UP.load(Ordering::Relaxed) => Duration::ZERO,
                Asked::Signal(_) => {
                    let until = *last_moment.get_or_insert_with(|| Instant::now() + LAST_WAIT);
                    until.saturating_duration_since(Instant::now())
                }
            };
            let most = Timespec::try_from(most).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.stream, PollFlags::OUT)], Some(&most)) {
                Ok(1..) => return Ok(()),
                Ok(0) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            let is_late = last_moment.is_some_and(|until| Instant::now() >= until);
            if is_late || GIVEN_UP.load(Ordering::Relaxed) {
                GIVEN_UP.store(true, Ordering::Relaxed);
                return Err(io::Error::new(ErrorKind::TimedOut, "its reader takes nothing"));
            }
        }
    }
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A signal that is not caught ends the process in the middle of a write.
        let most = if asked_to_end() == Asked::NotCaught { bytes.len() } else { bytes.len().min(PIECE) };
        loop {
            if most < bytes.len() || asked_to_end() != Asked::NotCaught {
                self.wait()?;
            }
            let to = self.terminal.as_ref().map_or(self.stream, |it| it.as_fd());
            match rustix::io::write(to, &bytes[..most]) {
                Ok(written) => return Ok(written),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait()?,
                Err(e) => return Err(e.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
