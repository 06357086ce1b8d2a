//! TERM, INT and HUP end pixir soon, whatever it waits for: a reader that takes nothing, a model, a tool, keys.

use std::io::PipeWriter;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::connected::terminal;
use crate::server::{Dialect, Reply, Server, call, text};
use crate::shell::{Shell, entries, figures, is_running, mark};
use crate::wait;

/// How soon pixir ends after a signal. A busy machine gets five times that.
const SOON: Duration = Duration::from_secs(2);
/// The signals, and the exit codes of a run that caught them.
const SIGNALS: [(Signal, i32); 3] = [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)];

/// More text than a pipe takes.
fn long() -> String {
    "words ".repeat(60_000)
}

/// Whether the pipe takes no more.
fn is_full(pipe: &PipeWriter) -> bool {
    poll(&mut [PollFd::new(pipe, PollFlags::OUT)], Some(&Timespec::default())) == Ok(0)
}

/// Sends the signal and returns the exit code, and the time until the end.
fn end(child: &mut Child, signal: Signal) -> (Option<i32>, Duration) {
    let began = Instant::now();
    kill_process(Pid::from_child(child), signal).expect("it runs");
    let mut code = None;
    let has_ended = wait::within(wait::PATIENCE, || {
        code = child.try_wait().expect("it can be asked").map(|it| it.code());
        code.is_some()
    });
    if !has_ended {
        let _ = child.kill();
    }
    assert!(has_ended, "{signal:?} does not end it");
    (code.flatten(), began.elapsed())
}

/// A program whose stdout and stderr have no reader that takes anything ends like any other, its command too, and its Turn has its end.
///
/// Broken build: a write to a full pipe waits for the reader only, so that neither the signal is seen nor the command stopped.
#[test]
fn a_signal_ends_a_run_whose_reader_takes_nothing() {
    let graph = "version = 1\nname = \"flow\"\n[[steps]]\nid = \"one\"\nkind = \"agent\"\ntask = \"Do A\"\n";
    // The document of a workflow has no texts of its agents, so it fills no pipe.
    let cases: [(&str, &[&str]); 5] = [
        ("a host", &["--headless", "--input", "jsonl"]),
        ("lines of events", &["--headless", "--format", "jsonl", "go"]),
        ("one document", &["--headless", "--json", "go"]),
        ("plain text", &["--headless", "go"]),
        ("events of a workflow", &["workflow", "run", "flow.toml", "--format", "jsonl"]),
    ];
    let (mut tried, mut longest) = (0, Duration::ZERO);
    for (what, args) in cases {
        for (signal, code) in SIGNALS {
            let shell = Shell::new(&[("flow.toml", graph)]);
            let sleeping = mark();
            let run = json!({ "name": "bash", "args": { "command": format!("sleep {sleeping}") } });
            // A document and a plain answer are printed at the end.
            let calls = if what.contains("document") || what == "plain text" { json!([]) } else { json!([run]) };
            let mut answer = json!({ "text": long(), "calls": calls });
            if what.contains("workflow") {
                answer["of"] = json!("Do A");
            }
            let script = shell.aside("script.json", &json!({ "steps": [answer, { "text": long() }] }).to_string());
            let (_reader, writer) = std::io::pipe().expect("a pipe");
            let mut command = shell.command(args);
            command.args(["--write", "--toolset", "typed", "--provider", &format!("script:{}", script.display())]);
            command.stdout(writer.try_clone().expect("its end")).stderr(Stdio::null());
            if what == "a host" {
                command.stdin(Stdio::piped());
            }
            let mut child = command.spawn().expect("it starts");
            drop(command);
            let mut stdin = child.stdin.take();
            if let Some(stdin) = &mut stdin {
                let prompt = json!({ "id": "1", "type": "prompt", "text": "go" });
                std::io::Write::write_all(stdin, format!("{prompt}\n").as_bytes()).expect("it reads");
            }
            wait::until("the pipe is full", || is_full(&writer));
            let (ended, took) = end(&mut child, signal);
            longest = longest.max(took);
            tried += 1;
            assert_eq!(ended, Some(code), "{what}, {signal:?}");
            assert!(took < SOON * 5, "{what}, {signal:?}: it took {took:?}");
            wait::until("no command is left", || !is_running(&sleeping));
            for log in shell.logs() {
                let log = entries(&log);
                let count = |kind: &str| log.iter().filter(|it| it["type"] == kind).count();
                assert_eq!(count("turn_ended"), 1, "{what}, {signal:?}");
                assert_eq!(count("tool_call"), count("tool_result"), "{what}, {signal:?}");
            }
        }
    }
    figures(&format!(
        "C10: {tried} runs whose reader takes nothing, 0 hang; the last one ended after {longest:?} at most"
    ));
}

