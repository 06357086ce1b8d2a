//! Each prompt of an editor has one response, with its own reason, whatever happens to it.

use std::process::Command;

use serde_json::{Value, json};

use super::{opened, runs, script};
use crate::editor::{Editor, able};
use crate::lines::scripted;
use crate::server::{Act, Dialect, Gate, HEAD, Reply, Server, text};
use crate::shell::{Shell, entries};

/// The position of the response to this request among the lines that pixir wrote.
fn at(editor: &Editor, id: i64) -> usize {
    let is_it = |line: &Value| line["id"] == id && line.get("method").is_none();
    let all: Vec<usize> = (0..editor.seen.len()).filter(|at| is_it(&editor.seen[*at])).collect();
    assert_eq!(all.len(), 1, "one response: {:#?}", editor.seen);
    all[0]
}

/// The position of the first chunk of the model's text that holds this.
fn told(editor: &Editor, text: &str) -> usize {
    let holds = |line: &Value| line["params"]["update"]["content"]["text"].as_str().is_some_and(|it| it.contains(text));
    editor.seen.iter().position(holds).unwrap_or_else(|| panic!("`{text}` was not told: {:#?}", editor.seen))
}

fn steer(editor: &mut Editor, session: &str, text: &str) -> i64 {
    let blocks = json!([{ "type": "text", "text": text }]);
    let meta = json!({ "pixir": { "delivery": "steer" } });
    editor.request("session/prompt", json!({ "sessionId": session, "prompt": blocks, "_meta": meta }))
}

fn input(editor: &mut Editor, session: &str, input: Value) -> Value {
    editor.ask("_pixir/input", json!({ "sessionId": session, "input": input }))
}

/// What pixir is under this limit of the shell.
fn under(shell: &Shell, limit: &str, flags: &[String]) -> Editor {
    let mut command = Command::new("bash");
    let line = format!("ulimit {limit}; exec \"$0\" \"$@\"");
    let given = shell.command(std::iter::once("acp").chain(flags.iter().map(String::as_str)));
    command.args(["-c", &line]).arg(given.get_program()).args(given.get_args());
    for (name, value) in given.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(shell.workspace()).stdout(std::process::Stdio::piped());
    Editor::of(command)
}

/// Broken build: a response goes to the oldest prompt with the same text.
#[test]
fn a_prompt_with_the_text_of_another_ends_with_its_own_turn() {
    let shell = Shell::new(&[]);
    let steps = [
        runs("while [ ! -e go ]; do sleep 0.02; done"),
        json!({ "text": "First." }),
        json!({ "text": "Second." }),
        json!({ "text": "Third." }),
    ];
    let (mut editor, session) = opened(&shell, &steps, &["--mode", "auto"]);
    let first = editor.prompt(&session, "go on");
    editor.until(0, |line| line["params"]["update"]["status"] == "in_progress");
    let queued = input(&mut editor, &session, json!({ "type": "follow_up", "text": "go on" }));
    assert_eq!(queued["result"]["accepted"]["queued"]["position"], 1, "{queued}");
    let last = editor.prompt(&session, "go on");
    editor.ask("session/set_mode", json!({ "sessionId": session, "modeId": "auto" }));
    shell.write("go", "");
    for id in [first, last] {
        assert_eq!(editor.response(id)["result"]["stopReason"], "end_turn");
    }
    assert!(at(&editor, first) > told(&editor, "First."), "{:#?}", editor.seen);
    assert!(at(&editor, last) > told(&editor, "Third."), "{:#?}", editor.seen);
    assert_eq!(editor.close(), 0);
}

