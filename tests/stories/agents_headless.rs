//! Agents in a run without a terminal: it waits for them, says what became of each, and ends with an exit code for it.

use serde_json::{Value, json};

use super::agents::{logs, run, spawn, steps};
use crate::shell::{Shell, ran};
use crate::wait;

/// A call that starts an agent and does not wait for it.
fn send_off(task: &str, name: &str) -> Value {
    spawn(task, json!({ "name": name, "wait": false }))
}

/// Broken builds: the run ends with its first turn; what was said before the report is the output.
#[test]
fn a_run_waits_for_its_agents_and_answers_with_what_they_report() {
    let shell = Shell::new(&[]);
    let script = json!([
        { "calls": [send_off("Take your time", "slow")] },
        { "text": "It is under way." },
        { "of": "Take your time", "text": "The answer is 42.", "delay_ms": 300 },
        // The report starts a turn, which sends off another one.
        { "text": "It says 42.", "calls": [send_off("Find the question", "slower")] },
        { "text": "Now for the question." },
        { "of": "Find the question", "text": "The question is lost.", "delay_ms": 1500 },
        { "text": "It is 42, and the question is lost." },
    ]);
    let ran = run(&shell, script, &["go"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let result = ran.document();
    assert_eq!(result["output"], "It is 42, and the question is lost.", "{result}");
    let agents = result["agents"].as_array().expect("a list");
    assert_eq!(agents.len(), 2, "{result}");
    for agent in agents {
        assert_eq!(agent["status"], "completed");
        let id = agent["session_id"].as_str().expect("an id");
        assert_eq!(agent["resume_command"], format!("pixir resume {id}"));
    }
    let log = &logs(&shell)[0];
    let told = steps(log);
    assert_eq!(told.iter().filter(|it| it.starts_with("reported")).count(), 2, "{told:?}");
    assert_eq!(log.iter().filter(|it| it["type"] == "user_message").count(), 1, "nobody typed them");
    let last = log.last().expect("a line");
    assert_eq!((&last["type"], &last["data"]["status"]), (&json!("turn_ended"), &json!("completed")));
}

/// Broken builds: an agent that failed is forgotten; one that the model has stopped counts as failed.
#[test]
fn the_exit_code_says_whether_all_some_or_none_of_the_agents_completed() {
    let fails = |of: &str| json!({ "of": of, "error": { "code": "INVALID_RESPONSE", "message": "broken" } });
    let works = |of: &str| json!({ "of": of, "text": "done" });
    let cases = [
        (vec![works("Task A"), works("Task B")], 0, Value::Null),
        (vec![works("Task A"), fails("Task B")], 9, json!("AGENTS_PARTIAL")),
        (vec![fails("Task A"), fails("Task B")], 1, json!("AGENTS_FAILED")),
    ];
    for (ends, code, name) in cases {
        let shell = Shell::new(&[]);
        let mut script = vec![json!({ "calls": [spawn("Task A", json!({})), spawn("Task B", json!({}))] })];
        script.extend(ends);
        script.push(json!({ "text": "That is all." }));
        let ran = run(&shell, Value::from(script), &["go"]);
        assert_eq!(ran.code, code, "{ran:?}");
        let result = ran.document();
        assert_eq!((&result["code"], &result["ok"]), (&name, &json!(code == 0)), "{result}");
        assert_eq!(result["output"], "That is all.", "the answer is there all the same");
        let failed: Vec<&Value> =
            result["agents"].as_array().expect("a list").iter().filter(|it| it["status"] == "failed").collect();
        for agent in failed {
            let next = result["next_actions"].as_array().expect("a list");
            assert!(next.contains(&agent["resume_command"]), "{result}");
        }
    }
    let shell = Shell::new(&[]);
    let script = json!([
        { "calls": [send_off("Sleep", "idler")] },
        { "of": "Sleep", "hang": true },
        { "calls": [{ "name": "tell_agent", "args": { "name": "idler", "how": "stop" } }] },
        { "text": "I did not need it." },
    ]);
    let ran = run(&shell, script, &["go"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.document()["agents"][0]["status"], "interrupted");
}

/// Broken builds: the deadline ends with the first turn; a turn that reports woke begins with a new budget.
#[test]
fn deadline_and_tokens_bound_the_run_with_its_agents() {
    let shell = Shell::new(&[]);
    let script = json!([
        { "calls": [send_off("Never end", "endless")] },
        { "of": "Never end", "hang": true },
        { "text": "It is under way." },
    ]);
    let ran = run(&shell, script, &["go", "--deadline", "2"]);
    assert_eq!(ran.code, 14, "{ran:?}");
    let result = ran.document();
    assert_eq!(result["code"], "DEADLINE_REACHED");
    assert_eq!(result["agents"][0]["status"], "interrupted", "{result}");

    let shell = Shell::new(&[]);
    let much = json!({ "input": 49_950, "output": 100, "cached": 0 });
    let script = json!([
        { "calls": [send_off("Wait a moment", "one")] },
        { "of": "Wait a moment", "text": "done", "delay_ms": 600 },
        { "text": "It is under way.", "usage": much, "delay_ms": 300 },
        { "text": "never asked" },
    ]);
    let ran = run(&shell, script, &["go", "--max-tokens", "50000"]);
    assert_eq!(ran.code, 14, "{ran:?}");
    assert_eq!(ran.document()["code"], "BUDGET_REACHED");
    assert!(!ran.stdout.contains("never asked"), "{ran:?}");
}

/// Broken build: a signal is heard only while a turn runs.
#[test]
fn sigterm_ends_a_run_that_waits_for_its_agents_with_their_ends_in_the_log() {
    let shell = Shell::new(&[]);
    let script = json!({ "steps": [
        { "calls": [send_off("Never end", "endless")] },
        { "of": "Never end", "hang": true },
        { "text": "It is under way." },
    ] });
    let path = shell.aside("script.json", &script.to_string());
    let provider = format!("script:{}", path.display());
    let child = shell.command(["go", "--headless", "--json", "--provider", &provider]).spawn().expect("it starts");
    wait::until("its turn has ended", || {
        shell.logs().len() == 2 && logs(&shell)[0].iter().any(|it| it["type"] == "turn_ended")
    });
    let told = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(told.expect("kill").success());
    let ran = ran(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, 143, "{ran:?}");
    assert_eq!(ran.document()["agents"][0]["status"], "interrupted");
    assert_eq!(steps(&logs(&shell)[0]), ["spawned endless", "ended endless"]);
}
