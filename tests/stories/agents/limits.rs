//! What bounds agents: their time, the tokens that they share, what they know, and what a kill leaves unread.

use serde_json::{Value, json};

use super::{logs, read, results, run, spawn, steps, write};
use crate::hosted::Hosted;
use crate::server::{Dialect, Reply, Server, call, text};
use crate::shell::Shell;

fn bash(command: &str) -> Value {
    json!({ "name": "bash", "args": { "command": command } })
}

fn end_of(log: &[Value]) -> &Value {
    let end = log.iter().rfind(|it| it["data"]["event"] == "ended").expect("an end");
    &end["data"]
}

/// Broken builds: the Turn is interrupted without a last answer; the command goes on; the agent counts as completed.
#[test]
fn an_agent_whose_time_is_up_says_once_more_what_it_found() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let steps = json!([
        { "calls": [spawn("Take your time", json!({ "limits": { "seconds": 1 } }))] },
        { "of": "Take your time", "calls": [read("a.txt")] },
        { "of": "Take your time", "calls": [bash("touch begun; sleep 600; touch late")] },
        { "of": "Take your time", "text": "a.txt:1 says alpha; the command did not end.", "calls": [write("late.txt")] },
        { "text": "I know half of it." },
    ]);
    let ran = run(&shell, steps, &["go", "--write"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let logs = logs(&shell);
    let end = end_of(&logs[0]);
    assert_eq!((&end["status"], &end["error"]["code"]), (&json!("timed_out"), &json!("TIMEOUT")), "{end}");
    assert_eq!(end["text"], "a.txt:1 says alpha; the command did not end.");
    assert!(shell.workspace().join("begun").exists() && !shell.workspace().join("late").exists());
    assert!(!shell.workspace().join("late.txt").exists(), "no call is run any more");
    let ended: Vec<&Value> = logs[1].iter().filter(|it| it["type"] == "turn_ended").collect();
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["data"]["status"], "incomplete");
    // The command that was cut off has a result, so that the last request is whole.
    let cut_off = results(&logs[1])[1];
    assert!(cut_off.contains("cut off") || cut_off.contains("interrupted"), "{cut_off}");
    // The parent reads it as the result of its call.
    assert!(results(&logs[0])[0].contains("timed_out") && results(&logs[0])[0].contains("the command did not end"));
}

