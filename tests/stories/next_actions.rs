//! What an error or a result names as the next thing to do: each entry is a command that can be typed.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use super::ways_on::{strings, typed};
use crate::shell::{Ran, Shell, entries, ran};
use crate::wait;

/// The command's help page, which the parser prints if it accepts all words before.
fn its_help(shell: &Shell, command: &str) -> Ran {
    let words = command.strip_prefix("pixir").expect("a command").replace(" N", " 1");
    let (flags, rest) = words.split_once(" -- ").unwrap_or((&words, ""));
    let mut given = Command::new("sh");
    let rest = if rest.is_empty() { String::new() } else { format!("-- {rest}") };
    given.args(["-c", &format!("exec \"$0\" {flags} --help {rest}"), env!("CARGO_BIN_EXE_pixir")]);
    given.env("HOME", shell.home()).env("PIXIR_HOME", shell.home()).current_dir(shell.workspace());
    ran(given.output().expect("it runs"))
}

/// The commands below one, with all their words.
fn paths(command: &Value, path: &str, all: &mut Vec<String>) {
    for below in command["commands"].as_array().into_iter().flatten() {
        let path = format!("{path} {}", below["name"].as_str().expect("a name"));
        paths(below, &path, all);
        all.push(path);
    }
}

/// Broken builds: a remedy names a command that was renamed, or a flag that it does not have; an entry is a sentence or a
/// flag alone; an error has no entry; a comment stands behind a command; a remedy names a command in words alone; a remedy begins
/// with `pixir` and goes on in prose; a command that is run as it is printed has wrong arguments.
#[test]
fn each_next_action_is_a_command_that_the_parser_takes() {
    let shell = Shell::new(&[(".pixir/skills/lint/SKILL.md", "---\nname: lint\ndescription: Lints\n---\nLint.\n")]);
    let nowhere = "20260101T000000-abcdef";
    let step = json!({ "steps": [{ "calls": [{ "name": "write", "args": { "path": "a.txt", "content": "x" } }] }, { "text": "No." }] });
    let script = format!("script:{}", shell.aside("step.json", &step.to_string()).display());
    let failing: &[&[&str]] = &[
        &["-p", "hi"],
        &["-p", "hi", "--model", "openai/gpt-5"],
        &["-p", "hi", "--provider", "opnai"],
        &["-p", "hi", "--provider", "local"],
        &["-p", "hi", "--effort", "hihg"],
        &["-p", "hi", "--skill", "lnt"],
        &["-p", "hi", "--attach", "gone.txt"],
        &["-p", "hi", "--output-schema", "gone.json"],
        &["-p", "hi", "--workspace", "gone"],
        &["-p", "hi", "--config", "effrt=low"],
        &["-p", "hi", "--session-id", "x"],
        &["-p", "hi", "--theme", "dark"],
        &["-p", "-5 is wrong"],
        &["-p", "/undo x y"],
        &["-p", "/settings"],
        &["-p", "/nosuch x"],
        &["-p", "/undoo"],
        &["-p", "/context"],
        &["-p", "-p", "x"],
        &["-p", "x", "--write", "--mode", "ask"],
        &["-p", "x", "--oss"],
        &["-p", "x", "--fallback-model", "y"],
        &["-p", "x", "--mcp-config", "f"],
        &["-p", "change it", "--allow", "bash(touch *)", "--provider", &script],
        &["-p", "change it", "--agent", "plan", "--write", "--provider", &script],
        &["mcp", "add", "far", "http://127.0.0.1:1/mcp"],
        &["auth", "status"],
        &["sessions", "list", "--limit", "-1"],
        &["agents", "adopt", "last"],
        &["-p", "change it", "--provider", &script],
        &["-p", "change it", "--max-rounds", "1", "--write", "--provider", &script],
        &["hi"],
        &["-p"],
        &["fix", "the", "bug"],
        &["sesions", "list"],
        &["sessions"],
        &["sessions", "lst"],
        &["sessions", "list", "--limt", "3"],
        &["sessions", "list", "--limit", "x"],
        &["sessions", "list", "--cursor", "x"],
        &["sessions", "list", "--select", "titel"],
        &["sessions", "delete", "last"],
        &["schema", "--format", "tsv"],
        &["completions", "bsh"],
        &["--output-format", "json", "-p", "x"],
        &["-p", "x", "--yolo"],
        &["-p", "x", "--permission-mode", "plan"],
        &["exec", "x"],
        &["resume", nowhere],
        &["fork", nowhere, "1"],
        &["tree", nowhere],
        &["undo", nowhere],
        &["redo", nowhere],
        &["compact", nowhere],
        &["inspect", nowhere],
        &["diagnose", nowhere],
        &["replay", nowhere],
        &["sessions", "show", nowhere],
        &["sessions", "repair", nowhere],
        &["sessions", "import", "nothing.json"],
        &["agents", "adopt", nowhere],
        &["agents", "show", "none"],
        &["workflow", "run", "none"],
        &["workflow", "resume", nowhere],
        &["permissions", "add", "bash(git push *)"],
        &["permissions", "revoke", "r000000"],
        &["mcp", "test", "none"],
        &["mcp", "add"],
        &["skills", "show", "none"],
        &["skills", "show", "lnt"],
        &["themes", "preview", "drak"],
        &["models", "list", "--provider", "opnai"],
        &["config", "get", "effrt"],
        &["config", "set", "effort", "hihg"],
        &["tools", "show", "raed"],
        &["tools", "run", "write", "{\"path\": \"b\", \"content\": \"x\"}"],
        &["tools", "run", "read", "{\"paht\": \"b\"}"],
        &["run", "write b x"],
        &["auth", "login"],
    ];
    let mut wrong = Vec::new();
    let mut tried = BTreeSet::new();
    let schema = shell.run(["schema", "commands"]).document();
    let mut commands = Vec::new();
    paths(&schema["part"], "pixir", &mut commands);
    assert!(commands.len() > 70, "{commands:?}");
    let mut of = |args: &[&str], words: &str, actions: Vec<String>| {
        if words.starts_with("pixir") && !actions.iter().any(|it| it == words) {
            wrong.push(format!("{args:?}: `{words}` begins as a command, and is none of {actions:?}"));
        }
        if actions.is_empty() {
            wrong.push(format!("{args:?}: nothing"));
        }
        for named in commands.iter().filter(|it| words.contains(&format!("{it} ")) || words.ends_with(*it)) {
            if !actions.iter().any(|it| it.starts_with(named)) {
                wrong.push(format!("{args:?}: {words}: {named} is in no entry of {actions:?}"));
            }
        }
        for action in actions {
            let is_export = action.starts_with("export ") && action.contains('=');
            let is_command = action == "pixir" || action.starts_with("pixir ");
            if !tried.insert(action.clone()) || is_export {
                continue;
            }
            if !is_command || action.contains('#') {
                wrong.push(format!("{args:?}: {action} is no command"));
                continue;
            }
            // A word in capitals stands for what its reader knows; what has none is run as it is printed.
            let has_placeholder = action.split([' ', '=', '\'', '/']).any(|word| {
                word.chars().any(|c| c.is_ascii_uppercase()) && !word.chars().any(|c| c.is_ascii_lowercase())
            });
            // A key is asked for.
            if !has_placeholder && !action.starts_with("pixir auth login") {
                let done = typed(&shell, &action);
                if done.code == 2 {
                    wrong.push(format!("{args:?}: {action} ends with 2: {}", done.stderr));
                }
            }
            let help = its_help(&shell, &action);
            let is_help = help.stdout.contains("Usage: pixir") || help.stdout.contains("\"examples\"");
            if help.code != 0 || !is_help {
                wrong.push(format!("{args:?}: {action}\n    {}", help.stderr.lines().next().unwrap_or_default()));
            }
        }
    };
    for args in failing {
        let ran = shell.run(args.iter().copied().chain(["--json"]));
        let failed = ran.code != 0 && ran.stderr.contains("next_actions");
        assert!(failed, "{args:?}: {} {}{}", ran.code, ran.stdout, ran.stderr);
        let error = ran.error();
        let fix = error["remediation"].as_str().expect("a remediation");
        of(args, fix, strings(&error["error"]["details"]["next_actions"]));
        if ran.stdout.starts_with('{') {
            of(args, fix, strings(&ran.document()["next_actions"]));
        }
    }
    of(&["status"], "", strings(&shell.run(["status", "--json"]).document()["next_actions"]));
    assert!(wrong.is_empty() && tried.len() >= 30, "{} of {}:\n{}", wrong.len(), tried.len(), wrong.join("\n"));
    super::sessions::session(&shell);
    let diagnosis = shell.run(["diagnose", "last", "--json"]).document();
    assert!(strings(&diagnosis["next_actions"]).iter().all(|it| it.starts_with("pixir ")), "{diagnosis}");
}

