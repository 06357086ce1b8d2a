//! What an editor asks of pixir: prompts with context, messages that wait, any Input, sessions that are elsewhere.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::responses::held;
use super::{opened, runs, script, writes};
use crate::editor::{Editor, able};
use crate::hosted::Hosted;
use crate::server::{Dialect, Gate, Reply, Server, call, text};
use crate::shell::{Shell, entries, png, ran};

fn with_blocks(editor: &mut Editor, session: &str, blocks: Value) -> Value {
    editor.ask("session/prompt", json!({ "sessionId": session, "prompt": blocks }))
}

fn opens(editor: &mut Editor, method: &str, session: &str, shell: &Shell) -> Value {
    editor.ask(method, json!({ "sessionId": session, "cwd": shell.workspace(), "mcpServers": [] }))
}

fn facts(shell: &Shell, kind: &str) -> Vec<Value> {
    let log = entries(&shell.logs()[0]);
    log.into_iter().filter(|it| it["type"] == kind).map(|it| it["data"].clone()).collect()
}

/// Broken builds: an embedded file is lost; a file over 64 KiB is refused; the selection goes into the text of the message.
#[test]
fn files_images_and_selections_reach_the_model_with_the_prompt() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("I see.")]);
    let flags = server.flags(Dialect::Responses);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut editor = Editor::on(&shell, &flags);
    editor.initialize(able());
    let session = editor.session(&shell.workspace());
    let root = shell.workspace().canonicalize().expect("a folder");
    let uri = |path: &str| format!("file://{}/{path}", root.display());
    let blocks = json!([
        { "type": "text", "text": "What about " },
        { "type": "resource_link", "uri": uri("src/a%20b.rs#L3:9"), "name": "a b.rs" },
        { "type": "resource", "resource": { "uri": uri("notes.md"), "text": "remember the milk" } },
        { "type": "resource", "resource": { "uri": uri("long.txt"), "text": "y".repeat(70 << 10) } },
        { "type": "resource", "resource": { "uri": uri("other.txt"), "text": "z".repeat(60 << 10) } },
        { "type": "image", "mimeType": "image/png", "data": STANDARD.encode(png(400)), "uri": uri("shot.png") },
    ]);
    let shown =
        json!([{ "kind": "selection", "path": "src/c.rs", "lines": { "from": 3, "to": 9 }, "text": "let selected;" }]);
    let prompt =
        json!({ "sessionId": session, "prompt": blocks, "_meta": { "pixir": { "presenter_context": shown } } });
    let answer = editor.ask("session/prompt", prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(editor.close(), 0);
    let message = facts(&shell, "user_message").remove(0);
    assert_eq!(message["text"], "What about src/a b.rs:3-9");
    let documents = message["context"].as_array().expect("documents");
    let paths: Vec<&str> = documents.iter().filter_map(|it| it["path"].as_str()).collect();
    assert_eq!(paths, ["notes.md", "long.txt", "other.txt", "src/c.rs"]);
    let long = documents[1]["text"].as_str().expect("text");
    assert!(long.len() <= 64 << 10 && long.ends_with("[cut here; read the file for the rest]"), "{}", long.len());
    assert_eq!(documents[2]["text"].as_str().expect("text").len(), 60 << 10, "each file has a bound of its own");
    assert_eq!(message["attachments"][0]["path"], "shot.png");
    let sent = server.bodies()[0].to_string();
    for part in ["remember the milk", "let selected;", "src/a b.rs:3-9", "data:image/png;base64,"] {
        assert!(sent.contains(part), "the request has no {part}");
    }
}

