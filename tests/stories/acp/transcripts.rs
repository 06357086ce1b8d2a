//! Golden transcripts: what an editor sends and what pixir answers, line by line, in `tests/golden/acp`. The official types of
//! the protocol decode each of them (`tests/acp_schema`). `PIXIR_GOLDEN=write` writes them anew; read the difference.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{runs, script, writes};
use crate::editor::{Editor, able};
use crate::hosted::Hosted;
use crate::shell::{Shell, png};
use crate::stories::agents::spawn;

/// One transcript: the workspace, the model's script, the client, and what it does.
struct Scene {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    script: Value,
    args: &'static [&'static str],
    config: &'static str,
    able: Value,
    /// Whether the scene begins with `initialize` and a new Session.
    is_open: bool,
    play: fn(&mut Editor, &str, &Shell),
}

fn scene(name: &'static str, steps: &[Value], play: fn(&mut Editor, &str, &Shell)) -> Scene {
    let (files, args) = (&[("a.txt", "one\ntwo\nthree\n")][..], &[][..]);
    Scene { name, files, script: script(steps), args, config: "", able: able(), is_open: true, play }
}

/// A scene without a Session; the client has said nothing yet.
fn bare(name: &'static str, play: fn(&mut Editor, &str, &Shell)) -> Scene {
    Scene { is_open: false, ..scene(name, &[says("Hello.")], play) }
}

impl Scene {
    fn args(self, args: &'static [&'static str]) -> Scene {
        Scene { args, ..self }
    }

    fn files(self, files: &'static [(&'static str, &'static str)]) -> Scene {
        Scene { files, ..self }
    }

    fn able(self, able: Value) -> Scene {
        Scene { able, ..self }
    }

    fn transcript(&self) -> String {
        let shell = Shell::new(self.files);
        if !self.config.is_empty() {
            shell.configure(self.config);
        }
        let mut editor = Editor::start(&shell, &self.script, self.args);
        let mut session = String::new();
        if self.is_open {
            editor.initialize(self.able.clone());
            session = editor.session(&shell.workspace());
            editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "available_commands_update");
        }
        (self.play)(&mut editor, &session, &shell);
        let code = editor.close();
        assert_eq!(code, 0, "{}", self.name);
        timeless(&editor.transcript, &shell)
    }
}

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/acp")
}

