//! What the keys of a role choose for its agents: model, effort, limits, skills, network, and the roles that they may start.

use std::fs;

use serde_json::{Value, json};

use super::agents::{logs, read, results, run, write};
use super::roles::{role, users};
use crate::hosted::Hosted;
use crate::server::{Dialect, Server, call, text};
use crate::shell::Shell;

fn spawn(role: &str, task: &str) -> Value {
    json!({ "name": "spawn_agent", "args": { "task": task, "role": role } })
}

fn log_of<'a>(all: &'a [Vec<Value>], role: &str) -> &'a [Value] {
    all.iter().find(|log| log[0]["data"]["parent"]["role"] == role).expect("its log")
}

/// Broken builds: a key is read and forgotten; an agent starts roles that its own role leaves out; the log does not say which
/// file the agent was made from; the built-in worker is told nothing.
#[test]
fn what_a_role_chooses_holds_for_its_agents() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let head = ["spawns: [explorer]", "effort: low", "skills: [brief]", "limits: {rounds: 2}"];
    users(&shell, "lead", &role("lead", &head, "Lead them well."));
    users(&shell, "lost", &role("lost", &["model: nowhere/x"], "Get lost."));
    let skill = shell.home().parent().expect("a parent").join(".config/pixir/skills/brief");
    fs::create_dir_all(&skill).expect("mkdir");
    fs::write(skill.join("SKILL.md"), "---\nname: brief\ndescription: how to be brief\n---\nUse few words.\n")
        .expect("write");
    let script = json!([
        { "calls": [spawn("lead", "Lead them"), spawn("lost", "x"), spawn("worker", "Work")] },
        { "of": "Work", "text": "Worked." },
        { "of": "Lead them", "calls": [spawn("worker", "Dig"), spawn("explorer", "Look")] },
        { "of": "Look", "text": "Seen." },
        { "of": "Lead them", "calls": [read("a.txt")] },
        { "of": "Lead them", "text": "a.txt says alpha; the rest is unread." },
        { "text": "So." },
    ]);
    run(&shell, script, &["go", "--toolset", "typed", "--config", "agents.depth=2"]);
    let all = logs(&shell);
    let lead = log_of(&all, "lead");
    let begun = &lead[0]["data"];
    assert_eq!(begun["effort"], "low");
    let documents = begun["context"].as_array().expect("documents");
    let of = |log: &[Value], source: &str| -> String {
        let documents = log[0]["data"]["context"].as_array().expect("documents").clone();
        let found = documents.iter().find(|it| it["source"] == source).expect(source);
        found["text"].as_str().expect("a text").to_owned()
    };
    assert!(of(lead, "role lead").ends_with("Lead them well."), "{documents:?}");
    assert!(of(lead, "skill brief").contains("Use few words."));
    assert!(of(log_of(&all, "worker"), "role worker").contains("Do the whole task and nothing beside it"));
    let digest = shell.run(["agents", "show", "lead", "--json"]).document()["digest"].clone();
    let link = all[0].iter().find(|it| it["data"]["event"] == "spawned" && it["data"]["role"] == "lead");
    assert_eq!((&begun["parent"]["role_digest"], &link.expect("a link")["data"]["role_digest"]), (&digest, &digest));
    assert!(digest.is_string());
    let refused = results(lead);
    assert!(refused[0].contains("there is no role `worker`") && refused[0].contains("explorer"), "{refused:?}");
    assert_eq!(all.len(), 4, "the root, lead, worker and the explorer");
    let end = all[0].iter().find(|it| it["data"]["event"] == "ended" && it["data"]["name"] == "lead-1");
    let end = &end.expect("its end")["data"];
    assert_eq!((&end["status"], &end["error"]["code"]), (&json!("incomplete"), &json!("ITERATION_CAP")), "{end}");
    assert!(results(&all[0])[1].contains("the role lost wants nowhere/x"), "{:?}", results(&all[0]));
}

