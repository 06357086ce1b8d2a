//! Answers in the forms in which servers really send them, cut anywhere.

use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use pixir_core::Patience;
use pixir_core::provider::{Chunk, MAX_EVENT, hear};
use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::{Value, json};

use crate::server::{Act, Dialect, Reply, Server, answer, long};
use crate::shell::{Shell, figures};
use crate::tier;

/// Reads a stream in these pieces; returns its chunks and its outcome.
fn heard(runtime: &tokio::runtime::Runtime, dialect: Dialect, pieces: Vec<Bytes>) -> (Vec<Chunk>, Value) {
    let mut chunks = Vec::new();
    let bytes = futures_util::stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
    let outcome = runtime.block_on(hear(dialect, bytes, &Patience::default(), &mut |chunk| chunks.push(chunk)));
    let outcome = match outcome {
        Ok(answer) => json!({ "answer": answer }),
        Err(failure) => json!({
            "code": failure.error.code.name(), "message": failure.error.message, "after_content": failure.after_content,
        }),
    };
    (chunks, outcome)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// Every stream of `tests/streams`, by name.
fn streams() -> Vec<(String, Dialect, Bytes)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let mut all: Vec<_> = fs::read_dir(folder)
        .expect("the streams")
        .flatten()
        .map(|file| {
            let name = file.path().file_stem().expect("a name").to_string_lossy().into_owned();
            let dialect = Dialect::parse(name.split('-').next().expect("a dialect")).expect("a dialect");
            (name, dialect, Bytes::from(fs::read(file.path()).expect("a stream")))
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// Adjacent text chunks, and adjacent argument chunks of one call, joined.
fn joined(chunks: &[Chunk]) -> Vec<Chunk> {
    let mut all: Vec<Chunk> = Vec::new();
    for chunk in chunks {
        match (all.last_mut(), chunk) {
            (Some(Chunk::Text(text)), Chunk::Text(more)) | (Some(Chunk::Reasoning(text)), Chunk::Reasoning(more)) => {
                text.push_str(more);
            }
            (Some(Chunk::Call { index, args, .. }), Chunk::Call { index: of, args: more, .. }) if index == of => {
                args.push_str(more);
            }
            _ => all.push(chunk.clone()),
        }
    }
    all
}

#[test]
fn every_recorded_stream_is_understood() {
    let runtime = runtime();
    for (name, dialect, bytes) in streams() {
        let (chunks, outcome) = heard(&runtime, dialect, vec![bytes]);
        let said = json!({ "heard": joined(&chunks), "outcome": outcome });
        insta::assert_snapshot!(name, serde_json::to_string_pretty(&said).expect("JSON"));
    }
}

#[test]
fn every_cut_of_a_stream_gives_the_same_answer() {
    let runtime = runtime();
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runs = 0;
    let all = streams();
    assert!(all.len() >= 12, "only {} streams", all.len());
    let random_cuts = tier::cases("every_cut_of_a_stream");
    for (name, dialect, bytes) in all {
        let whole = heard(&runtime, dialect, vec![bytes.clone()]);
        let mut check = |pieces: Vec<Bytes>, how: &dyn Fn() -> String| {
            runs += 1;
            let cut = heard(&runtime, dialect, pieces);
            assert!(cut == whole, "{name}, cut {}:\n{cut:?}\ninstead of\n{whole:?}", how());
        };
        for at in tier::sample("cut_of_a_stream", (0..=bytes.len()).collect()) {
            check(vec![bytes.slice(..at), bytes.slice(at..)], &|| format!("at {at}"));
        }
        check(bytes.iter().map(|b| Bytes::copy_from_slice(&[*b])).collect(), &|| "everywhere".into());
        for n in 0..random_cuts {
            check(pieces(&bytes, &mut random), &|| format!("at random, try {n}"));
        }
    }
    figures(&format!("QP1: {runs} ways to cut, all heard the same"));
}

fn pieces(bytes: &Bytes, random: &mut TestRng) -> Vec<Bytes> {
    let longest = 1 + random.next_u32() as usize % 400;
    let (mut pieces, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let end = bytes.len().min(at + 1 + random.next_u32() as usize % longest);
        pieces.push(bytes.slice(at..end));
        at = end;
    }
    pieces
}

#[test]
fn a_megabyte_of_text_and_arguments_survives_any_chunking() {
    let runtime = runtime();
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[9; 32]);
    for dialect in Dialect::ALL {
        // Just below the most arguments that a call may have.
        let size = (1 << 20) - 1024;
        let bytes = Bytes::from(long(dialect, size));
        let whole = heard(&runtime, dialect, vec![bytes.clone()]);
        let text = whole.1["answer"]["parts"][0]["text"]["text"].as_str().expect("a text");
        let args = whole.1["answer"]["parts"][1]["call"]["args"].as_str().expect("a call");
        assert_eq!(text.len(), size, "{dialect:?}");
        assert_eq!(serde_json::from_str::<Value>(args).expect("JSON")["content"], text);
        assert!(heard(&runtime, dialect, pieces(&bytes, &mut random)) == whole, "{dialect:?}");
    }
}

#[test]
fn endless_lines_and_events_are_refused_in_bounded_memory() {
    let runtime = runtime();
    let piece = Bytes::from(vec![b'x'; 64 << 10]);
    let line = Bytes::from([b"data: ".as_slice(), &[b'y'; 1_000], b"\n"].concat());
    let rows: [(&str, Vec<Bytes>, &str); 5] = [
        ("a line without end", [vec![Bytes::from_static(b"data: ")], vec![piece; 300]].concat(), "larger than 16 MB"),
        ("an event without end", vec![line; MAX_EVENT / 1_000 + 10], "larger than 16 MB"),
        (
            "bytes that are not text",
            vec![Bytes::from_static(b"data: \"\xff\xfe\"\n\n")],
            "event 1 of the answer is not UTF-8",
        ),
        (
            "what is no JSON",
            vec![Bytes::from_static(b"data: {}\n\ndata: {nope\n\n")],
            "event 2 of the answer is not JSON",
        ),
        (
            "a page",
            vec![Bytes::from_static(b"<html>\x1b[31mlogin</html>")],
            "something other than an event stream: <html>\\u{1b}[31mlogin</html>",
        ),
    ];
    for (what, pieces, said) in rows {
        for dialect in Dialect::ALL {
            let (chunks, outcome) = heard(&runtime, dialect, pieces.clone());
            assert_eq!(outcome["code"], "INVALID_RESPONSE", "{what}: {outcome}");
            assert!(outcome["message"].as_str().expect("a message").contains(said), "{what}: {outcome}");
            assert!(chunks.is_empty());
        }
    }
}

#[test]
fn mutated_streams_neither_panic_nor_hang() {
    // Random bytes, and streams with random bytes of them changed, dropped or doubled.
    let runtime = runtime();
    let wanted = tier::cases("mutated_streams");
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]);
    let streams = streams();
    let (mut fed, before) = (0, resident());
    let mut most = before;
    while fed < wanted {
        let (_, dialect, bytes) = &streams[random.next_u32() as usize % streams.len()];
        let mut bytes = bytes.to_vec();
        for _ in 0..1 + random.next_u32() % 8 {
            let at = random.next_u32() as usize % bytes.len();
            match random.next_u32() % 4 {
                0 => bytes[at] = random.next_u32() as u8,
                1 => drop(bytes.drain(at..bytes.len().min(at + 1 + random.next_u32() as usize % 40))),
                2 => {
                    let end = bytes.len().min(at + 200);
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                _ => drop(bytes.splice(at..at, *b"\n\ndata: {\"type\":null,\"choices\":[{}],\"delta\":[]}\n\n")),
            }
            if bytes.is_empty() {
                break;
            }
        }
        let cut = pieces(&Bytes::from(bytes), &mut random);
        // After an unreadable event the rest of the stream is not read.
        let read = AtomicUsize::new(0);
        let offered = cut.into_iter().inspect(|piece| {
            read.fetch_add(piece.len(), Ordering::Relaxed);
        });
        let bytes = futures_util::stream::iter(offered.map(Ok::<_, Infallible>));
        let _ = runtime.block_on(hear(*dialect, bytes, &Patience::default(), &mut |_| {}));
        fed += read.into_inner();
        if fed % 64 == 0 {
            most = most.max(resident());
        }
    }
    figures(&format!("QP4: {fed} bytes, memory {before} KB before, {most} KB at most"));
    // In other runs, other stories share this memory.
    assert!(!tier::is_by_hand() || most.saturating_sub(before) < 17 << 10, "{before} KB grew to {most} KB");
}

/// KB of memory that this process has; other stories run in it too.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn characters_cut_between_two_chunks_are_whole() {
    let said = "漢字 👩‍👩‍👧‍👦 é – “done”";
    let shell = Shell::new(&[]);
    for size in [1, 2, 3] {
        let stream: String = answer(Dialect::Responses, &[crate::server::Part::Text(said)]).concat();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let mut acts = vec![Act::Send(head.as_bytes().to_vec())];
        acts.extend(stream.as_bytes().chunks(size).map(|piece| Act::Send(piece.to_vec())));
        let server = Server::start(vec![Reply::Raw(acts)]);
        let mut args = server.flags(Dialect::Responses);
        args.extend(["--headless", "--json", "go"].map(str::to_owned));
        let ran = shell.run(args);
        assert!(ran.stdout.contains(said), "{size}: {}", ran.stdout);
    }
}