/// Broken build: what cannot be taken is left out without a word, and the model answers to half a prompt.
#[test]
fn what_a_prompt_cannot_hold_is_refused_with_its_place() {
    let shell = Shell::new(&[]);
    let (mut editor, session) = opened(&shell, &[json!({ "text": "Here." })], &[]);
    let text = json!({ "type": "text", "text": "see" });
    let binary = json!({ "uri": "file:///x", "blob": "AAAA" });
    for (block, part) in [
        (json!({ "type": "audio", "mimeType": "audio/wav", "data": "AAAA" }), "`prompt[1]`: pixir takes no audio"),
        (json!({ "type": "resource", "resource": binary }), "file:///x is binary"),
        (json!({ "type": "image", "mimeType": "image/png", "data": "%%%" }), "`prompt[1]`: the image is no base64"),
        (json!({ "type": "video" }), "`prompt[1]`: unknown variant `video`"),
    ] {
        let refused = with_blocks(&mut editor, &session, json!([text, block]));
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(refused["error"]["code"] == -32602 && message.contains(part), "{refused}");
    }
    let not_an_image = STANDARD.encode("no image at all");
    let refused =
        with_blocks(&mut editor, &session, json!([{ "type": "image", "mimeType": "image/png", "data": not_an_image }]));
    assert!(refused["error"]["message"].is_string(), "{refused}");
    for empty in [json!([]), json!([{ "type": "text", "text": " " }])] {
        let refused = with_blocks(&mut editor, &session, empty);
        assert_eq!(refused["error"]["message"], "the prompt is empty", "{refused}");
    }
    let wrong = json!({ "sessionId": session, "prompt": [text], "_meta": { "pixir": { "delivery": "later" } } });
    assert_eq!(editor.ask("session/prompt", wrong)["error"]["code"], -32602);
    assert_eq!(editor.say(&session, "still there?"), "end_turn");
    assert_eq!(facts(&shell, "user_message").len(), 1);
    assert_eq!(editor.close(), 0);
}

/// Broken builds: a steer waits for the end of the Turn; its prompt is answered before the Turn ends, or never.
#[test]
fn a_steer_joins_the_turn_that_runs_and_a_follow_up_waits() {
    let shell = Shell::new(&[]);
    let steps =
        [runs("while [ ! -e go ]; do sleep 0.02; done"), json!({ "text": "Both." }), json!({ "text": "Later." })];
    let (mut editor, session) = opened(&shell, &steps, &["--mode", "auto"]);
    let first = editor.prompt(&session, "wait");
    editor.until(0, |line| line["params"]["update"]["status"] == "in_progress");
    let after = editor.prompt(&session, "and then");
    let blocks = json!([{ "type": "text", "text": "be quick" }]);
    let meta = json!({ "pixir": { "delivery": "steer" } });
    let steer = editor.request("session/prompt", json!({ "sessionId": session, "prompt": blocks, "_meta": meta }));
    // The answer to a later request says that both messages have arrived.
    editor.ask("session/set_mode", json!({ "sessionId": session, "modeId": "auto" }));
    shell.write("go", "");
    for id in [first, steer, after] {
        assert_eq!(editor.response(id)["result"]["stopReason"], "end_turn");
    }
    let messages: Vec<(String, u64)> = entries(&shell.logs()[0])
        .iter()
        .filter(|it| it["type"] == "user_message")
        .map(|it| (it["data"]["text"].as_str().unwrap_or_default().to_owned(), it["turn"].as_u64().unwrap_or(0)))
        .collect();
    assert_eq!(messages, [("wait".into(), 1), ("be quick".into(), 1), ("and then".into(), 2)]);
    assert_eq!(editor.close(), 0);
}

/// Broken builds: the queue has no bound; a full queue ends the prompts that wait.
#[test]
fn a_full_queue_refuses_one_more_prompt_and_says_what_to_do() {
    let shell = Shell::new(&[]);
    let (mut editor, session) = opened(&shell, &[json!({ "text": "On it.", "hang": true })], &[]);
    let first = editor.prompt(&session, "begin");
    editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    let waiting: Vec<i64> = (0..64).map(|n| editor.prompt(&session, &format!("then {n}"))).collect();
    let last = editor.prompt(&session, "one too many");
    let refused = editor.response(last);
    assert_eq!(refused["error"]["data"]["code"], "TOO_MANY_ITEMS", "{refused}");
    let message = refused["error"]["message"].as_str().expect("a message");
    assert_eq!(message, "64 messages wait already; send it when the turn has ended, or take the others back");
    let meta = json!({ "pixir": { "delivery": "steer" } });
    let blocks = json!([{ "type": "text", "text": "a steer" }]);
    let steer = editor.ask("session/prompt", json!({ "sessionId": session, "prompt": blocks, "_meta": meta }));
    assert_eq!(steer["error"]["data"]["code"], "TOO_MANY_ITEMS", "{steer}");
    editor.notify("session/cancel", json!({ "sessionId": session }));
    for id in waiting.into_iter().chain([first]) {
        assert_eq!(editor.response(id)["result"]["stopReason"], "cancelled");
    }
    assert_eq!(editor.close(), 0);
}

