//! Agents: child Sessions that work on one task each, with their own context.

pub(super) mod screen; // agents in the interface
mod copies; // agents that work in copies of the workspace
mod doors; // sessions of agents from outside
mod ends; // how agents end, and what the model reads of it
mod faults; // agents where something around them fails
mod figures; // agents in numbers
mod limits; // what bounds agents
mod refused; // agents that were refused something, or did not come to their answer
mod left; // files that a killed pixir left in copies
mod root; // what the session of the user has for all of its agents
mod told; // what agents are told
mod waiting; // what agents wait for
mod whole; // agents from a plan to an undo
mod headless; // agents of a run without a terminal

use serde_json::{Value, json};

use crate::hosted::Hosted;
use crate::shell::{Ran, Shell, entries};

/// A scripted call that starts an agent.
pub(super) fn spawn(task: &str, more: Value) -> Value {
    let mut args = json!({ "task": task });
    for (name, value) in more.as_object().into_iter().flatten() {
        args[name] = value.clone();
    }
    json!({ "name": "spawn_agent", "args": args })
}

pub(super) fn read(path: &str) -> Value {
    json!({ "name": "read", "args": { "path": path } })
}

pub(super) fn write(path: &str) -> Value {
    json!({ "name": "write", "args": { "path": path, "content": "written\n" } })
}

pub(super) fn run(shell: &Shell, steps: Value, args: &[&str]) -> Ran {
    let path = shell.aside("script.json", &json!({ "steps": steps }).to_string());
    let provider = format!("script:{}", path.display());
    shell.run(args.iter().copied().chain(["--headless", "--json", "--provider", &provider]))
}

/// The Logs of the workspace, the root's first.
pub(super) fn logs(shell: &Shell) -> Vec<Vec<Value>> {
    let mut all: Vec<Vec<Value>> = shell.logs().iter().map(|path| entries(path)).collect();
    all.sort_by_key(|log| log[0]["data"]["parent"].is_object());
    all
}

pub(super) fn results(log: &[Value]) -> Vec<&str> {
    let results = log.iter().filter(|it| it["type"] == "tool_result");
    results.filter_map(|it| it["data"]["output"].as_str()).collect()
}

/// What the Log tells of agents: the step and the agent's name.
pub(super) fn steps(log: &[Value]) -> Vec<String> {
    let events = log.iter().filter(|it| it["type"] == "subagent_event").map(|it| &it["data"]);
    events.map(|it| format!("{} {}", it["event"].as_str().unwrap_or(""), it["name"].as_str().unwrap_or(""))).collect()
}

