//! Ends of agents: an agent without an answer, one that never began, ends that come together, and what the model reads of them.

use std::fs;

use serde_json::{Value, json};

use super::{logs, read, results, run, spawn, steps};
use crate::hosted::Hosted;
use crate::server::{Dialect, Server, call, text};
use crate::shell::{Shell, entries};

fn tool(name: &str, args: Value) -> Value {
    json!({ "name": name, "args": args })
}

fn of(log: &[Value], kind: &str) -> Vec<Value> {
    log.iter().filter(|it| it["type"] == kind).map(|it| it["data"].clone()).collect()
}

fn end_of(log: &[Value]) -> Value {
    log.iter().rfind(|it| it["data"]["event"] == "ended").expect("an end")["data"].clone()
}

/// Broken builds: each end starts a Turn of its own; all but the last end of a Turn leave an interrupted Turn behind; with
/// `agents.wake` off a Turn begins.
#[test]
fn ends_that_come_together_start_one_turn() {
    let begin = |name: &str| spawn(&format!("Be {name}"), json!({ "name": name, "wait": false }));
    let script = json!({ "steps": [
        { "calls": [begin("one"), begin("two"), begin("three")] },
        { "of": "Be one", "text": "1.", "delay_ms": 300 },
        { "of": "Be two", "text": "2.", "delay_ms": 300 },
        { "of": "Be three", "text": "3.", "delay_ms": 300 },
        { "text": "Under way." },
        { "text": "All three." },
    ] });
    let shell = Shell::new(&[]);
    let mut host = Hosted::start(&shell, &script, &[]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    host.event("turn_ended");
    host.until(0, |it| it["type"] == "assistant_message" && it["data"]["text"] == "All three.");
    host.event("turn_ended");
    host.end();
    let root = logs(&shell).remove(0);
    let ends: Vec<Value> = of(&root, "turn_ended").iter().map(|it| it["status"].clone()).collect();
    assert_eq!(ends, ["completed", "completed"], "{root:#?}");
    let reported: Vec<&Value> =
        root.iter().filter(|it| it["data"]["event"] == "reported").map(|it| &it["turn"]).collect();
    assert_eq!(reported, [2, 2, 2], "{root:#?}");

    let shell = Shell::new(&[]);
    let mut host = Hosted::start(&shell, &script, &["--config", "agents.wake=false"]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    for name in ["one", "two", "three"] {
        host.until(0, |it| it["data"]["event"] == "ended" && it["data"]["name"] == name);
    }
    host.event("turn_ended");
    assert_eq!(host.ask("2", json!({ "type": "get", "what": "now" }))["now"]["status"], "idle");
    host.ask("3", json!({ "type": "prompt", "text": "and" }));
    host.event("turn_ended");
    host.end();
    let root = logs(&shell).remove(0);
    assert_eq!(of(&root, "user_message").len(), 2);
    assert_eq!(of(&root, "turn_ended").len(), 2, "the ends are read with the user's next message: {root:#?}");
}

/// Broken builds: an agent that says nothing has completed; two agents have the same name.
#[test]
fn an_agent_that_says_nothing_has_not_completed_and_no_two_have_one_name() {
    let shell = Shell::new(&[]);
    let mute = spawn("Say nothing", json!({ "name": "mute" }));
    let script = json!([
        { "calls": [mute, mute] },
        { "of": "Say nothing", "text": "" },
        { "text": "So." },
    ]);
    let ran = run(&shell, script, &["go"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let root = logs(&shell).remove(0);
    let end = end_of(&root);
    assert_eq!((&end["status"], &end["error"]["code"]), (&json!("incomplete"), &json!("EMPTY_ANSWER")), "{end}");
    let read = results(&root);
    assert!(read.iter().any(|it| it.contains("an agent named `mute` already exists")), "{read:?}");
    assert_eq!(steps(&root), ["spawned mute", "ended mute"]);
}

/// Broken builds: an agent that was killed before it began cannot be told to begin; it begins without its task; it is started
/// unasked.
#[test]
fn an_agent_that_was_killed_before_it_began_begins_with_its_task_when_it_is_told_to() {
    // The kill comes before the agent has a log, and before it was told its task.
    for lines in [0, 1] {
        let shell = Shell::new(&[]);
        let script = json!([
            { "calls": [spawn("Look around", json!({ "role": "explorer", "name": "scout" }))] },
            { "of": "Look around", "text": "There is a cellar." },
            { "text": "So." },
        ]);
        assert_eq!(run(&shell, script, &["go"]).code, 0);
        for path in shell.logs() {
            let text = fs::read_to_string(&path).expect("a log");
            let is_root = !entries(&path)[0]["data"]["parent"].is_object();
            let linked = |line: &&str| is_root && !line.contains(r#""event":"ended""#);
            let kept: Vec<&str> =
                if is_root { text.lines().take_while(linked).collect() } else { text.lines().take(lines).collect() };
            match kept.as_slice() {
                [] => fs::remove_file(&path).expect("rm"),
                kept => fs::write(&path, kept.join("\n") + "\n").expect("write"),
            }
        }
        let ran = run(&shell, json!([{ "text": "It is known." }]), &["resume", "--last", "what now"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let end = end_of(&logs(&shell)[0]);
        assert_eq!((&end["status"], &end["error"]["code"]), (&json!("failed"), &json!("NEVER_STARTED")), "{end}");
        let script = json!([
            { "calls": [tool("tell_agent", json!({ "name": "scout", "text": "mind the stairs" }))] },
            { "calls": [tool("wait_agent", json!({}))] },
            { "of": "Look around", "text": "There is a cellar, below the stairs." },
            { "text": "So." },
        ]);
        let ran = run(&shell, script, &["resume", "--last", "let it begin"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let all = logs(&shell);
        let end = end_of(&all[0]);
        assert_eq!(end["text"], "There is a cellar, below the stairs.", "{end}");
        let told: Vec<Value> = of(&all[1], "user_message").iter().map(|it| it["text"].clone()).collect();
        assert_eq!(told, ["Look around", "mind the stairs"]);
        assert_eq!((all.len(), all[1][0]["data"]["mode"].as_str()), (2, Some("read-only")), "its role binds it");
    }
}

/// Broken builds: a long answer comes whole, or without its end; the file has only what the model reads.
#[test]
fn a_long_answer_of_one_agent_is_cut_to_4_000_bytes_and_all_of_it_is_in_a_file() {
    let shell = Shell::new(&[]);
    let long = format!("It begins here. {}It ends here.", "On and on. ".repeat(900));
    let script = json!([
        { "calls": [spawn("Write much", json!({ "name": "writer" }))] },
        { "of": "Write much", "text": long },
        { "text": "So." },
    ]);
    assert_eq!(run(&shell, script, &["go"]).code, 0);
    let root = logs(&shell).remove(0);
    let end = end_of(&root);
    let (words, file) = (end["text"].as_str().expect("words"), end["handle"].as_str().expect("a path"));
    assert!(
        words.len() <= 4_000 && words.starts_with("It begins here.") && words.ends_with("It ends here."),
        "{words}"
    );
    assert!(words.contains(&format!("bytes cut, all of it in {file}]")), "{words}");
    assert_eq!(fs::read_to_string(file).expect("a file"), long);
    assert!(results(&root)[0].len() < 4_600, "{}", results(&root)[0].len());
}

/// Broken build: the transcript of an agent comes whole into the window of its parent.
#[test]
fn what_an_agent_did_is_read_in_pages_of_16_000_bytes() {
    let shell = Shell::new(&[("a.txt", &"alpha beta gamma\n".repeat(400))]);
    let mut script = vec![json!({ "calls": [spawn("Read on", json!({ "role": "explorer", "name": "scout" }))] })];
    script.extend((0..20).map(|_| json!({ "of": "Read on", "calls": [read("a.txt")] })));
    script.push(json!({ "of": "Read on", "text": "Read." }));
    script.push(json!({ "calls": [tool("show_agent", json!({ "name": "scout" }))] }));
    script.push(json!({ "calls": [tool("show_agent", json!({ "name": "scout", "from": 16_000 }))] }));
    script.push(json!({ "text": "So." }));
    let ran = run(&shell, Value::from(script), &["go"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let root = logs(&shell).remove(0);
    let pages = &results(&root)[1..];
    let lengths: Vec<usize> = pages.iter().map(|it| it.len()).collect();
    assert!(lengths.iter().all(|it| (16_000..16_200).contains(it)), "{lengths:?}");
    assert!(pages[0].contains("more bytes: call again with from=16000]") && pages[1].contains("from=32000]"));
    assert!(!pages[1].contains("told: Read on"), "the second goes on where the first ends: {}", pages[1]);
}

/// Broken build: the report joins a request that is full already.
#[test]
fn the_report_of_an_agent_is_read_after_a_compaction_where_it_would_not_fit() {
    let shell = Shell::new(&[]);
    // Half of a window of 32,768 tokens is filled by 17,000 words.
    shell.configure("[compaction]\nthreshold = 0.5\nsummary = \"pixir\"\n[models.\"custom/m\"]\nwindow = 32768\n");
    // The answers of the session and of its agent come in any order.
    let long = || text(&format!("{} The port is 8421.", "word ".repeat(14_000)));
    let server = Server::start(vec![
        text("A short answer."),
        call("c1", "spawn_agent", json!({ "task": "Look around", "name": "scout", "wait": false })),
        long(),
        long(),
        text("The scout is back."),
    ]);
    let flags = server.flags(Dialect::Chat);
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(["--headless", "--json"]).collect();
    assert_eq!(shell.run(["first request"].into_iter().chain(flags.iter().copied())).code, 0);
    let ran = shell.run(["resume", "--last", "second request"].into_iter().chain(flags));
    assert_eq!((ran.code, ran.document()["output"].as_str()), (0, Some("The scout is back.")), "{ran:?}");
    let root = logs(&shell).remove(0);
    let at = |fits: &dyn Fn(&Value) -> bool| root.iter().position(fits).expect("an entry");
    let reported = at(&|it| it["data"]["event"] == "reported");
    let compacted = at(&|it| it["type"] == "history_compaction");
    let answered = at(&|it| it["data"]["text"] == "The scout is back.");
    assert!(reported < compacted && compacted < answered, "{reported} {compacted} {answered}");
    let last = server.bodies().pop().expect("a request").to_string();
    assert!(last.contains("agent scout: completed"), "{last}");
}
