//! pixir with a program at its pipes, which writes and reads lines of JSON.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::shell::Shell;
use crate::wait;

/// The longest wait for a line.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long pixir is at rest before no line is expected any more.
const REST: Duration = Duration::from_secs(8);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// A running pixir, and every line that it has written.
pub(crate) struct Lines {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Every line that pixir wrote, in order.
    pub(crate) seen: Vec<Value>,
    /// Every line of both sides as it was: `> ` begins those that pixir read, `< ` those that it wrote.
    pub(crate) transcript: Vec<String>,
}

/// The arguments, and a scripted model.
pub(crate) fn scripted(shell: &Shell, script: &Value, args: &[&str]) -> Vec<String> {
    let path = shell.aside("script.json", &script.to_string());
    let model = ["--provider".to_owned(), format!("script:{}", path.display())];
    args.iter().map(|it| (*it).to_owned()).chain(model).collect()
}

impl Lines {
    pub(crate) fn start<'a>(shell: &Shell, args: impl Iterator<Item = &'a str>) -> Lines {
        Lines::of(shell.command(args))
    }

    /// What this command starts.
    pub(crate) fn of(mut command: Command) -> Lines {
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().expect("stdout"));
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Lines { child, stdin, lines, seen: Vec::new(), transcript: Vec::new() }
    }

    pub(crate) fn raw(&mut self, line: impl AsRef<[u8]>) {
        self.transcript.push(format!("> {}", String::from_utf8_lossy(line.as_ref())));
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(line.as_ref()).and_then(|()| stdin.write_all(b"\n")).expect("write");
    }

    /// The position of the first line from here on that fits. An answer and the events around it come in any order.
    pub(crate) fn until(&mut self, from: usize, fits: impl Fn(&Value) -> bool) -> usize {
        let mut at = from;
        loop {
            match self.seen.get(at) {
                Some(line) if fits(line) => return at,
                Some(_) => at += 1,
                None => {
                    if !self.read() {
                        panic!("nothing more came; so far: {:#?}", self.seen)
                    }
                }
            }
        }
    }

    /// Reads one line. False if none came.
    fn read(&mut self) -> bool {
        let (began, mut rested) = (Instant::now(), Instant::now());
        loop {
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => {
                    self.transcript.push(format!("< {line}"));
                    self.seen.push(serde_json::from_str(&line).unwrap_or_else(|e| panic!("not JSON ({e}): {line}")));
                    return true;
                }
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) if began.elapsed() >= PATIENCE => return false,
                Err(RecvTimeoutError::Timeout) if is_at_rest(self.child.id()) => {
                    // A lost line fails its story in seconds, and a slow machine does not.
                    if rested.elapsed() >= REST {
                        return false;
                    }
                }
                Err(RecvTimeoutError::Timeout) => rested = Instant::now(),
            }
        }
    }

    /// Closes stdin; the exit code, after every line was read.
    pub(crate) fn close(&mut self) -> i32 {
        drop(self.stdin.take());
        // One that waits for ever fails its story; waiting with it would name none.
        let ended = wait::found(PATIENCE, || self.child.try_wait().expect("it runs"));
        let code = ended.unwrap_or_else(|| panic!("pixir did not end: {:#?}", self.seen)).code().unwrap_or(-1);
        while self.read() {}
        code
    }
}

/// Whether every thread of this process waits for something, and no program that it started runs.
fn is_at_rest(process: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let waits = |stat: &str| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'));
    tasks.map(|task| task.path()).all(|task| {
        let has_children = fs::read_to_string(task.join("children")).is_ok_and(|it| !it.trim().is_empty());
        !has_children && fs::read_to_string(task.join("stat")).is_ok_and(|stat| waits(&stat))
    })
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
