//! Clients that ask for more than pixir holds: each request too many is refused, and what is open goes on.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::{opened, runs, script};
use crate::editor::{Editor, able};
use crate::lines::scripted;
use crate::shell::{Shell, figures, is_running, mark};
use crate::wait;

/// The most memory that this process has taken, kB.
fn peak(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.split_whitespace().next().and_then(|it| it.parse().ok()).expect("a number")
}

fn send(stdin: &mut ChildStdin, message: &Value) {
    writeln!(stdin, "{message}").expect("write");
}

fn request(stdin: &mut ChildStdin, id: usize, method: &str, params: Value) {
    send(stdin, &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
}

/// A client sends 24,000 requests and 60 MB of prompts, reads nothing, and cancels.
///
/// Broken builds: the number or the bytes of open requests have no bound; a request too many is dropped without a word; pixir
/// stops reading before the cancel; what was held back is lost when the client reads.
#[test]
fn a_client_that_never_reads_takes_no_memory_and_its_cancel_works() {
    const SMALL: usize = 24_000;
    const LARGE: usize = 60;
    const MOST: u64 = 64;
    let shell = Shell::new(&[]);
    let seconds = mark();
    let flags = scripted(&shell, &script(&[runs(&format!("sleep {seconds}"))]), &["--mode", "auto"]);
    let all: Vec<&str> = std::iter::once("acp").chain(flags.iter().map(String::as_str)).collect();
    let mut child = shell.command(&all).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let mut out = BufReader::new(child.stdout.take().expect("stdout"));
    let mut read = || {
        let mut line = String::new();
        out.read_line(&mut line).expect("read");
        serde_json::from_str::<Value>(&line).expect("JSON")
    };
    request(&mut stdin, 0, "initialize", json!({ "protocolVersion": 1 }));
    assert_eq!(read()["result"]["protocolVersion"], 1);
    request(&mut stdin, 1, "session/new", json!({ "cwd": shell.workspace(), "mcpServers": [] }));
    let session = read()["result"]["sessionId"].clone();
    let prompt = |text: &str| json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    request(&mut stdin, 2, "session/prompt", prompt("sleep"));
    wait::until("the command runs", || is_running(&seconds));
    let before = peak(child.id());

    let last = 2 + LARGE + SMALL;
    let (running, folder) = (session.clone(), json!({ "cwd": shell.workspace() }));
    let sender = std::thread::spawn(move || {
        let prompt = |text: &str| json!({ "sessionId": running, "prompt": [{ "type": "text", "text": text }] });
        let long = "x".repeat(1 << 20);
        for id in 3..=last {
            match id % 3 {
                _ if id <= 2 + LARGE => request(&mut stdin, id, "session/prompt", prompt(&long)),
                0 => request(&mut stdin, id, "session/set_mode", json!({ "sessionId": running, "modeId": "auto" })),
                1 => request(&mut stdin, id, "session/prompt", prompt("more")),
                _ => request(&mut stdin, id, "session/list", folder.clone()),
            }
        }
        send(&mut stdin, &json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": running } }));
        stdin
    });
    if !wait::within(wait::PATIENCE, || sender.is_finished()) {
        child.kill().expect("it is killed");
        panic!("pixir does not read what the client sends");
    }
    let stdin = sender.join().expect("all was sent");
    let more = || peak(child.id()).saturating_sub(before) >> 10;
    wait::until("the cancel has ended the command", || !is_running(&seconds) || more() > MOST);
    figures(&format!("a client that never reads: {} requests, {} MB more memory", SMALL + LARGE, more()));
    assert!(more() <= MOST, "{} MB more", more());

    // Now it reads.
    let (line, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|text| line.send(text)));
    let mut answers: BTreeMap<usize, Value> = BTreeMap::new();
    while answers.len() < last - 1 {
        let Ok(text) = lines.recv_timeout(wait::PATIENCE) else {
            child.kill().expect("it is killed");
            let lost: Vec<usize> = (2..=last).filter(|id| !answers.contains_key(id)).collect();
            panic!("{} requests have no response: {:?}", lost.len(), lost.first());
        };
        let line: Value = serde_json::from_str(&text).expect("JSON");
        if let (Some(id), None) = (line["id"].as_u64(), line.get("method")) {
            let id = usize::try_from(id).expect("an id of this client");
            assert!(answers.insert(id, line).is_none(), "a second response to {id}");
        }
    }
    drop(stdin);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(answers[&2]["result"]["stopReason"], "cancelled", "{}", answers[&2]);
    let refused: Vec<&Value> = answers.values().filter(|it| it["error"].is_object()).collect();
    let other = refused.iter().find(|it| it["error"]["data"]["code"] != "TOO_MANY_ITEMS");
    assert_eq!(other, None, "a request fails for another reason");
    let message = refused.last().expect("some are refused")["error"]["message"].as_str().expect("a message");
    assert_eq!(message, "256 requests have no response yet; read the responses, then send the request again");
}

/// Broken builds: the 65th Session stops pixir from reading; a Session that is closed or cannot be opened keeps its place.
#[test]
fn the_sixty_fifth_session_is_refused_and_a_closed_one_makes_a_place() {
    let shell = Shell::new(&[]);
    let hang = json!({ "text": "On it.", "hang": true });
    let (mut editor, first) = opened(&shell, &[hang], &[]);
    let running = editor.prompt(&first, "begin");
    editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    let new = json!({ "cwd": shell.workspace(), "mcpServers": [] });
    let all: Vec<String> = (1..64).map(|_| editor.session(&shell.workspace())).collect();
    let refused = editor.ask("session/new", new.clone());
    assert_eq!(refused["error"]["data"]["code"], "TOO_MANY_ITEMS", "{refused}");
    let told = "64 sessions of this client are open; close one with session/close, then try again";
    assert_eq!(refused["error"]["message"], told);
    let listed = editor.ask("session/list", json!({}));
    assert_eq!(listed["result"]["sessions"][0]["sessionId"], first, "{listed}");

    // A place that is free is taken by a load as by a new Session, and given back by one that fails.
    let closed = editor.ask("session/close", json!({ "sessionId": all[0] }));
    assert_eq!(closed["result"], json!({}), "{closed}");
    let missing = json!({ "sessionId": "20260101T000000-abcdef", "cwd": shell.workspace(), "mcpServers": [] });
    for _ in 0..3 {
        let failed = editor.ask("session/load", missing.clone());
        assert_eq!(failed["error"]["code"], -32002, "{failed}");
        let nowhere = editor.ask("session/new", json!({ "cwd": "/nowhere/at/all", "mcpServers": [] }));
        assert_eq!(nowhere["error"]["code"], -32602, "{nowhere}");
    }
    let again = json!({ "sessionId": all[0], "cwd": shell.workspace(), "mcpServers": [] });
    let resumed = editor.ask("session/resume", again.clone());
    assert!(resumed["result"]["modes"].is_object(), "{resumed}");
    let full = editor.ask("session/new", new.clone());
    assert_eq!(full["error"]["data"]["code"], "TOO_MANY_ITEMS", "{full}");
    // An open one needs no second place.
    assert!(editor.ask("session/load", again)["result"]["modes"].is_object());
    let deleted = editor.ask("session/delete", json!({ "sessionId": all[1] }));
    assert_eq!(deleted["result"], json!({}), "{deleted}");
    assert!(editor.ask("session/new", new)["result"]["sessionId"].is_string());

    editor.notify("session/cancel", json!({ "sessionId": first }));
    assert_eq!(editor.response(running)["result"]["stopReason"], "cancelled");
    assert_eq!(editor.close(), 0);
}

/// So much waits for the client that pixir reads no more of its lines, and then the client goes.
///
/// Broken builds: refusals have no bound; the end of stdin is not seen while nothing is read.
#[test]
fn a_client_that_reads_nothing_at_all_can_still_leave() {
    const MOST: usize = 48 << 20;
    let shell = Shell::new(&[]);
    let flags = scripted(&shell, &script(&[]), &[]);
    let all: Vec<&str> = std::iter::once("acp").chain(flags.iter().map(String::as_str)).collect();
    let mut child = shell.command(&all).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let unread = child.stdout.take().expect("stdout");
    rustix::io::ioctl_fionbio(&stdin, true).expect("a pipe that does not wait");
    // The response to each names its id, so it is as long as the request.
    let line = format!("{{\"id\":\"{}\",\"method\":\"none\"}}\n", "i".repeat(1 << 20));
    let mut taken = 0;
    // pixir takes what it can hold; then the pipe is full.
    let takes_more = |stdin: &mut ChildStdin, taken: &mut usize| {
        wait::found(Duration::from_secs(3), || {
            let rest = &line.as_bytes()[*taken % line.len()..];
            stdin.write(rest).ok().filter(|bytes| *bytes > 0)
        })
        .inspect(|bytes| *taken += bytes)
        .is_some()
    };
    while taken < MOST && takes_more(&mut stdin, &mut taken) {}
    let is_over = taken >= MOST;
    drop(stdin);
    let ended = wait::found(Duration::from_secs(8), || child.try_wait().expect("it can be asked"));
    if ended.is_none() {
        child.kill().expect("it is killed");
    }
    drop(unread);
    assert!(!is_over, "pixir holds {} MB for a client that reads nothing", taken >> 20);
    assert_eq!(ended.expect("pixir waits for a client that has gone").code(), Some(0));
}

/// A client with more Sessions than a page holds reads all of them, page by page.
///
/// Broken builds: the list has no bound; the next page begins with the last row of the page before; a page has no cursor, so
/// that the rest is never seen; the oldest come first.
#[test]
fn a_list_comes_in_pages_of_fifty() {
    const ALL: usize = 53;
    let shell = Shell::new(&[]);
    let steps: Vec<Value> = (0..ALL).map(|n| json!({ "text": format!("answer {n}") })).collect();
    let mut editor = Editor::start(&shell, &script(&steps), &[]);
    editor.initialize(able());
    let mut made = Vec::new();
    for n in 0..ALL {
        let session = editor.session(&shell.workspace());
        assert_eq!(editor.say(&session, &format!("prompt {n}")), "end_turn");
        editor.ask("session/close", json!({ "sessionId": session }));
        made.push(session);
    }
    let mut pages = Vec::new();
    let mut listed: Vec<String> = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = editor.ask("session/list", json!({ "cwd": shell.workspace(), "cursor": cursor }))["result"].take();
        let rows = page["sessions"].as_array().expect("a list");
        pages.push(rows.len());
        listed.extend(rows.iter().filter_map(|it| it["sessionId"].as_str().map(str::to_owned)));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(pages, [50, 3]);
    made.reverse();
    assert_eq!(listed, made, "the latest first, each once");
    assert_eq!(editor.close(), 0);
}
