//! Files that agents left in their copies when pixir was killed: what waits where is said, and the model reads what is true.

use std::fs;

use serde_json::{Value, json};

use super::{logs, run, spawn, steps};
use crate::shell::Shell;
use crate::wait;

fn bash(command: &str) -> Value {
    json!({ "name": "bash", "args": { "command": command } })
}

/// Kills pixir when the Log has the end of the agent and before its files are in the workspace: another agent holds the workspace
/// meanwhile.
fn killed(change: &str, more: Value) -> Shell {
    let shell = Shell::new(&[("a.txt", "old\n"), ("sub/b.txt", "old\n")]);
    let mut args = json!({ "name": "scribe", "isolation": "copy" });
    for (key, value) in more.as_object().into_iter().flatten() {
        args[key] = value.clone();
    }
    let script = json!({ "steps": [
        { "calls": [spawn("Hold it", json!({ "name": "holder" })), spawn("Change it", args)] },
        { "of": "Hold it", "calls": [bash("touch held; sleep 600")] },
        { "of": "Change it", "calls": [bash(change)] },
        // By then the other one holds the workspace.
        { "of": "Change it", "text": "Changed.", "delay_ms": 4_000 },
        { "text": "Under way." },
    ] });
    let provider = format!("script:{}", shell.aside("script.json", &script.to_string()).display());
    let mut child = shell
        .command(["go", "--headless", "--json", "--mode", "auto", "--provider", &provider])
        .spawn()
        .expect("it starts");
    wait::until("the agent has ended, and the other one holds the workspace", || {
        let is_held = shell.workspace().join("held").exists();
        is_held && shell.logs().len() == 3 && steps(&logs(&shell)[0]).contains(&"ended scribe".to_owned())
    });
    assert!(!steps(&logs(&shell)[0]).iter().any(|it| it.starts_with("adopting")), "it waits for the other one");
    child.kill().expect("it is killed");
    child.wait().expect("it is gone");
    shell
}

/// Broken builds: the resume ends with 0 and names nothing; `agents tree` and `status` know of no files; the model is told that
/// the user has not decided, although no user was asked; what waited for longer than one resume is forgotten.
#[test]
fn what_waits_in_the_copy_of_an_agent_after_a_kill_is_said_wherever_the_user_looks() {
    for (change, paths, more) in [
        ("echo new > a.txt", &["a.txt"][..], json!({})),
        ("echo new > c.txt", &["c.txt"], json!({})),
        ("rm a.txt", &["a.txt"], json!({})),
        ("echo new > a.txt; echo new > sub/b.txt", &["a.txt", "sub/b.txt"], json!({})),
        ("echo new > a.txt", &["a.txt"], json!({ "wait": false })),
    ] {
        let shell = killed(change, more);
        let id = logs(&shell)[0][0]["session_id"].as_str().expect("an id").to_owned();
        let adopt = format!("pixir agents adopt {id} scribe");
        let tree = shell.run(["agents", "tree", &id, "--json"]).document();
        let scribe = |document: &Value| -> Value {
            let all = document["agents"].as_array().cloned().unwrap_or_default();
            all.into_iter().find(|it| it["name"] == "scribe").unwrap_or_else(|| panic!("{document}"))
        };
        assert_eq!(scribe(&tree)["waiting"], json!(paths), "{change}: {tree}");
        assert_eq!(tree["next_actions"], json!([adopt]), "{change}: {tree}");
        let told = shell.run(["agents", "tree", &id]).stdout;
        assert!(told.contains("in its copy"), "{change}: {told}");
        let status = shell.run(["status", "--json"]).document();
        assert!(status["next_actions"].as_array().expect("a list").contains(&json!(adopt)), "{change}: {status}");
        for _ in 0..2 {
            let ran = run(&shell, json!([{ "text": "On again." }]), &["resume", &id, "go on"]);
            let result = ran.document();
            assert_eq!((ran.code, &result["code"]), (13, &json!("INPUT_REQUIRED")), "{change}: {result}");
            assert_eq!(scribe(&result)["waiting"], json!(paths), "{change}: {result}");
            assert!(result["next_actions"].as_array().expect("a list").contains(&json!(adopt)), "{change}: {result}");
        }
        let log = fs::read_to_string(&shell.logs()[root_at(&shell)]).expect("a log");
        assert!(log.contains("it waits in the copy of the agent"), "{change}: the model reads it: {log}");
        assert!(!log.contains("the user has not decided"), "{change}: no user was asked: {log}");
        assert_eq!(shell.run(["agents", "adopt", &id, "scribe"]).code, 0, "{change}");
        for path in paths {
            let now = fs::read_to_string(shell.workspace().join(path)).ok();
            assert_eq!(now.as_deref(), if change.starts_with("rm") { None } else { Some("new\n") }, "{change}: {path}");
        }
        let tree = shell.run(["agents", "tree", &id, "--json"]).document();
        assert_eq!((&scribe(&tree)["waiting"], &tree["next_actions"]), (&json!([]), &json!([])), "{change}: {tree}");
        assert_eq!(run(&shell, json!([{ "text": "Done." }]), &["resume", &id, "go on"]).code, 0, "{change}");
    }
}

/// Where the Log of the root is among those of the workspace.
fn root_at(shell: &Shell) -> usize {
    let is_root = |path: &std::path::PathBuf| !crate::shell::entries(path)[0]["data"]["parent"].is_object();
    shell.logs().iter().position(is_root).expect("the root")
}