/// Broken builds: the agents end although the user gave them more; each agent asks; after a refusal they are asked again.
#[test]
fn the_user_is_told_when_agents_run_low_and_asked_when_their_tokens_are_used_up() {
    for (answer, expected) in [("yes: as many tokens again", "completed"), ("no: they end here", "incomplete")] {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        // One request nearly uses the tokens up.
        let usage = json!({ "input": 6_000, "output": 100, "cached": 0 });
        let calls = ["one", "two"].map(|name| spawn(&format!("Look at {name}"), json!({ "name": name })));
        let mut steps = vec![json!({ "calls": calls })];
        for of in ["Look at one", "Look at two"] {
            steps.push(json!({ "of": of, "calls": [read("a.txt")], "usage": usage }));
            steps.push(json!({ "of": of, "text": "It says alpha.", "usage": usage }));
        }
        steps.push(json!({ "text": "So." }));
        let flags = ["--config", "agents.tree_tokens=7000"];
        let mut host = Hosted::start(&shell, &json!({ "steps": steps }), &flags);
        host.ask("p", json!({ "type": "prompt", "text": "go" }));
        for name in ["one", "two"] {
            let waits = |it: &Value| {
                it["type"] == "agent_changed" && it["data"]["path"][0] == name && it["data"]["status"] == "waiting"
            };
            host.until(0, waits);
        }
        let waits_for = |host: &Hosted, name: &str| {
            let mut states = host.seen.iter().rev().filter(|it| it["type"] == "agent_changed");
            let now = states.find(|it| it["data"]["path"][0] == name).expect("a state")["data"].clone();
            (now["waiting_for"].as_str().unwrap_or_default().to_owned(), now["doing"].to_string())
        };
        host.until(0, |it| it["type"] == "question_asked");
        host.until(0, |it| it["type"] == "agent_changed" && it["data"]["waiting_for"] == "user");
        let mut both = ["one", "two"].map(|name| waits_for(&host, name));
        both.sort();
        assert_eq!(
            both.each_ref().map(|it| it.0.as_str()),
            ["budget", "user"],
            "one asks, and one waits for the answer"
        );
        assert!(both[0].1.contains("waits for more tokens: ") && both[0].1.contains(" of 7000 are used"), "{both:?}");
        let count = |host: &Hosted, kind: &str| host.seen.iter().filter(|it| it["type"] == kind).count();
        assert_eq!(count(&host, "question_asked"), 1, "both wait, and the user is asked once");
        let low = host.seen.iter().position(|it| it["data"]["code"] == "AGENT_TOKENS_LOW").expect("a notice");
        assert!(
            Some(low) < host.seen.iter().position(|it| it["type"] == "question_asked"),
            "told before it is used up"
        );
        let mut at = 0;
        loop {
            let next = host.until(at, |it| it["type"] == "question_asked" || it["type"] == "turn_ended");
            at = next + 1;
            let asked = host.seen[next].clone();
            if asked["type"] == "turn_ended" {
                break;
            }
            let question = asked["data"]["questions"][0]["question"].as_str().expect("a question");
            assert!(question.contains("000 tokens. May they go on?"), "{asked}");
            let answers = json!({ "type": "answer", "call_id": asked["data"]["call_id"], "answers": [[answer]] });
            let to = json!({ "type": "to_agent", "path": asked["data"]["agent"]["path"], "input": answers });
            let taken = host.ask(&format!("a{next}"), to);
            assert_eq!(taken["ok"], true, "{taken}");
        }
        assert_eq!(count(&host, "answer_taken"), count(&host, "question_asked"));
        if expected == "incomplete" {
            assert_eq!(count(&host, "question_asked"), 1, "a refusal holds for all");
        }
        host.end();
        let logs = logs(&shell);
        let ends = logs[0].iter().filter(|it| it["data"]["event"] == "ended");
        let statuses: Vec<&Value> = ends.map(|it| &it["data"]["status"]).collect();
        assert_eq!(statuses, [expected, expected]);
        let is_raised = logs.iter().flatten().any(|it| it.to_string().contains("lets the agents of this turn use"));
        assert_eq!(is_raised, expected == "completed", "the Log says who let them spend more");
    }
    // Where no user can answer, agents end with what they know.
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let usage = json!({ "input": 18_000, "output": 100, "cached": 0 });
    let steps = json!([
        { "calls": [spawn("Look at one", json!({}))] },
        { "of": "Look at one", "calls": [read("a.txt")], "usage": usage },
        { "text": "So." },
    ]);
    let ran = run(&shell, steps, &["go", "--config", "agents.tree_tokens=19000"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(end_of(&logs(&shell)[0])["error"]["code"], "BUDGET_REACHED");
}

/// Broken builds: the child begins without the conversation; its Log has a call without a result; what the parent changed counts
/// as the child's, and waits for the user.
#[test]
fn an_agent_can_begin_with_the_conversation_of_its_parent() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let forked = json!({ "context": "fork", "name": "heir", "isolation": "copy" });
    let steps = json!([
        { "calls": [read("a.txt"), write("mine.txt")] },
        { "text": "I have read it.", "calls": [read("a.txt"), spawn("Go on from here", forked)] },
        { "of": "Go on from here", "calls": [write("heirs.txt")] },
        { "of": "Go on from here", "text": "Written." },
        { "text": "Done." },
    ]);
    let ran = run(&shell, steps, &["remember the word 4711", "--mode", "auto"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let logs = logs(&shell);
    let child = &logs[1];
    let messages: Vec<&Value> =
        child.iter().filter(|it| it["type"] == "user_message").map(|it| &it["data"]["text"]).collect();
    assert_eq!(messages, ["remember the word 4711", "Go on from here"]);
    let calls: Vec<&Value> =
        child.iter().filter(|it| it["type"] == "tool_call").map(|it| &it["data"]["name"]).collect();
    assert_eq!(calls, ["read", "write", "write"], "the answer that starts it is not in it");
    assert!(results(child)[0].contains("alpha"), "{:?}", results(child));
    let end = end_of(&logs[0]);
    assert_eq!(end["evidence"]["calls"], 1, "{end}");
    assert_eq!(end["evidence"]["changed"], json!(["heirs.txt"]));
    let adopted = logs[0].iter().find(|it| it["data"]["event"] == "adopted").expect("its file is adopted");
    let paths: Vec<&Value> =
        adopted["data"]["changes"].as_array().expect("files").iter().map(|it| &it["path"]).collect();
    assert_eq!(paths, ["heirs.txt"]);
    // What its request has is what its Log says, to the byte.
    let id = child[0]["session_id"].as_str().expect("an id");
    let request = shell.run(["inspect", id, "--json"]);
    assert_eq!(request.code, 0, "{request:?}");
    assert!(
        request.stdout.contains("remember the word 4711") && !request.stdout.contains("I have read it."),
        "{request:?}"
    );
    // It is an agent, and no fork that the user sees.
    let tree = shell.run(["sessions", "list", "--json"]).document();
    assert_eq!(tree["sessions"].as_array().map(Vec::len), Some(1), "{tree}");
    // It goes on with both.
    let root = logs[0][0]["session_id"].as_str().expect("an id").to_owned();
    let steps = json!([{ "of": "Go on from here", "text": "I still know it." }]);
    let again = run(&shell, steps, &["resume", &format!("{root}/heir"), "and now"]);
    assert_eq!(again.code, 0, "{again:?}");
}

/// Broken build: an end that was recorded before the kill is not read by the model after it.
#[test]
fn the_end_of_an_agent_that_was_not_read_before_a_kill_is_read_after_it() {
    let shell = Shell::new(&[]);
    let script = json!({ "steps": [
        { "calls": [spawn("Find it", json!({ "wait": false, "name": "scout" }))] },
        { "calls": [bash("sleep 600")] },
        { "of": "Find it", "text": "It is in the cellar." },
    ] });
    let mut host = Hosted::start(&shell, &script, &["--write"]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    host.until(0, |line| line["type"] == "subagent_event" && line["data"]["event"] == "ended");
    host.until(0, |line| line["type"] == "tool_call" && line["data"]["name"] == "bash");
    host.child.kill().expect("killed");
    host.child.wait().expect("gone");
    let ran = run(&shell, json!([{ "text": "The cellar." }]), &["resume", "--last", "where?"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let log = logs(&shell).remove(0);
    assert_eq!(steps(&log), ["spawned scout", "ended scout", "reported scout"]);
    let reported = log.iter().find(|it| it["data"]["event"] == "reported").expect("a report");
    assert!(reported["data"]["text"].as_str().is_some_and(|it| it.contains("It is in the cellar.")));
    // It stands behind the result of the call that the kill cut off, and is told once.
    let again = run(&shell, json!([{ "text": "Yes." }]), &["resume", "--last", "sure?"]);
    assert_eq!(again.code, 0, "{again:?}");
    let log = logs(&shell).remove(0);
    assert_eq!(steps(&log).iter().filter(|it| it.starts_with("reported")).count(), 1);
    let of = |kind: &str| log.iter().position(|it| it["type"] == kind);
    let result = log.iter().rposition(|it| it["type"] == "tool_result");
    let told = log.iter().position(|it| it["data"]["event"] == "reported");
    assert!(of("tool_call") < result && result < told, "{result:?} {told:?}");
}

/// Broken builds: a wait has no limit, or keeps none; a wait that is over stops the agents.
#[test]
fn a_wait_for_agents_ends_at_its_limit_and_leaves_them_running() {
    let shell = Shell::new(&[]);
    let script = json!([
        { "calls": [spawn("Never end", json!({ "name": "endless", "wait": false }))] },
        { "of": "Never end", "hang": true },
        { "calls": [{ "name": "wait_agent", "args": { "names": ["endless"], "seconds": 1 } }] },
        { "calls": [{ "name": "tell_agent", "args": { "name": "endless", "how": "stop" } }] },
        { "text": "I did not wait for it." },
    ]);
    // A wait without a limit ends the run, and fails the story.
    let ran = run(&shell, script, &["go", "--deadline", "20"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let root = &logs(&shell)[0];
    let waited: Vec<&Value> = root.iter().filter(|it| it["type"] == "tool_result").collect();
    let told = waited[1]["data"]["output"].as_str().expect("words");
    assert!(told.contains("endless (running"), "it says who is not done: {told}");
    let took = waited[1]["data"]["duration_ms"].as_u64().expect("a time");
    assert!((900..10_000).contains(&took), "{took} ms");
}

/// Broken builds: the end comes as the user's words, comes twice, or is only in the log.
#[test]
fn the_model_reads_the_end_of_an_agent_once_and_not_as_words_of_the_user() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![
        call("c1", "spawn_agent", json!({ "task": "Look around", "name": "scout", "wait": false })),
        text("There is a cellar."),
        text("It is under way."),
        text("The scout is back."),
        text("And nothing else."),
    ]);
    let flags = server.flags(Dialect::Responses);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let ran = shell.run(["go", "--headless", "--json"].into_iter().chain(flags));
    assert_eq!(ran.code, 0, "{ran:?}");
    let bodies = server.bodies();
    let is_root = |body: &&Value| body["input"].to_string().contains("\"text\":\"go\"");
    let last = bodies.iter().rfind(is_root).expect("a request of the root");
    let items = last["input"].as_array().expect("a list");
    let told: Vec<&Value> = items.iter().filter(|it| it.to_string().contains("agent scout: completed")).collect();
    assert_eq!(told.len(), 1, "{last:#}");
    let words = told[0]["content"][0]["text"].as_str().expect("a text");
    assert!(words.starts_with("<agent_report note=\"from pixir, not from the user\">\n"), "{words}");
}

/// Broken builds: an agent whose request the server refuses for its rate fails; the others send on meanwhile and fail too.
#[test]
fn agents_whose_server_asks_them_to_slow_down_all_complete() {
    let shell = Shell::new(&[]);
    let calls: Vec<(String, String, Value)> =
        (0..4).map(|n| (format!("c{n}"), "spawn_agent".to_owned(), json!({ "task": format!("Look {n}") }))).collect();
    let slow = || Reply::Refuse {
        status: 429,
        headers: "retry-after-ms: 50\r\n".into(),
        body: json!({ "error": { "type": "rate_limit_error", "message": "slow down" } }).to_string(),
    };
    let mut replies = vec![Reply::Answer { text: String::new(), calls }, slow(), slow()];
    replies.extend((0..5).map(|n| text(&format!("answer {n}"))));
    let server = Server::start(replies);
    let flags = server.flags(Dialect::Chat);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let ran = shell.run(["go", "--headless", "--json"].into_iter().chain(flags));
    assert_eq!(ran.code, 0, "{ran:?}");
    let agents = ran.document()["agents"].as_array().expect("a list").clone();
    assert_eq!(agents.len(), 4);
    assert!(agents.iter().all(|it| it["status"] == "completed"), "{agents:?}");
}