/// The Log takes the first of five prompts with the same text, and then no more.
///
/// Broken build: only the first message that the Session refuses is answered; those behind it wait for ever.
#[test]
fn prompts_with_one_text_that_cannot_be_recorded_have_one_response_each() {
    let shell = Shell::new(&[]);
    let waits = runs("while [ ! -e go ]; do sleep 0.02; done");
    let steps = [waits, json!({ "text": "First." }), json!({ "text": "Second." }), json!({ "text": "Third." })];
    let mut editor = under(&shell, "-f 100", &scripted(&shell, &script(&steps), &["--mode", "auto"]));
    editor.initialize(able());
    let session = editor.session(&shell.workspace());
    let first = editor.prompt(&session, "begin");
    editor.until(0, |line| line["params"]["update"]["status"] == "in_progress");
    let long = "again and again ".repeat(3_800);
    let same: Vec<i64> = (0..5).map(|_| editor.prompt(&session, &long)).collect();
    editor.ask("session/set_mode", json!({ "sessionId": session, "modeId": "auto" }));
    shell.write("go", "");
    assert_eq!(editor.response(first)["result"]["stopReason"], "end_turn");
    let [ran, refused @ ..] = same.as_slice() else { unreachable!("five") };
    assert_eq!(editor.response(*ran)["result"]["stopReason"], "end_turn");
    for id in refused {
        let answer = editor.response(*id);
        assert_eq!(answer["error"]["data"]["code"], "LOG_WRITE_FAILED", "{answer}");
        at(&editor, *id);
    }
    assert_eq!(editor.say(&session, "a short one"), "end_turn");
    assert_eq!(editor.close(), 0);
}

/// An answer with this text that ends when the gate opens.
pub(super) fn held(text: &str, gate: &Gate) -> Vec<Act> {
    let event = |choice: Value| format!("data: {}\n\n", json!({ "choices": [choice] })).into_bytes();
    vec![
        Act::Send(HEAD.as_bytes().to_vec()),
        Act::Send(event(json!({ "index": 0, "delta": { "content": text } }))),
        Act::Until(gate.clone()),
        Act::Send(event(json!({ "index": 0, "delta": {}, "finish_reason": "stop" }))),
        Act::Send(b"data: [DONE]\n\n".to_vec()),
    ]
}

/// Broken build: a Turn whose end cannot be recorded leaves its prompt without a response.
#[test]
fn a_turn_that_cannot_be_recorded_has_an_error_as_its_response() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text(&"word ".repeat(20_000)), text("Short.")]);
    let mut editor = under(&shell, "-f 64", &server.flags(Dialect::Chat));
    editor.initialize(able());
    let session = editor.session(&shell.workspace());
    let first = editor.prompt(&session, "much");
    let answer = editor.response(first);
    assert_eq!(answer["error"]["data"]["code"], "LOG_WRITE_FAILED", "{answer}");
    assert_eq!(editor.say(&session, "less"), "end_turn");
    assert_eq!(editor.close(), 0);
}

