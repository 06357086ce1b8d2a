//! Answers beyond every limit: bounded memory, the part that came is kept, one end.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;

use serde_json::{Value, json};

use crate::server::{Act, Dialect, HEAD, Part, Reply, Server, begin, event, part};
use crate::shell::{Shell, entries, figures, peak, ran};
use crate::tier;

/// The most memory that a flood may cost, KB.
const MOST: u64 = 64 << 10;

/// The start of an answer, and events that repeat without end.
fn flood(dialect: Dialect, what: &str) -> (String, Vec<u8>) {
    let block = "x".repeat(64 << 10);
    let args = json!({ "path": "x.txt", "content": "y" });
    let text = |text: &str| {
        let events = part(dialect, 0, Part::Text(text));
        events.into_iter().find(|it| it.contains(text)).expect("a delta")
    };
    let opened = if dialect == Dialect::Anthropic {
        part(dialect, 0, Part::Text("Start. "))[..2].concat()
    } else {
        part(dialect, 0, Part::Text("Start. ")).concat()
    };
    let start = begin(dialect).concat() + &opened;
    match (what, dialect) {
        ("text", _) => (start, text(&block).into_bytes()),
        ("arguments", Dialect::Responses) => {
            let item = json!({ "type": "function_call", "call_id": "c", "name": "write", "arguments": "" });
            let open = event(&json!({ "type": "response.output_item.added", "output_index": 1, "item": item }));
            let delta = json!({ "type": "response.function_call_arguments.delta", "output_index": 1, "delta": block });
            (start + &open, event(&delta).into_bytes())
        }
        ("arguments", Dialect::Chat) => {
            let piece = json!({ "index": 0, "id": "c", "function": { "name": "write", "arguments": block } });
            let delta = json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [piece] } }] });
            (start, event(&delta).into_bytes())
        }
        ("arguments", Dialect::Anthropic) => {
            let open = part(dialect, 1, Part::Call("c", "write", &args))[0].clone();
            let delta = json!({ "type": "input_json_delta", "partial_json": block });
            (start + &open, event(&json!({ "type": "content_block_delta", "index": 1, "delta": delta })).into_bytes())
        }
        (_, _) => {
            // Each of the calls is whole.
            let calls = (1..=10_000).map(|n| part(dialect, n, Part::Call(&format!("c{n}"), "write", &args)).concat());
            (start, calls.collect::<String>().into_bytes())
        }
    }
}

/// Broken build: one without limits. It collects the flood until the memory ends, or a Log line is too long for the Log
/// and the Turn never ends.
#[test]
fn a_flood_ends_the_turn_as_incomplete_in_bounded_memory() {
    let (mut worst, mut floods) = (0, Vec::new());
    for dialect in Dialect::ALL {
        for (what, said) in [("text", "8 MiB of text"), ("arguments", "1 MiB of arguments"), ("calls", "128 calls")] {
            floods.push((dialect, what, said));
        }
    }
    let floods = tier::sample("a_flood_ends", floods);
    for dialect in Dialect::ALL {
        let of_it: Vec<_> = floods.iter().filter(|it| it.0 == dialect).collect();
        if of_it.is_empty() {
            continue;
        }
        let shell = Shell::new(&[]);
        let server = Server::start((0..3).map(|_| crate::server::text("Start.")).collect());
        let mut args = server.flags(dialect);
        args.extend(["--headless", "--format", "jsonl", "--write", "go"].map(str::to_owned));
        let flags: Vec<&str> = args.iter().map(String::as_str).collect();
        // A look at a short run can miss its peak.
        let usual = (0..3).map(|_| peak(&shell, &flags).0).max().expect("three runs");
        for &(_, what, said) in of_it {
            let shell = Shell::new(&[]);
            let (start, again) = flood(dialect, what);
            let server = Server::start(vec![Reply::Raw(vec![
                Act::Send((HEAD.to_owned() + &start).into_bytes()),
                Act::Drip(again, 0),
            ])]);
            let mut args = server.flags(dialect);
            args.extend(["--headless", "--json", "--write", "go"].map(str::to_owned));
            let flags: Vec<&str> = args.iter().map(String::as_str).collect();
            let (most, ran) = peak(&shell, &flags);
            assert_eq!(ran.code, 14, "{what} {dialect:?}: {}", ran.stderr);
            let document: Value = serde_json::from_str(&ran.stdout).expect("one document");
            assert_eq!((&document["status"], &document["code"]), (&json!("incomplete"), &json!("ANSWER_TOO_LARGE")));
            assert!(ran.stderr.contains(said) || ran.stdout.contains(said), "{what}: {}", ran.stderr);
            let log = entries(&shell.logs()[0]);
            let ends: Vec<&Value> = log.iter().filter(|e| e["type"] == "turn_ended").collect();
            assert_eq!((ends.len(), &ends[0]["data"]["status"]), (1, &json!("incomplete")));
            let kept: Vec<&Value> = log.iter().filter(|e| e["data"]["partial"] == true).collect();
            assert_eq!(kept.len(), 1, "{what} {dialect:?}");
            assert!(kept[0]["data"]["text"].as_str().expect("text").starts_with("Start. "));
            assert!(log.iter().all(|e| e["type"] != "tool_call"), "no call of it runs");
            assert!(shell.read("x.txt").starts_with('('));
            let more = most.saturating_sub(usual);
            worst = worst.max(more);
            assert!(more < MOST, "{what} {dialect:?}: {more} KB more than a short answer");
            assert_eq!(server.bodies().len(), 1, "it is not asked for again");
        }
    }
    figures(&format!("QF1: {} floods, none ended wrongly, at most {worst} KB more memory", floods.len()));
}