/// Broken builds: all tools are offered to an agent, and those that its role leaves out are refused one by one; `inspect` shows
/// another request than the one that is sent.
#[test]
fn an_agent_is_offered_the_tools_of_its_role_alone() {
    let shell = Shell::new(&[]);
    users(&shell, "looker", &role("looker", &["tools: [Read, Grep]"], "Look."));
    let server = Server::start(vec![
        call("c1", "spawn_agent", json!({ "task": "Look around", "role": "looker" })),
        call("c2", "write", json!({ "path": "a.txt", "content": "x" })),
        text("I may not."),
        text("So."),
    ]);
    let flags = server.flags(Dialect::Responses);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    assert_eq!(shell.run(["go", "--headless", "--mode", "auto"].into_iter().chain(flags)).code, 0);
    let sent = server.bodies()[2]["tools"].clone();
    let names = |tools: &Value| -> Vec<String> {
        let tools = tools.as_array().expect("tools").iter();
        tools.filter_map(|it| it["name"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(names(&sent), ["grep", "read"], "{sent}");
    let all = logs(&shell);
    assert!(results(&all[1])[0].contains("the tool `write` is not offered"), "{:?}", results(&all[1]));
    let id = all[1][0]["session_id"].as_str().expect("an id");
    let inspected = shell.run(["inspect", id, "--json"]).document()["request"]["tools"].clone();
    assert_eq!(inspected, sent);
}

/// Broken build: agents of the role ask the model of their session.
#[test]
fn a_role_names_the_model_that_answers_its_agents() {
    let shell = Shell::new(&[]);
    users(&shell, "cheap", &role("cheap", &["model: custom/small"], "Be quick."));
    let server = Server::start(vec![
        call("c1", "spawn_agent", json!({ "task": "Look around", "role": "cheap" })),
        text("A cellar."),
        text("So."),
    ]);
    let flags = server.flags(Dialect::Chat);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let ran = shell.run(["go", "--headless", "--json"].into_iter().chain(flags));
    assert_eq!(ran.code, 0, "{ran:?}");
    let models: Vec<Value> = server.bodies().iter().map(|it| it["model"].clone()).collect();
    assert_eq!(models, ["m", "small", "m"]);
}

/// Broken builds: `web: false` is only shown; it holds for the agent's own agents no more.
#[test]
fn agents_of_a_role_without_web_get_no_network_whatever_the_user_allows() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let connect = format!("python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 5)\"");
    let connect = json!({ "name": "bash", "args": { "command": connect } });
    let shell = Shell::new(&[]);
    users(&shell, "offline", &role("offline", &["web: false"], "Work alone."));
    let script = json!([
        { "calls": [spawn("worker", "Connect"), spawn("offline", "Stay alone")] },
        { "of": "Connect", "calls": [connect] },
        { "of": "Connect", "text": "Connected." },
        { "of": "Stay alone", "calls": [connect, spawn("worker", "Try it for me")] },
        { "of": "Try it for me", "calls": [connect] },
        { "of": "Try it for me", "text": "No." },
        { "of": "Stay alone", "text": "Alone." },
        { "text": "So." },
    ]);
    let flags = ["go", "--toolset", "typed", "--write", "--allow", "network", "--config", "agents.depth=2"];
    let ran = run(&shell, script, &flags);
    assert_eq!(ran.code, 0, "{ran:?}");
    let all = logs(&shell);
    let exits = |task: &str| -> Vec<Value> {
        let log = all.iter().find(|log| log.iter().any(|it| it["data"]["text"] == task)).expect("its log");
        let ran = log.iter().filter(|it| it["type"] == "tool_result").map(|it| it["data"]["exit_code"].clone());
        ran.collect()
    };
    assert_eq!(exits("Connect"), [0], "the user allows the network");
    assert_eq!(exits("Stay alone")[0], 1);
    assert_eq!(exits("Try it for me"), [1]);
}

/// Broken builds: planning ends with any answer; the user's words do not reach the model; the model is told to have the mode set,
/// which changes nothing while it plans.
#[test]
fn planning_goes_on_until_the_user_agrees() {
    let plan =
        json!({ "name": "update_plan", "args": { "items": [{ "step": "x", "status": "pending" }], "ready": true } });
    for (answer, read) in [
        ("I change the plan myself", "the user changes the plan: end your turn"),
        ("go on planning", "the user has not agreed: go on planning"),
        ("first y, then x", "says: first y, then x\nchange the plan so"),
    ] {
        let shell = Shell::new(&[]);
        let script = json!({ "steps": [
            { "calls": [plan] },
            { "calls": [write("early.txt")] },
            { "text": "I see." },
        ] });
        let mut host = Hosted::start(&shell, &script, &["--agent", "plan", "--mode", "auto"]);
        host.ask("1", json!({ "type": "prompt", "text": "plan it" }));
        let form = host.event("question_asked");
        let answers = json!({ "type": "answer", "call_id": form["data"]["call_id"], "answers": [[answer]] });
        assert_eq!(host.ask("2", answers)["ok"], true);
        host.event("turn_ended");
        host.end();
        assert!(!shell.workspace().join("early.txt").exists(), "{answer}");
        let log = logs(&shell).remove(0);
        let told = results(&log);
        assert!(told[0].contains(read), "{told:?}");
        assert!(told[1].contains("changes nothing") && !told[1].contains("set the mode"), "{told:?}");
    }
}