/// Broken build: a host can let the queue grow without a bound.
#[test]
fn a_host_meets_the_same_bound() {
    let shell = Shell::new(&[]);
    let mut host = Hosted::start(&shell, &script(&[json!({ "text": "On it.", "hang": true })]), &[]);
    assert_eq!(host.ask("1", json!({ "type": "prompt", "text": "begin" }))["ok"], true);
    for n in 0..64 {
        let answer = host.ask(&format!("w{n}"), json!({ "type": "follow_up", "text": "then" }));
        assert_eq!(answer["accepted"]["queued"]["position"], n + 1, "{answer}");
    }
    let refused = host.ask("full", json!({ "type": "follow_up", "text": "then" }));
    assert_eq!((&refused["ok"], &refused["code"]), (&json!(false), &json!("TOO_MANY_ITEMS")), "{refused}");
    assert_eq!(host.ask("d", json!({ "type": "dequeue" }))["ok"], true);
    assert_eq!(host.ask("i", json!({ "type": "interrupt" }))["ok"], true);
    host.end();
}

/// Broken builds: an Input with an unknown field is taken; events are sent to a client that never asked for them.
#[test]
fn any_input_can_be_sent_and_then_the_events_come_raw() {
    let shell = Shell::new(&[]);
    let (mut editor, session) = opened(&shell, &[json!({ "text": "Hello." })], &[]);
    assert_eq!(editor.say(&session, "hi"), "end_turn");
    assert!(editor.seen.iter().all(|line| line["method"] != "_pixir/event"));
    let input = |input: Value| json!({ "sessionId": session, "input": input });
    let named = editor.ask("_pixir/input", input(json!({ "type": "set", "name": "Greetings" })));
    assert_eq!(named["result"], json!({ "accepted": {} }), "{named}");
    let is_named =
        |line: &Value| line["method"] == "_pixir/event" && line["params"]["event"]["type"] == "settings_changed";
    let at = editor.until(0, is_named);
    assert_eq!(editor.seen[at]["params"]["event"]["data"]["name"], "Greetings");
    let titles = editor.updates("session_info_update");
    assert_eq!(titles.last().map(|it| &it["title"]), Some(&json!("Greetings")));
    let pinned = editor.ask("_pixir/input", input(json!({ "type": "pin", "seq": 2, "pinned": true })));
    assert!(pinned["result"]["accepted"].is_object(), "{pinned}");
    for (wrong, part) in [
        (json!({ "type": "pin", "seq": 2, "pinned": true, "colour": 1 }), "pin has no field `colour`"),
        (json!({ "type": "dance" }), "there is no Input `dance`"),
        (Value::Null, "there is no Input"),
    ] {
        let refused = editor.ask("_pixir/input", input(wrong));
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(refused["error"]["code"] == -32602 && message.contains(part), "{refused}");
    }
    assert_eq!(editor.close(), 0);
}

/// Broken builds: a Session that another pixir writes is written here too; its prompts fail without a reason.
#[test]
fn a_session_of_another_pixir_is_shown_and_takes_no_prompt() {
    let shell = Shell::new(&[]);
    let mut host = Hosted::start(&shell, &script(&[json!({ "text": "From the host." })]), &[]);
    let at = host.until(0, |line| line["type"] == "ready");
    let session = host.seen[at]["session_id"].as_str().expect("an id").to_owned();
    assert_eq!(host.ask("1", json!({ "type": "prompt", "text": "hello" }))["ok"], true);
    host.event("turn_ended");

    let mut editor = Editor::start(&shell, &script(&[json!({ "text": "Never." })]), &[]);
    editor.initialize(able());
    let loaded = opens(&mut editor, "session/load", &session, &shell);
    assert!(loaded["result"]["modes"].is_object(), "{loaded}");
    assert_eq!(editor.text("agent_message_chunk"), "From the host.");
    let told = editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "notice");
    let title = editor.seen[told]["params"]["update"]["title"].as_str().expect("a title").to_owned();
    assert!(title.contains("read-only here"), "{title}");
    let prompt = editor.prompt(&session, "mine");
    let refused = editor.response(prompt);
    assert_eq!(refused["error"]["data"]["code"], "SESSION_LOCKED", "{refused}");
    let set = editor.ask("session/set_mode", json!({ "sessionId": session, "modeId": "auto" }));
    assert_eq!(set["error"]["data"]["code"], "SESSION_LOCKED", "{set}");
    let closed = editor.ask("session/close", json!({ "sessionId": session }));
    assert_eq!(closed["result"], json!({}), "{closed}");
    let deleted = editor.ask("session/delete", json!({ "sessionId": session }));
    assert_eq!(deleted["error"]["data"]["code"], "SESSION_LOCKED", "{deleted}");

    // When the other one has gone, it is this one's.
    host.end();
    let loaded = opens(&mut editor, "session/resume", &session, &shell);
    assert!(loaded["result"].is_object(), "{loaded}");
    let mode = editor.ask("session/set_mode", json!({ "sessionId": session, "modeId": "read-only" }));
    assert_eq!(mode["result"], json!({}), "{mode}");
    assert_eq!(editor.close(), 0);
}

