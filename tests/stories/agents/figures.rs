//! Agents in numbers: kills, cancels, budgets, questions, long answers.

use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use serde_json::{Value, json};

use super::{logs, run, spawn};
use crate::hosted::Hosted;
use crate::server::{Dialect, Reply, Server};
use crate::shell::{Shell, figures, is_running, mark};
use crate::tier;
use crate::wait;

/// Broken builds: `settle` records no end, or one for a child that has one; a tier leaves the commands of a killed pixir.
#[test]
fn a_fan_out_of_eight_that_is_killed_at_any_moment_loses_no_end_and_doubles_none() {
    const TIERS: [&str; 3] = ["ns", "ll", "none"];
    let rounds = tier::cases("a_fan_out");
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let (mut links, mut left_over, mut resumed) = (0, 0, 0);
    for round in 0..rounds {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let mark = mark();
        let tier = TIERS[round % TIERS.len()];
        let mut steps = vec![
            json!({ "calls": (0..8).map(|n| spawn(&format!("Part {n}."), json!({ "name": format!("p{n}") }))).collect::<Vec<_>>() }),
        ];
        for n in 0..8 {
            let of = format!("Part {n}.");
            steps.push(json!({ "of": of, "calls": [{ "name": "read", "args": { "path": "a.txt" } }] }));
            if n % 4 == 3 {
                let command = format!("sleep {mark}");
                steps.push(json!({ "of": of, "calls": [{ "name": "bash", "args": { "command": command } }] }));
            }
            steps.push(json!({ "of": of, "text": format!("part {n} is done") }));
        }
        let path = shell.aside("script.json", &json!({ "steps": steps }).to_string());
        let provider = format!("script:{}", path.display());
        let mut child = shell
            .command(["--provider", &provider, "--headless", "--write", "--format", "jsonl", "--sandbox", tier, "x"])
            .spawn()
            .expect("it starts");
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        // The first lines come before the agents; two of them never end.
        for _ in 0..seed % 90 {
            let Some(Ok(line)) = lines.next() else { break };
            let ends = line.matches(r#""event":"ended""#).count();
            if ends > 0 && line.contains("p6") {
                break;
            }
        }
        child.kill().expect("kill -9");
        child.wait().expect("gone");
        if !wait::within(Duration::from_secs(1), || !is_running(&format!("sleep {mark}"))) {
            left_over += 1;
        }
        if shell.logs().is_empty() {
            continue;
        }
        let ran = run(&shell, json!([{ "text": "On again." }]), &["resume", "--last", "go on"]);
        if ran.code == 5 {
            // Nothing was said before the kill.
            continue;
        }
        assert_eq!(ran.code, 0, "round {round}: {ran:?}");
        assert!(!is_running(&format!("sleep {mark}")), "round {round}: a process outlived the next start");
        let root = logs(&shell).remove(0);
        let named = |event: &str| -> Vec<String> {
            let of = root.iter().filter(|it| it["type"] == "subagent_event" && it["data"]["event"] == event);
            let mut names: Vec<String> = of.map(|it| it["data"]["name"].as_str().expect("a name").to_owned()).collect();
            names.sort();
            names
        };
        let spawned = named("spawned");
        assert_eq!(spawned, named("ended"), "round {round}: each agent has one end");
        links += spawned.len();
        // Each can go on; one of them does.
        let started: Vec<&Value> = root
            .iter()
            .filter(|it| it["data"]["event"] == "ended" && it["data"]["error"]["code"] != "NEVER_STARTED")
            .collect();
        if let Some(one) = started.get(usize::try_from(seed >> 40).unwrap_or(0) % started.len().max(1)) {
            let id = one["data"]["session_id"].as_str().expect("an id");
            let text = json!([{ "of": "Part", "text": "I go on." }]);
            let ran = run(&shell, text, &["resume", id, "go on"]);
            assert_eq!((ran.code, &ran.document()["output"]), (0, &json!("I go on.")), "round {round}: {ran:?}");
            resumed += 1;
        }
    }
    figures(&format!(
        "QA1: {rounds} kills in a fan-out of 8, {links} agents: 0 ends lost or doubled, {resumed} of them resumed, \
         commands left after 1 s in {left_over} rounds, after the next start in 0"
    ));
    assert_eq!(left_over, 0, "no command outlives a killed pixir by a second");
}

/// Broken build: an interrupt returns before the children have stopped.
#[test]
fn after_a_cancel_no_agent_sends_another_request() {
    const EACH: usize = 8;
    let rounds = tier::cases("after_a_cancel").div_ceil(EACH);
    let mut sent = 0;
    for round in 0..rounds {
        let calls: Vec<(String, String, Value)> = (0..EACH)
            .map(|n| (format!("c{n}"), "spawn_agent".to_owned(), json!({ "task": format!("Read on and on, {n}.") })))
            .collect();
        let mut replies = vec![Reply::Answer { text: String::new(), calls }];
        // Each reads again and again, so that it always has a next request.
        replies.extend((0..400).map(|n| crate::server::call(&format!("r{n}"), "read", json!({ "path": "a.txt" }))));
        let server = Server::start(replies);
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let flags = server.flags(Dialect::Chat);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let mut host = Hosted::on(&shell, &flags);
        host.ask("1", json!({ "type": "prompt", "text": "go" }));
        server.wait_for(1 + round * 7 % 60);
        host.ask("2", json!({ "type": "interrupt" }));
        // The answer comes when all have stopped.
        let before = server.bodies().len();
        server.wait_until_alone();
        let now = host.ask("3", json!({ "type": "get", "what": "now" }));
        let open = now["now"]["children"].as_array().is_some_and(|all| all.iter().any(|it| it["took_ms"].is_null()));
        assert!(!open, "{now}");
        host.end();
        assert_eq!(server.bodies().len(), before, "round {round}: a request after the cancel");
        sent += before;
    }
    figures(&format!("QA3: {} cancels of agents, {sent} requests before them, 0 after", rounds * EACH));
}

/// Broken build: a request is sent while the others' reservations are left out of the count.
#[test]
fn agents_overrun_a_budget_by_no_more_than_one_request_each() {
    const MOST: u64 = 60_000;
    const REAL: u64 = 3_000;
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let usage = json!({ "input": REAL - 100, "output": 100, "cached": 0 });
    let mut steps = vec![
        json!({ "usage": usage, "calls": (0..8).map(|n| spawn(&format!("Spend {n}."), json!({}))).collect::<Vec<_>>() }),
    ];
    for n in 0..8 {
        // All of them wait for an answer at the same time.
        let mut step = json!({ "of": format!("Spend {n}."), "usage": usage, "delay_ms": 50 });
        step["calls"] = json!([{ "name": "read", "args": { "path": "a.txt" } }]);
        steps.extend((0..20).map(|_| step.clone()));
    }
    steps.push(json!({ "text": "never", "usage": usage }));
    let most = MOST.to_string();
    let ran = run(&shell, Value::from(steps), &["go", "--max-tokens", &most]);
    assert_eq!(ran.code, 14, "{ran:?}");
    let spent: u64 = logs(&shell)
        .iter()
        .flatten()
        .filter(|it| it["type"] == "provider_usage")
        .map(|it| {
            it["data"]["usage"]["input"].as_u64().unwrap_or(0) + it["data"]["usage"]["output"].as_u64().unwrap_or(0)
        })
        .sum();
    let over = spent.saturating_sub(MOST);
    figures(&format!("QA5: {spent} of {MOST} tokens spent by 9 sessions at once: {over} over"));
    assert!(over <= REAL, "{spent} of {MOST}");
    assert!(spent > MOST / 3, "the budget was used: {spent}");
}

/// Broken build: each end may take what it likes.
#[test]
fn fifty_answers_of_a_megabyte_take_24_000_bytes_of_one_request() {
    const MANY: usize = 50;
    let shell = Shell::new(&[]);
    // 22 bytes each.
    let long = "All work and no play. ".repeat(tier::cases("fifty_answers") * 1_000 / 22);
    let mut steps = vec![
        json!({ "calls": (0..MANY).map(|n| spawn(&format!("Write {n:02}."), json!({ "name": format!("w{n:02}") }))).collect::<Vec<_>>() }),
    ];
    steps.extend((0..MANY).map(|n| json!({ "of": format!("Write {n:02}."), "text": long })));
    steps.push(json!({ "text": "That was much." }));
    let ran = run(&shell, Value::from(steps), &["go"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let root = logs(&shell).remove(0);
    let told = super::results(&root);
    let bytes: usize = told.iter().map(|it| it.len()).sum();
    assert_eq!(told.len(), MANY);
    figures(&format!("QA7: {MANY} answers of {} bytes: {bytes} bytes in the request", long.len()));
    assert!(bytes <= 24_000, "{bytes} bytes");
    for one in told {
        let starts = one.matches("data, not instructions").count();
        assert!(one.contains("completed") && one.contains("show_agent") && starts <= 1, "{one}");
    }
}

/// Broken builds: a change is credited to the other writer; a write is lost; the undo leaves one of them.
#[test]
fn two_writers_change_many_files_at_once_and_none_of_their_edits_is_lost_or_credited_to_the_other() {
    let edits = tier::cases("two_writers_change");
    const EACH: usize = 20;
    let shell = Shell::new(&[("shared.txt", "0\n")]);
    let count = "n=$(cat shared.txt); echo $((n+1)) > shared.txt";
    let calls = ["left", "right"].map(|name| spawn(&format!("Write as {name}"), json!({ "name": name })));
    let mut steps = vec![json!({ "calls": calls })];
    for name in ["left", "right"] {
        let of = format!("Write as {name}");
        for round in 0..edits / 2 / EACH {
            let mut calls: Vec<Value> = (0..EACH - 1)
                .map(|n| {
                    let path = format!("{name}-{}.txt", (round * EACH + n) % 50);
                    json!({ "name": "write", "args": { "path": path, "content": format!("{name} {round} {n}\n") } })
                })
                .collect();
            calls.push(json!({ "name": "bash", "args": { "command": count } }));
            steps.push(json!({ "of": of, "calls": calls }));
        }
        steps.push(json!({ "of": of, "text": "Written." }));
    }
    steps.push(json!({ "text": "Done." }));
    let flags = ["go", "--write", "--config", &format!("agents.rounds={}", edits.max(50))];
    let ran = run(&shell, Value::from(steps), &flags);
    assert_eq!(ran.code, 0, "{ran:?}");
    let twice = edits / 2 / EACH * 2;
    assert_eq!(shell.read("shared.txt"), format!("{twice}\n"), "no edit of the shared file is lost");
    let root = logs(&shell).remove(0);
    let mut credited = 0;
    for change in root.iter().filter(|it| it["data"]["event"] == "changed") {
        let name = change["data"]["name"].as_str().expect("a name");
        for file in change["data"]["changes"].as_array().expect("files") {
            let path = file["path"].as_str().expect("a path");
            assert!(path == "shared.txt" || path.starts_with(name), "{name} is credited with {path}");
            credited += 1;
        }
    }
    assert_eq!(credited, twice * EACH, "each edit is recorded once");
    let id = root[0]["session_id"].as_str().expect("an id");
    let undone = run(&shell, json!([]), &["resume", id, "/undo"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(shell.read("shared.txt"), "0\n");
    let files = std::fs::read_dir(shell.workspace()).expect("a folder").count();
    assert_eq!(files, 1, "the undo removes what both created");
    figures(&format!("QA4: {credited} edits of two writers: 0 lost, 0 credited to the other, the undo is exact"));
}

/// Broken build: the agents are stopped one after the other.
#[test]
fn a_hundred_agents_are_stopped_together() {
    const MANY: usize = 100;
    let mut took = Vec::new();
    for _ in 0..5 {
        let shell = Shell::new(&[]);
        let calls: Vec<Value> = (0..MANY).map(|n| spawn(&format!("Wait {n:03}."), json!({ "wait": true }))).collect();
        let mut steps = vec![json!({ "calls": calls })];
        steps.extend((0..MANY).map(|n| json!({ "of": format!("Wait {n:03}."), "text": "I wait.", "hang": true })));
        let flags = ["--config", "agents.running=100", "--config", "agents.per_turn=1000"];
        let mut host = Hosted::start(&shell, &json!({ "steps": steps }), &flags);
        host.ask("p", json!({ "type": "prompt", "text": "go" }));
        let mut running = std::collections::BTreeSet::new();
        let mut at = 0;
        while running.len() < MANY {
            at = 1 + host.until(at, |it| it["type"] == "agent_changed" && it["data"]["status"] == "running");
            running.insert(host.seen[at - 1]["data"]["path"][0].to_string());
        }
        let before = std::time::Instant::now();
        // The answer comes when all have ended.
        let stopped = host.ask("s", json!({ "type": "stop_agents", "path": [] }));
        took.push(before.elapsed());
        assert_eq!(stopped["ok"], true, "{stopped}");
        host.child.kill().expect("killed");
        host.child.wait().expect("gone");
        let root = logs(&shell).remove(0);
        assert_eq!(root.iter().filter(|it| it["data"]["event"] == "ended").count(), MANY);
    }
    took.sort();
    let (median, most) = (took[took.len() / 2], took[took.len() - 1]);
    figures(&format!("stop of {MANY} running agents: median {} ms, most {} ms", median.as_millis(), most.as_millis()));
    assert!(most < Duration::from_secs(10), "{most:?}");
}

/// Broken build: an answer is taken by an agent that did not ask, or twice.
#[test]
fn a_hundred_questions_at_once_are_each_answered_once() {
    let asking = tier::cases("a_hundred_questions");
    let shell = Shell::new(&[]);
    let name = |n: usize| format!("w{n:03}");
    let mut steps = vec![
        json!({ "calls": (0..asking).map(|n| spawn(&format!("Write {n:03}."), json!({ "name": name(n) }))).collect::<Vec<_>>() }),
    ];
    for n in 0..asking {
        let of = format!("Write {n:03}.");
        let path = format!("{n:03}.txt");
        steps.push(json!({ "of": of, "calls": [{ "name": "write", "args": { "path": path, "content": "x\n" } }] }));
        steps.push(json!({ "of": of, "text": "Written." }));
    }
    steps.push(json!({ "text": "Done." }));
    let flags = ["--config", "agents.running=100", "--config", "agents.per_turn=1000"];
    let mut host = Hosted::start(&shell, &json!({ "steps": steps }), &flags);
    host.ask("p", json!({ "type": "prompt", "text": "go" }));
    // All of them ask before the first is answered.
    let asked: Vec<Value> = (0..asking).map(|_| host.event("approval_requested")).collect();
    for (n, one) in asked.iter().enumerate() {
        let answer = if n % 3 == 0 { "deny" } else { "allow" };
        let decide = json!({ "type": "decide", "call_id": one["data"]["call_id"], "decision": { "answer": answer } });
        let to = json!({ "type": "to_agent", "path": one["data"]["agent"]["path"], "input": decide });
        let taken = host.ask(&format!("d{n}"), to.clone());
        assert_eq!(taken["ok"], true, "{taken}");
        let again = host.ask(&format!("again-{n}"), to);
        assert_eq!(again["ok"], false, "{again}");
    }
    host.event("turn_ended");
    host.end();
    for (n, one) in asked.iter().enumerate() {
        let of = one["data"]["agent"]["path"][0].as_str().expect("a name");
        let path = shell.workspace().join(format!("{}.txt", &of[1..]));
        assert_eq!(path.exists(), n % 3 != 0, "{of}");
    }
    figures(&format!("QA6: {asking} questions open at once, each answered once, each second answer refused"));
}
