//! What agents are told, by the user and by models: running, queued, ended, and below another agent.

use serde_json::{Value, json};

use pixir_core::provider::script::{Script, Step};

use super::{logs, read, results, spawn, steps, write};
use crate::driver::Pixir;
use crate::hosted::Hosted;
use crate::shell::{Shell, entries};

fn script(steps: Value) -> Script {
    let steps: Vec<Step> = serde_json::from_value(steps).expect("steps");
    Script { steps, ..Script::default() }
}

/// An Input of the user for an agent.
fn to(path: &[&str], input: Value) -> Value {
    json!({ "type": "to_agent", "path": path, "input": input })
}

/// The newest state of an agent is this.
fn is_now(name: &str, status: &str) -> impl Fn(&Value) -> bool {
    move |line: &Value| {
        let path = line["data"]["path"].as_array().and_then(|path| path.last());
        line["type"] == "agent_changed" && path.is_some_and(|it| it == name) && line["data"]["status"] == status
    }
}

/// What the Log tells of the messages to agents: who said what to whom.
fn told(log: &[Value]) -> Vec<String> {
    let told = log.iter().filter(|it| it["data"]["event"] == "told").map(|it| &it["data"]);
    told.map(|it| format!("{} to {}: {}", it["by"], it["name"], it["text"]).replace('"', "")).collect()
}

fn ends(log: &[Value]) -> Vec<&str> {
    let ends = log.iter().filter(|it| it["data"]["event"] == "ended");
    ends.filter_map(|it| it["data"]["status"].as_str()).collect()
}

/// The Log of the agent with this name.
fn log_of(shell: &Shell, name: &str) -> Vec<Value> {
    let all = shell.logs().into_iter().map(|path| entries(&path));
    all.into_iter().find(|log| log[0]["data"]["parent"]["name"] == name).expect("its log")
}

fn messages(log: &[Value]) -> Vec<&str> {
    let said = log.iter().filter(|it| it["type"] == "user_message");
    said.filter_map(|it| it["data"]["text"].as_str()).collect()
}

/// Broken builds: the door closes before the Turn has been seen, so that it ends as interrupted; the parent's log does not
/// have what the user said.
#[tokio::test]
async fn an_agent_that_has_ended_is_told_more_from_the_list_and_goes_on_to_its_end() {
    let steps = json!([
        { "calls": [spawn("Look around", json!({ "name": "scout" }))] },
        { "of": "Look around", "text": "There is a cellar." },
        { "text": "The scout is back." },
        { "of": "Look around", "text": "It is dark down there." },
        { "of": "Look around", "text": "The lamp is lit." },
    ]);
    let mut pixir = Pixir::scripted(script(steps), &[], 100, 30);
    pixir.does("go<Enter>").await;
    pixir.screen.keys("<A-g>").await;
    pixir.screen.until("There is a cellar.").await;
    for (keys, answer) in
        [("rlook into it<Enter>", "It is dark down there."), ("stake a lamp<Enter>", "The lamp is lit.")]
    {
        pixir.screen.keys(keys).await;
        pixir.screen.until(answer).await;
        pixir.screen.until("✓ scout").await;
    }
    let log = pixir.log();
    assert_eq!(told(&log), ["user to scout: look into it", "user to scout: take a lamp"]);
    let expected =
        ["spawned", "ended", "told", "resumed", "ended", "told", "resumed", "ended"].map(|it| format!("{it} scout"));
    assert_eq!(super::steps(&log), expected);
    assert_eq!(ends(&log), ["completed"; 3]);
}