/// Broken builds: a Session that does not exist is made; what is closed while it runs leaves its prompt without a response.
#[test]
fn sessions_that_are_not_there_fail_and_a_closed_one_answers_its_prompts() {
    let shell = Shell::new(&[]);
    let (mut editor, session) = opened(&shell, &[json!({ "text": "Wait.", "hang": true })], &[]);
    let nowhere = "20260101T000000-abcdef";
    for method in ["session/load", "session/resume"] {
        let missing = opens(&mut editor, method, nowhere, &shell);
        assert_eq!(missing["error"]["code"], -32002, "{missing}");
        let no_id = opens(&mut editor, method, "../../etc", &shell);
        assert_eq!(no_id["error"]["code"], -32002, "{no_id}");
        let no_cwd = editor.ask(method, json!({ "sessionId": session, "cwd": "app", "mcpServers": [] }));
        // The Session is open already, so its folder is known.
        assert!(no_cwd["result"].is_object(), "{no_cwd}");
    }
    for method in ["session/close", "session/prompt", "session/set_mode", "session/set_config_option", "_pixir/input"] {
        let missing = editor.ask(method, json!({ "sessionId": nowhere }));
        assert_eq!(missing["error"]["code"], -32002, "{method}: {missing}");
    }
    assert_eq!(editor.ask("session/delete", json!({ "sessionId": nowhere }))["error"]["code"], -32002);
    assert_eq!(editor.ask("session/delete", json!({}))["error"]["code"], -32002);
    assert_eq!(editor.ask("session/list", json!({ "cursor": nowhere }))["error"]["code"], -32602);
    assert_eq!(editor.ask("session/load", json!({}))["error"]["code"], -32602);

    let running = editor.prompt(&session, "begin");
    editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    let waiting = editor.prompt(&session, "then");
    let closed = editor.ask("session/close", json!({ "sessionId": session }));
    assert_eq!(closed["result"], json!({}), "{closed}");
    for id in [running, waiting] {
        assert_eq!(editor.response(id)["result"]["stopReason"], "cancelled");
    }
    assert_eq!(editor.seen.last(), Some(&closed), "nothing follows the end of a session");
    assert_eq!(editor.close(), 0);
}

/// Broken build: a second load in the same process leaves out what was streamed, or sends it twice.
#[test]
fn a_load_while_a_turn_runs_has_what_was_streamed_so_far_once() {
    let shell = Shell::new(&[]);
    let gate = Gate::default();
    let delta = |text: &str| json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let event = |value: &Value| format!("data: {value}\n\n").into_bytes();
    let server = Server::start(vec![Reply::Raw(vec![
        crate::server::Act::Send(crate::server::HEAD.as_bytes().to_vec()),
        crate::server::Act::Send(event(&delta("First half, "))),
        crate::server::Act::Until(gate.clone()),
        crate::server::Act::Send(event(&delta("second half."))),
        crate::server::Act::Send([event(&end), b"data: [DONE]\n\n".to_vec()].concat()),
    ])]);
    let flags = server.flags(Dialect::Chat);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut editor = Editor::on(&shell, &flags);
    editor.initialize(able());
    let session = editor.session(&shell.workspace());
    let prompt = editor.prompt(&session, "go");
    editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    let before = editor.seen.len();
    let loaded = opens(&mut editor, "session/load", &session, &shell);
    assert!(loaded["result"].is_object(), "{loaded}");
    gate.open();
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    let text: String = editor.seen[before..]
        .iter()
        .map(|line| &line["params"]["update"])
        .filter(|it| it["sessionUpdate"] == "agent_message_chunk")
        .filter_map(|it| it["content"]["text"].as_str())
        .collect();
    assert_eq!(text, "First half, second half.");
    assert_eq!(editor.close(), 0);
}