/// What is slow to read is read whole: only a reader that takes nothing is given up.
///
/// Broken build: after a signal everything that the pipe does not take at once is dropped.
#[test]
fn a_reader_that_is_slow_gets_the_whole_result_after_a_signal() {
    let shell = Shell::new(&[]);
    let script = json!({ "steps": [
        { "text": long(), "calls": [{ "name": "bash", "args": { "command": "touch here; sleep 60" } }] },
        { "text": "Never." } ] });
    let script = shell.aside("script.json", &script.to_string());
    let mut command = shell.command(["--headless", "--json", "--write", "go", "--provider"]);
    let mut child = command.arg(format!("script:{}", script.display())).spawn().expect("it starts");
    wait::until("the command runs", || shell.workspace().join("here").exists());
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let mut out = child.stdout.take().expect("stdout");
    let (mut read, mut piece) = (Vec::new(), [0; 1_000]);
    loop {
        match std::io::Read::read(&mut out, &mut piece).expect("read") {
            0 => break,
            n => read.extend_from_slice(&piece[..n]),
        }
        std::thread::yield_now();
    }
    let document: Value = serde_json::from_slice(&read).expect("one document");
    assert_eq!((child.wait().expect("it ends").code(), &document["exit_code"]), (Some(143), &json!(143)));
    assert!(document["output"].as_str().is_some_and(|it| it.trim_end() == long().trim_end()), "the whole answer");
}

/// A signal ends a run in each of its states.
///
/// Broken builds: a search, a compaction or a retry is waited for.
#[test]
fn a_signal_ends_a_run_in_every_state() {
    let tree = Shell::new(&[]);
    for folder in 0..40 {
        for file in 0..50 {
            tree.write(&format!("d{folder}/f{file}.txt"), "some words that are searched\n");
        }
    }
    let sleeping = mark();
    let run = |line: &str| call("c1", "bash", json!({ "command": line }));
    let stall = || Reply::Stall { text: "Thinking aloud".into() };
    let refuse = || Reply::Refuse { status: 503, headers: String::new(), body: "{}".into() };
    let states = [
        "the model is silent",
        "a command runs",
        "a command ignores signals",
        "a search over many files",
        "the request is sent again",
        "an agent runs a command",
    ];
    let (mut tried, mut longest) = (0, Duration::ZERO);
    for what in states {
        for (signal, code) in SIGNALS {
            let _ = std::fs::remove_file(tree.workspace().join("began"));
            let replies = match what {
                "the model is silent" => vec![stall()],
                "a command runs" => vec![run(&format!("touch began; sleep {sleeping}"))],
                "a command ignores signals" => {
                    vec![run(&format!("trap '' TERM INT HUP; touch began; sleep {sleeping}"))]
                }
                "a search over many files" => vec![call("c1", "grep", json!({ "pattern": "w.*d.*s.*z" })), stall()],
                "the request is sent again" => (0..6).map(|_| refuse()).collect(),
                _ => vec![
                    call("c1", "spawn_agent", json!({ "task": "Do A", "name": "a" })),
                    run(&format!("touch began; sleep {sleeping}")),
                ],
            };
            let server = Server::start(replies);
            let mut command: Command = tree.command(["--headless", "--write", "--json", "go"]);
            command.args(server.flags(Dialect::Chat)).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().expect("it starts");
            if what.contains("command") {
                wait::until("the command runs", || tree.workspace().join("began").exists());
            } else {
                server.wait_for(1);
            }
            let (ended, took) = end(&mut child, signal);
            longest = longest.max(took);
            tried += 1;
            assert_eq!(ended, Some(code), "{what}, {signal:?}");
            assert!(took < SOON * 5, "{what}, {signal:?}: it took {took:?}");
            wait::until("no command is left", || !is_running(&sleeping));
        }
    }
    figures(&format!("C10: {tried} states and signals, 0 hang; the last one ended after {longest:?} at most"));
}

/// Groups of edit keys that arrive faster than they are applied.
///
/// Broken builds: keys that wait come before a signal; the whole draft is wrapped anew for each key.
#[test]
fn a_backlog_of_edit_keys_delays_no_signal_and_is_applied_soon() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("never")]);
    let groups = |n: usize| -> String {
        (0..n)
            .map(|at| ["ab\x7f\x1b[Dc", "x\x1b[A\x7fyz", "q\x1b[C\x1b[D\x7fw", "\x1b[Bk\x7fl\x1b[D"][at % 4])
            .collect()
    };
    let begin = |signalled: bool| {
        let mut terminal = terminal(&shell, &server, &[], (80, 24));
        terminal.wait_for("Ask pixir");
        // Less at once would be typed, and more would be a paste.
        for _ in 0..100 {
            terminal.send_at_once("some fifty letters of a draft that goes on and on ");
            terminal.wait_until_read();
        }
        let began = Instant::now();
        for _ in 0..105 {
            terminal.send_at_once(&groups(10));
        }
        if !signalled {
            terminal.send_at_once("ENDMARK");
            terminal.wait_for("ENDMARK");
            return began.elapsed();
        }
        terminal.signal(Signal::TERM);
        let took = terminal.wait_until_ended();
        let left = terminal.end();
        left.assert_sane();
        assert_eq!(left.code, 143);
        took
    };
    let (applied, ended) = (begin(false), begin(true));
    figures(&format!(
        "C10: 1,050 groups of edit keys were applied within {applied:?}; TERM ended pixir {ended:?} after them"
    ));
    assert!(ended < SOON * 2, "TERM waited {ended:?} for keys");
    assert!(applied < Duration::from_secs(30), "the keys took {applied:?}");
}
