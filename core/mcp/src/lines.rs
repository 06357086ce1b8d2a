//! What a server prints on stdout, line by line: messages pass, everything else is dropped and counted, in bounded memory.

use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memchr;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;

use super::pages::shortened;

/// The longest message, bytes.
pub(super) const MAX_MESSAGE: usize = 16 << 20;
/// How much of a longer one is kept, from each end, to find the call that it answers.
const ENDS: usize = 1 << 10;
/// The code of the error that stands for a message that is too long.
pub(super) const TOO_LONG: i64 = -32_099;

/// Passes the messages of a server on, until it closes its stdout or nothing takes them any more.
pub(super) async fn pump(
    mut from: impl AsyncRead + Unpin,
    to: mpsc::Sender<Vec<u8>>,
    dropped: &AtomicU64,
) -> std::io::Result<()> {
    let mut chunk = vec![0; 64 << 10];
    let mut line = Line::default();
    loop {
        let n = from.read(&mut chunk).await?;
        let mut rest = &chunk[..n];
        while let Some(at) = memchr(b'\n', rest) {
            line.add(&rest[..at]);
            rest = &rest[at + 1..];
            pass(&mut line, &to, dropped).await?;
        }
        line.add(rest);
        if n == 0 {
            // The last line may lack its end.
            return pass(&mut line, &to, dropped).await;
        }
    }
}

async fn pass(line: &mut Line, to: &mpsc::Sender<Vec<u8>>, dropped: &AtomicU64) -> std::io::Result<()> {
    let whole = std::mem::take(line);
    let message = match whole.tail {
        None if whole.head.trim_ascii().is_empty() => return Ok(()),
        None if is_message(&whole.head) => Some(shortened(whole.head)),
        None => None,
        Some(tail) => answer_to(&whole.head, &tail),
    };
    let Some(message) = message else {
        dropped.fetch_add(1, Ordering::Relaxed);
        return Ok(());
    };
    to.send(message).await.map_err(|_| std::io::ErrorKind::BrokenPipe.into())
}

/// A line so far.
#[derive(Default)]
struct Line {
    /// All of it; of one that is too long, its start.
    head: Vec<u8>,
    /// The end of one that is too long.
    tail: Option<Vec<u8>>,
}

impl Line {
    fn add(&mut self, bytes: &[u8]) {
        match &mut self.tail {
            None if self.head.len() + bytes.len() <= MAX_MESSAGE => self.head.extend_from_slice(bytes),
            None => {
                self.head.truncate(ENDS);
                self.head.shrink_to_fit();
                self.tail = Some(bytes[bytes.len().saturating_sub(ENDS)..].to_vec());
            }
            Some(tail) => {
                tail.extend_from_slice(&bytes[bytes.len().saturating_sub(ENDS)..]);
                tail.drain(..tail.len().saturating_sub(ENDS));
            }
        }
    }
}

fn is_message(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<&RawValue>(line).is_ok()
}

/// The error that stands for a message that is too long; `None` where it answers no call.
fn answer_to(head: &[u8], tail: &[u8]) -> Option<Vec<u8>> {
    let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
    // What the result holds is the server's text.
    let before = head.split("\"result\"").next().unwrap_or_default();
    let id = before.rfind("\"id\"").and_then(|at| id_at(&before[at..]));
    let id = id.or_else(|| tail.rfind("\"id\"").and_then(|at| id_at(&tail[at..])))?;
    let message = format!("the message has more than {} MB", MAX_MESSAGE >> 20);
    let error = serde_json::json!({ "code": TOO_LONG, "message": message });
    Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}").into_bytes())
}

/// The value of `"id": …`, as JSON.
fn id_at(text: &str) -> Option<String> {
    let value = text.strip_prefix("\"id\"")?.trim_start().strip_prefix(':')?.trim_start();
    let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
    if !digits.is_empty() {
        return Some(digits);
    }
    let name = value.strip_prefix('"')?.split_once('"')?.0;
    (!name.contains('\\')).then(|| format!("\"{name}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn passed(bytes: &[u8]) -> (Vec<String>, u64) {
        let (to, mut messages) = mpsc::channel(8);
        let dropped = AtomicU64::new(0);
        pump(bytes, to, &dropped).await.expect("memory does not fail");
        let mut all = Vec::new();
        while let Some(message) = messages.recv().await {
            all.push(String::from_utf8(message).expect("text"));
        }
        (all, dropped.load(Ordering::Relaxed))
    }

    /// Broken builds: garbage reaches the reader of messages; a last line without its end is lost.
    #[tokio::test]
    async fn only_messages_pass_and_the_rest_is_counted() {
        let text = "npm warn deprecated\n{\"id\":1}\n\n{broken\n[1]\n\u{1b}[2J{\"x\":1}\n{\"id\":2}";
        assert_eq!(passed(text.as_bytes()).await, (vec!["{\"id\":1}".to_owned(), "{\"id\":2}".to_owned()], 4));
    }

    /// Broken builds: one that takes an `id` from inside the result; one that drops the message, so that its call only times
    /// out.
    #[tokio::test]
    async fn a_message_that_is_too_long_fails_its_own_call() {
        let long = "x".repeat(MAX_MESSAGE);
        for text in [
            format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"id\":9,\"text\":\"{long}\"}}}}\n{{\"id\":8}}\n"),
            format!("{{\"result\":{{\"id\":9,\"text\":\"{long}\"}},\"jsonrpc\":\"2.0\",\"id\": 7}}\n{{\"id\":8}}\n"),
        ] {
            let (lines, dropped) = passed(text.as_bytes()).await;
            assert_eq!((lines.len(), dropped), (2, 0), "{lines:?}");
            let error: serde_json::Value = serde_json::from_str(&lines[0]).expect("JSON");
            assert_eq!((&error["id"], &error["error"]["code"]), (&7.into(), &TOO_LONG.into()));
            assert_eq!(lines[1], "{\"id\":8}");
        }
        let (lines, dropped) = passed(long.repeat(2).as_bytes()).await;
        assert_eq!((lines.len(), dropped), (0, 1));
    }
}
