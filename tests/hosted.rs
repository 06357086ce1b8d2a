//! A program that drives a Session by lines.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::shell::Shell;

/// The longest wait for a line.
const PATIENCE: Duration = Duration::from_secs(60);

/// pixir with a host at its pipes.
pub(crate) struct Hosted {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    pub(crate) seen: Vec<Value>,
    /// Where to look for the next event: behind the last one that was waited for.
    after: usize,
}

impl Hosted {
    pub(crate) fn start(shell: &Shell, script: &Value, args: &[&str]) -> Hosted {
        let path = shell.aside("script.json", &script.to_string());
        let provider = format!("script:{}", path.display());
        let all: Vec<&str> = args.iter().copied().chain(["--provider", &provider]).collect();
        Hosted::on(shell, &all)
    }

    /// With the Provider that the arguments name.
    pub(crate) fn on(shell: &Shell, args: &[&str]) -> Hosted {
        let all = args.iter().copied().chain(["--headless", "--input", "jsonl"]);
        let mut child = shell.command(all).stdin(Stdio::piped()).spawn().expect("it starts");
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().expect("stdout"));
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("not JSON ({e}): {line}"));
                if send.send(value).is_err() {
                    return;
                }
            }
        });
        Hosted { child, stdin, lines, seen: Vec::new(), after: 0 }
    }

    pub(crate) fn raw(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).expect("write");
    }

    /// Sends an Input and returns its answer.
    pub(crate) fn ask(&mut self, id: &str, mut input: Value) -> Value {
        input["id"] = json!(id);
        self.raw(&input.to_string());
        let at = self.until(0, |line| line["type"] == "response" && line["id"] == id);
        self.seen[at].clone()
    }

    /// The position of the first line that fits. An answer and the events around it come in any order.
    pub(crate) fn until(&mut self, from: usize, fits: impl Fn(&Value) -> bool) -> usize {
        let mut at = from;
        loop {
            match self.seen.get(at) {
                Some(line) if fits(line) => return at,
                Some(_) => at += 1,
                None => match self.lines.recv_timeout(PATIENCE) {
                    Ok(line) => self.seen.push(line),
                    Err(e) => panic!("{e}; so far: {:#?}", self.seen),
                },
            }
        }
    }

    pub(crate) fn event(&mut self, kind: &str) -> Value {
        let at = self.until(self.after, |line| line["type"] == kind);
        self.after = at + 1;
        self.seen[at].clone()
    }

    /// Closes stdin and returns the result line and the exit code.
    pub(crate) fn end(mut self) -> (Value, i32) {
        drop(self.stdin.take());
        let result = self.event("result");
        let code = self.child.wait().expect("it ends").code().unwrap_or(-1);
        assert!(self.lines.recv_timeout(PATIENCE).is_err(), "nothing follows the result");
        (result, code)
    }
}