/// Broken builds: a steer that came too late to join its Turn is answered with the end of that Turn, or never.
#[test]
fn a_steer_that_comes_too_late_is_a_prompt_of_its_own() {
    let shell = Shell::new(&[]);
    let gate = Gate::default();
    let server = Server::start(vec![Reply::Raw(held("First.", &gate)), text("Second."), text("Third.")]);
    let flags = server.flags(Dialect::Chat);
    let mut editor = Editor::on(&shell, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    editor.initialize(able());
    let session = editor.session(&shell.workspace());
    let first = editor.prompt(&session, "begin");
    editor.until(0, |line| line["params"]["update"]["content"]["text"] == "First.");
    let late = steer(&mut editor, &session, "rather this");
    editor.ask("session/set_mode", json!({ "sessionId": session, "modeId": "ask" }));
    gate.open();
    for id in [first, late] {
        assert_eq!(editor.response(id)["result"]["stopReason"], "end_turn");
    }
    assert!(at(&editor, late) > told(&editor, "Second."), "{:#?}", editor.seen);
    // Nothing runs any more.
    let idle = steer(&mut editor, &session, "and this");
    assert_eq!(editor.response(idle)["result"]["stopReason"], "end_turn");
    assert!(at(&editor, idle) > told(&editor, "Third."), "{:#?}", editor.seen);
    let log = entries(&shell.logs()[0]);
    let turns: Vec<&Value> = log.iter().filter(|it| it["type"] == "user_message").map(|it| &it["turn"]).collect();
    assert_eq!(turns, [1, 2, 3]);
    assert_eq!(editor.close(), 0);
}

/// Broken build: messages that are taken back leave their prompts without a response.
#[test]
fn what_a_host_takes_back_from_the_queue_is_cancelled() {
    let shell = Shell::new(&[]);
    let (mut editor, session) = opened(&shell, &[json!({ "text": "Wait.", "hang": true })], &[]);
    let first = editor.prompt(&session, "wait");
    editor.until(0, |line| line["params"]["update"]["content"]["text"] == "Wait.");
    let waiting = [editor.prompt(&session, "and then"), steer(&mut editor, &session, "be quick")];
    assert_eq!(input(&mut editor, &session, json!({ "type": "dequeue" }))["result"], json!({ "accepted": {} }));
    for id in waiting {
        assert_eq!(editor.response(id)["result"]["stopReason"], "cancelled");
    }
    let is_first = |line: &Value| line["id"] == first && line.get("method").is_none();
    assert!(!editor.seen.iter().any(is_first), "the turn goes on");
    editor.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(editor.response(first)["result"]["stopReason"], "cancelled");
    assert_eq!(editor.close(), 0);
}

/// Broken build: a cancel reaches the Session after a prompt that the client sent behind it.
#[test]
fn a_prompt_behind_a_cancel_is_not_cancelled() {
    let shell = Shell::new(&[]);
    let steps: Vec<Value> = (0..20)
        .flat_map(|n| [json!({ "text": "Wait.", "hang": true }), json!({ "text": format!("Answer {n}.") })])
        .collect();
    let (mut editor, session) = opened(&shell, &steps, &[]);
    for n in 0..20 {
        let from = editor.seen.len();
        let first = editor.prompt(&session, "begin");
        editor.until(from, |line| line["params"]["update"]["content"]["text"] == "Wait.");
        editor.notify("session/cancel", json!({ "sessionId": session }));
        let next = editor.prompt(&session, "and now this");
        assert_eq!(editor.response(first)["result"]["stopReason"], "cancelled");
        assert_eq!(editor.response(next)["result"]["stopReason"], "end_turn", "round {n}");
    }
    assert_eq!(editor.close(), 0);
}

/// While files are restored, the Session holds back what comes, but no interrupt.
///
/// Broken build: the interrupt comes before the message that was held back, whose Turn then goes on.
#[test]
fn a_cancel_ends_a_prompt_that_an_undo_held_back() {
    let shell = Shell::new(&[]);
    let many = runs("for i in $(seq 1000); do echo $i > f$i; done");
    let hangs = json!({ "text": "Wait.", "hang": true });
    let (mut editor, session) = opened(&shell, &[many, json!({ "text": "Done." }), hangs], &["--mode", "auto"]);
    assert_eq!(editor.say(&session, "write them"), "end_turn");
    let undo = editor.request("_pixir/input", json!({ "sessionId": session, "input": { "type": "undo" } }));
    let held = editor.prompt(&session, "meanwhile");
    editor.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(editor.response(held)["result"]["stopReason"], "cancelled");
    let answer = editor.response(undo);
    assert!(answer["error"].is_object(), "{answer}");
    assert_eq!(editor.close(), 0);
}

/// What happens to a prompt is not lost while the conversation is told again.
///
/// Broken build: a load passes over what became of messages that waited.
#[test]
fn loads_lose_no_response() {
    let shell = Shell::new(&[]);
    let steps: Vec<Value> = (0..40).map(|n| json!({ "text": format!("Answer {n}.") })).collect();
    let (mut editor, session) = opened(&shell, &steps, &[]);
    let load = json!({ "sessionId": session, "cwd": shell.workspace(), "mcpServers": [] });
    let mut all = Vec::new();
    for n in 0..20 {
        all.push(editor.prompt(&session, "the same"));
        let loaded = editor.request("session/load", load.clone());
        if n % 5 == 4 {
            input(&mut editor, &session, json!({ "type": "dequeue" }));
        }
        let answer = editor.response(loaded);
        assert!(answer["result"]["modes"].is_object(), "{answer}");
    }
    for id in all {
        let answer = editor.response(id);
        let reason = answer["result"]["stopReason"].as_str().unwrap_or_default();
        assert!(["end_turn", "cancelled"].contains(&reason), "{answer}");
        at(&editor, id);
    }
    assert_eq!(editor.close(), 0);
}