/// Broken builds: a host's prompt to an agent that has ended is cut off; one to an agent below another is cut off with the
/// session between them.
#[test]
fn a_host_goes_on_with_an_agent_that_has_ended_at_any_depth() {
    for (path, above) in [(["deep"].as_slice(), None), (["lead", "deep"].as_slice(), Some("lead"))] {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let deep = spawn("Dig deep", json!({ "name": "deep" }));
        let mut all = match above {
            None => vec![json!({ "calls": [deep] })],
            Some(lead) => vec![
                json!({ "calls": [spawn("Lead them", json!({ "name": lead }))] }),
                json!({ "of": "Lead them", "calls": [deep] }),
                json!({ "of": "Lead them", "text": "Led." }),
            ],
        };
        all.extend([
            json!({ "of": "Dig deep", "text": "Dug." }),
            json!({ "text": "So." }),
            json!({ "of": "Dig deep", "calls": [read("a.txt")] }),
            json!({ "of": "Dig deep", "text": "Dug deeper." }),
        ]);
        let mut host = Hosted::start(&shell, &json!({ "steps": all }), &["--config", "agents.depth=2"]);
        host.ask("1", json!({ "type": "prompt", "text": "go" }));
        host.event("turn_ended");
        let from = host.seen.len();
        let answer = host.ask("2", to(path, json!({ "type": "prompt", "text": "dig deeper" })));
        assert_eq!(answer["ok"], true, "{answer}");
        host.until(from, |line| is_now("deep", "completed")(line) || is_now("deep", "interrupted")(line));
        host.end();
        let deep = log_of(&shell, "deep");
        let ended: Vec<&Value> =
            deep.iter().filter(|it| it["type"] == "turn_ended").map(|it| &it["data"]["status"]).collect();
        assert_eq!(ended, ["completed", "completed"], "{path:?}");
        let parent = above.map_or_else(|| logs(&shell).remove(0), |lead| log_of(&shell, lead));
        assert_eq!(told(&parent), ["user to deep: dig deeper"], "the log of its own parent has it");
        assert_eq!(ends(&parent), ["completed", "completed"]);
    }
}