/// Broken builds: a call waits for the one before it; the results stand in the order of their ends.
#[test]
fn three_explorers_of_one_answer_run_together_and_their_ends_come_in_the_order_of_the_calls() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let script = json!([
        { "calls": [
            spawn("Read a.txt first", json!({ "role": "explorer" })),
            spawn("Look at b", json!({ "role": "explorer", "name": "second" })),
            spawn("Look at c", json!({ "role": "explorer" })),
        ] },
        // The first ends last.
        { "of": "Read a.txt first", "calls": [read("a.txt")] },
        { "of": "Read a.txt first", "text": "a.txt:1 says alpha", "delay_ms": 300 },
        { "of": "Look at b", "text": "b is nothing" },
        { "of": "Look at c", "text": "c is nothing" },
        { "text": "All three are known." },
    ]);
    let ran = run(&shell, script, &["explore"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let logs = logs(&shell);
    assert_eq!(logs.len(), 4, "the root and three children");
    let results = results(&logs[0]);
    let [first, second, third] = results.as_slice() else { panic!("{results:?}") };
    assert!(first.starts_with("agent explorer-") && first.contains("a.txt:1 says alpha"), "{first}");
    assert!(first.contains("pixir counted: 1 calls") && first.contains("read: a.txt"), "{first}");
    assert!(second.starts_with("agent second: completed") && second.contains("no tool was used"), "{second}");
    assert!(third.contains("c is nothing"), "{third}");
    let steps = steps(&logs[0]);
    assert!(steps[..3].iter().all(|it| it.starts_with("spawned")), "they run together: {steps:?}");
    for child in &logs[1..] {
        let parent = &child[0]["data"]["parent"];
        assert_eq!(parent["session_id"], logs[0][0]["session_id"]);
        assert_eq!(child[0]["data"]["mode"], "read-only", "an explorer changes nothing");
        let is_link =
            |it: &&Value| it["data"]["event"] == "spawned" && it["data"]["session_id"] == child[0]["session_id"];
        assert!(logs[0].iter().any(|it| is_link(&it)), "the parent's log names it");
    }
}

/// Broken builds: the role's mode is not a ceiling; a child keeps the mode that its parent had.
#[test]
fn an_explorer_changes_nothing_however_much_its_parent_may() {
    let shell = Shell::new(&[]);
    let script = json!([
        { "calls": [spawn("Look around", json!({ "role": "explorer" }))] },
        { "of": "Look around", "calls": [write("a.txt")] },
        { "of": "Look around", "text": "I may not." },
        { "text": "It could not." },
    ]);
    let ran = run(&shell, script, &["go", "--mode", "auto"]);
    assert_eq!(ran.code, 12, "what its role refused is not done: {ran:?}");
    assert!(!shell.workspace().join("a.txt").exists());
    let logs = logs(&shell);
    assert!(results(&logs[0])[0].contains("1 refused"), "{:?}", results(&logs[0]));
}

/// Broken builds: the question is published in the child alone; the decision goes to the root.
#[test]
fn what_a_child_needs_allowed_is_asked_in_the_session_that_the_user_sees() {
    let shell = Shell::new(&[]);
    let script = json!({ "steps": [
        { "calls": [spawn("Write it", json!({ "name": "scribe" }))] },
        { "of": "Write it", "calls": [write("a.txt")] },
        { "of": "Write it", "text": "Written." },
        { "text": "Done." },
    ] });
    let mut host = Hosted::start(&shell, &script, &[]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    let asked = host.event("approval_requested");
    assert_eq!(asked["data"]["agent"], json!({ "path": ["scribe"], "role": "worker" }));
    let call = asked["data"]["call_id"].as_str().expect("an id").to_owned();
    // Who joins now sees it too.
    let now = host.ask("2", json!({ "type": "get", "what": "now" }));
    assert_eq!(now["now"]["approvals"][0]["agent"]["path"], json!(["scribe"]), "{now}");
    assert_eq!(now["now"]["children"][0]["status"], "waiting", "{now}");
    let decide = json!({ "type": "decide", "call_id": call, "decision": { "answer": "allow" } });
    let answer = host.ask("3", json!({ "type": "to_agent", "path": ["scribe"], "input": decide }));
    assert_eq!(answer["ok"], true, "{answer}");
    host.event("answer_taken");
    host.event("turn_ended");
    let (result, code) = host.end();
    assert_eq!(code, 0, "{result}");
    assert_eq!(shell.read("a.txt"), "written\n");
    let logs = logs(&shell);
    assert_eq!(steps(&logs[0]), ["spawned scribe", "changed scribe", "ended scribe"]);
    let changed = logs[0].iter().find(|it| it["data"]["event"] == "changed").expect("a change");
    assert_eq!(changed["data"]["changes"][0]["path"], "a.txt");
    // The parent's undo takes the child along.
    let root = logs[0][0]["session_id"].as_str().expect("an id");
    let undone = run(&shell, json!([]), &["resume", root, "/undo"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert!(!shell.workspace().join("a.txt").exists());
}

/// Broken builds: an idle Session does not wake; the report is a message of the user.
#[test]
fn the_end_of_an_agent_that_nobody_waited_for_starts_a_turn_of_its_own() {
    let shell = Shell::new(&[]);
    let script = json!({ "steps": [
        { "calls": [spawn("Take your time", json!({ "wait": false, "name": "slow" }))] },
        { "text": "It is under way." },
        { "of": "Take your time", "text": "The answer is 42.", "delay_ms": 200 },
        { "text": "The agent says 42." },
    ] });
    let mut host = Hosted::start(&shell, &script, &[]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    host.event("turn_ended");
    host.event("turn_ended");
    host.end();
    let log = &logs(&shell)[0];
    let prompts = log.iter().filter(|it| it["type"] == "user_message").count();
    assert_eq!(prompts, 1, "the report is no message of the user");
    assert_eq!(steps(log), ["spawned slow", "ended slow", "reported slow"]);
    let last = log.iter().rev().find(|it| it["type"] == "assistant_message").expect("an answer");
    assert_eq!(last["data"]["text"], "The agent says 42.");
}

/// Broken build: the interrupt stops the call and not the child.
#[test]
fn an_interrupt_stops_the_agents_that_the_turn_was_waiting_for() {
    let shell = Shell::new(&[]);
    let script = json!({ "steps": [
        { "calls": [spawn("Sleep", json!({}))] },
        { "of": "Sleep", "calls": [{ "name": "bash", "args": { "command": "sleep 600" } }] },
    ] });
    let mut host = Hosted::start(&shell, &script, &["--write"]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    let is_asleep = |line: &Value| {
        line["type"] == "agent_changed" && line["data"]["doing"].as_str().is_some_and(|it| it.contains("sleep 600"))
    };
    host.until(0, is_asleep);
    host.ask("2", json!({ "type": "interrupt" }));
    host.event("turn_ended");
    host.end();
    let logs = logs(&shell);
    let end = logs[0].iter().find(|it| it["data"]["event"] == "ended").expect("the end is in the parent's log");
    assert_eq!(end["data"]["status"], "interrupted");
    let position = |kind: &str| logs[0].iter().position(|it| it["type"] == kind);
    assert!(position("subagent_event") < position("turn_ended"));
    let child = logs[1].iter().filter(|it| it["type"] == "turn_ended").count();
    assert_eq!(child, 1);
}

/// Broken builds: a child is offered `spawn_agent`; the limit counts a Turn's agents from zero at each call.
#[test]
fn a_child_starts_no_agents_of_its_own_and_a_role_that_is_unknown_is_named() {
    let shell = Shell::new(&[]);
    let script = json!([
        { "calls": [spawn("Go deeper", json!({})), spawn("x", json!({ "role": "explorr" }))] },
        { "of": "Go deeper", "calls": [spawn("Deeper still", json!({}))] },
        { "of": "Go deeper", "text": "There is no such tool." },
        { "text": "Both failed." },
    ]);
    let ran = run(&shell, script, &["go"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let logs = logs(&shell);
    assert_eq!(logs.len(), 2);
    assert!(results(&logs[1])[0].contains("the tool `spawn_agent` is not offered"), "{:?}", results(&logs[1]));
    assert!(results(&logs[0])[1].contains("there is no role `explorr`"), "{:?}", results(&logs[0]));
}

/// Broken builds: a link that has no end is left open; an end that the child's Log has is not taken over.
#[test]
fn after_a_kill_each_agent_has_one_end_and_can_be_told_to_go_on() {
    let shell = Shell::new(&[]);
    let script = json!({ "steps": [
        { "calls": [
            spawn("Quick one", json!({ "name": "quick" })),
            spawn("Slow one", json!({ "name": "slow" })),
        ] },
        { "of": "Quick one", "text": "quick is done" },
        { "of": "Slow one", "calls": [{ "name": "bash", "args": { "command": "sleep 600" } }] },
    ] });
    let mut host = Hosted::start(&shell, &script, &["--write"]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    let is_asleep = |line: &Value| {
        line["type"] == "agent_changed" && line["data"]["doing"].as_str().is_some_and(|it| it.contains("sleep 600"))
    };
    host.until(0, is_asleep);
    host.until(0, |line| line["type"] == "subagent_event" && line["data"]["event"] == "ended");
    host.child.kill().expect("killed");
    host.child.wait().expect("gone");
    let script = json!([
        { "calls": [{ "name": "tell_agent", "args": { "name": "slow", "text": "wake up", "how": "next" } }] },
        { "calls": [{ "name": "wait_agent", "args": {} }] },
        { "of": "Slow one", "text": "slow is awake" },
        { "after_result": "slow is awake", "text": "Both are done." },
    ]);
    // Agents are no sessions that a user goes on with.
    let ran = run(&shell, script, &["resume", "--last", "and now", "--write"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let logs = logs(&shell);
    assert_eq!(logs.len(), 3, "nobody was started twice");
    let steps = steps(&logs[0]);
    let expected =
        ["spawned quick", "spawned slow", "ended quick", "ended slow", "told slow", "resumed slow", "ended slow"];
    assert_eq!(steps, expected);
    let ends: Vec<&Value> =
        logs[0].iter().filter(|it| it["data"]["event"] == "ended").map(|it| &it["data"]["status"]).collect();
    assert_eq!(ends, ["completed", "detached", "completed"]);
    let results = results(&logs[0]);
    assert!(results[1].contains("agent slow: detached"), "the call that waited has its result: {results:?}");
}

/// Broken builds: the first answer closes every question; an answer goes to the first child that asks.
#[test]
fn questions_of_many_agents_are_each_answered_once() {
    const MANY: usize = 20;
    let shell = Shell::new(&[]);
    shell.configure("");
    let mut steps = vec![
        json!({ "calls": (0..MANY).map(|n| spawn(&format!("Write number {n:02}."), json!({ "name": format!("w{n:02}") }))).collect::<Vec<_>>() }),
    ];
    for n in 0..MANY {
        let of = format!("Write number {n:02}.");
        steps.push(json!({ "of": of, "calls": [write(&format!("{n:02}.txt"))] }));
        steps.push(json!({ "of": of, "text": "Written." }));
    }
    steps.push(json!({ "text": "Done." }));
    let mut host = Hosted::start(&shell, &json!({ "steps": steps }), &[]);
    host.ask("p", json!({ "type": "prompt", "text": "go" }));
    for n in 0..MANY {
        let asked = host.event("approval_requested");
        let path = asked["data"]["agent"]["path"].clone();
        let call = asked["data"]["call_id"].clone();
        // Every other one is refused.
        let decision = if n % 2 == 0 { json!({ "answer": "allow" }) } else { json!({ "answer": "deny" }) };
        let decide = json!({ "type": "decide", "call_id": call, "decision": decision });
        let name = format!("d{n}");
        let answer = host.ask(&name, json!({ "type": "to_agent", "path": path, "input": decide }));
        assert_eq!(answer["ok"], true, "{answer}");
        // The same answer again finds nothing open.
        let again = host.ask(&format!("{name}-again"), json!({ "type": "to_agent", "path": path, "input": decide }));
        assert_eq!(again["ok"], false, "{again}");
    }
    host.event("turn_ended");
    host.end();
    let written = (0..MANY).filter(|n| shell.workspace().join(format!("{n:02}.txt")).exists()).count();
    assert_eq!(written, MANY / 2);
    let decisions: usize =
        logs(&shell)[1..].iter().map(|log| log.iter().filter(|it| it["type"] == "permission_decision").count()).sum();
    assert_eq!(decisions, MANY);
}

/// Broken build: a request is sent without room in the budget of the tree.
#[test]
fn agents_share_one_budget_and_end_incomplete_when_it_is_used_up() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let usage = json!({ "input": 9_000, "output": 100, "cached": 0 });
    let script = json!([
        { "calls": [spawn("Use a lot", json!({ "limits": { "tokens": 20_000 } }))] },
        { "of": "Use a lot", "calls": [read("a.txt")], "usage": usage },
        { "of": "Use a lot", "calls": [read("a.txt")], "usage": usage },
        { "of": "Use a lot", "calls": [read("a.txt")], "usage": usage },
        { "of": "Use a lot", "text": "never asked", "usage": usage },
        { "text": "It had to stop." },
    ]);
    let ran = run(&shell, script, &["go"]);
    assert_eq!(ran.code, 1, "none of its agents completed: {ran:?}");
    let logs = logs(&shell);
    let end = logs[0].iter().find(|it| it["data"]["event"] == "ended").expect("an end");
    assert_eq!(end["data"]["status"], "incomplete");
    assert_eq!(end["data"]["error"]["code"], "BUDGET_REACHED");
    assert_eq!(end["data"]["evidence"]["calls"], 3);
}

/// Broken build: the second worker writes while the first one's command runs.
#[test]
fn two_workers_do_not_change_the_same_file_at_the_same_time() {
    let shell = Shell::new(&[("n.txt", "0\n")]);
    let add = "for i in 1 2 3 4 5 6 7 8 9 10; do n=$(cat n.txt); echo $((n+1)) > n.txt; done";
    let count = json!({ "name": "bash", "args": { "command": add } });
    let mut steps = vec![
        json!({ "calls": [spawn("Count one", json!({})), spawn("Count two", json!({})), spawn("Count three", json!({}))] }),
    ];
    for of in ["Count one", "Count two", "Count three"] {
        steps.extend((0..4).map(|_| json!({ "of": of, "calls": [count] })));
        steps.push(json!({ "of": of, "text": "Counted." }));
    }
    steps.push(json!({ "text": "Done." }));
    let ran = run(&shell, Value::from(steps), &["go", "--write"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(shell.read("n.txt"), "120\n");
    let root = logs(&shell)[0][0]["session_id"].as_str().expect("an id").to_owned();
    let undone = run(&shell, json!([]), &["resume", &root, "/undo"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(shell.read("n.txt"), "0\n", "the undo goes back to the first version");
}

/// Broken builds: the calls of the last answer run; the agent ends without a word; it counts as completed.
#[test]
fn an_agent_at_its_limit_says_once_more_what_it_found() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let steps = json!([
        { "calls": [spawn("Read it all", json!({ "limits": { "rounds": 2 } }))] },
        { "of": "Read it all", "calls": [read("a.txt")] },
        { "of": "Read it all", "calls": [read("a.txt")] },
        { "of": "Read it all", "text": "a.txt:1 says alpha; the rest is unread.", "calls": [write("late.txt")] },
        { "text": "I know half of it." },
    ]);
    let ran = run(&shell, steps, &["go", "--write"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(!shell.workspace().join("late.txt").exists(), "no call is run any more");
    let logs = logs(&shell);
    let end = logs[0].iter().find(|it| it["data"]["event"] == "ended").expect("an end");
    assert_eq!(end["data"]["status"], "incomplete");
    assert_eq!(end["data"]["text"], "a.txt:1 says alpha; the rest is unread.");
    let told = logs[1].iter().find(|it| it["type"] == "context_changed" && it["data"].to_string().contains("limit"));
    assert!(told.is_some(), "it was told: {:?}", logs[1]);
    assert!(results(&logs[1])[2].contains("not run: the agent has reached a limit"), "{:?}", results(&logs[1]));
}
