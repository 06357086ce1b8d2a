//! What the diff costs, by how long it is: `cargo bench --bench diff`.
//!
//! A Session that changed one file of 1,000, 10,000 or 100,000 lines, or 2,000 files, is resumed at 200x60. "First lines" is
//! the time from the key to a frame with lines, "whole" to the frame with all of them compared; the other columns are one key
//! with its frame, p99 over all of them. A long file is folded at first, and its time has the key that unfolds it.

mod counted;
#[path = "../tests/driver.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod driver;

use std::path::Path;
use std::time::Instant;

use driver::{Pixir, log_of};
use pixir_core::event::{ChangeKind, FileChange, ToolCall, ToolResult, UserMessage};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
const FILES: usize = 2_000;
const OPENS: usize = 5;
const KEYS: usize = 100;

fn main() {
    match counted::arguments().as_deref() {
        // One of the runs that are counted.
        Some([lines, key, steps]) => count(lines.parse().expect("a size"), key, steps.parse().expect("a number")),
        Some(_) | None => report(),
    }
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn report() {
    println!("| diff | first lines, ms | whole, ms | j, ms | n, ms | page down, ms | a search, ms | p99, ms |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for lines in SIZES {
        row(&format!("1 file, {lines} changed lines"), 1, lines);
    }
    row(&format!("{FILES} files"), FILES, 50);
    println!("\n| frame | changed lines | instructions | × the first |");
    println!("| --- | --- | --- | --- |");
    for key in ["j", "<PgDn>"] {
        let mut first = None;
        for lines in SIZES {
            println!("| {key} | {lines} | {} |", counted::of_step(&[&lines.to_string(), key], KEYS, &mut first));
        }
    }
}

/// The median.
fn middle(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Opens the diff, and returns the times to the first lines and to all.
async fn open(pixir: &mut Pixir, lines: usize) -> (f64, f64) {
    let began = Instant::now();
    pixir.screen.keys("<A-d>").await;
    if lines > 1_000 {
        pixir.screen.until("unfold").await;
        pixir.screen.keys("z").await;
    }
    pixir.screen.until("let changed_").await;
    let first = began.elapsed();
    pixir.screen.until_idle().await;
    (first.as_secs_f64() * 1e3, began.elapsed().as_secs_f64() * 1e3)
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn row(name: &str, files: usize, lines: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut pixir = Pixir::resumed(200, 60, |logs, workspace| write(logs, workspace, files, lines));
        pixir.screen.until_idle().await;
        let (mut first, mut whole) = (Vec::new(), Vec::new());
        for n in 0..OPENS {
            let (lines, all) = open(&mut pixir, lines).await;
            first.push(lines);
            whole.push(all);
            if n + 1 < OPENS {
                pixir.screen.keys("<Esc>").await;
                pixir.screen.until_idle().await;
            }
        }
        let (mut took, mut costs) = (Vec::new(), Vec::new());
        let keys: [&[&str]; 4] = [&["j"], &["n"], &["<PgDn>"], &["/", "v", "a", "l", "u", "e", "<Enter>"]];
        for keys in keys {
            let mut sum = 0.0;
            for key in keys.iter().cycle().take(KEYS * keys.len()) {
                let began = Instant::now();
                pixir.screen.keys(key).await;
                pixir.screen.paint();
                let ms = began.elapsed().as_secs_f64() * 1e3;
                sum += ms;
                took.push(ms);
            }
            pixir.screen.keys("<Home>").await;
            costs.push(format!("{:.2}", sum / (KEYS * keys.len()) as f64));
        }
        took.sort_by(f64::total_cmp);
        let p99 = took[took.len() * 99 / 100];
        println!("| {name} | {:.1} | {:.1} | {} | {p99:.1} |", middle(first), middle(whole), costs.join(" | "));
    });
}

/// Presses a key so many times, each with its frame.
fn count(lines: usize, key: &str, steps: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut pixir = Pixir::resumed(200, 60, |logs, workspace| write(logs, workspace, 1, lines));
        pixir.screen.until_idle().await;
        open(&mut pixir, lines).await;
        for _ in 0..steps {
            pixir.screen.keys(key).await;
            pixir.screen.paint();
        }
    });
}

/// One Turn whose call changed every fourth line of each file.
fn write(logs: &Path, workspace: &Path, files: usize, lines: usize) {
    let home = logs.parent().and_then(Path::parent).expect("logs lie in a home");
    let blobs = pixir_core::store::Store::new(home).blobs();
    let text = |file: usize, word: &str| -> String {
        // Both versions have four lines for each changed one.
        (0..lines * 4)
            .map(|n| format!("    let {} = value({file}, {n});\n", if n % 4 == 0 { word } else { "same" }))
            .collect()
    };
    let changes = (0..files).map(|n| FileChange {
        path: format!("src/part{}/file{n}.rs", n % 40),
        kind: ChangeKind::Modified,
        before_blob: blobs.put(text(n, "old_value").as_bytes()).expect("put"),
        after_blob: blobs.put(text(n, "changed_value").as_bytes()).expect("put"),
        before_mode: Some(0o644),
        after_mode: Some(0o644),
        new_folders: 0,
        moved_from: None,
        added: lines as u64,
        removed: lines as u64,
    });
    let changes = changes.collect();
    let mut log = log_of(logs, workspace);
    let said = UserMessage { text: "change it".into(), ..UserMessage::default() };
    log.append(Some(1), said.into()).expect("append");
    let call_id = "call_1".to_owned();
    let call = ToolCall { call_id: call_id.clone(), name: "bash".into(), ..ToolCall::default() };
    log.append(Some(1), call.into()).expect("append");
    let result = ToolResult { call_id, ok: true, output: "ok\n".into(), changes, ..ToolResult::default() };
    log.append(Some(1), result.into()).expect("append");
    log.establish().expect("establish");
}
