//! Appends to an open Log without blocking the runtime: a thread of the blocking pool waits for the disk.

use std::path::Path;
use std::sync::Arc;

use super::{Log, Position};
use protocol::error::{Code, Error, Result};
use protocol::event::{Entry, Fact};

/// What must be true before an append returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The line is in the file; a crash of the process does not lose it.
    Written,
    /// The line is on the disk; a power cut does not lose it.
    Synced,
}

/// The Log of a running Session. It has one owner, so appends happen in the order in which they are awaited.
#[derive(Debug)]
pub struct LogWriter {
    /// `None` while a blocking thread has the Log, and after that thread has panicked.
    log: Option<Log>,
}

impl LogWriter {
    pub fn new(log: Log) -> LogWriter {
        LogWriter { log: Some(log) }
    }

    /// Records a Fact. If its sync fails, the Entry is taken back and no watcher receives it.
    ///
    /// # Errors
    /// As [`Log::append`] and [`Log::sync`].
    pub async fn append(&mut self, turn: Option<u32>, fact: Fact, durability: Durability) -> Result<Arc<Entry>> {
        let mut log = self.log.take().ok_or_else(lost)?;
        // A write into the page cache takes microseconds, less than a switch to another thread. A doubtful Log is the
        // exception: it first rewrites its end and syncs it.
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
        let (log, appended) = task::spawn_blocking(work).await.map_err(|_| lost())?;
        self.log = Some(log);
        appended
    }

    /// The end of the acknowledged lines.
    pub fn position(&self) -> Option<Position> {
        self.log.as_ref().map(Log::position)
    }

    /// The path of the file.
    pub fn path(&self) -> Option<&Path> {
        self.log.as_ref().map(Log::path)
    }
}

fn lost() -> Error {
    let message = "the writer of the session log stopped because of a bug in pixir";
    Error::new(Code::LogWriteFailed, message, "open the session again; nothing that was recorded is lost")
}
