//! What an editor is shown: output of commands, plan, usage, ends of turns, agents; the same live and after a load.

use serde_json::{Value, json};

use super::{opened, runs, script, writes};
use crate::editor::{Editor, able};
use crate::server::{Dialect, Reply, Server, text};
use crate::shell::Shell;
use crate::stories::agents::spawn;

fn reads(path: &str) -> Value {
    json!({ "calls": [{ "name": "read", "args": { "path": path } }] })
}

fn of_turn(editor: &Editor, from: usize) -> Vec<Value> {
    let all = editor.seen[from..].iter().filter(|line| line["method"] == "session/update");
    all.map(|line| line["params"]["update"].clone()).collect()
}

/// Broken builds: both sides of a file of 300 KB are sent for a change of one line; a change of a large file shows nothing.
#[test]
fn a_change_of_a_large_file_is_shown_as_its_lines() {
    let large = format!("needle\n{}", format!("{}\n", "x".repeat(99)).repeat(3_000));
    let shell = Shell::new(&[("large.txt", &large)]);
    let steps = [
        json!({ "calls": [{ "name": "read", "args": { "path": "large.txt", "limit": 5 } }] }),
        json!({ "calls": [{ "name": "edit", "args": { "path": "large.txt", "old_text": "needle", "new_text": "thread" } }] }),
        json!({ "text": "Changed." }),
    ];
    let mut editor = Editor::start(&shell, &script(&steps), &["--mode", "auto"]);
    editor.initialize(able());
    let session = editor.session(&shell.workspace());
    assert_eq!(editor.say(&session, "change it"), "end_turn");
    assert!(shell.read("large.txt").starts_with("thread\n"));
    let updates = editor.updates("tool_call_update");
    let shown = updates.last().expect("updates")["content"].to_string();
    assert!(!shown.contains("oldText"), "{shown}");
    assert!(shown.contains("-needle") && shown.contains("+thread") && shown.len() < 4_000, "{shown}");
    assert_eq!(editor.close(), 0);
}

/// Broken builds: the output comes as text too; a terminal that never printed has no output; the exit code is lost.
#[test]
fn a_client_with_terminals_gets_the_output_of_commands_as_one() {
    let shell = Shell::new(&[]);
    let steps = [
        runs("echo first; while [ ! -e go ]; do sleep 0.02; done; echo second; exit 3"),
        runs("true"),
        json!({ "text": "Done." }),
    ];
    let mut editor = Editor::start(&shell, &script(&steps), &["--mode", "auto"]);
    let mut able = able();
    able["_meta"] = json!({ "terminal_output": true });
    editor.initialize(able);
    let session = editor.session(&shell.workspace());
    let prompt = editor.prompt(&session, "run it");
    let printed = |line: &Value| line["params"]["update"]["_meta"]["terminal_output"]["data"].is_string();
    let at = editor.until(0, printed);
    assert_eq!(editor.seen[at]["params"]["update"]["_meta"]["terminal_output"]["data"], "first\n");
    shell.write("go", "");
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    let call = &editor.updates("tool_call")[0];
    let id = &call["toolCallId"];
    let cwd = shell.workspace().canonicalize().expect("a folder");
    assert_eq!(call["content"], json!([{ "type": "terminal", "terminalId": id }]));
    assert_eq!(call["_meta"], json!({ "terminal_info": { "terminal_id": id, "cwd": cwd } }));
    let updates = editor.updates("tool_call_update");
    let of: Vec<&Value> = updates.iter().filter(|it| it["toolCallId"] == *id).collect();
    let data: String = of.iter().filter_map(|it| it["_meta"]["terminal_output"]["data"].as_str()).collect();
    assert_eq!(data, "first\nsecond\n");
    let last = of.last().expect("a result");
    assert_eq!(last["_meta"]["terminal_exit"], json!({ "terminal_id": id, "exit_code": 3, "signal": null }));
    assert_eq!((&last["status"], &last["rawOutput"]["exit_code"]), (&json!("failed"), &json!(3)));
    // The file that the test wrote meanwhile is a change of the command.
    let content = last["content"].as_array().and_then(|it| it.last());
    assert_eq!(content, Some(&json!({ "type": "terminal", "terminalId": id })));
    assert!(of.iter().all(|it| !it["content"].to_string().contains("first")), "the output comes once");
    assert_eq!(editor.close(), 0);
}

