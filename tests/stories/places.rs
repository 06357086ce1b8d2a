//! Unusual workspaces: with the kernel's file systems in them, with their repository elsewhere, under several names, and gone.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::shell::{Ran, Shell, ran, run_to_its_end};

mod git; // repositories whose `.git` is not a plain folder here
mod gone; // a workspace that is deleted, moved, replaced or unmounted
mod kernel; // file systems in which the kernel shows its state
mod named; // the whole machine, names that are no UTF-8, symlinks

/// A call of a tool with its arguments.
type Called<'a> = (&'a str, Value);

fn bash(command: &str) -> Called<'static> {
    ("bash", json!({ "command": command }))
}

/// A file with a script in which the model makes these calls one after the other.
fn script(shell: &Shell, calls: &[Called<'_>]) -> String {
    let call = |(name, args): &Called<'_>| json!({ "calls": [{ "name": name, "args": args }] });
    let steps: Vec<Value> = calls.iter().map(call).chain([json!({ "text": "It is done." })]).collect();
    let file = shell.aside("script.json", &json!({ "steps": steps }).to_string());
    format!("script:{}", file.display())
}

/// A Turn in a folder, in which everything may be changed, with the results of its calls.
fn turn(shell: &Shell, folder: &Path, calls: &[Called<'_>]) -> Turn {
    let script = script(shell, calls);
    let args = ["--headless", "--mode", "auto", "--format", "jsonl", "--provider", &script, "go"];
    Turn::of(shell.command(args).current_dir(folder))
}

/// What came of a Turn.
#[derive(Debug)]
struct Turn {
    ran: Ran,
    /// The output of each call.
    outputs: Vec<String>,
    /// The paths that each call changed.
    changes: Vec<Vec<String>>,
    /// The document at the end.
    result: Value,
}

impl Turn {
    fn of(command: &mut Command) -> Turn {
        Turn::from(ran(run_to_its_end(command)))
    }

    fn from(ran: Ran) -> Turn {
        let lines = ran.lines();
        let results: Vec<&Value> = lines.iter().filter(|it| it["type"] == "tool_result").collect();
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let outputs = results.iter().map(|it| text(&it["data"]["output"])).collect();
        let paths =
            |it: &&Value| it["data"]["changes"].as_array().into_iter().flatten().map(|it| text(&it["path"])).collect();
        let changes = results.iter().map(paths).collect();
        let result = lines.iter().find(|it| it["type"] == "result").cloned().unwrap_or_default();
        Turn { outputs, changes, result, ran }
    }

    /// Each call did its work, and the Turn ended well.
    fn assert_worked(&self) {
        for output in &self.outputs {
            assert!(output.contains("[exit:0"), "{output}\n{self:#?}");
        }
        assert_eq!(self.ran.code, 0, "{self:#?}");
    }
}

/// Runs git, and returns what it prints.
fn git(folder: &Path, args: &[&str]) -> String {
    let set = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.com",
        "-c",
        "protocol.file.allow=always",
        "-c",
        "init.defaultBranch=main",
    ];
    let mut command = Command::new("git");
    command.args(set).args(args).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().expect("git starts");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
