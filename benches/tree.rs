//! What the tree costs, by how many Turns it has: `cargo bench --bench tree`.
//!
//! A screen of 200x60 over 1,000, 10,000 and 100,000 Turns with 300 forks: the tree is opened, then each key is pressed and
//! the screen is drawn, many times.

mod counted;
#[path = "../tests/driver.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod driver;

use std::time::Instant;

use driver::{Pixir, log_of, say};
use pixir_core::event::HeadMoved;

const SIZES: [u32; 3] = [1_000, 10_000, 100_000];
const FORKS: u32 = 300;
const OPENS: usize = 5;
const PRESSES: usize = 60;
/// The keys, and what they do.
const KEYS: [(&str, &str); 9] = [
    ("down", "<Down>"),
    ("page up", "<PgUp>"),
    ("start", "<Home>"),
    ("end", "<End>"),
    ("next branch", "]"),
    ("fold", "<Space>"),
    ("next match", "n"),
    ("filter", "o"),
    ("mark", "m"),
];

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    // One of the runs that are counted.
    if let Some([turns, key, steps]) = counted::arguments().as_deref() {
        let (turns, steps) = (turns.parse().expect("a size"), steps.parse().expect("a number"));
        return runtime.block_on(count(turns, key, steps));
    }
    println!("| turns | key | p50, ms | p99, ms | budget |");
    println!("| --- | --- | --- | --- | --- |");
    for turns in SIZES {
        runtime.block_on(measure(turns));
    }
    println!("\n| frame | turns | instructions | × the first |");
    println!("| --- | --- | --- | --- |");
    for key in ["<Up>", "<PgUp>"] {
        let mut first = None;
        for turns in SIZES {
            println!("| {key} | {turns} | {} |", counted::of_step(&[&turns.to_string(), key], PRESSES, &mut first));
        }
    }
}

/// Presses a key so many times, each with its frame.
async fn count(turns: u32, key: &str, steps: usize) {
    let mut pixir = Pixir::resumed(200, 60, |folder, workspace| write(folder, workspace, turns));
    // Under valgrind a long Log takes longer than a story waits.
    while pixir.screen.try_until_idle().await.is_err() {}
    pixir.screen.keys("<C-t>").await;
    pixir.screen.paint();
    for _ in 0..steps {
        pixir.screen.keys(key).await;
        pixir.screen.paint();
    }
}

/// A conversation that forks again and again: most branches are short, and the last one goes on.
fn write(folder: &std::path::Path, workspace: &std::path::Path, turns: u32) {
    let mut log = log_of(folder, workspace);
    let every = (turns / FORKS).max(2);
    for n in 1..=turns {
        if n % every == 0 {
            // Each Turn has two Entries; the answer of an earlier Turn is the new head.
            let back = u64::from(n / every);
            let to_seq = Some(log.next_seq().saturating_sub(2 * (1 + back % 40)).max(2) & !1);
            log.append(None, HeadMoved { to_seq, reason: "rewind".into() }.into()).expect("append");
        }
        say(&mut log, n, &format!("question {n} about the parser"), &format!("Answer {n}: the lexer reads one token."));
    }
    log.establish().expect("establish");
}

async fn measure(turns: u32) {
    let mut pixir = Pixir::resumed(200, 60, |folder, workspace| write(folder, workspace, turns));
    pixir.screen.until_idle().await;
    pixir.screen.paint();
    let mut opened = Vec::new();
    for _ in 0..OPENS {
        let began = Instant::now();
        pixir.screen.keys("<C-t>").await;
        pixir.screen.paint();
        opened.push(began.elapsed().as_secs_f64() * 1e3);
        pixir.screen.keys("<Esc>").await;
        pixir.screen.until_idle().await;
    }
    row(turns, "open", &mut opened, "≤ 30 ms");
    pixir.screen.keys("<C-t>/token 9<Enter>").await;
    for (name, key) in KEYS {
        let mut took = Vec::new();
        for _ in 0..PRESSES {
            let began = Instant::now();
            pixir.screen.keys(key).await;
            pixir.screen.paint();
            took.push(began.elapsed().as_secs_f64() * 1e3);
        }
        row(turns, name, &mut took, "≤ 8 ms");
    }
    pixir.screen.keys("<Esc><Esc>").await;
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn row(turns: u32, what: &str, took: &mut [f64], budget: &str) {
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took[((took.len() - 1) as f64 * share).round() as usize];
    println!("| {turns} | {what} | {:.2} | {:.2} | {budget} |", at(0.5), at(0.99));
}
