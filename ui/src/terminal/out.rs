//! Bytes to the terminal, without waiting for it where that is possible.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::size::Hints;
use super::{MOST_CELLS, MOST_COLUMNS, watched};

/// The output of the terminal, non-blocking where possible: a terminal that accepts nothing must not stop pixir.
pub(super) struct Out {
    pub(super) own: Option<File>,
    pub(super) watch: Option<AsyncFd<File>>,
    /// Bytes that the terminal has not accepted yet.
    pub(super) pending: Vec<u8>,
    /// Where the kernel does not know the size.
    pub(super) hints: Hints,
}

impl Out {
    pub(super) fn new() -> Out {
        Out::of(io::stdout()).unwrap_or_else(|| Out::to(None))
    }

    /// The terminal that a stream leads to, if it is one that can be opened.
    pub(super) fn of(stream: impl AsFd) -> Option<Out> {
        // O_NONBLOCK belongs to the open file, which stdout shares with the shell. Opening the terminal by its name
        // gives pixir an open file of its own.
        let name = rustix::termios::ttyname(stream, Vec::new()).ok()?.into_string().ok()?;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        let own = File::options().write(true).custom_flags(i32::try_from(flags.bits()).ok()?).open(name).ok()?;
        Some(Out::to(Some(own)))
    }

    fn to(own: Option<File>) -> Out {
        Out { own, watch: None, pending: Vec::new(), hints: Hints::of_environment() }
    }

    /// The size that is drawn: that of the terminal, unless it claims to be far larger than any screen.
    pub(super) fn size(&self) -> io::Result<(u16, u16)> {
        let (columns, rows) = self.hints.settle(self.of_kernel()?);
        let columns = columns.min(MOST_COLUMNS);
        let most_rows = MOST_CELLS / u32::from(columns.max(1));
        Ok((columns, rows.min(u16::try_from(most_rows).unwrap_or(u16::MAX))))
    }

    /// Whether the terminal has to be asked for its size.
    pub(super) fn misses_size(&self) -> bool {
        self.of_kernel().is_ok_and(|size| self.hints.miss(size))
    }

    /// Columns and rows as the kernel knows them; zero is not known.
    fn of_kernel(&self) -> io::Result<(u16, u16)> {
        // One system call where there is an open file; the other way opens the terminal anew for each frame.
        match self.own.as_ref().and_then(|own| rustix::termios::tcgetwinsize(own).ok()) {
            Some(size) => Ok((size.ws_col, size.ws_row)),
            None => crossterm::terminal::size(),
        }
    }

    /// Writes what the terminal accepts now, and keeps the rest.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(own) = &mut self.own else {
            let mut out = io::stdout();
            out.write_all(bytes)?;
            return out.flush();
        };
        if !self.pending.is_empty() {
            self.pending.extend_from_slice(bytes);
            return Ok(());
        }
        let written = write_some(own, bytes)?;
        self.pending.extend_from_slice(&bytes[written..]);
        Ok(())
    }

    pub(super) async fn flush(&mut self) -> io::Result<()> {
        let Some(own) = &mut self.own else { return Ok(()) };
        while !self.pending.is_empty() {
            let watch = match &mut self.watch {
                Some(watch) => watch,
                none => none.insert(watched(own.try_clone()?, Interest::WRITABLE)?),
            };
            let mut ready = watch.writable().await?;
            let written = write_some(own, &self.pending)?;
            self.pending.drain(..written);
            if !self.pending.is_empty() {
                ready.clear_ready();
            }
        }
        Ok(())
    }

    /// Writes everything, unless the terminal takes longer than `most`. False if it does.
    pub(super) fn write_all_within(&mut self, bytes: &[u8], most: Duration) -> bool {
        let Some(own) = &mut self.own else {
            return io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()).is_ok();
        };
        let until = Instant::now() + most;
        let mut rest = bytes;
        while !rest.is_empty() {
            match write_some(own, rest) {
                Ok(written) => rest = &rest[written..],
                Err(_) => return false,
            }
            let left = until.saturating_duration_since(Instant::now());
            if !rest.is_empty() && (left.is_zero() || !wait_for(own, PollFlags::OUT, left)) {
                return false;
            }
        }
        true
    }
}

/// Writes as much as the terminal accepts without waiting.
fn write_some(file: &mut File, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => written += n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(written)
}

/// Waits until the descriptor is ready; false after `most`.
pub(super) fn wait_for(fd: &impl AsFd, flags: PollFlags, most: Duration) -> bool {
    let most = Timespec::try_from(most).ok();
    poll(&mut [PollFd::new(fd, flags)], most.as_ref()).is_ok_and(|ready| ready > 0)
}