/// Broken builds: each line of a command is an update; the whole output is sent again and again.
#[test]
fn other_clients_get_the_end_of_the_output_a_few_times_a_second() {
    let shell = Shell::new(&[]);
    let command = "i=0; while [ $i -lt 300 ]; do echo line $i xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; i=$((i+1)); done; \
                   while [ ! -e go ]; do sleep 0.02; done";
    let (mut editor, session) = opened(&shell, &[runs(command), json!({ "text": "Done." })], &["--mode", "auto"]);
    let prompt = editor.prompt(&session, "run it");
    editor.until(0, |line| line["params"]["update"]["content"].to_string().contains("line 299"));
    shell.write("go", "");
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    let tails = editor.updates("tool_call_update");
    let tails: Vec<&Value> = tails.iter().filter(|it| it.get("status").is_none()).collect();
    assert!(tails.len() < 60, "{} updates for 300 lines", tails.len());
    for tail in tails {
        let text = tail["content"][0]["content"]["text"].as_str().expect("text");
        assert!(text.len() <= (4 << 10) + 16 && text.starts_with("```"), "{}", text.len());
    }
    assert_eq!(editor.close(), 0);
}

/// Broken builds: the plan is shown once; the cost of earlier requests is forgotten.
#[test]
fn the_plan_and_the_usage_follow_the_session() {
    let plan = |first: &str| {
        let items = json!([{ "step": "look", "status": first }, { "step": "act", "status": "pending" }]);
        json!({
            "calls": [{ "name": "update_plan", "args": { "items": items } }],
            "usage": { "input": 1_000_000, "output": 1_000_000 },
        })
    };
    let shell = Shell::new(&[]);
    let steps = [plan("in_progress"), plan("completed"), json!({ "text": "Planned." })];
    let mut script = script(&steps);
    script["window"] = json!(4_000_000);
    script["price"] = json!({ "input": 1.0, "output": 2.0 });
    let mut editor = Editor::start(&shell, &script, &[]);
    editor.initialize(able());
    let session = editor.session(&shell.workspace());
    assert_eq!(editor.say(&session, "plan it"), "end_turn");
    let plans = editor.updates("plan");
    let first: Vec<&Value> = plans.iter().map(|it| &it["entries"][0]["status"]).collect();
    assert_eq!(first, ["in_progress", "completed"], "{plans:?}");
    assert_eq!(plans[0]["entries"][1], json!({ "content": "act", "priority": "medium", "status": "pending" }));
    let usage = editor.updates("usage_update");
    assert_eq!((&usage[0]["used"], &usage[0]["size"]), (&json!(2_000_000), &json!(4_000_000)), "{usage:?}");
    let costs: Vec<f64> = usage.iter().filter_map(|it| it["cost"]["amount"].as_f64()).collect();
    assert_eq!(costs[..2], [3.0, 6.0], "{usage:?}");
    assert_eq!(editor.close(), 0);
}

/// Broken build: a Turn that failed ends with `end_turn`.
#[test]
fn each_end_of_a_turn_has_its_own_stop_reason() {
    let endless: Vec<Value> = (0..3).map(|_| reads("a.txt")).collect();
    let failing = json!({ "text": "Half", "error": { "code": "INVALID_RESPONSE", "message": "broken" } });
    for (steps, args, expected) in [
        (vec![json!({ "text": "Half an", "cut_short": "max_output_tokens" })], &[][..], json!("max_tokens")),
        (vec![json!({ "text": "", "cut_short": "refusal" })], &[], json!("refusal")),
        (endless, &["--config", "limits.max_rounds=1"], json!("max_turn_requests")),
        (vec![failing], &[], json!("INVALID_RESPONSE")),
        (vec![json!({ "text": "Whole." })], &[], json!("end_turn")),
    ] {
        let shell = Shell::new(&[("a.txt", "a\n")]);
        let (mut editor, session) = opened(&shell, &steps, args);
        let id = editor.prompt(&session, "go");
        let answer = editor.response(id);
        let outcome = answer["result"].get("stopReason").unwrap_or(&answer["error"]["data"]["code"]);
        assert_eq!(*outcome, expected, "{answer}");
        assert_eq!(editor.close(), 0);
    }
}

