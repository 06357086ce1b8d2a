//! Reads the terminal without a thread, so that nothing wakes the process between two keys.

use std::cell::Cell;
use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

use super::burst::Bursts;
use super::decode::{Decoder, TerminalEvent, TerminalReply};

/// The most bytes that one read decodes.
const BATCH: usize = 64 << 10;

thread_local! {
    /// This thread draws: a panic in it ends the interface, a panic elsewhere ends one task.
    static DRAWS: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn mark_screen_thread() {
    DRAWS.set(true);
}

pub(super) fn is_of_the_screen() -> bool {
    DRAWS.get()
}

/// Reads events from the terminal.
pub(crate) struct Keyboard {
    input: AsyncFd<std::os::fd::OwnedFd>,
    decoder: Decoder,
    bursts: Bursts,
    /// When the decoder stops waiting for the rest of an incomplete sequence.
    until: Option<Instant>,
    /// When keys after a paste are trusted again.
    silent_at: Option<Instant>,
}

impl Keyboard {
    /// # Errors
    /// An error of standard input.
    pub(crate) fn new() -> io::Result<Keyboard> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let input = super::watched(input, tokio::io::Interest::READABLE)?;
        Ok(Keyboard { input, decoder: Decoder::default(), bursts: Bursts::default(), until: None, silent_at: None })
    }

    /// Waits for the next events. None when the terminal is gone. Cancelling the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Vec<TerminalEvent>> {
        loop {
            let ready = match self.until {
                Some(until) => tokio::time::timeout_at(until, self.input.readable()).await,
                None => Ok(self.input.readable().await),
            };
            let Ok(ready) = ready else {
                let events = self.decoder.give_up();
                self.until = self.decoder.patience().map(|most| Instant::now() + most);
                if events.is_empty() {
                    continue;
                }
                return Some(self.sift(events));
            };
            let Ok(mut ready) = ready else { return None };
            let events = match read(&self.input, &mut self.decoder) {
                Read::Gone => return None,
                Read::Nothing => {
                    ready.clear_ready();
                    continue;
                }
                Read::Events(events) => events,
            };
            self.until = self.decoder.patience().map(|most| Instant::now() + most);
            if !events.is_empty() {
                return Some(self.sift(events));
            }
        }
    }

    fn sift(&mut self, events: Vec<TerminalEvent>) -> Vec<TerminalEvent> {
        let now = Instant::now();
        if self.silent_at.is_some_and(|at| now >= at) {
            self.bursts.was_silent();
        }
        let sifted = self.bursts.sift(events);
        self.silent_at = self.bursts.waits().then(|| now + Bursts::SILENCE);
        sifted
    }
}

enum Read {
    Gone,
    Nothing,
    Events(Vec<TerminalEvent>),
}

/// Reads and decodes everything that is available.
fn read(input: &AsyncFd<std::os::fd::OwnedFd>, decoder: &mut Decoder) -> Read {
    let mut events = Vec::new();
    let mut all = 0;
    let mut buffer = [0; 4 << 10];
    while all < BATCH {
        match read_some(input.get_ref(), &mut buffer) {
            Some(0) => break,
            Some(n) => {
                events.extend(decoder.feed(&buffer[..n]));
                all += n;
            }
            None => return Read::Gone,
        }
    }
    if all == 0 { Read::Nothing } else { Read::Events(events) }
}

/// Reads available bytes without waiting. None at the end of input.
fn read_some(fd: &std::os::fd::OwnedFd, buffer: &mut [u8]) -> Option<usize> {
    let mut ready = [PollFd::new(fd, PollFlags::IN)];
    // The descriptor is shared with the shell and blocks, so it is read only when poll reports bytes.
    match poll(&mut ready, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(0) => return Some(0),
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(_) => return None,
    }
    let there = ready[0].revents();
    if !there.contains(PollFlags::IN) {
        let gone = there.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
        return if gone { None } else { Some(0) };
    }
    match rustix::io::read(fd, buffer) {
        Ok(0) => None,
        Ok(n) => Some(n),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Some(0),
        Err(_) => None,
    }
}

/// Discards late input, so that it does not reach the shell: what is there now, and until `until` also the replies that
/// are still to come. The reply to the last query ends the wait.
pub(super) fn drain(until: Option<std::time::Instant>) {
    let mut buffer = [0; 1 << 10];
    let mut decoder = Decoder::default();
    let mut until = until;
    let input = io::stdin();
    loop {
        let wait = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(std::time::Instant::now()));
        if !super::out::wait_for(&input, PollFlags::IN, wait) {
            return;
        }
        let Ok(n @ 1..) = rustix::io::read(&input, &mut buffer) else { return };
        if decoder.feed(&buffer[..n]).contains(&TerminalEvent::Reply(TerminalReply::Done)) {
            until = None;
        }
    }
}
