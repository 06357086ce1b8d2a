//! pixir inside an editor: `pixir acp`.

mod bounds; // clients that ask for more than pixir holds
mod clients; // clients of others: SDKs and acpx
mod faults; // faults of pixir itself, and what an editor leaves behind
mod races; // an editor at its worst
mod requests; // what an editor asks of pixir
mod responses; // each prompt has one response, whatever happens to it
mod slash; // slash commands without a screen
mod transcripts; // what an editor and pixir say, line by line
mod updates; // what an editor is shown

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::editor::{Editor, able};
use crate::server::{Act, Dialect, Gate, HEAD, Reply, Server, text};
use crate::shell::{Shell, entries, is_running, mark};

pub(super) fn writes(path: &str, content: &str) -> Value {
    json!({ "calls": [{ "name": "write", "args": { "path": path, "content": content } }] })
}

pub(super) fn runs(command: &str) -> Value {
    json!({ "calls": [{ "name": "bash", "args": { "command": command } }] })
}

pub(super) fn script(steps: &[Value]) -> Value {
    json!({ "steps": steps })
}

/// An editor with one Session in the workspace.
pub(super) fn opened(shell: &Shell, steps: &[Value], args: &[&str]) -> (Editor, String) {
    let mut editor = Editor::start(shell, &script(steps), args);
    editor.initialize(able());
    let session = editor.session(&shell.workspace());
    (editor, session)
}

/// Broken build: a `println!` in the binary reaches the stream.
#[test]
fn a_prompt_of_an_editor_is_answered_over_http_and_ends_its_turn() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Hello from the server.")]);
    let flags = server.flags(Dialect::Chat);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut editor = Editor::on(&shell, &flags);
    let agent = editor.initialize(able());
    assert_eq!((&agent["protocolVersion"], &agent["agentCapabilities"]["loadSession"]), (&json!(1), &json!(true)));
    assert_eq!(agent["agentCapabilities"]["_meta"]["pixir"]["input"], 1, "{agent}");
    let session = editor.session(&shell.workspace());
    assert_eq!(editor.say(&session, "hello"), "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "Hello from the server.");
    let last = editor.seen.last().expect("lines");
    assert_eq!(last["result"]["stopReason"], "end_turn", "the response comes last: {last}");
    assert_eq!(editor.close(), 0);
    let log = entries(&shell.logs()[0]);
    assert_eq!(log.iter().filter(|entry| entry["type"] == "turn_ended").count(), 1);
}

