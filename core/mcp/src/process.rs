//! The process of a server: started with its three streams, watched, and stopped with everything that it started.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use memchr::memchr;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};

use super::lines;
use super::pipes::{Pipes, Printed};
use super::secrets::Secrets;
use process::{Group, Stopping};
use text::clean::clean;
use text::human::on_one_line;

/// How long a server may take to end after its stdin is closed.
const GRACE: Duration = Duration::from_millis(700);
/// How long what a server printed may take to be read after its end. What it started may still hold its stdout.
const LAST_WORDS: Duration = Duration::from_millis(50);
/// How long a server that has closed its stdout may take to end before pixir closes its stdin.
const LAST_MOMENT: Duration = Duration::from_millis(500);
/// How much of what a server prints on stderr is kept.
const MAX_STDERR: usize = 64 << 10;
/// The longest line of stderr, bytes.
const MAX_LINE: usize = 8 << 10;

/// The process of a server.
pub(super) struct Process {
    ended: watch::Receiver<Option<ExitStatus>>,
    /// Ends when all that it printed on stdout was read.
    reading: watch::Receiver<()>,
    group: Mutex<Option<Group>>,
    /// Lines on stdout that were no messages.
    dropped: Arc<AtomicU64>,
}

impl Process {
    /// Starts a server.
    ///
    /// # Errors
    /// The system's error when the command cannot be started.
    pub(super) fn start(
        mut command: Command,
        name: &str,
        stderr: &Arc<Stderr>,
        secrets: &Secrets,
        stopping: &Stopping,
    ) -> io::Result<(Process, Pipes)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, group) = Group::start(command, stopping)?;
        let piped = "all three are piped";
        let (stdin, stdout) = (child.stdin.take().expect(piped), child.stdout.take().expect(piped));
        let printed = child.stderr.take().expect(piped);
        let (kept, secrets, name) = (Arc::clone(stderr), secrets.clone(), name.to_owned());
        task::spawn(async move { kept.follow(printed, &secrets, &name).await });
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&dropped);
        // Each of them may have 16 MB.
        let (to, messages) = mpsc::channel(1);
        task::spawn(async move {
            if let Err(e) = lines::pump(stdout, to, &counter).await {
                tracing::debug!("read from an MCP server: {e}");
            }
        });
        let (open, reading) = watch::channel(());
        let process = Process { ended: reap(child), reading, group: Mutex::new(Some(group)), dropped };
        Ok((process, Pipes { stdin, stdout: Printed { messages, reading: open } }))
    }

    /// Whether it runs, and can still say something.
    pub(super) fn is_alive(&self) -> bool {
        self.ended.borrow().is_none() && self.reading.has_changed().is_ok()
    }

    pub(super) fn dropped_lines(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Returns when the process has ended, or has closed its stdout. Then what it printed before has been read.
    pub(super) async fn gone(&self) {
        let (mut ended, mut reading) = (self.ended.clone(), self.reading.clone());
        let has_ended = tokio::select! {
            _ = reading.changed() => false,
            _ = ended.wait_for(Option::is_some) => true,
        };
        if has_ended {
            let _ = tokio::time::timeout(LAST_WORDS, reading.changed()).await;
        }
    }

    /// How it ended, if it does so within this time.
    pub(super) async fn ended_within(&self, limit: Duration) -> Option<ExitStatus> {
        let mut ended = self.ended.clone();
        let ended = tokio::time::timeout(limit, ended.wait_for(Option::is_some)).await;
        ended.ok().and_then(|it| it.ok().and_then(|it| *it))
    }

    /// Gives a process that says nothing any more the time to tell by its exit why.
    pub(super) async fn last_moment(&self) {
        self.ended_within(LAST_MOMENT).await;
    }

    /// Ends the process: its stdin is closed already, so a server that can end by itself does.
    pub(super) async fn stop(&self) {
        let by_itself = self.ended_within(GRACE).await.is_some();
        let group = self.group.lock().take();
        if let Some(group) = group {
            if by_itself {
                group.leader_ended();
            }
            group.stop().await;
        }
    }
}

