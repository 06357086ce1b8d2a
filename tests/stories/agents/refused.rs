//! Work that an agent was refused, or did not come to, is not done work: no result is better than what happened.

use serde_json::{Value, json};

use super::{logs, results, run, spawn};
use crate::shell::{Ran, Shell};
use crate::stories::mcp::Scripted;
use crate::stories::workflows::typed;

/// An agent whose call is refused although its Turn completes, and how its run must end.
struct Refused {
    about: &'static str,
    /// What the call that starts the agent says besides its task.
    more: Value,
    call: Value,
    flags: &'static [&'static str],
    code: i32,
    by: &'static str,
    /// What the first next action has.
    next: &'static str,
}

fn write() -> Value {
    json!({ "name": "write", "args": { "path": "made.txt", "content": "made\n" } })
}

fn bash(command: &str) -> Value {
    json!({ "name": "bash", "args": { "command": command } })
}

fn refusals() -> Vec<Refused> {
    let it = |about, more, call, flags, code, by, next| Refused { about, more, call, flags, code, by, next };
    let write_flag = " --write";
    vec![
        it("a write, without --write", json!({}), write(), &[], 12, "mode", write_flag),
        it("a command, without --write", json!({}), bash("touch made.txt"), &[], 12, "mode", write_flag),
        it("a file outside, without --write", json!({}), bash("cat /etc/hostname"), &[], 12, "mode", write_flag),
        it("an agent that is not waited for", json!({ "wait": false }), write(), &[], 12, "mode", write_flag),
        it("an agent in a copy", json!({ "isolation": "copy" }), write(), &[], 12, "mode", write_flag),
        it("an agent in a copy that is thrown away", json!({ "role": "tester" }), write(), &[], 12, "mode", write_flag),
        it("a role that reads", json!({ "role": "explorer" }), write(), &["--write"], 12, "role", "pixir resume"),
        it(
            "a role that reads, by a command",
            json!({ "role": "explorer" }),
            bash("touch made.txt"),
            &["--write"],
            12,
            "role",
            "pixir resume",
        ),
        it(
            "a question that no user answers",
            json!({}),
            bash("touch made.txt"),
            &["--mode", "ask"],
            13,
            "no_asker",
            " --allow 'bash(touch made.txt)'",
        ),
        it("a file, in a mode that asks", json!({}), write(), &["--mode", "ask"], 13, "no_asker", " --allow 'files()'"),
        it("a rule of the user", json!({}), bash("touch made.txt"), &["--write"], 6, "rule", "pixir permissions list"),
        it(
            "a tool of a server",
            json!({}),
            json!({ "name": "test__echo", "args": { "text": "hi" } }),
            &[],
            12,
            "mode",
            write_flag,
        ),
    ]
}

/// Broken builds: only the calls of the run itself count; the agent is completed; the run names no command that goes on; the
/// first agent that is refused hides those of the others.
#[test]
fn a_run_whose_agent_was_refused_is_not_done() {
    for Refused { about, mut more, call, flags, code, by, next } in refusals() {
        let shell = Shell::new(&[]);
        if by == "rule" {
            assert_eq!(shell.run(["permissions", "add", "bash(touch *)", "--deny"]).code, 0);
        }
        if call["name"] == "test__echo" {
            let scripted = Scripted::new(&shell);
            let (program, journal) = (scripted.program.display().to_string(), scripted.journal_flag());
            let added = shell.run(["mcp", "add", "test", "--", "python3", &program, &journal, "tools=echo"]);
            assert_eq!(added.code, 0, "{about}: {added:?}");
        }
        more["name"] = json!("one");
        let script = json!([
            { "calls": [spawn("Do it", more)] },
            { "of": "Do it", "calls": [call] },
            { "of": "Do it", "text": "It is done." },
            { "text": "All done." },
            { "text": "All done." },
        ]);
        let ran = run(&shell, script, &[&["go"], flags].concat());
        let result = ran.document();
        assert_eq!((ran.code, &result["ok"]), (code, &json!(false)), "{about}: {result}");
        let one = &result["agents"][0];
        assert_eq!((&one["status"], &one["text"]), (&json!("held"), &json!("It is done.")), "{about}: {result}");
        let denial = &result["denials"][0];
        assert_eq!((&denial["agent"], &denial["by"]), (&json!("one"), &json!(by)), "{about}: {result}");
        assert!(denial["reason"].as_str().is_some_and(|it| !it.is_empty()), "{about}: {result}");
        let first = result["next_actions"][0].as_str().unwrap_or_default();
        assert!(first.contains(next), "{about}: {first}");
        assert!(!shell.workspace().join("made.txt").exists(), "{about}");
        let told = results(&logs(&shell)[0]).join("\n");
        let is_read = told.contains("held after") || one["evidence"]["denials"] == 1;
        assert!(is_read, "{about}: the model that started it reads it: {told}");
    }
}

