//! Scripts that start pixir many times at once, and readers that are slow.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::time::Instant;

use serde_json::{Value, json};

use crate::server::{Dialect, Reply, Server, raw};
use crate::shell::{Ran, Shell, entries, figures};
use crate::tier;
use crate::wait;

/// Runs started together, and what each came to.
fn together(shell: &Shell, runs: Vec<Vec<String>>) -> Vec<Ran> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = runs.iter().map(|args| scope.spawn(move || shell.run(args))).collect();
        threads.into_iter().map(|it| it.join().expect("no panic")).collect()
    })
}

fn prompts(shell: &Shell, id: &str) -> usize {
    let log = shell.logs().into_iter().find(|it| it.to_string_lossy().contains(id)).expect("its log");
    entries(&log).iter().filter(|it| it["type"] == "turn_ended").count()
}

/// Broken builds: two Sessions take one id; the index of the Sessions loses one of two that are written together; a resume
/// writes into a Log that another one has open.
#[test]
fn runs_that_start_together_lose_nothing() {
    let number = tier::cases("runs_that_start_together");
    let shell = Shell::new(&[]);
    let script = shell.aside("script.json", r#"{ "steps": [ { "text": "Done." } ] }"#);
    let provider = format!("script:{}", script.display());
    let run = |words: &[&str]| {
        let flags = ["-p", "--json", "--provider", provider.as_str()];
        words.iter().copied().chain(flags).map(str::to_owned).collect::<Vec<String>>()
    };
    let began = Instant::now();
    let ran = together(&shell, (0..number).map(|n| run(&[&format!("task {n}")])).collect());
    let ids: BTreeSet<String> =
        ran.iter().map(|it| it.document()["session_id"].as_str().expect("an id").to_owned()).collect();
    assert!(ran.iter().all(|it| it.code == 0 && it.document()["output"] == "Done."), "{ran:?}");
    let started = began.elapsed();
    let listed = shell.run(["sessions", "list", "--json", "--limit", "1000"]).document();
    assert_eq!((ids.len(), &listed["total"]), (number, &json!(number)));

    // Each of them goes on, all at the same time.
    let began = Instant::now();
    let ran = together(&shell, ids.iter().map(|id| run(&["resume", id, "go on"])).collect());
    assert!(ran.iter().all(|it| it.code == 0), "{ran:?}");
    let resumed = began.elapsed();
    assert!(ids.iter().all(|id| prompts(&shell, id) == 2));

    // The same one, from everywhere: a run that cannot have it says so, and can be tried again.
    let first = ids.first().expect("an id");
    let ran = together(&shell, (0..number).map(|_| run(&["resume", first, "and on"])).collect());
    let done = ran.iter().filter(|it| it.code == 0).count();
    let late = ran.iter().filter(|it| it.code == 8 && it.error()["code"] == "SESSION_LOCKED").count();
    assert!(done > 0 && done + late == number, "{ran:?}");
    assert_eq!(prompts(&shell, first), 2 + done, "a run that ended with 0 is on record, and no other");
    let verified = shell.run(["sessions", "verify", "--all", "--json"]);
    assert_eq!(verified.code, 0, "{}", verified.stdout);
    figures(&format!(
        "{number} runs on one home in {started:.1?}, {number} resumes in {resumed:.1?}, {number} resumes of one session: {done} done, {late} told to try again; none lost"
    ));
}

/// A text of that many deltas, and a call.
fn talk(deltas: usize) -> Reply {
    let event = |choice: Value| format!("data: {}\n\n", json!({ "choices": [choice] }));
    let text = (0..deltas).map(|n| event(json!({ "index": 0, "delta": { "content": format!("w{n:062} ") } })));
    let read = json!({ "index": 0, "id": "c", "function": { "name": "read", "arguments": r#"{"path":"a.txt"}"# } });
    let call = json!({ "index": 0, "delta": { "tool_calls": [read] }, "finish_reason": "tool_calls" });
    raw(&(text.collect::<String>() + &event(call) + "data: [DONE]\n\n"))
}

/// A reader that begins late gets every event, in order, and one result.
///
/// Broken builds: events are dropped when the pipe is full; the result overtakes them; a line is cut.
#[test]
fn a_slow_reader_of_jsonl_loses_nothing() {
    // 64 bytes each.
    let events = tier::cases("a_slow_reader");
    // An answer has at most so many.
    let rounds = events.div_ceil(110_000);
    let deltas = events / rounds;
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    shell.configure("[models.\"custom/m\"]\nwindow = 1000000000\n");
    let server = Server::start(vec![talk(deltas); rounds]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["-p", "--format", "jsonl", "--max-rounds", &rounds.to_string(), "go"].map(str::to_owned));
    let mut child = shell.command(args).spawn().expect("it starts");
    let stdout = child.stdout.take().expect("stdout");
    // Nobody reads before pixir has begun to print; what follows is larger than the pipe.
    wait::until("there is something to read", || {
        let full = rustix::io::ioctl_fionread(&stdout).expect("a pipe");
        full >= 4 << 10
    });
    let began = Instant::now();
    let (mut bytes, mut lines, mut deltas, mut results) = (0, 0, 0, Vec::new());
    let mut next = 0;
    for line in BufReader::with_capacity(1 << 16, stdout).lines() {
        let line = line.expect("text");
        bytes += line.len() + 1;
        lines += 1;
        let event: Value =
            serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {}", &line[..line.len().min(300)]));
        if let Some(seq) = event["seq"].as_u64() {
            assert_eq!(seq, next, "no event is missing");
            next += 1;
        }
        match event["type"].as_str() {
            Some("text_delta") => deltas += event["data"]["text"].as_str().expect("text").len(),
            Some("result") => results.push(event),
            Some(_) | None => {}
        }
    }
    let took = began.elapsed();
    assert_eq!(results.len(), 1);
    assert!(child.wait().expect("it ends").code().is_some());
    let log = fs::read_to_string(&shell.logs()[0]).expect("read");
    assert_eq!(next as usize, log.lines().count(), "the stream has every entry of the log");
    let said: usize = entries(&shell.logs()[0])
        .iter()
        .filter(|it| it["type"] == "assistant_message")
        .map(|it| it["data"]["text"].as_str().expect("text").len())
        .sum();
    assert!(deltas >= said && said > 0, "{deltas} bytes streamed of {said}");
    figures(&format!(
        "jsonl to a reader that came late: {lines} lines, {:.1} MB in {took:.1?}, {:.0} MB/s; none lost",
        bytes as f64 / 1e6,
        bytes as f64 / 1e6 / took.as_secs_f64()
    ));
}
