//! The sessions of agents from outside: going on with one, lists, the trash, exports, replays, `pixir agents`.

use std::collections::BTreeSet;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{logs, run, spawn, steps, write};
use crate::hosted::Hosted;
use crate::pty::Terminal;
use crate::shell::Shell;

/// A session whose explorer `eve` has ended, and the ids of both.
fn explored(shell: &Shell) -> (String, String) {
    let script = json!([
        { "calls": [spawn("Look around", json!({ "role": "explorer", "name": "eve" }))] },
        { "of": "Look around", "text": "There is a parser in the cellar." },
        { "text": "Eve is done." },
    ]);
    let ran = run(shell, script, &["explore the house"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let logs = logs(shell);
    let id = |log: &[Value]| log[0]["session_id"].as_str().expect("an id").to_owned();
    (id(&logs[0]), id(&logs[1]))
}

/// Broken builds: a child is resumed as a session of its own, so that its role does not bind it and its parent hears
/// nothing.
#[test]
fn an_agent_is_resumed_by_its_id_or_its_name_in_its_own_log_and_bound_by_its_role() {
    let shell = Shell::new(&[]);
    let (root, eve) = explored(&shell);
    let script = json!([
        { "of": "Look around", "calls": [write("a.txt")] },
        { "of": "Look around", "text": "I may not write." },
    ]);
    let ran = run(&shell, script, &["resume", &eve, "now write it down", "--write"]);
    let result = ran.document();
    assert_eq!(result["session_id"], eve, "{result}");
    assert_eq!(result["output"], "I may not write.");
    assert!(!shell.workspace().join("a.txt").exists(), "an explorer changes nothing, whoever resumes it");
    let script = json!([{ "of": "Look around", "text": "The attic is empty." }]);
    let ran = run(&shell, script, &["resume", &format!("{root}/eve"), "and the attic?"]);
    assert_eq!((ran.code, &ran.document()["output"]), (0, &json!("The attic is empty.")), "{ran:?}");
    let logs = logs(&shell);
    assert_eq!(logs.len(), 2, "it went on in the same log");
    let told = "spawned ended told resumed ended told resumed ended".split(' ').map(|it| format!("{it} eve"));
    assert_eq!(steps(&logs[0]), told.collect::<Vec<_>>());
    let unknown = shell.run(["resume", &format!("{root}/evve"), "x", "--headless", "--json"]);
    assert_eq!(unknown.code, 5, "{unknown:?}");
    assert!(unknown.error()["remediation"].as_str().is_some_and(|it| it.contains(&format!("{root}/eve"))));
}

/// Broken builds: the trash has the root alone; a restore leaves the agents there.
#[test]
fn lists_show_agents_only_on_request_and_the_trash_takes_and_returns_the_whole_tree() {
    let shell = Shell::new(&[]);
    let (root, eve) = explored(&shell);
    let ids = |args: &[&str]| -> Vec<String> {
        let all = shell.run(args.iter().copied().chain(["--json"])).document()["sessions"].clone();
        all.as_array().expect("a list").iter().map(|it| it["id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(ids(&["sessions", "list"]), [root.as_str()]);
    assert_eq!(ids(&["sessions", "list", "--children"]), [root.as_str(), &eve]);
    let plain = shell.run(["sessions", "list", "--children"]).stdout;
    assert!(plain.contains(&format!("↳ {eve}")), "{plain}");
    let deleted = shell.run(["sessions", "delete", &root, "--yes", "--json"]).document();
    assert_eq!(deleted["agents"], json!([eve]));
    assert!(shell.logs().is_empty(), "{:?}", shell.logs());
    let restored = shell.run(["sessions", "delete", &root, "--undo"]);
    assert_eq!(restored.code, 0, "{restored:?}");
    assert_eq!(ids(&["sessions", "list", "--children"]), [root.as_str(), &eve]);
    // While it runs, nothing is taken away below it.
    let script = json!({ "steps": [] });
    let script_free = Hosted::start(&shell, &script, &["resume", &root]);
    let mut host = script_free;
    host.until(0, |line| line["type"] == "ready");
    let refused = shell.run(["sessions", "delete", &root, "--yes", "--json"]);
    assert_eq!(refused.error()["code"], "SESSION_LOCKED", "{refused:?}");
    assert_eq!(shell.logs().len(), 2);
    host.end();
}

/// Broken builds: an export has the root alone; an import leaves the agents out.
#[test]
fn exports_and_replays_hold_what_the_agents_said() {
    let shell = Shell::new(&[]);
    let (root, eve) = explored(&shell);
    let said = "There is a parser in the cellar.";
    for to in ["md", "html"] {
        let page = shell.run(["sessions", "export", &root, "--to", to]).stdout;
        let at = page.find("agent eve (explorer)").expect("it is named where it was started");
        assert!(page[at..].contains(said) && page[at..].contains("</details>"), "{page}");
        let ids: Vec<&str> = page.match_indices("id=\"e").map(|(at, _)| &page[at..at + 40]).collect();
        assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len(), "no two anchors are the same");
    }
    let whole = shell.run(["sessions", "export", &root, "--to", "json"]);
    assert_eq!(whole.document()["agents"][0]["sessionId"], eve);
    let before: Vec<Vec<Value>> = logs(&shell);
    let file = shell.aside("whole.json", &whole.stdout);
    // Retold from the Logs alone.
    let told = shell.run(["replay", &root, "--format", "plain"]).stdout;
    let line = format!("eve │ {said}");
    let (at, end) = (told.find(&line), told.find("• agent eve: completed"));
    assert!(at.is_some() && at < end, "{told}");
    let document = shell.run(["replay", &root, "--json"]).document();
    assert_eq!(document["agents"][0]["session_id"], eve);
    assert!(document["agents"][0]["events"].as_array().is_some_and(|it| it.len() > 3));

    let elsewhere = Shell::new(&[]);
    std::fs::remove_dir_all(shell.home()).expect("only the file is left");
    let imported = elsewhere.run(["sessions", "import", &file.display().to_string(), "--json"]);
    assert_eq!((imported.code, &imported.document()["imported"]["agents"]), (0, &json!(1)), "{imported:?}");
    let after = logs(&elsewhere);
    assert_eq!(after.len(), 2);
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before[..], after[..before.len()], "line by line");
    }
    let tree = elsewhere.run(["agents", "tree", &root, "--json"]).document();
    assert_eq!(tree["agents"][0]["session_id"], eve, "{tree}");
}

/// Broken builds: agents of a session that is open elsewhere are not stopped; its terminal ends with them; one that begins
/// later is stopped too.
#[test]
fn agents_of_a_session_in_a_terminal_or_a_host_are_stopped_from_another_terminal() {
    let shell = Shell::new(&[]);
    let script = json!({ "steps": [
        { "calls": [spawn("Slow one", json!({ "name": "one" })), spawn("Slow two", json!({ "name": "two" }))] },
        { "of": "Slow one", "hang": true }, { "of": "Slow two", "hang": true },
        { "text": "Both were stopped." },
        { "calls": [spawn("Quick", json!({ "name": "later" }))] },
        { "of": "Quick", "text": "later is done" },
        { "text": "That one ended." },
    ] });
    let mut host = Hosted::start(&shell, &script, &[]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    let runs = |name: &'static str| {
        move |it: &Value| {
            it["type"] == "agent_changed" && it["data"]["path"][0] == name && it["data"]["status"] == "running"
        }
    };
    host.until(0, runs("one"));
    host.until(0, runs("two"));
    let planned = shell.run(["agents", "stop", "last", "--dry-run", "--json"]).document();
    assert_eq!((&planned["told_to_stop"], &planned["ended"]), (&json!(["one", "two"]), &json!([])), "{planned}");
    let stopped = shell.run(["agents", "stop", "last", "--json"]);
    assert_eq!((stopped.code, &stopped.document()["ended"]), (0, &json!(["one", "two"])), "{stopped:?}");
    let ended = host.until(0, |it| it["type"] == "turn_ended");
    assert_eq!(host.seen[ended]["data"]["status"], "completed", "the session goes on: {}", host.seen[ended]);
    host.ask("2", json!({ "type": "prompt", "text": "again" }));
    host.until(ended + 1, |it| it["type"] == "turn_ended");
    assert_eq!(host.end().1, 9, "two of three agents did not complete");
    let mut all = steps(&logs(&shell)[0]);
    all[2..4].sort();
    assert_eq!(all, ["spawned one", "spawned two", "ended one", "ended two", "spawned later", "ended later"]);

    let shell = Shell::new(&[]);
    let path = shell.aside("script.json", &script.to_string());
    let provider = format!("script:{}", path.display());
    let mut terminal = Terminal::start(&shell, &["--provider", &provider], 100, 30);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_that("both run", |screen| screen.contains("one") && screen.contains("two"));
    crate::wait::until("both have begun", || shell.logs().len() == 3);
    assert_eq!(shell.run(["agents", "stop", "last"]).code, 0);
    terminal.wait_for("Both were stopped.");
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
}

/// Broken builds: the tree says `running` of an agent whose process was killed; a stop of a session that is open elsewhere
/// says that it has stopped something.
#[test]
fn the_tree_of_agents_and_their_stop_are_honest_about_other_processes() {
    let shell = Shell::new(&[]);
    let script = json!({ "steps": [
        { "calls": [spawn("Quick", json!({ "name": "quick" })), spawn("Slow", json!({ "name": "slow" }))] },
        { "of": "Quick", "text": "quick is done" },
        { "of": "Slow", "hang": true },
    ] });
    let mut host = Hosted::start(&shell, &script, &[]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    host.until(0, |line| line["type"] == "subagent_event" && line["data"]["event"] == "ended");
    let status = |shell: &Shell| -> Vec<String> {
        let tree = shell.run(["agents", "tree", "--json"]).document();
        let agents = tree["agents"].as_array().expect("a list");
        agents.iter().map(|it| format!("{} {}", it["name"], it["status"]).replace('"', "")).collect()
    };
    assert_eq!(status(&shell), ["quick completed", "slow running"]);
    let pid = Pid::from_raw(i32::try_from(host.child.id()).expect("a number")).expect("a process");
    kill_process(pid, Signal::STOP).expect("it stands still");
    let refused = shell.run(["agents", "stop", "last", "--json"]);
    let error = refused.error();
    assert_eq!(error["code"], "SESSION_LOCKED", "{error}");
    let message = error["error"]["message"].as_str().expect("a message");
    assert!(message.contains(&host.child.id().to_string()), "it names the process: {message}");
    assert!(error["remediation"].as_str().is_some_and(|it| it.contains("/agents")), "{error}");
    host.child.kill().expect("killed");
    host.child.wait().expect("gone");
    assert_eq!(status(&shell), ["quick completed", "slow detached"]);
    let planned = shell.run(["agents", "stop", "last", "--dry-run", "--json"]).document();
    assert_eq!(planned["ended"], json!(["slow"]));
    assert_eq!(steps(&logs(&shell)[0]).len(), 3, "a dry run changes nothing");
    let stopped = shell.run(["agents", "stop", "last", "--json"]);
    assert_eq!((stopped.code, &stopped.document()["ended"]), (0, &json!(["slow"])), "{stopped:?}");
    assert_eq!(steps(&logs(&shell)[0])[3], "ended slow");
    assert_eq!(shell.run(["agents", "stop", "last", "--json"]).document()["ended"], json!([]));
    let plain = shell.run(["agents", "tree"]).stdout;
    assert!(plain.contains("quick (worker)  completed") && plain.contains("slow (worker)  detached"), "{plain}");
}
