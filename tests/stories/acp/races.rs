//! An editor at its worst: prompts cancelled at any moment, lines that are damaged, and one script through every Presenter.

use serde_json::{Value, json};

use super::{opened, runs, script, writes};
use crate::editor::{Editor, able};
use crate::hosted::Hosted;
use crate::pty::Terminal;
use crate::random::Random;
use crate::shell::{Shell, entries, figures, mark};
use crate::tier;
use crate::wait;

// ─── one script, three Presenters ───

fn one_script() -> Value {
    script(&[
        json!({
            "reasoning": "I should look.",
            "text": "Looking.",
            "calls": [{ "name": "read", "args": { "path": "a.txt" } }],
        }),
        writes("b.txt", "made\n"),
        runs("touch c.txt"),
        json!({ "text": "All done." }),
        json!({ "text": "And again." }),
    ])
}

/// The facts of the Log without ids, times and the folder of the test.
fn facts(shell: &Shell) -> Vec<Value> {
    let workspace = shell.workspace();
    let folders = [workspace.canonicalize().expect("a folder"), workspace];
    let all = entries(&shell.logs()[0]);
    all.iter()
        .map(|entry| {
            let mut fact =
                json!({ "seq": entry["seq"], "turn": entry["turn"], "type": entry["type"], "data": entry["data"] });
            without_clock(&mut fact);
            let mut text = fact.to_string();
            for folder in &folders {
                let parent = folder.parent().expect("a parent");
                text = text.replace(&*folder.to_string_lossy(), "/app").replace(&*parent.to_string_lossy(), "/home");
            }
            serde_json::from_str(&text).expect("JSON")
        })
        .collect()
}

