//! What one Turn costs, by how long the Session is: `cargo bench --bench growth`.
//!
//! The Session was compacted before, so every request has the same size, and what grows is pixir's own work. A Turn has two
//! requests and one call. Instructions are counted by valgrind, where it is installed; they are nearly the same on every run.

mod conversation;
mod counted;
#[path = "../tests/driver.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod driver;

use std::time::Instant;

use driver::{Pixir, calls, says};
use pixir_core::provider::script::Script;

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
const TURNS: usize = 40;

fn main() {
    match counted::arguments().as_deref() {
        // One of the runs that are counted.
        Some([entries, turns]) => {
            let _ = run(entries.parse().expect("a size"), turns.parse().expect("a number"));
        }
        Some(_) | None => report(),
    }
}

/// What the Turns of one run cost.
struct Cost {
    /// Milliseconds of one Turn.
    ms: f64,
    /// Resident memory before the first Turn, KB.
    before: u64,
    /// Resident memory after the last one, KB.
    after: u64,
}

fn run(entries: usize, turns: usize) -> Cost {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let steps = (0..turns + 1).flat_map(|n| {
        [calls("read", serde_json::json!({ "path": "notes.md" })), says(&format!("That was look number {n}.\n"))]
    });
    let script = Script { steps: steps.collect(), ..Script::default() };
    runtime.block_on(async {
        let mut pixir = Pixir::resumed_with(script, 160, 50, |logs, workspace| {
            std::fs::write(workspace.join("notes.md"), "one\ntwo\n").expect("write");
            conversation::write_compacted(logs, workspace, entries);
        });
        // The first Turn loads what all later ones use.
        pixir.does("look<Enter>").await;
        let before = memory();
        let began = Instant::now();
        for _ in 0..turns {
            pixir.does("look<Enter>").await;
            pixir.screen.paint();
        }
        let ms = began.elapsed().as_secs_f64() * 1e3 / turns.max(1) as f64;
        assert!(pixir.screen.screen().contains(&format!("look number {turns}.")), "{}", pixir.screen.screen());
        Cost { ms, before, after: memory() }
    })
}

#[expect(clippy::print_stdout, reason = "a table for the user")]
fn report() {
    println!(
        "| entries | ms a Turn | instructions a Turn | × the first | memory, MB | growth over {TURNS} Turns, KB |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut first = None;
    for entries in SIZES {
        let Cost { ms, before, after } = run(entries, TURNS);
        let count = counted::of_step(&[&entries.to_string()], TURNS, &mut first);
        let grown = after.saturating_sub(before);
        println!("| {entries} | {ms:.1} | {count} | {:.0} | {grown} |", before as f64 / 1024.0);
    }
}

/// Resident memory of this process, KB.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    text.lines().find_map(|l| l.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
