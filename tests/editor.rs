//! An editor that talks to `pixir acp` over its pipes.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::lines::{Lines, scripted};
use crate::shell::Shell;

/// pixir with an editor at its pipes.
pub(crate) struct Editor {
    lines: Lines,
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
        let all = scripted(shell, script, args);
        Editor::on(shell, &all.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// With the Provider that the arguments name; nothing is sent yet.
    pub(crate) fn on(shell: &Shell, args: &[&str]) -> Editor {
        Editor { lines: Lines::start(shell, std::iter::once("acp").chain(args.iter().copied())), next: 0 }
    }

    /// pixir as this command starts it.
    pub(crate) fn of(command: Command) -> Editor {
        Editor { lines: Lines::of(command), next: 0 }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.raw(message.to_string());
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
}

impl Deref for Editor {
    type Target = Lines;

    fn deref(&self) -> &Lines {
        &self.lines
    }
}

impl DerefMut for Editor {
    fn deref_mut(&mut self) -> &mut Lines {
        &mut self.lines
    }
}