fn without_clock(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "duration_ms" | "took_ms" | "ms" | "started" | "ended" => *value = json!(0),
                    _ => without_clock(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_clock),
        Value::String(text) => {
            if let Some((before, after)) = text.rsplit_once(" | ")
                && let Some(at) = after.find("ms]")
            {
                *text = format!("{before} | 1{}", &after[at..]);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// K64. Broken builds: a Presenter sends a prompt as a steer; a Presenter records settings of its own; an approval by an editor
/// becomes a rule.
#[test]
fn one_script_gives_the_same_facts_headless_in_the_terminal_and_in_an_editor() {
    let files = [("a.txt", "one\ntwo\n")];
    let by_host = Shell::new(&files);
    let mut host = Hosted::start(&by_host, &one_script(), &["--mode", "ask"]);
    for text in ["go", "again"] {
        host.ask(text, json!({ "type": "prompt", "text": text }));
        if text == "go" {
            for _ in 0..2 {
                let asked = host.event("approval_requested");
                let decide =
                    json!({ "type": "decide", "call_id": asked["data"]["call_id"], "decision": { "answer": "allow" } });
                assert_eq!(host.ask("d", decide)["ok"], true);
            }
        }
        host.event("turn_ended");
    }
    host.end();

    let by_editor = Shell::new(&files);
    let mut editor = Editor::start(&by_editor, &one_script(), &["--mode", "ask"]);
    editor.initialize(able());
    let session = editor.session(&by_editor.workspace());
    let prompt = editor.prompt(&session, "go");
    let mut from = 0;
    for _ in 0..2 {
        let (at, asked) = editor.asked(from, "session/request_permission");
        editor.choose(&asked, "allow_once");
        from = at + 1;
    }
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.say(&session, "again"), "end_turn");
    assert_eq!(editor.close(), 0);

    let by_hand = Shell::new(&files);
    let path = by_hand.aside("script.json", &one_script().to_string());
    let provider = format!("script:{}", path.display());
    let mut terminal = Terminal::start(&by_hand, &["--mode", "ask", "--provider", &provider], 100, 30);
    terminal.wait_for("Ask");
    terminal.send("go\r");
    for what in ["b.txt", "touch c.txt"] {
        terminal.wait_that("the question", |screen| screen.contains(what) && screen.contains("llow"));
        terminal.decide("\u{1b}y");
    }
    terminal.wait_for("All done.");
    // The text is on the screen before the Turn has ended, and a message would wait until then.
    wait::until("the turn has ended", || entries(&by_hand.logs()[0]).iter().any(|it| it["type"] == "turn_ended"));
    terminal.send("again\r");
    terminal.wait_for("And again.");
    terminal.send("\u{4}");
    terminal.end();

    let [host, editor, hand] = [&by_host, &by_editor, &by_hand].map(facts);
    for (name, told) in [("editor", &editor), ("terminal", &hand)] {
        for (at, (one, other)) in host.iter().zip(told).enumerate() {
            assert_eq!(one, other, "entry {at}: left by a host, right by the {name}");
        }
        assert_eq!(host.len(), told.len(), "{name}");
    }
    assert!(host.len() > 12, "{host:#?}");
}

// ─── cancels ───

/// Broken builds: a prompt has two responses, or none; an update follows the response; a cancelled session is wedged.
#[test]
fn prompts_that_are_cancelled_at_any_moment_have_one_response_each() {
    let times = tier::cases("prompts_that_are_cancelled");
    let seconds = mark();
    let kinds = [
        json!({ "text": "Wait for it.", "hang": true }),
        runs(&format!("sleep {seconds}")),
        writes("b.txt", "b"),
        json!({ "reasoning": "Hm.", "text": "Quick." }),
        json!({ "calls": [{ "name": "read", "args": { "path": "a.txt" } }] }),
    ];
    // A request that was cancelled may have taken a step, or not.
    let steps: Vec<Value> = kinds.iter().cycle().take(times * 6).cloned().collect();
    let shell = Shell::new(&[("a.txt", "one\n")]);
    let (mut editor, session) = opened(&shell, &steps, &[]);
    let mut dice = Random(64);
    let mut reasons = std::collections::BTreeMap::<String, usize>::new();
    for n in 0..times {
        let from = editor.seen.len();
        let id = editor.prompt(&session, &format!("prompt {n}"));
        let waiting = dice.chance(33).then(|| editor.prompt(&session, "and more"));
        // After none, some or all of the updates of the first moments.
        let ends = |line: &Value| line["id"] == id && line.get("method").is_none();
        let asks = |line: &Value| line.get("method").is_some() && line.get("id").is_some();
        let shows = |line: &Value| line["method"] == "session/update";
        match dice.below(4) {
            0 => {}
            1 => drop(editor.until(from, |line| shows(line) || ends(line))),
            2 => drop(editor.until(from, |line| {
                asks(line)
                    || ends(line)
                    || line.to_string().contains("in_progress")
                    || line.to_string().contains("Wait")
            })),
            _ => drop(editor.until(from, |line| {
                line["params"]["update"]["status"] == "pending" || ends(line) || line.to_string().contains("Wait")
            })),
        }
        if dice.chance(50) {
            editor.notify("session/cancel", json!({ "sessionId": session }));
        } else {
            // The last one: if it has ended, the one before it has too.
            editor.notify("$/cancel_request", json!({ "requestId": waiting.unwrap_or(id) }));
        }
        for id in waiting.into_iter().chain([id]) {
            let answer = editor.response(id);
            let reason = answer["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{answer}"));
            *reasons.entry(reason.to_owned()).or_default() += 1;
        }
        // A cancel that came after the end of its prompt must not reach the next one.
        editor.ask("session/set_mode", json!({ "sessionId": session, "modeId": "ask" }));
    }
    assert_eq!(editor.close(), 0);
    let mut answered = std::collections::BTreeMap::<String, usize>::new();
    for line in editor.seen.iter().filter(|line| line.get("method").is_none()) {
        *answered.entry(line["id"].to_string()).or_default() += 1;
    }
    let twice: Vec<_> = answered.iter().filter(|(_, n)| **n != 1).collect();
    assert!(twice.is_empty(), "answered more than once: {twice:?}");
    let mut open = 0_i32;
    for line in &editor.transcript {
        let (from, text) = line.split_at(2);
        let message: Value = serde_json::from_str(text).expect("JSON");
        let reason = &message["result"]["stopReason"];
        match from {
            "> " if message["method"] == "session/prompt" => open += 1,
            "< " if reason.is_string() => open -= 1,
            "< " if message["params"]["update"]["messageId"].is_string() => {
                assert!(open > 0, "an update after the end: {line}");
            }
            _ => {}
        }
    }
    assert_eq!(open, 0);
    let cancelled = reasons.get("cancelled").copied().unwrap_or(0);
    figures(&format!("cancels: {times} prompts and {} behind them, {reasons:?}", answered.len()));
    assert!(cancelled * 2 > times, "{reasons:?}");
}

// ─── damaged lines ───

/// The number of responses that a line must have.
fn responses(line: &[u8]) -> usize {
    if line.trim_ascii().is_empty() {
        return 0;
    }
    let Ok(message) = serde_json::from_slice::<Value>(line) else { return 1 };
    let Value::Object(fields) = &message else { return 1 };
    let is_id = |id: &Value| id.is_null() || id.is_string() || id.is_number();
    let speaks = fields.get("jsonrpc").is_none_or(|it| it == "2.0");
    match (fields.get("method"), fields.get("id")) {
        (_, Some(id)) if !is_id(id) => 1,
        _ if !speaks => 1,
        (Some(Value::String(_)), None) => 0,
        (None, Some(_)) if fields.contains_key("result") || fields.contains_key("error") => 0,
        _ => 1,
    }
}

/// Broken builds: a damaged line ends the stream; a load forgets the prompts whose turns ended meanwhile; a request with a strange id, or none of its fields, has no response.
#[test]
fn damaged_lines_have_one_response_each_and_the_next_line_is_served() {
    let times = tier::cases("damaged_lines_have");
    let shell = Shell::new(&[("a.txt", "one\n")]);
    let steps: Vec<Value> = (0..times).map(|n| json!({ "text": format!("{n}") })).collect();
    let (mut editor, session) = opened(&shell, &steps, &[]);
    let request = |id: usize, method: &str, mut params: Value| {
        params["sessionId"] = json!(session);
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string().into_bytes()
    };
    let folder = json!(shell.workspace());
    let whole = |id: usize| -> Vec<Vec<u8>> {
        vec![
            request(id, "session/prompt", json!({ "prompt": [{ "type": "text", "text": "hello" }] })),
            request(id, "session/set_mode", json!({ "modeId": "ask" })),
            request(id, "session/set_config_option", json!({ "configId": "effort", "value": "high" })),
            request(id, "session/list", json!({ "cwd": folder })),
            request(id, "session/load", json!({ "cwd": folder, "mcpServers": [] })),
            request(id, "_pixir/input", json!({ "input": { "type": "pin", "seq": 1, "pinned": true } })),
            request(id, "authenticate", json!({ "methodId": "pixir-check" })),
            br#"{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"allow_once"}}}"#.to_vec(),
            br#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}"#.to_vec(),
        ]
    };
    let mut dice = Random(65);
    let mut expected = editor.seen.iter().filter(|line| line.get("method").is_none()).count();
    for n in 0..times {
        let lines = whole(1_000 + n);
        let mut line = lines[dice.index(lines.len())].clone();
        for _ in 0..dice.below(4) {
            if line.is_empty() {
                break;
            }
            let at = dice.index(line.len());
            match dice.below(4) {
                0 => line[at] = [b'{', b'}', b'"', b'[', b',', b'0', b'\\', 0xff, b' ', 0][dice.index(10)],
                1 => drop(line.remove(at)),
                2 => line.insert(at, line[dice.index(line.len())]),
                _ => line.truncate(at.max(1)),
            }
        }
        // A line end inside makes two lines of one.
        line.retain(|byte| *byte != b'\n');
        expected += responses(&line);
        editor.raw(&line);
    }
    let (mut at, mut seen) = (0, 0);
    while seen < expected {
        at = editor.until(at, |_| true);
        let line = editor.seen[at].clone();
        at += 1;
        match (line.get("method").is_some(), line.get("id").is_some()) {
            (false, _) => seen += 1,
            (true, true) => editor.answer(&line, json!({ "outcome": { "outcome": "cancelled" } })),
            (true, false) => {}
        }
    }
    assert_eq!(editor.say(&session, "still there?"), "end_turn");
    assert_eq!(editor.close(), 0);
    let all = editor.seen.iter().filter(|line| line.get("method").is_none()).count();
    assert_eq!(all, expected + 1, "one response each");
    let crashes =
        editor.seen.iter().filter(|line| line["error"]["message"].to_string().contains("this is a bug")).count();
    assert_eq!(crashes, 0);
    figures(&format!("damaged lines: {times}, {expected} responses, 0 crashes"));
}
