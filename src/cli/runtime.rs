//! The async runtime of a command, and the signals that stop it.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Runs a future to its end. Blocking tasks that still run then are abandoned.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        // Idle blocking threads end early: their timeout would wake an idle screen later.
        .thread_keep_alive(Duration::from_millis(300))
        .enable_all()
        .build()
        .expect("the system has resources for two threads");
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    outcome
}

/// SIGINT, SIGTERM and SIGHUP. From construction on they are received and no longer kill the process.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Signals {
        let listen = |kind| signal(kind).expect("these signals can be caught");
        Signals {
            interrupt: listen(SignalKind::interrupt()),
            terminate: listen(SignalKind::terminate()),
            hangup: listen(SignalKind::hangup()),
        }
    }

    /// Waits for the next signal and returns its exit code.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => 130,
            _ = self.terminate.recv() => 143,
            _ = self.hangup.recv() => 129,
        }
    }
}
