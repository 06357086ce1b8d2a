//! What an error or a result names as the next thing to do: each command of pixir in it exists, with the flags that it needs.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::shell::{Shell, ran};

/// The command in a sentence: without the comment or the half-sentence behind it, and what follows `--`.
fn command(action: &str) -> Option<&str> {
    let command = action.strip_prefix("pixir ")?;
    let ends = [" # ", "  #", ", ", "; ", " -- "].iter().filter_map(|mark| command.find(mark));
    Some(command[..ends.min().unwrap_or(command.len())].trim())
}

/// Broken build: a remedy names a command that was renamed, or a flag that it does not have.
#[test]
fn each_command_that_an_error_names_exists() {
    let shell = Shell::new(&[(".pixir/skills/lint/SKILL.md", "---\nname: lint\ndescription: Lints\n---\nLint.\n")]);
    let nowhere = "20260101T000000-abcdef";
    let failing: [&[&str]; 22] = [
        &["--headless", "hi"],
        &["--headless", "hi", "--model", "openai/gpt-5"],
        &["--headless", "hi", "--provider", "opnai"],
        &["resume", nowhere],
        &["fork", nowhere, "1"],
        &["tree", nowhere],
        &["undo", "last"],
        &["redo", "last"],
        &["compact", nowhere],
        &["inspect", nowhere],
        &["diagnose", nowhere],
        &["replay", nowhere],
        &["sessions", "show", nowhere],
        &["sessions", "repair", nowhere],
        &["sessions", "import", "nothing.json"],
        &["agents", "adopt", nowhere],
        &["workflow", "run", "none"],
        &["workflow", "resume", nowhere],
        &["permissions", "add", "bash(git push *)"],
        &["permissions", "revoke", "r000000"],
        &["mcp", "test", "none"],
        &["skills", "show", "none"],
    ];
    let mut named: BTreeSet<String> = BTreeSet::new();
    for args in failing {
        let ran = shell.run(args.iter().copied().chain(["--json"]));
        assert_ne!(ran.code, 0, "{args:?} fails");
        let error = ran.error();
        let actions = error["error"]["details"]["next_actions"].as_array();
        let actions = actions.unwrap_or_else(|| panic!("{args:?}: {error}"));
        named.extend(actions.iter().filter_map(Value::as_str).filter(|it| it.starts_with("pixir ")).map(str::to_owned));
    }
    let status = shell.run(["status", "--json"]).document();
    let next = status["next_actions"].as_array().expect("a list").iter().filter_map(Value::as_str);
    named.extend(next.map(str::to_owned));
    assert!(named.len() >= 8, "{named:?}");
    for action in &named {
        let command = command(action).unwrap_or_else(|| panic!("no command: {action}"));
        let mut given = Command::new("sh");
        given.args(["-c", &format!("exec \"$0\" {command} --help"), env!("CARGO_BIN_EXE_pixir")]);
        given.env("HOME", shell.home()).env("PIXIR_HOME", shell.home()).current_dir(shell.workspace());
        let ran = ran(given.output().expect("it runs"));
        let first = command.split(' ').next().unwrap_or_default();
        let is_there = ran.stdout.contains(&format!("Usage: pixir {first}"));
        assert!(ran.code == 0 && is_there, "`{action}` is no command: {}{}", ran.stderr, ran.stdout);
    }
}