/// Broken build: what permits the call is named with placeholders, or for another call.
#[test]
fn what_a_refused_run_names_first_does_the_work() {
    for (call, flags) in
        [(write(), &[][..]), (bash("touch made.txt"), &[]), (bash("touch made.txt"), &["--mode", "ask"])]
    {
        let shell = Shell::new(&[]);
        let script = json!([
            { "calls": [spawn("Do it", json!({ "name": "one" }))] },
            { "of": "Do it", "calls": [call] },
            { "of": "Do it", "text": "It is done." },
            { "text": "All done." },
        ]);
        let ran = run(&shell, script, &[&["go"], flags].concat());
        assert_ne!(ran.code, 0, "{ran:?}");
        let next = ran.document()["next_actions"][0].as_str().expect("a command").to_owned();
        let again = typed(&shell, &next);
        assert_eq!(again.code, 0, "{next}: {again:?}");
        assert!(shell.workspace().join("made.txt").exists(), "{next}");
    }
}

/// Broken builds: an agent below an agent is refused, and nothing above it says so; one that fails there is forgotten.
#[test]
fn what_an_agent_below_an_agent_did_not_do_reaches_the_run() {
    let nested = |end: Value| {
        json!([
            { "calls": [spawn("Task one", json!({ "name": "one" }))] },
            { "of": "Task one", "calls": [spawn("Task two", json!({ "name": "two" }))] },
            end[0],
            end[1],
            { "of": "Task one", "text": "One is done." },
            { "text": "All done." },
        ])
    };
    let refused = json!([{ "of": "Task two", "calls": [write()] }, { "of": "Task two", "text": "Two is done." }]);
    let fault = json!({ "of": "Task two", "error": { "code": "INVALID_RESPONSE", "message": "broken" } });
    let fails = json!([fault, { "of": "Task two", "text": "never" }]);
    let go = |script: Value| {
        let shell = Shell::new(&[]);
        run(&shell, script, &["go", "--config", "agents.depth=2"])
    };
    let ran = go(nested(refused));
    let result = ran.document();
    assert_eq!((ran.code, &result["agents"][0]["status"]), (12, &json!("held")), "{result}");
    assert_eq!(result["denials"][0]["agent"], "one/two", "{result}");
    let ran = go(nested(fails));
    let result = ran.document();
    assert_eq!((ran.code, &result["code"]), (1, &json!("AGENTS_FAILED")), "{result}");
    let one = &result["agents"][0];
    assert_eq!((&one["status"], &one["error"]["code"]), (&json!("failed"), &json!("AGENTS_FAILED")), "{result}");
    assert!(one["error"]["message"].as_str().is_some_and(|it| it.contains("two (failed)")), "{result}");
}

