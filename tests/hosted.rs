//! A program that drives a Session by lines.

use std::ops::{Deref, DerefMut};
use std::process::Command;

use serde_json::{Value, json};

use crate::lines::{Lines, scripted};
use crate::shell::Shell;

/// pixir with a host at its pipes.
pub(crate) struct Hosted {
    lines: Lines,
    /// Where to look for the next event: behind the last one that was waited for.
    after: usize,
}

impl Hosted {
    pub(crate) fn start(shell: &Shell, script: &Value, args: &[&str]) -> Hosted {
        let all = scripted(shell, script, args);
        Hosted::on(shell, &all.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// With the Provider that the arguments name.
    pub(crate) fn on(shell: &Shell, args: &[&str]) -> Hosted {
        Hosted::of(shell.command(args.iter().copied().chain(Hosted::FLAGS)))
    }

    /// What makes pixir take its Inputs as lines.
    pub(crate) const FLAGS: [&str; 3] = ["--headless", "--input", "jsonl"];

    /// What this command starts.
    pub(crate) fn of(command: Command) -> Hosted {
        Hosted { lines: Lines::of(command), after: 0 }
    }

    /// Sends an Input and returns its answer.
    pub(crate) fn ask(&mut self, id: &str, mut input: Value) -> Value {
        input["id"] = json!(id);
        self.raw(input.to_string());
        let at = self.until(0, |line| line["type"] == "response" && line["id"] == id);
        self.seen[at].clone()
    }

    pub(crate) fn event(&mut self, kind: &str) -> Value {
        let at = self.lines.until(self.after, |line| line["type"] == kind);
        self.after = at + 1;
        self.seen[at].clone()
    }

    /// Closes stdin and returns the result line and the exit code.
    pub(crate) fn end(mut self) -> (Value, i32) {
        let code = self.close();
        let result = self.event("result");
        assert_eq!(self.after, self.seen.len(), "nothing follows the result");
        (result, code)
    }
}

impl Deref for Hosted {
    type Target = Lines;

    fn deref(&self) -> &Lines {
        &self.lines
    }
}

impl DerefMut for Hosted {
    fn deref_mut(&mut self) -> &mut Lines {
        &mut self.lines
    }
}
