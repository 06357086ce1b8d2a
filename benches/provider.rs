//! What reading an answer costs: `cargo bench --bench provider`. Instructions are counted by valgrind, where it is installed;
//! they are the same on every run, so a quadratic step cannot hide in noise.

#[path = "../tests/server.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod server;
#[path = "../tests/wait.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod wait;

use std::convert::Infallible;
use std::process::Command;
use std::time::Instant;

use bytes::Bytes;
use pixir_core::Patience;
use pixir_core::provider::hear;

use server::{Dialect, long};

/// Bytes of the text and of the arguments; a call may have a megabyte of them.
const SIZES: [usize; 2] = [100_000, 1_000_000];
/// What a socket gives at once.
const PIECE: usize = 1_400;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.as_slice() {
        // One of the runs that are counted.
        [dialect, size] => read(Dialect::parse(dialect).expect("a dialect"), size.parse().expect("a size")),
        _ => report(),
    }
}

fn read(dialect: Dialect, size: usize) {
    let all = Bytes::from(long(dialect, size));
    let pieces = (0..all.len()).step_by(PIECE).map(|at| Ok::<_, Infallible>(all.slice(at..all.len().min(at + PIECE))));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let mut chunks = 0_usize;
    let stream = futures_util::stream::iter(pieces);
    let answer =
        runtime.block_on(hear(dialect, stream, &Patience::default(), &mut |_| chunks += 1)).expect("an answer");
    assert!(chunks >= size / 64 && answer.calls().next().is_some_and(|call| call.args.to_string().len() + 64 > size));
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn report() {
    println!("A text and a tool argument of so many bytes each, in deltas of 64 bytes, in pieces of {PIECE}.\n");
    println!("| dialect | bytes | stream | instructions | for each byte of the stream | ms |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for dialect in Dialect::ALL {
        for size in SIZES {
            let stream = long(dialect, size).len();
            let began = Instant::now();
            read(dialect, size);
            let ms = began.elapsed().as_secs_f64() * 1e3;
            // Making the stream is not reading it.
            let (count, per_byte) = match (instructions(dialect, size), instructions(dialect, 64)) {
                (Some(all), Some(start)) => {
                    let reading = all - start;
                    (reading.to_string(), format!("{:.1}", reading as f64 / stream as f64))
                }
                _ => ("valgrind is not installed".to_owned(), "?".to_owned()),
            };
            println!("| {} | {size} | {stream} | {count} | {per_byte} | {ms:.0} |", dialect.name());
        }
    }
}

/// Instructions of one run in a process of its own.
fn instructions(dialect: Dialect, size: usize) -> Option<u64> {
    let own = std::env::current_exe().ok()?;
    let size = size.to_string();
    let counted = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(own)
        .args([dialect.name(), &size])
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&counted.stderr).into_owned();
    said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}