/// Broken builds: what is said to an agent that waits for a place is lost; the log says `told` of what was refused.
#[test]
fn an_agent_that_waits_for_a_place_reads_what_it_was_told_when_it_begins() {
    let shell = Shell::new(&[]);
    let script = json!({ "steps": [
        { "calls": [
            spawn("First of all", json!({ "name": "first", "wait": false })),
            spawn("Second", json!({ "name": "second", "wait": false })),
        ] },
        { "calls": [{ "name": "tell_agent", "args": { "name": "second", "text": "be brief" } }] },
        { "text": "They are under way." },
        { "of": "First of all", "text": "I look.", "hang": true },
        { "of": "Second", "text": "Brief." },
        { "of": "Second", "text": "And kind." },
        { "of": "Second", "text": "And true." },
        { "text": "So." },
        { "text": "So." },
    ] });
    let mut host = Hosted::start(&shell, &script, &["--config", "agents.running=1"]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    host.event("turn_ended");
    let steered = host.ask("2", to(&["second"], json!({ "type": "steer", "text": "be kind" })));
    assert_eq!((&steered["ok"], &steered["accepted"]["queued"]["position"]), (&json!(true), &json!(2)), "{steered}");
    let later = host.ask("3", to(&["second"], json!({ "type": "follow_up", "text": "be true" })));
    assert_eq!(later["ok"], true, "{later}");
    // Anything else is refused in words that say what the agent does.
    let refused = host.ask("4", to(&["second"], json!({ "type": "undo" })));
    let why = refused["error"]["message"].as_str().expect("a reason");
    assert!(why.contains("second waits for a free place"), "{refused}");
    host.ask("5", json!({ "type": "stop_agents", "path": ["first"] }));
    let from = host.until(0, is_now("second", "completed"));
    host.until(from + 1, is_now("second", "completed"));
    host.end();
    let second = log_of(&shell, "second");
    assert_eq!(messages(&second), ["Second", "be brief", "be kind", "be true"]);
    let root = logs(&shell).remove(0);
    assert!(results(&root)[2].contains("second (queued"), "{:?}", results(&root));
    assert_eq!(told(&root), ["parent to second: be brief", "user to second: be kind", "user to second: be true"]);
}

/// Broken builds: an agent that was stopped while it waited for a place can never begin, although its end says so.
#[test]
fn an_agent_that_was_stopped_before_it_began_begins_when_it_is_told_something() {
    let shell = Shell::new(&[]);
    let script = json!({ "steps": [
        { "calls": [
            spawn("First of all", json!({ "name": "first", "wait": false })),
            spawn("Second", json!({ "name": "second", "wait": false })),
        ] },
        { "text": "They are under way." },
        { "of": "First of all", "text": "I look.", "hang": true },
        { "of": "Second", "text": "Begun." },
        { "of": "Second", "text": "And on." },
        { "text": "So." },
        { "text": "So." },
        { "text": "So." },
    ] });
    let mut host = Hosted::start(&shell, &script, &["--config", "agents.running=1"]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    host.event("turn_ended");
    host.ask("2", json!({ "type": "stop_agents", "path": ["second"] }));
    host.until(0, is_now("second", "interrupted"));
    host.ask("3", json!({ "type": "stop_agents", "path": ["first"] }));
    let answer = host.ask("4", to(&["second"], json!({ "type": "prompt", "text": "begin now" })));
    assert_eq!(answer["ok"], true, "{answer}");
    host.until(0, is_now("second", "completed"));
    host.end();
    assert_eq!(messages(&log_of(&shell, "second"))[..2], ["Second", "begin now"]);
}

/// Broken build: the screen of an agent that waits for a place is an error about a session that does not exist.
#[tokio::test]
async fn entering_an_agent_that_waits_for_a_place_says_so_and_it_can_be_told_something_from_the_list() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "last"];
    let calls = names.map(|name| spawn(&format!("Task {name}"), json!({ "name": name })));
    let mut all = vec![json!({ "calls": calls })];
    all.extend(
        names.map(|name| json!({ "of": format!("Task {name}"), "text": format!("I am {name}."), "hang": true })),
    );
    let mut pixir = Pixir::scripted(script(Value::Array(all)), &[], 100, 30);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("9 agents · 1 queued").await;
    pixir.screen.keys("<A-g>/task last<Enter>").await;
    pixir.screen.until("── last").await;
    pixir.screen.keys("sand be quick<Enter>").await;
    pixir.screen.until("» and be quick  queued").await;
    pixir.screen.keys("<Enter>").await;
    pixir.screen.until("last waits for a free place and has not begun yet").await;
    // When another one ends, it begins, and can be entered.
    pixir.screen.keys("<A-g>/task a<Enter>x").await;
    pixir.screen.until("stopped").await;
    pixir.screen.keys("<Esc><A-g>/task last<Enter>").await;
    pixir.screen.until("› and be quick").await;
    pixir.screen.keys("<Enter>").await;
    pixir.screen.until("main › last").await;
    pixir.screen.until("I am last.").await;
}

/// Broken builds: the user's message waits for the end of the agent; the agent is stopped with the wait; its end is told to
/// nobody.
#[test]
fn a_message_of_the_user_ends_the_wait_for_an_agent_and_not_the_agent() {
    let started = |more: Value| spawn("Write it", more);
    let forms = [
        vec![json!({ "calls": [started(json!({ "name": "scribe" }))] })],
        vec![
            json!({ "calls": [started(json!({ "name": "scribe", "wait": false }))] }),
            json!({ "calls": [{ "name": "wait_agent", "args": {} }] }),
        ],
        vec![json!({ "calls": [{ "name": "run", "args": { "command": "agent spawn --name scribe 'Write it'" } }] })],
    ];
    for form in forms {
        let shell = Shell::new(&[]);
        let is_run = form[0]["calls"][0]["name"] == "run";
        let mut all = form;
        all.extend([
            json!({ "of": "Write it", "calls": [if is_run { json!({ "name": "run", "args": { "command": "touch a.txt" } }) } else { write("a.txt") }] }),
            json!({ "of": "Write it", "text": "Written." }),
            json!({ "when": "how is it going", "text": "The scribe is at it." }),
            json!({ "text": "It is written." }),
        ]);
        let flags: &[&str] = if is_run { &["--toolset", "run"] } else { &["--toolset", "typed"] };
        let mut host = Hosted::start(&shell, &json!({ "steps": all }), flags);
        host.ask("1", json!({ "type": "prompt", "text": "go" }));
        let asked = host.event("approval_requested");
        // The agent waits for the user, so the wait for the agent would not end.
        host.ask("2", json!({ "type": "steer", "text": "how is it going" }));
        host.event("turn_ended");
        let decide =
            json!({ "type": "decide", "call_id": asked["data"]["call_id"], "decision": { "answer": "allow" } });
        let answer = host.ask("3", to(&["scribe"], decide));
        assert_eq!(answer["ok"], true, "{answer}");
        host.event("turn_ended");
        host.end();
        let root = logs(&shell).remove(0);
        let said: Vec<&str> = root
            .iter()
            .filter(|it| it["type"] == "assistant_message")
            .filter_map(|it| it["data"]["text"].as_str())
            .collect();
        assert_eq!(said, ["The scribe is at it.", "It is written."], "{root:#?}");
        assert!(steps(&root).contains(&"reported scribe".to_owned()), "{:?}", steps(&root));
        assert_eq!(ends(&root), ["completed"]);
        assert!(shell.workspace().join("a.txt").exists());
    }
}