/// Broken build: one that records the calls of a whole answer before it counts them.
#[test]
fn an_answer_that_arrives_in_one_event_has_the_same_limits() {
    let piece =
        |n: usize| json!({ "index": n, "id": format!("c{n}"), "function": { "name": "read", "arguments": "{}" } });
    let many: Vec<Value> = (0..200).map(piece).collect();
    let large = json!({ "index": 0, "id": "c", "function": { "name": "read", "arguments": json!({ "path": "p".repeat(2 << 20) }).to_string() } });
    for (calls, said) in [(many, "128 calls"), (vec![large], "1 MiB of arguments")] {
        let shell = Shell::new(&[]);
        let whole = event(
            &json!({ "choices": [{ "index": 0, "delta": { "tool_calls": calls }, "finish_reason": "tool_calls" }] }),
        );
        let server = Server::start(vec![crate::server::raw(&whole)]);
        let ran = crate::connected::ask(&shell, &server, Dialect::Chat, &["x"]);
        assert_eq!(ran.code, 14, "{}", ran.stderr);
        assert!(ran.stdout.contains(said) || ran.stderr.contains(said), "{}", ran.stderr);
    }
}

/// Broken build: one that reads a stream without a pause never hears the signal.
#[test]
fn sigterm_is_heard_during_a_flood() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        // Keep-alives that never pause: they count as nothing, so no limit ends them.
        let start = HEAD.to_owned() + &begin(dialect).concat() + &part(dialect, 0, Part::Text("Start. "))[..1].concat();
        let noise = ": keep-alive\n\n".repeat(4_096).into_bytes();
        let server = Server::start(vec![Reply::Raw(vec![Act::Send(start.into_bytes()), Act::Drip(noise, 0)])]);
        let mut args = server.flags(dialect);
        args.extend(["--headless", "--format", "jsonl", "go"].map(str::to_owned));
        let mut child = shell.command(args).stdin(Stdio::null()).spawn().expect("it starts");
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("stdout")));
        let thinks = |line: String| line.contains("\"thinking\"");
        assert!(lines.any(|line| line.is_ok_and(thinks)), "the answer has begun");
        server.wait_for(1);
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        lines.for_each(drop);
        let ended = ran(child.wait_with_output().expect("it ends"));
        assert_eq!(ended.code, 143, "{dialect:?}: {}", ended.stderr);
        let log = entries(&shell.logs()[0]);
        assert_eq!(log.iter().filter(|e| e["type"] == "turn_ended").count(), 1);
    }
}

/// Answers the request for an answer, and sends a document without end to every other request.
fn endless_documents(mut stream: TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut lines, mut length) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        let name = line.to_ascii_lowercase();
        length = name.strip_prefix("content-length:").map_or(length, |it| it.trim().parse().expect("a number"));
        lines.push(line);
    }
    io::copy(&mut reader.take(length), &mut io::sink())?;
    if lines.first().is_some_and(|it| it.contains("/chat/completions")) {
        let events = part(Dialect::Chat, 0, Part::Text("Hello.")).concat();
        let stop = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
        let body = begin(Dialect::Chat).concat() + &events + &event(&stop) + "data: [DONE]\n\n";
        return stream.write_all((HEAD.to_owned() + &body).as_bytes());
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"data\":\"")?;
    let block = [b'x'; 64 << 10];
    loop {
        stream.write_all(&block)?;
    }
}

/// Broken build: what a server says of itself is read to its end. It takes gigabytes before the wait for it is over.
#[test]
fn documents_without_end_take_bounded_memory_and_the_turn_goes_on() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || endless_documents(stream));
        }
    });
    let shell = Shell::new(&[]);
    let server = Server::start((0..3).map(|_| crate::server::text("Hello.")).collect());
    let args = server.flags(Dialect::Chat);
    let words: Vec<&str> = args.iter().map(String::as_str).chain(["--headless", "--json", "go"]).collect();
    let usual = (0..3).map(|_| peak(&shell, &words).0).max().expect("three runs");
    let url = format!("http://{address}/v1");
    let words = ["--base-url", &url, "--dialect", "chat", "--model", "m", "--headless", "--json", "go"];
    let (most, ran) = peak(&shell, &words);
    assert_eq!(ran.code, 0, "{ran:?}");
    let more = most.saturating_sub(usual);
    assert!(more < MOST, "{more} KB more than with short documents");
    let listed = shell.run(["models", "list", "--base-url", &url, "--dialect", "chat"]);
    assert!(listed.code != 0 && listed.stderr.contains("more than 4 MiB"), "{listed:?}");
}
