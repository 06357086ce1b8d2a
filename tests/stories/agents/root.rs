//! What the session of the user has for all of its agents: questions, undo, MCP servers, and news that a reader can follow.

use std::time::Instant;

use serde_json::{Value, json};

use super::{logs, read, results, spawn, steps, write};
use crate::hosted::Hosted;
use crate::shell::{Shell, figures};
use crate::stories::mcp::Scripted;

fn tool(name: &str, args: Value) -> Value {
    json!({ "name": name, "args": args })
}

/// Broken builds: what an agent of an agent asks stays with that agent; its answer goes to the first agent; an undo takes files
/// away from under a running agent.
#[test]
fn what_an_agent_of_an_agent_asks_is_answered_at_the_root_and_undo_waits_for_it() {
    let shell = Shell::new(&[]);
    let ask = tool("ask_user", json!({ "questions": [{ "question": "How deep?", "options": ["1 m", "2 m"] }] }));
    let script = json!({ "steps": [
        { "calls": [spawn("Lead them", json!({ "name": "lead", "wait": false }))] },
        { "text": "Under way." },
        { "of": "Lead them", "calls": [spawn("Dig deep", json!({ "name": "deep" }))] },
        { "of": "Dig deep", "calls": [write("a.txt"), ask] },
        { "of": "Dig deep", "text": "Dug." },
        { "of": "Lead them", "text": "Led." },
        { "text": "So." },
    ] });
    let mut host = Hosted::start(&shell, &script, &["--config", "agents.depth=2", "--mode", "auto"]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    host.event("turn_ended");
    let asked = host.event("question_asked");
    assert_eq!(asked["data"]["agent"], json!({ "path": ["lead", "deep"], "role": "worker" }), "{asked}");
    let refused = host.ask("2", json!({ "type": "undo" }));
    assert_eq!((&refused["ok"], &refused["error"]["message"]), (&json!(false), &json!("agents still change files")));
    assert_eq!(shell.read("a.txt"), "written\n");
    let answer = json!({ "type": "answer", "call_id": asked["data"]["call_id"], "answers": [["2 m"]] });
    let taken = host.ask("3", json!({ "type": "to_agent", "path": ["lead", "deep"], "input": answer }));
    assert_eq!(taken["ok"], true, "{taken}");
    host.event("turn_ended");
    let undone = host.ask("4", json!({ "type": "undo", "turn": 1 }));
    assert_eq!(undone["ok"], true, "{undone}");
    assert!(!shell.workspace().join("a.txt").exists(), "the undo takes along what the agent of the agent wrote");
    host.end();
    let deep = logs(&shell).into_iter().find(|log| log[0]["data"]["parent"]["name"] == "deep").expect("its log");
    assert!(results(&deep)[1].contains("2 m"), "{:?}", results(&deep));
}

/// Broken builds: the agent has no link in the log; the model is not told of its end; a role that does not exist starts a worker.
#[test]
fn the_user_starts_an_agent_and_the_model_reads_its_end() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let script = json!({ "steps": [
        { "of": "Look at it", "calls": [read("a.txt")] },
        { "of": "Look at it", "text": "It says alpha." },
        { "text": "The scout says alpha." },
    ] });
    let mut host = Hosted::start(&shell, &script, &[]);
    let start = |role: &str| json!({ "type": "spawn_agent", "task": "Look at it", "role": role, "name": "scout" });
    let refused = host.ask("1", start("explorr"));
    assert_eq!((&refused["code"], &refused["remediation"]), (&json!("NOT_FOUND"), &json!("explorer")), "{refused}");
    assert_eq!(host.ask("2", start("explorer"))["ok"], true);
    host.event("turn_ended");
    host.end();
    let root = logs(&shell).remove(0);
    assert_eq!(steps(&root), ["spawned scout", "ended scout", "reported scout"]);
    let said = root.iter().rfind(|it| it["type"] == "assistant_message").expect("an answer");
    assert_eq!(said["data"]["text"], "The scout says alpha.");
    assert!(root.iter().all(|it| it["type"] != "user_message"), "the user said nothing to the model: {root:#?}");
}

/// Broken build: each agent starts the MCP servers again.
#[test]
fn agents_use_the_mcp_server_that_their_session_has_started() {
    let shell = Shell::new(&[]);
    let server = Scripted::new(&shell);
    let (program, journal) = (server.program.display().to_string(), server.journal_flag());
    let add = ["mcp", "add", "test", "--reads", "look", "--", "python3", &program, &journal, "tools=echo,look"];
    assert_eq!(shell.run(add).code, 0);
    let before = server.starts();
    let names = ["one", "two", "three", "four"];
    let mut script =
        vec![json!({ "calls": names.map(|name| spawn(&format!("Look as {name}"), json!({ "name": name }))) })];
    for name in names {
        let of = format!("Look as {name}");
        script.push(json!({ "of": of, "calls": [tool("test__look", json!({ "what": name }))] }));
        script.push(json!({ "of": of, "text": "Looked." }));
    }
    script.push(json!({ "text": "So." }));
    let ran = super::run(&shell, Value::from(script), &["go", "--toolset", "typed"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let all = logs(&shell);
    for log in &all[1..] {
        assert!(results(log)[0].contains("look {"), "{:?}", results(log));
    }
    assert_eq!((all.len(), server.starts()), (5, before + 1), "{:?}", server.journal());
}

/// Broken build: a state is published for each entry of the agent's log.
#[test]
fn news_of_a_busy_agent_come_at_most_ten_times_a_second() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let mut script = vec![json!({ "calls": [spawn("Read on", json!({ "name": "busy" }))] })];
    script.extend((0..40).map(|_| json!({ "of": "Read on", "calls": vec![read("a.txt"); 10] })));
    script.push(json!({ "of": "Read on", "text": "Read." }));
    script.push(json!({ "text": "So." }));
    let began = Instant::now();
    let mut host = Hosted::start(&shell, &json!({ "steps": script }), &["--toolset", "typed"]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    host.event("turn_ended");
    let took = began.elapsed().as_secs_f64();
    let news: Vec<&Value> = host.seen.iter().filter(|it| it["type"] == "agent_changed").collect();
    let calls = news.last().expect("a state")["data"]["calls"].clone();
    let count = news.len();
    host.end();
    figures(&format!("{count} states of an agent with {calls} calls in {took:.1} s"));
    assert_eq!(calls, 400, "the last state has all of it");
    // Beginning and end are told at once.
    assert!(count as f64 <= took * 10.0 + 4.0, "{count} in {took} s");
}
