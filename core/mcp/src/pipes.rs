//! The pipes of a server's process: whole lines to its stdin, and what it prints on its stdout.

use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::client::Fault;

/// How long the last lines to a server may take.
const LAST_LINES: Duration = Duration::from_millis(200);

/// pixir's ends of the pipes.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: Printed,
}

/// The messages that a server prints.
pub(super) struct Printed {
    pub(super) messages: mpsc::Receiver<Vec<u8>>,
    /// Dropped when all of them were read.
    pub(super) reading: watch::Sender<()>,
}

/// The one writer to a server. A line is written whole, even if its sender stops waiting.
pub(super) struct Writer {
    lines: Mutex<Option<mpsc::UnboundedSender<Line>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Line {
    text: String,
    /// Dropped where the line could not be written.
    written: oneshot::Sender<()>,
}

impl Writer {
    pub(super) fn start(mut stdin: ChildStdin) -> Writer {
        let (lines, mut waiting) = mpsc::unbounded_channel::<Line>();
        let task = task::spawn(async move {
            while let Some(line) = waiting.recv().await {
                if stdin.write_all(line.text.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
                    return;
                }
                let _ = line.written.send(());
            }
        });
        Writer { lines: Mutex::new(Some(lines)), task: Mutex::new(Some(task)) }
    }

    /// Returns when the message is written.
    pub(super) async fn send(&self, message: &Value) -> Result<(), Fault> {
        self.queue(message).await.map_err(|_| Fault::Closed)
    }

    /// Sends a message. Whether it was written is known later.
    pub(super) fn queue(&self, message: &Value) -> oneshot::Receiver<()> {
        let (written, is_written) = oneshot::channel();
        if let Some(lines) = &*self.lines.lock() {
            let _ = lines.send(Line { text: format!("{message}\n"), written });
        }
        is_written
    }

    /// Closes stdin, after the lines that wait if the server reads them.
    pub(super) async fn close(&self) {
        drop(self.lines.lock().take());
        let task = self.task.lock().take();
        if let Some(mut task) = task
            && tokio::time::timeout(LAST_LINES, &mut task).await.is_err()
        {
            task.abort();
        }
    }

    /// Closes stdin at once.
    pub(super) fn abort(&self) {
        drop(self.lines.lock().take());
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }
}