/// Waits for the end of the process on a task of its own.
fn reap(mut child: Child) -> watch::Receiver<Option<ExitStatus>> {
    let (tell, ended) = watch::channel(None);
    task::spawn(async move {
        let status = child.wait().await.unwrap_or_default();
        let _ = tell.send(Some(status));
    });
    ended
}

/// The last lines that a server printed on stderr, without known secrets.
#[derive(Debug, Default)]
pub(super) struct Stderr(Mutex<Vec<u8>>);

impl Stderr {
    /// Keeps what this stream brings until its end. A secret is known only where its line is whole, so nothing is kept of a
    /// line before its end, or before it is longer than a line may be.
    async fn follow(&self, mut from: impl AsyncRead + Unpin, secrets: &Secrets, name: &str) {
        // A secret that begins within the longest line is whole within this.
        let most = MAX_LINE + secrets.longest();
        let keep = |line: &mut Vec<u8>| {
            let mut text = secrets.masked(&String::from_utf8_lossy(line));
            line.clear();
            if text.len() > MAX_LINE {
                text.truncate(text.floor_char_boundary(MAX_LINE));
                text.push('…');
            }
            tracing::info!("MCP server {name}: {}", text.trim_end());
            self.push(format!("{text}\n").as_bytes());
        };
        let (mut chunk, mut line) = (vec![0; 8 << 10], Vec::new());
        while let Ok(n) = from.read(&mut chunk).await {
            let mut rest = &chunk[..n];
            while let Some(at) = memchr(b'\n', rest) {
                add(&mut line, &rest[..at], most);
                rest = &rest[at + 1..];
                keep(&mut line);
            }
            add(&mut line, rest, most);
            if n == 0 {
                break;
            }
        }
        if !line.is_empty() {
            keep(&mut line);
        }
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock();
        kept.extend_from_slice(bytes);
        let over = kept.len().saturating_sub(MAX_STDERR);
        kept.drain(..over);
    }

    /// The whole text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }

    pub(super) fn last_line(&self) -> Option<String> {
        let text = self.text();
        text.lines().rev().map(plain_line).find(|it| !it.trim().is_empty())
    }
}

/// Adds to a line of which at most so many bytes are kept.
fn add(line: &mut Vec<u8>, bytes: &[u8], most: usize) {
    let room = most.saturating_sub(line.len());
    line.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

/// Words of a server as one line that cannot control the terminal.
pub(super) fn plain_line(text: &str) -> String {
    let mut line = on_one_line(clean(text).trim());
    if line.len() > 300 {
        line.truncate(line.floor_char_boundary(300));
        line.push('…');
    }
    line
}

pub(super) fn exit_words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with {code}"),
        (None, Some(signal)) => format!("signal {signal} ended it"),
        (None, None) => "it ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: one that masks each read by itself; one that shows the start of a secret at the end of a line that is
    /// too long.
    #[tokio::test]
    async fn a_secret_on_stderr_is_masked_wherever_it_is_torn() {
        let secrets = Secrets::hiding("TOKEN", "canary-0123456789\nsecond-line-of-it");
        let (mut to, from) = tokio::io::duplex(16);
        let stderr = Arc::new(Stderr::default());
        let kept = Arc::clone(&stderr);
        let following = task::spawn(async move { kept.follow(from, &secrets, "test").await });
        let long = format!("{}canary-0123456789 and more\n", "x".repeat(MAX_LINE - 4));
        for part in
            ["bad token canary-01", "23456789 of me\nsecond-line", "-of-it\n", &long, "no end canary-0123456789"]
        {
            tokio::io::AsyncWriteExt::write_all(&mut to, part.as_bytes()).await.expect("it is read");
        }
        drop(to);
        following.await.expect("it ends");
        let text = stderr.text();
        assert!(text.starts_with("bad token [secret TOKEN] of me\n[secret TOKEN]\nxxx"), "{}", &text[..80]);
        assert!(text.ends_with("xxx[sec…\nno end [secret TOKEN]\n"), "{}", &text[text.len() - 80..]);
        assert!(!text.contains("canary"), "{}", &text[text.len() - 80..]);
    }
}