/// Broken builds: an unknown option allows; the diff has only the new side.
#[test]
fn a_change_shows_its_diff_asks_and_is_made_or_not() {
    let shell = Shell::new(&[("a.txt", "one\ntwo\n")]);
    let edit =
        json!({ "calls": [{ "name": "edit", "args": { "path": "a.txt", "old_text": "two", "new_text": "three" } }] });
    let read = json!({ "calls": [{ "name": "read", "args": { "path": "a.txt" } }] });
    let steps =
        [read.clone(), edit.clone(), json!({ "text": "Edited." }), read, edit, json!({ "text": "Not edited." })];
    let (mut editor, session) = opened(&shell, &steps, &[]);
    let prompt = editor.prompt(&session, "change it");
    let (at, asked) = editor.asked(0, "session/request_permission");
    let call = &asked["params"]["toolCall"];
    let path = shell.workspace().join("a.txt");
    assert_eq!(call["kind"], "edit", "{asked}");
    assert_eq!(
        call["content"][0],
        json!({ "type": "diff", "path": path, "oldText": "one\ntwo\n", "newText": "one\nthree\n" })
    );
    assert_eq!(shell.read("a.txt"), "one\ntwo\n", "nothing is written unasked");
    editor.choose(&asked, "allow_once");
    let answer = editor.response(prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(shell.read("a.txt"), "one\nthree\n");
    let calls = editor.updates("tool_call");
    assert_eq!((&calls[0]["kind"], &calls[1]["kind"]), (&json!("read"), &json!("edit")), "{calls:?}");
    assert_eq!(calls[0]["locations"], json!([{ "path": path }]));
    let results = editor.updates("tool_call_update");
    let done = results.iter().rfind(|it| it["status"] == "completed").expect("a result");
    assert_eq!(done["content"][0]["oldText"], "one\ntwo\n", "{done}");
    assert_eq!(done["content"][0]["newText"], "one\nthree\n", "{done}");

    shell.write("a.txt", "one\ntwo\n");
    let prompt = editor.prompt(&session, "again");
    let (_, asked) = editor.asked(at + 1, "session/request_permission");
    editor.choose(&asked, "allow");
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(shell.read("a.txt"), "one\ntwo\n", "an option that was not offered is no permission");
    assert_eq!(editor.close(), 0);
}

/// Broken builds: a cancelled prompt ends with `end_turn`; its question stays open; the command lives on.
#[test]
fn a_cancel_ends_everything_that_was_asked_for() {
    let shell = Shell::new(&[]);
    let seconds = mark();
    let steps = [
        runs(&format!("sleep {seconds}")),
        json!({ "text": "Back." }),
        writes("b.txt", "b"),
        json!({ "text": "Never." }),
    ];
    let (mut editor, session) = opened(&shell, &steps, &["--mode", "auto"]);
    // Nothing runs: nothing happens.
    editor.notify("session/cancel", json!({ "sessionId": session }));
    let running = editor.prompt(&session, "wait");
    let waiting = editor.prompt(&session, "then this");
    editor.until(0, |line| line["params"]["update"]["status"] == "in_progress");
    crate::wait::until("the command runs", || is_running(&seconds));
    editor.notify("session/cancel", json!({ "sessionId": session }));
    for id in [running, waiting] {
        let answer = editor.response(id);
        assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    }
    crate::wait::until("the command has ended", || !is_running(&seconds));
    let log = entries(&shell.logs()[0]);
    assert_eq!(log.iter().filter(|entry| entry["type"] == "user_message").count(), 1, "the second never began");

    // The Session goes on; now it asks, and the question is taken back.
    editor.ask("session/set_mode", json!({ "sessionId": session, "modeId": "ask" }));
    assert_eq!(editor.say(&session, "go on"), "end_turn");
    let asking = editor.prompt(&session, "write");
    let (at, asked) = editor.asked(0, "session/request_permission");
    editor.notify("$/cancel_request", json!({ "requestId": asking }));
    assert_eq!(editor.response(asking)["result"]["stopReason"], "cancelled");
    let back = editor.until(at, |line| line["method"] == "$/cancel_request");
    assert_eq!(editor.seen[back]["params"]["requestId"], asked["id"]);
    editor.choose(&asked, "allow_once");
    assert_eq!(editor.close(), 0);
    assert!(shell.read("b.txt").contains("No such file"), "a late answer counts for nothing");
    let ids: Vec<&Value> =
        editor.seen.iter().filter(|line| line.get("result").is_some()).map(|line| &line["id"]).collect();
    let mut once = ids.clone();
    once.dedup();
    assert_eq!(ids, once, "each request has one response");
}

/// Broken builds: load leaves out the calls; resume tells the conversation again.
#[test]
fn a_session_is_listed_loaded_resumed_closed_and_deleted_by_another_process() {
    let shell = Shell::new(&[("a.txt", "x\n")]);
    let steps = [writes("b.txt", "made\n"), json!({ "text": "Written." })];
    let (mut editor, session) = opened(&shell, &steps, &["--mode", "auto"]);
    assert_eq!(editor.say(&session, "write b.txt"), "end_turn");
    let live = editor.updates("tool_call_update");
    assert_eq!(editor.close(), 0);

    let mut again = Editor::start(&shell, &script(&[json!({ "text": "More." })]), &[]);
    again.initialize(able());
    let listed = again.ask("session/list", json!({ "cwd": shell.workspace() }));
    let first = &listed["result"]["sessions"][0];
    assert_eq!(
        (first["sessionId"].as_str(), first["title"].as_str()),
        (Some(&*session), Some("write b.txt")),
        "{listed}"
    );
    let elsewhere = shell.workspace().join("..").canonicalize().expect("a folder");
    let wrong = again.ask("session/load", json!({ "sessionId": session, "cwd": elsewhere, "mcpServers": [] }));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    assert_eq!(wrong["error"]["data"]["cwd"].as_str(), shell.workspace().canonicalize().expect("it").to_str());
    let loaded = again.ask("session/load", json!({ "sessionId": session, "cwd": shell.workspace(), "mcpServers": [] }));
    assert_eq!(loaded["result"]["modes"]["currentModeId"], "ask", "auto was for one sitting: {loaded}");
    assert_eq!(again.text("user_message_chunk"), "write b.txt");
    assert_eq!(again.text("agent_message_chunk"), "Written.");
    assert_eq!(again.updates("tool_call_update").last(), live.last(), "a result is told as it was");
    assert_eq!(again.say(&session, "more"), "end_turn");
    assert_eq!(again.ask("session/close", json!({ "sessionId": session }))["result"], json!({}));
    let closed = again.ask("session/prompt", json!({ "sessionId": session, "prompt": [] }));
    assert_eq!(closed["error"]["code"], -32002, "{closed}");

    let told = again.seen.len();
    let resumed = again.ask("session/resume", json!({ "sessionId": session, "cwd": shell.workspace() }));
    assert!(resumed["result"]["configOptions"].is_array(), "{resumed}");
    assert!(again.seen[told..].iter().all(|line| line["params"]["update"]["sessionUpdate"] != "user_message_chunk"));
    assert_eq!(again.ask("session/delete", json!({ "sessionId": session }))["result"], json!({}));
    let listed = again.ask("session/list", json!({}));
    assert_eq!(listed["result"]["sessions"], json!([]));
    let gone = again.ask("session/load", json!({ "sessionId": session, "cwd": shell.workspace(), "mcpServers": [] }));
    assert_eq!(gone["error"]["code"], -32002, "{gone}");
    assert_eq!(again.close(), 0);
}

/// Broken builds: a bad line ends the stream; what is pipelined behind `initialize` is refused.
#[test]
fn bad_lines_are_answered_and_the_next_one_is_served() {
    let shell = Shell::new(&[]);
    let mut editor = Editor::start(&shell, &script(&[json!({ "text": "Here." })]), &[]);
    let cwd = shell.workspace();
    editor.raw(br#"{"jsonrpc":"2.0","id":"early","method":"session/list","params":{}}"#);
    editor.raw(br#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":9}}"#);
    editor.raw(
        json!({ "jsonrpc": "2.0", "id": "n", "method": "session/new", "params": { "cwd": cwd, "mcpServers": [] } })
            .to_string()
            .as_bytes(),
    );
    for line in
        [&b"{"[..], b"[1]", b"", b"\xff\xfe", br#"{"jsonrpc":"2.0","method":"what/ever"}"#, br#"{"id":7,"result":1}"#]
    {
        editor.raw(line);
    }
    editor.raw(br#"{"jsonrpc":"2.0","id":"u","method":"session/fork","params":{}}"#);
    editor.raw(br#"{"jsonrpc":"2.0","id":"r","method":"session/new","params":{"cwd":"app"}}"#);
    editor.raw(format!(r#"{{"id":"long","method":"{}"}}"#, "x".repeat(33 << 20)).as_bytes());
    let of = |editor: &mut Editor, id: &str| {
        let at = editor.until(0, |line| line["id"] == id);
        editor.seen[at].clone()
    };
    assert_eq!(of(&mut editor, "early")["error"]["code"], -32600);
    assert_eq!(of(&mut editor, "i")["result"]["protocolVersion"], 1);
    let session = of(&mut editor, "n")["result"]["sessionId"].as_str().expect("a session").to_owned();
    assert_eq!(of(&mut editor, "u")["error"]["code"], -32601);
    assert_eq!(of(&mut editor, "r")["error"]["code"], -32602);
    assert_eq!(editor.say(&session, "still there?"), "end_turn");
    let codes: Vec<i64> = editor
        .seen
        .iter()
        .filter(|line| line["id"].is_null() && line.get("error").is_some())
        .filter_map(|line| line["error"]["code"].as_i64())
        .collect();
    assert_eq!(codes, [-32700, -32600, -32700, -32600], "one for each line that could not be read");
    assert_eq!(editor.close(), 0);
}

/// Broken build: pixir waits for the command, or for the client.
#[test]
fn the_end_of_stdin_ends_what_runs_within_a_second() {
    let shell = Shell::new(&[]);
    let seconds = mark();
    let (mut editor, session) = opened(&shell, &[runs(&format!("sleep {seconds}"))], &["--mode", "auto"]);
    editor.prompt(&session, "wait");
    crate::wait::until("the command runs", || is_running(&seconds));
    let began = Instant::now();
    assert_eq!(editor.close(), 0);
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}: a second, and the load of the other tests",
        began.elapsed()
    );
    crate::wait::until("the command has ended", || !is_running(&seconds));
    let log = entries(&shell.logs()[0]);
    assert_eq!(log.last().map(|entry| &entry["data"]["status"]), Some(&json!("interrupted")));
}

/// Broken build: pixir sends the options with which the session began, also after the user or the editor has changed one.
#[test]
fn modes_models_and_options_are_shown_and_changed() {
    let shell = Shell::new(&[]);
    let (mut editor, session) = opened(&shell, &[json!({ "text": "One." })], &[]);
    let at = editor.until(0, |line| line["result"]["sessionId"].is_string());
    let options = editor.seen[at]["result"]["configOptions"].clone();
    let ids: Vec<&str> = options.as_array().expect("options").iter().filter_map(|it| it["id"].as_str()).collect();
    assert_eq!(ids, ["mode", "model", "effort", "toolset"]);
    let set = |id: &str, value: &str| json!({ "sessionId": session, "configId": id, "value": value });
    let changed = editor.ask("session/set_config_option", set("mode", "auto"));
    assert_eq!(changed["result"]["configOptions"][0]["currentValue"], "auto", "{changed}");
    let modes = editor.updates("current_mode_update");
    assert_eq!(modes.last().map(|it| &it["currentModeId"]), Some(&json!("auto")));
    let wrong = editor.ask("session/set_config_option", set("mode", "yolo"));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    assert_eq!(editor.say(&session, "/mode read-only"), "end_turn");
    let shown = editor.updates("config_option_update");
    assert_eq!(shown.last().map(|it| &it["configOptions"][0]["currentValue"]), Some(&json!("read-only")), "{shown:?}");
    let effort = editor.ask("session/set_config_option", set("effort", "high"));
    assert_eq!(effort["result"]["configOptions"][2]["currentValue"], "high", "{effort}");
    assert_eq!(editor.close(), 0);
}

/// Broken build: an unknown command is sent to the model.
#[test]
fn slash_commands_are_inputs_and_show_what_they_would_do() {
    let shell = Shell::new(&[("a.txt", "one\n")]);
    let edit =
        json!({ "calls": [{ "name": "edit", "args": { "path": "a.txt", "old_text": "one", "new_text": "two" } }] });
    let (mut editor, session) = opened(&shell, &[edit, json!({ "text": "Done." })], &["--mode", "auto"]);
    editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "available_commands_update");
    let menu = editor.updates("available_commands_update");
    assert!(
        menu[0]["availableCommands"].as_array().expect("commands").iter().any(|it| it["name"] == "undo"),
        "{menu:?}"
    );
    assert_eq!(editor.say(&session, "/undu"), "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "There is no command /undu. Did you mean /undo?");
    assert!(entries(&shell.logs()[0]).iter().all(|entry| entry["type"] != "user_message"));
    assert_eq!(editor.say(&session, "edit it"), "end_turn");
    assert_eq!(shell.read("a.txt"), "two\n");
    for (option, left) in [("reject_once", "two\n"), ("allow_once", "one\n")] {
        let from = editor.seen.len();
        let undo = editor.prompt(&session, "/undo");
        let (_, asked) = editor.asked(from, "session/request_permission");
        assert_eq!(asked["params"]["toolCall"]["content"][0]["newText"], "one\n", "{asked}");
        editor.choose(&asked, option);
        assert_eq!(editor.response(undo)["result"]["stopReason"], "end_turn");
        assert_eq!(shell.read("a.txt"), left);
    }
    assert_eq!(editor.close(), 0);
}

/// Broken build: a form that the client cannot show waits for ever.
#[test]
fn questions_of_the_model_are_forms_options_or_declined() {
    let ask = |questions: Value| json!({ "calls": [{ "name": "ask_user", "args": { "questions": questions } }] });
    let one = ask(json!([{ "question": "Which?", "options": ["a", "b"] }]));
    let two = ask(json!([{ "question": "Why?" }, { "question": "How?" }]));
    let said = |shell: &Shell, n: usize| {
        let log = entries(&shell.logs()[0]);
        let results: Vec<String> =
            log.iter().filter(|it| it["type"] == "tool_result").map(|it| it["data"]["output"].to_string()).collect();
        results[n].clone()
    };
    let shell = Shell::new(&[]);
    let (mut editor, session) = opened(&shell, &[one.clone(), json!({ "text": "So b." })], &[]);
    let prompt = editor.prompt(&session, "ask me");
    let (_, asked) = editor.asked(0, "elicitation/create");
    assert_eq!(asked["params"]["requestedSchema"]["properties"]["answer_1"]["oneOf"][1]["const"], "b", "{asked}");
    editor.answer(&asked, json!({ "action": "accept", "content": { "answer_1": "b" } }));
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    assert!(said(&shell, 0).contains('b'), "{}", said(&shell, 0));
    assert_eq!(editor.close(), 0);

    let shell = Shell::new(&[]);
    let mut editor = Editor::start(&shell, &script(&[one, two, json!({ "text": "So be it." })]), &[]);
    editor.initialize(json!({}));
    let session = editor.session(&shell.workspace());
    let prompt = editor.prompt(&session, "ask me");
    let (_, asked) = editor.asked(0, "session/request_permission");
    editor.choose(&asked, "answer_1");
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    assert!(said(&shell, 0).contains('b'), "{}", said(&shell, 0));
    assert!(editor.text("agent_thought_chunk").contains("a form was declined"), "{:#?}", editor.seen);
    assert_eq!(editor.close(), 0);
}

/// Broken build: without a model, the demo answers.
#[test]
fn without_a_model_a_session_is_refused_with_the_command_that_helps() {
    let shell = Shell::new(&[]);
    let mut editor = Editor::on(&shell, &[]);
    let agent = editor.initialize(able());
    assert_eq!(agent["authMethods"][0]["args"], json!(["--login"]), "{agent}");
    let refused = editor.ask("session/new", json!({ "cwd": shell.workspace(), "mcpServers": [] }));
    assert_eq!(refused["error"]["code"], -32000, "{refused}");
    assert!(refused["error"]["message"].as_str().is_some_and(|it| it.contains("pixir auth login")), "{refused}");
    let method = &agent["authMethods"][1]["id"];
    let checked = editor.ask("authenticate", json!({ "methodId": method }));
    assert_eq!(checked["error"]["code"], -32000, "{checked}");
    assert_eq!(editor.close(), 0);
}

/// Broken build: a client that does not read blocks the Turn, or makes pixir keep every delta.
#[test]
fn a_client_that_does_not_read_stops_nobody() {
    let shell = Shell::new(&[]);
    let gate = Gate::default();
    let delta = |text: &str| {
        format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": { "content": text } }] })).into_bytes()
    };
    let mut acts = vec![Act::Send(HEAD.as_bytes().to_vec())];
    acts.extend((0..4_000).map(|n| Act::Send(delta(&format!("{n} {}\n", "x".repeat(500))))));
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    acts.extend([Act::Send(format!("data: {end}\n\ndata: [DONE]\n\n").into_bytes()), Act::Until(gate.clone())]);
    let server = Server::start(vec![Reply::Raw(acts)]);
    let flags = server.flags(Dialect::Chat);
    let all: Vec<&str> = std::iter::once("acp").chain(flags.iter().map(String::as_str)).collect();
    let mut child = shell.command(&all).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let mut out = BufReader::new(child.stdout.take().expect("stdout"));
    let ask = |stdin: &mut ChildStdin, out: &mut BufReader<ChildStdout>, request: Value| {
        writeln!(stdin, "{request}").expect("write");
        let mut line = String::new();
        out.read_line(&mut line).expect("read");
        serde_json::from_str::<Value>(&line).expect("JSON")
    };
    ask(&mut stdin, &mut out, json!({ "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } }));
    let folder = json!({ "cwd": shell.workspace(), "mcpServers": [] });
    let new = ask(&mut stdin, &mut out, json!({ "id": 2, "method": "session/new", "params": folder }));
    let session = new["result"]["sessionId"].clone();
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "much" }] });
    writeln!(stdin, "{}", json!({ "id": 3, "method": "session/prompt", "params": prompt })).expect("write");
    gate.open();
    let log = shell.logs()[0].clone();
    crate::wait::until("the Turn has ended", || entries(&log).iter().any(|entry| entry["type"] == "turn_ended"));
    let (mut lines, mut text) = (0, String::new());
    loop {
        let mut line = String::new();
        out.read_line(&mut line).expect("read");
        let line: Value = serde_json::from_str(&line).expect("JSON");
        if line["result"]["stopReason"].is_string() {
            break;
        }
        let update = &line["params"]["update"];
        if update["sessionUpdate"] == "agent_message_chunk" {
            text.push_str(update["content"]["text"].as_str().expect("text"));
        }
        lines += 1;
    }
    assert!(
        text.starts_with("0 x") && text.trim_end().ends_with('x') && text.lines().count() == 4_000,
        "nothing is lost"
    );
    assert!(lines < 3_000, "deltas were merged: {lines} lines for 4,000 of them");
    drop(stdin);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
