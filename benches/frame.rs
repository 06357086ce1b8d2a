//! What one frame costs, by how long the conversation is: `cargo bench --bench frame`.
//!
//! A screen of 200x60 in the middle of 1,000, 10,000 and 100,000 entries; scrolled by the wheel, or written in. Instructions are
//! counted by valgrind, where it is installed, calls of the allocator with them; they are the same on every run.

#[expect(dead_code, reason = "the bench of growth uses more of it")]
mod conversation;
mod counted;
#[path = "../tests/driver.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod driver;

use std::time::Instant;

use driver::Pixir;

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
const FRAMES: usize = 200;

fn main() {
    match counted::arguments().as_deref() {
        // One of the runs that are counted.
        Some([entries, what, frames]) => {
            let _ = run(entries.parse().expect("a size"), what, frames.parse().expect("a number"));
        }
        Some(_) | None => report(),
    }
}

/// Milliseconds and bytes of one frame.
fn run(entries: usize, what: &str, frames: usize) -> (f64, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut pixir =
            Pixir::resumed(200, 60, |logs, workspace| drop(conversation::write_log(logs, workspace, entries)));
        pixir.screen.until_idle().await;
        // To the middle of the bar.
        pixir.screen.bytes(b"\x1b[<0;200;30M\x1b[<0;200;30m").await;
        pixir.screen.paint();
        let (began, mut bytes) = (Instant::now(), 0);
        for n in 0..frames {
            match what {
                "scroll" => pixir.screen.bytes(if n % 100 < 50 { b"\x1b[<64;9;9M" } else { b"\x1b[<65;9;9M" }).await,
                "page" => pixir.screen.keys(if n % 20 < 10 { "<PgUp>" } else { "<PgDn>" }).await,
                _ => pixir.screen.keys("x").await,
            }
            bytes += pixir.screen.paint().len();
        }
        (began.elapsed().as_secs_f64() * 1e3 / frames.max(1) as f64, bytes / frames.max(1))
    })
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn report() {
    println!("| frame | entries | ms | bytes | instructions | × the first | budget |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for what in ["scroll", "page", "type"] {
        let mut first = None;
        for entries in SIZES {
            let (ms, bytes) = run(entries, what, FRAMES);
            let count = counted::of_step(&[&entries.to_string(), what], FRAMES, &mut first);
            println!("| {what} | {entries} | {ms:.2} | {bytes} | {count} | ≤ 1 ms |");
        }
    }
}
