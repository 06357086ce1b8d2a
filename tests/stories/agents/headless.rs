//! Agents in a run without a terminal: it waits for them, says what became of each, and ends with an exit code for it.

use serde_json::{Value, json};

use super::{logs, run, spawn, steps};
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

/// Broken builds: only the run's own calls count; files that wait for a decision are passed over; the code of an error is that
/// of its kind; what an agent changed is not among what is told of it.
#[test]
fn the_result_of_a_run_tells_what_its_agents_changed_and_what_waits_for_a_decision() {
    let shell = Shell::new(&[("list.txt", "1\n2\n")]);
    let put = |path: &str, content: &str| json!({ "name": "write", "args": { "path": path, "content": content } });
    let copied = |task: &str, name: &str| spawn(task, json!({ "name": name, "isolation": "copy" }));
    let script = json!([
        { "calls": [spawn("Share", json!({ "name": "sharer" })), copied("In English", "english")] },
        { "of": "Share", "calls": [put("shared.txt", "first\n")] },
        { "of": "Share", "calls": [put("shared.txt", "second\nline\n")] },
        { "of": "Share", "text": "Shared." },
        { "of": "In English", "calls": [put("list.txt", "one\n2\n"), put("english.txt", "own\n")] },
        { "of": "In English", "text": "Done." },
        { "calls": [copied("In German", "german")] },
        { "of": "In German", "calls": [{ "name": "bash", "args": { "command": "printf 'eins\\n2\\n' > list.txt" } }] },
        { "of": "In German", "calls": [put("list.txt", "eins\n2\n")] },
        { "of": "In German", "text": "Fertig." },
        { "text": "All done." },
    ]);
    let ran = run(&shell, script, &["go", "--mode", "auto"]);
    assert_eq!(ran.code, 0, "one after the other, so everything fits: {ran:?}");
    let result = ran.document();
    let changed = |of: &Value| -> Vec<String> {
        let files = of.as_array().expect("a list");
        files.iter().map(|it| format!("{} +{} -{}", it["path"], it["added"], it["removed"]).replace('"', "")).collect()
    };
    assert_eq!(
        changed(&result["files_changed"]),
        ["english.txt +1 -0", "list.txt +1 -1", "shared.txt +2 -0"],
        "{result}"
    );
    let agent = |result: &Value, name: &str| -> Value {
        let all = result["agents"].as_array().expect("a list");
        all.iter().find(|it| it["name"] == name).expect("the agent").clone()
    };
    assert_eq!(changed(&agent(&result, "sharer")["changes"]), ["shared.txt +2 -0"], "what both of its calls come to");
    let english = agent(&result, "english");
    assert_eq!(changed(&english["adoption"]["adopted"]), ["english.txt +1 -0", "list.txt +1 -1"], "{english}");
    assert_eq!((&english["waiting"], &english["next_actions"]), (&json!([]), &json!([])), "{english}");
    let handle = english["handle"].as_str().expect("a path");
    assert_eq!(std::fs::read_to_string(handle).expect("a file"), "Done.");
    let root = &logs(&shell)[0];
    let ended =
        root.iter().find(|it| it["data"]["event"] == "ended" && it["data"]["name"] == "sharer").expect("its end");
    assert_eq!(changed(&ended["data"]["changes"]), ["shared.txt +2 -0"], "{ended}");

    let shell = Shell::new(&[("list.txt", "1\n2\n")]);
    let script = json!([
        { "calls": [copied("In English", "english"), copied("In German", "german")] },
        { "of": "In English", "calls": [put("list.txt", "one\n2\n")] },
        { "of": "In English", "text": "Done." },
        { "of": "In German", "calls": [put("list.txt", "eins\n2\n")] },
        { "of": "In German", "text": "Fertig." },
        { "text": "One waits." },
    ]);
    let ran = run(&shell, script, &["go", "--mode", "auto"]);
    assert_eq!(ran.code, 13, "{ran:?}");
    let result = ran.document();
    assert_eq!((&result["ok"], &result["code"]), (&json!(false), &json!("INPUT_REQUIRED")), "{result}");
    let waiting: Vec<&Value> =
        result["agents"].as_array().expect("a list").iter().filter(|it| it["waiting"] != json!([])).collect();
    let [late] = waiting.as_slice() else { panic!("{result}") };
    assert_eq!(late["waiting"], json!(["list.txt"]), "{late}");
    let adopt = format!(
        "pixir agents adopt {} {}",
        result["session_id"].as_str().expect("an id"),
        late["name"].as_str().expect("a name")
    );
    assert!(result["next_actions"].as_array().expect("a list").contains(&json!(adopt)), "{result}");
    assert_eq!(late["next_actions"], json!([adopt]));

    let shell = Shell::new(&[]);
    let script = json!([
        { "calls": [spawn("Review", json!({ "role": "reviewer", "name": "critic" }))] },
        { "of": "Review", "text": "All is well." },
        { "of": "Review", "text": "As I said." },
        { "text": "It gave no report." },
    ]);
    let ran = run(&shell, script, &["go"]);
    let critic = agent(&ran.document(), "critic");
    assert_eq!(critic["error"]["code"], "RESULT_MISSING", "{critic}");
}

/// Broken builds: a run without a terminal is left alone; its agents are stopped and it is not told.
#[test]
fn the_agents_of_a_run_without_a_terminal_are_stopped_from_another_one() {
    let shell = Shell::new(&[]);
    let script = json!({ "steps": [
        { "calls": [spawn("Never end", json!({ "name": "endless" }))] },
        { "of": "Never end", "hang": true },
    ] });
    let path = shell.aside("script.json", &script.to_string());
    let provider = format!("script:{}", path.display());
    let child = shell.command(["go", "--headless", "--json", "--provider", &provider]).spawn().expect("it starts");
    wait::until("its agent has begun", || {
        shell.logs().len() == 2 && logs(&shell)[1].iter().any(|it| it["type"] == "user_message")
    });
    let planned = shell.run(["agents", "stop", "last", "--dry-run", "--json"]).document();
    assert_eq!(planned["told_to_stop"], json!(["endless"]), "{planned}");
    let stopped = shell.run(["agents", "stop", "last", "--json"]);
    assert_eq!((stopped.code, &stopped.document()["told_to_stop"]), (0, &json!(["endless"])), "{stopped:?}");
    let ran = ran(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, 143, "{ran:?}");
    assert_eq!(ran.document()["agents"][0]["status"], "interrupted");
}

/// Broken build: `inspect` names no agents.
#[test]
fn inspect_names_the_agents_of_a_session_and_what_they_took() {
    let shell = Shell::new(&[]);
    let script = json!([
        { "calls": [spawn("Look", json!({ "role": "explorer", "name": "scout" }))] },
        { "of": "Look", "text": "Nothing.", "usage": { "input": 700, "output": 50, "cached": 0 } },
        { "text": "That is all." },
    ]);
    assert_eq!(run(&shell, script, &["go"]).code, 0);
    let document = shell.run(["inspect", "last", "--json"]).document();
    let scout = &document["agents"][0];
    assert_eq!(
        (&scout["name"], &scout["role"], &scout["status"]),
        (&json!("scout"), &json!("explorer"), &json!("completed"))
    );
    assert_eq!(scout["session_id"], logs(&shell)[1][0]["session_id"]);
    let plain = shell.run(["inspect", "last"]).stdout;
    let line = plain.lines().find(|line| line.starts_with("scout")).expect("its line");
    assert!(line.contains("explorer") && line.contains("completed") && line.contains("750"), "{line}");
}