/// Broken builds: the flag stands alone; the wrong word stays in the call; the call's own prompt is lost; a command stands
/// twice in a result.
#[test]
fn a_flag_that_helps_is_shown_in_the_call_that_failed() {
    let shell = Shell::new(&[]);
    for (args, expected) in [
        (&["-p", "fix it", "--yolo", "--json"][..], "pixir -p 'fix it' --json --write"),
        (&["sessions", "list", "--limt", "3", "--json"], "pixir sessions list --limit 3 --json"),
        (&["sesions", "list", "--json"], "pixir sessions list --json"),
        (&["-p", "x", "--effort", "hihg", "--json"], "pixir -p x --effort high --json"),
        (&["run", "write b x", "--json"], "pixir run 'write b x' --json --write"),
        (&["-p", "hi", "--json"], "pixir -p hi --json --base-url URL"),
    ] {
        let error = shell.run(args).error();
        let actions = strings(&error["error"]["details"]["next_actions"]);
        assert!(actions.iter().any(|it| it == expected), "{args:?}: {error}");
    }
    // A turn that ended by a signal is resumed by the command that its error names, too.
    let hang = json!({ "steps": [{ "text": "Wait.", "hang": true }] }).to_string();
    let provider = format!("script:{}", shell.aside("hang.json", &hang).display());
    let child = shell.command(["-p", "go", "--json", "--provider", &provider]).spawn().expect("it starts");
    wait::until("the turn runs", || {
        shell.logs().iter().any(|log| entries(log).iter().any(|it| it["type"] == "user_message"))
    });
    let id = rustix::process::Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("the signal is sent");
    let stopped = ran(child.wait_with_output().expect("it ends"));
    let result = stopped.document();
    assert_eq!((stopped.code, &result["next_actions"]), (143, &json!([result["resume_command"]])), "{result}");
}