/// Plays the scenes and compares each with its file.
fn hold(scenes: &[Scene]) {
    let mut wrong = String::new();
    for scene in scenes {
        let path = golden().join(format!("{}.jsonl", scene.name));
        let told = scene.transcript();
        if std::env::var("PIXIR_GOLDEN").is_ok_and(|it| it == "write") {
            fs::create_dir_all(golden()).expect("mkdir");
            fs::write(&path, &told).expect("write");
            continue;
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        let (mut told, mut expected) = (told.lines(), expected.lines());
        for at in 1.. {
            match (told.next(), expected.next()) {
                (None, None) => break,
                (told, expected) if told == expected => {}
                (told, expected) => {
                    let _ = writeln!(wrong, "{}:{at}\n  is    {told:?}\n  was   {expected:?}", path.display());
                    break;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "read what changed, then PIXIR_GOLDEN=write:\n{wrong}");
}

/// The lines without what differs from run to run: folders, ids, times, and where a stream was cut into pieces.
fn timeless(lines: &[String], shell: &Shell) -> String {
    let workspace = shell.workspace();
    let real = workspace.canonicalize().expect("a folder");
    let folders: Vec<String> = [&real, &workspace]
        .iter()
        .flat_map(|it| [it.display().to_string(), it.parent().expect("a parent").display().to_string()])
        .collect();
    let mut out: Vec<(&str, Value)> = Vec::new();
    let mut text = String::new();
    for line in lines {
        let (from, body) = line.split_at(2);
        let mut body = body.to_owned();
        for (at, folder) in folders.iter().enumerate() {
            body = body.replace(folder, if at % 2 == 0 { "/home/me/app" } else { "/home/me" });
        }
        let body = without_figures(&body);
        let Ok(mut message) = serde_json::from_str::<Value>(&body) else {
            out.push((from, Value::String(body)));
            continue;
        };
        without_times(&mut message);
        let update = message.pointer("/params/update").cloned().unwrap_or_default();
        let is_tail = update["sessionUpdate"] == "tool_call_update"
            && update.get("status").is_none()
            && update.get("_meta").is_none();
        if is_tail {
            // How often the output of a running command is shown depends on the clock.
            continue;
        }
        if let Some(last) = out.last_mut().and_then(|(_, last)| last.pointer_mut("/params/update"))
            && update["messageId"].is_string()
            && last["messageId"] == update["messageId"]
            && let (Some(before), Some(more)) = (last["content"]["text"].as_str(), update["content"]["text"].as_str())
        {
            last["content"]["text"] = json!(format!("{before}{more}"));
            continue;
        }
        out.push((from, message));
    }
    for (from, message) in out {
        let line = match message {
            Value::String(body) => body,
            message => message.to_string(),
        };
        let _ = writeln!(text, "{from}{line}");
    }
    text
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), &*value) {
                    ("updatedAt" | "ts", Value::String(_)) => *value = json!("2026-01-01T00:00:00Z"),
                    ("duration_ms" | "pid", _) => *value = json!(0),
                    ("id", Value::String(id)) if id.len() == 36 => *value = json!("ID"),
                    ("chain" | "hash" | "prev" | "digest", Value::String(_)) => *value = json!("HASH"),
                    _ => without_times(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A line without ids of Sessions, durations and numbers of processes.
fn without_figures(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if is_session(rest) {
            out.push_str("SESSION");
            rest = &rest[SESSION.len()..];
        } else if digits > 0 && (out.ends_with("process ") || out.ends_with(" | ") && rest[digits..].starts_with("ms]"))
        {
            out.push('1');
            rest = &rest[digits..];
        } else if out.ends_with("completed after ") {
            out.push('1');
            rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        } else if out.ends_with("/sessions/app-") {
            // The hash of the workspace's path.
            out.push_str("HASH");
            rest = rest.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        } else {
            let len = if digits > 0 { digits } else { c.len_utf8() };
            out.push_str(&rest[..len]);
            rest = &rest[len..];
        }
    }
    out
}

/// What the id of a Session looks like; it is one of none.
const SESSION: &str = "20260101T000000-abcdef";

fn is_session(text: &str) -> bool {
    let pattern = SESSION.bytes().zip(text.bytes());
    text.len() >= SESSION.len()
        && text.starts_with("20")
        && pattern.enumerate().all(|(at, (like, is))| match at {
            8 | 15 => like == is,
            0..15 => is.is_ascii_digit(),
            _ => is.is_ascii_hexdigit(),
        })
}

fn says(text: &str) -> Value {
    json!({ "text": text })
}

fn calls(name: &str, args: Value) -> Value {
    json!({ "calls": [{ "name": name, "args": args }] })
}

fn edits() -> Value {
    calls("edit", json!({ "path": "a.txt", "old_text": "two", "new_text": "2" }))
}

/// Answers each question of pixir with the option of this kind, until the prompt ends.
fn say(editor: &mut Editor, session: &str, text: &str, options: &[&str]) {
    let from = editor.seen.len();
    let id = editor.prompt(session, text);
    let mut at = from;
    for option in options {
        let (place, asked) = editor.asked(at, "session/request_permission");
        editor.choose(&asked, option);
        at = place + 1;
    }
    editor.response(id);
}

fn prompt(editor: &mut Editor, session: &str, blocks: Value) {
    editor.ask("session/prompt", json!({ "sessionId": session, "prompt": blocks }));
}

fn say_hello(editor: &mut Editor, session: &str, _: &Shell) {
    say(editor, session, "hello", &[]);
}

#[test]
fn of_the_beginning() {
    hold(&[
        bare("initialize", |editor, _, _| {
            editor.initialize(able());
        }),
        bare("initialize-a-client-that-shows-nothing", |editor, _, _| {
            editor.initialize(json!({}));
        }),
        bare("initialize-a-later-version", |editor, _, _| {
            editor.ask("initialize", json!({ "protocolVersion": 9, "clientInfo": { "name": "new", "version": "9" } }));
        }),
        bare("initialize-without-a-version", |editor, _, _| {
            editor.ask("initialize", json!({}));
        }),
        bare("before-initialize", |editor, _, shell| {
            editor.ask("session/new", json!({ "cwd": shell.workspace(), "mcpServers": [] }));
            editor.initialize(able());
        }),
        bare("a-line-that-is-no-json", |editor, _, _| {
            editor.raw(b"{");
            editor.until(0, |line| line["error"]["code"] == -32700);
        }),
        bare("a-batch", |editor, _, _| {
            editor.raw(br#"[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}]"#);
            editor.until(0, |line| line["error"]["code"] == -32600);
        }),
        bare("another-version-of-json-rpc", |editor, _, _| {
            editor.raw(br#"{"jsonrpc":"1.0","id":"x","method":"initialize","params":{"protocolVersion":1}}"#);
            editor.until(0, |line| line["error"]["code"] == -32600);
        }),
        scene("an-unknown-request", &[], |editor, session, _| {
            editor.ask("session/fork", json!({ "sessionId": session }));
        }),
        scene("an-unknown-notification", &[says("Hello.")], |editor, session, shell| {
            editor.notify("buffer/saved", json!({ "path": "a.txt" }));
            say_hello(editor, session, shell);
        }),
        bare("authenticate", |editor, _, _| {
            editor.initialize(able());
            editor.ask("authenticate", json!({ "methodId": "pixir-check" }));
        }),
        bare("authenticate-in-an-unknown-way", |editor, _, _| {
            editor.initialize(able());
            editor.ask("authenticate", json!({ "methodId": "magic" }));
        }),
    ]);
}

#[test]
fn of_sessions() {
    hold(&[
        scene("new", &[], |_, _, _| {}),
        bare("new-in-a-relative-folder", |editor, _, _| {
            editor.initialize(able());
            editor.ask("session/new", json!({ "cwd": "app", "mcpServers": [] }));
        }),
        bare("new-in-a-folder-that-is-missing", |editor, _, shell| {
            editor.initialize(able());
            editor.ask("session/new", json!({ "cwd": shell.workspace().join("gone"), "mcpServers": [] }));
        }),
        bare("new-with-other-folders", |editor, _, shell| {
            editor.initialize(able());
            let more = [shell.workspace().join("gone")];
            editor.ask(
                "session/new",
                json!({ "cwd": shell.workspace(), "mcpServers": [], "additionalDirectories": more }),
            );
            editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "notice");
        }),
        bare("list-without-sessions", |editor, _, _| {
            editor.initialize(able());
            editor.ask("session/list", json!({}));
        }),
        scene("list", &[says("Hello.")], |editor, session, shell| {
            say_hello(editor, session, shell);
            editor.ask("session/list", json!({ "cwd": shell.workspace() }));
        }),
        scene("list-from-a-cursor-that-is-gone", &[], |editor, _, _| {
            editor.ask("session/list", json!({ "cursor": "gone" }));
        }),
        scene("load", &[says("Looking."), edits(), says("Changed.")], |editor, session, shell| {
            say(editor, session, "look", &[]);
            say(editor, session, "change it", &["allow_once"]);
            editor.ask("session/close", json!({ "sessionId": session }));
            editor.ask("session/load", json!({ "sessionId": session, "cwd": shell.workspace(), "mcpServers": [] }));
        }),
        scene("load-of-an-open-session", &[says("Hello.")], |editor, session, shell| {
            say_hello(editor, session, shell);
            editor.ask("session/load", json!({ "sessionId": session, "cwd": shell.workspace(), "mcpServers": [] }));
        }),
        scene("load-in-another-folder", &[says("Hello.")], |editor, session, shell| {
            say_hello(editor, session, shell);
            editor.ask("session/close", json!({ "sessionId": session }));
            let elsewhere = shell.workspace().join("..").canonicalize().expect("a folder");
            editor.ask("session/load", json!({ "sessionId": session, "cwd": elsewhere, "mcpServers": [] }));
        }),
        scene("load-of-a-session-that-is-missing", &[], |editor, _, shell| {
            let id = SESSION;
            editor.ask("session/load", json!({ "sessionId": id, "cwd": shell.workspace(), "mcpServers": [] }));
        }),
        scene("resume", &[says("Hello."), says("Again.")], |editor, session, shell| {
            say_hello(editor, session, shell);
            editor.ask("session/close", json!({ "sessionId": session }));
            editor.ask("session/resume", json!({ "sessionId": session, "cwd": shell.workspace() }));
            say(editor, session, "again", &[]);
        }),
        scene("close", &[says("Hello.")], |editor, session, shell| {
            say_hello(editor, session, shell);
            editor.ask("session/close", json!({ "sessionId": session }));
            say(editor, session, "hello?", &[]);
        }),
        scene("close-while-a-turn-runs", &[json!({ "text": "Wait.", "hang": true })], |editor, session, _| {
            let id = editor.prompt(session, "begin");
            editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
            editor.ask("session/close", json!({ "sessionId": session }));
            editor.response(id);
        }),
        scene("delete", &[says("Hello.")], |editor, session, shell| {
            say_hello(editor, session, shell);
            editor.ask("session/delete", json!({ "sessionId": session }));
            editor.ask("session/list", json!({}));
            editor.ask("session/delete", json!({ "sessionId": session }));
        }),
    ]);
}

#[test]
fn of_a_session_that_another_pixir_writes() {
    hold(&[bare("load-of-a-locked-session", |editor, _, shell| {
        let mut host = Hosted::start(shell, &script(&[says("From the host.")]), &[]);
        let at = host.until(0, |line| line["type"] == "ready");
        let session = host.seen[at]["session_id"].as_str().expect("an id").to_owned();
        host.ask("1", json!({ "type": "prompt", "text": "hello" }));
        host.event("turn_ended");
        editor.initialize(able());
        editor.ask("session/load", json!({ "sessionId": session, "cwd": shell.workspace(), "mcpServers": [] }));
        editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "notice");
        host.end();
    })]);
}

#[test]
fn of_prompts() {
    let hangs = || json!({ "text": "Wait.", "hang": true });
    hold(&[
        scene("prompt", &[says("Hello.")], say_hello),
        scene("prompt-with-thoughts", &[json!({ "reasoning": "A greeting.", "text": "Hello." })], say_hello),
        scene("prompt-with-links", &[says("Seen.")], |editor, session, shell| {
            let uri = format!("file://{}/a.txt#L2", shell.workspace().display());
            let text = json!({ "type": "text", "text": "see " });
            prompt(editor, session, json!([text, { "type": "resource_link", "uri": uri, "name": "a.txt" }]));
        }),
        scene("prompt-with-a-file", &[says("Read.")], |editor, session, shell| {
            let uri = format!("file://{}/a.txt", shell.workspace().display());
            let resource = json!({ "uri": uri, "mimeType": "text/plain", "text": "one\n" });
            prompt(
                editor,
                session,
                json!([{ "type": "text", "text": "read this" }, { "type": "resource", "resource": resource }]),
            );
        }),
        scene("prompt-with-an-image", &[says("A picture.")], |editor, session, _| {
            let image = json!({ "type": "image", "mimeType": "image/png", "data": STANDARD.encode(png(80)) });
            prompt(editor, session, json!([{ "type": "text", "text": "look" }, image]));
        }),
        scene("prompt-with-what-the-editor-shows", &[says("I see.")], |editor, session, _| {
            let shown =
                json!([{ "kind": "selection", "path": "a.txt", "lines": { "from": 1, "to": 2 }, "text": "one" }]);
            let meta = json!({ "pixir": { "presenter_context": shown } });
            let blocks = json!([{ "type": "text", "text": "this?" }]);
            editor.ask("session/prompt", json!({ "sessionId": session, "prompt": blocks, "_meta": meta }));
        }),
        scene("prompt-with-sound", &[], |editor, session, _| {
            prompt(editor, session, json!([{ "type": "audio", "mimeType": "audio/wav", "data": "AAAA" }]));
        }),
        scene("prompt-without-text", &[], |editor, session, _| prompt(editor, session, json!([]))),
        scene("prompt-to-no-session", &[], |editor, _, _| {
            say(editor, SESSION, "hello", &[]);
        }),
        scene("cancel", &[hangs()], |editor, session, _| {
            let id = editor.prompt(session, "begin");
            editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
            editor.notify("session/cancel", json!({ "sessionId": session }));
            editor.response(id);
        }),
        scene("cancel-what-waits-too", &[hangs()], |editor, session, _| {
            let id = editor.prompt(session, "begin");
            editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
            let waiting = editor.prompt(session, "then");
            editor.notify("session/cancel", json!({ "sessionId": session }));
            editor.response(waiting);
            editor.response(id);
        }),
        scene("cancel-by-request", &[hangs()], |editor, session, _| {
            let id = editor.prompt(session, "begin");
            editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
            editor.notify("$/cancel_request", json!({ "requestId": id }));
            editor.response(id);
        }),
        scene("cancel-nothing", &[says("Hello.")], |editor, session, shell| {
            editor.notify("session/cancel", json!({ "sessionId": session }));
            say_hello(editor, session, shell);
        }),
        scene("change-the-mode-while-a-prompt-waits", &[hangs()], |editor, session, _| {
            let id = editor.prompt(session, "begin");
            editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
            let after = editor.prompt(session, "then");
            editor.ask("session/set_mode", json!({ "sessionId": session, "modeId": "read-only" }));
            editor.notify("session/cancel", json!({ "sessionId": session }));
            editor.response(after);
            editor.response(id);
        }),
        scene("stop-at-the-most-tokens", &[json!({ "text": "Half an", "cut_short": "max_output_tokens" })], say_hello),
        scene("stop-as-refused", &[json!({ "text": "No.", "cut_short": "refusal" })], say_hello),
        scene(
            "stop-at-the-most-requests",
            &[calls("read", json!({ "path": "a.txt" })), calls("read", json!({ "path": "a.txt" }))],
            say_hello,
        )
        .args(&["--config", "limits.max_rounds=1"]),
        scene(
            "stop-with-an-error",
            &[json!({ "text": "Half", "error": { "code": "INVALID_RESPONSE", "message": "broken" } })],
            say_hello,
        ),
    ]);
}

#[test]
fn of_calls() {
    let auto = &["--mode", "auto"];
    let mut terminal = able();
    terminal["_meta"] = json!({ "terminal_output": true });
    let mut usage = json!({ "steps": [{ "text": "Cheap.", "usage": { "input": 1000, "output": 500 } }] });
    usage["window"] = json!(100_000);
    usage["price"] = json!({ "input": 1.0, "output": 2.0 });
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2\n*** Add File: b.txt\n+b\n*** End Patch\n";
    let plan = json!([{ "step": "look", "status": "completed" }, { "step": "act", "status": "in_progress" }]);
    hold(&[
        scene("call-read", &[calls("read", json!({ "path": "a.txt" })), says("Read.")], say_hello),
        scene("call-grep", &[calls("grep", json!({ "pattern": "two" })), says("Found.")], say_hello),
        scene("call-that-fails", &[calls("read", json!({ "path": "gone.txt" })), says("Gone.")], say_hello),
        scene("call-that-is-unknown", &[calls("dance", json!({})), says("I cannot.")], say_hello),
        scene("call-edit-allowed", &[calls("read", json!({ "path": "a.txt" })), edits(), says("Done.")], |e, s, _| {
            say(e, s, "edit", &["allow_once"]);
        }),
        scene("call-edit-refused", &[edits(), says("Not done.")], |e, s, _| say(e, s, "edit", &["reject_once"])),
        scene("call-write-a-new-file", &[writes("b/new.txt", "new\n"), says("Written.")], |e, s, _| {
            say(e, s, "write", &["allow_once"]);
        }),
        scene("call-patch", &[calls("apply_patch", json!({ "patch": patch })), says("Patched.")], |e, s, _| {
            say(e, s, "patch", &["allow_once"]);
        }),
        scene("call-command-allowed", &[runs("touch made"), says("Made.")], |e, s, _| {
            say(e, s, "make", &["allow_once"])
        }),
        scene("call-command-allowed-always", &[runs("touch a"), runs("touch a"), says("Twice.")], |e, s, _| {
            say(e, s, "make", &["allow_always"]);
        }),
        scene("call-command-that-fails", &[runs("touch made; exit 3"), says("It failed.")], |e, s, _| {
            say(e, s, "make", &["allow_once"]);
        }),
        scene("call-with-hidden-characters", &[runs("echo \u{202e}txt.exe > a"), says("No.")], |e, s, _| {
            say(e, s, "make", &["reject_once"]);
        }),
        scene("call-an-option-that-was-not-offered", &[runs("touch made"), says("No.")], |e, s, _| {
            say(e, s, "make", &["yes"]);
        }),
        scene("call-cancelled-while-it-asks", &[runs("touch made"), says("Never.")], |editor, session, _| {
            let id = editor.prompt(session, "make");
            let (at, asked) = editor.asked(0, "session/request_permission");
            editor.notify("session/cancel", json!({ "sessionId": session }));
            editor.until(at, |line| line["method"] == "$/cancel_request");
            editor.answer(&asked, json!({ "outcome": { "outcome": "cancelled" } }));
            editor.response(id);
        }),
        scene(
            "call-with-a-terminal",
            &[runs("echo first; while [ ! -e go ]; do sleep 0.02; done"), says("Ran.")],
            |editor, session, shell| {
                let id = editor.prompt(session, "run");
                editor.until(0, |line| line["params"]["update"]["_meta"]["terminal_output"].is_object());
                shell.write("go", "");
                editor.response(id);
            },
        )
        .args(auto)
        .able(terminal),
        scene("call-in-read-only-mode", &[writes("b.txt", "b"), says("I may not.")], say_hello)
            .args(&["--mode", "read-only"]),
        scene("call-deletes-a-file", &[runs("rm a.txt"), says("Gone.")], say_hello).args(auto),
        scene("plan", &[calls("update_plan", json!({ "items": plan })), says("Planned.")], say_hello),
        Scene { script: usage, ..scene("usage", &[], say_hello) },
        scene(
            "agent",
            &[
                json!({ "calls": [spawn("Count to three", json!({ "name": "counter" }))] }),
                json!({ "of": "Count to three", "text": "1, 2, 3" }),
                says("It counts."),
            ],
            say_hello,
        ),
    ]);
}

#[test]
fn of_questions() {
    let ask = |questions: Value| calls("ask_user", json!({ "questions": questions }));
    let one = || ask(json!([{ "question": "Which?", "options": ["a", "b"] }]));
    hold(&[
        scene("form", &[one(), says("So b.")], |editor, session, _| {
            let id = editor.prompt(session, "ask me");
            let (_, asked) = editor.asked(0, "elicitation/create");
            editor.answer(&asked, json!({ "action": "accept", "content": { "answer_1": "b" } }));
            editor.response(id);
        }),
        scene("form-declined", &[one(), says("So be it.")], |editor, session, _| {
            let id = editor.prompt(session, "ask me");
            let (_, asked) = editor.asked(0, "elicitation/create");
            editor.answer(&asked, json!({ "action": "decline" }));
            editor.response(id);
        }),
        scene(
            "form-of-several-questions",
            &[
                ask(json!([{ "question": "Why?" }, { "question": "Which?", "options": ["a", "b"], "multiple": true }])),
                says("Both."),
            ],
            |editor, session, _| {
                let id = editor.prompt(session, "ask me");
                let (_, asked) = editor.asked(0, "elicitation/create");
                let content = json!({ "answer_1": "because", "answer_2": ["a", "b"] });
                editor.answer(&asked, json!({ "action": "accept", "content": content }));
                editor.response(id);
            },
        ),
        scene("question-as-options", &[one(), says("So b.")], |e, s, _| say(e, s, "ask me", &["answer_1"]))
            .able(json!({})),
        scene("form-that-cannot-be-shown", &[ask(json!([{ "question": "Why?" }])), says("Then not.")], say_hello)
            .able(json!({})),
    ]);
}

#[test]
fn of_commands_and_options() {
    let skill = "---\nname: review\ndescription: Reads a diff\n---\nLook twice.\n";
    let template = "---\ndescription: Says hello\n---\nSay hello to $ARGUMENTS.\n";
    let files: &'static [(&'static str, &'static str)] = Box::leak(Box::new([
        ("a.txt", "one\ntwo\nthree\n"),
        (".pixir/skills/review/SKILL.md", skill),
        (".pixir/prompts/greet.md", template),
    ]));
    let auto = &["--mode", "auto"];
    hold(&[
        scene("slash-unknown", &[], |e, s, _| say(e, s, "/undu", &[])),
        scene("slash-a-path", &[says("A path.")], |e, s, _| say(e, s, "/etc/hosts is what?", &[])),
        scene("slash-undo", &[edits(), says("Done.")], |e, s, _| {
            say(e, s, "edit", &[]);
            say(e, s, "/undo", &["allow_once"]);
        })
        .args(auto),
        scene("slash-undo-refused", &[edits(), says("Done.")], |e, s, _| {
            say(e, s, "edit", &[]);
            say(e, s, "/undo", &["reject_once"]);
        })
        .args(auto),
        scene("slash-redo", &[edits(), says("Done.")], |e, s, _| {
            say(e, s, "edit", &[]);
            say(e, s, "/undo", &["allow_once"]);
            say(e, s, "/redo", &["allow_once"]);
        })
        .args(auto),
        scene("slash-undo-nothing", &[], |e, s, _| say(e, s, "/undo", &[])),
        scene("slash-compact", &[says("One."), says("Two."), says("Three.")], |e, s, _| {
            for _ in 0..3 {
                say(e, s, &"count ".repeat(40), &[]);
            }
            say(e, s, "/compact", &[]);
        }),
        scene("slash-rename", &[], |e, s, _| say(e, s, "/rename Errands", &[])),
        scene("slash-mode", &[], |e, s, _| say(e, s, "/mode read-only", &[])),
        scene("slash-jobs", &[], |e, s, _| say(e, s, "/jobs", &[])),
        scene("slash-skills-and-templates", &[says("Hello."), says("Looked.")], |e, s, _| {
            say(e, s, "/greet the world", &[]);
            say(e, s, "/review a.txt", &[]);
        })
        .files(files)
        .args(&["--trust-workspace"]),
        scene("set-mode", &[], |editor, session, _| {
            editor.ask("session/set_mode", json!({ "sessionId": session, "modeId": "auto" }));
        }),
        scene("set-mode-unknown", &[], |editor, session, _| {
            editor.ask("session/set_mode", json!({ "sessionId": session, "modeId": "yolo" }));
        }),
        scene("set-option", &[], |editor, session, _| {
            for (id, value) in [("effort", "high"), ("toolset", "both"), ("mode", "read-only")] {
                let params = json!({ "sessionId": session, "configId": id, "value": value });
                editor.ask("session/set_config_option", params);
            }
        }),
        scene("set-option-unknown", &[], |editor, session, _| {
            let params = json!({ "sessionId": session, "configId": "colour", "value": "red" });
            editor.ask("session/set_config_option", params);
        }),
        scene("any-input", &[says("Hello.")], |editor, session, _| {
            let input = json!({ "type": "set", "name": "Errands" });
            editor.ask("_pixir/input", json!({ "sessionId": session, "input": input }));
            editor.until(0, |line| line["method"] == "_pixir/event");
            editor.ask("_pixir/input", json!({ "sessionId": session, "input": { "type": "dance" } }));
        }),
    ]);
}

/// Broken build: a transcript whose scene is gone stays and is decoded for ever.
#[test]
fn there_are_sixty_transcripts_and_each_has_its_scene() {
    let sources = include_str!("transcripts.rs");
    let names: Vec<String> = fs::read_dir(golden())
        .expect("the transcripts")
        .map(|it| it.expect("an entry").file_name().to_string_lossy().trim_end_matches(".jsonl").to_owned())
        .collect();
    let orphans: Vec<&String> = names.iter().filter(|name| !sources.contains(&format!("\"{name}\""))).collect();
    assert!(orphans.is_empty(), "no scene makes {orphans:?}");
    assert!(names.len() >= 60, "{} transcripts", names.len());
}