/// Broken builds: a stored key stays after the logout; a Session of before loses its model.
#[test]
fn logout_forgets_the_stored_key() {
    let shell = Shell::new(&[]);
    let key = format!("{}-logout-0001", crate::shell::SECRET);
    let mut login =
        shell.command(["auth", "login", "openai", "--offline"]).stdin(Stdio::piped()).spawn().expect("it starts");
    login.stdin.take().expect("stdin").write_all(key.as_bytes()).expect("write");
    assert_eq!(ran(login.wait_with_output().expect("it ends")).code, 0);
    let mut editor = Editor::on(&shell, &["--model", "openai/gpt-5"]);
    editor.initialize(able());
    let session = editor.session(&shell.workspace());
    assert!(!session.is_empty());
    let out = editor.ask("logout", json!({}));
    assert_eq!(out["result"], json!({}), "{out}");
    let file = std::fs::read_to_string(shell.home().join("auth.json")).unwrap_or_default();
    assert!(!file.contains(&key), "the key is gone");
    let refused = editor.ask("session/new", json!({ "cwd": shell.workspace(), "mcpServers": [] }));
    assert_eq!(refused["error"]["code"], -32000, "{refused}");
    let wrong = editor.ask("authenticate", json!({ "methodId": "magic" }));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    assert_eq!(editor.close(), 0);
}

/// A Session with an agent runs while the user stores another key and the editor looks again.
///
/// Broken builds: Sessions that are open keep the key that they began with; looking again disturbs what runs.
#[test]
fn a_new_key_is_used_by_sessions_that_run_and_by_their_agents() {
    let shell = Shell::new(&[]);
    let gate = Gate::default();
    let spawn = json!({ "task": "Count to three", "name": "counter", "role": "explorer" });
    let server = Server::start(vec![
        call("c1", "spawn_agent", spawn),
        Reply::Raw(held("1, 2, 3", &gate)),
        text("It counts."),
        text("Still here."),
    ]);
    shell.configure(&format!(
        "model = \"work/m\"\n[providers.work]\nbase_url = \"{}\"\ndialect = \"chat\"\n",
        server.url
    ));
    let keys = ["one", "two"].map(|name| format!("{}-login-{name}", crate::shell::SECRET));
    let log_in = |key: &str| {
        let mut login =
            shell.command(["auth", "login", "work", "--offline"]).stdin(Stdio::piped()).spawn().expect("it starts");
        login.stdin.take().expect("stdin").write_all(key.as_bytes()).expect("write");
        assert_eq!(ran(login.wait_with_output().expect("it ends")).code, 0);
    };
    log_in(&keys[0]);
    let mut editor = Editor::on(&shell, &["--mode", "auto"]);
    editor.initialize(able());
    let session = editor.session(&shell.workspace());
    let running = editor.prompt(&session, "count");
    server.wait_for(2);
    log_in(&keys[1]);
    let again = editor.ask("authenticate", json!({ "methodId": "pixir-check" }));
    assert_eq!(again["result"], json!({}), "{again}");
    gate.open();
    assert_eq!(editor.response(running)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.say(&session, "and now?"), "end_turn");
    let used: Vec<usize> = server
        .keys()
        .iter()
        .map(|key| keys.iter().position(|it| key.ends_with(it.as_str())).expect("one of both"))
        .collect();
    assert_eq!((used.first(), used.last()), (Some(&0), Some(&1)), "{used:?}");
    assert_eq!(used.iter().filter(|it| **it == 0).count(), 2, "the next request has the new key: {used:?}");
    assert_eq!(editor.close(), 0);
}

/// Broken builds: a folder of the client is not readable; a folder that does not exist ends the Session.
#[test]
fn other_folders_of_the_project_can_be_read() {
    let shell = Shell::new(&[]);
    let other = shell.workspace().parent().expect("a parent").join("library");
    std::fs::create_dir(&other).expect("mkdir");
    std::fs::write(other.join("a.txt"), "from the library\n").expect("write");
    let path = other.join("a.txt");
    let read = json!({ "calls": [{ "name": "read", "args": { "path": path } }] });
    let mut editor = Editor::start(&shell, &script(&[read, json!({ "text": "Read." })]), &[]);
    editor.initialize(able());
    let gone = other.join("gone");
    let more = json!([other, shell.workspace(), gone]);
    let new =
        editor.ask("session/new", json!({ "cwd": shell.workspace(), "mcpServers": [], "additionalDirectories": more }));
    let session = new["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{new}")).to_owned();
    assert_eq!(editor.say(&session, "read it"), "end_turn");
    let told = editor.updates("notice");
    let warnings: Vec<&Value> = told.iter().filter(|it| it["severity"] == "warning").map(|it| &it["title"]).collect();
    let why = format!("`{}` is not added: it cannot be opened: No such file or directory (os error 2)", gone.display());
    assert_eq!(warnings, [&json!(why)]);
    assert!(facts(&shell, "tool_result")[0]["output"].to_string().contains("from the library"));
    let relative = json!({ "cwd": shell.workspace(), "mcpServers": [], "additionalDirectories": ["x"] });
    assert_eq!(editor.ask("session/new", relative)["error"]["code"], -32602);
    assert_eq!(editor.close(), 0);
}