/// An agent that does not come to its answer, and how its run must end.
///
/// Broken builds: what an agent did not come to ends as a success; an agent that failed is forgotten once it is told to stop.
#[test]
fn no_end_of_an_agent_makes_a_run_better_than_it_is() {
    let of = |step: Value| -> Value {
        let mut step = step;
        step["of"] = json!("Do it");
        step
    };
    let fault = |code: &str| of(json!({ "error": { "code": code, "message": "broken" } }));
    let looks = || of(json!({ "calls": [{ "name": "find", "args": { "pattern": "*" } }] }));
    let much = json!({ "input": 40_000, "output": 10_000, "cached": 0 });
    /// A name, more arguments of the call, the answers of the agent and of others, flags, and the status.
    type Case<'a> = (&'a str, Value, Vec<Value>, Vec<Value>, &'a [&'a str], &'a str);
    let cases: Vec<Case<'_>> = vec![
        ("the server refuses", json!({}), vec![fault("PROVIDER_HTTP_ERROR")], vec![], &[], "failed"),
        ("the server is down", json!({}), vec![fault("PROVIDER_UNAVAILABLE")], vec![], &["--patience", "0"], "failed"),
        ("too many requests", json!({}), vec![fault("RATE_LIMITED")], vec![], &["--patience", "0"], "failed"),
        ("no network", json!({}), vec![fault("NETWORK")], vec![], &["--patience", "0"], "failed"),
        ("a broken answer", json!({}), vec![fault("INVALID_RESPONSE")], vec![], &[], "failed"),
        (
            "rounds",
            json!({ "limits": { "rounds": 1 } }),
            vec![looks(), of(json!({ "text": "So far." }))],
            vec![],
            &[],
            "incomplete",
        ),
        (
            "tokens",
            json!({ "limits": { "tokens": 20_000 } }),
            vec![
                of(json!({ "calls": [{ "name": "find", "args": { "pattern": "*" } }], "usage": much })),
                of(json!({ "text": "So far." })),
            ],
            vec![],
            &[],
            "incomplete",
        ),
        (
            "no report",
            json!({ "role": "reviewer" }),
            vec![of(json!({ "text": "Fine." })), of(json!({ "text": "Fine." }))],
            vec![],
            &[],
            "incomplete",
        ),
        (
            "no answer",
            json!({}),
            vec![of(json!({ "text": "" })), of(json!({ "text": "" })), of(json!({ "text": "" }))],
            vec![],
            &[],
            "incomplete",
        ),
        (
            "failed, and told to stop",
            json!({}),
            vec![fault("INVALID_RESPONSE")],
            vec![json!({ "calls": [{ "name": "tell_agent", "args": { "name": "one", "how": "stop" } }] })],
            &[],
            "failed",
        ),
    ];
    for (about, mut more, own, then, flags, status) in cases {
        let shell = Shell::new(&[]);
        more["name"] = json!("one");
        let first = json!({ "calls": [spawn("Do it", more)] });
        let last = json!({ "text": "All done." });
        let script: Vec<Value> = [first].into_iter().chain(own).chain(then).chain([last]).collect();
        let ran = run(&shell, Value::from(script), &[&["go"], flags].concat());
        let result = ran.document();
        assert_eq!((ran.code, &result["code"]), (1, &json!("AGENTS_FAILED")), "{about}: {result}");
        assert_eq!(
            (&result["ok"], &result["agents"][0]["status"]),
            (&json!(false), &json!(status)),
            "{about}: {result}"
        );
    }
}

/// Broken builds: the workflow that a model runs is held, and the run is a success, or names a command that is held again.
#[test]
fn a_workflow_of_the_model_that_is_held_holds_the_run() {
    let shell = Shell::new(&[]);
    let graph = json!({ "version": 1, "name": "flow", "steps": [{ "id": "make", "argv": ["touch", "made.txt"] }] });
    let script = json!([
        { "calls": [{ "name": "run_workflow", "args": { "graph": graph, "wait": true } }] },
        { "text": "All done." },
    ]);
    let ran = run(&shell, script, &["go", "--toolset", "typed"]);
    let result = ran.document();
    assert_eq!((ran.code, &result["agents"][0]["status"]), (12, &json!("held")), "{result}");
    let next = result["next_actions"].as_array().expect("a list").iter().filter_map(Value::as_str);
    let resume = next.into_iter().find(|it| it.starts_with("pixir workflow resume")).expect("it goes on").to_owned();
    let again: Ran = typed(&shell, &resume);
    assert_eq!(again.code, 0, "{resume}: {again:?}");
    assert!(shell.workspace().join("made.txt").exists(), "{resume}");
}