/// Broken builds: a notice goes into the answer; a client without notices is not told that a request is sent again.
#[test]
fn a_request_that_is_sent_again_is_told_beside_the_conversation() {
    for shows_notices in [true, false] {
        let shell = Shell::new(&[]);
        let busy = Reply::Refuse { status: 503, headers: String::new(), body: "busy".to_owned() };
        let server = Server::start(vec![busy, text("At last.")]);
        let flags = server.flags(Dialect::Chat);
        let flags: Vec<&str> =
            flags.iter().map(String::as_str).chain(["--config", "requests.first_wait=0.05"]).collect();
        let mut editor = Editor::on(&shell, &flags);
        editor.initialize(if shows_notices { able() } else { json!({}) });
        let session = editor.session(&shell.workspace());
        assert_eq!(editor.say(&session, "go"), "end_turn");
        assert_eq!(editor.text("agent_message_chunk"), "At last.");
        let notices: Vec<Value> =
            editor.updates("notice").into_iter().filter(|it| it["severity"] == "warning").collect();
        let thoughts = editor.text("agent_thought_chunk");
        if shows_notices {
            let title = notices[0]["title"].as_str().expect("a title");
            assert!(title.starts_with("the request failed; "), "{notices:?}");
            assert_eq!(thoughts, "");
        } else {
            assert!(notices.is_empty() && thoughts.starts_with("the request failed; "), "{thoughts}");
        }
        assert_eq!(editor.close(), 0);
    }
}

/// The updates of a conversation, with chunks of one message as one, and without what only a running Turn has.
fn conversation(updates: &[Value]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for update in updates {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let mut update = update.clone();
        if kind.ends_with("_chunk") {
            // The id of a message that was streamed may differ from that of one that was not.
            update.as_object_mut().expect("an object").remove("messageId");
            if let Some(last) = all.last_mut().filter(|it| it["sessionUpdate"] == update["sessionUpdate"])
                && let (Some(text), Some(more)) = (last["content"]["text"].as_str(), update["content"]["text"].as_str())
            {
                last["content"]["text"] = json!(format!("{text}{more}"));
                continue;
            }
        }
        let is_told = match kind {
            "user_message_chunk"
            | "config_option_update"
            | "current_mode_update"
            | "notice"
            | "available_commands_update" => false,
            "tool_call_update" => update["status"].as_str().is_some_and(|it| it != "in_progress"),
            _ => true,
        };
        if is_told {
            all.push(update);
        }
    }
    all
}

/// Broken builds: a load leaves out calls, diffs, the plan, thoughts, or the compaction; a message has two ids.
#[test]
fn a_load_shows_what_was_shown_live() {
    let shell = Shell::new(&[("a.txt", "one\ntwo\n")]);
    let edit = json!({ "name": "edit", "args": { "path": "a.txt", "old_text": "two", "new_text": "three" } });
    let plan = json!({ "name": "update_plan", "args": { "items": [{ "step": "look", "status": "completed" }] } });
    let steps = [
        json!({ "reasoning": "I should look.", "text": "Looking.", "calls": [{ "name": "read", "args": { "path": "a.txt" } }, plan] }),
        json!({ "calls": [edit], "usage": { "input": 10, "output": 5 } }),
        runs("cat a.txt; exit 1"),
        json!({ "calls": [{ "name": "write", "args": { "path": "b/new.txt", "content": "new\n" } },
                          { "name": "bash", "args": { "command": "rm a.txt" } }] }),
        json!({ "reasoning": "All done.", "text": "Done: `b/new.txt`." }),
        json!({ "text": "Once more." }),
    ];
    let mut steps = script(&steps);
    steps["window"] = json!(1_000_000);
    let mut editor = Editor::start(&shell, &steps, &["--mode", "auto"]);
    editor.initialize(able());
    let session = editor.session(&shell.workspace());
    assert_eq!(editor.say(&session, "change it"), "end_turn");
    assert_eq!(editor.say(&session, "again"), "end_turn");
    let live = conversation(&of_turn(&editor, 0));
    let ids = |updates: &[Value]| -> usize {
        let mut ids: Vec<String> = updates
            .iter()
            .filter(|it| it["sessionUpdate"] == "agent_message_chunk")
            .map(|it| it["messageId"].to_string())
            .collect();
        ids.dedup();
        ids.len()
    };
    assert_eq!(ids(&of_turn(&editor, 0)), 3, "one id a message");
    assert_eq!(editor.close(), 0);

    let mut again = Editor::start(&shell, &steps, &[]);
    again.initialize(able());
    let cwd = shell.workspace();
    let loaded = again.ask("session/load", json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] }));
    assert!(loaded["result"].is_object(), "{loaded}");
    let replayed = conversation(&of_turn(&again, 0));
    assert!(live.len() > 12, "{live:#?}");
    for (at, (live, replayed)) in live.iter().zip(&replayed).enumerate() {
        assert_eq!(live, replayed, "update {at}");
    }
    assert_eq!(live.len(), replayed.len());
    assert_eq!(again.text("user_message_chunk"), "change itagain");
    assert_eq!(again.close(), 0);
}