/// Broken builds: each command of the menu that needs no model is text for one; `/model` without a name changes something.
#[test]
fn slash_commands_show_and_change_without_asking_a_model() {
    let outside = tempfile::tempdir().expect("a folder");
    let shell = Shell::new(&[]);
    let (mut editor, session) = opened(&shell, &[], &[]);
    let mut said = |line: &str| {
        let from = editor.seen.len();
        assert_eq!(editor.say(&session, line), "end_turn", "{line}");
        let text: String = editor.seen[from..]
            .iter()
            .map(|it| &it["params"]["update"])
            .filter(|it| it["sessionUpdate"] == "agent_message_chunk")
            .filter_map(|it| it["content"]["text"].as_str())
            .collect();
        text
    };
    assert_eq!(said("/jobs"), "There are no background jobs.");
    let context = said("/context");
    assert!(context.contains(" tokens are in use.") && context.contains("- system prompt"), "{context}");
    assert_eq!(said("/model"), "/model needs provider/model");
    assert_eq!(said("/workflows x y"), "`y` has no `=`: /workflows NAME parameter=value");
    assert_eq!(said(&format!("/add-dir {}", outside.path().display())), "");
    assert_eq!(said("/effort high"), "");
    assert_eq!(said("/effort default"), "");
    assert_eq!(said("/rename Errands"), "");
    assert!(facts(&shell, "user_message").is_empty(), "no model was asked");
    let set = facts(&shell, "settings_changed");
    assert_eq!(set.iter().filter_map(|it| it["name"].as_str()).collect::<Vec<_>>(), ["Errands"]);
    let efforts: Vec<&Value> = set.iter().map(|it| &it["effort"]).filter(|it| !it.is_null()).collect();
    assert_eq!(efforts, [&json!("high"), &json!("")]);
    assert_eq!(editor.close(), 0);
}

/// Broken builds: the writer takes a full disk for a client that has gone; a client that has gone is an error.
#[test]
fn a_stdout_that_takes_nothing_is_an_error_and_a_client_that_leaves_is_none() {
    let shell = Shell::new(&[]);
    let hello = json!({ "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } });
    let full = OpenOptions::new().write(true).open("/dev/full").expect("there is /dev/full");
    let mut child = shell.command(["acp"]).stdin(Stdio::piped()).stdout(full).spawn().expect("it starts");
    // stdin stays open: the first line that cannot be written is the end.
    let mut stdin = child.stdin.take().expect("stdin");
    writeln!(stdin, "{hello}").expect("write");
    let ended = ran(child.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("WRITE_FAILED") && ended.stderr.contains("write to the client: "), "{ended:?}");
    drop(stdin);

    let mut child = shell.command(["acp"]).stdin(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("stdin");
    writeln!(stdin, "{hello}").expect("write");
    let ended = ran(child.wait_with_output().expect("it ends"));
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
}

/// Broken build: the mode that the editor shows does not hold, and the user is asked about the change.
#[test]
fn writes_of_a_prompt_in_read_only_mode_are_refused_and_the_turn_goes_on() {
    let shell = Shell::new(&[]);
    let steps = [writes("a.txt", "a"), json!({ "text": "I may not." })];
    let (mut editor, session) = opened(&shell, &steps, &["--mode", "read-only"]);
    assert_eq!(editor.say(&session, "write"), "end_turn");
    let failed = editor.updates("tool_call_update");
    assert!(failed.iter().any(|it| it["status"] == "failed"), "{failed:?}");
    assert!(editor.seen.iter().all(|line| line["method"] != "session/request_permission"), "nothing is asked");
    assert!(shell.read("a.txt").contains("No such file"));
    assert_eq!(editor.close(), 0);
}
