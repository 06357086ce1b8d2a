//! The signals that ask the program to end.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Every signal that ends a process by default and that it can catch, except those of a fault in its own code and
/// `SIGPIPE`, which Rust ignores.
const ENDING: [Number; 11] = [
    Number::HUP,
    Number::INT,
    Number::QUIT,
    Number::TERM,
    Number::ABORT,
    Number::USR1,
    Number::USR2,
    Number::ALARM,
    Number::XCPU,
    Number::VTALARM,
    Number::PROF,
];

/// The signals that ask the program to end. From construction on they are received and no longer kill the process.
#[derive(Debug)]
pub struct EndSignals(Vec<(u8, Signal)>);

impl EndSignals {
    /// Begins to receive the signals. Needs a Tokio runtime.
    ///
    /// # Errors
    /// The system's error, for example when no descriptor is left.
    pub fn listen() -> io::Result<EndSignals> {
        let kind = |number: Number| SignalKind::from_raw(number.as_raw());
        // While this signal is caught, a write beyond the limit on the size of files fails with an error instead.
        drop(signal(kind(Number::XFSZ))?);
        let listen = |number: Number| Ok((u8::try_from(number.as_raw()).unwrap_or_default(), signal(kind(number))?));
        ENDING.into_iter().map(listen).collect::<io::Result<_>>().map(EndSignals)
    }

    /// The numbers of these signals.
    pub fn numbers() -> impl Iterator<Item = i32> {
        ENDING.into_iter().map(Number::as_raw)
    }

    /// Waits for the next of these signals and returns its number.
    pub async fn next(&mut self) -> u8 {
        poll_fn(|cx| {
            let mut arrived = self.0.iter_mut().filter_map(|(number, signal)| {
                // A signal that is not ready registers the waker, so none is skipped while all are pending.
                signal.poll_recv(cx).is_ready().then_some(*number)
            });
            arrived.next().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