/// Broken build: the tools know only the agents that the session has started itself, although the list has all of them.
#[test]
fn a_model_can_look_at_tell_and_wait_for_an_agent_of_its_agent() {
    let call = |name: &str, args: Value| json!({ "name": name, "args": args });
    let shell = Shell::new(&[]);
    let script = json!({ "steps": [
        { "calls": [spawn("Lead them", json!({ "name": "lead", "wait": false }))] },
        { "text": "Under way." },
        { "of": "Lead them", "calls": [spawn("Dig deep", json!({ "name": "deep" }))] },
        { "of": "Dig deep", "calls": [write("a.txt")] },
        { "calls": [
            call("show_agent", json!({})),
            call("show_agent", json!({ "name": "deep" })),
            call("show_agent", json!({ "name": "lead/deep" })),
            call("wait_agent", json!({ "names": ["deep"], "seconds": 1 })),
            call("tell_agent", json!({ "name": "lead/deep", "text": "mind the water" })),
        ] },
        { "text": "It waits." },
        { "of": "Dig deep", "text": "Dug." },
        { "of": "Lead them", "text": "Led." },
        { "calls": [call("wait_agent", json!({ "names": ["lead/deep"] }))] },
        { "text": "So." },
    ] });
    let mut host = Hosted::start(&shell, &script, &["--config", "agents.depth=2", "--config", "agents.wake=false"]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    host.event("turn_ended");
    let asked = host.event("approval_requested");
    assert_eq!(asked["data"]["agent"]["path"], json!(["lead", "deep"]));
    host.ask("2", json!({ "type": "prompt", "text": "how is it going" }));
    host.event("turn_ended");
    let decide = json!({ "type": "decide", "call_id": asked["data"]["call_id"], "decision": { "answer": "allow" } });
    assert_eq!(host.ask("3", to(&["lead", "deep"], decide))["ok"], true);
    host.until(0, is_now("deep", "completed"));
    host.ask("4", json!({ "type": "prompt", "text": "and now" }));
    host.event("turn_ended");
    host.end();
    let root = logs(&shell).remove(0);
    let read = results(&root);
    assert!(read[1].contains("lead/deep (waiting"), "{}", read[1]);
    assert!(read[2..4].iter().all(|it| it.contains("told: Dig deep") && it.contains("call: write a.txt")), "{read:?}");
    assert!(read[4].contains("lead/deep (waiting") && read[5].contains("lead/deep ("), "{read:?}");
    assert!(read[6].starts_with("agent lead/deep: completed") && read[6].contains("Dug."), "{}", read[6]);
    assert_eq!(told(&log_of(&shell, "lead")), ["parent to deep: mind the water"]);
    assert!(messages(&log_of(&shell, "deep")).contains(&"mind the water"));
}