/// Broken builds: the questions of two agents with calls of the same id answer each other; an agent is not shown.
#[test]
fn agents_are_shown_in_the_call_that_started_them_and_ask_by_their_name() {
    let shell = Shell::new(&[]);
    let calls = json!([
        spawn("Write the first", json!({ "name": "first" })),
        spawn("Write the second", json!({ "name": "second" })),
    ]);
    let write = |of: &str, path: &str| {
        let mut it = writes(path, "made\n");
        it["of"] = json!(of);
        it
    };
    let steps = [
        json!({ "calls": calls }),
        write("Write the first", "1.txt"),
        write("Write the second", "2.txt"),
        json!({ "of": "Write the first", "text": "First made." }),
        json!({ "of": "Write the second", "text": "Second not made." }),
        json!({ "text": "One of two." }),
    ];
    let (mut editor, session) = opened(&shell, &steps, &[]);
    let prompt = editor.prompt(&session, "both");
    let mut from = 0;
    let mut asked = Vec::new();
    for _ in 0..2 {
        let (at, question) = editor.asked(from, "session/request_permission");
        from = at + 1;
        asked.push(question);
    }
    let of = |name: &str| {
        let fits = |it: &&Value| it["params"]["toolCall"]["title"].as_str().is_some_and(|it| it.starts_with(name));
        asked.iter().find(fits).unwrap_or_else(|| panic!("{name} asks nothing: {asked:#?}")).clone()
    };
    let (first, second) = (of("first: "), of("second: "));
    assert_ne!(first["params"]["toolCall"]["toolCallId"], second["params"]["toolCall"]["toolCallId"]);
    editor.choose(&second, "reject_once");
    editor.choose(&first, "allow_once");
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(shell.read("1.txt"), "made\n");
    assert!(shell.read("2.txt").contains("No such file"));
    let started = editor.updates("tool_call").iter().filter(|it| it["name"] == "spawn_agent").count();
    assert_eq!(started, 2);
    let shown = editor.updates("tool_call_update");
    for name in ["first", "second"] {
        let says = |it: &&Value| {
            it["content"][0]["content"]["text"].as_str().is_some_and(|it| it.contains(&format!("{name}: ")))
        };
        assert!(shown.iter().any(|it| says(&it)), "{name} is not shown: {shown:#?}");
    }
    assert_eq!(editor.close(), 0);
}

/// Broken builds: a buffer that the user has edited is overwritten; nothing is repeated although the user wants it; a change is
/// repeated although nobody wants it.
#[test]
fn a_change_is_repeated_in_a_buffer_that_was_as_the_file_if_the_user_wants_that() {
    let edit =
        json!({ "calls": [{ "name": "edit", "args": { "path": "a.txt", "old_text": "two", "new_text": "three" } }] });
    let mut fs = able();
    fs["fs"] = json!({ "readTextFile": true, "writeTextFile": true });
    for (wanted, buffer, is_repeated) in
        [(true, "one\ntwo\n", true), (true, "one\ntwo, and mine\n", false), (false, "one\ntwo\n", false)]
    {
        let shell = Shell::new(&[("a.txt", "one\ntwo\n")]);
        if wanted {
            shell.configure("[acp]\nmirror_writes = true\n");
        }
        let steps = [reads("a.txt"), edit.clone(), json!({ "text": "Changed." })];
        let mut editor = Editor::start(&shell, &script(&steps), &[]);
        editor.initialize(fs.clone());
        let session = editor.session(&shell.workspace());
        let path = shell.workspace().canonicalize().expect("a folder").join("a.txt");
        let prompt = editor.prompt(&session, "change it");
        if wanted {
            let (_, read) = editor.asked(0, "fs/read_text_file");
            assert_eq!(read["params"], json!({ "sessionId": session, "path": path }));
            editor.answer(&read, json!({ "content": buffer }));
        }
        let (_, asked) = editor.asked(0, "session/request_permission");
        editor.choose(&asked, "allow_once");
        if is_repeated {
            let (_, write) = editor.asked(0, "fs/write_text_file");
            assert_eq!(write["params"], json!({ "sessionId": session, "path": path, "content": "one\nthree\n" }));
            assert_eq!(shell.read("a.txt"), "one\nthree\n", "pixir's own write comes first");
            editor.answer(&write, json!({}));
        }
        assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
        assert_eq!(editor.close(), 0);
        let repeated = editor.seen.iter().filter(|line| line["method"] == "fs/write_text_file").count();
        assert_eq!(repeated, usize::from(is_repeated), "{buffer:?}");
        assert_eq!(shell.read("a.txt"), "one\nthree\n");
    }
}
