//! An editor that talks to `pixir acp` over its pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::shell::Shell;

/// The longest wait for a line.
const PATIENCE: Duration = Duration::from_secs(60);

/// pixir with an editor at its pipes.
pub(crate) struct Editor {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Every line that pixir wrote, in order.
    pub(crate) seen: Vec<Value>,
    /// Every line as it was written, both ways: `>` is the editor's.
    pub(crate) transcript: Vec<String>,
    next: i64,
}

/// What an editor can show that shows everything.
pub(crate) fn able() -> Value {
    json!({
        "session": { "notices": {}, "compaction": {} }, "elicitation": { "form": {} }, "auth": { "terminal": true },
    })
}

impl Editor {
    /// With a scripted model.
    pub(crate) fn start(shell: &Shell, script: &Value, args: &[&str]) -> Editor {
        let path = shell.aside("script.json", &script.to_string());
        let provider = format!("script:{}", path.display());
        let all: Vec<&str> = args.iter().copied().chain(["--provider", &provider]).collect();
        Editor::on(shell, &all)
    }

    /// With the Provider that the arguments name; nothing is sent yet.
    pub(crate) fn on(shell: &Shell, args: &[&str]) -> Editor {
        let all = std::iter::once("acp").chain(args.iter().copied());
        let mut child = shell.command(all).stdin(Stdio::piped()).spawn().expect("it starts");
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().expect("stdout"));
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Editor { child, stdin, lines, seen: Vec::new(), transcript: Vec::new(), next: 0 }
    }

    pub(crate) fn raw(&mut self, line: &[u8]) {
        self.transcript.push(format!("> {}", String::from_utf8_lossy(line)));
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(line).and_then(|()| stdin.write_all(b"\n")).expect("write");
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.raw(message.to_string().as_bytes());
    }

    /// Sends a request and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }));
        self.next
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request and returns its response.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.response(id)
    }

    /// Waits for the response to a request.
    pub(crate) fn response(&mut self, id: i64) -> Value {
        let at = self.until(0, |line| line["id"] == id && line.get("method").is_none());
        self.seen[at].clone()
    }

    /// The position of the first line from here on that fits.
    pub(crate) fn until(&mut self, from: usize, fits: impl Fn(&Value) -> bool) -> usize {
        let mut at = from;
        loop {
            match self.seen.get(at) {
                Some(line) if fits(line) => return at,
                Some(_) => at += 1,
                None => {
                    if !self.read(PATIENCE) {
                        panic!("nothing more came; so far: {:#?}", self.seen)
                    }
                }
            }
        }
    }

    /// Reads one line. False if none came.
    fn read(&mut self, within: Duration) -> bool {
        match self.lines.recv_timeout(within) {
            Ok(line) => {
                self.transcript.push(format!("< {line}"));
                self.seen.push(serde_json::from_str(&line).unwrap_or_else(|e| panic!("not JSON ({e}): {line}")));
                true
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => false,
        }
    }

    /// The next request of pixir from here on, with its position.
    pub(crate) fn asked(&mut self, from: usize, method: &str) -> (usize, Value) {
        let at = self.until(from, |line| line["method"] == method && line.get("id").is_some());
        (at, self.seen[at].clone())
    }

    /// Answers a request of pixir.
    pub(crate) fn answer(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    /// Chooses an option of a permission.
    pub(crate) fn choose(&mut self, request: &Value, option: &str) {
        self.answer(request, json!({ "outcome": { "outcome": "selected", "optionId": option } }));
    }

    pub(crate) fn initialize(&mut self, capabilities: Value) -> Value {
        self.ask("initialize", json!({ "protocolVersion": 1, "clientCapabilities": capabilities }))["result"].clone()
    }

    /// Starts a Session in this folder and returns its id.
    pub(crate) fn session(&mut self, cwd: &Path) -> String {
        let answer = self.ask("session/new", json!({ "cwd": cwd, "mcpServers": [] }));
        answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {answer}")).to_owned()
    }

    /// Sends a prompt of one text and returns the id of the request.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> i64 {
        self.request("session/prompt", json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] }))
    }

    /// Sends a prompt, waits for its end and returns the reason.
    pub(crate) fn say(&mut self, session: &str, text: &str) -> String {
        let id = self.prompt(session, text);
        let answer = self.response(id);
        answer["result"]["stopReason"].as_str().map_or_else(|| answer["error"].to_string(), str::to_owned)
    }

    /// The updates of these kinds so far.
    pub(crate) fn updates(&self, kind: &str) -> Vec<Value> {
        let all = self.seen.iter().filter(|line| line["method"] == "session/update");
        all.map(|line| line["params"]["update"].clone()).filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// The text of all chunks of this kind.
    pub(crate) fn text(&self, kind: &str) -> String {
        self.updates(kind).iter().map(|it| it["content"]["text"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Closes stdin; the exit code, after every line was read.
    pub(crate) fn end(&mut self) -> i32 {
        drop(self.stdin.take());
        let code = self.child.wait().expect("it ends").code().unwrap_or(-1);
        while self.read(PATIENCE) {}
        code
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
