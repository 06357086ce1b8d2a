//! What an editor waits for: the start, a new session, a delta, a cancel, a long session loaded; memory, and what happens at
//! rest: `cargo bench --bench acp`.
//!
//! The model is a script or a server of this process, so all of it is pixir's own work and the disk's.

#[path = "../tests/driver.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod driver;
#[path = "../tests/editor.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod editor;
#[path = "../tests/lines.rs"]
mod lines;
#[path = "../tests/server.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod server;
#[path = "../tests/shell.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod shell;
#[path = "../tests/wait.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod wait;

use std::fs;
use std::time::{Duration, Instant};

use editor::{Editor, able};
use serde_json::{Value, json};
use server::{Act, Dialect, Gate, HEAD, Reply, Server, event};
use shell::Shell;

/// Runs of each row; the median counts.
const RUNS: usize = 15;
/// Deltas of one answer, and the time between them: those that come faster are merged.
const DELTAS: usize = 100;
const APART: Duration = Duration::from_millis(50);
/// Prompts that are cancelled.
const CANCELS: usize = 100;
/// Sessions beside the first.
const FURTHER: u64 = 10;
/// Messages of the long session: half of them answers.
const MESSAGES: u32 = 10_000;
/// How long nothing happens.
const REST: Duration = Duration::from_secs(60);

fn main() {
    start();
    deltas();
    cancels();
    load();
    memory_and_rest();
}

#[expect(clippy::print_stdout, reason = "a table for the user")]
fn row(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!("{name:<42} median {:>8.2?}   p99 {:>8.2?}", at(50), at(99));
}

fn script(steps: &[Value]) -> Value {
    json!({ "steps": steps })
}

fn start() {
    let (mut started, mut new) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let shell = Shell::new(&[]);
        let began = Instant::now();
        let mut editor = Editor::start(&shell, &script(&[]), &[]);
        editor.initialize(able());
        started.push(began.elapsed());
        let began = Instant::now();
        editor.session(&shell.workspace());
        new.push(began.elapsed());
    }
    row("from the start to the first answer", started);
    row("the first new session", new);
}

fn deltas() {
    let gates: Vec<Gate> = (0..DELTAS).map(|_| Gate::default()).collect();
    let delta = |n: usize| json!({ "choices": [{ "index": 0, "delta": { "content": format!("word{n} ") } }] });
    let each = gates.iter().enumerate();
    let parts = each.flat_map(|(n, gate)| [Act::Until(gate.clone()), Act::Send(event(&delta(n)).into_bytes())]);
    let head = std::iter::once(Act::Send(HEAD.into()));
    let answer = Reply::Raw(head.chain(parts).chain([Act::Send(b"data: [DONE]\n\n".to_vec())]).collect());
    let server = Server::start(vec![answer]);
    let shell = Shell::new(&[]);
    let flags = server.flags(Dialect::Chat);
    let mut editor = Editor::on(&shell, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    editor.initialize(able());
    let session = editor.session(&shell.workspace());
    let prompt = editor.prompt(&session, "begin");
    server.wait_for(1);
    let mut times = Vec::new();
    for gate in gates {
        let from = editor.seen.len();
        wait::lapse(APART);
        let began = Instant::now();
        gate.open();
        editor.until(from, |line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
        times.push(began.elapsed());
    }
    editor.response(prompt);
    row("from a delta to its update", times);
}

fn cancels() {
    let shell = Shell::new(&[]);
    let hangs = json!({ "text": "Wait.", "hang": true });
    let mut editor = Editor::start(&shell, &script(&vec![hangs; CANCELS]), &[]);
    editor.initialize(able());
    let session = editor.session(&shell.workspace());
    let mut times = Vec::new();
    for _ in 0..CANCELS {
        let from = editor.seen.len();
        let id = editor.prompt(&session, "begin");
        editor.until(from, |line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
        let began = Instant::now();
        editor.notify("session/cancel", json!({ "sessionId": session }));
        editor.response(id);
        times.push(began.elapsed());
    }
    row("from a cancel to the response", times);
}

fn load() {
    let shell = Shell::new(&[]);
    // A session that pixir began itself, so that it is where pixir looks for it.
    let mut editor = Editor::start(&shell, &script(&[json!({ "text": "Hello." })]), &[]);
    editor.initialize(able());
    let session = editor.session(&shell.workspace());
    editor.say(&session, "hello");
    assert_eq!(editor.close(), 0);
    let path = shell.logs().remove(0);
    let id = pixir_core::event::SessionId::parse(&session).expect("an id");
    let (mut log, _) = pixir_core::log::Log::open(&path, id).expect("the log");
    for turn in 2..MESSAGES / 2 + 2 {
        driver::say(&mut log, turn, "What is next?", "The next part of a long story, in a few words.");
    }
    drop(log);
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let mut editor = Editor::start(&shell, &script(&[]), &[]);
        editor.initialize(able());
        let began = Instant::now();
        let params = json!({ "sessionId": session, "cwd": shell.workspace(), "mcpServers": [] });
        let loaded = editor.ask("session/load", params);
        times.push(began.elapsed());
        assert!(loaded["result"].is_object(), "{loaded}");
        assert!(editor.seen.len() as u32 > MESSAGES);
    }
    row(&format!("load of {MESSAGES} messages"), times);
}

#[expect(clippy::print_stdout, reason = "a table for the user")]
fn memory_and_rest() {
    let shell = Shell::new(&[]);
    let mut editor = Editor::start(&shell, &script(&[]), &[]);
    editor.initialize(able());
    editor.session(&shell.workspace());
    let id = editor.child.id();
    let first = status(id, "VmRSS:");
    for _ in 0..FURTHER {
        editor.session(&shell.workspace());
    }
    let more = status(id, "VmRSS:");
    println!(
        "{:<42} {first} KB, and {} KB for each further session",
        "memory with one session",
        (more - first) / FURTHER
    );
    // What the start leaves behind is over.
    std::thread::sleep(Duration::from_secs(2));
    let (before, lines) = (switches(id), editor.seen.len());
    std::thread::sleep(REST);
    println!("{:<42} {} wake-ups, {} lines", "at rest for 60 s", switches(id) - before, editor.seen.len() - lines);
    editor.close();
}

fn status(id: u32, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{id}/status")).expect("the status");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    line.split_whitespace().next().and_then(|it| it.parse().ok()).expect("a number")
}

/// How often the threads of a process have run, as long as they live.
fn switches(id: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).expect("the threads").flatten();
    let of = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|it| it.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    tasks.map(of).sum()
}
