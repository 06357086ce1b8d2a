//! Appends to an open Log that do not block the runtime: a thread of the blocking pool waits for the disk.

use std::path::Path;
use std::sync::Arc;

use super::{Log, Position};
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{Entry, Fact};

/// What an append waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The line is in the file; a crash of the process does not lose it.
    Written,
    /// The line is on the disk; a power cut does not lose it.
    Synced,
}

/// The Log of a running Session. It has one owner, so appends happen in the order in which they are awaited.
#[derive(Debug)]
pub(crate) struct LogWriter {
    /// The Log itself goes to the thread that waits for the disk, and comes back with the outcome.
    /// It is missing only meanwhile, and after that thread has panicked.
    log: Option<Log>,
}

impl LogWriter {
    pub(crate) fn new(log: Log) -> LogWriter {
        LogWriter { log: Some(log) }
    }

    /// Records a fact. When its sync fails it is taken back, so that no watcher ever hears of it.
    ///
    /// # Errors
    /// As [`Log::append`] and [`Log::sync`].
    pub(crate) async fn append(&mut self, turn: Option<u32>, fact: Fact, durability: Durability) -> Result<Arc<Entry>> {
        let mut log = self.log.take().ok_or_else(lost)?;
        // A write into the page cache takes microseconds, less than a hop to another thread.
        // A doubtful Log rewrites its end and syncs it first, whatever is asked for.
        if durability == Durability::Written && !log.is_doubtful() {
            let appended = log.append(turn, fact);
            self.log = Some(log);
            return appended;
        }
        let work = move || {
            let appended = log.append(turn, fact).and_then(|entry| match durability {
                Durability::Written => Ok(entry),
                Durability::Synced => log.sync().map(|()| entry).inspect_err(|_| log.take_back()),
            });
            (log, appended)
        };
        let (log, appended) = tokio::task::spawn_blocking(work).await.map_err(|_| lost())?;
        self.log = Some(log);
        appended
    }

    /// Where the acknowledged lines end.
    pub(crate) fn position(&self) -> Option<Position> {
        self.log.as_ref().map(Log::position)
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.log.as_ref().map(Log::path)
    }
}

fn lost() -> Error {
    let message = "the writer of the session log broke off because of a fault in pixir";
    Error::new(Code::LogWriteFailed, message, "open the session again: nothing that was recorded is lost")
}
